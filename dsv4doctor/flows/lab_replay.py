"""`lab search` and `lab replay`: orders that go wrong are looked for, kept, and run again."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dsv4doctor.errors import EXIT_DONE, EXIT_FINDINGS, DoctorError, UsageError
from dsv4doctor.finding import Evidence, Finding, Severity
from dsv4doctor.lab.interleaving import Search, Violation, run_order, search
from dsv4doctor.lab.kept import INTERLEAVING, from_document, save
from dsv4doctor.lab.races import RACES, race_named
from dsv4doctor.lab.releases import NEWEST, release_named
from dsv4doctor.units import many

RULE = "UNORDERED_ACCESS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a command says: `verdict` in one word, `lines` for people, `body` for machines."""

    verdict: str
    exit_code: int
    lines: tuple[str, ...]
    body: dict[str, Any]
    findings: tuple[Finding, ...] = ()


def search_races(
    names: Sequence[str], *, as_version: str | None, overlap: bool, save_to: Path | None
) -> Outcome:
    """Search every interleaving of the named races (none named: of all).

    Raises:
        UsageError: for an unknown race or release.
        DoctorError: if `save_to` cannot be written.
    """
    known = {race.name for race in RACES}
    for name in names:
        if name not in known:
            raise UsageError(f"no race is called {name}", f"one of {', '.join(sorted(known))}")
    release = release_named(as_version) if as_version else NEWEST
    orderings = replace(release.orderings, overlap=overlap)
    chosen = [race for race in RACES if not names or race.name in names]
    results = [search(race, orderings) for race in chosen]
    open_ones = [result for result in results if result.violation is not None]
    if save_to is not None and open_ones:
        save(save_to, open_ones[0], orderings)
    return Outcome(
        verdict="races" if open_ones else "ordered",
        exit_code=EXIT_FINDINGS if open_ones else EXIT_DONE,
        lines=tuple(_line(result) for result in results),
        body={
            "as_version": release.version,
            "overlap": overlap,
            "saved": str(save_to) if save_to is not None and open_ones else None,
            "races": [_search_body(result) for result in results],
        },
        findings=tuple(_finding(found.race, found.order, found.violation) for found in open_ones),
    )


def replay_file(path: Path, *, as_version: str | None) -> Outcome:
    """Run a kept interleaving or a recorded run again, `as_version` instead of as it was.

    Raises:
        UsageError: if the file is neither.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise UsageError(
            f"{path} cannot be read: {why}", "name what `lab search` or `lab serve` made"
        ) from error
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if isinstance(document, dict) and document.get("kind") == INTERLEAVING:
        return _replay_interleaving(document, path, as_version)
    return _replay_run(path, as_version)


def _replay_interleaving(document: dict[str, Any], path: Path, version: str | None) -> Outcome:
    kept = from_document(document, path)
    orderings = kept.orderings
    if version is not None:
        orderings = replace(release_named(version).orderings, overlap=orderings.overlap)
    body: dict[str, Any] = {"kind": INTERLEAVING, "race": kept.race, "order": list(kept.order)}
    try:
        violation = run_order(race_named(kept.race), orderings, kept.order)
    except DoctorError as closed:
        body |= {"violation": None, "closed_by": str(closed)}
        line = f"{kept.race}: {closed}"
        return Outcome(verdict="closed", exit_code=EXIT_DONE, lines=(line,), body=body)
    body |= {"violation": _violation_body(violation), "same": violation == kept.violation}
    if violation is None:
        line = f"{kept.race}: every read sees what it should"
        return Outcome(verdict="ordered", exit_code=EXIT_DONE, lines=(line,), body=body)
    steps = tuple(f"  {number:2}  {step}" for number, step in enumerate(kept.order, start=1))
    return Outcome(
        verdict="reproduced",
        exit_code=EXIT_FINDINGS,
        lines=(f"{kept.race}: {_told(violation)}", *steps),
        body=body,
        findings=(_finding(kept.race, kept.order, violation),),
    )


def _replay_run(path: Path, version: str | None) -> Outcome:
    """Serve a recorded run's requests again, and compare what was read and answered."""
    # Before numpy is imported: its threads would only be in each other's way.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from dsv4doctor.lab.engine import Engine
    from dsv4doctor.lab.recording import ABORT, FLUSH, Recorder, read_recording

    config, events = read_recording(path)
    config = config if version is None else replace(config, as_version=version)
    recorder = Recorder(None, config)
    engine = Engine(config, recorder=recorder)
    requests, differences = 0, []
    for event in events:
        if event.kind == ABORT:
            engine.on_abort(event.rid)
        elif event.kind == FLUSH:
            engine.flush_cache()
        else:
            engine.serve_round(event.requests)
            requests += len(event.requests)
            again = zip(event.made, recorder.rounds[-1], strict=True)
            differences += [before["rid"] for before, after in again if before != after]
    same = not differences
    told = "every byte read and every reply is the same" if same else "the first: " + differences[0]
    return Outcome(
        verdict="same" if same else "differs",
        exit_code=EXIT_DONE if same else EXIT_FINDINGS,
        lines=(f"{many(requests, 'request')} again, {len(differences)} of them different: {told}",),
        body={
            "kind": "run",
            "as_version": version,
            "config": asdict(config),
            "rounds": len(recorder.rounds),
            "requests": requests,
            "different": differences,
            "stale_reads": engine.ground_truth.stale_reads,
        },
    )


def _told(violation: Violation) -> str:
    got, expected = _text(violation.got), _text(violation.expected)
    return f"{violation.reader} at {violation.place} and gets {got!r} for {expected!r}"


def _text(data: bytes) -> str:
    return data.decode("ascii", "backslashreplace")


def _line(result: Search) -> str:
    head = f"{result.race:20} {result.interleavings:5} interleavings: "
    return head + (_told(result.violation) if result.violation else "none goes wrong")


def _violation_body(violation: Violation | None) -> dict[str, str] | None:
    if violation is None:
        return None
    return {
        "reader": violation.reader,
        "place": violation.place,
        "expected": _text(violation.expected),
        "got": _text(violation.got),
    }


def _search_body(result: Search) -> dict[str, Any]:
    return {
        "race": result.race,
        "interleavings": result.interleavings,
        "order": list(result.order),
        "violation": _violation_body(result.violation),
    }


def _finding(race: str, order: Sequence[str], violation: Violation | None) -> Finding:
    assert violation is not None
    return Finding(
        rule=RULE,
        severity=Severity.WARNING,
        title=f"{race}: {race_named(race).summary}",
        evidence=(Evidence(where=" -> ".join(order), what=_told(violation)),),
    )

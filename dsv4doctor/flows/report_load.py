"""A run as it lies on disk: what it concluded, or for a killed one what its records say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.codec import to_builtins
from dsv4doctor.finding import Severity
from dsv4doctor.flows.countable import is_countable
from dsv4doctor.flows.cut_short import SoFar, sum_up_cut_short, words_of
from dsv4doctor.flows.repro_verdict import (
    RunFacts,
    exit_code_of,
    findings_of,
    summarise,
    verdict_of,
)
from dsv4doctor.flows.tally import Tally
from dsv4doctor.report.members import mapping
from dsv4doctor.units import many

REPRO = "repro"
AB = "ab"
BENCH = "bench"
DIAGNOSE = "diagnose"
_RESUMABLE = frozenset({REPRO, AB, BENCH})


@dataclass(slots=True, kw_only=True)
class LoadedRun:
    """One run. `records` may be read any number of times; `notes` are about the directory."""

    directory: RunDirectory
    verdict: str
    exit_code: int | None
    summary: dict[str, Any]
    findings: list[dict[str, Any]]
    is_recomputed: bool
    notes: list[str] = field(default_factory=list)

    @property
    def command(self) -> str:
        return str(self.directory.manifest["command"])

    @property
    def started_unix(self) -> float | None:
        """When the run began; None where its manifest does not say."""
        try:
            started = str(self.directory.manifest.get("started"))
            return datetime.fromisoformat(started.replace("Z", "+00:00")).timestamp()
        except ValueError:
            return None

    def records(self) -> Iterator[dict[str, Any]]:
        """The records in the order in which they ended, each session and turn once."""
        seen: set[tuple[int, int]] = set()
        for record in self.directory.records():
            session, turn = record.get("session"), record.get("turn")
            if isinstance(session, int) and isinstance(turn, int):
                if (session, turn) in seen:
                    continue
                seen.add((session, turn))
            yield record


def load_run(path: Path) -> LoadedRun:
    """The run at `path`. A `repro` run that never got to its summary is summed up from its records,
    an experiment and a bench from the blocks that they had finished, a diagnosis from its arms.

    Raises:
        UsageError: if `path` is no run directory.
        DoctorError: if another command's run was cut short before anything was seen.
    """
    directory = RunDirectory.open(path)
    command = str(directory.manifest["command"])
    # A diagnosis sums up after every arm, the others once.
    has_summary = directory.manifest.get("ended") or command == DIAGNOSE
    run = _concluded(directory) if has_summary else None
    if run is not None:
        return run
    if command == AB:
        return _experiment_so_far(directory)
    if command == BENCH:
        return _bench_so_far(directory)
    return _summed_up(directory) if command == REPRO else _cut_short(directory)


def _concluded(directory: RunDirectory) -> LoadedRun | None:
    """What the run's own summary says; None where there is none that can be read."""
    command, document = str(directory.manifest["command"]), directory.summary() or {}
    body, code = mapping(document.get(command)), document.get("exit_code")
    if not body or not isinstance(document.get("verdict"), str):
        return None
    return LoadedRun(
        directory=directory,
        verdict=document["verdict"],
        exit_code=code if isinstance(code, int) else None,
        summary={**body, "run_dir": str(directory.path), **_made_by(directory)},
        findings=list(directory.findings()),
        is_recomputed=False,
        notes=[] if directory.manifest.get("ended") else [_how_it_ended(directory, "arms")],
    )


def _cut_short(directory: RunDirectory) -> LoadedRun:
    return _so_far(directory, sum_up_cut_short(directory), "records")


def _how_it_ended(directory: RunDirectory, parts: str) -> str:
    """That a run has no end of its own, why as far as is known, and what can be done."""
    command, failed = str(directory.manifest["command"]), directory.manifest.get("failed")
    how = f"ended with: {failed}" if failed else "was killed, or is still going"
    again = (
        f"Go on with: dsv4doctor {command} --resume {directory.path}"
        if command in _RESUMABLE
        else f"It cannot be resumed: run dsv4doctor {words_of(directory)} again"
    )
    return f"The run {how}. This is what its {parts} say. {again}"


def _experiment_so_far(directory: RunDirectory) -> LoadedRun:
    from dsv4doctor.flows.ab_killed import sum_up  # scipy behind it is not for every report

    return _so_far(directory, sum_up(directory), "finished blocks")


def _bench_so_far(directory: RunDirectory) -> LoadedRun:
    from dsv4doctor.flows.bench_killed import sum_up_bench

    return _so_far(directory, sum_up_bench(directory), "finished blocks")


def _so_far(directory: RunDirectory, so_far: SoFar, parts: str) -> LoadedRun:
    return LoadedRun(
        directory=directory,
        verdict=so_far.verdict,
        exit_code=so_far.exit_code,
        summary={**so_far.body, **_made_by(directory)},
        findings=so_far.findings,
        is_recomputed=True,
        notes=[_how_it_ended(directory, parts)],
    )


def _summed_up(directory: RunDirectory) -> LoadedRun:
    """What the records of a run without a summary say."""
    run = LoadedRun(
        directory=directory,
        verdict="undecided",
        exit_code=None,
        summary={},
        findings=[],
        is_recomputed=True,
        notes=[_how_it_ended(directory, "records")],
    )
    tally, skipped = Tally(), 0
    for record in run.records():
        if is_countable(record):
            tally.add(record)
        else:
            skipped += 1
    if skipped:
        left = many(skipped, "record")
        run.notes.append(f"Not counted: {left} without what every record of a run has.")
    if str(directory.damage):
        run.notes.append(f"Damaged in records.jsonl: {directory.damage}.")
    facts = _facts(directory, tuple(run.notes))
    run.verdict = verdict_of(tally, facts)
    findings = findings_of(tally, facts, run.verdict)
    run.exit_code = exit_code_of(run.verdict, findings, Severity.WARNING)
    run.findings = to_builtins(findings)
    run.summary = {**to_builtins(summarise(tally, facts)), **_made_by(directory)}
    return run


def _made_by(directory: RunDirectory) -> dict[str, Any]:
    return {"dsv4doctor_version": directory.manifest.get("dsv4doctor_version")}


def _facts(directory: RunDirectory, notes: tuple[str, ...]) -> RunFacts:
    manifest = directory.manifest
    plan = mapping(manifest.get("plan"))
    scenario = mapping(plan.get("scenario"))
    target = {"base_url": plan.get("base_url"), "lab": plan.get("lab"), "model": plan.get("model")}
    turns = plan.get("turns") or scenario.get("turns")
    context = plan.get("context_tokens")
    return RunFacts(
        run_dir=str(directory.path),
        target=mapping(manifest.get("target")) or target,
        scenario=str(scenario.get("name") or manifest.get("label")),
        seed=_integer(manifest.get("seed")),
        sessions=_integer(plan.get("sessions")),
        turns=_integer(turns),
        context_tokens=(context[0], context[1]) if context else None,
        # Whether the server stood still when the run was killed is not in the records.
        interrupted=True,
        segments=len(manifest["segments"]),
        torn_lines=directory.torn_lines,
        notes=notes,
    )


def _integer(value: Any) -> int:
    return value if isinstance(value, int) else 0

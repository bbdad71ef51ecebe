"""A run as it lies on disk: what it concluded, or for a killed one what its records say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.codec import to_builtins
from dsv4doctor.errors import DoctorError
from dsv4doctor.finding import Severity
from dsv4doctor.flows.repro_verdict import (
    RunFacts,
    exit_code_of,
    findings_of,
    summarise,
    verdict_of,
)
from dsv4doctor.flows.tally import Tally
from dsv4doctor.report.members import mapping

if TYPE_CHECKING:
    from dsv4doctor.flows.ab_killed import SoFar

REPRO = "repro"
AB = "ab"
BENCH = "bench"
DIAGNOSE = "diagnose"
# What a record must have to be counted; a line that lost one of these was written by nobody's run.
_COUNTED = frozenset(
    {"session", "turn", "kind", "aborted", "failure", "primary", "also", "corrupted", "evidence",
     "stream", "prompt_tokens", "completion_tokens", "cached_tokens", "sent_unix", "ttft_ms",
     "itl_ms", "e2e_latency_ms"}
)  # fmt: skip


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
    an experiment and a bench from the blocks that they had finished.

    Raises:
        UsageError: if `path` is no run directory.
        DoctorError: if another command's run has no summary.
    """
    directory = RunDirectory.open(path)
    command = str(directory.manifest["command"])
    document = directory.summary() if directory.manifest.get("ended") else None
    body = mapping((document or {}).get(command))
    if document is not None and body and isinstance(document.get("verdict"), str):
        code = document.get("exit_code")
        return LoadedRun(
            directory=directory,
            verdict=document["verdict"],
            exit_code=code if isinstance(code, int) else None,
            summary={**body, "run_dir": str(path), **_made_by(directory)},
            findings=list(directory.findings()),
            is_recomputed=False,
        )
    if command == AB:
        return _experiment_so_far(directory)
    if command == BENCH:
        return _bench_so_far(directory)
    if command != REPRO:
        raise DoctorError(
            f"{path} has no summary: that run of `{command}` was cut short",
            f"run `dsv4doctor {command}` again: its records.jsonl keeps what was seen",
        )
    return _summed_up(directory)


def _experiment_so_far(directory: RunDirectory) -> LoadedRun:
    from dsv4doctor.flows.ab_killed import sum_up  # scipy behind it is not for every report

    return _so_far(directory, sum_up(directory), "experiment")


def _bench_so_far(directory: RunDirectory) -> LoadedRun:
    from dsv4doctor.flows.bench_killed import sum_up_bench

    return _so_far(directory, sum_up_bench(directory), "bench")


def _so_far(directory: RunDirectory, so_far: SoFar, noun: str) -> LoadedRun:
    command = directory.manifest["command"]
    return LoadedRun(
        directory=directory,
        verdict=so_far.verdict,
        exit_code=so_far.exit_code,
        summary={**so_far.body, **_made_by(directory)},
        findings=so_far.findings,
        is_recomputed=True,
        notes=[
            f"The {noun} was killed, or is still going: this is what its finished blocks say. "
            f"Go on with: dsv4doctor {command} --resume {directory.path}"
        ],
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
        notes=[
            "The run was killed, or is still going: this is what its records say. "
            f"Go on with: dsv4doctor repro --resume {directory.path}"
        ],
    )
    tally, skipped = Tally(), 0
    for record in run.records():
        if record.keys() >= _COUNTED and _is_countable(record):
            tally.add(record)
        else:
            skipped += 1
    if skipped:
        run.notes.append(f"Not counted: {skipped} records that lack what every record has.")
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


def _is_countable(record: Mapping[str, Any]) -> bool:
    numbers = all(isinstance(record[name], int | float) for name in ("sent_unix", "e2e_latency_ms"))
    is_judged = record["aborted"] or record["failure"] or isinstance(record["primary"], str)
    return numbers and bool(is_judged)


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

"""Runs against each other: named, checked for being comparable, and decided by the statistics."""

from __future__ import annotations

from collections.abc import Sequence

from dsv4doctor.errors import UsageError
from dsv4doctor.flows.countable import is_countable
from dsv4doctor.flows.report_load import REPRO, LoadedRun
from dsv4doctor.report.comparison import RunComparison, RunEntry
from dsv4doctor.stats.decide import Looking, Rules, judge, overall
from dsv4doctor.stats.outcomes import ArmOutcomes, Outcome
from dsv4doctor.units import many

# What two runs have to share for their rates to be about the same thing.
_SHARED = ("scenario", "turns", "context_tokens")


def compared(runs: Sequence[LoadedRun]) -> RunComparison:
    """The comparison of `runs`; it is judged where all were sent the same kind of load.

    Raises:
        UsageError: if a run is not one of `repro`, or stands there twice.
    """
    for run in runs:
        if run.command != REPRO:
            raise UsageError(
                f"{run.directory.path} is a run of `{run.command}`: only runs of repro compare",
                f"dsv4doctor report {run.directory.path}",
            )
    paths = [run.directory.path.resolve() for run in runs]
    if len(set(paths)) < len(paths):
        raise UsageError("a run directory is given twice", "give each run once")
    names = [_letter(place) for place in range(len(runs))]
    entries = tuple(
        RunEntry(
            name=name,
            directory=run.directory.path.name,
            verdict=run.verdict,
            summary=run.summary,
            started_unix=run.started_unix,
        )
        for name, run in zip(names, runs, strict=True)
    )
    notes = tuple(
        f"{name}: {note}" for name, run in zip(names, runs, strict=True) for note in run.notes
    )
    reason = _undecidable(runs)
    if reason:
        return RunComparison(runs=entries, undecidable=reason, notes=notes)
    arms = [_arm(name, run) for name, run in zip(names, runs, strict=True)]
    comparisons = judge(arms, Rules(looking=Looking.ONCE))
    return RunComparison(
        runs=entries, comparisons=comparisons, verdict=overall(comparisons).value, notes=notes
    )


def _letter(place: int) -> str:
    """A short name: A, B, ...; the table of the runs says which directory that is."""
    return chr(ord("A") + place) if place < 26 else f"R{place + 1}"


def _undecidable(runs: Sequence[LoadedRun]) -> str:
    for key in _SHARED:
        values = {repr(run.summary.get(key)) for run in runs}
        if len(values) > 1:
            shown = " and ".join(sorted(value.strip("'") for value in values))
            return f"the runs are of different {key.replace('_', ' ')} ({shown})"
    empty = sum(not run.summary.get("responses") for run in runs)
    return f"{many(empty, 'run')} judged no response" if empty else ""


def _arm(name: str, run: LoadedRun) -> ArmOutcomes:
    """Each session's outcome in the order of the sessions: None where nothing of it was judged.

    A session that failed midway counts as what was seen of it, as in its run's `session_rate`.
    """
    outcomes: dict[int, Outcome] = {}
    for record in run.records():
        if not is_countable(record):
            continue
        session: int = record["session"]
        outcomes.setdefault(session, None)
        if not record["aborted"] and not record["failure"]:
            outcomes[session] = bool(outcomes[session]) or record["corrupted"]
    launch = tuple(outcomes[session] for session in sorted(outcomes))
    return ArmOutcomes(name=name, launches=(launch,))

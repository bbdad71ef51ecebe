"""What a bench means: its verdict, its findings, its exit code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsv4doctor.errors import EXIT_COULD_NOT, EXIT_DONE, EXIT_FINDINGS, EXIT_UNDECIDED
from dsv4doctor.finding import Evidence, Finding, Severity
from dsv4doctor.flows.bench_book import BenchBook
from dsv4doctor.flows.bench_summary import BenchFacts
from dsv4doctor.flows.conclusion import mild_is_done
from dsv4doctor.flows.repro_verdict import RunFacts, findings_of
from dsv4doctor.stats.blocks import Trend

# Without a baseline, and nothing wrong: numbers, and no opinion on them.
MEASURED = "measured"

_EXIT_OF_VERDICT = {
    "wedged": EXIT_FINDINGS,
    "unreachable": EXIT_COULD_NOT,
    "corrupted": EXIT_FINDINGS,
    "errors": EXIT_FINDINGS,
    "worse": EXIT_FINDINGS,
    "undecided": EXIT_UNDECIDED,
    "better": EXIT_DONE,
    "same": EXIT_DONE,
    MEASURED: EXIT_DONE,
}


def verdict_of(book: BenchBook, facts: BenchFacts, summary: Mapping[str, Any]) -> str:
    """The gravest thing that is true: a fast wrong answer is no answer."""
    if facts.wedge is not None:
        return "wedged"
    if not book.responses and not facts.interrupted:
        return "unreachable"
    if book.corrupted:
        return "corrupted"
    if book.errors:
        return "errors"
    if facts.interrupted:
        return "undecided"
    return str(summary.get("comparison") or MEASURED)


def exit_code_of(verdict: str, findings: tuple[Finding, ...], fail_on: Severity) -> int:
    """The exit code: 1 only if a finding reaches `fail_on`."""
    return mild_is_done(_EXIT_OF_VERDICT[verdict], findings, fail_on)


def bench_findings(
    book: BenchBook, facts: BenchFacts, summary: Mapping[str, Any], verdict: str
) -> tuple[Finding, ...]:
    """A finding a corrupt label, for failures, a wedge and a late client, and one a regression."""
    run = RunFacts(
        run_dir=facts.run_dir,
        target=facts.target,
        scenario="bench",
        seed=0,
        sessions=book.responses,
        turns=1,
        wedge=facts.wedge,
        client_lag_ms=summary["client_lag_ms"],
        timings_valid=summary["timings_valid"],
        unreachable=facts.unreachable,
    )
    found = list(findings_of(book.tally, run, verdict))
    for level in summary["levels"]:
        found += _regressions(level, summary)
    return tuple(found)


def _regressions(level: Mapping[str, Any], summary: Mapping[str, Any]) -> list[Finding]:
    changes = (level["comparison"] or {}).items()
    worse = [(name, change) for name, change in changes if change["verdict"] == Trend.WORSE]
    if not worse:
        return []
    where = f"{level['max_concurrency'] or 'any number of'} in flight"
    evidence = tuple(
        Evidence(
            where=f"{name} at {where}",
            what=f"{change['before']:.4g} before, {change['now']:.4g} now: "
            f"{100 * change['change']:+.1f} % (interval {100 * change['low']:+.1f} to "
            f"{100 * change['high']:+.1f} %)",
        )
        for name, change in worse
    )
    return [
        Finding(
            rule="SLOWER",
            severity=Severity.WARNING,
            title=f"slower than {summary['baseline']['run_dir']} with {where}",
            evidence=evidence,
            remedy="repeat both after a relaunch before you act: blocks of one launch do not show "
            "how launches differ",
        )
    ]

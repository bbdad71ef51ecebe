"""What an observation means: all that is known of it, its verdict and its exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4doctor.errors import EXIT_COULD_NOT, EXIT_DONE, EXIT_FINDINGS, EXIT_UNDECIDED
from dsv4doctor.finding import Finding, Severity
from dsv4doctor.flows.checksum_live_blind import Unseen, unseen_of, unserved_of
from dsv4doctor.flows.checksum_live_plan import LivePlan
from dsv4doctor.flows.checksum_live_ranks import Watch
from dsv4doctor.flows.conclusion import mild_is_done
from dsv4doctor.flows.repro_drive import Work
from dsv4doctor.tracing.odds import Odds, odds_of

EXIT_OF_VERDICT = {
    "changed": EXIT_FINDINGS,
    "corrupted_elsewhere": EXIT_FINDINGS,
    "clean": EXIT_DONE,
    "undecided": EXIT_UNDECIDED,
    "unreachable": EXIT_COULD_NOT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that is known at the end. `odds` None: no reply was judged, or none could be joined."""

    plan: LivePlan
    work: Work
    watch: Watch
    odds: Odds | None
    unseen: tuple[Unseen, ...]

    @classmethod
    def of(
        cls, plan: LivePlan, work: Work, watch: Watch, records: Sequence[Mapping[str, Any]]
    ) -> Seen:
        trace = watch.trace
        stale = {request for request, count in trace.stale_requests.items() if count}
        sent = {record.get("request_id") for record in records}
        # Where no name that was sent came back, nothing can be joined by names.
        is_joined = bool(records) and not trace.read_requests.isdisjoint(sent)
        odds = odds_of(records, stale) if is_joined else None
        unseen = unseen_of(watch, has_records=bool(records), is_joined=is_joined)
        unseen += tuple(unserved_of(work))
        return cls(plan=plan, work=work, watch=watch, odds=odds, unseen=unseen)

    @property
    def is_blind(self) -> bool:
        return any(each.blinds for each in self.unseen)

    @property
    def corrupted_responses(self) -> int:
        return self.work.tally.corrupted_responses

    def checks(self) -> list[dict[str, Any]]:
        """The self-test in the form of `checksum.checks`."""
        tests = self.watch.tests.tests if self.watch.tests else ()
        return [
            {
                "name": f"a flipped byte at {test.hop}",
                "passed": test.outcome == "caught",
                "planted": 1,
                "found": int(test.outcome == "caught"),
                "host": test.rank,
                "device": None,
            }
            for test in tests
            if test.outcome in ("caught", "missed")
        ]


def verdict_of(seen: Seen) -> str:
    """One of `EXIT_OF_VERDICT`; `unreachable`: no rank could be observed.

    Clean takes that everything observable was observed, that reads were compared, and that the
    detector was seen to catch a flipped byte and to miss none.
    """
    trace, tests = seen.watch.trace, seen.watch.tests
    if trace.by_hop:
        return "changed"
    if not seen.watch.ranks and not seen.work.interrupted:
        return "unreachable"
    is_proved = tests is not None and tests.passed
    if seen.is_blind or seen.work.interrupted or not is_proved:
        return "undecided"
    return "corrupted_elsewhere" if seen.corrupted_responses else "clean"


def exit_code_of(verdict: str, findings: Sequence[Finding], fail_on: Severity) -> int:
    """The exit code: 1 only if a finding reaches `fail_on`."""
    return mild_is_done(EXIT_OF_VERDICT[verdict], findings, fail_on)

"""What an observation means: its verdict, and the contract's `live` object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4doctor.errors import EXIT_COULD_NOT, EXIT_DONE, EXIT_FINDINGS, EXIT_UNDECIDED
from dsv4doctor.finding import Finding, Severity
from dsv4doctor.flows.checksum import HOST_ROW
from dsv4doctor.flows.checksum_live_blind import Unseen, unseen_of, unserved_of
from dsv4doctor.flows.checksum_live_plan import LivePlan
from dsv4doctor.flows.checksum_live_ranks import RankWatch, Watch
from dsv4doctor.flows.conclusion import mild_is_done
from dsv4doctor.flows.repro_drive import Work
from dsv4doctor.probe_protocol import HOPS, Observation
from dsv4doctor.tracing.change import Change
from dsv4doctor.tracing.odds import Odds, odds_of

EXIT_OF_VERDICT = {
    "changed": EXIT_FINDINGS,
    "corrupted_elsewhere": EXIT_FINDINGS,
    "clean": EXIT_DONE,
    "undecided": EXIT_UNDECIDED,
    "unreachable": EXIT_COULD_NOT,
}
# Changes in the JSON document; the run directory has them all.
_CHANGES_TOLD = 50
# Loads are told apart by this many pages.
_LOAD_BIN = 32


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


def body_of(seen: Seen) -> dict[str, Any]:
    """The contract's `checksum.live`, with more beside."""
    trace, work = seen.watch.trace, seen.work
    return {
        "run_dir": str(work.run.path),
        "target": work.target,
        "seed": seen.plan.load.seed,
        "versions_observable": [_observable(rank) for rank in seen.watch.ranks],
        "pages_seen": trace.pages_seen,
        "observations": trace.observations,
        "compared": _by_hop(trace.compared),
        "not_compared": _by_hop(trace.unknown),
        "first_bad_hop": _bad_hop(trace.first_change),
        "changes_by_hop": _by_hop(trace.by_hop),
        "consequences": trace.consequences,
        "stale_reads": trace.stale_reads,
        "stale_responses": sum(count > 0 for count in trace.stale_requests.values()),
        "unordered_right_reads": trace.unordered_right,
        "least_margin_ms": trace.least_margin_ms,
        "by_load_pages": _by_load(seen),
        "changes": [change_fields(change) for change in trace.changes[:_CHANGES_TOLD]],
        "self_test": _self_test(seen),
        "joined": _joined(seen.odds),
        "not_seen": [
            {"where": each.where, "what": each.what, "blinds": each.blinds} for each in seen.unseen
        ],
        "cost": _cost(seen.watch.ranks),
        "responses": work.tally.responses,
        "corrupted_responses": seen.corrupted_responses,
        "failures": work.tally.failures,
        "interrupted": work.interrupted,
        "notes": [*work.notes, *([work.unreachable] if work.unreachable else [])],
        "sessions": seen.plan.load.sessions if seen.plan.drives else None,
        "turns": seen.plan.load.turn_count if seen.plan.drives else None,
        "scenario": seen.plan.load.scenario.name if seen.plan.drives else None,
    }


def host_rows(watch: Watch) -> list[dict[str, Any]]:
    """`checksum.hosts`: a row a rank, and one for every host that could not be asked."""
    ranks = [
        HOST_ROW
        | {
            "host": rank.site.name,
            "device": rank.name,
            "pages": rank.status.pools[0].pages if rank.status.pools else None,
            "bytes": rank.status.cost.get("bytes"),
            "error": rank.gone,
        }
        for rank in watch.ranks
    ]
    return ranks + [
        HOST_ROW | {"host": problem.split(maxsplit=1)[0].rstrip(":"), "error": problem}
        for problem in watch.unreachable
    ]


def _by_hop(counts: Mapping[str, int]) -> dict[str, int]:
    return {hop: counts[hop] for hop in HOPS if counts.get(hop)}


def _observable(rank: RankWatch) -> dict[str, Any]:
    status = rank.status
    return {
        "rank": rank.name,
        "engine": status.engine,
        "version": status.version,
        "hops": dict(status.observes),
        "pools": [pool.pool for pool in status.pools],
        "layout": next((pool.layout for pool in status.pools), None),
    }


def _bad_hop(change: Change | None) -> dict[str, Any] | None:
    if change is None:
        return None
    seen = change.seen
    return {
        "hop": seen.hop,
        "layer": seen.layer,
        "page": seen.page if seen.page is not None else seen.host_page,
        "request": seen.request,
        "distance_ms": seen.distance_ms,
        "pool": seen.pool,
        "index": seen.index,
        "rank": change.rank,
    }


def change_fields(change: Change) -> dict[str, Any]:
    """One change as JSON types: what was seen where, and at which hop it began."""
    seen: Observation = change.seen
    return {
        "hop": change.hop,
        "seen_at": seen.hop,
        "pool": seen.pool,
        "rank": change.rank,
        "request": seen.request,
        "index": seen.index,
        "layer": seen.layer,
        "page": seen.page,
        "host_page": seen.host_page,
        "expected": change.expected,
        "got": seen.digest,
        "ordered": seen.ordered,
        "gate": seen.gate,
        "distance_ms": seen.distance_ms,
        "transfer": seen.transfer,
    }


def _by_load(seen: Seen) -> list[dict[str, int]]:
    """Reads by how many pages the load behind them brought, summed over the layers it brought."""
    layers = max(
        (len(pool.layers) for rank in seen.watch.ranks for pool in rank.status.pools), default=1
    )
    bins: dict[int, list[int]] = {}
    for size, reads in seen.watch.trace.by_load_pages.items():
        counts = bins.setdefault(size // layers // _LOAD_BIN * _LOAD_BIN, [0, 0])
        counts[0] += reads.reads
        counts[1] += reads.stale
    return [
        {"pages_from": size, "reads": reads, "stale": stale}
        for size, (reads, stale) in sorted(bins.items())
    ]


def _self_test(seen: Seen) -> dict[str, Any]:
    tests = seen.watch.tests
    if tests is None:
        return {"passed": None, "hop": None, "hops": [], "tests": []}
    return {
        "passed": tests.passed,
        "hop": tests.hop,
        "hops": list(tests.hops),
        "tests": [
            {
                "rank": test.rank,
                "hop": test.hop,
                "outcome": test.outcome,
                "page": test.flip.page if test.flip else None,
                "layer": test.flip.layer if test.flip else None,
            }
            for test in tests.tests
        ],
    }


def _joined(odds: Odds | None) -> dict[str, Any] | None:
    if odds is None:
        return None
    return {
        "corrupted_with_stale": odds.corrupted_with_stale,
        "corrupted_without": odds.corrupted_without,
        "clean_with_stale": odds.clean_with_stale,
        "clean_without": odds.clean_without,
        "odds_ratio": odds.ratio,
        "p_value": odds.p_value,
        "named_without": list(odds.named_without),
    }


def _cost(ranks: Sequence[RankWatch]) -> list[dict[str, Any]]:
    return [{"rank": rank.name, **dict(rank.status.cost)} for rank in ranks]

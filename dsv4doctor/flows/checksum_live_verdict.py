"""What an observation means: its verdict, its findings, and the contract's `live` object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4doctor.errors import EXIT_DONE, EXIT_FINDINGS, EXIT_UNDECIDED
from dsv4doctor.finding import Certainty, Evidence, Finding, Severity
from dsv4doctor.flows.checksum_live_blind import Unseen, unseen_of
from dsv4doctor.flows.checksum_live_plan import LivePlan
from dsv4doctor.flows.checksum_live_ranks import RankWatch, Watch
from dsv4doctor.flows.repro_drive import Work
from dsv4doctor.probe_protocol import HOPS, READ, Observation
from dsv4doctor.tracing.change import HOP_WORDS, Change
from dsv4doctor.tracing.odds import Odds, odds_of

EXIT_OF_VERDICT = {
    "changed": EXIT_FINDINGS,
    "corrupted_elsewhere": EXIT_FINDINGS,
    "clean": EXIT_DONE,
    "undecided": EXIT_UNDECIDED,
}
_PLACES_IN_EVIDENCE = 8
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
    """`changed`, `corrupted_elsewhere`, `clean` or `undecided`.

    Clean takes that everything observable was observed, that reads were compared, and that the
    detector was seen to catch a flipped byte and to miss none.
    """
    trace, tests = seen.watch.trace, seen.watch.tests
    if trace.by_hop:
        return "changed"
    is_proved = tests is not None and tests.passed
    if seen.is_blind or seen.work.interrupted or not is_proved:
        return "undecided"
    return "corrupted_elsewhere" if seen.corrupted_responses else "clean"


def exit_code_of(verdict: str, findings: Sequence[Finding], fail_on: Severity) -> int:
    """The exit code: 1 only if a finding reaches `fail_on`."""
    code = EXIT_OF_VERDICT[verdict]
    if code == EXIT_FINDINGS and all(each.severity.rank < fail_on.rank for each in findings):
        return EXIT_DONE
    return code


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


def findings_of(seen: Seen, verdict: str) -> tuple[Finding, ...]:
    """One finding a hop, one for a second cause, one for what was not proved or not seen."""
    found = [_hop_finding(seen, hop, count) for hop, count in _first_hops(seen)]
    odds = seen.odds
    if odds is not None and odds.corrupted_without:
        found.append(_second_cause(odds, is_other=verdict == "changed"))
    elif verdict == "corrupted_elsewhere":
        found.append(_not_index_k(seen))
    if seen.watch.trace.unordered_right:
        found.append(_near_miss(seen))
    if verdict in ("changed", "undecided"):
        found += _unproved(seen, verdict)
    return tuple(found)


def _first_hops(seen: Seen) -> list[tuple[str, int]]:
    counts = seen.watch.trace.by_hop
    return sorted(counts.items(), key=lambda item: (-item[1], HOPS.index(item[0])))


def _hop_finding(seen: Seen, hop: str, count: int) -> Finding:
    firsts = [
        change
        for change in seen.watch.trace.changes
        if change.origin is None and change.seen.hop == hop
    ]
    evidence = tuple(
        Evidence(where=_place(change), what=_how(change)) for change in firsts[:_PLACES_IN_EVIDENCE]
    ) or (Evidence(where=hop, what=f"{count} changes, of which none was kept"),)
    rule = "STALE_READ" if hop == READ else "PAGE_CHANGED"
    what = "index-K reads saw other bytes than their page's" if hop == READ else "pages changed"
    return Finding(
        rule=rule,
        severity=Severity.ERROR,
        title=f"{count} {what}: {HOP_WORDS[hop]}",
        evidence=evidence,
        remedy=_REMEDY.get(hop, "see docs/checksum-live.md for what moves pages at this hop"),
    )


_REMEDY = {
    "read": "switch HiCache off, or take a release (or patch) whose index-K read waits for its "
    "layer's load; `dsv4doctor audit` and `dsv4doctor patch` know both",
    "send": "set SGLANG_DISAGG_PREFILL_EARLY_SEND_CACHED_PREFIX=0 on the prefill side and run this "
    "again; releases from 0.5.23 hold such sends back",
    "arrive": "what the decode side reads is not what was sent: compare the transfer backends, "
    "and run this again with one decode request at a time",
    "backup": "the page was written while it was backed up: a backup that does not wait for the "
    "forward (releases before 0.5.23), or a page given away too early",
}


def _place(change: Change) -> str:
    seen = change.seen
    page = f"page {seen.page}" if seen.page is not None else f"host page {seen.host_page}"
    asked = f" {seen.request}" if seen.request else ""
    return f"{change.rank}{asked} layer {seen.layer} {page}"


def _how(change: Change) -> str:
    seen = change.seen
    words = f"{seen.digest} instead of {change.expected}"
    if seen.ordered is False:
        words += ", not ordered behind its load"
    elif seen.ordered:
        words += ", ordered behind its load: something else wrote the page"
    if seen.distance_ms is not None:
        side = "before" if seen.distance_ms < 0 else "after"
        words += f", {abs(seen.distance_ms):.3g} ms {side} the load's end"
    return words


def _second_cause(odds: Odds, *, is_other: bool) -> Finding:
    title = f"{odds.corrupted_without} corrupted responses read no stale page"
    return Finding(
        rule="CORRUPTED_WITHOUT_STALE_READ",
        severity=Severity.WARNING,
        certainty=Certainty.INFERRED,
        title=f"{title}: a possible second cause" if is_other else title,
        evidence=tuple(
            Evidence(where=f"records.jsonl {name}", what="corrupted, no stale read was seen")
            for name in odds.named_without[:_PLACES_IN_EVIDENCE]
        ),
        remedy="look at these alone (`dsv4doctor report RUN_DIR`): a fault of the parser, another "
        "pool or a foreign page leaves index-K's bytes as they are",
    )


def _not_index_k(seen: Seen) -> Finding:
    return Finding(
        rule="CORRUPTED_WITHOUT_STALE_READ",
        severity=Severity.WARNING,
        certainty=Certainty.INFERRED,
        title=f"{seen.corrupted_responses} responses are corrupted, and no index-K page changed",
        evidence=(Evidence(where="records.jsonl", what="no reply could be joined by its id"),),
        remedy="the cause lies elsewhere: `dsv4doctor diagnose` goes through the others",
    )


def _near_miss(seen: Seen) -> Finding:
    trace = seen.watch.trace
    margin = trace.least_margin_ms
    said = "" if margin is None else f"; the closest ran {margin:.3g} ms after its load's end"
    return Finding(
        rule="READ_NOT_ORDERED",
        severity=Severity.INFO,
        title=f"{trace.unordered_right} reads were not ordered behind their load and were right",
        evidence=(Evidence(where="read", what=f"gate missed, bytes as loaded{said}"),),
        remedy="nothing but speed kept them right: a larger load or a slower copy may not",
    )


def _unproved(seen: Seen, verdict: str) -> list[Finding]:
    """Why it is not called clean, or what the verdict does not cover."""
    found = []
    blind = [each for each in seen.unseen if each.blinds]
    if blind:
        found.append(
            Finding(
                rule="NOT_SEEN",
                severity=Severity.INFO if verdict == "changed" else Severity.WARNING,
                certainty=Certainty.NOT_DETERMINED,
                title="part of it was not seen",
                evidence=tuple(Evidence(where=each.where, what=each.what) for each in blind),
                remedy="run it again once that is mended; what was seen stands",
            )
        )
    tests = seen.watch.tests
    if verdict == "undecided" and (tests is None or not tests.passed):
        found.append(_untested(seen))
    return found


def _untested(seen: Seen) -> Finding:
    tests = seen.watch.tests
    if tests is None:
        return Finding(
            rule="NOT_SELF_TESTED",
            severity=Severity.WARNING,
            certainty=Certainty.NOT_DETERMINED,
            title="nothing changed that was seen, but the detector was not tried",
            evidence=(Evidence(where="self_test", what="no byte was flipped"),),
            remedy="add --perturb: it flips one byte in one page, digests it and flips it back",
        )
    evidence = tuple(
        Evidence(where=f"{test.rank} {test.hop}", what=test.outcome) for test in tests.tests
    ) or (Evidence(where="self_test", what="no hop of any rank can be tested"),)
    return Finding(
        rule="SELF_TEST_FAILED",
        severity=Severity.WARNING,
        certainty=Certainty.NOT_DETERMINED,
        title="a flipped byte went by unnoticed"
        if tests.failed
        else "no flipped byte was met by a page that was known",
        evidence=evidence,
        remedy="report it: the detector is at fault"
        if tests.failed
        else "observe longer, or drive a load with --during repro",
    )

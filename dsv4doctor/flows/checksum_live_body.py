"""An observation as JSON types: the contract's `checksum.live`, its hosts and its changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsv4doctor.flows.checksum import HOST_ROW
from dsv4doctor.flows.checksum_live_ranks import RankWatch, Watch
from dsv4doctor.flows.checksum_live_verdict import Seen
from dsv4doctor.probe_protocol import HOPS, Observation
from dsv4doctor.tracing.change import Change
from dsv4doctor.tracing.odds import Odds

# Changes in the JSON document; the run directory has them all.
_CHANGES_TOLD = 50
# Loads are told apart by this many pages.
_LOAD_BIN = 32


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

"""The contract's `bench` object, from a bench's counts: SGLang's keys for every level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsv4doctor.codec import to_builtins
from dsv4doctor.flows.bench_book import BenchBook, BlockFacts, LevelCounts
from dsv4doctor.flows.tally import commonest
from dsv4doctor.stats.blocks import mean_interval
from dsv4doctor.throughput.metrics import metrics_of

# Block values that get an interval, and that a baseline is compared by: name, whether more is
# better, and whether it has to be known for a whole run to be called `same`.
COMPARED: tuple[tuple[str, bool, bool], ...] = (
    ("output_throughput", True, True),
    ("median_request_tokens_per_s", True, True),
    ("median_ttft_ms", False, True),
    ("median_e2e_latency_ms", False, True),
    ("median_itl_ms", False, False),
    ("p99_itl_ms", False, False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchFacts:
    """What is known of a bench beside its counts. `concurrencies` and `num_prompts` are those of
    its levels, in order; `blocks` how many of each were asked for."""

    run_dir: str
    target: Mapping[str, Any]
    workload: Mapping[str, Any]
    concurrencies: tuple[int | None, ...]
    num_prompts: tuple[int, ...]
    blocks: int
    warmup_requests: int = 0
    wedge: Mapping[str, Any] | None = None
    interrupted: bool = False
    unreachable: str | None = None
    segments: int = 1
    torn_lines: int = 0
    notes: tuple[str, ...] = field(default_factory=tuple)


def summarise_bench(
    book: BenchBook, whole: Sequence[BlockFacts], facts: BenchFacts
) -> dict[str, Any]:
    """The `bench` object as JSON types, without a comparison."""
    lags = [block.client_lag_ms for block in whole]
    levels = [
        _level(book, [block for block in whole if block.level == level], level, facts)
        for level in range(len(facts.concurrencies))
    ]
    return {
        "run_dir": facts.run_dir,
        "target": dict(facts.target),
        "workload": dict(facts.workload),
        "levels": levels,
        "responses": book.responses,
        "corrupted_responses": _corrupted(book.levels.values()),
        "by_label": dict(commonest(book.tally.by_label)),
        "errors": book.errors,
        "by_failure": dict(commonest(book.tally.by_failure)),
        "client_lag_ms": worst_lag(lags),
        "timings_valid": all(block.timings_valid for block in whole) if whole else None,
        "wedge": facts.wedge,
        "baseline": None,
        "comparison": None,
        "warmup_requests": facts.warmup_requests,
        "interrupted": facts.interrupted,
        "segments": facts.segments,
        "torn_lines": facts.torn_lines,
        "notes": [*facts.notes, *([facts.unreachable] if facts.unreachable else [])],
    }


def _level(
    book: BenchBook, whole: Sequence[BlockFacts], level: int, facts: BenchFacts
) -> dict[str, Any]:
    counts = book.levels.get(level, LevelCounts())
    samples = [book.samples(block) for block in whole]
    blocks = [
        {
            "block": block.block,
            **metrics_of([each]),
            "errors": sum(sample.failure is not None for sample in each),
            "corrupted_responses": sum(bool(sample.corrupted) for sample in each),
            "client_lag_ms": dict(block.client_lag_ms),
            "timings_valid": block.timings_valid,
        }
        for block, each in zip(whole, samples, strict=True)
    ]
    return {
        "max_concurrency": facts.concurrencies[level],
        "request_rate": facts.workload.get("request_rate"),
        "num_prompts": facts.num_prompts[level],
        "blocks_asked": facts.blocks,
        **metrics_of(samples),
        "responses": counts.responses,
        "corrupted_responses": _corrupted([counts]),
        "by_label": dict(commonest(counts.by_label)),
        "errors": counts.errors,
        "by_failure": dict(commonest(counts.by_failure)),
        "client_lag_ms": worst_lag(block.client_lag_ms for block in whole),
        "timings_valid": all(block.timings_valid for block in whole) if whole else None,
        "intervals": {name: _interval(blocks, name) for name, _, _ in COMPARED},
        "blocks": blocks,
        "comparison": None,
    }


def _interval(blocks: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any] | None:
    found = mean_interval(block_values(blocks, name))
    return None if found is None else to_builtins(found)


def block_values(blocks: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    """One metric of every block that has it."""
    values = (block.get(name) for block in blocks)
    return [float(value) for value in values if isinstance(value, int | float)]


def _corrupted(counts: Iterable[LevelCounts]) -> int | None:
    """Corrupted responses; None where there were responses and none of them was judged."""
    held = list(counts)
    unjudged = sum(each.unjudged for each in held)
    judged = sum(each.responses for each in held) - unjudged
    return None if unjudged and not judged else sum(each.corrupted for each in held)


def worst_lag(lags: Iterable[Mapping[str, Any]]) -> dict[str, float | None] | None:
    """The worst block's lag at each quantile, and the heartbeats of all; None without blocks."""
    held = [lag for lag in lags if lag.get("n")]
    if not held:
        return None
    worst: dict[str, float | None] = {
        name: max((lag[name] for lag in held if lag.get(name) is not None), default=None)
        for name in ("p50", "p99", "max")
    }
    return {**worst, "n": sum(lag["n"] for lag in held)}

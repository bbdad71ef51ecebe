"""A bench against an earlier one: refused where they measured different things, else by blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4doctor.codec import to_builtins
from dsv4doctor.errors import UsageError
from dsv4doctor.flows.bench_summary import COMPARED, block_values
from dsv4doctor.report.members import mapping, sequence
from dsv4doctor.stats.blocks import LEVEL, Change, Trend, compare_blocks, undecided

# Differences in what was sent that change speed; the rest (the seed, say) only changes words.
_MUST_AGREE = (
    "dataset", "input_len", "output_len", "length_jitter", "ignore_eos", "salted", "stream",
    "request_rate", "arrival", "ramp_up_s",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """An earlier bench: where it lies and its `bench` object."""

    run_dir: str
    summary: Mapping[str, Any]


def check_comparable(
    baseline: Baseline, workload: Mapping[str, Any], concurrencies: Sequence[int | None]
) -> None:
    """Refuse a baseline that measured something else, before anything is sent.

    Raises:
        UsageError: naming what differs.
    """
    before = mapping(baseline.summary.get("workload"))
    for name in _MUST_AGREE:
        if before.get(name) != workload.get(name):
            raise UsageError(
                f"{baseline.run_dir} was measured with {name} {before.get(name)}, "
                f"not {workload.get(name)}",
                "give the same flags as the baseline had (run.json holds them), or a new baseline",
            )
    if not set(_levels(baseline.summary)) & set(concurrencies):
        had = ", ".join(str(level) for level in _levels(baseline.summary)) or "none"
        raise UsageError(
            f"{baseline.run_dir} has none of the concurrencies asked for (it has {had})",
            "give one that it has with --max-concurrency",
        )


def compare(summary: dict[str, Any], baseline: Baseline, *, margin: float) -> None:
    """Put a `comparison` into every level that both have, and one of the whole.

    All intervals hold together at 95 %: each is made at a level that their number corrects.
    """
    before = _levels(baseline.summary)
    shared = [level for level in summary["levels"] if level["max_concurrency"] in before]
    confidence = 1 - (1 - LEVEL) / max(1, len(shared) * len(COMPARED))
    trends: list[tuple[Trend, bool]] = []
    for level in shared:
        changes = {}
        for name, more_is_better, decides in COMPARED:
            change = _change(
                before[level["max_concurrency"]],
                level,
                name,
                more_is_better=more_is_better,
                limits=(margin, confidence),
            )
            trends.append((change.verdict, decides))
            changes[name] = to_builtins(change)
        level["comparison"] = changes
    summary["baseline"] = {
        "run_dir": baseline.run_dir,
        "target": baseline.summary.get("target"),
        "margin": margin,
        "level": LEVEL,
    }
    summary["comparison"] = overall(trends).value


def overall(trends: Sequence[tuple[Trend, bool]]) -> Trend:
    """One word for all comparisons, each with whether it has to be known: worse if any is, then
    undecided if one that has to be known is, then better if any is."""
    if any(trend is Trend.WORSE for trend, _ in trends):
        return Trend.WORSE
    if not trends or any(trend is Trend.UNDECIDED for trend, decides in trends if decides):
        return Trend.UNDECIDED
    better = any(trend is Trend.BETTER for trend, _ in trends)
    return Trend.BETTER if better else Trend.SAME


def _change(
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    name: str,
    *,
    more_is_better: bool,
    limits: tuple[float, float],
) -> Change:
    margin, confidence = limits
    old = block_values(_blocks(before), name)
    new = block_values(_blocks(now), name)
    late = [side for side, level in (("the baseline's", before), ("this run's", now))
            if level.get("timings_valid") is False]  # fmt: skip
    if late:
        reason = f"{' and '.join(late)} client was late itself"
        return undecided(old, new, reason=reason, level=confidence)
    return compare_blocks(old, new, more_is_better=more_is_better, margin=margin, level=confidence)


def _levels(summary: Mapping[str, Any]) -> dict[int | None, Mapping[str, Any]]:
    return {
        mapping(level).get("max_concurrency"): mapping(level)
        for level in sequence(summary.get("levels"))
    }


def _blocks(level: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [mapping(block) for block in sequence(level.get("blocks"))]

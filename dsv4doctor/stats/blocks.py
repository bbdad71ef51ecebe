"""Repeated blocks: the interval of a mean, and whether two sets of blocks differ.

Requests of one block share their moment, so the block is the unit: each gives one number, and the
spread between blocks is what an interval is made of. Two runs are compared by the ratio of their
geometric means: Welch's t interval on logarithms, which asks neither for equal spread nor for equal
numbers of blocks. What blocks cannot show is how one launch of a server differs from the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

LEVEL = 0.95
# Past so many blocks an answer is not worth waiting for.
MOST_BLOCKS = 1000


class Trend(StrEnum):
    """A change, said as a user would; `same` is proved, `undecided` is not knowing."""

    BETTER = "better"
    SAME = "same"
    WORSE = "worse"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanInterval:
    """The mean of `n` blocks; no bounds where one block cannot show a spread."""

    mean: float
    low: float | None
    high: float | None
    level: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A metric now against before, as a relative change (0.03 is 3 % more) with its interval.

    `blocks_needed` is how many blocks a run would have decided it, None when it is decided or no
    sane number would. Without bounds there was nothing to decide from, for `reason`.
    """

    verdict: Trend
    before: float | None
    now: float | None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = LEVEL
    blocks_needed: int | None = None
    reason: str = ""


def mean_interval(values: Sequence[float], level: float = LEVEL) -> MeanInterval | None:
    """Student's interval of the mean of block values; None over no values."""
    n = len(values)
    if n == 0:
        return None
    mean, variance = _moments(values)
    if n == 1:
        return MeanInterval(mean=mean, low=None, high=None, level=level, n=1)
    half = _t(level, n - 1) * math.sqrt(variance / n)
    return MeanInterval(mean=mean, low=mean - half, high=mean + half, level=level, n=n)


def compare_blocks(
    before: Sequence[float],
    now: Sequence[float],
    *,
    more_is_better: bool,
    margin: float,
    level: float = LEVEL,
) -> Change:
    """How block values changed: `same` when the whole interval lies within ± `margin`, else better
    or worse when it lies on one side of no change, else undecided."""
    reason = ""
    if min(len(before), len(now)) < 2:
        reason = "one block shows no spread: run at least two in each run"
    elif min(*before, *now) <= 0:
        reason = "a block's value is not above 0"
    if reason:
        return undecided(before, now, reason=reason, level=level)
    old = _moments([math.log(value) for value in before])
    new = _moments([math.log(value) for value in now])
    difference = new[0] - old[0]
    half = _welch_half(old[1], new[1], len(before), len(now), level)
    low, high = math.expm1(difference - half), math.expm1(difference + half)
    trend = _trend(low, high, more_is_better=more_is_better, margin=margin)
    needed = None
    if trend is Trend.UNDECIDED:
        needed = _blocks_needed(difference, old[1], new[1], margin=margin, level=level)
    return Change(
        verdict=trend,
        before=_mean(before),
        now=_mean(now),
        change=math.expm1(difference),
        low=low,
        high=high,
        level=level,
        blocks_needed=needed,
    )


def undecided(
    before: Sequence[float], now: Sequence[float], *, reason: str, level: float = LEVEL
) -> Change:
    """Block values that cannot be compared, for `reason`."""
    return Change(
        verdict=Trend.UNDECIDED, before=_mean(before), now=_mean(now), level=level, reason=reason
    )


def _trend(low: float, high: float, *, more_is_better: bool, margin: float) -> Trend:
    if -margin <= low and high <= margin:
        return Trend.SAME
    if low > 0 or high < 0:
        return Trend.BETTER if (low > 0) == more_is_better else Trend.WORSE
    return Trend.UNDECIDED


def _blocks_needed(
    difference: float, old: float, new: float, *, margin: float, level: float
) -> int | None:
    """Blocks in each run at which these means and spreads would decide."""
    shown = abs(math.expm1(difference))
    room = max(abs(difference), math.log1p(margin) - abs(difference) if shown < margin else 0.0)
    for blocks in range(2, MOST_BLOCKS + 1):
        if _welch_half(old, new, blocks, blocks, level) < room:
            return blocks
    return None


def _welch_half(old: float, new: float, n_old: int, n_new: int, level: float) -> float:
    """Half the width of Welch's interval; 0 where no block differs from another."""
    a, b = old / n_old, new / n_new
    if a + b == 0:
        return 0.0
    degrees = (a + b) ** 2 / (a**2 / (n_old - 1) + b**2 / (n_new - 1))
    return _t(level, degrees) * math.sqrt(a + b)


def _t(level: float, degrees: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 1.0 - (1.0 - level) / 2.0))


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Mean and unbiased variance (0 for one value)."""
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean, squares / (len(values) - 1) if len(values) > 1 else 0.0

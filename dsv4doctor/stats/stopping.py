"""When the sequential test stops, by seeded simulation of its betting walk."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from dsv4doctor.errors import UsageError
from dsv4doctor.stats.sequential import log_wealth

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Sessions an arm past which a plan is no plan: a day of 100 sessions a second.
LARGEST_PLAN = 10_000_000

# Simulated runs of the sequential test: the mean is known to about 1 %, the 95th percentile to 2 %.
RUNS = 4_000

# Long walks are looked at in this many strides of their expected length: they end late by one.
STRIDES = 400


@lru_cache(maxsize=64)
def stopping_pairs(p0: float, p1: float, alpha: float, seed: int) -> NDArray[np.int64]:
    """Pairs after which each of many simulated runs of the sequential test stops.

    Only discordant pairs move the wealth, so only they are walked; the concordant ones between them
    are one negative binomial draw a run.

    Raises:
        UsageError: if the rates are so close that a run would take more than `LARGEST_PLAN` pairs.
    """
    import numpy as np

    discordant = p0 * (1.0 - p1) + p1 * (1.0 - p0)
    share = p0 * (1.0 - p1) / discordant
    growth = share * math.log(2.0 * share) if share > 0 else 0.0
    growth += (1.0 - share) * math.log(2.0 * (1.0 - share)) if share < 1 else 0.0
    expected = (math.log(1.0 / alpha) + 4.0) / growth
    if expected / discordant > LARGEST_PLAN:
        raise UsageError(
            f"{p0:g} and {p1:g} are too close for a sequential plan",
            "ask for a larger difference",
        )
    rng = np.random.default_rng(seed)
    steps = _stopping_steps(share, alpha, max(1, int(expected / STRIDES)), rng)
    return steps + rng.negative_binomial(steps, discordant)


def _stopping_steps(
    share: float, alpha: float, stride: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Discordant pairs until the wealth reaches 1 / alpha, `share` of them on the first side."""
    import numpy as np

    stopped = np.zeros(RUNS, dtype=np.int64)
    wins = np.zeros(RUNS, dtype=np.int64)
    walking, done, strides = np.arange(RUNS), 0, 64
    while len(walking):
        ups = rng.binomial(stride, share, (len(walking), strides))
        path = wins[walking, None] + np.cumsum(ups, axis=1)
        total = done + stride * np.arange(1, strides + 1)
        need = _wins_needed(total, alpha)
        crossed = (path >= need) | (total - path >= need)
        hit = crossed.any(axis=1)
        stopped[walking[hit]] = total[crossed[hit].argmax(axis=1)]
        wins[walking] = path[:, -1]
        walking, done = walking[~hit], done + stride * strides
        strides = min(1_024, strides * 2)
    return stopped


def _wins_needed(total: NDArray[np.int64], alpha: float) -> NDArray[np.int64]:
    """The least wins of one side, of `total` discordant pairs, at which the wealth is 1 / alpha."""
    import numpy as np

    low, high = total // 2, total + 1  # the wealth grows in the wins above a half
    while bool(np.any(high - low > 1)):
        middle = (low + high) // 2
        enough = log_wealth(middle, total - middle) >= math.log(1.0 / alpha)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high

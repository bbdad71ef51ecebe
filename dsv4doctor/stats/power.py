"""How many sessions an arm needs, and what so many sessions can see.

For the fixed-size test by exact calculation: the probability, under the two rates, of every table
that the test rejects. For the sequential test by seeded simulation of its betting walk.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dsv4doctor.errors import UsageError
from dsv4doctor.stats.boschloo import binomial_pmf, log_choose, rejection_boundary
from dsv4doctor.stats.compare import LARGEST_TABLE, difference
from dsv4doctor.stats.stopping import LARGEST_PLAN, stopping_pairs

DEFAULT_ALPHA = 0.05
DEFAULT_POWER = 0.8

# What so many sessions an arm can see still takes less than a minute to compute.
LARGEST_SEEN = 50_000
DETECTABLE_STEPS = 12

# Counts further than this from their mean have probabilities below 1e-14.
STANDARD_DEVIATIONS = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsPerArm:
    """Sessions an arm. `fixed`: looked at once, reaches the power. Sequential: the mean number at
    which the test stops, the 95th percentile, and the number by which it has stopped with the
    power asked for."""

    fixed: int
    sequential_mean: int
    sequential_p95: int
    sequential_at_power: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectable:
    """The nearest rates on either side of `baseline` that `sessions` an arm tell from it with the
    power asked for; None where not even 0, or 1, is far enough."""

    sessions: int
    baseline: float
    lower: float | None
    higher: float | None


def plan(
    p0: float,
    p1: float,
    alpha: float = DEFAULT_ALPHA,
    power: float = DEFAULT_POWER,
    seed: int = 0,
) -> SessionsPerArm:
    """The sessions that each arm needs to tell `p0` from `p1`.

    Raises:
        UsageError: on a value outside its range, on equal rates, or where they are so close that
            more than `LARGEST_PLAN` sessions would be needed.
    """
    _check(p0, p1, alpha, power)
    import numpy as np

    fixed = sessions_fixed(p0, p1, alpha, power)
    stops = stopping_pairs(p0, p1, alpha, seed)
    return SessionsPerArm(
        fixed=fixed,
        sequential_mean=math.ceil(float(np.mean(stops))),
        sequential_p95=int(np.quantile(stops, 0.95, method="higher")),
        sequential_at_power=int(np.quantile(stops, power, method="higher")),
    )


def sessions_fixed(p0: float, p1: float, alpha: float, power: float) -> int:
    """The least size of each arm at which the exact fixed-size test reaches `power`.

    Raises:
        UsageError: if it is beyond `LARGEST_PLAN`.
    """
    guess = _normal_sessions(p0, p1, alpha, power)
    if guess > LARGEST_PLAN:
        raise UsageError(
            f"{p0:g} and {p1:g} are too close: about {guess:.0f} sessions an arm",
            "ask for a larger difference, or for less power",
        )

    def enough(n: int) -> bool:
        return fixed_power(n, p0, p1, alpha) >= power

    # Boschloo's test sees more than Fisher's, which takes over above the largest table.
    if guess < 1.5 * LARGEST_TABLE and enough(LARGEST_TABLE):
        return _least(enough, min(int(guess), LARGEST_TABLE), LARGEST_TABLE)
    return _least(enough, max(int(guess), LARGEST_TABLE + 1), None)


def fixed_power(n: int, p0: float, p1: float, alpha: float) -> float:
    """The probability that the exact test of `stats.compare` on `n` sessions an arm rejects."""
    if n > LARGEST_TABLE:
        return _fisher_power(n, p0, p1, alpha)
    import numpy as np

    critical = rejection_boundary(n, alpha)
    chances = binomial_pmf(n, np.array([p0, p1]))
    at_least = np.zeros((2, n + 2))
    at_least[:, :-1] = np.cumsum(chances[:, ::-1], axis=1)[:, ::-1]
    first_higher = float(np.sum(chances[1] * at_least[0, critical]))
    return min(1.0, first_higher + float(np.sum(chances[0] * at_least[1, critical])))


def detectable(
    n: int, baseline: float, alpha: float = DEFAULT_ALPHA, power: float = DEFAULT_POWER
) -> Detectable:
    """What `n` sessions an arm can see: the nearest rates that differ from `baseline` visibly.

    Raises:
        UsageError: if `n` or a rate is out of range.
    """
    _check(baseline, None, alpha, power)
    if not 1 <= n <= LARGEST_SEEN:
        raise UsageError(
            f"what {n} sessions an arm can see is not computed", f"give 1 to {LARGEST_SEEN:,}"
        )

    lower, higher = (_nearest(n, baseline, end, alpha, power) for end in (0.0, 1.0))
    return Detectable(sessions=n, baseline=baseline, lower=lower, higher=higher)


def _nearest(n: int, baseline: float, end: float, alpha: float, power: float) -> float | None:
    """The rate nearest to `baseline`, on the way to `end`, that `n` sessions tell from it."""

    def enough(rate: float) -> bool:
        return fixed_power(n, baseline, rate, alpha) >= power

    def half(near: float, far: float, visible: Callable[[float], bool]) -> tuple[float, float]:
        middle = (near + far) / 2.0
        return (near, middle) if visible(middle) else (middle, far)

    if baseline == end or not enough(end):
        return None
    # Power grows with the distance; the normal approximation says where the search may begin.
    near, far = baseline, end
    for _ in range(40):
        near, far = half(
            near, far, lambda rate: _normal_sessions(baseline, rate, alpha, power) <= n
        )
    guess, near, far = far, baseline, end
    for stretch in (0.9, 1.1):
        rate = min(1.0, max(0.0, baseline + stretch * (guess - baseline)))
        if enough(rate):
            far = rate
            break
        near = rate
    for _ in range(DETECTABLE_STEPS):
        near, far = half(near, far, enough)
    return far


def sessions_to_equate(
    rate: float, margin: float, alpha: float = DEFAULT_ALPHA, power: float = DEFAULT_POWER
) -> int:
    """Sessions an arm that show two arms of one `rate` equal to within `margin`, with `power`."""
    from scipy.special import ndtri

    z = float(ndtri(1.0 - alpha / 2.0) + ndtri((1.0 + power) / 2.0))
    by_chance = math.ceil(2.0 * rate * (1.0 - rate) * (z / margin) ** 2)

    def enough(n: int) -> bool:
        return difference(rate * n, n, rate * n, n, level=1.0 - alpha).high <= margin

    return max(by_chance, _least(enough, max(1, by_chance), None))


def _fisher_power(n: int, p0: float, p1: float, alpha: float) -> float:
    """The power of Fisher's two one-sided tests at alpha / 2, over all totals that can occur."""
    import numpy as np

    ways, ways_both = log_choose(n), log_choose(2 * n)
    chances = binomial_pmf(n, np.array([p0, p1]))
    centre, spread = n * (p0 + p1), math.sqrt(n * (p0 * (1 - p0) + p1 * (1 - p1)))
    half = STANDARD_DEVIATIONS * (spread + 1.0)
    first, last = max(0, int(centre - half)), min(2 * n, math.ceil(centre + half))
    power = 0.0
    for total in range(first, last + 1):
        x = np.arange(
            max(0, total - n, int(n * min(p0, p1) - half)),
            min(n, total, math.ceil(n * max(p0, p1) + half)) + 1,
        )
        tail = np.cumsum(np.exp(ways[x] + ways[total - x] - ways_both[total])[::-1])[::-1]
        significant = x[tail <= alpha / 2.0]
        power += float(np.sum(chances[0][significant] * chances[1][total - significant]))
        power += float(np.sum(chances[1][significant] * chances[0][total - significant]))
    return min(1.0, power)


def _normal_sessions(p0: float, p1: float, alpha: float, power: float) -> float:
    """Where to begin the search: the textbook's sample size by the normal approximation."""
    from scipy.special import ndtri

    middle = (p0 + p1) / 2.0
    null = float(ndtri(1.0 - alpha / 2.0)) * math.sqrt(2.0 * middle * (1.0 - middle))
    other = float(ndtri(power)) * math.sqrt(p0 * (1.0 - p0) + p1 * (1.0 - p1))
    return max(1.0, ((null + other) / (p0 - p1)) ** 2)


def _least(enough: Callable[[int], bool], guess: int, limit: int | None) -> int:
    """The least n near `guess` that is enough; power saws, so neighbours below are tried too."""
    low, high, step = max(1, guess), max(1, guess), max(1, guess // 8)
    while low > 1 and enough(low):
        low = max(1, low - step)
    while not enough(high):
        low, high = high, high + step if limit is None else min(limit, high + step)
        step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    while low >= 1 and enough(low):
        low, high = low - 1, low
    return high


def _check(p0: float, p1: float | None, alpha: float, power: float) -> None:
    for name, value in (("--p0", p0), ("--p1", p1)):
        if value is not None and not 0.0 <= value <= 1.0:
            raise UsageError(f"{name} {value:g} is no rate", "give a share between 0 and 1")
    for name, value in (("--alpha", alpha), ("--power", power)):
        if not 0.0 < value < 1.0:
            raise UsageError(f"{name} {value:g} is out of range", "give a share between 0 and 1")
    if p0 == p1:
        raise UsageError(
            f"--p0 and --p1 are both {p0:g}: no number of sessions tells equals apart",
            "give two different rates",
        )

"""Two arms: the difference of their rates with its interval, an exact test, and many tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dsv4doctor.stats.boschloo import boschloo_p_value
from dsv4doctor.stats.rates import LEVEL
from dsv4doctor.verdict import Contrast

# Boschloo's test tabulates n1 x n2 tables; past this many sessions an arm they are too large,
# and Fisher's test (exact too, a little more cautious) takes its place.
LARGEST_TABLE = 1_000


def difference(k1: float, n1: float, k2: float, n2: float, level: float = LEVEL) -> Contrast:
    """k1 / n1 - k2 / n2 with Newcombe's hybrid score interval; counts may be fractional.

    Never of zero width and never outside -1 to 1, whatever cells are zero. Without sessions in an
    arm there is no estimate and the interval is everything. Source: R. G. Newcombe, Statistics in
    Medicine 17 (1998), method 10; statsmodels' `newcomb` is the same.
    """
    if n1 <= 0 or n2 <= 0:
        return Contrast(estimate=None, low=-1.0, high=1.0, method="newcombe", level=level)
    p1, p2 = k1 / n1, k2 / n2
    low1, high1 = wilson(k1, n1, level)
    low2, high2 = wilson(k2, n2, level)
    estimate = p1 - p2
    low = estimate - math.hypot(p1 - low1, high2 - p2)
    high = estimate + math.hypot(high1 - p1, p2 - low2)
    return Contrast(estimate=estimate, low=low, high=high, method="newcombe", level=level)


def wilson(k: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval of a share: part of Newcombe's; alone it dips below its level."""
    from scipy.special import ndtri

    z = float(ndtri(1.0 - (1.0 - level) / 2.0))
    share = k / n
    centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n)
    half = z / (1.0 + z * z / n) * math.sqrt(share * (1.0 - share) / n + (z / (2.0 * n)) ** 2)
    return min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half))


def exact_test(k1: int, n1: int, k2: int, n2: int) -> tuple[float, str]:
    """Two-sided exact p-value of equal rates, and the name of the test. For a run that is looked at
    once; while a run goes on only `stats.sequential` may be looked at."""
    if not n1 or not n2:
        return 1.0, "none: an arm has no sessions"
    if max(n1, n2) <= LARGEST_TABLE:
        return boschloo_p_value(k1, n1, k2, n2), "boschloo"
    from scipy.stats import fisher_exact

    # Groups are columns, as scipy wants them.
    return float(fisher_exact([[k1, k2], [n1 - k1, n2 - k2]]).pvalue), "fisher"


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given: the chance of any false alarm stays at alpha.

    Source: S. Holm, Scandinavian Journal of Statistics 6 (1979).
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [1.0] * len(p_values)
    greatest = 0.0
    for rank, position in enumerate(order):
        greatest = max(greatest, min(1.0, (len(p_values) - rank) * p_values[position]))
        adjusted[position] = greatest
    return tuple(adjusted)

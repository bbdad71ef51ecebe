"""One rate with its interval: sessions exactly, responses with their sessions as clusters.

A session's responses share a prompt, a cache and a fate, so they are not independent draws; a
binomial over responses always promises too much. Intervals are two-sided and exact (Clopper and
Pearson 1934); bounds of clean runs are one-sided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dsv4doctor.rate import Rate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEVEL = 0.95

# Below this many corrupted (or clean) sessions the variance between sessions is itself a guess:
# with 5, simulated coverage falls to 0.92; with 10, it never fell below 0.945 (4,000 runs each,
# 10 to 400 sessions of 6, correlation 0 to 1 within a session).
FEW_SESSIONS = 10

# What a clean run is told it would have needed: one in a hundred, one in a thousand.
PROVABLE_RATES = (0.01, 0.001)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanBound:
    """What `n` clean sessions prove: the rate is below `upper` at `level`; `to_prove` pairs rates
    with the number of clean sessions that would prove them."""

    n: int
    upper: float
    level: float
    to_prove: tuple[tuple[float, int], ...]


def clopper_pearson(k: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """The exact two-sided interval of a binomial share; `k` and `n` may be effective (fractional).

    Nothing observed (`n` = 0) proves nothing: (0, 1).
    """
    if n <= 0:
        return 0.0, 1.0
    from scipy.special import betaincinv

    tail = (1.0 - level) / 2.0
    low = float(betaincinv(k, n - k + 1.0, tail)) if k > 0 else 0.0
    high = float(betaincinv(k + 1.0, n - k, 1.0 - tail)) if k < n else 1.0
    return low, high


def session_rate(k: int, n: int, level: float = LEVEL) -> Rate:
    """`k` corrupted of `n` sessions, with the exact interval.

    Raises:
        ValueError: unless 0 <= k <= n.
    """
    _check_count(k, n)
    low, high = clopper_pearson(k, n, level)
    estimate = k / n if n else None
    return Rate(
        k=k, n=n, estimate=estimate, low=low, high=high, method="clopper-pearson", level=level
    )


def response_rate(per_session: Sequence[tuple[int, int]], level: float = LEVEL) -> Rate:
    """Corrupted responses of all responses, from (corrupted, responses) of each session.

    The interval is Clopper and Pearson's at the effective sample size: responses over the design
    effect of the ratio estimator, with the t correction for the number of sessions (Korn and
    Graubard, Survey Methodology 24(2), 1998). The design effect is held at 1 or more. When fewer
    than `FEW_SESSIONS` sessions are corrupted, or clean, it cannot be estimated, and every session
    counts as one observation: the worst that clustering can do. `method` says which was used.
    Sessions without a response are left out.

    Raises:
        ValueError: where a count is negative or corrupted exceeds responses.
    """
    import numpy as np

    table = np.asarray(per_session, dtype=np.int64).reshape(-1, 2)
    if bool(np.any(table < 0)) or bool(np.any(table[:, 0] > table[:, 1])):
        raise ValueError("each session needs 0 <= corrupted <= responses")
    table = table[table[:, 1] > 0]
    corrupted, responses = table[:, 0], table[:, 1]
    k, n = int(corrupted.sum()), int(responses.sum())
    if n == 0:
        return Rate(
            k=0, n=0, estimate=None, low=0.0, high=1.0, method="clopper-pearson", level=level
        )
    effective, method = _effective_size(corrupted, responses, level)
    low, high = clopper_pearson(k / n * effective, effective, level)
    return Rate(k=k, n=n, estimate=k / n, low=low, high=high, method=method, level=level)


def _effective_size(
    corrupted: NDArray[np.int64], responses: NDArray[np.int64], level: float
) -> tuple[float, str]:
    """How many independent responses equal these clustered ones, and the method used."""
    import numpy as np
    from scipy.special import ndtri, stdtrit

    n, sessions = int(responses.sum()), len(responses)
    alone = n * n / float(np.sum(responses.astype(np.float64) ** 2))  # Kish: correlation 1
    few = min(int(np.sum(corrupted > 0)), int(np.sum(corrupted < responses))) < FEW_SESSIONS
    if few:
        return alone, "clopper-pearson, each session one observation"
    share = int(corrupted.sum()) / n
    residual = corrupted - share * responses
    variance = sessions / (sessions - 1) * float(np.sum(residual**2)) / n**2
    independent = n / max(1.0, variance / (share * (1.0 - share) / n))
    tail = 1.0 - (1.0 - level) / 2.0
    correction = float(ndtri(tail) / stdtrit(sessions - 1, tail)) ** 2
    # The correction alone cannot make a session count for less than one observation.
    effective = max(min(alone, independent), independent * correction)
    return effective, "clopper-pearson, effective n from the design effect"


def upper_bound_clean(n: int, level: float = LEVEL) -> float:
    """The rate below which the truth lies, at `level`, when 0 of `n` were corrupted (one-sided)."""
    _check_count(0, n)
    return 1.0 - (1.0 - level) ** (1.0 / n) if n else 1.0


def sessions_to_prove(rate: float, level: float = LEVEL) -> int:
    """Clean sessions, in a row, that prove a rate below `rate` at `level`: 299 for 1 %.

    Raises:
        ValueError: unless 0 < rate < 1.
    """
    if not 0.0 < rate < 1.0:
        raise ValueError(f"no number of sessions proves a rate below {rate}")
    return math.ceil(math.log1p(-level) / math.log1p(-rate))


def clean_bound(n: int, level: float = LEVEL) -> CleanBound:
    """What a run of `n` clean sessions proves, and what would prove `PROVABLE_RATES`."""
    to_prove = tuple((rate, sessions_to_prove(rate, level)) for rate in PROVABLE_RATES)
    return CleanBound(n=n, upper=upper_bound_clean(n, level), level=level, to_prove=to_prove)


def _check_count(k: int, n: int) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no count")

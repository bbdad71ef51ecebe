"""Evidence against a claim about one share: "at most a", "at least b" of n observations.

The e-value is the mean likelihood over all shares beyond the limit, over the greatest likelihood
that any share within it gives. Under the claim its mean is at most 1, so it reaches 1/alpha with
probability alpha at most. It grows with the count on its side, so it may also be taken while some
of the n are still out, as long as those count for the claim: the end can only say more.
"""

from __future__ import annotations

import math

LARGEST_LOG_E = 690.0


def e_above(k: float, n: float, limit: float) -> float:
    """Evidence that more than `limit` of what `k` of `n` came from is so; 1.0 over nothing.

    Raises:
        ValueError: unless 0 <= k <= n and 0 < limit < 1.
    """
    _check(k, n, limit)
    if not n:
        return 1.0
    from scipy.special import betainc, betaln

    a, b = k + 1.0, n - k + 1.0
    beyond = float(1.0 - betainc(a, b, limit))
    if beyond <= 0.0:
        return 0.0
    mean = float(betaln(a, b)) + math.log(beyond) - math.log(1.0 - limit)
    return math.exp(min(LARGEST_LOG_E, mean - _log_likelihood(k, n, min(limit, k / n))))


def e_below(k: float, n: float, limit: float) -> float:
    """Evidence that less than `limit` of what `k` of `n` came from is so."""
    return e_above(n - k, n, 1.0 - limit)


def _log_likelihood(k: float, n: float, share: float) -> float:
    """log of share^k (1 - share)^(n - k), with 0 log 0 = 0."""
    log = k * math.log(share) if k else 0.0
    return log + ((n - k) * math.log1p(-share) if n > k else 0.0)


def _check(k: float, n: float, limit: float) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no count")
    if not 0.0 < limit < 1.0:
        raise ValueError(f"a limit of {limit} leaves nothing to tell")

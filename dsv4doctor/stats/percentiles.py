"""Summaries of samples; no value over no samples."""

from __future__ import annotations

from collections.abc import Iterable

from dsv4doctor.rate import Quantiles


def quantiles(samples: Iterable[float]) -> Quantiles:
    """p50, p90 and p99 of the samples, by numpy's default (linear) method, as the peers use.

    Not-a-number samples are not samples: they are left out of the values and of `n`.
    """
    import numpy as np

    values = np.fromiter(samples, dtype=np.float64)
    values = values[~np.isnan(values)]
    if not len(values):
        return Quantiles(p50=None, p90=None, p99=None, n=0)
    p50, p90, p99 = (float(value) for value in np.percentile(values, (50, 90, 99)))
    return Quantiles(p50=p50, p90=p90, p99=p99, n=len(values))

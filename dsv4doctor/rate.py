"""A share with its uncertainty, as every table and JSON document shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """`k` of `n`, with the interval that `method` gives at `level`; over nothing, estimate None."""

    k: int
    n: int
    estimate: float | None
    low: float
    high: float
    method: str
    level: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Percentiles of `n` samples (linear method, as numpy's default); None over no samples."""

    p50: float | None
    p90: float | None
    p99: float | None
    n: int

"""When it began: corruption over time, in bounded memory, and the place where the rate changes
most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

# Twice the log-likelihood gained by two rates instead of one from which a change is told; the
# place is chosen, so this stands well above the 3.84 of a place given beforehand.
MIN_LIKELIHOOD_RATIO = 12.0
# A first bucket of a minute; doubled as long as there would be more buckets than this.
_FIRST_BUCKET_S = 60
_MAX_BUCKETS = 2000
_MILLISECONDS = 1e11
_NANOSECONDS = 1e17


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Responses that began in `[start, start + seconds)`; `start` is UTC in ISO form."""

    start: str
    responses: int
    corrupted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The place where the rate of corruption changes most, with the counts on both sides."""

    time: str
    responses_before: int
    corrupted_before: int
    responses_after: int
    corrupted_after: int
    likelihood_ratio: float


def unix_of(value: Any) -> float | None:
    """Seconds since 1970 of a number (s, ms, µs or ns) or an ISO string; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            seconds = float(value)
        except OverflowError:  # an integer of 310 digits or more
            return None
        if not math.isfinite(seconds) or seconds <= 0:
            return None
        while seconds >= _MILLISECONDS:
            seconds /= 1e9 if seconds >= _NANOSECONDS else 1e3
        return seconds
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        try:
            return moment.timestamp()
        except (OverflowError, ValueError):
            return None
    return None


def iso(seconds: float) -> str:
    """The moment in UTC, to the second."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "-"


def hour_of(value: Any) -> str | None:
    """The hour that a time falls in, `2026-11-29T14Z`; None if it is no time."""
    seconds = unix_of(value)
    return None if seconds is None else f"{iso(seconds)[:13]}Z"


@dataclass(slots=True)
class Trend:
    """Counts by time; memory stays bounded because buckets double when they grow too many."""

    seconds: int = _FIRST_BUCKET_S
    first_corrupted: float | None = None
    last_corrupted: float | None = None
    _counts: dict[int, list[int]] = field(default_factory=dict)

    def add(self, value: Any, *, corrupted: bool) -> None:
        """Count one response; one without a time is left out."""
        moment = unix_of(value)
        if moment is None:
            return
        counts = self._counts.setdefault(int(moment // self.seconds), [0, 0])
        counts[0] += 1
        counts[1] += corrupted
        if corrupted:
            self.first_corrupted = min(moment, self.first_corrupted or moment)
            self.last_corrupted = max(moment, self.last_corrupted or moment)
        if len(self._counts) > _MAX_BUCKETS:
            self._coarsen()

    def _coarsen(self) -> None:
        self.seconds *= 2
        merged: dict[int, list[int]] = {}
        for key, (responses, corrupted) in self._counts.items():
            counts = merged.setdefault(key // 2, [0, 0])
            counts[0] += responses
            counts[1] += corrupted
        self._counts = merged

    def buckets(self) -> tuple[Bucket, ...]:
        """The counts in order of time."""
        return tuple(
            Bucket(start=iso(key * self.seconds), responses=n, corrupted=k)
            for key, (n, k) in sorted(self._counts.items())
        )

    def change(self) -> Change | None:
        """Where the rate changes most; None where one rate explains the counts as well."""
        return change_point(self.buckets())


def change_point(buckets: Sequence[Bucket]) -> Change | None:
    """The split of the buckets into two with the greatest likelihood, if it is great enough."""
    total = sum(b.responses for b in buckets)
    corrupted = sum(b.corrupted for b in buckets)
    whole = _log_likelihood(corrupted, total)
    best: Change | None = None
    n = k = 0
    for place in range(1, len(buckets)):
        n += buckets[place - 1].responses
        k += buckets[place - 1].corrupted
        split = _log_likelihood(k, n) + _log_likelihood(corrupted - k, total - n)
        ratio = 2 * (split - whole)
        if ratio >= MIN_LIKELIHOOD_RATIO and (best is None or ratio > best.likelihood_ratio):
            best = Change(
                time=buckets[place].start,
                responses_before=n,
                corrupted_before=k,
                responses_after=total - n,
                corrupted_after=corrupted - k,
                likelihood_ratio=round(ratio, 2),
            )
    return best


def _log_likelihood(k: int, n: int) -> float:
    if n == 0 or k in (0, n):
        return 0.0
    rate = k / n
    return k * math.log(rate) + (n - k) * math.log(1 - rate)

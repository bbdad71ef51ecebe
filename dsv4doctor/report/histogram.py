"""Latencies counted in logarithmic bins, clean and corrupted apart, however many there are."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

BINS_PER_DECADE = 12
# What is faster than this is one bin: chunks that arrive together have no gap worth telling.
LEAST_MS = 0.01
# 31 years: what is slower is in the last bin.
_MOST_MS = 1e12
_FIRST = round(BINS_PER_DECADE * math.log10(LEAST_MS))
_LAST = round(BINS_PER_DECADE * math.log10(_MOST_MS))
_EDGES_MS = tuple(10.0 ** (index / BINS_PER_DECADE) for index in range(_FIRST, _LAST + 1))


@dataclass(slots=True)
class Histogram:
    """Counts of samples in ms: bin -> [clean, corrupted]; a bin's edges grow by the same factor."""

    bins: dict[int, list[int]] = field(default_factory=dict)

    def add(self, samples_ms: Iterable[float], *, corrupted: bool) -> None:
        """Count the samples of one reply."""
        # Not-a-number is neither at least 0 nor finite.
        held = (bisect_right(_EDGES_MS, each) for each in samples_ms if 0 <= each < math.inf)
        for place, count in Counter(held).items():
            index = _FIRST + max(place - 1, 0)
            self.bins.setdefault(index, [0, 0])[corrupted] += count

    @property
    def samples(self) -> int:
        return sum(sum(pair) for pair in self.bins.values())


def edge_ms(index: int) -> float:
    """The lower edge of a bin."""
    return float(10.0 ** (index / BINS_PER_DECADE))

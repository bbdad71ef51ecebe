"""Latencies counted in logarithmic bins, clean and corrupted apart, however many there are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

BINS_PER_DECADE = 12
# What is faster than this is one bin: chunks that arrive together have no gap worth telling.
LEAST_MS = 0.01


@dataclass(slots=True)
class Histogram:
    """Counts of samples in ms: bin -> [clean, corrupted]; a bin's edges grow by the same factor."""

    bins: dict[int, list[int]] = field(default_factory=dict)

    def add(self, samples_ms: Iterable[float], *, corrupted: bool) -> None:
        """Count the samples of one reply."""
        for sample in samples_ms:
            if 0 <= sample < math.inf:  # not-a-number is neither
                index = math.floor(BINS_PER_DECADE * math.log10(max(sample, LEAST_MS)))
                self.bins.setdefault(index, [0, 0])[corrupted] += 1

    @property
    def samples(self) -> int:
        return sum(sum(pair) for pair in self.bins.values())


def edge_ms(index: int) -> float:
    """The lower edge of a bin."""
    return float(10.0 ** (index / BINS_PER_DECADE))

"""How late our own event loop is, so that the server is not blamed for it."""

from __future__ import annotations

import asyncio

from dsv4doctor.client.arrival import IS_STAMPED
from dsv4doctor.load.events import ClientLag

PERIOD_S = 0.02

# Lag bins in ms: the upper bound of each; finer than any verdict needs, constant memory.
BINS_MS = tuple(0.05 * 1.12**step for step in range(110))

# A token comes every 18 ms at 55 tokens/s. Where the kernel stamps what comes, lateness spoils a
# time only once a second token has come meanwhile and both are read as one: when one heartbeat in a
# hundred is that late, or every second one half of it, the gaps shown are ours as much as the
# server's. (Measured: at a p99 of 16 ms gaps are off by microseconds, at 25 by half a millisecond,
# at 36 by twelve.) Where the reader stamps, all of its lateness is in the gaps: half of that p99,
# and a tenth of a gap for the median (the timer itself rounds up to 1 ms).
P99_BOUND_MS, P50_BOUND_MS = (18.0, 9.0) if IS_STAMPED else (9.0, 2.0)


class LagMeter:
    """A heartbeat: sleeps `PERIOD_S` and notes by how much it woke too late."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BINS_MS) + 1)
        self._max_ms = 0.0
        self.latest_ms = 0.0

    async def run(self) -> None:
        """Beat until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + PERIOD_S
            await asyncio.sleep(PERIOD_S)
            self.note(max(0.0, (loop.time() - due) * 1000))

    def note(self, lag_ms: float) -> None:
        # The loop's clock rounds a timer by its resolution, far below the first bin.
        self.latest_ms = lag_ms
        self._max_ms = max(self._max_ms, lag_ms)
        low, high = 0, len(BINS_MS)
        while low < high:
            middle = (low + high) // 2
            if BINS_MS[middle] < lag_ms:
                low = middle + 1
            else:
                high = middle
        self._counts[low] += 1

    def merge(self, counts: tuple[int, ...], max_ms: float) -> None:
        """Add another process's beats."""
        self._counts = [mine + other for mine, other in zip(self._counts, counts, strict=True)]
        self._max_ms = max(self._max_ms, max_ms)

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(self._counts)

    @property
    def max_ms(self) -> float:
        return self._max_ms

    def summary(self) -> ClientLag:
        """Percentiles, each as the upper bound of its bin (at most 12 % too high)."""
        n = sum(self._counts)
        if n == 0:
            return ClientLag()
        return ClientLag(
            p50_ms=self._quantile(0.50, n),
            p99_ms=self._quantile(0.99, n),
            max_ms=self._max_ms,
            n=n,
        )

    def _quantile(self, share: float, n: int) -> float:
        seen = 0
        for bound, count in zip((*BINS_MS, self._max_ms), self._counts, strict=True):
            seen += count
            if seen >= share * n:
                return min(bound, self._max_ms)
        return self._max_ms


def are_timings_valid(lag: ClientLag) -> bool:
    """False when this client was late enough to spoil what it measured (bounds above)."""
    if lag.p99_ms is None or lag.p50_ms is None:
        return True
    return lag.p50_ms <= P50_BOUND_MS and lag.p99_ms <= P99_BOUND_MS

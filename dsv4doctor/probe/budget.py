"""The bound that a user sets: bytes digested a step, and a share of the scheduler's time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Arming itself takes some hooks' time; a bound on a share means nothing over so short a while.
GRACE_MS = 20.0


class Budget:
    """What observing may cost, and what it did."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._depth = 0
        self.begin(0, 0.0)

    def begin(self, max_bytes_per_step: int, max_share: float) -> None:
        """A new account under these bounds."""
        self.max_bytes_per_step, self.max_share = max_bytes_per_step, max_share
        self._started = self._clock()
        self._step_bytes = 0
        self.bytes = 0
        self.hook_ms = 0.0
        self.device_ms = 0.0
        self.steps = 0
        self.step_ms = 0.0

    def next_step(self) -> None:
        self._step_bytes = 0
        self.steps += 1

    @property
    def left_bytes(self) -> int:
        """Bytes that may still be digested in this step; 0 while the share is exceeded."""
        if self.is_over_share:
            return 0
        return max(0, self.max_bytes_per_step - self._step_bytes)

    @property
    def is_over_share(self) -> bool:
        elapsed_ms = (self._clock() - self._started) * 1e3
        return self.hook_ms + self.device_ms > self.max_share * elapsed_ms + GRACE_MS

    def spend(self, count: int) -> None:
        self._step_bytes += count
        self.bytes += count

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Counts the time inside as the probe's; once, where hooks are nested."""
        started = self._clock()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self.hook_ms += (self._clock() - started) * 1e3

    def as_values(self) -> dict[str, float]:
        return {
            "bytes": self.bytes,
            "hook_ms": round(self.hook_ms, 3),
            "device_ms": round(self.device_ms, 3),
            "steps": self.steps,
            "step_ms": round(self.step_ms, 3),
        }

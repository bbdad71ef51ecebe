"""The bound that a user sets: bytes digested a step, and a share of the scheduler's time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# What may be spent before any time has passed: else the first step could never be observed.
GRACE_MS = 20.0
# Until it is known what a byte costs here: a slow core's figure.
FIRST_GUESS_MS_PER_BYTE = 1e-5
LEARNT_BYTES = 1 << 20


class Budget:
    """What observing may cost, and what it did."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._nesting = threading.local()  # host pages are given out by other threads too
        self.begin(0, 0.0)

    def begin(self, max_bytes_per_step: int, max_share: float) -> None:
        """A new account under these bounds."""
        self.max_bytes_per_step, self.max_share = max_bytes_per_step, max_share
        self._started = self._clock()
        self._step_bytes = 0
        self.bytes = 0
        self.hook_ms = 0.0
        self.device_ms = 0.0
        self.drain_ms = 0.0
        self.steps = 0
        self.step_ms = 0.0

    def next_step(self) -> None:
        self._step_bytes = 0
        self.steps += 1

    @property
    def left_bytes(self) -> int:
        """Bytes that may still be digested in this step: under the bound on bytes, and as many as
        the share of the time has room for at what a byte has cost so far."""
        left_ms = self.left_ms
        if left_ms <= 0:
            return 0
        affordable = int(left_ms / self._ms_per_byte)
        return max(0, min(self.max_bytes_per_step - self._step_bytes, affordable))

    @property
    def left_ms(self) -> float:
        """Time that may be spent now; negative where the share is exceeded."""
        elapsed_ms = (self._clock() - self._started) * 1e3
        return self.max_share * elapsed_ms + GRACE_MS - self.spent_ms

    @property
    def spent_ms(self) -> float:
        """In hooks on the scheduler's thread, on the device, and on the thread that drains."""
        return self.hook_ms + self.device_ms + self.drain_ms

    @property
    def _ms_per_byte(self) -> float:
        if self.bytes < LEARNT_BYTES:
            return FIRST_GUESS_MS_PER_BYTE
        return max(1e-9, self.spent_ms / self.bytes)

    def spend(self, count: int) -> None:
        self._step_bytes += count
        self.bytes += count

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Counts the time inside as the probe's; once, where hooks are nested."""
        started = self._clock()
        depth = getattr(self._nesting, "depth", 0)
        self._nesting.depth = depth + 1
        try:
            yield
        finally:
            self._nesting.depth = depth
            if not depth:
                self.hook_ms += (self._clock() - started) * 1e3

    def as_values(self) -> dict[str, float]:
        return {
            "bytes": self.bytes,
            "hook_ms": round(self.hook_ms, 3),
            "device_ms": round(self.device_ms, 3),
            "drain_ms": round(self.drain_ms, 3),
            "steps": self.steps,
            "step_ms": round(self.step_ms, 3),
        }

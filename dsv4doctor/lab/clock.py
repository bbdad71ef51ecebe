"""The virtual clock, copy streams, and events: time is bytes over bandwidth, never the machine's.

A copy stream works in order. Queueing a copy gives it the moment at which it lands; the bytes move
when somebody looks at the stream at or after that moment (`advance`). Waiting for an event moves
the waiter's own time forward; nothing else orders a reader behind a copy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


class TransferThreadDead(Exception):
    """A stream was waited for whose worker no longer runs: the event never comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A point in a stream; it is reached at `at_ms` (None: never, the worker is dead)."""

    at_ms: float | None


class CopyStream:
    """Copies in order, one at a time, at `bytes_per_ms`."""

    def __init__(self, bytes_per_ms: float) -> None:
        self._bytes_per_ms = bytes_per_ms
        self._free_at_ms = 0.0
        self._queue: deque[tuple[float, Callable[[], None]]] = deque()
        self.alive = True

    def copy(self, size: int, land: Callable[[], None], now_ms: float) -> None:
        """Queue `size` bytes; `land` moves them once the copy has had its time."""
        self._free_at_ms = max(self._free_at_ms, now_ms) + size / self._bytes_per_ms
        if self.alive:
            self._queue.append((self._free_at_ms, land))

    def record(self, now_ms: float) -> Event:
        """An event behind everything queued so far."""
        return Event(at_ms=max(self._free_at_ms, now_ms) if self.alive else None)

    def advance(self, now_ms: float) -> None:
        """Let every copy land whose time has come."""
        while self._queue and self._queue[0][0] <= now_ms:
            self._queue.popleft()[1]()

    def drop(self) -> None:
        """The worker dies: what has not landed never does."""
        self.alive = False
        self._queue.clear()


class VirtualClock:
    """The compute stream's own time in milliseconds."""

    def __init__(self) -> None:
        self.now_ms = 0.0

    def work(self, duration_ms: float) -> None:
        self.now_ms += duration_ms

    def wait(self, event: Event) -> None:
        """Stand still until `event`.

        Raises:
            TransferThreadDead: if it never comes.
        """
        if event.at_ms is None:
            raise TransferThreadDead
        self.now_ms = max(self.now_ms, event.at_ms)

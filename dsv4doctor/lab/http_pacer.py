"""Streams paced by one timer, so that a client sees tokens come and can hang up midway.

Every stream's next step is written at each tick, straight to the transport: a slow reader holds up
neither the others nor the next round. What a client does not read waits in the socket's buffer,
which a whole response fits into.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence


class PacedStream:
    """One response's steps on their way; `ended` is set when all are written or it was stopped."""

    __slots__ = ("ended", "first_tick", "planned", "sent", "steps", "write")

    def __init__(self, steps: Sequence[bytes], write: Callable[[bytes], None]) -> None:
        self.steps = steps
        self.planned = len(steps)
        self.write = write
        self.sent = 0
        self.first_tick = 0
        self.ended = asyncio.Event()

    def send_until(self, step: int) -> None:
        """Write the steps before `step` that are still due."""
        due = b"".join(self.steps[self.sent : step])
        self.sent = max(self.sent, min(step, len(self.steps)))
        if due:
            self.write(due)
        if self.sent == len(self.steps):
            self.ended.set()


class Pacer:
    """Ticks while there are streams. With `itl_s` 0 a response goes out in one piece."""

    def __init__(self, *, ttft_s: float, itl_s: float) -> None:
        self._ttft_s = ttft_s
        self._itl_s = itl_s
        self._streams: set[PacedStream] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, stream: PacedStream) -> None:
        """Begin to send `stream`; the first step is due after the time to the first token."""
        loop = asyncio.get_running_loop()
        if self._itl_s <= 0:
            loop.call_later(self._ttft_s, stream.send_until, len(stream.steps))
            return
        stream.first_tick = self._tick_at(loop.time() + self._ttft_s) + 1
        self._streams.add(stream)
        if self._timer is None:
            self._schedule(loop)

    def stop(self, stream: PacedStream) -> None:
        """Send nothing more of `stream`."""
        self._streams.discard(stream)
        stream.steps = stream.steps[: stream.sent]
        stream.ended.set()

    async def pause(self, steps: int) -> None:
        """Take as long as a stream of so many steps (a response that is not streamed)."""
        await asyncio.sleep(self._ttft_s + self._itl_s * steps)

    def _tick_at(self, now: float) -> int:
        return int(now / self._itl_s)

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        following = (self._tick_at(loop.time()) + 1) * self._itl_s
        self._timer = loop.call_at(following, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        # A timer may fire a hair early: half a tick of slack keeps the count right.
        tick = self._tick_at(loop.time() + self._itl_s / 2)
        for stream in list(self._streams):
            stream.send_until(max(0, tick - stream.first_tick + 1))
            if stream.ended.is_set():
                self._streams.discard(stream)
        self._timer = None
        if self._streams:
            self._schedule(loop)

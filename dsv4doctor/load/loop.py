"""An event loop that reads what came within a millisecond in one turn.

Tokens of many streams come one by one, and a loop that wakes for each spends most of its time on
waking. So after a turn it is left asleep until a millisecond has passed since the last: at 60
streams of 55 tokens a second a turn then reads three events, at 256 fourteen. Nothing is measured
later by it, since chunks are stamped by the kernel as they arrive (`client.arrival`); where there
are no such stamps, this loop is an ordinary one.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from dsv4doctor.client.arrival import IS_STAMPED

Result = TypeVar("Result")

TURN_S = 0.001


class GatheringSelector(selectors.DefaultSelector):
    """A selector whose waits end no sooner than `TURN_S` after the last one's end."""

    _last_end = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > 0:
            left = self._last_end + TURN_S - time.perf_counter()
            if left > 0:
                time.sleep(left if timeout is None else min(left, timeout))
            found = super().select(timeout)
            self._last_end = time.perf_counter()
            return found
        return super().select(timeout)


def new_loop() -> asyncio.AbstractEventLoop:
    """The loop of a driver."""
    return asyncio.SelectorEventLoop(GatheringSelector() if IS_STAMPED else None)


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """`asyncio.run` in such a loop."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)

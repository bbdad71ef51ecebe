"""Deadlines of every request in flight, kept by one task that looks at them a few times a second.

Socket time-outs are not enough: a broken chunk header, a drip of comments or a connection held open
after the last event outlive them (aio-libs' transport hangs past its read time-out on an invalid
chunk header). A reader only stores the time of its last read, so watching costs nothing per event.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsv4doctor.label import Label
from dsv4doctor.reply import Failure

# A stream that said [DONE] but is not closed by the server is closed by us after this.
LINGER_S = 1.0

# A reply that is not streamed comes in one piece after all its tokens, so silence says less.
WHOLE_REPLY_FACTOR = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Limits of one request in seconds; None is no limit. `stall_s` is between two tokens."""

    first_token_s: float | None = None
    stall_s: float | None = 30.0
    total_s: float = 600.0


class Watch:
    """One request in flight: when it was sent, when it last gave a token, and how it was ended.

    All times are `time.perf_counter()` seconds. `verdict` is set by whoever ends the request from
    outside; a `lingered` one had already said all.
    """

    __slots__ = (
        "first_token", "last_token", "lingered", "reused", "said_done", "sent", "stream",
        "tag", "task", "tokens", "verdict",
    )  # fmt: skip

    def __init__(self, tag: object, *, stream: bool) -> None:
        self.tag = tag
        self.stream = stream
        self.task = asyncio.current_task()
        self.sent = time.perf_counter()
        self.first_token: float | None = None
        self.last_token: float | None = None
        self.tokens = 0
        self.said_done: float | None = None
        self.verdict: Failure | None = None
        self.lingered = False
        self.reused = False

    def silent_s(self, now: float) -> float:
        """Seconds since the last token, or since sending."""
        return now - (self.last_token or self.sent)

    def end(self, verdict: Failure) -> None:
        """End the request from outside: its reader wakes up and reports `verdict`."""
        if self.verdict is None and not self.lingered:
            self.verdict = verdict
            self._wake()

    def end_linger(self) -> None:
        if self.verdict is None and not self.lingered:
            self.lingered = True
            self._wake()

    @property
    def is_ended(self) -> bool:
        return self.lingered or self.verdict is not None

    def _wake(self) -> None:
        if self.task is not None:
            self.task.cancel()


class Watchdog:
    """Holds the requests in flight to their deadlines; `review` adds rules of the caller's own."""

    def __init__(self, deadlines: Deadlines, review: Callable[[float], None] | None = None) -> None:
        self.deadlines = deadlines
        self.watches: set[Watch] = set()
        self._review = review
        shortest = min(
            limit
            for limit in (deadlines.first_token_s, deadlines.stall_s, deadlines.total_s, 2.0)
            if limit is not None
        )
        # An eighth of the shortest limit keeps the lateness small beside it.
        self.period_s = max(0.01, min(0.25, shortest / 8))

    @contextlib.contextmanager
    def watching(self, watch: Watch) -> Iterator[None]:
        """Hold `watch` to the deadlines inside the block."""
        self.watches.add(watch)
        try:
            yield
        finally:
            self.watches.discard(watch)

    async def run(self) -> None:
        """Scan until cancelled."""
        while True:
            await asyncio.sleep(self.period_s)
            now = time.perf_counter()
            for watch in tuple(self.watches):
                self._hold(watch, now)
            if self._review is not None:
                self._review(now)

    def _hold(self, watch: Watch, now: float) -> None:
        limits = self.deadlines
        age = now - watch.sent
        if watch.said_done is not None:
            if now - watch.said_done > LINGER_S:
                watch.end_linger()
        elif age > limits.total_s:
            watch.end(
                Failure(kind=Label.TIMEOUT, message=f"no end of the reply in {limits.total_s:g} s")
            )
        elif watch.first_token is None:
            if watch.stream and limits.first_token_s is not None and age > limits.first_token_s:
                watch.end(first_token_timeout(limits.first_token_s))
        elif limits.stall_s is not None and watch.silent_s(now) > limits.stall_s:
            watch.end(stalled(watch, now))


def first_token_timeout(limit_s: float) -> Failure:
    return Failure(kind=Label.TIMEOUT, message=f"no first token in {limit_s:g} s")


def stalled(watch: Watch, now: float) -> Failure:
    """The failure of a request that gave no token for too long."""
    silence = f"{watch.silent_s(now):.1f} s"
    if watch.first_token is None:
        return Failure(kind=Label.STALLED, message=f"no token at all, silent for {silence}")
    return Failure(
        kind=Label.STALLED, message=f"silent for {silence} after {watch.tokens} pieces of the reply"
    )

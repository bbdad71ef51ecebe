"""CUDA's streams and events on a CPU: queues that run only when somebody waits for them.

Work queued on a stream is done when its stream is told to catch up: by `synchronize`, by an event
that another stream (or the host) waits for, or never, which is how a read overtakes a copy. The
main stream, like a CPU, works at once. Stands for what needs CUDA in SGLang's HiCache.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Work = Callable[[], None]


class Stream:
    """A queue of work. Of the main one there is one; it is never behind."""

    def __init__(self, *arguments: Any, is_main: bool = False, **keywords: Any) -> None:
        self.is_main = is_main
        self.queue: deque[Work] = deque()
        self.cuda_stream = id(self)

    def submit(self, work: Work) -> None:
        if self.is_main:
            work()
        else:
            self.queue.append(work)

    def run_until(self, done: Callable[[], bool]) -> None:
        while self.queue and not done():
            self.queue.popleft()()

    def synchronize(self) -> None:
        self.run_until(lambda: False)

    def wait_event(self, event: Event) -> None:
        event.wait(self)

    def wait_stream(self, other: Stream) -> None:
        event = Event()
        event.record(other)
        event.wait(self)

    def query(self) -> bool:
        return not self.queue

    def __enter__(self) -> Stream:
        CURRENT.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        CURRENT.pop()


class Event:
    """Complete until recorded; then complete when its stream has come to it."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self._stream: Stream | None = None
        self._recorded = self._reached = 0

    def record(self, stream: Stream | None = None) -> None:
        self._stream = stream or CURRENT[-1]
        self._recorded += 1
        number = self._recorded

        def reach() -> None:
            self._reached = max(self._reached, number)

        self._stream.submit(reach)

    def wait(self, stream: Stream | None = None) -> None:
        """`stream` goes on only when what was recorded last has been reached."""
        number, source = self._recorded, self._stream

        def catch_up() -> None:
            if source is not None:
                source.run_until(lambda: self._reached >= number)

        (stream or CURRENT[-1]).submit(catch_up)

    def query(self) -> bool:
        return self._reached >= self._recorded

    def synchronize(self) -> None:
        number = self._recorded
        if self._stream is not None:
            self._stream.run_until(lambda: self._reached >= number)

    def elapsed_time(self, end: Event) -> float:
        return 0.0


MAIN = Stream(is_main=True)
CURRENT = [MAIN]


def submit(work: Work) -> None:
    """Queue work on the current stream."""
    CURRENT[-1].submit(work)


class DeviceModule:
    """What SGLang asks of `torch.cuda`, by these streams."""

    Stream, Event = Stream, Event
    __name__ = "streams"

    @staticmethod
    def current_stream(*_: Any) -> Stream:
        return CURRENT[-1]

    @staticmethod
    @contextmanager
    def stream(stream: Stream) -> Iterator[Stream]:
        with stream as entered:
            yield entered

    @staticmethod
    def synchronize(*_: Any) -> None: ...

    @staticmethod
    def set_device(*_: Any) -> None: ...

    @staticmethod
    def empty_cache() -> None: ...

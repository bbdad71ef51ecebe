"""Streams of a device on a virtual clock, with CUDA's rules, and the thread that feeds them.

A stream works its operations off in order. Nothing orders one stream behind another but an event:
`wait` refers to what the event's stream had been given when the event was recorded. The host gives
work at its own time, so an operation begins no earlier than that. Time is durations, never the
machine's.

What an operation comes behind leaves many orders open. The clock picks the one in which everything
takes as long as it is said to; `lab.interleaving` tries them all.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from dsv4doctor.lab.clock import Event, TransferThreadDead


@dataclass(slots=True, eq=False, kw_only=True)
class Operation:
    """Something that a stream does; `effect` (None for a mark) happens at its end, `at_ms`.

    `at_ms` is None if that never comes.
    """

    name: str
    stream: str
    serial: int
    effect: Callable[[], None] | None
    at_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark(Event):
    """An event recorded in a stream: reached when `operation` (None: nothing) has happened."""

    operation: Operation | None


class Stream:
    """One queue of operations; made by `Timeline.stream`."""

    def __init__(self, name: str, timeline: Timeline) -> None:
        self.name = name
        self.alive = True
        self._timeline = timeline
        self._last: Operation | None = None

    def run(
        self, name: str, effect: Callable[[], None] | None = None, duration_ms: float = 0.0
    ) -> Operation:
        """Queue an operation behind everything that this stream was given before."""
        self._last = self._timeline.submit(self, name, effect, duration_ms, (self._last,))
        return self._last

    def wait(self, event: Mark) -> None:
        """What is queued from now on comes after `event` too."""
        if event.operation is not None:
            behind = (self._last, event.operation)
            self._last = self._timeline.submit(self, "wait", None, 0.0, behind)

    def record(self) -> Mark:
        """An event behind everything queued so far."""
        at_ms = self._timeline.now_ms if self._last is None else self._last.at_ms
        return Mark(at_ms=at_ms if self.alive else None, operation=self._last)

    def drop(self) -> None:
        """Whoever works this stream off dies: what has not happened yet never does."""
        self.alive = False
        self._timeline.forget(self)


@dataclass(slots=True)
class Timeline:
    """The host's own time, and all that its streams have still to do."""

    now_ms: float = 0.0
    _streams: list[Stream] = field(default_factory=list)
    _queue: list[tuple[float, int, Operation]] = field(default_factory=list)
    _serial: int = 0
    # What the host has waited for last: everything that it gives out later comes after that.
    _seen: Operation | None = None

    def stream(self, name: str) -> Stream:
        made = Stream(name, self)
        self._streams.append(made)
        return made

    def submit(
        self,
        stream: Stream,
        name: str,
        effect: Callable[[], None] | None,
        duration_ms: float,
        after: tuple[Operation | None, ...],
    ) -> Operation:
        """Queue an operation of `stream`; it begins when the last of `after` is over."""
        behind = tuple(operation for operation in (*after, self._seen) if operation is not None)
        begin: float | None = self.now_ms
        for operation in behind:
            if begin is not None:
                begin = None if operation.at_ms is None else max(begin, operation.at_ms)
        at_ms = begin + duration_ms if begin is not None and stream.alive else None
        self._serial += 1
        made = Operation(
            name=name,
            stream=stream.name,
            serial=self._serial,
            effect=effect,
            at_ms=at_ms,
        )
        self._plan(made, behind)
        return made

    def _plan(self, operation: Operation, behind: tuple[Operation, ...]) -> None:
        """Keep an operation until its time comes; `behind` is in its `at_ms` already."""
        if operation.at_ms is not None and operation.effect is not None:
            heapq.heappush(self._queue, (operation.at_ms, operation.serial, operation))

    def work(self, duration_ms: float) -> None:
        """The host is busy for so long; the streams go on."""
        self.now_ms += duration_ms
        self.settle()

    def wait(self, event: Mark) -> None:
        """The host stands still until `event`.

        Raises:
            TransferThreadDead: if it never comes.
        """
        if event.at_ms is None:
            raise TransferThreadDead
        self.now_ms = max(self.now_ms, event.at_ms)
        self._seen = event.operation or self._seen
        self.settle()

    def has_reached(self, event: Mark) -> bool:
        """Whether `event` lies in the past, as a poll would say."""
        return event.at_ms is not None and event.at_ms <= self.now_ms

    def settle(self) -> None:
        """Let everything happen whose time has come; of equals, what was queued first."""
        while self._queue and self._queue[0][0] <= self.now_ms:
            _, _, operation = heapq.heappop(self._queue)
            if operation.effect is not None:
                operation.effect()

    def rest(self) -> None:
        """Wait until every stream that still works has nothing left to do."""
        for stream in self._streams:
            if stream.alive and (event := stream.record()).at_ms is not None:
                self.wait(event)

    def forget(self, stream: Stream) -> None:
        """Drop what `stream` has not done yet."""
        for _, _, operation in self._queue:
            if operation.stream == stream.name:
                operation.at_ms = None
        self._queue = [entry for entry in self._queue if entry[2].at_ms is not None]
        heapq.heapify(self._queue)

"""What a driver is given and what it gives, in this process or over a pipe.

Replies travel without their script: the parent keeps the scripts of the sessions under way, so that
long prompts are not sent back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dsv4doctor.load.events import RunEnd, SessionEnded, Wedge
from dsv4doctor.load.silence import Traffic
from dsv4doctor.reply import Failure, Reply
from dsv4doctor.session import Message, SessionScript


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One session to drive. `done` turns were answered in an earlier run, `earlier` are their
    replies as far as saved (for live history). `arrived` is when it was due to be sent
    (`time.perf_counter()`), None where nothing holds it back."""

    script: SessionScript
    done: frozenset[int] = frozenset()
    earlier: Mapping[int, Message] = field(default_factory=dict)
    arrived: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """`TurnDone` without the script; `turn` is its number."""

    session: int
    turn: int
    request_id: str
    reply: Reply
    messages: int
    body_bytes: int
    earlier_failures: tuple[Failure, ...] = ()
    resends: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCounts:
    """One driver's counts since its start, and its lag right now."""

    in_flight: int = 0
    waiting: int = 0
    ended: int = 0
    turns: int = 0
    tokens: int = 0
    lag_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverEnded:
    """One driver's last word."""

    end: RunEnd
    counts: DriverCounts
    peak_in_flight: int
    resends: int
    lag_counts: tuple[int, ...]
    lag_max_ms: float


WireEvent = TurnResult | SessionEnded | DriverCounts | Wedge | DriverEnded


class Board(Protocol):
    """Where drivers of one run tell each other when tokens last came."""

    def post(self, traffic: Traffic) -> None: ...

    def view(self) -> Traffic: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A driver's connection to the run: `take` gives the next session (None: no more), `emit` takes
    what happened, `backlog` counts what nobody has taken yet."""

    take: Callable[[], Awaitable[Assignment | None]]
    emit: Callable[[WireEvent], None]
    backlog: Callable[[], int]
    board: Board


class OwnBoard:
    """The board of a lone driver."""

    def __init__(self) -> None:
        self._traffic = Traffic(last_token=0.0, begun_at=0.0, last_turnover=0.0)

    def post(self, traffic: Traffic) -> None:
        self._traffic = traffic

    def view(self) -> Traffic:
        return self._traffic

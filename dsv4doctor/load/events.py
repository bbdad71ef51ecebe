"""What a running load tells, as it happens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dsv4doctor.reply import Failure, Reply
from dsv4doctor.session import SessionScript, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDone:
    """One request ended: answered, failed or aborted by us.

    `messages` and `body_bytes` are the size of what was sent. `earlier_failures` are those of the
    attempts before this reply (retries, off by default). `resends` counts sendings over a kept
    connection that the server had just closed: those never reached it.
    """

    script: SessionScript
    turn: Turn
    request_id: str
    reply: Reply
    messages: int
    body_bytes: int
    earlier_failures: tuple[Failure, ...] = ()
    resends: int = 0

    @property
    def session(self) -> int:
        return self.script.session


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    """A session sends nothing more. `turns_left` were never sent, for `reason`."""

    session: int
    turns_left: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The state of the run, at most five times a second. Counts run from the start; `tokens` are
    pieces of replies, the server's tokens where it sends one a piece."""

    elapsed_s: float
    in_flight: int
    waiting: int
    sessions_ended: int
    turns_done: int
    tokens: int
    tokens_per_s: float
    client_lag_ms: float


class WedgeAfter(StrEnum):
    """What came before the silence."""

    ABORT = "abort"
    LOAD_PEAK = "load_peak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One question to a silent server: `answered` within the deadline, and in words."""

    name: str
    answered: bool
    status: int | None
    seconds: float
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wedge:
    """Requests are in flight and no session gets a token any more.

    `since_unix` is the last token's time. `after` names the last abort of ours before the silence,
    or the load peak; `abort_session` and `abort_turn` say which. `stuck` are the silent requests as
    (session, turn). `gauges` are the server's own metrics, empty when it has none.
    """

    since_unix: float
    silent_s: float
    after: WedgeAfter
    detail: str
    probes: tuple[Probe, ...]
    stuck: tuple[tuple[int, int], ...]
    peak_in_flight: int
    abort_session: int | None = None
    abort_turn: int | None = None
    gauges: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLag:
    """How late this client's own event loop was, in ms over `n` heartbeats; None without any."""

    p50_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    n: int = 0


class RunEnd(StrEnum):
    """Why the run is over."""

    COMPLETE = "complete"
    WEDGED = "wedged"
    DRAINED = "drained"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """The last event. `timings_valid` is False when we were the bottleneck (see `load.lag`)."""

    end: RunEnd
    elapsed_s: float
    turns_done: int
    tokens: int
    peak_in_flight: int
    resends: int
    processes: int
    client_lag: ClientLag
    timings_valid: bool


RunEvent = TurnDone | SessionEnded | Tick | Wedge | RunEnded

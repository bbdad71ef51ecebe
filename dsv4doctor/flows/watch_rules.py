"""What pulses mean: fine, slow, corrupt, wedged or unreachable, and since when (pure)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

# Pulses before "usual" means anything, and how many of the latest it is taken from.
LEAST_USUAL = 5
USUAL_OF = 60
# So many times the usual time to the first token is slow; half a second of noise is not.
SLOW_FACTOR = 5.0
LEAST_SLOW_MS = 500.0
# A pulse without an answer may have met a full queue; the second in a row has not.
SILENT_TO_WEDGE = 2


class State(StrEnum):
    FINE = "fine"
    SLOW = "slow"
    CORRUPT = "corrupt"
    WEDGED = "wedged"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """One canary's reply. `afresh` says whether the same request, computed afresh, was right; None
    where it was not sent again."""

    answered: bool
    corrupted: bool = False
    label: str = ""
    evidence: str = ""
    request_id: str = ""
    afresh: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """One look at the server. `connected` is False where nothing accepts a connection, or every
    request is refused with an HTTP error or by what is no such server. `progressed` says whether
    the server's token counters grew while it kept us waiting, None without metrics."""

    at_unix: float
    connected: bool
    health_status: int | None
    answered: bool
    ttft_ms: float | None
    seconds: float
    problem: str = ""
    progressed: bool | None = None
    canaries: tuple[Canary, ...] = ()
    gauges: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The state after a pulse, since when it is so, and why in words. `last_good_unix` is the last
    pulse that was answered."""

    state: State
    since_unix: float
    why: str
    last_good_unix: float | None


class Vigil:
    """Takes pulses in order; `slow_ttft_ms` overrides what is usual."""

    def __init__(self, slow_ttft_ms: float | None = None) -> None:
        self._slow_ttft_ms = slow_ttft_ms
        self._usual: deque[float] = deque(maxlen=USUAL_OF)
        self._silent: list[float] = []
        self._unanswered = 0
        self._state = State.FINE
        self._since: float | None = None
        self.last_good_unix: float | None = None
        self.canaries = 0
        self.corrupted = 0

    def take(self, pulse: Pulse) -> Verdict:
        """The verdict after `pulse`."""
        state, why = self._judge(pulse)
        began = pulse.at_unix
        if state is State.WEDGED:
            began = self._silent[0]
        if state is not self._state or self._since is None:
            self._state, self._since = state, began
        self._unanswered = self._unanswered + 1 if pulse.connected and _is_silent(pulse) else 0
        if pulse.answered:
            self.last_good_unix = pulse.at_unix
        self.canaries += sum(canary.answered for canary in pulse.canaries)
        self.corrupted += sum(canary.corrupted for canary in pulse.canaries)
        return Verdict(
            state=state, since_unix=self._since, why=why, last_good_unix=self.last_good_unix
        )

    @property
    def is_waiting(self) -> bool:
        """True after a first pulse without an answer: the next one decides."""
        return 0 < self._unanswered < SILENT_TO_WEDGE

    @property
    def slow_above_ms(self) -> float | None:
        """The time to the first token above which a pulse is slow; None while nothing is usual."""
        if self._slow_ttft_ms is not None:
            return self._slow_ttft_ms
        if len(self._usual) < LEAST_USUAL:
            return None
        return max(LEAST_SLOW_MS, SLOW_FACTOR * median(self._usual))

    def _judge(self, pulse: Pulse) -> tuple[State, str]:
        if not pulse.connected:
            self._silent.clear()
            return State.UNREACHABLE, pulse.problem
        wrong = [canary for canary in pulse.canaries if canary.corrupted]
        if wrong:
            self._silent.clear()
            return State.CORRUPT, _why_corrupt(wrong)
        if _is_silent(pulse):
            return self._judge_silence(pulse)
        self._silent.clear()
        return self._judge_speed(pulse)

    def _judge_silence(self, pulse: Pulse) -> tuple[State, str]:
        if pulse.progressed:
            self._silent.clear()
            return State.SLOW, f"{pulse.problem}; the server generates for others meanwhile"
        self._silent.append(pulse.at_unix)
        health = f"/health says {pulse.health_status or 'nothing'}"
        if len(self._silent) < SILENT_TO_WEDGE:
            return State.SLOW, f"{pulse.problem}; {health}; the next pulse decides"
        return State.WEDGED, f"{pulse.problem}, {len(self._silent)} times in a row; {health}"

    def _judge_speed(self, pulse: Pulse) -> tuple[State, str]:
        limit, ttft = self.slow_above_ms, pulse.ttft_ms
        if ttft is None:
            return State.FINE, "answered"
        if limit is not None and ttft > limit:
            return State.SLOW, f"{ttft:.0f} ms to the first token, above {limit:.0f}"
        self._usual.append(ttft)
        return State.FINE, f"{ttft:.0f} ms to the first token"


def _is_silent(pulse: Pulse) -> bool:
    """True where the small generation, or every canary, brought nothing."""
    hung = bool(pulse.canaries) and not any(canary.answered for canary in pulse.canaries)
    return not pulse.answered or hung


def _why_corrupt(wrong: Sequence[Canary]) -> str:
    first = wrong[0]
    said = f"canary {first.request_id} came back {first.label}: {first.evidence}"
    if first.afresh is True:
        return f"{said}; computed afresh it is right"
    return f"{said}; computed afresh it is wrong too" if first.afresh is False else said

"""Where a run stands, for the live display."""

from __future__ import annotations

from dsv4doctor.flows.tally import Tally, commonest
from dsv4doctor.load.runner import Tick
from dsv4doctor.progress import ReproState

# A rate of progress means little before this many requests have ended.
_FIRST_ESTIMATE = 5


class RunState:
    """Turns ticks into whole pictures; `done_before` requests ended in earlier segments."""

    def __init__(self, sessions: int, turns: int, tally: Tally, done_before: int) -> None:
        self._sessions = sessions
        self._requests = sessions * turns
        self._tally = tally
        self._done_before = done_before
        self._last_tokens = 0
        self._last_moved_s = 0.0

    def after(self, tick: Tick) -> ReproState:
        """The picture after `tick`."""
        if tick.tokens != self._last_tokens or not tick.in_flight:
            self._last_tokens, self._last_moved_s = tick.tokens, tick.elapsed_s
        tally = self._tally
        done = self._done_before + tick.turns_done
        return ReproState(
            phase="repro",
            sessions=self._sessions,
            sessions_done=tick.sessions_ended,
            requests=self._requests,
            requests_done=done,
            in_flight=tick.in_flight,
            responses=tally.responses,
            corrupted_responses=tally.corrupted_responses,
            failures=tally.failures,
            aborted_by_us=tally.aborted_by_us,
            by_label=tuple(commonest(tally.by_label)),
            tokens_per_s=tick.tokens_per_s,
            elapsed_s=tick.elapsed_s,
            left_s=self._left_s(tick),
            quiet_s=tick.elapsed_s - self._last_moved_s,
        )

    def _left_s(self, tick: Tick) -> float | None:
        if tick.turns_done < _FIRST_ESTIMATE:
            return None
        left = self._requests - self._done_before - tick.turns_done
        return tick.elapsed_s / tick.turns_done * max(left, 0)

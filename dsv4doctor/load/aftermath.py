"""What came before a silence: the last abort of ours, or the load peak (pure).

Kept where the events of all processes meet: the one that notices a wedge need not have hung up.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from dsv4doctor.load.events import Wedge, WedgeAfter
from dsv4doctor.load.wire import TurnResult

# An abort of ours this long before the last token is still named as what came before the silence.
ABORT_MEMORY_S = 60.0

# An abort may overtake the last token of another stream by as much as the two were read apart.
OVERLAP_S = 0.5

# Aborts remembered: more than fit into `ABORT_MEMORY_S` in any run.
REMEMBERED_ABORTS = 65536


class Aftermath:
    """Remembers aborts and the load peak of a run, and tells a wedge what it came after."""

    def __init__(self) -> None:
        self._aborts: deque[tuple[float, int, int]] = deque(maxlen=REMEMBERED_ABORTS)
        self._peak_in_flight = 0

    def note_turn(self, result: TurnResult) -> None:
        if result.reply.aborted:
            timing = result.reply.timing
            ended_unix = timing.sent_unix + timing.e2e_latency_ms / 1000
            self._aborts.append((ended_unix, result.session, result.turn))

    def note_load(self, in_flight: int) -> None:
        self._peak_in_flight = max(self._peak_in_flight, in_flight)

    def explain(self, wedge: Wedge) -> Wedge:
        """`wedge` with what came before it."""
        peak = max(self._peak_in_flight, wedge.peak_in_flight)
        since = wedge.since_unix
        known = replace(wedge, peak_in_flight=peak)
        # With several aborts, the last before the silence is the one that it followed.
        before = [abort for abort in self._aborts if abort[0] <= since + OVERLAP_S]
        ended_unix, session, turn = max(before or list(self._aborts)[:1], default=(0.0, 0, 0))
        if since - ended_unix > ABORT_MEMORY_S:
            return known
        apart = f"{abs(since - ended_unix):.1f} s {'before' if ended_unix < since else 'after'}"
        return replace(
            known,
            after=WedgeAfter.ABORT,
            detail=f"our abort of session {session}, turn {turn}, {apart} the last token",
            abort_session=session,
            abort_turn=turn,
        )

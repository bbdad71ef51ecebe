"""Watches the run as a whole: ends single silent streams, and finds out about a wedge.

Bookkeeping and probes are here, the rules in `load.silence`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection

from dsv4doctor.client.openai import Outcome
from dsv4doctor.client.watch import Watch, stalled
from dsv4doctor.load.events import Wedge, WedgeAfter
from dsv4doctor.load.options import RunOptions
from dsv4doctor.load.probing import Probed, probe_server, queue_length
from dsv4doctor.load.silence import Silence, Traffic, is_of_single_streams, review
from dsv4doctor.load.wire import Board
from dsv4doctor.target import Endpoint

# Ends of answered requests remembered to weigh a silence; more than ever are in flight.
REMEMBERED_ENDS = 65536

# A server that answers a short prompt may be busy with our long ones (a prefill on a slow machine),
# so requests that have no token yet are given this many stall times before it counts as wedged.
PREFILL_PATIENCE = 3


class Sentry:
    """Sees every request begin and end, and looks at those in flight at each scan."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: RunOptions,
        board: Board,
        on_wedge: Callable[[Wedge], None],
    ) -> None:
        self._endpoint = endpoint
        self._options = options
        self._board = board
        self._on_wedge = on_wedge
        self.watches: Collection[Watch] = ()
        self.tasks: set[asyncio.Task[None]] = set()
        self.peak_in_flight = 0
        self._peak_at = 0.0
        self._ended_tokens = 0
        self._traffic = Traffic(last_token=0.0, begun_at=0.0, last_turnover=0.0)
        self._ends: deque[float] = deque(maxlen=REMEMBERED_ENDS)
        self._is_asking = False
        self._quiet_until = 0.0
        self._forgiven: float | None = None
        self._strikes = (0.0, 0)  # last token, silences found since
        self._is_wedged = False

    @property
    def tokens(self) -> int:
        return self._ended_tokens + sum(watch.tokens for watch in self.watches)

    def sending(self) -> None:
        """A request is about to be sent."""
        now = time.perf_counter()
        if not self.watches:
            self._traffic.begun_at = now
        if len(self.watches) + 1 > self.peak_in_flight:
            self.peak_in_flight, self._peak_at = len(self.watches) + 1, now

    def ended(self, outcome: Outcome) -> None:
        """A request has ended, however."""
        now = time.perf_counter()
        watch = outcome.watch
        self._ended_tokens += watch.tokens
        is_answered = watch.last_token is not None
        if not watch.stream and outcome.reply.failure is None:
            watch.first_token = watch.last_token = now
            is_answered = True
        if is_answered:
            self._note_token(watch)
            self._ends.append(now)
        if watch.verdict is None:
            # What we ended ourselves for its silence says nothing about the server's queue.
            self._traffic.last_turnover = now

    def review(self, now: float) -> None:
        """One look at everything in flight; called by the watchdog."""
        for watch in self.watches:
            if watch.last_token is not None:
                self._note_token(watch)
        self._board.post(self._traffic)
        if self._is_asking or self._is_wedged or now < self._quiet_until:
            return
        silence = review(self.watches, self._seen(), now=now, stall_s=self._options.stall_timeout_s)
        for watch in silence.stalled:
            watch.end(stalled(watch, now))
        if silence.all_silent:
            self._start(self._suspect(self._seen().last_token))
        elif silence.unanswered:
            self._start(self._ask_queue(silence))

    def end_all(self) -> None:
        """End everything that is silent; called when the run is wedged."""
        self._is_wedged = True
        now = time.perf_counter()
        for watch in self.watches:
            watch.end(stalled(watch, now))

    def _note_token(self, watch: Watch) -> None:
        traffic = self._traffic
        traffic.last_token = max(traffic.last_token, watch.last_token or 0.0)
        traffic.last_turnover = max(traffic.last_turnover, watch.first_token or 0.0)
        traffic.newest_answered = max(traffic.newest_answered, watch.sent)

    def _seen(self) -> Traffic:
        """The traffic of the whole run, with the begin of our own share."""
        seen = self._board.view()
        return Traffic(
            last_token=max(seen.last_token, self._traffic.last_token),
            begun_at=self._traffic.begun_at,
            last_turnover=max(seen.last_turnover, self._traffic.last_turnover),
            newest_answered=max(seen.newest_answered, self._traffic.newest_answered),
        )

    def _start(self, work: object) -> None:
        self._is_asking = True
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self.tasks.add(task)

    async def _ask_queue(self, silence: Silence) -> None:
        """End requests that nothing explains; wait when the server says that it has a queue."""
        waiting = await queue_length(self._endpoint)
        now = time.perf_counter()
        if waiting:
            self._quiet_until = now + self._options.stall_timeout_s / 2
        else:
            for watch in silence.unanswered:
                if watch.first_token is None and watch in self.watches:
                    watch.end(stalled(watch, now))
        self._is_asking = False

    async def _suspect(self, last_token: float) -> None:
        """Nothing came from anywhere: ask the server, then decide between wedge and stalls."""
        probed = await probe_server(self._endpoint, self._options)
        now = time.perf_counter()
        stuck = [watch for watch in self.watches if watch.said_done is None]
        has_moved = self._seen().last_token > last_token or any(
            watch.last_token is not None and watch.last_token > last_token for watch in stuck
        )
        self._is_asking = False
        if has_moved or not stuck or self._is_wedged:
            return
        if probed.works or self._may_be_prefilling(probed, stuck, last_token):
            self._quiet_until = now + self._options.stall_timeout_s
            return
        first_sent = min(watch.sent for watch in stuck)
        answered = sum(1 for end in self._ends if end >= first_sent)
        is_first = self._forgiven is None or self._forgiven < last_token
        if probed.generates and is_first and is_of_single_streams(len(stuck), answered):
            self._forgiven = last_token
            for watch in stuck:
                watch.end(stalled(watch, now))
            return
        self._is_wedged = True
        self._on_wedge(self._wedge(probed, stuck, last_token, now))

    def _may_be_prefilling(self, probed: Probed, stuck: list[Watch], last_token: float) -> bool:
        """True while requests without a first token may still be at work on a live server."""
        since, count = self._strikes
        self._strikes = (last_token, count + 1 if since == last_token else 1)
        return (
            probed.generates
            and last_token <= min(watch.sent for watch in stuck)
            and self._strikes[1] < PREFILL_PATIENCE
        )

    def _wedge(self, probed: Probed, stuck: list[Watch], last_token: float, now: float) -> Wedge:
        since = last_token or min(watch.sent for watch in stuck)
        peak_ago_s = now - self._peak_at
        return Wedge(
            since_unix=time.time() - (now - since),
            silent_s=now - since,
            after=WedgeAfter.LOAD_PEAK,
            detail=f"{self.peak_in_flight} requests in flight at most, {peak_ago_s:.1f} s ago",
            probes=probed.probes,
            stuck=tuple(sorted(w.tag for w in stuck if isinstance(w.tag, tuple))),
            peak_in_flight=self.peak_in_flight,
            gauges=probed.gauges,
        )

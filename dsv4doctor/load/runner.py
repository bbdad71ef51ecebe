"""Many sessions at one server: `run_sessions` yields what happens, while it happens.

The event loop runs beside the caller, in a thread or in processes of its own, so that judging a
reply and writing it to disk do not hold up the streams.
"""

from __future__ import annotations

import operator
import os
import sys
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Self

from dsv4doctor.load.aftermath import Aftermath
from dsv4doctor.load.events import (
    ClientLag,
    Probe,
    RunEnd,
    RunEnded,
    RunEvent,
    SessionEnded,
    Tick,
    TurnDone,
    Wedge,
    WedgeAfter,
)
from dsv4doctor.load.lag import LagMeter, are_timings_valid
from dsv4doctor.load.options import SESSIONS_PER_PROCESS, RunOptions
from dsv4doctor.load.wire import DriverCounts, DriverEnded, TurnResult, WireEvent
from dsv4doctor.load.workers import ProcessWorkers, Source, ThreadWorker, Workers
from dsv4doctor.session import Message, SessionScript
from dsv4doctor.target import Endpoint

__all__ = [
    "ClientLag", "LoadRun", "Probe", "RunEnd", "RunEnded", "RunEvent", "RunOptions",
    "SessionEnded", "Tick", "TurnDone", "Wedge", "WedgeAfter", "run_sessions",
]  # fmt: skip

# The interpreter hands over between threads this often (default 5 ms), so that a caller who is
# judging a reply delays the reading of streams by no more.
SWITCH_INTERVAL_S = 0.001

# How a run ended, from how its drivers did: the gravest speaks for all.
_HOW_ENDED = (RunEnd.WEDGED, RunEnd.STOPPED, RunEnd.DRAINED)

# Ticks over which a token rate is taken.
RATE_TICKS = 8


def run_sessions(
    endpoint: Endpoint,
    scripts: Iterable[SessionScript],
    options: RunOptions,
    *,
    done: Collection[tuple[int, int]] = frozenset(),
    earlier: Mapping[tuple[int, int], Message] | None = None,
) -> LoadRun:
    """A run of `scripts`, to be iterated inside a `with` block.

    `scripts` are taken one by one as sessions begin. `done` are (session, turn) pairs that are not
    sent again; with live history, `earlier` are their replies as messages. Sessions that are done
    altogether are passed over silently.
    """
    source = Source(scripts, done, earlier or {})
    concurrency = options.max_concurrency or options.expected_sessions
    if concurrency is None:
        concurrency = operator.length_hint(scripts, 0)
    processes = options.processes or _processes_for(concurrency)
    workers: Workers
    if processes == 1:
        workers = ThreadWorker(endpoint, options, source)
    else:
        workers = ProcessWorkers(endpoint, options, source, processes)
    return LoadRun(workers, source, processes, options)


def _processes_for(sessions: int) -> int:
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, -(-sessions // SESSIONS_PER_PROCESS)))


class LoadRun:
    """A run under way: iterate it for its events, the last of which is a `RunEnded`.

    An exception in the caller (Ctrl-C, say) leaves it running until the `with` block ends; to hear
    the rest, call `stop` and go on iterating.
    """

    def __init__(
        self, workers: Workers, source: Source, processes: int, options: RunOptions
    ) -> None:
        self._workers = workers
        self._source = source
        self._processes = processes
        self._interval_s = options.report_interval_s
        self._counts: dict[int, DriverCounts] = {}
        self._ends: list[DriverEnded] = []
        self._wedged = False
        self._aftermath = Aftermath()
        self._is_over = False
        self._rates: deque[tuple[float, int]] = deque(maxlen=RATE_TICKS)
        self._last_tick_s = 0.0
        self._switch_interval = sys.getswitchinterval()

    def __enter__(self) -> Self:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._workers.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._workers.close()
        sys.setswitchinterval(self._switch_interval)

    def __iter__(self) -> Iterator[RunEvent]:
        return self

    def __next__(self) -> RunEvent:
        while not self._is_over:
            worker, event = self._workers.get()
            told = self._tell(worker, event)
            if told is not None:
                return told
        raise StopIteration

    def stop(self) -> None:
        """End in order: what is in flight is cut and not recorded. Safe from a signal handler."""
        self._workers.stop()

    def drain(self, reason: str) -> None:
        """Begin no further request; what is in flight is heard to its end."""
        self._workers.drain(reason)

    def _tell(self, worker: int, event: WireEvent) -> RunEvent | None:
        if isinstance(event, TurnResult):
            self._aftermath.note_turn(event)
            return self._turn_done(event)
        if isinstance(event, DriverCounts):
            self._counts[worker] = event
            self._aftermath.note_load(sum(part.in_flight for part in self._counts.values()))
            return self._tick()
        if isinstance(event, SessionEnded):
            self._source.forget(event.session)
            return event
        if isinstance(event, Wedge):
            if self._wedged:
                return None
            self._wedged = True
            self._workers.halt("the server is wedged", but=worker)
            return self._aftermath.explain(event)
        self._counts[worker] = event.counts
        self._ends.append(event)
        if len(self._ends) < self._processes:
            return None
        self._is_over = True
        return self._run_ended()

    def _turn_done(self, result: TurnResult) -> TurnDone:
        script = self._source.script(result.session)
        return TurnDone(
            script=script,
            turn=script.turns[result.turn],
            request_id=result.request_id,
            reply=result.reply,
            messages=result.messages,
            body_bytes=result.body_bytes,
            earlier_failures=result.earlier_failures,
            resends=result.resends,
        )

    def _tick(self) -> Tick | None:
        elapsed = self._workers.elapsed_s()
        if elapsed - self._last_tick_s < self._interval_s * 0.9:
            return None
        self._last_tick_s = elapsed
        parts = list(self._counts.values())
        tokens = sum(part.tokens for part in parts)
        since, before = self._rates[0] if self._rates else (0.0, 0)
        self._rates.append((elapsed, tokens))
        return Tick(
            elapsed_s=elapsed,
            in_flight=sum(part.in_flight for part in parts),
            waiting=sum(part.waiting for part in parts),
            sessions_ended=sum(part.ended for part in parts),
            turns_done=sum(part.turns for part in parts),
            tokens=tokens,
            tokens_per_s=max(0.0, (tokens - before) / max(elapsed - since, 1e-3)),
            client_lag_ms=max(part.lag_ms for part in parts),
        )

    def _run_ended(self) -> RunEnded:
        meter = LagMeter()
        for end in self._ends:
            meter.merge(end.lag_counts, end.lag_max_ms)
        lag = meter.summary()
        ends = {end.end for end in self._ends}
        how = next((e for e in _HOW_ENDED if e in ends), RunEnd.COMPLETE)
        return RunEnded(
            end=how,
            elapsed_s=self._workers.elapsed_s(),
            turns_done=sum(end.counts.turns for end in self._ends),
            tokens=sum(end.counts.tokens for end in self._ends),
            peak_in_flight=sum(end.peak_in_flight for end in self._ends),
            resends=sum(end.resends for end in self._ends),
            processes=self._processes,
            client_lag=lag,
            timings_valid=are_timings_valid(lag),
        )

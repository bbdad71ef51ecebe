"""Drives sessions at one server inside one event loop; tells what happens through `emit`."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from dsv4doctor.client.http import HttpClient
from dsv4doctor.client.openai import ChatRequest, Outcome, chat, encode_body
from dsv4doctor.client.watch import Deadlines, Watchdog
from dsv4doctor.label import Label
from dsv4doctor.load.events import RunEnd, SessionEnded, Wedge
from dsv4doctor.load.history import Conversation, request_body
from dsv4doctor.load.lag import LagMeter
from dsv4doctor.load.options import RunOptions
from dsv4doctor.load.sentry import Sentry
from dsv4doctor.load.wire import (
    Assignment,
    DriverCounts,
    DriverEnded,
    Link,
    TurnResult,
)
from dsv4doctor.reply import Failure
from dsv4doctor.scenario import History
from dsv4doctor.session import Message
from dsv4doctor.target import Endpoint

# Results that nobody has taken yet; beyond it sessions wait, so that memory stays bounded.
MAX_BACKLOG = 2000
BACKLOG_PAUSE_S = 0.02

# A kept connection that the server closed at the same moment breaks at once; the request is then
# sent again over a new one, and told. Any later break is the server's answer.
STALE_WITHIN_S = 1.0

RETRY_PAUSE_S = 0.5
_RETRYABLE_STATUS = frozenset({429, 500, 502, 503, 504})

# Cycles are few; the young generations are swept between ticks, the old one never while measuring.
GC_EVERY_TICKS = 8


class Driver:
    """One event loop's share of a run."""

    def __init__(self, endpoint: Endpoint, options: RunOptions, link: Link) -> None:
        self._options = options
        self._endpoint = endpoint
        self._link = link
        self._emit = link.emit
        self._lag = LagMeter()
        self._end = RunEnd.COMPLETE
        self._halted = ""
        self._main: asyncio.Task[None] | None = None
        self._ended = self._turns = self._resends = 0
        self._began: float | None = None
        self._sentry = Sentry(endpoint, options, link.board, self._on_wedge)
        self._watchdog = Watchdog(
            Deadlines(
                first_token_s=options.first_token_timeout_s,
                stall_s=None,  # the sentry's rules, which know of the other streams
                total_s=options.request_timeout_s,
            ),
            review=self._sentry.review,
        )
        self._watchdog.period_s = max(0.01, min(0.25, options.stall_timeout_s / 8))
        self._sentry.watches = self._watchdog.watches

    async def run(self) -> None:
        """Drive all sessions of the feed; the last thing emitted is a `DriverEnded`."""
        raise_file_limit()
        helpers: list[asyncio.Task[None]] = []
        try:
            with quiet_gc():
                async with HttpClient(
                    self._endpoint,
                    max_connections=self._options.max_concurrency,
                    connect_timeout_s=self._options.connect_timeout_s,
                ) as http:
                    helpers = [
                        asyncio.create_task(work)
                        for work in (self._watchdog.run(), self._lag.run(), self._report())
                    ]
                    self._main = asyncio.create_task(self._drive(http))
                    if self._end is RunEnd.STOPPED:
                        self._main.cancel()
                    await asyncio.wait([self._main, *helpers], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancel([*helpers, *([self._main] if self._main else []), *self._sentry.tasks])
        for task in (*helpers, self._main, *self._sentry.tasks):
            if not task.cancelled() and (error := task.exception()) is not None:
                raise _first_error(error)
        self._emit(
            DriverEnded(
                end=self._end,
                counts=self._counts(),
                peak_in_flight=self._sentry.peak_in_flight,
                resends=self._resends,
                lag_counts=self._lag.counts,
                lag_max_ms=self._lag.max_ms,
            )
        )

    def stop(self) -> None:
        """End in order; what is in flight is dropped and not told. Call it in the loop's thread."""
        if self._end in {RunEnd.COMPLETE, RunEnd.DRAINED}:
            self._end = RunEnd.STOPPED
        if self._main is not None:
            self._main.cancel()

    def drain(self, reason: str) -> None:
        """Send nothing new; what is in flight ends by itself. Call it in the loop's thread."""
        if self._end is RunEnd.COMPLETE:
            self._end = RunEnd.DRAINED
        self._halted = self._halted or reason

    def halt(self, reason: str) -> None:
        """Send nothing new, end what is silent as stalled. Call it in the loop's thread."""
        if self._end in {RunEnd.COMPLETE, RunEnd.DRAINED}:
            self._end = RunEnd.WEDGED
        self._halted = reason
        self._sentry.end_all()

    def _on_wedge(self, wedge: Wedge) -> None:
        self._emit(wedge)
        self.halt("the server is wedged")

    async def _drive(self, http: HttpClient) -> None:
        limit = self._options.max_concurrency
        slots = asyncio.Semaphore(limit) if limit else None
        async with asyncio.TaskGroup() as group:
            while not self._halted:
                if slots is not None:
                    await slots.acquire()
                    if self._halted:
                        return
                assignment = await self._link.take()
                if assignment is None:
                    return
                assignment = await self._arrived(assignment)
                task = group.create_task(self._session(http, assignment))
                if slots is not None:
                    task.add_done_callback(_releaser(slots))
                # Its first request leaves before the next script is built.
                await asyncio.sleep(0)

    async def _arrived(self, assignment: Assignment) -> Assignment:
        """The assignment, once its session arrives; its request counts as ready from then on."""
        if self._began is None:
            self._began = time.perf_counter()
        offset_s = self._options.arrivals_s.get(assignment.script.session)
        if offset_s is None:
            return assignment
        due = self._began + offset_s
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        return replace(assignment, arrived=due)

    async def _session(self, http: HttpClient, assignment: Assignment) -> None:
        script = assignment.script
        conversation = Conversation(script, assignment.earlier)
        left, reason = 0, ""
        for turn in range(len(script.turns)):
            messages = conversation.messages_for(turn)
            response = None
            if turn not in assignment.done:
                if self._halted:
                    left, reason = len(script.turns) - turn, self._halted
                    break
                result = await self._turn(http, assignment, turn, messages)
                self._emit(result)
                reply = result.reply
                if reply.failure is not None and script.history is History.LIVE:
                    left = len(script.turns) - turn - 1
                    reason = "a turn failed, and the history is live"
                    break
                # Half a reply is no history: after our own hang-up the scripted one stands in.
                response = None if reply.aborted else reply.response
            conversation.add_reply(turn, response)
        self._ended += 1
        self._emit(SessionEnded(session=script.session, turns_left=left, reason=reason))

    async def _turn(
        self, http: HttpClient, assignment: Assignment, turn: int, messages: list[Message]
    ) -> TurnResult:
        script = assignment.script
        ready = time.perf_counter() if turn or assignment.arrived is None else assignment.arrived
        while self._link.backlog() > MAX_BACKLOG:
            await asyncio.sleep(BACKLOG_PAUSE_S)
        body = encode_body(request_body(script, turn, messages, self._options))
        request_id = self._options.request_id(script.session, turn)
        request = ChatRequest(
            body=body,
            stream=script.stream,
            tag=(script.session, turn),
            headers={**dict(self._options.headers), "X-Request-Id": request_id},
            abort_after_tokens=script.turns[turn].abort_after_tokens,
            queue_ms=(time.perf_counter() - ready) * 1000,
        )
        outcome, failures, resends = await self._send(http, request)
        self._turns += 1
        self._resends += resends
        return TurnResult(
            session=script.session,
            turn=turn,
            request_id=request_id,
            reply=outcome.reply,
            messages=len(messages),
            body_bytes=len(body),
            earlier_failures=tuple(failures),
            resends=resends,
        )

    async def _send(
        self, http: HttpClient, request: ChatRequest
    ) -> tuple[Outcome, list[Failure], int]:
        failures: list[Failure] = []
        resends = 0
        while True:
            self._sentry.sending()
            start = time.perf_counter()
            outcome = await chat(http.unkept() if resends else http, request, self._watchdog)
            self._sentry.ended(outcome)
            took_s = time.perf_counter() - start
            if outcome.unanswered and outcome.reused and took_s < STALE_WITHIN_S and not resends:
                resends = 1
                continue
            if len(failures) >= self._options.retries or not _is_retryable(outcome):
                return outcome, failures, resends
            assert outcome.reply.failure is not None
            failures.append(outcome.reply.failure)
            await asyncio.sleep(RETRY_PAUSE_S * 2 ** (len(failures) - 1))

    def _counts(self) -> DriverCounts:
        watches = self._watchdog.watches
        return DriverCounts(
            in_flight=len(watches),
            waiting=sum(1 for watch in watches if watch.first_token is None),
            ended=self._ended,
            turns=self._turns,
            tokens=self._sentry.tokens,
            lag_ms=self._lag.latest_ms,
        )

    async def _report(self) -> None:
        ticks = 0
        while True:
            await asyncio.sleep(self._options.report_interval_s)
            self._emit(self._counts())
            ticks += 1
            if ticks % GC_EVERY_TICKS == 0:
                gc.collect(1)


def _releaser(slots: asyncio.Semaphore) -> Callable[[object], None]:
    return lambda _: slots.release()


def _is_retryable(outcome: Outcome) -> bool:
    failure = outcome.reply.failure
    if failure is None or outcome.watch.first_token is not None:
        return False
    if failure.kind is Label.HTTP_ERROR:
        return failure.http_status in _RETRYABLE_STATUS
    return failure.kind in {Label.CONNECTION_ERROR, Label.TIMEOUT}


@contextlib.contextmanager
def quiet_gc() -> Iterator[None]:
    """No collection of old objects inside: one stalls every stream for 20 to 70 ms."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def raise_file_limit() -> None:
    """Let this process open as many sockets as it may: one a session."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _first_error(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

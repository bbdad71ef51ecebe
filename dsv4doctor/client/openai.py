"""One chat request -> one `Reply`, whatever the server does."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from dsv4doctor.client.accumulate import Accumulator, whole_reply
from dsv4doctor.client.chunk import NotJson, decode_text
from dsv4doctor.client.encoding import decoder_for
from dsv4doctor.client.http import ERROR_BODY_BYTES, HttpClient, ReplyStream
from dsv4doctor.client.http_errors import HttpFailure, mapped_errors
from dsv4doctor.client.sse import EventTooLong, SseReader
from dsv4doctor.client.watch import Watch, Watchdog
from dsv4doctor.client.words import error_text, http_failure, one_line
from dsv4doctor.exchange import Response
from dsv4doctor.label import Label
from dsv4doctor.reply import Failure, Reply, Timing, Usage

# A reply of 100,000 tokens is about 40 MB of events; past this the server is not answering us.
MAX_BODY_BYTES = 64 * 1024 * 1024

# What is kept of a reply's bytes as evidence: a 10,000-token reply in full.
KEPT_RAW_BYTES = 4 * 1024 * 1024

# Far more text than any model writes in one reply (some two million tokens); looked at every so
# many bytes, so that it costs nothing per event.
MAX_OUTPUT_CHARS = 8 * 1024 * 1024
SIZE_CHECK_BYTES = 8 * 1024 * 1024

_SSE_STARTS = (b"data:", b"event:", b"id:", b":", b"\xef\xbb\xbfdata:")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One request. `body` is the JSON as sent; `abort_after_tokens` hangs up after that many
    deltas with output. `queue_ms` is what it has already waited in this client."""

    body: bytes
    stream: bool
    tag: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    abort_after_tokens: int | None = None
    queue_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A reply, and what the connection did: `unanswered` when it closed before any answer; `watch`
    knows the times and whether the connection had served before."""

    reply: Reply
    watch: Watch
    unanswered: bool = False

    @property
    def reused(self) -> bool:
        return self.watch.reused


def encode_body(body: Mapping[str, Any]) -> bytes:
    """The body as JSON; lone surrogates (a sick reply sent back in a history) become escapes."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return json.dumps(body, separators=(",", ":")).encode("ascii")


async def chat(http: HttpClient, request: ChatRequest, watchdog: Watchdog) -> Outcome:
    """Send `request` and read its reply to the end, to a deadline or to its abort."""
    watch = Watch(request.tag, stream=request.stream)
    intake = _Intake(request, watch)
    unanswered = False
    failure: Failure | None = None
    try:
        with watchdog.watching(watch):
            await intake.exchange(http)
    except HttpFailure as problem:
        unanswered = problem.unanswered and not intake.raw
        failure = problem.failure
    except asyncio.CancelledError:
        if not watch.is_ended:
            raise
    if watch.is_ended:
        # The watchdog cancelled this task, once; anybody else's cancellation goes on upwards.
        task = asyncio.current_task()
        if task is not None and task.uncancel() > 0:
            raise asyncio.CancelledError
        failure = watch.verdict
    reply = intake.reply(failure)
    return Outcome(reply=reply, watch=watch, unanswered=unanswered)


class _Intake:
    """Everything received for one request, usable at any moment of its life."""

    def __init__(self, request: ChatRequest, watch: Watch) -> None:
        self.request = request
        self.watch = watch
        self.raw = bytearray()
        self.received_bytes = 0
        self.aborted = False
        self._next_size_check = SIZE_CHECK_BYTES
        # The wall clock at `watch.sent`: with a pause between the two, ends would seem later.
        since_s = time.perf_counter() - watch.sent
        self._sent_unix = time.time() - since_s
        self._last_read = watch.sent
        self._gaps: list[float] = []
        self._events = Accumulator()
        self._whole: tuple[Response, Usage, Any] | None = None
        self._is_whole = False
        self._problem: Failure | None = None

    async def exchange(self, http: HttpClient) -> None:
        """Send the request and read its answer.

        Raises:
            HttpFailure: if the connection fails.
        """
        reply = await http.open(
            "POST",
            http.endpoint.chat_url,
            content=self.request.body,
            headers={"Content-Type": "application/json", **self.request.headers},
            observer=self.watch,
        )
        try:
            with mapped_errors(http.endpoint, 0.0):
                if reply.status != 200:
                    body = await reply.read(ERROR_BODY_BYTES)
                    self._keep(body)
                    self._problem = http_failure(reply.status, body)
                elif self.request.stream:
                    await self._read_stream(reply)
                else:
                    self._is_whole = True
                    await self._read_whole(reply, b"")
        finally:
            await reply.close()

    async def _read_stream(self, reply: ReplyStream) -> None:
        decoder = decoder_for(reply.content_encoding)
        chunks = reply.chunks()
        feed = SseReader()
        is_checked = False
        async for chunk in chunks:
            # One time-stamp a read, before any parsing: it is when the tokens came.
            now = reply.arrived(time.perf_counter())
            self._last_read = now
            self._keep(chunk)
            for piece in (chunk,) if decoder is None else decoder.decode(chunk):
                if not is_checked:
                    is_checked = True
                    if not looks_like_events(reply.content_type, piece):
                        await self._read_unstreamed(reply, piece)
                        return
                if not self._take(feed, piece, now):
                    return
        if not self._events.saw_done:
            for event in feed.finish():
                self._events.add(*event)

    def _take(self, feed: SseReader, piece: bytes, now: float) -> bool:
        """Take one piece of the stream; False when nothing more is to be read."""
        watch, events = self.watch, self._events
        try:
            completed = feed.feed(piece)
        except EventTooLong as problem:
            return self._give_up(str(problem))
        for data, name in completed:
            if not events.add(data, name):
                continue
            if watch.last_token is None:
                watch.first_token = now
            else:
                self._gaps.append(now - watch.last_token)
            watch.last_token = now
            watch.tokens = events.tokens
            if events.tokens == self.request.abort_after_tokens:
                self.aborted = True
                return False
        if events.saw_done and watch.said_done is None:
            watch.said_done = now
        return self.received_bytes < self._next_size_check or self._is_of_sane_size()

    def _is_of_sane_size(self) -> bool:
        self._next_size_check += SIZE_CHECK_BYTES
        if self._events.output_chars() > MAX_OUTPUT_CHARS:
            return self._give_up(f"the reply exceeds {MAX_OUTPUT_CHARS >> 20} Mi characters")
        if self.received_bytes > MAX_BODY_BYTES:
            return self._give_up(f"the reply exceeds {MAX_BODY_BYTES >> 20} MiB; given up")
        return True

    async def _read_unstreamed(self, reply: ReplyStream, first: bytes) -> None:
        """A stream was asked for and something else came: a whole JSON reply, or no reply."""
        if not first.lstrip().startswith(b"{"):
            shown = one_line(decode_text(first[:200]))[:80]
            kind = reply.content_type.split(";")[0] or "a body of no stated type"
            message = f"answered {kind} instead of events: {shown}"
            self._problem = replace(_protocol_error(message), is_stranger=True)
            return
        self._is_whole = True
        await self._read_whole(reply, first)

    async def _read_whole(self, reply: ReplyStream, first: bytes) -> None:
        decoder = decoder_for(reply.content_encoding)
        body = bytearray(first)
        async for chunk in reply.chunks():
            self._last_read = reply.arrived(time.perf_counter())
            self._keep(chunk)
            for piece in (chunk,) if decoder is None else decoder.decode(chunk):
                body += piece
            if len(body) > MAX_BODY_BYTES:
                self._give_up(f"the reply exceeds {MAX_BODY_BYTES >> 20} MiB; given up")
                return
        try:
            self._whole = whole_reply(body)
        except NotJson as problem:
            shown = one_line(decode_text(body[:80]))
            self._problem = _protocol_error(f"the reply is no JSON object ({problem}): {shown}")

    def _keep(self, chunk: bytes) -> None:
        self.received_bytes += len(chunk)
        room = KEPT_RAW_BYTES - len(self.raw)
        if room > 0:
            self.raw += chunk if len(chunk) <= room else chunk[:room]

    def _give_up(self, message: str) -> bool:
        self._problem = _protocol_error(message)
        return False

    def reply(self, failure: Failure | None) -> Reply:
        """The outcome, given how the exchange ended."""
        events, watch = self._events, self.watch
        if self._whole is not None:
            response, usage, error = self._whole
        else:
            response, usage, error = events.response(), events.usage(), events.error
        if failure is None and not self.aborted:
            failure = self._problem or self._judge(response, error)
        ttft = None if watch.first_token is None else (watch.first_token - watch.sent) * 1000
        return Reply(
            response=response,
            failure=None if self.aborted else failure,
            aborted=self.aborted,
            usage=usage,
            timing=Timing(
                sent_unix=self._sent_unix,
                queue_ms=self.request.queue_ms,
                ttft_ms=ttft,
                itl_ms=tuple(gap * 1000 for gap in self._gaps),
                e2e_latency_ms=(self._last_read - watch.sent) * 1000,
            ),
            raw=bytes(self.raw),
            raw_truncated=self.received_bytes > len(self.raw),
            saw_done=events.saw_done,
        )

    def _judge(self, response: Response, error: Any) -> Failure | None:
        """Why an exchange that ended in order still brought no response."""
        events = self._events
        if error is not None:
            where = "" if self._is_whole else " in mid-stream"
            message = f"the server reported an error{where}: {error_text(error)}"
            return Failure(kind=Label.HTTP_ERROR, message=message, http_status=events.error_code)
        if events.bad_frame is not None:
            return _protocol_error(one_line(events.bad_frame))
        if response.finish_reason == "abort":
            return _protocol_error("the server aborted the request (finish_reason abort)")
        if response.finish_reason is not None:
            return None
        if self._is_whole:
            return _protocol_error("the reply has no choice with a finish_reason")
        if not events.saw_done:
            return _protocol_error(
                f"stream cut: it ended after {events.tokens} pieces without finish_reason or [DONE]"
            )
        if not events.has_output:
            return _protocol_error("the stream says [DONE] without output or finish_reason")
        # The server says it is done: what it sent is judged as it is.
        return None


def looks_like_events(content_type: str, first: bytes) -> bool:
    """True for an event stream, by its type or, where that is wrong or missing, by its bytes."""
    if "text/event-stream" in content_type.lower():
        return True
    return first.lstrip().startswith(_SSE_STARTS)


def _protocol_error(message: str) -> Failure:
    return Failure(kind=Label.PROTOCOL_ERROR, message=message)

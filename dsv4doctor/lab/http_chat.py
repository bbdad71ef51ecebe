"""`/v1/chat/completions` and `/generate`: a request into the rounds, its response to the client."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from aiohttp import HttpVersion11, web

from dsv4doctor.lab.http_frames import (
    EOS_TOKEN_ID,
    WEIGHT_VERSION,
    Json,
    StreamEncoder,
    complete_body,
    completion_tokens,
    error_body,
    usage_of,
)
from dsv4doctor.lab.http_json import BadRequest, json_response, read_json
from dsv4doctor.lab.http_launch import PREFILL, LaunchOptions
from dsv4doctor.lab.http_metrics import Meter
from dsv4doctor.lab.http_pacer import PacedStream, Pacer
from dsv4doctor.lab.http_request import (
    DEFAULT_MAX_TOKENS,
    ChatRequest,
    read_chat_request,
    read_room,
)
from dsv4doctor.lab.output.behaviour import Behaviour
from dsv4doctor.lab.requests import EngineRequest, Generation
from dsv4doctor.lab.rounds import Aborted, Desk, Job

_EVENT_STREAM = "text/event-stream; charset=utf-8"


# What the chat template may add to the text of a request, in tokens, at the very most.
_TEMPLATE_TOKENS = 4096


class PromptCounter(Protocol):
    """How long a prompt is, and how long it may be."""

    @property
    def max_prompt_tokens(self) -> int: ...

    def prompt_tokens(self, request: EngineRequest) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Completions:
    """The generating routes."""

    options: LaunchOptions
    behaviour: Behaviour
    engine: PromptCounter
    rounds: Desk
    pacer: Pacer
    meter: Meter

    async def chat(self, http: web.Request) -> web.StreamResponse:
        """`POST /v1/chat/completions`."""
        try:
            body = await read_json(http)
            chat = read_chat_request(body, self.options)
            request = EngineRequest(
                rid=self._request_id(http.headers.get("X-Request-Id")),
                messages=chat.messages,
                tools=chat.tools,
                tool_choice=chat.tool_choice,
                max_tokens=chat.max_tokens,
                room=read_room(body, self.options),
            )
            await self._check_length(http, request)
        except BadRequest as refused:
            return json_response(error_body(str(refused), refused.kind, 400), status=400)
        # A prefill engine's one token is nothing to stream.
        is_streamed = chat.stream and self.options.disaggregation_mode != PREFILL
        return await self._answer(
            http, request, chat if is_streamed else None, lambda g: self._chat_body(g, chat)
        )

    async def generate(self, http: web.Request) -> web.StreamResponse:
        """`POST /generate`: raw text in and out, past any parser; not streamed."""
        try:
            body = await read_json(http)
            request = self._read_generate(body)
            await self._check_length(http, request)
        except BadRequest as refused:
            return json_response(_generate_error(str(refused)), status=400)
        return await self._answer(http, request, None, generate_body)

    async def _answer(
        self,
        http: web.Request,
        request: EngineRequest,
        stream: ChatRequest | None,
        body_of: Callable[[Generation], Json],
    ) -> web.StreamResponse:
        """Wait for the round, then deliver; a client that hangs up cancels this task."""
        job = self.rounds.submit(request)
        try:
            try:
                generation = await job.answer
            except Aborted:
                generation = Generation(rid=request.rid, prompt_tokens=0, finish_reason="abort")
            if stream is not None:
                return await self._stream(http, job, generation, stream)
            return await self._complete(job, generation, body_of)
        except asyncio.CancelledError:
            self.meter.aborted += self.rounds.abort(job)
            raise
        finally:
            self.rounds.end(job)

    async def _complete(
        self, job: Job, generation: Generation, body_of: Callable[[Generation], Json]
    ) -> web.Response:
        if generation.finish_reason != "abort":
            await self.pacer.pause(len(generation.pieces))
            self._count(job, generation, completion_tokens(generation))
        return json_response(body_of(generation))

    async def _stream(
        self, http: web.Request, job: Job, generation: Generation, chat: ChatRequest
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": _EVENT_STREAM})
        if http.version >= HttpVersion11:
            response.enable_chunked_encoding()
        await response.prepare(http)
        encoder = StreamEncoder(chat, job.request.rid)
        if generation.finish_reason == "abort":
            await response.write(encoder.abort_tail(generation, 0))
            return response
        # Two milliseconds each, so not on the event loop: it has other streams to pace.
        steps = await self.rounds.in_engine_thread(encoder.encode, generation, self.behaviour)
        stream = PacedStream(steps, _chunk_writer(http))
        job.stop_delivery = lambda: self.pacer.stop(stream)
        self.pacer.start(stream)
        try:
            await stream.ended.wait()
        finally:
            self.pacer.stop(stream)
            tokens = min(stream.sent, completion_tokens(generation))
            self._count(job, generation, tokens)
        if stream.sent < stream.planned:
            await response.write(encoder.abort_tail(generation, stream.sent))
        # Delivered: the next round need not wait for the end of the chunked body.
        self.rounds.end(job)
        await response.write_eof()
        return response

    async def _check_length(self, http: web.Request, request: EngineRequest) -> None:
        """Refuse a prompt that the pool cannot hold; counted only if the body is long enough.

        Raises:
            BadRequest: if it is too long.
        """
        most = self.engine.max_prompt_tokens
        if http.content_length is not None and http.content_length + _TEMPLATE_TOKENS <= most:
            return
        tokens = await self.rounds.in_engine_thread(self.engine.prompt_tokens, request)
        if tokens > most:
            raise BadRequest(
                f"Input length ({tokens} tokens) exceeds the maximum allowed length ({most} "
                "tokens). Use a shorter input or enable --allow-auto-truncate."
            )

    def _count(self, job: Job, generation: Generation, tokens: int) -> None:
        self.meter.count_generation(generation, tokens, time.monotonic() - job.arrived)

    def _chat_body(self, generation: Generation, chat: ChatRequest) -> Json:
        return complete_body(generation, chat, generation.rid, self.behaviour)

    def _request_id(self, given: str | None) -> str:
        """The client's id, made unique among the requests in flight, or a fresh one."""
        if not given:
            return uuid.uuid4().hex
        if self.rounds.is_in_flight(given):
            return f"{uuid.uuid4().hex[:8]}-{given}"
        return given

    def _read_generate(self, body: object) -> EngineRequest:
        if not isinstance(body, Mapping):
            raise BadRequest("the body is not a JSON object")
        text = body.get("text")
        if not isinstance(text, str):
            raise BadRequest("the lab takes `text`, one string, and no token ids")
        if body.get("stream"):
            raise BadRequest("the lab does not stream /generate; use /v1/chat/completions")
        parameters = body.get("sampling_params") or {}
        limit = parameters.get("max_new_tokens") if isinstance(parameters, Mapping) else None
        rid = body.get("rid")
        return EngineRequest(
            rid=self._request_id(rid if isinstance(rid, str) else None),
            messages=[{"role": "user", "content": text}],
            tool_choice="none",
            max_tokens=limit if isinstance(limit, int) and limit > 0 else DEFAULT_MAX_TOKENS,
            room=read_room(body, self.options),
        )


def generate_body(generation: Generation) -> Json:
    """SGLang's native result."""
    stopped = generation.finish_reason == "stop"
    reason: Json = {"type": generation.finish_reason}
    if stopped:
        reason["matched"] = EOS_TOKEN_ID
    usage = usage_of(generation, completion_tokens(generation))
    return {
        "text": generation.text,
        "meta_info": {
            "id": generation.rid,
            "finish_reason": reason,
            "prompt_tokens": usage["prompt_tokens"],
            "completion_tokens": usage["completion_tokens"],
            "cached_tokens": generation.cached_tokens,
            "weight_version": WEIGHT_VERSION,
        },
    }


def _chunk_writer(http: web.Request) -> Callable[[bytes], None]:
    """Writes straight to the transport, as one HTTP chunk: no task switch a frame."""
    chunked = http.version >= HttpVersion11

    def write(data: bytes) -> None:
        transport = http.transport
        if transport is not None and not transport.is_closing():
            transport.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)

    return write


def _generate_error(message: str) -> Json:
    return {"error": {"message": message, "type": "invalid_request_error", "code": 400}}

"""A generation as SGLang puts it on the wire: SSE frames, one step a token, or one JSON object.

Two shapes of chunk exist there and here: the fast one (role, plain content, finish) always has
`reasoning_content` and leaves absent fields out; the one behind a tool parser writes every field,
null or not. The first step holds the role chunk, the last one also finish, usage and `[DONE]`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from dsv4doctor.lab.http_json import encode_json
from dsv4doctor.lab.http_request import ChatRequest
from dsv4doctor.lab.output.behaviour import Behaviour
from dsv4doctor.lab.output.complete import parse_complete
from dsv4doctor.lab.output.markup import CallPiece, Parsed
from dsv4doctor.lab.output.streaming import stream_parser
from dsv4doctor.lab.requests import Generation

DONE = b"data: [DONE]\n\n"
# DeepSeek's end-of-sentence token, the one that ends a healthy response.
EOS_TOKEN_ID = 1
WEIGHT_VERSION = "default"

Json = dict[str, Any]


def completion_tokens(generation: Generation) -> int:
    """Generated tokens; the end token counts although it has no text."""
    return len(generation.pieces) + (generation.finish_reason == "stop")


def usage_of(generation: Generation, tokens: int) -> Json:
    """SGLang's usage object; the cache's part is left out when it is zero."""
    cached = generation.cached_tokens
    return {
        "prompt_tokens": generation.prompt_tokens,
        "total_tokens": generation.prompt_tokens + tokens,
        "completion_tokens": tokens,
        "prompt_tokens_details": {"cached_tokens": cached} if cached else None,
        "reasoning_tokens": 0,
    }


def new_call_id() -> str:
    return f"call_{uuid.uuid4().hex[:24]}"


class StreamEncoder:
    """One streamed response's frames, made before the first is sent."""

    def __init__(self, chat: ChatRequest, rid: str) -> None:
        self._chat = chat
        self._envelope: Json = {
            "id": rid,
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": chat.model,
        }

    def encode(self, generation: Generation, behaviour: Behaviour) -> list[bytes]:
        """The steps of the response, one a generated token (at least one)."""
        parses = self._chat.parses_calls
        parser = stream_parser(behaviour) if parses else None
        steps: list[bytes] = []
        called = False
        for number, piece in enumerate(generation.pieces, start=1):
            usage = usage_of(generation, number) if self._chat.continuous_usage else None
            if parser is None:
                steps.append(self._fast({"content": piece}, usage=usage) if piece else b"")
                continue
            parsed = parser.feed(piece)
            called = called or bool(parsed.calls)
            steps.append(self._parsed(parsed, usage))
        if parser is not None:
            last = parser.finish()
            unsent = parser.unsent_arguments()
            steps.append(self._parsed(last, None) + (self._call(unsent, None) if unsent else b""))
        tail = self._tail(generation, completion_tokens(generation), called=called)
        return _with_ends(self._role(), steps, tail)

    def abort_tail(self, generation: Generation, steps_sent: int) -> bytes:
        """What ends a stream that was aborted after so many steps."""
        role = b"" if steps_sent else self._role()
        sent = min(steps_sent, len(generation.pieces))
        return role + self._finish("abort", None) + self._usage(generation, sent) + DONE

    def _tail(self, generation: Generation, tokens: int, *, called: bool) -> bytes:
        reason = generation.finish_reason
        matched = EOS_TOKEN_ID if reason == "stop" else None
        shown = "tool_calls" if called and reason == "stop" else reason
        return self._finish(shown, matched) + self._usage(generation, tokens) + DONE

    def _role(self) -> bytes:
        return self._fast({"role": "assistant", "content": ""})

    def _finish(self, reason: str, matched: int | None) -> bytes:
        return self._fast({}, finish_reason=reason, matched_stop=matched)

    def _usage(self, generation: Generation, tokens: int) -> bytes:
        if not self._chat.include_usage:
            return b""
        usage = usage_of(generation, tokens)
        return _frame({**self._envelope, "choices": [], "usage": usage})

    def _parsed(self, parsed: Parsed, usage: Json | None) -> bytes:
        frames = self._slow({"content": parsed.text}, usage) if parsed.text else b""
        for call in parsed.calls:
            frames += self._call(call, usage)
        return frames

    def _call(self, piece: CallPiece, usage: Json | None) -> bytes:
        call = {
            "id": new_call_id() if piece.name else None,
            "index": piece.index,
            "type": "function",
            "function": {"name": piece.name, "arguments": piece.arguments},
        }
        return self._slow({"tool_calls": [call]}, usage)

    def _fast(
        self,
        delta: Json,
        *,
        finish_reason: str | None = None,
        matched_stop: int | None = None,
        usage: Json | None = None,
    ) -> bytes:
        choice = _choice({"reasoning_content": None, **delta}, finish_reason, matched_stop)
        chunk = {**self._envelope, "choices": [choice]}
        if usage is not None:
            chunk["usage"] = usage
        return _frame(chunk)

    def _slow(self, delta: Json, usage: Json | None) -> bytes:
        full = {"role": None, "content": None, "reasoning_content": None, "tool_calls": None}
        choice = _choice({**full, **delta}, None, None)
        return _frame({**self._envelope, "choices": [choice], "usage": usage})


def complete_body(
    generation: Generation, chat: ChatRequest, rid: str, behaviour: Behaviour
) -> Json:
    """The response without streaming. `content` is "" and never null, also beside tool calls."""
    text = generation.text
    calls: list[Json] | None = None
    reason = generation.finish_reason
    matched = EOS_TOKEN_ID if reason == "stop" else None
    if chat.parses_calls:
        parsed = parse_complete(text, chat.tool_names, behaviour)
        text = parsed.text
        calls = [_complete_call(piece) for piece in parsed.calls] or None
        if calls and reason == "stop":
            reason, matched = "tool_calls", None
    message = {
        "role": "assistant",
        "content": text,
        "reasoning_content": None,
        "tool_calls": calls,
    }
    return {
        "id": rid,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": chat.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": reason,
                "matched_stop": matched,
            }
        ],
        "usage": usage_of(generation, completion_tokens(generation)),
        "metadata": {"weight_version": WEIGHT_VERSION},
    }


def error_body(message: str, kind: str, code: int) -> Json:
    """SGLang's error object: flat, not inside `error`, before a stream has begun."""
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def _complete_call(piece: CallPiece) -> Json:
    return {
        "id": new_call_id(),
        "index": piece.index,
        "type": "function",
        "function": {"name": piece.name, "arguments": piece.arguments},
    }


def _choice(delta: Json, finish_reason: str | None, matched_stop: int | None) -> Json:
    return {
        "index": 0,
        "delta": delta,
        "logprobs": None,
        "finish_reason": finish_reason,
        "matched_stop": matched_stop,
    }


def _frame(chunk: Mapping[str, Any]) -> bytes:
    return b"data: " + encode_json(chunk) + b"\n\n"


def _with_ends(role: bytes, steps: list[bytes], tail: bytes) -> list[bytes]:
    """The role chunk rides on the first step, the end on the last."""
    if not steps:
        return [role + tail]
    steps[0] = role + steps[0]
    steps[-1] += tail
    return steps

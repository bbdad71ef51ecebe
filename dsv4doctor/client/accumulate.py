"""Stream frames -> one response, merged as SGLang, vLLM and OpenAI emit them.

Tool calls are keyed by choice and tool index; id and name may come late or again; null, missing
and "" mean the same; `[DONE]` or a finish chunk after an error frame proves nothing.
"""

from __future__ import annotations

import json
from typing import Any

from dsv4doctor.client.chunk import CallDelta, Choice, Chunk, NotJson, decode_chunk, load_object
from dsv4doctor.exchange import Response, ToolCall
from dsv4doctor.reply import Usage

DONE = b"[DONE]"


class _Call:
    __slots__ = ("arguments", "id", "index", "name", "type")

    def __init__(self, index: Any) -> None:
        self.index = index
        self.id: Any = None
        self.type: Any = None
        self.name: Any = None
        self.arguments: list[Any] = []

    def is_another(self, delta: CallDelta, name: Any) -> bool:
        """True when a server reuses one index for the next call.

        A new id alone proves nothing (some servers make one up for every piece), nor does a
        repeated name; a new id with a name after arguments that are already whole does.
        """
        if not name or not self.name or not delta.id or delta.id == self.id:
            return False
        return _is_whole_json(join_text(self.arguments))

    def tool_call(self) -> ToolCall:
        return ToolCall(
            id=self.id,
            name=self.name,
            arguments=join_text(self.arguments),
            index=self.index,
            type=self.type,
        )


class Accumulator:
    """Collects one streamed reply. `tokens` counts the deltas that carried anything."""

    def __init__(self) -> None:
        self.saw_done = False
        self.finish_reason: str | None = None
        self.error: Any = None
        self.error_code: int | None = None
        self.bad_frame: str | None = None
        self.frames = 0
        self.tokens = 0
        self._usage: Any = None
        self._content: list[Any] = []
        self._reasoning: list[Any] = []
        self._calls: list[_Call] = []
        self._open: dict[Any, _Call] = {}

    def add(self, data: bytes, name: bytes = b"") -> bool:
        """Take one event; True when it carried content, reasoning or a piece of a call."""
        if data == DONE:
            self.saw_done = True
            return False
        if name and name not in {b"message", b"error"}:
            return False
        self.frames += 1
        try:
            chunk = decode_chunk(data)
        except NotJson as problem:
            if self.bad_frame is None:
                self.bad_frame = f"frame {self.frames} is no JSON object: {problem}"
            return False
        if chunk.error or chunk.object == "error" or name == b"error":
            self._take_error(chunk, data)
        if chunk.usage is not None:
            self._usage = chunk.usage
        carried = False
        for choice in chunk.choices or ():
            # One choice was asked for; a stray other one must not be mixed into the reply.
            if choice.index is None or choice.index == 0:
                carried = self._take_choice(choice) or carried
        self.tokens += carried
        return carried

    @property
    def has_output(self) -> bool:
        return bool(self._content or self._reasoning or self._calls)

    def output_chars(self) -> int:
        """Characters of output held, to bound them."""
        held = [self._content, self._reasoning, *(call.arguments for call in self._calls)]
        return sum(len(piece) for pieces in held for piece in pieces if isinstance(piece, str))

    def usage(self) -> Usage:
        return usage_of(self._usage)

    def response(self) -> Response:
        """What has been received up to now, in the contract's form."""
        return Response(
            content=join_text(self._content) if self._content else None,
            reasoning_content=join_text(self._reasoning) if self._reasoning else None,
            tool_calls=tuple(call.tool_call() for call in self._calls) or None,
            finish_reason=self.finish_reason,
        )

    def _take_choice(self, choice: Choice) -> bool:
        if choice.finish_reason:
            self.finish_reason = str(choice.finish_reason)
        delta = choice.delta
        if delta is None:
            return False
        carried = False
        if delta.content:
            self._content.append(delta.content)
            carried = True
        if reasoning := delta.reasoning_content or delta.reasoning:
            self._reasoning.append(reasoning)
            carried = True
        for call in delta.tool_calls or ():
            carried = self._take_call(call) or carried
        return carried

    def _take_call(self, delta: CallDelta) -> bool:
        function = delta.function
        name = function.name if function is not None else None
        arguments = function.arguments if function is not None else None
        call = self._find(delta, name)
        if delta.id and not call.id:
            call.id = delta.id
        if delta.type and not call.type:
            call.type = delta.type
        if name and not call.name:
            call.name = name
        if arguments:
            call.arguments.append(arguments)
        return bool(arguments or name)

    def _find(self, delta: CallDelta, name: Any) -> _Call:
        """The call that a piece belongs to; without an index: the last, unless a new one begins."""
        key = delta.index if isinstance(delta.index, int) else None
        call = self._open.get(key)
        if key is None and call is None and self._calls and not name:
            call = self._calls[-1]
        if call is None or call.is_another(delta, name):
            call = _Call(delta.index)
            self._calls.append(call)
            self._open[key] = call
        return call

    def _take_error(self, chunk: Chunk, data: bytes) -> None:
        if self.error is not None:
            return
        error = chunk.error
        if error is None or error is True:
            error = chunk.message or data.decode("utf-8", "replace")
        code = error.get("code") if isinstance(error, dict) else chunk.code
        self.error = error
        self.error_code = code if type(code) is int else None


def whole_reply(data: bytes | bytearray) -> tuple[Response, Usage, Any]:
    """Response, usage and error of a reply that was not streamed.

    Raises:
        NotJson: if the body is no JSON object.
    """
    document = load_object(data)
    error = document.get("error")
    if error is None and document.get("object") == "error":
        error = document.get("message") or "the server reported an error without a message"
    choices = document.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    choice = choice if isinstance(choice, dict) else {}
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    finish = choice.get("finish_reason")
    response = Response(
        content=message.get("content"),
        reasoning_content=message.get("reasoning_content") or message.get("reasoning"),
        tool_calls=_whole_calls(message.get("tool_calls")),
        finish_reason=None if finish is None else str(finish),
    )
    return response, usage_of(document.get("usage")), error


def _whole_calls(calls: Any) -> tuple[ToolCall, ...] | None:
    if not calls:
        return None
    found = []
    for call in calls if isinstance(calls, list) else [calls]:
        if not isinstance(call, dict):
            found.append(ToolCall(arguments=call))
            continue
        function = call.get("function")
        inner = function if isinstance(function, dict) else {"arguments": function}
        found.append(
            ToolCall(
                id=call.get("id"),
                name=inner.get("name"),
                arguments=inner.get("arguments"),
                index=call.get("index"),
                type=call.get("type"),
            )
        )
    return tuple(found)


def usage_of(usage: Any) -> Usage:
    """Token counts of a usage object; what it does not say, or says oddly, is None."""
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(cached),
    )


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def join_text(pieces: list[Any]) -> Any:
    """The pieces as one text; a lone piece that is no text stays what it is."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    if len(pieces) == 1:
        return pieces[0]
    return "".join(piece if isinstance(piece, str) else json.dumps(piece) for piece in pieces)


def _is_whole_json(text: Any) -> bool:
    try:
        json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return False
    return True

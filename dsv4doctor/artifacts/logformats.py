"""What one JSON value of a log is: a contract record, an OpenAI reply, a gateway's entry, a
server's.

Pure: values in, records in the contract's form out. A record may carry `raw_text` instead of a
response: a model's output before any parser, which the reader splits itself. Nothing here raises
on odd input; a value of no known shape gives no record.

Sources: OpenAI's chat completion and batch formats; SGLang's `tokenizer_manager` request log
(`--log-requests`) and `/generate` replies; vLLM's `logger.py` (`--enable-log-outputs`);
Anthropic's messages format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Record = dict[str, Any]

_REQUEST_KEYS = ("request", "req", "request_body", "requestBody", "input", "body")
_RESPONSE_KEYS = ("response", "resp", "response_body", "responseBody", "output", "result", "out")
_BODY_KEYS = ("body", "json", "data", "content", "text")
_REPLY_MEMBERS = frozenset(
    {"content", "reasoning_content", "reasoning", "tool_calls", "finish_reason"}
)
_KEPT_FROM_REQUEST = ("tools", "tool_choice", "parallel_tool_calls", "model")
# Anthropic's stop reasons in OpenAI's words.
_STOP_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
}
_MAX_UNWRAP = 4


def records_in(value: Any) -> Iterator[Record]:
    """The records that one JSON value holds; none if it is of no known shape."""
    if isinstance(value, Mapping):
        yield from _from_object(value)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for item in value:
            yield from records_in(item) if isinstance(item, Mapping) else ()


def is_chunk(value: Any) -> bool:
    """True for one piece of a streamed reply."""
    if not isinstance(value, Mapping):
        return False
    if value.get("object") == "chat.completion.chunk":
        return True
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first, Mapping) and "delta" in first and "message" not in first


def _from_object(value: Mapping[str, Any]) -> Iterator[Record]:
    if _is_contract_record(value):
        yield dict(value)
        return
    if "choices" in value:
        yield from _from_reply(value, {}, value)
        return
    if value.get("type") == "message" and isinstance(value.get("content"), list):
        yield _anthropic(value, {}, value)
        return
    if "text" in value and isinstance(value.get("meta_info"), Mapping):
        yield _native(value, {}, value)
        return
    request = _request_of(value)
    for key in _RESPONSE_KEYS:
        if value.get(key) is not None:
            reply = _unwrapped(value[key])
            found = list(_from_any_reply(reply, request, value))
            if found:
                yield from found
                return
    if (error := _error_of(value)) is not None:
        yield {**_base(value), "response": None, "failure": error}


def _is_contract_record(value: Mapping[str, Any]) -> bool:
    reply = value.get("response")
    if isinstance(reply, Mapping):
        return bool(_REPLY_MEMBERS & reply.keys()) and "choices" not in reply
    return "response" in value and isinstance(value.get("failure"), Mapping)


def _request_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request's body, wherever a gateway keeps it; the entry itself where it holds messages."""
    for key in _REQUEST_KEYS:
        body = _unwrapped(value.get(key))
        if isinstance(body, Mapping) and (
            "messages" in body or "tools" in body or "prompt" in body
        ):
            return body
    obj = value.get("obj")
    if isinstance(obj, Mapping):
        return obj
    return value if "messages" in value else {}


def _unwrapped(value: Any, depth: int = 0) -> Any:
    """A body out of its envelope: a JSON string is decoded, `{"status": 200, "body": …}` opened."""
    if depth >= _MAX_UNWRAP:
        return value
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return _unwrapped(json.loads(value), depth + 1)
        except (ValueError, RecursionError):
            return value
    if isinstance(value, Mapping) and not (value.keys() & {"choices", "messages", "meta_info"}):
        for key in _BODY_KEYS:
            inner = value.get(key)
            if isinstance(inner, Mapping) or (isinstance(inner, str) and _is_body(inner)):
                return _unwrapped(inner, depth + 1)
    return value


def _is_body(text: str) -> bool:
    """True for a string that holds a JSON object or a captured event stream."""
    return text.lstrip().startswith(("{", "data:", "event:", ": "))


def _from_any_reply(
    reply: Any, request: Mapping[str, Any], entry: Mapping[str, Any]
) -> Iterator[Record]:
    if isinstance(reply, str) and "data:" in reply:
        assembler = ChunkAssembler()
        for line in reply.splitlines():
            assembler.feed_line(line)
        for built in assembler.finish():
            yield {**built, **_base(entry), **_asked(request)}
        return
    if isinstance(reply, list):
        assembler = ChunkAssembler()
        for item in reply:
            assembler.feed(item)
        for built in assembler.finish():
            yield {**built, **_base(entry), **_asked(request)}
        return
    if not isinstance(reply, Mapping):
        return
    if "choices" in reply:
        yield from _from_reply(reply, request, entry)
    elif reply.get("type") == "message" and isinstance(reply.get("content"), list):
        yield _anthropic(reply, request, entry)
    elif "text" in reply and isinstance(reply.get("meta_info"), Mapping):
        yield _native(reply, request, entry)
    elif (error := _error_of(reply)) is not None:
        yield {**_base(entry), **_asked(request), "response": None, "failure": error}


def _from_reply(
    reply: Mapping[str, Any], request: Mapping[str, Any], entry: Mapping[str, Any]
) -> Iterator[Record]:
    choices = reply.get("choices")
    for number, choice in enumerate(choices if isinstance(choices, list) else ()):
        if not isinstance(choice, Mapping):
            continue
        record = {**_base(reply), **_base(entry), **_asked(request), **_usage(reply)}
        if number:
            record["id"] = f"{record.get('id', '')}#{number}"
        message = choice.get("message")
        if isinstance(message, Mapping):
            record["response"] = {**message, "finish_reason": choice.get("finish_reason")}
            yield record
        elif isinstance(choice.get("text"), str):
            record["raw_text"] = choice["text"]
            record["finish_reason"] = choice.get("finish_reason")
            yield record


def _native(
    reply: Mapping[str, Any], request: Mapping[str, Any], entry: Mapping[str, Any]
) -> Record:
    """SGLang's `/generate`: text before any parser, and the finish reason as an object."""
    info = reply["meta_info"]
    finish = info.get("finish_reason")
    kind = finish.get("type") if isinstance(finish, Mapping) else finish
    record = {**_base(entry), **_asked(request), "raw_text": reply["text"], "finish_reason": kind}
    if "id" not in record and isinstance(info.get("id"), str):
        record["id"] = info["id"]
    if isinstance(info.get("completion_tokens"), int):
        record["completion_tokens"] = info["completion_tokens"]
    return record


def _anthropic(
    reply: Mapping[str, Any], request: Mapping[str, Any], entry: Mapping[str, Any]
) -> Record:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Record] = []
    for part in reply["content"]:
        if not isinstance(part, Mapping):
            continue
        if part.get("type") == "text":
            texts.append(str(part.get("text", "")))
        elif part.get("type") == "thinking":
            thoughts.append(str(part.get("thinking", "")))
        elif part.get("type") == "tool_use":
            arguments = json.dumps(part.get("input"), ensure_ascii=False)
            function = {"name": part.get("name"), "arguments": arguments}
            calls.append({"id": part.get("id"), "type": "function", "function": function})
    reason = reply.get("stop_reason")
    return {
        **_base(reply),
        **_base(entry),
        **_asked(request),
        "response": {
            "content": "".join(texts) if texts else None,
            "reasoning_content": "".join(thoughts) if thoughts else None,
            "tool_calls": calls or None,
            "finish_reason": _STOP_REASONS.get(reason, reason) if isinstance(reason, str) else None,
        },
    }


_BASE_KEYS = (
    "id", "model", "time", "timestamp", "ts", "@timestamp", "created", "created_at", "start_time",
    "startTime", "sent_unix", "host", "hostname", "server", "backend", "node", "base_url",
    "system_fingerprint", "session", "turn", "rid", "request_id", "custom_id", "trace_id",
)  # fmt: skip


def _base(value: Mapping[str, Any]) -> Record:
    """Who, when and where, as far as an entry says it at its top level."""
    found = {key: value[key] for key in _BASE_KEYS if value.get(key) is not None}
    if "id" not in found:
        for key in ("custom_id", "request_id", "rid", "trace_id"):
            if key in found:
                found["id"] = found[key]
                break
    return found


def _asked(request: Mapping[str, Any]) -> Record:
    """The request's side of a record: last user message, tools, tool choice, limit."""
    asked = {key: request[key] for key in _KEPT_FROM_REQUEST if request.get(key) is not None}
    prompt = _last_user_message(request.get("messages"))
    if prompt is None and isinstance(request.get("prompt"), str):
        prompt = request["prompt"]
    if prompt is not None:
        asked["prompt"] = prompt
    limit = request.get("max_completion_tokens", request.get("max_tokens"))
    if limit is not None:
        asked["max_tokens"] = limit
    return asked


def _last_user_message(messages: Any) -> str | None:
    if not isinstance(messages, list):
        return None
    for message in reversed(messages):
        if isinstance(message, Mapping) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            if isinstance(content, list):
                parts = (p.get("text") for p in content if isinstance(p, Mapping))
                return "\n".join(p for p in parts if isinstance(p, str))
    return None


def _usage(reply: Mapping[str, Any]) -> Record:
    usage = reply.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, Mapping) else None
    return {"completion_tokens": tokens} if isinstance(tokens, int) else {}


def _error_of(value: Mapping[str, Any]) -> Record | None:
    error = value.get("error")
    if not error:
        return None
    message = error.get("message") if isinstance(error, Mapping) else error
    status = value.get("status_code", value.get("status"))
    return {
        "kind": "http_error",
        "message": str(message)[:400],
        "http_status": status if isinstance(status, int) else None,
    }


class ChunkAssembler:
    """Streamed pieces put together again, one reply per id and choice, in order of arrival."""

    def __init__(self) -> None:
        self._open: dict[tuple[Any, int], Record] = {}

    def feed_line(self, line: str) -> bool:
        """Take one line of an event stream; True at the stream's end (`[DONE]`)."""
        if not line.startswith("data:"):
            return False
        data = line[5:].strip()
        if data == "[DONE]":
            return True
        try:
            self.feed(json.loads(data))
        except (ValueError, RecursionError):
            return False
        return False

    def feed(self, chunk: Any) -> None:
        """Take one decoded piece; anything else than an object with choices is ignored."""
        if not isinstance(chunk, Mapping) or not isinstance(chunk.get("choices"), list):
            return
        for choice in chunk["choices"]:
            if not isinstance(choice, Mapping):
                continue
            place = choice.get("index")
            index = place if isinstance(place, int) else 0
            key = (chunk.get("id"), index)
            record = self._open.setdefault(key, {**_base(chunk), "response": _blank()})
            delta = choice.get("delta")
            _merge(record["response"], delta if isinstance(delta, Mapping) else {})
            if isinstance(choice.get("finish_reason"), str):
                record["response"]["finish_reason"] = choice["finish_reason"]

    def finish(self) -> list[Record]:
        """Everything that was put together so far; the assembler is empty afterwards."""
        built = list(self._open.values())
        self._open.clear()
        for record in built:
            reply = record["response"]
            for member in ("content", "reasoning_content"):
                reply[member] = "".join(reply[member]) if reply[member] else None
            calls = reply["tool_calls"]
            reply["tool_calls"] = [_closed(call) for call in calls.values()] or None
        return built

    @property
    def is_empty(self) -> bool:
        return not self._open


def _blank() -> Record:
    return {"content": [], "reasoning_content": [], "tool_calls": {}, "finish_reason": None}


def _merge(reply: Record, delta: Mapping[str, Any]) -> None:
    if isinstance(delta.get("content"), str):
        reply["content"].append(delta["content"])
    thought = delta.get("reasoning_content") or delta.get("reasoning")
    if isinstance(thought, str):
        reply["reasoning_content"].append(thought)
    calls = delta.get("tool_calls")
    for piece in calls if isinstance(calls, list) else ():
        if isinstance(piece, Mapping):
            _merge_call(reply["tool_calls"], piece)


def _merge_call(calls: dict[Any, Record], piece: Mapping[str, Any]) -> None:
    place = piece.get("index")
    key: Any = place if isinstance(place, int) else len(calls)
    call = calls.get(key)
    # SGLang has sent a second call under the first one's index: a new id is a new call.
    if call is not None and piece.get("id") and call["id"] not in (None, piece["id"]):
        key = (key, piece["id"])
        call = calls.get(key)
    if call is None:
        call = calls[key] = {
            "id": None,
            "type": None,
            "index": place,
            "name": None,
            "arguments": [],
        }
    function = piece.get("function")
    function = function if isinstance(function, Mapping) else {}
    call["id"] = call["id"] or piece.get("id")
    call["type"] = call["type"] or piece.get("type")
    if function.get("name"):
        call["name"] = function["name"] if call["name"] is None else call["name"]
    if isinstance(function.get("arguments"), str):
        call["arguments"].append(function["arguments"])


def _closed(call: Record) -> Record:
    function = {"name": call["name"], "arguments": "".join(call["arguments"])}
    return {"id": call["id"], "type": call["type"], "index": call["index"], "function": function}

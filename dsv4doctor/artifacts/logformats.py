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

from dsv4doctor.artifacts.logchunks import ChunkAssembler, Record, base_of

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
    if type(value) is dict or isinstance(value, Mapping):
        yield from _from_object(value)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for item in value:
            yield from records_in(item) if isinstance(item, Mapping) else ()


def _from_object(value: Mapping[str, Any]) -> Iterator[Record]:
    if _is_contract_record(value):
        yield dict(value)
        return
    if "choices" in value:
        yield from _from_reply(value, {}, value)
        return
    if _is_anthropic(value):
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
        yield {**base_of(value), "response": None, "failure": error}


def _is_contract_record(value: Mapping[str, Any]) -> bool:
    reply = value.get("response")
    if type(reply) is dict or isinstance(reply, Mapping):
        return bool(_REPLY_MEMBERS & reply.keys()) and not _is_body_of_another(reply)
    return "response" in value and isinstance(value.get("failure"), Mapping)


def _is_body_of_another(reply: Mapping[str, Any]) -> bool:
    """True for a gateway's `response` that only shares a member's name with the contract's: a
    reply in OpenAI's or Anthropic's form, or a capture that keeps its body in `content`."""
    if "choices" in reply or _is_anthropic(reply):
        return True
    return isinstance(reply.get("content"), Mapping) and "finish_reason" not in reply


def _is_anthropic(reply: Mapping[str, Any]) -> bool:
    return reply.get("type") == "message" and isinstance(reply.get("content"), list)


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
            yield {**built, **base_of(entry), **_asked(request)}
        return
    if isinstance(reply, list):
        assembler = ChunkAssembler()
        for item in reply:
            assembler.feed(item)
        for built in assembler.finish():
            yield {**built, **base_of(entry), **_asked(request)}
        return
    if not isinstance(reply, Mapping):
        return
    if "choices" in reply:
        yield from _from_reply(reply, request, entry)
    elif _is_anthropic(reply):
        yield _anthropic(reply, request, entry)
    elif "text" in reply and isinstance(reply.get("meta_info"), Mapping):
        yield _native(reply, request, entry)
    elif (error := _error_of(reply)) is not None:
        yield {**base_of(entry), **_asked(request), "response": None, "failure": error}


def _from_reply(
    reply: Mapping[str, Any], request: Mapping[str, Any], entry: Mapping[str, Any]
) -> Iterator[Record]:
    choices = reply.get("choices")
    for number, choice in enumerate(choices if isinstance(choices, list) else ()):
        if not isinstance(choice, Mapping):
            continue
        record = {**base_of(reply), **base_of(entry), **_asked(request), **_usage(reply)}
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
    record = {**base_of(entry), **_asked(request), "raw_text": reply["text"], "finish_reason": kind}
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
            texts.append(_text(part.get("text")))
        elif part.get("type") == "thinking":
            thoughts.append(_text(part.get("thinking")))
        elif part.get("type") == "tool_use":
            arguments = json.dumps(part.get("input"), ensure_ascii=False)
            function = {"name": part.get("name"), "arguments": arguments}
            calls.append({"id": part.get("id"), "type": "function", "function": function})
    reason = reply.get("stop_reason")
    return {
        **base_of(reply),
        **base_of(entry),
        **_asked(request),
        "response": {
            "content": "".join(texts) if texts else None,
            "reasoning_content": "".join(thoughts) if thoughts else None,
            "tool_calls": calls or None,
            "finish_reason": _STOP_REASONS.get(reason, reason) if isinstance(reason, str) else None,
        },
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


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

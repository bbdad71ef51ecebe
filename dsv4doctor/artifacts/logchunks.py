"""Streamed pieces of replies in a log, put together again as their client would have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Record = dict[str, Any]

_BASE_KEYS = (
    "id", "model", "time", "timestamp", "ts", "@timestamp", "created", "created_at", "start_time",
    "startTime", "sent_unix", "host", "hostname", "server", "backend", "node", "base_url",
    "system_fingerprint", "session", "turn", "rid", "request_id", "custom_id", "trace_id",
)  # fmt: skip

_SCALARS = (str, int, float)


def is_chunk(value: Any) -> bool:
    """True for one piece of a streamed reply."""
    # A plain dict is told at once; asking whether something is a mapping takes longer.
    if type(value) is not dict and not isinstance(value, Mapping):
        return False
    if value.get("object") == "chat.completion.chunk":
        return True
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first, Mapping) and "delta" in first and "message" not in first


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
            key = (_known_id(chunk), index)
            record = self._open.setdefault(key, {**base_of(chunk), "response": _blank()})
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
    name = _known_id(piece)
    if call is not None and name and call["id"] not in (None, name):
        key = (key, name)
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


def _known_id(value: Mapping[str, Any]) -> str | int | None:
    """The id, if it is one: a list or an object tells nothing apart."""
    name = value.get("id")
    return name if isinstance(name, str | int) else None


def base_of(value: Mapping[str, Any]) -> Record:
    """Who, when and where, as far as an entry says it in texts and numbers at its top level."""
    found = {key: value[key] for key in _BASE_KEYS if isinstance(value.get(key), _SCALARS)}
    if "id" not in found:
        for key in ("custom_id", "request_id", "rid", "trace_id"):
            if key in found:
                found["id"] = found[key]
                break
    return found

"""One request and its response in the contract's form: what detectors read and records hold.

Nobody changes them once they are made; they are not frozen, since that triples what making one
costs, and a scan makes thousands a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from dsv4doctor.canary import Canary


@dataclass(slots=True, kw_only=True)
class ToolCall:
    """A call in OpenAI form. `arguments` is the string as received, never re-encoded."""

    id: Any = None
    name: Any = None
    arguments: Any = None
    index: Any = None
    type: Any = None


@dataclass(slots=True, kw_only=True)
class Response:
    """A reply as received. Fields may hold anything a broken server sends; detectors must cope."""

    content: Any = None
    reasoning_content: Any = None
    tool_calls: tuple[ToolCall, ...] | None = None
    finish_reason: str | None = None


@dataclass(slots=True, kw_only=True)
class Exchange:
    """What a detector may see of one request: the reply, and what was asked.

    `canary_key` is the key that the run's canary values were made with, `session` and `turn` whose
    reply this is (of several samples of one conversation: the first one's session); all three are
    None for traffic that is not ours.
    """

    response: Response
    prompt: str | None = None
    tools: Sequence[Mapping[str, Any]] | None = None
    tool_choice: Any = None
    max_tokens: int | None = None
    completion_tokens: int | None = None
    canaries: tuple[Canary, ...] = ()
    canary_key: int | None = None
    session: int | None = None
    turn: int | None = None
    session_marker: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


def exchange_from_record(record: Any) -> Exchange:
    """The exchange that one record of the contract's form tells of, whatever JSON it really is.

    Never raises: a member of the wrong type reads as absent, except in the response, whose members
    are kept as received because a broken server's odd values are what detectors are for.
    """
    # A plain dict is told at once; asking whether something is a mapping costs more than the rest.
    members = record if type(record) is dict or isinstance(record, Mapping) else {}
    prompt = members.get("prompt")
    tools = members.get("tools")
    marker = members.get("session_marker")
    return Exchange(
        response=_response(members.get("response")),
        prompt=prompt if isinstance(prompt, str) else None,
        tools=_tools(tools),
        tool_choice=members.get("tool_choice"),
        max_tokens=_count(members.get("max_tokens")),
        completion_tokens=_count(members.get("completion_tokens")),
        canaries=_canaries(members["canaries"]) if "canaries" in members else (),
        canary_key=_count(members.get("canary_key")),
        session=_count(members.get("conversation", members.get("session"))),
        turn=_count(members.get("turn")),
        session_marker=marker if isinstance(marker, str) else None,
        extra={key: value for key, value in members.items() if key not in _KNOWN},
    )


_KNOWN = frozenset(
    {
        "response",
        "prompt",
        "tools",
        "tool_choice",
        "max_tokens",
        "completion_tokens",
        "canaries",
        "canary_key",
        "session",
        "conversation",
        "turn",
        "session_marker",
    }
)


def _tools(value: Any) -> tuple[Mapping[str, Any], ...] | None:
    if not _is_list(value):
        return None
    return tuple(tool for tool in value if type(tool) is dict or isinstance(tool, Mapping))


def _response(value: Any) -> Response:
    if type(value) is not dict and not isinstance(value, Mapping):
        return Response(content=value)
    finish = value.get("finish_reason")
    calls = value.get("tool_calls")
    thought = value.get("reasoning_content")
    return Response(
        content=value.get("content"),
        # vLLM has moved from one name to the other, and sends both with one of them null.
        reasoning_content=value["reasoning"]
        if thought is None and "reasoning" in value
        else thought,
        tool_calls=tuple(_tool_call(call) for call in calls) if _is_list(calls) else None,
        finish_reason=finish if isinstance(finish, str) else None,
    )


def _tool_call(value: Any) -> ToolCall:
    call = value if type(value) is dict or isinstance(value, Mapping) else {}
    function = call.get("function")
    body = function if type(function) is dict or isinstance(function, Mapping) else call
    return ToolCall(
        id=call.get("id"),
        name=body.get("name"),
        arguments=body.get("arguments"),
        index=call.get("index"),
        type=call.get("type"),
    )


def _canaries(value: Any) -> tuple[Canary, ...]:
    if not _is_list(value):
        return ()
    return tuple(
        Canary(
            label=str(item.get("label", "")),
            value=item["value"],
            planted_turn=_count(item.get("planted_turn")) or 0,
            tool=item["tool"] if isinstance(item.get("tool"), str) else None,
            call_index=_count(item.get("call_index")) or 0,
            argument=item["argument"] if isinstance(item.get("argument"), str) else None,
        )
        for item in value
        if isinstance(item, Mapping) and "value" in item
    )


# What a list may be; put together once, which takes longer than asking.
_LISTS = (list, tuple)


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, _LISTS)


def _count(value: Any) -> int | None:
    if value is None:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None

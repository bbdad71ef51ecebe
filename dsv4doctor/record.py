"""One line of `records.jsonl`: a request, its reply, and what it was judged to be.

The form is the contract's, so that `scan` reads a run's records as it reads anybody's log.
"""

from __future__ import annotations

from typing import Any

from dsv4doctor.canary import Canary
from dsv4doctor.exchange import Exchange, Response, ToolCall
from dsv4doctor.label import Judgement, Label
from dsv4doctor.reply import Reply
from dsv4doctor.session import SessionScript, Turn


def record_id(session: int, turn: int) -> str:
    """The record's id within its run; sessions and turns count from 0."""
    return f"s{session:04d}-t{turn:02d}"


def exchange_of(script: SessionScript, turn: Turn, reply: Reply) -> Exchange:
    """What detectors may see of one driven request."""
    return Exchange(
        response=reply.response,
        prompt=turn.prompt,
        tools=script.tools,
        tool_choice=turn.tool_choice,
        max_tokens=turn.max_tokens,
        completion_tokens=reply.usage.completion_tokens,
        canaries=turn.canaries,
        canary_key=script.canary_key,
        session=script.canary_session,
        turn=turn.turn,
    )


def record_of(
    script: SessionScript, turn: Turn, reply: Reply, judgement: Judgement | None, **extra: Any
) -> dict[str, Any]:
    """The record as JSON types; `judgement` is None for a request that we aborted ourselves.

    `extra` are the run's own keys (`request_id`, `segment`, `raw`).
    """
    failure = reply.failure
    timing = reply.timing
    return {
        "id": record_id(script.session, turn.turn),
        "session": script.session,
        "turn": turn.turn,
        "kind": turn.kind.value,
        "prompt": turn.prompt,
        "tools": list(script.tools),
        "tool_choice": turn.tool_choice,
        "max_tokens": turn.max_tokens,
        "response": None if failure and not _holds_text(reply.response) else _json(reply.response),
        "canaries": [_canary_json(canary) for canary in turn.canaries],
        "canary_key": script.canary_key,
        **({} if script.conversation is None else {"conversation": script.conversation}),
        "aborted": reply.aborted,
        "failure": failure
        and {
            "kind": failure.kind.value,
            "message": failure.message,
            "http_status": failure.http_status,
        },
        **_judged(judgement, failure.kind if failure else None),
        "stream": script.stream,
        "saw_done": reply.saw_done,
        "prompt_tokens": reply.usage.prompt_tokens,
        "completion_tokens": reply.usage.completion_tokens,
        "cached_tokens": reply.usage.cached_tokens,
        "sent_unix": timing.sent_unix,
        "queue_ms": round(timing.queue_ms, 3),
        "ttft_ms": None if timing.ttft_ms is None else round(timing.ttft_ms, 3),
        "itl_ms": [round(gap, 3) for gap in timing.itl_ms],
        "e2e_latency_ms": round(timing.e2e_latency_ms, 3),
        **extra,
    }


def _judged(judgement: Judgement | None, failed: Label | None) -> dict[str, Any]:
    if failed is not None:
        return {"primary": failed.value, "also": [], "evidence": [], "corrupted": False}
    if judgement is None:
        return {"primary": None, "also": [], "evidence": [], "corrupted": False}
    return {
        "primary": judgement.primary.value,
        "also": [label.value for label in judgement.also],
        "evidence": [{"where": item.where, "what": item.what} for item in judgement.evidence],
        "corrupted": judgement.corrupted,
    }


def _holds_text(response: Response) -> bool:
    return bool(response.content or response.reasoning_content or response.tool_calls)


def _json(response: Response) -> dict[str, Any]:
    calls = response.tool_calls
    return {
        "content": response.content,
        "reasoning_content": response.reasoning_content,
        "tool_calls": None if calls is None else [_call_json(call) for call in calls],
        "finish_reason": response.finish_reason,
    }


def _call_json(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "index": call.index,
        "type": call.type or "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _canary_json(canary: Canary) -> dict[str, Any]:
    return {
        "label": canary.label,
        "value": canary.value,
        "planted_turn": canary.planted_turn,
        "tool": canary.tool,
        "call_index": canary.call_index,
        "argument": canary.argument,
    }

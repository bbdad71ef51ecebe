"""Exchanges in one line, for the tables of the detectors' tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dsv4doctor.detect import judge
from dsv4doctor.exchange import Exchange, exchange_from_record
from dsv4doctor.label import Judgement


def tool(name: str, required: Sequence[str] = (), /, **properties: Any) -> dict[str, Any]:
    """A tool with a schema; a property given as a string is that type."""
    schema = {k: {"type": v} if isinstance(v, str) else v for k, v in properties.items()}
    parameters = {"type": "object", "properties": schema, "required": list(required)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


WEATHER = tool("get_weather", ["city"], city="string", days="integer")
READ = tool("read_file", ["path"], path="string", limit="integer")
WRITE = tool("write_file", ["path", "content"], path="string", content="string")
SHELL = tool("run_shell", ["command"], command="string")
CLOCK = tool("get_time")
TOOLS = [WEATHER, READ, WRITE, SHELL, CLOCK]


def call(name: Any, arguments: Any, number: int = 1, **more: Any) -> dict[str, Any]:
    """A tool call; arguments that are no string are encoded."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": name, "arguments": text},
        **more,
    }


def reply(
    content: Any = None,
    *calls: Mapping[str, Any],
    reasoning: str | None = None,
    finish: str | None = "",
    **asked: Any,
) -> Exchange:
    """An exchange; `asked` are the record's other members (prompt, tools, tool_choice, …)."""
    if finish == "":
        finish = "tool_calls" if calls else "stop"
    if calls and "tools" not in asked:
        asked["tools"] = TOOLS
    return exchange_from_record(
        {
            **asked,
            "response": {
                "content": content,
                "reasoning_content": reasoning,
                "tool_calls": list(calls) or None,
                "finish_reason": finish,
            },
        }
    )


def labels(exchange: Exchange) -> list[str]:
    """All labels of an exchange, the primary first."""
    return [label.value for label in judge(exchange).labels]


def shown(judgement: Judgement) -> str:
    """The evidence as a failing test prints it."""
    return "; ".join(f"{item.where}: {item.what}" for item in judgement.evidence)

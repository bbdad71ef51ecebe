"""A conversation as a DeepSeek-V4 prompt in chat mode (no thinking).

BOS, system text with a "## Tools" section, user turns with tool results merged in, assistant turns
that end with EOS. Calls of the history are written as DSML blocks, just as the model writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsv4doctor.lab.tokens import ASSISTANT, BOS, DSML, END_OF_THINKING, EOS, USER, TokenIds, encode

BLOCK_OPEN = f"<{DSML}tool_calls>\n"
BLOCK_CLOSE = f"</{DSML}tool_calls>"
INVOKE_OPEN = f'<{DSML}invoke name="'
INVOKE_OPEN_END = '">\n'
INVOKE_CLOSE = f"</{DSML}invoke>\n"
PARAMETER_OPEN = f'<{DSML}parameter name="'
PARAMETER_STRING = '" string="true">'
PARAMETER_JSON = '" string="false">'
PARAMETER_CLOSE = f"</{DSML}parameter>\n"

_TOOLS_BEFORE = "\n\n## Tools\n\nWrite calls like this, several in one block if need be:\n"
_TOOLS_AFTER = "\nText goes in as it is; other values are JSON. These functions can be called:\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPrompt:
    """The prompt's tokens and the spans (start, end) of its parts that a call can be copied from.

    `example` is the system prompt's example block, `calls` the assistant's earlier messages with
    calls, oldest first.
    """

    tokens: TokenIds
    example: tuple[int, int] | None
    calls: tuple[tuple[int, int], ...]


def text_of(content: Any) -> str:
    """The text of a message: a string, a list of parts, or nothing."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            part if isinstance(part, str) else str(part.get("text", ""))
            for part in content
            if isinstance(part, str | Mapping)
        )
    return str(content)


def dsml_value(value: Any) -> tuple[str, str]:
    """An argument's marker (string or JSON) and its text."""
    if isinstance(value, str):
        return PARAMETER_STRING, value
    return PARAMETER_JSON, json.dumps(value, ensure_ascii=False)


def dsml_block(calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Calls (name, arguments) as one DSML block."""
    lines = [BLOCK_OPEN]
    for name, arguments in calls:
        lines.append(f"{INVOKE_OPEN}{name}{INVOKE_OPEN_END}")
        for key, value in arguments.items():
            marker, text = dsml_value(value)
            lines.append(f"{PARAMETER_OPEN}{key}{marker}{text}{PARAMETER_CLOSE}")
        lines.append(INVOKE_CLOSE)
    lines.append(BLOCK_CLOSE)
    return "".join(lines)


def _example() -> str:
    """The shortest block in which every tag stands beside all that may follow it."""
    return dsml_block([("FUNCTION", {"TEXT": "words", "NUMBER": 5}), ("OTHER", {"TEXT": "more"})])


def _schemas(tools: Sequence[Mapping[str, Any]]) -> str:
    """One line of JSON for each tool."""
    functions = (tool.get("function", tool) for tool in tools)
    return "\n".join(
        json.dumps(function, ensure_ascii=False, separators=(",", ":")) for function in functions
    )


def _calls_of(message: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    calls = []
    for call in message.get("tool_calls") or ():
        function = call.get("function", {})
        arguments = function.get("arguments") or "{}"
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                arguments = {"arguments": arguments}
        if not isinstance(arguments, Mapping):
            arguments = {"arguments": arguments}
        calls.append((str(function.get("name", "")), arguments))
    return calls


def assistant_text(message: Mapping[str, Any]) -> str:
    """An assistant message as the model wrote it, without the end token."""
    content = text_of(message.get("content"))
    calls = _calls_of(message)
    if not calls:
        return content
    return (content + "\n\n" if content else "") + dsml_block(calls)


class _Writer:
    """Collects parts of a prompt and knows the place of each."""

    def __init__(self) -> None:
        self._parts: list[TokenIds] = []
        self.length = 0

    def write(self, text: str) -> tuple[int, int]:
        tokens = encode(text)
        self._parts.append(tokens)
        start = self.length
        self.length += len(tokens)
        return start, self.length

    def tokens(self) -> TokenIds:
        return np.concatenate(self._parts)


def _write_turns(writer: _Writer, messages: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Everything after the system text; answers with the spans of messages with calls."""
    spans = []
    in_user_turn = False
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            writer.write(ASSISTANT + END_OF_THINKING)
            span = writer.write(assistant_text(message))
            end = writer.write(EOS)
            if message.get("tool_calls"):
                spans.append((span[0], end[1]))
            in_user_turn = False
            continue
        text = text_of(message.get("content"))
        if role == "tool":
            text = f"<tool_result>{text}</tool_result>"
        writer.write("\n\n" if in_user_turn else USER)
        writer.write(text)
        in_user_turn = True
    writer.write(ASSISTANT + END_OF_THINKING)
    return spans


def render(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> RenderedPrompt:
    """The prompt of a request. System messages are gathered at the front, wherever they stand."""
    writer = _Writer()
    writer.write(BOS)
    system = [message for message in messages if message.get("role") in ("system", "developer")]
    writer.write("\n\n".join(text_of(message.get("content")) for message in system))
    example = None
    if tools:
        writer.write(_TOOLS_BEFORE)
        example = writer.write(_example())
        writer.write(_TOOLS_AFTER + _schemas(tools))
    others = [message for message in messages if message.get("role") not in ("system", "developer")]
    calls = _write_turns(writer, others)
    return RenderedPrompt(tokens=writer.tokens(), example=example, calls=tuple(calls))

"""Real prompts from a file: one JSON value a line, or ShareGPT's list, in the forms people have.

A line is a string, or an object with `messages` (an OpenAI request body, whose `tools`,
`tool_choice` and `max_tokens` are taken too), with `prompt` (vLLM's custom form, our records), or
with `conversations` (ShareGPT, as SGLang's bench takes it: the first human turn).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsv4doctor.errors import UsageError

_FORMS = (
    'give lines like {"prompt": "..."}, {"messages": [...]} or {"conversations": [...]}, '
    "or ShareGPT's list of conversations"
)
_HUMAN = frozenset({"human", "user"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePrompt:
    """One prompt as it will be sent. `max_tokens` None leaves the length to the caller."""

    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: Any = None
    max_tokens: int | None = None


def read_prompts(path: Path, *, most: int) -> tuple[FilePrompt, ...]:
    """The first `most` prompts of the file, in its order.

    Raises:
        UsageError: if the file cannot be read, holds none, or holds something else.
    """
    found: list[FilePrompt] = []
    try:
        for where, value in _values(path):
            found.append(_prompt_of(value, where))
            if len(found) == most:
                break
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", _FORMS) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no UTF-8 text", _FORMS) from error
    if not found:
        raise UsageError(f"{path} holds no prompt", _FORMS)
    return tuple(found)


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        if _first_character(path) == "[":
            yield from _listed(path, lines.read())
            return
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield f"{path}:{number}", _decoded(line, f"{path}:{number}")


def _first_character(path: Path) -> str:
    with path.open(encoding="utf-8") as text:
        return text.read(4096).lstrip()[:1]


def _listed(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    for number, value in enumerate(_decoded(text, str(path)), 1):
        yield f"{path}, entry {number}", value


def _decoded(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is no JSON: {error}", _FORMS) from error


def _prompt_of(value: Any, where: str) -> FilePrompt:
    body = {"prompt": value} if isinstance(value, str) else value
    if not isinstance(body, Mapping):
        raise UsageError(f"{where} is no prompt but a JSON {type(value).__name__}", _FORMS)
    messages = _messages_of(body)
    if not messages:
        raise UsageError(f"{where} has no prompt, messages or human turn with text", _FORMS)
    tools = body.get("tools")
    limit = body.get("max_tokens") or body.get("max_completion_tokens") or body.get("output_tokens")
    return FilePrompt(
        messages=messages,
        tools=tuple(tool for tool in tools if isinstance(tool, Mapping))
        if isinstance(tools, list)
        else (),
        tool_choice=body.get("tool_choice"),
        max_tokens=limit if isinstance(limit, int) and limit > 0 else None,
    )


def _messages_of(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    listed = body.get("messages")
    if isinstance(listed, list):
        is_whole = all(isinstance(each, Mapping) and "role" in each for each in listed)
        return tuple(listed) if is_whole else ()
    text = body.get("prompt")
    if text is None and isinstance(body.get("conversations"), list):
        text = _first_human(body["conversations"])
    return ({"role": "user", "content": text},) if isinstance(text, str) and text else ()


def _first_human(turns: list[Any]) -> str | None:
    for turn in turns:
        said = turn if isinstance(turn, Mapping) else {}
        if str(said.get("from") or said.get("role")).lower() in _HUMAN:
            text = said.get("value", said.get("content"))
            return text if isinstance(text, str) else None
    return None

"""One request and its response in the contract's form: what detectors read and records hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsv4doctor.canary import Canary


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call in OpenAI form. `arguments` is the string as received, never re-encoded."""

    id: Any = None
    name: Any = None
    arguments: Any = None
    index: Any = None
    type: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A reply as received. Fields may hold anything a broken server sends; detectors must cope."""

    content: Any = None
    reasoning_content: Any = None
    tool_calls: tuple[ToolCall, ...] | None = None
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What a detector may see of one request: the reply, and what was asked.

    `canary_key` is the key that the run's canary values were made with, `session` and `turn` whose
    reply this is; all three are None for traffic that is not ours.
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

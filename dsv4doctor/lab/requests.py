"""What goes into the engine and what comes out of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_SESSION_AND_TURN = re.compile(r"-s(\d+)-t(\d+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Where a prefill and a decode engine find each other: the prefill's bootstrap server, and the
    number under which both have the request."""

    host: str
    port: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """One chat completion as the engine sees it.

    `rid` names the request in logs; it never influences what is generated or when. Nor does `room`.
    """

    rid: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: Any = "auto"
    max_tokens: int = 512
    room: Room | None = None

    @property
    def session_and_turn(self) -> tuple[int | None, int | None]:
        """Parsed from a driver's request id; (None, None) for anybody else's."""
        match = _SESSION_AND_TURN.search(self.rid)
        return (int(match[1]), int(match[2])) if match else (None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The engine's answer: one piece for every generated token, the end token left out.

    `hung` marks a request that the wedged engine never answers: it has no pieces, and a server
    must keep its connection open and silent.
    """

    rid: str
    prompt_tokens: int
    cached_tokens: int = 0
    cached_device_tokens: int = 0
    cached_host_tokens: int = 0
    pieces: tuple[str, ...] = field(default=())
    finish_reason: str = "stop"
    hung: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

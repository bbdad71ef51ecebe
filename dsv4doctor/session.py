"""What one session sends, turn by turn: made by `load.schedule`, driven by `load.runner`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsv4doctor.canary import Canary
from dsv4doctor.scenario import History, TurnKind

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One request. `new_messages` follow the previous turn's reply; `expected_reply` is the reply
    that a healthy model gives, and stands in the history of later turns when it is scripted."""

    turn: int
    kind: TurnKind
    new_messages: tuple[Message, ...]
    expected_reply: Message
    canaries: tuple[Canary, ...]
    prompt: str
    max_tokens: int
    tool_choice: Any
    abort_after_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionScript:
    """Every byte that one session sends, fixed by scenario, seed and session number; with
    `salts_prompts` the driver puts a salt of its own before each prompt, with `salts_sessions` the
    same one before all of this session's. `conversation` is the session whose conversation it
    holds, and whose canaries; None for its own."""

    session: int
    turns: tuple[Turn, ...]
    tools: tuple[Mapping[str, Any], ...]
    history: History
    stream: bool
    sampling: Mapping[str, Any]
    canary_key: int
    salts_prompts: bool = False
    salts_sessions: bool = False
    conversation: int | None = None

    @property
    def canary_session(self) -> int:
        """Whose canaries a right reply holds."""
        return self.session if self.conversation is None else self.conversation

    def messages(self, turn: int) -> list[Message]:
        """The scripted conversation up to and including the request of `turn` (0-based)."""
        conversation: list[Message] = []
        for earlier in self.turns[:turn]:
            conversation.extend(earlier.new_messages)
            conversation.append(earlier.expected_reply)
        conversation.extend(self.turns[turn].new_messages)
        return conversation

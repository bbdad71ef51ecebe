"""A scenario: which sessions to drive at a deployment, as data.

One TOML file in `repro/` each; `artifacts.catalog` finds and decodes them, strictly, and
`load.schedule`, which owns the wording, turns a scenario, a seed and a session number into bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TurnKind(StrEnum):
    """What one turn asks for."""

    TOOL_CALL = "tool_call"  # one call whose arguments repeat planted canaries
    PARALLEL_CALLS = "parallel_calls"  # several calls in one reply
    LONG_TEXT = "long_text"  # a planted passage, repeated as free text
    ABORTED = "aborted"  # a passage begun, then we hang up


class History(StrEnum):
    """Whose replies later turns carry: the expected ones, or what the model really said."""

    SCRIPTED = "scripted"
    LIVE = "live"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Sampling parameters sent with every request; None leaves the server's default."""

    temperature: float | None = 0.0
    top_p: float | None = None
    max_tokens: int = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What to send. Token counts are approximate on a real tokenizer and exact on the lab's.

    `context_tokens` is the prompt's length at the first and at the last turn; `context_jitter` is
    the share by which sessions differ from it, so that no two have the same page layout.
    `turn_kinds` is cycled over the turns. `values` names the kind of canary values. With
    `salts_prompts` every prompt begins with a text of its own, so that no cached prefix matches;
    with `salts_sessions` every session's prompts do, so that it shares no prefix with another.
    `samples` sessions in a row hold the same conversation at the same time, as best-of-n sampling
    does.
    """

    name: str
    title: str
    description: str
    turns: int
    context_tokens: tuple[int, int]
    turn_kinds: tuple[TurnKind, ...] = (TurnKind.TOOL_CALL,)
    context_jitter: float = 0.1
    shared_prompt_tokens: int = 600
    canaries_per_call: int = 3
    calls_per_turn: int = 1
    values: str = "codes"
    long_text_tokens: int = 200
    abort_after_tokens: int = 20
    stream: bool = True
    history: History = History.SCRIPTED
    tool_choice: str = "required"
    salts_prompts: bool = False
    salts_sessions: bool = False
    samples: int = 1
    sampling: Sampling = Sampling()
    issue: str = ""

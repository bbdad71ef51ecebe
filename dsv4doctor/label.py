"""The labels a response can carry, and which of them count as corruption."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dsv4doctor.finding import Evidence


class Label(StrEnum):
    """What a response is (first group), or why there is none (second group, after EMPTY)."""

    CLEAN = "clean"
    DSML_LEAK = "dsml_leak"
    MALFORMED_ARGUMENTS = "malformed_arguments"
    SCHEMA_VIOLATION = "schema_violation"
    UNKNOWN_TOOL = "unknown_tool"
    MISSING_TOOL_CALL = "missing_tool_call"
    TOKEN_SALAD = "token_salad"
    REPETITION_LOOP = "repetition_loop"
    FOREIGN_CONTENT = "foreign_content"
    CANARY_MISMATCH = "canary_mismatch"
    MISPLACED_REASONING = "misplaced_reasoning"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    SPECIAL_TOKEN_LEAK = "special_token_leak"

    TIMEOUT = "timeout"
    STALLED = "stalled"
    HTTP_ERROR = "http_error"
    CONNECTION_ERROR = "connection_error"
    PROTOCOL_ERROR = "protocol_error"

    @property
    def is_failure(self) -> bool:
        """True when nothing came that could be judged: beside corruption, never in its rate."""
        return self in FAILURES

    @property
    def rule(self) -> str:
        """The rule id of a finding about this label."""
        return self.value.upper()


FAILURES = frozenset(
    {
        Label.TIMEOUT,
        Label.STALLED,
        Label.HTTP_ERROR,
        Label.CONNECTION_ERROR,
        Label.PROTOCOL_ERROR,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one response is: a primary label, further labels, evidence, and whether it is corrupt.

    `corrupted` is not a function of the labels alone: a missing call where nothing forced one and a
    reply cut by the request's own `max_tokens` are named but are no corruption.
    """

    primary: Label
    also: tuple[Label, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    corrupted: bool = False

    @property
    def labels(self) -> tuple[Label, ...]:
        return (self.primary, *self.also)

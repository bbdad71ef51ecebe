"""How each label looks in figures: a family with its colour and pattern, and a letter of its own.

Thirteen hues cannot be told apart; six families can, and the pattern and the letter say the same
to a reader who sees no colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from dsv4doctor.report.rows import Row, Standing


class Family(StrEnum):
    """What kind of thing a label tells of. The values are CSS classes and pattern names."""

    CLEAN = "clean"
    NAMED = "named"
    VALUES = "values"
    CALLS = "calls"
    TEXT = "text"
    ENDS = "ends"
    FAILURE = "failure"
    ABORTED = "aborted"


FAMILY_MEANINGS: Mapping[Family, str] = {
    Family.CLEAN: "as asked for",
    Family.NAMED: "named, but no corruption",
    Family.VALUES: "wrong or foreign values",
    Family.CALLS: "broken tool calls",
    Family.TEXT: "broken text",
    Family.ENDS: "cut off, empty or misplaced",
    Family.FAILURE: "no response to judge",
    Family.ABORTED: "aborted by us on purpose",
}

_FAMILIES: Mapping[str, Family] = {
    "clean": Family.CLEAN,
    "foreign_content": Family.VALUES,
    "canary_mismatch": Family.VALUES,
    "dsml_leak": Family.CALLS,
    "malformed_arguments": Family.CALLS,
    "schema_violation": Family.CALLS,
    "unknown_tool": Family.CALLS,
    "missing_tool_call": Family.CALLS,
    "token_salad": Family.TEXT,
    "repetition_loop": Family.TEXT,
    "special_token_leak": Family.TEXT,
    "misplaced_reasoning": Family.ENDS,
    "truncated": Family.ENDS,
    "empty": Family.ENDS,
}

LETTERS: Mapping[str, str] = {
    "clean": "",
    "foreign_content": "F",
    "canary_mismatch": "C",
    "dsml_leak": "D",
    "malformed_arguments": "M",
    "schema_violation": "V",
    "unknown_tool": "U",
    "missing_tool_call": "N",
    "token_salad": "S",
    "repetition_loop": "R",
    "special_token_leak": "K",
    "misplaced_reasoning": "P",
    "truncated": "T",
    "empty": "E",
    "timeout": "1",
    "stalled": "2",
    "http_error": "3",
    "connection_error": "4",
    "protocol_error": "5",
    "aborted": "a",
}


def family_of(row: Row) -> Family:
    """The family that the row is drawn in."""
    if row.standing is Standing.ABORTED:
        return Family.ABORTED
    if row.standing is Standing.FAILED:
        return Family.FAILURE
    family = _FAMILIES.get(row.label, Family.ENDS)
    if row.corrupted or family is Family.CLEAN:
        return family
    return Family.NAMED


def letter_of(row: Row) -> str:
    """The letter in the row's cell; `?` for a label that this version does not know."""
    return LETTERS.get(row.label, "?")

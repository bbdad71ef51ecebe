"""What a detector is: one symptom, a pure function, and what it saw."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dsv4doctor.detect.hints import ANY
from dsv4doctor.detect.subject import Subject
from dsv4doctor.label import Label

# Long enough to recognise the damage, short enough for a table of a thousand records.
SPAN_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One symptom in one place; `what` names the rule it broke and quotes the span.

    `corrupts` is False where the symptom is named but is no corruption (a call that nothing forced,
    a cut by the request's own `max_tokens`). `leads` is True where this symptom accounts for others
    that would otherwise be primary: a flood that fills the reply, a cut in the middle of a call.
    """

    label: Label
    where: str
    what: str
    corrupts: bool = True
    leads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """One symptom: its label, what it is in a line, and the function that looks for it.

    Only a reply with one of `hints` (see `hints.py`) can show it.
    """

    label: Label
    summary: str
    detect: Callable[[Subject], Iterable[Seen]]
    hints: int = ANY


def span(text: str, start: int, end: int) -> str:
    """The span as evidence quotes it: its offset in characters and its text, escaped, shortened."""
    piece = text[start:end]
    if len(piece) > SPAN_SHOWN:
        piece = piece[: SPAN_SHOWN - 1] + "…"
    return f"at {start}: {ascii(piece) if _has_unprintable(piece) else repr(piece)}"


def _has_unprintable(piece: str) -> bool:
    return not all(char.isprintable() or char in "\n\t" for char in piece)

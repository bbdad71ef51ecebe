"""A text that counts on until its budget is gone: one number after another, or one row with nothing
new but its number."""

from __future__ import annotations

import re
from itertools import pairwise

_TAIL = 6000
_NUMBER = re.compile(r"\d+")
# Numbers of which each is its predecessor and one step, with the same between them.
_MIN_NUMBERS = 150
# Rows that differ in their numbers alone, and the words that each has.
_MIN_ROWS = 40
_MIN_ROW_WORDS = 4
_WORD = re.compile(r"[^\W\d_]{2,}")
# Whoever asks for so many says it.
_ASKS = re.compile(
    r"\d{2,}|\b(?:numbers?|range|integers?|lists?|ids?|index|print|primes?|all|every|each|full|complete|log|csv|json|"
    r"hundred|thousand|data|generate|schedule|calendar|timetable|enumerate)\b",
    re.IGNORECASE,
)


def counts_on(text: str, prompt: str) -> str | None:
    """Why the end of a text that was cut is nothing but counting; None where it is not."""
    if not prompt or _ASKS.search(prompt):
        return None
    tail = text.rstrip()[-_TAIL:]
    return _numbers(tail) or _rows(tail)


def _numbers(tail: str) -> str | None:
    # The last one may be cut, the first one too.
    found = list(_NUMBER.finditer(tail))[1:-1][-_MIN_NUMBERS:]
    if len(found) < _MIN_NUMBERS:
        return None
    values = [int(match.group()[:12]) for match in found]
    steps = {later - earlier for earlier, later in pairwise(values)}
    between = {tail[one.end() : other.start()] for one, other in pairwise(found)}
    if len(steps) == 1 and steps != {0} and len(between) == 1:
        return f"counts from {values[0]} to {values[-1]} and on"
    return None


def _rows(tail: str) -> str | None:
    lines = [line for line in tail.split("\n")[1:-1] if line.strip()][-_MIN_ROWS:]
    if len(lines) < _MIN_ROWS or len(set(lines)) < _MIN_ROWS:
        return None
    shapes = {_NUMBER.sub("0", line) for line in lines}
    if len(shapes) == 1 and len(_WORD.findall(lines[0])) >= _MIN_ROW_WORDS:
        return f"{len(lines)} rows that differ in their numbers alone: {lines[-1][:60]!r}"
    return None

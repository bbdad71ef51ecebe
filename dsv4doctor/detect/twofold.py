"""Endings that nobody writes on purpose: the whole answer once more, or blanks without end.

The model started over behind its own end, or the end never came and blanks filled the budget.
"""

from __future__ import annotations

import re

from dsv4doctor.detect.request import asks_for_repetition
from dsv4doctor.detect.subject import Subject, Text

# A shorter answer is said twice for emphasis.
_MIN_CHARS = 80
_MIN_WORDS = 12
_WORD = re.compile(r"[^\W\d_]{2,}")
_SENTENCE_ENDS = re.compile(r"[.!?。！？\n:：]+(?:\s|\Z|(?<=[。！？\n]))")
_MIN_SENTENCES = 2
# The same in scripts that write without blanks, where a character says as much as three.
_MIN_DENSE = 24
_DENSE = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# What the second answer begins with, and how far from the middle of the text it may begin: a blank
# line or a rule parts it from the first.
_HEAD = 16
_AROUND = 6
_RULE = " \t\r\n-—*=_"
_ASKS_TWICE = re.compile(
    r"\b(?:twice|two (?:copies|identical)|double|duplicat|both languages)"
    r"|\b(?:zweimal|doppelt|deux fois|dos veces|due volte)|两(?:遍|次|份)|二回|дважды",
    re.IGNORECASE,
)
# Nothing that is meant ends with so many blanks and line breaks.
_MANY_BLANKS = 240


def given_twice(subject: Subject, text: Text) -> str | None:
    """What is said when the text is one answer and the same once more, word for word."""
    body = text.text.strip()
    middle = len(body) // 2
    if middle < _MIN_DENSE:
        return None
    at = body.find(body[:_HEAD], max(1, middle - _AROUND), middle + _AROUND + _HEAD)
    if at < 0:
        return None
    first = body[:at].rstrip(_RULE)
    if first != body[at:].rstrip(_RULE) or not _says_much(first) or text.code.covers(at):
        return None
    if asks_for_repetition(subject) or _ASKS_TWICE.search(subject.prompt):
        return None
    return f"the whole answer is given twice: {first[:60]!r}"


def _says_much(passage: str) -> bool:
    """True for prose of several sentences: outlines, rows and refrains are made of a few words
    again and again, and one sentence is said twice for emphasis."""
    if len(_SENTENCE_ENDS.findall(passage)) < _MIN_SENTENCES:
        return False
    if len(set(_DENSE.findall(passage))) >= _MIN_DENSE:
        return True
    return len(passage) >= _MIN_CHARS and len(set(_WORD.findall(passage))) >= _MIN_WORDS


def blank_flood(text: Text, seen: str) -> str | None:
    """What is said when a text trails off in blanks and line breaks; `seen` is what stands before
    them."""
    blanks = len(text.text) - len(seen)
    if not seen or blanks < _MANY_BLANKS:
        return None
    return f"{blanks} blanks and line breaks at the end"

"""English sentences without their blanks: `Thelockisheldbythewriter,andthereaderwaits.`

A detokenizer that takes each token by itself loses the blank that it begins with.
Source: https://github.com/SKaiNET-developers/SKaiNET/pull/767.
"""

from __future__ import annotations

import re

from dsv4doctor.detect.hints import hint
from dsv4doctor.detect.subject import Text

# Text with fewer words than one in so many characters is looked at: prose has one in six.
_CHARS_A_WORD = 11
_MIN_CHARS = 40
# Letters in a row that no English word has, and their share of all letters.
_LONG = re.compile(r"[A-Za-z]{16,}")
_LETTERS_SHARE = 0.6
# A mark inside a sentence or between two, and no blank behind it.
_GLUED_MARK = re.compile(r"[a-z]{3},[a-z]{3}|[a-z]{4}\.[A-Z][a-z]|[a-z]{3};[a-z]{3}")
_GLUED = hint(_GLUED_MARK.pattern)
_ADDRESS = re.compile(r"[a-z0-9][.@_/-][a-z]|://")
# Small words that are in any English sentence, and the letters among which one of them comes.
_SMALL = re.compile(r"the|and|with|that|this|for|you|from|have|into|which")
_MIN_KINDS, _MIN_SMALL, _LETTERS_A_SMALL = 2, 3, 40
_MAX_CHARS = 20_000
_LETTER = re.compile(r"[^\W\d_]+")


def glued_words(text: Text) -> tuple[int, int] | None:
    """Where in a text's prose such a sentence stands; None where the text has its blanks or may be
    data."""
    if not text.prose_hints & _GLUED:
        return None
    prose = text.prose
    # One code a word.
    if len(text.codes) * _CHARS_A_WORD > len(prose) or not _MIN_CHARS <= len(prose) <= _MAX_CHARS:
        return None
    # A sentence begins with a capital; the parts of an address go on in small letters.
    if not prose[0].isupper() or not _LONG.search(prose) or not _GLUED_MARK.search(prose):
        return None
    if _ADDRESS.search(prose):
        return None
    runs = list(_LONG.finditer(prose))
    long = sum(len(run.group()) for run in runs)
    letters = sum(len(word) for word in _LETTER.findall(prose))
    if not runs or long < _LETTERS_SHARE * letters or any(map(_is_camel, runs)):
        return None
    small = [word for run in runs for word in _SMALL.findall(run.group().lower())]
    enough = len(small) >= max(_MIN_SMALL, long / _LETTERS_A_SMALL)
    return runs[0].span() if enough and len(set(small)) >= _MIN_KINDS else None


def _is_camel(run: re.Match[str]) -> bool:
    """True for a name whose words begin with capitals."""
    return any(char.isupper() for char in run.group()[1:])

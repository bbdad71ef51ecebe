"""Small words that never stand side by side: what tells salad without a dictionary.

Every language is held together by a few dozen small words, and most pairs of them occur nowhere
(`of is`, `und the`). Which ones was counted over 46 million characters of manual pages, message
catalogues, documentation and code in 46 languages; the table beside this module is what came out,
and `python benchmarks/neighbours.py` counts again.

A text's words are turned into one byte each, so that a regular expression over those bytes finds
every odd pair at once.
"""

from __future__ import annotations

import re
from base64 import b85decode
from collections.abc import Iterator
from itertools import product, repeat

from dsv4doctor.detect.neighbours_table import NEVER, WORDS
from dsv4doctor.detect.switches import FUNCTION_WORDS, spoken_by

SUFFIXES = (
    "ing", "ings", "tion", "tions", "sion", "sions", "ization", "isation", "ment", "ments", "ness",
    "ously", "ically", "ially", "ating", "ified", "ity", "ence", "ible",
)  # fmt: skip
_NEVER_TWICE = ("the", "of", "to", "by", "and", "is", "with", "for", "which", "so", "und", "then",
                "minus")  # fmt: skip
ARTICLES = ("the", "a", "an")
# What no noun phrase goes on with, as a token of its own.
_MARKS = ":;,.=)|>"

_SUFFIX, _MARK = 254, 255
_COUNTED = tuple(WORDS.split())
# Function words that the table knows nothing of have a code too: they tell a change of language.
_FUNCTION = {*ARTICLES, *_NEVER_TWICE, *" ".join(FUNCTION_WORDS.values()).split()}
_SMALL = (*_COUNTED, *sorted(_FUNCTION - {*_COUNTED}))
_CODES: dict[str, int] = {word: number for number, word in enumerate(_SMALL, 1)}
assert len(_SMALL) < _SUFFIX
_CODES |= dict.fromkeys(SUFFIXES, _SUFFIX)
_CODES |= {"".join(m): _MARK for size in (1, 2, 3) for m in product(_MARKS, repeat=size)}


def _bits(table: str) -> list[frozenset[int]]:
    """The codes that never follow each code; the table holds one bit a pair, row by row."""
    raw = int.from_bytes(b85decode(table), "little")
    count = len(_COUNTED)
    rows = [(raw >> (row * count)) & ((1 << count) - 1) for row in range(count)]
    return [
        frozenset(),
        *(frozenset(n + 1 for n in range(count) if row >> n & 1) for row in rows),
        *(frozenset[int]() for _ in _SMALL[count:]),
    ]


_NEVER_AFTER = _bits("".join(NEVER.split()))


def _set(codes: frozenset[int]) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % code for code in sorted(codes)) + b"]"


def _odd_codes() -> re.Pattern[bytes]:
    articles = {_CODES[word] for word in ARTICLES}
    twice = {_CODES[word] for word in _NEVER_TWICE}
    pairs = [re.escape(bytes([_SUFFIX]))]
    for code in range(1, len(_SMALL) + 1):
        after = set(_NEVER_AFTER[code])
        after |= {_MARK} if code in articles else set()
        after |= {code} if code in twice else set()
        if after:
            pairs.append(re.escape(bytes([code])) + _set(frozenset(after)))
    return re.compile(b"|".join(pairs), re.DOTALL)


_ODD = _odd_codes()
# One bit a language, for every code; what is no function word is in all of them.
_LANGUAGE_BITS = {language: 1 << at for at, language in enumerate(FUNCTION_WORDS)}
_SPOKEN = [-1] * 256
for _word, _code in _CODES.items():
    if _code < _SUFFIX:
        _SPOKEN[_code] = sum(_LANGUAGE_BITS[language] for language in spoken_by(_word))
_PAIR = re.compile(r"(?<![\w'’./_-])([^\W\d_]{1,8})(?:\n| )(?=([^\W\d_]{1,8})(?![\w'’/_-]|\.\w))")


def codes_of(text: str) -> bytes:
    """One byte for every blank-separated word of `text`; 0 for what is no small word."""
    return bytes(map(_CODES.get, text.split(), repeat(0)))


def holds_odd_pair(codes: bytes) -> bool:
    """True where a pair never seen, a suffix by itself or a doubled small word is among them."""
    return _ODD.search(codes) is not None


def may_switch(codes: bytes) -> bool:
    """True where no one language has all of the function words among them."""
    languages = -1
    for code in set(codes):
        languages &= _SPOKEN[code]
    return languages == 0


def odd_pairs(text: str) -> Iterator[tuple[int, int]]:
    """The places of two neighbouring small words that never follow each other."""
    for match in _PAIR.finditer(text):
        first = _CODES.get(match[1], 0)
        if 0 < first < _SUFFIX and _CODES.get(match[2], 0) in _NEVER_AFTER[first]:
            yield match.start(), match.end(2)

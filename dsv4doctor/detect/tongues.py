"""Small words of another language than those around them, whichever that is.

A clause has its small words from one language: of 12,000 clean texts in 60 languages none has three
among seven words that the language of the others does not have, and eight have two. A vocabulary's
small words drawn at random are of four languages in a row of seven.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache, reduce
from itertools import repeat
from operator import and_

from dsv4doctor.detect.tongues_table import PARTS

# Words that are looked at together: a clause's worth, and less than a line.
WINDOW_WORDS = 7
# Foreign words that count where all of them are of one language: who speaks two mixes them.
_OF_TWO = 2
# Letters of words that tell by themselves: `par` is a word of many languages.
_LONG = 4
_WORD = re.compile(r"\S+")
# Languages that the pairs of `neighbours_table.py` were not counted in, and the share of a line's
# small words, at least so many, that must be theirs.
_NOT_COUNTED = frozenset({"fo", "fy", "ie", "la", "lb", "mt", "nds", "rm"})
_MOSTLY, _MIN_KNOWN = 0.9, 4
_LINE_CHARS = 400
# What ends a clause, after a word; and what begins a quotation.
_ENDS = frozenset(".,;:!?|\"'”»’")
_CELL = "|"
_OPENS = frozenset("\"'“«‘„")


def _part(part: str) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    shared, *rows = part.splitlines()
    words = {
        word: frozenset(named.split())
        for named, _, spoken in (row.partition(": ") for row in rows)
        for word in spoken.split()
    }
    return frozenset(shared.split()) - {"-"}, words


_PARTS = [_part(part) for part in PARTS.strip().split("\n\n")]
_LANGUAGES: dict[str, frozenset[str]] = {
    w: names for _, part in _PARTS for w, names in part.items()
}
_BITS = {name: 1 << at for at, name in enumerate(sorted(frozenset().union(*_LANGUAGES.values())))}
_MASKS = {word: sum(_BITS[name] for name in names) for word, names in _LANGUAGES.items()}


def languages_of(word: str) -> frozenset[str]:
    """The languages that have a small word; none for a word that the table does not know."""
    return _LANGUAGES.get(word, frozenset())


def are_of_two(first: str, second: str) -> bool:
    """True for two small words that no language shares, both too long for a word of many; of
    100,000 clean texts none has two such in a clause of a third language."""
    return min(len(first), len(second)) >= _LONG and not _MASKS[first] & _MASKS[second]


def is_not_counted(prose: str, at: int, languages: frozenset[str]) -> bool:
    """True where only languages of which no pairs were counted have a pair's words, and the line
    at its place is in one of them."""
    if not languages or not languages <= _NOT_COUNTED:
        return False
    begin = max(prose.rfind("\n", 0, at) + 1, at - _LINE_CHARS)
    line = prose[begin : at + _LINE_CHARS].partition("\n")[0]
    known = [mask for mask in map(_MASKS.get, line.split(), repeat(0)) if mask]
    return len(known) >= _MIN_KNOWN and any(
        sum(1 for mask in known if mask & _BITS[name]) >= _MOSTLY * len(known) for name in languages
    )


def classes() -> Iterator[tuple[frozenset[str], Iterable[str]]]:
    """The words that share a code, with the languages that it stands for."""
    for languages, part in _PARTS:
        if languages:
            yield languages, part


def foreign_words(
    prose: str, begin: int = 0, stop: int = sys.maxsize
) -> Iterator[list[tuple[int, int]]]:
    """Clause by clause, the places of the small words that the language of the others does not
    have: those of the clause's worst `WINDOW_WORDS` words. More than two are of two languages.

    `begin` and `stop` bound the lines that are looked at.
    """
    at = begin
    for line in prose[begin:stop].splitlines(keepends=True):
        known = [mask for mask in map(_MASKS.get, line.split(), repeat(0)) if mask]
        if len(known) > 1 and not reduce(and_, known):
            for clause in _clauses(line):
                if worst := _worst(clause):
                    yield [(at + start, at + end) for start, end in worst]
        at += len(line)


# number of the word in its clause, start, end, languages
_Known = tuple[int, int, int, int]


def _clauses(line: str) -> Iterator[list[_Known]]:
    """The small words of each clause of a line."""
    clause: list[_Known] = []
    for number, match in enumerate(_WORD.finditer(line)):
        word = match.group()
        if len(word) > 1 and word[0] in _OPENS:
            yield clause
            clause = []
        mask = _MASKS.get(word, 0)
        if mask:
            clause.append((number, *match.span(), mask))
        elif word == _CELL or (word[-1] in _ENDS and any(map(str.isalnum, word))):
            yield clause
            clause = []
    yield clause


def _worst(clause: list[_Known]) -> list[tuple[int, int]]:
    """The small words of a clause that are foreign in the window which has most of them."""
    worst: list[tuple[int, int]] = []
    masks = tuple(mask for *_, mask in clause)
    # The same windows come again and again in whatever is made to cost time.
    looked_at = set[tuple[int, ...]]()
    last = 0
    for first, (number, *_) in enumerate(clause):
        while last < len(clause) and clause[last][0] < number + WINDOW_WORDS:
            last += 1
        inside = masks[first:last]
        if len(inside) <= len(worst) + 1 or inside in looked_at:
            continue
        looked_at.add(inside)
        foreign = _foreign(clause[first:last], _most_spoken(inside))
        worst = max(worst, foreign, key=len)
    return worst


def _foreign(words: list[_Known], language: int) -> list[tuple[int, int]]:
    """The words that a language does not have."""
    foreign = [(start, end, mask) for _, start, end, mask in words if not mask & language]
    if reduce(and_, (mask for *_, mask in foreign), -1):
        foreign = foreign[:_OF_TWO]
    return [(start, end) for start, end, _ in foreign]


@lru_cache(maxsize=4096)
def _most_spoken(masks: tuple[int, ...]) -> int:
    """The language that has most of the words."""
    if shared := reduce(and_, masks):
        return shared
    return max(_BITS.values(), key=lambda bit: sum(1 for mask in masks if mask & bit))

"""Words that are shown, not said: one a line, in columns, in the order of the alphabet, or in a
lesson of grammar."""

# Long lines: patterns that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W\d_]+")
# Words on each side of a find that are looked at, as many as must be there, and how far they reach.
_BESIDE = 4
_MIN_WORDS = 7
_REACH = 120
# A line of prose that goes on below it has some words, and no columns.
_MIN_LINE_WORDS = 3
# No entry of a list that is one word and numbers is longer.
_LONGEST_ENTRY = 400
_MOST_ROW_WORDS = 8
_COLUMNS = re.compile(r"\S(?:  |\t)|\|")
_RENAMED = re.compile(r"[,{] ?\w+ as [\w$]+ ?[,}]")
_RENAMED_REACH = 40
# Words of two letters, more of them in a row than any sentence has, with their regions.
_CODES = re.compile(r"(?<!\S)(?:[a-z]{2}(?:[-_][A-Za-z]{2,4})?,? ){7,}[a-z]{2}(?!\w)")
_CODES_REACH = 240
# Small words of other languages that English has as nouns, and what makes them that.
_NOUNS = frozenset({"van", "den", "die", "hat", "para", "dan"})
_DETERMINER = re.compile(
    r"(?:\b(?:an?|the|this|another|each|every|one|first|second|his|her|its|my|our|your) )\Z",
    re.IGNORECASE,
)
_REACH_BACK = 10
_GRAMMAR = re.compile(
    r"\b(?:grammar|(?:in)?definite articles?|articles?\b(?=.{0,12}\b(?:der|la|el|il|de|o)\b)|prepositions?|conjunctions?|pronouns?|"
    r"stop ?words?|function words|keywords?|synonyms?|verbs?|nouns?|corrected|misspel|typos?|doubled|your sentence|the words?\b|"
    r"(?:german|french|spanish|italian|portuguese|dutch|swedish|danish|norwegian|polish|turkish|romanian|finnish|catalan|"
    r"galician)\b|(?:latin|english)(?= \w| ?:))",
    re.IGNORECASE,
)


def in_order(prose: str, start: int, end: int) -> bool:
    """True where the words around `prose[start:end]` stand in the order of the alphabet."""
    while start and prose[start - 1].isalpha():
        start -= 1
    before = _WORD.findall(prose, max(0, start - _REACH), start)[-_BESIDE:]
    words = before + _WORD.findall(prose, start, end + _REACH)
    words = [word.casefold() for word in words[: 2 * _BESIDE]]
    return len(words) >= _MIN_WORDS and words == sorted(words)


def stands_alone(prose: str, at: int) -> bool:
    """True where the word at a place has its line to itself, but for numbers."""
    line = _line(prose, at)
    if len(line) > _LONGEST_ENTRY:
        return False
    return sum(not word.isdigit() for word in line.split()) == 1


def is_row(prose: str, at: int) -> bool:
    """True where the line of a place and one beside it are rows: short, with one first word."""
    words = _line(prose, at).split(None, _MOST_ROW_WORDS)
    if not 2 <= len(words) <= _MOST_ROW_WORDS:
        return False
    start = prose.rfind("\n", 0, at)
    end = prose.find("\n", at)
    beside = [
        _line(prose, start - 1) if start > 0 else "",
        _line(prose, end + 1) if end >= 0 else "",
    ]
    return any(line.split()[:1] == words[:1] for line in beside)


def goes_on(prose: str, at: int) -> bool:
    """True where the line break at a place is in running text, not between the rows of a list."""
    above, below = _line(prose, at), _line(prose, at + 1)
    return all(
        len(line.split(None, _MIN_LINE_WORDS)) >= _MIN_LINE_WORDS
        and not _COLUMNS.search(line.strip())
        for line in (above, below)
    )


def speaks_of_words(text: str) -> bool:
    """True where a text names a language or speaks of grammar: the small words in it are shown."""
    return _GRAMMAR.search(text) is not None


def is_row_of_codes(text: str, begin: int, end: int) -> bool:
    """True for codes of languages one after another: `en da nl et fr de el it`."""
    rows = _CODES.finditer(text, max(0, begin - _CODES_REACH), end + _CODES_REACH)
    return any(row.start() <= begin and end < row.end() for row in rows)


def is_renamed(text: str, at: int) -> bool:
    """True in the list of an import: `{ a5 as R, af as Bt }`."""
    return _RENAMED.search(text, max(0, at - 2), at + _RENAMED_REACH) is not None


def is_english_noun(text: str, at: int, word: str) -> bool:
    """True where a small word of another language is an English noun: `a van`, `a combination of
    jest and mocha`."""
    if word == "jest":
        return True
    return word in _NOUNS and _DETERMINER.search(text[max(0, at - _REACH_BACK) : at]) is not None


def _line(prose: str, at: int) -> str:
    start = prose.rfind("\n", 0, at) + 1
    end = prose.find("\n", at)
    return prose[start : end if end >= 0 else len(prose)]

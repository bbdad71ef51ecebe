"""Words drawn from nothing: rows whose letters no language strings together.

Rows such as `tno iedrf czilnhp ijixoy`, in one script, hold no odd word pair and no foreign letter.
Words set apart by blanks count, written as words are; names in code, numbers and codes do not. One
odd word is a name; a row of them is written by nobody but a list, which has its order, its commas
or its quotation marks.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dsv4doctor.detect.letters import LONGEST, SHORTEST, letter_of, likelihood

# A word as running text has it: blanks around, and the marks of a sentence.
_WORD = re.compile(
    rf"(?<!\S)[(\"'«“‘\[¿¡]{{0,2}}([^\W\d_]{{{SHORTEST},{LONGEST}}})(?=[.,;:!?)\"'»’”\]…]{{0,3}}(?!\S))"
)
# Sighs and shouts, which come by twos: `öljhhhétek... vághhhjátok`.
_DRAWN_OUT = re.compile(r"(.)\1\1")
_SHOUTS = 2
# Rows that are low and explained are looked at no further than this.
_MOST_CHECKED = 64
# Genes, hexadecimal digits and sighs have fewer letters than this.
_LETTERS_OF_A_CODE = 7
_TALK = re.compile(
    r"rot-?13|cipher|encrypt|decrypt|scrambl|gibberish|anagram|caesar", re.IGNORECASE
)
_TALK_WITHIN = 400
# A place stands for so many characters: a stretch of `many_letters`.
_STRETCH = 32
# Every so manieth word of a line that is a row of names is unlikely.
_ODD = 8
# Share of a row's words that hold the same two letters side by side, as names of one family do.
_OF_ONE_FAMILY = 0.66
# So many letters in a row that half of the words share make them a family too.
_SHARED = 4
# Of every so many things between blanks one has no letter: a table or an expression in code.
_WORDLESS = 3
# So many words in alphabetical order are a list; fewer if their first letters are neighbours too.
_LEAST_IN_ORDER, _NEAR_IN_ORDER = 6, 3
# Of a line next to a row so much is looked at: lines of a megabyte are no rows of names.
_LINE_CHARS = 400
# Letters of a block, and blocks of a line, fewer behind a number.
_LEAST_BLOCK, _LEAST_BLOCKS, _LEAST_NUMBERED = 5, 4, 2
_FIRST = re.compile(r"[ \t]*\S+\s")


@dataclass(frozen=True, slots=True)
class _Row:
    """At least so many words within so many characters that sum up to at most so much."""

    chars: int
    words: int
    half_bits: int


# Of 55,243 pieces of this machine's texts none comes so low unexplained, and of 60,126 of other
# packages 36, all of them fortunes in ROT13 and the like. With a third of 412 spellings of the
# Declaration of Human Rights kept from the table, eight of those came below -70 (Hani, Miao,
# Mi'kmaq, Salar, Maltese, languages of the Amazon), and none once they were counted.
_ROWS = {
    "Latin": (_Row(32, 2, -80), _Row(32, 3, -56), _Row(60, 3, -66), _Row(240, 4, -100)),
    # No sound text of either came below -22.
    "Cyrillic": (_Row(32, 2, -75), _Row(32, 3, -50), _Row(60, 3, -60), _Row(240, 4, -90)),
    "Greek": (_Row(32, 2, -75), _Row(32, 3, -50), _Row(60, 3, -60), _Row(240, 4, -90)),
    # No row of 900 sound texts came below -40; few of its languages were counted, too.
    "Hebrew": (_Row(32, 2, -100), _Row(32, 3, -70), _Row(60, 3, -85), _Row(240, 4, -120)),
    # Few of its languages were counted.
    "Arabic": (_Row(32, 2, -140), _Row(32, 3, -105), _Row(60, 3, -105), _Row(240, 4, -150)),
}
# A word is unlikely from here on; most words of a row are, and one of them is no abbreviation.
_UNLIKELY = -5
_MOST = 0.6
_ABBREVIATION = 4
_NO_ABBREVIATIONS = 1
_COMMAS = re.compile("[,;،、؛/|]")


@dataclass(frozen=True, slots=True)
class _Word:
    start: int
    end: int
    text: str
    score: int


def unlikely_row(text: str, places: Sequence[int], prompt: str) -> tuple[int, int] | None:
    """Where a row of words begins and ends that is drawn from nothing, in a line that one of
    `places` is in (see `many_letters`); None where there is none."""
    checked, prompt = 0, prompt.lower()
    for start, end in _lines(text, places):
        for script, words in _by_script(text, start, end).items():
            for row in _ROWS[script]:
                for found in _low(words, row):
                    if not _is_explained(text, found, row, prompt):
                        return found[0].start, found[-1].end
                    checked += 1
                    if checked >= _MOST_CHECKED:
                        return None
    return None


def _by_script(text: str, start: int, end: int) -> dict[str, list[_Word]]:
    """The words of a line, those of each script in a row of their own."""
    rows: dict[str, list[_Word]] = {}
    for match in _WORD.finditer(text, start, end):
        score, letter = likelihood(match[1]), letter_of(match[1][0])
        if score is not None and letter is not None:
            word = _Word(match.start(1), match.end(1), match[1], score)
            rows.setdefault(letter[0], []).append(word)
    return rows


def _lines(text: str, places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The lines that hold the places and what comes soon after them, each once."""
    done = 0
    for place in places:
        last = min(len(text), place + _STRETCH)
        start = max(done, text.rfind("\n", 0, place) + 1)
        while start < last:
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            yield start, end
            start = done = end + 1


def _low(words: Sequence[_Word], row: _Row) -> Iterator[Sequence[_Word]]:
    """For each word, the lowest row that ends with it, if it is as low as `row` asks."""
    before = [0]
    for word in words:
        before.append(before[-1] + word.score)
    # Where rows may begin: the higher the sum before, the lower the row; the highest first.
    begins: deque[int] = deque()
    for last, word in enumerate(words):
        first = last - row.words + 1
        if first >= 0:
            while begins and before[begins[-1]] <= before[first]:
                begins.pop()
            begins.append(first)
        while begins and word.end - words[begins[0]].start > row.chars:
            begins.popleft()
        if begins and before[last + 1] - before[begins[0]] <= row.half_bits:
            yield words[begins[0] : last + 1]


def _is_explained(text: str, found: Sequence[_Word], row: _Row, prompt: str) -> bool:
    """True for a list, a code of few letters, words of the request and talk about ciphers."""
    words = [word.text.lower() for word in found]
    if len({*words}) < row.words or len({*"".join(words)}) < _LETTERS_OF_A_CODE:
        return True
    if sum(_DRAWN_OUT.search(word) is not None for word in words) >= _SHOUTS:
        return True
    unlikely = [word for word in found if word.score <= _UNLIKELY]
    if (
        len(unlikely) < max(row.words, _MOST * len(found))
        or _is_list(words)
        or _is_row(text, found[0].start)
        or _is_in_blocks(text, found[0].start)
    ):
        return True
    if sum(len(word.text) > _ABBREVIATION for word in unlikely) < _NO_ABBREVIATIONS:
        return True
    between = text[found[0].start : found[-1].end].split()
    if _WORDLESS * sum(not any(map(str.isalpha, token)) for token in between) > len(between):
        return True
    commas = sum(bool(_COMMAS.search(text, a.end, b.start)) for a, b in pairwise(found))
    if 2 * commas >= len(found) - 1:
        return True
    if prompt and 2 * sum(word in prompt for word in words) >= len(words):
        return True
    near = text[max(0, found[0].start - _TALK_WITHIN) : found[-1].end + _TALK_WITHIN]
    return _TALK.search(near) is not None


def _is_list(words: Sequence[str]) -> bool:
    """True for words in alphabetical order, or of one family of names."""
    neighbours = [*pairwise(words)]
    in_order = all(a <= b for a, b in neighbours)
    near = ord(words[-1][0]) - ord(words[0][0]) <= _NEAR_IN_ORDER
    if len(words) > 2 and in_order and (near or len(words) >= _LEAST_IN_ORDER):
        return True
    if 2 * sum(a[0] == b[0] for a, b in neighbours) > len(neighbours):
        return True
    pairs = Counter(pair for word in words for pair in _pieces(word, 2))
    if pairs.most_common(1)[0][1] >= max(3, _OF_ONE_FAMILY * len(words)):
        return True
    shared = Counter(piece for word in words for piece in _pieces(word, _SHARED))
    return any(2 * times >= len(words) for _, times in shared.most_common(1) if times > 1)


def _pieces(word: str, size: int) -> set[str]:
    return {word[at : at + size] for at in range(len(word) - size + 1)}


def _is_row(text: str, at: int) -> bool:
    """True in a line that begins as the line before or after it does, and holds words as odd: a
    row of names."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    first = _FIRST.match(text, start)
    if first is None:
        return False
    before = text.rfind("\n", 0, max(0, start - 1)) + 1
    others = [text[before : min(start, before + _LINE_CHARS)]] if start else []
    others += [text[end + 1 : end + 1 + _LINE_CHARS].partition("\n")[0]] if end >= 0 else []
    return any(other.startswith(first[0]) and _is_odd(other) for other in others)


def _is_in_blocks(text: str, at: int) -> bool:
    """True in a line of equal pieces, the last shorter, as sequences of proteins and keys are
    written; its number may stand before them."""
    start = text.rfind("\n", 0, at) + 1
    number, *pieces = text[start : start + _LINE_CHARS].partition("\n")[0].split() or [""]
    if not number.isdigit():
        pieces.insert(0, number)
    sizes = [len(piece) for piece in pieces if piece.isalpha()]
    return (
        len(pieces) == len(sizes) >= (_LEAST_NUMBERED if number.isdigit() else _LEAST_BLOCKS)
        and sizes[0] >= _LEAST_BLOCK
        and {*sizes[:-1]} == {sizes[0]}
        and sizes[-1] <= sizes[0]
    )


def _is_odd(line: str) -> bool:
    scores = [likelihood(match[1]) or 0 for match in _WORD.finditer(line)]
    return _ODD * sum(score <= _UNLIKELY for score in scores) >= len(scores) > 0

"""The small words of many texts at once: what `neighbours.codes_of` says of each, at a third of its
cost.

The texts are joined, and whole arrays of words are looked up: the first eight bytes of a word are
one number, which a multiplication hashes. Word by word, the same costs an object and a dictionary
look-up for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from dsv4doctor.detect.clashes import NO_WORD, PARTING, Stretch, clashes
from dsv4doctor.detect.neighbours import (
    CLAUSE_WORDS,
    SPOKEN,
    SUFFIX,
    codes_of,
    holds_odd_pair,
    holds_telling,
    odd_rows,
    small_words,
)

# What `str.split` parts words by beyond ASCII.
WIDE_BLANKS = frozenset(chr(c) for c in range(0x80, 0x3001) if chr(c).isspace())
_PLAIN_BLANKS = dict.fromkeys(map(ord, WIDE_BLANKS), " ")
# ASCII's own: five from the tab on, and five up to the blank.
_TAB, _FIRST_SEPARATOR, _FOUR_MORE = 0x09, 0x1C, 4
# Bytes of a word that make its key.
_KEY = 8
# Bits of the first table's index, and of the second's, for words that share a place in the first.
_FIRST_BITS, _SECOND_BITS = 14, 12
# 2 to the 64th divided by the golden ratio, and the odd numbers tried after it.
_MULTIPLIER = 0x9E3779B97F4A7C15
_ALL_BITS = (1 << 64) - 1
_ONLY_LONGER = 256
_NEW_LINE = 0x0A
_LETTERS = 26
# Fewer characters than this are not worth the arrays.
_MIN_CHARS = 3000


class Words(NamedTuple):
    """What the words of a text say.

    The small ones' codes (`neighbours.codes_of`), whether an odd pair is among them
    (`holds_odd_pair`), where they clash (`clashes.clashes`), and whether a word that begins with a
    letter of ASCII may come twice in a row.
    """

    codes: bytes
    odd: bool
    clashes: Sequence[Stretch]
    doubled: bool

    @property
    def may_tell(self) -> bool:
        """False where nothing is odd about them."""
        return self.odd or bool(self.clashes) or holds_telling(self.codes)


def words_of(text: str) -> Words:
    """What the small words of one text say."""
    codes = codes_of(text)
    words = text.split()
    doubled = any(a == b and _is_letter(a[0]) for a, b in pairwise(words))
    return Words(codes, holds_odd_pair(codes), tuple(clashes(text, codes)), doubled)


def _is_letter(char: str) -> bool:
    return char.isascii() and char.isalpha()


def words_of_all(texts: Sequence[str], raws: Sequence[bytes], wide: Sequence[bool]) -> list[Words]:
    """`words_of` each text, in order; `raws` are the texts in UTF-8, `wide` is False for one
    without blanks beyond ASCII's."""
    if sum(map(len, texts)) < _MIN_CHARS:
        return list(map(words_of, texts))
    each = zip(texts, raws, wide, strict=True)
    raws = [_plainly_parted(text) if w else raw for text, raw, w in each]
    every, clashing, doubled = _codes_and_clashes(raws)
    odd = [SUFFIX in codes for codes in every]
    # An unknown word parts them: it is in no row.
    for row in set(odd_rows(b"\0".join(every))):
        odd = [told or row in codes for told, codes in zip(odd, every, strict=True)]
    words = list(map(Words._make, zip(every, odd, clashing, doubled, strict=True)))
    # A word with NUL has the key of the same word without it.
    for number, raw in enumerate(raws):
        if b"\0" in raw:
            words[number] = words_of(texts[number])
    return words


def _plainly_parted(text: str) -> bytes:
    """The text in UTF-8, every blank between words one of ASCII's."""
    return text.translate(_PLAIN_BLANKS).encode("utf-8", "surrogatepass")


def _codes_and_clashes(
    raws: Sequence[bytes],
) -> tuple[list[bytes], list[list[Stretch]], list[bool]]:
    """Each text's codes, clashes and whether words come twice."""
    import numpy as np

    joined = b" " + b" ".join(raws) + b" " * (_KEY + 1)
    raw = np.frombuffer(joined, np.uint8)
    # What lies before the first of the five wraps round to great numbers.
    blank = (raw - np.uint8(_TAB) <= _FOUR_MORE) | (raw - np.uint8(_FIRST_SEPARATOR) <= _FOUR_MORE)
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    starts, stops = edges[0::2], edges[1::2]
    lengths = stops - starts
    table = _table()
    # One number of eight bytes from every place on; past a word's end they are masked.
    numbers: Any = np.ndarray((len(joined) - _KEY + 1,), "<u8", joined, 0, (1,))
    keys = numbers[starts] & table.masks[np.minimum(lengths, _KEY)]
    codes = table.look_up(keys)
    doubtful = (codes == _ONLY_LONGER) | ((codes != 0) & (lengths > _KEY))
    for at in np.flatnonzero(doubtful).tolist():
        codes[at] = table.exact.get(joined[starts[at] : stops[at]], 0)
    known = codes.astype(np.uint8)
    every = known.tobytes()
    begins = np.cumsum([1, *(len(raw) + 1 for raw in raws)])
    bounds = np.searchsorted(starts, begins)
    clashing: list[list[Stretch]] = [[] for _ in raws]
    for first, last in _clashing(known, _clauses(raw, starts, stops, bounds)):
        number = int(np.searchsorted(bounds, first, "right")) - 1
        row = (starts[first] - begins[number], stops[last] - begins[number])
        clashing[number].append(_characters(raws[number], row))
    # Letters of both cases differ in one bit.
    again = (keys[1:] == keys[:-1]) & ((raw[starts[1:]] | 0x20) - np.uint8(ord("a")) < _LETTERS)
    doubled = [False] * len(raws)
    for number in set((np.searchsorted(bounds, again.nonzero()[0], "right") - 1).tolist()):
        doubled[number] = True
    return [every[a:b] for a, b in pairwise(bounds.tolist())], clashing, doubled


def _clauses(raw: Any, starts: Any, stops: Any, bounds: Any) -> Any:
    """By word: the number of its clause, as `clashes.clashes` parts them."""
    import numpy as np

    parted = np.zeros(len(starts) + 1, np.bool_)
    parted[bounds] = True
    ends_clause, ends_word = _ends()
    parted[1:] |= (ends_clause[raw[stops - 1]] & ends_word[raw[stops - 2]]) | (
        raw[stops] == _NEW_LINE
    )
    parted[:-1] |= raw[starts - 1] == _NEW_LINE
    return np.cumsum(parted[:-1])


def _clashing(codes: Any, clauses: Any) -> list[tuple[int, int]]:
    """First and last word of each row of small words that no language has all of."""
    import numpy as np

    spoken, is_small = _spoken()
    small = np.flatnonzero(is_small[codes])
    if not small.size:
        return []
    breaks = (np.diff(small) > CLAUSE_WORDS + 1) | (np.diff(clauses[small]) != 0)
    firsts = np.concatenate(([0], np.flatnonzero(breaks) + 1))
    rows = np.flatnonzero(np.bitwise_and.reduceat(spoken[codes[small]], firsts) == 0)
    lasts = np.append(firsts[1:], len(small)) - 1
    return list(zip(small[firsts[rows]].tolist(), small[lasts[rows]].tolist(), strict=True))


def _characters(raw: bytes, row: tuple[int, int]) -> Stretch:
    """The place of bytes of a text in characters."""
    start, stop = row
    if raw.isascii():
        return int(start), int(stop)
    before = len(raw[:start].decode("utf-8", "surrogatepass"))
    return before, before + len(raw[start:stop].decode("utf-8", "surrogatepass"))


@lru_cache(maxsize=1)
def _ends() -> tuple[Any, Any]:
    """By byte: whether a clause may end on it, and whether it is of a word."""
    import numpy as np

    ends_clause, ends_word = np.zeros(256, np.bool_), np.ones(256, np.bool_)
    ends_clause[list(PARTING.encode())] = True
    ends_word[list(NO_WORD.encode())] = False
    return ends_clause, ends_word


@lru_cache(maxsize=1)
def _spoken() -> tuple[Any, Any]:
    """By code: one bit for every language that has the word, and whether any is known to."""
    import numpy as np

    spoken = np.array([bits & _ALL_BITS for bits in SPOKEN], np.uint64)
    return spoken, np.array([bits >= 0 for bits in SPOKEN])


# Multiplier, shift, keys and codes by place.
_Place = tuple[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class _Table:
    """Keys and codes by two hashes; `exact` are all words in UTF-8.

    The code of a key is `_ONLY_LONGER` where only longer words begin with it.
    """

    masks: Any
    places: tuple[_Place, ...]
    exact: Mapping[bytes, int]

    def look_up(self, keys: Any) -> Any:
        """The code of each key, 0 for an unknown one."""
        found = 0
        for multiplier, shift, known, codes in self.places:
            at = ((keys * multiplier) >> shift).view("i8")
            found = found + codes[at] * (known[at] == keys)
        return found


@lru_cache(maxsize=1)
def _table() -> _Table:
    import numpy as np

    exact = {word.encode(): code for word, code in small_words().items()}
    keys: dict[int, int] = {}
    for word, code in exact.items():
        key = int.from_bytes(word[:_KEY], "little")
        if len(word) <= _KEY:
            keys[key] = code
        else:
            keys.setdefault(key, _ONLY_LONGER)
    masks = np.array([(1 << (8 * size)) - 1 for size in range(_KEY + 1)], np.uint64)
    first, rest = _placed(keys, _MULTIPLIER, _FIRST_BITS)
    multiplier, second, left = _MULTIPLIER, first, rest
    while left:
        multiplier = (multiplier * 3 + 2) & _ALL_BITS
        second, left = _placed(rest, multiplier, _SECOND_BITS)
    return _Table(masks, (first, second), exact)


def _placed(keys: Mapping[int, int], multiplier: int, bits: int) -> tuple[_Place, dict[int, int]]:
    """A table of the keys, the first one at each place, and the keys that found theirs taken."""
    import numpy as np

    shift = 64 - bits
    known, codes = np.zeros(1 << bits, np.uint64), np.zeros(1 << bits, np.uint16)
    taken: set[int] = set()
    rest: dict[int, int] = {}
    for key, code in keys.items():
        at = (key * multiplier & _ALL_BITS) >> shift
        if at in taken:
            rest[key] = code
        else:
            taken.add(at)
            known[at], codes[at] = key, code
    return (np.uint64(multiplier), np.uint64(shift), known, codes), rest

"""The small words of many texts at once: what `neighbours.codes_of` says of each, at a third of its
cost.

The texts are joined, and whole arrays of words are looked up: the first eight bytes of a word are
one number, which a multiplication hashes. Word by word, the same costs an object and a dictionary
look-up for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import pairwise
from operator import or_
from typing import Any

from dsv4doctor.detect.neighbours import (
    TELLING,
    codes_of,
    languages_missing,
    odd_rows,
    small_words,
)

# What `str.split` parts words by beyond ASCII.
_WIDE_BLANKS = frozenset(chr(c) for c in range(0x80, 0x3001) if chr(c).isspace())
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
# Fewer characters than this are not worth the arrays.
_MIN_CHARS = 3000


def codes_of_all(texts: Sequence[str], signs: Sequence[frozenset[str]]) -> list[bytes]:
    """`codes_of` of each text, in order; `signs` are the texts' (see `signs.py`)."""
    if sum(map(len, texts)) < _MIN_CHARS:
        return [codes_of(text) for text in texts]
    raws = [_plainly_parted(text, s) for text, s in zip(texts, signs, strict=True)]
    every = _codes(raws)
    # A word with NUL has the key of the same word without it.
    for number, raw in enumerate(raws):
        if b"\0" in raw:
            every[number] = codes_of(texts[number])
    return every


def who_may_tell(every: Sequence[bytes]) -> list[bool]:
    """`neighbours.may_tell` of each of the codes, in order; True also for some of which it is
    not."""
    import numpy as np

    if not every:
        return []
    # An unknown word parts them: it is in no row, tells nothing and has no language.
    joined = b"\0".join(every) + b"\0"
    begins = np.cumsum([0, *(len(codes) + 1 for codes in every[:-1])])
    traits = _traits()
    seen = np.bitwise_or.reduceat(traits[np.frombuffer(joined, np.uint8)], begins)
    may: list[bool] = (seen == traits.max()).tolist()
    for row in set(odd_rows(joined)):
        may = [told or row in codes for told, codes in zip(may, every, strict=True)]
    return may


@lru_cache(maxsize=1)
def _traits() -> Any:
    """By code: the languages that do not have its word; all of them for a code that tells by
    itself, as for words of which no language has all."""
    import numpy as np

    missing = languages_missing()
    every = reduce(or_, missing)
    return np.array([every if code in TELLING else m for code, m in enumerate(missing)], np.uint64)


def _plainly_parted(text: str, signs: frozenset[str]) -> bytes:
    """The text in UTF-8, every blank between words one of ASCII's."""
    if not text.isascii():
        for blank in signs & _WIDE_BLANKS:
            text = text.replace(blank, " ")
    return text.encode("utf-8", "surrogatepass")


def _codes(raws: Sequence[bytes]) -> list[bytes]:
    import numpy as np

    joined = b" " + b" ".join(raws) + b" " * (_KEY + 1)
    raw = np.frombuffer(joined, np.uint8)
    # What lies before the first of the five wraps round to great numbers.
    blank = (raw - np.uint8(_TAB) <= _FOUR_MORE) | (raw - np.uint8(_FIRST_SEPARATOR) <= _FOUR_MORE)
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    starts, lengths = edges[0::2], edges[1::2] - edges[0::2]
    table = _table()
    # One number of eight bytes from every place on; past a word's end they are masked.
    numbers: Any = np.ndarray((len(joined) - _KEY + 1,), "<u8", joined, 0, (1,))
    keys = numbers[starts] & table.masks[np.minimum(lengths, _KEY)]
    codes = table.look_up(keys)
    doubtful = (codes == _ONLY_LONGER) | ((codes != 0) & (lengths > _KEY))
    for at in np.flatnonzero(doubtful).tolist():
        codes[at] = table.exact.get(joined[starts[at] : starts[at] + lengths[at]], 0)
    every = codes.astype(np.uint8).tobytes()
    ends = np.cumsum([1, *(len(raw) + 1 for raw in raws)])
    bounds = np.searchsorted(starts, ends).tolist()
    return [every[a:b] for a, b in pairwise(bounds)]


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

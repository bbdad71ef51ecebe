"""What kinds of characters a text beyond ASCII has, told by one look at them all.

Every character has a number: one bit for its family of scripts, one for its block of symbols, and
one for each kind of sign that a rule begins with. They are looked up in a table of the code points
of 16 bits, which is filled in as characters are met: Unicode is finite.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dsv4doctor.detect.encodings import may_be_broken
from dsv4doctor.detect.scripts import FAMILIES, family_of
from dsv4doctor.detect.strewn import FIRST_PICTURE, STREWN
from dsv4doctor.detect.symbols import ODD, blocks_of, last_block

_FAMILY_BITS = {family: 1 << at for at, family in enumerate(FAMILIES)}
_ALL_FAMILIES = (1 << len(FAMILIES)) - 1
_FIRST_BLOCK = len(FAMILIES)
_SIGNS_FROM = _FIRST_BLOCK + last_block() + 1
# Blocks of symbols, one bit each.
BLOCKS = (1 << _SIGNS_FROM) - 1 - _ALL_FAMILIES
# It may show that bytes were read wrongly; `symbols.ODD`; `strewn.STREWN`; emoji.
TORN_SIGN, ODD_SIGN, STREWN_SIGN, PICTURE = (1 << (_SIGNS_FROM + at) for at in range(4))
# Half of a character beyond 16 bits, and what was not met yet.
_HALF, _UNKNOWN = 1 << (_SIGNS_FROM + 4), 1 << 63
_UNITS = 0x10000
# Shorter texts are looked up character by character.
_TABLE_FROM = 160


class _Kinds(dict[str, int]):
    """The number of every character that was met."""

    def __missing__(self, char: str) -> int:
        kinds = self[char] = _look_up(char)
        return kinds


_KINDS = _Kinds()
# The characters that the table has.
_TABLED = set[str]()


def _look_up(char: str) -> int:
    family = family_of(char)
    kinds = _FAMILY_BITS[family] if family else 0
    for block in blocks_of(char):
        kinds |= 1 << (_FIRST_BLOCK + block)
    if may_be_broken(char):
        kinds |= TORN_SIGN
    if char in ODD:
        kinds |= ODD_SIGN
    if char in STREWN:
        kinds |= STREWN_SIGN
    return kinds | PICTURE if char >= FIRST_PICTURE else kinds


def kinds_of(text: str) -> int:
    """The bits of all characters of `text`."""
    if len(text) < _TABLE_FROM:
        return _of_each(set(text))
    import numpy as np

    table = _table()
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), np.uint16)
    found = int(np.bitwise_or.reduce(table.take(units)))
    if found & _UNKNOWN:
        for char in set(text) - _TABLED:
            if ord(char) < _UNITS:
                table[ord(char)] = _KINDS[char] | (_HALF if "\ud800" <= char < "\ue000" else 0)
            _TABLED.add(char)
        found = int(np.bitwise_or.reduce(table.take(units)))
    if found & _HALF:
        found |= _of_each({char for char in set(text) if char >= "\ud800"})
    return found


def _of_each(chars: set[str]) -> int:
    found = 0
    for char in chars:
        found |= _KINDS[char]
    return found


@lru_cache(maxsize=1024)
def _families(bits: int) -> frozenset[str]:
    return frozenset(family for family, bit in _FAMILY_BITS.items() if bits & bit)


def families_among(kinds: int) -> frozenset[str]:
    """The families of scripts among the bits of a text."""
    return _families(kinds & _ALL_FAMILIES)


@lru_cache(maxsize=1)
def _table() -> Any:
    import numpy as np

    table = np.full(_UNITS, _UNKNOWN, np.uint64)
    table[0xD800:0xE000] = _HALF
    return table

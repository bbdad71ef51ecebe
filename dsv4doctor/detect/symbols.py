"""Runs of symbols that have nothing to do with each other, as a broken decoder emits them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

# Symbols of prose and mathematics come alone or in families; boxes, arrows, operators, emoji,
# Braille and block elements are drawn with. What is left is what keyboards and code pages have at
# their edges.
ODD = frozenset("¶§°¬µ¤¦¨¯´¸ªº†‡※⌂⌐◊✱ﬀﬁﬂﬃﬄﬅﬆ⁂⁎℮℗℠™®©¿¡‰‱₪₫₭₮₯₰₱₲₳₴₵‹›‚„ˆ˜ƒ∂∆∏∑√∞∫≈≠≤≥⌠⌡╪╫╬")
# Beside some of these, the technical signs and shapes that no drawing mixes with them.
_SHAPES = "[\u2300-\u23ff\u25a0-\u25ff]"
_ODD = re.compile(f"[{''.join(sorted(ODD))}]|{_SHAPES}")
_LEAST_ODD = 3
_RUN = re.compile(r"(?:[^\w\s]|[ﬀ-ﬆµªºƒ]|[ \t])+")
MIN_SYMBOLS = 8
MIN_DISTINCT = 5
# Where blocks of symbols begin; a drawing, a formula or a row of arrows is made of one or two.
_BLOCKS = (
    0xA1, 0xC0, 0x2000, 0x2070, 0x20A0, 0x20D0, 0x2100, 0x2150, 0x2190, 0x2200, 0x2300, 0x2400,
    0x2460, 0x2500, 0x2580, 0x25A0, 0x2600, 0x2700, 0x27C0, 0x27F0, 0x2800, 0x2900, 0x2980, 0x2A00,
    0x2B00, 0x2C00,
)  # fmt: skip
_ASCII_BLOCK = -1
_NO_SYMBOLS = frozenset(
    {_ASCII_BLOCK, *(bisect_right(_BLOCKS, at) for at in (0xC0, 0x2000, 0x2070, 0x20D0, 0x2C00))}
)
MIN_BLOCKS = 5
# Share of a run's characters that must be such symbols, and blanks a symbol that part them.
_MOSTLY = 0.8
_PARTED = 0.25
# Code points between two neighbours of a table of characters, and the share of such neighbours.
_STEP, _IN_ORDER = 3, 0.6


def blocks_of(chars: Iterable[str]) -> frozenset[int]:
    """The blocks of symbols that the characters are of; none for letters and for ASCII."""
    return frozenset(map(_BLOCK_OF.__getitem__, chars)) - _NO_SYMBOLS


def last_block() -> int:
    """The greatest number of a block."""
    return len(_BLOCKS)


class _Blocks(dict[str, int]):
    """Every character's block, looked up once; Unicode is finite, and so is this table."""

    def __missing__(self, char: str) -> int:
        block = self[char] = bisect_right(_BLOCKS, ord(char)) if char > "\xa0" else _ASCII_BLOCK
        return block


_BLOCK_OF = _Blocks()


def symbol_noise(text: str) -> tuple[int, int] | None:
    """The first run of at least eight odd symbols of five or more kinds, or of symbols of five
    blocks; None if there is none."""
    return _of_odd_ones(text) or _of_many_blocks(text)


def _of_many_blocks(text: str) -> tuple[int, int] | None:
    for match in _RUN.finditer(text):
        if match.end() - match.start() < MIN_SYMBOLS or match.group().isascii():
            continue
        visible = "".join(match.group().split())
        symbols = [char for char in visible if blocks_of(char)]
        # A table of characters stands without blanks.
        is_parted = match.group().count(" ") >= _PARTED * len(symbols)
        enough = len(symbols) >= max(MIN_SYMBOLS, _MOSTLY * len(visible))
        if is_parted and enough and len(blocks_of(symbols)) >= MIN_BLOCKS:
            return match.span()
    return None


def _of_odd_ones(text: str) -> tuple[int, int] | None:
    if len(_ODD.findall(text)) < MIN_SYMBOLS:
        return None
    for match in _RUN.finditer(text):
        if match.end() - match.start() < MIN_SYMBOLS:
            continue
        odd = _ODD.findall(match.group())
        visible = len(match.group().replace(" ", "").replace("\t", ""))
        kinds = set(odd)
        if len(odd) < max(MIN_SYMBOLS, 0.7 * visible) or len(kinds) < MIN_DISTINCT:
            continue
        if len(kinds & ODD) < _LEAST_ODD:
            continue
        if not _is_in_order(match.group()):
            return match.span()
    return None


def _is_in_order(run: str) -> bool:
    """True for a table of characters, most of them right behind the one that they follow."""
    visible = "".join(run.split())
    steps = sum(0 < ord(b) - ord(a) <= _STEP for a, b in pairwise(visible))
    return steps >= _IN_ORDER * (len(visible) - 1)

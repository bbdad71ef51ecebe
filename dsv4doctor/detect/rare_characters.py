"""Ideographs and syllables drawn from nothing: runs of characters that nobody writes.

Unicode has 21,000 ideographs and 11,172 syllables of Korean in its first blocks; running text is
written with those that the countries' first character sets hold, and every fourth ideograph and
syllable of them at most is another one. Drawn evenly, half of the ideographs and four of five
syllables are. Lists of characters stand in their order, or one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

_HAN, _HANGUL = ("\u4e00", "\u9fff"), ("\uac00", "\ud7a3")
# Character sets in two bytes, with the first bytes that hold what is common: GB 2312 and JIS X 0208
# whole, the first level of Big5, the syllables of KS X 1001.
_SETS = {
    _HAN: (("gb2312", range(0xB0, 0xF8)), ("shift_jis", range(0x88, 0xEB)),
           ("big5", range(0xA4, 0xC7))),
    _HANGUL: (("euc-kr", range(0xB0, 0xC9)),),
}  # fmt: skip
# So many rare characters in a stretch of so many, which they are this share of, are nobody's.
_STRETCH, _LEAST, _SHARE = 40, 7, 0.38
# A list in the order of its codes has this share of steps upward at least.
_UPWARD = 0.8
_RUNS = {(first, last): re.compile(f"[{first}-{last}]{{2,}}") for first, last in _SETS}


@lru_cache(maxsize=2)
def _common(script: tuple[str, str]) -> frozenset[str]:
    found = set[str]()
    for name, first_bytes in _SETS[script]:
        for first in first_bytes:
            for second in range(0x40, 0xFF):
                found.update(bytes((first, second)).decode(name, "ignore"))
    return frozenset(char for char in found if script[0] <= char <= script[1])


def rare_run(text: str, signs: Iterable[str]) -> tuple[int, int] | None:
    """Where rare ideographs or syllables crowd; `signs` are the text's distinct characters."""
    for script in _SETS:
        first, last = script
        rare = {c for c in signs if first <= c <= last} - _common(script)
        if len(rare) >= _LEAST and (found := _crowd(text, script, rare)):
            return found
    return None


def _crowd(text: str, script: tuple[str, str], rare: set[str]) -> tuple[int, int] | None:
    """The first stretch that rare characters are enough of."""
    places = list(_places(text, script))
    marked = [n for n, (_, char) in enumerate(places) if char in rare]
    for begin, end in zip(marked, marked[_LEAST - 1 :], strict=False):
        near = places[end][0] - places[begin][0] < _STRETCH
        if near and _SHARE * (end - begin + 1) <= _LEAST:
            row = [char for _, char in places[begin : end + 1]]
            if sum(a < b for a, b in pairwise(row)) < _UPWARD * (len(row) - 1):
                return places[begin][0], places[end][0] + 1
    return None


def _places(text: str, script: tuple[str, str]) -> Iterator[tuple[int, str]]:
    """Every character of a script that stands beside another one, and where."""
    for run in _RUNS[script].finditer(text):
        yield from enumerate(run[0], run.start())

"""Ideographs and syllables drawn from nothing: runs of characters that nobody writes.

Unicode has 21,000 ideographs and 11,172 syllables of Korean in its first blocks; running text is
written with those that the countries' first character sets hold, and every fourth ideograph and
syllable of them at most is another one. Drawn evenly, half of the ideographs and four of five
syllables are. Lists of characters stand in their order, or one by one.
"""

from __future__ import annotations

import re
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


@lru_cache(maxsize=1)
def _common() -> frozenset[str]:
    found = set[str]()
    for sets in _SETS.values():
        for name, first_bytes in sets:
            for first in first_bytes:
                for second in range(0x40, 0xFF):
                    found.update(bytes((first, second)).decode(name, "ignore"))
    return frozenset(found)


def rare_run(text: str, signs: frozenset[str]) -> tuple[int, int] | None:
    """Where rare ideographs or syllables crowd; `signs` are the text's distinct characters."""
    others = signs - _common()
    if len(others) < _LEAST:
        return None
    for script in _SETS:
        first, last = script
        rare = {char for char in others if first <= char <= last}
        if len(rare) >= _LEAST and (found := _crowd(text, script, rare)):
            return found
    return None


def _crowd(text: str, script: tuple[str, str], rare: set[str]) -> tuple[int, int] | None:
    """The first stretch that rare characters are enough of, each beside another of its script."""
    marked = [match.start() for match in re.finditer(f"[{''.join(sorted(rare))}]", text)]
    for begin, end in zip(marked, marked[_LEAST - 1 :], strict=False):
        if end - begin < _STRETCH:
            near = text[max(0, begin - 1) : end + 2]
            row = [char for run in _RUNS[script].findall(near) for char in run]
            enough = max(_LEAST, _SHARE * len(row)) <= sum(char in rare for char in row)
            upward = sum(a < b for a, b in pairwise(row))
            if enough and upward < _UPWARD * (len(row) - 1):
                return begin, end + 1
    return None

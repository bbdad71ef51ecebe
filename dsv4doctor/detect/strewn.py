"""Symbols of unrelated kinds strewn between the words of one sentence.

Bullets, keys, arrows, mathematics and emoji stand in sentences; what is left of the blocks beside
them does so one kind at a time.
"""

from __future__ import annotations

import re
from bisect import bisect_right

# What people do write: bullets and boxes to tick, keys of a keyboard, signs of a player.
_USUAL = frozenset("●○■□▪▫▲△▼▽▶►◀◄◆◇▸▾◦⌘⌥⌃⏎⌫⌦⎋⌚⌛⏰⏱⏲⏳⏩⏪⏫⏬⏸⏹⏺⏯⏭⏮⏻⌈⌉⌊⌋⌀")
# Starts and ends of the blocks that count: ASCII's neighbours, technical signs, shades, shapes.
_BLOCKS = ((0x2300, 0x2400), (0x2440, 0x2460), (0x2580, 0x25A0), (0x25A0, 0x2600))
_OTHERS = "¬¶†‡¤¦ƒﬁﬂﬀ✱☐☒⁂※"
STREWN = (
    frozenset(chr(at) for start, end in _BLOCKS for at in range(start, end)) | frozenset(_OTHERS)
) - _USUAL
_STARTS = [start for start, _ in _BLOCKS]
_RUN = re.compile(r"[^\w\s]+")
# A symbol between quotation marks is shown.
_SHOWN = re.compile(r"([\"'`]).+\1")
_WORD = re.compile(r"[^\W\d_]{2,}")
# A picture inside a word, small letters on both sides.
_IN_WORD = re.compile("[a-z]{2,}([\U0001f300-\U0001faff])\ufe0f?[a-z]{2,}")
FIRST_PICTURE = "\U0001f300"
_MIN_PICTURES = 2
MIN_KINDS = 6
_MIN_BLOCKS = 3
_MIN_RUNS = 3
_MIN_WORDS = 3


def pictures_in_words(prose: str) -> tuple[int, int] | None:
    """Where several emoji stand inside words, as (start, end)."""
    found = list(_IN_WORD.finditer(prose))
    if len({match[1] for match in found}) < _MIN_PICTURES:
        return None
    return found[0].span()


def strewn_symbols(prose: str, signs: frozenset[str]) -> tuple[int, int] | None:
    """The line in which they stand, as (start, end); `signs` are the text's distinct characters."""
    if len(signs & STREWN) < MIN_KINDS:
        return None
    at = 0
    for line in prose.split("\n"):
        kinds = STREWN.intersection(line)
        runs = [run for run in _RUN.findall(line) if not STREWN.isdisjoint(run)]
        runs = [run for run in runs if not _SHOWN.search(run)]
        blocks = {bisect_right(_STARTS, ord(kind)) for kind in kinds}
        enough = len(kinds) >= MIN_KINDS and len(blocks) >= _MIN_BLOCKS
        if enough and len(runs) >= _MIN_RUNS and len(_WORD.findall(line)) >= _MIN_WORDS:
            return at, at + len(line)
        at += len(line) + 1
    return None

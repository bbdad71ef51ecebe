"""Where small words stand side by side that no language shares.

Most texts have none; a long one that has is looked at there alone, since a search for every small
word of a dozen languages costs more than all other looks at a healthy text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dsv4doctor.detect.neighbours import CLAUSE_WORDS, SPOKEN, may_switch

# What another clause begins behind, for everybody who looks, if a word ends on it; a mark by itself
# parts nothing.
PARTING = ".,;:!?"
NO_WORD = "".join(c for c in map(chr, range(128)) if not c.isalnum())
# Characters before and after such words that are looked at with them: oddities count together
# within two lines of prose.
_REACH = 170
_WORD = re.compile(r"\S+")

# First and last character.
Stretch = tuple[int, int]


def clashes(prose: str, codes: bytes) -> Iterator[Stretch]:
    """Rows of small words of one clause and line that no language has all of; `codes` are those of
    the prose's words. `many_codes` says the same of many texts at once."""
    if not may_switch(codes):
        return
    begin = end = last = before = 0
    languages, parted = -1, True
    for number, match in enumerate(_WORD.finditer(prose)):
        start, stop = match.span()
        parted = parted or "\n" in (prose[start - 1], prose[before])
        before = stop
        if (spoken := SPOKEN[codes[number]]) >= 0:
            if parted or number - last > CLAUSE_WORDS + 1:
                if not languages:
                    yield begin, end
                begin, languages, parted = start, -1, False
            languages, end, last = languages & spoken, stop, number
        if prose[stop - 1] in PARTING and stop - start > 1 and prose[stop - 2] not in NO_WORD:
            parted = True
    if not languages:
        yield begin, end


def lines_around(prose: str, rows: Iterable[Stretch]) -> Iterator[Stretch]:
    """The whole lines of each of the rows and near it, those of neighbouring rows as one."""
    begin, end = 0, -1
    for start, stop in rows:
        if stop + _REACH <= end:
            continue
        if start - _REACH > end:
            if end >= 0:
                yield begin, end
            begin = prose.rfind("\n", 0, max(0, start - _REACH)) + 1
        end = prose.find("\n", min(len(prose), stop + _REACH))
        end = len(prose) if end < 0 else end
    if end >= 0:
        yield begin, end

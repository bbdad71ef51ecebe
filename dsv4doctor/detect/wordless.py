"""Numbers and marks with no word among them and in no order: what a reply falls into that has lost
even its vocabulary's words."""

from __future__ import annotations

import re
from itertools import islice

from dsv4doctor.detect.hints import hint

# Longer texts of numbers are data.
_MAX_CHARS = 2000
_MIN_PIECES = 14
# Marks that stand by themselves between blanks: sums and tables have a few kinds of them.
_MIN_KINDS = 6
# Rows from which lines of one width are a picture.
_MIN_ROWS = 4
# Strokes that letters and boxes are drawn with, and their share of a picture.
_STROKES, _DRAWN = "/\\_|@", 0.4
_MARK = re.compile(r"(?<!\S)[^\w\s]{1,4}(?!\S)")
_WORD = re.compile(r"[^\W\d_]{2,}")
# Units may stand among the numbers.
_MAX_UNITS, _UNIT_CHARS = 2, 3
# Marks in a row, and brackets back to back, that no notation has.
_NEVER = re.compile(r",,|;;|\}\{|\)\(|\]\[|,\s+[)\]};,]|[(\[{]\s+[,;:)]")
MARKS_OF_NOTHING = hint(rb",,|;;|\}\{|\)\(|\]\[|,[^!-~]+[)\]};,]|[(\[{][^!-~]+[,;:)]")
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"))


def wordless(prose: str) -> tuple[int, int] | None:
    """The whole text where it is such a heap; None where it may be a sum, a table or data."""
    if len(prose) > _MAX_CHARS:
        return None
    words = [match.group() for match in islice(_WORD.finditer(prose), _MAX_UNITS + 1)]
    if len(words) > _MAX_UNITS or any(len(word) > _UNIT_CHARS for word in words):
        return None
    if len(prose.split()) < _MIN_PIECES or not any(map(str.isdigit, prose)):
        return None
    if _is_drawn(prose):
        return None
    kinds = set(_MARK.findall(prose))
    unpaired = any(prose.count(opener) != prose.count(closer) for opener, closer in _PAIRS)
    if len(kinds) >= _MIN_KINDS and unpaired and _NEVER.search(prose):
        return 0, len(prose)
    return None


def _is_drawn(prose: str) -> bool:
    """True for a picture in signs: strokes are most of it, or most lines are of one width."""
    strokes = sum(map(prose.count, _STROKES))
    if "\n" in prose and strokes >= _DRAWN * (len(prose) - prose.count(" ") - prose.count("\n")):
        return True
    widths = [len(line) for line in prose.splitlines()]
    alike = max(map(widths.count, set(widths)), default=0)
    return len(widths) >= _MIN_ROWS and 2 * alike > len(widths)

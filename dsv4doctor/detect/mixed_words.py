"""Words half in one alphabet and half in another: `sеrvеr` with two Cyrillic letters in it.

Nobody types so: endings are hung on a name (`SMSки`), but no letter of the other alphabet stands
between two of the first.
"""

from __future__ import annotations

import re

_MIXED = re.compile(
    "(?<=[A-Za-z])[\u0430-\u045f]+(?=[A-Za-z])|(?<=[\u0430-\u045f])[A-Za-z]+(?=[\u0430-\u045f])"
)
_WORD_CHARS = 24
# One may be a mark of somebody's wit, or a trap that is talked about.
_MIN_WORDS = 3


def mixed_words(prose: str) -> tuple[int, int] | None:
    """Where such words stand; None where there are fewer than three."""
    found = list(_MIXED.finditer(prose))
    words = {prose[max(0, m.start() - _WORD_CHARS) : m.start()].split()[-1:][0] for m in found}
    if len(words) < _MIN_WORDS:
        return None
    return found[0].start() - 1, found[0].end() + 1

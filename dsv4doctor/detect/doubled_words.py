"""Words that came twice in a row, several of them close together: `for for x in in xs`.

A draft that was accepted and not taken out again doubles what it held. One doubled word is a slip
of the pen; some languages double words for emphasis, but not whatever stands there.
Source: https://github.com/vllm-project/vllm/issues/40831.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsv4doctor.detect.signs import holds_any
from dsv4doctor.detect.subject import Text

# Words of programs that no grammar has twice; found at memory speed.
_IN_CODE = (
    " in in ", "for for ", "return return ", "const const ", "let let ", " if if ", "def def ",
    "function function ", "import import ", "while while ", "FROM FROM ",
)  # fmt: skip
_CODE_WORD = re.compile(rf"(?<!\w)(?:{'|'.join(word.strip() for word in _IN_CODE)})(?= )")
# Words that people do write twice.
_EMPHATIC = (
    "that had bye so very no yes ha hi oh do is it her his really never many far long more much now"
    " again blah knock tick die das sie vous nous muy molto wow hey come go well there you"
)
_SAID_TWICE = frozenset(_EMPHATIC.split())
_TWICE = re.compile(r"(?<![\w-])([^\W\d_]{2,24}) \1(?![\w-])")
# The same small word twice, as codes have it: `neighbours.codes_of`.
_TWO_OF_A_CODE = re.compile(rb"([^\0])\1", re.DOTALL)
# How many different ones within how many characters are no slips.
_MIN_CODE, _CODE_WINDOW = 2, 300
_MIN_PROSE, _PROSE_WINDOW = 4, 240


def doubled_words(text: Text) -> tuple[str, int, int] | None:
    """Which text (`text.text` or its prose) holds them, and where; None where they are too few."""
    if not text.words.doubled and not text.code:
        return None
    if (text.in_call or text.code) and holds_any(text.text, _IN_CODE):
        every = _CODE_WORD.finditer(text.text)
        found = (m for m in every if text.in_call or text.code.covers(m.start()))
        if place := _crowd(found, _MIN_CODE, _CODE_WINDOW):
            return text.text, *place
    # Where small words come twice, others do.
    if text.in_call or not text.words.odd or not _TWO_OF_A_CODE.search(text.codes):
        return None
    every = _TWICE.finditer(text.prose)
    found = (m for m in every if m[1].lower() not in _SAID_TWICE)
    place = _crowd(found, _MIN_PROSE, _PROSE_WINDOW)
    return (text.prose, *place) if place else None


def _crowd(found: Iterator[re.Match[str]], least: int, window: int) -> tuple[int, int] | None:
    """Where so many different words come twice so close together."""
    recent: list[re.Match[str]] = []
    for match in found:
        recent = [m for m in recent if match.end() - m.start() <= window and m[0] != match[0]]
        recent.append(match)
        if len(recent) >= least:
            return recent[0].start(), match.end()
    return None

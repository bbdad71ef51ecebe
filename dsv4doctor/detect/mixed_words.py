"""Words half in one alphabet and half in another: `sеrvеr` with two Cyrillic letters in it.

Nobody types so: endings are hung on a name (`SMSки`), but no letter of the other alphabet stands
between two of the first.
"""

from __future__ import annotations

import re

from dsv4doctor.detect.hints import hint

_MIXED = re.compile(
    "(?<=[A-Za-z])[\u0430-\u045f]+(?=[A-Za-z])|(?<=[\u0430-\u045f])[A-Za-z]+(?=[\u0430-\u045f])"
)
# Where the alphabets touch, as in each of them: faster to look for.
_TOUCHING = re.compile("[A-Za-z](?:(?=[\u0430-\u045f])|(?<=[\u0430-\u045f].))")
ALPHABETS_TOUCH = hint(rb"[A-Za-z][\xd0\xd1]|[\xd0\xd1][\x80-\xbf][A-Za-z]")
_WORD_CHARS = 24
_LETTERS = re.compile(r"[^\W\d_]*")
_LETTERS_BEFORE = re.compile(r"[^\W\d_]*\Z")
# One may be a mark of somebody's wit, or a trap that is talked about.
_MIN_WORDS = 3
# Fewer will do between Latin letters where the letter looks like none of Latin: no trap, no slip of
# a keyboard that was not switched.
_UNLIKE = frozenset("бгджзийлфцчшщъыьэюя")
_MIN_UNLIKE = 2
# So many letters typed as their twins are a habit; damage mixes more.
_HABITUAL = 2
# Latin letters and those of Cyrillic that look like them.
_TWINS = dict(zip("aceiopxyABEIKMHOPCTX", "асеіорхуАВЕІКМНОРСТХ", strict=True))


def mixed_words(prose: str) -> tuple[int, int] | None:
    """Where such words stand; None where they are too few to be damage."""
    if not _TOUCHING.search(prose):
        return None
    found = [m for m in _MIXED.finditer(prose) if not _are_twins(m, prose)]
    latin = {m.group() for m in found if m.group().isascii()}
    if len(latin) == 1:
        # Always the same letter: somebody's keyboard lacks its own.
        found = [m for m in found if m.group() not in latin]
    if _is_habit(prose, found):
        return None
    unlike = [m for m in found if not _UNLIKE.isdisjoint(m.group()) and _is_latin(prose, m)]
    if len(_words(prose, found)) < _MIN_WORDS and len(_words(prose, unlike)) < _MIN_UNLIKE:
        return None
    return found[0].start() - 1, found[0].end() + 1


def _is_latin(prose: str, match: re.Match[str]) -> bool:
    """True where the letters beside are Latin's own, not twins in a word of Cyrillic."""
    before = _LETTERS_BEFORE.search(prose[max(0, match.start() - _WORD_CHARS) : match.start()])
    after = _LETTERS.match(prose, match.end())
    letters = (before[0] if before else "") + (after[0] if after else "")
    return not {char for char in letters if char.isascii()} <= _TWINS.keys()


def _words(prose: str, found: list[re.Match[str]]) -> set[str]:
    """What stands before the other alphabet's letters in their words."""
    return {prose[max(0, m.start() - _WORD_CHARS) : m.start()].split()[-1:][0] for m in found}


def _is_habit(prose: str, found: list[re.Match[str]]) -> bool:
    """True where one or two letters of Latin stand for their twins, and no others: somebody's
    keyboard. Who writes Latin has it all."""
    letters = {char for m in found for char in prose[m.start() - 1 : m.end() + 1]}
    latin = {char for char in letters if char.isascii()}
    return len(latin) <= _HABITUAL and latin <= _TWINS.keys()


def _are_twins(match: re.Match[str], prose: str) -> bool:
    """True where letters of Latin stand for their twins everywhere, as some keyboards and networks
    had it: the twins themselves are not in the text."""
    start, end = match.span()
    letters = match.group() if match.group().isascii() else prose[start - 1] + prose[end]
    return all((twin := _TWINS.get(letter)) and twin not in prose for letter in letters)

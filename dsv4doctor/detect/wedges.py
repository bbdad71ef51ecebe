"""Words wedged into a sentence of another script, glued to it where nobody glues.

`sola廉价 Slide`, `realised造成uas`: tokens bring their blank before them, so that a foreign one
sticks to the word before it. People glue foreign words too, but not so: who writes Chinese glues
names and abbreviations into a sentence of his own, a Korean or Russian ending hangs on the name
before it, a Hebrew or Arabic article on the one after it.

Of 28,000 clean texts with letters beyond ASCII, eight have such a word where hardly another of its
script is: pages whose headings ran together when their tags were taken out, and Chinese comments;
what tells those apart is here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from dsv4doctor.detect.scripts import Splice, family_of, letters_of

# Scripts whose articles and prepositions are glued to the name after them; endings of the others
# hang on the one before. The last have neither, nor blanks.
_GLUE_AHEAD = frozenset({"Arabic", "Hebrew", "Syriac", "Thaana"})
_NO_BLANKS = frozenset({"CJK", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"})
# Some tokens; a sentence of the other language is longer.
_LONGEST = 16
# Letters of the script beside the word's: a text with more is written in it too.
_OTHERS = 12
# Glued words from which on the text is written so.
_MOST = 12
# Words of capitals no longer than this are abbreviations: `PCエンジン`.
_ABBREVIATION = 4
_LEAST_LETTERS = 2
# Shorter words are in any text.
_TELLING = 4
# Signs of a formula are shorter.
_SPELT_OUT = 3
_BEFORE = re.compile(r"[A-Za-z\u00c0-\u02af]*\Z")
_AFTER = re.compile(r"[A-Za-z\u00c0-\u02af]*")
# What parts the word from another on its other side.
_NEAR_BEFORE = re.compile(r"[^\W\d_]{3,}-\Z")
_NEAR_AFTER = re.compile(r"-[^\W\d_]{3,}")
# A word between a blank and it, and one more.
_ROW_BEFORE = re.compile(r"[^\W\d_]{2,} [a-z\u00df-\u02af]{3,}\Z")
_ROW_AFTER = re.compile(r"[a-z\u00df-\u02af]{3,} [^\W\d_]{2,}")
_REACH = 40
# A comment in code, a key of a catalogue, an element: what stands there may be of any language.
_COMMENT = re.compile(r"[ \t]*(?:\*|#|--|;|%|<|\w[\w.\[\]-]*=)|[^\n]{0,400}?(?<!:)(?://|/\*)")


def wedges(prose: str, found: Sequence[Splice]) -> Iterator[Splice]:
    """Those of the foreign words that are glued into a sentence where nobody glues, and of whose
    scripts the text has hardly another word."""
    glued = [splice for splice in found if splice.glued]
    counts = Counter(splice.family for splice in glued)
    wedged = [s for s in glued if counts[s.family] <= _MOST and _is_wedge(prose, s)]
    for family in dict.fromkeys(s.family for s in wedged):
        same = [s for s in wedged if s.family == family]
        others = letters_of({family}, prose) - sum(s.end - s.start for s in same)
        if others <= _OTHERS:
            yield from (s for s in same if not others or _is_free(prose, s))


def _is_wedge(prose: str, splice: Splice) -> bool:
    start, end = splice.start, splice.end
    if end - start > _LONGEST or (splice.family == "Greek" and end - start < _SPELT_OUT):
        return False
    before, after = _beside(prose, start, end)
    if end - start == 1 and splice.family not in _NO_BLANKS | {"Hangul"}:
        return False  # an article, an ending, or a look-alike of a Latin letter
    if not (before or after) or _is_held(prose, splice, before, after):
        return False
    if not all(_is_word(word) and not _is_own(prose, word) for word in (before, after) if word):
        return False
    if not splice.between and not (_is_free(prose, splice) and _ends_row(prose, start, end)):
        return False
    line = prose.rfind("\n", 0, start) + 1
    return _COMMENT.match(prose, line, start) is None


def _ends_row(prose: str, start: int, end: int) -> bool:
    """True where a stroke stands on the other side of the word, or the word it is glued to is one
    of a row of words that nobody writes with a capital."""
    head = prose[max(0, start - _REACH) : start]
    before, after = _beside(prose, start, end)
    if (before and _ROW_BEFORE.search(head)) or (after and _ROW_AFTER.match(prose, end)):
        return True
    return bool((before or _NEAR_BEFORE.search(head)) and (after or _NEAR_AFTER.match(prose, end)))


def _beside(prose: str, start: int, end: int) -> tuple[str, str]:
    """What letters are glued to a word before and after it."""
    before = _BEFORE.search(prose[max(0, start - _REACH) : start])
    after = _AFTER.match(prose, end, end + _REACH)
    return before[0] if before else "", after[0] if after else ""


def _is_held(prose: str, splice: Splice, before: str, after: str) -> bool:
    """True where a word beside is glued to the same script on its other side too."""
    begin, end = splice.start - len(before), splice.end + len(after)
    outside = (prose[begin - 1 : begin] if before else "") + (prose[end : end + 1] if after else "")
    return any(family_of(char) == splice.family for char in outside)


def _is_free(prose: str, splice: Splice) -> bool:
    """True where the script has no ending or article to be glued so."""
    before, after = _beside(prose, splice.start, splice.end)
    unusual = before if splice.family in _GLUE_AHEAD else after
    return splice.family in _NO_BLANKS or bool(unusual) or prose[splice.start].isupper()


def _is_word(word: str) -> bool:
    is_short = len(word) <= _ABBREVIATION
    return len(word) >= _LEAST_LETTERS and not (word.isupper() and is_short)


def _is_own(prose: str, word: str) -> bool:
    """True for a word that the text has elsewhere: it stands in a heading or a table."""
    return len(word) >= _TELLING and prose.count(word) > 1

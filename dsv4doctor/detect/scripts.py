"""Scripts that break into one another: words of one writing system spliced into sentences of
another.

A family is one or more scripts that belong together (Han with the kana, Hangul with Han). Latin
goes with everything: product names stand in every language. What counts is a splice: a foreign
word with only blanks (or nothing, or emoji) between it and the words around it. Lists, tables,
quotations, brackets and code set their foreign words apart and are no splices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import regex

# Scripts in which running text is written, by family. Rare and historic scripts are one family
# each.
_FAMILIES = {
    "Latin": "Latin",
    "Cyrillic": "Cyrillic",
    "Greek": "Greek",
    "Han": "CJK",
    "Hiragana": "CJK",
    "Katakana": "CJK",
    "Bopomofo": "CJK",
    "Hangul": "Hangul",
    "Arabic": "Arabic",
    "Hebrew": "Hebrew",
    "Devanagari": "Devanagari",
    "Bengali": "Bengali",
    "Gurmukhi": "Gurmukhi",
    "Gujarati": "Gujarati",
    "Oriya": "Oriya",
    "Tamil": "Tamil",
    "Telugu": "Telugu",
    "Kannada": "Kannada",
    "Malayalam": "Malayalam",
    "Sinhala": "Sinhala",
    "Thai": "Thai",
    "Lao": "Lao",
    "Tibetan": "Tibetan",
    "Myanmar": "Myanmar",
    "Khmer": "Khmer",
    "Georgian": "Georgian",
    "Armenian": "Armenian",
    "Ethiopic": "Ethiopic",
    "Mongolian": "Mongolian",
    "Cherokee": "Cherokee",
    "Thaana": "Thaana",
    "Syriac": "Syriac",
    "Tifinagh": "Tifinagh",
}
FAMILIES = tuple(dict.fromkeys(_FAMILIES.values()))
_SCRIPT_PATTERNS = {script: regex.compile(rf"\p{{Script={script}}}") for script in _FAMILIES}
# A word: letters with their marks; digits are transparent.
_WORD = regex.compile(r"\p{L}[\p{L}\p{M}\u200c\u200d]*")
# What may stand between two words of one sentence without setting them apart: blanks, digits,
# emoji.
_OPEN_GAP = regex.compile(r"[ \d]*(?:[\p{Extended_Pictographic}\ufe0f\u200d] *)*")
_LONGEST_GAP = 24
# Two blanks set columns apart, an option and what it does; so does a tab.
_COLUMN = "  "
# One letter by itself is a sign in a formula, an eye or a hand in a face of signs, a letter that is
# talked about; an ideograph is a word.
_ONE_LETTER = frozenset(
    {
        "Greek", "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu",
        "Kannada", "Malayalam", "Sinhala", "Thai", "Lao", "Tibetan", "Myanmar", "Khmer",
    }
)  # fmt: skip
# Greek letters that the phonetic alphabet has too, where its own stand beside them.
_PHONETIC_GREEK = frozenset("βθχλ")
_PHONETIC = regex.compile("[\u0250-\u02ff]")
_WORD_REACH = 12
# What begins a comment; `#` at the head of a line begins a heading too.
_LONGEST_PART = 400
# What opens a string or the text of an element, the last one before a word, and what closes it.
_OPENED = regex.compile(r"([\"'`>])[^\"'`<>]*\Z")
_CLOSERS = {'"': '"', "'": "'", "`": "`", ">": "<"}
_COMMENT = regex.compile(r"(?<!:)//|/\*|<!--|[ \t]#+ ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Splice:
    """A word of a foreign family inside a sentence: `text[start:end]`; `glued` where no blank
    parts it."""

    start: int
    end: int
    family: str
    between: bool
    glued: bool


def family_of(char: str) -> str | None:
    """The family of a letter; None for digits, marks, punctuation and letters common to many
    scripts."""
    return _KNOWN[char]


class _Families(dict[str, str | None]):
    """Every character's family, looked up once; Unicode is finite, and so is this table."""

    def __missing__(self, char: str) -> str | None:
        family = self[char] = _look_up(char)
        return family


_KNOWN = _Families()


def _look_up(char: str) -> str | None:
    if char.isascii():
        return "Latin" if char.isalpha() else None
    for script, pattern in _SCRIPT_PATTERNS.items():
        if pattern.match(char):
            return _FAMILIES[script]
    return None


def families_in(text: str) -> frozenset[str]:
    """The families whose letters occur in `text`; Latin for a text in ASCII."""
    return _LATIN_ONLY if text.isascii() else families_of(set(text))


def families_of(chars: Iterable[str]) -> frozenset[str]:
    """The families of the letters among `chars`."""
    return frozenset(family for family in set(map(_KNOWN.__getitem__, chars)) if family)


def letters_of(families: set[str], text: str) -> int:
    """How many letters of `families` are in `text`."""
    return sum(family_of(char) in families for char in text)


_LATIN_ONLY = frozenset({"Latin"})


def splices(text: str) -> tuple[str, tuple[Splice, ...]]:
    """The family that carries the text, and every foreign word spliced into it.

    Nothing is foreign to Latin's partner: with a Latin carrier every other family is foreign, with
    another carrier every family but Latin and itself.
    """
    counts = Counter(text)
    if alone := _only_family(counts):
        return alone, ()
    weights = Counter[str]()
    for char, count in counts.items():
        if (family := _KNOWN[char]) is not None:
            weights[family] += count * _weight(family)
    if not weights:
        return "", ()
    carrier = weights.most_common(1)[0][0]
    home = {carrier, "Latin"} | ({"CJK", "Hangul"} if carrier in ("CJK", "Hangul") else set())
    foreign = frozenset(char for char in counts if _KNOWN[char] not in home and _KNOWN[char])
    found: list[Splice] = []
    start = 0
    # What parts words of one sentence holds no line break.
    for line in text.split("\n") if foreign else ():
        if not foreign.isdisjoint(line):
            found.extend(_splices_in(text, start, start + len(line), home))
        start += len(line) + 1
    return carrier, tuple(found)


def _splices_in(text: str, begin: int, stop: int, home: set[str]) -> Iterator[Splice]:
    """The foreign words of one line."""
    runs = _runs(text, begin, stop)
    for place, (start, end, family) in enumerate(runs):
        if family in home or _is_no_word(text, start, end, family):
            continue
        if _is_between_codes(text, runs, place):
            continue
        left = _gap(text, runs, place - 1, place)
        right = _gap(text, runs, place, place + 1)
        if left is None and right is None:
            continue
        yield Splice(
            start=start,
            end=end,
            family=family,
            between=left is not None and right is not None,
            glued=left == "" or right == "",
        )


def _runs(text: str, begin: int, stop: int) -> list[tuple[int, int, str]]:
    """The words of a line, each with its family; those of two families in pieces."""
    words = [
        (match.start(), match.end(), family)
        for match in _WORD.finditer(text, begin, stop)
        if (family := family_of(text[match.start()])) is not None
        and not _is_conversion(text, *match.span())
    ]
    return [piece for word in words for piece in _split_by_family(text, *word)]


def is_among_its_own(text: str, splice: Splice) -> bool:
    """True in a comment behind code, in a string or in an element of HTML that is written in the
    splice's family: the names in it are what is foreign there."""
    line = max(text.rfind("\n", 0, splice.start) + 1, splice.start - _LONGEST_PART)
    end = text.find("\n", splice.end, splice.end + _LONGEST_PART)
    rest = text[splice.end : end if end >= 0 else splice.end + _LONGEST_PART]
    before = text[line : splice.start]
    if (comment := _COMMENT.search(before)) and _is_mostly(
        splice.family, before[comment.end() :] + text[splice.start : splice.end] + rest
    ):
        return True
    opened = _OPENED.search(before)
    if opened is None or (closed := rest.find(_CLOSERS[opened[1]])) < 0:
        return False
    part = before[opened.end(1) :] + text[splice.start : splice.end] + rest[:closed]
    return _is_mostly(splice.family, part)


def _is_mostly(family: str, part: str) -> bool:
    return letters_of({family}, part) * _weight(family) > letters_of({"Latin"}, part)


def _weight(family: str) -> int:
    """How many letters of an alphabet a character of a family stands for."""
    return 3 if family == "CJK" else 1


def _is_conversion(text: str, start: int, end: int) -> bool:
    """True for the letter of `%s` and its like, which stands for a word of any script."""
    return end - start == 1 and text[start - 1 : start] == "%"


def _is_no_word(text: str, start: int, end: int, family: str) -> bool:
    """True for a letter by itself, and for Greek letters within a phonetic spelling."""
    if end - start == 1 and family in _ONE_LETTER:
        return True
    return (
        family == "Greek"
        and _PHONETIC_GREEK.issuperset(_PHONETIC.sub("", text[start:end]))
        and _PHONETIC.search(text, max(0, start - _WORD_REACH), end + _WORD_REACH) is not None
    )


def _only_family(counts: Counter[str]) -> str | None:
    """The one family beside Latin where it surely carries the text, told by counting its
    characters.

    Its letters alone have to outweigh everything else that could stand in a word of Latin.
    """
    families = {family for char in counts if (family := _KNOWN[char])} - {"Latin"}
    if len(families) != 1:
        return None
    (home,) = families
    own = others = 0
    for char, count in counts.items():
        family = _KNOWN[char]
        if family == home:
            own += count if char.isalpha() else 0
        elif family is None and char.isalpha():
            # A word that begins with a letter of no family is left out, the letters after it too.
            return None
        elif family or not char.isascii():
            others += count
    return home if own * _weight(home) > others else None


def _is_between_codes(text: str, runs: list[tuple[int, int, str]], place: int) -> bool:
    """True where a code of one letter again and again touches the word, `yyyy年M月d日`, or one
    stands on each side of it, `MMM y នៃ G`."""
    start, end, _ = runs[place]
    beside = (runs[place - 1] if place else None, *runs[place + 1 : place + 2])
    codes = [run for run in beside if run and _is_code(text[run[0] : run[1]])]
    return len(codes) == 2 or any(run[1] == start or run[0] == end for run in codes)


def _is_code(word: str) -> bool:
    return word.isascii() and len(set(word)) == 1


def _split_by_family(text: str, start: int, end: int, first: str) -> list[tuple[int, int, str]]:
    pieces: list[tuple[int, int, str]] = []
    family, begun = first, start
    for at in range(start + 1, end):
        here = family_of(text[at])
        if here is not None and here != family:
            pieces.append((begun, at, family))
            family, begun = here, at
    pieces.append((begun, end, family))
    return pieces


def _gap(text: str, runs: list[tuple[int, int, str]], left: int, right: int) -> str | None:
    """What parts two neighbouring words of different families, if it does not set them apart."""
    if left < 0 or right >= len(runs) or runs[left][2] == runs[right][2]:
        return None
    gap = text[runs[left][1] : runs[right][0]]
    if len(gap) > _LONGEST_GAP or _COLUMN in gap:
        return None
    return gap if _OPEN_GAP.fullmatch(gap) else None

"""Spellings that a script itself forbids: what pieces of words look like once they are glued.

A vowel sign needs a consonant before it, a final form ends its word, an accent is due, letters of
Korean stand in syllables. One breach is a slip, or somebody naming the sign; two near each other
are written by nobody. Alphabets without laws of place (Latin, Cyrillic) and ideographs tell
nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import regex

from dsv4doctor.detect.forbidden_pairs import ForbiddenPairs, Rule
from dsv4doctor.detect.listing import in_order, stands_alone

# Two breaches this near each other belong together: a line of prose.
_NEAR_CHARS = 80
_MAX_FOUND = 500
# What stands before a word, and how far back it is looked for.
_ENTRY = re.compile(r"(?<!\S)([!-~]+)[ \t]\S*\Z")
_ENTRY_REACH = 40
# A word beyond ASCII with what stands before it, and what that has to be closed by.
_LISTED = re.compile(r"[^\s!-~]*")
_LISTED_BEFORE = re.compile(r"[\s!-~] ?([^\s!-~]*)\Z")
_WHOLE = re.compile(r"[^\s!-~]*\Z")
_SHORTEST_WORD = 4
_CLOSED_BY = {'"': '"', "'": "'", "[": "]", "|": "|"}
_LONGEST_LISTED, _SHORTEST_ALPHABET = 120, 4

# The ten scripts of India that share one layout of 128 code points: vowel signs at 3E-4C, the sign
# that mutes a vowel at 4D. After either no vowel sign can stand; those from 45 on may be written in
# two halves.
_INDIC_BLOCKS = range(0x0900, 0x0D80, 0x80)
_MUTED = "".join(chr(block + 0x4D) for block in _INDIC_BLOCKS)
_VOWEL_SIGNS = "".join(f"{chr(block + 0x3E)}-{chr(block + 0x4C)}" for block in _INDIC_BLOCKS)
_WHOLE_SIGNS = "".join(f"{chr(block + 0x3E)}-{chr(block + 0x44)}" for block in _INDIC_BLOCKS)
# Marks of scripts whose marks always follow a letter; a circle, quotation, tag or arrow shows them,
# a stroke makes a range of characters of them.
# One vowel of Burmese is drawn, and typed on older keyboards, before its consonant.
_MARKED = r"[\u0900-\u0dff\u0e80-\u1030\u1032-\u109f\u1780-\u17d3]"
_SHOWN = "◌'\"‘“(/>→|\\-"
_ABUGIDA = (
    rf"(?<![\p{{L}}\p{{M}}\p{{N}}{_SHOWN}\u200b-\u200d])(?=\p{{M}}){_MARKED}(?!\p{{M}}*(?:[\s\u200c\u200d\"')\]|]|\Z))"
    # A stroke after it makes a range of characters: `\u0bc0-\u0bc9`.
    # Marathi's short o is typed as two signs, too.
    f"|[{_MUTED}{_WHOLE_SIGNS}](?!(?<=\u093e)\u0945)[{_VOWEL_SIGNS}](?!-)"
)
# Thai: marks above and below and the vowels written after a consonant, those written before one.
_THAI = (
    rf"(?<![\u0e01-\u0e4e{_SHOWN}])[\u0e30-\u0e3a\u0e47-\u0e4e](?!\s|\Z)"
    r"|[\u0e40-\u0e44](?=[\u0e30-\u0e3a\u0e41-\u0e44\u0e47-\u0e4e]|\s*\Z)"
    r"|[\u0e30\u0e32\u0e33][\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]|[\u0e48-\u0e4b]{2}"
    r"|[\u0e34-\u0e39][\u0e30\u0e32-\u0e39]|[\u0e30\u0e33][\u0e30\u0e32\u0e33]"
)
# A vowel before a consonant: a Greek word with two of them has syllables enough to bear an accent.
_SYLLABLE = "[αεηιουω][βγδζθκλμνξπρστφχψ]"
_GREEK = (
    r"ς(?=[α-ωά-ώ])|(?<=[α-ωά-ώ]{2})σ(?![\w'’.·-])"
    rf"|(?<![\w'’.-])(?=[α-ω]*{_SYLLABLE}[α-ω]*{_SYLLABLE})[α-ω]{{6,20}}(?![\w'’.-])"
)
_HEBREW = r"(?<=[א-ת])[ךםןףץ](?=[א-ת])|(?<=[א-ת]{2})[כמנצ](?![\w'’\"״׳.־-])"
_ARABIC = (
    r"ة(?=[\u0621-\u064a])|(?<=\s)ة(?=\s)"
    r"|(?<![\u0610-\u06ff\u200c\u200d])[ةؤى](?=[\u0621-\u064a])"
)
# Laughter and sobs are written in single letters.
_HANGUL = "(?<=[가-힣])(?:(?![ㅋㅎㅠㅜㅡㅇ])[ㄱ-ㅣ]){1,4}(?=[가-힣])"
# Alone it is an entry of a table of signs.
_KANA = r"(?<![\u3041-\u30ff\uff66-\uff9f])[ゃゅょャュョ](?=[\u3041-\u30ff\u4e00-\u9fff])"
_ABUGIDAS = (
    "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada",
    "Malayalam", "Sinhala", "Lao", "Khmer", "Myanmar",
)  # fmt: skip
_BREACHES = {
    family: regex.compile(breach)
    for family, breach in {
        **dict.fromkeys(_ABUGIDAS, _ABUGIDA),
        "Thai": _THAI,
        "Greek": _GREEK,
        "Hebrew": _HEBREW,
        "Arabic": _ARABIC,
        "Hangul": _HANGUL,
        "CJK": _KANA,
    }.items()
}
# What each breach has, found far faster: a mark right behind what is no letter, digit or mark, or
# two signs that cannot follow each other.
_MARKS = "".join(
    c for c in map(chr, range(0x900, 0x17D4)) if regex.match(rf"(?=\p{{M}}){_MARKED}", c)
)
_TONES = "\u0e47-\u0e4e"
_INDIC = "abugidas"
_PAIRS = ForbiddenPairs(
    (
        Rule(of=_INDIC, first=rf"[^\W_]|[{_MARKS}\u1031]", not_first=True, second=f"[{_MARKS}]"),
        Rule(of=_INDIC, first=f"[{_MUTED}{_WHOLE_SIGNS}]", second=f"[{_VOWEL_SIGNS}]"),
        Rule(
            of="Thai",
            first=f"[\u0e01-\u0e4e{_SHOWN}]",
            not_first=True,
            second=f"[\u0e30-\u0e3a{_TONES}]",
        ),
        Rule(of="Thai", first="[\u0e40-\u0e44]", second=rf"[\s\u0e30-\u0e3a\u0e41-\u0e44{_TONES}]"),
        Rule(of="Thai", first="[\u0e30\u0e32\u0e33]", second=f"[\u0e31\u0e34-\u0e3a{_TONES}]"),
        Rule(of="Thai", first="[\u0e48-\u0e4b]", second="[\u0e48-\u0e4b]"),
        Rule(of="Thai", first="[\u0e34-\u0e39]", second="[\u0e30\u0e32-\u0e39]"),
        Rule(of="Thai", first="[\u0e30\u0e33]", second="[\u0e30\u0e32\u0e33]"),
        Rule(of="Greek", first="ς", second="[α-ωά-ώ]"),
        Rule(of="Greek", first="σ", second=r"[\w'’.·-]", not_second=True),
        Rule(of="Hebrew", first="[ךםןףץ]", second="[א-ת]"),
        Rule(of="Hebrew", first="[כמנצ]", second=r"[\w'’\"״׳.־-]", not_second=True),
        Rule(of="Arabic", first="ة", second="[\u0621-\u064a]"),
        Rule(of="Arabic", first="[\u0610-\u06ff\u200c\u200d]", not_first=True, second="[ةؤى]"),
        Rule(of="Hangul", first="[가-힣]", second="[ㄱ-ㅣ]"),
        Rule(
            of="CJK", first="[\u3041-\u30ff\uff66-\uff9f]", not_first=True, second="[ゃゅょャュョ]"
        ),
    )
)
# A word of six letters and no accent, which no pair tells.
_UNACCENTED = re.compile(r"[α-ω](?<![\w'’.-].)[α-ω]{5,19}(?![\w'’.-])")
_FINAL_FIRST = regex.compile("(?<![א-ת])[ךםןףץ](?=[א-ת])")
_FINAL_LAST = regex.compile("(?<=[א-ת])[ךםןףץ](?![א-ת])")


def misspelt_script(prose: str, families: frozenset[str]) -> tuple[int, int] | None:
    """Where two spellings that their script forbids stand near each other; None if they do not."""
    written = families & _BREACHES.keys()
    broken = _PAIRS.broken_by(prose) if written else frozenset[str]()
    for family in sorted(written):
        rules = _INDIC if family in _ABUGIDAS else family
        if rules not in broken and not (family == "Greek" and _UNACCENTED.search(prose)):
            continue
        if family == "Hebrew" and _is_drawn(prose):
            continue
        last = -_NEAR_CHARS
        for start, end in _found(_BREACHES[family], prose):
            if start - last < _NEAR_CHARS and not _are_entries(prose, last, start):
                return last, end
            last = start
    return None


def _are_entries(prose: str, *places: int) -> bool:
    """True where the words at two places are listed: one a line, in order, each by itself between
    marks, or behind one and the same sign of ASCII, as the entries of a table of endings are; and
    where they are one word, its slip copied."""
    if all(stands_alone(prose, at) for at in places) or in_order(prose, *places):
        return True
    if all(_is_shown(prose, at) for at in places) or len({_word(prose, at) for at in places}) == 1:
        return True
    before = (_ENTRY.search(prose[max(0, at - _ENTRY_REACH) : at]) for at in places)
    first, second = (match[1] if match else None for match in before)
    return first is not None and first == second


def _word(prose: str, at: int) -> str:
    """The word at a place, a short one with its place."""
    match = _WHOLE.search(prose[max(0, at - _LONGEST_LISTED) : at])
    after = _LISTED.match(prose, at, at + _LONGEST_LISTED)
    word = (match[0] if match else "") + (after[0] if after else "")
    return word if len(word) >= _SHORTEST_WORD else f"{word}{at}"


def _is_shown(prose: str, at: int) -> bool:
    """True where the word at a place stands alone between quotation marks or brackets, as entries
    and ranges do, or has its letters in the order of their alphabet."""
    before = _LISTED_BEFORE.search(prose, max(0, at - _LONGEST_LISTED), at)
    after = _LISTED.match(prose, at, at + _LONGEST_LISTED)
    if before is None or after is None:
        return False
    word = before[1] + after[0]
    if _CLOSED_BY.get(before[0][0]) == prose[after.end() : after.end() + 1]:
        return True
    return len({*word}) == len(word) >= _SHORTEST_ALPHABET and list(word) == sorted(word)


def _is_drawn(prose: str) -> bool:
    """True for Hebrew stored as a screen without bidirectional text draws it: words begin with the
    forms that should end them."""
    return len(_FINAL_FIRST.findall(prose)) > len(_FINAL_LAST.findall(prose))


def _found(pattern: regex.Pattern[str], prose: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in islice(pattern.finditer(prose), _MAX_FOUND))

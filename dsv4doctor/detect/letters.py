"""How likely the letters of a word are, in any language.

How likely a letter is after the ones before it was counted over the words of some five hundred
languages together; the table beside this module is what came out, and
`python benchmarks/letters.py` counts again.
"""

from __future__ import annotations

import lzma
import unicodedata
from base64 import b85decode
from functools import lru_cache

# Letters that are told apart, by script; others are folded to the first of their decomposition.
ALPHABETS = {
    "Latin": "abcdefghijklmnopqrstuvwxyz",
    "Cyrillic": "абвгдежзиклмнопрстуфхцчшщъыьэюяєіјљњғқңүұҳәө",
    "Greek": "αβγδεζηθικλμνξοπρςστυφχψω",
    "Hebrew": "אבגדהוזחטיךכלםמןנסעףפץצקרשת",
    "Arabic": "ءابةتثجحخدذرزسشصضطظعغفقكلمنهوىيپچکڭگھہۇۈۋیېە",
}
# A letter and this many before it, less one, are looked at together.
ORDER = {"Latin": 4, "Cyrillic": 3, "Greek": 3, "Hebrew": 3, "Arabic": 3}
# What the table tells apart, in half bits above or below an even draw.
LEVELS = (-20, -15, -9, -5, 0, 4)
# Longer words are chemistry and German; nobody draws them from nothing.
LONGEST = 24
SHORTEST = 3
_FOLDED = {
    "ı": "i", "ł": "l", "ø": "o", "đ": "d", "æ": "a", "œ": "o", "ß": "s", "þ": "t", "ð": "d",
    "ħ": "h", "ɓ": "b", "ɗ": "d", "ƙ": "k", "ŋ": "n", "ɛ": "e", "ɔ": "o", "ə": "e", "ɣ": "g",
}  # fmt: skip
# Vowel signs of Arabic and its stretching line: written or not, the word is the same.
_UNWRITTEN = frozenset(map(chr, (*range(0x64B, 0x660), 0x640)))


class _Letters(dict[str, tuple[str, int] | None]):
    """The script of a letter and its number in the alphabet, from 1 on; None for what has none."""

    def __missing__(self, char: str) -> tuple[str, int] | None:
        plain = unicodedata.normalize("NFKD", char)[0].lower()
        plain = _FOLDED.get(plain, plain)
        found = next((s for s, alphabet in ALPHABETS.items() if plain in alphabet), None)
        self[char] = None if found is None else (found, ALPHABETS[found].index(plain) + 1)
        return self[char]


_LETTERS = _Letters()


def letter_of(char: str) -> tuple[str, int] | None:
    """The script of a letter and its number there, from 1 on; None for what has none."""
    return _LETTERS[char]


def folded(word: str) -> tuple[str, list[int]] | None:
    """The script of a word and the numbers of its letters; None for a word of none or of two."""
    letters = [_LETTERS[char] for char in word if char not in _UNWRITTEN]
    if not letters or letters[0] is None:
        return None
    script = letters[0][0]
    numbers = [letter[1] for letter in letters if letter and letter[0] == script]
    return (script, numbers) if len(numbers) == len(letters) else None


@lru_cache(maxsize=len(ALPHABETS))
def table_of(script: str) -> bytes:
    """The level of every run of `ORDER` letters, row by row; 0 is the end of a word."""
    from dsv4doctor.detect import letters_table

    packed = b85decode(getattr(letters_table, script.upper()).replace("\n", ""))
    return lzma.decompress(packed, lzma.FORMAT_ALONE)


@lru_cache(maxsize=1 << 15)
def likelihood(word: str) -> int | None:
    """How likely the letters of a word are, in half bits against an even draw; None for a name in
    code or a word of no alphabet here."""
    if not (word[1:].islower() or word.lower() == word.upper()):
        return None
    read = folded(word)
    if read is None:
        return None
    script, numbers = read
    table, size, order = table_of(script), len(ALPHABETS[script]) + 1, ORDER[script]
    row = [0] * (order - 1) + numbers + [0]
    total = 0
    for at in range(order - 1, len(row)):
        place = 0
        for number in row[at - order + 1 : at + 1]:
            place = place * size + number
        total += LEVELS[table[place]]
    return total

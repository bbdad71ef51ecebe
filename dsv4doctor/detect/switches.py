"""Changes of language in mid-sentence, told by function words alone.

People borrow nouns from other languages, never the small words: a sentence that says `und`, `the`
and `mit` by turns was written by nobody.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator

from dsv4doctor.detect.listing import is_english_noun
from dsv4doctor.detect.tongues import languages_of

# Function words and the languages that share them. Two in a row that no language shares are a
# switch.
FUNCTION_WORDS = {
    "en": "die the of and which with this that from have because their would about then",
    "de": "und nicht mit ist das auf eine einen einem eines dem wird auch werden oder nach wie sich"
    " durch der die unter über dann wenn sind zur zum nie",
    "fr": "les dans pour avec sont une cette leur mais aussi nous vous est ces aux",
    "es": "los las pero luego para como muy más está este ustedes una",
    "it": "della che gli sono anche perché nella questo più di delle una",
    "pt": "não uma dos são também você mais pelo para como das está este destes sua quando",
    "nl": "het een niet voor naar wordt zijn ook of van werden wordt dan af der die",
    "sv": "dem och att inte för som från är ett",
    "da": "dem les og af ikke til være som ett der",
    "pl": "nie się jest przez oraz które dla ile",
    "tr": "bir ve için ile olarak değil",
    "gl": "para como este está dos das uma unha",
    "ro": "și este pentru sunt",
}
_LANGUAGES: dict[str, frozenset[str]] = {}
for _language, _words in FUNCTION_WORDS.items():
    for _word in _words.split():
        _LANGUAGES[_word] = _LANGUAGES.get(_word, languages_of(_word)) | {_language}


def _by_first_letter(words: Iterable[str]) -> str:
    """One alternative a first letter, so that a search passes over most letters at once."""
    rest: dict[str, list[str]] = {}
    for word in sorted(words, key=len, reverse=True):
        rest.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(
        rf"{letter}(?<![\w'’./_$@%-]{letter})(?:{'|'.join(ends)})" for letter, ends in rest.items()
    )


_FUNCTION = re.compile(rf"(?:{_by_first_letter(_LANGUAGES)})(?![\w'’./_-])")
# Two function words further apart than this belong to different clauses.
_SWITCH_CHARS = 44
# Marks that set a foreign phrase apart: a quotation, a list, a citation.
_PARTING = re.compile(r"[\n.;:!?\"“”«»()|,]")


def spoken_by(word: str) -> frozenset[str]:
    """The languages that have a small word; none for a word that no list has."""
    return _LANGUAGES.get(word) or languages_of(word)


def switches(prose: str, begin: int = 0, stop: int = sys.maxsize) -> Iterator[tuple[int, int]]:
    """Where the language changes between two neighbouring function words of one clause; `begin`
    and `stop` bound what is looked at."""
    end, speaking = begin - _SWITCH_CHARS - 1, frozenset[str]()
    for match in _FUNCTION.finditer(prose, begin, stop):
        if is_english_noun(prose, match.start(), match.group()):
            continue
        languages = _LANGUAGES[match.group()]
        near = match.start() - end <= _SWITCH_CHARS and not _PARTING.search(
            prose, end, match.start()
        )
        if near and not languages & speaking:
            yield match.span()
        speaking = (languages & speaking if near else languages) or languages
        end = match.end()

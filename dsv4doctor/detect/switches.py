"""Changes of language in mid-sentence, told by function words alone.

People borrow nouns from other languages, never the small words: a sentence that says `und`, `the`
and `mit` by turns was written by nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Function words and the languages that share them. Two in a row that no language shares are a
# switch.
_FUNCTION_WORDS = {
    "en": "the of and which with this that from have because their would about",
    "de": "und nicht mit ist das auf eine einen einem eines dem wird auch werden oder nach wie sich"
    " durch der unter über dann wenn sind zur zum",
    "fr": "les dans pour avec sont une cette leur mais aussi nous vous est ces aux",
    "es": "los las pero luego para como muy más está ustedes",
    "it": "della che gli sono anche perché nella questo più di delle",
    "pt": "não uma dos são também você mais pelo para como das",
    "nl": "het een niet voor naar wordt zijn ook of van werden wordt dan",
    "sv": "och att inte för som till från är ett",
    "da": "og af ikke til være som ett",
    "pl": "nie się jest przez oraz które dla",
    "tr": "bir ve için ile olarak değil",
    "ro": "și este pentru sunt care",
}
_LANGUAGES: dict[str, frozenset[str]] = {}
for _language, _words in _FUNCTION_WORDS.items():
    for _word in _words.split():
        _LANGUAGES[_word] = _LANGUAGES.get(_word, frozenset()) | {_language}
_FUNCTION = re.compile(
    r"(?<![\w'’./_-])(?:" + "|".join(map(re.escape, _LANGUAGES)) + r")(?![\w'’./_-])"
)
_ENGLISH = frozenset(word for word, ls in _LANGUAGES.items() if "en" in ls)
_OTHERS = frozenset(_LANGUAGES) - _ENGLISH
# Two function words further apart than this belong to different clauses.
_SWITCH_CHARS = 44
# Marks that set a foreign phrase apart: a quotation, a list, a citation.
_PARTING = re.compile(r"[\n.;:!?\"“”«»()|,]")


def switches(prose: str, vocabulary: set[str]) -> Iterator[tuple[int, int]]:
    """Where the language changes between two neighbouring function words of one clause.

    `vocabulary` are the blank-separated words of `prose`, which the caller has at hand.
    """
    if vocabulary.isdisjoint(_OTHERS):
        return
    spoken = _LANGUAGES.keys() & vocabulary
    if not spoken or frozenset.intersection(*(_LANGUAGES[word] for word in spoken)):
        return
    end, speaking = -_SWITCH_CHARS - 1, frozenset[str]()
    for match in _FUNCTION.finditer(prose):
        languages = _LANGUAGES[match.group()]
        near = match.start() - end <= _SWITCH_CHARS and not _PARTING.search(
            prose, end, match.start()
        )
        if near and not languages & speaking:
            yield match.span()
        speaking = (languages & speaking if near else languages) or languages
        end = match.end()

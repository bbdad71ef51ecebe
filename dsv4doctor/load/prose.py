"""Filler prose and labels: plain English by a small grammar, different in every session and turn.

Filler gives a conversation its length. It must read like language (a model that sees word salad
answers with word salad) and must differ between sessions (equal pages would share a cache entry).
"""

from __future__ import annotations

from dsv4doctor.load.dice import Dice


def _words(listed: str) -> tuple[str, ...]:
    """The words of a list, parted by bars where some hold spaces."""
    return tuple(listed.split("|" if "|" in listed else None))


_ADJECTIVES = _words(
    "quiet narrow brief late careful steady heavy light spare topmost lower northern southern "
    "rural western plain rough smooth bright dull warm cold dry damp new short long broad "
    "simple patient regular second third full local distant gentle sharp clean worn silver wooden "
    "painted covered hidden public private useful common formal recent modern"
)
_THINGS = _words(
    "harbour bridge garden ledger market station library workshop channel platform valley meadow "
    "tower lantern ferry barge crane warehouse register map survey notebook catalogue signal cable "
    "valve pump filter boiler turbine kitchen gallery school chapel theatre museum railway tunnel "
    "canal reservoir pasture quarry mill bakery foundry depot terrace courtyard corridor stairway "
    "window doorway fence gate path road"
)
_PEOPLE = _words(
    "clerk keeper surveyor captain gardener teacher printer baker carpenter porter nurse driver "
    "pilot painter mason weaver miller farmer fisher foreman secretary merchant musician messenger "
    "watchman librarian steward"
)
_DEEDS = _words(
    "checked measured painted repaired described visited counted cleaned opened closed followed "
    "reported sketched moved sorted copied listed tested marked noted watched studied prepared "
    "finished reviewed compared recorded ordered replaced shared praised"
)
_MANNERS = _words(
    "carefully|slowly|quickly|twice|once more|quietly|openly|gladly|promptly|neatly|without hurry|"
    "by hand|in good order|before noon|after lunch|at dawn|in the evening|on time|as agreed|"
    "with great patience|from the start|to the end"
)
_TIMES = _words(
    "On Monday|On Tuesday|On Wednesday|On Thursday|On Friday|In the morning|Before the rain|"
    "After the meeting|Last spring|In early autumn|That winter|Some days later|Soon afterwards|"
    "By the next week|At first|In the end|Meanwhile|As a rule"
)
_PLACES = _words(
    "near the|behind the|beside the|across from the|above the|below the|inside the|"
    "on the way to the|in front of the|not far from the"
)
# What each field stands for; every sentence of the grammar is one of these with its fields filled.
_FIELDS = {
    "a": _ADJECTIVES,
    "t": _THINGS,
    "p": _PEOPLE,
    "d": _DEEDS,
    "m": _MANNERS,
    "w": _TIMES,
    "l": _PLACES,
}
_SENTENCES = (
    "The {a} {t} {l} {a} {t} was {d} by the {p}.",
    "{w} the {p} {d} the {a} {t} {m}.",
    "A {a} {p} {d} every {t} {l} {t}, and the {p} {d} the rest.",
    "The {p} said that the {t} should be {d} {m}.",
    "{w} nobody {d} the {t}, because the {a} {p} had {d} it before.",
    "There is a {a} {t} {l} {t}, and it is {d} {m}.",
    "When the {p} {d} the {t}, the {a} {p} {d} the {a} {t}.",
    "{w} the {t} and the {t} were both {d} {m}.",
    "Most of the {a} work {l} {t} was {d} {m}, so the {p} was content.",
    "It was the {p} who {d} the {a} {t} and later {d} the {t}.",
)


def _compile(sentence: str) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """A sentence as a `%s` pattern and the word lists of its fields, in order."""
    pattern, lists, rest = "", [], sentence
    while "{" in rest:
        before, _, rest = rest.partition("{")
        name, _, rest = rest.partition("}")
        pattern += f"{before}%s"
        lists.append(_FIELDS[name])
    return pattern + rest, tuple(lists)


_GRAMMAR = tuple(_compile(sentence) for sentence in _SENTENCES)
# A sentence of the grammar is about this long: under it, no further one is begun.
SENTENCE_CHARS = 70

_LABEL_COLOURS = _words(
    "amber azure coral crimson ebony emerald golden hazel indigo ivory jade lilac maroon olive "
    "pearl russet sable scarlet sienna silver teal umber violet white"
)
_LABEL_BIRDS = _words(
    "avocet bittern bunting crane curlew dipper dunlin egret falcon finch gannet godwit grebe "
    "heron kestrel lapwing linnet magpie merlin osprey plover puffin raven redstart robin "
    "sandpiper shrike siskin snipe starling stonechat swallow swift tern thrush warbler wren"
)


def sentence(dice: Dice) -> str:
    """One English sentence, 40 to 110 characters."""
    pattern, lists = dice.pick(_GRAMMAR)
    return pattern % tuple([dice.pick(words) for words in lists])


def sentences(dice: Dice, characters: int) -> list[str]:
    """Sentences whose sum, joined by spaces, comes nearest below to within one of `characters`."""
    made: list[str] = []
    length = 0
    while length + SENTENCE_CHARS // 2 < characters:
        made.append(sentence(dice))
        length += len(made[-1]) + 1
    return made


def label(dice: Dice) -> str:
    """A name like `amber-heron-3`; one of about 80,000, so the caller sees to uniqueness."""
    return f"{dice.pick(_LABEL_COLOURS)}-{dice.pick(_LABEL_BIRDS)}-{1 + dice.below(89)}"

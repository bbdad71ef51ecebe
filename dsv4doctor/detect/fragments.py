"""Salad within one script: pieces of words and sentences in an order that no grammar allows.

One odd token is a typo, an abbreviation or code; what tells salad is that oddities crowd. Each kind has
a weight, and the heaviest window of a text is compared with a limit. Kinds and weights were chosen so
that manual pages in 25 languages, source code in 19 and message catalogues in 40 stay far below it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

# Oddities count together when they stand this close: two lines of prose.
WINDOW_CHARS = 170
# Weights in a window from which it is salad.
LIMIT = 3.0
_ARTICLE = r"(?:the|an?)"
_NEVER_AFTER_ARTICLE = r"(?:the|an?|of|are|were|was|than|because|which|that|they)"
_PREPOSITION = r"(?:of|by|with|from|for|into|than)"

_Weigh = Callable[[re.Match[str]], float]


def _even(_match: re.Match[str]) -> float:
    return 1.0


_KINDS: tuple[tuple[str, float, str], ...] = (
    ("article", 1.0, rf"(?<![\w-]){_ARTICLE} {_NEVER_AFTER_ARTICLE}(?![\w'’.-])"),
    ("article_mark", 0.9, rf"(?<![\w'-]){_ARTICLE} [:;,.=)\]}}|>]+(?=[ \n])"),
    (
        "preposition",
        0.9,
        rf"(?<![\w-]){_PREPOSITION} (?:of|by|is|are|was|were|and|than|to)(?![\w'’.-])",
    ),
    (
        "twice",
        0.7,
        r"(?<![\w'-])(?P<again>the|of|to|by|and|is|with|for|which|so|und|minus|then) (?P=again)(?![\w'-])",
    ),
    (
        "suffix",
        1.0,
        r"(?<=[\w,;] )(?:ing|tion|tions|sion|sions|ization|isation|ments?|ness|ously|ability|ibility|ically|ating|ified)(?= )",
    ),
    (
        "glued_mark",
        0.9,
        r"(?<= )[,;)\]}]-?[a-z]{1,3}(?= )|[a-z],-[a-z]|(?<=[a-z]),(?:ly|ing|ed|tion)\b",
    ),
    ("dangling_dash", 0.5, r"(?<![-\w])[A-Za-z]{2,14}--(?=[ |\n])(?! ?>)"),
    ("run", 0.8, r"(?<=[\w] )(?:,{2,}|_{3,}|#{3,}|;{2,}|:{3,}|\){2,}|\]{2,})(?= [\w])"),
    ("operator", 0.8, r"(?<=[\w] )[=|+<>&*]+ (?:of|the|which|to|then|und|was|were|with)(?= )"),
    ("money", 0.6, r"(?<![\w$])\d{1,4}\$(?= [a-z])"),
    ("half_tag", 0.6, r"<[a-z]{1,6} (?=[a-z]{2,8}[ ,])(?![a-z]+ ?[=>])"),
    ("torn_name", 0.8, r"(?<= )[a-z]{3,}[A-Z]{2}(?= [a-z])|(?<= )[A-Z]{3,}[a-z]{3,5}(?= [a-z])"),
    ("cell", 0.8, r"(?<=\| )(?:[)\]}]+|of|were|then|and|the|to|was|which|by)(?:--)?(?= \|)"),
    ("line_head", 0.9, r"^[)\]}]+--? (?=\w)"),
    ("heading_twice", 0.8, r"^#{1,6} (?P<head>\w{3,}) (?P=head)$"),
    ("open_end", 0.8, r"[a-z]{2,}[(\[{]{1,2}\"?\s*\Z"),
)
_ODD = re.compile("|".join(f"(?P<{name}>{pattern})" for name, _, pattern in _KINDS), re.MULTILINE)
_WEIGHT = {name: weight for name, weight, _ in _KINDS}
# A closing bracket that closes nothing on its line.
_CLOSER = re.compile(r"(?<=[\w,.\]}] )[)\]}]+[;,.]?(?=[ \n]|\Z)|(?<=[a-z]{2})\)(?= [a-z|])")
_OPENERS = str.maketrans({"(": "(", "[": "(", "{": "("})
_CLOSERS = str.maketrans({")": ")", "]": ")", "}": ")"})

# Function words and the languages that share them. Two in a row that no language shares are a switch.
_FUNCTION_WORDS = {
    "en": "the of and which with this that from have because their would about",
    "de": "und nicht mit ist das auf eine einen einem eines dem wird auch werden oder nach wie sich durch der"
    " unter über dann wenn sind zur zum",
    "fr": "les dans pour avec sont une cette leur mais aussi nous vous est ces aux",
    "es": "los las pero luego para como muy más está ustedes y",
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
# A change of language between two function words this close is a switch in mid-sentence.
_SWITCH_CHARS = 44
_SWITCH_WEIGHT = 0.75


def debris(prose: str, *, in_call: bool) -> str | None:
    """What makes `prose` salad, with the window; None for a text that holds together."""
    if len(prose) < 24:
        return None
    odd = sorted(_oddities(prose))
    if len(odd) < 3:
        return None
    best, begin, end = _heaviest(odd)
    limit = LIMIT + (1.0 if in_call else 0.0)
    if best < limit:
        return None
    pieces = [prose[at:stop].strip() for at, stop, _ in odd if begin <= at <= end]
    shown = ", ".join(repr(piece[:20]) for piece in dict.fromkeys(pieces))
    return f"broken sentences at {begin}: {shown[:160]}"


def _oddities(prose: str) -> Iterator[tuple[int, int, float]]:
    for match in _ODD.finditer(prose):
        yield match.start(), match.end(), _WEIGHT[str(match.lastgroup)]
    if ")" in prose or "]" in prose or "}" in prose:
        for match in _CLOSER.finditer(prose):
            if _closes_nothing(prose, match.start()):
                yield match.start(), match.end(), 0.7
    yield from _switches(prose)


def _closes_nothing(prose: str, at: int) -> bool:
    before = prose[max(0, at - 400) : at]
    opened = before.count("(") + before.count("[") + before.count("{")
    closed = before.count(")") + before.count("]") + before.count("}")
    return opened <= closed


def _switches(prose: str) -> Iterator[tuple[int, int, float]]:
    end, speaking = -_SWITCH_CHARS - 1, frozenset[str]()
    for match in _FUNCTION.finditer(prose):
        languages = _LANGUAGES[match.group()]
        near = match.start() - end <= _SWITCH_CHARS and not _parted(prose[end : match.start()])
        if near and not languages & speaking:
            yield match.start(), match.end(), _SWITCH_WEIGHT
        speaking = (languages & speaking if near else languages) or languages
        end = match.end()


def _parted(between: str) -> bool:
    return any(mark in between for mark in '\n.;:!?"“”«»()|,')


def _heaviest(odd: list[tuple[int, int, float]]) -> tuple[float, int, int]:
    best, begin, end = 0.0, 0, 0
    first, weight = 0, 0.0
    for at, _, more in odd:
        weight += more
        while at - odd[first][0] > WINDOW_CHARS:
            weight -= odd[first][2]
            first += 1
        if weight > best:
            best, begin, end = weight, odd[first][0], at
    return best, begin, end

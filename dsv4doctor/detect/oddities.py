"""The kinds of oddity by which salad within one script is told, and what each weighs.

A kind with an empty pattern is found by words' codes (see `neighbours.py`), the others by their
pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dsv4doctor.detect.hints import hint
from dsv4doctor.detect.lone_marks import SUFFIXES
from dsv4doctor.detect.neighbours import NEVER_TWICE

# Small words of other languages that tell by themselves.
LEAST_TONGUES = 3

_NEVER_AFTER_ARTICLE = (
    "the", "a", "an", "of", "are", "were", "was", "than", "because", "which", "that", "they",
)  # fmt: skip
_PREPOSITIONS = ("of", "by", "with", "from", "for", "into", "than")
_NEVER_AFTER_PREPOSITION = ("of", "by", "is", "are", "was", "were", "and", "than", "to")
_AFTER_OPERATOR = ("of", "the", "which", "to", "then", "und", "was", "were", "with")
_IN_CELL = ("of", "were", "then", "and", "the", "to", "was", "which", "by")


# What stands before is looked at behind the word, so that the search can look for its first letter.
# Behind a bracket it is a parameter of Lisp: `(from to)`.
_PREPOSITION = r"{0}(?<![\w(-]{0})(?<!\ba {0})"
_AGAIN = r"{0}(?<![\w'-]{0}) {0}"


def _each(pattern: str, words: tuple[str, ...]) -> str:
    return "|".join(map(pattern.format, words))


def _any(words: tuple[str, ...]) -> str:
    return "|".join(words)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of oddity; `cap` is how often it counts in a window: more is somebody's notation."""

    name: str
    weight: float
    pattern: re.Pattern[str]
    cap: int = 2


def _kind(name: str, weight: float, pattern: str, *, cap: int = 2) -> Kind:
    return Kind(name, weight, re.compile(pattern, re.MULTILINE), cap)


# What stands before is looked at after the first character, so that the search can look for that.
PAIR_KINDS = (
    _kind(
        "article",
        1.0,
        # Pictures in signs have rows of `b a a c`; `amigo/a a la` is of either gender.
        r"(?:the(?<![\w-]the)|an(?<![\w-]an)|a(?<![\w/-]a)(?<!\s\S a)) "
        rf"(?:{_any(_NEVER_AFTER_ARTICLE)})(?![\w'’.-])",
        cap=4,
    ),
    _kind(
        "article and mark",
        0.9,
        r"(?:the(?<![\w'-]the)|an(?<![\w'-]an)"
        # `( a : int, b : int )`
        r"|a(?<![\w'-]a)(?<![(,] a)(?<!\s\S a)(?! =)) [:;,.=)>]+(?=[ \n])",
    ),
    _kind(
        "preposition",
        0.9,
        rf"(?:{_each(_PREPOSITION, _PREPOSITIONS)}) "
        # `whom they deal with and, in the end, fear`
        rf"(?:{_any(_NEVER_AFTER_PREPOSITION)})(?![\w'’.-]|(?<=and),)",
    ),
    _kind(
        "twice",
        0.7,
        rf"(?:{_each(_AGAIN, NEVER_TWICE)})(?![\w'-])",
    ),
    _kind("operator", 0.8, rf"[=+<>&*](?<=\w .)[=+<>&*]* (?:{_any(_AFTER_OPERATOR)})(?= )"),
    _kind(
        "cell",
        0.8,
        rf"(?<=\| )(?:[)\]}}]+|{_any(_IN_CELL)})(?:--)?(?= \|)"
        r"|(?<=\|)[)\]}]+--? (?:[a-z]+ )?(?=\|)"
        r"|(?<=\| )[(\[{] [a-z]{2,}(?= \|)",
    ),
    # `tion` is a word of Esperanto, never without another before it; dictionaries have endings with
    # their sounds behind them, rules and settings what they become.
    _kind(
        "suffix",
        1.1,
        r"(?:^(?!\w+ (?:->|=>?|→) )|(?<=[\w,;)}>|-] ))(?<!ĉi )(?<!pri )"
        rf"(?:{_any(SUFFIXES)})(?=[ \n]|\Z)(?! /)",
        cap=4,
    ),
)
# What the pairs told by their words need (see `hints.py`).
PAIR_HINTS = {
    "article": hint(rf"\b(?:the|an?) (?:{_any(_NEVER_AFTER_ARTICLE)})\b"),
    "article and mark": hint(r"\b(?:the|an?) [:;,.=)>]+[ \n]"),
    "preposition": hint(rf"\b(?:{_any(_PREPOSITIONS)}) (?:{_any(_NEVER_AFTER_PREPOSITION)})\b"),
    "twice": hint(rf"\b(?:{_each('{0} {0}', NEVER_TWICE)})\b"),
    "operator": hint(rf"[=+<>&*] (?:{_any(_AFTER_OPERATOR)}) "),
}
PAIR_MARKS = {"operator": frozenset("=+<>&*"), "cell": frozenset("|")}
# What every odd cell begins with, faster to look for.
ODD_CELL = re.compile(
    rf"\| (?:[)\]}}]|(?:{_any(_IN_CELL)})(?:--)? \||[(\[{{] [a-z]{{2,}} \|)|\|[)\]}}]+--? "
)
# Two blanks set apart what code says of `index--`.
DASH = _kind("dash", 0.6, r"(?<![-\w])[A-Za-z][a-z]{1,13}--(?=[ |\n])(?! ?>|  | [!=<]=)")
# What every such dash ends with, faster to look for.
DASH_END = re.compile(r"--(?<=[A-Za-z]{2}--)[ |\n]")
LINE_HEAD = _kind("line head", 0.9, r"^[)\]}]*(?:[)\]]--?|\}--) (?=\w)")
RUN = _kind(
    "run",
    0.8,
    r"(?:,(?<=\w ,),+|_(?<=\w _)__+|#(?<=[^\W\d] #)##+|;(?<=\w ;);+|:(?<=\w :)::+|\)(?<=\w \))\)+"
    r"|\](?<=\w \])\]+)(?= \w)",
)
MONEY = _kind("money", 0.6, r"(?<![\w$])\d{1,4}\$(?= [a-z])")
# What every such price ends with, faster to look for.
MONEY_END = re.compile(r"\$(?<=\d\$) [a-z]")
MARK_KINDS = (
    _kind("heading marks twice", 0.8, r"^#{1,6} #{1,6} (?=\w)(?!.*##$)"),
    _kind("heading twice", 0.8, r"#(?<!.#)#{0,5} (?P<head>\w{3,}) (?P=head)$"),
)
SUPPORTING_KINDS = (
    _kind(
        "glued mark",
        0.9,
        r"[,;)\]}](?<= .)-?[a-z]{1,3}(?= )|[a-z],-[a-z]|,(?<=[a-z],)(?:ly|ing|ed|tion)\b",
    ),
    _kind("half tag", 0.6, r"<[a-z]{1,6} (?=[a-z]{2,8}[ ,])(?![a-z]+ ?[=>])"),
    _kind(
        "torn name",
        0.8,
        r"[a-z](?<= .)[a-z]{2,}[A-Z]{2}(?= [a-z])|[A-Z](?<= .)[A-Z]{2,}[a-z]{3,5}(?= [a-z])",
    ),
    _kind("open end", 0.8, r"[a-z](?<![a-z].)[a-z]+[(\[{]{1,2}\"?\s*\Z"),
)
SWITCH = Kind("switch", 0.75, re.compile(""), 6)
# The same where a whole clause is looked at: weighed in half a line, in place of switches.
TONGUE = Kind("small word of another language", 0.9, re.compile(""), 2)
TONGUES = Kind("small words of several languages", 0.9, re.compile(""), 6)
# Two of them that are of two languages, the clause of a third.
TONGUE_PAIR = Kind("small words of two other languages", 0.9, re.compile(""), 2)
NEVER = Kind("never side by side", 0.9, re.compile(""), 4)
# The same where no language has both words.
NEVER_TONGUES = Kind("never side by side, of two languages", 1.2, re.compile(""), 4)
BESIDE = Kind("lone mark beside a small word", 1.0, re.compile(""), 4)
HUNG = Kind("ending hung on a mark", 1.0, re.compile(""), 4)
STRANGER = Kind("small word beside another script", 0.7, re.compile(""), 3)
TORN = Kind("torn bracket", 0.9, re.compile(""), 3)
# Kinds about words: thick marks alone are somebody's notation.
WORD_KINDS = frozenset(
    {
        SWITCH,
        TONGUE,
        TONGUES,
        TONGUE_PAIR,
        NEVER,
        NEVER_TONGUES,
        STRANGER,
        BESIDE,
        HUNG,
        DASH,
        *(k for k in PAIR_KINDS if k.name in ("article", "twice", "suffix")),
    }
    | {k for k in PAIR_KINDS if k.name == "preposition"}
    | {k for k in SUPPORTING_KINDS if k.name == "torn name"}
)
# Of these, what sound code and comments hold now and then.
FAINT = frozenset({NEVER, *(k for k in SUPPORTING_KINDS if k.name == "torn name")})
CLOSED_WORD = _kind("closed word", 0.5, r"(?<=[^\W\d_] )[a-z]{2,12}\)(?= [^\W\d_])")
# Marks that code writes in a row and no sentence sets apart, less its operators.
_HARD = _kind(
    "torn marks",
    0.7,
    r"(?<=\S )(?!(?:--+|\.\.+|[-=]>|[-=<>!:+*/|&]{2,3}|#+|/\*\*?|\*/|\{\}|\[\]|\(\)|\"\"|''"
    r"|[\"'`]\S[\"'`]|[:;]-?[()])(?:\s|\Z))"
    r"[][(){}<>=|&:;,/*+$#\"'\\_%.!-]{2,5}(?=\s|\Z)",
    cap=3,
)
CLOSED_SMALL = _kind("closed small word", 0.8, r"(?<= )(?:of|the|and|which|then|by|und|les)\)(?= )")
# So many of one kind tell by themselves.
LEAST = {
    TONGUES: LEAST_TONGUES,
    TONGUE_PAIR: 2,
    next(k for k in PAIR_KINDS if k.name == "suffix"): 2,
}
# Counted only where oddities stand thick: by themselves any text has them.
LOOSE_KINDS = (
    CLOSED_SMALL,
    CLOSED_WORD,
    _kind("torn word", 0.5, r"(?<=[^\W\d_] )[a-z]{2,12}--?(?= [^\W\d_]|\Z)"),
    _HARD,
    _kind("loose mark", 0.5, r"(?<=[\w,;)}|_>-] )(?!- |= )[,;)}\]|_=>*-]{1,3}(?= \S)", cap=3),
)
CLOSER = _kind(
    "closer",
    0.7,
    r"[)\]}](?<=[\w,.\]}] .)[)\]}]*[;,.]?(?=[ \n]|\Z)|\)(?<=[a-z]{2}.)(?= [a-z|])",
)

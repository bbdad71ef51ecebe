"""Marks that stand alone beside a small word, and endings of words that hang on a mark.

Source code has lone marks and prose has small words; side by side they stand in neither: in 10,000
clean texts of every kind `of );`, `,- and` or `=> ,,` were found in four. Tokens of a vocabulary
drawn at random stand so all the time, since marks and small words are its most frequent pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from dsv4doctor.detect.hints import hint

_ENGLISH_SUFFIXES = (
    "ing", "ings", "tion", "tions", "sion", "sions", "ization", "isation", "ment", "ments", "ness",
    "ously", "ically", "ially", "ating", "ified", "ity", "ence", "ible",
)  # fmt: skip
# Endings that are words of no language: none stands alone in 15,000 clean texts.
SUFFIXES = (
    *_ENGLISH_SUFFIXES, "ation", "ations", "izations", "ated", "ized", "izing", "izer",
    "ify", "ifying", "ities", "ances", "ences", "ably", "edly", "ulating", "ulation", "ulated",
    "icated", "ication", "ungs", "ungen", "keit", "keiten", "heiten", "isch", "ische", "ischen",
    "ierung", "ieren", "iert", "ción", "ciones", "iendo", "amiento", "ización", "ificación",
    "zione", "zioni", "amento", "ção", "ções", "ável", "ização", "ement", "ements", "ité", "ités",
    "iques", "issement", "ningen", "ości", "owanie", "owania", "owych",
)  # fmt: skip
# Marks that no prose sets between blanks, and code never beside a small word; `--`, `|` and `->`
# both have.
LONE = (",-", ");", ")", "}", "}}", "]", "=>", "]);", "});", "]->", "};")
# Those that may close what was opened before.
CLOSERS = frozenset(")}]")
_UNPACKED = frozenset("]}")
# Small words beside which they are looked for: those of no programming language. `in`, `for`, `is`
# and `not` are operators somewhere, `die` is a statement.
BESIDE = (
    "the of and to which was by with then that were und mit nicht das der ist auf werden les"
    " dans pour sont avec los una las que para een het niet och att som jest"
)
# Endings that hang on a mark before them; `-ing` alone is what grammars write.
_HUNG_ON = (",", ";", ")", "}", "]", ">", "#", "##", "###", "_", "->", "]->", ")->", "(", ");")
_HUNG = (*_ENGLISH_SUFFIXES, "ly", "ers", "ely", "edly")
_FOLLOWED_BY = (");", ")", "(", "}", "]", "=>", "_", "##", "]);", "});", "|")
_JOINED = ("the", "of", "and", "to", "which", "was", "with", "und", "der", "les", "dans")

# Small words with a closer behind them, where it closes nothing.
_CLOSED = ("of", "the", "and", "to", "which", "by", "with", "then", "und", "der", "les", "dans")
CLOSED_WORDS = frozenset(f"{word})" for word in _CLOSED)
# Every token that is an ending hung on a mark, or two small words joined by a stroke.
HUNG_ENDINGS = frozenset(
    {mark + ending for mark, ending in product(_HUNG_ON, _HUNG)}
    | {ending + mark for ending, mark in product(_ENGLISH_SUFFIXES, _FOLLOWED_BY)}
    | {f"{first}_{second}" for first, second in product(_JOINED, _JOINED)}
    | {"the_", "of_", "which_", "was_"}
    | CLOSED_WORDS
)

_MARK = "|".join(map(re.escape, sorted(LONE, key=len, reverse=True)))
_RUN = r",{2,}|_{3,}|;{2,}"
# Gaps to be filled in: a form has several.
_BLANK = re.compile(r"(?<!\S)_{3,}(?![^\s.,;:!?()\"'])")
_MIN_BLANKS = 2
_WORDS = BESIDE.replace(" ", "|")
_NAMED_BEFORE = re.compile(r"(?<!\w)[^\w\s]{1,3} (?:and|or|und|oder|et|ou|y|e) \Z")
_NAMED_TOO = re.compile(r" (?:and|or|und|oder|et|ou|y|e) [^\w\s]{1,3}(?!\S)")
_KEY = re.compile(r"^[ \t]*[\w.]+ \Z", re.MULTILINE)
# In a line and with one blank on each side: at a line's edge, or set off further, marks draw.
_ALONE = re.compile(rf"(?<=\S )(?:{_MARK}|{_RUN})(?= \S| ?\Z)")
_AFTER = re.compile(rf" (?:(?:{_WORDS})(?![\w'’(])|[a-z]{{2,}}--?(?=\s))")
# One of two marks side by side that code has never beside another.
_AFTER_ODD = re.compile(rf" (?:{_MARK}|{_RUN})(?= [^\W\d_])")
_ODD_MARKS = (",-", ",,", "___", ");")
_BEFORE = re.compile(rf"(?:(?<![\w'’-])(?:{_WORDS})|[^\W\d_]{{2}}--?) \Z")
_ARTICLE = re.compile(r"(?<!\w)(?:[Aa]|[Tt]he|an|no|each|every) \Z")
# The longest of `BESIDE`, a blank and what must stand before them.
_REACH = 12
_HUNG_TOKEN = re.compile(r"(?<!\S)\S{3,16}(?!\S)")
# Closing brackets between two words, and brackets that open before one: torn out of code.
# Two brackets come first, so that the search can look for them.
_CLOSED_ON = re.compile(r"[)\]}][)\]}](?<![)\]}]..)[)\]}]{0,4};?(?=[a-z]{2})")
# The same by the bracket that comes first: one character is searched for fastest.
_CLOSED_BY = tuple(
    re.compile(rf"\{closer}[)\]}}](?<![)\]}}]..)[)\]}}]{{0,4}};?(?=[a-z]{{2}})")
    for closer in sorted(CLOSERS)
)
_OPENED_ON = re.compile(r"(?<![/({\[])[/({\[]{2,6}(?=[a-z]{3})|(?<=[a-z])\((?=[%$&~][a-z]{2})")
_CLOSES = {"(": ")", "{": "}", "[": "]"}
# Small words that a language beyond Latin has right beside its own: it borrows names, not these.
# Greek letters stand beside them in every formula.
_BEYOND = "[\u0400-\u1fff\u3040-\ufaff]"
# The blank before it comes first, so that the search can look for that.
_STRANGER = re.compile(rf"[ \n](?=({_WORDS})[ \n])(?:(?<={_BEYOND} )|(?=[a-z]+ {_BEYOND}))")
# The same in UTF-8 (see `hints.py`).
SMALL_STRANGER = hint(
    rf"[\xd0-\xef][\x80-\xbf]{{1,2}} (?:{_WORDS})[ \n]|[ \n](?:{_WORDS}) [\xd0-\xef]".encode(
        "latin-1"
    )
)


def lone_marks(prose: str) -> Iterator[tuple[int, int]]:
    """The places of a lone mark beside a small word, another lone mark or a torn word."""
    is_form = len(_BLANK.findall(prose)) >= _MIN_BLANKS
    for match in _ALONE.finditer(prose):
        start, end = match.span()
        if is_form and match.group()[0] == "_":
            continue
        # "the }" is a noun phrase: somebody speaks of brackets.
        if match.group() in CLOSERS and _ARTICLE.search(prose[max(0, start - _REACH) : start]):
            continue
        # "between } and )"
        if _NAMED_TOO.match(prose, end) or _NAMED_BEFORE.search(prose, max(0, start - 12), start):
            continue
        # `if { case $x in a) true;; esac; }; then`
        if match.group() == "};" and prose.startswith(" then", end):
            continue
        # `for (const { name } of list)`
        if match.group() in _UNPACKED and prose.startswith(" of ", end):
            continue
        after = _AFTER.match(prose, end)
        if after is None and match.group().startswith(_ODD_MARKS):
            after = _AFTER_ODD.match(prose, end)
        # A word before `=>` is the key of an entry; where it begins the line, nothing else is.
        is_key = match.group() == "=>"
        if is_key and _KEY.search(prose, max(0, prose.rfind("\n", 0, start)), start):
            continue
        if after or (not is_key and _BEFORE.search(prose[max(0, start - _REACH) : start])):
            yield start, end


def hung_endings(prose: str) -> Iterator[tuple[int, int]]:
    """The places of endings that hang on a mark, and of small words joined by a stroke."""
    for match in _HUNG_TOKEN.finditer(prose):
        if match.group() in HUNG_ENDINGS:
            yield match.span()


def torn_brackets(prose: str) -> Iterator[tuple[int, int]]:
    """The places of brackets that close between two words, the first of them and such as open
    there and are never closed.

    None where no bracket closes like that: what merely opens may be cut.
    """
    closing = (m for m in _CLOSED_ON.finditer(prose) if prose[m.start() - 1 : m.start()].isalpha())
    if (first := next(closing, None)) is None:
        return
    yield first.span()
    last = {closer: prose.rfind(closer) for closer in CLOSERS}
    for match in _OPENED_ON.finditer(prose):
        closer = _CLOSES.get(match.group()[-1])
        if closer and last[closer] < match.end():
            yield match.span()


def may_be_torn(prose: str) -> bool:
    """True where two closing brackets in a row stand before a letter."""
    return any(pattern.search(prose) for pattern in _CLOSED_BY)


def strangers(prose: str) -> Iterator[tuple[int, int]]:
    """The places of small words of Latin languages right beside a word of another script."""
    yield from (match.span(1) for match in _STRANGER.finditer(prose))

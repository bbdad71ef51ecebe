"""Salad within one script: pieces of words and sentences in an order that no grammar allows.

One odd token is a typo, an abbreviation or code; what tells salad is that oddities crowd. Each kind
has a weight, and the heaviest window of a text is compared with a limit. Kinds and weights were
chosen so that manual pages in 25 languages, source code in 19 and message catalogues in 40 stay far
below it. A pass over the text's small words clears healthy text before any pattern runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from dsv4doctor.detect.listing import is_row, speaks_of_words
from dsv4doctor.detect.lone_marks import (
    CLOSERS,
    SUFFIXES,
    hung_endings,
    lone_marks,
    may_be_torn,
    strangers,
    torn_brackets,
)
from dsv4doctor.detect.neighbours import (
    holds_hung_ending,
    holds_lone_mark,
    holds_odd_pair,
    holds_run,
    holds_small_word,
    holds_suffix,
    may_switch,
    odd_pairs,
)
from dsv4doctor.detect.signs import signs_of
from dsv4doctor.detect.subject import Text
from dsv4doctor.detect.switches import spoken_by, switches

# Oddities count together when they stand this close: two lines of prose.
WINDOW_CHARS = 170
# Weight in a window from which it is salad; source code in arguments is given more room.
LIMIT = 2.4
_MORE_IN_CALLS = 1.0
# The same for half a line, where oddities of two kinds or more stand side by side.
DENSE_CHARS = 40
DENSE_LIMIT = 1.7
_DENSE_KINDS = 2
# Pairs of words that must be odd where nothing but them, and names, tells of broken sentences.
_LEAST_NEVER = 3
# Weight that the telling kinds must bring before the supporting ones are looked for.
_FLOOR = 1.4
_DENSE_FLOOR = 0.6
_MIN_CHARS = 24
# Finds of one kind that are weighed; a text with more is decided by these.
_MAX_FOUND = 500

_NEVER_AFTER_ARTICLE = (
    "the", "a", "an", "of", "are", "were", "was", "than", "because", "which", "that", "they",
)  # fmt: skip
_PREPOSITIONS = ("of", "by", "with", "from", "for", "into", "than")
_NEVER_AFTER_PREPOSITION = ("of", "by", "is", "are", "was", "were", "and", "than", "to")
_NEVER_TWICE = ("the", "of", "to", "by", "and", "is", "with", "for", "which", "so", "und", "then")
_AFTER_OPERATOR = ("of", "the", "which", "to", "then", "und", "was", "were", "with")
_IN_CELL = ("of", "were", "then", "and", "the", "to", "was", "which", "by")


def _any(words: tuple[str, ...]) -> str:
    return "|".join(words)


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of oddity; `cap` is how often it counts in a window: more is somebody's notation.

    `hints` are pieces of which every find has one, each with its signs (see `signs.py`); one of the
    signs `needs` is in each of them.
    """

    name: str
    weight: float
    pattern: re.Pattern[str]
    hints: tuple[tuple[str, frozenset[str]], ...] = ()
    cap: int = 2
    needs: frozenset[str] = frozenset()


def _kind(
    name: str, weight: float, pattern: str, hints: tuple[str, ...] = (), *, cap: int = 2
) -> _Kind:
    signed = tuple((hint, signs_of(hint)) for hint in hints)
    needs = frozenset[str]().union(*(signs for _, signs in signed))
    return _Kind(name, weight, re.compile(pattern, re.MULTILINE), signed, cap, needs)


# What stands before is looked at after the first character, so that the search can look for that.
_PAIR_KINDS = (
    _kind(
        "article",
        1.0,
        r"(?:the(?<![\w-]the)|an(?<![\w-]an)|a(?<![\w-]a)) "
        rf"(?:{_any(_NEVER_AFTER_ARTICLE)})(?![\w'’.-])",
        cap=4,
    ),
    _kind(
        "article and mark",
        0.9,
        r"(?:the(?<![\w'-]the)|an(?<![\w'-]an)"
        # `( a : int, b : int )`
        r"|a(?<![\w'-]a)(?<![(,] a)(?! =)) [:;,.=)>]+(?=[ \n])",
    ),
    _kind(
        "preposition",
        0.9,
        rf"(?<![\w-])(?<!\ba )(?:{_any(_PREPOSITIONS)}) "
        rf"(?:{_any(_NEVER_AFTER_PREPOSITION)})(?![\w'’.-])",
    ),
    _kind(
        "twice",
        0.7,
        rf"(?<![\w'-])(?P<again>{_any(_NEVER_TWICE)}|minus) (?P=again)(?![\w'-])",
    ),
    _kind("operator", 0.8, rf"[=+<>&*](?<=\w .)[=+<>&*]* (?:{_any(_AFTER_OPERATOR)})(?= )"),
    _kind(
        "cell",
        0.8,
        rf"(?<=\| )(?:[)\]}}]+|{_any(_IN_CELL)})(?:--)?(?= \|)"
        r"|(?<=\|)[)\]}]+--? (?:[a-z]+ )?(?=\|)"
        r"|(?<=\| )[(\[{] [a-z]{2,}(?= \|)",
    ),
    # `tion` is a word of Esperanto, never without another before it.
    _kind(
        "suffix",
        1.1,
        rf"(?:^|(?<=[\w,;)}}>|-] ))(?<!ĉi )(?<!pri )(?:{_any(SUFFIXES)})(?=[ \n]|\Z)",
        cap=4,
    ),
)
_PAIR_MARKS = {"operator": frozenset("=+<>&*"), "cell": frozenset("|")}
# What every odd cell begins with, faster to look for.
_ODD_CELL = re.compile(
    rf"\| (?:[)\]}}]|(?:{_any(_IN_CELL)})(?:--)? \||[(\[{{] [a-z]{{2,}} \|)|\|[)\]}}]+--? "
)
_DASH = _kind("dash", 0.6, r"(?<![-\w])[A-Za-z][a-z]{1,13}--(?=[ |\n])(?! ?>)")
# What every such dash ends with, faster to look for.
_DASH_END = re.compile(r"--(?<=[A-Za-z]{2}--)[ |\n]")
_LINE_HEAD = _kind("line head", 0.9, r"^[)\]}]+--? (?=\w)", (")--", "]--", "}--"))
_RUN = _kind(
    "run",
    0.8,
    r"(?:,(?<=\w ,),+|_(?<=\w _)__+|#(?<=[^\W\d] #)##+|;(?<=\w ;);+|:(?<=\w :)::+|\)(?<=\w \))\)+"
    r"|\](?<=\w \])\]+)(?= \w)",
)
_MONEY = _kind("money", 0.6, r"(?<![\w$])\d{1,4}\$(?= [a-z])")
# What every such price ends with, faster to look for.
_MONEY_END = re.compile(r"\$(?<=\d\$) [a-z]")
_MARK_KINDS = (
    _kind("heading marks twice", 0.8, r"^#{1,6} #{1,6} (?=\w)(?!.*##$)", ("# #",)),
    _kind("heading twice", 0.8, r"#(?<!.#)#{0,5} (?P<head>\w{3,}) (?P=head)$", ("# ",)),
)
_SUPPORTING_KINDS = (
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
_SWITCH = _Kind("switch", 0.75, re.compile(""), (), 6)
_NEVER = _Kind("never side by side", 0.9, re.compile(""), (), 4)
# The same where no language has both words.
_NEVER_TONGUES = _Kind("never side by side, of two languages", 1.2, re.compile(""), (), 4)
_BESIDE = _Kind("lone mark beside a small word", 1.0, re.compile(""), (), 4)
_HUNG = _Kind("ending hung on a mark", 1.0, re.compile(""), (), 4)
_STRANGER = _Kind("small word beside another script", 0.7, re.compile(""), (), 3)
_TORN = _Kind("torn bracket", 0.9, re.compile(""), (), 3)
# Kinds about words: thick marks alone are somebody's notation.
_WORD_KINDS = frozenset(
    {
        _SWITCH,
        _NEVER,
        _NEVER_TONGUES,
        _STRANGER,
        _BESIDE,
        _HUNG,
        _DASH,
        *(k for k in _PAIR_KINDS if k.name in ("article", "twice", "suffix")),
    }
    | {k for k in _PAIR_KINDS if k.name == "preposition"}
    | {k for k in _SUPPORTING_KINDS if k.name == "torn name"}
)
# Of these, what sound code and comments hold now and then.
_FAINT = frozenset({_NEVER, *(k for k in _SUPPORTING_KINDS if k.name == "torn name")})
_CLOSED_WORD = _kind("closed word", 0.5, r"(?<=[^\W\d_] )[a-z]{2,12}\)(?= [^\W\d_])")
# Counted only where oddities stand thick: by themselves any text has them.
_LOOSE_KINDS = (
    _CLOSED_WORD,
    _kind("torn word", 0.5, r"(?<=[^\W\d_] )[a-z]{2,12}--?(?= [^\W\d_])"),
    _kind("loose mark", 0.5, r"(?<=[\w,;)}|_>-] )(?!- |= )[,;)}\]|_=>*-]{1,3}(?= \S)", cap=3),
)
_CLOSER = _kind(
    "closer",
    0.7,
    r"[)\]}](?<=[\w,.\]}] .)[)\]}]*[;,.]?(?=[ \n]|\Z)|\)(?<=[a-z]{2}.)(?= [a-z|])",
)
# Brackets this far back can be what a closer closes.
_BRACKET_REACH = 400
_BRACKET = re.compile(r"[()\[\]{}]")
# Characters around a find in which words are said to be shown.
_NAMED_WITHIN = 48
_OWN_WORD = 3

# start, end, kind
_Odd = tuple[int, int, _Kind]


def debris(text: Text) -> str | None:
    """What makes a text's prose salad, with the window; None for one that holds together."""
    prose, in_call = text.prose, text.in_call
    if len(prose) < _MIN_CHARS:
        return None
    odd = list(_telling(text))
    told = sum(kind.weight for *_, kind in odd)
    if told < _DENSE_FLOOR:
        return None
    for kind in _SUPPORTING_KINDS:
        odd.extend(_found(kind, prose))
    marks = {at for at, _, kind in odd if kind is _BESIDE}
    closers = (o for o in _found(_CLOSER, prose) if o[0] not in marks)
    odd.extend(o for o in closers if _closes_nothing(prose, o[0]))
    odd.sort(key=lambda o: o[:2])
    more = _MORE_IN_CALLS if in_call else 0.0
    found = _crowd(odd, LIMIT + more) if told >= _FLOOR else None
    if found is None:
        found = _dense_crowd(odd, prose, DENSE_LIMIT + more)
    if found is None:
        return None
    begin, end = found
    if speaks_of_words(prose[max(0, begin - _NAMED_WITHIN) : end + _NAMED_WITHIN]):
        return None
    pieces = [prose[at:stop].strip() for at, stop, _ in odd if begin <= at <= end]
    shown = ", ".join(repr(piece[:20]) for piece in dict.fromkeys(pieces))
    return f"broken sentences at {begin}: {shown[:160]}"


def _crowd(odd: list[_Odd], limit: float) -> tuple[int, int] | None:
    """Where oddities crowd in two lines: first and last of them."""
    best, begin, end = _heaviest(
        [o for o in odd if o[2] not in (_NEVER, _NEVER_TONGUES)], WINDOW_CHARS
    )
    return (begin, end) if best >= limit else None


def _dense_crowd(odd: list[_Odd], prose: str, limit: float) -> tuple[int, int] | None:
    """Where oddities of several kinds, words among them, stand thick in half a line."""
    if not any(kind in _WORD_KINDS for *_, kind in odd):
        return None
    thick = _apart(odd + [o for kind in _LOOSE_KINDS for o in _found(kind, prose)], prose)
    best, begin, end = _heaviest(thick, DENSE_CHARS)
    inside = [kind for at, _, kind in thick if begin <= at <= end]
    kinds = set(inside)
    if best < limit or not kinds & _WORD_KINDS:
        return None
    # Two words that never stand side by side do, once, in names, loops and questions.
    if _NEVER in kinds and kinds & _WORD_KINDS <= _FAINT and inside.count(_NEVER) < _LEAST_NEVER:
        return None
    alone = kinds & {_NEVER, _NEVER_TONGUES, _BESIDE, _HUNG}
    return (begin, end) if len(kinds) >= _DENSE_KINDS or alone else None


def _apart(odd: list[_Odd], prose: str) -> list[_Odd]:
    """The finds that do not overlap, the heavier one of two that do."""
    kept: list[_Odd] = []
    for find in sorted(odd, key=lambda o: o[:2]):
        at, _, kind = find
        if kind is _CLOSED_WORD and not _closes_nothing(prose, find[1] - 1):
            continue
        if kept and at < kept[-1][1]:
            if kind.weight > kept[-1][2].weight:
                kept[-1] = find
        else:
            kept.append(find)
    return kept


def _telling(text: Text) -> Iterator[_Odd]:
    prose, signs, codes = text.prose, text.prose_signs, text.codes
    told = text.words_may_tell  # False for most
    odd = told and holds_odd_pair(codes)
    if odd or ("|" in signs and _ODD_CELL.search(prose)):
        for kind in _PAIR_KINDS:
            if _may_hold(kind, signs, codes):
                yield from _pairs(kind, prose)
    if told and holds_run(codes):
        yield from _found(_RUN, prose)
    dashes = "-" in signs and "--" in prose
    if dashes and _DASH_END.search(prose):
        yield from (o for o in _found(_DASH, prose) if not _closes_a_rule(prose, o[0]))
    closed = "-" in signs and not signs.isdisjoint(")]")
    if (closed and (")- " in prose or "]- " in prose)) or (
        dashes and _may_find(_LINE_HEAD, prose, signs)
    ):
        yield from _found(_LINE_HEAD, prose)
    if "$" in signs and _MONEY_END.search(prose):
        yield from _found(_MONEY, prose)
    for kind in _MARK_KINDS:
        if not kind.needs.isdisjoint(signs) and _may_find(kind, prose, signs):
            yield from _found(kind, prose)
    if may_be_torn(prose, signs):
        torn = islice(torn_brackets(prose), _MAX_FOUND)
        yield from ((s, e, _TORN) for s, e in torn if _is_torn(prose, s))
    if not prose.isascii() and holds_small_word(codes):
        yield from ((s, e, _STRANGER) for s, e in islice(strangers(prose, signs), _MAX_FOUND))
    yield from _by_the_words(prose, codes, odd=odd) if told else ()


def _pairs(kind: _Kind, prose: str) -> Iterator[_Odd]:
    odd = list(_found(kind, prose))
    if kind.name != "suffix":
        return iter(odd)
    # `ing` is a word of Javanese; dictionaries have rows of endings.
    own = len(odd) >= _OWN_WORD and len({prose[at:end] for at, end, _ in odd}) == 1
    return (o for o in odd if not own and not is_row(prose, o[0]))


def _by_the_words(prose: str, codes: bytes, *, odd: bool) -> Iterator[_Odd]:
    """The finds of which the words' codes say whether they can be there."""
    if odd:
        for start, end in odd_pairs(prose):
            first, second = prose[start:end].split()
            yield start, end, _NEVER if spoken_by(first) & spoken_by(second) else _NEVER_TONGUES
    if holds_lone_mark(codes):
        for start, end in islice(lone_marks(prose), _MAX_FOUND):
            if _is_torn(prose, start):
                yield start, end, _BESIDE
    if holds_hung_ending(codes):
        yield from ((s, e, _HUNG) for s, e in islice(hung_endings(prose), _MAX_FOUND))
    if may_switch(codes):
        yield from ((start, end, _SWITCH) for start, end in switches(prose))


def _may_find(kind: _Kind, prose: str, signs: frozenset[str]) -> bool:
    # A loop, since `any` over a generator costs more than the searches themselves.
    for hint, needed in kind.hints:  # noqa: SIM110
        if needed <= signs and hint in prose:
            return True
    return False


def _may_hold(kind: _Kind, signs: frozenset[str], codes: bytes) -> bool:
    """False where a pair kind surely is not in the text: its mark, or its lone suffix, is not."""
    if kind.name == "suffix":
        return holds_suffix(codes)
    marks = _PAIR_MARKS.get(kind.name)
    return marks is None or not marks.isdisjoint(signs)


def _found(kind: _Kind, prose: str) -> Iterator[_Odd]:
    for match in islice(kind.pattern.finditer(prose), _MAX_FOUND):
        yield match.start(), match.end(), kind


def _closes_a_rule(prose: str, at: int) -> bool:
    """True where dashes opened the line that dashes end: `--BEGIN--`."""
    return prose.startswith("--", prose.rfind("\n", 0, at) + 1)


def _is_torn(prose: str, at: int) -> bool:
    return prose[at] not in CLOSERS or _closes_nothing(prose, at)


def _closes_nothing(prose: str, at: int) -> bool:
    """True where no bracket before is open; one that closed nothing (`1)`) closes no other."""
    depth = 0
    for mark in _BRACKET.findall(prose, max(0, at - _BRACKET_REACH), at):
        depth = depth + 1 if mark in "([{" else max(0, depth - 1)
    return not depth


def _heaviest(odd: list[_Odd], window: int) -> tuple[float, int, int]:
    """The greatest weight in a window, each kind counted up to its cap, and where the window is."""
    best, begin, end = 0.0, 0, 0
    first = 0
    counts = Counter[_Kind]()
    for at, _, kind in odd:
        counts[kind] += 1
        while at - odd[first][0] > window:
            counts[odd[first][2]] -= 1
            first += 1
        total = sum(min(count, kind.cap) * kind.weight for kind, count in counts.items())
        if total > best:
            best, begin, end = total, odd[first][0], at
    return best, begin, end

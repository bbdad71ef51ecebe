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
from itertools import islice

from dsv4doctor.detect.crowds import (
    DENSE_LIMIT,
    LIMIT,
    MAX_FOUND,
    Odd,
    closes_nothing,
    crowd,
    dense_crowd,
    finds,
    once,
)
from dsv4doctor.detect.hints import ANY, hint
from dsv4doctor.detect.listing import is_row, is_row_of_codes, speaks_of_words
from dsv4doctor.detect.lone_marks import (
    CLOSED_WORDS,
    CLOSERS,
    SMALL_STRANGER,
    hung_endings,
    lone_marks,
    may_be_torn,
    strangers,
    torn_brackets,
)
from dsv4doctor.detect.neighbours import (
    holds_hung_ending,
    holds_lone_mark,
    holds_run,
    holds_small_word,
    holds_suffix,
    is_variable,
    odd_pairs,
)
from dsv4doctor.detect.oddities import (
    BESIDE,
    CLOSER,
    DASH,
    DASH_END,
    HUNG,
    LEAST_TONGUES,
    LINE_HEAD,
    MARK_KINDS,
    MONEY,
    MONEY_END,
    NEVER,
    NEVER_TONGUES,
    ODD_CELL,
    PAIR_HINTS,
    PAIR_KINDS,
    PAIR_MARKS,
    RUN,
    STRANGER,
    SUPPORTING_KINDS,
    SWITCH,
    TONGUE,
    TONGUE_PAIR,
    TONGUES,
    TORN,
    Kind,
)
from dsv4doctor.detect.subject import Text
from dsv4doctor.detect.switches import spoken_by, switches
from dsv4doctor.detect.tongues import are_of_two, foreign_words, is_not_counted

_MORE_IN_CALLS = 1.0
# Weight that the telling kinds must bring before the supporting ones are looked for.
_FLOOR = 1.4
_DENSE_FLOOR = 0.6
_MIN_CHARS = 24

# What the kinds need that are told by marks (see `hints.py`).
_CELL = hint(ODD_CELL.pattern)
_RUN_OF_MARKS = hint(r" (?:,{2,}|_{3,}|#{3,}|;{2,}|:{3,}|\){2,}|\]{2,}) ")
_DASHES = hint(r"[A-Za-z]{2}--[ |\n]")
_CLOSED_HEAD = hint(r"(?m)^[)\]}]*(?:[)\]]--?|\}--) ")
_PRICE = hint(r"[0-9]\$ [a-z]")
_HEADING = hint(r"(?m)^#{1,6} #{1,6} |^#{1,6} [^ \n]{3,} [^ \n]{3,}$")
_CLOSED_ON = hint(r"[)\]}]{2,6};?[a-z]{2}")
_BY_MARKS = _CELL | _RUN_OF_MARKS | _DASHES | _CLOSED_HEAD | _PRICE | _HEADING | _CLOSED_ON
# Characters around a find in which words of language and grammar say that words are shown there.
_NAMED_WITHIN = 48
_STATEMENT = re.compile(r"[ \t]*[A-Za-z][a-z]+--[ \t]*(?:\n|\Z)")
_LOOP = re.compile(r"for \w+ in ")
# Letters of Esperanto, of which `tion` is a word.
_ESPERANTO = re.compile("[ĉĝĥĵŝŭ]")
# An ending or a small word that comes this often, and hardly another, is the text's own.
_OWN_WORD = 3


def debris(text: Text) -> str | None:
    """What makes a text's prose salad, with the window; None for one that holds together."""
    prose, in_call = text.prose, text.in_call
    if len(prose) < _MIN_CHARS or not _may_tell(text):
        return None
    odd = list(_telling(text))
    told = sum(kind.weight for *_, kind in odd)
    tongues = list(_foreign(text)) if text.clashes else []
    if own := _own_words([prose[at:end] for at, end, _ in tongues]):
        tongues = [o for o in tongues if prose[o[0] : o[1]] not in own]
        odd = [o for o in odd if o[2] is not SWITCH]
    if told < _DENSE_FLOOR and len(tongues) < 2:
        return None
    for kind in SUPPORTING_KINDS:
        odd.extend(finds(kind, prose))
    marks = {at for at, _, kind in odd if kind is BESIDE}
    closers = (o for o in finds(CLOSER, prose) if o[0] not in marks)
    odd.extend(o for o in closers if closes_nothing(prose, o[0]))
    odd = once(sorted(odd, key=lambda o: o[:2]), prose)
    more = _MORE_IN_CALLS if in_call else 0.0
    found = crowd(odd, LIMIT + more) if told >= _FLOOR else None
    if found is None:
        found = dense_crowd(odd, prose, DENSE_LIMIT + more)
    if found is None and tongues:
        odd = [*tongues, *(o for o in odd if o[2] not in (SWITCH, NEVER_TONGUES))]
        odd.sort(key=lambda o: o[:2])
        found = dense_crowd(odd, prose, DENSE_LIMIT + more)
    if found is None:
        return None
    begin, end = found
    named = speaks_of_words(prose[max(0, begin - _NAMED_WITHIN) : end + _NAMED_WITHIN])
    if named or is_row_of_codes(prose, begin, end):
        return None
    pieces = [prose[at:stop].strip() for at, stop, _ in odd if begin <= at <= end]
    shown = ", ".join(repr(piece[:20]) for piece in dict.fromkeys(pieces))
    return f"broken sentences at {begin}: {shown[:160]}"


def _may_tell(text: Text) -> bool:
    """False for most texts: nothing is odd about their words or their marks."""
    words = text.words
    if text.prose_hints & (_BY_MARKS | SMALL_STRANGER) or words.odd or words.clashes:
        return True
    return words.may_tell and (holds_lone_mark(words.codes) or holds_hung_ending(words.codes))


def _own_words(foreign: list[str]) -> set[str]:
    """Small words of other languages that are the text's own: they come again and again, and are
    most of those that seem foreign."""
    counts = Counter(foreign)
    least = _OWN_WORD if len(counts) > 1 else 2
    return {word for word, count in counts.items() if least <= count and len(foreign) <= 2 * count}


def _telling(text: Text) -> Iterator[Odd]:
    prose, hints, codes = text.prose, text.prose_hints, text.codes
    told = text.words.may_tell  # False for most
    if text.words.odd or (hints & _CELL and ODD_CELL.search(prose)):
        for kind in PAIR_KINDS:
            if _may_hold(kind, text):
                yield from _pairs(kind, prose)
    if told and hints & _RUN_OF_MARKS and holds_run(codes):
        yield from finds(RUN, prose)
    if hints & _DASHES and DASH_END.search(prose):
        yield from (o for o in finds(DASH, prose) if not _closes_a_rule(prose, o[0]))
    if hints & _CLOSED_HEAD:
        yield from finds(LINE_HEAD, prose)
    if hints & _PRICE and MONEY_END.search(prose):
        yield from finds(MONEY, prose)
    if hints & _HEADING and "# " in prose:
        for kind in MARK_KINDS:
            yield from finds(kind, prose)
    if hints & _CLOSED_ON and may_be_torn(prose):
        torn = islice(torn_brackets(prose), MAX_FOUND)
        yield from ((s, e, TORN) for s, e in torn if _is_torn(prose, s))
    if hints & SMALL_STRANGER and not prose.isascii() and holds_small_word(codes):
        yield from ((s, e, STRANGER) for s, e in islice(strangers(prose), MAX_FOUND))
    yield from _by_the_words(text) if told else ()


def _pairs(kind: Kind, prose: str) -> Iterator[Odd]:
    odd = list(finds(kind, prose))
    if kind.name != "suffix":
        return iter(odd)
    # `ing` is a word of Javanese; dictionaries have rows of endings.
    own = len(odd) >= _OWN_WORD and len({prose[at:end] for at, end, _ in odd}) == 1
    own = own or ({prose[at:end] for at, end, _ in odd} == {"tion"} and _is_esperanto(prose))
    return (o for o in odd if not own and not is_row(prose, o[0]))


def _is_esperanto(prose: str) -> bool:
    return not prose.isascii() and _ESPERANTO.search(prose) is not None


def _by_the_words(text: Text) -> Iterator[Odd]:
    """The finds of which the words' codes say whether they can be there."""
    prose, codes = text.prose, text.codes
    if text.words.odd:
        for start, end in islice(odd_pairs(prose), MAX_FOUND):
            first, second = map(spoken_by, prose[start:end].split())
            if not is_not_counted(prose, start, first & second):
                of_two = first and second and not first & second
                yield start, end, NEVER_TONGUES if of_two else NEVER
    if holds_lone_mark(codes):
        for start, end in islice(lone_marks(prose), MAX_FOUND):
            if _is_torn(prose, start):
                yield start, end, BESIDE
    if holds_hung_ending(codes):
        for start, end in islice(hung_endings(prose), MAX_FOUND):
            if prose[start:end] not in CLOSED_WORDS or closes_nothing(prose, end - 1):
                yield start, end, HUNG
    for stretch in text.clashes:
        yield from ((start, end, SWITCH) for start, end in switches(prose, *stretch))


def _foreign(text: Text) -> Iterator[Odd]:
    prose = text.prose
    for stretch in text.clashes:
        for clause in islice(foreign_words(prose, *stretch), MAX_FOUND):
            words = [prose[start:end] for start, end in clause]
            if max(map(len, words)) == len("en") and words == sorted(words) and words[1:]:
                continue  # a list of languages' codes
            kind = TONGUES if len(clause) >= LEAST_TONGUES else TONGUE
            if len(clause) == 2 and are_of_two(*words):
                kind = TONGUE_PAIR
            yield from ((s, e, kind) for s, e in clause if not _is_of_code(prose, s, e))


def _is_of_code(prose: str, start: int, end: int) -> bool:
    """True for `for` and `el` in `for el in row`, for `el` in `var el = row`, and for any other
    variable."""
    named = any(_LOOP.match(prose, at) for at in (start, max(0, start - len("for "))))
    return named or prose.startswith(" = ", end) or is_variable(prose, start, prose[start:end])


def _may_hold(kind: Kind, text: Text) -> bool:
    """False where a pair kind surely is not in the text: its words, its mark, or its lone suffix,
    are not."""
    if kind.name == "suffix":
        return holds_suffix(text.codes)
    if not text.prose_hints & PAIR_HINTS.get(kind.name, ANY):
        return False
    marks = PAIR_MARKS.get(kind.name)
    return marks is None or not marks.isdisjoint(text.prose_signs)


def _closes_a_rule(prose: str, at: int) -> bool:
    """True where dashes opened the line that dashes end, `--BEGIN--`, and for a statement."""
    line = prose.rfind("\n", 0, at) + 1
    return prose.startswith("--", line) or _STATEMENT.match(prose, line) is not None


def _is_torn(prose: str, at: int) -> bool:
    return prose[at] not in CLOSERS or closes_nothing(prose, at)

"""Where the oddities of a text crowd: which of them count, and what they weigh together."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from dsv4doctor.detect.oddities import (
    BESIDE,
    CLOSED_SMALL,
    CLOSED_WORD,
    FAINT,
    HUNG,
    LEAST,
    LOOSE_KINDS,
    NEVER,
    NEVER_TONGUES,
    SWITCH,
    TONGUE,
    WORD_KINDS,
    Kind,
)

# Oddities count together when they stand this close: two lines of prose.
WINDOW_CHARS = 170
# Weight in a window from which it is salad; source code in arguments is given more room.
LIMIT = 2.4
# The same for half a line, where oddities of two kinds or more stand side by side.
DENSE_CHARS = 40
DENSE_LIMIT = 1.5
_DENSE_KINDS = 2
# Pairs of words that must be odd where nothing but them, and names, tells of broken sentences.
_LEAST_NEVER = 3
# Weight from which fewer tell with marks alone: who speaks two languages mixes them.
_TONGUE_LIMIT = 2.2
# The same where it may be a slip of the pen.
_SLIP_LIMIT = 1.7
# Finds of one kind that are weighed; a text with more is decided by these.
MAX_FOUND = 500
# Brackets this far back can be what a closer closes.
_BRACKET_REACH = 400
_BRACKET = re.compile(r"[()\[\]{}]")
# Lines that are alike for so many characters up to a slip are copies, as a patch has them.
_COPIED_CHARS, _HEAD_CHARS = 24, 36

# start, end, kind
Odd = tuple[int, int, Kind]


def once(odd: list[Odd], prose: str) -> list[Odd]:
    """The finds less those before which stands what stands before another: a slip was copied with
    its sentence."""
    seen = set[tuple[str, Kind]]()
    kept: list[Odd] = []
    for find in odd:
        at, end, kind = find
        head = prose[max(prose.rfind("\n", 0, at) + 1, end - _HEAD_CHARS) : end]
        if len(head) < _COPIED_CHARS or (head, kind) not in seen:
            seen.add((head, kind))
            kept.append(find)
    return kept


def crowd(odd: list[Odd], limit: float) -> tuple[int, int] | None:
    """Where oddities crowd in two lines: first and last of them."""
    best, begin, end = _heaviest(
        [o for o in odd if o[2] not in (NEVER, NEVER_TONGUES)], WINDOW_CHARS
    )
    return (begin, end) if best >= limit else None


def dense_crowd(odd: list[Odd], prose: str, limit: float) -> tuple[int, int] | None:
    """Where oddities of several kinds, words among them, stand thick in half a line."""
    if not any(kind in WORD_KINDS for *_, kind in odd):
        return None
    thick = _apart(odd + [o for kind in LOOSE_KINDS for o in finds(kind, prose)], prose)
    best, begin, end = _heaviest(thick, DENSE_CHARS)
    inside = [kind for at, _, kind in thick if begin <= at <= end]
    # Those too that overlap heavier ones.
    kinds = {*inside, *(kind for at, _, kind in odd if begin <= at <= end)}
    if best < limit or not kinds & WORD_KINDS:
        return None
    if best < _SLIP_LIMIT and _is_slip([o for o in thick if begin <= o[0] <= end], prose):
        return None
    if _is_faint(kinds, best) and _never_heard(odd, begin, end) < _LEAST_NEVER:
        return None
    alone = kinds & {NEVER, NEVER_TONGUES, BESIDE, HUNG} or any(
        inside.count(kind) >= least for kind, least in LEAST.items()
    )
    return (begin, end) if len(kinds) >= _DENSE_KINDS or alone else None


def _is_slip(found: list[Odd], prose: str) -> bool:
    """True where the only word that tells is one written twice, or stands beside a mark that the
    sentence is about; and for a variable or two between words of one language."""
    told = [o for o in found if o[2] in WORD_KINDS]
    if {kind for *_, kind in found} == {SWITCH}:
        return True
    if len(told) > 1:
        return False
    at, end, kind = told[0]
    words = prose[at:end].split()
    return kind is BESIDE or (len(words) == 2 and len({*words}) == 1)


def _is_faint(kinds: set[Kind], weight: float) -> bool:
    """True where no word tells but what names, loops, questions and quotations hold."""
    words = kinds & WORD_KINDS
    if words == {TONGUE}:
        return weight < _TONGUE_LIMIT
    return not words.isdisjoint({NEVER, TONGUE}) and words <= FAINT | {TONGUE}


def _never_heard(odd: list[Odd], begin: int, end: int) -> int:
    """Pairs never seen, those included that overlap others; a word of another language is one
    more."""
    inside = [kind for at, _, kind in odd if begin <= at <= end]
    return inside.count(NEVER) + (TONGUE in inside)


def _apart(odd: list[Odd], prose: str) -> list[Odd]:
    """Those of the finds that weigh most together and do not overlap."""
    closes = (CLOSED_WORD, CLOSED_SMALL)
    finds = [o for o in odd if o[2] not in closes or closes_nothing(prose, o[1] - 1)]
    finds.sort(key=lambda o: o[1])
    ends = [end for _, end, _ in finds]
    # By number of finds: the most that so many of them weigh, and the last of those that do.
    most, last = [0.0], [0]
    for number, (at, _, kind) in enumerate(finds, 1):
        weight = most[bisect_right(ends, at, 0, number - 1)] + kind.weight
        is_more = weight > most[-1]
        last.append(number if is_more else last[-1])
        most.append(weight if is_more else most[-1])
    kept: list[Odd] = []
    number = last[-1]
    while number:
        kept.append(finds[number - 1])
        number = last[bisect_right(ends, finds[number - 1][0], 0, number - 1)]
    return kept[::-1]


def finds(kind: Kind, prose: str) -> Iterator[Odd]:
    for match in islice(kind.pattern.finditer(prose), MAX_FOUND):
        yield match.start(), match.end(), kind


def closes_nothing(prose: str, at: int) -> bool:
    """True where no bracket before is open; one that closed nothing (`1)`) closes no other."""
    depth = 0
    for mark in _BRACKET.findall(prose, max(0, at - _BRACKET_REACH), at):
        depth = depth + 1 if mark in "([{" else max(0, depth - 1)
    return not depth


def _heaviest(odd: list[Odd], window: int) -> tuple[float, int, int]:
    """The greatest weight in a window, each kind counted up to its cap, and where the window is."""
    best, begin, end = 0.0, 0, 0
    first = 0
    counts = Counter[Kind]()
    for at, _, kind in odd:
        counts[kind] += 1
        while at - odd[first][0] > window:
            counts[odd[first][2]] -= 1
            first += 1
        total = sum(min(count, kind.cap) * kind.weight for kind, count in counts.items())
        if total > best:
            best, begin, end = total, odd[first][0], at
    return best, begin, end

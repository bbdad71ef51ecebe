"""How a text ends: the period with which its tail repeats, and how much of the tail is new.

Everything looks at the last few thousand characters only and searches in C, so that the cost does
not grow with the text.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

# As far back as a loop is looked for: eight rounds of a long paragraph.
TAIL_CHARS = 6000
# The longest unit whose repetition is looked for.
MAX_PERIOD = 1500
# Characters at the very end by which earlier rounds are found; then shorter ones, and how far
# before them they are looked for where the longer ones are new.
_PROBES = (32, 12)
_SHORT_REACH = 64
# Characters at the end that may fall out of step, and the tail whose size tells whether to try.
_SLIPS = (2, 6, 16, 40)
# The tail whose compressibility is the cheap first look, for every kind of loop.
SHARE_TAIL = 800
_BLOCK_CHARS = 4096
# Samples of a tail, and their size, by which it is cleared before it is compressed.
_SAMPLES = 12
_SAMPLE = 7
_SAMPLED_FROM = 160
# Samples seen before that make the tail worth compressing; loops have nearly all, one sound tail in
# nine has as many.
_REPEATED = 6
# Earlier places of the probe that are tried as the previous round.
_CANDIDATES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The tail is `repeats` whole rounds of `unit` (and a part of one); it starts at `start`."""

    unit: str
    repeats: int
    start: int
    covered: int


def tail_period(body: str, share: float) -> Period | None:
    """The period with which a text ends, seen at least twice; None if there is none.

    A last word that falls out of step is forgiven: decoding stops anywhere. `body` is the text
    without the blanks at its end, `share` is `tail_share(body)`.
    """
    found = _period_at_end(body)
    if found is not None:
        return found
    if share < (0.35 if len(body) > SHARE_TAIL // 2 else 0.5):
        for slip in _SLIPS:
            found = _period_at_end(body[: len(body) - slip]) if slip < len(body) // 4 else None
            if found is not None and found.repeats >= 3 and found.covered >= 4 * slip:
                break
    return found


def tail_share(body: str) -> float:
    """`compressed_share` of the tail; 1.0 where it is no loop."""
    tail = body[-SHARE_TAIL:]
    return compressed_share(tail) if recurs(tail) else 1.0


def recurs(tail: str) -> bool:
    """False where the tail surely is no loop: hardly one of its samples is there twice.

    What compresses to a third or a half of its size as loops do is nearly all made of repeats;
    bytes that only share a script's first byte are not.
    """
    length = len(tail)
    if length < _SAMPLED_FROM:
        return True
    step = (length - _SAMPLE) // _SAMPLES
    places = range(step, length - _SAMPLE, step)
    # As many may be new as leave enough that are not.
    needed, new = _REPEATED, len(places) - _REPEATED
    find = tail.find
    for at in places:
        if find(tail[at : at + _SAMPLE]) != at:
            needed -= 1
            if not needed:
                return True
        else:
            new -= 1
            if new < 0:
                return False
    return False


def _period_at_end(body: str) -> Period | None:
    # Most texts end on what they never said before. Where the longer probe is new, a period that
    # came twice is hardly longer than it, and the shorter one is looked for nearby.
    long, short = _PROBES
    reach = MAX_PERIOD if _came_before(body, long) else _SHORT_REACH
    if not _came_before(body, short, reach):
        return None
    offset = max(0, len(body) - TAIL_CHARS)
    tail = body[offset:]
    best: Period | None = None
    for size in _PROBES:
        if not _came_before(tail, size, reach):
            continue
        for distance in _distances(tail, size, reach):
            # Less than two rounds is none, and is what most texts have.
            if not tail.startswith(tail[-distance:], max(0, len(tail) - 2 * distance)):
                continue
            covered = _covered(tail, distance)
            repeats = _rounds(tail[len(tail) - distance :], covered)
            if repeats >= 2 and (best is None or covered > best.covered + distance):
                unit = tail[len(tail) - distance :]
                start = offset + len(tail) - covered
                best = Period(unit=unit, repeats=repeats, start=start, covered=covered)
        if best is not None and best.repeats >= 3:
            break
    return best if best is None or best.start > offset else _extended(body, best)


def _came_before(tail: str, size: int, reach: int = MAX_PERIOD) -> bool:
    """True where the last `size` characters stand once more within so many before them."""
    first = len(tail) - size
    return first >= 1 and tail.find(tail[first:], max(0, first - reach)) != first


def _distances(tail: str, size: int, reach: int) -> list[int]:
    probe = tail[-size:]
    end = len(tail)
    found: list[int] = []
    at = len(tail) - size
    while len(found) < _CANDIDATES:
        at = tail.rfind(probe, max(0, end - size - reach), at + size - 1)
        if at < 0:
            break
        distance = end - size - at
        if not found or any(distance % earlier for earlier in found):
            found.append(distance)
        elif len(found) == 1:
            break
    return found


def _covered(text: str, distance: int) -> int:
    """How many characters at the end have the given period: whole rounds, and a part of one."""
    unit = text[-distance:]
    end = len(text) - distance
    # Many rounds at a time first: a megabyte of one character is a megabyte of rounds.
    block = unit * (_BLOCK_CHARS // distance)
    while block and end >= len(block) and text.startswith(block, end - len(block)):
        end -= len(block)
    while end >= distance and text.startswith(unit, end - distance):
        end -= distance
    if end + distance == len(text):
        return distance
    # The part is what both share at their ends; found by halving, since slices compare in C.
    low, high = 0, min(distance, end)
    while low < high:
        middle = (low + high + 1) // 2
        if text[end - middle : end] == unit[distance - middle :]:
            low = middle
        else:
            high = middle - 1
    return len(text) - end + low


def _rounds(unit: str, covered: int) -> int:
    """Whole rounds in `covered` characters; the blanks that part rounds do not open the first."""
    return (covered + len(unit) - len(unit.lstrip())) // len(unit)


def _extended(body: str, period: Period) -> Period:
    """The same period followed back past the window."""
    covered = _covered(body, len(period.unit))
    return Period(
        unit=period.unit,
        repeats=_rounds(period.unit, covered),
        start=len(body) - covered,
        covered=covered,
    )


def compressed_share(text: str) -> float:
    """Size of the text after a fast compression, as a share: prose 0.4 to 0.7, loops below 0.2."""
    raw = text.encode("utf-8", "surrogatepass")
    return len(zlib.compress(raw, 1)) / max(1, len(raw))


_DIGITS = re.compile(r"\d+")
_WORD = re.compile(r"\w+(?:['’]\w+)?")


def novelty(items: list[str], size: int) -> float:
    """The share of n-grams of `items` that are new; 1.0 where there are too few to say."""
    total = len(items) - size + 1
    if total < 1:
        return 1.0
    grams = set(zip(*(items[start:] for start in range(size)), strict=False))
    return len(grams) / total


def words_of(text: str, *, fold_digits: bool) -> list[str]:
    """The words of a text, lower-cased; digits folded to one where counters must not count as
    new."""
    lowered = text.lower()
    return _WORD.findall(_DIGITS.sub("0", lowered) if fold_digits else lowered)

"""The distinct characters of a text that are no ASCII letter, digit, blank or line break.

The cheap first pass over a text: most patterns need a bracket, a bar, a control character or a
letter beyond ASCII to match at all, and a set of some dozens answers whether one is there.
"""

from __future__ import annotations

import string
from bisect import bisect_left
from collections.abc import Iterable

_COMMON_CHARS = frozenset(string.ascii_letters + string.digits + " \n")
_COMMON = "".join(_COMMON_CHARS).encode()

# Above this a table of every code point is faster than a set of every character.
_TABLE_FROM = 600


def signs_of(text: str) -> frozenset[str]:
    """Every character of `text` that is no ASCII letter, digit, blank or line break, once."""
    if text.isascii():
        return frozenset(text.encode().translate(None, _COMMON).decode())
    if len(text) >= _TABLE_FROM:
        return _by_table(text)
    rare = text.encode("utf-8", "surrogatepass").translate(None, _COMMON)
    return frozenset(rare.decode("utf-8", "surrogatepass"))


def _by_table(text: str) -> frozenset[str]:
    import numpy

    units = numpy.frombuffer(text.encode("utf-16-le", "surrogatepass"), numpy.uint16)
    seen = numpy.zeros(int(units.max()) + 1, numpy.bool_)
    seen[units] = True
    distinct = seen.nonzero()[0].tolist()
    at = bisect_left(distinct, 0xD800)
    if at < len(distinct) and distinct[at] < 0xE000:
        # Characters beyond 16 bits are two units: told by the text itself.
        return frozenset(text).difference(_COMMON_CHARS)
    return frozenset(map(chr, distinct)).difference(_COMMON_CHARS)


def holds_any(text: str, hints: Iterable[str]) -> bool:
    """True when one of `hints` is in `text`; `any` over a generator costs more than the search."""
    for hint in hints:  # noqa: SIM110
        if hint in text:
            return True
    return False

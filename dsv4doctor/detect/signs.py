"""The distinct characters of a text that are no ASCII letter, digit, blank or line break.

The cheap first pass over a text: most patterns need a bracket, a bar, a control character or a
letter beyond ASCII to match at all, and a set of some dozens answers whether one is there.
"""

from __future__ import annotations

import string
from collections.abc import Iterable

_COMMON = (string.ascii_letters + string.digits + " \n").encode()


def signs_of(text: str) -> frozenset[str]:
    """Every character of `text` that is no ASCII letter, digit, blank or line break, once."""
    rare = text.encode("utf-8", "surrogatepass").translate(None, _COMMON)
    return frozenset(rare.decode("utf-8", "surrogatepass"))


def holds_any(text: str, hints: Iterable[str]) -> bool:
    """True when one of `hints` is in `text`; `any` over a generator costs more than the search."""
    for hint in hints:  # noqa: SIM110
        if hint in text:
            return True
    return False

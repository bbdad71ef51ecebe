"""The first pass over a batch of texts: one look that tells which rules can find nothing in each.

A rule that needs something rare says what it is, as patterns, and gets a bit. All patterns of all
rules are searched for at once by Hyperscan, which costs little more than one of them does with
`re`. A bit that is not set clears a text of its rule; one that is set means only that the rule has
to look for itself. A text that nobody looked at has all bits set.

Patterns are in Hyperscan's syntax: no look-arounds, no references; `\\w`, `\\d` and `\\s` are
ASCII's, so that `[^!-~]` stands for blanks. One of bytes is searched for in UTF-8 byte by byte,
which is ready sooner where a class of characters comes first. A pattern may match more than its
rule does, and must match wherever the rule may.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from threading import Lock

# What a text has that nobody looked at, and what every text has.
ANY, ALWAYS = -1, 1
# Of a reply: it has calls, reasoning, or something was planted in it.
CALLS, REASONING, PLANTED = 2, 4, 8
_FIRST_BIT = 4

# Half a character by itself, which UTF-8 has no bytes for.
_SURROGATE = re.compile(b"\xed[\xa0-\xbf]")
_patterns: list[tuple[str | bytes, int]] = []
_bits = count(_FIRST_BIT)
_scanning = Lock()


def hint(*patterns: str | bytes) -> int:
    """A bit for a rule that can find something only where one of `patterns` matches. At import."""
    bit = next(_bits)
    _patterns.extend((pattern, bit) for pattern in patterns)
    return 1 << bit


def hints_of(raw: bytes) -> int:
    """The bits of the rules that have to look at a text in UTF-8."""
    scan = _scanner()
    return ANY if scan is None or _SURROGATE.search(raw) else scan(raw)


@lru_cache(maxsize=1)
def _scanner() -> Callable[[bytes], int] | None:
    """The search for all patterns; None where Hyperscan does not run on this machine."""
    try:
        import hyperscan
    except ImportError:
        return None
    once, utf8 = hyperscan.HS_FLAG_SINGLEMATCH, hyperscan.HS_FLAG_UTF8
    database = hyperscan.Database()
    try:
        database.compile(
            expressions=[p if isinstance(p, bytes) else p.encode() for p, _ in _patterns],
            ids=[bit for _, bit in _patterns],
            elements=len(_patterns),
            flags=[once if isinstance(p, bytes) else once | utf8 for p, _ in _patterns],
        )
    except hyperscan.ArchitectureError:
        return None
    seen: list[int] = []

    def note(bit: int, *_: object) -> None:
        seen.append(bit)

    def scan(raw: bytes) -> int:
        # The database's scratch space serves one search at a time.
        with _scanning:
            seen.clear()
            database.scan(raw, match_event_handler=note)
            found = ALWAYS
            for bit in seen:
                found |= 1 << bit
            return found

    return scan

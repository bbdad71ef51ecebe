"""Which rules a text breaks by two characters side by side, all rules in one look.

Every character is looked up once, for what it is as the first of a pair and as the second; one bit
a rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

# Characters beyond 16 bits are looked up as their halves, which no rule names.
_UNITS = 0x10000
_MOST_RULES = 16


@dataclass(frozen=True, kw_only=True)
class Rule:
    """No character of the pattern `second` stands behind one of `first`; each a pattern of one
    character, or `not_` before it for all others."""

    of: str
    first: str
    second: str
    not_first: bool = False
    not_second: bool = False


class ForbiddenPairs:
    """At most sixteen rules, each `of` somebody. A text stands between two blanks."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        assert len(rules) <= _MOST_RULES
        self._rules = rules

    @cached_property
    def _table(self) -> Any:
        """By code point: the rules that it is a first character of, and above them those that it is
        a second one of."""
        import numpy as np

        table = np.zeros(_UNITS, np.uint32)
        every = np.arange(_UNITS, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
        for number, rule in enumerate(self._rules):
            firsts = _members(rule.first, every) != rule.not_first
            seconds = _members(rule.second, every) != rule.not_second
            table |= firsts.astype(np.uint32) << number
            table |= seconds.astype(np.uint32) << (_MOST_RULES + number)
        return table

    def broken_by(self, text: str) -> frozenset[str]:
        """Whose rules the text breaks."""
        import numpy as np

        units = np.frombuffer(f" {text} ".encode("utf-16-le", "surrogatepass"), np.uint16)
        rules = self._table.take(units)
        broken = int(np.bitwise_or.reduce(rules[:-1] & (rules[1:] >> _MOST_RULES)))
        if not broken:
            return frozenset()
        return frozenset(rule.of for at, rule in enumerate(self._rules) if broken >> at & 1)


def _members(pattern: str, every: str) -> Any:
    """By code point of `every`: whether the pattern of one character matches it."""
    import numpy as np

    members = np.zeros(_UNITS, np.bool_)
    # Run by run: letters are fifty thousand.
    for run in re.finditer(f"(?:{pattern})+", every):
        members[run.start() : run.end()] = True
    return members

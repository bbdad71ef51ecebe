"""Facts of one subject (a server, a launch, a log), each with its source; unknown is an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

TRUE_WORDS = ("1", "true", "yes", "y", "on")
FALSE_WORDS = ("0", "false", "no", "n", "off", "none", "null", "")
_NUMBERS = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:\.?post(\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing known: a server argument by its name, `env.NAME`, or what a person stated."""

    name: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A subject's facts. `complete`: every server argument is known, so an absent one is default.

    `has_changes` are pull requests that a person says the build contains.
    """

    subject: str
    known: Mapping[str, Fact] = field(default_factory=dict)
    complete: bool = False
    has_changes: frozenset[int] = frozenset()

    def get(self, name: str) -> Fact | None:
        return self.known.get(name)

    def value(self, name: str) -> Any:
        fact = self.known.get(name)
        return None if fact is None else fact.value


def gather_facts(
    subject: str,
    groups: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    complete: bool,
    has_changes: frozenset[int] = frozenset(),
) -> Facts:
    """Facts from (source, values) groups; a later group overrides an earlier one.

    A value that is a `Fact` already keeps its own source.
    """
    known = {
        name: value if isinstance(value, Fact) else Fact(name=name, value=value, source=source)
        for source, values in groups
        for name, value in values.items()
        if value is not None
    }
    return Facts(subject=subject, known=known, complete=complete, has_changes=has_changes)


def truth(value: Any) -> bool | None:
    """A value as a switch; None where it is no switch."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return bool(value)
    text = str(value).strip().lower()
    if text in TRUE_WORDS:
        return True
    return False if text in FALSE_WORDS else None


def version_key(text: str) -> tuple[int, int, int, int] | None:
    """A version's numbers in order of precedence; None where there is none."""
    match = _NUMBERS.match(text.strip())
    if match is None:
        return None
    return int(match[1]), int(match[2]), int(match[3] or 0), int(match[4] or 0)

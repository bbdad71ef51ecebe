"""What a comparison of two arms ends in: a verdict, the bounds behind it, and the looks taken."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Not differing is not being equal: `equivalent` needs its own evidence, and lack of either is
    `undecided`."""

    DIFFER = "differ"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A difference of rates (or of differences), -1 to 1 (-2 to 2), with its interval."""

    estimate: float | None
    low: float
    high: float
    method: str
    level: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two arms against each other: `difference` is the rate of `a` less the rate of `b`.

    `p_value_adjusted` is Holm's over all comparisons of the experiment. `e_value` is the greatest
    that the sequential test reached, None where the sessions were looked at once. `unit` is what
    was taken as independent: `session`, or `launch` where launches vary. `reason` says in words why
    the verdict is what it is; `sessions_needed` is per arm, and only there when undecided.
    """

    a: str
    b: str
    verdict: Verdict
    difference: Contrast
    p_value: float
    p_value_adjusted: float
    e_value: float | None
    test: str
    unit: str
    looks: int
    reason: str
    sessions_needed: int | None = None

"""Which records on disk can be counted: those with every member that a run writes, in its type.

A directory may have been cut short, copied badly or edited; a line that nobody's run wrote is left
out and counted, whatever it holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsv4doctor.codec import ShapeError, from_builtins

# Beyond it, sums and sorting keys are no longer what anybody meant (2**53: exact as a float).
_LARGEST = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """What `Tally` reads of a record, as `record.record_of` writes it."""

    session: int
    turn: int
    kind: str
    aborted: bool
    failure: _Failure | None
    primary: str | None
    also: tuple[str, ...]
    corrupted: bool
    evidence: tuple[dict[str, Any], ...]
    stream: bool
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    sent_unix: float
    ttft_ms: float | None
    itl_ms: tuple[float, ...]
    e2e_latency_ms: float
    prompt_bytes: int | None = None


def is_countable(record: Mapping[str, Any]) -> bool:
    """True of a record as a run of ours writes it: judged, failed or aborted."""
    try:
        found = from_builtins(_Counted, record)
    except ShapeError:
        return False
    numbers = (
        found.session, found.turn, found.prompt_tokens, found.completion_tokens,
        found.cached_tokens, found.sent_unix, found.ttft_ms, found.e2e_latency_ms,
        found.prompt_bytes,
    )  # fmt: skip
    is_sane = all(
        number is None or (math.isfinite(number) and abs(number) <= _LARGEST) for number in numbers
    )
    is_judged = found.aborted or found.failure is not None or found.primary is not None
    return is_sane and is_judged

"""Two tensor-parallel ranks: each has a scheduler of its own, and both must want the same batch.

A forward is full of collectives, so a batch runs only when both ranks bring the same requests. Each
rank counts the pages that it may give away: those that are free or evictable, less those of the
batch before for as long as it has not seen that batch's results. Results come over the rank's own
link. A rank that waits for them, or builds its batches only afterwards (no overlap schedule), knows
what the other one knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Virtual ms for one request's results over each rank's link; the second rank shares its switch.
# A batch of 13 is through after 0.065 and 0.13 ms, the next one is built after 0.1.
RESULT_MS = (0.005, 0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one request of a batch takes from the pages to give away: `taken` are allocated,
    `locked` were cached and may no longer be evicted."""

    taken: int
    locked: int

    @property
    def pages(self) -> int:
        return self.taken + self.locked


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """How many requests each rank brings: two collectives that nobody else will ever enter."""

    requests: tuple[int, ...]


class TensorRanks:
    """The ranks' views of one engine's pages, batch after batch."""

    def __init__(self, *, overlap: bool, await_results: bool, schedule_ms: float) -> None:
        self._sees_at_once = await_results or not overlap
        self._schedule_ms = schedule_ms
        self._requests_before = 0
        self._pages_before = 0

    def rest(self) -> None:
        """Nothing runs: every rank has seen all results."""
        self._requests_before = self._pages_before = 0

    def ran(self, requests: int, pages: int) -> None:
        """A batch has run that held so many pages; its results are on their way to the ranks."""
        self._requests_before, self._pages_before = requests, pages

    def disagree(self, available: int, demands: Sequence[Demand]) -> Disagreement | None:
        """What the ranks bring to the next collective, if it is not the same.

        `available` are the pages that really may be given away, `demands` the requests that they
        suffice for, in order.
        """
        brought = tuple(
            _admitted(available - self._held(link_ms), demands) for link_ms in RESULT_MS
        )
        return None if len(set(brought)) == 1 else Disagreement(requests=brought)

    def _held(self, link_ms: float) -> int:
        """Pages that a rank takes for still in use when it builds the next batch."""
        is_seen = self._sees_at_once or self._requests_before * link_ms <= self._schedule_ms
        return 0 if is_seen else self._pages_before


def _admitted(available: int, demands: Sequence[Demand]) -> int:
    for count, demand in enumerate(demands):
        available -= demand.pages
        if available < 0:
            return count
    return len(demands)

"""The detector's own test: bytes flipped on purpose at known hops, and whether each was caught.

A flip proves something only where its page was known, so one that met an unknown page is tried
again with the next. A flip that was seen, could be compared and was taken for right is a failure of
the detector, and no verdict of it can be trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dsv4doctor.probe_protocol import HOPS, READ
from dsv4doctor.tracing.ledger import Outcome
from dsv4doctor.tracing.trace import Flip

# Flips at one hop of one rank that met pages of which nothing was known; a server that has been up
# for days has many of those.
MOST_TRIES = 40


@dataclass(slots=True, kw_only=True)
class HopTest:
    """One hop of one rank. `flip` is the last that was seen; None: none has come yet."""

    rank: str
    hop: str
    tries: int = 0
    is_waiting: bool = False
    flip: Flip | None = None

    @property
    def outcome(self) -> str:
        """`caught`, `missed`, `not compared` or `not reached`."""
        if self.flip is None:
            return "not reached"
        if self.flip.outcome is Outcome.UNKNOWN:
            return "not compared"
        return "caught" if self.flip.caught else "missed"

    @property
    def is_over(self) -> bool:
        return self.outcome in ("caught", "missed") or self.tries >= MOST_TRIES


class SelfTest:
    """All tests of one observation; `hops` are those of each rank at which bytes can be flipped."""

    def __init__(self, hops: Mapping[str, Sequence[str]], *, seed: int) -> None:
        self._seed = seed
        self.tests = [HopTest(rank=rank, hop=hop) for rank, names in hops.items() for hop in names]

    def due(self, rank: str) -> list[tuple[str, int]]:
        """The flips to ask this rank for now, as (hop, seed); they count as asked for."""
        asked = []
        for number, test in enumerate(self.tests):
            if test.rank == rank and not test.is_waiting and not test.is_over:
                test.is_waiting = True
                test.tries += 1
                asked.append((test.hop, self._seed + 1000 * number + test.tries))
        return asked

    def is_waiting(self, rank: str) -> bool:
        """Whether a flip was asked of this rank and not seen yet."""
        return any(test.rank == rank and test.is_waiting for test in self.tests)

    def settle(self, flips: Iterable[Flip]) -> None:
        """Flips that were seen, all so far or only the new ones."""
        for flip in flips:
            for test in self.tests:
                is_new = test.flip is None or flip.seq > test.flip.seq
                if (test.rank, test.hop) == (flip.rank, flip.hop) and is_new:
                    test.flip = flip
                    test.is_waiting = False

    @property
    def passed(self) -> bool:
        """At least one was caught and none was missed."""
        outcomes = {test.outcome for test in self.tests}
        return "caught" in outcomes and "missed" not in outcomes

    @property
    def failed(self) -> bool:
        """A flipped byte went by unnoticed."""
        return any(test.outcome == "missed" for test in self.tests)

    @property
    def hops(self) -> tuple[str, ...]:
        """The hops at which a flip was caught, in the order of a page's way."""
        caught = {test.hop for test in self.tests if test.outcome == "caught"}
        return tuple(hop for hop in HOPS if hop in caught)

    @property
    def hop(self) -> str | None:
        """The one hop to name: the read, where it was tested and caught."""
        return READ if READ in self.hops else next(iter(self.hops), None)

"""All ranks' observations joined: which pages changed, at which hop first, and who read them so.

Observations are taken in as they are drained, rank by rank in their own order. A decode rank's
arrivals wait for what the prefill ranks say they sent; how ranks' drains are interleaved therefore
changes nothing but the memory that it takes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from dsv4doctor.probe_protocol import ARRIVE, LOAD, READ, SEND, Forgotten, Observation, Perturbation
from dsv4doctor.tracing.change import Change
from dsv4doctor.tracing.ledger import Copies, Ledger, Outcome, passage

# Changes that are kept with all their details; the rest are only counted.
MOST_CHANGES = 100_000
# Observations of a decode rank that wait for its prefill rank; then it is told without.
_MOST_WAITING = 500_000
# Pages between a prefill and a decode rank at one time.
_MOST_SENT = 1 << 18

Seen = Observation | Forgotten


@dataclass(slots=True)
class Flip:
    """One byte flipped for the self-test, and what was seen of it."""

    rank: str
    hop: str
    seq: int
    layer: int
    page: int | None
    host_page: int | None
    outcome: Outcome | None = None

    @property
    def caught(self) -> bool:
        """Its observation was held against right bytes and found wrong."""
        return self.outcome is Outcome.WRONG


@dataclass(slots=True)
class Reads:
    """Reads with a load behind them of one size: how many, and how many saw other bytes."""

    reads: int = 0
    stale: int = 0


@dataclass(slots=True)
class _Queue:
    waiting: deque[tuple[Seen, bool]] = field(default_factory=deque)


class Trace:
    """What all ranks together have shown so far. `awaits_sends`: a prefill rank is among them."""

    def __init__(self, *, awaits_sends: bool = False) -> None:
        self._awaits_sends = awaits_sends
        self.changes: list[Change] = []
        self.by_hop: Counter[str] = Counter()
        self.consequences = 0
        self.stale_reads = 0
        self.unordered_right = 0
        self.least_margin_ms: float | None = None
        self.flips: list[Flip] = []
        self.forgotten: Counter[str] = Counter()
        # Observations of one layer each, those of `unseen` pages and gaps left out.
        self.observations = 0
        self.stale_requests: Counter[str] = Counter()
        self.read_requests: set[str] = set()
        self.by_load_pages: dict[int, Reads] = {}
        self._pages: set[tuple[str, str, int]] = set()
        self._loaded: Counter[tuple[str, str, int]] = Counter()
        self._sent = Copies(_MOST_SENT)
        self._ledgers: dict[str, Ledger] = {}
        self._queues: dict[str, _Queue] = {}

    @property
    def pages_seen(self) -> int:
        """Different device pages of all ranks that were observed at least once."""
        return len(self._pages)

    @property
    def compared(self) -> Counter[str]:
        """Observations by hop that were held against what was known."""
        return sum((ledger.compared for ledger in self._ledgers.values()), Counter())

    @property
    def unknown(self) -> Counter[str]:
        """Observations by hop of pages of which nothing was known yet."""
        return sum((ledger.unknown for ledger in self._ledgers.values()), Counter())

    def compared_at(self, rank: str, hop: str) -> int:
        """Observations of one rank and hop that could be compared."""
        ledger = self._ledgers.get(rank)
        return ledger.compared[hop] if ledger else 0

    def add(
        self, rank: str, seen: Sequence[Seen], perturbed: Collection[Perturbation] = ()
    ) -> None:
        """What one rank told in one drain, in order; `perturbed` are its flips so far."""
        flipped = {(flip.seq, flip.layer) for flip in perturbed}
        queue = self._queue(rank)
        for each in sorted(seen, key=lambda one: one.seq):
            is_flipped = isinstance(each, Observation) and (each.seq, each.layer) in flipped
            queue.waiting.append((each, is_flipped))
        self._advance(rank, wait=True)
        if any(isinstance(each, Observation) and each.hop == SEND for each in seen):
            for other in self._queues:
                self._advance(other, wait=True)

    def lose(self, rank: str, records: int) -> None:
        """A rank's records were lost before they could be drained: nothing is known any more."""
        gap = Forgotten(seq=0, time_ms=0, pool=None, page=None, reason="lost", missed=records)
        self._queue(rank).waiting.append((gap, False))
        self._advance(rank, wait=True)

    def finish(self) -> None:
        """No rank has anything more to tell."""
        for rank in self._queues:
            self._advance(rank, wait=False)

    def _queue(self, rank: str) -> _Queue:
        if rank not in self._queues:
            self._queues[rank] = _Queue()
            self._ledgers[rank] = Ledger(rank, self._sent)
        return self._queues[rank]

    def _advance(self, rank: str, *, wait: bool) -> None:
        waiting = self._queues[rank].waiting
        while waiting:
            seen, is_flipped = waiting[0]
            if wait and self._must_wait(seen) and len(waiting) < _MOST_WAITING:
                return
            waiting.popleft()
            if isinstance(seen, Forgotten):
                self.forgotten[seen.reason or "unknown"] += max(seen.missed, 1)
                self._ledgers[rank].forget(seen)
            else:
                self._take(rank, seen, is_flipped=is_flipped)

    def _must_wait(self, seen: Seen) -> bool:
        """An arrival whose send may still come."""
        if not isinstance(seen, Observation) or seen.hop != ARRIVE or seen.room is None:
            return False
        return self._awaits_sends and self._sent.get(passage(seen)) is None

    def _take(self, rank: str, seen: Observation, *, is_flipped: bool) -> None:
        self.observations += 1
        if seen.page is not None:
            self._pages.add((rank, seen.pool, seen.page))
        if seen.transfer is not None and seen.hop == LOAD:
            self._loaded[rank, seen.pool, seen.transfer] += 1
        outcome, change = self._ledgers[rank].add(seen, is_perturbed=is_flipped)
        if is_flipped:
            self.flips.append(
                Flip(
                    rank=rank,
                    hop=seen.hop,
                    seq=seen.seq,
                    layer=seen.layer,
                    page=seen.page,
                    host_page=seen.host_page,
                    outcome=outcome,
                )
            )
            return
        if seen.hop == READ:
            self._take_read(rank, seen, outcome)
        if change is not None:
            self._keep(change)

    def _take_read(self, rank: str, seen: Observation, outcome: Outcome) -> None:
        is_stale = outcome is Outcome.WRONG
        self.stale_reads += is_stale
        if seen.request is not None:
            self.read_requests.add(seen.request)
            self.stale_requests[seen.request] += is_stale
        if seen.transfer is not None:
            size = self._loaded[rank, seen.pool, seen.transfer]
            reads = self.by_load_pages.setdefault(size, Reads())
            reads.reads += 1
            reads.stale += is_stale
        if seen.ordered is False and outcome is Outcome.RIGHT:
            self.unordered_right += 1
            margin = seen.distance_ms
            if margin is not None:
                least = self.least_margin_ms
                self.least_margin_ms = margin if least is None else min(least, margin)

    def _keep(self, change: Change) -> None:
        if change.origin is None:
            self.by_hop[change.hop] += 1
        else:
            self.consequences += 1
        if len(self.changes) < MOST_CHANGES:
            self.changes.append(change)

    @property
    def first_change(self) -> Change | None:
        """The earliest of all first changes, by the hosts' clocks."""
        firsts = [change for change in self.changes if change.origin is None]
        return min(firsts, key=lambda change: (change.seen.time_ms, change.seen.seq), default=None)

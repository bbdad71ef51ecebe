"""What a rank's probe has launched, left out and given up: its queue, its numbers and its words."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe.launches import Launch, Note

MOST_FAILURES = 50
MOST_WORDS = 500  # letters of what is said of one failure


class Accounts:
    """The part of an observer that needs no device; what is launched stands in `queue`."""

    def __init__(self) -> None:
        self.armed = False
        self.sessions = 0  # armed how often: launches of an earlier time are dropped
        self.queue: deque[Launch | Note] = deque()
        self.lock = threading.Lock()
        self.counts: dict[str, int] = {}
        self.skipped: dict[str, int] = {}
        self.failures: list[str] = []
        self.observes: dict[str, str] = dict.fromkeys(protocol.HOPS, protocol.YES)
        self._next_number = 1
        self._transfers = itertools.count(1)
        self._is_blank = False  # nothing was observed since a gap

    def _take_numbers(self, count: int) -> int:
        with self.lock:  # host pages are given out by other threads too
            first, self._next_number = self._next_number, self._next_number + count
        return first

    def next_transfer(self) -> int:
        return next(self._transfers)

    def skip(self, pages: int, reason: str) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + pages

    def note_gap(self, reason: str, missed: int) -> None:
        """Whatever was known of this rank's device pages is void from here on. Said once, until
        something is known again."""
        if self._is_blank:
            return
        self._is_blank = True
        self._tell(reason, missed=missed)

    def note_reuse(self, pool: str, host_pages: Sequence[int]) -> None:
        """These host pages are about to be written by whoever was given them."""
        self._tell(protocol.REUSED, pool=pool, host_pages=tuple(host_pages))

    def _tell(self, reason: str, **fields: Any) -> None:
        seq = self._take_numbers(1)
        self.queue.append(Note(seq=seq, session=self.sessions, reason=reason, **fields))

    def give_up(self, hops: Sequence[str], why: str) -> None:
        """These hops are not observed (any more). Where that leaves changes of bytes unseen, what
        would take them for wrong ones is given up too."""
        kind = why.partition(":")[0]
        lost = [(hop, why[:MOST_WORDS]) for hop in hops]
        for hop, said in lost:
            if self.observes[hop] != protocol.YES:
                continue
            self.observes[hop] = said
            blind = f"{kind}: bytes may rightly change where {hop} is not observed"
            lost += [(one, blind) for one, needed in protocol.NEEDED_BY.items() if hop in needed]

    def fail(self, what: str, hops: Sequence[str], problem: str) -> None:
        """A hook failed: its hops are not observed any more, and that is said."""
        said = f"{what}: {problem}"[:MOST_WORDS]
        if len(self.failures) < MOST_FAILURES:
            self.failures.append(said)
        self.give_up(hops, f"{protocol.DISABLED}: {said}")
        if self.armed:
            self.skip(1, "failure")
            self.note_gap(f"a hook failed: {said}", 1)

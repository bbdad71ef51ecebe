"""One observation on its way: words in the ring, marks in streams, and who the pages belong to."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from dsv4doctor.probe.banks import Bank
from dsv4doctor.probe.devices import Mark
from dsv4doctor.probe.ring import Slot

_EPOCH_S = time.time() - time.monotonic()


def now_ms() -> float:
    """Wall clock in ms that never goes back while the process lives."""
    return (_EPOCH_S + time.monotonic()) * 1e3


@dataclass(frozen=True, slots=True)
class Owner:
    """A page's place in a request."""

    request: str | None = None
    room: int | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """`count` pages of `bank` to observe at `hop`. `forgets`: their bytes have rightly changed, so
    that what was known of them is void even where they are not digested."""

    hop: str
    bank: Bank
    count: int
    owners: Sequence[Owner] = ()
    transfer: int | None = None
    has_host_pages: bool = False
    forgets: bool = False


@dataclass(slots=True)
class Flip:
    """A byte flipped for the self-test: of `row` in the launch's table, in one layer."""

    row: int
    layer: int
    offset: int


@dataclass(slots=True)
class Launch:
    """Pages observed together. Ring words: [device pages n][host pages n][digests layers·n].

    `layers` are places in the bank; `at_layer` maps those already digested to what was known of
    them at launch.
    """

    hop: str
    bank: Bank
    layers: tuple[int, ...]
    count: int
    seq: int
    slot: Slot
    step: int | None
    session: int  # which arming it belongs to
    owners: Sequence[Owner] = ()
    transfer: int | None = None
    has_pages: bool = True
    has_host_pages: bool = False
    reason: str = ""
    time_ms: float = field(default_factory=now_ms)
    digested: dict[int, LayerState] = field(default_factory=dict)
    spans: list[tuple[Mark, Mark]] = field(default_factory=list)
    flip: Flip | None = None
    done: Mark | None = None
    is_abandoned: bool = False

    @property
    def table_words(self) -> int:
        return self.count * 2

    def digests_at(self, layer: int) -> int:
        """Where the digests of bank place `layer` begin in the slot."""
        return self.table_words + self.layers.index(layer) * self.count


@dataclass(slots=True)
class LayerState:
    """What was known of one layer when it was digested. For a read: `unordered` are the loads in
    flight that it is not ordered behind, `waited` those it waits for."""

    mark: Mark | None = None
    waited: frozenset[int] = frozenset()
    unordered: frozenset[int] = frozenset()


@dataclass(slots=True)
class LoadRound:
    """One HiCache load of a bank: when each layer's copy ended, and how to ask whether it has."""

    transfer: int
    producer: int | None
    ends: dict[int, Mark] = field(default_factory=dict)


@dataclass(slots=True)
class Note:
    """A gap, or host pages of a pool that are written anew, in its place among the launches."""

    seq: int
    session: int
    reason: str
    missed: int = 0
    pool: str | None = None
    host_pages: tuple[int, ...] = ()
    time_ms: float = field(default_factory=now_ms)

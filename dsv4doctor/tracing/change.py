"""One observation whose bytes are not those that its page should have, and where that began."""

from __future__ import annotations

from dataclasses import dataclass

from dsv4doctor.probe_protocol import (
    ARRIVE,
    BACKUP,
    HELD,
    HOST,
    HOST_LOAD,
    LOAD,
    READ,
    SEND,
    STORE,
    Observation,
)

# Where the bytes changed, for people: between which two steps.
HOP_WORDS = {
    STORE: "before the page was stored",
    BACKUP: "on the device, between the store and HiCache's backup",
    HOST: "in the copy from the device to the host",
    HOST_LOAD: "on the host, between the backup and the load",
    LOAD: "in the copy from the host back to the device",
    READ: "between the load and the indexer's read",
    HELD: "on the device, between two decode steps",
    SEND: "on the prefill side, as the page was handed to the transfer",
    ARRIVE: "on the way from the prefill to the decode side",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`seen` has other bytes than `expected`. `origin` is the first change of the same bytes on
    their way, None where this is it."""

    rank: str
    seen: Observation
    expected: str
    origin: Change | None = None

    @property
    def first(self) -> Change:
        return self.origin or self

    @property
    def hop(self) -> str:
        """The first hop at which these bytes were wrong."""
        return self.first.seen.hop


@dataclass(frozen=True, slots=True)
class Known:
    """What a page should hold, and the change behind the wrong bytes that lie there, if any."""

    right: str
    wrong: Change | None = None

    def origin_of(self, digest: str) -> Change | None:
        """The change that already brought exactly these wrong bytes."""
        if self.wrong is not None and self.wrong.seen.digest == digest:
            return self.wrong.first
        return None

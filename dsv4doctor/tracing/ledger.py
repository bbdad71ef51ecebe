"""What is known of one rank's pages, observation by observation in the order of their launch.

A page's right bytes come from its store, and travel with every copy: a load makes a device page
right by what was backed up, whatever the load really brought. So one wrong copy is one change with
its consequences, never a new truth, and a page that is healed by the next copy is right again. What
was not observed is not known, and nothing is compared with it.

The rules are those of `docs/probe.md`, "Joining".
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

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
    Forgotten,
    Observation,
)
from dsv4doctor.tracing.change import Change, Known

# Copies under way that are remembered: a backup whose host side is never seen must not pile up.
_MOST_COPIES = 1 << 16


class Outcome(Enum):
    """What an observation could be held against."""

    RIGHT = "right"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    SET = "set"  # it says itself what is right


class Copies:
    """Right bytes on their way between two observations, by a key; the oldest are forgotten."""

    def __init__(self, most: int = _MOST_COPIES) -> None:
        self._most = most
        self._known: OrderedDict[tuple[object, ...], Known] = OrderedDict()

    def put(self, key: tuple[object, ...], known: Known) -> None:
        self._known[key] = known
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def take(self, key: tuple[object, ...]) -> Known | None:
        return self._known.pop(key, None)

    def get(self, key: tuple[object, ...]) -> Known | None:
        return self._known.get(key)

    def clear(self) -> None:
        self._known.clear()


@dataclass(slots=True)
class Ledger:
    """One rank. `sent` is shared by all: what prefill ranks handed over under a room."""

    rank: str
    sent: Copies
    compared: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    _device: dict[tuple[str, int], dict[int, Known]] = field(default_factory=dict)
    _host: dict[tuple[str, int], dict[int, Known]] = field(default_factory=dict)
    _backups: Copies = field(default_factory=Copies)
    _loads: Copies = field(default_factory=Copies)
    # What a request read wrong: a send of the same bytes is its consequence.
    _misread: Copies = field(default_factory=Copies)

    def add(
        self, seen: Observation, *, is_perturbed: bool = False
    ) -> tuple[Outcome, Change | None]:
        """Take in one observation, and say what it shows.

        A perturbed one is judged like any other, but says nothing of what lies in the page.
        """
        rules: dict[str, Callable[[Observation], Known | None]] = {
            STORE: self._no_expectation,
            BACKUP: self._on_device,
            HOST: self._backed_up,
            HOST_LOAD: self._on_host,
            LOAD: self._loaded_from,
            READ: self._on_device,
            HELD: self._on_device,
            SEND: self._on_device,
            ARRIVE: self._sent_to,
        }
        expected = rules[seen.hop](seen)
        change = None
        if seen.hop == STORE:
            outcome = Outcome.SET
        elif expected is None:
            outcome = Outcome.UNKNOWN
            self.unknown[seen.hop] += 1
        else:
            self.compared[seen.hop] += 1
            change = self._compare(expected, seen)
            outcome = Outcome.RIGHT if change is None else Outcome.WRONG
        self._pass_on(seen, expected, None if is_perturbed else change, is_perturbed=is_perturbed)
        return outcome, change

    def forget(self, what: Forgotten | None = None) -> None:
        """A page, or (None, or without one) everything is known no longer."""
        if what is not None and what.host_page is not None:
            self._host.pop((what.pool or "", what.host_page), None)
            return
        if what is None or what.page is None:
            for known in (self._device, self._host):
                known.clear()
            for copies in (self._backups, self._loads, self._misread):
                copies.clear()
            return
        for key in [key for key in self._device if key[1] == what.page]:
            if what.pool in (None, key[0]):
                del self._device[key]

    # What an observation is compared with.

    def _no_expectation(self, _: Observation) -> Known | None:
        return None

    def _on_device(self, seen: Observation) -> Known | None:
        if seen.page is None:
            return None
        return self._device.get((seen.pool, seen.page), {}).get(seen.layer)

    def _backed_up(self, seen: Observation) -> Known | None:
        return self._backups.take((seen.transfer, seen.pool, seen.layer, seen.host_page))

    def _on_host(self, seen: Observation) -> Known | None:
        if seen.host_page is None:
            return None
        return self._host.get((seen.pool, seen.host_page), {}).get(seen.layer)

    def _loaded_from(self, seen: Observation) -> Known | None:
        return self._loads.take((seen.transfer, seen.pool, seen.layer, seen.host_page))

    def _sent_to(self, seen: Observation) -> Known | None:
        # Kept: every tensor-parallel rank of the decode side has the page from there.
        return self.sent.get(passage(seen))

    def _compare(self, expected: Known, seen: Observation) -> Change | None:
        if seen.digest == expected.right:
            return None
        origin = expected.origin_of(seen.digest)
        if seen.hop == READ and seen.ordered is False:
            # It ran ahead of a load: whoever else saw the page before that is no cause of it.
            origin = None
        if seen.hop == SEND:
            misread = self._misread.take(_reader(seen))
            if misread is not None:
                origin = misread.origin_of(seen.digest) or origin
        return Change(rank=self.rank, seen=seen, expected=expected.right, origin=origin)

    # What is known afterwards.

    def _pass_on(
        self,
        seen: Observation,
        expected: Known | None,
        change: Change | None,
        *,
        is_perturbed: bool,
    ) -> None:
        if expected is None:
            # A flipped byte must not become the truth.
            now = None if is_perturbed else Known(seen.digest)
        else:
            now = replace(expected, wrong=change)
        copy = (seen.transfer, seen.pool, seen.layer, seen.host_page)
        if seen.hop in (STORE, LOAD, ARRIVE):
            self._set(self._device, seen, seen.page, now)
        elif seen.hop == BACKUP:
            self._set(self._host, seen, seen.host_page, None)
            self._put(self._backups, copy, now)
        elif seen.hop == HOST:
            self._set(self._host, seen, seen.host_page, now)
        elif seen.hop == HOST_LOAD:
            self._put(self._loads, copy, now)
        elif seen.hop == SEND:
            self._put(self.sent, passage(seen), now)
        elif seen.hop == READ and change is not None and now is not None:
            self._put(self._misread, _reader(seen), now)
        if seen.hop == HELD and expected is not None and now is not None:
            self._set(self._device, seen, seen.page, now)

    def _put(self, copies: Copies, key: tuple[object, ...], known: Known | None) -> None:
        if known is None:
            copies.take(key)
        else:
            copies.put(key, known)

    def _set(
        self,
        pages: dict[tuple[str, int], dict[int, Known]],
        seen: Observation,
        page: int | None,
        known: Known | None,
    ) -> None:
        if page is None:
            return
        layers = pages.setdefault((seen.pool, page), {})
        if known is None:
            layers.pop(seen.layer, None)
        else:
            layers[seen.layer] = known


def passage(seen: Observation) -> tuple[object, ...]:
    """By what a send and its arrival know each other."""
    return (seen.room, seen.index, seen.pool, seen.layer)


def _reader(seen: Observation) -> tuple[object, ...]:
    return (seen.request, seen.index, seen.pool, seen.layer)

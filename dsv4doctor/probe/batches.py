"""Which pages a batch of SGLang's fills, reads and holds: from `ScheduleBatch` to page places.

Everything here is read on the host, without waiting for the device. A page is (row of
`req_to_token`, index in the request); its id stands in `req_to_token[row, index·page_tokens]`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

from dsv4doctor.probe.launches import Owner

MOST_REMEMBERED = 8192  # requests whose filled pages are counted


class Place(NamedTuple):
    """One page of a request."""

    row: int
    owner: Owner


class Work(NamedTuple):
    """One request of a batch: tokens before this forward and after it."""

    request: Any
    row: int
    before: int
    after: int
    restored: int  # tokens of its prefix that a load of this build brings


def row_of(request: Any) -> int | None:
    """The request's row of `req_to_token`; 0.5.23 keeps it with the rest of its cache."""
    row = getattr(request, "req_pool_idx", None)
    if row is None:
        row = getattr(getattr(request, "kv", None), "req_pool_idx", None)
    return None if row is None else int(row)


def owner_of(request: Any, index: int) -> Owner:
    room = getattr(request, "bootstrap_room", None)
    return Owner(str(request.rid), None if room is None else int(room), index)


def works_of(batch: Any) -> list[Work]:
    """What the batch does; nothing for idle and prebuilt ones."""
    mode = batch.forward_mode
    if mode.is_idle() or (hasattr(mode, "is_prebuilt") and mode.is_prebuilt()):
        return []
    if mode.is_extend() and batch.extend_lens is not None:
        return list(_extended(batch))
    return list(_decoded(batch))


def _extended(batch: Any) -> Iterator[Work]:
    lengths = zip(batch.reqs, batch.prefix_lens, batch.extend_lens, strict=False)
    for request, before, count in lengths:
        row = row_of(request)
        if row is not None:
            restored = int(getattr(request, "host_hit_length", 0) or 0)
            yield Work(request, row, int(before), int(before) + int(count), restored)


def _decoded(batch: Any) -> Iterator[Work]:
    lengths = batch.seq_lens_cpu
    known = None if lengths is None else lengths.tolist()
    for place, request in enumerate(batch.reqs):
        row = row_of(request)
        if row is None:
            continue
        if known is not None and place < len(known):
            after = int(known[place])
        else:  # speculation under overlap: what is certainly written
            after = len(request.origin_input_ids) + len(request.output_ids) - 1
        yield Work(request, row, after - 1, after, 0)


class Filled:
    """How many pages of each request are full."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, int] = OrderedDict()

    def newly(self, work: Work, page_tokens: int, *, is_extend: bool) -> range:
        """Indices of the pages that this forward fills."""
        name, full = str(work.request.rid), max(0, work.after) // page_tokens
        first = max(0, work.before) // page_tokens
        if not is_extend:
            first = min(first, self._pages.get(name, first))
        self._pages[name] = full
        self._pages.move_to_end(name)
        while len(self._pages) > MOST_REMEMBERED:
            self._pages.popitem(last=False)
        return range(first, full)


def places(work: Work, indices: range) -> list[Place]:
    return [Place(work.row, owner_of(work.request, index)) for index in indices]


def prefix_places(works: list[Work], page_tokens: int, most: int, turn: int) -> list[Place]:
    """At most `most` full pages before each request's new tokens: restored ones first, the others
    in turns."""
    restored: list[Place] = []
    others: list[Place] = []
    for work in works:
        full = work.before // page_tokens
        since = max(0, work.before - work.restored) // page_tokens
        restored += places(work, range(since, full))
        others += places(work, range(since))
    room = most - len(restored)
    if room <= 0 or not others:
        return restored[:most]
    start = (turn * room) % len(others)
    return restored + (others[start:] + others[:start])[:room]


def held_places(works: list[Work], page_tokens: int, most: int, turn: int) -> list[Place]:
    """At most `most` full pages of running requests, in turns."""
    total = sum(max(0, work.before) // page_tokens for work in works)
    if not total or most <= 0:
        return []
    wanted = sorted({(turn * most + step) % total for step in range(min(most, total))})
    found, first = [], 0
    for work in works:
        full = max(0, work.before) // page_tokens
        found += [
            Place(work.row, owner_of(work.request, number - first))
            for number in wanted
            if first <= number < first + full
        ]
        first += full
    return found

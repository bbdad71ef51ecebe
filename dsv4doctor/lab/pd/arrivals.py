"""A handed-over batch at the decode engine: who has a seat, and when each page comes in."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from dsv4doctor.lab.groundtruth import INDEX_POOL, MAIN_POOL, StaleRead
from dsv4doctor.lab.layouts import Bytes
from dsv4doctor.lab.pd.transfer import page_times
from dsv4doctor.lab.pd.wire import Handover
from dsv4doctor.lab.requests import EngineRequest


@dataclass(slots=True, kw_only=True)
class Seat:
    """A request that has pages here; `request` is None where its client is gone already."""

    handover: Handover
    request: EngineRequest | None
    row: list[int]
    digests: Sequence[bytes]
    arrived_ms: float = 0.0
    stored_ms: float = 0.0
    index_k: list[Bytes] = field(default_factory=list)
    latents: Bytes | None = None
    stale: list[StaleRead] = field(default_factory=list)


@dataclass(frozen=True, slots=True, order=True)
class Landing:
    """One page comes in. Ordered by time, then by the order in which it was sent."""

    at_ms: float
    order: int
    seat: int
    chunk: int
    pool: str
    layer: int
    page: int


def landings_of(seats: Sequence[Seat], now_ms: float, bytes_per_ms: float) -> list[Landing]:
    """Every page of the batch as it comes in over workers of that bandwidth, as a heap; seats are
    told when their last page arrives.

    The times are the prefill engine's, put off where the decode engine had no pages to write to
    before `now_ms`.
    """
    starts = [chunk.start_ms for seat in seats for chunk in seat.handover.chunks]
    delay_ms = max(0.0, now_ms - min(starts))
    heap: list[Landing] = []
    for number, seat in enumerate(seats):
        for place, chunk in enumerate(seat.handover.chunks):
            shapes = {MAIN_POOL: chunk.main.shape, INDEX_POOL: chunk.index_k.shape}
            start_ms = chunk.start_ms + delay_ms
            for at_ms, pool, layer, page in page_times(start_ms, chunk.first, shapes, bytes_per_ms):
                heap.append(Landing(at_ms, len(heap), number, place, pool, layer, page))
                seat.arrived_ms = max(seat.arrived_ms, at_ms)
    heapq.heapify(heap)
    return heap

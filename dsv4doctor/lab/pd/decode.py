"""The decode engine: pages come in, index-K is stored, and replies are generated from what is read.

Main pages are written where they belong as they come. Index-K goes through a staging buffer: a
store stream of its own moves it into its page, one after another. A request's first step reads both
once (what is read stays with the reply, as in `lab.prefill`); every time is virtual and begins
with the moments at which the prefill engine's transfer workers were through with a page.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from dsv4doctor.lab.assembly import check
from dsv4doctor.lab.clock import CopyStream
from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.content import chain_digests
from dsv4doctor.lab.faults import standing
from dsv4doctor.lab.groundtruth import INDEX_POOL, MAIN_POOL, GroundTruth, StaleRead
from dsv4doctor.lab.latents import MAIN_PAGE_BYTES
from dsv4doctor.lab.layouts import INDEX_FORMATS, INTERLEAVED_FORMATS, PAGE_TOKENS, Bytes
from dsv4doctor.lab.model import Gathered, generate
from dsv4doctor.lab.observing import DecodeObserver
from dsv4doctor.lab.pd.arrivals import Landing, Seat, landings_of
from dsv4doctor.lab.pd.physics import physics_of
from dsv4doctor.lab.pd.wire import Chunk, Handover
from dsv4doctor.lab.pools import PageOwner, PagePool
from dsv4doctor.lab.reader import read
from dsv4doctor.lab.rendering import render
from dsv4doctor.lab.requests import EngineRequest, Generation


class DecodeEngine:
    """Serves what a prefill engine hands over; not thread-safe: one caller at a time."""

    def __init__(self, config: EngineConfig, ground_truth: Path | None = None) -> None:
        check(config)
        self.config = config
        self.ground_truth = GroundTruth(ground_truth)
        self._faults = standing(config.faults, config.fixes)
        form = INDEX_FORMATS[config.index_k]
        interleaved = any(fault.decode_reads_interleaved for fault in self._faults)
        self.read_format = (INTERLEAVED_FORMATS if interleaved else INDEX_FORMATS)[config.index_k]
        self._pool = PagePool(
            config.device_pages + 1, config.layers, form.page_bytes, MAIN_PAGE_BYTES
        )
        self._physics = physics_of(config)
        self._store = CopyStream(self._physics.store_bytes_per_ms)
        self._waits = all(fault.decode_read_waits_for_store for fault in self._faults)
        self._now_ms = 0.0
        self._generated = 0
        self._served = 0
        self.observer: DecodeObserver | None = None

    @property
    def pool(self) -> PagePool:
        """The device's pages."""
        return self._pool

    @property
    def max_prompt_tokens(self) -> int:
        """The longest prompt that fits the device pool."""
        return self._pool.capacity * PAGE_TOKENS

    @property
    def parser_leaks_negative_numbers(self) -> bool:
        return any(fault.parser_leaks_negative_numbers for fault in self._faults)

    def prompt_tokens(self, request: EngineRequest) -> int:
        return len(render(request.messages, request.tools).tokens)

    def serve_transferred(
        self, batch: Sequence[Handover], requests: Mapping[int, EngineRequest]
    ) -> list[Generation]:
        """Serve a batch that a prefill engine handed over; `requests` are those waited for here.

        Requests take pages in the batch's order, which no clock and no client decides.
        """
        waiting = deque(batch)
        generations: list[Generation] = []
        while waiting:
            seats: list[Seat] = []
            while waiting and waiting[0].pages <= self._pool.free_pages:
                seats.append(self._seat(waiting.popleft(), requests))
            if not seats:
                raise RuntimeError(f"a request of {waiting[0].pages} pages fits no pool")
            generations += self._serve(seats)
        self.ground_truth.flush()
        return generations

    def _seat(self, handover: Handover, requests: Mapping[int, EngineRequest]) -> Seat:
        request = requests.get(handover.room)
        tokens = render(request.messages, request.tools).tokens if request else None
        return Seat(
            handover=handover,
            request=request,
            row=[self._pool.allocate() for _ in range(handover.pages)],
            digests=chain_digests(tokens) if tokens is not None else (),
        )

    def _serve(self, seats: list[Seat]) -> list[Generation]:
        landings = landings_of(seats, self._now_ms, self._physics.link_bytes_per_ms)
        self._read_all(seats, landings)
        generations = []
        for seat in seats:
            if seat.request is not None:
                generations.append(self._reply(seat, seat.request))
        while landings:
            self._land(seats, heapq.heappop(landings))
        self._store.advance(float("inf"))
        for seat in seats:
            for page in seat.row:
                self._pool.release(page)
        steps = max((len(generation.pieces) for generation in generations), default=0)
        self._now_ms += steps * self.config.decode_step_ms
        return generations

    def _land(self, seats: list[Seat], landing: Landing) -> None:
        seat = seats[landing.seat]
        chunk = seat.handover.chunks[landing.chunk]
        owner = self._owner(seat, chunk, landing)
        page = seat.row[landing.page]
        if landing.pool == MAIN_POOL:
            data = chunk.main[landing.layer, landing.page - chunk.first]
            self._pool.main[landing.layer][page] = data
            self._pool.main_owner[landing.layer][page] = owner
            return
        data = chunk.index_k[landing.layer, landing.page - chunk.first]
        store = partial(self._write_index, landing.layer, page, data, owner)
        self._store.copy(len(data), store, landing.at_ms)
        stored = self._store.record(landing.at_ms)
        assert stored.at_ms is not None, "the store's worker does not die"
        seat.stored_ms = stored.at_ms

    def _owner(self, seat: Seat, chunk: Chunk, landing: Landing) -> PageOwner | None:
        place = (landing.pool, landing.layer, landing.page)
        if place in chunk.owners or not seat.digests:
            return chunk.owners.get(place)
        return PageOwner(
            digest=seat.digests[landing.page],
            logical_page=landing.page,
            rid=seat.handover.rid,
        )

    def _write_index(self, layer: int, page: int, data: Bytes, owner: PageOwner | None) -> None:
        self._pool.index_k[layer][page] = data
        self._pool.index_owner[layer][page] = owner

    def _read_all(self, seats: list[Seat], landings: list[Landing]) -> None:
        """Every request's first step: each layer read once, in the order of time."""
        reads = [
            (seat.arrived_ms + self._physics.poll_ms, number, 0)
            for number, seat in enumerate(seats)
        ]
        heapq.heapify(reads)
        while reads:
            at_ms, number, layer = heapq.heappop(reads)
            while landings and landings[0].at_ms <= at_ms:
                self._land(seats, heapq.heappop(landings))
            stored_ms = seats[number].stored_ms
            if self._waits and stored_ms > at_ms:
                heapq.heappush(reads, (stored_ms, number, layer))
                continue
            self._store.advance(at_ms)
            if self.observer is not None:
                seat = seats[number]
                self.observer.before_read(seat.handover, seat.row, layer)
            self._read_layer(seats[number], layer)
            self._now_ms = max(self._now_ms, at_ms)
            if layer + 1 < self.config.layers:
                heapq.heappush(reads, (at_ms + self.config.layer_ms, number, layer + 1))

    def _read_layer(self, seat: Seat, layer: int) -> None:
        data = self._pool.index_k[layer][seat.row]
        seat.index_k.append(data)
        self._note_stale(seat, INDEX_POOL, layer, self._pool.index_owner[layer], data)
        if layer == self.config.layers - 1:
            # All layers' latents say the same; the reply copies from the last layer's.
            seat.latents = self._pool.main[layer][seat.row]
            self._note_stale(seat, MAIN_POOL, layer, self._pool.main_owner[layer], seat.latents)

    def _note_stale(
        self, seat: Seat, pool: str, layer: int, owners: list[PageOwner | None], data: Bytes
    ) -> None:
        for logical, expected in enumerate(seat.digests):
            owner = owners[seat.row[logical]]
            if owner is None or owner.digest != expected:
                seat.stale.append(
                    StaleRead(
                        rid=seat.handover.rid,
                        pool=pool,
                        layer=layer,
                        logical_page=logical,
                        physical_page=seat.row[logical],
                        expected=expected,
                        owner=owner,
                        data=data[logical],
                    )
                )

    def _reply(self, seat: Seat, request: EngineRequest) -> Generation:
        assert seat.latents is not None
        for stale in seat.stale:
            self.ground_truth.stale_read(stale, request)
        if self.read_format.name != self.config.index_k:
            self.ground_truth.misread(request, self.config.index_k, self.read_format.name)
        prompt = render(request.messages, request.tools)
        pieces, finish_reason = generate(
            prompt.tokens,
            read(request, prompt),
            Gathered(
                index_format=self.read_format.name,
                index_k=tuple(seat.index_k),
                latents=seat.latents,
            ),
            self.config.model_shape,
            request.max_tokens,
        )
        self._served += 1
        self._generated += len(pieces)
        generation = Generation(
            rid=request.rid,
            prompt_tokens=seat.handover.prompt_tokens,
            cached_tokens=seat.handover.cached_tokens,
            pieces=pieces,
            finish_reason=finish_reason,
        )
        self.ground_truth.served(request, generation)
        return generation

    def on_abort(self, rid: str) -> None:
        """A client hung up: its pages are given up with its batch."""

    def flush_cache(self) -> bool:
        """Nothing is cached here."""
        return True

    def gauges(self) -> dict[str, float]:
        """The pool in tokens. Between batches it is empty: nothing is cached here."""
        used = self._pool.capacity - self._pool.free_pages
        return {
            "token_usage": used / self._pool.capacity,
            "full_token_usage": used / self._pool.capacity,
            "num_used_tokens": used * PAGE_TOKENS,
            "kv_used_tokens": used * PAGE_TOKENS,
            "kv_available_tokens": self._pool.free_pages * PAGE_TOKENS,
            "kv_evictable_tokens": 0,
            "max_total_num_tokens": self._pool.capacity * PAGE_TOKENS,
            "page_size": PAGE_TOKENS,
            "num_pages": self._pool.capacity,
        }

    def close(self) -> None:
        self.ground_truth.close()

"""The prefill engine's transfer workers: they read device pages, in step with no other stream.

A request's pages go after its forward, bytes as its layers read them (what a layer-wise send
takes). The prefix that was on the device before the batch goes early, while the forward runs: its
pages are read from the pool when the worker comes to them, behind nothing but what is asked for
here. A page that another request of the batch has just begun to load counts as on the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from dsv4doctor.lab.groundtruth import INDEX_POOL, MAIN_POOL
from dsv4doctor.lab.layouts import Bytes
from dsv4doctor.lab.pd.physics import PdPhysics
from dsv4doctor.lab.pd.wire import Chunk, Handover
from dsv4doctor.lab.pools import PageOwner, PagePool
from dsv4doctor.lab.prefill import Job, Prefill
from dsv4doctor.lab.probe_state import LATENT
from dsv4doctor.lab.requests import EngineRequest
from dsv4doctor.lab.streams import Mark, Stream
from dsv4doctor.probe_protocol import INDEX_K

# What the probe calls the pools.
_PROBED_AS = {INDEX_POOL: INDEX_K, MAIN_POOL: LATENT}


@dataclass(slots=True)
class _Early:
    """A prefix on its way: filled page by page as the worker reads them."""

    start_ms: float
    main: Bytes
    index_k: Bytes
    owners: dict[tuple[str, int, int], PageOwner | None] = field(default_factory=dict)
    sent: Mark | None = None

    @property
    def pages(self) -> int:
        return int(self.main.shape[1])

    def chunk(self) -> Chunk:
        return Chunk(
            first=0,
            start_ms=self.start_ms,
            main=self.main,
            index_k=self.index_k,
            owners=self.owners,
        )


def page_times(
    start_ms: float, first: int, shapes: dict[str, tuple[int, int, int]], bytes_per_ms: float
) -> Iterator[tuple[float, str, int, int]]:
    """When a worker that began at `start_ms` is through with each (pool, layer, logical page).

    `shapes` are [layers, pages, bytes] of each pool, in the order in which pools are sent.
    """
    at_ms = start_ms
    for pool, (layers, pages, size) in shapes.items():
        for layer in range(layers):
            for page in range(pages):
                at_ms += size / bytes_per_ms
                yield at_ms, pool, layer, first + page


class TransferWorkers:
    """All workers of one prefill engine, in its virtual time (`lab.prefill.Sender`)."""

    def __init__(self, prefill: Prefill, device: PagePool, physics: PdPhysics) -> None:
        self._prefill = prefill
        self._device = device
        self._physics = physics
        timeline = prefill.clock
        self._workers = [timeline.stream(f"transfer {n}") for n in range(physics.workers)]
        self._early: dict[int, _Early] = {}

    def begin(self, jobs: Sequence[Job]) -> None:
        """Send early what is on the device, request by request."""
        has_loads = any(job.loads for job in jobs)
        for job in jobs:
            pages = len(job.path) - len(job.loads)
            worker = self._next_worker()
            if pages and self._prefill.streams.send_early(worker, has_loads=has_loads):
                self._early[id(job)] = self._begin_one(worker, job, pages)

    def _begin_one(self, worker: Stream, job: Job, pages: int) -> _Early:
        main, index_k = self._device.main, self._device.index_k
        early = _Early(
            start_ms=self._free_at_ms(worker),
            main=np.empty((len(main), pages, main[0].shape[1]), dtype=np.uint8),
            index_k=np.empty((len(index_k), pages, index_k[0].shape[1]), dtype=np.uint8),
        )
        shapes = {MAIN_POOL: early.main.shape, INDEX_POOL: early.index_k.shape}
        for pool, (layers, _, size) in shapes.items():
            for layer in range(layers):
                for page in range(pages):
                    read = partial(self._read, job, early, pool, layer, page)
                    worker.run("send early", read, size / self._physics.link_bytes_per_ms)
                    if self._prefill.observer is not None:
                        name = _PROBED_AS[pool]
                        self._prefill.observer.sending(worker, name, job, page, layer)
        early.sent = worker.record()
        return early

    def _next_worker(self) -> Stream:
        """The one that is free first; of equals, the first."""
        return min(self._workers, key=self._free_at_ms)

    def _free_at_ms(self, worker: Stream) -> float:
        at_ms = worker.record().at_ms
        assert at_ms is not None, "transfer workers do not die"
        return max(at_ms, self._prefill.clock.now_ms)

    def _read(self, job: Job, early: _Early, pool: str, layer: int, page: int) -> None:
        physical = job.row[page]
        source, owners, target = (
            (self._device.index_k, self._device.index_owner, early.index_k)
            if pool == INDEX_POOL
            else (self._device.main, self._device.main_owner, early.main)
        )
        target[layer, page] = source[layer][physical]
        owner = owners[layer][physical]
        if owner is None or owner.digest != job.digests[page]:
            early.owners[pool, layer, page] = owner

    def take(self, batch: Sequence[tuple[EngineRequest, Job]]) -> list[Handover]:
        """Send the rest of a batch whose forward is done; the next one waits until all is sent."""
        handovers = [self._take_one(request, job) for request, job in batch]
        # A request's pages stay locked until its transfer is over.
        for worker in self._workers:
            self._prefill.clock.wait(worker.record())
        return handovers

    def _take_one(self, request: EngineRequest, job: Job) -> Handover:
        assert request.room is not None
        early = self._early.pop(id(job), None)
        chunks = [early.chunk()] if early else []
        rest = self._rest(job, early)
        return Handover(
            room=request.room.number,
            rid=request.rid,
            prompt_tokens=len(job.tokens),
            cached_tokens=job.cached_device_tokens + job.cached_host_tokens,
            chunks=(*chunks, rest),
        )

    def _rest(self, job: Job, early: _Early | None) -> Chunk:
        """The pages that were not sent early, as the forward read them."""
        assert job.latents is not None
        first = early.pages if early else 0
        pages = list(job.row[first:])
        below = [self._device.main[layer][pages] for layer in range(len(job.index_k) - 1)]
        main = np.stack([*below, job.latents[first:]])
        index_k = np.stack([layer[first:] for layer in job.index_k])
        worker = self._next_worker()
        if early is not None and early.sent is not None:
            worker.wait(early.sent)
        start_ms = self._free_at_ms(worker)
        size = main.nbytes + index_k.nbytes
        worker.run("send", duration_ms=size / self._physics.link_bytes_per_ms)
        if self._prefill.observer is not None:
            self._prefill.observer.sent(job, first, {INDEX_K: index_k, LATENT: main})
        return Chunk(
            first=first,
            start_ms=start_ms,
            main=main,
            index_k=index_k,
            owners={
                (stale.pool, stale.layer, stale.logical_page): stale.owner
                for stale in job.stale
                if stale.logical_page >= first
            },
        )

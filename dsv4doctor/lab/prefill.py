"""One prefill batch: match, allocate, queue the loads, and read every layer, each in its own time.

This is where a read can meet a page before its bytes do. Index-K pages travel on a load stream of
their own (a simplification: upstream copies all pools of a layer on one stream and records one
event behind them); both streams go layer by layer and start together. What is read is gathered
once a layer and stays with the request, as a send to a decode node would take it: the pool heals
when the copy lands, the request does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from dsv4doctor.lab.content import ContentStore, page_count
from dsv4doctor.lab.faults.fault import RowWrite
from dsv4doctor.lab.groundtruth import INDEX_POOL, MAIN_POOL, StaleRead
from dsv4doctor.lab.layouts import PAGE_TOKENS, TOKENS_PER_ENTRY, Bytes
from dsv4doctor.lab.model import Gathered
from dsv4doctor.lab.ordering import EngineStreams, Forward
from dsv4doctor.lab.pools import (
    PageContent,
    PageOwner,
    PagePool,
    copy_index_page,
    copy_main_page,
    write_slots,
)
from dsv4doctor.lab.probe_state import LATENT
from dsv4doctor.lab.radix import Node, RadixCache
from dsv4doctor.lab.releases import Orderings
from dsv4doctor.lab.streams import Mark, Timeline
from dsv4doctor.lab.tokens import TokenIds
from dsv4doctor.probe_protocol import INDEX_K

if TYPE_CHECKING:
    from dsv4doctor.lab.observing import EngineObserver

LOAD_STREAMS = ("h2d index", "h2d main")


@dataclass(slots=True, kw_only=True)
class Job:
    """One request on its way through a prefill."""

    rid: str
    room: int | None = None
    tokens: TokenIds
    digests: Sequence[bytes]
    path: list[Node] = field(default_factory=list)
    loads: list[tuple[int, int]] = field(default_factory=list)  # (host page, device page)
    fresh: list[int] = field(default_factory=list)
    reply_pages: int = 0  # what its reply may need beside
    contents: list[PageContent] = field(default_factory=list)
    row: tuple[int, ...] = ()
    index_k: list[Bytes] = field(default_factory=list)
    latents: Bytes | None = None
    stale: list[StaleRead] = field(default_factory=list)

    @property
    def cached_host_tokens(self) -> int:
        return len(self.loads) * PAGE_TOKENS

    @property
    def cached_device_tokens(self) -> int:
        return (len(self.path) - len(self.loads)) * PAGE_TOKENS

    def gathered(self, index_format: str) -> Gathered:
        """What the prefill has read, all layers done."""
        assert self.latents is not None
        return Gathered(
            index_format=index_format, index_k=tuple(self.index_k), latents=self.latents
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillPhysics:
    """What orders the reads, and how long things take."""

    slack_ms: float
    layer_ms: float
    copy_bytes_per_ms: float
    index_read_waits: bool
    page_row: Callable[[RowWrite], tuple[int, ...]]
    orderings: Orderings
    stores_replies: bool = False


class Sender(Protocol):
    """Reads device pages while a batch runs: the transfer workers of a prefill engine whose pages
    go to a decode engine."""

    def begin(self, jobs: Sequence[Job]) -> None:
        """The batch's loads are queued, its forward is about to be launched."""


class Prefill:
    """The device: pools, streams, prefix cache, and the batch that runs on them."""

    def __init__(
        self, device: PagePool, host: PagePool | None, store: ContentStore, physics: PrefillPhysics
    ) -> None:
        self.device = device
        self.host = host
        self.store = store
        self._physics = physics
        self.radix = RadixCache(device, host)
        self.clock = Timeline()
        self.streams = EngineStreams(self.clock, physics.orderings, LOAD_STREAMS)
        self.index_stream, self.main_stream = self.streams.loads
        self.sender: Sender | None = None
        self.observer: EngineObserver | None = None
        # Pages that running requests may still ask for.
        self._promised = 0

    @property
    def layers(self) -> int:
        return len(self.device.index_k)

    def admit(self, job: Job) -> bool:
        """Match, lock and allocate; False (and nothing changed) when the pool has no room."""
        # At least one token is always computed, so that there is something to sample from.
        path = self.radix.match(job.digests[: (len(job.tokens) - 1) // PAGE_TOKENS])
        self.radix.lock(path)
        to_load = [node for node in path if node.device_page is None]
        fresh = page_count(job.tokens) - len(path)
        pages = self.radix.allocate(len(to_load) + fresh)
        promised = self._promised + job.reply_pages
        if pages is not None and promised and self._spare_pages < promised:
            for page in reversed(pages):
                self.device.release(page)
            pages = None
        if pages is None:
            self.radix.unlock(path)
            return False
        self._promised = promised
        job.path, job.fresh = path, pages[len(to_load) :]
        for node, page in zip(to_load, pages, strict=False):
            # Published at once: a later match of the same batch takes it for an ordinary page.
            node.device_page = page
            assert node.host_page is not None
            job.loads.append((node.host_page, page))
        wanted = range(len(path), len(path) + fresh)
        job.contents = self.store.pages(job.tokens, wanted, job.digests, job.rid)
        return True

    @property
    def _spare_pages(self) -> int:
        return self.device.free_pages + self.radix.evictable_pages

    def give_up_room(self, job: Job) -> None:
        """The job needs no more pages than it has."""
        self._promised -= job.reply_pages

    def _write_rows(self, jobs: Sequence[Job]) -> None:
        previous: tuple[int, ...] = ()
        for job in jobs:
            cached = [node.device_page for node in job.path if node.device_page is not None]
            row = RowWrite(pages=(*cached, *job.fresh), restored=len(cached), previous_row=previous)
            job.row = self._physics.page_row(row)
            previous = job.row

    def _queue_loads(self, jobs: Sequence[Job]) -> tuple[list[Mark], list[Mark]] | None:
        """Queue every copy of the batch; the events of each layer, or None without any load."""
        loads = [load for job in jobs for load in job.loads]
        if not loads or self.host is None:
            return None
        if self.observer is not None:
            self.observer.begin_transfer()
        self.streams.start_loading()
        index_events, main_events = [], []
        for layer in range(self.layers):
            index_ms = self.device.index_k[layer].shape[1] / self._physics.copy_bytes_per_ms
            main_ms = self.device.main[layer].shape[1] / self._physics.copy_bytes_per_ms
            for host, page in loads:
                where = (self.host, host, self.device, page, layer)
                if self.observer is not None:
                    self.observer.before_load((host, page), layer)
                self.index_stream.run("load", partial(copy_index_page, *where), index_ms)
                self.main_stream.run("load", partial(copy_main_page, *where), main_ms)
                if self.observer is not None:
                    self.observer.after_load((host, page), layer)
            index_events.append(self.index_stream.record())
            main_events.append(self.main_stream.record())
        return index_events, main_events

    def run(self, jobs: Sequence[Job]) -> None:
        """Prefill all admitted jobs together.

        Raises:
            TransferThreadDead: when a load is waited for that never lands.
        """
        self._write_rows(jobs)
        if self.observer is not None:
            self.observer.begin_step()
        self.streams.begin_step()
        events = self._queue_loads(jobs)
        if self.sender is not None:
            self.sender.begin(jobs)
        with self.streams.forward_pass(Forward.PREFILL) as forward:
            forward.run("prepare", duration_ms=self._physics.slack_ms)
            for layer in range(self.layers):
                self._launch_layer(jobs, layer, events)
            if self.observer is not None:
                self.observer.after_prefill(forward, jobs)
            done = forward.record()
        self.clock.wait(done)
        if self.observer is not None:
            self.observer.end_step()
        if events:
            # Nodes stay locked until both streams are through.
            self.clock.wait(events[0][-1])

    def _launch_layer(
        self, jobs: Sequence[Job], layer: int, events: tuple[list[Mark], list[Mark]] | None
    ) -> None:
        """One layer's share of a forward: store the fresh pages, read both pools, compute."""
        forward = self.streams.forward
        forward.run("store", partial(self._store_fresh, jobs, layer))
        if events and self._physics.index_read_waits:
            self.streams.layer_gate(events[0][layer])
        if self.observer is not None:
            is_gated = self._physics.index_read_waits
            self.observer.before_read(forward, INDEX_K, jobs, layer, is_gated=is_gated)
        forward.run("read index", partial(self._read_index, jobs, layer))
        if events:
            self.streams.layer_gate(events[1][layer])
        # All layers' latents say the same; the reply copies from the last layer's.
        if layer == self.layers - 1:
            if self.observer is not None:
                self.observer.before_read(forward, LATENT, jobs, layer, is_gated=True)
            forward.run("read main", partial(self._read_main, jobs, layer))
        forward.run("compute", duration_ms=self._physics.layer_ms)

    def _store_fresh(self, jobs: Sequence[Job], layer: int) -> None:
        for job in jobs:
            for page, content in zip(job.fresh, job.contents, strict=True):
                rest = len(job.tokens) - content.owner.logical_page * PAGE_TOKENS
                if self._physics.stores_replies and rest < PAGE_TOKENS:
                    write = self.store.slot_write(page, content, 0, rest // TOKENS_PER_ENTRY)
                    write_slots(self.device, layer, write)
                else:
                    self.device.write(page, layer, content)

    def _read_index(self, jobs: Sequence[Job], layer: int) -> None:
        for job in jobs:
            data = self.device.index_k[layer][list(job.row)]
            job.index_k.append(data)
            self._note_stale(job, INDEX_POOL, layer, self.device.index_owner[layer], data)

    def _read_main(self, jobs: Sequence[Job], layer: int) -> None:
        for job in jobs:
            job.latents = self.device.main[layer][list(job.row)]
            self._note_stale(job, MAIN_POOL, layer, self.device.main_owner[layer], job.latents)

    def _note_stale(
        self, job: Job, pool: str, layer: int, owners: list[PageOwner | None], data: Bytes
    ) -> None:
        for logical, page in enumerate(job.row):
            owner = owners[page]
            if owner is None or owner.digest != job.digests[logical]:
                job.stale.append(
                    StaleRead(
                        rid=job.rid,
                        pool=pool,
                        layer=layer,
                        logical_page=logical,
                        physical_page=page,
                        expected=job.digests[logical],
                        owner=owner,
                        data=data[logical],
                    )
                )

    def finish(self, job: Job) -> None:
        """Give the job's full pages to the prefix cache, back them up, free the partial one."""
        full = len(job.tokens) // PAGE_TOKENS
        matched = len(job.path)
        digests = job.digests[matched:full]
        self.radix.insert(job.path, digests, job.fresh[: len(digests)])
        for page in job.fresh[len(digests) :]:
            self.device.release(page)
        self.radix.unlock(job.path)
        for digest, content in zip(digests, job.contents, strict=False):
            node = self.radix.get(digest)
            host = self.radix.back_up(node) if node is not None else None
            if host is not None and self.host is not None:
                for layer in range(self.layers):
                    self.host.write(host, layer, content)
                    if self.observer is not None and node is not None:
                        self.observer.backed_up((host, node.device_page), layer)

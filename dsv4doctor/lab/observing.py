"""What the lab's probe sees of an engine: digests launched on the streams that order the bytes.

A hook numbers its observation when the engine gives out the work, and queues an operation without
duration behind it, which takes the digest when the stream comes to it: as a digest kernel would be
launched. Nothing of it changes any order. Only pages whose last slot is filled are observed: of a
read those of the cached prefix, since the others are stored by the same forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dsv4doctor.lab.layouts import PAGE_TOKENS, Bytes
from dsv4doctor.lab.pools import PagePool
from dsv4doctor.lab.probe_ring import Entry
from dsv4doctor.lab.probe_state import LATENT, LabProbe
from dsv4doctor.lab.streams import Operation, Stream
from dsv4doctor.probe_protocol import (
    ARRIVE,
    BACKUP,
    COMPLETE,
    HOST,
    HOST_LOAD,
    INDEX_K,
    LOAD,
    MISSED,
    READ,
    SEND,
    STORE,
    WAITED,
)

if TYPE_CHECKING:
    from dsv4doctor.lab.pd.wire import Handover
    from dsv4doctor.lab.prefill import Job, Prefill

HELD_WHY_NOT = "the lab reads what a request needs once, in its prefill"
PREFILL_HOPS = frozenset({STORE, READ})
HICACHE_HOPS = frozenset({BACKUP, HOST, HOST_LOAD, LOAD})
SEND_HOPS = frozenset({SEND})
DECODE_HOPS = frozenset({ARRIVE, READ})
_ON_HOST = frozenset({HOST, HOST_LOAD})


def _layers_of(pages: PagePool, pool: str) -> list[Bytes]:
    """All layers' pages of one of the two pools."""
    return pages.index_k if pool == INDEX_K else pages.main


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The copy that last brought a page's layer."""

    transfer: int
    copied: Operation


class EngineObserver:
    """The hooks of one engine with streams (`lab.prefill`, `lab.backups`, `lab.replies`)."""

    def __init__(self, probe: LabProbe, prefill: Prefill) -> None:
        self._probe = probe
        self._clock = prefill.clock
        self._device = prefill.device
        self._host = prefill.host
        self._loads = {INDEX_K: prefill.index_stream, LATENT: prefill.main_stream}
        self._transfer = 0
        # By (pool, device page, layer).
        self._loaded: dict[tuple[str, int, int], _Loaded] = {}
        self._layers = range(prefill.layers)

    def begin_step(self) -> None:
        """A prefill batch is about to be launched."""
        self._probe.begin_step()

    def end_step(self) -> None:
        """Its forward is done."""
        self._probe.end_step()

    def begin_transfer(self) -> None:
        """A round of loads, or of backups, is about to be queued."""
        self._transfer += 1

    def before_load(self, copy: tuple[int, int], layer: int) -> None:
        """`copy` is (host page, device page); both load streams are about to be given theirs."""
        for pool in self._probe.pools:
            self._queue(self._loads[pool], HOST_LOAD, pool, copy, layer)

    def after_load(self, copy: tuple[int, int], layer: int) -> None:
        """They have been given them."""
        for pool in self._probe.pools:
            operation = self._queue(self._loads[pool], LOAD, pool, copy, layer)
            self._loaded[pool, copy[1], layer] = _Loaded(self._transfer, operation)

    def before_backup(self, stream: Stream, copy: tuple[int, int], layer: int) -> None:
        """`copy` is (host page, device page); the stream is about to be given its copies."""
        for pool in self._probe.pools:
            self._queue(stream, BACKUP, pool, copy, layer)

    def after_backup(self, stream: Stream, copy: tuple[int, int], layer: int) -> None:
        """It has been given them."""
        for pool in self._probe.pools:
            self._queue(stream, HOST, pool, copy, layer)

    def backed_up(self, copy: tuple[int, int | None], layer: int) -> None:
        """A backup that takes no time has just been made."""
        host, page = copy
        assert self._host is not None
        assert page is not None
        self._transfer += 1
        fields = {"page": page, "host_page": host, "transfer": self._transfer}
        for pool in self._probe.pools:
            for hop, pages, at in ((BACKUP, self._device, page), (HOST, self._host, host)):
                entry = self._probe.launch(hop, pool, (layer,), **fields)
                self._digest(entry, pages, pool, at, layer)

    def _queue(
        self, stream: Stream, hop: str, pool: str, copy: tuple[int, int], layer: int
    ) -> Operation:
        """Observe one end of a copy where the stream stands."""
        host, page = copy
        fields = {"page": page, "host_page": host, "transfer": self._transfer}
        entry = self._probe.launch(hop, pool, (layer,), **fields)
        if hop in _ON_HOST:
            assert self._host is not None
            digest = partial(self._digest, entry, self._host, pool, host, layer)
        else:
            digest = partial(self._digest, entry, self._device, pool, page, layer)
        return stream.run("digest", digest)

    def _digest(
        self, entry: Entry | None, pages: PagePool, pool: str, page: int, layer: int
    ) -> None:
        if entry is not None:
            self._probe.digest(entry, layer, _layers_of(pages, pool)[layer][page])

    def before_read(
        self, stream: Stream, pool: str, jobs: Sequence[Job], layer: int, *, is_gated: bool
    ) -> None:
        """A layer's pages are about to be read; `is_gated`: behind the layer's loads."""
        if pool not in self._probe.pools:
            return
        now = stream.run("read").at_ms
        for job in jobs:
            for index in range(len(job.path)):
                page = job.row[index]
                ordering = self._ordering(self._loaded.get((pool, page, layer)), now, is_gated)
                fields = {"request": job.rid, "index": index, "page": page, **ordering}
                entry = self._probe.launch(READ, pool, (layer,), **fields)
                stream.run("digest", partial(self._digest, entry, self._device, pool, page, layer))

    def _ordering(
        self, loaded: _Loaded | None, read_ms: float | None, is_gated: bool
    ) -> dict[str, Any]:
        """How a read stands to the load that brought its page; nothing where none did."""
        if loaded is None:
            return {}
        ended_ms = loaded.copied.at_ms
        is_complete = ended_ms is not None and ended_ms <= self._clock.now_ms
        gate = WAITED if is_gated else COMPLETE if is_complete else MISSED
        distance_ms = None if ended_ms is None or read_ms is None else read_ms - ended_ms
        return {
            "transfer": loaded.transfer,
            "ordered": [gate != MISSED],
            "gate": [gate],
            "distance_ms": [distance_ms],
        }

    def after_prefill(self, stream: Stream, jobs: Sequence[Job]) -> None:
        """The forward has been given out: the fresh pages that it fills are whole behind it."""
        for job in jobs:
            first = len(job.path)
            for index in range(first, len(job.tokens) // PAGE_TOKENS):
                self.filled(stream, job.rid, index, job.fresh[index - first])

    def filled(self, stream: Stream, rid: str, index: int, page: int) -> None:
        """A forward that fills the page's last slot has been given out."""
        for pool in self._probe.pools:
            fields = {"request": rid, "index": index, "page": page}
            entry = self._probe.launch(STORE, pool, self._layers, **fields)
            for layer in self._layers:
                self._loaded.pop((pool, page, layer), None)
                stream.run("digest", partial(self._digest, entry, self._device, pool, page, layer))

    def sending(self, worker: Stream, pool: str, job: Job, index: int, layer: int) -> None:
        """A transfer worker has been given a page to read from the pool."""
        page = job.row[index]
        fields = {"request": job.rid, "room": job.room, "index": index, "page": page}
        entry = self._probe.launch(SEND, pool, (layer,), **fields)
        worker.run("digest", partial(self._digest, entry, self._device, pool, page, layer))

    def sent(self, job: Job, first: int, sent: dict[str, Bytes]) -> None:
        """A worker takes the pages from `first` on; `sent` is [layers, pages, bytes] by pool."""
        for pool in self._probe.pools:
            for index in range(first, len(job.tokens) // PAGE_TOKENS):
                fields = {"request": job.rid, "room": job.room, "index": index}
                page = job.row[index]
                entry = self._probe.launch(SEND, pool, self._layers, **fields, page=page)
                for layer in self._layers:
                    self._probe.digest(entry, layer, sent[pool][layer, index - first])


class DecodeObserver:
    """The hook of a decode engine (`lab.pd.decode`)."""

    def __init__(self, probe: LabProbe, pages: PagePool) -> None:
        self._probe = probe
        self._pages = pages
        self._layers = range(len(pages.index_k))

    def before_read(self, handover: Handover, row: Sequence[int], layer: int) -> None:
        """A layer of a request's first step is about to be read; the first one begins the step:
        by then the engine takes the transfer, and the store behind it, as ended."""
        is_last = layer == self._layers[-1]
        for pool in self._probe.pools:
            if layer == 0:
                self._probe.begin_step()
                self._observe(ARRIVE, pool, handover, row, self._layers)
            # Of the latents, the last layer's are read (`lab.pd.decode`).
            if pool == INDEX_K or is_last:
                self._observe(READ, pool, handover, row, (layer,))
        if is_last:
            self._probe.end_step()

    def _observe(
        self, hop: str, pool: str, handover: Handover, row: Sequence[int], layers: Sequence[int]
    ) -> None:
        for index in range(handover.prompt_tokens // PAGE_TOKENS):
            page = row[index]
            fields = {"request": handover.rid, "room": handover.room, "index": index}
            entry = self._probe.launch(hop, pool, layers, **fields, page=page)
            for layer in layers:
                self._probe.digest(entry, layer, _layers_of(self._pages, pool)[layer][page])

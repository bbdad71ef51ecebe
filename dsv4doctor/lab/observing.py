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
from typing import TYPE_CHECKING

from dsv4doctor.lab.layouts import PAGE_TOKENS
from dsv4doctor.lab.pools import PagePool
from dsv4doctor.lab.probe_ring import Entry
from dsv4doctor.lab.probe_state import LabProbe
from dsv4doctor.lab.streams import Operation, Stream, Timeline
from dsv4doctor.probe_protocol import (
    ARRIVE,
    BACKUP,
    COMPLETE,
    HOST,
    HOST_LOAD,
    LOAD,
    MISSED,
    READ,
    SEND,
    STORE,
    WAITED,
)

if TYPE_CHECKING:
    from dsv4doctor.lab.pd.wire import Handover
    from dsv4doctor.lab.prefill import Job

HELD_WHY_NOT = "the lab reads what a request needs once, in its prefill"
PREFILL_HOPS = frozenset({STORE, READ})
HICACHE_HOPS = frozenset({BACKUP, HOST, HOST_LOAD, LOAD})
SEND_HOPS = frozenset({SEND})
DECODE_HOPS = frozenset({ARRIVE, READ})


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The copy that last brought a page's layer."""

    transfer: int
    copied: Operation


class EngineObserver:
    """The hooks of one engine with streams (`lab.prefill`, `lab.backups`, `lab.replies`)."""

    def __init__(
        self, probe: LabProbe, clock: Timeline, device: PagePool, host: PagePool | None
    ) -> None:
        self._probe = probe
        self._clock = clock
        self._device = device
        self._host = host
        self._transfer = 0
        # By (device page, layer).
        self._loaded: dict[tuple[int, int], _Loaded] = {}
        self._layers = range(len(device.index_k))

    def begin_step(self) -> None:
        """A prefill batch is about to be launched."""
        self._probe.begin_step()

    def end_step(self) -> None:
        """Its forward is done."""
        self._probe.end_step()

    def begin_transfer(self) -> None:
        """A round of loads, or of backups, is about to be queued."""
        self._transfer += 1

    def before_load(self, stream: Stream, copy: tuple[int, int], layer: int) -> None:
        """`copy` is (host page, device page); the stream is about to be given its copy."""
        self._queue(stream, HOST_LOAD, copy, layer)

    def after_load(self, stream: Stream, copy: tuple[int, int], layer: int) -> None:
        """It has been given it."""
        operation = self._queue(stream, LOAD, copy, layer)
        self._loaded[copy[1], layer] = _Loaded(self._transfer, operation)

    def before_backup(self, stream: Stream, copy: tuple[int, int], layer: int) -> None:
        """`copy` is (host page, device page); the stream is about to be given its copy."""
        self._queue(stream, BACKUP, copy, layer)

    def after_backup(self, stream: Stream, copy: tuple[int, int], layer: int) -> None:
        """It has been given it."""
        self._queue(stream, HOST, copy, layer)

    def backed_up(self, copy: tuple[int, int | None], layer: int) -> None:
        """A backup that takes no time has just been made."""
        host, page = copy
        assert self._host is not None
        assert page is not None
        self._transfer += 1
        fields = {"page": page, "host_page": host, "transfer": self._transfer}
        self._digest(self._probe.launch(BACKUP, (layer,), **fields), self._device, page, layer)
        self._digest(self._probe.launch(HOST, (layer,), **fields), self._host, host, layer)

    def _queue(self, stream: Stream, hop: str, copy: tuple[int, int], layer: int) -> Operation:
        """Observe one end of a copy where the stream stands."""
        host, page = copy
        entry = self._probe.launch(
            hop, (layer,), page=page, host_page=host, transfer=self._transfer
        )
        if hop in (HOST, HOST_LOAD):
            assert self._host is not None
            return stream.run("digest", partial(self._digest, entry, self._host, host, layer))
        return stream.run("digest", partial(self._digest, entry, self._device, page, layer))

    def _digest(self, entry: Entry | None, pool: PagePool, page: int, layer: int) -> None:
        if entry is not None:
            self._probe.digest(entry, layer, pool.index_k[layer][page])

    def before_read(
        self, stream: Stream, jobs: Sequence[Job], layer: int, *, is_gated: bool
    ) -> None:
        """The indexer asks for a layer's pages; `is_gated`: behind the layer's loads."""
        if not self._probe.armed:
            return
        now = stream.run("read").at_ms
        for job in jobs:
            for index in range(len(job.path)):
                entry = self._launch_read(job, index, layer, now, is_gated=is_gated)
                digest = partial(self._digest, entry, self._device, job.row[index], layer)
                stream.run("digest", digest)

    def _launch_read(
        self, job: Job, index: int, layer: int, read_ms: float | None, *, is_gated: bool
    ) -> Entry | None:
        page = job.row[index]
        loaded = self._loaded.get((page, layer))
        fields = {"request": job.rid, "index": index, "page": page}
        if loaded is None:
            return self._probe.launch(READ, (layer,), **fields)
        ended_ms = loaded.copied.at_ms
        is_complete = ended_ms is not None and ended_ms <= self._clock.now_ms
        gate = WAITED if is_gated else COMPLETE if is_complete else MISSED
        distance_ms = None if ended_ms is None or read_ms is None else read_ms - ended_ms
        return self._probe.launch(
            READ,
            (layer,),
            **fields,
            transfer=loaded.transfer,
            ordered=[gate != MISSED],
            gate=[gate],
            distance_ms=[distance_ms],
        )

    def after_prefill(self, stream: Stream, jobs: Sequence[Job]) -> None:
        """The forward has been given out: the fresh pages that it fills are whole behind it."""
        for job in jobs:
            first = len(job.path)
            for index in range(first, len(job.tokens) // PAGE_TOKENS):
                self.filled(stream, job.rid, index, job.fresh[index - first])

    def filled(self, stream: Stream, rid: str, index: int, page: int) -> None:
        """A forward that fills the page's last slot has been given out."""
        for layer in self._layers:
            self._loaded.pop((page, layer), None)
        entry = self._probe.launch(STORE, self._layers, request=rid, index=index, page=page)
        for layer in self._layers:
            stream.run("digest", partial(self._digest, entry, self._device, page, layer))

    def sending(self, worker: Stream, job: Job, index: int, layer: int) -> None:
        """A transfer worker has been given a page to read from the pool."""
        page = job.row[index]
        fields = {"request": job.rid, "room": job.room, "index": index, "page": page}
        entry = self._probe.launch(SEND, (layer,), **fields)
        worker.run("digest", partial(self._digest, entry, self._device, page, layer))

    def sent_as_read(self, job: Job, first: int) -> None:
        """A worker takes the pages from `first` on with the bytes that the forward read."""
        for index in range(first, len(job.tokens) // PAGE_TOKENS):
            fields = {"request": job.rid, "room": job.room, "index": index}
            entry = self._probe.launch(SEND, self._layers, **fields, page=job.row[index])
            for layer in self._layers:
                self._probe.digest(entry, layer, job.index_k[layer][index])


class DecodeObserver:
    """The hook of a decode engine (`lab.pd.decode`)."""

    def __init__(self, probe: LabProbe) -> None:
        self._probe = probe

    def before_read(
        self, pool: PagePool, handover: Handover, row: Sequence[int], layer: int
    ) -> None:
        """A layer of a request's first step is about to be read; the first one begins the step:
        by then the engine takes the transfer, and the store behind it, as ended."""
        if not self._probe.armed:
            return
        layers = range(len(pool.index_k))
        if layer == 0:
            self._probe.begin_step()
            self._observe(ARRIVE, pool, handover, row, layers)
        self._observe(READ, pool, handover, row, (layer,))
        if layer == layers[-1]:
            self._probe.end_step()

    def _observe(
        self,
        hop: str,
        pool: PagePool,
        handover: Handover,
        row: Sequence[int],
        layers: Sequence[int],
    ) -> None:
        for index in range(handover.prompt_tokens // PAGE_TOKENS):
            page = row[index]
            fields = {"request": handover.rid, "room": handover.room, "index": index}
            entry = self._probe.launch(hop, layers, **fields, page=page)
            for layer in layers:
                if entry is not None:
                    self._probe.digest(entry, layer, pool.index_k[layer][page])

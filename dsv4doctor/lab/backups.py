"""Backups: cached pages copied to the host by the device-to-host stream, while nobody waits.

The copy takes the bytes that lie in the page when its turn comes. A node stays locked until the
copy is known to be done, so its page is not given away; what it does not protect from is a forward
that still writes the page.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from dsv4doctor.lab.ordering import EngineStreams
from dsv4doctor.lab.pools import PagePool, copy_index_page, copy_main_page
from dsv4doctor.lab.radix import Node, RadixCache
from dsv4doctor.lab.streams import Mark, Timeline

if TYPE_CHECKING:
    from dsv4doctor.lab.observing import EngineObserver


class Backups:
    """All backups of one engine; `bytes_per_ms` is the stream's bandwidth."""

    def __init__(
        self,
        streams: EngineStreams,
        clock: Timeline,
        radix: RadixCache,
        pools: tuple[PagePool, PagePool],
        bytes_per_ms: float,
    ) -> None:
        self._streams = streams
        self._clock = clock
        self._radix = radix
        self._device, self._host = pools
        self._bytes_per_ms = bytes_per_ms
        self._running: deque[tuple[Mark, list[Node]]] = deque()
        self.observer: EngineObserver | None = None

    def start(self, nodes: Sequence[Node]) -> None:
        """Queue a copy of every node that has none yet."""
        chosen = [node for node in nodes if self._radix.back_up(node) is not None]
        if not chosen:
            return
        self._radix.lock(chosen)
        if self.observer is not None:
            self.observer.begin_transfer()
        self._streams.start_writing()
        for layer in range(len(self._device.index_k)):
            for node in chosen:
                self._copy(node, layer)
        self._running.append((self._streams.backup.record(), chosen))

    def _copy(self, node: Node, layer: int) -> None:
        assert node.device_page is not None
        assert node.host_page is not None
        where = (self._device, node.device_page, self._host, node.host_page, layer)
        index_ms = self._device.index_k[layer].shape[1] / self._bytes_per_ms
        main_ms = self._device.main[layer].shape[1] / self._bytes_per_ms
        stream, copy = self._streams.backup, (node.host_page, node.device_page)
        if self.observer is not None:
            self.observer.before_backup(stream, copy, layer)
        stream.run("back up index", partial(copy_index_page, *where), index_ms)
        stream.run("back up main", partial(copy_main_page, *where), main_ms)
        if self.observer is not None:
            self.observer.after_backup(stream, copy, layer)

    def poll(self) -> None:
        """Unlock what is done by now."""
        while self._running and self._clock.has_reached(self._running[0][0]):
            self._radix.unlock(self._running.popleft()[1])

    def wait_for_one(self) -> bool:
        """Wait for the oldest; whether there was any."""
        if not self._running:
            return False
        self._clock.wait(self._running[0][0])
        self.poll()
        return True

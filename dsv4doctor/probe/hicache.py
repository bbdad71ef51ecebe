"""HiCache: a page before and after its copy to the host, and before and after its copy back."""

from __future__ import annotations

from typing import Any

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe.banks import Bank, bank_of, host_bank
from dsv4doctor.probe.hops import Hops, argument
from dsv4doctor.probe.launches import Launch, LoadRound, Wanted
from dsv4doctor.probe.observer import Observer


class HicacheHops(Hops):
    """Hooks on the host pools and on the controller."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self._transfer: int | None = None
        self._moved: set[str] = set()  # pools whose pages the present transfer has moved
        # pool -> what is observed of its load; None: nothing of this one
        self._loads: dict[str, tuple[Launch, LoadRound] | None] = {}
        self._mirrors: dict[int, tuple[Any, Bank]] = {}

    def enter_loading(self, controller: Any, *_: Any, **__: Any) -> int:
        """`start_loading`: what it copies belongs together. How many tokens are to come."""
        self._begin()
        return _queued(controller, "load_queue")

    def enter_writing(self, controller: Any, *_: Any, **__: Any) -> int:
        self._begin()
        return _queued(controller, "write_queue")

    def _begin(self) -> None:
        self._transfer = self.o.next_transfer()
        self._loads, self._moved = {}, set()

    def leave_loading(
        self, queued: Any, producer: Any, controller: Any, *_: Any, **__: Any
    ) -> None:
        for launch, one in filter(None, self._loads.values()):
            one.producer = producer if isinstance(producer, int) and producer >= 0 else None
            if launch.done is None:  # fewer layers than the bank has
                self.o.abandon(launch)
        self._loads, self._transfer = {}, None
        if queued and not _queued(controller, "load_queue"):
            self._require_moved("brought back")

    def leave_writing(self, queued: Any, _result: Any, controller: Any, *_: Any, **__: Any) -> None:
        self._transfer = None
        if queued and not _queued(controller, "write_queue"):
            self._require_moved("backed up")

    def _require_moved(self, done: str) -> None:
        """Pages were moved: where a pool's were not among them, or not by what is hooked, what
        lies in its pages is not known."""
        for name in self.o.watched:
            if name not in self._moved:
                self.o.note_gap(f"HiCache has {done} pages, and none of {name} was seen", 1)

    def leave_host_alloc(self, slots: Any, host_pool: Any, *_: Any, **__: Any) -> None:
        """Host slots were given to somebody, who may write them unseen: storage, a transfer."""
        if slots is None or not len(slots):
            return
        size = host_pool.page_size
        pages = (slots.reshape(-1, size)[:, 0] // size).tolist()
        for name in self.o.watched:
            self.o.note_reuse(name, pages)

    def _mirror(self, host_pool: Any) -> tuple[Bank, Bank] | None:
        """(device bank, host bank) of a host pool that is watched."""
        bank = bank_of(self.o.banks, host_pool)
        if bank is None or bank.pool not in self.o.watched:
            return None
        known = self._mirrors.get(id(host_pool))
        if known is None or known[0] is not host_pool:
            if bank.scales is not None:
                raise ValueError("payload and scales travel apart")
            self._mirrors[id(host_pool)] = known = (host_pool, host_bank(bank, host_pool))
        return bank, known[1]

    def _rows(self, host_pool: Any, indices: Any) -> Any:
        """Page ids of slot indices; None where there are none.

        Raises:
            ValueError: if they are no whole pages, as where tokens are moved one by one.
        """
        size = host_pool.slot_page_size
        if indices is None or indices.numel() == 0:
            return None
        if indices.numel() % size:
            raise ValueError(f"{indices.numel()} slots are moved, no whole pages of {size}")
        return indices.reshape(-1, size)[:, 0] // size

    def enter_backup(self, host_pool: Any, *arguments: Any, **keywords: Any) -> Any:
        """Before the copy to the host, on its stream: digest what it is about to read."""
        mirror = self._mirror(host_pool)
        if mirror is None:
            return None
        host_rows = self._rows(host_pool, argument(arguments, keywords, 1, "host_indices"))
        rows = self._rows(host_pool, argument(arguments, keywords, 2, "device_indices"))
        if host_rows is None or rows is None:
            return None
        bank, host = mirror
        self._moved.add(bank.pool)
        number = self._transfer or self.o.next_transfer()
        launch = self.o.open(_wanted(protocol.BACKUP, bank, rows, number))
        if launch is not None:
            self.o.put_pages(launch, rows, host_rows, host)
            self.o.digest(launch, launch.layers)
            self.o.seal(launch)
        return bank, host, number, rows, host_rows

    def leave_backup(self, token: Any, *_: Any, **__: Any) -> None:
        """After the copy was queued, on the same stream: digest what it wrote."""
        assert self.o.device is not None
        if token is None:
            return
        bank, host, number, rows, host_rows = token
        if not self.o.device.reads_host(host):
            self.o.skip(len(rows), "host memory is not pinned")
            return
        launch = self.o.open(_wanted(protocol.HOST, bank, rows, number))
        if launch is not None:
            self.o.put_pages(launch, rows, host_rows, host)
            self.o.digest(launch, launch.layers, bank=host)
            self.o.seal(launch)

    def enter_load(self, host_pool: Any, *arguments: Any, **keywords: Any) -> Any:
        """Before a layer's copy back: with the first layer, open what is observed of all."""
        mirror = self._mirror(host_pool)
        if mirror is None:
            return None
        bank, host = mirror
        layer = int(argument(arguments, keywords, 3, "layer_id"))
        if bank.pool not in self._loads:
            host_rows = self._rows(host_pool, argument(arguments, keywords, 1, "host_indices"))
            rows = self._rows(host_pool, argument(arguments, keywords, 2, "device_indices"))
            if host_rows is None or rows is None:
                return None
            self._open_load(bank, host, rows, host_rows)
        return bank, layer

    def _open_load(self, bank: Bank, host: Bank, rows: Any, host_rows: Any) -> None:
        assert self.o.device is not None
        self._moved.add(bank.pool)
        self._loads[bank.pool] = None
        number = self._transfer or self.o.next_transfer()
        if self.o.device.reads_host(host):
            before = self.o.open(_wanted(protocol.HOST_LOAD, bank, rows, number))
            if before is not None:
                self.o.put_pages(before, None, host_rows, host)
                self.o.digest(before, before.layers, bank=host)
                self.o.seal(before)
        launch = self.o.open(_wanted(protocol.LOAD, bank, rows, number))
        if launch is None:
            return
        self.o.put_pages(launch, rows, host_rows, host)
        one = LoadRound(transfer=number, producer=self._producer_of())
        self.o.rounds[bank.pool].append(one)
        if launch.hop == protocol.UNSEEN:
            self.o.seal(launch)
            return
        self._loads[bank.pool] = (launch, one)

    def _producer_of(self) -> int | None:
        counter = getattr(self.o.pool, "layer_transfer_counter", None)
        return getattr(counter, "producer_index", None)

    def leave_load(self, token: Any, *_: Any, **__: Any) -> None:
        """After a layer's copy back was queued: digest what it wrote; with the last, close."""
        if token is None or token[0].pool not in self._loads:
            return
        bank, layer = token
        found = self._loads[bank.pool]
        if found is not None:
            self._take_layer(*found, layer)
        if self._transfer is None and layer == len(bank.layers) - 1:
            del self._loads[bank.pool]  # a load of its own: the next one is another

    def _take_layer(self, launch: Launch, one: LoadRound, layer: int) -> None:
        assert self.o.device is not None
        if layer in launch.digested:
            raise ValueError(f"layer {layer} of one load is brought twice")
        one.ends[layer] = self.o.device.mark()
        self.o.digest(launch, [layer])
        if len(launch.digested) == len(launch.layers):
            self.o.seal(launch)


def _queued(controller: Any, name: str) -> int:
    """Tokens whose pages wait in one of the controller's queues; those of window layers, which no
    pool here has, do not count."""
    found = 0
    for operation in getattr(controller, name, None) or ():
        indices = getattr(operation, "device_indices", None)
        found += 0 if indices is None else len(indices)
    return found


def _wanted(hop: str, bank: Bank, rows: Any, transfer: int) -> Wanted:
    """Pages that HiCache copies; a load puts other bytes into the device page."""
    return Wanted(
        hop=hop,
        bank=bank,
        count=len(rows),
        transfer=transfer,
        has_host_pages=True,
        forgets=hop == protocol.LOAD,
    )

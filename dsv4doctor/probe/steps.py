"""The step: what a forward fills, what it reads, and what decoding holds between two of them."""

from __future__ import annotations

import time
from typing import Any

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe.banks import Bank
from dsv4doctor.probe.batches import Filled, held_places, places, prefix_places, works_of
from dsv4doctor.probe.hops import Hops
from dsv4doctor.probe.launches import Launch, LayerState, LoadRound, Wanted
from dsv4doctor.probe.observer import Observer

HELD_PAGES = 8  # pages of running requests looked at after a decode step


class StepHops(Hops):
    """Hooks on the scheduler's step, on the pool's getters and on the compressor."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self._filled = Filled()
        self._turn = 0
        self._reads: dict[str, Launch] = {}
        self._gates: list[bool] = []
        self._writing = 0
        self._step_began = 0.0

    def enter_step(self, scheduler: Any, batch: Any, *_: Any, **__: Any) -> Any:
        """Before `run_batch`: which pages the coming reads are to digest."""
        self.o.budget.next_step()
        self.o.step = int(getattr(scheduler, "forward_ct", 0)) + 1
        self._step_began = time.perf_counter()
        self._reads = {}
        if self.o.budget.left_ms <= 0:
            # Not even a look at the batch: what it fills is not known, so nothing is.
            self.o.skip(len(batch.reqs), "time")
            self.o.note_gap("the bound on time was reached", len(batch.reqs))
            return None
        works, is_extend = works_of(batch), bool(batch.forward_mode.is_extend())
        if works and is_extend and self.o.observes[protocol.READ] == protocol.YES:
            self._turn += 1
            for bank in self.banks():
                self._plan_reads(bank, works, batch.req_to_token_pool.req_to_token)
        return works, is_extend

    def _plan_reads(self, bank: Bank, works: list[Any], req_to_token: Any) -> None:
        each = len(bank.layers) * bank.layout.digested_bytes
        # Half of what is left: the pages that this step fills are to be digested too.
        most = self.o.budget.left_bytes // 2 // max(1, each)
        wanted = sum(max(0, work.before) // bank.page_tokens for work in works)
        found = prefix_places(works, bank.page_tokens, most, self._turn)
        if wanted > len(found):
            self.o.skip(wanted - len(found), "limit")
        if not found:
            return
        owners = [place.owner for place in found]
        launch = self.o.open(Wanted(hop=protocol.READ, bank=bank, count=len(found), owners=owners))
        if launch is not None:
            self.place_pages(launch, found, req_to_token)
            self._reads[bank.pool] = launch

    def leave_step(
        self, planned: Any, _result: Any, scheduler: Any, batch: Any, *_: Any, **__: Any
    ) -> None:
        """After `run_batch`: close the reads, digest what the forward has filled, and look at some
        of what decoding holds; all on the stream of the forward."""
        device = self.o.device
        assert device is not None
        stream = getattr(scheduler, "forward_stream", None)
        if not getattr(scheduler, "enable_overlap", False):
            stream = None
        self.o.budget.step_ms += (time.perf_counter() - self._step_began) * 1e3
        reads, self._reads = self._reads, {}
        with device.on(stream):
            if device.is_capturing():
                for launch in reads.values():
                    self.o.abandon(launch)
                return
            for launch in reads.values():
                self._close_read(launch)
            if not planned or not planned[0]:
                return
            works, is_extend = planned  # the batch's mode may be another one by now
            table = batch.req_to_token_pool.req_to_token
            tokens = self.o.pool.page_size
            newly = [
                (work, self._filled.newly(work, tokens, is_extend=is_extend)) for work in works
            ]
            for bank in self.banks():
                self._observe_filled(bank, newly, table)
                if not is_extend:
                    self._observe_held(bank, works, table)

    def _close_read(self, launch: Launch) -> None:
        if not launch.digested:
            # A graph replay asks nobody: not a failure, but not seen either.
            self.o.skip(launch.count, "no read ran")
        self.o.seal(launch)

    def _observe_filled(self, bank: Bank, newly: list[Any], table: Any) -> None:
        found = [place for work, indices in newly for place in places(work, indices)]
        most = self.o.budget.left_bytes // (len(bank.layers) * bank.layout.digested_bytes)
        # What the bounds leave no room for is at least named.
        for part in (found[:most], found[most:]):
            if part:
                self.observe(protocol.STORE, bank, part, table, forgets=True)

    def _observe_held(self, bank: Bank, works: list[Any], table: Any) -> None:
        self._turn += 1
        each = len(bank.layers) * bank.layout.digested_bytes
        most = min(HELD_PAGES, self.o.budget.left_bytes // max(1, each))
        found = held_places(works, bank.page_tokens, most, self._turn)
        if found:
            self.observe(protocol.HELD, bank, found, table)

    # -- reads ------------------------------------------------------------------------------------

    def enter_write(self, *_: Any, **__: Any) -> bool:
        """The compressor asks for the same tensors as the indexer, to store into them."""
        self._writing += 1
        return True

    def leave_write(self, entered: Any, *_: Any, **__: Any) -> None:
        if entered:
            self._writing -= 1

    def enter_getter(self, *_: Any, **__: Any) -> bool:
        self._gates.append(False)
        return True

    def passed_gate(self, *_: Any, **__: Any) -> None:
        """After `wait_layer_transfer`: the getter that called it is gated."""
        if self._gates:
            self._gates[-1] = True

    def leave_index_read(
        self, entered: Any, _result: Any, pool: Any, layer_id: int, *_: Any, **__: Any
    ) -> None:
        self._leave_read(entered, protocol.INDEX_K, pool, layer_id)

    def leave_latent_read(
        self, entered: Any, _result: Any, pool: Any, layer_id: int, *_: Any, **__: Any
    ) -> None:
        ratio = pool.layer_mapping[layer_id].compress_ratio
        self._leave_read(entered, f"c{ratio}", pool, layer_id)

    def _leave_read(self, entered: Any, name: str, pool: Any, layer_id: int) -> None:
        if not entered:
            return
        was_gated = self._gates.pop()
        launch = self._reads.get(name)
        if launch is None or self._writing or pool is not self.o.pool:
            return
        device, layer = self.o.device, launch.bank.layers.index(layer_id)
        assert device is not None
        if layer in launch.digested or launch.done is not None or device.is_capturing():
            return
        state = self._state_of(name, layer, layer_id, was_gated)
        self.o.digest(launch, [layer], state=state)

    def _state_of(self, name: str, layer: int, layer_id: int, was_gated: bool) -> LayerState:
        """How this read stands to the loads that were begun before it."""
        assert self.o.device is not None
        counter = getattr(self.o.pool, "layer_transfer_counter", None)
        consumer = getattr(counter, "consumer_index", -1)
        waited, unordered = set(), set()
        for one in self.o.rounds.get(name, ()):
            if was_gated and counter is not None and consumer == one.producer and consumer >= 0:
                waited.add(one.transfer)
            elif not self._has_ended(one, layer, layer_id):
                unordered.add(one.transfer)
        return LayerState(
            mark=self.o.device.mark(), waited=frozenset(waited), unordered=frozenset(unordered)
        )

    def _has_ended(self, one: LoadRound, layer: int, layer_id: int) -> bool:
        mark = one.ends.get(layer)
        return mark is not None and mark.reached()

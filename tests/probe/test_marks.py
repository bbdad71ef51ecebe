"""Events as CUDA has them, strict in what it forbids, under the real hooks: order and distance.

What CUDA says: an event measures time only if it was made for it; `elapsed_time` raises unless both
were recorded and reached; one that was never recorded counts as reached; nothing may be recorded or
asked for by whoever captures a graph; waiting belongs to nobody here.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
import streams
import torch
from builders_probe import make_batch, make_pool, records

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe.cuda import CudaDevice, CudaMark
from dsv4doctor.probe.devices import CpuDevice
from dsv4doctor.probe.hicache import HicacheHops
from dsv4doctor.probe.observer import Observer
from dsv4doctor.probe.rank import RankProbe
from dsv4doctor.probe.steps import StepHops
from dsv4doctor.probe_protocol import Observation, arm

TICK_MS = 0.5  # of the fake clock, by which a stream reaches one event after the other


class Cuda:
    """The clock of all events, and whether a graph is being captured."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.captures = False
        self.events: list[Event] = []


class Event:
    """`torch.cuda.Event` on `streams.py`'s queues."""

    cuda: Cuda

    def __init__(self, enable_timing: bool = False) -> None:
        self.enable_timing = enable_timing
        self.records = 0
        self.at_ms: float | None = None
        self.cuda.events.append(self)

    def record(self, stream: Any = None) -> None:
        assert not self.cuda.captures, "recorded while a graph is captured"
        self.records += 1
        self.at_ms = None
        (stream or streams.CURRENT[-1]).submit(self._reach)

    def _reach(self) -> None:
        self.cuda.now_ms += TICK_MS
        self.at_ms = self.cuda.now_ms

    def query(self) -> bool:
        assert not self.cuda.captures, "asked for while a graph is captured"
        return not self.records or self.at_ms is not None

    def elapsed_time(self, end: Event) -> float:
        if not (self.enable_timing and end.enable_timing):
            raise ValueError("made without enable_timing")
        if not (self.records and end.records):
            raise ValueError("both events must be recorded first")
        if self.at_ms is None or end.at_ms is None:
            raise RuntimeError("device not ready")
        return end.at_ms - self.at_ms

    def synchronize(self) -> None:
        raise AssertionError("somebody waits")

    wait = synchronize


class Gpu(CpuDevice):
    """A CPU whose queues, marks and captures are a GPU's."""

    is_apart = True

    def __init__(self, cuda: Cuda) -> None:
        super().__init__(streams.submit)
        self._cuda = cuda

    def mark(self) -> CudaMark:  # type: ignore[override]
        return CudaMark()

    def is_capturing(self) -> bool:
        return self._cuda.captures


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    found = Cuda()
    monkeypatch.setattr(Event, "cuda", found, raising=False)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    return found


class Rank:
    """A rank with two index layers, a host mirror and three sets of layer events."""

    def __init__(self, cuda: Cuda) -> None:
        observer = Observer()
        self.pool = make_pool()
        assert observer.adopt(self.pool, Gpu(cuda))
        self.probe = RankProbe(observer)
        observer.arm(arm("test", max_share=1.0), None)
        self.steps, self.hicache = StepHops(observer), HicacheHops(observer)
        buffers = self.pool.c4_indexer_kv_pool.index_k_with_scale_buffer
        self.host_pool = SimpleNamespace(
            device_buffers=buffers, slot_page_size=256,
            kv_buffer=[torch.zeros(8, 8448, dtype=torch.uint8) for _ in buffers],
        )  # fmt: skip
        self.counter = SimpleNamespace(consumer_index=-1, producer_index=-1)
        self.pool.layer_transfer_counter = self.counter
        self.load_stream = streams.Stream()

    def load(self, page: int) -> None:
        """One `start_loading`: every layer's copy on the load's stream."""
        controller = SimpleNamespace(load_queue=[])
        entered = self.hicache.enter_loading(controller)
        self.counter.producer_index = (self.counter.producer_index + 1) % 3
        rows = torch.arange(256) + page * 256
        with self.load_stream:
            for layer in range(2):
                given = (None, rows, rows, layer, "direct")
                token = self.hicache.enter_load(self.host_pool, *given)
                self.hicache.leave_load(token, None, self.host_pool, *given)
        self.hicache.leave_loading(entered, self.counter.producer_index, controller)

    def read(self, *, consumer: int, pages: int = 1, first: int = 1, is_gated: bool = True) -> None:
        """One prefill whose prefix is `pages` pages: both layers ask, as the indexer does."""
        scheduler = SimpleNamespace(forward_ct=0, enable_overlap=False)
        batch = make_batch(pages * 256 + 8, prefix=pages * 256, first_page=first)
        token = self.steps.enter_step(scheduler, batch)
        self.counter.consumer_index = consumer
        for layer in (1, 3):
            entered = self.steps.enter_getter(self.pool, layer)
            if is_gated:
                self.steps.passed_gate(None, self.pool, layer)
            self.steps.leave_index_read(entered, None, self.pool, layer)
        self.steps.leave_step(token, None, scheduler, batch)

    def reads(self) -> list[Observation]:
        found = [one for one in records(self.probe) if isinstance(one, Observation)]
        return [one for one in found if one.hop == protocol.READ]


def test_every_event_measures_time_and_is_recorded_once(cuda: Cuda) -> None:
    rank = Rank(cuda)
    rank.load(1)
    rank.read(consumer=0)
    rank.load_stream.synchronize()
    assert rank.reads()
    assert {(event.enable_timing, event.records) for event in cuda.events} == {(True, 1)}


def test_a_read_that_waits_for_its_load_is_ordered(cuda: Cuda) -> None:
    rank = Rank(cuda)
    rank.load(1)
    rank.load_stream.synchronize()  # as the wait of the layer's event would
    rank.read(consumer=0)
    for one in rank.reads():
        assert (one.ordered, one.gate) == (True, protocol.WAITED)
        assert one.distance_ms is not None
        assert one.distance_ms > 0


def test_a_read_that_overtakes_its_load_is_told_with_its_distance(cuda: Cuda) -> None:
    rank = Rank(cuda)
    rank.load(1)
    rank.read(consumer=-1)
    assert rank.reads() == [], "what the load brings is not known yet, and nobody waits for it"
    rank.load_stream.synchronize()
    found = rank.reads()
    assert len(found) == 2
    for one in found:
        assert (one.ordered, one.gate) == (False, protocol.MISSED)
        assert one.distance_ms is not None
        assert one.distance_ms < 0


def test_without_the_gate_a_load_that_has_ended_is_complete(cuda: Cuda) -> None:
    rank = Rank(cuda)
    rank.load(1)
    rank.load_stream.synchronize()
    rank.read(consumer=0, is_gated=False)
    assert {(one.ordered, one.gate) for one in rank.reads()} == {(True, protocol.COMPLETE)}


def test_a_set_of_events_that_is_used_again_is_told_apart(cuda: Cuda) -> None:
    """The fourth load records the first one's events again: whoever waits for the set of another
    load is ordered behind neither of the two unless it has ended."""
    rank = Rank(cuda)
    for page in (1, 2, 3):
        rank.load(page)
    rank.load_stream.synchronize()
    rank.load(4)  # producer 0, as page 1's, and under way
    assert rank.counter.producer_index == 0
    rank.read(consumer=1, pages=4)
    rank.load_stream.synchronize()
    gates = {(one.page, one.gate) for one in rank.reads()}
    assert gates == {
        (1, protocol.COMPLETE), (2, protocol.WAITED), (3, protocol.COMPLETE), (4, protocol.MISSED),
    }  # fmt: skip


def test_what_is_captured_is_left_alone(cuda: Cuda) -> None:
    rank = Rank(cuda)
    rank.load(1)
    rank.load_stream.synchronize()
    rank.reads()
    before = len(cuda.events)
    cuda.captures = True
    rank.read(consumer=0)
    rank.load(2)
    assert len(cuda.events) == before, "no event is made"
    assert not rank.load_stream.queue, "nothing is launched"
    cuda.captures = False
    assert rank.reads() == []
    assert rank.probe.observer.skipped["capture"] >= 2
    rank.read(consumer=0)
    assert len(rank.reads()) == 2, "and afterwards it goes on"


def test_a_mark_is_asked_before_time_is_measured(cuda: Cuda) -> None:
    stream = streams.Stream()
    first = CudaMark()
    with stream:
        second = CudaMark()
    assert (first.reached(), second.reached()) == (True, False)
    assert second.ms_since(first) is None
    assert first.ms_since(second) is None
    stream.synchronize()
    assert second.ms_since(first) == TICK_MS
    assert first.ms_since(second) == -TICK_MS


def test_the_thread_that_fetches_names_its_device_and_loses_no_capture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On the third GPU it must not make itself a context on the first; and it asks for events while
    the scheduler may be capturing a graph."""
    calls: list[tuple[str, Any]] = []

    class Library:
        def __init__(self, name: str) -> None:
            calls.append(("library", name))

        def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> int:
            calls.append(("mode", mode._obj.value))
            return 0

    monkeypatch.setattr(torch.cuda, "set_device", lambda place: calls.append(("device", place)))
    monkeypatch.setattr(ctypes, "CDLL", Library)
    device = CudaDevice(torch.device("cuda:2"))
    device.begin_thread()
    assert calls == [("device", device.place), ("library", "libcuda.so.1"), ("mode", 2)]

    def absent(name: str) -> Any:
        raise OSError(f"no {name}")

    monkeypatch.setattr(ctypes, "CDLL", absent)
    device.begin_thread()

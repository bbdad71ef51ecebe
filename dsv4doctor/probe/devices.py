"""What runs the probe's work in stream order: a GPU's streams, or a CPU at once.

All methods queue on the device's current stream and return at once. `Mark`s say when a place in a
stream was reached.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np
import torch

from dsv4doctor.kernels.page_digest import page_digest_reference
from dsv4doctor.kernels.page_rows import Pages
from dsv4doctor.kernels.reference import accumulators_of, mix64, origins
from dsv4doctor.probe.banks import Bank
from dsv4doctor.probe.cuda import FLIPPED_BIT, CudaDevice


class Mark(Protocol):
    """A place in a stream."""

    def reached(self) -> bool: ...

    def ms_since(self, earlier: Any) -> float | None: ...


class Device(Protocol):
    """Where a rank's cache lies. `is_apart`: its time is not the scheduler thread's."""

    is_apart: bool

    def new_words(self, count: int) -> tuple[torch.Tensor, torch.Tensor]: ...

    def put(self, target: torch.Tensor, values: Any) -> None: ...

    def confine(self, table: torch.Tensor, pages: int) -> None: ...

    def digest(
        self, bank: Bank, layers: Sequence[int], table: torch.Tensor, out: torch.Tensor
    ) -> None: ...

    def flip(self, bank: Bank, layer: int, table: torch.Tensor, row: int, offset: int) -> None: ...

    def fetch(self, target: torch.Tensor, source: torch.Tensor) -> None: ...

    def run(self, work: Callable[[], None]) -> None: ...

    def mark(self) -> Mark: ...

    def on(self, stream: Any) -> AbstractContextManager[Any]: ...

    def is_capturing(self) -> bool: ...

    def reads_host(self, bank: Bank) -> bool: ...

    def begin_thread(self) -> None: ...


class Stamp:
    """The time at which a CPU came to a place in its queue."""

    def __init__(self) -> None:
        self._at: float | None = None

    def set(self) -> None:
        self._at = time.perf_counter()

    def reached(self) -> bool:
        return self._at is not None

    def ms_since(self, earlier: Any) -> float | None:
        if self._at is None or earlier._at is None:
            return None
        return (self._at - float(earlier._at)) * 1e3


def _at_once(work: Callable[[], None]) -> None:
    work()


class CpuDevice:
    """A cache in ordinary memory. `submit` queues work on the current stream, if there are any."""

    is_apart = False

    def __init__(self, submit: Callable[[Callable[[], None]], None] = _at_once) -> None:
        self._submit = submit

    def new_words(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        words = torch.zeros(count, dtype=torch.int64)
        return words, torch.zeros_like(words)

    def put(self, target: torch.Tensor, values: Any) -> None:
        tensor = torch.as_tensor(values, dtype=torch.int64).flatten()
        self._submit(lambda: _copy(target, tensor))

    def confine(self, table: torch.Tensor, pages: int) -> None:
        def work() -> None:
            table[(table < 0) | (table >= pages)] = 0

        self._submit(work)

    def digest(
        self, bank: Bank, layers: Sequence[int], table: torch.Tensor, out: torch.Tensor
    ) -> None:
        def work() -> None:
            count = len(table)
            for place, layer in enumerate(layers):
                scales = None if bank.scales is None else bank.scales[layer]
                pages = Pages(
                    layout=bank.layout, values=bank.values[layer], scales=scales, table=table
                )
                _copy(out[place * count : (place + 1) * count], page_digest_reference(pages).pages)

        self._submit(work)

    def flip(self, bank: Bank, layer: int, table: torch.Tensor, row: int, offset: int) -> None:
        def work() -> None:
            bank.values[layer][int(table[row]), offset] ^= FLIPPED_BIT

        self._submit(work)

    def fetch(self, target: torch.Tensor, source: torch.Tensor) -> None:
        self._submit(lambda: _copy(target, source))

    def run(self, work: Callable[[], None]) -> None:
        self._submit(work)

    def mark(self) -> Stamp:
        stamp = Stamp()
        self._submit(stamp.set)
        return stamp

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        return nullcontext() if stream is None or not hasattr(stream, "__enter__") else stream

    def is_capturing(self) -> bool:
        return False

    def reads_host(self, bank: Bank) -> bool:
        return True

    def begin_thread(self) -> None: ...


def _copy(target: torch.Tensor, source: torch.Tensor) -> None:
    target.copy_(source)


def device_for(bank: Bank) -> Device:
    """The device on which `bank` lies.

    Raises:
        ValueError: if it is none of those that the kernels are for.
    """
    if bank.device.type == "cuda":
        return CudaDevice(bank.device)
    if bank.device.type == "cpu":
        return CpuDevice()
    raise ValueError(f"pages on {bank.device.type!r} devices cannot be digested")


def normal_digests(words: Sequence[int], bank: Bank) -> list[str]:
    """16 hex digits of digests taken at positions 0, 1, … of a table, each as if at position 0."""
    layout, found = bank.layout, np.array(words, dtype=np.int64).view(np.uint64)
    accumulators = accumulators_of(layout, found)
    return [f"{value:016x}" for value in mix64(accumulators + origins(layout, 1, 0)).tolist()]

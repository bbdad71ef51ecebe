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

from dsv4doctor.kernels.coefficients import page_origin
from dsv4doctor.kernels.latent_digest import latent_digest_constants
from dsv4doctor.kernels.mixing import coefficient_tensors, signed
from dsv4doctor.kernels.page_digest import page_digest_constants, page_digest_reference
from dsv4doctor.kernels.page_rows import Pages
from dsv4doctor.kernels.reference import accumulators_of, mix64, origins
from dsv4doctor.probe.banks import Bank

LATENT_CODE = 16
FLIPPED_BIT = 0x10


class Mark(Protocol):
    """A place in a stream."""

    def reached(self) -> bool: ...

    def ms_since(self, earlier: Any) -> float | None: ...


class Device(Protocol):
    """Where a rank's cache lies. `is_apart`: its time is not the scheduler thread's."""

    is_apart: bool

    def new_words(self, count: int) -> tuple[torch.Tensor, torch.Tensor]: ...

    def put(self, target: torch.Tensor, values: Any) -> None: ...

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


def _copy(target: torch.Tensor, source: torch.Tensor) -> None:
    target.copy_(source)


class CudaMark:
    """A CUDA (or HIP) event."""

    def __init__(self) -> None:
        self._event = torch.cuda.Event(enable_timing=True)
        self._event.record()

    def reached(self) -> bool:
        return bool(self._event.query())

    def ms_since(self, earlier: Any) -> float | None:
        if not (self.reached() and earlier.reached()):
            return None
        return float(earlier._event.elapsed_time(self._event))


class CudaDevice:
    """A GPU: kernels and copies on its current stream, results in pinned host memory."""

    is_apart = True

    def __init__(self, place: torch.device) -> None:
        self.place = place
        self._pointers: dict[int, tuple[Bank, torch.Tensor, torch.Tensor]] = {}

    def new_words(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        words = torch.zeros(count, dtype=torch.int64, device=self.place)
        return words, torch.zeros(count, dtype=torch.int64, pin_memory=True)

    def put(self, target: torch.Tensor, values: Any) -> None:
        if not isinstance(values, torch.Tensor):
            values = torch.tensor(values, dtype=torch.int64)
        if not values.is_cuda:
            values = values.to(torch.int64).pin_memory()
        target.copy_(values.flatten(), non_blocking=True)

    def digest(
        self, bank: Bank, layers: Sequence[int], table: torch.Tensor, out: torch.Tensor
    ) -> None:
        from dsv4doctor.probe.layers_digest import layers_digest_kernel, layers_latent_kernel

        layout = bank.layout
        pointers, scale_pointers = self._addresses(bank)
        first = layers[0]
        if tuple(layers) != tuple(range(first, first + len(layers))):
            raise ValueError("layers of one launch follow each other")
        alpha, beta = coefficient_tensors(self.place)
        origin = signed(page_origin(layout.tag, 0))
        grid = (len(table), len(layers))
        stride = bank.stride_bytes // 4
        if layout.code == LATENT_CODE:
            constants = latent_digest_constants(layout, use_table=True, with_rows=False)
            layers_latent_kernel[grid](
                pointers[first:], table, alpha, beta, out, stride, origin, **_kept(constants)
            )
            return
        constants = page_digest_constants(layout, use_table=True, with_rows=False)
        scale_stride = stride if bank.scales is None else int(bank.scales[0].stride(0))
        layers_digest_kernel[grid](
            pointers[first:], scale_pointers[first:], table, alpha, beta, out, stride, scale_stride,
            layout.scale_base // 4, origin, **_kept(constants),
        )  # fmt: skip

    def _addresses(self, bank: Bank) -> tuple[torch.Tensor, torch.Tensor]:
        known = self._pointers.get(id(bank))
        if known is None:
            values = _addresses_of(bank.values).to(self.place)
            scales = values if bank.scales is None else _addresses_of(bank.scales).to(self.place)
            self._pointers[id(bank)] = known = (bank, values, scales)
        return known[1], known[2]

    def flip(self, bank: Bank, layer: int, table: torch.Tensor, row: int, offset: int) -> None:
        from dsv4doctor.probe.layers_digest import flip_kernel

        pointers, _ = self._addresses(bank)
        flip_kernel[(1,)](pointers, table, layer, row, bank.stride_bytes, offset, FLIPPED_BIT)

    def fetch(self, target: torch.Tensor, source: torch.Tensor) -> None:
        target.copy_(source, non_blocking=True)

    def run(self, work: Callable[[], None]) -> None:
        work()

    def mark(self) -> CudaMark:
        return CudaMark()

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        return nullcontext() if stream is None else torch.cuda.stream(stream)

    def is_capturing(self) -> bool:
        return bool(torch.cuda.is_current_stream_capturing())

    def reads_host(self, bank: Bank) -> bool:
        """Kernels read pinned memory through its own address."""
        return bool(bank.values[0].is_pinned())


def _addresses_of(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.tensor([signed(each.data_ptr()) for each in tensors], dtype=torch.int64)


def _kept(constants: dict[str, int]) -> dict[str, int]:
    """Without what the kernels behind a pointer table fix themselves."""
    return {
        name: value for name, value in constants.items() if name not in ("USE_TABLE", "STORE_ROWS")
    }


def device_for(bank: Bank) -> Device:
    """The device on which `bank` lies."""
    if bank.device.type == "cuda":
        return CudaDevice(bank.device)
    return CpuDevice()


def normal_digests(words: Sequence[int], bank: Bank) -> list[str]:
    """16 hex digits of digests taken at positions 0, 1, … of a table, each as if at position 0."""
    layout, found = bank.layout, np.array(words, dtype=np.int64).view(np.uint64)
    accumulators = accumulators_of(layout, found)
    return [f"{value:016x}" for value in mix64(accumulators + origins(layout, 1, 0)).tolist()]

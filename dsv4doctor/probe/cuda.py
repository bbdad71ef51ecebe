"""The probe's work on a GPU: kernels and copies on its current stream, results in pinned memory."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from dsv4doctor.kernels.coefficients import page_origin
from dsv4doctor.kernels.latent_digest import latent_digest_constants
from dsv4doctor.kernels.mixing import coefficient_tensors, signed
from dsv4doctor.kernels.page_digest import page_digest_constants
from dsv4doctor.probe.banks import Bank

LATENT_CODE = 16
FLIPPED_BIT = 0x10
RELAXED_CAPTURE = 2  # CU_STREAM_CAPTURE_MODE_RELAXED, and HIP's


class CudaMark:
    """A CUDA (or HIP) event, recorded once, where it was made.

    `elapsed_time` raises unless both events measure time, were recorded and were reached, and an
    event that was never recorded counts as reached: so each is made to measure and recorded at
    once, none is used again, and both are asked first. Asking does not wait.
    """

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

    def confine(self, table: torch.Tensor, pages: int) -> None:
        from dsv4doctor.probe.layers_digest import confine_kernel

        confine_kernel[(len(table),)](table, pages, num_warps=1)

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

    def begin_thread(self) -> None:
        """While one thread captures a graph, others may not ask for events: the capture would be
        lost. A thread that says it is relaxed about that may. What it asks for is in no graph.

        And a thread that names no device makes itself a context, some 500 MB, on the first one."""
        torch.cuda.set_device(self.place)
        is_hip = torch.version.hip is not None
        name = (
            "hipThreadExchangeStreamCaptureMode" if is_hip else "cuThreadExchangeStreamCaptureMode"
        )
        for library in ("libamdhip64.so",) if is_hip else ("libcuda.so.1",):
            with contextlib.suppress(OSError, AttributeError):
                mode = ctypes.c_int(RELAXED_CAPTURE)
                getattr(ctypes.CDLL(library), name)(ctypes.byref(mode))


def _addresses_of(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.tensor([signed(each.data_ptr()) for each in tensors], dtype=torch.int64)


def _kept(constants: dict[str, int]) -> dict[str, int]:
    """Without what the kernels behind a pointer table fix themselves."""
    return {
        name: value for name, value in constants.items() if name not in ("USE_TABLE", "STORE_ROWS")
    }

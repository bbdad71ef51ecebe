"""Kernels on a GPU, or under Triton's interpreter on a CPU."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dsv4doctor.checksum.worker.engine import LATENT_CODE, NumpyEngine, Pool, second_stamp
from dsv4doctor.kernels.fill_pattern import fill_pattern
from dsv4doctor.kernels.index_topk import Queries, index_scores
from dsv4doctor.kernels.latent_digest import latent_digest
from dsv4doctor.kernels.layouts import PageLayout
from dsv4doctor.kernels.page_digest import PageDigests, page_digest
from dsv4doctor.kernels.page_rows import Pages
from dsv4doctor.kernels.reference import Bytes, Digests
from dsv4doctor.kernels.stamp import Stamp


class TorchEngine:
    """`place` is torch's name of the device: `cuda:0` (NVIDIA and AMD) or `cpu`."""

    def __init__(self, place: str) -> None:
        self.place = torch.device(place)
        if self.place.type == "cuda":
            self.backend = "hip" if torch.version.hip else "cuda"
            self.device = f"{place} {torch.cuda.get_device_name(self.place)}"
        else:
            self.backend = "interpreter"
            self.device = "cpu (Triton's interpreter)"

    def fill(self, layout: PageLayout, count: int, stamp: Stamp) -> Pool:
        values = self._empty(count, layout.page_bytes)
        scales = self._empty(count, layout.scale_page_bytes) if layout.two_tensors else None
        with self._current():
            fill_pattern(values, stamp)
            if scales is not None:
                fill_pattern(scales, second_stamp(layout, stamp))
        return Pool(layout=layout, values=values, scales=scales)

    def _current(self) -> AbstractContextManager[Any]:
        """Makes this device torch's current one: Triton launches there, wherever tensors lie."""
        return torch.cuda.device(self.place) if self.place.type == "cuda" else nullcontext()

    def _empty(self, count: int, width: int) -> torch.Tensor:
        return torch.empty(count, width, dtype=torch.uint8, device=self.place)

    def upload(self, layout: PageLayout, values: Bytes, scales: Bytes | None) -> Pool:
        return Pool(
            layout=layout,
            values=torch.from_numpy(values).to(self.place, copy=True),
            scales=None if scales is None else torch.from_numpy(scales).to(self.place, copy=True),
        )

    def download(self, pool: Pool) -> tuple[Bytes, Bytes | None]:
        scales = None if pool.scales is None else pool.scales.cpu().numpy()
        return pool.values.cpu().numpy(), scales

    def launch(self, pool: Pool, table: torch.Tensor | None = None) -> PageDigests:
        """Digests left on the device, on its current stream."""
        pages = Pages(layout=pool.layout, values=pool.values, scales=pool.scales, table=table)
        digest = latent_digest if pool.layout.code == LATENT_CODE else page_digest
        with self._current():
            return digest(pages)

    def digest(self, pool: Pool, table: NDArray[np.int64] | None = None) -> tuple[Digests, Digests]:
        there = None if table is None else torch.from_numpy(table).to(self.place)
        found = self.launch(pool, there)
        assert found.rows is not None
        return (
            found.pages.cpu().numpy().view(np.uint64),
            found.rows.cpu().numpy().view(np.uint64),
        )

    def scores(
        self, pool: Pool, vectors: NDArray[np.float32], weights: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        pages = Pages(layout=pool.layout, values=pool.values, scales=pool.scales)
        asked = Queries(
            vectors=torch.from_numpy(vectors).to(self.place),
            weights=torch.from_numpy(weights).to(self.place),
        )
        with self._current():
            found: NDArray[np.float32] = index_scores(pages, asked).cpu().numpy()
        return found

    def seconds(self, pool: Pool, *, repeats: int) -> float:
        """The median time of `repeats` digests, by device events; compiling does not count."""
        return self._median(lambda: self.launch(pool), repeats)

    def copy_seconds(self, nbytes: int, *, repeats: int) -> float:
        """The median time of `repeats` copies of `nbytes` on the device."""
        if self.place.type != "cuda":
            return NumpyEngine("").copy_seconds(nbytes, repeats=repeats)
        source = torch.ones(nbytes, dtype=torch.uint8, device=self.place)
        target = torch.empty_like(source)
        return self._median(lambda: target.copy_(source), repeats)

    def _median(self, work: Any, repeats: int) -> float:
        work()
        if self.place.type != "cuda":
            return min(_wall(work) for _ in range(repeats))
        with torch.cuda.device(self.place):
            times: list[float] = []
            for _ in range(repeats):
                begin = torch.cuda.Event(enable_timing=True)
                end = torch.cuda.Event(enable_timing=True)
                begin.record()
                work()
                end.record()
                end.synchronize()
                times.append(begin.elapsed_time(end) / 1e3)
        return sorted(times)[len(times) // 2]


def _wall(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started

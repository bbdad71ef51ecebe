"""What computes digests on one device: numpy on a CPU, or torch with the kernels.

An engine owns pools of pages (`Pool`) and gives results as numpy arrays, so that checks, race and
bench read the same on every device.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dsv4doctor.kernels import reference, reference_scores
from dsv4doctor.kernels.layouts import PageLayout
from dsv4doctor.kernels.pattern import pattern_pages
from dsv4doctor.kernels.reference import Bytes, Digests
from dsv4doctor.kernels.stamp import UNIT_BYTES, Stamp

LATENT_CODE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Pages of one layout on one device: numpy arrays or torch tensors, [pages, bytes]."""

    layout: PageLayout
    values: Any
    scales: Any = None

    @property
    def nbytes(self) -> int:
        """Bytes that a digest of all pages reads."""
        return len(self.values) * self.layout.digested_bytes


class Engine(Protocol):
    """One device. `backend` is the contract's word, `device` what the machine calls it."""

    backend: str
    device: str

    def fill(self, layout: PageLayout, count: int, stamp: Stamp) -> Pool: ...

    def upload(self, layout: PageLayout, values: Bytes, scales: Bytes | None) -> Pool: ...

    def download(self, pool: Pool) -> tuple[Bytes, Bytes | None]: ...

    def digest(
        self, pool: Pool, table: NDArray[np.int64] | None = None
    ) -> tuple[Digests, Digests]: ...

    def scores(
        self, pool: Pool, vectors: NDArray[np.float32], weights: NDArray[np.float32]
    ) -> NDArray[np.float32]: ...

    def seconds(self, pool: Pool, *, repeats: int) -> float: ...

    def copy_seconds(self, nbytes: int, *, repeats: int) -> float: ...


def second_stamp(layout: PageLayout, stamp: Stamp) -> Stamp:
    """The stamp of the scales' tensor: its units continue those of the page."""
    return Stamp(
        generation=stamp.generation,
        layer=stamp.layer,
        page=stamp.page,
        place=stamp.place + layout.page_bytes // UNIT_BYTES,
        seed=stamp.seed,
    )


def patterned(layout: PageLayout, count: int, stamp: Stamp) -> tuple[Bytes, Bytes | None]:
    """What `Engine.fill` writes, by numpy."""
    values = pattern_pages(count, layout.page_bytes, stamp)
    if not layout.two_tensors:
        return values, None
    return values, pattern_pages(count, layout.scale_page_bytes, second_stamp(layout, stamp))


class NumpyEngine:
    """The CPU path: numba's loops where numba is installed, else plain numpy."""

    backend = "cpu"

    def __init__(self, device: str) -> None:
        self.device = device
        try:
            from dsv4doctor.kernels import fast
        except ImportError:
            self._fast = None
        else:
            self._fast = fast

    @property
    def is_fast(self) -> bool:
        """Whether numba is there."""
        return self._fast is not None

    def fill(self, layout: PageLayout, count: int, stamp: Stamp) -> Pool:
        values, scales = patterned(layout, count, stamp)
        return Pool(layout=layout, values=values, scales=scales)

    def upload(self, layout: PageLayout, values: Bytes, scales: Bytes | None) -> Pool:
        return Pool(
            layout=layout, values=values.copy(), scales=None if scales is None else scales.copy()
        )

    def download(self, pool: Pool) -> tuple[Bytes, Bytes | None]:
        return pool.values.copy(), None if pool.scales is None else pool.scales.copy()

    def digest(self, pool: Pool, table: NDArray[np.int64] | None = None) -> tuple[Digests, Digests]:
        layout = pool.layout
        if self._fast is not None:
            found: tuple[Digests, Digests] = self._fast.digest(
                layout, pool.values, pool.scales, page_table=table
            )
            return found
        values = pool.values if table is None else pool.values[table]
        scales = pool.scales if table is None or pool.scales is None else pool.scales[table]
        rows = reference.digest_rows(layout, values, scales)
        sums = reference.accumulate(rows) + reference.origins(layout, len(values), 0)
        return reference.mix64(sums), rows

    def scores(
        self, pool: Pool, vectors: NDArray[np.float32], weights: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        keys, scale = reference_scores.decode_keys(pool.layout, pool.values, pool.scales)
        return reference_scores.index_scores(keys, scale, vectors, weights)

    def seconds(self, pool: Pool, *, repeats: int) -> float:
        """The least time of `repeats` digests of the whole pool; one before does not count."""
        self.digest(pool)
        return min(_timed(lambda: self.digest(pool)) for _ in range(repeats))

    def copy_seconds(self, nbytes: int, *, repeats: int) -> float:
        """The least time of `repeats` copies of `nbytes` in memory, by one core."""
        source = np.ones(nbytes, dtype=np.uint8)
        target = np.zeros_like(source)
        return min(_timed(lambda: np.copyto(target, source)) for _ in range(repeats + 1))


def _timed(work: Any) -> float:
    """Seconds of this core's own time: what other processes take meanwhile is not ours."""
    started = time.thread_time()
    work()
    return time.thread_time() - started

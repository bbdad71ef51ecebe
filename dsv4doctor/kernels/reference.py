"""Digests and patterns in plain numpy: slow, short, and what every other path must equal.

`digest_pages` and `digest_rows` state the formula of `coefficients.py` directly. Pages arrive as
uint8 arrays [pages, page_bytes] (any strides); for a two-tensor layout the scales as uint8
[pages, scale_page_bytes]. Results are uint64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dsv4doctor.kernels.coefficients import (
    ALPHA,
    BETA,
    GOLDEN,
    MIX_1,
    MIX_2,
    SCALE_COLUMN,
    UNMIX_1,
    UNMIX_2,
)
from dsv4doctor.kernels.coefficients import mix64 as mix64_int
from dsv4doctor.kernels.layouts import FP4_CHUNKS, PageLayout

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]
Digests = NDArray[np.uint64]

CHUNK_BYTES = 1 << 20  # digested at once: products of 64 bits take several times as much

ALPHA_U64 = np.array(ALPHA, dtype=np.uint64)
BETA_U64 = np.array(BETA, dtype=np.uint64)


def mix64(values: Digests) -> Digests:
    """splitmix64's finaliser on every element."""
    z = (values ^ (values >> np.uint64(30))) * np.uint64(MIX_1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(MIX_2)
    mixed: Digests = z ^ (z >> np.uint64(31))
    return mixed


def unmix64(values: Digests) -> Digests:
    """The inverse of `mix64`."""
    z = values ^ (values >> np.uint64(31)) ^ (values >> np.uint64(62))
    z = z * np.uint64(UNMIX_2)
    z = z ^ (z >> np.uint64(27)) ^ (z >> np.uint64(54))
    z = z * np.uint64(UNMIX_1)
    unmixed: Digests = z ^ (z >> np.uint64(30)) ^ (z >> np.uint64(60))
    return unmixed


def split_rows(
    layout: PageLayout, pages: Bytes, scales: Bytes | None = None
) -> tuple[Words, Words]:
    """The pages' words by slot: values [pages, rows, row_words], scales [pages, rows, scale_words].

    Raises:
        ValueError: if the arrays do not have the layout's shape.
    """
    check_shapes(layout, pages, scales)
    count, rows = len(pages), layout.rows
    if layout.two_tensors:
        assert scales is not None
        chunks = np.ascontiguousarray(pages).view("<u4").reshape(count, FP4_CHUNKS, rows, 4)
        values = chunks.transpose(0, 2, 1, 3).reshape(count, rows, layout.row_words)
        by_chunk = scales.reshape(count, FP4_CHUNKS, 16, rows // 16).transpose(0, 3, 2, 1)
        packed = np.ascontiguousarray(by_chunk.reshape(count, rows, FP4_CHUNKS)).view("<u4")
        return np.ascontiguousarray(values), packed
    end = layout.scale_base or rows * layout.row_words * 4
    values = np.ascontiguousarray(pages[:, : rows * layout.row_words * 4]).view("<u4")
    tail = np.ascontiguousarray(pages[:, end : end + rows * layout.scale_words * 4]).view("<u4")
    found: Words = tail.reshape(count, rows, layout.scale_words).copy()
    if layout.scale_words:
        found[:, :, -1] &= np.uint32(layout.scale_mask)
    return values.reshape(count, rows, layout.row_words), found


def check_shapes(layout: PageLayout, pages: Bytes, scales: Bytes | None) -> None:
    """Raise ValueError, naming both shapes, unless the arrays fit the layout."""
    if pages.ndim != 2 or pages.shape[1] != layout.page_bytes or pages.dtype != np.uint8:
        raise ValueError(
            f"{layout.name} pages are uint8 [n, {layout.page_bytes}], "
            f"not {pages.dtype} {list(pages.shape)}"
        )
    if not layout.two_tensors:
        if scales is not None:
            raise ValueError(f"{layout.name} keeps its scales in the page; no second tensor")
        return
    wanted = (len(pages), layout.scale_page_bytes)
    if scales is None or scales.shape != wanted or scales.dtype != np.uint8:
        found = "none" if scales is None else f"{scales.dtype} {list(scales.shape)}"
        raise ValueError(f"{layout.name} scales are uint8 {list(wanted)}, not {found}")


def digest_rows(layout: PageLayout, pages: Bytes, scales: Bytes | None = None) -> Digests:
    """One digest a slot, [pages, rows]; not salted, so equal rows have equal digests anywhere."""
    check_shapes(layout, pages, scales)
    beta = BETA_U64[: layout.row_words]
    beta_scale = BETA_U64[SCALE_COLUMN : SCALE_COLUMN + layout.scale_words]
    rows = np.empty((len(pages), layout.rows), dtype=np.uint64)
    step = max(1, CHUNK_BYTES // layout.page_bytes)
    for start in range(0, len(pages), step):
        part = slice(start, start + step)
        values, tails = split_rows(layout, pages[part], None if scales is None else scales[part])
        found = (values.astype(np.uint64) * beta).sum(axis=2, dtype=np.uint64)
        rows[part] = found + (tails.astype(np.uint64) * beta_scale).sum(axis=2, dtype=np.uint64)
    return rows


def accumulate(rows: Digests) -> Digests:
    """The page accumulators P of row digests [pages, rows]."""
    total: Digests = (rows * ALPHA_U64[: rows.shape[1]]).sum(axis=1, dtype=np.uint64)
    return total


def origins(layout: PageLayout, count: int, first_position: int) -> Digests:
    """What is added to the accumulators of `count` pages from `first_position` on."""
    positions = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(first_position)
    return positions * np.uint64(GOLDEN) + np.uint64(layout.tag)


def digest_pages(
    layout: PageLayout, pages: Bytes, scales: Bytes | None = None, *, first_position: int = 0
) -> Digests:
    """One digest a page, salted by the page's place in the array plus `first_position`."""
    accumulators = accumulate(digest_rows(layout, pages, scales))
    return mix64(accumulators + origins(layout, len(pages), first_position))


def accumulators_of(layout: PageLayout, digests: Digests, first_position: int = 0) -> Digests:
    """The page accumulators that the digests were made of: equal bytes, equal value, anywhere."""
    return unmix64(digests) - origins(layout, len(digests), first_position)


def fold(digests: Digests) -> int:
    """One 64-bit digest over digests in order: h = mix64(h + d + φ), starting from 0."""
    total = 0
    for value in np.ascontiguousarray(digests, dtype=np.uint64).reshape(-1).tolist():
        total = mix64_int(total + value + GOLDEN)
    return total

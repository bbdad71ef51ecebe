"""The same digests on a CPU at the speed of memory, by numba.

A loop over words that LLVM turns into vector multiplies; results equal `reference.py` bit for bit.
Pages as there; a page table chooses and orders them.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# Compiled loops have no Python types; `digest` has.

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from dsv4doctor.kernels.coefficients import SCALE_COLUMN
from dsv4doctor.kernels.layouts import PageLayout
from dsv4doctor.kernels.reference import (
    ALPHA_U64,
    BETA_U64,
    Bytes,
    Digests,
    Words,
    check_shapes,
    mix64,
    origins,
)

WORD_BYTES = 4


@numba.njit(nogil=True)
def block_split(  # noqa: PLR0913, PLR0917 - compiled code takes flat arguments
    words,
    stride,
    table,
    alpha,
    beta,
    rows,
    columns,
    scales,
    scale_at,
    scale_beta,
    mask,
    out,
    totals,
):
    for position in range(table.shape[0]):
        first = table[position] * stride
        for row in range(rows):
            # A slice, and scales in a loop of their own: only then is this one vectorised well.
            line = words[first + row * columns : first + (row + 1) * columns]
            digest = np.uint64(0)
            for column in range(columns):
                digest += np.uint64(line[column]) * beta[column]
            out[position, row] = digest
        total = np.uint64(0)
        for row in range(rows):
            digest = out[position, row]
            tail = first + scale_at + row * scales
            for k in range(scales):
                word = words[tail + k]
                if k == scales - 1:
                    word &= mask
                digest += np.uint64(word) * beta[scale_beta + k]
            out[position, row] = digest
            total += digest * alpha[row]
        totals[position] = total


@numba.njit(nogil=True)
def two_tensors(  # noqa: PLR0913, PLR0917
    words, scales, table, alpha, beta, rows, scale_beta, out, totals
):
    group = rows // 16
    for position in range(table.shape[0]):
        page = table[position]
        for row in range(rows):
            place = (row % 16) * group + row // 16
            scale = np.uint64(0)
            for chunk in range(4):
                scale |= np.uint64(scales[page, chunk * rows + place]) << np.uint64(8 * chunk)
            out[position, row] = scale * beta[scale_beta]
        # Chunk by chunk, so that memory is read in order.
        for chunk in range(4):
            b0, b1 = beta[4 * chunk], beta[4 * chunk + 1]
            b2, b3 = beta[4 * chunk + 2], beta[4 * chunk + 3]
            for row in range(rows):
                at = (chunk * rows + row) * 4
                part = np.uint64(words[page, at]) * b0 + np.uint64(words[page, at + 1]) * b1
                part += np.uint64(words[page, at + 2]) * b2 + np.uint64(words[page, at + 3]) * b3
                out[position, row] += part
        total = np.uint64(0)
        for row in range(rows):
            total += out[position, row] * alpha[row]
        totals[position] = total


def _flat_words(pages: Bytes) -> tuple[Words, int]:
    """All words from the first page to the end of the last, and the words between pages."""
    stride = pages.strides[0] if len(pages) > 1 else pages.shape[1]
    if pages.strides[1] != 1 or stride < pages.shape[1] or stride % WORD_BYTES:
        pages = np.ascontiguousarray(pages)
        stride = pages.shape[1]
    length = (len(pages) - 1) * stride + pages.shape[1] if len(pages) else 0
    flat = np.lib.stride_tricks.as_strided(pages, shape=(length,), strides=(1,))
    return flat.view("<u4"), stride // WORD_BYTES


def digest(
    layout: PageLayout,
    pages: Bytes,
    scales: Bytes | None = None,
    *,
    page_table: NDArray[np.int64] | None = None,
    first_position: int = 0,
) -> tuple[Digests, Digests]:
    """(page digests [n], row digests [n, rows]) as uint64.

    Raises:
        ValueError: if the arrays do not fit the layout or the table names a page not there.
    """
    check_shapes(layout, pages, scales)
    table = np.arange(len(pages), dtype=np.int64)
    if page_table is not None:
        table = np.ascontiguousarray(page_table, dtype=np.int64)
        if len(table) and (table.min() < 0 or table.max() >= len(pages)):
            raise ValueError(f"the page table names pages outside 0 to {len(pages) - 1}")
    rows = np.zeros((len(table), layout.rows), dtype=np.uint64)
    totals = np.zeros(len(table), dtype=np.uint64)
    if scales is not None:
        words = np.ascontiguousarray(pages).view("<u4")
        tail = np.ascontiguousarray(scales)
        two_tensors(
            words, tail, table, ALPHA_U64, BETA_U64, layout.rows, SCALE_COLUMN, rows, totals
        )
    else:
        flat, stride = _flat_words(pages)
        block_split(
            flat,
            stride,
            table,
            ALPHA_U64,
            BETA_U64,
            layout.rows,
            layout.row_words,
            layout.scale_words,
            layout.scale_base // WORD_BYTES,
            SCALE_COLUMN,
            np.uint32(layout.scale_mask),
            rows,
            totals,
        )
    return mix64(totals + origins(layout, len(table), first_position)), rows

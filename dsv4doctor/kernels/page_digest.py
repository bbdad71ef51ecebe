"""One 64-bit digest an index-K page and one a token row, in one pass over memory.

    R[r] = Σ_c β[c]·w[r, c] + β[SCALE]·s[r]        row digests  [pages, rows]
    D    = mix64(Σ_r α[r]·R[r] + tag + (position + 1)·φ)        page digests [pages]

modulo 2^64, over little-endian 32-bit words (`coefficients.py` has the constants and what they
promise). Row digests are not salted: equal rows have equal digests wherever they lie, in NVIDIA's
fp4 form and ROCm's too. Layouts: `layouts.index_layout`. One program digests one page.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# Device code has no Python types; the launchers and references do.

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from dsv4doctor.kernels.coefficients import SCALE_COLUMN, page_origin
from dsv4doctor.kernels.layouts import PageLayout
from dsv4doctor.kernels.mixing import (
    coefficient_tensors,
    mix64_device,
    mix64_torch,
    origin_tensor,
    signed,
)
from dsv4doctor.kernels.page_rows import Pages, as_words, split_rows

# A warp takes 2048 words: 64 a thread, so that coefficients are loaded once for sixteen rows. With
# half as many, loads and shuffles push sm_90 past ten instructions a word.
WORDS_PER_WARP = 2048


class PageDigests(NamedTuple):
    """int64 bit patterns: `pages` [n], `rows` [n, rows] or None where not asked for."""

    pages: torch.Tensor
    rows: torch.Tensor | None


@triton.jit
def page_digest_kernel(  # noqa: PLR0913, PLR0917 - kernels take flat arguments
    values_ptr,  # int32 words of the pages
    scales_ptr,  # int32 words of the scales; bytes where they are a tensor of their own
    table_ptr,  # int64 page ids, read if USE_TABLE
    alpha_ptr,
    beta_ptr,
    row_digests_ptr,
    digests_ptr,
    value_stride,  # words between pages
    scale_stride,  # elements of scales_ptr between pages
    origin,  # tag + (first position + 1)·φ
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    SCALES: tl.constexpr,
    TWO_TENSORS: tl.constexpr,
    SCALE_BETA: tl.constexpr,
    USE_TABLE: tl.constexpr,
    STORE_ROWS: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64)
    page = position
    if USE_TABLE:
        page = tl.load(table_ptr + position)
    rows = tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    if TWO_TENSORS:
        offsets = rows[:, None] * 4 + ((columns // 4) * (ROWS * 4) + columns % 4)[None, :]
    else:
        offsets = rows[:, None] * COLUMNS + columns[None, :]
    words = tl.load(values_ptr + page * value_stride + offsets).to(tl.uint32, bitcast=True)
    beta = tl.load(beta_ptr + columns).to(tl.uint64, bitcast=True)
    digests = tl.sum(words.to(tl.uint64) * beta[None, :], axis=1)
    if SCALES:
        if TWO_TENSORS:
            first = scales_ptr + page * scale_stride + (rows % 16) * (ROWS // 16) + rows // 16
            scale = tl.load(first).to(tl.uint32)
            scale |= tl.load(first + ROWS).to(tl.uint32) << 8
            scale |= tl.load(first + 2 * ROWS).to(tl.uint32) << 16
            scale |= tl.load(first + 3 * ROWS).to(tl.uint32) << 24
        else:
            scale = tl.load(scales_ptr + page * scale_stride + rows).to(tl.uint32, bitcast=True)
        beta_scale = tl.load(beta_ptr + SCALE_BETA).to(tl.uint64, bitcast=True)
        digests += scale.to(tl.uint64) * beta_scale
    if STORE_ROWS:
        tl.store(row_digests_ptr + position * ROWS + rows, digests.to(tl.int64, bitcast=True))
    alpha = tl.load(alpha_ptr + rows).to(tl.uint64, bitcast=True)
    total = tl.sum(digests * alpha, axis=0) + origin.to(tl.uint64)
    mixed = mix64_device(total + position.to(tl.uint64) * 0x9E3779B97F4A7C15)
    tl.store(digests_ptr + position, mixed.to(tl.int64, bitcast=True))


def page_digest_reference(pages: Pages) -> PageDigests:
    """The formula in plain torch, on any device; knows the latent layouts too."""
    layout = pages.layout
    values, tails = split_rows(pages)
    alpha, beta = coefficient_tensors(values.device)
    rows = (values * beta[: layout.row_words]).sum(dim=2)
    rows += (tails * beta[SCALE_COLUMN : SCALE_COLUMN + layout.scale_words]).sum(dim=2)
    total = (rows * alpha[: layout.rows]).sum(dim=1)
    origin = origin_tensor(layout.tag, len(pages), pages.first_position, values.device)
    return PageDigests(mix64_torch(total + origin), rows)


def page_digest(pages: Pages, *, with_rows: bool = True) -> PageDigests:
    """Digests of index-K pages by the kernel; rows too unless `with_rows` is off."""
    layout, device = pages.layout, pages.values.device
    digests = torch.empty(len(pages), dtype=torch.int64, device=device)
    height = layout.rows if with_rows else 0
    rows = torch.empty((len(pages), height), dtype=torch.int64, device=device)
    if len(pages) == 0:
        return PageDigests(digests, rows if with_rows else None)
    words = as_words(pages.values)
    tail = words[:, layout.scale_base // 4 :] if pages.scales is None else pages.scales
    alpha, beta = coefficient_tensors(device)
    page_digest_kernel[(len(pages),)](
        words,
        tail,
        alpha if pages.table is None else pages.page_ids(),
        alpha,
        beta,
        rows,
        digests,
        words.stride(0),
        tail.stride(0),
        signed(page_origin(layout.tag, pages.first_position)),
        **page_digest_constants(layout, use_table=pages.table is not None, with_rows=with_rows),
    )
    return PageDigests(digests, rows if with_rows else None)


def page_digest_constants(
    layout: PageLayout, *, use_table: bool, with_rows: bool
) -> dict[str, int]:
    """The kernel's constants and launch options for `layout`."""
    return {
        "ROWS": layout.rows,
        "COLUMNS": layout.row_words,
        "SCALES": layout.scale_words > 0,
        "TWO_TENSORS": layout.two_tensors,
        "SCALE_BETA": SCALE_COLUMN,
        "USE_TABLE": use_table,
        "STORE_ROWS": with_rows,
        "num_warps": max(1, layout.rows * layout.row_words // WORDS_PER_WARP),
    }

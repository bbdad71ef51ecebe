"""One 64-bit digest a latent page (c4, c128, SWA) and one a token row; padding left out.

    R[r] = Σ_c β[c]·w[r, c] + β[SCALE]·s[r, 0] + β[SCALE + 1]·(s[r, 1] & 0x00FFFFFF)
    D    = mix64(Σ_r α[r]·R[r] + tag + (position + 1)·φ)

over a slot's 144 words of values (448 e4m3, 64 bf16) and the 7 ue8m0 scales behind all values; the
eighth scale byte and the page's tail are padding. Page heights: 256 (swa), 64 (c4), 2 (c128). One
program digests one page, in blocks of rows. Layouts: `layouts.latent_layout`.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# Device code has no Python types; the launchers and references do.

from __future__ import annotations

import torch
import triton
import triton.language as tl

from dsv4doctor.kernels.coefficients import SCALE_COLUMN, page_origin
from dsv4doctor.kernels.layouts import PageLayout
from dsv4doctor.kernels.mixing import coefficient_tensors, mix64_device, signed
from dsv4doctor.kernels.page_digest import PageDigests, page_digest_reference
from dsv4doctor.kernels.page_rows import Pages, as_words

ROW_BLOCK = 32  # rows a step: 36 words a thread in four warps; in two or one, some compilers spill


@triton.jit
def latent_digest_kernel(  # noqa: PLR0913, PLR0917 - kernels take flat arguments
    words_ptr,  # int32 words of the pages
    table_ptr,  # int64 page ids, read if USE_TABLE
    alpha_ptr,
    beta_ptr,
    row_digests_ptr,
    digests_ptr,
    page_stride,  # words between pages
    origin,  # tag + (first position + 1)·φ
    ROWS: tl.constexpr,
    ROW_BLOCK: tl.constexpr,
    SCALE_BETA: tl.constexpr,
    USE_TABLE: tl.constexpr,
    STORE_ROWS: tl.constexpr,
):
    position = tl.program_id(0).to(tl.int64)
    page = position
    if USE_TABLE:
        page = tl.load(table_ptr + position)
    # 144 words a row are a tile of 128 and one of 16: tiles are powers of two.
    wide = tl.arange(0, 128)
    narrow = tl.arange(0, 16)
    beta_wide = tl.load(beta_ptr + wide).to(tl.uint64, bitcast=True)
    beta_narrow = tl.load(beta_ptr + 128 + narrow).to(tl.uint64, bitcast=True)
    beta_0 = tl.load(beta_ptr + SCALE_BETA).to(tl.uint64, bitcast=True)
    beta_1 = tl.load(beta_ptr + SCALE_BETA + 1).to(tl.uint64, bitcast=True)
    base = words_ptr + page * page_stride
    total = tl.zeros([ROW_BLOCK], dtype=tl.uint64)
    for start in range(0, ROWS, ROW_BLOCK):
        rows = start + tl.arange(0, ROW_BLOCK)
        first = base + rows[:, None] * 144
        left = tl.load(first + wide[None, :]).to(tl.uint32, bitcast=True)
        right = tl.load(first + 128 + narrow[None, :]).to(tl.uint32, bitcast=True)
        digests = tl.sum(left.to(tl.uint64) * beta_wide[None, :], axis=1)
        digests += tl.sum(right.to(tl.uint64) * beta_narrow[None, :], axis=1)
        tail = base + ROWS * 144 + rows * 2
        scale_0 = tl.load(tail).to(tl.uint32, bitcast=True)
        scale_1 = tl.load(tail + 1).to(tl.uint32, bitcast=True) & 0x00FFFFFF
        digests += scale_0.to(tl.uint64) * beta_0 + scale_1.to(tl.uint64) * beta_1
        if STORE_ROWS:
            tl.store(row_digests_ptr + position * ROWS + rows, digests.to(tl.int64, bitcast=True))
        total += digests * tl.load(alpha_ptr + rows).to(tl.uint64, bitcast=True)
    summed = tl.sum(total, axis=0) + origin.to(tl.uint64)
    mixed = mix64_device(summed + position.to(tl.uint64) * 0x9E3779B97F4A7C15)
    tl.store(digests_ptr + position, mixed.to(tl.int64, bitcast=True))


def latent_digest_reference(pages: Pages) -> PageDigests:
    """The formula in plain torch: the same code as for index pages, with the scales' pad masked."""
    return page_digest_reference(pages)


def latent_digest(pages: Pages, *, with_rows: bool = True) -> PageDigests:
    """Digests of latent pages by the kernel; rows too unless `with_rows` is off."""
    layout, device = pages.layout, pages.values.device
    digests = torch.empty(len(pages), dtype=torch.int64, device=device)
    height = layout.rows if with_rows else 0
    rows = torch.empty((len(pages), height), dtype=torch.int64, device=device)
    if len(pages) == 0:
        return PageDigests(digests, rows if with_rows else None)
    words = as_words(pages.values)
    alpha, beta = coefficient_tensors(device)
    latent_digest_kernel[(len(pages),)](
        words,
        alpha if pages.table is None else pages.page_ids(),
        alpha,
        beta,
        rows,
        digests,
        words.stride(0),
        signed(page_origin(layout.tag, pages.first_position)),
        **latent_digest_constants(layout, use_table=pages.table is not None, with_rows=with_rows),
    )
    return PageDigests(digests, rows if with_rows else None)


def latent_digest_constants(
    layout: PageLayout, *, use_table: bool, with_rows: bool
) -> dict[str, int]:
    """The kernel's constants and launch options for `layout`."""
    return {
        "ROWS": layout.rows,
        "ROW_BLOCK": min(ROW_BLOCK, layout.rows),
        "SCALE_BETA": SCALE_COLUMN,
        "USE_TABLE": use_table,
        "STORE_ROWS": with_rows,
        "num_warps": 1 if layout.rows < ROW_BLOCK else 4,
    }

"""Digests of chosen pages in many layers by one launch: the page kernels behind a pointer table.

Program (i, l) digests page `table[i]` of layer l, whose first word is at `pointers[l]`, into
`digests[l·n + i]`. Formulas and layouts are those of `kernels/page_digest.py` and
`kernels/latent_digest.py`, which do the work. Layers may lie in device memory or in pinned host
memory: any address that the device can read.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# Device code has no Python types.

from __future__ import annotations

import triton
import triton.language as tl

from dsv4doctor.kernels.latent_digest import latent_digest_kernel
from dsv4doctor.kernels.page_digest import page_digest_kernel

# Slices of rings and tables begin anywhere: without this, each alignment would be compiled anew,
# in the middle of serving.
UNSPECIALISED = ("pointers_ptr", "scale_pointers_ptr", "table_ptr", "digests_ptr")


@triton.jit(do_not_specialize=UNSPECIALISED)
def layers_digest_kernel(  # noqa: PLR0913, PLR0917 - kernels take flat arguments
    pointers_ptr,  # uint64 addresses of the layers' first words
    scale_pointers_ptr,  # of their scales, where these are a tensor of their own
    table_ptr,  # int64 page ids
    alpha_ptr,
    beta_ptr,
    digests_ptr,
    value_stride,  # words between pages
    scale_stride,
    scale_at,  # words from a page's start to its scales
    origin,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    SCALES: tl.constexpr,
    TWO_TENSORS: tl.constexpr,
    SCALE_BETA: tl.constexpr,
):
    layer = tl.program_id(1)
    out = digests_ptr + layer.to(tl.int64) * tl.num_programs(0)
    # A page's start and every row are multiples of 16 bytes in every layout.
    values = tl.multiple_of(tl.load(pointers_ptr + layer).to(tl.pointer_type(tl.int32)), 16)
    if TWO_TENSORS:
        scales = tl.load(scale_pointers_ptr + layer).to(tl.pointer_type(tl.uint8))
    else:
        scales = values + scale_at
    page_digest_kernel(
        values, scales, table_ptr, alpha_ptr, beta_ptr, out, out, value_stride, scale_stride,
        origin, ROWS, COLUMNS, SCALES, TWO_TENSORS, SCALE_BETA, True, False,
    )  # fmt: skip


@triton.jit(do_not_specialize=("pointers_ptr", "table_ptr", "digests_ptr"))
def layers_latent_kernel(  # noqa: PLR0913, PLR0917
    pointers_ptr,
    table_ptr,
    alpha_ptr,
    beta_ptr,
    digests_ptr,
    page_stride,
    origin,
    ROWS: tl.constexpr,
    ROW_BLOCK: tl.constexpr,
    SCALE_BETA: tl.constexpr,
):
    layer = tl.program_id(1)
    out = digests_ptr + layer.to(tl.int64) * tl.num_programs(0)
    words = tl.multiple_of(tl.load(pointers_ptr + layer).to(tl.pointer_type(tl.int32)), 16)
    latent_digest_kernel(
        words, table_ptr, alpha_ptr, beta_ptr, out, out, page_stride, origin,
        ROWS, ROW_BLOCK, SCALE_BETA, True, False,
    )  # fmt: skip


@triton.jit(do_not_specialize=("table_ptr", "pages"))
def confine_kernel(table_ptr, pages):
    """What is no page id becomes 0."""
    place = table_ptr + tl.program_id(0)
    page = tl.load(place)
    tl.store(place, tl.where((page >= 0) & (page < pages), page, 0))


@triton.jit(
    do_not_specialize=("pointers_ptr", "table_ptr", "layer", "row", "page_bytes", "offset", "mask")
)
def flip_kernel(  # noqa: PLR0913, PLR0917
    pointers_ptr, table_ptr, layer, row, page_bytes, offset, mask
):
    """Exclusive-or of one byte: of `offset` in page `table[row]` of `layer`."""
    base = tl.load(pointers_ptr + layer).to(tl.pointer_type(tl.uint8))
    place = base + tl.load(table_ptr + row) * page_bytes + offset
    tl.store(place, (tl.load(place).to(tl.int32) ^ mask).to(tl.uint8))

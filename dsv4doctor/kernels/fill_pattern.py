"""Fills pages with words that say where and when they were written.

    unit = mix64(key(seed) + (generation≪52 | layer≪44 | page≪20 | place))

for each 8-byte unit of a page: 12 bits of generation, 8 of layer, 24 of page, 20 of place in the
page. mix64 is a bijection, so any unit is read back exactly: a misplaced copy names another page or
layer, a stale one another generation, a torn one both, a shifted one decodes only at another byte
offset, and a flipped bit decodes to nothing in range. Fields: `stamp.py`. Reading back:
`pattern.decode_pattern`.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# Device code has no Python types; the launchers and references do.

from __future__ import annotations

import torch
import triton
import triton.language as tl

from dsv4doctor.kernels.mixing import mix64_device, mix64_torch, signed
from dsv4doctor.kernels.stamp import PAGE_SHIFT, UNIT_BYTES, Stamp

BLOCK = 512  # units a program: 4 KiB, two 128-bit stores a thread


@triton.jit
def fill_pattern_kernel(
    out_ptr,  # int64 units
    page_stride,  # units between pages
    base,  # key + generation, layer, first page and first unit in their places
    pairs,  # 16-byte pairs of units in a page
    BLOCK: tl.constexpr,
):
    page = tl.program_id(0).to(tl.int64)
    places = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    number = base.to(tl.uint64) + (page.to(tl.uint64) << 20) + places.to(tl.uint64)
    values = mix64_device(number).to(tl.int64, bitcast=True)
    tl.store(out_ptr + page * page_stride + places, values, mask=places // 2 < pairs)


def _units(out: torch.Tensor) -> torch.Tensor:
    width = out.shape[-1] if out.ndim == 2 else 1
    if out.dtype != torch.uint8 or width % (2 * UNIT_BYTES):
        raise ValueError(
            f"patterns fill uint8 [n, bytes] where 16 divides bytes, "
            f"not {out.dtype} {list(out.shape)}"
        )
    return out.view(torch.int64)


def fill_pattern_reference(out: torch.Tensor, stamp: Stamp) -> torch.Tensor:
    """The formula in plain torch: fills and returns `out`."""
    units = _units(out)
    pages = torch.arange(units.shape[0], dtype=torch.int64, device=out.device) << PAGE_SHIFT
    places = torch.arange(units.shape[1], dtype=torch.int64, device=out.device)
    units.copy_(mix64_torch(pages[:, None] + places[None, :] + signed(stamp.number)))
    return out


def fill_pattern(out: torch.Tensor, stamp: Stamp) -> torch.Tensor:
    """Fills uint8 [pages, page_bytes] by the kernel, row i as page `stamp.page` + i; returns it.

    `stamp.place` continues the places of a page whose bytes lie in two tensors.

    Raises:
        ValueError: if `out` has another shape.
    """
    units = _units(out)
    if units.numel():
        grid = (units.shape[0], triton.cdiv(units.shape[1], BLOCK))
        fill_pattern_kernel[grid](
            units,
            units.stride(0),
            signed(stamp.number),
            units.shape[1] // 2,
            BLOCK=BLOCK,
            num_warps=4,
        )
    return out

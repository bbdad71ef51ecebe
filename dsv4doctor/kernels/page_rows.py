"""Cache pages as torch tensors: shapes checked, rows gathered; shared by every op here."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dsv4doctor.kernels.layouts import FP4_CHUNKS, PageLayout

WORD_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Pages of one pool: all of them, or those that `table` names, in its order.

    `values` is uint8 [pages, page_bytes] with contiguous bytes and any stride between pages that 4
    divides; `scales`, for a two-tensor layout only, uint8 [pages, scale_page_bytes] likewise;
    `table` int32 or int64 page ids. A page's position is its place in the table (without one: its
    id) plus `first_position`.

    Raises:
        ValueError: if the tensors do not fit the layout or the table names a page not there.
    """

    layout: PageLayout
    values: torch.Tensor
    scales: torch.Tensor | None = None
    table: torch.Tensor | None = None
    first_position: int = 0

    def __post_init__(self) -> None:
        layout, scales = self.layout, self.scales
        _check_tensor(f"{layout.name} pages", self.values, layout.page_bytes)
        if layout.two_tensors != (scales is not None):
            needs = "come with a tensor of scales" if layout.two_tensors else "hold their scales"
            raise ValueError(f"{layout.name} pages {needs}")
        if scales is not None:
            _check_tensor(f"{layout.name} scales", scales, layout.scale_page_bytes)
            if len(scales) != len(self.values):
                raise ValueError(f"{len(self.values)} pages but scales of {len(scales)}")
        if self.table is not None:
            _check_table(self.table, len(self.values))

    def __len__(self) -> int:
        return len(self.values) if self.table is None else len(self.table)

    def page_ids(self) -> torch.Tensor:
        """The page table as contiguous int64; without one, every id in order."""
        if self.table is None:
            return torch.arange(len(self.values), device=self.values.device)
        return self.table.to(torch.int64).contiguous()

    def gathered(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The chosen pages and scales as tensors of their own, in the table's order."""
        if self.table is None:
            return self.values, self.scales
        ids = self.page_ids()
        return self.values[ids], None if self.scales is None else self.scales[ids]


def _check_tensor(what: str, tensor: torch.Tensor, width: int) -> None:
    if tensor.dtype != torch.uint8 or tensor.ndim != 2 or tensor.shape[1] != width:
        raise ValueError(f"{what} are uint8 [n, {width}], not {tensor.dtype} {list(tensor.shape)}")
    if len(tensor) and (tensor.stride(1) != 1 or tensor.stride(0) % WORD_BYTES):
        raise ValueError(f"{what} need contiguous bytes and a page stride that 4 divides")
    if tensor.storage_offset() % WORD_BYTES:
        raise ValueError(f"{what} start at byte {tensor.storage_offset()}, which 4 does not divide")


def _check_table(table: torch.Tensor, count: int) -> None:
    if table.ndim != 1 or table.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"a page table is int32 or int64 [n], not {table.dtype} {table.ndim}-D")
    if len(table) and (int(table.min()) < 0 or int(table.max()) >= count):
        raise ValueError(f"the page table names pages outside 0 to {count - 1}")


def as_words(tensor: torch.Tensor) -> torch.Tensor:
    """uint8 [n, b] seen as int32 [n, b / 4], no copy; the strides stay."""
    if len(tensor) == 0:  # of no strides that torch would accept
        return tensor.new_empty((0, tensor.shape[1] // WORD_BYTES), dtype=torch.int32)
    return tensor.view(torch.int32)


def unsigned(words: torch.Tensor) -> torch.Tensor:
    """int32 words as int64 in 0 to 2^32 - 1."""
    return words.to(torch.int64) & 0xFFFFFFFF


def split_rows(pages: Pages) -> tuple[torch.Tensor, torch.Tensor]:
    """The chosen pages' words as int64: [pages, rows, row_words] and [pages, rows, scale_words]."""
    layout, rows = pages.layout, pages.layout.rows
    tensor, scales = pages.gathered()
    count = len(tensor)
    words = unsigned(as_words(tensor))
    if scales is not None:
        chunks = words.reshape(count, FP4_CHUNKS, rows, WORD_BYTES)
        values = chunks.permute(0, 2, 1, 3).reshape(count, rows, layout.row_words)
        by_chunk = scales.reshape(count, FP4_CHUNKS, 16, rows // 16).to(torch.int64)
        by_row = by_chunk.permute(0, 3, 2, 1).reshape(count, rows, FP4_CHUNKS)
        shifts = torch.arange(0, 32, 8, device=tensor.device)
        return values, (by_row << shifts).sum(dim=2, keepdim=True)
    values = words[:, : rows * layout.row_words].reshape(count, rows, layout.row_words)
    base = layout.scale_base // WORD_BYTES
    tail = words[:, base : base + rows * layout.scale_words]
    tail = tail.reshape(count, rows, layout.scale_words).clone()
    if layout.scale_words:
        tail[:, :, -1] &= layout.scale_mask
    return values, tail

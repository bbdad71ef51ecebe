"""The indexer's scores over paged index keys, and the slots that they select.

    score(t) = s_k(t) · Σ_h w[h] · max(0, ⟨q[h], k(t)⟩)        t in 0 … length - 1, 128 dimensions

with k decoded from fp8 (e4m3, one fp32 scale s_k a key), bf16 (s_k = 1) or fp4 (e2m1 times one
ue8m0 exponent per 32 values, s_k = 1). Selection: the `topk` greatest scores, all slots while
length ≤ topk.

Exact by construction, so that kernel and reference agree bit for bit whatever the compiler fuses:
products of an fp32 query and a key value are exact in float64; the 128 of them are added by halves
(pairs of neighbours, seven times); a head's sum is rounded to fp32, so its product with w is exact
in float64; heads are added in order. Equal scores go to the lower slot (serving kernels choose
freely); NaN is greater than any number, as in their bit-wise order.

Source: SGLang 0.5.23 `layers/attention/dsv4/indexer.py`; DeepSeek-V4's 64 heads, topk 512 (Flash)
and 1024 (Pro).
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# Device code has no Python types; the launchers and references do.

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from dsv4doctor.kernels.layouts import HEAD_DIM, PageLayout
from dsv4doctor.kernels.page_rows import Pages, split_rows
from dsv4doctor.kernels.score_tables import E2M1_VALUES, e4m3_values

SLOT_BLOCK = 16  # slots a program: 2048 float64 products, 16 a thread in four warps
CANONICAL_NAN_BITS = 0x7FC00000


@triton.jit
def _halves(x, SLOTS: tl.constexpr):
    """Sums [SLOTS, 128] over its columns, neighbours first."""
    x = tl.sum(tl.reshape(x, [SLOTS, 64, 2]), axis=2)
    x = tl.sum(tl.reshape(x, [SLOTS, 32, 2]), axis=2)
    x = tl.sum(tl.reshape(x, [SLOTS, 16, 2]), axis=2)
    x = tl.sum(tl.reshape(x, [SLOTS, 8, 2]), axis=2)
    x = tl.sum(tl.reshape(x, [SLOTS, 4, 2]), axis=2)
    x = tl.sum(tl.reshape(x, [SLOTS, 2, 2]), axis=2)
    return tl.sum(x, axis=1)


@triton.jit
def index_scores_kernel(  # noqa: PLR0913, PLR0917 - kernels take flat arguments
    pages_ptr,  # bytes of the pages
    scales_ptr,  # bytes of the scales
    table_ptr,  # int64 page ids
    queries_ptr,  # float32 [queries, heads, 128]
    weights_ptr,  # float32 [queries, heads]
    values_ptr,  # float32 value of each e4m3 or e2m1 code
    scores_ptr,  # float32 [queries, positions · ROWS]
    page_stride,  # bytes
    scale_stride,  # bytes
    heads,
    score_stride,
    ROWS: tl.constexpr,
    SLOTS: tl.constexpr,
    FORMAT: tl.constexpr,  # bits of a value: 4, 8 or 16
    TWO_TENSORS: tl.constexpr,
):
    position = tl.program_id(0)
    query = tl.program_id(2)
    page = tl.load(table_ptr + position)
    slots = tl.program_id(1) * SLOTS + tl.arange(0, SLOTS)
    dims = tl.arange(0, 128)
    base = pages_ptr + page * page_stride
    tail = scales_ptr + page * scale_stride
    if FORMAT == 16:
        at = (base + slots[:, None] * 256 + dims[None, :] * 2).to(tl.pointer_type(tl.uint16))
        keys = (tl.load(at).to(tl.uint32) << 16).to(tl.float32, bitcast=True).to(tl.float64)
    elif FORMAT == 8:
        codes = tl.load(base + slots[:, None] * 128 + dims[None, :])
        keys = tl.load(values_ptr + codes.to(tl.int32)).to(tl.float64)
    else:
        if TWO_TENSORS:
            chunk = dims // 32
            at = (chunk * (16 * ROWS) + dims % 32 // 2)[None, :] + slots[:, None] * 16
            place = (slots % 16) * (ROWS // 16) + slots // 16
            exponent = tl.load(tail + chunk[None, :] * ROWS + place[:, None])
        else:
            at = slots[:, None] * 64 + (dims // 2)[None, :]
            exponent = tl.load(tail + slots[:, None] * 4 + (dims // 32)[None, :])
        codes = (tl.load(base + at).to(tl.int32) >> (dims % 2 * 4)[None, :]) & 15
        # 2^(e - 127) as float64 bits; e = 255 means NaN in ue8m0.
        bits = (exponent.to(tl.int64) + (1023 - 127)) << 52
        bits = tl.where(exponent == 255, 0x7FF8000000000000, bits)
        keys = tl.load(values_ptr + codes).to(tl.float64) * bits.to(tl.float64, bitcast=True)
    total = tl.zeros([SLOTS], dtype=tl.float64)
    for head in range(heads):
        row = query * heads + head
        q = tl.load(queries_ptr + row * 128 + dims).to(tl.float64)
        dot = _halves(keys * q[None, :], SLOTS).to(tl.float32)
        positive = tl.where(dot > 0, dot, 0.0).to(tl.float64)
        # A NaN anywhere in key or query must not pass for "not positive".
        positive = tl.where(dot != dot, dot.to(tl.float64), positive)  # noqa: PLR0124
        total += positive * tl.load(weights_ptr + row).to(tl.float64)
    score = total.to(tl.float32)
    if FORMAT == 8:
        at_scale = (tail + slots * 4).to(tl.pointer_type(tl.float32))
        score = score * tl.load(at_scale)
    score = score + 0.0  # -0 becomes 0, so that order by bits is order by value
    canonical = tl.full([SLOTS], 0x7FC00000, dtype=tl.int32).to(tl.float32, bitcast=True)
    score = tl.where(score != score, canonical, score)  # noqa: PLR0124
    tl.store(scores_ptr + query * score_stride + position * ROWS + slots, score)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """`vectors` float32 [queries, heads, 128]; `weights` float32 [queries, heads], with the scales
    of softmax, heads and query quantisation already in them.

    Raises:
        ValueError: if a tensor has another shape.
    """

    vectors: torch.Tensor
    weights: torch.Tensor

    def __post_init__(self) -> None:
        shape = self.vectors.shape
        if self.vectors.dtype != torch.float32 or len(shape) != 3 or shape[2] != HEAD_DIM:
            raise ValueError(
                f"queries are float32 [n, heads, {HEAD_DIM}], "
                f"not {self.vectors.dtype} {list(shape)}"
            )
        if self.weights.dtype != torch.float32 or self.weights.shape != shape[:2]:
            raise ValueError(
                f"weights are float32 {list(shape[:2])}, "
                f"not {self.weights.dtype} {list(self.weights.shape)}"
            )


def decode_keys(pages: Pages) -> tuple[torch.Tensor, torch.Tensor]:
    """(keys float64 [pages, rows, 128], s_k float32 [pages, rows]) in plain torch."""
    values, tails = split_rows(pages)
    device = values.device
    ones = torch.ones(values.shape[:2], dtype=torch.float32, device=device)
    bits = 32 * pages.layout.row_words // HEAD_DIM
    steps = torch.arange(0, 32, bits, device=device)
    codes = ((values[..., None] >> steps) & ((1 << bits) - 1)).flatten(2)
    if bits == 16:
        return (codes << 16).to(torch.int32).view(torch.float32).double(), ones
    if bits == 8:
        table = torch.tensor(e4m3_values(), dtype=torch.float64, device=device)
        return table[codes], tails[..., 0].to(torch.int32).view(torch.float32)
    table = torch.tensor(E2M1_VALUES, dtype=torch.float64, device=device)
    exponents = (tails >> torch.arange(0, 32, 8, device=device)) & 255
    powers = torch.ldexp(torch.ones_like(exponents, dtype=torch.float64), exponents - 127)
    powers[exponents == 255] = float("nan")
    return table[codes] * powers.repeat_interleave(32, dim=2), ones


def index_scores_reference(pages: Pages, queries: Queries) -> torch.Tensor:
    """Scores float32 [queries, slots] in plain torch, in the order the docstring states."""
    keys, key_scale = decode_keys(pages)
    keys = keys.reshape(-1, HEAD_DIM)
    vectors, weights = queries.vectors, queries.weights
    total = torch.zeros(len(vectors), len(keys), dtype=torch.float64, device=keys.device)
    for head in range(vectors.shape[1]):
        part = keys[None] * vectors[:, head, None, :].double()
        while part.shape[-1] > 1:
            part = part.unflatten(-1, (-1, 2)).sum(dim=-1)
        dot = part[..., 0].float()
        positive = torch.where(dot.isnan(), dot, dot.clamp(min=0))
        total += positive.double() * weights[:, head, None].double()
    score = total.float() * key_scale.reshape(1, -1) + 0.0
    canonical = torch.tensor(CANONICAL_NAN_BITS, dtype=torch.int32).view(torch.float32)
    return torch.where(score.isnan(), canonical.to(score.device), score)


def index_scores(pages: Pages, queries: Queries) -> torch.Tensor:
    """Scores float32 [queries, len(pages) · rows] by the kernel."""
    layout, device = pages.layout, pages.values.device
    count, slots = len(queries.vectors), len(pages) * layout.rows
    scores = torch.empty(count, slots, dtype=torch.float32, device=device)
    if scores.numel() == 0:
        return scores
    tail = pages.values[:, layout.scale_base :] if pages.scales is None else pages.scales
    table = e4m3_values() if layout.row_words * 4 == HEAD_DIM else E2M1_VALUES
    index_scores_kernel[(len(pages), layout.rows // SLOT_BLOCK, count)](
        pages.values,
        tail,
        pages.page_ids(),
        queries.vectors.contiguous(),
        queries.weights.contiguous(),
        torch.tensor(table, dtype=torch.float32, device=device),
        scores,
        pages.values.stride(0),
        tail.stride(0),
        queries.vectors.shape[1],
        slots,
        **index_scores_constants(layout),
    )
    return scores


def index_scores_constants(layout: PageLayout) -> dict[str, int]:
    """The kernel's constants and launch options for `layout`."""
    return {
        "ROWS": layout.rows,
        "SLOTS": SLOT_BLOCK,
        "FORMAT": 32 * layout.row_words // HEAD_DIM,
        "TWO_TENSORS": layout.two_tensors,
        "num_warps": 4,
    }


def select_topk(scores: torch.Tensor, topk: int) -> torch.Tensor:
    """Slots of the `topk` greatest scores of each row, ascending; -1 fills what is missing."""
    count = scores.shape[1]
    bits = scores.view(torch.int32).to(torch.int64)
    ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    slots = torch.arange(count, device=scores.device)
    keys = (ordered << 32) + (0x7FFFFFFF - slots)
    taken = min(topk, count)
    found = keys.topk(taken, dim=1).indices.sort(dim=1).values
    padding = torch.full((len(scores), topk - taken), -1, dtype=torch.int64, device=scores.device)
    return torch.cat((found, padding), dim=1)


def index_topk(pages: Pages, queries: Queries, *, topk: int = 512) -> torch.Tensor:
    """The slots [queries, topk] that the indexer would select, ascending, padded with -1."""
    return select_topk(index_scores(pages, queries), topk)

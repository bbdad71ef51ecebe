"""How one KV row and one index-K row are stored: bytes, and the padding of a page.

Source: `kernels/ops/attention/dsv4/kv_layout.py` of SGLang 0.5.21-0.5.23 and the pool module of
0.5.12-0.5.20, which knows only the first layout.
"""

from __future__ import annotations

from dataclasses import dataclass

INDEX_QUANT_BLOCK = 128  # values of an fp8 index-K row that share one fp32 scale
FP4_QUANT_BLOCK = 32  # values of an fp4 index-K row that share one ue8m0 scale
LOW_RATIO_INDEX_PAGE = 64  # slots of an index page of ratios 1 and 2 (without sparse DeepGEMM)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """One packed latent row: `token_bytes` without padding; a page is padded to `page_align`."""

    name: str
    token_bytes: int
    page_align: int

    def page_bytes(self, tokens: int) -> int:
        """Bytes a page of `tokens` rows occupies."""
        return -(-tokens * self.token_bytes // self.page_align) * self.page_align


# 448 fp8 values + 64 bf16 values + 7 scales + 1 pad byte = 584; pages are whole TMA rows of 576.
V4 = RowLayout(name="v4", token_bytes=584, page_align=576)
V41 = RowLayout(name="v41", token_bytes=528, page_align=512)
V41_FP4 = RowLayout(name="v41_fp4", token_bytes=288, page_align=256)
V41_NEW = RowLayout(name="v41_new", token_bytes=528, page_align=528)
V41_FP4_NEW = RowLayout(name="v41_fp4_new", token_bytes=288, page_align=288)
# TRT-LLM attention: 512 contiguous e4m3 values, no scale, no pad.
UNIFORM_FP8 = RowLayout(name="uniform_fp8", token_bytes=512, page_align=1)

MAIN_LAYOUTS = {layout.name: layout for layout in (V4, V41, V41_NEW)}


def compressed_layout(main: RowLayout, ratio: int, option: str) -> RowLayout:
    """The layout of a ratio's cache beside a `main` cache; ratios 1 and 2 go to fp4 under V4.1.

    `option` is `SGLANG_DSV4_COMPRESSED_KV_LAYOUT`: `auto`, `fp8` or `fp4`.
    """
    if main in (V4, UNIFORM_FP8):
        return main
    fp4 = option == "fp4" or (option == "auto" and ratio in (1, 2))
    if main is V41_NEW:
        return V41_FP4_NEW if fp4 else V41_NEW
    return V41_FP4 if fp4 else V41


def index_row_bytes(dtype: str, head_dim: int) -> int:
    """Bytes of one index-K row: fp8 with an fp32 scale, fp4 with ue8m0 scales, bf16 without any."""
    if dtype == "fp8":
        return head_dim + head_dim // INDEX_QUANT_BLOCK * 4
    if dtype == "fp4":
        return head_dim // 2 + head_dim // FP4_QUANT_BLOCK
    return head_dim * 2


def unified_row_bytes(head_dim: int, rope_head_dim: int, *, fp8: bool) -> int:
    """Bytes of one row of the unified pool (HIP): bf16, or 512 B of fp8 and scales + bf16 rope."""
    return 512 + rope_head_dim * 2 if fp8 else head_dim * 2

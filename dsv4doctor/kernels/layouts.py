"""Where the bytes of one cache page lie, for every pool that the digests know.

A page holds `rows` token slots. Each slot has `row_words` 32-bit words of values and `scale_words`
words of scales; bytes that belong to no slot (padding) are never digested.

    block-split   values of slot i at i·row_bytes, scales at scale_base + i·scale_bytes
    two-tensor    (ROCm fp4) values [pages, 4, rows, 16] and scales [pages, 4, rows] apart:
                  value byte c·16·rows + i·16, scale byte c·rows + (i mod 16)·(rows/16) + i div 16,
                  where chunk c covers the dimensions 32c to 32c + 31

Source: SGLang 0.5.12 to 0.5.23, `layers/attention/dsv4/index_buf_accessor.py`, `fp4_indexer.py`,
`fp4_indexer_hip.py`, `mem_cache/deepseek_v4_memory_pool.py`. No release stores bf16 index keys; the
form here (256 bytes a slot, no scales) is what forks that have a switch for it do.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsv4doctor.kernels.coefficients import layout_tag

HEAD_DIM = 128  # values of one index key
FP4_CHUNKS = 4  # two-tensor fp4: scale blocks of 32 values in a key
LATENT_DATA_BYTES = 576  # 448 e4m3 and 64 bf16 values
LATENT_SCALE_BYTES = 8  # 7 ue8m0 scales and one pad byte
LATENT_ALIGN = 576
INDEX_SLOTS = 64  # slots of an index page at SGLang's page size of 256 tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLayout:
    """Geometry of one page; `code` separates the digests of layouts and is never reused."""

    name: str
    code: int
    rows: int
    row_words: int
    scale_words: int
    page_bytes: int
    scale_base: int = 0
    scale_mask: int = 0xFFFFFFFF  # of the last scale word: pad bytes masked out
    two_tensors: bool = False

    @property
    def tag(self) -> int:
        """The layout's constant in the page digest; pages of other heights differ too."""
        return layout_tag(self.code * 1024 + self.rows)

    @property
    def scale_page_bytes(self) -> int:
        """Bytes of a page of the separate scale tensor; 0 where the scales are in the page."""
        return self.rows * 4 if self.two_tensors else 0

    @property
    def digested_bytes(self) -> int:
        """Bytes of a page that the digest covers, padding left out of the count of words."""
        return self.rows * (self.row_words + self.scale_words) * 4


def index_layout(dtype: str, *, rows: int = INDEX_SLOTS) -> PageLayout:
    """The index-K page of `dtype`: fp8, bf16, fp4 or fp4-rocm, with `rows` slots.

    Raises:
        ValueError: if no such layout exists.
    """
    if rows not in (32, 64, 128):
        raise ValueError(f"an index page has 32, 64 or 128 slots, not {rows}")
    if dtype == "fp8":
        return PageLayout(
            name="fp8",
            code=1,
            rows=rows,
            row_words=32,
            scale_words=1,
            page_bytes=rows * 132,
            scale_base=rows * 128,
        )
    if dtype == "bf16":
        return PageLayout(
            name="bf16", code=2, rows=rows, row_words=64, scale_words=0, page_bytes=rows * 256
        )
    if dtype == "fp4":
        return PageLayout(
            name="fp4",
            code=3,
            rows=rows,
            row_words=16,
            scale_words=1,
            page_bytes=rows * 68,
            scale_base=rows * 64,
        )
    if dtype == "fp4-rocm":
        return PageLayout(
            name="fp4-rocm",
            code=4,
            rows=rows,
            row_words=16,
            scale_words=1,
            page_bytes=rows * 64,
            two_tensors=True,
        )
    raise ValueError(f"no index-K layout {dtype!r}: fp8, bf16, fp4 or fp4-rocm")


LATENT_ROWS = {"swa": 256, "c4": 64, "c128": 2}


def latent_layout(pool: str) -> PageLayout:
    """The latent page of `pool`: swa (256 slots), c4 (64) or c128 (2), 584 bytes a slot.

    Raises:
        ValueError: if no such pool exists.
    """
    if pool not in LATENT_ROWS:
        raise ValueError(f"no latent pool {pool!r}: {', '.join(LATENT_ROWS)}")
    rows = LATENT_ROWS[pool]
    used = rows * (LATENT_DATA_BYTES + LATENT_SCALE_BYTES)
    return PageLayout(
        name=pool,
        code=16,
        rows=rows,
        row_words=LATENT_DATA_BYTES // 4,
        scale_words=LATENT_SCALE_BYTES // 4,
        page_bytes=-(-used // LATENT_ALIGN) * LATENT_ALIGN,
        scale_base=rows * LATENT_DATA_BYTES,
        scale_mask=0x00FFFFFF,
    )


def layout_named(name: str) -> PageLayout:
    """The layout called `name`, optionally with its slots: `fp8`, `fp4/32`, `c4`, `swa`.

    Raises:
        ValueError: if no such layout exists.
    """
    base, _, rows = name.partition("/")
    if base in LATENT_ROWS and rows in ("", str(LATENT_ROWS[base])):
        return latent_layout(base)
    if rows and not rows.isdigit():
        raise ValueError(f"layout {name!r}: the slots after / are a number")
    return index_layout(base, rows=int(rows) if rows else INDEX_SLOTS)


INDEX_DTYPES = ("fp8", "bf16", "fp4", "fp4-rocm")
EVERY_LAYOUT = (
    *(index_layout(dtype, rows=rows) for dtype in INDEX_DTYPES for rows in (64, 32, 128)),
    *(latent_layout(pool) for pool in LATENT_ROWS),
)

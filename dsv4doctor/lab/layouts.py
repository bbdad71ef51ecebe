"""The bytes of one page (256 tokens) in each pool, and the numbers that they stand for.

| pool | slots | bytes | layout |
|---|---|---|---|
| index-K fp8 | 64 | 8,448 | 64 x 128 e4m3, then 64 fp32 scales (block-planar) |
| index-K bf16 | 64 | 16,384 | 64 x 128 bf16 |
| index-K fp4 | 64 | 4,352 | 64 x 64 B (two e2m1 each, even element low), then 64 x 4 ue8m0 |
| c4 latent | 64 | 37,440 | 64 x (448 e4m3 + 64 bf16), then 64 x (7 ue8m0 + pad), pad to 576 |
| c128 latent | 2 | 1,728 | as c4 |

Source: DeepSeek-V4 pools of SGLang 0.5.12-0.5.23 (`deepseek_v4_memory_pool.py`); the bf16 index
exists in no release, its layout is the patched deployment's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

PAGE_TOKENS = 256
TOKENS_PER_ENTRY = 4
PAGE_SLOTS = PAGE_TOKENS // TOKENS_PER_ENTRY
HEAD_DIM = 128

_E4M3_MAX = 448.0
_E2M1_MAX = 6.0
_SMALLEST_AMAX = 1e-4
# Squares of it, summed over a key, are still finite in float32.
_LARGEST_SCALE = np.float32(1e15)
_FP4_BLOCK = 32
_UE8M0_BIAS = 127


def _e4m3_values() -> Floats:
    """The 256 values of e4m3fn; 0x7F and 0xFF are NaN, there is no infinity."""
    code = np.arange(256)
    exponent, mantissa = code >> 3 & 15, code & 7
    magnitude = np.where(
        exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    )
    magnitude[(code & 0x7F) == 0x7F] = np.nan
    return np.where(code < 128, magnitude, -magnitude).astype(np.float32)


_E4M3 = _e4m3_values()
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=np.float32)
_E2M1_SIGNED = np.concatenate([_E2M1, -_E2M1]).astype(np.float32)


def _nearest_code(magnitudes: Floats, grid: Floats) -> Bytes:
    """Index of the nearest grid value; a tie goes to the even code, as IEEE rounding does."""
    middles = (grid[:-1] + grid[1:]) / 2
    codes = np.searchsorted(middles, magnitudes, side="left")
    # On a middle the left search stays below; an odd code there has to step up to the even one.
    tied = (codes < len(middles)) & (magnitudes == middles[np.minimum(codes, len(middles) - 1)])
    rounded: Bytes = (codes + (tied & (codes % 2 == 1))).astype(np.uint8)
    return rounded


def to_e4m3(values: Floats) -> Bytes:
    """Round to nearest even, saturating at 448."""
    codes = _nearest_code(np.minimum(np.abs(values), _E4M3_MAX), _E4M3[:127])
    signs = np.signbit(values).astype(np.uint8) << 7
    return (codes | signs).astype(np.uint8)


def to_bf16(values: Floats) -> npt.NDArray[np.uint16]:
    """The upper half of each float32, rounded to nearest even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded: npt.NDArray[np.uint16] = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return rounded


def _encode_fp8(keys: Floats) -> Bytes:
    scales = np.maximum(np.abs(keys).max(axis=2), _SMALLEST_AMAX) / np.float32(_E4M3_MAX)
    codes = to_e4m3(keys / scales[:, :, None])
    tail = np.ascontiguousarray(scales, dtype="<f4").view(np.uint8).reshape(len(keys), -1)
    return np.concatenate([codes.reshape(len(keys), -1), tail], axis=1)


def _decode_fp8(pages: Bytes) -> Floats:
    split = PAGE_SLOTS * HEAD_DIM
    scales = np.ascontiguousarray(pages[:, split:]).view("<f4")
    values = _E4M3[pages[:, :split]].reshape(len(pages), PAGE_SLOTS, HEAD_DIM)
    keys: Floats = (values * scales[:, :, None]).astype(np.float32, copy=False)
    return keys


def _encode_bf16(keys: Floats) -> Bytes:
    return to_bf16(keys).astype("<u2").view(np.uint8).reshape(len(keys), -1)


def _decode_bf16(pages: Bytes) -> Floats:
    halves = np.ascontiguousarray(pages).view("<u2").astype(np.uint32) << 16
    return halves.view(np.float32).reshape(len(pages), PAGE_SLOTS, HEAD_DIM)


def _encode_fp4(keys: Floats) -> Bytes:
    blocks = keys.reshape(len(keys), PAGE_SLOTS, -1, _FP4_BLOCK)
    amax = np.maximum(np.abs(blocks).max(axis=3) / np.float32(_E2M1_MAX), _SMALLEST_AMAX)
    exponents = np.ceil(np.log2(amax)).astype(np.int32)
    scaled = np.ldexp(blocks, -exponents[..., None]).astype(np.float32)
    codes = _nearest_code(np.minimum(np.abs(scaled), _E2M1_MAX), _E2M1)
    codes = (codes | (np.signbit(scaled).astype(np.uint8) << 3)).reshape(len(keys), -1)
    payload = codes[:, 0::2] | (codes[:, 1::2] << 4)
    tail = (exponents + _UE8M0_BIAS).astype(np.uint8).reshape(len(keys), -1)
    return np.concatenate([payload, tail], axis=1)


def _decode_fp4(pages: Bytes) -> Floats:
    split = PAGE_SLOTS * HEAD_DIM // 2
    payload = pages[:, :split]
    codes = np.stack([payload & 15, payload >> 4], axis=2).reshape(len(pages), -1)
    blocks = _E2M1_SIGNED[codes].reshape(len(pages), PAGE_SLOTS, -1, _FP4_BLOCK)
    exponents = pages[:, split:].reshape(len(pages), PAGE_SLOTS, -1).astype(np.int32) - _UE8M0_BIAS
    values = np.ldexp(blocks, exponents[..., None])
    return values.reshape(len(pages), PAGE_SLOTS, HEAD_DIM).astype(np.float32, copy=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFormat:
    """How index keys lie in a page: `encode` takes [pages, 64, 128], `decode` gives it back.

    Behind the page's values stand its scales, `scale_bytes` a slot.
    """

    name: str
    page_bytes: int
    encode: Callable[[Floats], Bytes]
    decode: Callable[[Bytes], Floats]
    scale_bytes: int = 0

    def slots(self, first: int, last: int) -> tuple[slice, ...]:
        """Where in a page the slots from `first` up to `last` (not included) lie."""
        value = self.page_bytes // PAGE_SLOTS - self.scale_bytes
        scales = PAGE_SLOTS * value
        return (
            slice(first * value, last * value),
            slice(scales + first * self.scale_bytes, scales + last * self.scale_bytes),
        )


FP8 = IndexFormat(
    name="fp8", page_bytes=8448, encode=_encode_fp8, decode=_decode_fp8, scale_bytes=4
)
BF16 = IndexFormat(name="bf16", page_bytes=16384, encode=_encode_bf16, decode=_decode_bf16)
FP4 = IndexFormat(
    name="fp4", page_bytes=4352, encode=_encode_fp4, decode=_decode_fp4, scale_bytes=4
)
INDEX_FORMATS = {form.name: form for form in (FP8, BF16, FP4)}


def _decode_fp8_interleaved(pages: Bytes) -> Floats:
    """A block-planar page taken for 64 rows of 128 values and their scale: plausible garbage."""
    rows = np.ascontiguousarray(pages).reshape(len(pages), PAGE_SLOTS, -1)
    scales = np.ascontiguousarray(rows[:, :, HEAD_DIM:]).view("<f4")
    return _finite(_E4M3[rows[:, :, :HEAD_DIM]] * _finite(scales))


def _decode_fp4_interleaved(pages: Bytes) -> Floats:
    """As `_decode_fp8_interleaved`, for rows of 64 bytes of values and 4 exponents."""
    rows = np.ascontiguousarray(pages).reshape(len(pages), PAGE_SLOTS, -1)
    split = HEAD_DIM // 2
    planar = np.concatenate(
        [rows[:, :, :split].reshape(len(pages), -1), rows[:, :, split:].reshape(len(pages), -1)],
        axis=1,
    )
    with np.errstate(over="ignore"):
        return _finite(_decode_fp4(planar))


def _finite(values: Floats) -> Floats:
    """Bytes that are no scale may say NaN or 1e38: a key of such values scores as nothing, or as
    much as can be summed over a key."""
    finite: Floats = np.clip(np.nan_to_num(values), -_LARGEST_SCALE, _LARGEST_SCALE)
    return finite.astype(np.float32, copy=False)


# How pages are read by an engine that has values and scales row by row; bf16 has no scales.
INTERLEAVED_FORMATS = {
    "fp8": IndexFormat(
        name="fp8-interleaved",
        page_bytes=FP8.page_bytes,
        encode=_encode_fp8,
        decode=_decode_fp8_interleaved,
    ),
    "bf16": BF16,
    "fp4": IndexFormat(
        name="fp4-interleaved",
        page_bytes=FP4.page_bytes,
        encode=_encode_fp4,
        decode=_decode_fp4_interleaved,
    ),
}
READ_FORMATS = {**INDEX_FORMATS, **{form.name: form for form in INTERLEAVED_FORMATS.values()}}

"""Index keys as a model would store them: random unit vectors, quantised by each format's rule.

Rules: fp8 s = max(amax, 1e-4) / 448, value = round(k / s); fp4 e = ceil(log2(max(amax / 6, 1e-4)))
per 32 values, nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6; bf16 rounds to nearest even.
Source: SGLang's writers, see `kernels/layouts.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dsv4doctor.kernels.layouts import HEAD_DIM, PageLayout
from dsv4doctor.kernels.reference import Bytes
from dsv4doctor.kernels.score_tables import E2M1_VALUES, e4m3_values

Floats = NDArray[np.float64]
SMALLEST = 1e-4
E4M3_MAX, E2M1_MAX = 448.0, 6.0
POSITIVE_E4M3 = np.array(e4m3_values()[:0x7F])
POSITIVE_E2M1 = np.array(E2M1_VALUES[:8])


def random_keys(count: int, rng: np.random.Generator) -> Floats:
    """`count` keys of length 1, [count, 128]."""
    keys = rng.standard_normal((count, HEAD_DIM))
    unit: Floats = keys / np.linalg.norm(keys, axis=1, keepdims=True)
    return unit


def _nearest(values: Floats, grid: Floats, sign_bit: int) -> NDArray[np.uint8]:
    """Codes of the nearest value of a sorted positive grid, sign added."""
    middles = (grid[1:] + grid[:-1]) / 2
    codes = np.searchsorted(middles, np.abs(values)).astype(np.uint8)
    return codes | np.where(values < 0, sign_bit, 0).astype(np.uint8)


def store_keys(layout: PageLayout, keys: Floats) -> Bytes:
    """Pages [n, page_bytes] that hold `keys` [n · rows, 128] in a one-tensor index layout.

    Raises:
        ValueError: if `layout` keeps its scales apart.
    """
    if layout.two_tensors:
        raise ValueError(f"{layout.name} keeps its scales in a second tensor")
    count = len(keys) // layout.rows
    pages = np.zeros((count, layout.page_bytes), dtype=np.uint8)
    end = layout.rows * layout.row_words * 4
    if layout.row_words * 4 == 2 * HEAD_DIM:
        bits = keys.astype(np.float32).view(np.uint32)
        rounded = bits + 0x7FFF + ((bits >> 16) & 1)
        pages[:] = (rounded >> 16).astype("<u2").view(np.uint8).reshape(count, -1)
    elif layout.row_words * 4 == HEAD_DIM:
        scale = np.maximum(np.abs(keys).max(axis=1), SMALLEST) / E4M3_MAX
        codes = _nearest(keys / scale[:, None], POSITIVE_E4M3, 0x80)
        pages[:, :end] = codes.reshape(count, -1)
        pages[:, end:] = scale.astype("<f4").view(np.uint8).reshape(count, -1)
    else:
        blocks = keys.reshape(len(keys), -1, 32)
        largest = np.maximum(np.abs(blocks).max(axis=2) / E2M1_MAX, SMALLEST)
        exponents = np.ceil(np.log2(largest))
        codes = _nearest(blocks / 2.0 ** exponents[:, :, None], POSITIVE_E2M1, 8)
        flat = codes.reshape(count, -1)
        pages[:, :end] = flat[:, 0::2] | flat[:, 1::2] << 4
        pages[:, end:] = (exponents + 127).astype(np.uint8).reshape(count, -1)
    return pages

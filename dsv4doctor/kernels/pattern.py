"""Fill patterns in plain numpy, and reading them back: which page, layer and write a unit is of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsv4doctor.kernels.reference import Bytes, Digests, mix64, unmix64
from dsv4doctor.kernels.stamp import (
    GENERATION_BITS,
    GENERATION_SHIFT,
    LAYER_BITS,
    LAYER_SHIFT,
    PAGE_BITS,
    PAGE_SHIFT,
    PLACE_BITS,
    UNIT_BYTES,
    Stamp,
    pattern_key,
)


class Decoded(NamedTuple):
    """What each 8-byte unit says of itself; bytes that no fill wrote say something absurd."""

    generation: NDArray[np.int64]
    layer: NDArray[np.int64]
    page: NDArray[np.int64]
    place: NDArray[np.int64]


def pattern_pages(count: int, page_bytes: int, stamp: Stamp) -> Bytes:
    """`count` pages [count, page_bytes], as `fill_pattern` writes them.

    Raises:
        ValueError: if 8 does not divide `page_bytes`.
    """
    if page_bytes % UNIT_BYTES:
        raise ValueError(f"pages of {page_bytes} bytes are not whole units of {UNIT_BYTES}")
    pages = np.arange(count, dtype=np.uint64) << np.uint64(PAGE_SHIFT)
    places = np.arange(page_bytes // UNIT_BYTES, dtype=np.uint64)
    units = mix64(pages[:, None] + places[None, :] + np.uint64(stamp.number))
    return units.astype("<u8").view(np.uint8)


def decode_pattern(data: Bytes, *, seed: int = 0) -> Decoded:
    """The fields of every unit of `data` (uint8 [..., bytes], 8 divides bytes)."""
    units: Digests = np.ascontiguousarray(data).view("<u8")
    numbers = unmix64(units) - np.uint64(pattern_key(seed))

    def field(shift: int, bits: int) -> NDArray[np.int64]:
        return ((numbers >> np.uint64(shift)) & np.uint64((1 << bits) - 1)).astype(np.int64)

    return Decoded(
        field(GENERATION_SHIFT, GENERATION_BITS),
        field(LAYER_SHIFT, LAYER_BITS),
        field(PAGE_SHIFT, PAGE_BITS),
        field(0, PLACE_BITS),
    )

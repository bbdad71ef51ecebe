"""Pages for the kernels' tests: random and adversarial bytes of every layout."""

from __future__ import annotations

import numpy as np
import pytest

from dsv4doctor.kernels.layouts import EVERY_LAYOUT, PageLayout

LAYOUTS = [pytest.param(layout, id=f"{layout.name}-{layout.rows}") for layout in EVERY_LAYOUT]
INDEX = [p for p in LAYOUTS if p.values[0].code < 16]
LATENT = [p for p in LAYOUTS if p.values[0].code == 16]
FILLS = ("random", "zeros", "ones", "sign-bits")


def make_pages(
    layout: PageLayout, count: int, *, seed: int = 0, fill: str = "random"
) -> tuple[np.ndarray, np.ndarray | None]:
    """(pages, scales or None) of `layout`."""
    rng = np.random.default_rng([seed, layout.code, layout.rows])

    def fresh(width: int) -> np.ndarray:
        if fill == "random":
            return rng.integers(0, 256, (count, width), dtype=np.uint8)
        if fill == "sign-bits":  # only the top bit of each word: the weakest place of the digest
            return np.tile(np.array([0, 0, 0, 0x80], dtype=np.uint8), (count, width // 4))
        return np.full((count, width), 255 if fill == "ones" else 0, dtype=np.uint8)

    scales = fresh(layout.scale_page_bytes) if layout.two_tensors else None
    return fresh(layout.page_bytes), scales


def slow_digest(layout: PageLayout, page: bytes, scales: bytes, position: int) -> tuple[int, list]:
    """Page digest and row digests in plain Python integers, straight from the two formulas."""
    from dsv4doctor.kernels.coefficients import ALPHA, BETA, MASK64, mix64, page_origin

    def word(data: bytes, at: int) -> int:
        return int.from_bytes(data[at : at + 4], "little")

    rows = []
    for i in range(layout.rows):
        digest = 0
        for c in range(layout.row_words):
            if layout.two_tensors:
                at = (c // 4) * 16 * layout.rows + i * 16 + (c % 4) * 4
            else:
                at = (i * layout.row_words + c) * 4
            digest += BETA[c] * word(page, at)
        for k in range(layout.scale_words):
            if layout.two_tensors:
                place = (i % 16) * (layout.rows // 16) + i // 16
                scale = sum(scales[c * layout.rows + place] << 8 * c for c in range(4))
            else:
                scale = word(page, layout.scale_base + (i * layout.scale_words + k) * 4)
            if k == 1:  # a latent row's second scale word ends in the pad byte
                scale &= 0x00FFFFFF
            digest += BETA[144 + k] * scale
        rows.append(digest & MASK64)
    total = sum(a * r for a, r in zip(ALPHA, rows, strict=False))
    return mix64(total + page_origin(layout.tag, position)), rows

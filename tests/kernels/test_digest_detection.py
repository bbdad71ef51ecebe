"""Edits that a race or a bad copy can make: none leaves the digest as it was."""

from __future__ import annotations

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from kernel_cases import LAYOUTS, make_pages  # noqa: E402

from dsv4doctor.kernels import fast, reference  # noqa: E402
from dsv4doctor.kernels.coefficients import SCALE_COLUMN  # noqa: E402
from dsv4doctor.kernels.layouts import PageLayout, index_layout, latent_layout  # noqa: E402

BATCH = 512  # edited copies digested at once


def covered_bytes(layout: PageLayout) -> np.ndarray:
    """Places in a page that the digest covers: not padding."""
    values = np.arange(layout.rows * layout.row_words * 4)
    scales = layout.scale_base + np.arange(layout.rows * layout.scale_words * 4)
    if layout.two_tensors:
        return values
    if layout.scale_mask != 0xFFFFFFFF:
        scales = scales[scales % 8 != 7]
    return np.concatenate((values, scales))


def missed_flips(layout: PageLayout, page: np.ndarray, flips: np.ndarray) -> int:
    """How many of `flips` (byte·8 + bit) leave the digest of `page` as it was."""
    before = reference.accumulators_of(layout, reference.digest_pages(layout, page))
    missed = 0
    for start in range(0, len(flips), BATCH):
        part = flips[start : start + BATCH]
        copies = np.repeat(page, len(part), axis=0)
        copies[np.arange(len(part)), part // 8] ^= (1 << (part % 8)).astype(np.uint8)
        # Accumulators, so that only the bytes of the copies may differ, not their positions.
        found = reference.accumulators_of(layout, fast.digest(layout, copies)[0])
        missed += int((found == before).sum())
    return missed


@pytest.mark.parametrize(
    "layout",
    [index_layout("fp8"), index_layout("bf16"), index_layout("fp4"), latent_layout("c128")],
    ids=lambda layout: layout.name,
)
@pytest.mark.parametrize("fill", ["random", "zeros"])
def test_every_single_bit_flip_is_seen(layout: PageLayout, fill: str):
    page, _ = make_pages(layout, 1, fill=fill)
    places = covered_bytes(layout)
    flips = (places[:, None] * 8 + np.arange(8)).ravel()
    assert missed_flips(layout, page, flips) == 0


@numba.njit
def missed_swaps(words, rows, columns, scales, scale_at, alpha, beta, scale_beta, mask):
    """Swaps of two different words that leave the page's accumulator as it was, and all tried."""
    table = np.zeros(1, dtype=np.int64)
    out = np.zeros((1, rows), dtype=np.uint64)
    total = np.zeros(1, dtype=np.uint64)
    length = np.int64(len(words))
    fast.block_split(
        words, length, table, alpha, beta, rows, columns, scales, scale_at, scale_beta, mask,
        out, total,
    )  # fmt: skip
    before = total[0]
    missed = 0
    tried = 0
    for i in range(length):
        for j in range(i):
            if words[i] == words[j]:
                continue
            words[i], words[j] = words[j], words[i]
            fast.block_split(
                words, length, table, alpha, beta, rows, columns, scales, scale_at, scale_beta,
                mask, out, total,
            )  # fmt: skip
            tried += 1
            if total[0] == before:
                missed += 1
            words[i], words[j] = words[j], words[i]
    return missed, tried


@pytest.mark.parametrize("name", ["fp4", "fp8", pytest.param("bf16", marks=pytest.mark.soak)])
def test_every_swap_of_two_words_is_seen(name: str):
    layout = index_layout(name)
    page, _ = make_pages(layout, 1)
    words = page[0].view(np.uint32).copy()
    missed, tried = missed_swaps(
        words,
        layout.rows,
        layout.row_words,
        layout.scale_words,
        layout.scale_base // 4,
        reference.ALPHA_U64,
        reference.BETA_U64,
        SCALE_COLUMN,
        np.uint32(layout.scale_mask),
    )
    assert missed == 0
    assert tried > 0.99 * len(words) * (len(words) - 1) / 2


@numba.njit
def missed_edits(words, edits, seed, rows, columns, scales, scale_at, alpha, beta, scale_beta):
    """Random edits of 1 to 16 words, by addition or flipped bits, that stay unseen."""
    np.random.seed(seed)
    table = np.zeros(1, dtype=np.int64)
    out = np.zeros((1, rows), dtype=np.uint64)
    total = np.zeros(1, dtype=np.uint64)
    mask = np.uint32(0xFFFFFFFF)
    length = np.int64(len(words))
    original = words.copy()
    fast.block_split(
        words, length, table, alpha, beta, rows, columns, scales, scale_at, scale_beta, mask,
        out, total,
    )  # fmt: skip
    before = total[0]
    missed = 0
    for _ in range(edits):
        touched = np.random.randint(1, 17)
        for _k in range(touched):
            at = np.random.randint(0, length)
            if np.random.randint(0, 2):
                words[at] ^= np.uint32(1) << np.uint32(np.random.randint(0, 32))
            else:
                words[at] += np.uint32(np.random.randint(1, 1 << 31))
        fast.block_split(
            words, length, table, alpha, beta, rows, columns, scales, scale_at, scale_beta, mask,
            out, total,
        )  # fmt: skip
        if total[0] == before:
            missed += 1
            words[:] = original
    return missed


@pytest.mark.parametrize("name", ["fp8", "bf16", "fp4"])
def test_a_million_random_edits_are_seen(name: str):
    """The edits pile up, so a million different pages are told from the first."""
    layout = index_layout(name)
    page, _ = make_pages(layout, 1, seed=3)
    missed = missed_edits(
        page[0].view(np.uint32).copy(),
        1_000_000 if name == "fp8" else 300_000,
        17,
        layout.rows,
        layout.row_words,
        layout.scale_words,
        layout.scale_base // 4,
        reference.ALPHA_U64,
        reference.BETA_U64,
        SCALE_COLUMN,
    )
    assert missed == 0


def edits(layout: PageLayout, page: np.ndarray, other: np.ndarray) -> dict[str, np.ndarray]:
    """Pages as faulty copies leave them."""
    half = layout.page_bytes // 2
    return {
        "another page": other,
        "zeros": np.zeros_like(page),
        "ones": np.full_like(page, 255),
        "first half new": np.concatenate((page[:, :half], other[:, half:]), axis=1),
        "second half new": np.concatenate((other[:, :half], page[:, half:]), axis=1),
        "shift by 1": np.roll(page, 1, axis=1),
        "shift by 4": np.roll(page, 4, axis=1),
        "shift by 16": np.roll(page, -16, axis=1),
        "one row zeroed": _with(page, slice(layout.row_words * 4), 0),
        "one scale word lost": _with(page, slice(layout.scale_base, layout.scale_base + 4), 0),
        "rows reversed": _rows_reversed(layout, page),
    }


def _with(page: np.ndarray, place: slice, value: int) -> np.ndarray:
    edited = page.copy()
    edited[:, place] = value
    return edited


def _rows_reversed(layout: PageLayout, page: np.ndarray) -> np.ndarray:
    end = layout.rows * layout.row_words * 4
    rows = page[:, :end].reshape(1, layout.rows, -1)[:, ::-1].reshape(1, -1)
    return np.concatenate((rows, page[:, end:]), axis=1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_faulty_copies_are_seen(layout: PageLayout):
    pages, scales = make_pages(layout, 2, seed=5)
    tail = None if scales is None else scales[:1]
    before = fast.digest(layout, pages[:1], tail)[0]
    for name, edited in edits(layout, pages[:1], pages[1:]).items():
        assert fast.digest(layout, np.ascontiguousarray(edited), tail)[0] != before, name
    if scales is not None:
        assert fast.digest(layout, pages[:1], scales[1:])[0] != before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_equal_pages_at_other_positions_have_other_digests(layout: PageLayout):
    pages, scales = make_pages(layout, 1)
    three = np.repeat(pages, 3, axis=0)
    tails = None if scales is None else np.repeat(scales, 3, axis=0)
    digests = fast.digest(layout, three, tails)[0]
    assert len(set(digests.tolist())) == 3
    assert len(set(reference.accumulators_of(layout, digests).tolist())) == 1


def test_additions_that_cancel_in_a_plain_sum_are_seen():
    """(+d, -2d, +d) on neighbouring words: what Fletcher's checksum never sees."""
    layout = index_layout("fp8")
    page, _ = make_pages(layout, 1, seed=9)
    before = fast.digest(layout, page)[0]
    rng = np.random.default_rng(1)
    for _ in range(3000):
        edited = page.copy()
        words = edited[0].view(np.uint32)
        at, d = int(rng.integers(0, len(words) - 2)), int(rng.integers(1, 2**32))
        words[at : at + 3] += np.array([d, -2 * d % 2**32, d], dtype=np.uint32)
        assert fast.digest(layout, edited)[0] != before

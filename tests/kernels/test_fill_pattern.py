"""Patterns: kernel, torch and numpy write the same, and every unit says where it is from."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from dsv4doctor.kernels.fill_pattern import fill_pattern, fill_pattern_reference  # noqa: E402
from dsv4doctor.kernels.pattern import decode_pattern, pattern_pages  # noqa: E402
from dsv4doctor.kernels.stamp import Stamp  # noqa: E402

STAMP = Stamp(generation=4095, layer=60, page=70_000, place=3, seed=9)


@pytest.mark.parametrize("page_bytes", [16, 256, 4352, 8448, 16384, 37440])
@pytest.mark.parametrize("count", [1, 3])
def test_every_path_writes_the_same(page_bytes: int, count: int, device: str):
    expected = pattern_pages(count, page_bytes, STAMP)
    for fill in (fill_pattern, fill_pattern_reference):
        out = torch.zeros(count, page_bytes, dtype=torch.uint8, device=device)
        assert (fill(out, STAMP).cpu().numpy() == expected).all()


def test_only_the_pages_of_a_wider_pool_are_written(device: str):
    pool = torch.zeros(3, 4352 + 64, dtype=torch.uint8, device=device)
    fill_pattern(pool[:, :4352], STAMP)
    assert (pool[:, :4352].cpu().numpy() == pattern_pages(3, 4352, STAMP)).all()
    assert not pool[:, 4352:].any()


def test_an_empty_pool_is_left_alone(device: str):
    assert fill_pattern(torch.zeros(0, 8448, dtype=torch.uint8, device=device), STAMP).shape[0] == 0


def test_units_say_where_they_are_from():
    found = decode_pattern(pattern_pages(3, 4352, STAMP), seed=9)
    assert (found.generation == 4095).all()
    assert (found.layer == 60).all()
    assert (found.page == 70_000 + np.arange(3)[:, None]).all()
    assert (found.place == 3 + np.arange(544)).all()


def test_a_flipped_bit_or_another_seed_decodes_to_nothing_in_range():
    pages = pattern_pages(1, 8448, Stamp())
    for bit in range(64):
        edited = pages.copy()
        edited[0, bit // 8] ^= 1 << (bit % 8)
        first = decode_pattern(edited)
        assert (first.page[0, 0], first.place[0, 0]) != (0, 0)
    assert (decode_pattern(pages, seed=1).page > 1000).mean() > 0.99


def test_two_fills_share_no_unit():
    one = pattern_pages(2, 8448, Stamp()).view(np.uint64)
    for stamp in (Stamp(generation=1), Stamp(layer=1), Stamp(page=2), Stamp(place=1056)):
        assert not np.isin(pattern_pages(2, 8448, stamp).view(np.uint64), one).any()


@pytest.mark.parametrize(
    "fields", [{"generation": 4096}, {"layer": 256}, {"page": -1}, {"place": 1 << 20}]
)
def test_numbers_that_do_not_fit_are_refused(fields: dict[str, int]):
    with pytest.raises(ValueError, match="does not fit"):
        Stamp(**fields)


@pytest.mark.parametrize("shape", [(2, 24), (16,)])
def test_shapes_that_cannot_be_filled_are_named(shape: tuple[int, ...]):
    with pytest.raises(ValueError, match="patterns fill"):
        fill_pattern(torch.zeros(shape, dtype=torch.uint8), STAMP)

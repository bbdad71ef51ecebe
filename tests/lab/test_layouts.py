"""Page layouts byte by byte, and what each number format keeps."""

from __future__ import annotations

import numpy as np
import pytest

from dsv4doctor.lab.latents import (
    C4_PAGE_BYTES,
    MAIN_PAGE_BYTES,
    decode_tokens,
    encode_main_page,
)
from dsv4doctor.lab.layouts import BF16, FP4, FP8, INDEX_FORMATS, IndexFormat, to_bf16, to_e4m3
from dsv4doctor.lab.tokens import encode


def keys(pages: int = 3) -> np.ndarray:
    made = np.random.default_rng(7).standard_normal((pages, 64, 128)).astype(np.float32)
    return made / np.linalg.norm(made, axis=2, keepdims=True)


@pytest.mark.parametrize(
    ("form", "page_bytes", "relative"), [(FP8, 8448, 0.04), (BF16, 16384, 0.003), (FP4, 4352, 0.2)]
)
def test_keys_come_back(form: IndexFormat, page_bytes: int, relative: float) -> None:
    pages = form.encode(keys())
    assert pages.shape == (3, page_bytes)
    assert pages.dtype == np.uint8
    assert form.page_bytes == page_bytes
    error = np.linalg.norm(form.decode(pages) - keys(), axis=2)
    assert error.max() < relative
    again = form.decode(form.encode(form.decode(pages)))
    assert np.allclose(again, form.decode(pages), rtol=1e-6), "what is stored is a fixed point"


def test_fp8_has_its_scales_behind_all_values() -> None:
    page = FP8.encode(keys(1))[0]
    slot = 5
    scale = page[8192 + slot * 4 : 8192 + slot * 4 + 4].view("<f4")[0]
    assert scale == pytest.approx(np.abs(keys(1)[0, slot]).max() / 448)
    strongest = int(np.abs(keys(1)[0, slot]).argmax())
    assert page[slot * 128 + strongest] & 0x7F == 0x7E, "the greatest value is 448"


def test_bf16_is_the_upper_half_of_each_float() -> None:
    page = BF16.encode(keys(1))[0]
    assert (page[9 * 256 : 10 * 256].view("<u2") == to_bf16(keys(1)[0, 9])).all()


def test_fp4_has_the_even_element_in_the_low_nibble() -> None:
    chosen = np.zeros((1, 64, 128), dtype=np.float32)
    chosen[0, 3, 0], chosen[0, 3, 1] = 6.0, -1.5
    page = FP4.encode(chosen)[0]
    assert page[3 * 64] == 0xB7
    assert page[4096 + 3 * 4] == 127, "scale 2^0 for a block whose greatest value is 6"
    assert page[4096 + 3 * 4 + 1] < 127


def test_e4m3_rounds_to_nearest_even() -> None:
    given = np.array([1.0, 1.0625, 1.1875, 448.0, 500.0, -0.5, 2.0**-9, 0.0], dtype=np.float32)
    assert to_e4m3(given).tolist() == [0x38, 0x38, 0x3A, 0x7E, 0x7E, 0xB0, 0x01, 0x00]


def test_bf16_rounds_to_nearest_even() -> None:
    bits = np.array([0x3F808000, 0x3F818000, 0x3F808001], dtype=np.uint32)
    assert to_bf16(bits.view(np.float32)).tolist() == [0x3F80, 0x3F82, 0x3F81]


def test_latent_slots_are_planar_and_hold_their_tokens() -> None:
    tokens = encode("It was the painter who counted the upper stairway. " * 25)[:256]
    page = encode_main_page(tokens, 4)
    assert len(page) == MAIN_PAGE_BYTES == 39168
    assert set(page[:448].tolist()) <= {0x38, 0xB8}, "plus and minus one"
    scales = page[64 * 576 : 64 * 584].reshape(64, 8)
    assert (scales[:, :7] == 127).all()
    assert (scales[:, 7] == 0).all()
    assert not page[64 * 584 : C4_PAGE_BYTES].any(), "padding up to a multiple of 576"
    first_angle = page[448:450].view("<u2")
    assert first_angle[0] == to_bf16(np.array([np.cos(4 * 64)], dtype=np.float32))[0]
    assert (decode_tokens(page[None, :]) == tokens).all()


def test_a_partial_page_is_padded_with_nothing() -> None:
    tokens = encode("short")
    back = decode_tokens(encode_main_page(tokens, 0)[None, :])
    assert (back[: len(tokens)] == tokens).all()
    assert not back[len(tokens) :].any()


def test_formats_are_found_by_name() -> None:
    assert set(INDEX_FORMATS) == {"fp8", "bf16", "fp4"}

"""The conditions from which the digest's certainties follow, checked on the constants in use."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsv4doctor.kernels import reference
from dsv4doctor.kernels.coefficients import (
    ALPHA,
    BETA,
    MAX_ROWS,
    MAX_SCALE_WORDS,
    SCALE_COLUMN,
    accumulator_of,
    mix64,
    page_origin,
    unmix64,
)
from dsv4doctor.kernels.layouts import EVERY_LAYOUT

WORD64 = st.integers(0, 2**64 - 1)


def test_there_is_a_coefficient_for_every_word_of_every_layout():
    assert len(ALPHA) == MAX_ROWS == max(layout.rows for layout in EVERY_LAYOUT)
    assert len(BETA) == SCALE_COLUMN + MAX_SCALE_WORDS
    assert max(layout.row_words for layout in EVERY_LAYOUT) == SCALE_COLUMN


def test_products_are_odd_and_differ_by_less_than_two_to_the_33():
    """a_i ± a_j is divisible by at most 2^32: all a_i and all -a_i are distinct modulo 2^33."""
    products = (reference.ALPHA_U64[:, None] * reference.BETA_U64[None, :]).ravel()
    assert (products & np.uint64(1)).all()
    low = np.uint64(2**33 - 1)
    both = np.sort(np.concatenate((products & low, (np.uint64(0) - products) & low)))
    assert (np.diff(both) > 0).all()


def test_layouts_have_different_tags():
    tags = [layout.tag for layout in EVERY_LAYOUT]
    assert len(set(tags)) == len(tags)


@given(WORD64)
def test_mixing_is_a_bijection(value):
    assert unmix64(mix64(value)) == value
    assert mix64(unmix64(value)) == value


@given(st.lists(WORD64, min_size=1, max_size=9))
def test_mixing_of_arrays_equals_mixing_of_integers(values):
    array = np.array(values, dtype=np.uint64)
    assert reference.mix64(array).tolist() == [mix64(v) for v in values]
    assert reference.unmix64(array).tolist() == [unmix64(v) for v in values]


@given(WORD64, WORD64, st.integers(0, 2**30))
def test_the_accumulator_is_recoverable_from_the_digest(accumulator, tag, position):
    digest = mix64(accumulator + page_origin(tag, position))
    assert accumulator_of(digest, tag, position) == accumulator


def test_folding_depends_on_order_and_length():
    one = np.array([1, 2, 3], dtype=np.uint64)
    assert reference.fold(one) != reference.fold(one[::-1])
    assert reference.fold(one) != reference.fold(one[:2])
    assert reference.fold(one[:0]) == 0

"""Percentiles lie within the data, and there is none where there are no data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4doctor.rate import Quantiles
from dsv4doctor.stats.percentiles import quantiles

SAMPLES = st.lists(st.floats(min_value=0, max_value=1e9), min_size=1, max_size=50)


def test_no_samples_give_no_value() -> None:
    assert quantiles([]) == Quantiles(p50=None, p90=None, p99=None, n=0)


def test_linear_method() -> None:
    assert quantiles(range(1, 12)) == Quantiles(p50=6.0, p90=10.0, p99=pytest.approx(10.9), n=11)


def test_a_value_that_is_no_number_is_no_sample() -> None:
    assert quantiles([1.0, float("nan"), 3.0]) == quantiles([3.0, 1.0])


@given(SAMPLES)
def test_ordered_and_within_the_data(samples: list[float]) -> None:
    found = quantiles(samples)
    assert found.p50 is not None
    assert found.p90 is not None
    assert found.p99 is not None
    assert min(samples) <= found.p50 <= found.p90 <= found.p99 <= max(samples)
    assert found.p50 == pytest.approx(float(np.median(samples)))

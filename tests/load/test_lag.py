"""The lag meter against exact percentiles, and the verdict on timings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4doctor.load.events import ClientLag
from dsv4doctor.load.lag import LagMeter, are_timings_valid


def meter_of(lags: list[float]) -> LagMeter:
    meter = LagMeter()
    for lag in lags:
        meter.note(lag)
    return meter


@given(st.lists(st.floats(0.06, 5000.0), min_size=1, max_size=200))
def test_percentiles_are_at_most_a_bin_too_high(lags: list[float]) -> None:
    summary = meter_of(lags).summary()
    ordered = sorted(lags)
    for share, shown in ((0.5, summary.p50_ms), (0.99, summary.p99_ms)):
        rank = next(i for i in range(len(ordered)) if i + 1 >= share * len(ordered))
        assert ordered[rank] <= shown <= ordered[rank] * 1.12 + 1e-9
    assert summary.max_ms == ordered[-1]
    assert summary.n == len(lags)


@given(st.lists(st.floats(0, 100)), st.lists(st.floats(0, 100)))
def test_merging_equals_measuring_together(one: list[float], two: list[float]) -> None:
    merged = LagMeter()
    for part in (meter_of(one), meter_of(two)):
        merged.merge(part.counts, part.max_ms)
    assert merged.summary() == meter_of(one + two).summary()


@pytest.mark.parametrize(("p50", "p99", "valid"), [
    (0.5, 3.0, True), (10.0, 11.0, False), (0.5, 19.0, False), (None, None, True),
])  # fmt: skip
def test_late_clients_void_their_timings(p50, p99, valid) -> None:
    assert are_timings_valid(ClientLag(p50_ms=p50, p99_ms=p99)) == valid

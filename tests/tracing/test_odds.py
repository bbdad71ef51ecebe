"""The table of corrupted responses and stale reads, against scipy."""

from __future__ import annotations

import pytest
from scipy.stats import fisher_exact

from dsv4doctor.tracing.odds import Odds, odds_of


@pytest.mark.parametrize(
    "cells", [(8, 0, 1, 128), (27, 0, 14, 96), (3, 2, 4, 50), (0, 5, 5, 20), (1, 1, 1, 1)]
)
def test_the_p_value_is_fishers(cells: tuple[int, int, int, int]) -> None:
    a, b, c, d = cells
    odds = Odds(corrupted_with_stale=a, corrupted_without=b, clean_with_stale=c, clean_without=d)
    expected = fisher_exact([[a, b], [c, d]], alternative="greater")
    assert odds.p_value == pytest.approx(expected.pvalue)
    if 0 not in cells:
        assert odds.ratio == pytest.approx(expected.statistic)


def test_an_empty_row_has_no_odds() -> None:
    assert Odds(clean_without=100).ratio is None
    assert Odds(clean_without=100).p_value is None
    assert Odds(clean_without=100, clean_with_stale=3).ratio is None


def test_only_judged_responses_count_and_those_without_a_stale_read_are_named() -> None:
    base = {"aborted": False, "failure": None, "corrupted": False}
    records = [
        {**base, "id": "s0-t0", "request_id": "a", "corrupted": True},
        {**base, "id": "s0-t1", "request_id": "b", "corrupted": True},
        {**base, "id": "s0-t2", "request_id": "c"},
        {**base, "id": "s0-t3", "request_id": "a", "aborted": True},
        {**base, "id": "s0-t4", "request_id": "a", "failure": {"kind": "timeout"}},
    ]
    odds = odds_of(records, {"a"})
    assert (odds.corrupted_with_stale, odds.corrupted_without) == (1, 1)
    assert (odds.clean_with_stale, odds.clean_without) == (0, 1)
    assert odds.named_without == ("s0-t1",)
    assert odds.responses == 3

"""Intervals over repeated blocks: known values, and the promise over many seeded runs."""

from __future__ import annotations

import pytest

from dsv4doctor.stats.blocks import Trend, compare_blocks, mean_interval

# 2.776 is Student's 97.5 % point on 4 degrees of freedom (any table).
T_4 = 2.7764451


def test_the_interval_of_a_mean() -> None:
    found = mean_interval([9.0, 10.0, 11.0, 10.0, 10.0])
    assert found is not None
    assert found.mean == 10.0
    half = T_4 * (0.5 / 5) ** 0.5
    assert (found.low, found.high) == (pytest.approx(10 - half), pytest.approx(10 + half))


def test_one_block_has_no_interval_and_none_no_mean() -> None:
    alone = mean_interval([3.0])
    assert alone is not None
    assert (alone.mean, alone.low, alone.n) == (3.0, None, 1)
    assert mean_interval([]) is None


@pytest.mark.parametrize(
    ("before", "now", "more_is_better", "trend"),
    [
        pytest.param((100, 101, 99), (80, 81, 79), True, Trend.WORSE, id="slower"),
        pytest.param((100, 101, 99), (80, 81, 79), False, Trend.BETTER, id="quicker"),
        pytest.param((80, 81, 79), (100, 101, 99), True, Trend.BETTER, id="faster"),
        pytest.param((80, 81, 79), (100, 101, 99), False, Trend.WORSE, id="later"),
        pytest.param((100, 100.2, 99.8), (100.1, 100.3, 99.9), True, Trend.SAME, id="same"),
        pytest.param((100, 100.2, 99.8), (98.1, 98.3, 97.9), True, Trend.SAME, id="within-margin"),
        pytest.param((100, 130, 70), (95, 120, 80), True, Trend.UNDECIDED, id="noisy"),
        pytest.param((100, 100), (100, 100), True, Trend.SAME, id="no-spread"),
    ],
)
def test_trends(
    before: tuple[float, ...], now: tuple[float, ...], more_is_better: bool, trend: Trend
) -> None:
    found = compare_blocks(before, now, more_is_better=more_is_better, margin=0.05)
    assert found.verdict is trend
    assert found.low is not None
    assert found.high is not None
    assert found.change is not None
    assert found.low <= found.change <= found.high


def test_never_from_one_number() -> None:
    found = compare_blocks([100.0], [50.0, 51.0], more_is_better=True, margin=0.05)
    assert (found.verdict, found.low) == (Trend.UNDECIDED, None)
    assert "one block" in found.reason
    assert (found.before, found.now) == (100.0, 50.5)


def test_undecided_says_how_many_blocks_would_do() -> None:
    noisy = compare_blocks([100, 112, 90], [98, 109, 91], more_is_better=True, margin=0.05)
    assert noisy.verdict is Trend.UNDECIDED
    assert noisy.blocks_needed is not None
    assert noisy.blocks_needed > 3


def test_values_without_a_logarithm_are_not_compared() -> None:
    found = compare_blocks([1.0, 0.0], [1.0, 1.0], more_is_better=True, margin=0.05)
    assert found.verdict is Trend.UNDECIDED
    assert found.reason


def test_runs_that_are_alike_are_rarely_called_different() -> None:
    """At 95 %, no more than one null run in twenty: 1,200 seeded ones, 5 blocks against 4."""
    import numpy as np

    draw = np.random.default_rng(20261129)
    runs = 1200
    wrong = 0
    for _ in range(runs):
        before = np.exp(draw.normal(0.0, 0.03, 5))
        now = np.exp(draw.normal(0.0, 0.06, 4))
        found = compare_blocks(list(before), list(now), more_is_better=True, margin=0.0)
        wrong += found.verdict in (Trend.BETTER, Trend.WORSE)
    # Four standard deviations of a binomial at 0.05 above it.
    assert wrong / runs <= 0.05 + 4 * (0.05 * 0.95 / runs) ** 0.5


def test_a_real_slowdown_is_seen() -> None:
    import numpy as np

    draw = np.random.default_rng(7)
    seen = 0
    for _ in range(200):
        before = 500 * np.exp(draw.normal(0.0, 0.01, 5))
        now = 450 * np.exp(draw.normal(0.0, 0.01, 5))
        found = compare_blocks(list(before), list(now), more_is_better=True, margin=0.05)
        seen += found.verdict is Trend.WORSE
    assert seen >= 195

"""Plans keep what they promise: the power is reached, and with one session fewer it is not."""

from __future__ import annotations

import numpy as np
import pytest

from dsv4doctor.errors import UsageError
from dsv4doctor.stats.compare import difference, exact_test
from dsv4doctor.stats.power import (
    detectable,
    fixed_power,
    plan,
    sessions_fixed,
    sessions_to_equate,
)
from dsv4doctor.stats.sequential import pair_evidence
from dsv4doctor.stats.stopping import stopping_pairs


@pytest.mark.parametrize(
    ("p0", "p1"), [(0.18, 0.01), (0.15, 0.02), (0.18, 0.06), (0.5, 0.3), (1.0, 0.0), (0.0, 0.1)]
)
def test_fixed_is_the_least_number(p0: float, p1: float) -> None:
    n = sessions_fixed(p0, p1, 0.05, 0.8)
    assert fixed_power(n, p0, p1, 0.05) >= 0.8 > fixed_power(n - 1, p0, p1, 0.05)


def test_fixed_power_is_the_share_of_significant_runs() -> None:
    rng = np.random.default_rng(20261129)
    n, runs = 69, 1_000
    tables = zip(rng.binomial(n, 0.15, runs), rng.binomial(n, 0.02, runs), strict=True)
    share = np.mean([exact_test(int(k), n, int(j), n)[0] <= 0.05 for k, j in tables])
    assert share == pytest.approx(fixed_power(n, 0.15, 0.02, 0.05), abs=0.04)


def test_power_under_no_difference_is_the_error() -> None:
    for n in (60, 1_000, 1_500):
        assert fixed_power(n, 0.15, 0.15, 0.05) <= 0.05 + 1e-9


def test_the_tests_meet_where_one_takes_over() -> None:
    """Fisher's, above 1,000 sessions, sees a little less than Boschloo's, never more."""
    small, large = fixed_power(1_000, 0.05, 0.08, 0.05), fixed_power(1_001, 0.05, 0.08, 0.05)
    assert large < small < large + 0.02


def test_the_case_of_the_contract() -> None:
    found = plan(0.18, 0.01)
    assert found.fixed == 43
    assert 35 <= found.sequential_mean <= 50
    assert found.sequential_mean < found.sequential_at_power < found.sequential_p95 <= 100
    assert plan(0.18, 0.01) == found
    assert plan(0.01, 0.18).fixed == found.fixed


@pytest.mark.parametrize(("p0", "p1"), [(0.15, 0.02), (0.3, 0.1)])
def test_simulated_stops_are_those_of_the_test(p0: float, p1: float) -> None:
    """The walk over discordant pairs alone stops where the test itself does, run pair by pair."""
    rng = np.random.default_rng(5)
    a, b = rng.random((1_000, 120)) < p0, rng.random((1_000, 120)) < p1
    stopped = np.mean([pair_evidence(a[i], b[i]).e_value >= 20 for i in range(len(a))])
    planned = np.mean(stopping_pairs(p0, p1, 0.05, 1) <= 120)
    assert stopped == pytest.approx(planned, abs=0.05)


def test_rare_rates_need_tens_of_thousands() -> None:
    found = plan(0.002, 0.001)
    assert 20_000 < found.fixed < 30_000
    assert found.sequential_p95 > found.fixed


def test_more_power_and_less_alpha_cost_more() -> None:
    base = plan(0.18, 0.06)
    for dearer in (plan(0.18, 0.06, power=0.95), plan(0.18, 0.06, alpha=0.01)):
        assert dearer.fixed > base.fixed
        assert dearer.sequential_at_power > base.sequential_at_power


def test_backwards() -> None:
    """With 33 sessions an arm not even a full cure of 18 % can be seen with power 0.8."""
    assert detectable(33, 0.18).lower is None
    seen = detectable(60, 0.18)
    assert seen.lower is not None
    assert seen.higher is not None
    assert sessions_fixed(0.18, seen.lower, 0.05, 0.8) <= 60
    assert fixed_power(60, 0.18, seen.higher, 0.05) >= 0.8
    assert fixed_power(60, 0.18, seen.higher - 0.01, 0.05) < 0.8
    assert detectable(60, 0.0).lower is None


@pytest.mark.parametrize(("rate", "sessions"), [(0.0, 381), (0.02, 4119)])
def test_sessions_to_equate(rate: float, sessions: int) -> None:
    n = sessions_to_equate(rate, 0.01)
    assert n == sessions
    assert difference(rate * n, n, rate * n, n).high <= 0.01


@pytest.mark.parametrize(
    ("p0", "p1", "alpha", "power", "named"),
    [
        (0.1, 0.1, 0.05, 0.8, "both 0.1"),
        (1.5, 0.1, 0.05, 0.8, "--p0"),
        (0.1, -0.1, 0.05, 0.8, "--p1"),
        (0.1, float("nan"), 0.05, 0.8, "--p1"),
        (0.1, 0.2, 0.0, 0.8, "--alpha"),
        (0.1, 0.2, 0.05, 1.0, "--power"),
        (0.3, 0.3000001, 0.05, 0.8, "too close"),
    ],
)
def test_what_cannot_be_planned_is_named(
    p0: float, p1: float, alpha: float, power: float, named: str
) -> None:
    with pytest.raises(UsageError, match=named):
        plan(p0, p1, alpha, power)

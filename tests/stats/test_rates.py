"""The promise of an interval is its coverage: measured here over seeded runs, not assumed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4doctor.stats.rates import (
    clean_bound,
    clopper_pearson,
    response_rate,
    session_rate,
    sessions_to_prove,
    upper_bound_clean,
)

RATES = (0.0, 0.001, 0.02, 0.15, 0.5)
LEVEL = 0.95
Draw = Callable[[np.random.Generator, float, int, int], np.ndarray]


def _independent(rng: np.random.Generator, p: float, sessions: int, turns: int) -> np.ndarray:
    return rng.binomial(turns, p, sessions)


def _one_fate(rng: np.random.Generator, p: float, sessions: int, turns: int) -> np.ndarray:
    return turns * rng.binomial(1, p, sessions)


def _clustered(rng: np.random.Generator, p: float, sessions: int, turns: int) -> np.ndarray:
    """Session rates drawn from a beta: correlation 0.3 within a session."""
    if p == 0:
        return np.zeros(sessions, dtype=np.int64)
    size = 0.7 / 0.3
    return rng.binomial(turns, rng.beta(p * size, (1 - p) * size, sessions))


def _last_turns(rng: np.random.Generator, p: float, sessions: int, turns: int) -> np.ndarray:
    """Twice the rate in the later half of the turns, none in the first: a growing context."""
    return rng.binomial(turns // 2, 2 * p, sessions)


def _least_coverage(runs: int) -> float:
    """The level less three standard errors of a simulation of `runs` runs."""
    return LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / runs)


@pytest.mark.parametrize("p", RATES)
@pytest.mark.parametrize("n", [1, 10, 60, 120, 20_000])
def test_session_rate_covers(p: float, n: int) -> None:
    """Exact: the probabilities of all counts whose interval misses `p` sum to 5 % at most."""
    from scipy.stats import binom

    likely = range(max(0, int(n * p) - 600), min(n, int(n * p) + 600) + 1)
    missed = 0.0
    for k in likely:
        rate = session_rate(k, n)
        if not rate.low <= p <= rate.high:
            missed += float(binom.pmf(k, n, p))
    assert missed <= 1 - LEVEL + 1e-9


@pytest.mark.parametrize("draw", [_independent, _clustered, _one_fate, _last_turns])
@pytest.mark.parametrize("p", RATES)
@pytest.mark.parametrize("sessions", [30, 120])
def test_response_rate_covers(draw: Draw, p: float, sessions: int) -> None:
    runs, turns = 400, 6
    rng = np.random.default_rng(20261129)
    hits = 0
    for _ in range(runs):
        corrupted = draw(rng, p, sessions, turns)
        rate = response_rate(np.column_stack((corrupted, np.full(sessions, turns))))
        hits += rate.low <= p <= rate.high
    assert hits / runs >= _least_coverage(runs)


@pytest.mark.parametrize("p", [0.02, 0.15])
def test_response_rate_covers_sessions_of_unequal_length(p: float) -> None:
    runs, sessions = 400, 60
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(runs):
        turns = rng.integers(1, 20, sessions)
        fate = rng.beta(p, 1 - p, sessions)
        rate = response_rate(np.column_stack((rng.binomial(turns, fate), turns)))
        hits += rate.low <= p <= rate.high
    assert hits / runs >= _least_coverage(runs)


def test_a_binomial_over_responses_would_not_cover() -> None:
    """The reason for the clustering: here the naive interval misses far too often."""
    runs, sessions, turns, p = 400, 60, 6, 0.15
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(runs):
        low, high = clopper_pearson(int(_one_fate(rng, p, sessions, turns).sum()), sessions * turns)
        hits += low <= p <= high
    assert hits / runs < 0.7


def test_known_values() -> None:
    """0 of 60 and 11 of 60 as tables of Clopper and Pearson have them."""
    assert session_rate(0, 60).high == pytest.approx(0.0596, abs=5e-5)
    assert session_rate(11, 60).low == pytest.approx(0.0952, abs=5e-5)
    assert session_rate(11, 60).high == pytest.approx(0.3044, abs=5e-5)
    assert session_rate(60, 60).low == pytest.approx(1 - 0.0596, abs=5e-5)


def test_nothing_observed_is_no_value() -> None:
    for rate in (session_rate(0, 0), response_rate([]), response_rate([(0, 0), (0, 0)])):
        assert rate.estimate is None
        assert (rate.low, rate.high, rate.n) == (0.0, 1.0, 0)


@pytest.mark.parametrize(("k", "n"), [(-1, 5), (6, 5), (1, 0)])
def test_counts_that_cannot_be_are_refused(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="no count"):
        session_rate(k, n)
    with pytest.raises(ValueError, match="0 <= corrupted"):
        response_rate([(k, n)])


def test_few_corrupted_sessions_use_the_session_bound() -> None:
    rate = response_rate([(6, 6)] * 3 + [(0, 6)] * 57)
    assert "each session one observation" in rate.method
    assert (rate.low, rate.high) == pytest.approx(clopper_pearson(3, 60))
    assert (rate.k, rate.n) == (18, 360)


def test_independent_responses_are_not_punished() -> None:
    """15 % of responses, one each: close to the binomial over responses, never narrower."""
    rate = response_rate([(1, 6)] * 54 + [(0, 6)] * 6)
    assert "design effect" in rate.method
    low, high = clopper_pearson(54, 360)
    assert low - 0.01 < rate.low <= low
    assert high <= rate.high < high + 0.01


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda t: (min(t), max(t)))))
def test_interval_holds_its_estimate(per_session: list[tuple[int, int]]) -> None:
    rate = response_rate(per_session)
    assert 0.0 <= rate.low <= rate.high <= 1.0
    if rate.estimate is not None:
        assert rate.low <= rate.estimate <= rate.high


def test_a_hundred_thousand_sessions() -> None:
    """A rate of three in ten thousand has an interval of that order, not zero and not one."""
    table = np.zeros((100_000, 2), dtype=np.int64)
    table[:, 1] = 6
    table[:180, 0] = 1
    rate = response_rate(table)
    assert 0.0002 < rate.low < rate.estimate < rate.high < 0.0004
    assert session_rate(180, 100_000).high < 0.0022


def test_clean_runs_say_what_they_prove() -> None:
    assert upper_bound_clean(60) == pytest.approx(0.0487, abs=5e-5)
    assert upper_bound_clean(120) == pytest.approx(0.0247, abs=5e-5)
    assert upper_bound_clean(0) == 1.0
    assert clean_bound(60).to_prove == ((0.01, 299), (0.001, 2995))


@pytest.mark.parametrize("rate", [0.5, 0.05, 0.01, 0.001, 3e-4])
def test_sessions_to_prove_is_the_least_number(rate: float) -> None:
    n = sessions_to_prove(rate)
    assert upper_bound_clean(n) <= rate < upper_bound_clean(n - 1)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1])
def test_no_number_of_sessions_proves_zero(rate: float) -> None:
    with pytest.raises(ValueError, match="proves"):
        sessions_to_prove(rate)


def test_importing_is_cheap() -> None:
    """scipy and numpy come with the first call, not with the import."""
    code = (
        "import sys, dsv4doctor.stats.rates, dsv4doctor.stats.percentiles;"
        "print(any(name in sys.modules for name in ('numpy', 'scipy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

"""The interval of a difference and the exact tests, against their references and their promises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, boschloo_exact, fisher_exact
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep

from dsv4doctor.stats.boschloo import boschloo_p_value, rejection_boundary
from dsv4doctor.stats.compare import LARGEST_TABLE, difference, exact_test, holm

RATES = (0.0, 0.001, 0.02, 0.15, 0.5)
TABLES = [(6, 33, 2, 33), (11, 60, 0, 60), (0, 5, 1, 1), (3, 40, 0, 17), (18, 120, 2, 120)]
TABLES += [(17, 40, 30, 55), (0, 3, 2, 90), (1, 1, 0, 1), (0, 60, 0, 60), (60, 60, 60, 60)]


@pytest.mark.parametrize("table", TABLES)
def test_difference_is_newcombes(table: tuple[int, int, int, int]) -> None:
    k1, n1, k2, n2 = table
    low, high = confint_proportions_2indep(k1, n1, k2, n2, method="newcomb", compare="diff")
    found = difference(k1, n1, k2, n2)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)
    assert found.estimate == pytest.approx(k1 / n1 - k2 / n2)


@pytest.mark.parametrize(("n1", "n2"), [(60, 60), (120, 120), (60, 180)])
def test_difference_covers(n1: int, n2: int) -> None:
    """Exactly, over all tables, for every pair of rates: 0.945 at the least (0.5 against 0.5)."""
    tables = list(itertools.product(range(n1 + 1), range(n2 + 1)))
    intervals = np.array([(c.low, c.high) for c in (difference(k, n1, j, n2) for k, j in tables)])
    for p, q in itertools.product(RATES, repeat=2):
        inside = (intervals[:, 0] <= p - q + 1e-12) & (p - q <= intervals[:, 1] + 1e-12)
        chances = np.outer(binom.pmf(range(n1 + 1), n1, p), binom.pmf(range(n2 + 1), n2, q))
        assert float(np.sum(chances.ravel()[inside])) >= 0.945, (p, q)


def test_an_arm_without_sessions_has_no_difference() -> None:
    found = difference(0, 0, 3, 60)
    assert (found.estimate, found.low, found.high) == (None, -1.0, 1.0)
    assert exact_test(0, 0, 3, 60)[0] == 1.0


@given(st.integers(1, 200), st.integers(1, 200), st.data())
def test_difference_holds_its_estimate(n1: int, n2: int, data: st.DataObject) -> None:
    k1, k2 = data.draw(st.integers(0, n1)), data.draw(st.integers(0, n2))
    found, turned = difference(k1, n1, k2, n2), difference(k2, n2, k1, n1)
    assert found.estimate is not None
    assert -1.0 - 1e-12 <= found.low < found.high <= 1.0 + 1e-12
    assert found.low <= found.estimate <= found.high
    assert (found.low, found.high) == pytest.approx((-turned.high, -turned.low))


@pytest.mark.parametrize("table", TABLES)
def test_boschloo_is_scipys(table: tuple[int, int, int, int]) -> None:
    k1, n1, k2, n2 = table
    reference = boschloo_exact([[k1, k2], [n1 - k1, n2 - k2]], n=128).pvalue
    assert boschloo_p_value(*table) == pytest.approx(reference, rel=1e-3)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 25), st.integers(1, 25), st.data())
def test_boschloo_never_exceeds_fisher(n1: int, n2: int, data: st.DataObject) -> None:
    """Uniformly more powerful than doubling Fisher's one-sided test, and the same turned round."""
    k1, k2 = data.draw(st.integers(0, n1)), data.draw(st.integers(0, n2))
    table = [[k1, k2], [n1 - k1, n2 - k2]]
    sides = [fisher_exact(table, alternative=way).pvalue for way in ("less", "greater")]
    found = boschloo_p_value(k1, n1, k2, n2)
    assert 0.0 < found <= min(1.0, 2 * min(sides)) + 1e-9
    assert found == pytest.approx(boschloo_p_value(k2, n2, k1, n1))


@pytest.mark.parametrize("n", [10, 33, 60])
def test_boschloos_error_is_at_most_alpha(n: int) -> None:
    critical = rejection_boundary(n, 0.05)
    for p in (*RATES, 0.005, 0.05, 0.3, 0.77):
        error = 2 * float(np.sum(binom.pmf(range(n + 1), n, p) * binom.sf(critical - 1, n, p)))
        assert error <= 0.05 + 1e-6, p


def test_large_arms_use_fisher() -> None:
    n = LARGEST_TABLE + 1
    p_value, name = exact_test(60, n, 30, n)
    assert name == "fisher"
    assert p_value == pytest.approx(boschloo_p_value(60, n, 30, n), rel=0.5)
    assert exact_test(30, 100_000, 0, 100_000)[0] < 1e-8


def test_noise_of_the_record() -> None:
    """Six against two of 33 was taken for a cure."""
    assert exact_test(6, 33, 2, 33)[0] == pytest.approx(0.175, abs=5e-4)


@pytest.mark.parametrize(
    "p_values", [[0.5], [0.01, 0.01], [0.04, 0.001, 0.9, 0.02], [1.0, 0.0, 0.3, 0.3, 0.011, 0.012]]
)
def test_holm_is_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(tuple(multipletests(p_values, method="holm")[1]))


def test_holm_of_nothing() -> None:
    assert holm([]) == ()

"""The promise of the evidence about one share: under the claim it is seldom great."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4doctor.stats.shares import e_above, e_below


@pytest.mark.parametrize("limit", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("n", [5, 12, 60])
def test_under_the_claim_the_mean_is_at_most_one(n: int, limit: float) -> None:
    """Exactly, over all outcomes: so it reaches 20 with probability 1/20 at most."""
    for share in (limit, limit / 2, limit / 10):
        k = np.arange(n + 1)
        chances = np.array([_binomial(n, int(i), share) for i in k])
        assert chances.sum() == pytest.approx(1.0)
        assert sum(c * e_above(int(i), n, limit) for i, c in zip(k, chances, strict=True)) <= 1.0
        mirrored = sum(
            c * e_below(n - int(i), n, 1.0 - limit) for i, c in zip(k, chances, strict=True)
        )
        assert mirrored <= 1.0 + 1e-9


def _binomial(n: int, k: int, share: float) -> float:
    from math import comb

    return comb(n, k) * share**k * (1.0 - share) ** (n - k)


@given(st.integers(1, 60), st.floats(0.005, 0.9), st.data())
def test_one_more_never_says_less(n: int, limit: float, data: st.DataObject) -> None:
    """What is still out may therefore count for the claim."""
    k = data.draw(st.integers(0, n - 1))
    assert e_above(k + 1, n, limit) >= e_above(k, n, limit) * (1 - 1e-9)


def test_figures_that_a_diagnosis_rests_on() -> None:
    assert e_below(0, 12, 0.5) > 500  # twelve requests right that failed before
    assert e_above(12, 12, 0.1) > 1e6
    assert e_above(1, 60, 0.01) < 1  # one wrong session of sixty is no rate
    assert e_above(6, 60, 0.01) > 100
    assert e_above(0, 0, 0.1) == e_below(0, 0, 0.1) == 1.0


@pytest.mark.parametrize(("k", "n", "limit"), [(-1, 3, 0.1), (4, 3, 0.1), (1, 3, 0.0), (1, 3, 1.0)])
def test_what_is_no_count_or_no_limit_is_refused(k: int, n: int, limit: float) -> None:
    with pytest.raises(ValueError, match=r"is no count|leaves nothing"):
        e_above(k, n, limit)

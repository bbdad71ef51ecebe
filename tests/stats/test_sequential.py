"""The promises of the sequential test, over seeded streams: its error, its power, its looks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4doctor.stats.dispersion import dispersion
from dsv4doctor.stats.sequential import launch_evidence, log_wealth, pair_evidence

ALPHA = 0.05
RUNS = 2_000
SEED = 20261129


def _share_stopped(p: float, q: float, pairs: int, runs: int = RUNS, seed: int = SEED) -> float:
    """The share of runs that reach 1 / alpha at any of their looks, one after every pair."""
    rng = np.random.default_rng(seed)
    a, b = (rng.random((runs, pairs)) < rate for rate in (p, q))
    stopped = sum(
        pair_evidence(one, other).e_value >= 1 / ALPHA
        for one, other in zip(a.tolist(), b.tolist(), strict=True)
    )
    return stopped / runs


def _launches(
    rng: np.random.Generator, p: float, deviation: float, shape: tuple[int, int]
) -> list[list[bool]]:
    """Sessions of `shape` (rounds, sessions); each launch's rate is drawn anew around `p`."""
    rates = np.full(shape[0], p)
    if deviation:
        size = p * (1 - p) / deviation**2 - 1
        rates = rng.beta(p * size, (1 - p) * size, shape[0])
    return (rng.random(shape) < rates[:, None]).tolist()


def _share_of_launches_stopped(
    p: float, q: float, deviation: float, shape: tuple[int, int], runs: int = RUNS
) -> float:
    rng = np.random.default_rng(SEED)
    stopped = 0
    for _ in range(runs):
        a = _launches(rng, p, deviation, shape)
        b = _launches(rng, q, deviation if p == q else 0.0, shape)
        stopped += launch_evidence(a, b).e_value >= 1 / ALPHA
    return stopped / runs


@pytest.mark.parametrize("p", [0.0, 0.001, 0.02, 0.15, 0.5, 0.9, 1.0])
def test_error_with_a_look_after_every_pair(p: float) -> None:
    """Ville's inequality, tested: the share of null runs that ever stop is at most alpha."""
    assert _share_stopped(p, p, 400) <= ALPHA


@pytest.mark.parametrize(
    ("p", "q", "pairs", "power"),
    [(0.15, 0.02, 120, 0.80), (0.15, 0.02, 180, 0.95), (0.18, 0.0, 60, 0.90)],
)
def test_power(p: float, q: float, pairs: int, power: float) -> None:
    assert _share_stopped(p, q, pairs) >= power


@pytest.mark.parametrize("shape", [(2, 60), (3, 60), (4, 30), (9, 20), (18, 10)])
def test_error_when_launches_vary(shape: tuple[int, int]) -> None:
    """Each block's rate is drawn anew around 0.15, standard deviation 0.05."""
    assert _share_of_launches_stopped(0.15, 0.15, 0.05, shape) <= ALPHA


def test_sessions_as_units_would_err_when_launches_vary() -> None:
    """Why launches are corrected for: the pair test on the same blocks errs far above alpha."""
    rng = np.random.default_rng(SEED)
    stopped = 0
    for _ in range(RUNS):
        a, b = (np.ravel(_launches(rng, 0.15, 0.05, (3, 60))).tolist() for _ in "ab")
        stopped += pair_evidence(a, b).e_value >= 1 / ALPHA
    assert stopped / RUNS > 2 * ALPHA


@pytest.mark.parametrize(
    ("p", "q", "shape", "power"),
    [(0.15, 0.02, (12, 10), 0.80), (0.15, 0.02, (18, 10), 0.95), (0.18, 0.0, (6, 10), 0.90)],
)
def test_power_over_launches(p: float, q: float, shape: tuple[int, int], power: float) -> None:
    """The correction costs little where launches are alike and many."""
    assert _share_of_launches_stopped(p, q, 0.0, shape, runs=1_000) >= power


@pytest.mark.soak
@pytest.mark.parametrize("p", [0.001, 0.02, 0.15, 0.5])
def test_error_over_long_runs(p: float) -> None:
    assert _share_stopped(p, p, 5_000, runs=10_000, seed=1) <= ALPHA


@pytest.mark.soak
@pytest.mark.parametrize("shape", [(2, 60), (6, 30), (12, 15), (20, 60), (40, 30)])
@pytest.mark.parametrize("deviation", [0.0, 0.02, 0.05])
def test_error_over_many_launches(deviation: float, shape: tuple[int, int]) -> None:
    assert _share_of_launches_stopped(0.15, 0.15, deviation, shape, runs=5_000) <= ALPHA


def test_wealth_is_a_fair_bet() -> None:
    """From any state the mean wealth after one more discordant pair is the wealth before it."""
    for w, v in [(0, 0), (6, 0), (3, 5), (40, 2), (0.5, 1.25)]:
        up, down = np.exp(log_wealth(w + 1, v)), np.exp(log_wealth(w, v + 1))
        assert (up + down) / 2 == pytest.approx(float(np.exp(log_wealth(w, v))))


def test_known_values() -> None:
    assert float(np.exp(log_wealth(0, 0))) == 1.0
    assert float(np.exp(log_wealth(6, 0))) == pytest.approx(20.09, abs=0.005)
    found = pair_evidence([True] * 11 + [False] * 49, [False] * 60)
    assert (found.only_a, found.only_b, found.pairs, found.looks) == (11, 0, 60, 60)
    assert found.p_value < 0.002


def test_greatest_wealth_counts_and_the_present_one_is_kept() -> None:
    found = pair_evidence([True] * 8 + [False] * 8, [False] * 8 + [True] * 8)
    assert found.e_value > 20
    assert found.e_value_now < 1


def test_failed_sessions_and_missing_partners_are_left_out() -> None:
    found = pair_evidence([True, None, True, False], [False, False, None])
    assert (found.pairs, found.only_a, found.only_b) == (1, 1, 0)


def test_nothing_seen_is_no_evidence() -> None:
    for found in (pair_evidence([], []), launch_evidence([], []), launch_evidence([[]], [[]])):
        assert (found.e_value, found.p_value, found.pairs) == (1.0, 1.0, 0)


def test_no_look_before_two_rounds() -> None:
    """Nor while the second is unfinished: with one launch nothing is known of how launches vary."""
    sick, well = [True] * 30, [False] * 30
    assert launch_evidence([sick], [well]).looks == 0
    assert launch_evidence([sick, sick], [well, well], finished=1).looks == 0
    two = launch_evidence([sick, sick], [well, well])
    assert two.looks == 1
    assert two.p_value < 1e-6


def test_enormous_evidence_stays_a_number() -> None:
    found = pair_evidence([True] * 20_000, [False] * 20_000)
    assert np.isfinite(found.e_value)
    assert 0.0 < found.p_value < 1e-200


OUTCOMES = st.lists(st.sampled_from([True, False, None]), max_size=40)


@given(OUTCOMES, OUTCOMES)
def test_the_sides_are_alike(a: Sequence[bool | None], b: Sequence[bool | None]) -> None:
    one, other = pair_evidence(a, b), pair_evidence(b, a)
    assert one.e_value == pytest.approx(other.e_value)
    assert one.e_value >= max(1.0, one.e_value_now)


def test_dispersion_of_binomial_launches_is_one() -> None:
    rng = np.random.default_rng(SEED)
    seen = [
        dispersion([[(int(k), 30) for k in rng.binomial(30, 0.15, 8)] for _ in "ab"])
        for _ in range(500)
    ]
    assert np.mean([d.chi_square / d.degrees for d in seen]) == pytest.approx(1.0, abs=0.05)


def test_dispersion_without_information() -> None:
    """One launch, no corruption, all corrupted: nothing to see, so no correction is invented."""
    for launches in ([(3, 20)], [(0, 20), (0, 20)], [(20, 20), (20, 20)], [], [(0, 0), (0, 0)]):
        assert dispersion([launches]).inflation == 1.0
        assert dispersion([launches]).degrees == 0


def test_dispersion_sees_launches_that_differ() -> None:
    found = dispersion([[(18, 20), (0, 20), (19, 20), (1, 20)]])
    assert found.degrees == 3
    assert found.inflation > 10
    assert found.cautious_inflation > 5

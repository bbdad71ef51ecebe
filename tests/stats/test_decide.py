"""Verdicts: noise is never called a result, and lack of a difference never equality."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4doctor.stats.decide import Looking, Rules, judge, launch_inflation, may_stop, overall
from dsv4doctor.stats.outcomes import ArmOutcomes
from dsv4doctor.verdict import Comparison, Verdict

ONCE = Rules(looking=Looking.ONCE)
PAIRS = Rules(looking=Looking.PAIRS)


def _arm(name: str, corrupted: int, sessions: int, launches: int = 1) -> ArmOutcomes:
    """Corrupted sessions spread evenly over the launches."""
    spread = np.zeros(sessions, dtype=bool)
    spread[np.linspace(0, sessions - 1, corrupted).astype(int)] = True
    blocks = np.array_split(spread, launches)
    return ArmOutcomes(name=name, launches=tuple(tuple(map(bool, block)) for block in blocks))


def _judge(a: ArmOutcomes, b: ArmOutcomes, rules: Rules) -> Comparison:
    (found,) = judge([a, b], rules)
    return found


@pytest.mark.parametrize("rules", [ONCE, PAIRS, Rules()], ids=lambda rules: rules.looking)
def test_six_of_33_against_two_is_noise(rules: Rules) -> None:
    found = _judge(_arm("before", 6, 33, 3), _arm("after", 2, 33, 3), rules)
    assert found.verdict is Verdict.UNDECIDED
    assert found.sessions_needed is not None
    assert 100 < found.sessions_needed < 250
    assert "noise" in found.reason
    assert str(found.sessions_needed) in found.reason


@pytest.mark.parametrize("rules", [ONCE, PAIRS, Rules()], ids=lambda rules: rules.looking)
def test_eleven_of_60_against_none_differ(rules: Rules) -> None:
    found = _judge(_arm("on", 11, 60, 4), _arm("off", 0, 60, 4), rules)
    assert found.verdict is Verdict.DIFFER
    assert found.difference.low > 0.05
    assert found.sessions_needed is None
    assert "below 4.9 %" in found.reason


@pytest.mark.parametrize("rules", [ONCE, PAIRS, Rules()], ids=lambda rules: rules.looking)
def test_clean_arms_are_equal_only_with_enough_data(rules: Rules) -> None:
    few = _judge(_arm("a", 0, 60, 4), _arm("b", 0, 60, 4), rules)
    assert few.verdict is Verdict.UNDECIDED
    assert few.sessions_needed == 381
    assert "no difference seen, but one of 6 points" in few.reason
    many = _judge(_arm("a", 0, 381, 4), _arm("b", 0, 381, 4), rules)
    assert many.verdict is Verdict.EQUIVALENT


def test_a_wider_margin_needs_fewer_sessions() -> None:
    rules = Rules(looking=Looking.ONCE, margin=0.05)
    assert _judge(_arm("a", 0, 80), _arm("b", 0, 80), rules).verdict is Verdict.EQUIVALENT


def test_equal_rates_are_not_equivalence() -> None:
    """Nine of 60 against nine: the best estimate is no difference, the interval says 13 points."""
    found = _judge(_arm("a", 9, 60), _arm("b", 9, 60), ONCE)
    assert found.verdict is Verdict.UNDECIDED
    assert found.sessions_needed is not None
    assert found.sessions_needed > 10_000


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.15])
def test_equivalence_is_rarely_wrong(rate: float) -> None:
    """Arms that differ by the margin exactly are called equivalent in 2.5 % of runs at most."""
    rng = np.random.default_rng(20261129)
    sessions, rules = 1_000, Rules(looking=Looking.PAIRS, margin=0.05, plan_needs=False)
    wrong = 0
    for k1, k2 in zip(
        rng.binomial(sessions, rate, 300), rng.binomial(sessions, rate + 0.05, 300), strict=True
    ):
        found = _judge(_arm("a", k1, sessions), _arm("b", k2, sessions), rules)
        wrong += found.verdict is Verdict.EQUIVALENT
    assert wrong / 300 <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 300)


def test_four_arms_of_the_case() -> None:
    """bf16 with HiCache differs from each other arm, no other pair does, and the whole differs."""
    arms = [
        _arm("bf16-on", 27, 60, 2),
        *(_arm(n, 0, 60, 2) for n in ("bf16-off", "fp8-on", "fp8-off")),
    ]
    found = judge(arms, Rules())
    differing = {(c.a, c.b) for c in found if c.verdict is Verdict.DIFFER}
    assert differing == {("bf16-on", name) for name in ("bf16-off", "fp8-on", "fp8-off")}
    assert all(c.p_value_adjusted >= c.p_value for c in found)
    assert overall(found) is Verdict.DIFFER
    assert not may_stop(found)
    assert may_stop([c for c in found if "bf16-on" in (c.a, c.b)])


def test_an_arm_that_is_not_proved_counts_for_nothing() -> None:
    vacuous = ArmOutcomes(
        name="on",
        launches=_arm("on", 30, 60, 2).launches,
        not_proved="no host-hit tokens: HiCache was never used",
    )
    arms = [vacuous, _arm("off", 0, 60, 2), _arm("other", 11, 60, 2)]
    found = judge(arms, Rules())
    assert [c.verdict for c in found] == [Verdict.UNDECIDED, Verdict.UNDECIDED, Verdict.DIFFER]
    assert "host-hit" in found[0].reason
    # Holm counts only the comparison that counts.
    assert found[2].p_value_adjusted == found[2].p_value
    assert overall(found[:2]) is Verdict.UNDECIDED


def test_launches_that_vary_widen_the_interval() -> None:
    """Eleven of 60 in one bad launch of four is a fact about that launch, not about the arm."""
    one_bad = ArmOutcomes(
        name="on", launches=((True,) * 11 + (False,) * 4, *(((False,) * 15,) * 3))
    )
    off = _arm("off", 0, 60, 4)
    even, uneven = _judge(_arm("on", 11, 60, 4), off, Rules()), _judge(one_bad, off, Rules())
    assert (even.unit, even.verdict) == ("session", Verdict.DIFFER)
    assert (uneven.unit, uneven.verdict) == ("launch", Verdict.UNDECIDED)
    assert uneven.difference.low < even.difference.low
    assert "launches vary" in uneven.reason
    assert launch_inflation((one_bad, off), Rules()) > 5


@pytest.mark.parametrize("shape", [(2, 60), (4, 30), (12, 10)])
@pytest.mark.parametrize("rate", [0.15, 0.02])
def test_difference_covers_when_launches_vary(rate: float, shape: tuple[int, int]) -> None:
    """One arm's launches are drawn around 0.15, standard deviation 0.05; the other's likewise, or
    are all at 0.02. Three standard errors of the simulation are allowed."""
    runs, (rounds, size), beta = 300, shape, 0.15 * 0.85 / 0.05**2 - 1
    rng = np.random.default_rng(20261129)
    hits = 0
    for _ in range(runs):
        fates = rng.beta(0.15 * beta, 0.85 * beta, (2, rounds))
        if rate != 0.15:
            fates[1] = rate
        a, b = (
            ArmOutcomes(name=name, launches=tuple(map(tuple, (drawn < fate[:, None]).tolist())))
            for name, fate, drawn in zip("ab", fates, rng.random((2, rounds, size)), strict=True)
        )
        found = _judge(a, b, Rules(plan_needs=False)).difference
        hits += found.low <= 0.15 - rate <= found.high
    assert hits / runs >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / runs)


def test_one_launch_is_judged_at_the_end_only() -> None:
    arms = [_arm("on", 11, 60), _arm("off", 0, 60)]
    (early,) = judge(arms, Rules(), finished_rounds=1)
    assert (early.verdict, early.looks, early.p_value) == (Verdict.UNDECIDED, 0, 1.0)
    (late,) = judge(arms, Rules())
    assert (late.verdict, late.test) == (Verdict.DIFFER, "boschloo")
    assert "one launch" in late.reason


def test_a_block_cut_short_shifts_no_pair() -> None:
    a = ArmOutcomes(name="a", launches=((True,), (True, False)))
    b = ArmOutcomes(name="b", launches=((True, False), (True, False)))
    assert _judge(a, b, PAIRS).e_value == 1.0


def test_nothing_seen_is_undecided() -> None:
    empty = ArmOutcomes(name="a", launches=())
    failed = ArmOutcomes(name="b", launches=((None, None),))
    for rules in (ONCE, PAIRS, Rules()):
        found = _judge(empty, failed, rules)
        assert found.verdict is Verdict.UNDECIDED
        assert found.difference.estimate is None
        assert found.sessions_needed is None
    assert overall([]) is Verdict.UNDECIDED


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(list(Looking)), st.integers(1, 40), st.integers(1, 4), st.data())
def test_no_table_breaks_it(looking: Looking, n: int, launches: int, data: st.DataObject) -> None:
    """0 of n, n of n and all between."""
    k, j = (data.draw(st.sampled_from([0, n]) | st.integers(0, n)) for _ in "ab")
    found = _judge(_arm("a", k, n, launches), _arm("b", j, n, launches), Rules(looking=looking))
    assert found.difference.estimate == pytest.approx((k - j) / n)
    assert 0.0 < found.p_value <= found.p_value_adjusted <= 1.0
    assert (found.sessions_needed is not None) <= (found.verdict is Verdict.UNDECIDED)
    assert found.reason


def test_arms_need_names_of_their_own() -> None:
    for arms in ([], [_arm("a", 0, 5)], [_arm("a", 0, 5), _arm("a", 1, 5)]):
        with pytest.raises(ValueError, match="two arms or more"):
            judge(arms, Rules())

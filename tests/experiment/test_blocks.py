"""The order of blocks: fixed by the seed, fair to the arms, unmoved by resuming or extending."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4doctor.experiment.blocks import Block, plan_blocks

ARMS = ("bf16-on", "bf16-off", "fp8-on", "fp8-off")
SEEDS = st.integers(-(2**63), 2**63)


@given(SEEDS, st.integers(0, 12))
def test_each_arm_has_one_block_in_every_round(seed: int, rounds: int) -> None:
    blocks = plan_blocks(ARMS, rounds, seed)
    assert [block.number for block in blocks] == list(range(len(ARMS) * rounds))
    for number in range(rounds):
        in_round = [block for block in blocks if block.round == number]
        assert sorted(block.arm for block in in_round) == sorted(ARMS)
        assert len({block.prompt_seed for block in in_round}) == 1


@given(SEEDS)
def test_prompts_are_new_in_each_round(seed: int) -> None:
    assert len({block.prompt_seed for block in plan_blocks(ARMS, 50, seed)}) == 50


@given(SEEDS, st.integers(0, 8), st.integers(0, 8))
def test_more_rounds_change_nothing_of_the_first(seed: int, few: int, more: int) -> None:
    short, long = plan_blocks(ARMS, few, seed), plan_blocks(ARMS, few + more, seed)
    assert long[: len(short)] == short


def test_each_arm_stands_at_each_place() -> None:
    """Over many rounds no arm comes first more often than chance allows."""
    first = Counter(block.arm for block in plan_blocks(ARMS, 2_000, 42) if block.number % 4 == 0)
    assert set(first) == set(ARMS)
    assert all(430 < count < 570 for count in first.values())


def test_seeds_give_different_orders() -> None:
    orders = {tuple(block.arm for block in plan_blocks(ARMS, 4, seed)) for seed in range(20)}
    assert len(orders) > 15


def test_the_order_is_the_same_on_every_machine() -> None:
    """A resumed run finds the blocks that it began with; this is the plan of seed 42."""
    assert plan_blocks(("a", "b"), 2, 42) == (
        Block(number=0, round=0, arm="a", prompt_seed=15_617_598),
        Block(number=1, round=0, arm="b", prompt_seed=15_617_598),
        Block(number=2, round=1, arm="a", prompt_seed=571_536_486),
        Block(number=3, round=1, arm="b", prompt_seed=571_536_486),
    )


def test_no_arms_are_no_experiment() -> None:
    with pytest.raises(ValueError, match="needs arms"):
        plan_blocks((), 3, 1)
    with pytest.raises(ValueError, match="needs arms"):
        plan_blocks(ARMS, -1, 1)

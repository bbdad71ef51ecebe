"""The order of an experiment: rounds of one block an arm, shuffled by the seed.

A block is one launch of one arm. Drift and time of day fall on all arms alike, because every arm
has one block in every round, at a place that the seed draws. The prompts of a block come from the
seed and the round: the same for each arm of a round, new in the next. Adding rounds or resuming
changes nothing of what came before.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One launch of `arm`: `number` counts blocks from 0, `round` rounds; `prompt_seed` draws the
    prompts and is the round's."""

    number: int
    round: int
    arm: str
    prompt_seed: int


def plan_blocks(arms: Sequence[str], rounds: int, seed: int) -> tuple[Block, ...]:
    """All blocks in the order in which they are to be run.

    Raises:
        ValueError: on no arms, or a negative number of rounds.
    """
    if not arms or rounds < 0:
        raise ValueError("an experiment needs arms, and no negative number of rounds")
    blocks: list[Block] = []
    for number in range(rounds):
        order = list(arms)
        random.Random(_drawn(seed, number, "order")).shuffle(order)
        prompt_seed = _drawn(seed, number, "prompts")
        for arm in order:
            blocks.append(Block(number=len(blocks), round=number, arm=arm, prompt_seed=prompt_seed))
    return tuple(blocks)


def _drawn(seed: int, number: int, purpose: str) -> int:
    """A 31-bit number from the seed, the round and the purpose, the same on every machine."""
    digest = hashlib.sha256(f"{seed}/{number}/{purpose}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1

"""When requests arrive: at a fixed pace, as a Poisson process, or ramped up (pure, replayable)."""

from __future__ import annotations

import math
from enum import StrEnum

from dsv4doctor.load.dice import Dice


class Arrival(StrEnum):
    """How arrivals at one mean rate are spaced."""

    POISSON = "poisson"  # independent users: exponential gaps, as SGLang's and vLLM's benches draw
    FIXED = "fixed"  # one every 1 / rate seconds


def offsets_s(
    count: int, *, rate: float, arrival: Arrival, seed: tuple[object, ...]
) -> tuple[float, ...]:
    """Seconds after the first at which each of `count` requests arrives, `rate` a second."""
    if arrival is Arrival.FIXED:
        return tuple(number / rate for number in range(count))
    dice = Dice("arrivals", *seed)
    offsets, now = [], 0.0
    for _ in range(count):
        offsets.append(now)
        # 1 - share lies in (0, 1], whose logarithm is finite.
        now -= math.log(1.0 - dice.share()) / rate
    return tuple(offsets)


def ramp_s(streams: int, seconds: float) -> tuple[float, ...]:
    """Offsets that start `streams` requests evenly over `seconds`; the rest do not wait."""
    return tuple(number / streams * seconds for number in range(streams))

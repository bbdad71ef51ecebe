"""Two factors of two levels: simple effects and their interaction, as differences of rates.

An odds ratio has no value where a cell is empty, and here three of four usually are. Differences of
rates always have one, and they are what a person acts on: "bf16 costs 15 points with HiCache on,
none with it off".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dsv4doctor.stats.compare import difference
from dsv4doctor.stats.rates import LEVEL, clopper_pearson
from dsv4doctor.verdict import Contrast

# Corrupted and judged sessions of a cell; fractional where they are effective counts.
Cell = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleEffect:
    """What `factor` does while the other factor is held at `other_level`: the rate at level `high`
    less the rate at level `low`."""

    factor: str
    low: str
    high: str
    other_factor: str
    other_level: str
    difference: Contrast


@dataclass(frozen=True, slots=True, kw_only=True)
class Factorial:
    """Four simple effects, and `interaction`: the effect of `factors[0]` at the second level of
    `factors[1]` less its effect at the first. `found` where its interval leaves out zero."""

    factors: tuple[str, str]
    levels: tuple[tuple[str, str], tuple[str, str]]
    effects: tuple[SimpleEffect, ...]
    interaction: Contrast

    @property
    def found(self) -> bool:
        return self.interaction.low > 0.0 or self.interaction.high < 0.0


def factorial(
    factors: tuple[str, str],
    levels: tuple[tuple[str, str], tuple[str, str]],
    cells: Mapping[tuple[str, str], Cell],
    level: float = LEVEL,
) -> Factorial:
    """Effects and interaction; `cells` maps (level of factors[0], level of factors[1]) to counts.

    Raises:
        KeyError: where one of the four cells is missing.
    """
    (first, second), (first_levels, second_levels) = factors, levels
    effects = []
    for held in second_levels:
        low, high = cells[first_levels[0], held], cells[first_levels[1], held]
        effects.append(_effect(first, first_levels, (second, held), (low, high), level))
    for held in first_levels:
        low, high = cells[held, second_levels[0]], cells[held, second_levels[1]]
        effects.append(_effect(second, second_levels, (first, held), (low, high), level))
    added = (cells[first_levels[1], second_levels[1]], cells[first_levels[0], second_levels[0]])
    taken = (cells[first_levels[0], second_levels[1]], cells[first_levels[1], second_levels[0]])
    return Factorial(
        factors=factors,
        levels=levels,
        effects=tuple(effects),
        interaction=interaction(added, taken, level),
    )


def interaction(
    added: tuple[Cell, Cell], taken: tuple[Cell, Cell], level: float = LEVEL
) -> Contrast:
    """The sum of the rates of `added` less that of `taken`, by square-and-add over exact limits.

    Newcombe's construction for four rates (MOVER: G. Y. Zou and A. Donner, Statistics in Medicine
    27, 2008), with Clopper and Pearson's limits: with Wilson's, simulated coverage over all
    mixtures of rates 0 to 0.5 fell to 0.934 at 30 to 60 sessions a cell, with these to 0.945.
    """
    method = "square-and-add, clopper-pearson"
    if any(n <= 0 for _, n in (*added, *taken)):
        return Contrast(estimate=None, low=-2.0, high=2.0, method=method, level=level)
    estimate, below, above = 0.0, 0.0, 0.0
    for sign, cells in ((1.0, added), (-1.0, taken)):
        for k, n in cells:
            share = k / n
            low, high = clopper_pearson(k, n, level)
            estimate += sign * share
            below += (share - low if sign > 0 else high - share) ** 2
            above += (high - share if sign > 0 else share - low) ** 2
    return Contrast(
        estimate=estimate,
        low=max(-2.0, estimate - math.sqrt(below)),
        high=min(2.0, estimate + math.sqrt(above)),
        method=method,
        level=level,
    )


def _effect(
    factor: str,
    levels: tuple[str, str],
    held: tuple[str, str],
    cells: tuple[Cell, Cell],
    level: float,
) -> SimpleEffect:
    (k_low, n_low), (k_high, n_high) = cells
    return SimpleEffect(
        factor=factor,
        low=levels[0],
        high=levels[1],
        other_factor=held[0],
        other_level=held[1],
        difference=difference(k_high, n_high, k_low, n_low, level),
    )

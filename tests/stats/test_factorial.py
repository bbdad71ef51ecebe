"""Simple effects and the interaction, with three of four cells empty as in the case itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dsv4doctor.stats.factorial import Cell, Factorial, factorial, interaction

FACTORS = ("index_k", "hicache")
LEVELS = (("fp8", "bf16"), ("off", "on"))


def _of(fp8_off: Cell, fp8_on: Cell, bf16_off: Cell, bf16_on: Cell) -> Factorial:
    cells = {
        ("fp8", "off"): fp8_off,
        ("fp8", "on"): fp8_on,
        ("bf16", "off"): bf16_off,
        ("bf16", "on"): bf16_on,
    }
    return factorial(FACTORS, LEVELS, cells)


def test_the_case() -> None:
    """bf16 costs 18 points with HiCache on and none with it off: that is the interaction."""
    found = _of((0, 60), (0, 60), (0, 60), (11, 60))
    assert found.found
    assert found.interaction.estimate == pytest.approx(11 / 60)
    assert found.interaction.low > 0.04
    named = {(e.factor, e.other_level): e.difference for e in found.effects}
    assert set(named) == {
        ("index_k", "off"), ("index_k", "on"), ("hicache", "fp8"), ("hicache", "bf16"),
    }  # fmt: skip
    assert named["index_k", "on"].low > 0.05
    assert named["index_k", "off"].low < 0 < named["index_k", "off"].high


def test_additive_effects_are_no_interaction() -> None:
    found = _of((5, 100), (15, 100), (15, 100), (25, 100))
    assert found.interaction.estimate == pytest.approx(0.0, abs=1e-12)
    assert not found.found


@pytest.mark.parametrize("cell", [(0, 60), (60, 60), (0, 1), (1, 1)])
def test_zero_and_full_cells_have_an_interval(cell: Cell) -> None:
    found = _of(cell, cell, cell, cell)
    assert found.interaction.estimate == 0.0
    assert -2.0 <= found.interaction.low < 0.0 < found.interaction.high <= 2.0


def test_an_empty_cell_is_no_value() -> None:
    found = _of((0, 0), (0, 60), (0, 60), (11, 60))
    assert found.interaction.estimate is None
    assert (found.interaction.low, found.interaction.high) == (-2.0, 2.0)
    assert not found.found


@pytest.mark.parametrize("sessions", [30, 120])
def test_interaction_covers(sessions: int) -> None:
    """Every mixture of five rates over four cells, three standard errors of the simulation off."""
    runs = 400
    rng = np.random.default_rng(20261129)
    mixtures = list(itertools.combinations_with_replacement((0.0, 0.001, 0.02, 0.15, 0.5), 4))
    missed = {}
    for rates in mixtures:
        truth = rates[0] + rates[3] - rates[1] - rates[2]
        table = rng.binomial(sessions, rates, (runs, 4))
        hits = 0
        for counts, times in zip(*np.unique(table, axis=0, return_counts=True), strict=True):
            a, b, c, d = ((int(k), sessions) for k in counts)
            found = interaction((a, d), (b, c))
            hits += int(times) * (found.low - 1e-12 <= truth <= found.high + 1e-12)
        missed[rates] = 1 - hits / runs
    assert max(missed.values()) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs), missed

"""Ways to buy a histogram: each costs what it says, adds up, and is best where it should be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import privet
from privet import Public
from privet.choice.histograms import BRANCHING, WAYS, _consistent, histogram_choice, line_of_cells
from privet.errors import QuestionError
from privet.kernel import Nominal
from privet.kernel.domain import Domain

COARSE = Fraction(10**5)  # an epsilon at which noise is nothing


def _table(counts: np.ndarray, budget: object) -> privet.ProtectedTable:
    names = "ab"[: counts.ndim]
    cells = [index.repeat(counts.ravel()) for index in np.indices(counts.shape).reshape(counts.ndim, -1)]
    domain = Domain(tuple(Nominal(name, tuple(range(size))) for name, size in zip(names, counts.shape, strict=True)))
    return privet.open(pd.DataFrame(dict(zip(names, cells, strict=True))), domain, budget=budget)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(30,), (5, 7)])
def test_a_way_spends_its_epsilon_and_is_right_without_noise(way: str, shape: tuple[int, ...]) -> None:
    counts = np.random.default_rng(2).integers(0, 50, shape)
    table = _table(counts, COARSE)
    bought = WAYS[way](table, "ab"[: len(shape)], COARSE)
    assert table.budget.spent == COARSE
    assert np.abs(bought - counts).max() < 0.5


def test_a_line_visits_every_cell_and_steps_to_neighbours() -> None:
    line = line_of_cells((8, 8))
    assert sorted(line) == list(range(64))
    places = np.array([divmod(cell, 8) for cell in line])
    assert (np.abs(np.diff(places, axis=0)).sum(axis=1) == 1).all()
    assert sorted(line_of_cells((3, 9))) == list(range(27))
    with pytest.raises(QuestionError, match="one column or two"):
        line_of_cells((2, 2, 2))


def test_levels_are_made_consistent_by_least_squares() -> None:
    """Against the normal equations of all counts at once."""
    rng = np.random.default_rng(3)
    cells = BRANCHING * BRANCHING + 5
    rows = [np.arange(cells) // BRANCHING**level for level in range(3)]
    design = np.concatenate([(groups == number)[None] for groups in rows for number in range(groups.max() + 1)])
    counts = [rng.normal(10, 3, groups.max() + 1) for groups in rows]
    expected = np.linalg.lstsq(design.astype(float), np.concatenate(counts), rcond=None)[0]
    assert np.allclose(_consistent(counts), expected)


def test_the_choice_follows_what_is_public_and_pays_for_one_way() -> None:
    counts = np.full(64, 3)
    for rows, longest, branch in ((192, 1, "data-aware"), (10**6, 1, "identity"), (10**6, 200, "hierarchical")):
        table = _table(counts, "0.5")
        choice = histogram_choice(table.domain, ("a",), "0.5", Public(rows), longest)
        outcome = choice.run(table)
        assert (outcome.branch, outcome.spent, table.budget.spent) == (branch, Fraction(1, 2), Fraction(1, 2))


def test_like_cells_are_bought_together_with_less_noise() -> None:
    """64 cells of 3 rows at epsilon 0.1: noise of a cell alone is 10 rows, and groups of cells share theirs."""
    counts = np.full(64, 3)
    table = _table(counts, 100)
    errors = {
        way: np.mean([np.abs(WAYS[way](table, ("a",), Fraction(1, 10)) - counts).mean() for _ in range(20)])
        for way in ("identity", "data-aware")
    }
    assert errors["data-aware"] < 0.8 * errors["identity"]

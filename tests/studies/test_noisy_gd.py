"""Noisy gradient descent, what others are compared with: it learns, and its noise is for what a record moves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privet.datasets import census, census_domain
from privet.studies.noisy_gd import NoisyGradientDescent, cells_of, descend, shares_of


def test_it_learns_what_single_attributes_say() -> None:
    rows, later, domain = census(20_000), census(5_000, seed=5), census_domain()
    right = {}
    for epsilon in ("0.05", "2"):
        model = NoisyGradientDescent(epsilon, "1e-6", domain, 0).fit(rows.drop(columns="income"), rows.income)
        shares = model.predict_proba(later.drop(columns="income"))
        assert np.allclose(shares.sum(axis=1), 1)
        right[epsilon] = float(np.mean(model.predict(later.drop(columns="income")) == later.income))
    majority = later.income.value_counts(normalize=True).max()
    assert majority + 0.05 < right["2"] and right["0.05"] < right["2"]


@pytest.mark.parametrize("classes", [2, 4])
def test_a_record_moves_a_step_by_no_more_than_its_noise_is_for(classes: int) -> None:
    """Would catch a residual that is not cut, or the intercept left out of the length."""
    rng = np.random.default_rng(classes)
    cells = np.stack([np.zeros(30, dtype=np.int64), rng.integers(1, 4, 30), rng.integers(4, 9, 30)], axis=1)
    label = rng.integers(0, classes, 30)

    def step(count: int) -> np.ndarray:
        return descend(cells[:count], label[:count], 9, classes, 1.0, 1, float(count), seed=1)  # the same noise

    moved = [float(np.linalg.norm(step(count + 1) - step(count))) for count in range(5, 29)]
    largest = math.sqrt(cells.shape[1]) * (0.5 if classes == 2 else math.sqrt(0.5))
    assert 0.9 * largest < max(moved) <= largest * (1 + 1e-9)


def test_its_noise_costs_rho() -> None:
    """Residuals of half and half cancel, so that one step shows its noise alone."""
    cells, label, rho, steps = np.zeros((2, 1), dtype=np.int64), np.array([0, 1]), 0.02, 1
    moves = [descend(cells, label, 1, 2, rho, steps, 2.0, seed)[0, 0] for seed in range(2000)]
    expected = 0.5 * math.sqrt(steps / (2 * rho))  # 0.5 is how far a record moves the sum
    assert np.std(moves) == pytest.approx(expected, rel=0.08)  # 5 standard errors: 25% less noise fails


def test_coefficients_of_rows_are_those_of_their_cells() -> None:
    rows, domain = census(50), census_domain()
    cells, size = cells_of(rows, domain)
    assert size == 1 + sum(domain[name].size for name in domain.attributes)
    weights = np.zeros((size, 1))
    weights[0] = 1.0
    assert np.allclose(shares_of(weights, cells)[:, 1], 1 / (1 + math.exp(-1)))

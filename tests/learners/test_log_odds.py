"""What noisy sums say about cells: close to the truth where there is signal, to nothing where there is none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import privet
from privet.kernel import Domain, Nominal
from privet.learners import log_odds
from privet.learners.log_odds import NoisySums, class_shares, log_ratios, told_shares

CELLS, CAP = 24, 0.5


def sums(
    shift: np.ndarray, mass: float, scale: float, rng: np.random.Generator, cap: float = CAP
) -> tuple[NoisySums, NoisySums]:
    """Noisy sums of cells whose log ratios are `shift`."""
    noise = rng.laplace(0, scale, size=(2, len(shift)))
    return (
        NoisySums(mass * np.exp(shift / 2) + noise[0], scale, cap),
        NoisySums(mass * np.exp(-shift / 2) + noise[1], scale, cap),
    )


@pytest.mark.parametrize("run", [0, CELLS])
@pytest.mark.parametrize("mass", [1e3, 1e5, 1e7])
def test_much_signal_shows_the_truth(run: int, mass: float) -> None:
    """A grid that is too coarse for large cells would lose accuracy exactly where there are many rows."""
    rng = np.random.default_rng(1)
    shift = np.sin(np.arange(CELLS) / 4)
    mean, deviation = log_ratios(*sums(shift, mass, 10.0, rng), run)
    assert np.sqrt(np.mean((mean - shift) ** 2)) < 0.05
    assert np.abs(mean - shift).max() < 0.1
    assert (deviation >= 0).all() and deviation.max() < 0.1


@pytest.mark.parametrize("run", [0, CELLS])
def test_noise_alone_says_little(run: int) -> None:
    """A model that believed its noise would do worse than the class shares."""
    rng = np.random.default_rng(2)
    mean, _ = log_ratios(*sums(np.zeros(CELLS), 1.0, 500.0, rng), run)
    raw = np.log(3)  # what sums of noise that happen to be 3 to 1 would say without a prior
    assert np.abs(mean).mean() < 0.2 * raw and np.abs(mean).max() < 0.5 * raw


def test_cells_of_an_order_help_each_other() -> None:
    """Neighbouring cells of an ordered attribute are alike: as a chain they are closer to the truth than alone."""
    rng = np.random.default_rng(3)
    shift = np.linspace(-1.5, 1.5, CELLS)
    errors = np.zeros(2)
    for _ in range(10):
        pair = sums(shift, 60.0, 25.0, rng)
        errors += [np.mean((log_ratios(*pair, run)[0] - shift) ** 2) for run in (CELLS, 0)]
    assert errors[0] < 0.8 * errors[1]


def test_swapping_the_sums_changes_the_sign() -> None:
    rng = np.random.default_rng(4)
    one, other = sums(rng.normal(size=CELLS), 300.0, 20.0, rng)
    here, back = log_ratios(one, other, 0), log_ratios(other, one, 0)
    np.testing.assert_allclose(here[0], -back[0], atol=1e-9)
    np.testing.assert_allclose(here[1], back[1], atol=1e-9)


def test_the_mass_of_a_cell_is_integrated_finely_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The levels are few and follow each cell: twenty times as many change little."""
    rng = np.random.default_rng(5)
    pair = sums(rng.normal(size=CELLS), 2_000.0, 30.0, rng)
    few, _ = log_ratios(*pair, CELLS)
    monkeypatch.setattr(log_odds, "LEVELS", 440)
    many, _ = log_ratios(*pair, CELLS)
    assert np.abs(few - many).max() < 0.06


def test_thousands_of_cells_are_taken_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    pair = sums(rng.normal(size=1_000), 50.0, 10.0, rng)
    whole, _ = log_ratios(*pair, 0)
    monkeypatch.setattr(log_odds, "BLOCK", 7)
    blocks, _ = log_ratios(*pair, 0)
    np.testing.assert_allclose(whole, blocks)


def test_sums_below_zero_are_no_trouble() -> None:
    mean, deviation = log_ratios(NoisySums(np.full(5, -1e6), 10.0, 1.0), NoisySums(np.full(5, 1e6), 10.0, 1.0), 0)
    assert np.isfinite(mean).all() and np.isfinite(deviation).all()
    assert (mean < 0).all()


@pytest.mark.parametrize("run", [0, 200])
@pytest.mark.parametrize("mass", [3e2, 3e3, 1e5, 1e7])
def test_cells_know_how_well_they_are_known(run: int, mass: float) -> None:
    """Error bars hold: about 95% of the truths lie within 1.96 deviations, from hundreds of rows a cell to millions."""
    rng = np.random.default_rng(5)
    shift = 0.8 * np.convolve(rng.normal(size=204), np.ones(5) / 5**0.5, "valid")
    tilt, scale = np.tanh(shift / 2), 10.0
    counted = [rng.poisson(mass * (1 + sign * tilt) / CAP) * CAP for sign in (1, -1)]  # rows are a sample
    one, other = (NoisySums(each + rng.laplace(0, scale, 200), scale, CAP) for each in counted)
    mean, deviation = log_ratios(one, other, run)
    assert 0.85 <= np.mean(np.abs(mean - shift) < 1.96 * deviation) <= 1
    assert 0.75 < np.sqrt(np.mean((mean - shift) ** 2)) / np.sqrt(np.mean(deviation**2)) < 1.35


def test_classes_are_as_large_as_noise_lets_be_told() -> None:
    """Of 400 rows, three in four of one class: noise of 2 rows hides nothing, noise of 1,000 rows everything.

    Over 200 seeds; were noise believed, shares would be off by a twentieth in the mean.
    """
    rows = pd.DataFrame({"y": np.repeat([0, 1], [300, 100])})
    domain = Domain((Nominal("a", (0, 1)), Nominal("y", (0, 1))), target="y")
    rows["a"] = 0

    def shares(epsilon: str, seed: int) -> tuple[float, float]:
        counts = privet.testing.open(rows, domain, budget=1, seed=seed).histogram("y", epsilon=epsilon)
        return float(class_shares(counts)[0]), float(told_shares(counts)[0])

    believed, told = shares("1", 0)
    assert told == pytest.approx(believed, abs=0.001) and told == pytest.approx(0.75, abs=0.03)
    weak = np.array([shares("0.001", seed) for seed in range(200)])
    off = np.abs(weak - 0.5)
    assert np.median(off[:, 1]) == 0 and (off[:, 1] <= off[:, 0]).all() and off[:, 0].mean() > 2.5 * off[:, 1].mean()


def test_counts_without_rows_are_even() -> None:
    domain = Domain((Nominal("a", (0, 1)), Nominal("y", (0, 1, 2))), target="y")
    rows = pd.DataFrame({"a": [], "y": []}, dtype=object)
    for seed in range(20):
        counts = privet.testing.open(rows, domain, budget=1, seed=seed).histogram("y", epsilon="0.5")
        shares = told_shares(counts)
        assert shares.sum() == pytest.approx(1) and (shares > 0).all()

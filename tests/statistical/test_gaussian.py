"""Discrete Gaussian noise follows its exact distribution, and loses no more than its rho.

Unless a test says otherwise: hypothesis "the draws follow the exact probabilities", false alarm below 1e-9, no seed.
Noise whose scale is 20% too small or 25% too large is drawn in the same loop and must be rejected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
import pytest
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian
from opendp.metrics import l2_distance
from opendp.mod import enable_features
from scipy.stats import beta
from sizes import draws, sized

from privet.kernel import GaussianTables, IntegerGaussian, ResidualGaussian, mechanisms

Follows = Callable[..., None]

pytestmark = sized

enable_features("contrib")

VARIANCES = [Fraction(1, 5), Fraction(1), Fraction(7, 3), Fraction(400, 7)]


def pmf(noise: IntegerGaussian, reach: int = 30) -> dict[int, float]:
    return {x: noise.probability(x) for x in range(-reach, reach + 1)}


def with_variance(variance: Fraction) -> IntegerGaussian:
    return IntegerGaussian(1 / (2 * variance))


@pytest.fixture(params=["floats", "decimals"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The fast path of the sampler, and the exact one that serves where floats are not sure: here, always."""
    if request.param == "decimals":
        monkeypatch.setattr(mechanisms, "_MARGIN", 1.0)
    return str(request.param)


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_gaussian_noise_follows_its_distribution(variance: Fraction, assert_follows: Follows) -> None:
    """n = 20,000 per scale. Would catch a wrong scale, a skew, a shift, and noise that is not discrete Gaussian."""
    zeros = np.zeros(draws(20_000), dtype=np.int64)

    def sample(factor: Fraction) -> Iterable[int]:
        return with_variance(variance * factor**2).release(zeros).tolist()

    assert_follows(sample, pmf(with_variance(variance)))


def test_the_exact_path_follows_the_same_distribution(path: str, assert_follows: Follows) -> None:
    """n = 4,000 per scale. Would catch an exact path that differs from the fast one."""
    zeros = np.zeros(draws(4_000), dtype=np.int64)

    def sample(factor: Fraction) -> Iterable[int]:
        return with_variance(5 * factor**2).release(zeros).tolist()

    assert_follows(sample, pmf(with_variance(Fraction(5)), 12))


def test_numbers_of_several_variances_each_follow_their_own(assert_follows: Follows) -> None:
    """n = 20,000 per scale. Would catch variances that change places in a batch."""
    tables = GaussianTables((Fraction(1, 2), Fraction(1, 50), Fraction(1, 8)), (1, 1, 1), 1)
    exact = np.tile([7, -3, 100], (draws(20_000), 1))
    for place, noise in enumerate(tables.noises):

        def sample(factor: Fraction, place: int = place) -> Iterable[int]:
            scaled = GaussianTables(tuple(rho / factor**2 for rho in tables.rhos), tables.sizes, 1)
            return (scaled.release(exact) - exact)[:, place].tolist()

        assert_follows(sample, pmf(noise, 40))


def test_gaussian_noise_agrees_with_opendp(assert_follows: Follows) -> None:
    """n = 20,000 per scale. OpenDP's own measurement follows the probabilities that ours states."""
    integers = vector_domain(atom_domain(T="i64"))

    def sample(factor: Fraction) -> Iterable[int]:
        return make_gaussian(integers, l2_distance(T="i64"), scale=float(2 * factor))([0] * draws(20_000))

    assert_follows(sample, pmf(with_variance(Fraction(4))))


def test_noise_is_added_to_each_number_by_itself(assert_follows: Follows) -> None:
    """n = 20,000 per scale. Would catch one draw shared by the numbers of a batch: sums of pairs are too wide."""
    single = np.array([with_variance(Fraction(2)).probability(x) for x in range(-40, 41)])
    pairs = np.convolve(single, single)
    expected = {x: float(pairs[x + 80]) for x in range(-12, 13)}

    def sample(factor: Fraction) -> Iterable[int]:
        exact = np.array([[40, -7]] * draws(20_000))
        return (with_variance(2 * factor**2).release(exact) - exact).sum(axis=1).tolist()

    assert_follows(sample, expected)


def shown_rho(left: np.ndarray, right: np.ndarray, alpha: float) -> float:
    """A lower bound of the Kullback-Leibler divergence, which rho bounds, from one event on each table.

    With the events' Clopper-Pearson bounds p and q, both wrong with probability `alpha` in all, the divergence is at
    least that of coins with p and q (data processing).
    """
    best = 0.0
    for point in np.unique(np.concatenate([left, right])):
        for one, other in ((left >= point, right >= point), (left < point, right < point)):
            p = float(beta.ppf(alpha / 2, one.sum(), len(one) - one.sum() + 1)) if one.any() else 0.0
            q = float(beta.ppf(1 - alpha / 2, other.sum() + 1, len(other) - other.sum())) if not other.all() else 1.0
            if p > q:
                best = max(best, p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)))
    return best


def test_neighbours_lose_no_more_than_rho_and_a_looser_mechanism_is_caught() -> None:
    """n = 400,000 a table, alpha 1e-6 over all thresholds.

    One event shows at most 0.64 of the rho of a shift, so that the mutant here has a scale 1.56 times too small. Noise
    whose scale is 25% off is rejected by its distribution, above, and by arithmetic (`privet verify`).
    """
    count, alpha = draws(400_000), 1e-6 / 60
    for factor, caught in ((1, False), (Fraction(25, 16) * Fraction(25, 16), True)):
        noise = IntegerGaussian(Fraction(1, 2) * factor)
        left, right = (noise.release(np.full(count, value)) for value in (0, 1))
        assert (shown_rho(right, left, alpha) > 0.5) == caught


def test_residual_sums_get_the_noise_of_their_class() -> None:
    """n = 20,000. A cap of 1 and one of 30: the variances differ by 900, and are within 10% of what they should be."""
    noise = ResidualGaussian(Fraction(1, 2), (1, 30))
    count = draws(20_000)
    own, others = noise.release((np.zeros((count, 2), dtype=np.int64), None))
    assert others is None
    assert own[:, 0].var() == pytest.approx(1, rel=0.1) and own[:, 1].var() == pytest.approx(900, rel=0.1)

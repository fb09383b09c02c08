"""Every mechanism follows its exact distribution, and its stated errors hold.

Unless a test says otherwise: hypothesis "the draws follow the exact probabilities", false alarm below 1e-9, no seed.
Noise whose scale is 20% too small or 25% too large is drawn in the same loop and must be rejected; the sample sizes
make a miss as improbable as a false alarm.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import accumulate, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_laplace, make_noisy_max
from opendp.measures import max_divergence, zero_concentrated_divergence
from opendp.metrics import l1_distance, linf_distance
from opendp.mod import enable_features
from scipy.stats import binom
from sizes import draws, sized

import privet
from privet.kernel import (
    PURE,
    CheapestIntervals,
    Exponential,
    ExponentialOverRanges,
    IntegerLaplace,
    NoisyMax,
    PermuteAndFlip,
    Ranges,
    ResidualLaplace,
    mechanisms,
)
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.lab.distributions import probabilities

Follows = Callable[..., None]

pytestmark = sized

enable_features("contrib")

INTEGERS = vector_domain(atom_domain(T="i64"))
ONE = Fraction(1)

LAPLACES = [(ONE, 1), (Fraction(1, 3), 1), (Fraction(1, 2), 5), (Fraction(3), 1)]


def laplace_pmf(noise: IntegerLaplace, reach: int = 30) -> dict[int, float]:
    return {x: noise.probability(x) for x in range(-reach, reach + 1)}


@pytest.mark.parametrize(("epsilon", "sensitivity"), LAPLACES)
def test_integer_laplace_follows_its_distribution(epsilon: Fraction, sensitivity: int, assert_follows: Follows) -> None:
    """n = 20,000 per scale. Would catch a wrong scale, a skew, a shift, and noise that is not two-sided geometric."""
    zeros = np.zeros(draws(20_000), dtype=np.int64)

    def sample(factor: Fraction) -> Iterable[int]:
        return IntegerLaplace(epsilon / factor, sensitivity).release(zeros).tolist()

    assert_follows(sample, laplace_pmf(IntegerLaplace(epsilon, sensitivity)))


def test_integer_laplace_agrees_with_opendp(assert_follows: Follows) -> None:
    """n = 20,000 per scale. OpenDP's own measurement follows the probabilities that ours states."""

    def sample(factor: Fraction) -> Iterable[int]:
        oracle = make_laplace(INTEGERS, l1_distance(T="i64"), scale=float(2 * factor))
        return oracle([0] * draws(20_000))

    assert_follows(sample, laplace_pmf(IntegerLaplace(Fraction(1, 2))))


def test_noise_is_added_to_each_number_by_itself(assert_follows: Follows) -> None:
    """n = 20,000 per scale. Would catch one draw shared by the numbers of a batch: sums of pairs are too wide."""
    noise = IntegerLaplace(ONE)
    span = range(-60, 61)
    single = np.array([noise.probability(x) for x in span])
    pairs = np.convolve(single, single)
    pmf = {x: float(pairs[x + 120]) for x in range(-12, 13)}

    def sample(factor: Fraction) -> Iterable[int]:
        exact = np.array([[40, -7]] * draws(20_000))
        return (IntegerLaplace(ONE / factor).release(exact) - exact).sum(axis=1).tolist()

    assert_follows(sample, pmf)


@pytest.fixture(params=["floats", "decimals"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The fast path of our own samplers, and the exact one that serves where floats are not sure: here, always."""
    if request.param == "decimals":
        monkeypatch.setattr(mechanisms, "_MARGIN", 1.0)
    return str(request.param)


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("kind", [PermuteAndFlip, Exponential, NoisyMax])
def test_a_selection_follows_its_distribution(path: str, kind: Any, monotone: bool, assert_follows: Follows) -> None:
    """n = 4,000 per scale. Would catch a wrong exponent, a preference for early or late candidates (of a noisy maximum
    other than the first of equals), and an exact path that differs from the fast one.
    """
    scores = [12, *[6] * 10, *[3] * 4, -5]
    sensitivity = 2 if monotone else 1

    def choice(factor: Fraction) -> Any:
        return kind(ONE / factor, sensitivity, monotone)

    def sample(factor: Fraction) -> Iterable[int]:
        return [choice(factor).release(np.array(scores)) for _ in range(draws(4_000))]

    assert choice(ONE).rate == Fraction(1, 2)
    assert_follows(sample, dict(enumerate(probabilities(choice(ONE), scores))))


def test_permute_and_flip_agrees_with_opendp(assert_follows: Follows) -> None:
    """n = 4,000 per scale. OpenDP's own noisy maximum follows the probabilities that ours states."""
    scores = [6, *[0] * 10, -3]

    def sample(factor: Fraction) -> Iterable[int]:
        metric = linf_distance(T="i64", monotonic=True)
        oracle = make_noisy_max(INTEGERS, metric, max_divergence(), scale=float(2 * factor))
        return [oracle(scores) for _ in range(draws(4_000))]

    assert_follows(sample, dict(enumerate(probabilities(PermuteAndFlip(Fraction(1, 2), 1, True), scores))))


SCORES, SIZES = [0, 5, 9, 10, 4, 10], [900, 60, 3, 1, 40, 2]
ENDS = list(accumulate(SIZES))  # a release is a point of the line, which lies in one of the ranges


def test_exponential_over_ranges_follows_its_distribution(path: str, assert_follows: Follows) -> None:
    """n = 10,000 per scale (3,000 on the exact path). Would catch a wrong exponent, sizes left out, an edge between
    ranges that is off, and an exact path that differs from the fast one.
    """
    n = draws(10_000 if path == "floats" else 3_000)

    def sample(factor: Fraction) -> Iterable[int]:
        mechanism = ExponentialOverRanges(ONE / factor, 1, False)
        places = (mechanism.release(Ranges(np.array(SCORES), SIZES)) for _ in range(n))
        return [bisect_right(ENDS, place) for place in places]

    assert_follows(sample, dict(enumerate(probabilities(ExponentialOverRanges(ONE, 1, False), SCORES, SIZES))))


def test_exponential_over_ranges_agrees_with_opendp(assert_follows: Follows) -> None:
    """n = 4,000 per scale. OpenDP's exponential mechanism over single points follows what ours states for ranges."""
    scores, sizes = [0, 2, 4], [12, 3, 1]
    owner = [i for i, size in enumerate(sizes) for _ in range(size)]
    points = [scores[i] for i in owner]

    def sample(factor: Fraction) -> Iterable[int]:
        metric = linf_distance(T="i64", monotonic=True)
        oracle = make_noisy_max(INTEGERS, metric, zero_concentrated_divergence(), scale=float(factor))
        return [owner[oracle(points)] for _ in range(draws(4_000))]

    assert_follows(sample, dict(enumerate(probabilities(ExponentialOverRanges(ONE, 1, True), scores, sizes))))


def test_the_point_in_a_range_is_uniform(assert_follows: Follows) -> None:
    """n = 10,000. Would catch an end of the range that is left out, and the bias of a remainder (the mutant)."""
    mechanism = ExponentialOverRanges(ONE, 1, True)

    def sample(factor: Fraction) -> Iterable[int]:
        size = int(5 * factor)
        return [mechanism.release(Ranges(np.array([3]), [size])) % 5 for _ in range(draws(10_000))]

    assert_follows(sample, dict.fromkeys(range(5), 0.2), detects=[1.2])


@pytest.mark.parametrize("caps", [(3, 2), (3, 2, 4)])
def test_residual_laplace_follows_its_distribution(caps: tuple[int, ...], assert_follows: Follows) -> None:
    """n = 10,000 per scale and entry. Would catch a cap given to the wrong class and halves of epsilon mixed up."""
    shape = (draws(10_000), len(caps))
    exact_own = np.broadcast_to(np.arange(len(caps)) * 100, shape)
    exact_others = None if len(caps) == 2 else -exact_own
    drawn = {
        factor: ResidualLaplace(Fraction(2) / factor, caps).release((exact_own, exact_others))
        for factor in map(Fraction, ("1", "0.8", "1.25"))
    }
    share = Fraction(2) if len(caps) == 2 else ONE
    for c, cap in enumerate(caps):
        pmf = laplace_pmf(IntegerLaplace(share, cap), 15)
        assert_follows(lambda factor, c=c: (drawn[factor][0][:, c] - 100 * c).tolist(), pmf)
    others = drawn[ONE][1]
    assert (others is None) == (len(caps) == 2)
    if others is not None:
        pmf = laplace_pmf(IntegerLaplace(ONE, max(caps)), 15)
        for c in range(len(caps)):
            assert_follows(lambda factor, c=c: (drawn[factor][1][:, c] + 100 * c).tolist(), pmf)


def test_the_noise_of_a_mean_follows_its_distribution(assert_follows: Follows) -> None:
    """n = 20,000 pairs per scale. Would catch halves of epsilon that are not halves, the reach of the sum given to the
    count, and one draw shared by the two: a pair has the product of their probabilities.
    """
    exact = np.broadcast_to(np.array([-500, 70], dtype=object), (20_000, 2))
    sums, counts = IntegerLaplace(ONE, 3), IntegerLaplace(ONE)
    near = product(range(-6, 7), range(-2, 3))
    pmf = {(x, y): sums.probability(x) * counts.probability(y) for x, y in near}

    def sample(factor: Fraction) -> Iterable[tuple[int, int]]:
        noise = PURE.sum_and_count(Fraction(2) / factor, 3).release(exact) - exact
        return [(int(x), int(y)) for x, y in noise]

    assert_follows(sample, pmf)
    whole = PURE.sum_and_count(Fraction(2), 3)
    assert (whole.sums, whole.counts, whole.loss) == (sums, counts, 2)


def copies(n: int, rows: int = 30) -> privet.ProtectedTable:
    """A table of n times the same rows: its parts are n independent experiments in one question."""
    domain = Domain(
        (
            Nominal("copy", tuple(range(n))),
            Numeric("x", Fraction(0), Fraction(10), Fraction(1)),
            Nominal("y", ("0", "1")),
        ),
        target="y",
    )
    column = [i % 11 for i in range(rows)]
    frame = pd.DataFrame(
        {"copy": np.repeat(np.arange(n), rows), "x": column * n, "y": [str(i % 2) for i in range(rows)] * n}
    )
    return privet.open(frame, domain, budget=100)


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_an_interval_holds_as_often_as_it_says(confidence: float, assert_follows: Follows) -> None:
    """n = 20,000 counts per scale. The share of intervals that hold is the exact one, at least `confidence` and at most
    the share of one integer less. Would catch an error bar off by one.
    """
    parts = copies(draws(20_000), 8).partition("copy")
    noise = IntegerLaplace(Fraction(1, 4))
    error = noise.error(confidence)
    inside = sum(noise.probability(x) for x in range(-error, error + 1))
    assert inside >= confidence > inside - 2 * noise.probability(error)

    def sample(factor: Fraction) -> Iterable[bool]:
        found = parts.count(Fraction(1, 4) / factor)
        return [abs(count - 8) <= error for count in found] if factor != 1 else _hold(found.interval(confidence), 8)

    assert_follows(sample, {True: inside, False: 1 - inside})


def _hold(intervals: list[tuple[Any, Any]], truth: float) -> list[bool]:
    return [low <= truth <= high for low, high in intervals]


@pytest.mark.parametrize("question", ["sum", "mean", "histogram", "median"])
def test_stated_errors_hold_at_least_as_often_as_stated(question: str) -> None:
    """n = 2,000 releases at 80%. Hypothesis: they hold in at least 80% of runs; rejected by chance with probability
    1e-9. Would catch bounds that hold in 74% of runs or less.
    """
    n = 2_000
    table = copies(n)
    values = np.array([i % 11 for i in range(30)])
    parts = table.partition("copy")
    if question == "sum":
        holds = _hold(parts.sum("x", 1).interval(0.8), values.sum())
    elif question == "mean":
        holds = _hold(parts.mean("x", 2).interval(0.8), values.mean())
    elif question == "histogram":
        found = parts.histogram("y", epsilon=1)
        holds = [low[0] <= 15 <= high[0] for low, high in found.interval(0.8)]
    else:
        found_medians = parts.median("x", 1)
        between = [min(abs((values < m).sum() - 15), abs(15 - (values <= m).sum())) for m in map(float, found_medians)]
        inside = [(values < m).sum() <= 15 <= (values <= m).sum() for m in map(float, found_medians)]
        holds = [
            ok or rows <= release.rank_error(0.8)
            for ok, rows, release in zip(inside, between, found_medians, strict=True)
        ]
    assert len(holds) == n
    assert binom.cdf(sum(holds), n, 0.8) > 1e-9


def test_divisions_of_two_cells_follow_their_chances(assert_follows: Follows) -> None:
    """n = 30,000, epsilon 1. Would catch a wrong rate, and noise that is taken off the wrong intervals."""
    costs, honest = (0, 0, 0), CheapestIntervals(ONE, 2, cells=2, price=12)
    chances = probabilities(honest, costs)

    def sample(factor: Fraction) -> Iterable[int]:
        wrong = CheapestIntervals(ONE / factor, 2, cells=2, price=0)
        wrong = CheapestIntervals(wrong.epsilon, 2, 2, honest.surcharge - wrong.surcharge)  # other noise alone
        return (len(wrong.release(costs)) for _ in range(draws(30_000)))

    assert_follows(sample, {1: float(chances[0]), 2: float(chances[1])})

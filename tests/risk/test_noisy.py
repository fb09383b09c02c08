"""Noisy counts: the fast posterior against all counts one by one, its limits, and the promise that noise keeps."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from privet.errors import QuestionError
from privet.risk.noisy import ASSIGNMENTS, MIXES, PRIORS, decay, noisy_shares
from privet.risk.tree import Floats

PROPERTY = settings(derandomize=True, deadline=None, max_examples=200)


def compositions(size: int, classes: int) -> Floats:
    """All vectors of counts that add up to the size: the bars between stars."""
    bars = np.array(list(itertools.combinations(range(size + classes - 1), classes - 1)), dtype=np.float64)
    ends = np.pad(bars.reshape(-1, classes - 1), ((0, 0), (1, 1)), constant_values=((0, 0), (-1, size + classes - 1)))
    return np.asarray(np.diff(ends, axis=1) - 1)


def brute(observed: Floats, deviation: float, size: int, prior: str) -> Floats:
    """The posterior mean by looking at every vector of counts."""
    counts = compositions(size, len(observed))
    logs = -decay(deviation) * np.abs(counts - observed).sum(axis=1)
    if prior == ASSIGNMENTS:
        logs -= gammaln(counts + 1).sum(axis=1)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights @ counts / weights.sum() / size)


@st.composite
def leaves(draw: st.DrawFn) -> tuple[Floats, float, int]:
    """Counts near the size or far from it, whole or not, with little noise or much."""
    size = draw(st.integers(1, 12))
    whole = st.integers(-15, 30).map(float)
    count = draw(st.sampled_from([whole, st.floats(-15, 30), st.floats(-1e5, 1e5)]))
    observed = np.array(draw(st.lists(count, min_size=2, max_size=4)))
    return observed, draw(st.floats(0.02, 200)), size


def test_the_compositions_are_all_there() -> None:
    assert compositions(2, 2).tolist() == [[0, 2], [1, 1], [2, 0]]
    assert len(compositions(12, 4)) == math.comb(15, 3)
    assert (compositions(7, 3).sum(axis=1) == 7).all()


# --- the posterior ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS)
@PROPERTY
@given(leaf=leaves())
def test_equals_all_counts_one_by_one(prior: str, leaf: tuple[Floats, float, int]) -> None:
    np.testing.assert_allclose(noisy_shares(*leaf, prior=prior), brute(*leaf, prior), rtol=1e-9)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("deviation", [0.3, 4.0, 60.0])
@pytest.mark.parametrize("observed", [[300, 80, 20], [-30, 140.5, 900], [5, 5, 5]])
def test_equals_all_counts_where_tails_are_dropped(prior: str, deviation: float, observed: list[float]) -> None:
    found = noisy_shares(np.array(observed), deviation, 400, prior=prior)
    np.testing.assert_allclose(found, brute(np.array(observed), deviation, 400, prior), rtol=1e-9)


def test_a_hand_computed_leaf_of_two_people() -> None:
    """Noise with q = 1/2, counts (2, 0) seen: (2, 0), (1, 1), (0, 2) weigh 1, 1/4, 1/16 as mixes and 1, 1/2, 1/16
    as assignments."""
    deviation = math.sqrt(2 * 0.5) / 0.5
    assert math.isclose(decay(deviation), math.log(2))
    seen = np.array([2, 0])
    assert math.isclose(noisy_shares(seen, deviation, 2, prior=MIXES)[0], (2 + 1 / 4) / (2 + 2 / 4 + 2 / 16))
    assert math.isclose(noisy_shares(seen, deviation, 2, prior=ASSIGNMENTS)[0], (2 + 1 / 2) / (2 + 2 / 2 + 2 / 16))


@pytest.mark.parametrize("prior", PRIORS)
@PROPERTY
@given(leaf=leaves(), more=st.floats(0, 40), data=st.data())
def test_a_larger_count_makes_its_value_likelier_and_no_other(
    prior: str, leaf: tuple[Floats, float, int], more: float, data: st.DataObject
) -> None:
    observed, deviation, size = leaf
    which = data.draw(st.integers(0, len(observed) - 1))
    raised = observed + more * (np.arange(len(observed)) == which)
    change = noisy_shares(raised, deviation, size, prior=prior) - noisy_shares(observed, deviation, size, prior=prior)
    assert change[which] >= -1e-9
    assert (np.delete(change, which) <= 1e-9).all()


# --- the promise ------------------------------------------------------------------------------------------------------


@PROPERTY
@given(leaf=leaves())
def test_no_odds_exceed_what_the_noise_promises(leaf: tuple[Floats, float, int]) -> None:
    """Whoever holds people independent and values even learns of one person's two values odds of exp(2 / b) at most:
    another value of that person moves two counts by one."""
    limit = 2 * decay(leaf[1]) + 1e-9
    for shares in (noisy_shares(*leaf, prior=ASSIGNMENTS), brute(*leaf, ASSIGNMENTS)):
        assert math.log(shares.max()) - math.log(shares.min()) <= limit


def test_the_promise_is_tight_for_a_single_person() -> None:
    shares = noisy_shares(np.array([50, -50, -50]), 2.0, 1, prior=ASSIGNMENTS)
    assert math.isclose(shares[0] / shares[1], math.exp(2 * decay(2.0)), rel_tol=1e-9)


@pytest.mark.parametrize("deviation", [0.5, 3.0, 50.0])
def test_no_odds_exceed_the_promise_in_a_large_leaf(deviation: float) -> None:
    observed = np.array([30_000.0] + [0.0] * 15)
    shares = noisy_shares(observed, deviation, 30_000, prior=ASSIGNMENTS)
    assert shares.max() / shares.min() <= math.exp(2 * decay(deviation)) * (1 + 1e-9)


# --- limits and large leaves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("counts", [[7, 3], [5, 0, 4, 1], [0, 10, 0]])
def test_little_noise_gives_the_counts_and_much_noise_even_shares(prior: str, counts: list[int]) -> None:
    observed = np.array(counts)
    np.testing.assert_allclose(noisy_shares(observed, 1e-6, 10, prior=prior), observed / 10, atol=1e-9)
    np.testing.assert_allclose(noisy_shares(observed, 1e-200, 10, prior=prior), observed / 10, atol=1e-9)
    np.testing.assert_allclose(noisy_shares(observed, 1e12, 10, prior=prior), 1 / len(counts), atol=1e-9)
    np.testing.assert_allclose(noisy_shares(observed, 1e200, 10, prior=prior), 1 / len(counts), atol=1e-9)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("deviation", [0.1, 1.5, 40.0])
@pytest.mark.parametrize("scale", [0.0, 0.5, 1.0, 3.0])
def test_sixteen_values_and_thirty_thousand_people(prior: str, deviation: float, scale: float) -> None:
    counts = np.array([9000, 6500, 5000, 3000, 2000, 1500, 900, 700, 500, 400, 250, 150, 60, 30, 10, 0])
    shares = noisy_shares(counts * scale, deviation, 30_000, prior=prior)
    assert abs(shares.sum() - 1) < 1e-9
    assert (shares > 0).all()
    assert (np.diff(shares) <= 1e-12).all()  # in the order of the counts
    if prior == MIXES and scale == 1:
        assert np.abs(shares - counts / 30_000).max() < 6 * deviation / 30_000


@pytest.mark.parametrize("prior", PRIORS)
def test_a_hundred_values_and_a_hundred_thousand_people(prior: str) -> None:
    observed = np.repeat([1900.0, 100.0], 50)
    shares = noisy_shares(observed, 2.0, 100_000, prior=prior)
    assert abs(shares.sum() - 1) < 1e-9
    np.testing.assert_allclose(shares[:50], shares[0], rtol=1e-9)  # equal counts, equal shares
    np.testing.assert_allclose(shares[50:], shares[50], rtol=1e-9)
    assert shares[0] > shares[50]


def test_the_noise_has_the_deviation_it_is_said_to_have() -> None:
    steps = np.arange(-4000, 4001)
    for deviation in (0.01, 0.7, 3.0, 90.0):
        weights = np.exp(-decay(deviation) * np.abs(steps))
        assert math.isclose(math.sqrt(weights @ steps**2 / weights.sum()), deviation, rel_tol=1e-9)


# --- no noise, nobody, one value --------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS)
def test_without_noise_the_counts_are_the_answer(prior: str) -> None:
    def found(*counts: float) -> list[float]:
        return noisy_shares(np.array(counts), 0, 10, prior=prior).tolist()

    assert found(7, 2, 1) == [0.7, 0.2, 0.1]
    assert found(4, 1, 0) == [0.8, 0.2, 0.0]  # scaled
    assert found(-3, 2, 2) == [0.0, 0.5, 0.5]
    assert found(0, -1) == [0.5, 0.5]


@pytest.mark.parametrize("prior", PRIORS)
def test_nobody_and_a_single_value(prior: str) -> None:
    assert noisy_shares(np.array([9, -2, 0, 0]), 1.0, 0, prior=prior).tolist() == [0.25] * 4
    assert noisy_shares(np.array([3.0]), 1.0, 50, prior=prior).tolist() == [1.0]


@pytest.mark.parametrize(
    ("observed", "deviation", "size", "prior", "message"),
    [
        ([1, 2], 1.0, 3, "even", "the prior is mixes or assignments, not 'even'."),
        ([1, 2], -1.0, 3, MIXES, "the deviation of the noise is a number of at least 0, not -1.0."),
        ([1, 2], math.inf, 3, MIXES, "the deviation of the noise is a number of at least 0, not inf."),
        ([1, math.nan], 1.0, 3, MIXES, "a leaf needs one finite count for each value, and one value at least."),
        ([], 1.0, 3, MIXES, "a leaf needs one finite count for each value, and one value at least."),
        ([1, 2], 1.0, -1, MIXES, "a leaf has 0 people or more, not -1."),
    ],
)
def test_what_is_no_leaf_is_refused(
    observed: list[float], deviation: float, size: int, prior: str, message: str
) -> None:
    with pytest.raises(QuestionError) as refusal:
        noisy_shares(np.array(observed), deviation, size, prior=prior)
    assert str(refusal.value) == message

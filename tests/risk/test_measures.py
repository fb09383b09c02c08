"""Measures: numbers computed by hand, the paper's example, what holds for every belief, and Adult's baselines."""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import datasets
from privet.errors import DataError
from privet.risk.measures import FLOOR, TINY, histogram, individual, measure, most_exposed
from privet.risk.people import Belief, People, marginal_only, uniform
from privet.risk.tree import Floats

PROPERTY = settings(derandomize=True, deadline=None, max_examples=150)


def people_of(*sizes: int) -> People:
    """Profiles of these sizes."""
    return People.of(pd.DataFrame({"q": np.repeat(np.arange(len(sizes)), sizes)}), ["q"])


# the paper's example: four profiles, and what the leaves of its tree tell of them
EXAMPLE = people_of(2, 1, 1, 2)
TRUTH = np.array([[2, 0], [1, 0], [0, 1], [0, 2]])
LEAVES = Belief("leaves", np.array([[1, 0], [0.5, 0.5], [0.5, 0.5], [0, 1]]))

# three profiles of 5, 3 and 2 people with every number worked out by hand
THREE = people_of(5, 3, 2)
SHARES = np.array([[0.5, 0.25, 0.25], [0.8, 0.2, 0.0], [0.1, 0.1, 0.8]])
H = (1.5 * math.log(2), -0.8 * math.log(0.8) - 0.2 * math.log(0.2), -0.2 * math.log(0.1) - 0.8 * math.log(0.8))


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_every_number_of_a_small_example() -> None:
    marginal = np.array([0.5, 0.25, 0.25])
    truth = np.array([[3, 1, 1], [3, 0, 0], [0, 0, 2]])
    found = measure(THREE, Belief("by hand", SHARES), truth=truth, marginal=marginal)
    unknown = (5 * H[0] + 3 * H[1] + 2 * H[2]) / 10
    # all together: (2.5 + 2.4 + .2, 1.25 + .6 + .2, 1.25 + 0 + 1.6) / 10 = (.51, .205, .285), furthest from the third
    expected = {
        "threshold": 0.8,
        "people": 10,
        "worst": 0.8,
        "mean": (5 * 0.5 + 3 * 0.8 + 2 * 0.8) / 10,
        "known": 5,
        "entropy": unknown,
        "entropy_loss": math.log(3) - unknown,
        "entropy_loss_from_marginal": 1.5 * math.log(2) - unknown,
        "diversity": math.exp(min(H)),
        "distinct": 2,
        "alpha": 0.8,
        "k": 2,
        "closeness": 0.8 - 0.285,
        "overall": (3 * math.log(0.6 / 0.5) + 2 * math.log(0.2 / 0.25) + 5 * math.log(1 / 0.8)) / 10,
        "guessed": (3 + 3 + 2) / 10,
        "true_mean": (3 * 0.5 + 2 * 0.25 + 3 * 0.8 + 2 * 0.8) / 10,
    }
    numbers = found.to_dict()
    assert numbers.pop("overall_floored") == pytest.approx(expected["overall"], abs=1e-4)
    assert numbers == pytest.approx(expected)


def test_without_truth_and_marginal_their_numbers_are_missing() -> None:
    found = measure(THREE, Belief("by hand", SHARES)).to_dict()
    missing = {name for name, number in found.items() if number is None}
    assert missing == {"entropy_loss_from_marginal", "overall", "overall_floored", "guessed", "true_mean"}


def test_the_numbers_are_plain() -> None:
    found = measure(THREE, Belief("by hand", SHARES), truth=np.array([[5, 0, 0], [3, 0, 0], [2, 0, 0]])).to_dict()
    assert {type(number) for number in found.values() if number is not None} == {int, float}
    assert json.loads(json.dumps(found)) == found


def test_a_posterior_that_misses_the_threshold_by_rounding_reaches_it() -> None:
    belief = Belief("by hand", np.array([[0.8 - 1e-15, 0.2 + 1e-15], [0.7999, 0.2001]]))
    assert measure(people_of(4, 3), belief).known == 4
    assert measure(people_of(4, 3), belief, threshold=0.7).known == 7
    assert measure(people_of(4, 3), belief, threshold=0.9).known == 0


def test_only_placed_profiles_are_measured() -> None:
    truth = np.array([[5, 0, 0], [3, 0, 0], [0, 0, 2]])
    placed = np.array([False, True, True])
    found = measure(THREE, Belief("by hand", SHARES), truth=truth, placed=placed)
    alone = measure(people_of(3, 2), Belief("by hand", SHARES[1:]), truth=truth[1:])
    assert found.to_dict() == pytest.approx(alone.to_dict())
    with pytest.raises(DataError, match="no leaf for anybody"):
        measure(THREE, Belief("by hand", SHARES), placed=np.zeros(3, dtype=np.bool_))


def test_ties_of_a_guess_are_split_evenly() -> None:
    belief = Belief("by hand", np.array([[0.4, 0.4 - 1e-15, 0.2]]))
    assert measure(people_of(10), belief, truth=np.array([[6, 1, 3]])).guessed == pytest.approx(0.35)


# --- divergence -------------------------------------------------------------------------------------------------------


def test_the_example_of_the_paper() -> None:
    found = measure(EXAMPLE, LEAVES, truth=TRUTH)
    np.testing.assert_allclose(individual(EXAMPLE, LEAVES.shares, TRUTH), [0, math.log(2), math.log(2), 0])
    assert found.overall == pytest.approx(math.log(2) / 3)
    assert round(found.overall, 4) == 0.2310
    assert (found.worst, found.known, found.distinct, found.diversity) == (1, 4, 1, 1)
    assert found.guessed == pytest.approx(5 / 6)


def test_believing_a_truth_impossible_costs_much_but_not_infinitely_much() -> None:
    people, truth = people_of(1, 1), np.array([[1, 0], [0, 1]])
    wrong = np.array([[0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(individual(people, wrong, truth), [-math.log(TINY), 0])
    np.testing.assert_allclose(
        individual(people, wrong, truth, FLOOR), [-math.log(FLOOR / 2), -math.log(1 - FLOOR / 2)]
    )
    found = measure(people, Belief("wrong", wrong), truth=truth)
    assert found.overall == pytest.approx(-math.log(TINY) / 2)
    assert found.overall_floored == pytest.approx(-(math.log(FLOOR / 2) + math.log(1 - FLOOR / 2)) / 2)


@pytest.mark.parametrize("truth", [[[1, 0], [1, 0]], [[2, 0], [1, 1]], [[2, 0, 0], [1, 0, 0]], [[2, 0]]])
def test_a_truth_that_does_not_count_everybody_once_is_refused(truth: list[list[int]]) -> None:
    with pytest.raises(DataError, match="must count everybody of the table once"):
        individual(people_of(2, 1), np.full((2, 2), 0.5), np.array(truth))


# --- whatever is believed ---------------------------------------------------------------------------------------------


@st.composite
def audits(draw: st.DrawFn) -> tuple[People, Floats, Floats]:
    """People, what is believed of them, and what is true: counts by profile and value."""
    profiles, classes = draw(st.integers(1, 5)), draw(st.integers(2, 4))
    row = st.lists(st.integers(0, 6), min_size=classes, max_size=classes).filter(any)
    truth = np.array(draw(st.lists(row, min_size=profiles, max_size=profiles)))
    believed = np.array(draw(st.lists(row, min_size=profiles, max_size=profiles)))
    return people_of(*truth.sum(axis=1).tolist()), believed / believed.sum(axis=1, keepdims=True), truth


@PROPERTY
@given(audit=audits())
def test_no_divergence_is_negative_and_only_the_truth_has_none(audit: tuple[People, Floats, Floats]) -> None:
    people, shares, truth = audit
    true = truth / truth.sum(axis=1, keepdims=True)
    found = individual(people, shares, truth)
    assert np.isfinite(found).all() and (found >= 0).all()
    assert ((found < 1e-12) == np.isclose(shares, true).all(axis=1)).all()
    np.testing.assert_allclose(individual(people, true, truth), 0, atol=1e-12)


@PROPERTY
@given(audit=audits(), threshold=st.floats(0.05, 1), step=st.floats(0, 0.5))
def test_what_holds_for_every_belief(audit: tuple[People, Floats, Floats], threshold: float, step: float) -> None:
    people, shares, truth = audit
    classes = shares.shape[1]
    found = measure(people, Belief("any", shares), threshold=threshold, truth=truth)
    assert 0 <= found.known <= found.people == people.total
    assert measure(people, Belief("any", shares), threshold=threshold + step).known <= found.known
    assert 1 / classes - 1e-12 <= found.mean <= found.worst + 1e-12 <= 1 + 1e-9
    assert 1 - 1e-12 <= found.diversity <= found.distinct + 1e-9 <= classes + 1e-9
    assert 0 <= found.closeness <= 1
    assert 0 <= found.guessed <= 1 and 0 <= found.true_mean <= found.mean + 1e-12
    assert -1e-12 <= found.entropy_loss <= math.log(classes) + 1e-12
    assert found.overall_floored <= found.overall + 2 * FLOOR


@PROPERTY
@given(audit=audits(), part=st.floats(0, 1))
def test_mass_moved_to_the_uniform_belief_discloses_less(audit: tuple[People, Floats, Floats], part: float) -> None:
    people, shares, _ = audit
    mixed = (1 - part) * shares + part / shares.shape[1]
    before, after = (measure(people, Belief("any", each)) for each in (shares, mixed))
    assert after.worst <= before.worst + 1e-12
    assert after.known <= before.known
    assert after.entropy >= before.entropy - 1e-12
    assert after.closeness <= before.closeness + 1e-12
    assert after.diversity >= before.diversity - 1e-12


@PROPERTY
@given(audit=audits())
def test_the_uniform_belief_discloses_nothing(audit: tuple[People, Floats, Floats]) -> None:
    people, shares, truth = audit
    classes = shares.shape[1]
    found = measure(people, uniform(people, classes), truth=truth)
    assert (found.known, found.distinct) == (0, classes)
    assert found.entropy_loss == pytest.approx(0, abs=1e-12)
    assert found.closeness == pytest.approx(0, abs=1e-12)
    assert (found.worst, found.guessed, found.true_mean) == pytest.approx((1 / classes,) * 3)


# --- histogram and the most exposed -----------------------------------------------------------------------------------


def test_a_histogram_counts_everybody_once() -> None:
    shares = np.array([[0.5, 0.5], [0.8 - 1e-15, 0.2 + 1e-15], [1 + 1e-15, 0.0], [0.79, 0.21]])
    people = people_of(4, 3, 2, 1)
    assert histogram(people, shares, [0.5, 0.8, 1.0]).tolist() == [5, 5]
    assert histogram(people, shares, np.linspace(0, 1, 11)).tolist() == [0, 0, 0, 0, 0, 4, 0, 1, 3, 2]
    assert histogram(people, shares, [0.6, 0.9]).tolist() == [10]


def test_the_most_exposed_come_in_order() -> None:
    people = people_of(5, 2, 2, 3, 1)
    shares = np.array([[0.1, 0.9], [0.9, 0.1], [0.9, 0.1], [0.9 + 1e-15, 0.1], [0.4, 0.6]])
    marginal = np.tile([0.7, 0.3], (5, 1))
    # all but the last are alike; the first gains most over the marginal, then fewer people come before more
    assert most_exposed(people, Belief("any", shares), marginal, 10) == [0, 1, 2, 3, 4]
    assert most_exposed(people, Belief("any", shares), np.full((5, 2), 0.5), 10) == [1, 2, 3, 0, 4]
    assert most_exposed(people, Belief("any", shares), marginal, 2) == [0, 1]


def test_of_two_likeliest_values_the_one_that_gains_more_counts() -> None:
    shares = np.array([[0.9, 0.1], [0.5, 0.5], [0.4, 0.6]])
    order = most_exposed(people_of(1, 1, 1), Belief("any", shares), np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]]), 3)
    assert order == [0, 2, 1]
    shares = np.array([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2]])
    baseline = np.array([[0.3, 0.3, 0.4], [0.8, 0.1, 0.1]])
    assert most_exposed(people_of(1, 1), Belief("any", shares), baseline, 2) == [1, 0]


# --- Adult ------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not os.environ.get("PRIVET_DATA"), reason="PRIVET_DATA names no folder with the UCI files (adult)")
def test_the_baselines_of_adult() -> None:
    """Education, 16 values, of the 30162 complete rows of adult.data: whoever knows nothing, or the marginal alone."""
    names = "workclass marital-status occupation relationship race sex native-country income".split()
    rows = datasets.load("adult").frame.iloc[:32561]  # adult.test comes after
    rows = rows[(rows != "?").all(axis=1)].reset_index(drop=True)
    people = People.of(rows, names)
    codes, values = pd.factorize(rows["education"])
    truth = np.zeros((len(people), len(values)))
    np.add.at(truth, (people.profile, codes), 1)
    assert (people.total, len(people), len(values)) == (30162, 4480, 16)
    marginal = truth.sum(axis=0) / people.total
    knows_nothing = measure(people, uniform(people, 16), truth=truth, marginal=marginal)
    knows_marginal = measure(people, marginal_only(people, marginal), truth=truth, marginal=marginal)
    assert (round(knows_nothing.overall, 4), round(knows_marginal.overall, 4)) == (1.4588, 0.7055)
    assert knows_marginal.entropy_loss_from_marginal == pytest.approx(0, abs=1e-12)
    assert knows_marginal.known == knows_nothing.known == 0

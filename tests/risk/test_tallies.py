"""Statements about groups that overlap, against every assignment of values on tables of up to twelve people."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.errors import DataError
from privet.risk import tallies
from privet.risk.tallies import Conclusions, Tally, solved

FUZZ = settings(max_examples=150, deadline=None, derandomize=True)


@st.composite
def made(draw: st.DrawFn, most: int = 12) -> tuple[list[Tally], np.ndarray, np.ndarray]:
    """Profiles of one to three people, true values, and tallies of any groups: exact, or ranges around the truth."""
    classes = draw(st.integers(2, 3))
    people = draw(st.integers(1, most if classes == 2 else 8))
    values = np.array(draw(st.lists(st.integers(0, classes - 1), min_size=people, max_size=people)))
    profile = np.sort(draw(st.lists(st.integers(0, 6), min_size=people, max_size=people)))
    profile = np.unique(profile, return_inverse=True)[1]
    sizes = np.bincount(profile)
    found = []
    for _ in range(draw(st.integers(1, 5))):
        some = np.array(draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes))))
        truth = np.bincount(values[some[profile]], minlength=classes)
        width = draw(st.sampled_from([0, 0, 1, 3]))
        low = np.maximum(truth - draw(st.integers(0, width)), 0)
        high = truth + draw(st.integers(0, width))
        said = np.array(draw(st.lists(st.booleans(), min_size=classes, max_size=classes)))
        size = int(sizes[some].sum())
        found.append(
            Tally(np.flatnonzero(some), size, np.where(said, low, 0), np.where(said, np.minimum(high, size), size))
        )
    return found, sizes, profile


def worlds(some: list[Tally], profile: np.ndarray, classes: int) -> np.ndarray:
    """Every assignment of values to people that agrees with all tallies, as counts [world, profile, value]."""
    found = []
    for each in itertools.product(range(classes), repeat=len(profile)):
        counts = np.zeros((profile.max() + 1, classes), dtype=np.int64)
        np.add.at(counts, (profile, np.array(each)), 1)
        sums = [counts[tally.profiles].sum(axis=0) for tally in some]
        if all(((tally.low <= sum_) & (sum_ <= tally.high)).all() for tally, sum_ in zip(some, sums, strict=True)):
            found.append(counts)
    return np.array(found)


def _close(known: Conclusions, every: np.ndarray) -> None:
    assert np.allclose(known.means, every.mean(axis=0), atol=1e-9)


@FUZZ
@given(made())
def test_means_are_those_of_all_worlds(some: tuple[list[Tally], np.ndarray, np.ndarray]) -> None:
    found, sizes, profile = some
    every = worlds(found, profile, len(found[0].low))
    known = solved(found, sizes, len(found[0].low))
    assert known.is_exact
    _close(known, every)
    for at in np.flatnonzero(known.settled).tolist():
        assert (every[:, at] == every[0, at]).all()


@FUZZ
@given(made())
def test_where_nothing_is_counted_certainty_is_found_and_beliefs_agree(
    some: tuple[list[Tally], np.ndarray, np.ndarray],
) -> None:
    found, sizes, profile = some
    every = worlds(found, profile, len(found[0].low))
    with pytest.MonkeyPatch.context() as patch:
        count = tallies._counted
        patch.setattr(tallies, "_counted", lambda *part: None if part[-1] else count(*part))
        known = solved(found, sizes, len(found[0].low))
    for at in np.flatnonzero(known.settled).tolist():
        assert (every[:, at] == every[0, at]).all()


def test_a_contradiction_is_refused() -> None:
    group = np.array([0, 1])
    one = Tally(group, 2, np.array([2, 0]), np.array([2, 0]))
    other = Tally(group, 2, np.array([0, 2]), np.array([0, 2]))
    with pytest.raises(DataError, match="contradict"):
        solved([one, other], np.array([1, 1]), 2)

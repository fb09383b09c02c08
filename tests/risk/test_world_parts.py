"""Which worlds agree with the choice of a split, and how pieces make up worlds."""

import numpy as np
import pytest

from privet.risk.tree import ENTROPY, GINI
from privet.risk.world_pieces import Leaf, Part, Quota, Rule, drawn, listed, remaining_impurity


def table(*cells: list[int]) -> np.ndarray:
    return np.array(cells, dtype=np.int32)[:, None, :]


@pytest.mark.parametrize(("measure", "expected"), [(GINI, 2 * 0.5 + 4 * (1 - 10 / 16)), (ENTROPY, None)])
def test_impurity_of_groups(measure: str, expected: float | None) -> None:
    tables = table([1, 1], [3, 0], [0, 1], [9, 2])
    groups = np.array([2, 0, 0, -1])  # the second and third cell are one group, the last is in none
    if expected is None:
        expected = 2 * np.log(2) - 3 * np.log(3 / 4) - np.log(1 / 4)
    assert remaining_impurity(tables, groups, measure)[0] == pytest.approx(expected)
    assert remaining_impurity(tables, np.full(4, -1), measure).tolist() == [0]


@pytest.mark.parametrize("measure", [GINI, ENTROPY])
def test_a_tie_agrees_and_a_better_split_does_not(measure: str) -> None:
    sizes = np.ones(4, dtype=np.int64)
    first, second = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    one, none = [1, 0], [0, 1]
    by_second = table(one, none, one, none)
    tied = table(one, none, none, one)
    assert Rule(first, [second], measure).keeps(by_second, sizes).tolist() == []
    assert Rule(second, [first], measure).keeps(by_second, sizes).tolist() == [0]
    assert Rule(first, [second], measure).keeps(tied, sizes).tolist() == [0]
    assert Rule(second, [first], measure).keeps(tied, sizes).tolist() == [0]


def test_splits_that_cannot_be_better_are_not_compared() -> None:
    chosen = np.array([0, 0, 1, 2])
    coarser, finer, crossing = np.array([5, 5, 5, 3]), np.array([0, 1, 2, 3]), np.array([0, 1, 0, 1])
    nobody = np.array([0, 0, -1, 0])  # one cell is in no group: then there is less to be impure
    rule = Rule.of(chosen, [chosen, coarser, finer, crossing, crossing.copy(), nobody], GINI)
    assert [groups.tolist() for groups in rule.others] == [finer.tolist(), crossing.tolist(), nobody.tolist()]


def pieces() -> list[Leaf]:
    return [
        Leaf(1, Quota(3, 0, 2, labelled=2), np.array([0, 1]), np.array([1, 2])),
        Leaf(2, Quota(4, 1, 2), np.array([2]), np.array([4])),
    ]


def test_worlds_of_two_leaves_are_all_pairs() -> None:
    part = listed(pieces(), limit=6)
    assert part is not None and listed(pieces(), limit=5) is None
    assert part.number == 2 * 3
    assert np.exp(part.log_worlds) == pytest.approx(3 * (6 + 4 + 1))
    np.testing.assert_allclose(part.shares[:2], [[2 / 3, 1 / 3]] * 2)


def test_drawn_worlds_have_the_means_of_all() -> None:
    """20,000 draws, 6 standard errors: false alarms in less than 1e-7 of all runs."""
    every = listed(pieces(), limit=6)
    assert every is not None
    for source in (pieces(), [every]):
        sample = drawn(source, 0, 20_000, np.random.default_rng(1))
        assert 0 < sample.error < 0.01 and sample.log_worlds is None
        assert np.abs(sample.shares - every.shares).max() < 6 * sample.error


def test_a_sample_gives_each_of_its_worlds_once() -> None:
    tables = np.arange(10, dtype=np.int32)[None, :, None]
    sample = Part(np.array([7]), np.array([9]), tables, None)
    assert drawn([sample], 6, 8, np.random.default_rng(0)).tables.ravel().tolist() == [6, 7, 8, 9]

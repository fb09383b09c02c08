"""Pieces of which the totals are known, against every combination of their worlds."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.risk.world_pieces import Leaf, Quota
from privet.risk.worlds import TooMany, conditioned, totals_of


def leaf(number: int, quota: Quota) -> Leaf:
    return Leaf(number, quota, np.array([number]), np.array([quota.size]))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 2)), min_size=1, max_size=4), st.data())
def test_equals_the_sum_over_all_combinations(said: list[tuple[int, int]], data: st.DataObject) -> None:
    pieces = [totals_of(leaf(i, Quota(size, label, 3)), 10_000) for i, (size, label) in enumerate(said)]
    assert all(piece is not None for piece in pieces)
    combinations = list(product(*[range(len(piece.logs)) for piece in pieces]))
    picked = data.draw(st.sampled_from(combinations))
    target = sum(piece.totals[world] for piece, world in zip(pieces, picked, strict=True))
    shares = [np.zeros((1, 3)) for _ in pieces]
    total = 0.0
    for worlds in combinations:
        if (sum(piece.totals[world] for piece, world in zip(pieces, worlds, strict=True)) == target).all():
            ways = float(np.exp(sum(piece.logs[world] for piece, world in zip(pieces, worlds, strict=True))))
            total += ways
            for sum_of, piece, world in zip(shares, pieces, worlds, strict=True):
                sum_of += ways * piece.shares[world]
    found = conditioned(pieces, target)
    assert found is not None
    for mine, theirs in zip(found[0], shares, strict=True):
        np.testing.assert_allclose(mine, theirs / total, atol=1e-9)
    assert found[1] == pytest.approx(np.log(total))


@pytest.mark.parametrize("labelled", [1000, 1500, 2000])
def test_totals_at_the_end_of_what_is_possible(labelled: int) -> None:
    """Leaves of 1000 people each, all of label 0: at least 500 of each have it, at most 1000."""
    pieces = [totals_of(leaf(i, Quota(1000, 0, 2)), 10_000) for i in range(2)]
    found = conditioned(pieces, np.array([labelled, 2000 - labelled]))
    assert found is not None
    np.testing.assert_allclose(
        found[0], labelled / 2000 * np.array([[[1, 0]]] * 2) + (1 - labelled / 2000) * np.array([[[0, 1]]] * 2)
    )


def test_totals_that_no_world_has() -> None:
    pieces = [totals_of(leaf(i, Quota(10, 0, 2)), 10_000) for i in range(2)]
    assert conditioned(pieces, np.array([9, 11])) is None
    fixed = [totals_of(leaf(0, Quota(10, 0, 2, labelled=7)), 10)]
    assert conditioned(fixed, np.array([6, 4])) is None


def test_too_many_totals_are_told() -> None:
    piece = totals_of(leaf(0, Quota(3, 0, 40)), 1_000_000)
    assert piece is not None
    with pytest.raises(TooMany):
        conditioned([piece], np.full(40, 1000))
    assert totals_of(leaf(0, Quota(300, 0, 5)), 1000) is None

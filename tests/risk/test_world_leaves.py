"""The worlds of one leaf: listed, against all assignments, and drawn, against the list."""

from itertools import product
from math import factorial, prod

import numpy as np
import pytest
from scipy.stats import chi2

from privet.risk.world_pieces import Quota, draw_capped, whole

QUOTAS = {
    "labels": Quota(6, label=1, classes=3),
    "a rate": Quota(6, label=1, classes=3, labelled=3),
    "a tight rate": Quota(6, label=1, classes=3, labelled=2),
    "counts": Quota(6, label=1, classes=3, counts=(1, 3, 2), labelled=3),
}
SIZES = np.array([3, 1, 2])


def fits(quota: Quota, counts: np.ndarray) -> bool:
    if quota.counts is not None:
        return counts.tolist() == list(quota.counts)
    labelled = counts[quota.label]
    return bool(labelled == counts.max()) and quota.labelled in (None, labelled)


def all_tables(quota: Quota) -> dict[bytes, int]:
    """How many assignments have each table of cells by values."""
    found: dict[bytes, int] = {}
    cell = np.repeat(np.arange(len(SIZES)), SIZES)
    for world in product(range(quota.classes), repeat=quota.size):
        table = np.zeros((len(SIZES), quota.classes), dtype=np.int32)
        np.add.at(table, (cell, list(world)), 1)
        if fits(quota, table.sum(axis=0)):
            found[table.tobytes()] = found.get(table.tobytes(), 0) + 1
    return found


@pytest.mark.parametrize("says", QUOTAS)
def test_lists_every_world_once(says: str) -> None:
    quota, expected = QUOTAS[says], all_tables(QUOTAS[says])
    tables = quota.tables(SIZES, limit=len(expected))
    assert tables is not None and quota.tables(SIZES, limit=len(expected) - 1) is None
    each = [np.ascontiguousarray(tables[:, world]) for world in range(tables.shape[1])]
    assert sorted(table.tobytes() for table in each) == sorted(expected)
    for table in each:
        ways = prod(map(factorial, SIZES.tolist())) // prod(factorial(many) for many in table.ravel().tolist())
        assert expected[table.tobytes()] == ways
    assert quota.log_worlds == pytest.approx(np.log(sum(expected.values())))


@pytest.mark.parametrize("says", QUOTAS)
def test_draws_every_assignment_equally_often(says: str) -> None:
    """20,000 worlds, chi-square at 1e-9; tables drawn equally often, instead of assignments, would fail."""
    quota, expected = QUOTAS[says], all_tables(QUOTAS[says])
    tables = quota.draw(SIZES, 20_000, np.random.default_rng(5))
    keys, counts = np.unique(
        [np.ascontiguousarray(tables[:, world]).tobytes() for world in range(20_000)], return_counts=True
    )
    seen = dict(zip(keys.tolist(), counts.tolist(), strict=True))
    # NumPy cuts zeros off the ends of bytes
    likely = {key.rstrip(b"\0"): 20_000 * ways / sum(expected.values()) for key, ways in expected.items()}
    assert seen.keys() <= likely.keys()
    statistic = sum((seen.get(key, 0) - often) ** 2 / often for key, often in likely.items())
    even = 20_000 / len(likely)
    wrong = sum((even - often) ** 2 / often for often in likely.values())
    limit = chi2.isf(1e-9, len(likely) - 1)
    assert statistic < limit < wrong


def test_draws_under_a_cap_are_uniform_even_where_most_would_be_rejected() -> None:
    """40 people, 4 values, at most 11 each: about 1 in 20 assignments. 20,000 draws, chi-square at 1e-9."""
    drawn = draw_capped(40, 4, 11, 20_000, np.random.default_rng(6))
    assert (drawn.sum(axis=1) == 40).all() and drawn.max() <= 11
    all_counts = [c for c in product(range(12), repeat=4) if sum(c) == 40]
    weights = np.array([1 / prod(map(factorial, counts)) for counts in all_counts])
    likely = 20_000 * weights / weights.sum()
    seen = np.array([(drawn == counts).all(axis=1).sum() for counts in all_counts])
    assert ((seen - likely) ** 2 / likely).sum() < chi2.isf(1e-9, len(all_counts) - 1)


def test_shares_add_up_to_whole_people() -> None:
    assert whole(np.array([1, 1, 1]) / 3, 10).tolist() == [4, 3, 3]
    assert whole(np.array([7, 0, 3]) / 10, 10).tolist() == [7, 0, 3]

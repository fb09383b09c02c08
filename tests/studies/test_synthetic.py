"""Synthetic tables: the same for the same seed, in the bounds they promise, and with something to learn in them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from privet.datasets import Dataset
from privet.errors import DataError
from privet.kernel.column import Nominal
from privet.studies.synthetic import KINDS, draw, one_digit

SEEDS = range(30)
LEARNED = range(8)  # the seeds on which classifiers are trained
CLASSES = {"trees": (2, 4), "bayes": (2, 5), "rules": (2, 5), "prototypes": (2, 4), "classes": (3, 6)}  # others: 2

of_each_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def tables(kind: str) -> list[Dataset]:
    return [draw(kind, seed) for seed in SEEDS]


def columns(table: Dataset) -> list[Nominal]:
    """The attributes, as nominal columns."""
    found = [table.domain[name] for name in table.domain.attributes]
    assert all(isinstance(column, Nominal) for column in found)
    return [column for column in found if isinstance(column, Nominal)]


def test_there_are_eight_kinds_in_turn() -> None:
    assert KINDS == ("trees", "additive", "bayes", "imbalanced", "pairs", "rules", "prototypes", "classes")


@of_each_kind
def test_the_same_arguments_give_the_same_table(kind: str) -> None:
    for rows in (None, 500):
        one, again, other = draw(kind, 5, rows), draw(kind, 5, rows), draw(kind, 6, rows)
        assert one.frame.equals(again.frame)
        assert one.domain == again.domain
        assert not one.frame.equals(other.frame)


@of_each_kind
def test_more_rows_are_of_the_same_make(kind: str) -> None:
    for seed in range(5):
        few, many = draw(kind, seed, 3_000), draw(kind, seed, 9_000)
        assert (len(few.frame), len(many.frame)) == (3_000, 9_000)
        assert columns(few) == columns(many)
        assert (few.domain.rows is None) == (many.domain.rows is None)
        for name in few.frame:  # a deviation of the difference is 0.011 at most
            shares = [table.frame[name].value_counts(normalize=True) for table in (few, many)]
            assert shares[0].sub(shares[1], fill_value=0).abs().max() < 0.1


@of_each_kind
def test_every_row_fits_the_domain(kind: str) -> None:
    for table in tables(kind):
        assert list(table.frame.columns) == list(table.domain.names)
        assert all((column.encode(table.frame[column.name]) >= 0).all() for column in table.domain)
        assert sorted(table.frame["y"].unique()) == list(table.domain.classes)


@of_each_kind
def test_tables_stay_in_bounds_and_use_them(kind: str) -> None:
    least, most = CLASSES.get(kind, (2, 2))
    assert {len(table.domain.classes) for table in tables(kind)} == set(range(least, most + 1))
    rows = [len(table.frame) for table in tables(kind)]
    assert 300 <= min(rows) < 1_000 and 20_000 < max(rows) <= 60_000
    numbers = [len(table.domain.attributes) for table in tables(kind)]
    assert 4 <= min(numbers) <= 6 and 18 <= max(numbers) <= 25
    sizes = [column.size for table in tables(kind) for column in columns(table)]
    assert min(sizes) == 2 and 9 <= max(sizes) <= 20
    assert np.mean(np.array(sizes) <= 8) > 0.7
    assert 0.1 < np.mean([column.ordered for table in tables(kind) for column in columns(table)]) < 0.95


def test_half_of_the_tables_declare_rows() -> None:
    """240 fair coins: fewer than 80 or more than 160 heads with probability 2e-7."""
    every = [table for kind in KINDS for table in tables(kind)]
    assert 80 <= sum(table.domain.rows is not None for table in every) <= 160
    for table in every:
        if table.domain.rows is not None:
            assert table.domain.rows == one_digit(len(table.frame))
            assert table.domain.max_rows == 2 * table.domain.rows
    # where rows are not public, no bound gives them away
    assert {table.domain.max_rows for table in every if table.domain.rows is None} == {1_000_000}


@pytest.mark.parametrize("rows, declared", [(317, 300), (949, 900), (951, 1_000), (48_842, 50_000), (60_000, 60_000)])
def test_an_owner_declares_one_digit(rows: int, declared: int) -> None:
    assert one_digit(rows) == declared


def test_the_rare_class_is_rare() -> None:
    shares = [table.frame["y"].mean() for table in tables("imbalanced")]
    assert 0.025 <= min(shares) < 0.06
    assert 0.15 < max(shares) <= 0.26


def test_attributes_are_skewed() -> None:
    """The most frequent value of a binary attribute has anything from half to nearly all of the rows."""
    most = [
        table.frame[column.name].value_counts(normalize=True).max()
        for table in tables("additive")
        for column in columns(table)
        if column.size == 2
    ]
    assert min(most) < 0.55 and 0.85 < max(most) < 0.99


# --- something to learn -----------------------------------------------------------------------------------------------


@cache
def gains(kind: str) -> np.ndarray:
    """How much of the errors of the largest class a logistic regression and a tree avoid: [seed, learner]."""
    return np.array([_gains(draw(kind, seed, 6_000)) for seed in LEARNED])


def _gains(table: Dataset) -> list[float]:
    codes, label = table.frame[list(table.domain.attributes)].to_numpy(), table.frame["y"].to_numpy()
    cells = OneHotEncoder(categories=[column.values for column in columns(table)]).fit_transform(codes)
    train, test = slice(None, 3_000), slice(3_000, None)
    majority = np.mean(label[test] == np.bincount(label[train]).argmax())
    scores = [
        learner.fit(values[train], label[train]).score(values[test], label[test])
        for learner, values in (
            (LogisticRegression(max_iter=5_000, C=0.3, tol=0.01), cells),
            (DecisionTreeClassifier(max_depth=8, min_samples_leaf=20, random_state=0), codes),
        )
    ]
    return [(score - majority) / (1 - majority) for score in scores]


@of_each_kind
def test_most_tables_can_be_learned(kind: str) -> None:
    assert np.mean(gains(kind).max(axis=1) > 0.02) > 0.6


def test_some_tables_are_hard_and_some_are_easy() -> None:
    best = np.concatenate([gains(kind).max(axis=1) for kind in KINDS])
    assert np.mean(best < 0.2) > 0.05
    assert np.mean((best > 0.2) & (best < 0.8)) > 0.3
    assert np.mean(best > 0.9) > 0.05


def test_kinds_suit_different_learners() -> None:
    """Sums are for the regression, which is blind to pairs; those and trees are for trees."""
    ahead = {kind: float(np.mean(np.diff(gains(kind)))) for kind in KINDS}  # the tree, in its mean gain
    assert max(ahead["additive"], ahead["bayes"], ahead["classes"]) < -0.02
    assert min(ahead["pairs"], ahead["trees"]) > 0.1


# --- what is refused --------------------------------------------------------------------------------------------------


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(DataError, match=r"there is no kind 'moons' of synthetic tables; known are trees, additive"):
        draw("moons", 0)


def test_a_handful_of_rows_is_refused() -> None:
    with pytest.raises(DataError, match="a synthetic table of 10 rows is not possible; ask for 50 or more"):
        draw("trees", 0, rows=10)
    assert all(len(draw(kind, seed, rows=50).domain.classes) > 1 for kind in KINDS for seed in range(20))

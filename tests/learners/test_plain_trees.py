"""ID3 and C4.5 on public rows are those of the textbooks."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learners.classifiers import PLAIN

import privet
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.learners.prune import TrainingRows, raise_subtrees
from privet.models.tree import Tree


def _public(classes: tuple[Any, ...] = ("no", "yes"), cells: int = 2, attributes: int = 4) -> Domain:
    columns = (Nominal(f"a{i}", tuple(range(cells))) for i in range(attributes))
    return Domain((*columns, Nominal("y", classes)), target="y")


@pytest.mark.parametrize("make", PLAIN, ids=lambda make: make.algorithm)
def test_plain_trees_learn_separable_rows_exactly(make: Any) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"a{i}": rng.integers(0, 2, 400) for i in range(4)})
    labels = np.where((frame["a0"] + frame["a1"] == 1) | (frame["a2"] == 1), "yes", "no")
    fitted = make(domain=_public()).fit(frame, labels)
    assert fitted.score(frame, labels) == 1.0
    used = {column for column in fitted.model_.tree.column if column >= 0}
    assert 3 not in used or make.algorithm == "id3"
    counts = fitted.model_.tree.counts
    assert counts[0].tolist() == [(labels == "no").sum(), (labels == "yes").sum()]
    assert (fitted.model_.tree.deviation == 0).all()


def test_c45_splits_numbers_at_thresholds() -> None:
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 100, 300)
    domain = Domain(
        (Numeric("x", Fraction(0), Fraction(99), Fraction(1), bins=2), Nominal("y", ("no", "yes"))), target="y"
    )
    labels = np.where((numbers > 30) & (numbers <= 71), "yes", "no")
    fitted = privet.C45Classifier(domain=domain).fit(numbers[:, None], labels)
    assert fitted.score(numbers[:, None], labels) == 1.0
    thresholds = {visit.node.threshold for visit in fitted.model_.tree.walk() if hasattr(visit.node, "threshold")}
    below = {int(numbers[numbers <= 30].max()), int(numbers[numbers <= 71].max())}
    above = {int(numbers[numbers > 30].min()), int(numbers[numbers > 71].min())}
    assert len(thresholds) == 2
    assert all(
        low <= threshold < high
        for threshold, low, high in zip(sorted(thresholds), sorted(below), sorted(above), strict=True)
    )


def test_c45_prunes_an_attribute_of_noise() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"a{i}": rng.integers(0, 2, 600) for i in range(4)})
    labels = np.where(rng.random(600) < np.where(frame["a0"] == 1, 0.9, 0.1), "yes", "no")
    pruned = privet.C45Classifier(domain=_public()).fit(frame, labels).model_.tree
    assert [column for column in pruned.column if column >= 0] == [0]
    unpruned = privet.ID3Classifier(domain=_public()).fit(frame, labels).model_.tree
    assert unpruned.leaves == 16
    lenient = privet.C45Classifier(domain=_public(), certainty=0.999).fit(frame, labels).model_.tree
    assert lenient.leaves > pruned.leaves


def test_id3_chooses_by_gini_or_entropy_and_says_which() -> None:
    """Entropy prefers the attribute with a pure cell (0 and 10, 50 and 40), Gini the other (5 and 20, 45 and 30)."""
    frame = pd.DataFrame({"a0": [1] * 50 + [0] * 10 + [1] * 40, "a1": [0] * 5 + [1] * 45 + [0] * 20 + [1] * 30})
    labels = ["no"] * 50 + ["yes"] * 50
    for criterion, column in (("infogain", 0), ("gini", 1)):
        fitted = privet.ID3Classifier(domain=_public(attributes=2), criterion=criterion, max_depth=1)
        fitted.fit(frame, labels)
        assert fitted.model_.privacy.criterion == criterion
        assert fitted.model_.tree.column[0] == column
        assert privet.Model.from_json(fitted.model_.to_json()).privacy.criterion == criterion


def test_id3_leaves_few_rows_undivided() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"a{i}": rng.integers(0, 2, 200) for i in range(4)})
    labels = rng.choice(["no", "yes"], 200)
    tree = privet.ID3Classifier(domain=_public(), min_rows=30).fit(frame, labels).model_.tree
    assert tree.counts[~tree.is_leaf].sum(axis=1).min() >= 30
    assert privet.ID3Classifier(domain=_public()).fit(frame, labels).model_.tree.leaves > tree.leaves


@pytest.mark.parametrize("make", PLAIN, ids=lambda make: make.algorithm)
def test_empty_children_take_the_class_of_their_parent(make: Any) -> None:
    domain = Domain((Nominal("a", ("x", "y", "never")), Nominal("y", ("no", "yes"))), target="y")
    frame = pd.DataFrame({"a": ["x"] * 30 + ["y"] * 20})
    labels = ["yes"] * 30 + ["no"] * 20
    fitted = make(domain=domain).fit(frame, labels)
    assert fitted.model_.tree.leaves == 3  # a cell without rows is a leaf of its own
    assert fitted.predict(pd.DataFrame({"a": ["x", "y", "never"]})).tolist() == ["yes", "no", "yes"]


def _id3(rows: list[tuple[int, ...]], unused: tuple[int, ...], cells: int, depth: int) -> Any:
    """ID3 as Quinlan tells it; a class (the majority's, the first of equals), or an attribute and its branches."""

    def bits(some: list[tuple[int, ...]]) -> float:
        shares = [count / len(some) for count in Counter(row[-1] for row in some).values()]
        return -sum(share * np.log2(share) for share in shares)

    counts = Counter(row[-1] for row in rows)
    majority = min(counts, key=lambda label: (-counts[label], label))
    if len(counts) == 1 or not unused or depth == 0:
        return majority
    parts = {a: [[row for row in rows if row[a] == cell] for cell in range(cells)] for a in unused}
    left = {a: sum(len(part) * bits(part) for part in parts[a] if part) for a in unused}
    best = min(unused, key=lambda a: (round(left[a], 6), a))
    others = tuple(a for a in unused if a != best)
    return best, [_id3(part, others, cells, depth - 1) if part else majority for part in parts[best]]


def _reference_class(tree: Any, row: tuple[int, ...]) -> int:
    while isinstance(tree, tuple):
        tree = tree[1][row[tree[0]]]
    return int(tree)


def _remainders(rows: list[tuple[int, ...]], unused: tuple[int, ...], cells: int) -> list[float]:
    found = []
    for a in unused:
        table = np.zeros((cells, 3))
        for row in rows:
            table[row[a], row[-1]] += 1
        share = table[table > 0] / np.repeat(table.sum(axis=1), 3).reshape(cells, 3)[table > 0]
        found.append(-float((table[table > 0] * np.log2(share)).sum()))
    return sorted(found)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(2, 3), st.integers(1, 4), st.integers(0, 4))
def test_id3_is_the_textbooks(seed: int, size: int, cells: int, attributes: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    table = np.column_stack([rng.integers(0, cells, (size, attributes)), rng.integers(0, 3, size)])
    rows = [tuple(int(value) for value in row) for row in table]
    domain = _public((0, 1, 2), cells, attributes)
    fitted = privet.ID3Classifier(domain=domain, max_depth=depth).fit(table[:, :-1], table[:, -1])
    reference = _id3(rows, tuple(range(attributes)), cells, depth)
    # Scores lie on a grid of 1/1024 bits, so attributes that differ by less are equals; where no two of a node come as
    # close as that, both trees are the same.
    tree = fitted.model_.tree
    waiting = [(0, reference, rows, tuple(range(attributes)))]
    same = True
    while waiting:
        node, expected, here, unused = waiting.pop()
        if not isinstance(expected, tuple):
            if here:
                assert tree.first[node] < 0
                assert int(np.argmax(tree.counts[node])) == expected
                assert tree.counts[node].tolist() == [sum(row[-1] == c for row in here) for c in range(3)]
            continue
        if tree.column[node] != expected[0]:
            remainders = _remainders(here, unused, cells)
            assert remainders[1] - remainders[0] < len(here) * 2 / 1024
            same = False
            continue
        others = tuple(a for a in unused if a != expected[0])
        for cell, below in enumerate(expected[1]):
            part = [row for row in here if row[expected[0]] == cell]
            waiting.append((int(tree.first[node]) + cell, below, part, others))
    every_row = np.array(np.meshgrid(*[range(cells)] * attributes)).reshape(attributes, -1).T
    expected_classes = [_reference_class(reference, tuple(row)) for row in every_row]
    assert not same or fitted.predict(every_row).tolist() == expected_classes


def test_c45_raises_the_largest_child_where_its_parent_tells_nothing() -> None:
    """a0 is a coin that was split by first; below it a1 decides, in one branch by more rows than in the other."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"a{i}": rng.integers(0, 2, 300) for i in range(4)})
    labels = np.where(frame["a1"] ^ (rng.random(300) < 0.05), "yes", "no")
    domain = _public()
    codes = frame.to_numpy(dtype=np.int32).T
    rows = TrainingRows(codes, codes, (labels == "yes").astype(np.int64), np.zeros(4, dtype=np.bool_))
    none = np.full(7, -1)
    grown = Tree(domain, np.array([0, 1, 1, -1, -1, -1, -1]), none, np.zeros((7, 2)), np.zeros(7), np.full(7, np.nan))
    raised = raise_subtrees(grown, rows, 0.25)
    assert raised.column.tolist() == [1, -1, -1]
    assert raised.counts[0].tolist() == [(labels == "no").sum(), (labels == "yes").sum()]
    assert raised.counts[1:].sum() == 300  # rows of the other branch were counted into it


def test_raising_never_leaves_more_to_err_than_replacing_alone() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({f"a{i}": rng.integers(0, 3, 2000) for i in range(6)})
    labels = np.where((frame["a0"] == frame["a1"]) ^ (rng.random(2000) < 0.25), "yes", "no")
    domain = _public(cells=3, attributes=6)
    plain, raising = (
        privet.C45Classifier(domain=domain, subtree_raising=wanted).fit(frame, labels) for wanted in (False, True)
    )
    assert raising.model_.tree.leaves < plain.model_.tree.leaves
    assert raising.score(frame, labels) > 0.7
    assert "_rows_to_raise" not in vars(raising)  # no row is kept

"""Consistency and pruning against slow references: plain least squares, C4.5's rule by the binomial itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.learners.prune import by_error, by_signal, least_squares, rescale
from privet.models.tree import Floats, Tree

PROPERTY = settings(derandomize=True, deadline=None, max_examples=100)


def _domain(classes: int) -> Domain:
    columns = (Nominal(name, tuple(range(cells))) for name, cells in (("a", 2), ("b", 3), ("c", 1)))
    return Domain((*columns, Nominal("y", tuple(range(classes)))), target="y")


@st.composite
def structures(draw: st.DrawFn) -> tuple[Domain, np.ndarray[Any, Any]]:
    """A domain and the columns of a tree in breadth-first order."""
    domain = _domain(draw(st.integers(2, 3)))
    cells = [domain[name].size for name in domain.attributes]
    column: list[int] = []
    nodes = 1
    while len(column) < nodes:
        splits = nodes < 20 and draw(st.integers(0, 2)) > 0
        column.append(draw(st.integers(0, len(cells) - 1)) if splits else -1)
        nodes += cells[column[-1]] if splits else 0
    return domain, np.array(column)


def _grown(domain: Domain, column: Any, counts: Any, deviation: Any, size: Any) -> Tree:
    whole = np.full((len(column), len(domain.classes)), 0.0) + np.asarray(counts, dtype=np.float64)
    return Tree.grown(
        domain,
        np.asarray(column),
        np.full(len(column), -1),
        whole,
        np.zeros(len(column)) + deviation,
        np.zeros(len(column)) + size,
    )


@st.composite
def noisy_trees(draw: st.DrawFn) -> tuple[Tree, Floats]:
    """A tree with a released size at some of its nodes, and the variances of these."""
    domain, column = draw(structures())
    nodes, classes = len(column), len(domain.classes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    # leaves at one depth share their noise in a fit; here every leaf has its own
    deviation = rng.choice([0.5, 1.0, 3.0, 40.0], nodes)
    bought = rng.random(nodes) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    size = np.where(bought, rng.integers(-30, 200, nodes), np.nan)
    counts = rng.integers(-20, 100, (nodes, classes))
    return _grown(domain, column, counts, deviation, size), rng.choice([0.25, 2.0, 100.0], nodes)


def _leaves_below(tree: Tree) -> list[list[int]]:
    below: list[list[int]] = [[] for _ in range(len(tree))]
    for node in range(len(tree) - 1, -1, -1):
        if tree.first[node] < 0:
            below[node].append(node)
        if node:
            below[tree.parents[node]] += below[node]
    return below


# -- consistency --------------------------------------------------------------------------------


def _solved(tree: Tree, size_variance: Floats) -> tuple[dict[int, Floats], dict[int, list[int]], Floats]:
    """Least squares by the book: one unknown for each class of each leaf, one equation for each release."""
    classes = tree.counts.shape[1]
    leaves = np.flatnonzero(tree.is_leaf).tolist()
    at = {leaf: list(range(i * classes, (i + 1) * classes)) for i, leaf in enumerate(leaves)}
    rows, values, weights = [], [], []

    def release(unknowns: list[int], value: float, variance: float) -> None:
        row = np.zeros(len(leaves) * classes)
        row[unknowns] = 1
        rows.append(row)
        values.append(value)
        weights.append(1 / math.sqrt(variance))

    for leaf in leaves:
        for unknown, count in zip(at[leaf], tree.counts[leaf], strict=True):
            release([unknown], count, tree.deviation[leaf] ** 2)
    for node, below in enumerate(_leaves_below(tree)):
        if not math.isnan(tree.size[node]):
            release([unknown for leaf in below for unknown in at[leaf]], tree.size[node], size_variance[node])
    weighted = np.array(rows) * np.array(weights)[:, None]
    solution = np.linalg.lstsq(weighted, np.array(values) * np.array(weights), rcond=None)[0]
    return {leaf: solution[at[leaf]] for leaf in leaves}, at, np.linalg.inv(weighted.T @ weighted)


@PROPERTY
@given(noisy_trees())
def test_least_squares_is_the_solution_of_all_equations(drawn: tuple[Tree, Floats]) -> None:
    tree, size_variance = drawn
    fitted = least_squares(tree, size_variance)
    expected, at, covariance = _solved(tree, size_variance)
    assert fitted.column.tolist() == tree.column.tolist()
    for leaf, counts in expected.items():
        np.testing.assert_allclose(fitted.counts[leaf], counts, rtol=1e-6, atol=1e-6)
        exact = np.sqrt(np.diag(covariance)[at[leaf]])
        np.testing.assert_allclose(fitted.deviation[leaf], exact, rtol=1e-6, atol=1e-9)
        assert fitted.deviation[leaf] <= tree.deviation[leaf] * (1 + 1e-9)  # more releases never know less
    for node, below in enumerate(_leaves_below(tree)):
        np.testing.assert_allclose(fitted.counts[node], sum(fitted.counts[leaf] for leaf in below), atol=1e-6)
        # what an inner node says of its noise leaves out that its leaves make up for one another: never too little
        first = [at[leaf][0] for leaf in below]
        exact_sum = math.sqrt(covariance[np.ix_(first, first)].sum())
        assert fitted.deviation[node] >= exact_sum * (1 - 1e-6)


@PROPERTY
@given(noisy_trees())
def test_least_squares_leaves_consistent_counts_alone(drawn: tuple[Tree, Floats]) -> None:
    tree, size_variance = drawn
    consistent = Tree(
        tree.domain, tree.column, tree.at, tree.counts, tree.deviation, tree.counts.sum(axis=1) + 0 * tree.size
    )
    np.testing.assert_allclose(least_squares(consistent, size_variance).counts, tree.counts, atol=1e-9)


def test_least_squares_without_sizes_or_without_noise_changes_nothing() -> None:
    domain = _domain(2)
    column = [0, -1, -1]
    for deviation, size in ((3.0, np.nan), (0.0, 50.0), (0.0, np.nan)):
        tree = _grown(domain, column, [[0, 0], [7, -3], [1, 2]], deviation, size)
        fitted = least_squares(tree, np.full(3, 4.0))
        assert fitted.counts.tolist() == tree.counts.tolist()
        assert fitted.deviation.tolist() == tree.deviation.tolist()


def test_least_squares_of_one_leaf_by_hand() -> None:
    # two counts of variance 4 say 10 in all with variance 8; a size of variance 8 says 14: they meet at 12
    tree = _grown(_domain(2), [-1], [[7, 3]], 2.0, 14.0)
    fitted = least_squares(tree, np.array([8.0]))
    assert fitted.counts.tolist() == [[8.0, 4.0]]
    assert fitted.deviation[0] == pytest.approx(math.sqrt(4 - (8 - 4) / 4))


@PROPERTY
@given(structures(), st.integers(0, 2**32), st.booleans())
def test_rescaling_never_divides_by_what_is_not_above_zero(
    drawn: tuple[Domain, Any], seed: int, mostly_empty: bool
) -> None:
    domain, column = drawn
    rng = np.random.default_rng(seed)
    high = 3 if mostly_empty else 100
    counts = rng.integers(-3, high, (len(column), len(domain.classes)))
    size = rng.integers(-3, high, len(column)).astype(np.float64)
    tree = _grown(domain, column, counts, 1.0, size)
    with np.errstate(all="raise"):
        scaled = rescale(tree)
    assert np.isfinite(scaled.counts).all()
    assert scaled.column.tolist() == tree.column.tolist()
    # by the paper, node by node
    target = {0: size[0]}
    for node in range(len(tree)):
        if tree.first[node] < 0:
            own = tree.counts[node]
            even = np.full(len(own), target[node] / len(own))
            expected = target[node] * own / own.sum() if own.sum() > 0 else even
            np.testing.assert_allclose(scaled.counts[node], expected, atol=1e-9)
        else:
            children = range(int(tree.first[node]), int(tree.first[node]) + int(tree.arity[node]))
            total = sum(size[child] for child in children)
            for child in children:
                target[child] = target[node] * size[child] / total if total > 0 else target[node] / len(children)
    np.testing.assert_allclose(scaled.counts.sum(axis=1), [target[node] for node in range(len(tree))], atol=1e-6)


def test_rescaling_without_sizes_stays_finite() -> None:
    tree = _grown(_domain(2), [0, -1, -1], [[0, 0], [7, -3], [1, 2]], 1.0, np.nan)
    assert np.isfinite(rescale(tree).counts).all()


# -- pruning ------------------------------------------------------------------------------------


def _expected_errors(counts: list[int], certainty: float) -> float:
    """Quinlan's: the rows times the proportion at which no more errors than these have this probability."""
    rows = sum(counts)
    errors = rows - max(counts)
    if rows == 0:
        return 0.0
    return rows * float(brentq(lambda p: binom.cdf(errors, rows, p) - certainty, 0, 1, xtol=1e-14))


def _keeps(tree: Tree, node: int, certainty: float) -> tuple[float, set[int]]:
    """The expected errors of a subtree after pruning, and the nodes that stay splits."""
    as_leaf = _expected_errors([int(count) for count in tree.counts[node]], certainty)
    if tree.first[node] < 0:
        return as_leaf, set()
    errors, splits = 0.0, {node}
    for child in range(int(tree.first[node]), int(tree.first[node]) + int(tree.arity[node])):
        below, kept = _keeps(tree, child, certainty)
        errors += below
        splits |= kept
    return (as_leaf, set()) if as_leaf <= errors + 1e-8 else (errors, splits)


def _splits(before: Tree, after: Tree) -> set[int]:
    """Which nodes of a tree are splits in a pruned one, by their paths."""
    numbers = {visit.path: visit.number for visit in before.walk()}
    return {numbers[visit.path] for visit in after.walk() if after.column[visit.number] >= 0}


def _counted(drawn: tuple[Domain, Any], seed: int, even: bool) -> Tree:
    domain, column = drawn
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(len(domain.classes), 5.0 if even else 0.3), len(column))
    counts = np.array([rng.multinomial(rng.integers(0, 40), share) for share in shares])
    return _grown(domain, column, counts, 0.0, np.nan)


@settings(PROPERTY, max_examples=60)
@given(structures(), st.integers(0, 2**32), st.booleans(), st.sampled_from([0.01, 0.25, 0.5, 0.9]))
def test_error_based_pruning_is_c45s(drawn: tuple[Domain, Any], seed: int, even: bool, certainty: float) -> None:
    tree = _counted(drawn, seed, even)
    pruned = by_error(tree, certainty)
    assert _splits(tree, pruned) == _keeps(tree, 0, certainty)[1]
    assert pruned.counts[0].tolist() == tree.counts[0].tolist()


def test_quinlans_own_figures() -> None:
    # C4.5, chapter 4: U(0, 6) = 0.206, U(0, 9) = 0.143, U(0, 1) = 0.750 and, by an approximation, U(1, 16) = 0.157
    domain = _domain(2)
    children = [[6, 0], [9, 0], [0, 1]]
    tree = _grown(domain, [1, -1, -1, -1], [[0, 0], *children], 0.0, np.nan)
    limits = [_expected_errors(counts, 0.25) / sum(counts) for counts in (*children, [15, 1])]
    assert limits[:3] == pytest.approx([0.206, 0.143, 0.750], abs=0.0005)
    assert limits[3] == pytest.approx(0.157, abs=0.003)
    assert len(by_error(tree, 0.25)) == 1  # 2.512 as a leaf, 3.273 below: he cuts it too
    kept = _grown(domain, [0, -1, -1], [[0, 0], [50, 0], [0, 50]], 0.0, np.nan)
    assert len(by_error(kept, 0.25)) == 3


@PROPERTY
@given(noisy_trees(), st.floats(0.001, 0.999))
def test_error_based_pruning_takes_noisy_counts(drawn: tuple[Tree, Floats], certainty: float) -> None:
    tree, size_variance = drawn
    for noisy in (tree, least_squares(tree, size_variance), rescale(tree)):
        with np.errstate(all="raise", under="ignore"):
            pruned = by_error(noisy, certainty)
        assert len(pruned) <= len(tree)
        assert pruned.counts[0].tolist() == noisy.counts[0].tolist()


def _weak_reference(tree: Tree) -> set[int]:
    """The splits that stay, by the words: a weak inner node becomes a leaf, so does one whose children are all weak
    leaves, as they are after their own turn."""
    deviation = np.sqrt(tree.counts.shape[1]) * tree.deviation
    weak = tree.counts.sum(axis=1) < deviation
    splits: set[int] = set()

    def visit(node: int) -> bool:
        """Is it a weak leaf in the end?"""
        if tree.first[node] < 0:
            return bool(weak[node])
        before = set(splits)
        children = range(int(tree.first[node]), int(tree.first[node]) + int(tree.arity[node]))
        ends = [visit(child) for child in children]
        if weak[node] or all(ends):
            splits.clear()
            splits.update(before)
            return bool(weak[node])
        splits.add(node)
        return False

    visit(0)
    return splits


@PROPERTY
@given(structures(), st.integers(0, 2**32), st.sampled_from([3, 30, 300]))
def test_pruning_by_signal_cuts_what_is_smaller_than_its_noise(drawn: tuple[Domain, Any], seed: int, high: int) -> None:
    domain, column = drawn
    rng = np.random.default_rng(seed)
    counts = rng.integers(-10, high, (len(column), len(domain.classes)))
    tree = _grown(domain, column, counts, rng.choice([1.0, 9.0, 20.0]), np.nan)
    pruned = by_signal(tree)
    assert _splits(tree, pruned) == _weak_reference(tree)
    assert pruned.counts[0].tolist() == tree.counts[0].tolist()
    strong = tree.counts.sum(axis=1) >= math.sqrt(tree.counts.shape[1]) * tree.deviation
    if strong.all():
        assert len(pruned) == len(tree)


def _two_levels(leaves: list[list[int]]) -> Tree:
    """a: its left side by b into three leaves, its right side a leaf; the deviation of a count is 5."""
    return _grown(_domain(2), [0, 1, -1, -1, -1, -1], [[0, 0], [0, 0], leaves[0], *leaves[1:]], 5.0, np.nan)


@pytest.mark.parametrize(
    ("leaves", "nodes"),
    [
        # a leaf of two counts has noise 7.1; three of them 12.2, all four 14.1
        ([[90, 5], [40, 2], [3, 50], [20, 20]], 6),  # all strong
        ([[90, 5], [40, 2], [3, 50], [0, 1]], 6),  # one weak leaf among strong ones stays
        ([[90, 5], [3, 3], [2, 4], [3, 3]], 3),  # all below are weak leaves, though together they are not
        ([[90, 5], [20, 0], [-10, 0], [0, 0]], 3),  # below is a weak inner node with a strong leaf
        ([[2, 2], [1, 1], [1, 0], [0, 1]], 1),  # nothing but noise
        ([[2, 2], [3, 3], [2, 4], [3, 3]], 3),  # a cut node that is strong holds its parent
    ],
)
def test_pruning_by_signal_by_hand(leaves: list[list[int]], nodes: int) -> None:
    assert len(by_signal(_two_levels(leaves))) == nodes


@pytest.mark.parametrize(
    "prune",
    [by_signal, lambda tree: by_error(tree, 0.25), rescale, lambda tree: least_squares(tree, np.ones(1))],
    ids=["signal", "error", "rescale", "least squares"],
)
def test_a_lone_leaf_is_left_alone(prune: Callable[[Tree], Tree]) -> None:
    tree = _grown(_domain(2), [-1], [[4, 2]], 1.0, 6.0)
    assert prune(tree).counts.tolist() == [[4, 2]]

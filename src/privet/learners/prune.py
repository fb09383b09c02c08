"""Consistency and pruning: post-processing of released counts, which costs nothing.

Sizes of inner nodes and class counts of leaves are released with independent noise, so they
disagree. `least_squares` finds the consistent counts that are closest to all of them; `rescale` is
what Friedman and Schuster did instead. `by_error` and `by_signal` cut subtrees that the counts do not
support.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.models.model import Floats, Integers
from privet.models.tree import Tree

_SLACK = 1e-9  # expected errors that differ by less are equal


def least_squares(tree: Tree, size_variance: Floats) -> Tree:
    """Return the tree with the weighted least-squares fit to all releases (Hay et al. 2010, for any tree and noise).

    Upwards, each node combines its released size with the sum of its children by inverse variance. Downwards, the
    correction of a parent is spread over its children by their variance. The class counts of a leaf are treated
    as its children. Nothing is divided by a noisy number, and negative counts stay until a prediction is made.

    Parameters
    ----------
    tree : Tree
    size_variance : array of float
        The variance of the noise in the released size of each node.

    Returns
    -------
    Tree
    """
    leaf = tree.is_leaf
    classes = tree.counts.shape[1]
    below = np.where(leaf, tree.counts.sum(axis=1), 0.0)  # sum of the estimates of the children
    below_variance = np.where(leaf, classes * tree.deviation**2, 0.0)
    estimate, variance = np.zeros(len(tree)), np.zeros(len(tree))
    bought = ~np.isnan(tree.size)
    levels = [np.flatnonzero(tree.depths == depth) for depth in range(tree.depth + 1)]
    for nodes in reversed(levels):
        sized = bought[nodes] & (size_variance[nodes] > 0)
        sums, sums_variance = below[nodes], below_variance[nodes]
        weight = np.where(sized, sums_variance / np.where(sized, sums_variance + size_variance[nodes], 1), 0.0)
        size = np.where(sized, np.nan_to_num(tree.size[nodes]), 0.0)
        estimate[nodes] = sums + weight * (size - np.where(sized, sums, 0.0))
        variance[nodes] = np.where(sized, (1 - weight) * sums_variance, sums_variance)
        above = tree.parents[nodes]
        if above[0] >= 0:
            np.add.at(below, above, estimate[nodes])
            np.add.at(below_variance, above, variance[nodes])
    final, final_variance = estimate.copy(), variance.copy()
    for nodes in levels[1:]:
        above = tree.parents[nodes]
        gain = variance[nodes] / np.where(below_variance[above] > 0, below_variance[above], 1)
        final[nodes] = estimate[nodes] + gain * (final[above] - below[above])
        final_variance[nodes] = variance[nodes] - gain**2 * (below_variance[above] - final_variance[above])
    share = (final - below) / classes
    counts = np.where(leaf[:, None], tree.counts + share[:, None], 0.0)
    spread = tree.deviation**2 - (below_variance - final_variance) / classes**2
    return tree.with_counts(counts, np.where(leaf, np.sqrt(np.maximum(spread, 0)), 0.0))


def rescale(tree: Tree) -> Tree:
    """Return the tree with sizes scaled to their parent, and class counts to their leaf.

    This is algorithm 3 of Friedman and Schuster. It divides by sums of noisy counts, which may be 0 or negative
    (erratum E-4); then the children share evenly.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    Tree
    """
    size = np.nan_to_num(tree.size, nan=0.0)
    for node in range(len(tree)):
        start = int(tree.first[node])
        if start >= 0:
            children = slice(start, start + int(tree.arity[node]))
            total = size[children].sum()
            size[children] = size[node] * size[children] / total if total > 0 else size[node] / tree.arity[node]
    counts = tree.counts.copy()
    for node in np.flatnonzero(tree.is_leaf).tolist():
        total = counts[node].sum()
        counts[node] = size[node] * counts[node] / total if total > 0 else size[node] / counts.shape[1]
    return tree.with_counts(counts, tree.deviation)


def by_error(tree: Tree, certainty: float) -> Tree:
    """Return the tree after C4.5's error-based pruning.

    A subtree is replaced by a leaf if the leaf is not expected to err more. With E errors among N rows the expected
    error is N times the upper limit of a binomial proportion at the certainty factor.

    Parameters
    ----------
    tree : Tree
    certainty : float
        The certainty factor, between 0 and 1. Smaller values prune more.

    Returns
    -------
    Tree
    """
    counts = np.maximum(tree.counts, 0)
    rows = counts.sum(axis=1)
    as_leaf = rows * _upper_limit(rows - counts.max(axis=1), rows, certainty)
    expected = as_leaf.copy()
    cut = np.zeros(len(tree), dtype=np.bool_)
    below = np.zeros(len(tree))
    for node in range(len(tree) - 1, -1, -1):
        if tree.first[node] >= 0:
            cut[node] = as_leaf[node] <= below[node] + _SLACK
            expected[node] = min(as_leaf[node], below[node])
        if node:
            below[tree.parents[node]] += expected[node]
    return tree.cut(cut)


@dataclass(frozen=True)
class TrainingRows:
    """Rows that anybody may see, as a tree reads them: [attribute, row], and the class of each row.

    Parameters
    ----------
    codes, grids : array of int
        The cell and the grid index of each attribute.
    labels : array of int
    missing : array of bool
        Whether each attribute has a cell for missing values.
    """

    codes: NDArray[np.int32]
    grids: NDArray[np.int32]
    labels: Integers
    missing: NDArray[np.bool_]

    def child(self, column: int, at: int, rows: Integers) -> Integers:
        """Return the number of the child that each of some rows goes to."""
        if at < 0:
            return np.asarray(self.codes[column, rows], dtype=np.int64)
        index = self.grids[column, rows]
        return np.asarray(np.where(index < 0, 2 if self.missing[column] else 0, index >= at), dtype=np.int64)


@dataclass(frozen=True)
class _Node:
    """A node that may be moved: what it splits by, and its children; none for a leaf."""

    column: int
    at: int
    children: tuple[_Node, ...]


def raise_subtrees(tree: Tree, rows: TrainingRows, certainty: float) -> Tree:
    """Return the tree after C4.5's pruning with subtree raising (Quinlan 1993, chapter 4), on public rows.

    From below: a node becomes a leaf if that is not expected to err more than the node as it is or than its largest
    child in its place; else the child takes its place, if that is not expected to err more than the node as it is. A
    child that is raised gets all rows of the node, so its errors are counted anew and it is pruned once more.

    Parameters
    ----------
    tree : Tree
        As it was grown, without pruning.
    rows : TrainingRows
        Those that it was grown on: raising counts them again.
    certainty : float
        The certainty factor, between 0 and 1. Smaller values prune more.

    Returns
    -------
    Tree
    """
    classes = tree.counts.shape[1]

    def counted(some: Integers) -> Floats:
        return np.bincount(rows.labels[some], minlength=classes).astype(np.float64)

    def as_leaf(some: Integers) -> float:
        counts = counted(some)
        total = counts.sum()
        limit = _upper_limit(np.array([total - counts.max()]), np.array([total]), certainty)
        return float(total * limit[0])

    def divided(node: _Node, some: Integers) -> list[Integers]:
        child = rows.child(node.column, node.at, some)
        return [some[child == number] for number in range(len(node.children))]

    def errors(node: _Node, some: Integers) -> float:
        if not node.children:
            return as_leaf(some)
        return sum(errors(child, part) for child, part in zip(node.children, divided(node, some), strict=True))

    def pruned(node: _Node, some: Integers) -> _Node:
        if not node.children:
            return node
        parts = divided(node, some)
        kept = _Node(
            node.column, node.at, tuple(pruned(child, part) for child, part in zip(node.children, parts, strict=True))
        )
        largest = kept.children[max(range(len(parts)), key=lambda number: len(parts[number]))]
        own, leaf, raised = errors(kept, some), as_leaf(some), errors(largest, some)
        if leaf <= own + _SLACK and leaf <= raised + _SLACK:
            return _Node(-1, -1, ())
        return pruned(largest, some) if raised <= own + _SLACK else kept

    every = np.arange(len(rows.labels))
    waiting: list[tuple[_Node, Integers]] = [(pruned(_nested(tree, 0), every), every)]
    column, at, counts = [], [], []
    for node, some in waiting:  # level by level, as it grows
        column.append(node.column)
        at.append(node.at)
        counts.append(counted(some))
        waiting += zip(node.children, divided(node, some), strict=True) if node.children else ()
    size = len(column)
    return Tree(tree.domain, np.array(column), np.array(at), np.array(counts), np.zeros(size), np.full(size, np.nan))


def _nested(tree: Tree, node: int) -> _Node:
    """Return a node of a tree with all that is below it."""
    first = int(tree.first[node])
    children = range(first, first + int(tree.arity[node])) if first >= 0 else ()
    return _Node(int(tree.column[node]), int(tree.at[node]), tuple(_nested(tree, child) for child in children))


def by_signal(tree: Tree) -> Tree:
    """Return the tree after signal-to-noise pruning (Fletcher and Islam 2015).

    A node is weak if its size, the sum of the class counts below it, is smaller than the standard deviation of
    the noise in that sum. A weak inner node becomes a leaf, and so does a node whose children are all weak leaves.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    Tree
    """
    classes = tree.counts.shape[1]
    weak = tree.counts.sum(axis=1) < np.sqrt(classes) * tree.deviation
    cut = weak & ~tree.is_leaf
    weak_below = np.ones(len(tree), dtype=np.bool_)  # whether all children are weak leaves
    for node in range(len(tree) - 1, 0, -1):
        if tree.first[node] >= 0 and weak_below[node]:
            cut[node] = True
        if not (weak[node] and (tree.first[node] < 0 or cut[node])):
            weak_below[tree.parents[node]] = False
    cut[0] = cut[0] or (tree.first[0] >= 0 and bool(weak_below[0]))
    return tree.cut(cut)


def _upper_limit(errors: Floats, rows: Floats, certainty: float) -> NDArray[Any]:
    """Return the proportion at which at most so many errors among so many rows have probability `certainty`."""
    from scipy.special import betaincinv

    errors = np.clip(errors, 0, rows)
    right = np.maximum(rows - errors, 0)
    limit = betaincinv(errors + 1, np.where(right > 0, right, 1), 1 - certainty)
    return np.where(right > 0, limit, 1.0)

"""Consistency and pruning: post-processing of released counts, which costs nothing.

Sizes of inner nodes and class counts of leaves are released with independent noise, so they
disagree. `least_squares` finds the consistent counts that are closest to all of them; `rescale` is
what Friedman and Schuster did instead. `by_error` and `by_signal` cut subtrees that the counts do not
support.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.models.model import Floats
from privet.models.tree import Tree


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
            cut[node] = as_leaf[node] <= below[node] + 1e-9
            expected[node] = min(as_leaf[node], below[node])
        if node:
            below[tree.parents[node]] += expected[node]
    return tree.cut(cut)


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

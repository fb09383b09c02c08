"""Three ways to buy a histogram, as branches of a NoisyIf: cell by cell, in levels, and in groups of like cells.

DPComp (Hay et al. 2016) lays such algorithms side by side. Which one is best depends on how many rows a cell has, on
epsilon, and on what is asked of the histogram. All of it is made of releases: the ways ask a table's own questions and
add up what was released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.choice.branch import Branch
from privet.choice.noisy_if import NoisyIf
from privet.errors import QuestionError
from privet.kernel import Domain, as_epsilon
from privet.release import Public, Release
from privet.table import ProtectedTable

Floats = NDArray[np.float64]
BRANCHING = 8  # how many intervals of a level make one of the next
GROUPING = Fraction(1, 4)  # the share of epsilon that finds groups; the rest counts them
FAINT = 2.0  # rows of a cell times epsilon, below which groups of cells pay
LONG = 64.0  # cells of a range, above which levels pay


def line_of_cells(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the cells of a table along a public line, by their numbers in row-major order.

    One column is a line already. Two columns are walked along Hilbert's curve through the smallest square of a power
    of two that holds them, which keeps neighbours of the line neighbours of the table.

    >>> line_of_cells((4,)), line_of_cells((2, 2)), line_of_cells((3, 2))
    ((0, 1, 2, 3), (0, 1, 3, 2), (0, 2, 3, 1, 5, 4))
    """
    if len(shape) == 1:
        return tuple(range(shape[0]))
    if len(shape) != 2:
        raise QuestionError("a histogram is bought in levels or groups for one column or two; name as many.")
    side = 1 << max(max(shape) - 1, 1).bit_length()
    inside = (_hilbert(side, step) for step in range(side * side))
    return tuple(row * shape[1] + column for row, column in inside if row < shape[0] and column < shape[1])


def _hilbert(side: int, step: int) -> tuple[int, int]:
    """Return the row and the column of a step of Hilbert's curve through a square."""
    row = column = 0
    size = 1
    while size < side:
        down, along = 1 & (step // 2), 1 & (step ^ (step // 2))
        if not along:
            if down:
                row, column = size - 1 - row, size - 1 - column
            row, column = column, row
        row, column = row + size * down, column + size * along
        step, size = step // 4, 2 * size
    return row, column


def identity(table: ProtectedTable, columns: Sequence[str], epsilon: Fraction) -> Floats:
    """Return the cells of a histogram, each with its own noise."""
    return np.asarray(table.histogram(*columns, epsilon=epsilon).value, dtype=np.float64)


def hierarchical(table: ProtectedTable, columns: Sequence[str], epsilon: Fraction) -> Floats:
    """Return cells made of counts of intervals of all lengths (Hay et al. 2010): sums of many cells have less noise.

    Each level counts intervals `BRANCHING` times as long as those of the level below, for the same part of epsilon,
    and least squares make of all of them the cells that fit best.
    """
    shape = tuple(table.domain[name].size for name in columns)
    order = np.array(line_of_cells(shape))
    cells = len(order)
    place = np.empty(cells, dtype=np.int64)
    place[order] = np.arange(cells)
    levels = max(1, round(math.log(cells, BRANCHING)))  # the last of them has a few intervals, each of many cells
    share = as_epsilon(epsilon / levels)
    lengths = [BRANCHING**level for level in range(levels)]
    counts = [
        np.asarray(table.grouped_histogram(*columns, groups=place // length, epsilon=share).value, dtype=np.float64)
        for length in lengths
    ]
    return _consistent(counts)[place].reshape(shape)


def _consistent(counts: Sequence[Floats]) -> Floats:
    """Return the first counts, of the cells, as least squares fit them to all levels; noise is the same in all."""
    estimates, variances = [counts[0]], [np.ones(len(counts[0]))]
    below: list[tuple[Floats, Floats]] = []
    for own in counts[1:]:
        starts = np.arange(0, len(estimates[-1]), BRANCHING)
        sums, spread = np.add.reduceat(estimates[-1], starts), np.add.reduceat(variances[-1], starts)
        below.append((sums, spread))
        weight = spread / (spread + 1)
        estimates.append(sums + weight * (own - sums))
        variances.append((1 - weight) * spread)
    final = estimates[-1]
    for level in range(len(counts) - 2, -1, -1):
        sums, spread = below[level]
        above = np.arange(len(estimates[level])) // BRANCHING
        final = estimates[level] + variances[level] / spread[above] * (final - sums)[above]
    return final


def data_aware(table: ProtectedTable, columns: Sequence[str], epsilon: Fraction) -> Floats:
    """Return cells of which neighbours with nearly equal counts share one noisy count, as in DAWA (Li et al. 2014).

    A quarter of epsilon finds the groups (`group_cells`, whose proof is that of `CheapestIntervals`), the rest counts
    them, and a group's count is divided evenly. Together that costs epsilon: what the groups are is released.
    A division into many groups is cheap by the luck of its noise more often than one into few. So a group's price is
    the error of its count and, besides, the scale of the noise by which groups are chosen: public numbers both.
    """
    shape = tuple(table.domain[name].size for name in columns)
    if math.prod(shape) < 2:
        return identity(table, columns, epsilon)
    finding = as_epsilon(epsilon * GROUPING)
    counting = epsilon - finding
    order = line_of_cells(shape)
    found = table.group_cells(*columns, epsilon=finding, price=1 / counting + 4 / finding, order=order)
    counts = np.asarray(table.grouped_histogram(*columns, groups=found, epsilon=counting).value, dtype=np.float64)
    groups = found.value
    sizes = np.bincount(groups.ravel())
    return np.asarray((counts / sizes)[groups])


WAYS: dict[str, Callable[[ProtectedTable, Sequence[str], Fraction], Floats]] = {
    "identity": identity,
    "hierarchical": hierarchical,
    "data-aware": data_aware,
}


def advice(known: Mapping[str, Any]) -> str:
    """Return the way that suits what is public or released, by rules that were made on generated histograms.

    >>> advice({"rows": 1000, "epsilon": 0.1, "cells": 100, "cells in a range": 1})
    'data-aware'
    >>> advice({"rows": 100_000, "epsilon": 1, "cells": 500, "cells in a range": 128})
    'hierarchical'
    """
    if known["cells in a range"] > LONG:
        return "hierarchical"
    return "data-aware" if known["rows"] * known["epsilon"] / known["cells"] < FAINT else "identity"


def histogram_choice(
    domain: Domain, columns: Sequence[str], epsilon: object, rows: Release | Public, longest: int = 1
) -> NoisyIf:
    """Return a NoisyIf over the three ways to buy a histogram.

    Parameters
    ----------
    domain : Domain
    columns : sequence of str
        One column or two.
    epsilon : number or str
        What the histogram costs, whichever way is taken.
    rows : Release or Public
        The number of rows: public, or released before.
    longest : int, default 1
        How many cells the sums have that will be made of the histogram; 1 if single cells are read.

    Returns
    -------
    NoisyIf
        Its outcome's value is the histogram, as floats.

    Raises
    ------
    QuestionError
        There are more than two columns, or one is not declared.

    >>> import privet
    >>> people, domain = privet.datasets.census(500), privet.datasets.census_domain()
    >>> table = privet.open(people, domain, budget=1)
    >>> outcome = histogram_choice(domain, ("age", "education"), "0.2", Public(500)).run(table)
    >>> outcome.branch, outcome.value.shape, outcome.spent
    ('data-aware', (15, 7), Fraction(1, 5))
    """
    names, cost = tuple(columns), as_epsilon(epsilon)
    cells = len(line_of_cells(tuple(domain[name].size for name in names)))
    context: dict[str, Release | Public] = {
        "rows": rows,
        "epsilon": Public(float(cost)),
        "cells": Public(cells),
        "cells in a range": Public(longest),
    }

    def branch(way: Callable[[ProtectedTable, Sequence[str], Fraction], Floats]) -> Branch:
        return Branch(lambda table: way(table, names, cost), cost)

    branches = {name: branch(way) for name, way in WAYS.items()}
    return NoisyIf("histogram", branches, default="identity", context=context, advice=advice)

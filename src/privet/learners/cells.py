"""Finer cells for learners that see numbers by their bins alone.

A tree may cut a number at any point of its declared grid; a table of log odds knows nothing but bins. Where a signal
lies between two edges, as a wage of 28 between 20 and 40, a coarse bin hides it. So boosted tables divide the bins of
coarse columns evenly on the grid. The rule reads what is public: the domain and the number of rows, which is declared
or a noisy count. docs/choice.md#bins-that-are-too-coarse has what it gains.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TypeGuard

from privet.kernel import Domain, Numeric

COARSE = 10  # bins: a column with more was divided with care, and is left as it is
FINEST = 40  # of a column: more gained nothing
CELL_SIGNAL = 25.0  # rows times epsilon for each cell of a column, at least
MOST_TOGETHER = 2**16  # cells of all columns by class: with more, bins stay as they are


def cells_for_learning(domain: Domain, signal: float) -> Domain:
    """Return the domain with finer bins for coarse numeric columns; the same domain if there are none.

    A column is coarse if it has at most 10 bins and more grid points than bins. Each of its bins is divided into
    equally many cells, as even as the grid allows, so that the column has at most 40 cells and at least 25 rows times
    epsilon for each of them. Declared edges stay edges.

    Parameters
    ----------
    domain : Domain
    signal : float
        Rows times epsilon of a record.

    Returns
    -------
    Domain

    >>> from fractions import Fraction
    >>> from privet.kernel import Nominal
    >>> wage = Numeric("wage", Fraction(0), Fraction(200), Fraction(1), bins=10)
    >>> domain = Domain((wage, Nominal("income", ("low", "high"))), target="income")
    >>> [cells_for_learning(domain, signal)["wage"].size for signal in (400, 500, 1000, 10**6)]
    [10, 20, 40, 40]
    """
    most = min(FINEST, signal / CELL_SIGNAL)
    finer = tuple(_divided(column, int(most // column.bin_count)) if _coarse(column) else column for column in domain)
    if finer == domain.columns or sum(column.size for column in finer) * len(domain.classes) > MOST_TOGETHER:
        return domain
    return replace(domain, columns=finer)


def coarse_columns(domain: Domain) -> list[Numeric]:
    """Return the numeric attributes whose bins are few, and hold several grid points."""
    return [column for name in domain.attributes if _coarse(column := domain[name])]


def _coarse(column: object) -> TypeGuard[Numeric]:
    return isinstance(column, Numeric) and column.bin_count <= min(COARSE, column.grid_size - 1)


def _divided(column: Numeric, pieces: int) -> Numeric:
    """Return the column with each bin divided into so many cells, or into its grid points if these are fewer."""
    if pieces < 2:
        return column
    starts: list[int] = []
    for first, end in pairwise((0, *column.thresholds, column.grid_size)):
        cells = min(pieces, end - first)
        starts += (first + (end - first) * cell // cells for cell in range(cells))
    return replace(column, bins=None, edges=tuple(column.value_at(start) for start in starts[1:]))

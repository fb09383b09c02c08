"""Finer cells for learners that see numbers by their bins alone.

A tree may cut a number at any point of its declared grid; a table of log odds knows nothing but bins. Where a signal
lies between two edges, as a wage of 28 between 20 and 40, a coarse bin hides it. So boosted tables read coarse columns
a second time, in bins divided evenly on the grid. Tables of one column are learned in the finer bins. Tables of two
keep the declared ones: they must have few cells. The rule reads what is public: the domain and the number of rows,
which is declared or a noisy count. docs/choice.md#bins-that-are-too-coarse has what it gains.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from itertools import count, pairwise
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from privet.kernel import Domain, Numeric
from privet.models.tables import Table
from privet.table import ProtectedTable

COARSE = 10  # bins: a column with more was divided with care, and is left as it is
FINEST = ((500.0, 20), (4000.0, 40))  # from so many rows times epsilon on, at most so many cells of a column
MOST_TOGETHER = 2**16  # cells of all columns by class: with more, bins stay as they are
MOST_COLUMNS = 5000  # of a domain: with more, bins stay as they are


def cells_for_learning(domain: Domain, signal: float) -> Domain:
    """Return the domain with finer bins for coarse numeric attributes; the same domain if there are none.

    A column is coarse if it has at most 10 bins and more grid points than bins. Each of its bins is divided into
    equally many cells, as even as the grid allows, so that the column has at most 20 cells from 500 rows times epsilon
    on and at most 40 from 4,000 on. Declared edges stay edges.

    Parameters
    ----------
    domain : Domain
    signal : float
        Rows times epsilon of a record, where epsilon counts for at most 1.

    Returns
    -------
    Domain

    >>> from fractions import Fraction
    >>> from privet.kernel import Nominal
    >>> wage = Numeric("wage", Fraction(0), Fraction(200), Fraction(1), bins=10)
    >>> domain = Domain((wage, Nominal("income", ("low", "high"))), target="income")
    >>> [cells_for_learning(domain, signal)["wage"].size for signal in (499, 500, 4000, 10**6)]
    [10, 20, 40, 40]
    """
    most = max((cells for least, cells in FINEST if signal >= least), default=0)
    finer = tuple(_divided(column, most // column.bin_count) if _coarse(column) else column for column in domain)
    cells = sum(column.size for column in finer) * len(domain.classes)
    if finer == domain.columns or cells > MOST_TOGETHER or len(finer) > MOST_COLUMNS:
        return domain
    return replace(domain, columns=finer)


class FinerTable:
    """A table whose coarse numeric columns can also be asked about in finer bins.

    Parameters
    ----------
    table : ProtectedTable
    signal : float
        Rows times epsilon of a record, where epsilon counts for at most 1.

    Attributes
    ----------
    table : ProtectedTable
        The same rows with a copy of each coarse column, in finer bins.
    domain : Domain
        The domain of that table.
    copies : dict of str to str
        For each coarse column the name of its copy.
    """

    def __init__(self, table: ProtectedTable, signal: float) -> None:
        declared = table.domain
        finer = cells_for_learning(declared, signal)
        self._declared = declared
        wanted: dict[str, str] = {}
        for name in declared.attributes:
            if finer[name] != declared[name]:
                wanted[name] = _unused(name, {*declared.names, declared.person, *wanted.values()})
        self.table = table
        if wanted:
            copies = [replace(finer.numeric(name), name=copy) for name, copy in wanted.items()]
            domain = replace(declared, columns=(*declared.columns, *copies))
            self.table = table.with_cells(domain, {copy: name for name, copy in wanted.items()})
        self.domain = self.table.domain
        self.copies = {name: copy for name, copy in wanted.items() if copy in self.domain}

    def columns(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return in which columns a table over these attributes is asked for: a single one in its finer bins."""
        return tuple(self.copies.get(name, name) for name in names) if len(names) == 1 else tuple(names)

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the attributes that these columns read."""
        read = {copy: name for name, copy in self.copies.items()}
        return tuple(read.get(column, column) for column in columns)

    def merged(self, tables: Iterable[Table]) -> tuple[Domain, tuple[Table, ...]]:
        """Return tables over attributes alone, and the domain of their cells.

        A column that some table has in finer bins has these in all: a value of a bin stands in each of its cells.
        """
        given = tuple(tables)
        asked = {column for table in given for column in table.columns}
        finer = {
            name: replace(self.domain.numeric(copy), name=name) for name, copy in self.copies.items() if copy in asked
        }
        columns = tuple(finer.get(column.name, column) for column in self._declared.columns)
        return replace(self._declared, columns=columns), tuple(self._in_cells(table, finer) for table in given)

    def _in_cells(self, table: Table, finer: dict[str, Numeric]) -> Table:
        values, deviation = table.values, table.deviation
        for axis, name in enumerate(table.columns):
            if name in finer:  # by the name of the attribute: in its declared bins
                bins = _bins_of(finer[name], self._declared.numeric(name))
                values, deviation = values.take(bins, axis=axis), deviation.take(bins, axis=axis)
        return replace(table, columns=self.names(table.columns), values=values, deviation=deviation)


def _unused(name: str, used: Container[str | None]) -> str:
    """Return a name for a copy of a column that is not used."""
    short = name[:900]  # names have at most 1000 letters
    names = (f"{short} (finer)" if number == 1 else f"{short} (finer {number})" for number in count(1))
    return next(copy for copy in names if copy not in used)


def _bins_of(finer: Numeric, declared: Numeric) -> NDArray[np.int64]:
    """Return the declared bin, or missing cell, that each cell of a finer column lies in."""
    return declared.bin_of(np.array([0, *finer.thresholds, *([-1] * finer.missing)], dtype=np.int64))


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

"""Finer cells for learners that see numbers by their bins alone.

A tree may cut a number at any point of its declared grid; a table of log odds knows nothing but bins. Where a signal
lies between two edges, as a wage of 28 between 20 and 40, a coarse bin hides it. So boosted tables read coarse columns
a second time, in bins divided evenly on the grid. Tables of one column are learned in the finer bins. Tables of two
keep the declared ones: they must have few cells. The rule reads what is public: the domain and the number of rows,
which is declared or a noisy count. docs/explanation/choice.md#bins-that-are-too-coarse has what it gains.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count, pairwise
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from privet.kernel import Column, Domain, Numeric
from privet.models.tables import Table
from privet.table import ProtectedTable

COARSE = 10  # bins: a column with more was divided with care, and is left as it is
FINEST = ((500.0, 20), (4000.0, 40))  # from so many rows times epsilon on, at most so many cells of a column
PAIRED = 8  # bins of a column in a table of two
CLOSER, CLOSEST = 20_000.0, 512  # from so many rows times epsilon on, a closer look in so many bins
AMPLE, DENSE, PIECES = 40_000.0, 40, 4  # from so many on, each bin of a column that has so many is divided into so many
MOST_TOGETHER = 2**16  # cells of all columns by class: with more, bins stay as they are
MOST_COLUMNS = 5000  # of a domain: with more, bins stay as they are


def cells_for_learning(domain: Domain, signal: float) -> Domain:
    """Return the domain with finer bins for coarse and for dense numeric attributes; the same if there are none.

    A column is coarse if it has at most 10 bins and more grid points than bins. Each of its bins is divided into
    equally many cells, as even as the grid allows, so that the column has at most 20 cells from 500 rows times epsilon
    on and at most 40 from 4,000 on. From 40,000 on, the bins of a column that has 40 or more are divided into 4 each:
    who declares so many expects that single values matter, as those of amounts do. Declared edges stay edges.

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

    def pieces(column: Numeric) -> int:
        """Into how many cells each bin of a column is divided."""
        if _coarse(column):
            return most // column.bin_count
        return min(PIECES, CLOSEST // column.bin_count) if signal >= AMPLE and column.bin_count >= DENSE else 1

    finer = tuple(divided(column, pieces(column)) if isinstance(column, Numeric) else column for column in domain)
    cells = sum(column.size for column in finer) * len(domain.classes)
    if finer == domain.columns or cells > MOST_TOGETHER or len(finer) > MOST_COLUMNS:
        return domain
    return replace(domain, columns=finer)


class FinerTable:
    """A table whose numeric columns can also be asked about in other bins than the declared ones.

    A table of one column is learned in finer bins, where the declared ones are coarse; a table of two in at most
    `PAIRED` bins of each, neighbours merged, so that it has few cells; and a closer look at one number in up to
    `CLOSEST` bins. All of them divide or merge declared bins, so that one model can hold them.

    Parameters
    ----------
    table : ProtectedTable
    signal : float
        Rows times epsilon of a record, where epsilon counts for at most 1.

    Attributes
    ----------
    table : ProtectedTable
        The same rows with a copy of such columns for each kind of bins.
    domain : Domain
        The domain of that table.
    """

    def __init__(self, table: ProtectedTable, signal: float) -> None:
        self._declared = declared = table.domain
        self._copies: dict[str, dict[str, str]] = {"single": {}, "pair": {}, "look": {}}
        finer = cells_for_learning(declared, signal)
        used = {*declared.names, declared.person}
        numbers = sum(isinstance(column, Numeric) for column in declared)
        closer = signal >= CLOSER and numbers * CLOSEST * len(declared.classes) <= MOST_TOGETHER
        copies: list[Numeric] = []
        attribute_of: dict[str, str] = {}
        for name in declared.attributes:
            column, single = declared[name], finer[name]
            if not (isinstance(column, Numeric) and isinstance(single, Numeric)):
                continue
            bins = {
                "single": single,
                "pair": _merged(column, PAIRED),
                "look": divided(single, CLOSEST // single.bin_count * closer),
            }
            for kind, other in bins.items():
                if (
                    other not in (column, single if kind == "look" else None)
                    and len(declared.columns) + len(copies) < MOST_COLUMNS
                ):
                    copy = other.named(_unused(name, used))
                    used.add(copy.name)
                    copies.append(copy)
                    attribute_of[copy.name] = name
                    self._copies[kind][name] = copy.name
        self.table = table
        if copies:
            self.table = table.with_cells(replace(declared, columns=(*declared.columns, *copies)), attribute_of)
        self.domain = self.table.domain
        # rows that were chosen by coins have no copies
        self._copies = {
            kind: {name: copy for name, copy in names.items() if copy in self.domain}
            for kind, names in self._copies.items()
        }
        self._attribute_of = attribute_of

    def columns(self, names: Sequence[str], merge: bool = True) -> tuple[str, ...]:
        """Return in which columns a table over these attributes is asked for."""
        if len(names) == 1:
            return (self._copies["single"].get(names[0], names[0]),)
        return self.merged_columns(names) if merge else tuple(names)

    def merged_columns(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return these attributes in merged bins."""
        return tuple(self._copies["pair"].get(name, name) for name in names)

    @property
    def looks(self) -> list[tuple[str, ...]]:
        """The columns in which a closer look at one number can be asked for."""
        return [(column,) for column in self._copies["look"].values()]

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the attributes that these columns read."""
        return tuple(self._attribute_of.get(column, column) for column in columns)

    def merged(self, tables: Iterable[Table]) -> tuple[Domain, tuple[Table, ...]]:
        """Return tables over attributes alone, and the domain of their cells.

        A column has the finest bins that some table has it in: a value of a bin stands in each of its cells.
        """
        given = tuple(tables)
        finest = {name: self._declared[name] for name in self._declared.attributes}
        for column in dict.fromkeys(column for table in given for column in table.columns):
            (name,) = self.names([column])
            if self.domain[column].size > finest[name].size:
                finest[name] = self.domain.numeric(column).named(name)
        columns = tuple(finest.get(column.name, column) for column in self._declared.columns)
        return replace(self._declared, columns=columns), tuple(self._in_cells(table, finest) for table in given)

    def _in_cells(self, table: Table, finest: Mapping[str, Column]) -> Table:
        values, deviation = table.values, table.deviation
        names = self.names(table.columns)
        for axis, (column, name) in enumerate(zip(table.columns, names, strict=True)):
            own, target = self.domain[column], finest[name]
            if isinstance(own, Numeric) and isinstance(target, Numeric) and own.size < target.size:
                bins = _bins_of(target, own)
                values, deviation = values.take(bins, axis=axis), deviation.take(bins, axis=axis)
        return replace(table, columns=names, values=values, deviation=deviation)


def _merged(column: Numeric, most: int) -> Numeric:
    """Return the column with neighbouring bins merged to at most so many, each of about equally many."""
    starts = (0, *column.thresholds)
    if len(starts) <= most:
        return column
    kept = [starts[len(starts) * cell // most] for cell in range(1, most)]
    return replace(column, bins=None, edges=tuple(column.value_at(start) for start in kept))


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


def divided(column: Numeric, pieces: int) -> Numeric:
    """Return the column with each bin divided into so many cells, or into its grid points if these are fewer."""
    if pieces < 2:
        return column
    starts: list[int] = []
    for first, end in pairwise((0, *column.thresholds, column.grid_size)):
        cells = min(pieces, end - first)
        starts += (first + (end - first) * cell // cells for cell in range(cells))
    return replace(column, bins=None, edges=tuple(column.value_at(start) for start in starts[1:]))

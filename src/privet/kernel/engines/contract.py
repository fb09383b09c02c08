"""What is asked of an engine: values, never text.

A query asks for exact numbers about all parts of `Rows` at once; an engine answers it in one
pass. Everything here is public: built from the domain and from released values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import DataError, QuestionError
from privet.kernel.additive import AdditiveModel
from privet.kernel.column import Column, Numeric
from privet.kernel.domain import Domain
from privet.kernel.rows import Rows

Counts = NDArray[np.int64]
E = TypeVar("E", bound=Exception)
T = TypeVar("T")

FIXED = 0  # the version of rows that never change
LARGEST_SUM = 2**63 - 1  # of grid indices


@dataclass(frozen=True)
class CountQuery:
    """For each group of columns: how many rows of each part lie in each of its cells."""

    rows: Rows
    groups: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class GridQuery:
    """For each column: how many rows of each part lie at each occupied index, by class of `target`.

    The index is the grid index of a numeric column and the code of a nominal one.
    """

    rows: Rows
    columns: tuple[str, ...]
    target: str | None = None


@dataclass(frozen=True)
class GridCounts:
    """Occupied (part, grid index) pairs in rising order, with a count for each class. Index -1: no value."""

    part: Counts
    index: Counts
    exact_counts: Counts  # [pair, class]


@dataclass(frozen=True)
class SumQuery:
    """How many rows of each part have a value in a numeric column, and the sum of their grid indices.

    A sum stops at LARGEST_SUM: so no number of rows makes an engine raise, or a sum small again.
    One row changes the sum by no more than without a limit.
    """

    rows: Rows
    column: str


@dataclass(frozen=True)
class ResidualQuery:
    """Sums of clipped residuals of a released model, for each table of columns.

    With E_c = exp(logit_c - largest logit) and T their sum, a row of class y adds
    own = min((T - E_y) / T, cap_y) to its cell of class y and, with more than two
    classes, own * E_c / (T - E_y) to the same cell of every other class c; all in
    whole multiples of 1 / RESIDUAL_GRID, rounded down. The arithmetic is integer
    arithmetic, so every engine computes the same numbers.
    """

    rows: Rows
    model: AdditiveModel
    tables: tuple[tuple[str, ...], ...]
    target: str
    caps: tuple[int, ...]


@dataclass(frozen=True)
class Residuals:
    """Answers to one table of a ResidualQuery: [part, cell, class], cells in row-major order."""

    exact_own: Counts
    exact_others: Counts | None


@dataclass(frozen=True)
class CorrectQuery:
    """How many rows of each part a released model classifies right: their own class has the largest logit.

    Of equal logits the one of the class declared first counts as the largest. Logits are
    whole numbers, so every engine counts the same rows.
    """

    rows: Rows
    model: AdditiveModel
    target: str


Query = CountQuery | GridQuery | SumQuery | ResidualQuery | CorrectQuery


class Lost(Exception):
    """The rows were out of reach in the middle of a question; it may be asked again, of those that are there then."""


class Engine(Protocol):
    """Where the rows are. Answers are exact and stay inside the kernel.

    A row's cells depend on that row alone, an exact answer is a sum over rows, and no row, nor any
    number of rows, makes an engine raise, stop, drop or reread anything. `engines/reference.py` is
    the definition of every answer.

    Engines take `shortcuts=False` when they are made, in tests alone: then every table of every
    query is counted from the coded rows. With shortcuts an answer may also come from counts,
    numberings of parts and logits that were kept from earlier queries (`Recall`, and each engine),
    from a larger table that several tables of a query share (`sql/statement.py`,
    `memory/residuals.py`), or from one pass that counts several tables. Answers must be the same.
    """

    name: str
    closed: bool
    holds_rows: bool  # in memory: an answer as large as the table takes no more than a multiple of what it has

    @property
    def version(self) -> int:
        """The version of the rows, which do not change within one; `FIXED` where they never do.

        It is asked for before a question is paid for: where the rows cannot be reached any more it raises a DataError.
        """

    def exact_counts(self, query: CountQuery) -> list[Counts]: ...

    def exact_grid(self, query: GridQuery) -> list[GridCounts]: ...

    def exact_sums(self, query: SumQuery) -> tuple[Counts, Counts]: ...

    def exact_residuals(self, query: ResidualQuery) -> list[Residuals]: ...

    def exact_correct(self, query: CorrectQuery) -> Counts: ...

    def in_cells(self, cells: Cells) -> Engine:
        """Return an engine over the same rows in other cells of numeric columns.

        A row's new cell follows from its grid index. Which rows there are was settled when the table was opened. It
        lasts as long as this engine does: see `OtherCells`.
        """

    def close(self) -> None: ...


class Borrowed:
    """Rows of an engine that was opened for somebody else: they are there as long as it is open."""

    def __init__(self, opened: Engine, answers: Engine | None = None) -> None:
        self.name, self.holds_rows = opened.name, opened.holds_rows
        self._opened: Engine | None = opened
        self._answers = answers or opened

    @property
    def closed(self) -> bool:
        return self._opened is None or self._opened.closed

    @property
    def version(self) -> int:
        return FIXED if self._opened is None else self._opened.version

    def __getattr__(self, name: str) -> Any:
        if name.startswith("exact_") and self._opened is not None:
            return getattr(self._answers, name)
        raise AttributeError(name)


class OtherCells(Borrowed):
    """The rows of an engine in other cells: open as long as that engine is, and closed with it."""

    def __init__(self, opened: Engine, cells: Cells) -> None:
        super().__init__(opened, opened.in_cells(cells))
        self._cells, self.in_declared, self.close = cells, opened.in_cells, opened.close

    def in_cells(self, cells: Cells) -> Engine:
        copies = {name: self._cells.source(source) for name, source in cells.copies.items()}
        return self.in_declared(Cells(cells.domain, {**self._cells.copies, **copies}))


@dataclass(frozen=True)
class Cells:
    """The columns of a table in other cells.

    Parameters
    ----------
    domain : Domain
        The table's columns, in their order and with the same grids, and after them copies of numeric ones.
    copies : mapping of str to str
        For each copy the column that it reads.
    """

    domain: Domain
    copies: Mapping[str, str]

    def source(self, name: str) -> str:
        """The column of the table that a column reads."""
        return self.copies.get(name, name)

    def recut(self, declared: Domain) -> list[Numeric]:
        """The columns whose cells are not among those of `declared`: they follow from the grid of their source."""
        return [
            column
            for column in numeric_columns(self.domain)
            if column.name in self.copies or column.cells() != declared[column.name].cells()
        ]


def cells_for(rows: Rows, declared: Domain, other: Domain, copies: Mapping[str, str]) -> Cells:
    """Return the cells in which another domain counts these rows.

    Parts that were paid for must stay the same rows. So columns by whose cells these rows were chosen keep them, and
    there are no copies if rows were chosen by coins, which are a hash of all columns.

    Parameters
    ----------
    rows : Rows
    declared : Domain
        What they are counted in now.
    other : Domain
        The same but for bins and edges, with copies of numeric columns at its end.
    copies : mapping of str to str
        For each copy the column that it reads.

    Raises
    ------
    QuestionError
        The domains differ in something else.
    """
    refused = QuestionError("with_cells takes this table's domain with other bins or edges, and no other change.")
    if not isinstance(other, Domain) or not isinstance(copies, Mapping) or len(copies) >= len(other.columns):
        raise refused
    count = len(other.columns) - len(copies)
    if {column.name for column in other.columns[count:]} != set(copies):
        raise refused
    for column in other.columns[count:]:
        source = declared.numeric(copies[column.name])
        if not isinstance(column, Numeric) or not column.grid_is_of(source) or column.missing != source.missing:
            raise QuestionError(f"the copy '{column.name}' needs the bounds, step and missing cell of what it reads.")
    if replace(other, columns=other.columns[:count]).with_bins_of(declared) != declared:
        raise refused
    kept = rows.by_cells
    columns = tuple(declared[column.name] if column.name in kept else column for column in other.columns)
    if rows.by_coins:
        return Cells(replace(other, columns=columns[:count]), {})
    return Cells(replace(other, columns=columns), dict(copies))


def index_count(column: Column) -> int:
    """How many indices a column has in a GridQuery."""
    return column.grid_size if isinstance(column, Numeric) else column.size


def numeric_columns(domain: Domain) -> list[Numeric]:
    return [column for column in domain if isinstance(column, Numeric)]


def reworded(work: Callable[[], T], errors: type[E], sentence: Callable[[E], str]) -> T:
    """Return what `work` returns; raise an error of its own as a DataError that keeps nothing of it.

    The words of a driver may quote a row or a password. The new error is raised outside the handler, so that the old
    one is not its context.

    Parameters
    ----------
    work : callable
        A DataError that it raises is raised as it is.
    errors : type
        The errors that are reworded.
    sentence : callable
        Takes such an error and returns the words of the new one.
    """
    try:
        return work()
    except DataError:
        raise
    except errors as error:
        words = sentence(error)
    raise DataError(words)

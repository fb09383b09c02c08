"""Questions that are answered by counts of cells: counts, histograms, groups of cells, and the best of candidates
whose scores are sums over cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.kernel.accounting import IntegerNoise, Unit
from privet.kernel.criteria import roomy
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, Counts, Engine
from privet.kernel.mechanisms import Mechanism
from privet.kernel.public_values import MAX_CELLS, MAX_RELEASED, Json, PerPart, is_name
from privet.kernel.rows import Rows
from privet.kernel.selections import CheapestIntervals, IndexSelection, interval_lengths, selection
from privet.kernel.session import Question, cell_sum, check_cells
from privet.release import About, CellGroups, Choice, Count, Histogram

R = TypeVar("R")


class CountingQuestion(Question[R]):
    """Base of the questions that count rows, each of them once at most: sensitivity 1."""

    refinable = True

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(unit.noise)


def exact_cells(engine: Engine, rows: Rows, *columns: str) -> Counts:
    """Return the rows of each part in each cell of some columns; of no column, the rows of each part."""
    (exact,) = engine.exact_counts(CountQuery(rows, (columns,)))
    return exact


@dataclass(frozen=True)
class CountQuestion(CountingQuestion[Count]):
    """Number of rows in each part: a record lies in one part."""

    kind = "count"
    words: ClassVar[str] = "count"

    def check(self, domain: Domain, rows: Rows) -> None:
        """Every table has a number of rows."""

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        return exact_cells(engine, rows)

    def release(self, noisy: int, mechanism: IntegerNoise, about: About, domain: Domain, part: int) -> Count:
        return Count(noisy, mechanism, about)

    def releases(
        self, noisy: Sequence[int], mechanisms: PerPart[Any], about: PerPart[About], domain: Domain
    ) -> list[Count]:
        """Return the releases of all parts: the nodes of a tree level are thousands."""
        return [Count(*answer) for answer in zip(noisy, mechanisms, about, strict=True)]


@dataclass(frozen=True)
class HistogramQuestion(CountingQuestion[Histogram]):
    """Counts over all cells of some columns, from the public domain: empty cells are released like the others.

    A record lies in one cell of one part.
    """

    columns: tuple[str, ...]

    kind = "histogram"

    @property
    def words(self) -> str:
        return f"histogram({', '.join(self.columns)})"

    def check(self, domain: Domain, rows: Rows) -> None:
        if not self.columns:
            raise QuestionError("a histogram needs at least one column; for the number of rows use count.")
        if not all(isinstance(name, str) for name in self.columns) or len(set(self.columns)) < len(self.columns):
            raise QuestionError("a histogram takes the names of different columns, one after the other.")
        check_cells(rows.parts * cell_sum(domain, [self.columns]), MAX_RELEASED)

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        return exact_cells(engine, rows, *self.columns)

    def release(self, noisy: Any, mechanism: IntegerNoise, about: About, domain: Domain, part: int) -> Histogram:
        labels = tuple(domain[name].labels for name in self.columns)
        return Histogram(np.array(noisy, dtype=np.int64), self.columns, labels, mechanism, about)

    def releases(
        self, noisy: Sequence[Any], mechanisms: PerPart[Any], about: PerPart[About], domain: Domain
    ) -> list[Histogram]:
        """Return the releases of all parts, made from one array."""
        labels = tuple(domain[name].labels for name in self.columns)
        return Histogram.of_parts(np.array(noisy, dtype=np.int64), self.columns, labels, mechanisms, about)


Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class HistogramsQuestion(Question[tuple[Histogram, ...]]):
    """Several histograms of each part; together they cost epsilon, each the same.

    The counts of all groups of a part are one vector. A record lies in one cell of each group, so
    the sensitivity is the number of groups, and so is its square in the L2 norm.
    """

    groups: PerPart[Groups]

    kind = "histograms"

    @property
    def words(self) -> str:
        return f"histograms({len(self._wanted)} tables)"

    @property
    def _wanted(self) -> Groups:
        """Every group that some part asks for, once."""
        return tuple(dict.fromkeys(group for own in self.groups.compact().values for group in own))

    def check(self, domain: Domain, rows: Rows) -> None:
        distinct = self.groups.compact()
        if len(self.groups) != rows.parts or not all(own and all(own) for own in distinct.values):
            raise QuestionError(f"give each of the {rows.parts} parts at least one group of columns.")
        for own in distinct.values:
            for group in own:
                if not isinstance(group, tuple) or len(set(group)) != len(group):
                    raise QuestionError("a group is a tuple of the names of different columns.")
        cells = [cell_sum(domain, own) for own in distinct.values]
        check_cells(sum(cells[number] for number in distinct.which.tolist()), MAX_RELEASED)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.combine(lambda loss, own: unit.noise(loss, len(own), len(own)), self.groups)

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Iterator[Counts]:
        wanted = self._wanted
        exact_tables = dict(zip(wanted, engine.exact_counts(CountQuery(rows, wanted)), strict=True))
        for part, own in enumerate(self.groups):
            yield np.concatenate([exact_tables[group][part].ravel() for group in own])

    def release(
        self, noisy: Any, mechanism: IntegerNoise, about: About, domain: Domain, part: int
    ) -> tuple[Histogram, ...]:
        own = self.groups[part]
        about, noise = about.share(len(own)), mechanism.share(len(own))
        shapes = [tuple(domain[name].size for name in group) for group in own]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        values = np.split(np.array(noisy, dtype=np.int64), ends[:-1])
        labels = [tuple(domain[name].labels for name in group) for group in own]
        return tuple(
            Histogram(cells.reshape(shape), group, names, noise, about)
            for cells, shape, group, names in zip(values, shapes, own, labels, strict=True)
        )


@dataclass(frozen=True)
class MajorityQuestion(Question[Choice]):
    """The most frequent cell of a column; one record adds one to one count, so the exponent is monotone."""

    column: str

    kind = "majority"

    @property
    def words(self) -> str:
        return f"majority({self.column})"

    def check(self, domain: Domain, rows: Rows) -> None:
        check_cells(rows.parts * cell_sum(domain, [[self.column]]), MAX_CELLS)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(lambda loss: unit.choice(loss, 1, monotone=True))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        return exact_cells(engine, rows, self.column)

    def release(self, noisy: int, mechanism: IndexSelection, about: About, domain: Domain, part: int) -> Choice:
        labels = domain[self.column].labels
        return Choice(labels[noisy], None, mechanism, len(labels), 1, about)


# -- groups of neighbouring cells --------------------------------------------------------------

MOST_GROUPED = 2**12  # cells that are put into groups: all their intervals are compared
MOST_COMPARED = 2**28  # squares of cells, of all parts together
LARGEST_PRICE = 10**9


def _check_columns(columns: Sequence[str]) -> None:
    """Refuse anything but the names of different columns, at least one."""
    if not columns or not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
        raise QuestionError("cells are those of different columns, named one after the other.")


@dataclass(frozen=True)
class GroupCellsQuestion(Question[CellGroups]):
    """Which neighbouring cells have nearly equal counts: the first step of DAWA (Li, Hay and Miklau 2014).

    Cells stand on a public line. An interval of L cells, L a power of two, with counts x and mean m costs
    sum |x - m|, the error of saying m for each, plus a public `price`, the error of the noise that its count will
    get. The cheapest division of the line into intervals is found after noise (`CheapestIntervals`).

    Sensitivity: a record adds one to one cell, so it moves the cost of the intervals with this cell alone, of which
    any division has one. It moves the mean by 1 / L, so this cell's deviation by at most 1 - 1 / L and each of the
    L - 1 others by at most 1 / L: the cost by at most 2 (1 - 1 / L). Costs are whole multiples of 1 / M for the
    longest interval M, since L divides M; in these units the sensitivity is 2 (M - 1).
    """

    columns: tuple[str, ...]
    order: tuple[int, ...]  # the cells along the line, each by its number in row-major order
    price: Fraction  # of an interval, in rows

    kind = "group-cells"

    @property
    def words(self) -> str:
        return f"group_cells({', '.join(self.columns)})"

    def check(self, domain: Domain, rows: Rows) -> None:
        _check_columns(self.columns)
        cells = cell_sum(domain, [self.columns])
        if not 2 <= cells <= MOST_GROUPED:
            raise QuestionError(f"{cells} cells cannot be put into groups; ask for 2 to {MOST_GROUPED} cells.")
        if len(self.order) != cells or set(self.order) != set(range(cells)):
            raise QuestionError(f"the order of {cells} cells names each of the numbers 0 to {cells - 1} once.")
        if not isinstance(self.price, Fraction) or not 0 <= self.price <= LARGEST_PRICE:
            raise QuestionError(f"the price of a group is a number of rows from 0 to {LARGEST_PRICE}.")
        if rows.parts * cells**2 > MOST_COMPARED:
            raise QuestionError(
                f"{cells} cells of {rows.parts} parts are too many to put into groups; ask fewer at once."
            )

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        longest = interval_lengths(len(self.order))[0]
        price = math.floor(self.price * longest)
        return losses.map(lambda loss: unit.intervals(loss, 2 * (longest - 1), len(self.order), price))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Iterator[list[int]]:
        """Yield the costs of all intervals of each part, in units of 1 / M, those of the longest first."""
        exact = exact_cells(engine, rows, *self.columns)
        lengths = interval_lengths(len(self.order))
        exact_lines = roomy(exact.reshape(rows.parts, -1), 4 * lengths[0], axes=(-1,))[:, list(self.order)]
        for exact_line in exact_lines:
            exact_costs: list[int] = []
            for length in lengths:
                exact_windows = sliding_window_view(exact_line, length)
                exact_deviations = np.abs(length * exact_windows - exact_windows.sum(axis=1)[:, None]).sum(axis=1)
                exact_costs += (exact_deviations * (lengths[0] // length)).tolist()
            yield exact_costs

    def release(
        self, noisy: Sequence[int], mechanism: CheapestIntervals, about: About, domain: Domain, part: int
    ) -> CellGroups:
        shape = tuple(domain[name].size for name in self.columns)
        groups = np.zeros(len(self.order), dtype=np.int64)
        groups[list(self.order)] = np.repeat(np.arange(len(noisy)), noisy)
        return CellGroups(groups.reshape(shape), self.columns, about)


@dataclass(frozen=True)
class GroupedHistogramQuestion(CountingQuestion[Histogram]):
    """Counts over public groups of the cells of some columns: a record lies in one cell of one group."""

    columns: tuple[str, ...]
    groups: tuple[int, ...]  # the group of each cell, in row-major order

    kind = "grouped-histogram"

    @property
    def words(self) -> str:
        return f"grouped_histogram({', '.join(self.columns)})"

    def check(self, domain: Domain, rows: Rows) -> None:
        _check_columns(self.columns)
        cells = cell_sum(domain, [self.columns])
        check_cells(rows.parts * cells, MAX_RELEASED)
        if len(self.groups) != cells:
            raise QuestionError(f"{len(self.groups)} groups were named for {cells} cells; name one for each cell.")
        if max(self.groups) >= cells or set(self.groups) != set(range(max(self.groups) + 1)):
            raise QuestionError("groups of cells have the numbers 0, 1 and so on, and none is empty.")

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        exact = exact_cells(engine, rows, *self.columns)
        exact_sums: NDArray[Any] = np.zeros((max(self.groups) + 1, rows.parts), dtype=exact.dtype)
        np.add.at(exact_sums, np.array(self.groups), exact.reshape(rows.parts, -1).T)
        return exact_sums.T

    def release(self, noisy: Any, mechanism: IntegerNoise, about: About, domain: Domain, part: int) -> Histogram:
        labels = tuple(f"group {number}" for number in range(max(self.groups) + 1))
        name = f"groups of {', '.join(self.columns)}"
        return Histogram(np.array(noisy, dtype=np.int64), (name,), (labels,), mechanism, about)


# -- the best of several candidates by a quality function of one's own -------------------------

LARGEST_BOUND = 2**31


@dataclass(frozen=True)
class Quality:
    """What each row adds to a candidate's score: a look-up table of the cells of some columns.

    Parameters
    ----------
    columns : sequence of str
        Whose cells are looked up.
    table : nested sequence or array of int
        A whole number for each cell: an axis for each column, in the order of its labels.
    """

    columns: tuple[str, ...]
    table: tuple[int, ...]  # in row-major order
    shape: tuple[int, ...]

    def __init__(self, columns: Sequence[str], table: Any) -> None:
        if not isinstance(columns, list | tuple) or not all(isinstance(name, str) for name in columns):
            raise QuestionError("a quality looks at the columns of a list, by their names.")
        try:
            numbers = np.asarray(table)
        except ValueError:  # of nested lists
            raise QuestionError("a quality's table has an axis for each column: its rows are of one length.") from None
        values = numbers.ravel().tolist()
        listed = np.issubdtype(numbers.dtype, np.integer) or numbers.dtype == object
        if not listed or not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            raise QuestionError("a quality's table consists of whole numbers; choose a unit in which they are whole.")
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "table", tuple(values))
        object.__setattr__(self, "shape", tuple(numbers.shape))

    def clipped(self, bound: int) -> NDArray[np.int64]:
        """Return the table with every number cut to [-bound, bound]."""
        return np.array([min(max(value, -bound), bound) for value in self.table], dtype=np.int64)


@dataclass(frozen=True)
class ChooseQuestion(Question[Choice]):
    """Of several candidates the one of the highest score: a sum over rows of a look-up table of public cells.

    The kernel clips every table to [-bound, bound], so one record moves each score by at most `bound`: a bound that is
    too small costs accuracy and never privacy. Where no clipped number is negative, or none is positive, scores
    move in one direction alone and the selection is monotone.
    """

    candidates: tuple[tuple[str, Quality], ...]
    bound: int
    mechanism: str = "exponential"

    kind = "choose"

    @property
    def words(self) -> str:
        return f"choose({len(self.candidates)} candidates)"

    def field_json(self, name: str, brief: bool) -> Json:
        if name != "candidates":
            return super().field_json(name, brief)
        return [
            {"name": name, "columns": quality.columns, "shape": quality.shape, "table": quality.table}
            for name, quality in self.candidates
        ]

    def check(self, domain: Domain, rows: Rows) -> None:
        selection(self.mechanism)
        if type(self.bound) is not int or not 1 <= self.bound <= LARGEST_BOUND:
            raise QuestionError(f"a bound is a whole number from 1 to {LARGEST_BOUND}.")
        names = [name for name, _ in self.candidates]
        if len(names) < 2 or len(set(names)) < len(names) or not all(is_name(name) for name in names):
            raise QuestionError("candidates are a mapping of at least two names, printable texts, to Quality tables.")
        for name, quality in self.candidates:
            shape = tuple(domain[column].size for column in quality.columns)
            if len(set(quality.columns)) < len(shape) or quality.shape != shape:
                raise QuestionError(
                    f"the table of candidate '{name}' must have the shape {shape}: an axis for each of its columns, "
                    "which are different."
                )
        groups = {quality.columns for _, quality in self.candidates}
        check_cells(rows.parts * cell_sum(domain, groups), MAX_CELLS)

    @property
    def monotone(self) -> bool:
        """Whether a record can move scores in one direction alone."""
        numbers = [value for _, quality in self.candidates for value in quality.table]
        return min(numbers) >= 0 or max(numbers) <= 0

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(lambda loss: unit.choice(loss, self.bound, self.monotone, self.mechanism))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> NDArray[Any]:
        groups = tuple(dict.fromkeys(quality.columns for _, quality in self.candidates))
        exact_tables = dict(zip(groups, engine.exact_counts(CountQuery(rows, groups)), strict=True))
        exact_scores = []
        for _, quality in self.candidates:
            exact = exact_tables[quality.columns].reshape(rows.parts, math.prod(quality.shape))
            exact_scores.append(roomy(exact, self.bound, axes=(-1,)) @ quality.clipped(self.bound))
        return np.stack(exact_scores, axis=1)

    def release(self, noisy: int, mechanism: IndexSelection, about: About, domain: Domain, part: int) -> Choice:
        return Choice(self.candidates[noisy][0], None, mechanism, len(self.candidates), 1, about)

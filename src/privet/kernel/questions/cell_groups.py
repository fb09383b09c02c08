"""Groups of neighbouring cells: which ones have nearly equal counts, and the counts of groups that are public."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.kernel.accounting import IntegerNoise, Unit
from privet.kernel.criteria import roomy
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, Counts, Engine
from privet.kernel.limits import MAX_RELEASED
from privet.kernel.mechanisms import CheapestIntervals, Mechanism, interval_lengths
from privet.kernel.per_part import PerPart
from privet.kernel.rows import Rows
from privet.kernel.session import FRACTION, TEXTS, WHOLES, Question, cell_sum, check_cells
from privet.release import About, CellGroups, Histogram

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

    columns: Annotated[tuple[str, ...], TEXTS]
    order: Annotated[tuple[int, ...], WHOLES]  # the cells along the line, each by its number in row-major order
    price: Annotated[Fraction, FRACTION]  # of an interval, in rows

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
        (exact,) = engine.exact_counts(CountQuery(rows, (self.columns,)))
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
class GroupedHistogramQuestion(Question[Histogram]):
    """Counts over public groups of the cells of some columns. Sensitivity 1: a record lies in one cell of one group."""

    columns: Annotated[tuple[str, ...], TEXTS]
    groups: Annotated[tuple[int, ...], WHOLES]  # the group of each cell, in row-major order

    kind = "grouped-histogram"
    refinable = True

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

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(unit.noise)

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        (exact,) = engine.exact_counts(CountQuery(rows, (self.columns,)))
        exact_sums: NDArray[Any] = np.zeros((max(self.groups) + 1, rows.parts), dtype=exact.dtype)
        np.add.at(exact_sums, np.array(self.groups), exact.reshape(rows.parts, -1).T)
        return exact_sums.T

    def release(self, noisy: Any, mechanism: IntegerNoise, about: About, domain: Domain, part: int) -> Histogram:
        labels = tuple(f"group {number}" for number in range(max(self.groups) + 1))
        name = f"groups of {', '.join(self.columns)}"
        return Histogram(np.array(noisy, dtype=np.int64), (name,), (labels,), mechanism, about)

"""Questions about numbers: sums, means and quantiles of a numeric column, and counts along the grids of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.kernel.accounting import IntegerNoise, Unit
from privet.kernel.criteria import roomy
from privet.kernel.date import Date
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import Counts, Engine, GridCounts, GridQuery, SumQuery, index_count
from privet.kernel.mechanisms import Mechanism, SumAndCount
from privet.kernel.public_values import PerPart
from privet.kernel.rows import Rows
from privet.kernel.selections import ExponentialOverRanges, Ranges
from privet.kernel.session import Question
from privet.release import About, Count, DateQuantile, Mean, Quantile, Sum
from privet.text import decimal_text, quoted

R = TypeVar("R")


@dataclass(frozen=True)
class _NumericQuestion(Question[R]):
    """Base of the questions about the rows that have a value in a numeric column."""

    column: str

    @property
    def words(self) -> str:
        return f"{self.kind}({self.column})"

    def check(self, domain: Domain, rows: Rows) -> None:
        domain.numeric(self.column)


@dataclass(frozen=True)
class SumQuestion(_NumericQuestion[Sum]):
    """The sum of a numeric column over the rows that have a value, in multiples of the column's unit.

    Values are clamped to the bounds, so the sensitivity is the larger bound.
    """

    kind = "sum"
    refinable = True

    def check(self, domain: Domain, rows: Rows) -> None:
        _refuse_dates(self.column, domain)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        column = domain.numeric(self.column)
        reach = int(max(abs(column.low), abs(column.top)) / column.unit)
        return losses.map(lambda loss: unit.noise(loss, reach))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> NDArray[Any]:
        column = domain.numeric(self.column)
        exact_rows, exact_indices = engine.exact_sums(SumQuery(rows, self.column))
        low, step = int(column.low / column.unit), int(column.step / column.unit)
        # Python's integers: the mechanism clamps what no int64 holds
        exact = [low * int(n) + step * int(index) for n, index in zip(exact_rows, exact_indices, strict=True)]
        return np.array(exact, dtype=object)

    def release(self, noisy: int, mechanism: IntegerNoise, about: About, domain: Domain, part: int) -> Sum:
        unit = domain.numeric(self.column).unit
        return Sum(float(noisy * unit), mechanism, unit, about)


@dataclass(frozen=True)
class MeanQuestion(_NumericQuestion[Mean]):
    """The mean of a numeric column over the rows that have a value.

    The sum of deviations from the middle of the bounds, in half steps, over the number of rows: a record
    adds at most grid_size - 1 to the one and one to the other. Half of the loss goes to each.
    """

    kind = "mean"

    def check(self, domain: Domain, rows: Rows) -> None:
        _refuse_dates(self.column, domain)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        reach = domain.numeric(self.column).grid_size - 1
        return losses.map(lambda loss: unit.sum_and_count(loss, reach))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> NDArray[Any]:
        last = domain.numeric(self.column).grid_size - 1
        exact_rows, exact_indices = engine.exact_sums(SumQuery(rows, self.column))
        pairs = zip(exact_rows.tolist(), exact_indices.tolist(), strict=True)
        return np.array([(2 * index - last * n, n) for n, index in pairs], dtype=object).reshape(-1, 2)

    def release(self, noisy: Sequence[int], mechanism: SumAndCount, about: About, domain: Domain, part: int) -> Mean:
        column = domain.numeric(self.column)
        total, rows = noisy
        half = about.share(2)
        deviation = Sum(float(total * column.step / 2), mechanism.sums, column.step / 2, half)
        return Mean.of(deviation, Count(rows, mechanism.counts, half), column)


def _refuse_dates(name: str, domain: Domain) -> None:
    if isinstance(domain.numeric(name), Date):
        raise QuestionError(f"column '{name}' holds dates, which have no sum and no mean; ask for its median instead.")


FINEST_RANK = 10**6  # the largest denominator of a rank
_POINTS = 2**25  # that an engine without the rows is asked about at once; their memory: docs/explanation/scale.md


@dataclass(frozen=True)
class QuantileQuestion(_NumericQuestion[Quantile | DateQuantile]):
    """A grid point below which about a share `rank` of the rows that have a value lies.

    With the rank a / b, one record moves the score of a point by at most max(a, b - a), up or down.
    """

    rank: Fraction

    kind = "quantile"

    @property
    def words(self) -> str:
        return f"quantile({self.column}, {decimal_text(self.rank)})"

    def check(self, domain: Domain, rows: Rows) -> None:
        super().check(domain, rows)
        if not 0 <= self.rank <= 1 or self.rank.denominator > FINEST_RANK:
            raise QuestionError(f"the rank of a quantile lies between 0 and 1, not at {quoted(self.rank)}.")

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        reach = max(self.rank.numerator, self.rank.denominator - self.rank.numerator)
        return losses.map(lambda loss: unit.ranges(loss, reach, monotone=False))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Iterator[Ranges]:
        points = domain.numeric(self.column).grid_size
        for (grid,) in grids(engine, rows, (self.column,), None, domain):
            yield quantile_ranges(grid.at, grid.exact_counts.sum(axis=1), points, self.rank)

    def release(
        self, noisy: int, mechanism: ExponentialOverRanges, about: About, domain: Domain, part: int
    ) -> Quantile | DateQuantile:
        column = domain.numeric(self.column)
        value, rest = column.value_at(noisy), (self.rank, mechanism, column.grid_size, about)
        return DateQuantile(column.text(value), *rest) if isinstance(column, Date) else Quantile(float(value), *rest)


def quantile_ranges(index: Counts, exact_counts: Counts, points: int, rank: Fraction) -> Ranges:
    """Return the score of every grid point, as ranges of equal score.

    With `below`, `at` and `above` rows beside a point and the rank a / b, its score is
    minus the larger of (b - a) * below - a * (at + above) and a * above - (b - a) * (below + at),
    or 0 where both are negative: how far, in rows times b, it is from being the quantile.
    One record changes either term by at most max(a, b - a), up or down.
    """
    a, b = rank.numerator, rank.denominator
    exact_counts = roomy(exact_counts, b, axes=(-1,))
    before = np.concatenate([[0], np.cumsum(exact_counts)])
    # an occupied point each, and before each and after the last a range of empty ones
    start = np.empty(2 * len(index) + 1, dtype=np.int64)
    start[0], start[1::2], start[2::2] = 0, index, index + 1
    size = np.diff(start, append=points)
    full = np.flatnonzero(size)
    below = np.empty(2 * len(index) + 1, dtype=exact_counts.dtype)
    below[0::2], below[1::2] = before, before[:-1]
    at = np.zeros_like(below)
    at[1::2] = exact_counts
    below, at = below[full], at[full]
    above = before[-1] - below - at
    too_high, too_low = (b - a) * below - a * (at + above), a * above - (b - a) * (below + at)
    return Ranges(-np.maximum(0, np.maximum(too_high, too_low)), size[full])


class Grid(NamedTuple):
    """What is counted along one column in one part: occupied indices, counts [index, class], rows without one."""

    at: Counts
    exact_counts: Counts
    exact_missing: Counts


def grids(
    engine: Engine, rows: Rows, columns: Sequence[str], target: str | None, domain: Domain
) -> Iterator[tuple[Grid, ...]]:
    """Yield for each part the grid of each column.

    An engine that holds the rows is asked about all parts at once. Any other one is asked about so many parts at a time
    that there cannot be more than `_POINTS` points, so that the domain bounds the memory that an answer takes, and not
    the rows.
    """
    points = sum(index_count(domain[name]) + 1 for name in columns)
    together = max(1, _POINTS // points)
    if engine.holds_rows or (domain.max_rows is not None and domain.max_rows * len(columns) <= _POINTS):
        together = rows.parts
    for first in range(0, rows.parts, max(1, together)):
        some = rows if together >= rows.parts else rows.keep(range(first, min(first + together, rows.parts)))
        exact = engine.exact_grid(GridQuery(some, tuple(columns), target))
        yield from zip(*(_by_part(grid, some.parts) for grid in exact), strict=True)


def _by_part(exact: GridCounts, parts: int) -> list[Grid]:
    bounds = np.searchsorted(exact.part, np.arange(parts + 1))
    split = []
    for part in range(parts):
        mine = slice(bounds[part], bounds[part + 1])
        index, exact_counts = exact.index[mine], exact.exact_counts[mine]
        missing = exact_counts[index < 0].sum(axis=0)
        split.append(Grid(index[index >= 0], exact_counts[index >= 0], missing))
    return split

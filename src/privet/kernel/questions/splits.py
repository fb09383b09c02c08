"""Questions about splits: the best attribute for predicting the target, with and without a threshold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.kernel.accounting import Unit
from privet.kernel.column import Numeric
from privet.kernel.criteria import Criterion, check_criterion
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, Counts, Engine, index_count
from privet.kernel.mechanisms import Mechanism
from privet.kernel.public_values import MAX_CELLS, PerPart
from privet.kernel.questions.numbers import Grid, grids
from privet.kernel.rows import Rows, Split
from privet.kernel.selections import ExponentialOverRanges, IndexSelection, Ranges, selection
from privet.kernel.session import Question, cell_sum, check_cells
from privet.release import About, Choice

Candidate = str | tuple[str, int]  # a column by its cells; a numeric one and the grid index from which rows go right
Candidates = tuple[Candidate, ...]


@dataclass(frozen=True)
class SelectQuestion(Question[Choice]):
    """Of each part's candidates the one whose split scores best, for predicting the target.

    One record moves all scores by at most the criterion's sensitivity and in one direction. With
    `monotone=False` a selection is twice as noisy as need be, as some papers have it.
    """

    criterion: Criterion
    candidates: PerPart[Candidates]
    mechanism: str = "permute-and-flip"
    monotone: bool = True

    kind = "select"

    @property
    def words(self) -> str:
        return f"select({self.criterion.name})"

    def check(self, domain: Domain, rows: Rows) -> None:
        check_criterion(self.criterion, domain)
        selection(self.mechanism)
        check_candidates(self.candidates, domain, rows.parts)
        target = domain.target_column.name
        check_cells(rows.parts * cell_sum(domain, [(name, target) for name in self._names]), MAX_CELLS)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        reach = self.criterion.sensitivity
        return losses.map(lambda loss: unit.choice(loss, reach, self.monotone, self.mechanism))

    @property
    def _every(self) -> list[Candidate]:
        """Every candidate of some part, once."""
        return list(dict.fromkeys(itertools.chain.from_iterable(self.candidates.compact().values)))

    @property
    def _names(self) -> list[str]:
        """The attributes that compete by their cells."""
        return [candidate for candidate in self._every if isinstance(candidate, str)]

    @property
    def _divided(self) -> list[str]:
        """The numeric attributes that compete with thresholds of their own."""
        return list(dict.fromkeys(candidate[0] for candidate in self._every if not isinstance(candidate, str)))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Iterable[NDArray[Any]]:
        exact_tables = self.exact_tables(engine, rows, domain)
        exact_scores = {name: self.criterion.exact_scores(table) for name, table in exact_tables.items()}
        if self._divided:
            return self._with_thresholds(engine, rows, domain, exact_scores)
        names = list(exact_scores)
        by_name = np.stack(list(exact_scores.values()), axis=1)
        own = self.candidates.map(lambda mine: np.array([names.index(str(name)) for name in mine]))
        if len(own.values) == 1:
            return by_name[:, own.values[0]]
        return (exact.take(positions) for exact, positions in zip(by_name, own, strict=True))

    def exact_tables(self, engine: Engine, rows: Rows, domain: Domain) -> dict[str, Counts]:
        """Return counts [part, cell, class] of the attributes that compete by their cells."""
        names, target = self._names, domain.target_column.name
        query = CountQuery(rows, tuple((name, target) for name in names))
        return dict(zip(names, engine.exact_counts(query), strict=True)) if names else {}

    def exact_sides(self, engine: Engine, rows: Rows, domain: Domain) -> Iterator[dict[Candidate, Counts]]:
        """Yield for each part the counts [side, class] of its candidates with thresholds."""
        divided = self._divided
        if not divided:
            yield from itertools.repeat({}, rows.parts)
            return
        for own, columns in zip(self.candidates, grids(engine, rows, divided, domain.target, domain), strict=True):
            by_column = dict(zip(divided, columns, strict=True))
            pairs = [candidate for candidate in own if not isinstance(candidate, str)]
            yield {pair: _two_sides(domain.numeric(pair[0]), pair[1], by_column[pair[0]]) for pair in pairs}

    def _with_thresholds(
        self, engine: Engine, rows: Rows, domain: Domain, exact_scores: dict[str, NDArray[Any]]
    ) -> Iterator[NDArray[Any]]:
        for part, exact_sides in enumerate(self.exact_sides(engine, rows, domain)):
            scores = [
                exact_scores[candidate][part]
                if isinstance(candidate, str)
                else self.criterion.exact_scores(exact_sides[candidate][None])[0]
                for candidate in self.candidates[part]
            ]
            large = any(isinstance(score, int) for score in scores)  # Python's, as a criterion has them where it must
            yield np.array(scores, dtype=object if large else None)

    def release(self, noisy: int, mechanism: IndexSelection, about: About, domain: Domain, part: int) -> Choice:
        own = self.candidates[part]
        chosen = own[noisy]
        if isinstance(chosen, str):
            return Choice(chosen, None, mechanism, len(own), self.criterion.grid, about)
        column = domain.numeric(chosen[0])
        point = column.value_at(chosen[1] - 1)  # a threshold goes left: the last value on that side
        return Choice(chosen[0], point, mechanism, len(own), self.criterion.grid, about, column.kind == "date")


def check_candidates(candidates: PerPart[Candidates], domain: Domain, parts: int) -> None:
    """Refuse candidates that are not attributes of the domain, or thresholds outside their bounds."""
    if len(candidates) != parts:
        raise QuestionError(f"attributes were given for {len(candidates)} of {parts} parts; give one list for each.")
    checked: set[Candidate] = set()  # the lists of a level's nodes name the same ones
    for own in candidates.compact().values:
        if not own:
            raise QuestionError("there is no attribute to choose from; name at least one.")
        for candidate in own:
            if candidate in checked:
                continue
            checked.add(candidate)
            name = candidate if isinstance(candidate, str) else candidate[0]
            if domain[name].name == domain.target:
                raise QuestionError(f"'{name}' is the target; choose among the other columns.")
            if not isinstance(candidate, str):
                Split(name, (candidate[1],)).check(domain)


def _two_sides(column: Numeric, at: int, grid: Grid) -> Counts:
    """Return the class counts below a grid index, from it on and, where declared, without a value."""
    left = grid.exact_counts[grid.at < at].sum(axis=0)
    sides = [left, grid.exact_counts.sum(axis=0) - left]
    return np.stack(sides + [grid.exact_missing] * column.missing)


@dataclass(frozen=True)
class SelectThresholdQuestion(Question[Choice]):
    """Of each part's attributes the best, numeric ones with the best threshold (rows with value <= threshold go left).

    The candidates lie on a public line, the attributes one after the other. Each has the same length, its base
    measure: a numeric one spreads it evenly over its thresholds. One record moves all scores by at most the
    criterion's sensitivity and in one direction.
    """

    criterion: Criterion
    attributes: PerPart[tuple[str, ...]]
    monotone: bool = True

    kind = "select-threshold"

    @property
    def words(self) -> str:
        return f"select({self.criterion.name})"

    def check(self, domain: Domain, rows: Rows) -> None:
        check_criterion(self.criterion, domain)
        check_candidates(self.attributes, domain, rows.parts)
        check_cells(rows.parts * domain.target_column.size, MAX_CELLS)  # keys of points, too, fit 64 bits then

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        reach = self.criterion.sensitivity
        return losses.map(lambda loss: unit.ranges(loss, reach, self.monotone))

    @property
    def _names(self) -> tuple[str, ...]:
        """Every attribute that some part may choose."""
        return tuple(dict.fromkeys(name for own in self.attributes.compact().values for name in own))

    def _length(self, domain: Domain) -> int:
        """Return how long every attribute is on the line: a multiple of the number of thresholds of each."""
        return math.lcm(*(c.grid_size - 1 for name in self._names if isinstance(c := domain[name], Numeric)))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Iterator[Ranges]:
        names, length = self._names, self._length(domain)
        for own, columns in zip(self.attributes, grids(engine, rows, names, domain.target, domain), strict=True):
            by_name = dict(zip(names, columns, strict=True))
            kind: type[Any] = np.int64 if length * len(own) < 2**62 else object
            sizes: list[NDArray[Any]] = []
            scores: list[NDArray[Any]] = []
            for name in own:
                column, grid = domain[name], by_name[name]
                if isinstance(column, Numeric):
                    ranges = threshold_ranges(column, grid, self.criterion)
                    sizes.append(np.asarray(ranges.exact_sizes).astype(kind) * (length // (column.grid_size - 1)))
                    scores.append(ranges.exact_scores)
                else:
                    dense = np.zeros((index_count(column), grid.exact_counts.shape[1]), dtype=np.int64)
                    dense[grid.at] = grid.exact_counts
                    sizes.append(np.array([length], dtype=kind))
                    scores.append(self.criterion.exact_scores(dense[None]))
            yield Ranges(np.concatenate(scores), np.concatenate(sizes))

    def release(self, noisy: int, mechanism: ExponentialOverRanges, about: About, domain: Domain, part: int) -> Choice:
        own, length = self.attributes[part], self._length(domain)
        which, within = divmod(noisy, length)
        column = domain[own[which]]
        point = None
        if isinstance(column, Numeric):
            point = column.value_at(within // (length // (column.grid_size - 1)))
        # every attribute has base measure 1, so the best candidate has at least that over its grid points
        spread = max(c.grid_size - 1 if isinstance(c := domain[name], Numeric) else 1 for name in own)
        return Choice(
            column.name, point, mechanism, len(own) * spread, self.criterion.grid, about, column.kind == "date"
        )


def threshold_ranges(column: Numeric, grid: Grid, criterion: Criterion) -> Ranges:
    """Return the score of every threshold s (rows with index <= s go left), as ranges of equal score."""
    classes = grid.exact_counts.shape[1]
    left = np.concatenate([np.zeros((1, classes), dtype=np.int64), np.cumsum(grid.exact_counts, axis=0)])
    cells = [left, left[-1] - left]
    if column.missing:
        cells.append(np.broadcast_to(grid.exact_missing, left.shape))
    score = criterion.exact_scores(np.stack(cells, axis=1))
    size = np.diff(np.concatenate([[0], grid.at, [column.grid_size - 1]]))
    full = np.flatnonzero(size > 0)
    return Ranges(score[full], size[full])

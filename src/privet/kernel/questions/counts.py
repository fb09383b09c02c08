"""Questions that count: rows, cells of some columns, and the most frequent cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np

from privet.errors import QuestionError
from privet.kernel.accounting import IntegerNoise, Unit
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, Counts, Engine
from privet.kernel.limits import MAX_CELLS, MAX_RELEASED
from privet.kernel.mechanisms import IndexSelection, Mechanism
from privet.kernel.per_part import PerPart
from privet.kernel.rows import Rows
from privet.kernel.session import TEXT, TEXTS, Question, cell_sum, check_cells, per_part
from privet.release import About, Choice, Count, Histogram


@dataclass(frozen=True)
class CountQuestion(Question[Count]):
    """Number of rows in each part. Sensitivity 1: a record lies in one part."""

    kind = "count"
    words: ClassVar[str] = "count"
    refinable = True

    def check(self, domain: Domain, rows: Rows) -> None:
        """Every table has a number of rows."""

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(unit.noise)

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        (exact,) = engine.exact_counts(CountQuery(rows, ((),)))
        return exact

    def release(self, noisy: int, mechanism: IntegerNoise, about: About, domain: Domain, part: int) -> Count:
        return Count(noisy, mechanism, about)

    def releases(
        self, noisy: Sequence[int], mechanisms: PerPart[Any], about: PerPart[About], domain: Domain
    ) -> list[Count]:
        """Return the releases of all parts: the nodes of a tree level are thousands."""
        return [Count(*answer) for answer in zip(noisy, mechanisms, about, strict=True)]


@dataclass(frozen=True)
class HistogramQuestion(Question[Histogram]):
    """Counts over all cells of some columns, from the public domain: empty cells are released like the others.

    Sensitivity 1: a record lies in one cell of one part.
    """

    columns: Annotated[tuple[str, ...], TEXTS]

    kind = "histogram"
    refinable = True

    @property
    def words(self) -> str:
        return f"histogram({', '.join(self.columns)})"

    def check(self, domain: Domain, rows: Rows) -> None:
        if not self.columns:
            raise QuestionError("a histogram needs at least one column; for the number of rows use count.")
        if not all(isinstance(name, str) for name in self.columns) or len(set(self.columns)) < len(self.columns):
            raise QuestionError("a histogram takes the names of different columns, one after the other.")
        check_cells(rows.parts * cell_sum(domain, [self.columns]), MAX_RELEASED)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(unit.noise)

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        (exact,) = engine.exact_counts(CountQuery(rows, (self.columns,)))
        return exact

    def release(self, noisy: Any, mechanism: IntegerNoise, about: About, domain: Domain, part: int) -> Histogram:
        labels = tuple(domain[name].labels for name in self.columns)
        return Histogram(np.array(noisy, dtype=np.int64), self.columns, labels, mechanism, about)

    def releases(
        self, noisy: Sequence[Any], mechanisms: PerPart[Any], about: PerPart[About], domain: Domain
    ) -> list[Histogram]:
        """Return the releases of all parts, made from one array: the leaves of a tree are thousands."""
        columns, labels = self.columns, tuple(domain[name].labels for name in self.columns)
        parts = zip(np.array(noisy, dtype=np.int64), mechanisms, about, strict=True)
        return [Histogram(values, columns, labels, mechanism, note) for values, mechanism, note in parts]


Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class HistogramsQuestion(Question[tuple[Histogram, ...]]):
    """Several histograms of each part; together they cost epsilon, each the same.

    The counts of all groups of a part are one vector. A record lies in one cell of each group, so
    the sensitivity is the number of groups, and so is its square in the L2 norm.
    """

    groups: Annotated[PerPart[Groups], per_part("lists of columns")]

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

    column: Annotated[str, TEXT]

    kind = "majority"

    @property
    def words(self) -> str:
        return f"majority({self.column})"

    def check(self, domain: Domain, rows: Rows) -> None:
        check_cells(rows.parts * cell_sum(domain, [[self.column]]), MAX_CELLS)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(lambda loss: unit.choice(loss, 1, monotone=True))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        (exact,) = engine.exact_counts(CountQuery(rows, ((self.column,),)))
        return exact

    def release(self, noisy: int, mechanism: IndexSelection, about: About, domain: Domain, part: int) -> Choice:
        labels = domain[self.column].labels
        return Choice(labels[noisy], None, mechanism, len(labels), 1, about)

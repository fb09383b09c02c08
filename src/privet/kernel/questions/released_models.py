"""Questions about released models: where one errs, how many rows it classifies right, which candidate is best.

A *merged table* has at most four columns, each with its own cells or with coarser ones: `codes` says for each cell of
the column which merged cell it belongs to. Merged sums are added up from the sums of the fine cells that the engine
returns, so that all levels of a column come from one pass.

The residual of a record of class y is the vector onehot(y) - p of a released model, in whole multiples of
1 / RESIDUAL_GRID, truncated towards 0, and scaled so that the entry of class y is at most `cap`: `ResidualQuery` says
how. With two classes its entries are the same but for their signs, and one number is summed: that of the second class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.kernel.accounting import IntegerNoise, ResidualNoise, Unit
from privet.kernel.additive import RESIDUAL_GRID, AdditiveModel
from privet.kernel.criteria import roomy
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import (
    CorrectQuery,
    CountQuery,
    Counts,
    Engine,
    ResidualQuery,
    Residuals,
)
from privet.kernel.limits import GRAIN, MAX_CELLS, MAX_RELEASED, Json, is_name
from privet.kernel.mechanisms import GaussianTables, IndexSelection, Mechanism, TopK
from privet.kernel.rows import Condition, PerPart, Rows
from privet.kernel.session import FLAG, GROUPS, MODEL, TEXTS, WHOLE, WHOLES, JsonField, Question, cell_sum, check_cells
from privet.kernel.zcdp import LARGEST_RHO
from privet.release import About, Choice, Count, ResidualSums, ResidualTable, ResidualTables, TopTables

Tables = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ResidualChoiceQuestion(Question[Choice]):
    """Of several tables of one or two columns, the one in which a released model errs most.

    `caps` bounds what a record of each class may add, in multiples of 1 / RESIDUAL_GRID. Scores only rise: by at
    most a record's own clipped residual, twice that with more than two classes.
    """

    model: Annotated[AdditiveModel, MODEL]
    tables: Annotated[Tables, GROUPS]
    caps: Annotated[tuple[int, ...], WHOLES]

    kind = "residual-choice"

    @property
    def words(self) -> str:
        return f"select_residuals({len(self.tables)} tables)"

    def check(self, domain: Domain, rows: Rows) -> None:
        check_residuals(self.model, self.tables, self.caps, domain)
        target = domain.target_column.name
        check_cells(rows.parts * cell_sum(domain, [(*columns, target) for columns in self.tables]), MAX_CELLS)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        reach = max(self.caps) * (2 if len(self.caps) > 2 else 1)
        return losses.map(lambda loss: unit.choice(loss, reach, monotone=True))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        query = ResidualQuery(rows, self.model, self.tables, domain.target_column.name, self.caps)
        return np.stack([residual_scores(exact) for exact in engine.exact_residuals(query)], axis=1)

    def release(self, noisy: int, mechanism: IndexSelection, about: About, domain: Domain, part: int) -> Choice:
        return Choice(", ".join(self.tables[noisy]), None, mechanism, len(self.tables), RESIDUAL_GRID, about)


def check_residuals(model: AdditiveModel, tables: Tables, caps: Sequence[int], domain: Domain) -> None:
    """Refuse a question about the residuals of a model whose shapes, caps or columns do not fit the domain."""
    classes = len(domain.classes)
    if len(caps) != classes:
        raise QuestionError(f"caps need one entry for each of the {classes} classes.")
    if not all(isinstance(cap, int | np.integer) and 1 <= cap <= RESIDUAL_GRID for cap in caps):
        raise QuestionError(f"caps are whole numbers from 1 to {RESIDUAL_GRID}, which stands for 1.")
    if not tables:
        raise QuestionError("name at least one table of columns.")
    for columns in tables:
        if isinstance(columns, str) or not 1 <= len(columns) <= 2 or len(set(columns)) < len(columns):
            raise QuestionError("a table is a tuple of one or two different columns.")
        if domain.target in columns:
            raise QuestionError("a table may not look at the target.")
    model.check(domain)


def residual_scores(exact: Residuals) -> Counts:
    """Return the score of each part.

    Two classes: sum over cells of the larger class. More: sum over cells and classes of own or others.

    A record adds to the entries it touches, so scores only rise: by at most its own
    clipped residual, twice that with more than two classes.
    """
    exact_own = roomy(exact.exact_own, 2)
    if exact.exact_others is None:
        return np.asarray(exact_own.max(axis=-1).sum(axis=-1))
    return np.asarray(np.maximum(exact_own, roomy(exact.exact_others, 2)).sum(axis=(-1, -2)))


@dataclass(frozen=True)
class ResidualSumsQuestion(Question[ResidualSums]):
    """Sums of the clipped residuals of a released model in every cell of one table of columns.

    A record of class c adds at most `caps[c]` to one entry and, with more than two classes, at most as much in all to
    entries of the others.
    """

    model: Annotated[AdditiveModel, MODEL]
    table: Annotated[tuple[str, ...], TEXTS]
    caps: Annotated[tuple[int, ...], WHOLES]

    kind = "residual-sums"

    @property
    def words(self) -> str:
        return f"residual_sums({', '.join(self.table)})"

    def check(self, domain: Domain, rows: Rows) -> None:
        check_residuals(self.model, (self.table,), self.caps, domain)
        check_cells(rows.parts * cell_sum(domain, [(*self.table, domain.target_column.name)]), MAX_RELEASED)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(lambda loss: unit.residual_noise(loss, self.caps))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Iterator[tuple[Counts, Counts | None]]:
        query = ResidualQuery(rows, self.model, (self.table,), domain.target_column.name, self.caps)
        (exact,) = engine.exact_residuals(query)
        for part in range(rows.parts):
            yield exact.exact_own[part], None if exact.exact_others is None else exact.exact_others[part]

    def release(self, noisy: Any, mechanism: ResidualNoise, about: About, domain: Domain, part: int) -> ResidualSums:
        shape = (*(domain[name].size for name in self.table), len(self.caps))
        own, others = (None if sums is None else np.array(sums, dtype=np.int64).reshape(shape) for sums in noisy)
        assert own is not None
        return ResidualSums(own, others, mechanism, about)


@dataclass(frozen=True)
class CountCorrectQuestion(Question[Count]):
    """Number of rows of each part whose own class has the largest logit of a released model.

    Of equal logits the class declared first counts. Sensitivity 1: a record adds at most one.
    """

    model: Annotated[AdditiveModel, MODEL]

    kind = "count-correct"
    words: ClassVar[str] = "count_correct"
    refinable = True

    def check(self, domain: Domain, rows: Rows) -> None:
        self.model.check(domain)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(unit.noise)

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        return engine.exact_correct(CorrectQuery(rows, self.model, domain.target_column.name))

    def release(self, noisy: int, mechanism: IntegerNoise, about: About, domain: Domain, part: int) -> Count:
        return Count(noisy, mechanism, about)


Competitor = AdditiveModel | tuple[Condition, ...]


def _write_competitors(candidates: Sequence[tuple[str, Competitor]], brief: bool) -> Json:
    def content(candidate: Competitor) -> Json:
        if isinstance(candidate, AdditiveModel):
            return {"model": candidate.to_json(brief)}
        return {"where": [condition.to_json() for condition in candidate]}

    return [[name, content(candidate)] for name, candidate in candidates]


_COMPETITORS = JsonField("a list of names with models or conditions", _write_competitors)


@dataclass(frozen=True)
class BestQuestion(Question[Choice]):
    """Of several candidates the name of the one with the most rows, for each part.

    A candidate is a released model, for the rows that it classifies right, or conditions, for the
    rows that meet them. One record adds at most one to each of these numbers, so the exponent is monotone.
    """

    candidates: Annotated[tuple[tuple[str, Competitor], ...], _COMPETITORS]

    kind = "best"

    @property
    def words(self) -> str:
        return f"best({len(self.candidates)} candidates)"

    def check(self, domain: Domain, rows: Rows) -> None:
        names = [name for name, _ in self.candidates]
        if len(names) < 2 or len(set(names)) < len(names):
            raise QuestionError("candidates are a mapping of at least two names to models or conditions.")
        for name, candidate in self.candidates:
            if not is_name(name):
                raise QuestionError("the name of a candidate is a text of 1 to 200 printable characters.")
            if isinstance(candidate, AdditiveModel):
                candidate.check(domain)
            else:
                for condition in candidate:
                    condition.check(domain)
                rows.keep(range(rows.parts), candidate)  # too many steps from the table are refused here

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(lambda loss: unit.choice(loss, 1, monotone=True))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        exact_scores = []
        for _, candidate in self.candidates:
            if isinstance(candidate, AdditiveModel):
                exact = engine.exact_correct(CorrectQuery(rows, candidate, domain.target_column.name))
            else:
                (exact,) = engine.exact_counts(CountQuery(rows.keep(range(rows.parts), candidate), ((),)))
            exact_scores.append(exact)
        return np.stack(exact_scores, axis=1)

    def release(self, noisy: int, mechanism: IndexSelection, about: About, domain: Domain, part: int) -> Choice:
        return Choice(self.candidates[noisy][0], None, mechanism, len(self.candidates), 1, about)


# -- where a model errs, for many tables at once: what a learner that updates all its tables together asks

_LARGEST_SCORE = 2**62
_MOST_COLUMNS = 4  # of a merged table
SMALLEST_SHARE = Fraction(1, 10**18)  # the rho of a table: as SMALLEST_RHO, for numbers that a record moves by a cap


class MergedColumn(NamedTuple):
    """A column of a table, in its own cells or in coarser ones."""

    name: str
    codes: tuple[int, ...] | None = None  # the merged cell of each cell

    def size(self, domain: Domain) -> int:
        return domain[self.name].size if self.codes is None else max(self.codes) + 1

    def check(self, domain: Domain) -> None:
        """Refuse codes that leave out a cell of the column, or a merged cell."""
        size = domain[self.name].size
        if self.codes is not None and (
            len(self.codes) != size
            or set(map(type, self.codes)) != {int}
            or set(self.codes) != set(range(len(set(self.codes))))
        ):
            raise QuestionError(
                f"the merged cells of '{self.name}' are a list of {size} whole numbers, one for each of its cells, "
                "counted from 0 without a gap."
            )

    def to_json(self) -> Json:
        return {"column": self.name} if self.codes is None else {"column": self.name, "codes": self.codes}


MergedTable = tuple[MergedColumn, ...]

_TABLES = JsonField(
    "a list of tables of columns", lambda tables, brief: [[column.to_json() for column in table] for table in tables]
)
_FRACTIONS = JsonField("a list of fractions in texts", lambda values, brief: [str(value) for value in values])


def _check(
    model: AdditiveModel, tables: Sequence[MergedTable], cap: object, domain: Domain, rows: Rows, least: int
) -> None:
    """Refuse what does not fit the domain, or needs too many cells."""
    model.check(domain)
    if type(cap) is not int or not 1 <= cap <= RESIDUAL_GRID:
        raise QuestionError(f"a cap is a whole number from 1 to {RESIDUAL_GRID}, which stands for 1.")
    if not tables:
        raise QuestionError("name at least one table of columns.")
    for table in tables:
        if not least <= len(table) <= _MOST_COLUMNS or len({column.name for column in table}) < len(table):
            raise QuestionError(f"a table is a tuple of {'one to' if least else 'at most'} four different columns.")
        for column in table:
            column.check(domain)
            if column.name == domain.target:
                raise QuestionError("a table may not look at the target.")
    if len(set(tables)) < len(tables):
        raise QuestionError("name every table once.")
    # of all tables, and not of the fine ones that they share: each is merged by itself
    cells = sum(math.prod(domain[column.name].size for column in table) for table in tables)
    check_cells(rows.parts * cells * 2 * len(domain.classes), MAX_CELLS)


def numbers_per_cell(domain: Domain) -> int:
    """Return how many residual sums a cell has: one with two classes, else one for each class."""
    return 1 if len(domain.classes) == 2 else len(domain.classes)


def squared_reach(cap: int, domain: Domain) -> int:
    """Return the square of how far one record moves the sums of a table, in the L2 norm.

    With two classes it moves one number by at most `cap`. With more it moves one cell: the entry of its own class by
    r <= cap, and those of the others by shares that add up to at most r; the squares of these add up to at most r^2.
    Whether positive and negative numbers are summed apart changes nothing: each has its place in one of the two.
    """
    return cap**2 if len(domain.classes) == 2 else 2 * cap**2


def exact_sums(
    engine: Engine, rows: Rows, domain: Domain, model: AdditiveModel, tables: Sequence[MergedTable], cap: int
) -> Iterator[tuple[Counts, Counts]]:
    """Yield for each table the sums of positive and of negative residuals: [part, cell, number]."""
    target = domain.target_column.name
    fine = list(dict.fromkeys(names for table in tables if (names := tuple(column.name for column in table))))
    if not fine:  # the sums over all rows are those of any column
        fine = [(next(name for name in domain.names if name != target),)]
    query = ResidualQuery(rows, model, tuple(fine), target, (cap,) * len(domain.classes))
    exact_tables = dict(zip(fine, map(_signs, engine.exact_residuals(query)), strict=True))
    for table in tables:
        names = tuple(column.name for column in table)
        exact_pair = exact_tables[names or fine[0]]
        exact_positive, exact_negative = (_merged(exact, table, domain) for exact in exact_pair)
        yield exact_positive, exact_negative


def _signs(exact: Residuals) -> tuple[Counts, Counts]:
    """Return positive and negative residuals; of two classes those of the second."""
    if exact.exact_others is None:
        return exact.exact_own[..., 1:], exact.exact_own[..., :1]
    return exact.exact_own, exact.exact_others


def _merged(exact: Counts, table: MergedTable, domain: Domain) -> Counts:
    """Add up the sums of the fine cells that a merged cell consists of."""
    parts, _, numbers = exact.shape
    if not table:
        return np.asarray(exact.sum(axis=1, keepdims=True))
    merged = exact.reshape(parts, *(domain[column.name].size for column in table), numbers)
    for axis, column in enumerate(table, start=1):
        if column.codes is not None:
            first = np.moveaxis(merged, axis, 0)
            sums = np.zeros((column.size(domain), *first.shape[1:]), dtype=np.int64)
            np.add.at(sums, np.array(column.codes), first)
            merged = np.moveaxis(sums, 0, axis)
    return np.ascontiguousarray(merged).reshape(parts, -1, numbers)


@dataclass(frozen=True)
class ResidualTablesQuestion(Question[ResidualTables]):
    """Residual sums of a released model for several tables, each with discrete Gaussian noise for a rho of its own.

    The numbers of all tables are one answer. A record lies in one cell of each table and moves its sums there by at
    most the square root of `squared_reach`, so that the rhos of the tables add up to the loss.
    """

    model: Annotated[AdditiveModel, MODEL]
    tables: Annotated[tuple[MergedTable, ...], _TABLES]
    rhos: Annotated[tuple[Fraction, ...], _FRACTIONS]
    cap: Annotated[int, WHOLE]
    signs_apart: Annotated[bool, FLAG] = False

    kind = "residual-tables"

    @property
    def words(self) -> str:
        return f"residual_tables({len(self.tables)} tables{', signs apart' if self.signs_apart else ''})"

    def check(self, domain: Domain, rows: Rows) -> None:
        _check(self.model, self.tables, self.cap, domain, rows, 0)
        # Multiples of 1 / GRAIN alone: a sum of other fractions has a denominator as long as all of theirs together.
        if len(self.rhos) != len(self.tables) or not all(
            0 < rho <= LARGEST_RHO and GRAIN % rho.denominator == 0 for rho in self.rhos
        ):
            raise QuestionError(f"give each of the {len(self.tables)} tables a rho above 0, as Rho rounds it.")
        check_cells(rows.parts * sum(self._sizes(domain)), MAX_RELEASED)

    def _sizes(self, domain: Domain) -> tuple[int, ...]:
        numbers = numbers_per_cell(domain) * (2 if self.signs_apart else 1)
        return tuple(numbers * math.prod(column.size(domain) for column in table) for table in self.tables)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        sizes, squared, total = self._sizes(domain), squared_reach(self.cap, domain), sum(self.rhos, Fraction(0))
        least, records = min(self.rhos) / total, domain.rows_per_person
        if any(unit.of_person(loss * least, records) < SMALLEST_SHARE for loss in losses.values):
            raise QuestionError("a table costs a rho of at least 1e-18.")
        return losses.map(lambda loss: GaussianTables(tuple(rho * loss / total for rho in self.rhos), sizes, squared))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        exact_numbers = []
        for exact_positive, exact_negative in exact_sums(engine, rows, domain, self.model, self.tables, self.cap):
            exact_pair = [exact_positive, exact_negative] if self.signs_apart else [exact_positive - exact_negative]
            exact_numbers += [exact.reshape(rows.parts, -1) for exact in exact_pair]
        return np.concatenate(exact_numbers, axis=1)

    def release(
        self, noisy: Sequence[int], mechanism: GaussianTables, about: About, domain: Domain, part: int
    ) -> ResidualTables:
        numbers, ends = numbers_per_cell(domain), np.cumsum(mechanism.sizes)[:-1]
        released = []
        for table, values, noise in zip(
            self.tables, np.split(np.array(noisy, dtype=np.int64), ends), mechanism.noises, strict=True
        ):
            shape = (*(column.size(domain) for column in table), numbers)
            signs = values.reshape(-1, *shape)
            negative = signs[1] if self.signs_apart else None
            released.append(ResidualTable(signs[0], negative, noise))
        return ResidualTables(tuple(released), about)


@dataclass(frozen=True)
class TopTablesQuestion(Question[TopTables]):
    """Of several tables the k in which a released model errs most: the exponential mechanism, k times.

    The score of a table is the sum over its cells of the length of the vector of residual sums (L2, over classes),
    rounded down, minus a public penalty. A record changes one cell, and there the vector by at most the square root of
    `squared_reach`; so the length moves by no more (triangle inequality), up or down, and rounded down by at most the
    next whole number.
    """

    model: Annotated[AdditiveModel, MODEL]
    tables: Annotated[tuple[MergedTable, ...], _TABLES]
    k: Annotated[int, WHOLE]
    cap: Annotated[int, WHOLE]
    penalties: Annotated[tuple[int, ...], WHOLES]

    kind = "top-residual-tables"

    @property
    def words(self) -> str:
        return f"top_residual_tables({self.k} of {len(self.tables)} tables)"

    def check(self, domain: Domain, rows: Rows) -> None:
        _check(self.model, self.tables, self.cap, domain, rows, 1)
        if type(self.k) is not int or not 1 <= self.k <= len(self.tables):
            raise QuestionError(f"k is a whole number from 1 to {len(self.tables)}, the number of tables.")
        whole = all(type(penalty) is int and abs(penalty) < _LARGEST_SCORE for penalty in self.penalties)
        if len(self.penalties) != len(self.tables) or not whole:
            raise QuestionError(f"penalties are a whole number for each of the {len(self.tables)} tables.")

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        squared = squared_reach(self.cap, domain)
        root = math.isqrt(squared)
        reach = root if root**2 == squared else root + 1
        return losses.map(lambda loss: unit.top(loss, reach, False, self.k))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        exact_scores = []
        exact_tables = exact_sums(engine, rows, domain, self.model, self.tables, self.cap)
        for penalty, (exact_positive, exact_negative) in zip(self.penalties, exact_tables, strict=True):
            exact_scores.append(lengths(exact_positive - exact_negative).sum(axis=-1).astype(object) - penalty)
        return np.stack(exact_scores, axis=1)

    def release(self, noisy: Sequence[int], mechanism: TopK, about: About, domain: Domain, part: int) -> TopTables:
        names = tuple(", ".join(column.name for column in table) for table in self.tables)
        return TopTables(tuple(noisy), names, mechanism, about)


def lengths(exact: Counts) -> NDArray[Any]:
    """Return the L2 norms of vectors of whole numbers along the last axis, rounded down.

    >>> lengths(np.array([[3, 4], [1, 1], [0, 2**40]])).tolist()
    [5, 1, 1099511627776]
    """
    if exact.shape[-1] == 1:
        return np.abs(exact[..., 0])
    largest = max(int(exact.max(initial=0)), -int(exact.min(initial=0)))
    if largest**2 * exact.shape[-1] < 2**52:  # where a float holds every square, its root is right to one
        squares = (exact * exact).sum(axis=-1)
        roots = np.sqrt(squares).astype(np.int64)
        roots -= roots * roots > squares
        return np.asarray(roots + ((roots + 1) ** 2 <= squares))
    flat = [
        math.isqrt(sum(value * value for value in vector)) for vector in exact.reshape(-1, exact.shape[-1]).tolist()
    ]
    return np.array(flat, dtype=object).reshape(exact.shape[:-1])

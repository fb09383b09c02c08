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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.kernel.accounting import IntegerNoise, ResidualNoise, Unit
from privet.kernel.additive import RESIDUAL_GRID, AdditiveModel
from privet.kernel.criteria import roomy
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CorrectQuery, Counts, Engine, ResidualQuery, Residuals
from privet.kernel.mechanisms import GaussianTables, Mechanism
from privet.kernel.public_values import GRAIN, MAX_CELLS, MAX_RELEASED, Json, PerPart, canonical, is_name, sum_of
from privet.kernel.questions.counts import CountingQuestion, exact_cells
from privet.kernel.rows import Condition, Rows
from privet.kernel.selections import IndexSelection, TopK
from privet.kernel.session import Question, R, cell_sum, check_cells, json_of
from privet.kernel.zcdp import is_rho
from privet.release import About, Choice, Count, ResidualSums, ResidualTables, TopTables

Tables = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ResidualChoiceQuestion(Question[Choice]):
    """Of several tables of one or two columns, the one in which a released model errs most.

    `caps` bounds what a record of each class may add, in multiples of 1 / RESIDUAL_GRID. Scores only rise: by at
    most a record's own clipped residual, twice that with more than two classes.
    """

    model: AdditiveModel
    tables: Tables
    caps: tuple[int, ...]

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

    model: AdditiveModel
    table: tuple[str, ...]
    caps: tuple[int, ...]

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
class CountCorrectQuestion(CountingQuestion[Count]):
    """Number of rows of each part whose own class has the largest logit of a released model.

    Of equal logits the class declared first counts.
    """

    model: AdditiveModel

    kind = "count-correct"
    words: ClassVar[str] = "count_correct"

    def check(self, domain: Domain, rows: Rows) -> None:
        self.model.check(domain)

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        return engine.exact_correct(CorrectQuery(rows, self.model, domain.target_column.name))

    def release(self, noisy: int, mechanism: IntegerNoise, about: About, domain: Domain, part: int) -> Count:
        return Count(noisy, mechanism, about)


Competitor = AdditiveModel | tuple[Condition, ...]


@dataclass(frozen=True)
class BestQuestion(Question[Choice]):
    """Of several candidates the name of the one with the most rows, for each part.

    A candidate is a released model, for the rows that it classifies right, or conditions, for the
    rows that meet them. One record adds at most one to each of these numbers, so the exponent is monotone.
    """

    candidates: tuple[tuple[str, Competitor], ...]

    kind = "best"

    @property
    def words(self) -> str:
        return f"best({len(self.candidates)} candidates)"

    def field_json(self, name: str, brief: bool) -> Json:
        return [
            [name, {"model" if isinstance(own, AdditiveModel) else "where": json_of(own, brief)}]
            for name, own in self.candidates
        ]

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
                exact = exact_cells(engine, rows.keep(range(rows.parts), candidate))
            exact_scores.append(exact)
        return np.stack(exact_scores, axis=1)

    def release(self, noisy: int, mechanism: IndexSelection, about: About, domain: Domain, part: int) -> Choice:
        return Choice(self.candidates[noisy][0], None, mechanism, len(self.candidates), 1, about)


# -- where a model errs, for many tables at once: what a learner that updates all its tables together asks

_LARGEST_SCORE = 2**62
_MOST_COLUMNS = 4  # of a merged table
SMALLEST_SHARE = Fraction(1, 10**18)  # the rho of a table: as SMALLEST_RHO, for numbers that a record moves by a cap


@dataclass(frozen=True)
class MergedColumn:
    """A column of a table, in its own cells or in coarser ones."""

    name: str
    codes: tuple[int, ...] | None = None  # the merged cell of each cell

    @cached_property
    def merged(self) -> NDArray[np.int64] | None:
        """The codes as an array; None where they are no whole numbers from 0 without a gap."""
        codes = self.codes or ()
        if set(map(type, codes)) != {int} or set(codes) != set(range(len(set(codes)))):
            return None
        merged = np.array(codes, dtype=np.int64)
        merged.setflags(write=False)
        return merged

    def size(self, domain: Domain) -> int:
        return domain[self.name].size if self.codes is None else max(self.codes) + 1

    def cells(self, size: int) -> NDArray[np.int64]:
        """Return the merged cell of each of so many cells; refuse codes that leave out one of them or of the others."""
        if self.codes is None:
            return np.arange(size)
        if self.merged is None or len(self.merged) != size:
            raise QuestionError(
                f"the merged cells of '{self.name}' are a list of {size} whole numbers, one for each of its cells, "
                "counted from 0 without a gap."
            )
        return self.merged

    @cached_property
    def text(self) -> str:
        """Its canonical text."""
        return canonical(self.to_json())

    def to_json(self) -> Json:
        return {"column": self.name} if self.codes is None else {"column": self.name, "codes": self.codes}


MergedTable = tuple[MergedColumn, ...]


class Layout:
    """Where the sums of tables lie in a domain, one table after the other, and of which fine cells each is the sum.

    Parameters
    ----------
    tables : sequence of MergedTable
    sizes : mapping of str to int
        How many cells each column has.

    Raises
    ------
    QuestionError
        The tables do not fit these columns.
    """

    def __init__(self, tables: Sequence[MergedTable], sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self._names = [tuple(column.name for column in table) for table in tables]
        # the sums over all rows, of the table without columns, are those of any fine table
        self.fine = tuple(dict.fromkeys(filter(None, self._names))) or (tuple(sizes),)
        # every table is added up by itself, also where several are added up from the same fine one
        self.fine_cells = sum(math.prod(sizes[name] for name in names or self.fine[0]) for names in self._names)
        check_cells(self.fine_cells, MAX_CELLS)  # before there is any array of so many
        self._tables = [[column.cells(sizes[column.name]) for column in table] for table in tables]
        self.shapes = tuple(tuple(int(codes.max()) + 1 for codes in table) for table in self._tables)
        self.cells = tuple(map(math.prod, self.shapes))  # of each table

    @cached_property
    def order(self) -> tuple[Counts, Counts]:
        """The fine cells that all sums are of, those of a sum next to each other, and where each sum begins."""
        widths = [math.prod(self.sizes[name] for name in names) for names in self.fine]
        starts = dict(zip(self.fine, np.cumsum([0, *widths]), strict=False))
        cells, sums, before = [], [], 0
        for table, names, shape in zip(self._tables, self._names, self.shapes, strict=True):
            if table:
                merged = np.ravel_multi_index(np.ix_(*table), shape).ravel()
            else:
                merged = np.zeros(widths[0], dtype=np.int64)
            inside = np.argsort(merged, kind="stable")
            cells.append(inside + starts[names or self.fine[0]])
            sums.append(merged[inside] + before)
            before += math.prod(shape)
        return np.concatenate(cells), np.flatnonzero(np.diff(np.concatenate(sums), prepend=-1))


class MergedTables(tuple[MergedTable, ...]):
    """The tables of a question. Questions that share this object share its text and its layout, which are made once."""

    _layout: Layout | None = None

    @classmethod
    def of(cls, tables: Sequence[MergedTable]) -> MergedTables:
        """Return tables as such ones; these very ones where they are."""
        return tables if type(tables) is cls else cls(tables)

    @cached_property
    def text(self) -> str:
        """Their canonical text."""
        return "[" + ",".join(f"[{','.join(column.text for column in table)}]" for table in self) + "]"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns that they look at; refuse what is no list of tables."""
        if not self:
            raise QuestionError("name at least one table of columns.")
        if any(len({column.name for column in table}) < len(table) or len(table) > _MOST_COLUMNS for table in self):
            raise QuestionError("a table is a tuple of at most four different columns.")
        if len(set(self)) < len(self):
            raise QuestionError("name every table once.")
        return tuple(dict.fromkeys(column.name for table in self for column in table))

    def layout(self, domain: Domain) -> Layout:
        """Return where their sums lie; refuse what does not fit the domain."""
        if domain.target in self.names:
            raise QuestionError("a table may not look at the target.")
        target = domain.target_column.name
        names = self.names or (next(name for name in domain.names if name != target),)
        sizes = {name: domain[name].size for name in names}
        layout = self._layout
        if layout is None or layout.sizes != sizes:
            layout = self._layout = Layout(self, sizes)
        return layout


class _TablesQuestion(Question[R]):
    """What is asked of several tables at once: the text of tables that many questions share is written once."""

    tables: tuple[MergedTable, ...]

    def field_text(self, name: str) -> str:
        return MergedTables.of(self.tables).text if name == "tables" else super().field_text(name)

    def layout(self, domain: Domain) -> Layout:
        """Return where the sums of the tables lie; refuse what does not fit the domain."""
        return MergedTables.of(self.tables).layout(domain)


def _check(model: AdditiveModel, layout: Layout, cap: object, domain: Domain, rows: Rows) -> None:
    """Refuse what does not fit the domain, or needs too many cells."""
    model.check(domain)
    if type(cap) is not int or not 1 <= cap <= RESIDUAL_GRID:
        raise QuestionError(f"a cap is a whole number from 1 to {RESIDUAL_GRID}, which stands for 1.")
    check_cells(rows.parts * layout.fine_cells * 2 * len(domain.classes), MAX_CELLS)


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
    layout = MergedTables.of(tables).layout(domain)
    signs = (_merged(exact, layout) for exact in _fine_sums(engine, rows, domain, model, layout, cap))
    return zip(*(np.split(exact, np.cumsum(layout.cells)[:-1], axis=1) for exact in signs), strict=True)


def _fine_sums(
    engine: Engine, rows: Rows, domain: Domain, model: AdditiveModel, layout: Layout, cap: int
) -> tuple[Counts, Counts]:
    """Return the sums of positive and of negative residuals in the cells of all fine tables: [part, cell, number]."""
    query = ResidualQuery(rows, model, layout.fine, domain.target_column.name, (cap,) * len(domain.classes))
    positive, negative = zip(*map(_signs, engine.exact_residuals(query)), strict=True)
    return np.concatenate(positive, axis=1), np.concatenate(negative, axis=1)


def _signs(exact: Residuals) -> tuple[Counts, Counts]:
    """Return positive and negative residuals; of two classes those of the second."""
    if exact.exact_others is None:
        return exact.exact_own[..., 1:], exact.exact_own[..., :1]
    return exact.exact_own, exact.exact_others


def _merged(exact: Counts, layout: Layout) -> Counts:
    """Add up the sums of the fine cells that a merged cell consists of."""
    cells, starts = layout.order
    return np.asarray(np.add.reduceat(exact[:, cells], starts, axis=1))


@dataclass(frozen=True)
class ResidualTablesQuestion(_TablesQuestion[ResidualTables]):
    """Residual sums of a released model for several tables, each with discrete Gaussian noise for a rho of its own.

    The numbers of all tables are one answer. A record lies in one cell of each table and moves its sums there by at
    most the square root of `squared_reach`, so that the rhos of the tables add up to the loss.
    """

    model: AdditiveModel
    tables: tuple[MergedTable, ...]
    rhos: tuple[Fraction, ...]
    cap: int
    signs_apart: bool = False

    kind = "residual-tables"

    @property
    def words(self) -> str:
        return f"residual_tables({len(self.tables)} tables{', signs apart' if self.signs_apart else ''})"

    def check(self, domain: Domain, rows: Rows) -> None:
        layout = self.layout(domain)
        _check(self.model, layout, self.cap, domain, rows)
        # Multiples of 1 / GRAIN alone: a sum of other fractions has a denominator as long as all of theirs together.
        if len(self.rhos) != len(self.tables) or not all(map(is_rho, self.rhos)):
            raise QuestionError(f"give each of the {len(self.tables)} tables a rho above 0, as Rho rounds it.")
        check_cells(rows.parts * sum(self._sizes(domain)), MAX_RELEASED)

    def _sizes(self, domain: Domain) -> tuple[int, ...]:
        numbers = numbers_per_cell(domain) * (2 if self.signs_apart else 1)
        return tuple(numbers * cells for cells in self.layout(domain).cells)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        sizes, squared, total = self._sizes(domain), squared_reach(self.cap, domain), sum_of(self.rhos)
        least = min(self.rhos, key=lambda rho: rho.numerator * (GRAIN // rho.denominator)) / total
        if any(loss * least < SMALLEST_SHARE for loss in losses.values):  # of a record: the noise follows from it
            raise QuestionError("a table costs a rho of at least 1e-18.")

        def tables(loss: Fraction) -> GaussianTables:
            rhos = self.rhos if loss == total else tuple(rho * loss / total for rho in self.rhos)
            return GaussianTables(rhos, sizes, squared)

        return losses.map(tables)

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        if self.signs_apart:
            exact_tables = exact_sums(engine, rows, domain, self.model, self.tables, self.cap)
            return np.concatenate([exact.reshape(rows.parts, -1) for pair in exact_tables for exact in pair], axis=1)
        layout = self.layout(domain)
        exact_positive, exact_negative = _fine_sums(engine, rows, domain, self.model, layout, self.cap)
        return _merged(exact_positive - exact_negative, layout).reshape(rows.parts, -1)

    def release(
        self, noisy: Sequence[int], mechanism: GaussianTables, about: About, domain: Domain, part: int
    ) -> ResidualTables:
        numbers, positive, negative = numbers_per_cell(domain), np.array(noisy, dtype=np.int64), None
        if self.signs_apart:  # of each table the positive sums come first
            signs = [own.reshape(2, -1) for own in np.split(positive, np.cumsum(mechanism.sizes)[:-1])]
            positive, negative = np.concatenate(signs, axis=1).reshape(2, -1, numbers)
        shapes = self.layout(domain).shapes
        return ResidualTables(positive.reshape(-1, numbers), negative, shapes, mechanism.noises, about)


@dataclass(frozen=True)
class TopTablesQuestion(_TablesQuestion[TopTables]):
    """Of several tables the k in which a released model errs most: the exponential mechanism, k times.

    The score of a table is the sum over its cells of the length of the vector of residual sums (L2, over classes),
    rounded down, minus a public penalty. A record changes one cell, and there the vector by at most the square root of
    `squared_reach`; so the length moves by no more (triangle inequality), up or down, and rounded down by at most the
    next whole number.
    """

    model: AdditiveModel
    tables: tuple[MergedTable, ...]
    k: int
    cap: int
    penalties: tuple[int, ...]

    kind = "top-residual-tables"

    @property
    def words(self) -> str:
        return f"top_residual_tables({self.k} of {len(self.tables)} tables)"

    def check(self, domain: Domain, rows: Rows) -> None:
        _check(self.model, self.layout(domain), self.cap, domain, rows)
        if () in self.tables:
            raise QuestionError("a table is a tuple of one to four different columns.")
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
        layout = self.layout(domain)
        exact_positive, exact_negative = _fine_sums(engine, rows, domain, self.model, layout, self.cap)
        exact_lengths = lengths(_merged(exact_positive - exact_negative, layout))
        starts = np.cumsum([0, *layout.cells[:-1]])
        exact_scores = np.add.reduceat(exact_lengths, starts, axis=1).astype(object)
        return np.asarray(exact_scores - np.array(self.penalties, dtype=object))

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

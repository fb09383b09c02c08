"""Engines that keep nothing: every question is one statement over the source itself.

The source is coded, each row gets its part, and both are done in a common table expression of the statement. Nothing
is written where the rows are, so reading them is the only right that is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from sqlglot import exp

from privet.kernel.column import Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import (
    CorrectQuery,
    CountQuery,
    Counts,
    GridCounts,
    GridQuery,
    ResidualQuery,
    Residuals,
    SumQuery,
    cell_count,
)
from privet.kernel.engines.shortcuts import Recall, asked_together
from privet.kernel.engines.sql import sql
from privet.kernel.engines.sql.sql import Answer, Dialect, Sql
from privet.kernel.rows import Divide, Rows

ROWS, OWNED = "numbered", "owned"  # the coded rows with their parts; these with their residuals


class StatementEngine(ABC):
    """Answers queries by one statement each; subclasses say how a statement is run. `shortcuts`: see `Engine`."""

    name: str
    closed = False
    holds_rows = False
    dialect: Dialect

    def __init__(self, domain: Domain, coded: exp.Select, *, shortcuts: bool = True) -> None:
        self._domain, self._coded, self._shortcuts = domain, coded, shortcuts
        self._everything = self._written(coded.select(sql.num(0).as_("node")))
        self._recall, self._recalled = Recall(domain, shortcuts), self.version  # and of which rows

    @abstractmethod
    def _fetch(self, tree: Sql, pause: bool = False) -> Answer:
        """The answer of a statement: an array of whole numbers for each of its columns.

        `pause` says that what is made of the answer may take long: there is a line for each value that occurs.
        """

    @abstractmethod
    def close(self) -> None: ...

    @property
    @abstractmethod
    def version(self) -> int:
        """Of the rows; see `Engine`."""

    def exact_counts(self, query: CountQuery) -> list[Counts]:
        if (version := self.version) != self._recalled:
            # a new one: whoever still counts the rows as they were keeps that in the old one
            self._recall, self._recalled = Recall(self._domain, self._shortcuts), version
        return self._recall.counts(query, self._counts)

    def _counts(self, query: CountQuery) -> list[Counts]:
        return asked_together(query, self._domain, self._tables, self._shortcuts)

    def _tables(self, query: CountQuery) -> list[Counts]:
        tree = sql.counts(query, _from(ROWS), self._domain)
        cells = query.rows.parts * max(cell_count(self._domain, group) for group in query.groups)
        return sql.read_counts(self._ask(query.rows, tree, cells=cells), query, self._domain)

    def exact_grid(self, query: GridQuery) -> list[GridCounts]:
        tree = sql.grid(query, _from(ROWS), self._domain)
        return sql.read_grid(self._fetch(self.statement(query.rows, tree), pause=True), query, self._domain)

    def exact_sums(self, query: SumQuery) -> tuple[Counts, Counts]:
        return sql.read_sums(self._ask(query.rows, sql.sums(query, _from(ROWS), self._domain)), query)

    def exact_correct(self, query: CorrectQuery) -> Counts:
        tree = sql.correct(query, _from(ROWS), self._domain, self.dialect)
        return sql.read_correct(self._ask(query.rows, tree), query)

    def exact_residuals(self, query: ResidualQuery) -> list[Residuals]:
        owned = sql.owned(query, _from(ROWS), self._domain, self.dialect)
        answer = self._ask(query.rows, sql.residuals(query, OWNED, self._domain), {OWNED: owned})
        return sql.read_residuals(answer, query, self._domain)

    def _ask(self, rows: Rows, tree: Sql, shared: dict[str, exp.Select] | None = None, cells: int = 1) -> Answer:
        return self._fetch(self.statement(rows, tree, shared, cells))

    def statement(self, rows: Rows, tree: Sql, shared: dict[str, exp.Select] | None = None, cells: int = 1) -> Sql:
        """One statement: the coded rows with their parts, whatever is made of them once, and the question, each branch
        of which groups rows into so many cells at the most."""
        assert isinstance(tree, exp.Query)
        whole = tree
        for name, part in {ROWS: self.numbered(rows), **(shared or {})}.items():
            whole = whole.with_(name, as_=part, copy=False)
        return whole

    def numbered(self, rows: Rows) -> Sql:
        """The coded rows that lie in a part, with its number: a layer for each step from the whole table."""
        if rows.parent is None or rows.step is None:
            return self._everything.copy()
        node = sql.node(rows.step, sql.col("node"), self._domain, self.dialect)
        inner = exp.select(*self._columns(), node.as_("node")).from_(_aliased(self.numbered(rows.parent), "above"))
        if isinstance(rows.step, Divide) and None not in rows.step.splits:
            return inner  # no row is lost: a layer less
        present = sql.col("node").is_(exp.Null()).not_()
        return exp.select(exp.Star()).from_(inner.subquery("inside")).where(present)

    def _written(self, query: exp.Select) -> Sql:
        """A query that is a part of many statements, in the form in which they take it."""
        return query

    def _columns(self) -> list[Sql]:
        names = [f"c{i}" for i in range(len(self._domain.columns))]
        names += [f"g{i}" for i, column in enumerate(self._domain) if isinstance(column, Numeric)]
        return [sql.col(name) for name in names]


def _aliased(query: Sql, name: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name)))


def _from(name: str) -> exp.From:
    return exp.From(this=exp.to_table(name))

"""Engines that answer queries by SQL statements.

`SqlEngine` compiles queries and reads their answers; `sql.py` says how. An engine that codes its source into tables of
its own derives from it. `StatementEngine` keeps nothing: a common table expression of each statement codes the source
and numbers its parts. Nothing is written where the rows are, so the right to read them is the only one it needs.

*Margins* are trusted, and switched off in the reference configuration: what a table of an attribute by class costs a
database is one look-up in a hash table for every row. A level of few nodes has few cells, so tables of several
attributes together are still small: one look-up counts all of them, and sums over their cells are the tables that were
asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sqlglot import exp

from privet.errors import DataError
from privet.kernel.domain import Domain
from privet.kernel.engines import contract
from privet.kernel.engines.contract import FIXED, Cells, Counts, Engine, index_count
from privet.kernel.engines.memory.engine import Columns, MemoryEngine, Recall, margin, repeats
from privet.kernel.engines.sql import coding, sql
from privet.kernel.engines.sql.coding import Held
from privet.kernel.engines.sql.sql import Answer, Dialect, Sql
from privet.kernel.rows import Divide, Rows

ROWS, OWNED = "numbered", "owned"  # the coded rows with their parts; these with their residuals
_CELLS = 2**14  # of a table, in all parts: more of them cost more to look up and to send than they save

Compiled = Callable[[exp.From], exp.Query]  # a statement about the coded rows that a FROM clause reads


class Source(ABC):
    """Where the rows of a table are. No text about it has a password."""

    remote = True  # on a server, where reading is all that is done
    streams = False  # are its coded rows read in batches, in this process?

    @property
    @abstractmethod
    def kind(self) -> str:
        """The kind of file or database."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the data set unless it is given another."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What a message calls it."""

    @property
    def label(self) -> str:
        """What a report calls it."""
        return self.title

    @property
    @abstractmethod
    def address(self) -> str:
        """Where the data are, as the ledger remembers them."""

    @property
    @abstractmethod
    def ledger(self) -> Path:
        """The ledger beside the data; an error where nothing can lie there."""

    @abstractmethod
    def open(self, domain: Domain) -> SqlEngine:
        """Open the source and check that it can be read as the domain says."""


class SqlEngine(ABC):
    """Answers queries by statements over coded rows; subclasses say where these are and how statements are run.

    `shortcuts`: see `Engine`.
    """

    name: str
    closed = False
    holds_rows = False
    dialect: Dialect

    def __init__(self, domain: Domain, *, shortcuts: bool = True) -> None:
        self._domain, self._shortcuts = domain, shortcuts
        self._recall, self._recalled = Recall(domain, shortcuts), self.version  # and of which rows

    @property
    def version(self) -> int:
        """The version of the rows; see `Engine`."""
        return FIXED

    @abstractmethod
    def _ask(self, query: contract.Query, compiled: Compiled, cells: Sequence[int] = (1,)) -> Answer:
        """Return the answer of a statement: an array of whole numbers for each of its columns.

        `cells` is how many cells each of its branches has at most in each part. About residuals, the statement reads
        the rows of `sql.owned` under the name OWNED.
        """

    @abstractmethod
    def _merged(self) -> Answer:
        """Return the answer of `sql.snapshot`."""

    @abstractmethod
    def in_cells(self, cells: Cells) -> Engine:
        """Return an engine over the same rows in other cells; see `Engine`."""

    @abstractmethod
    def close(self) -> None: ...

    def exact_counts(self, query: contract.CountQuery) -> list[Counts]:
        if (version := self.version) != self._recalled:
            # a new one: whoever still counts the rows as they were keeps that in the old one
            self._recall, self._recalled = Recall(self._domain, self._shortcuts), version
        return self._recall.counts(query, self._counts)

    def _counts(self, query: contract.CountQuery) -> list[Counts]:
        return asked_together(query, self._domain, self._tables, self._shortcuts)

    def _tables(self, query: contract.CountQuery) -> list[Counts]:
        cells = [self._domain.cell_count(group) for group in query.groups]
        answer = self._ask(query, lambda rows: sql.counts(query, rows, self._domain), cells)
        return sql.read_counts(answer, query, self._domain)

    def exact_grid(self, query: contract.GridQuery) -> list[contract.GridCounts]:
        classes = 1 if query.target is None else self._domain[query.target].size
        cells = [(index_count(self._domain[name]) + 1) * classes for name in query.columns]
        answer = self._ask(query, lambda rows: sql.grid(query, rows, self._domain), cells)
        return sql.read_grid(answer, query, self._domain)

    def exact_sums(self, query: contract.SumQuery) -> tuple[Counts, Counts]:
        return sql.read_sums(self._ask(query, lambda rows: sql.sums(query, rows, self._domain)), query)

    def exact_residuals(self, query: contract.ResidualQuery) -> list[contract.Residuals]:
        cells = [self._domain.cell_count(table) for table in query.tables]
        answer = self._ask(query, lambda _: sql.residuals(query, OWNED, self._domain), cells)
        return sql.read_residuals(answer, query, self._domain)

    def exact_correct(self, query: contract.CorrectQuery) -> Counts:
        answer = self._ask(query, lambda rows: sql.correct(query, rows, self._domain, self.dialect))
        return sql.read_counts(answer, contract.CountQuery(query.rows, ((),)), self._domain)[0]

    def snapshot(self) -> MemoryEngine:
        """Return the merged, weighted table in memory: one row for all that share their codes."""
        return MemoryEngine.merged(self._domain, self._merged(), shortcuts=self._shortcuts)

    # -- for the owner's inspection alone ---------------------------------------------------

    def exact_fit(self) -> tuple[int, int]:
        """Return the number of rows of the source, and of those that fit the domain."""
        raise self._not_inspected

    def exact_persons(self) -> dict[int, int]:
        """Return for each number of rows that a person has, of those that fit, how many persons have so many."""
        raise self._not_inspected

    def exact_values(self, column: str) -> Iterator[tuple[Any, int]]:
        """Return every distinct value of a source column and how often it occurs."""
        raise self._not_inspected

    @property
    def _not_inspected(self) -> DataError:
        return DataError(f"the {self.name} engine cannot be inspected from here; look at the table where it is.")


class SourceLink(Protocol):
    """A connection to a server, made anew when it is lost. Until then statements see rows of one version."""

    @property
    def version(self) -> int:
        """Of the rows that the next statement sees; a DataError where the server is out of reach."""

    def numbers(self, statement: str, names: Sequence[str], pause: bool = False) -> Answer:
        """Run a statement whose answer is whole numbers, and return a column of it under each name."""

    def close(self) -> None: ...


class Storage(NamedTuple):
    """What a statement reads, and how it holds the declared columns."""

    rows: Sql
    columns: Mapping[str, Held]


class StatementEngine(SqlEngine):
    """Answers each query by one statement over the source itself, which `coded` codes."""

    def __init__(self, link: SourceLink, title: str, domain: Domain, *, shortcuts: bool = True) -> None:
        """Look up how the columns are stored; no row is read."""
        self._link, self._title, self._declared = link, title, domain
        self._checked, self._stored = link.version, self._described()
        super().__init__(domain, shortcuts=shortcuts)
        self._fitting = self._fits(self._stored.rows)
        coded = self._fitting
        if domain.person is not None:
            coded = coding.bounded(coded.subquery("fitting"), domain, self.dialect)
        self._take(coded)

    @property
    def version(self) -> int:
        version = self._link.version
        if version != self._checked:
            # what no row can break depends on how columns are stored, and that cannot change before this one ends
            if self._described() != self._stored:
                raise DataError(f"{self._title} was altered since it was opened; open it again.")
            self._checked = version
        return version

    def close(self) -> None:
        self.closed = True
        self._recall.forget()
        self._link.close()

    def in_cells(self, cells: Cells) -> StatementEngine:
        engine = copy(self)  # over the same connection, which is the one that knows of which version the rows are
        SqlEngine.__init__(engine, cells.domain, shortcuts=self._shortcuts)
        engine._take(coding.recut(self._coded.subquery("declared"), self._domain, cells))
        return engine

    @abstractmethod
    def _described(self) -> Storage:
        """Return how the declared columns are stored now; no row is read."""

    def _fits(self, rows: Sql) -> exp.Select:
        """Return the coded rows that fit the declared domain."""
        return coding.coded(rows, self._declared, self._stored.columns, self.dialect)

    def _take(self, coded: exp.Select) -> None:
        """Ask all queries of these rows."""
        self._coded, self._everything = coded, self._written(coded.select(sql.num(0).as_("node")))

    def _fetch(self, tree: exp.Query, pause: bool = False) -> Answer:
        """Return the answer of a statement.

        `pause` says that what is made of the answer may take long: it has a line for each value that occurs.
        """
        return self._link.numbers(self.dialect.sql(tree), tree.named_selects, pause)

    def _ask(self, query: contract.Query, compiled: Compiled, cells: Sequence[int] = (1,)) -> Answer:
        numbered = exp.From(this=exp.to_table(ROWS))
        most = query.rows.parts * max(cells) if isinstance(query, contract.CountQuery) else 1
        tree = self._in_passes(compiled(numbered), most).with_(ROWS, as_=self._numbered(query.rows), copy=False)
        if isinstance(query, contract.ResidualQuery):
            owned = sql.owned(query, numbered, self._domain, self.dialect)
            tree = tree.with_(OWNED, as_=owned, copy=False)
        return self._fetch(tree, pause=isinstance(query, contract.GridQuery))

    def _merged(self) -> Answer:
        return self._fetch(sql.snapshot(exp.From(this=self._coded.subquery("coded")), self._domain))

    def exact_persons(self) -> dict[int, int]:
        answer = self._fetch(coding.rows_of_persons(self._fitting.subquery("fitting")))
        return dict(zip(answer["n"].tolist(), answer["m"].tolist(), strict=True))

    def _in_passes(self, tree: exp.Query, cells: int) -> exp.Query:
        """Return a statement as the engine runs it best; each of its branches has at most so many cells."""
        return tree

    def _numbered(self, rows: Rows) -> Sql:
        """Return the coded rows that lie in a part, with its number: a layer for each step from the whole table."""
        if rows.parent is None or rows.step is None:
            return self._everything.copy()
        node = sql.node(rows.step, sql.col("node"), self._domain, self.dialect)
        above = exp.Subquery(this=self._numbered(rows.parent), alias=exp.TableAlias(this=exp.to_identifier("above")))
        inner = exp.select(*(sql.col(name) for name in sql.columns(self._domain)), node.as_("node")).from_(above)
        if isinstance(rows.step, Divide) and None not in rows.step.splits:
            return inner  # no row is lost: a layer less
        return exp.select(exp.Star()).from_(inner.subquery("inside")).where(sql.in_a_part())

    def _written(self, query: exp.Select) -> Sql:
        """Return a query that is a part of many statements, in the form in which they take it."""
        return query


# -- margins ------------------------------------------------------------------------------------


def asked_together(
    query: contract.CountQuery,
    domain: Domain,
    ask: Callable[[contract.CountQuery], list[Counts]],
    shortcuts: bool = True,
) -> list[Counts]:
    """The answer to a query, from one about fewer and larger tables; without `shortcuts`, from the query itself."""
    if not shortcuts:
        return ask(query)
    larger = together(query, domain)
    exact = ask(contract.CountQuery(query.rows, tuple(larger)))
    margins = {
        group: margin(table, names, group)
        for table, (names, groups) in zip(exact, larger.items(), strict=True)
        for group in groups
    }
    return [margins[group] for group in query.groups]


def together(query: contract.CountQuery, domain: Domain) -> dict[Columns, list[Columns]]:
    """The tables that are counted, and those of the query that each of them holds: as many as leave it small."""
    tables: dict[Columns, list[Columns]] = {}
    names: Columns = ()
    for group in dict.fromkeys(query.groups):
        if repeats(group):
            tables[group] = [group]
            continue
        joined = (*names, *(name for name in group if name not in names))
        groups = tables.pop(names, [])
        if groups and query.rows.parts * domain.cell_count(joined) > _CELLS:
            tables[names] = groups
            joined, groups = group, tables.pop(group, [])
        tables[joined] = [*tables.get(joined, []), *groups, group]
        names = joined
    return tables

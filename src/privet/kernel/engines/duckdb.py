"""The DuckDB engine: CSV and Parquet files and DuckDB tables, coded once into a private scratch database.

The source is opened read-only and read in one pass, at the first question. What is
coded goes to a scratch file in a folder only this user may enter; the folder is
removed when the engine closes, and folders that a killed process left behind are
removed by the next engine. Nothing is loaded into Python but answers.
"""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
from sqlglot import exp

from privet.column import Numeric
from privet.domain import Domain
from privet.errors import DataError
from privet.kernel.engines import coding, sql
from privet.kernel.engines.coding import Kind
from privet.kernel.query import (
    CountQuery,
    Counts,
    GridCounts,
    GridQuery,
    ResidualQuery,
    Residuals,
    Rows,
    SumQuery,
)

if TYPE_CHECKING:
    from privet.kernel.engines.memory import MemoryEngine

DIALECT = sql.Dialect(
    name="duckdb",
    is_nan=lambda number: exp.IsNan(this=number),
    full_match=lambda value, pattern: exp.func(
        "regexp_full_match", value, exp.Literal.string(pattern), dialect="duckdb"
    ),
    # list_extract counts from 1
    look_up=lambda values, index: exp.func(
        "list_extract", exp.Array(expressions=[sql.num(value) for value in values]), sql.add(index, sql.num(1))
    ),
)

_KINDS = {
    **dict.fromkeys(("VARCHAR",), Kind.TEXT),
    **dict.fromkeys(
        (
            "TINYINT",
            "SMALLINT",
            "INTEGER",
            "BIGINT",
            "HUGEINT",
            "UTINYINT",
            "USMALLINT",
            "UINTEGER",
            "UBIGINT",
            "UHUGEINT",
        ),
        Kind.INTEGER,
    ),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), Kind.FLOAT),
    "BOOLEAN": Kind.BOOLEAN,
    "ENUM": Kind.TEXT,
}

_MEMORY = "128MB"
_PREFIX = "privet-scratch-"
_KEPT = 3  # node numberings kept for the next level; others are computed again from these


@dataclass(frozen=True)
class Source:
    """A file or a table of a DuckDB database."""

    path: Path
    table: str | None = None

    @property
    def name(self) -> str:
        """The name of the data set unless it is given another."""
        return self.table or self.path.stem

    @property
    def address(self) -> str:
        """Where the data are, as the ledger remembers them."""
        place = str(self.path.resolve())
        return place if self.table is None else f"{place}?table={self.table}"

    @property
    def ledger(self) -> Path:
        """The ledger beside the data."""
        return self.path.with_name(self.path.name + ".ledger")

    def attach(self, connection: Any) -> exp.Expr:
        """Make the source readable and name it as a FROM item."""
        if self.table is not None:
            connection.execute(f"ATTACH {_quoted(str(self.path))} AS source (READ_ONLY)")
            return exp.to_table(f'source."{self.table.replace(chr(34), chr(34) * 2)}"', dialect="duckdb")
        if self.path.suffix.lower() == ".parquet":
            return exp.func("read_parquet", exp.Literal.string(str(self.path)), dialect="duckdb")
        return self._csv()

    def _csv(self) -> exp.Expr:
        """All columns as text under the names of the header line; a line that is no record is left out."""
        columns = exp.Struct(
            expressions=[
                exp.PropertyEQ(this=exp.Literal.string(name), expression=exp.Literal.string("VARCHAR"))
                for name in _header(self.path)
            ]
        )
        options: dict[str, exp.Expr] = {
            "auto_detect": exp.false(),
            "header": exp.true(),
            "columns": columns,
            "delim": exp.Literal.string(","),
            "quote": exp.Literal.string('"'),
            "escape": exp.Literal.string('"'),
            "ignore_errors": exp.true(),
            "null_padding": exp.true(),
            "strict_mode": exp.false(),
            "max_line_size": sql.num(2**24),
        }
        named = [exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in options.items()]
        return exp.Anonymous(this="read_csv", expressions=[exp.Literal.string(str(self.path)), *named])


def _quoted(value: str) -> str:
    return exp.Literal.string(value).sql(dialect="duckdb")


def _header(path: Path) -> list[str]:
    """The column names of a CSV file: its first line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            names = next(csv.reader(lines), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        names = []
    if not names or len(set(names)) < len(names):
        raise DataError(f"the first line of '{path}' is not a list of different column names; add a header line.")
    return names


class DuckDBEngine:
    """Push-down: every question is one SQL statement over the coded table."""

    name = "duckdb"

    def __init__(self, source: Source, domain: Domain) -> None:
        self._domain = domain
        _sweep()
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self._close = weakref.finalize(self, _remove, folder, os.getpid())
        self._connection = duckdb.connect(
            str(folder / "coded.duckdb"),
            config={
                "memory_limit": _MEMORY,
                "temp_directory": str(folder),
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )
        self._connection.execute("SET enable_progress_bar = false")
        self._lock = threading.RLock()
        self._coded = False
        self._numbered = 0
        self._nodes: OrderedDict[Rows, str] = OrderedDict()
        try:
            self._source = source.attach(self._connection)
            described = self._connection.execute(f"DESCRIBE SELECT * FROM {DIALECT.sql(self._source)}").fetchall()
            problem = None
        except duckdb.Error:
            what = f"'{source.path}'" if source.table is None else f"table '{source.table}' of '{source.path}'"
            problem = f"cannot open {what}; check that it is what its name says, and that no one writes to it."
        if problem is not None:
            self.close()
            raise DataError(problem)
        try:
            self._kinds = _kinds({row[0]: row[1] for row in described}, domain)
        except DataError:
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()
        self._close()

    def exact_counts(self, query: CountQuery) -> list[Counts]:
        answer = self._ask(query.rows, lambda rows: sql.counts(query, rows, self._domain))
        return sql.read_counts(answer, query, self._domain)

    def exact_grid(self, query: GridQuery) -> list[GridCounts]:
        answer = self._ask(query.rows, lambda rows: sql.grid(query, rows, self._domain))
        return sql.read_grid(answer, query, self._domain)

    def exact_sums(self, query: SumQuery) -> tuple[Counts, Counts]:
        return sql.read_sums(self._ask(query.rows, lambda rows: sql.sums(query, rows, self._domain)), query)

    def exact_residuals(self, query: ResidualQuery) -> list[Residuals]:
        answer = self._ask(query.rows, lambda rows: sql.residuals(query, rows, self._domain, DIALECT))
        return sql.read_residuals(answer, query, self._domain)

    def snapshot(self) -> MemoryEngine:
        """The merged, weighted table in memory: one row for all that share their codes."""
        from privet.kernel.engines.memory import MemoryEngine

        with self._lock:
            self._code()
            answer = self._run(sql.snapshot(exp.From(this=exp.to_table("coded")), self._domain)).fetchnumpy()
        codes = {column.name: answer[f"c{i}"] for i, column in enumerate(self._domain)}
        grids = {column.name: answer[f"g{i}"] for i, column in enumerate(self._domain) if isinstance(column, Numeric)}
        return MemoryEngine(self._domain, codes, grids, weights=answer["n"].astype(np.int64))

    # -- for the owner's inspection alone ---------------------------------------------------

    def exact_fit(self) -> tuple[int, int]:
        """The number of rows of the source, and of those that fit the domain."""
        with self._lock:
            self._code()
            counted = [exp.select(exp.Count(this=exp.Star())).from_(of) for of in (self._source, exp.to_table("coded"))]
            everything, fitting = (int(self._run(tree).fetchone()[0]) for tree in counted)
        return everything, fitting

    def exact_values(self, column: str) -> Iterator[tuple[Any, int]]:
        """Every distinct value of a source column and how often it occurs."""
        value = sql.col(column)
        tree = exp.select(value, exp.Count(this=exp.Star())).from_(self._source).group_by(value.copy())
        with self._lock:
            answer = self._run(tree)
            while rows := answer.fetchmany(10_000):
                yield from rows

    # -- scratch tables ---------------------------------------------------------------------

    def _ask(self, rows: Rows, statement: Any) -> sql.Answer:
        with self._lock:
            self._code()
            answer: dict[str, Any] = self._run(statement(self._relation(rows))).fetchnumpy()
        return {name: np.asarray(values, dtype=np.int64) for name, values in answer.items()}

    def _run(self, tree: exp.Expr) -> Any:
        return self._connection.execute(DIALECT.sql(tree))

    def _code(self) -> None:
        if self._coded:
            return
        # The order of coded rows does not matter, but it must stay: node tables are aligned with it.
        self._connection.execute("SET preserve_insertion_order = false")
        self._run(_create("coded", coding.coded(self._source, self._domain, self._kinds, DIALECT)))
        self._connection.execute("SET preserve_insertion_order = true")
        self._connection.execute("CHECKPOINT")
        self._coded = True

    def _relation(self, rows: Rows) -> exp.From:
        """The coded rows with their `node`, as a FROM clause."""
        if rows.parent is None:
            everything = exp.select(exp.Star(), sql.num(0).as_("node")).from_("coded")
            return exp.From(this=everything.subquery("everything"))
        return exp.From(this=exp.to_table("coded"), joins=[_beside(self._numbering(rows))])

    def _numbering(self, rows: Rows) -> str:
        """The table that holds the part of each coded row, computed from the nearest one that is kept."""
        found = self._nodes.get(rows)
        if found is not None:
            self._nodes.move_to_end(rows)
            return found
        assert rows.parent is not None and rows.step is not None
        if rows.parent.parent is None:
            tree = exp.select(sql.node(rows.step, sql.num(0), self._domain, DIALECT).as_("node")).from_("coded")
        else:
            above = self._numbering(rows.parent)
            tree = exp.select(sql.node(rows.step, sql.col("node"), self._domain, DIALECT).as_("node")).from_("coded")
            tree = tree.join(_beside(above))
        name = f"nodes{self._numbered}"
        self._numbered += 1
        self._run(_create(name, tree))
        self._nodes[rows] = name
        while len(self._nodes) > _KEPT:
            _, old = self._nodes.popitem(last=False)
            self._connection.execute(f"DROP TABLE {old}")
        return name


def _create(name: str, query: exp.Select) -> exp.Create:
    return exp.Create(this=exp.to_table(name), kind="TABLE", expression=query)


def _beside(table: str) -> exp.Join:
    return exp.Join(this=exp.to_table(table), method="POSITIONAL")


def _kinds(types: dict[str, str], domain: Domain) -> dict[str, Kind]:
    kinds = {}
    for name in domain.names:
        if name not in types:
            raise DataError(f"the table has no column '{name}', which the domain declares; check the domain file.")
        kind = _KINDS.get(types[name].split("(")[0])
        if kind is None:
            raise DataError(
                f"column '{name}' has type {types[name].split('(')[0]}; privet reads texts, numbers and booleans: cast "
                "it, or take it out of the domain file."
            )
        kinds[name] = kind
    return kinds


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a forked child must not remove its parent's folder
        shutil.rmtree(folder, ignore_errors=True)


def _sweep() -> None:
    """Remove the folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        process = folder.name.removeprefix(_PREFIX).split("-")[0]
        try:
            mine = folder.stat().st_uid == os.getuid()
            if mine and process.isdigit() and not _alive(int(process)):
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

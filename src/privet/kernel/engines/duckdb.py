"""The DuckDB engine: CSV and Parquet files and DuckDB tables, coded once into a private scratch database.

The source is opened read-only and read in one pass when the table is opened. What is coded goes to a scratch file in
a folder only this user may enter; the folder is removed when the engine closes, and folders that a killed process
left behind are removed by the next engine. Nothing is loaded into Python but answers.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
from sqlglot import exp

from privet.column import NUMBER
from privet.domain import Domain
from privet.errors import DataError
from privet.kernel.engines import coding, sql
from privet.kernel.engines.coding import Kind
from privet.kernel.engines.recall import Recall
from privet.kernel.engines.waiting import wait_for
from privet.kernel.query import (
    FIXED,
    CorrectQuery,
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
    from privet.kernel.engines.duckdb_source import Source
    from privet.kernel.engines.memory import MemoryEngine
    from privet.kernel.engines.stream import StreamEngine

DIALECT = sql.Dialect(
    name="duckdb",
    is_nan=lambda number: exp.IsNan(this=number),
    read_number=lambda value: sql.case(
        [
            (
                exp.func("regexp_full_match", value, exp.Literal.string(NUMBER), dialect="duckdb"),
                exp.TryCast(this=value.copy(), to=exp.DataType.build("DOUBLE")),
            )
        ]
    ),
    # list_extract counts from 1
    look_up=lambda values, index: exp.func(
        "list_extract", exp.Array(expressions=[sql.num(value) for value in values]), sql.add(index, sql.num(1))
    ),
    length=lambda value: exp.Anonymous(this="STRLEN", expressions=[value]),
    # equal means equal in every byte, whatever the column's collation says: it might find several declared values
    as_text=lambda value: exp.Collate(this=sql.text(value), expression=exp.to_identifier("binary", quoted=True)),
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
    "FLOAT": Kind.SINGLE,
    "DOUBLE": Kind.FLOAT,
    "DECIMAL": Kind.DECIMAL,
    "BOOLEAN": Kind.BOOLEAN,
    "ENUM": Kind.TEXT,
}

_THREADS = 8  # at most: each groups rows by 14 keys on its own before they are merged
_PASSING = 2  # threads: they read batches faster than one core counts them
_MEMORY, _PASSING_MEMORY = 20, 10  # MB for each thread, and one more for each column
_BATCH = 2**17  # rows
_PREFIX = "privet-scratch-"
_KEPT = 3  # node numberings kept for the next level; others are computed again from these


class DuckDBEngine:
    """Push-down: every question is one SQL statement over the coded table."""

    name = "duckdb"
    closed = False
    version = FIXED

    def __init__(self, source: Source, domain: Domain) -> None:
        """Open the source and code it: what is wrong with it is told here, and not to whoever asks first."""
        self._domain = domain
        _sweep()
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self._close = weakref.finalize(self, _remove, folder, os.getpid())
        self._connection = duckdb.connect(
            str(folder / "coded.duckdb"),
            config={
                "threads": str(_threads()),
                "memory_limit": _limit(_threads(), _MEMORY, domain),
                "temp_directory": str(folder),
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )
        self._connection.execute("SET enable_progress_bar = false")
        self._process = os.getpid()
        _engines.add(self)
        self._lock = threading.RLock()
        self._recall = Recall(domain)
        self._numbered = 0
        self._nodes: OrderedDict[Rows, str] = OrderedDict()
        try:
            problem = self._read(source)
        except BaseException:  # an interrupt too leaves nothing behind
            self.close()
            raise
        if problem is not None:
            self.close()
            raise DataError(problem)

    def _read(self, source: Source) -> str | None:
        """Code the source into the scratch database; what stands in the way, without the engine's words."""
        what = source.title
        try:
            self._source, self._fields = source.attach(self._connection, self._domain.names)
            described = self._connection.execute(f"DESCRIBE SELECT * FROM {DIALECT.sql(self._source)}").fetchall()
        except duckdb.Error:
            return f"cannot open {what}; check that it is what its name says, and that no one writes to it."
        stored = {row[0]: row[1] for row in described}
        types: dict[str, Any] = {name: stored.get(self._fields.get(name, "")) for name in self._domain.names}
        kinds = self._kinds = {name: _kind(name, types[name]) for name in self._domain.names}
        mend = f"cannot read {what} to its end: an open quote, text that is not UTF-8, or a full disk; mend the file."
        if not source.ends():
            return mend
        # The order of coded rows does not matter, but it must stay: node tables are aligned with it.
        self._connection.execute("SET preserve_insertion_order = false")
        try:
            self._run(_create("coded", coding.coded(self._source, self._domain, self._fields, kinds, DIALECT, types)))
        except duckdb.Error:
            return mend
        self._connection.execute("SET preserve_insertion_order = true")
        self._connection.execute("CHECKPOINT")
        return None

    def close(self) -> None:
        self.closed = True
        self._recall.forget()
        if os.getpid() == self._process:
            self._connection.close()
        self._close()

    def exact_counts(self, query: CountQuery) -> list[Counts]:
        return self._recall.counts(query, self._counts)

    def _counts(self, query: CountQuery) -> list[Counts]:
        answer = self._ask(query.rows, lambda rows: sql.counts(query, rows, self._domain))
        return sql.read_counts(answer, query, self._domain)

    def exact_grid(self, query: GridQuery) -> list[GridCounts]:
        answer = self._ask(query.rows, lambda rows: sql.grid(query, rows, self._domain))
        return sql.read_grid(answer, query, self._domain)

    def exact_sums(self, query: SumQuery) -> tuple[Counts, Counts]:
        return sql.read_sums(self._ask(query.rows, lambda rows: sql.sums(query, rows, self._domain)), query)

    def exact_residuals(self, query: ResidualQuery) -> list[Residuals]:
        with self._lock:
            # a table, not a subquery: DuckDB knows how few cells it has and sums them in little memory
            owned = sql.owned(query, self._relation(query.rows), self._domain, DIALECT)
            try:
                self._run(_create("owned", owned, replace=True))  # an interrupt may have left one
                answer = self._fetch(sql.residuals(query, "owned", self._domain))
            finally:
                self._connection.execute("DROP TABLE IF EXISTS owned")
        return sql.read_residuals(answer, query, self._domain)

    def exact_correct(self, query: CorrectQuery) -> Counts:
        answer = self._ask(query.rows, lambda rows: sql.correct(query, rows, self._domain, DIALECT))
        return sql.read_correct(answer, query)

    def snapshot(self) -> MemoryEngine:
        """The merged, weighted table in memory: one row for all that share their codes."""
        from privet.kernel.engines.memory import MemoryEngine

        with self._lock:
            answer = self._fetched(sql.snapshot(exp.From(this=exp.to_table("coded")), self._domain))
        return MemoryEngine.merged(self._domain, answer)

    def stream(self) -> StreamEngine:
        """The coded rows in passing: the in-memory kernel counts them batch by batch."""
        from privet.kernel.engines.stream import StreamEngine

        threads = min(_PASSING, _threads())
        self._connection.execute(f"SET threads = {threads}")
        self._connection.execute(f"SET memory_limit = '{_limit(threads, _PASSING_MEMORY, self._domain)}'")
        return StreamEngine("duckdb", self._domain, self._batches, self.close)

    def _batches(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        tree = exp.select(*(sql.col(name) for name in columns)).from_("coded")
        with self._lock:
            for batch in self._connection.sql(DIALECT.sql(tree)).to_arrow_reader(_BATCH):
                yield {name: batch.column(at).to_numpy() for at, name in enumerate(columns)}

    # -- for the owner's inspection alone ---------------------------------------------------

    def exact_fit(self) -> tuple[int, int]:
        """The number of rows of the source, and of those that fit the domain."""
        with self._lock:
            counted = [exp.select(exp.Count(this=exp.Star())).from_(of) for of in (self._source, exp.to_table("coded"))]
            everything, fitting = (int(self._run(tree).fetchone()[0]) for tree in counted)
        return everything, fitting

    def exact_values(self, column: str) -> Iterator[tuple[Any, int]]:
        """Every distinct value of a source column and how often it occurs."""
        value = sql.col(self._fields[column])
        tree = exp.select(value, exp.Count(this=exp.Star())).from_(self._source).group_by(value.copy())
        with self._lock:
            answer = self._run(tree)
            narrow = self._kinds[column] is Kind.SINGLE  # Python's floats are wider, and have other texts
            while rows := answer.fetchmany(10_000):
                yield from ((np.float32(value), n) if narrow and value is not None else (value, n) for value, n in rows)

    # -- scratch tables ---------------------------------------------------------------------

    def _ask(self, rows: Rows, statement: Callable[[exp.From], exp.Expr]) -> sql.Answer:
        with self._lock:
            return self._fetch(statement(self._relation(rows)))

    def _fetch(self, tree: exp.Expr) -> sql.Answer:
        return {name: np.asarray(values, dtype=np.int64) for name, values in self._fetched(tree).items()}

    def _fetched(self, tree: exp.Expr) -> dict[str, Any]:
        answer: dict[str, Any] = wait_for(self._run(tree).fetchnumpy, self._connection.interrupt)
        return answer

    def _run(self, tree: exp.Expr) -> Any:
        return wait_for(lambda: self._connection.execute(DIALECT.sql(tree)), self._connection.interrupt)

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


_engines: weakref.WeakSet[DuckDBEngine] = weakref.WeakSet()


def _abandon() -> None:
    """In a forked child DuckDB's threads are gone: destroying its copy of a connection would crash the child."""
    for engine in _engines:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine._connection))


os.register_at_fork(after_in_child=_abandon)


def _threads() -> int:
    return min(_THREADS, os.cpu_count() or 1)


def _limit(threads: int, memory: int, domain: Domain) -> str:
    return f"{threads * (memory + len(domain.columns))}MB"


def _create(name: str, query: exp.Select, replace: bool = False) -> exp.Create:
    return exp.Create(this=exp.to_table(name), kind="TABLE", expression=query, replace=replace)


def _beside(table: str) -> exp.Join:
    return exp.Join(this=exp.to_table(table), method="POSITIONAL")


def _kind(name: str, described: str | None) -> Kind:
    if described is None:
        raise DataError(f"the table has no column '{name}', which the domain declares; check the domain file.")
    plain = re.fullmatch(r"(\w+)(\(.*\))?", described, re.DOTALL)  # a list ends in [], a struct has more
    kind = _KINDS.get(plain[1]) if plain else None
    if kind is None:
        raise DataError(
            f"column '{name}' has type {described.split('(')[0]}; privet reads texts, numbers and booleans: cast it, "
            "or take it out of the domain file."
        )
    return kind


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

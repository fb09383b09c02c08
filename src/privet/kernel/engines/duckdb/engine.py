"""The DuckDB engine: CSV and Parquet files and DuckDB tables, coded once into a private scratch database.

The source is opened read-only and read in one pass when the table is opened. What is coded goes to a scratch file in
a folder of this engine (`scratch.py`). Statements return answers alone; `stream` and `snapshot`
fetch coded rows.

How much memory a statement needs depends on the rows it meets, so no limit may end it: a statement that DuckDB cannot
finish is answered by reading the coded rows in batches, in memory that only the domain and the question decide.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
from sqlglot import exp

from privet.errors import DataError
from privet.kernel.column import NUMBER
from privet.kernel.date import DATE
from privet.kernel.domain import Domain
from privet.kernel.engines import contract
from privet.kernel.engines.contract import Counts
from privet.kernel.engines.duckdb.csv_records import CsvFile
from privet.kernel.engines.duckdb.scratch import Scratch
from privet.kernel.engines.memory.stream import StreamEngine
from privet.kernel.engines.sql import coding, sql
from privet.kernel.engines.sql.coding import Held, Kind
from privet.kernel.engines.sql.statement import OWNED, Compiled, Source, SqlEngine
from privet.kernel.rows import Rows
from privet.waiting import wait_for


def _day(value: sql.Sql, zoned: bool) -> sql.Sql:
    """`sql.days_since_epoch`, where some times lie beyond all dates, and some with a zone beyond all without one."""
    local = exp.Anonymous(this="TRY", expressions=[sql.in_utc(value)]) if zoned else value
    if not isinstance(local, exp.TryCast):
        local = exp.TryCast(this=local, to=exp.DataType.build("DATE"), safe=True)
    return sql.days_since_epoch(local, False)


DIALECT = sql.Dialect(
    name="duckdb",
    is_nan=lambda number: exp.IsNan(this=number),
    read_number=lambda value: sql.number_where(
        exp.func("regexp_full_match", value, exp.Literal.string(NUMBER), dialect="duckdb"), value
    ),
    # list_extract counts from 1
    look_up=lambda values, index: exp.func("list_extract", sql.numbers(values), sql.add(index, sql.num(1))),
    length=lambda value: exp.Anonymous(this="STRLEN", expressions=[value]),
    is_date=lambda value: exp.func("regexp_full_match", value, exp.Literal.string(DATE), dialect="duckdb"),
    day=_day,
    # equal means equal in every byte, whatever the column's collation says: it might find several declared values
    as_text=lambda value: exp.Collate(this=sql.text(value), expression=exp.to_identifier("binary", quoted=True)),
)

_INTEGERS = [sign + size for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")]
_KINDS = {
    **dict.fromkeys(("VARCHAR", "ENUM"), Kind.TEXT),
    **dict.fromkeys(_INTEGERS, Kind.INTEGER),
    "FLOAT": Kind.SINGLE,
    "DOUBLE": Kind.FLOAT,
    "DECIMAL": Kind.DECIMAL,
    "BOOLEAN": Kind.BOOLEAN,
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), Kind.DAY),
    "TIMESTAMP WITH TIME ZONE": Kind.INSTANT,
}

_THREADS = 8  # at most: each groups rows by 14 keys on its own before they are merged
_PASSING_THREADS = 2  # they read batches faster than one core counts them
_READING_MEMORY = 2**29  # bytes for DuckDB while it codes a table, unless a row group of that needs more
_MEMORY = 2**28  # bytes for a question: one that needs more is answered from disk, or in batches
_BATCH = 2**17  # rows
_KEPT = 3  # node numberings kept for the next level; others are computed again from these

Q = TypeVar("Q")
T = TypeVar("T")


class DuckDBEngine(SqlEngine):
    """Push-down: every question is one SQL statement over the coded table."""

    name = "duckdb"
    dialect = DIALECT

    def __init__(self, source: DuckDBSource, domain: Domain, *, shortcuts: bool = True) -> None:
        """Open the source and code it: what is wrong with it is told here, and not to whoever asks first."""
        super().__init__(domain, shortcuts=shortcuts)
        self._scratch = Scratch()
        self._connection = duckdb.connect(
            str(self._scratch.folder / "coded.duckdb"),
            config={
                "threads": str(_threads()),
                "memory_limit": _limit(_READING_MEMORY),
                "temp_directory": str(self._scratch.folder),
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )
        self._connection.execute("SET enable_progress_bar = false")
        self._process = os.getpid()
        _engines.add(self)
        self._lock = threading.RLock()
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
        self._connection.execute(f"SET memory_limit = '{_limit(_MEMORY)}'")

    def _read(self, source: DuckDBSource) -> str | None:
        """Code the source into the scratch database; what stands in the way, without the engine's words."""
        what, names = source.title, self._domain.stored_names
        try:
            self._reading = source.attach(self._connection, names, self._scratch.folder)
            columns = self._reading.columns(names)
        except duckdb.Error:
            return f"cannot open {what}; check that it is what its name says, and that no one writes to it."
        self._held = {}
        for name in names:
            field, stored = columns.get(name, (name, None))
            self._held[name] = Held(field, coding.kind_of(self._domain, name, stored, _KINDS), stored or "")
        # The order of coded rows does not matter, but it must stay: node tables are aligned with it.
        self._connection.execute("SET preserve_insertion_order = false")
        for memory in (_READING_MEMORY, machine_memory()):  # a row group is held whole, with its longest text
            self._connection.execute(f"SET memory_limit = '{_limit(memory)}'")
            try:
                fitting = "coded" if self._domain.person is None else "fitting"
                for number, relation in enumerate(self._reading.relations(names)):
                    coded = coding.coded(relation, self._domain, self._held, DIALECT)
                    self._run(_insert(fitting, coded) if number else _create(fitting, coded, replace=True))
                if self._domain.person is not None:
                    rows = exp.to_table(fitting)
                    self._run(_create("persons", coding.rows_of_persons(rows), replace=True))
                    self._run(_create("coded", coding.bounded(rows, self._domain, DIALECT), replace=True))
                    self._connection.execute(f"DROP TABLE {fitting}")
                self._connection.execute("SET preserve_insertion_order = true")
                self._connection.execute("CHECKPOINT")
                return None
            except duckdb.OutOfMemoryException:
                continue
            except (duckdb.Error, OSError):
                break
        return (
            f"cannot read {what} to its end: it is damaged, a row group of it is larger than half of this machine's "
            "memory, or the disk is full; mend the file, or give it more room."
        )

    def close(self) -> None:
        self.closed = True
        self._recall.forget()
        if os.getpid() == self._process:
            self._connection.close()
        self._scratch.close()

    # A statement that DuckDB cannot finish is answered by reading the coded rows in batches.

    def _counts(self, query: contract.CountQuery) -> list[Counts]:
        return self._answer(self._tables, StreamEngine.exact_counts, query)

    def exact_grid(self, query: contract.GridQuery) -> list[contract.GridCounts]:
        return self._answer(super().exact_grid, StreamEngine.exact_grid, query)

    def exact_sums(self, query: contract.SumQuery) -> tuple[Counts, Counts]:
        return self._answer(super().exact_sums, StreamEngine.exact_sums, query)

    def exact_residuals(self, query: contract.ResidualQuery) -> list[contract.Residuals]:
        return self._answer(super().exact_residuals, StreamEngine.exact_residuals, query)

    def exact_correct(self, query: contract.CorrectQuery) -> Counts:
        return self._answer(super().exact_correct, StreamEngine.exact_correct, query)

    def _answer(self, by_statement: Callable[[Q], T], streamed: Callable[[StreamEngine, Q], T], query: Q) -> T:
        """Answer by a statement or, where DuckDB cannot finish it, by reading the coded rows in batches.

        What ends a statement is its memory, or the disk it spills to: both depend on how many rows it meets, so that an
        error would be an exact answer.
        """
        try:
            return by_statement(query)
        except duckdb.Error:
            pass  # its words are about rows: nothing of it is kept
        return streamed(self._streamed(close=lambda: None), query)

    def _merged(self) -> sql.Answer:
        with self._lock:
            self._connection.execute(f"SET memory_limit = '{_limit(machine_memory())}'")  # it is the table's opening
            return self._fetched(sql.snapshot(exp.From(this=exp.to_table("coded")), self._domain))

    def stream(self) -> StreamEngine:
        """The coded rows, which the in-memory kernel counts batch by batch."""
        self._connection.execute(f"SET threads = {min(_PASSING_THREADS, _threads())}")
        return self._streamed(self.close)

    def in_cells(self, cells: contract.Cells) -> StreamEngine:
        return self._streamed(close=lambda: None).in_cells(cells)  # the coded rows stay as they are: read in batches

    def _streamed(self, close: Callable[[], None]) -> StreamEngine:
        return StreamEngine("duckdb", self._domain, self._batches, close, shortcuts=self._shortcuts)

    def _batches(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        statement = DIALECT.sql(exp.select(*(sql.col(name) for name in columns)).from_("coded"))
        with self._lock:
            yield from _batches(self._connection, statement, columns)

    # -- for the owner's inspection alone ---------------------------------------------------

    def exact_fit(self) -> tuple[int, int]:
        with self._lock:
            fitting = self._run(exp.select(exp.Count(this=exp.Star())).from_("coded")).fetchone()[0]
            return self._reading.exact_rows(), int(fitting)

    def exact_persons(self) -> dict[int, int]:
        with self._lock:
            return {int(n): int(m) for n, m in self._run(exp.select("n", "m").from_("persons")).fetchall()}

    def exact_misshapen(self) -> int:
        """The number of records of a CSV file that have more or fewer fields than its header."""
        return self._reading.exact_misshapen()

    def exact_values(self, column: str) -> Iterator[tuple[Any, int]]:
        with self._lock:
            field = sql.col(self._reading.columns([column])[column][0])  # of a file that is read for this column alone
            field, value_of = coding.inspected(field, self._held[column].kind, DIALECT)
            for number, relation in enumerate(self._reading.relations([column])):
                counted = exp.select(field.as_("v"), exp.Count(this=exp.Star()).as_("n")).from_(relation)
                counted = counted.group_by(field.copy())
                self._run(
                    _insert("source_values", counted) if number else _create("source_values", counted, replace=True)
                )
            value = sql.col("v")
            answer = self._run(
                exp.select(value, sql.big(exp.Sum(this=sql.col("n")))).from_("source_values").group_by(value)
            )
            while rows := answer.fetchmany(10_000):
                yield from ((value_of(value), n) for value, n in rows)

    # -- scratch tables ---------------------------------------------------------------------

    def _ask(self, query: contract.Query, compiled: Compiled, cells: Sequence[int] = (1,)) -> sql.Answer:
        with self._lock:
            rows = self._relation(query.rows)
            if not isinstance(query, contract.ResidualQuery):
                return self._fetch(compiled(rows))
            # a table, not a subquery: DuckDB knows how few cells it has and sums them in little memory
            try:
                owned = sql.owned(query, rows, self._domain, DIALECT)
                self._run(_create(OWNED, owned, replace=True))  # an interrupt may have left one
                return self._fetch(compiled(rows))
            finally:
                self._connection.execute(f"DROP TABLE IF EXISTS {OWNED}")

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
        if not self._shortcuts:
            self._drop_numberings(keep=0)
        return exp.From(this=exp.to_table("coded"), joins=[_beside(self._numbering(rows))])

    def _numbering(self, rows: Rows) -> str:
        """The table that holds the part of each coded row, computed from the nearest one that is kept."""
        if rows in self._nodes:
            self._nodes.move_to_end(rows)
            return self._nodes[rows]
        assert rows.parent is not None and rows.step is not None
        first = rows.parent.parent is None
        node = sql.node(rows.step, sql.num(0) if first else sql.col("node"), self._domain, DIALECT)
        tree = exp.select(node.as_("node")).from_("coded")
        if not first:
            tree = tree.join(_beside(self._numbering(rows.parent)))
        name = f"nodes{self._numbered}"
        self._numbered += 1
        self._run(_create(name, tree))
        self._nodes[rows] = name
        self._drop_numberings(keep=_KEPT)
        return name

    def _drop_numberings(self, keep: int) -> None:
        """Drop all numberings but those that were used last."""
        while len(self._nodes) > keep:
            _, old = self._nodes.popitem(last=False)
            self._connection.execute(f"DROP TABLE {old}")


_engines: weakref.WeakSet[DuckDBEngine] = weakref.WeakSet()


def _abandon() -> None:
    """In a forked child DuckDB's threads are gone: destroying its copy of a connection would crash the child."""
    for engine in _engines:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine._connection))


os.register_at_fork(after_in_child=_abandon)


def _threads() -> int:
    return min(_THREADS, os.cpu_count() or 1)


def machine_memory() -> int:
    """The bytes of memory that this process may use: the machine's, or its control group's where that is less."""
    sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(limit).read_text().strip()
        except OSError:
            continue
        sizes += [int(text)] if text.isdecimal() else []
    return min(sizes)


def _limit(size: int) -> str:
    """A limit for DuckDB: never more than half of what the machine has."""
    return f"{min(size, machine_memory() // 2) // 2**20}MiB"


def _batches(connection: Any, statement: str, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The rows of a statement in batches; pyarrow reads them twice as fast as pandas, where it is installed."""
    if importlib.util.find_spec("pyarrow") is not None:
        for batch in connection.sql(statement).to_arrow_reader(_BATCH):
            yield {name: batch.column(at).to_numpy() for at, name in enumerate(columns)}
        return
    answer = connection.execute(statement)
    while len(chunk := answer.fetch_df_chunk(_BATCH // 2048)):
        yield {name: chunk[name].to_numpy() for name in columns}


def _insert(name: str, query: exp.Query) -> exp.Insert:
    return exp.Insert(this=exp.to_table(name), expression=query)


def _create(name: str, query: exp.Query, replace: bool = False) -> exp.Create:
    return exp.Create(this=exp.to_table(name), kind="TABLE", expression=query, replace=replace)


def _beside(table: str) -> exp.Join:
    return exp.Join(this=exp.to_table(table), method="POSITIONAL")


# -- what DuckDB reads: a CSV or Parquet file, or a table of a DuckDB database ------------------


@dataclass(frozen=True)
class DuckDBSource(Source):
    """A file or a table of a DuckDB database."""

    path: Path
    table: str | None = None

    remote = False
    streams = True

    @property
    def kind(self) -> str:
        return self.path.suffix.lower().removeprefix(".") if self.table is None else "duckdb"

    @property
    def title(self) -> str:
        return f"'{self.path}'" if self.table is None else f"table '{self.table}' of '{self.path}'"

    @property
    def label(self) -> str:
        return f"{self.kind} {'file' if self.table is None else f'table {self.table} of'} {self.path.name}"

    @property
    def name(self) -> str:
        return self.table or self.path.resolve().stem

    @property
    def address(self) -> str:
        return str(self.path.resolve()) + ("" if self.table is None else f"?table={self.table}")

    @property
    def ledger(self) -> Path:
        """The ledger beside the data, the same through every link to them."""
        path = self.path.resolve()
        return path.with_name(path.name + ".ledger")

    def open(self, domain: Domain) -> DuckDBEngine:
        return DuckDBEngine(self, domain)

    def attach(self, connection: Any, names: Sequence[str], folder: Path) -> Reading:
        """Make the source readable by a connection; `folder` is where pieces of a CSV file may be written."""
        if self.kind == "csv":
            return _CsvReading(connection, self.path, CsvFile(self.path), folder)
        if self.table is not None:
            connection.execute(f"ATTACH {_sql(exp.Literal.string(str(self.path)))} AS source (READ_ONLY)")
            return Reading(connection, exp.table_(self.table, catalog="source", quoted=True))
        return _ParquetReading(connection, self.path)


class Reading:
    """A source that is being read: its columns, and its rows as one relation."""

    def __init__(self, connection: Any, relation: exp.Expr) -> None:
        self._connection, self._relation = connection, relation

    def columns(self, names: Sequence[str]) -> dict[str, tuple[str, str]]:
        """The field of a relation, and its SQL type, for each of these names that the source has."""
        described = self._connection.execute(f"DESCRIBE SELECT * FROM {_sql(self._relation)}").fetchall()
        return {row[0]: (row[0], row[1]) for row in described if row[0] in names}

    def relations(self, names: Sequence[str]) -> Iterator[exp.Expr]:
        """All rows, as FROM items one after the other: each can be read until the next is asked for."""
        yield self._relation

    def exact_rows(self) -> int:
        """The number of rows, whether they fit a domain or not."""
        counted = exp.select(exp.Count(this=exp.Star())).from_(self._relation)
        return int(self._connection.execute(_sql(counted)).fetchone()[0])

    def exact_misshapen(self) -> int:
        """The number of records that have more or fewer fields than the header."""
        return 0


class _ParquetReading(Reading):
    """A Parquet file."""

    def __init__(self, connection: Any, path: Path) -> None:
        super().__init__(connection, _reader("read_parquet", path, {"hive_partitioning": exp.false()}))
        self._path = path

    def columns(self, names: Sequence[str]) -> dict[str, tuple[str, str]]:
        columns = super().columns(names)
        listed = f"SELECT name, logical_type FROM {_sql(_reader('parquet_schema', self._path, {}))}"
        for name, stored in self._connection.execute(listed).fetchall():
            if name in columns and columns[name][1].startswith("TIMESTAMP") and "MilliSeconds" in str(stored):
                # DuckDB reads them as microseconds, and would stop at a row that is too far away for these
                raise DataError(
                    f"column '{name}' of '{self._path}' holds times in milliseconds, which not all can be read; write "
                    "it as dates, or as times in microseconds."
                )
        return columns


class _CsvReading(Reading):
    """A CSV file, written anew piece by piece: DuckDB reads a piece in one buffer, where it cannot lose its place."""

    def __init__(self, connection: Any, path: Path, file: CsvFile, folder: Path) -> None:
        super().__init__(connection, exp.to_table("records"))
        self._path, self._file, self._folder = path, file, folder

    def columns(self, names: Sequence[str]) -> dict[str, tuple[str, str]]:
        for name in names:
            if self._file.names.count(name) > 1:
                raise DataError(f"'{self._path}' has several columns named '{name}'; rename them.")
        self._file.check_names(names)
        return {name: (f"f{i}", "VARCHAR") for i, name in enumerate(self._file.fields(names))}

    def relations(self, names: Sequence[str]) -> Iterator[exp.Expr]:
        fields = [f"f{i}" for i in range(len(self._file.fields(names)))]
        for number, piece in enumerate(self._file.pieces(names)):
            path = self._folder / f"records{number}.csv"  # a new name: DuckDB may keep what it read of a file
            path.write_bytes(piece)
            try:
                view = f"CREATE OR REPLACE TEMP VIEW records AS FROM {_sql(_records(path, fields, len(piece)))}"
                self._connection.execute(view)
                yield self._relation
            finally:
                path.unlink()

    def exact_rows(self) -> int:
        return self._file.records

    def exact_misshapen(self) -> int:
        return self._file.misshapen


def _records(path: Path, fields: Sequence[str], size: int) -> exp.Expr:
    """A piece of a CSV file in which every field is in quotes: all fields as texts, an empty one as an empty text."""
    texts = [exp.Literal.string(field) for field in fields]
    kind = exp.Literal.string("VARCHAR")
    options = {
        "auto_detect": exp.false(),
        "header": exp.false(),
        "columns": exp.Struct(expressions=[exp.PropertyEQ(this=text, expression=kind.copy()) for text in texts]),
        "delim": exp.Literal.string(","),
        "quote": exp.Literal.string('"'),
        "escape": exp.Literal.string('"'),
        "new_line": exp.Literal.string("\\n"),
        "force_not_null": exp.Array(expressions=[text.copy() for text in texts]),
        "parallel": exp.false(),
        "max_line_size": sql.num(max(size, 2**21)),
        "buffer_size": sql.num(max(2 * size, 2**22)),
        "hive_partitioning": exp.false(),
    }
    return _reader("read_csv", path, options)


def _sql(tree: exp.Expr) -> str:
    return tree.sql(dialect="duckdb")


def _reader(function: str, path: Path, options: dict[str, exp.Expr]) -> exp.Expr:
    """A table function that reads one file; its name may contain what DuckDB takes for wildcards."""
    literal = "".join(f"[{char}]" if char in "*?[" else char for char in str(path))
    named = [exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in options.items()]
    return exp.Anonymous(this=function, expressions=[exp.Literal.string(literal), *named])


def canonical(source: DuckDBSource) -> DuckDBSource:
    """The source under the name its database has for the table: DuckDB does not tell upper from lower case."""
    if source.table is None:
        return source
    try:
        with duckdb.connect(str(source.path), read_only=True) as connection:
            query = "SELECT table_name FROM information_schema.tables WHERE lower(table_name) = lower(?)"
            names = [name for (name,) in connection.execute(query, [source.table]).fetchall()]
    except duckdb.Error:
        names = []
    if len(names) != 1:
        raise DataError(
            f"cannot open table '{source.table}' of '{source.path}'; check both names, and that no one writes to it."
        )
    return DuckDBSource(source.path, names[0])

"""What DuckDB reads: a CSV or Parquet file, or a table of a DuckDB database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from privet.errors import DataError
from privet.kernel.domain import Domain
from privet.kernel.engines.duckdb.csv_records import CsvFile
from privet.kernel.engines.duckdb.engine import DuckDBEngine
from privet.kernel.engines.sql import sql
from privet.kernel.engines.sql.statement import Source


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

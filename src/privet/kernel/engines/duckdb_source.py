"""What DuckDB reads: a CSV or Parquet file, or a table of a DuckDB database."""

from __future__ import annotations

import csv
import importlib.util
import io
import mmap
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from privet.domain import Domain
from privet.errors import DataError
from privet.kernel.engines import sql
from privet.kernel.engines.duckdb import DuckDBEngine

_LONGEST_HEADER = 2**20
# A field in quotes, and the quote that ends it where a field may end.
_IN_QUOTES = re.compile(rb'(?:\A(?:\xef\xbb\xbf)?|[,\n\r]) *"[^"]*+(?:""[^"]*+)*+("(?= *(?:[,\r\n]|\Z)))?')


@dataclass(frozen=True)
class Source:
    """A file or a table of a DuckDB database."""

    path: Path
    table: str | None = None

    remote = False

    @property
    def streams(self) -> bool:
        """Batches come as Arrow's."""
        return importlib.util.find_spec("pyarrow") is not None

    @property
    def kind(self) -> str:
        return self.path.suffix.lower().removeprefix(".") if self.table is None else "duckdb"

    @property
    def title(self) -> str:
        """What an owner calls it."""
        return f"'{self.path}'" if self.table is None else f"table '{self.table}' of '{self.path}'"

    @property
    def label(self) -> str:
        """What a report calls it."""
        return f"{self.kind} {'file' if self.table is None else f'table {self.table} of'} {self.path.name}"

    @property
    def name(self) -> str:
        """The name of the data set unless it is given another."""
        return self.table or self.path.resolve().stem

    @property
    def address(self) -> str:
        """Where the data are, as the ledger remembers them."""
        place = str(self.path.resolve())
        return place if self.table is None else f"{place}?table={self.table}"

    @property
    def ledger(self) -> Path:
        """The ledger beside the data, the same through every link to them."""
        path = self.path.resolve()
        return path.with_name(path.name + ".ledger")

    def open(self, domain: Domain) -> DuckDBEngine:
        return DuckDBEngine(self, domain)

    def attach(self, connection: Any, names: Sequence[str]) -> tuple[exp.Expr, dict[str, str]]:
        """Make the source readable: a FROM item, and the source column of each of these names that it has."""
        if self.table is not None:
            connection.execute(f"ATTACH {_quoted(str(self.path))} AS source (READ_ONLY)")
            return exp.table_(self.table, catalog="source", quoted=True), {name: name for name in names}
        if self.path.suffix.lower() == ".parquet":
            tree = _reader("read_parquet", self.path, {"hive_partitioning": exp.false()})
            return tree, {name: name for name in names}
        return self._csv(names)

    def ends(self) -> bool:
        """Whether every quote closes: DuckDB takes what follows an open one for one field, and drops it silently."""
        if self.kind != "csv":
            return True
        with self.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(b'"') < 0 or all(field[1] for field in _IN_QUOTES.finditer(content))

    def _csv(self, names: Sequence[str]) -> tuple[exp.Expr, dict[str, str]]:
        """All fields as text, named by position: other columns may have no name, or the same one."""
        header = _header(self.path)
        for name in names:
            if header.count(name) > 1:
                raise DataError(f"'{self.path}' has several columns named '{name}'; rename them.")
        fields = [exp.Literal.string(f"f{i}") for i in range(len(header))]
        text = exp.Literal.string("VARCHAR")
        options = {
            "auto_detect": exp.false(),
            "header": exp.true(),
            "columns": exp.Struct(expressions=[exp.PropertyEQ(this=field, expression=text.copy()) for field in fields]),
            "delim": exp.Literal.string(","),
            "quote": exp.Literal.string('"'),
            "escape": exp.Literal.string('"'),
            # an empty field is an empty text
            "force_not_null": exp.Array(expressions=[field.copy() for field in fields]),
            "parallel": exp.false(),  # two threads disagree about newlines inside quotes
            "ignore_errors": exp.true(),  # a line that is no record is left out, as a record is that fits no cell
            "strict_mode": exp.false(),
            "max_line_size": sql.num(2**24),
            "hive_partitioning": exp.false(),
        }
        return _reader("read_csv", self.path, options), {n: f"f{header.index(n)}" for n in names if n in header}


def _reader(function: str, path: Path, options: dict[str, exp.Expr]) -> exp.Expr:
    """A table function that reads one file; its name may contain what DuckDB takes for wildcards."""
    literal = "".join(f"[{char}]" if char in "*?[" else char for char in str(path))
    named = [exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in options.items()]
    return exp.Anonymous(this=function, expressions=[exp.Literal.string(literal), *named])


def _quoted(value: str) -> str:
    return exp.Literal.string(value).sql(dialect="duckdb")


def _header(path: Path) -> list[str]:
    """The column names of a CSV file: its first record, and not a byte of the second."""
    header = b""
    try:
        with path.open("rb") as lines:
            while (char := lines.read(1)) and len(header) < _LONGEST_HEADER:
                if char in b"\r\n" and header.count(b'"') % 2 == 0:
                    break
                header += char
        names = next(csv.reader(io.StringIO(header.decode("utf-8-sig"), newline="")), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        names = []
    if not any(names):
        raise DataError(f"the first line of '{path}' is not a list of column names in UTF-8; add a header line.")
    return names


def canonical(source: Source) -> Source:
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
    return Source(source.path, names[0])

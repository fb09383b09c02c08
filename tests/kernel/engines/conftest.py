"""Tables in every storage an engine reads, written the way other programs write them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import duckdb
import mssql_stand_in
import numpy as np
import pandas as pd
import pytest
import spark_session
from postgres_server import shared_server

from privet.kernel import source_of
from privet.kernel.domain import Domain
from privet.kernel.engines.addresses import spark_frame
from privet.kernel.engines.duckdb.engine import DuckDBEngine, DuckDBSource
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.memory.stream import StreamEngine
from privet.kernel.engines.mssql.engine import MssqlEngine
from privet.kernel.engines.reference import ReferenceEngine

Row = Sequence[object]

GHOST = "ghost"  # a column that no domain declares, first in every storage
SECRET = "SECRET,\"'"


class Stores:
    """Writes rows to a storage and opens an engine over them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()

    @contextmanager
    def open(
        self, storage: str, domain: Domain, types: Sequence[str], rows: Sequence[Row], *, shortcuts: bool = True
    ) -> Iterator[tuple[Any, list[Row]]]:
        """An engine, and the rows as values of that storage: a CSV file holds texts only."""
        if storage == "memory":
            yield MemoryEngine.from_frame(frame(domain.stored_names, rows), domain, shortcuts=shortcuts), list(rows)
        elif storage == "batches":
            yield in_batches(domain, rows, shortcuts), list(rows)
        elif storage == "postgres":
            from privet.kernel.engines.postgres.engine import PostgresEngine

            address, held = self.write_postgres(domain.stored_names, types, rows)
            try:
                with closing(PostgresEngine(source_of(address), domain, shortcuts=shortcuts)) as engine:
                    yield engine, _singles(held, types)
            finally:
                self.drop_postgres(address)
        elif storage == "spark":
            data, held = write_spark(domain.stored_names, types, rows)
            from privet.kernel.engines.spark.engine import SparkEngine

            with closing(SparkEngine(spark_frame(data), domain, shortcuts=shortcuts)) as engine:
                yield engine, _singles(held, types)
        elif storage == "mssql":
            held = [[mssql_stand_in.held(value, each) for value, each in zip(row, types, strict=True)] for row in rows]
            server = mssql_stand_in.StandIn(domain.stored_names, types, held)
            with closing(MssqlEngine(lambda: server, mssql_stand_in.TABLE, domain, shortcuts=shortcuts)) as engine:
                yield engine, held
        else:
            source, held = self.write(storage, domain.stored_names, types, rows)
            try:
                with closing(DuckDBEngine(source, domain, shortcuts=shortcuts)) as engine:
                    yield engine, held if storage == "csv" else _singles(held, types)
            finally:
                source.path.unlink()

    def write(
        self, storage: str, names: Sequence[str], types: Sequence[str], rows: Sequence[Row]
    ) -> tuple[DuckDBSource, list[Row]]:
        path = self._folder / f"table {next(self._numbers)}.{'db' if storage == 'table' else storage}"
        if storage == "csv":
            held = [[_csv_text(value) for value in row] for row in rows]
            write_csv(path, names, held)
            return DuckDBSource(path), held
        if storage == "parquet":
            types = ["DECIMAL(38,0)" if each == "HUGEINT" else each for each in types]  # the widest integer it has
            held = [[_parquet_value(value, each) for value, each in zip(row, types, strict=True)] for row in rows]
            write_duckdb(":memory:", names, types, held, f"COPY \"t\" TO '{path}' (FORMAT parquet)")
            return DuckDBSource(path), held
        write_duckdb(str(path), names, types, rows)
        return DuckDBSource(path, "t"), list(rows)

    def write_postgres(
        self, names: Sequence[str], types: Sequence[str], rows: Sequence[Row]
    ) -> tuple[str, list[list[object]]]:
        """The address of a new table, and the rows as that server holds them."""
        table = f"table {next(self._numbers)}"
        types = [POSTGRES_TYPES.get(each, each) for each in types]
        held = [[_postgres_value(value, each) for value, each in zip(row, types, strict=True)] for row in rows]
        with shared_server().connect() as connection:
            for each in [each for each in types if each.startswith("ENUM")]:
                connection.execute(f'DROP TYPE IF EXISTS "kinds" CASCADE; CREATE TYPE "kinds" AS {each}')
            plain = ["kinds" if each.startswith("ENUM") else each for each in types]
            columns = [f"{_quoted(name)} {each}" for name, each in zip([GHOST, *names], ["text", *plain], strict=True)]
            connection.execute(f'CREATE TABLE "{table}" ({", ".join(columns)})')
            with connection.cursor() as cursor, cursor.copy(f'COPY "{table}" FROM STDIN') as copy:
                for row in held:
                    copy.write_row([SECRET, *row])
        return shared_server().address(table=quote(table)), held

    def drop_postgres(self, address: str) -> None:
        shared_server().run(f'DROP TABLE "{unquote(address.partition("table=")[2])}"')


POSTGRES_TYPES = {
    "VARCHAR": "text",
    "TINYINT": "smallint",
    "UTINYINT": "smallint",
    "UBIGINT": "numeric(20)",
    "HUGEINT": "numeric",
    "UHUGEINT": "numeric",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "DECIMAL(12,3)": "numeric(12,3)",
}


def in_batches(domain: Domain, rows: Sequence[Row], shortcuts: bool) -> StreamEngine:
    """Coded rows in batches, a few at a time: batches that are empty, and rows that lie in several."""
    coded = ReferenceEngine(domain, rows).rows
    columns = {f"c{i}": [row.codes[name] for row in coded] for i, name in enumerate(domain.names)}
    columns |= {f"g{i}": [row.indices[name] for row in coded] for i, name in enumerate(domain.names)}

    def batches(names: Sequence[str]) -> Iterator[dict[str, Any]]:
        for start, end in itertools.pairwise([0, 0, 1, *range(4, len(coded), 3), max(len(coded), 1)]):
            yield {name: np.array(columns[name][start:end], dtype=np.int32) for name in names}

    return StreamEngine("stream", domain, batches, lambda: None, shortcuts=shortcuts)


def frame(names: Sequence[str], rows: Sequence[Row]) -> pd.DataFrame:
    """A frame in which every value keeps its own type."""
    columns = {GHOST: pd.Series([SECRET] * len(rows), dtype=object)}
    columns |= {name: pd.Series([row[i] for row in rows], dtype=object) for i, name in enumerate(names)}
    return pd.DataFrame(columns)


def write_spark(names: Sequence[str], types: Sequence[str], rows: Sequence[Row]) -> tuple[Any, list[Row]]:
    data, held = spark_session.frame([GHOST, *names], ["VARCHAR", *types], [[SECRET, *row] for row in rows])
    return data, [row[1:] for row in held]


def write_csv(path: Path, names: Sequence[str], rows: Sequence[Row], newline: str = "\n") -> None:
    lines = [[GHOST, *names], *([SECRET, *row] for row in rows)]
    text = "".join(",".join(_csv_field(field) for field in line) + newline for line in lines)
    path.write_text(text, encoding="utf-8", newline="")


def write_duckdb(path: str, names: Sequence[str], types: Sequence[str], rows: Sequence[Row], then: str = "") -> None:
    quoted = [f'"{name.replace(chr(34), chr(34) * 2)}" {each}' for name, each in zip(names, types, strict=True)]
    connection = duckdb.connect(path)
    connection.execute(f'CREATE TABLE "t" ("{GHOST}" VARCHAR, {", ".join(quoted)})')
    if rows:
        marks = ", ".join("?" for _ in range(len(names) + 1))
        connection.begin()  # one transaction: else each row is one, and waits for the disk
        connection.executemany(f'INSERT INTO "t" VALUES ({marks})', [[SECRET, *row] for row in rows])
        connection.commit()
    if then:
        connection.execute(then)
    connection.close()


def _csv_text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None or isinstance(value, str) else str(value)


def _singles(rows: Sequence[Row], types: Sequence[str]) -> list[Row]:
    """Values of a narrow float as such: they have shorter texts than Python's floats."""
    return [
        [np.float32(value) if kind == "FLOAT" and isinstance(value, float) else value for value, kind in pairs]
        for pairs in (list(zip(row, types, strict=True)) for row in rows)
    ]


def _csv_field(field: object) -> str:
    text = "" if field is None else str(field)
    if any(sign in text for sign in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _postgres_value(value: object, sql_type: str) -> object:
    if isinstance(value, str):
        return value.replace("\0", "")  # the one letter that PostgreSQL does not have
    return Decimal(value) if sql_type.startswith("numeric") and isinstance(value, int) else value


def _parquet_value(value: object, sql_type: str) -> object:
    return Decimal(value) if sql_type == "DECIMAL(38,0)" and isinstance(value, int) else value


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(tmp_path_factory.mktemp("stores"))


@pytest.fixture
def statements() -> Callable[[Any], Callable[[], list[str]]]:
    """From now on every statement that DuckDB ran for an engine, by its own log."""

    def start(engine: DuckDBEngine) -> Callable[[], list[str]]:
        connection = engine._connection
        connection.execute("CALL enable_logging('QueryLog')")
        log = "SELECT message FROM duckdb_logs WHERE type = 'QueryLog' AND message NOT LIKE '%duckdb_logs%'"
        return lambda: [message for (message,) in connection.execute(log).fetchall()]

    return start

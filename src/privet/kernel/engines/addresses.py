"""Addresses: which file or table a text names, and where it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from privet.errors import DataError
from privet.kernel.public_values import LONGEST_TEXT
from privet.text import LONGEST_ADDRESS, is_host, is_path, shown

if TYPE_CHECKING:  # engines are imported with the first address of theirs: DuckDB and sqlglot take a quarter second
    from privet.kernel.engines.duckdb.engine import DuckDBSource
    from privet.kernel.engines.sql.statement import Source

_POSTGRES = ("postgresql://", "postgres://")


def source_of(data: str | Path) -> Source:
    """Return the file or table that an address names.

    Parameters
    ----------
    data : str or Path
        A path, or an address as `privet.open` takes it.

    Raises
    ------
    DataError
        There is no such file or table, or the text is no address.
    """
    text = str(data)
    if len(text) > LONGEST_ADDRESS:
        raise DataError(f"an address has at most {LONGEST_ADDRESS} characters, this one {len(text)}.")
    if text.startswith("duckdb://"):
        location, table = _parsed(text)
        if not table:
            raise DataError(f"'{shown(text, LONGEST_TEXT)}' names no table; write duckdb:///file.db?table=NAME.")
        path = Path(location.removeprefix("/"))  # as in SQLAlchemy: three slashes relative, four absolute
        if not is_path(location) or (not path.exists() and Path(location).exists()):
            path = Path(location)
        return _existing(path, table)
    if text.startswith(_POSTGRES):
        return _postgres(text)
    if text.startswith("spark://"):
        return _spark(text)
    if text.startswith("mssql://"):
        from privet.kernel.engines.mssql.engine import MssqlSource

        return MssqlSource.parse(text)
    if "://" in text:
        raise DataError(
            f"cannot open '{shown(text.split('://')[0])}://...'; privet opens files and duckdb:///, postgresql://, "
            "mssql:// and spark:/// addresses."
        )
    if is_path(text) and Path(text).is_dir():
        raise DataError(f"'{shown(text, LONGEST_TEXT)}' is a folder; name a .csv or .parquet file in it.")
    if Path(text).suffix.lower() not in (".csv", ".parquet"):
        raise DataError(
            f"cannot open '{shown(text, LONGEST_TEXT)}'; privet opens .csv and .parquet files and duckdb:///file.db?table=NAME."
        )
    return _existing(Path(text))


def spark_frame(data: Any) -> Source | None:
    """Return a Spark frame as a source, None for anything else. Its class decides, so that Spark need not be there."""
    if not any(parent.__module__.startswith("pyspark.") for parent in type(data).__mro__):
        return None
    return _spark(data)


def _existing(path: Path, table: str | None = None) -> DuckDBSource:
    from privet.kernel.engines.duckdb.engine import DuckDBSource, canonical

    if not is_path(path) or not path.is_file():
        raise DataError(f"there is no file '{shown(str(path), LONGEST_TEXT)}'; check the path.")
    if not os.access(path, os.R_OK):
        raise DataError(f"cannot read '{shown(str(path), LONGEST_TEXT)}' (Permission denied); check who may.")
    return canonical(DuckDBSource(path, table))


def _parsed(text: str) -> tuple[str, str]:
    """The path and the table of an address."""
    try:
        address = urlsplit(text, allow_fragments=False)
        return unquote(address.path), parse_qs(address.query).get("table", [""])[0]
    except ValueError:  # a bracket without its other half, or thousands of settings
        raise DataError(
            f"'{shown(text, LONGEST_TEXT)}' is no address; write duckdb:///file.db?table=NAME or spark:///?table=NAME."
        ) from None


def _postgres(text: str) -> Source:
    try:
        from privet.kernel.engines.postgres import engine as postgres
    except ImportError:
        raise DataError("a PostgreSQL table is read with psycopg; run pip install 'privet[postgres]'.") from None
    if "\0" in unquote(text):
        raise DataError("the address has a NUL character, which PostgreSQL cannot read; mend it.")
    source = postgres.PostgresSource.parse(text)
    for host in source.parameters.get("host", "").split(","):
        if not is_host(host):
            raise DataError(f"there can be no server '{shown(host)}'; check the address.")
    return postgres.canonical(source)


def _spark(data: Any) -> Source:
    try:
        from privet.kernel.engines.spark import engine as spark
    except ImportError:
        raise DataError("a Spark table is read with PySpark and Arrow; run pip install 'privet[spark]'.") from None
    if isinstance(data, str):
        _parsed(data)
    return spark.source_of(data)

"""Sources: the file or table that an address names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.address_text import MSSQL, POSTGRES, SPARK, file_of, kind_of, spark_table
from privet.errors import DataError
from privet.text import is_host, shown

if TYPE_CHECKING:  # engines are imported with the first address of theirs: DuckDB and sqlglot take a quarter second
    from privet.kernel.engines.sql.statement import Source


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
    kind = kind_of(text)
    if kind == POSTGRES:
        return _postgres(text)
    if kind == SPARK:
        return _spark(text)
    if kind == MSSQL:
        from privet.kernel.engines.mssql.engine import MssqlSource

        return MssqlSource.parse(text)
    from privet.kernel.engines.duckdb.engine import DuckDBSource, canonical

    return canonical(DuckDBSource(*file_of(text)))


def spark_frame(data: Any) -> Source | None:
    """Return a Spark frame as a source, None for anything else. Its class decides, so that Spark need not be there."""
    if not any(parent.__module__.startswith("pyspark.") for parent in type(data).__mro__):
        return None
    return _spark(data)


def _postgres(text: str) -> Source:
    try:
        from privet.kernel.engines.postgres import engine as postgres
    except ImportError:
        raise DataError("a PostgreSQL table is read with psycopg; run pip install 'privet[postgres]'.") from None
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
    return spark.table_of(spark_table(data)) if isinstance(data, str) else spark.frame_of(data)

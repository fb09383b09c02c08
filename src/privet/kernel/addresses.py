"""Addresses: which file or table a text names, and where it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from privet.errors import DataError
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import Engine
from privet.kernel.engines.duckdb import source as duckdb_source
from privet.kernel.engines.mssql import engine as mssql
from privet.kernel.limits import LONGEST_ADDRESS, LONGEST_TEXT, is_host, is_path, shown

_POSTGRES = ("postgresql://", "postgres://")


class SourceEngine(Engine, Protocol):
    """An engine over a source."""

    def snapshot(self) -> Engine:
        """The merged, weighted table in memory."""
        ...

    def exact_fit(self) -> tuple[int, int]: ...

    def exact_values(self, column: str) -> Iterator[tuple[Any, int]]: ...


class Source(Protocol):
    """Where the rows of a table are."""

    @property
    def kind(self) -> str: ...

    @property
    def remote(self) -> bool:
        """On a server, where reading is all that is done."""
        ...

    @property
    def streams(self) -> bool:
        """Can its coded rows be read in passing, in this process?"""
        ...

    @property
    def name(self) -> str:
        """The name of the data set unless it is given another."""
        ...

    @property
    def title(self) -> str:
        """What a message calls it: never with a password."""
        ...

    @property
    def label(self) -> str:
        """What a report calls it."""
        ...

    @property
    def address(self) -> str:
        """Where the data are, as the ledger remembers them: never with a password."""
        ...

    @property
    def ledger(self) -> Path:
        """The ledger beside the data; an error where nothing can lie there."""
        ...

    def open(self, domain: Domain) -> SourceEngine: ...


def source_of(data: str | Path) -> Source:
    """Return the file or table that an address names.

    Raises
    ------
    DataError
        There is no such file or table, or the text is no address.
    """
    text = str(data)
    if len(text) > LONGEST_ADDRESS:
        raise DataError(f"an address has at most {LONGEST_ADDRESS} characters, this one {len(text)}.")
    if text.startswith("duckdb://"):
        place, table = _parsed(text)
        if not table:
            raise DataError(f"'{shown(text, LONGEST_TEXT)}' names no table; write duckdb:///file.db?table=NAME.")
        path = Path(place.removeprefix("/"))  # as in SQLAlchemy: three slashes relative, four absolute
        if not is_path(place) or (not path.exists() and Path(place).exists()):
            path = Path(place)
        return _existing(duckdb_source.Source(path, table))
    if text.startswith(_POSTGRES):
        return _postgres(text)
    if text.startswith("spark://"):
        return _spark(text)
    if text.startswith("mssql://"):
        return mssql.MssqlSource.parse(text)
    if "://" in text:
        raise DataError(
            f"cannot open '{shown(text.split('://')[0])}://...'; privet opens files and duckdb:///, postgresql://, "
            "mssql:// and spark:/// addresses."
        )
    if Path(text).suffix.lower() not in (".csv", ".parquet"):
        raise DataError(
            f"cannot open '{shown(text, LONGEST_TEXT)}'; privet opens .csv and .parquet files and duckdb:///file.db?table=NAME."
        )
    return _existing(duckdb_source.Source(Path(text)))


def spark_frame(data: Any) -> Source | None:
    """The source that a Spark frame is, told by its class alone: whoever has no Spark has no such frame."""
    if not any(each.__module__.startswith("pyspark.") for each in type(data).__mro__):
        return None
    return _spark(data)


def ledger_path(data: str | Path) -> Path:
    """The ledger beside a file or database."""
    return source_of(data).ledger


def _existing(source: duckdb_source.Source) -> duckdb_source.Source:
    if not is_path(source.path) or not source.path.is_file():
        raise DataError(f"there is no file '{shown(str(source.path), LONGEST_TEXT)}'; check the path.")
    return duckdb_source.canonical(source)


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
        from privet.kernel.engines.postgres import link as postgres_link
    except ImportError:
        raise DataError("a PostgreSQL table is read with psycopg; run pip install 'privet[postgres]'.") from None
    if "\0" in unquote(text):
        raise DataError("the address has a NUL character, which PostgreSQL cannot read; mend it.")
    source = postgres_link.PostgresSource.parse(text)
    for host in source.parameters.get("host", "").split(","):
        if not is_host(host):
            raise DataError(f"there can be no server '{shown(host)}'; check the address.")
    return postgres_link.canonical(source)


def _spark(data: Any) -> Source:
    try:
        from privet.kernel.engines.spark import source as spark_source
    except ImportError:
        raise DataError("a Spark table is read with PySpark and Arrow; run pip install 'privet[spark]'.") from None
    if isinstance(data, str):
        _parsed(data)
    return spark_source.source_of(data)

"""Addresses of tables and of ledgers: what people wrote, read, and shown without passwords.

No privacy rests on these functions: they are given texts of addresses alone, no row and no word of a driver. Which file
or table is opened, and that nobody else writes to it, the kernel sees to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode, urlsplit

from privet.errors import DataError, LedgerError
from privet.text import LONGEST_ADDRESS, is_host, is_path, shown

LONGEST = 1000  # characters of an address that an error quotes
FILE, DUCKDB, POSTGRES, SPARK, MSSQL = "file", "duckdb", "postgres", "spark", "mssql"
_SCHEMES = {"duckdb": DUCKDB, "postgresql": POSTGRES, "postgres": POSTGRES, "spark": SPARK, "mssql": MSSQL}
_NAME = r'"((?:[^"]|"")+)"|([^".]+)'
_TABLE = re.compile(rf"(?:(?:{_NAME})[.])?(?:{_NAME})", re.DOTALL)
UNREADABLE_LEDGER = (
    "the address of the ledger on PostgreSQL cannot be read; write "
    "postgresql://user@host/database?schema=NAME, with special characters percent-encoded."
)


def _quoted(text: str) -> str:
    """A text as an error quotes it: what stands before an @ may end with a password."""
    before, at, after = text.rpartition("@")
    scheme = "".join(before.partition("://")[:2]) if "://" in before else ""
    return shown(f"{scheme}...@{after}" if at else text, LONGEST)


def kind_of(text: str) -> str:
    """Return what a text names: a file, or a table of one of the kinds of databases.

    Parameters
    ----------
    text : str
        A path or an address, as `privet.open` takes it.

    Raises
    ------
    DataError
        It is too long, or names a folder or something that privet does not open.

    >>> kind_of("people.csv"), kind_of("postgres://ann@db/hospital?table=stays")
    ('file', 'postgres')
    """
    if len(text) > LONGEST_ADDRESS:
        raise DataError(f"an address has at most {LONGEST_ADDRESS} characters, this one {len(text)}.")
    scheme, is_address, _ = text.partition("://")
    if is_address and scheme not in _SCHEMES:
        raise DataError(
            f"cannot open '{shown(scheme.partition(':')[0])}://...'; privet opens files and duckdb:///, postgresql://, "
            "mssql:// and spark:/// addresses."
        )
    if is_address:
        return _SCHEMES[scheme]
    if is_path(text) and Path(text).is_dir():
        raise DataError(f"'{shown(text, LONGEST)}' is a folder; name a .csv or .parquet file in it.")
    if Path(text).suffix.lower() not in (".csv", ".parquet"):
        raise DataError(
            f"cannot open '{_quoted(text)}'; privet opens .csv and .parquet files and duckdb:///file.db?table=NAME."
        )
    return FILE


def file_of(text: str) -> tuple[Path, str | None]:
    """Return the file that a path or a duckdb:/// address names, and the table in it.

    Parameters
    ----------
    text : str

    Raises
    ------
    DataError
        The address names no table, or there is no such file that may be read.
    """
    path, table = Path(text), None
    if text.startswith("duckdb://"):
        _, location, table = _parts(text)
        if not table:
            raise DataError(f"'{_quoted(text)}' names no table; write duckdb:///file.db?table=NAME.")
        path = Path(location.removeprefix("/"))  # as in SQLAlchemy: three slashes relative, four absolute
        if not is_path(location) or (not path.exists() and Path(location).exists()):
            path = Path(location)
    if not is_path(path) or not path.is_file():
        raise DataError(f"there is no file '{shown(str(path), LONGEST)}'; check the path.")
    if not os.access(path, os.R_OK):
        raise DataError(f"cannot read '{shown(str(path), LONGEST)}' (Permission denied); check who may.")
    return path, table


def spark_table(text: str) -> str:
    """Return the table that a spark:/// address names.

    Parameters
    ----------
    text : str

    Raises
    ------
    DataError
        It names none, or a server.

    >>> spark_table("spark:///?table=care.stays")
    'care.stays'
    """
    server, path, table = _parts(text)
    if not table or server or path not in ("", "/"):
        raise DataError(f"'{_quoted(text)}' names no table of the active Spark session; write spark:///?table=NAME.")
    return table


def _parts(text: str) -> tuple[str, str, str]:
    """The server, the path and the table of an address."""
    try:
        address = urlsplit(text, allow_fragments=False)
        return address.netloc, unquote(address.path), parse_qs(address.query).get("table", [""])[0]
    except ValueError:  # a bracket without its other half, or thousands of settings
        raise DataError(
            f"'{_quoted(text)}' is no address; write duckdb:///file.db?table=NAME or spark:///?table=NAME."
        ) from None


def postgres_table(text: str) -> tuple[str, str, str]:
    """Return the address of a database, as libpq reads it, and the schema and name of a table in it.

    Parameters
    ----------
    text : str
        As postgresql://user@host:5432/db?table=schema.t; all settings but `table` are libpq's.

    Raises
    ------
    DataError
        It has a NUL character or several @, or names no table.

    >>> postgres_table("postgresql://ann@db/hospital?table=care.stays&sslmode=require")
    ('postgresql://ann@db/hospital?sslmode=require', 'care', 'stays')
    """
    if "\0" in unquote(text):
        raise DataError("the address has a NUL character, which PostgreSQL cannot read; mend it.")
    server, _, query = text.partition("?")
    if server.count("@") > 1:  # libpq takes what follows the first for the host, which errors name
        raise DataError("the address has several @; write an @ in a password as %40.")
    settings = [setting.partition("=")[::2] for setting in query.split("&") if setting]
    rest = "&".join(f"{name}={value}" for name, value in settings if name != "table")
    names = _TABLE.fullmatch(unquote(dict(settings).get("table", "")))
    if names is None:
        raise DataError(
            "the address names no table; write postgresql://USER@HOST:5432/DATABASE?table=SCHEMA.NAME, odd names in "
            "double quotes (%22 in an address)."
        )
    in_quotes, plain, own_in_quotes, own_plain = (part or "" for part in names.groups())
    schema, name = in_quotes.replace('""', '"') or plain, own_in_quotes.replace('""', '"') or own_plain
    return (f"{server}?{rest}" if rest else server), schema, name


def ledger_schema(address: str) -> tuple[str, str]:
    """Return the address of a database, as libpq reads it, and the schema of a ledger in it.

    Nothing that stands in an address which cannot be read is shown.

    Parameters
    ----------
    address : str

    Raises
    ------
    LedgerError
        It cannot be read: then a password with an @ or a / in it could be taken for a host or a database, and shown.

    >>> ledger_schema("postgresql://ann@db/budgets?schema=care")
    ('postgresql://ann@db/budgets', 'care')
    """
    try:
        parts = urlsplit(address, allow_fragments=False)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        readable = address.count("@") <= 1 and "@" not in parts.path + parts.query
    except ValueError:
        options, readable = [], False
    if not readable:
        raise LedgerError(UNREADABLE_LEDGER)
    schema = dict(options).get("schema", "privet_ledger")
    rest = urlencode([(name, value) for name, value in options if name != "schema"], quote_via=quote)
    return address.partition("?")[0] + f"?{rest}" * bool(rest), schema


def names_a_server(parameters: Mapping[str, Any]) -> bool:
    """Return whether the parameters of a connection have hosts and ports that can be such.

    Parameters
    ----------
    parameters : mapping
        As libpq reads them from an address.
    """
    port, hosts = str(parameters.get("port") or ""), str(parameters.get("host") or "").split(",")
    return bool(re.fullmatch(r"[\d,]*", port)) and all(is_host(host) for host in hosts)


def shown_ledger(parameters: Mapping[str, Any], schema: str) -> str:
    """Return the address of a ledger without the password, and without whatever else could be one.

    Parameters
    ----------
    parameters : mapping
        Of the connection.
    schema : str

    >>> shown_ledger({"user": "ann", "password": "secret", "host": "db", "dbname": "budgets"}, "care")
    'postgresql://ann@db/budgets?schema=care'
    """
    user, host, port = (str(parameters.get(name) or "") for name in ("user", "host", "port"))
    simple = re.fullmatch(r"[\w.-]*", host) and "," not in port
    server = host + (f":{port}" if port else "") if simple else ""
    options = {} if simple else {"host": host, **({"port": port} if port else {})}
    query = urlencode({**options, "schema": schema}, safe="/,:")
    name = quote(str(parameters.get("dbname") or ""))
    return f"postgresql://{quote(user) + '@' if user else ''}{server}/{name}?{query}"

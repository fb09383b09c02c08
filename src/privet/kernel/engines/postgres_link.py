"""The way to a PostgreSQL table: its address, and a connection that can only read and that comes back."""

from __future__ import annotations

import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote

import psycopg
from psycopg import conninfo
from sqlglot import exp

from privet.domain import Domain
from privet.errors import DataError, LedgerError
from privet.kernel.query import FIXED, Lost

if TYPE_CHECKING:
    from privet.kernel.engines.postgres import PostgresEngine

Cursor = psycopg.Cursor[Any]
T = TypeVar("T")

STATEMENT_TIMEOUT = "6h"  # of one question, unless the address says statement_timeout=...
_PATIENCE_SECONDS = 60.0  # with a server that says it is starting
_ABSENCE_SECONDS = 15.0  # of a server that was there before: it may be on its way without a word
_PAUSE_SECONDS = 0.2

_TIME = re.compile(r"[0-9]{1,9}(ms|s|min|h|d)?")
# An address may say otherwise, unlike in the last line: machine code for a statement that is used once costs more
# than it saves, a row with its keys costs four times what PostgreSQL thinks to be passed on by a parallel worker, the
# groups of some thousand parts need no file, and rows are not kept as they were for an analyst who is gone; notices
# may quote rows.
_DEFAULTS = "-c jit=off -c parallel_tuple_cost=0.4 -c work_mem=64MB -c idle_in_transaction_session_timeout=5min"
_PROMISES = "-c client_min_messages=error -c default_transaction_read_only=on -c standard_conforming_strings=on"
_PARAMETERS = {
    "application_name": "privet",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}


@dataclass(frozen=True)
class PostgresSource:
    """A table or view of a PostgreSQL database."""

    parameters: Mapping[str, str] = field(repr=False)  # of the connection, the password among them
    table: str
    schema: str = ""

    kind = "postgres"
    remote = True
    streams = False

    @classmethod
    def parse(cls, text: str) -> PostgresSource:
        """From postgresql://user@host:5432/db?table=schema.t; all parameters but two are those of libpq.

        >>> PostgresSource.parse("postgresql://ann:secret@db.example/hospital?table=care.stays")
        PostgresSource(table='stays', schema='care')
        """
        place, _, query = text.partition("?")
        said = [each.partition("=")[::2] for each in query.split("&") if each]
        own = {name: unquote(value) for name, value in said if name in ("table", "statement_timeout")}
        schema, table = _names(own.get("table", ""))
        rest = "&".join(f"{name}={value}" for name, value in said if name not in own)
        timeout = own.get("statement_timeout", STATEMENT_TIMEOUT)
        if not _TIME.fullmatch(timeout):
            raise DataError("statement_timeout is a time as PostgreSQL writes it: 90s, 10min, 6h, or milliseconds.")
        try:
            parameters = conninfo.conninfo_to_dict(f"{place}?{rest}" if rest else place)
        except psycopg.Error:  # its words may quote the password: raised anew outside this block
            parameters = None
        if parameters is None:
            raise DataError(
                "the address is not one that PostgreSQL knows; write postgresql://USER@HOST:5432/DATABASE?table=NAME, "
                "with % codes for the signs : / ? # [ ] @ & = % in names and passwords."
            )
        given = {name: str(value) for name, value in parameters.items() if value is not None}
        options = f"-c statement_timeout={timeout} {_DEFAULTS} {given.get('options', '')} {_PROMISES}"
        return cls({**_PARAMETERS, **given, "options": options, "client_encoding": "utf8"}, table, schema)

    @property
    def name(self) -> str:
        """The name of the data set unless it is given another."""
        return self.table

    @property
    def title(self) -> str:
        schema = f"{self.schema}." if self.schema else ""
        return f"table '{schema}{self.table}' of database '{self.database}'"

    @property
    def label(self) -> str:
        return f"postgresql table {self.table}"

    @property
    def database(self) -> str:
        return _with_defaults(self.parameters)["dbname"]

    @property
    def quoted(self) -> str:
        return ".".join(quoted(name) for name in (self.schema, self.table) if name)

    @property
    def tree(self) -> exp.Expr:
        """The table as a FROM item."""
        return exp.table_(self.table, db=self.schema or None, quoted=True)

    @property
    def address(self) -> str:
        """Where the data are, as the ledger remembers them: never with a password."""
        of = _with_defaults(self.parameters)
        server = f"{quote(of['host'], safe='[]:,')}:{of['port']}"
        table = ".".join(name if name.isidentifier() else quoted(name) for name in (self.schema, self.table) if name)
        return f"postgresql://{server}/{quote(of['dbname'], safe='')}?table={quote(table, safe='.')}"

    @property
    def ledger(self) -> Path:
        raise LedgerError(
            f'there is no place for a ledger beside {self.title}; say where it is, as ledger="{self.table}.ledger".'
        )

    def open(self, domain: Domain) -> PostgresEngine:
        from privet.kernel.engines.postgres import PostgresEngine

        return PostgresEngine(self, domain)


def canonical(source: PostgresSource) -> PostgresSource:
    """The source under the schema that holds its table."""
    link = Link(source)
    try:
        found = link.rows(
            "SELECT n.nspname::text, pg_catalog.has_schema_privilege(n.oid, 'USAGE') FROM pg_catalog.pg_class c "
            "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname::text = %s "
            "AND c.relkind IN ('r', 'p', 'v', 'm', 'f') "
            "AND CASE WHEN %s::text = '' THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname::text = %s END",
            (source.table, source.schema, source.schema),
        )
        if not found:
            raise DataError(
                f"there is no {source.title} for user '{link.user}'; check both names (upper and lower case differ), "
                "and write table=SCHEMA.NAME unless its schema is searched."
            )
        ((schema, usable),) = found
        if not usable:
            raise DataError(
                f"user '{link.user}' may not enter the schema '{schema}'; its owner lets it with "
                f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {quoted(link.user)}."
            )
    finally:
        link.close()
    return PostgresSource(source.parameters, source.table, schema)


def quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect="postgres")


_NAME = r'"((?:[^"]|"")+)"|([^".]+)'
_TABLE = re.compile(rf"(?:(?:{_NAME})[.])?(?:{_NAME})", re.DOTALL)


def _names(text: str) -> tuple[str, str]:
    """Schema and table of t, schema.t or "a.schema"."a ""table""" ""
    found = _TABLE.fullmatch(text)
    if not found:
        raise DataError(
            "the address names no table; write postgresql://USER@HOST:5432/DATABASE?table=SCHEMA.NAME, odd names in "
            "double quotes (%22 in an address)."
        )
    in_quotes, plain, own_in_quotes, own_plain = (part or "" for part in found.groups())
    return in_quotes.replace('""', '"') or plain, own_in_quotes.replace('""', '"') or own_plain


def _with_defaults(parameters: Mapping[str, str]) -> dict[str, str]:
    """Where a connection goes, with what libpq takes from the environment."""
    defaults = {each.keyword.decode(): each.val.decode() for each in psycopg.pq.Conninfo.get_defaults() if each.val}
    known = {**defaults, **parameters}
    user = known.get("user", "")
    return {
        "host": known.get("host") or known.get("hostaddr") or "localhost",
        "port": known.get("port", "5432"),
        "dbname": known.get("dbname") or user,
        "user": user,
    }


class LostConnection(Lost, psycopg.OperationalError):
    """The network, or the server, broke a statement off."""


class Link:
    """One connection, made when it is needed and made anew when it is lost.

    Its statements belong to one transaction, which only reads and sees the rows as they were at its first statement,
    whatever others write meanwhile. A statement that fails ends it, and the next transaction may see other rows:
    `version` counts them. (That it sees the transactions of the same numbers would not show that the rows are the
    same: what a view computes from the time, or reads elsewhere, has no number, and a crash gives one out again.)
    """

    def __init__(self, source: PostgresSource) -> None:
        self._lock = threading.RLock()
        self._held: list[psycopg.Connection[Any]] = []
        self._ended = False
        self._source, self._version = source, FIXED
        _links.add(self)
        weakref.finalize(self, _shut, self._held)
        self.version  # noqa: B018 (connects)

    @property
    def version(self) -> int:
        """Of the rows that the next statement sees; a server out of reach is told here, before anyone pays."""
        problem = None
        with self._lock:
            try:
                self._connected()
            except psycopg.Error as error:
                problem = _told(error, self._source)
        if problem is not None:
            raise DataError(problem)
        return self._version

    @property
    def user(self) -> str:
        return _with_defaults(self._source.parameters)["user"]

    def run(self, statement: str, read: Callable[[Cursor], T]) -> T:
        """Run a statement and read its answer."""
        if "\0" in statement:
            raise ValueError("no statement has a zero byte")
        return self._run(lambda cursor: cursor.execute(statement.encode()), read)

    def rows(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The rows of a question to the server's catalogue."""
        try:
            return self._run(lambda cursor: cursor.execute(statement.encode(), values), lambda found: found.fetchall())
        except psycopg.Error:  # raised anew outside this block
            pass
        raise DataError("the server does not answer about its tables; try again, or ask its owner.")

    def _run(self, execute: Callable[[Cursor], object], read: Callable[[Cursor], T]) -> T:
        with self._lock:
            connection = self._held[0] if self._held else self._connected()
            try:
                with connection.cursor(binary=True) as cursor:
                    execute(cursor)
                    return read(cursor)
            except BaseException as error:  # at an interrupt psycopg has cancelled the statement
                lost = _lost(error, connection)
                _shut(self._held)
                if not lost:
                    raise
        raise LostConnection

    def _connected(self) -> psycopg.Connection[Any]:
        if self._ended:
            raise psycopg.InterfaceError("closed")
        if self._held and not _lives(self._held[0]):
            _shut(self._held)
        began = time.monotonic()
        while not self._held:
            try:
                connection = _connect(self._source.parameters)
            except psycopg.OperationalError as error:
                starts = "the database system is" in str(error)
                patience = _PATIENCE_SECONDS if starts else _ABSENCE_SECONDS if self._version > FIXED else 0
                if time.monotonic() - began >= patience:
                    raise
                time.sleep(_PAUSE_SECONDS)
                continue
            self._version += 1
            self._held.append(connection)  # last: an interrupt must not leave other rows under the number of before
        return self._held[0]

    def close(self) -> None:
        with self._lock:
            self._ended = True
            _shut(self._held)

    def abandon(self) -> None:
        """In a forked child: the connection is the parent's, which goes on with it; this process makes its own."""
        _abandoned.extend(self._held)
        self._held.clear()
        self._lock = threading.RLock()


_links: weakref.WeakSet[Link] = weakref.WeakSet()
_abandoned: list[psycopg.Connection[Any]] = []


def _abandon() -> None:
    for link in list(_links):
        link.abandon()


os.register_at_fork(after_in_child=_abandon)


def _lost(error: BaseException, connection: psycopg.Connection[Any]) -> bool:
    """Whether a statement may run again: broken off by the network, the server's end, its idle time, or a standby's."""
    if not isinstance(error, psycopg.Error):
        return False
    return connection.closed or (error.sqlstate or "").startswith(("08", "57P", "25P03", "40001"))


def _lives(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server's end is open, as far as this one has heard."""
    try:
        for _ in range(2):  # its last words, and its end
            connection.pgconn.consume_input()
    except psycopg.Error:
        return False
    return not connection.closed


def _shut(held: list[psycopg.Connection[Any]]) -> None:
    while held:
        held.pop().close()


def _connect(parameters: Mapping[str, str]) -> psycopg.Connection[Any]:
    connection = psycopg.connect(conninfo.make_conninfo(**parameters), prepare_threshold=None)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    return connection


def _told(error: psycopg.Error, source: PostgresSource) -> str:
    """What stands in the way of a connection. libpq gives no SQLSTATE for these, so words are looked for."""
    of = _with_defaults(source.parameters)
    server = f"the server at {of['host']}:{of['port']}"
    words = str(error)
    if "permission denied for database" in words:
        grant = f"GRANT CONNECT ON DATABASE {quoted(of['dbname'])} TO {quoted(of['user'])}"
        return f"user '{of['user']}' may not enter database '{of['dbname']}'; its owner lets it with {grant}."
    if re.search(r'database ".*" does not exist', words):
        return f"{server} has no database '{of['dbname']}'; check its name in the address."
    if error.sqlstate in ("28P01", "28000") or re.search(
        r'authentication failed|no password supplied|role ".*" does not exist|pg_hba[.]conf|not permitted to log in',
        words,
    ):
        return f"{server} does not let user '{of['user']}' in; check the user's name and password."
    if re.search(r"too many (clients|connections)|remaining connection slots", words):
        return f"{server} has no connection left for user '{of['user']}'; close others, or try again later."
    if re.search(r"unrecognized configuration parameter|invalid value for parameter|permission denied to set", words):
        return f"{server} does not take the parameters of the address; check its options and statement_timeout."
    return f"cannot reach {server}; check host and port in the address, and that the server runs and can be reached."

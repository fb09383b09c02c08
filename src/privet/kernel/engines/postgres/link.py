"""The way to a PostgreSQL server: a connection that can only read, and that comes back."""

from __future__ import annotations

import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import conninfo
from psycopg.abc import Buffer
from sqlglot import exp

from privet.errors import DataError
from privet.kernel.engines.contract import FIXED, Lost, reworded

Cursor = psycopg.Cursor[Any]
T = TypeVar("T")

_PATIENCE_SECONDS = 60.0  # with a server that says it is starting
_ABSENCE_SECONDS = 15.0  # of a server that was there before: it may be on its way without a word
_PAUSE_SECONDS = 0.2

# Neither an address nor the settings of a role or a database say otherwise. Notices may quote rows. How long a
# statement takes, and how much of the memory that parallel workers share (64 MB in a container) its hash tables and
# bitmaps need, depends on the number of rows, which must end no statement.
_PROMISES = {
    "client_min_messages": "error",
    "default_transaction_read_only": "on",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "transaction_timeout": "0",  # since PostgreSQL 17
    "idle_session_timeout": "0",
    "enable_parallel_hash": "off",
    "enable_bitmapscan": "off",
}
_PROMISE = (
    "SELECT pg_catalog.set_config(name, value, true) FROM pg_catalog.pg_settings "
    "JOIN unnest(%s::text[], %s::text[]) AS promised(name, value) USING (name)"
)
_LIMIT, _UNLIMITED = "temp_file_limit", ("-1", None)
_IDLE = "idle_in_transaction_session_timeout"
_AFTERWARDS = (
    f"SELECT pg_catalog.current_setting('{_LIMIT}', true), pg_catalog.set_config('{_IDLE}', %s, true)".encode()
)


def quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect="postgres")


def with_defaults(parameters: Mapping[str, str]) -> dict[str, str]:
    """Where a connection goes, with what libpq takes from the environment."""
    options = psycopg.pq.Conninfo.get_defaults()
    defaults = {option.keyword.decode(): option.val.decode() for option in options if option.val}
    settings = {**defaults, **parameters}
    user = settings.get("user", "")
    return {
        "host": settings.get("host") or settings.get("hostaddr") or "localhost",
        "port": settings.get("port", "5432"),
        "dbname": settings.get("dbname") or user,
        "user": user,
    }


def _encoded(statement: str) -> bytes:
    if "\0" in statement:
        raise ValueError("no statement has a zero byte")
    return statement.encode()


_HEADER = 19  # bytes before the first record of a binary copy
_END = b"\xff\xff"  # after the last
_CHUNK = 2**22  # bytes of records that are decoded at a time


def _columns(messages: Iterable[Buffer], width: int) -> list[NDArray[np.int64]]:
    """The columns of a binary copy of whole numbers of 64 bits, none of which is NULL: all records have one length."""
    record = np.dtype([("fields", ">i2"), ("values", [("size", ">i4"), ("value", ">i8")], width)])
    held = bytearray()
    chunks: list[NDArray[np.int64]] = []

    def decode() -> None:
        begin = 0 if chunks else _HEADER
        end = begin + (len(held) - begin) // record.itemsize * record.itemsize
        decoded = np.frombuffer(bytes(held[begin:end]), record)
        if (decoded["fields"] != width).any() or (decoded["values"]["size"] != 8).any():
            raise ValueError("a record without all of its values")
        chunks.append(decoded["values"]["value"].astype(np.int64))
        del held[:end]

    for message in messages:
        held += message
        if len(held) >= _HEADER + _CHUNK:
            decode()
    decode()
    if held != _END:
        raise ValueError("the copy has no end")
    return [np.concatenate([chunk[:, at] for chunk in chunks]) for at in range(width)]


class LostConnection(Lost, psycopg.OperationalError):
    """The network, or the server, broke a statement off."""


class Link:
    """One connection, made when it is needed and made anew when it is lost.

    Its statements belong to one transaction, which only reads and sees the rows as they were at its first statement,
    whatever others write meanwhile. A statement that fails ends it, and the next transaction may see other rows:
    `version` counts them. (That it sees the transactions of the same numbers would not show that the rows are the
    same: what a view computes from the time, or reads elsewhere, has no number, and a crash gives one out again.)
    """

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._lock = threading.RLock()
        self._held: list[psycopg.Connection[Any]] = []
        self._ended = False
        self._parameters, self._version = parameters, FIXED
        self._idle = ""  # how long the server lets a transaction be without a statement
        _links.add(self)
        weakref.finalize(self, _shut, self._held)
        self.version  # noqa: B018 (connects)

    @property
    def version(self) -> int:
        """Of the rows that the next statement sees; a server out of reach is told here, before anyone pays."""
        with self._lock:
            reworded(self._connected, psycopg.Error, lambda error: _told(error, self._parameters))
        return self._version

    @property
    def user(self) -> str:
        return with_defaults(self._parameters)["user"]

    def run(self, statement: str, read: Callable[[Cursor], T]) -> T:
        """Run a statement and read its answer."""
        return self._run(lambda cursor: read(cursor.execute(_encoded(statement))))

    def numbers(self, statement: str, names: Sequence[str], pause: bool = False) -> dict[str, NDArray[np.int64]]:
        """Run a statement whose answer is whole numbers, and return a column of it under each name.

        The answer is copied out in batches: libpq would hold all of it, at some times its size. With `pause` the
        transaction may be idle for any time until the next statement. That is decided by the kind of a question, never
        by its answer: whether a transaction ended meanwhile shows in what later questions cost.
        """

        wide = f"SELECT {', '.join(f'{quoted(name)}::int8' for name in names)} FROM ({statement}) AS answer"

        def read(cursor: Cursor) -> dict[str, NDArray[np.int64]]:
            with cursor.copy(_encoded(f"COPY ({wide}) TO STDOUT (FORMAT binary)")) as messages:
                answer = _columns(messages, len(names))
            limit, _ = cursor.execute(_AFTERWARDS, ("0" if pause else self._idle,)).fetchone() or ("", "")
            if limit not in _UNLIMITED:  # set meanwhile: whether this statement met it is not to be seen
                raise DataError(_limited(limit, self.user))
            return dict(zip(names, answer, strict=True))

        return self._run(read)

    def rows(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The rows of a question to the server's catalogue."""
        return reworded(
            lambda: self._run(lambda cursor: cursor.execute(statement.encode(), values).fetchall()),
            psycopg.Error,
            lambda _: "the server does not answer about its tables; try again, or ask its owner.",
        )

    def _run(self, work: Callable[[Cursor], T]) -> T:
        with self._lock:
            connection = self._held[0] if self._held else self._connected()
            try:
                with connection.cursor(binary=True) as cursor:
                    return work(cursor)
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
                connection = _connect(self._parameters)
                self._idle = _setting(connection, _IDLE) or "0"
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
    """A connection in a transaction that only reads, which no number of rows ends."""
    connection = psycopg.connect(conninfo.make_conninfo(**parameters), prepare_threshold=None)
    try:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        # For this transaction, which is the only one: a pooler may give the next one to another server process.
        connection.execute(_PROMISE, (list(_PROMISES), list(_PROMISES.values())))
        # some servers cannot: without it a statement of a process that is gone runs to its end
        with suppress(psycopg.DatabaseError), connection.transaction():
            connection.execute("SET LOCAL client_connection_check_interval = '10s'")
        if _setting(connection, _LIMIT) not in _UNLIMITED:
            with suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute("SET LOCAL temp_file_limit = -1")
        limit = _setting(connection, _LIMIT)
        if limit not in _UNLIMITED:
            raise DataError(_limited(limit, with_defaults(parameters)["user"]))
    except BaseException:
        connection.close()
        raise
    return connection


def _setting(connection: psycopg.Connection[Any], name: str) -> str | None:
    """A setting of the session; None where the server has none of this name."""
    (value,) = connection.execute("SELECT pg_catalog.current_setting(%s, true)", (name,)).fetchone() or (None,)
    return value


def _limited(limit: str | None, user: str) -> str:
    return (
        f"the server ends every statement of user '{user}' whose temporary files are larger than {limit}, so that the "
        "number of rows would decide which questions are answered; its superuser lifts the limit with ALTER ROLE "
        f"{quoted(user)} SET temp_file_limit = -1."
    )


def _told(error: psycopg.Error, parameters: Mapping[str, str]) -> str:
    """What stands in the way of a connection. libpq gives no SQLSTATE for these, so words are looked for."""
    of = with_defaults(parameters)
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
    if wrong := re.search(r'for connection option "(\w+)"|bad value for (\w+)|^.*invalid (\w+) value: ', words):
        name = next(filter(None, wrong.groups()))
        values = "; it is disable, allow, prefer, require, verify-ca or verify-full" if name == "sslmode" else ""
        return f"the address gives {name} a value that PostgreSQL does not know{values}."
    if re.search(r"\bSSL\b|certificate", words):
        return (
            f"{server} and this machine agree on no encrypted connection; check sslmode and sslrootcert in the "
            "address, and the server's certificate."
        )
    if re.search(r"unrecognized configuration parameter|invalid value for parameter|permission denied to set", words):
        return f"{server} does not take the parameters of the address; check its options."
    return f"cannot reach {server}; check host and port in the address, and that the server runs and can be reached."

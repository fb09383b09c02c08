"""A ledger in one schema of a PostgreSQL server, which any number of machines may share.

Every write takes the ledger's advisory lock first and reads afterwards, so it sees all
that was committed and nobody else writes until it ends. Even a writer who ignores the
lock is stopped: lines are numbered by the last one plus one, and two cannot have the
same number. So lines are numbered without gaps, a rollback included.

`synchronous_commit` is on in every transaction, so a charge that was answered survives a
crash of the server. Where the connection breaks during a COMMIT, only the server knows
whether it was done. Then the charge may stand, and that is an error: nothing is asked of
a table before the commit is known.
"""

from __future__ import annotations

import hashlib
import os
import re
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from privet.errors import LedgerError
from privet.kernel.ledger.store import (
    APPEND_ONLY,
    FORMAT,
    LINES,
    MAKE,
    OPEN,
    OPEN_HOLDS,
    OWNER_KINDS,
    READ,
    WAIT_SECONDS,
    CommitUnknown,
    Purpose,
    Run,
    Store,
    corrupt,
    missing,
    other_format,
    removed,
)
from privet.kernel.limits import is_host

DEFAULT_SCHEMA = "privet_ledger"

OWNER_LINES = "owner_lines"  # empty: whoever may INSERT into it may write the lines that are the owner's

# Names in the order of their bytes, as in SQLite, whatever the language of the database.
_TABLES = re.sub(
    r"\bTEXT\b",
    'TEXT COLLATE "C"',
    f"""
CREATE TABLE format (version INTEGER NOT NULL, ledger TEXT NOT NULL);
CREATE TABLE {LINES} (
    number BIGINT PRIMARY KEY, kind TEXT NOT NULL, serial BIGINT NOT NULL, dataset TEXT, analyst TEXT, key TEXT,
    reference BIGINT, line TEXT NOT NULL, note TEXT NOT NULL, leaf TEXT NOT NULL);
CREATE TABLE analysts (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, secret TEXT NOT NULL);
CREATE TABLE sources (id TEXT PRIMARY KEY, dataset TEXT NOT NULL, source TEXT NOT NULL, secret TEXT NOT NULL);
CREATE TABLE {OPEN_HOLDS} (hold BIGINT PRIMARY KEY, dataset TEXT NOT NULL);
CREATE TABLE {OWNER_LINES} (number BIGINT);
""",
)
# The last line of a kind is found without sorting all of them.
_INDICES = f"""
CREATE UNIQUE INDEX by_serial ON {LINES} (kind, serial);
CREATE UNIQUE INDEX by_key ON {LINES} (dataset, analyst, key) WHERE key IS NOT NULL;
CREATE INDEX by_analyst ON {LINES} (dataset, analyst, kind, number) WHERE dataset IS NOT NULL;
CREATE INDEX by_dataset ON {LINES} (dataset, number) WHERE kind = 'charge';
CREATE INDEX by_hold ON {LINES} (reference, number) WHERE kind = 'charge' AND reference IS NOT NULL;
CREATE UNIQUE INDEX one_answer ON {LINES} (reference) WHERE kind = 'answer';
CREATE UNIQUE INDEX one_end ON {LINES} (reference) WHERE kind = 'end';
CREATE INDEX open_by_dataset ON {OPEN_HOLDS} (dataset, hold);
"""
# ENABLE ALWAYS: also in a session that replays the changes of another server. The path of `owners_only` is fixed, so
# that no role can put a function of its own in the place of the server's.
_TRIGGERS = f"""
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'append-only'; END $$;
CREATE FUNCTION owners_only() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$ BEGIN
    IF NOT has_table_privilege(format('%I.{OWNER_LINES}', TG_TABLE_SCHEMA), 'INSERT') THEN
        RAISE EXCEPTION 'permission denied for table {OWNER_LINES}' USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER {LINES}_owners_only BEFORE INSERT ON {LINES} FOR EACH ROW
    WHEN (NEW.kind IN ({", ".join(f"'{kind}'" for kind in OWNER_KINDS)})) EXECUTE FUNCTION owners_only();
ALTER TABLE {LINES} ENABLE ALWAYS TRIGGER {LINES}_owners_only;
""" + "".join(
    f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}\n"
    "    EXECUTE FUNCTION append_only();\n"
    f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_append_only;\n"
    for table in APPEND_ONLY
)
_NAMES = set(re.findall(r"CREATE (?:TABLE|INDEX|UNIQUE INDEX|TRIGGER) (\w+)", _TABLES + _INDICES + _TRIGGERS))
_NAMES |= {f"{table}_pkey" for table in (LINES, "analysts", "sources", OPEN_HOLDS)}


class PostgresStore(Store):
    """One schema of a server: a charge is a transaction under a lock that all who share the ledger take."""

    errors = (psycopg.Error, OSError)

    def __init__(self, address: str) -> None:
        self._parameters, self._schema = _parse(address)
        super().__init__(_shown(self._parameters, self._schema))
        self._connection: psycopg.Connection[Any] | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._log: int | None = None  # the log's number on the server, once it is there
        wait = int(1000 * WAIT_SECONDS)  # milliseconds
        name = '"' + self._schema.replace('"', '""') + '"'
        # The second: a client that is frozen or cut off must not keep the lock for as long as others wait for it.
        local = (
            f"SET LOCAL search_path = {name}, pg_temp; SET LOCAL idle_in_transaction_session_timeout = {wait // 2}; "
        )
        self._create_schema = f"CREATE SCHEMA {name}"
        self._begin_read = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {local}"
        # READ COMMITTED: what is read after the lock was granted is what its last holder has left.
        self._begin_write = (
            f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {local}SET LOCAL synchronous_commit = on; "
            f"SET LOCAL lock_timeout = {wait}; SELECT pg_advisory_xact_lock({_lock_number(self._schema)}); "
            f"SELECT to_regclass('{LINES}')::oid::bigint"
        )

    @classmethod
    def open(cls, address: str, create: bool, new_id: str) -> PostgresStore:
        """Open the ledger in a schema; where there is none, and `create` allows it, make one with the id `new_id`."""
        store = cls(address)
        with store.transaction(OPEN, write=False) as run:
            there = bool(store._relations(run))
        if not there:
            if not create:
                raise LedgerError(missing(store.path))
            with store.transaction(MAKE) as run:
                if not store._relations(run):  # nobody else was faster
                    if run("SELECT 1 FROM pg_namespace WHERE nspname = ?", store._schema).fetchone() is None:
                        run(store._create_schema)
                    if run("SELECT current_schema()").fetchone() != (store._schema,):
                        raise psycopg.errors.InsufficientPrivilege  # the tables would be made elsewhere
                    run(f"{_TABLES}{_INDICES}{_TRIGGERS}INSERT INTO format VALUES ({FORMAT}, '{new_id}')")
        with store.transaction(READ, write=False) as run:
            store._log = run(f"SELECT to_regclass('{LINES}')::oid::bigint").fetchone()[0]
        return store

    @property
    def identity(self) -> str:
        return _shown({**self._parameters, "user": None}, self._schema)

    @classmethod
    def identity_at(cls, address: str) -> str:
        """The identity of the ledger at an address, without connecting to it."""
        return cls(address).identity

    def is_whole(self, run: Run) -> bool:
        # a table that is not permanent would be empty after a crash
        lost = run(
            "SELECT count(*) FROM pg_class JOIN pg_namespace n ON relnamespace = n.oid "
            "WHERE nspname = ? AND relkind IN ('r', 'i') AND relpersistence <> 'p'",
            self._schema,
        ).fetchone()[0]
        triggers = run(
            "SELECT tgname FROM pg_trigger JOIN pg_class c ON tgrelid = c.oid "
            "JOIN pg_namespace n ON relnamespace = n.oid WHERE nspname = ? AND tgenabled = 'A' "
            "AND left(tgname, length(relname) + 1) = relname || '_'",  # on the table that it is named after
            self._schema,
        )
        found = self._relations(run) | {name for (name,) in triggers}
        if "format" in found:
            versions = run("SELECT version FROM format").fetchall()
            if len(versions) == 1 and versions[0][0] != FORMAT:
                raise LedgerError(other_format(self.path, versions[0][0]))
        return found >= _NAMES and not lost and run("SELECT version FROM format").fetchall() == [(FORMAT,)]

    def close(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
        self._connection = None

    def _relations(self, run: Run) -> set[str]:
        """The tables and indices in the schema, which are listed whatever the rights to them."""
        query = "SELECT relname FROM pg_class JOIN pg_namespace n ON relnamespace = n.oid WHERE nspname = ?"
        return {name for (name,) in run(query, self._schema)}

    # -- the connection ---------------------------------------------------------------------

    def _leave_to_parent(self) -> None:
        if self._connection is not None:
            _abandoned.append(self._connection)  # its socket is the parent's
        self._connection = self._finalizer = None

    def _connected(self) -> psycopg.Connection[Any]:
        """The connection, made anew where it broke or was left in the middle of something."""
        connection = self._connection
        if connection is not None and not connection.closed:
            if connection.info.transaction_status == TransactionStatus.IDLE:
                return connection
        self.close()
        try:
            connection = psycopg.connect(**self._parameters)
        except UnicodeError:  # a host that is no name of one
            connection = None
        if connection is None:
            raise psycopg.OperationalError
        self._connection = connection
        self._finalizer = weakref.finalize(self, _close, connection, os.getpid())
        settings = "SELECT current_setting('fsync'), current_setting('server_encoding')"
        fsync, encoding = connection.execute(settings).fetchone() or ("", "")
        if fsync != "on" or encoding != "UTF8":
            self.close()
            what = "with fsync = on" if fsync != "on" else "of encoding UTF8"
            raise LedgerError(f"the ledger '{self.path}' cannot be kept there: it needs a database {what}.")
        return connection

    def _begin(self, write: bool) -> Run:
        statement = self._begin_write if write else self._begin_read
        connection = self._connected()
        try:
            cursor = connection.execute(statement.encode())
        except psycopg.OperationalError:
            if not connection.closed:
                raise
            connection = self._connected()  # the server was restarted since; nothing has been said to it yet
            cursor = connection.execute(statement.encode())
        while cursor.nextset():
            pass
        if write and self._log is not None and cursor.fetchone() != (self._log,):
            raise LedgerError(removed(self.path))
        return _Run(connection, write)

    def _commit(self, run: Run) -> None:
        assert isinstance(run, _Run)
        try:
            said = run.connection.execute("COMMIT").statusmessage
        except psycopg.Error:
            if run.write and run.connection.closed:
                raise CommitUnknown("the connection broke at the last step") from None
            raise
        if said != "COMMIT":  # the server has rolled back
            raise psycopg.errors.InFailedSqlTransaction

    def _settle(self) -> None:
        connection = self._connection
        if connection is None or connection.info.transaction_status == TransactionStatus.IDLE:
            return
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
            return
        with suppress(psycopg.Error):
            connection.close()  # the server rolls back what was left

    # -- what went wrong --------------------------------------------------------------------

    def _explain(self, purpose: Purpose, error: Exception) -> str:
        if not isinstance(error, self.errors):
            return corrupt(self.path)
        code = getattr(error, "sqlstate", None)
        if code is None:
            return self._cannot(purpose, _reason(error))
        if code in ("42501", "42P01") and (lacking := self._missing_right(str(error))):
            return self._cannot(purpose, f"{lacking}, which its owner can grant")
        if code in _NO_LEDGER:
            return corrupt(self.path)
        too_long, copy = "another process holds it for too long", "the server is a read-only copy of another"
        reasons = {
            "0A000": copy,
            "23505": "somebody writes to it without its lock",
            "25006": copy,
            "53100": "the disk is full",
            "55P03": too_long,
            "57014": too_long,
            **dict.fromkeys(_SHUT_DOWN, "the connection was lost"),
        }
        return self._cannot(purpose, reasons.get(code, f"the server refuses (SQLSTATE {code})"))

    def _missing_right(self, said: str) -> str | None:
        """Who lacks which right, of those that a ledger needs."""
        with suppress(LedgerError), self.transaction(READ, write=False) as run:
            role, base, there, create, usage = run(
                "SELECT current_user, current_database(), n.oid IS NOT NULL, "
                "has_database_privilege(current_database(), 'CREATE'), has_schema_privilege(n.oid, 'USAGE') "
                "FROM (VALUES (1)) one LEFT JOIN pg_namespace n ON nspname = ?",
                self._schema,
            ).fetchone()
            lacks = f"the role '{role}' lacks"
            if not there:
                return None if create else f"{lacks} CREATE on the database '{base}', needed once to make the schema"
            if not usage:
                return f"{lacks} USAGE on the schema '{self._schema}'"
            if not self._relations(run):
                return f"{lacks} CREATE on the schema '{self._schema}', needed once to make the tables"
            query = (
                "SELECT relname, has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'), "
                "has_table_privilege(c.oid, 'DELETE') "
                "FROM pg_class c JOIN pg_namespace n ON relnamespace = n.oid WHERE nspname = ?"
            )
            rights = {
                table: dict(zip(("SELECT", "INSERT", "DELETE"), granted, strict=True))
                for table, *granted in run(query, self._schema)
            }
            lacking = [
                (table, right)
                for table, needed in _NEEDED.items()
                for right in needed
                if table in rights and not rights[table][right]
            ]
            # The server's words name the table, in whatever language.
            for table, right in [each for each in lacking if re.search(rf"\b{each[0]}\b", said)] or lacking:
                return f"{lacks} {right} on the table '{self._schema}.{table}'"
        return None


# The rights that a ledger needs to each table.
_NEEDED = {
    "format": ("SELECT",),
    LINES: ("SELECT", "INSERT"),
    "analysts": ("SELECT", "INSERT"),
    "sources": ("SELECT", "INSERT"),
    OPEN_HOLDS: ("SELECT", "INSERT", "DELETE"),
    OWNER_LINES: ("INSERT",),
}
# What a server says that goes down, comes up or ends a session; and what it says where a table or column is not there.
_SHUT_DOWN = ("57P01", "57P02", "57P03", "57P05", "25P03", "08000", "08003", "08006")
_NO_LEDGER = ("42P01", "42703", "3F000", "XX001", "XX002")


class _Run(Run):
    def __init__(self, connection: psycopg.Connection[Any], write: bool) -> None:
        self.connection, self.write = connection, write

    def __call__(self, statement: str, *values: object) -> psycopg.Cursor[Any]:
        if not values:
            return self.connection.execute(statement.encode())
        return self.connection.execute(statement.replace("?", "%s").encode(), values)

    def last_numbers(self, kind: str) -> tuple[int, int]:
        # Under the lock the next numbers are free; without it, the primary key lets one of two writers through.
        query = (
            f"SELECT coalesce((SELECT max(number) FROM {LINES}), 0), "
            f"coalesce((SELECT max(serial) FROM {LINES} WHERE kind = '{kind}'), 0)"
        )
        number, serial = self(query).fetchone()  # type: ignore[misc]
        return number, serial


_abandoned: list[psycopg.Connection[Any]] = []


def _close(connection: psycopg.Connection[Any], process: int) -> None:
    if os.getpid() == process:  # closing says good-bye on the socket, which the parent still uses
        with suppress(psycopg.Error):
            connection.close()
    else:
        _abandoned.append(connection)


def _lock_number(schema: str) -> int:
    """Where two schemas have the same number, they wait for each other, and that is all."""
    return int.from_bytes(hashlib.sha256(f"privet ledger {schema}".encode()).digest()[:8], "big", signed=True)


# -- the address --------------------------------------------------------------------------------

_SIMPLE = re.compile(r"[\w.-]*")


def _parse(address: str) -> tuple[dict[str, Any], str]:
    """What to connect with, and the schema. Nothing that stands in an address which cannot be read is shown."""
    try:
        parts = urlsplit(address, allow_fragments=False)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        schema = dict(options).get("schema", DEFAULT_SCHEMA)
        rest = urlencode([(name, value) for name, value in options if name != "schema"], quote_via=quote)
        given = conninfo_to_dict(address.partition("?")[0] + f"?{rest}" * bool(rest))
        # A password with an @ or a / in it would be taken for a part of the host or the database, and shown.
        readable = address.count("@") <= 1 and "@" not in parts.path + parts.query
        readable = readable and bool(re.fullmatch(r"[\d,]*", str(given.get("port") or "")))
        readable = readable and all(is_host(host) for host in str(given.get("host") or "").split(","))
    except (ValueError, psycopg.Error):
        readable = False
    if not readable:
        raise LedgerError(
            "the address of the ledger on PostgreSQL cannot be read; write "
            "postgresql://user@host/database?schema=NAME, with special characters percent-encoded."
        )
    if not 0 < len(schema.encode()) < 64 or not schema.isprintable():
        raise LedgerError("the schema of a ledger on PostgreSQL must be a printable name of at most 63 bytes.")
    ours = {
        "connect_timeout": 10,
        "keepalives_idle": 30,
        "tcp_user_timeout": int(1000 * WAIT_SECONDS),
        "fallback_application_name": "privet",
    }
    fixed = {"client_encoding": "utf8", "autocommit": True, "prepare_threshold": None}
    return {**ours, **given, **fixed}, schema


def _shown(parameters: Mapping[str, Any], schema: str) -> str:
    """The address without the password, and without whatever else could be one."""
    user, host, port = (str(parameters.get(name) or "") for name in ("user", "host", "port"))
    simple = _SIMPLE.fullmatch(host) and "," not in port
    server = host + (f":{port}" if port else "") if simple else ""
    options = {} if simple else {"host": host, **({"port": port} if port else {})}
    query = urlencode({**options, "schema": schema}, safe="/,:")
    name = quote(str(parameters.get("dbname") or ""))
    return f"postgresql://{quote(user) + '@' if user else ''}{server}/{name}?{query}"


def _reason(error: Exception) -> str:
    """Why there is no connection, as far as the driver's words tell it; they are not shown, for they may say more."""
    connection, text = getattr(error, "pgconn", None), str(error)
    if "password" in text or getattr(connection, "needs_password", False) or "authentication" in text:
        return "the server does not accept this role and password"
    if isinstance(error, psycopg.DataError):
        return "a text in it cannot be written, with a NUL character say"
    if "sslmode" in text:
        return "its address asks for an sslmode that the driver does not know, or that the server does not offer"
    if "does not exist" in text:
        return "the server knows no such role or database"
    return "the server cannot be reached, or the connection was lost"

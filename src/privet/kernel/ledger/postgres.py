"""A ledger in one schema of a PostgreSQL server, which any number of machines may share.

Every write takes the ledger's advisory lock first and reads afterwards. So it sees all that
was committed, and nobody else writes until it ends. Even a writer who ignores the lock is
stopped: a line has the last number plus one, and no two can have the same number. So lines
are numbered without gaps, also after a rollback.

`synchronous_commit` is on in every transaction, so a charge that has returned survives a
crash of the server. If the connection breaks during a COMMIT, only the server knows whether
it was done. The charge may stand then, and the caller gets an error: a table is asked only
after a commit that is certain.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from privet.address_text import UNREADABLE_LEDGER, ledger_schema, names_a_server, shown_ledger
from privet.errors import LedgerError
from privet.kernel.ledger import store
from privet.kernel.ledger.store import DAMAGED, FORMAT, READ, WAIT_SECONDS, CommitUnknown, Purpose, Run

# TEXT in the order of its bytes, as in SQLite, whatever the language of the database. `owner_lines` is empty: a role
# that may INSERT into it may write the owner's lines. ENABLE ALWAYS: also in a session that replays the changes of
# another server. The search_path of `owners_only` is fixed, so that no role can put a function of its own in the place
# of the server's.
_TABLES = f"""{store.TABLES.replace("TEXT", 'TEXT COLLATE "C"')}
CREATE TABLE owner_lines (number BIGINT);
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'append-only'; END $$;
CREATE FUNCTION owners_only() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$ BEGIN
    IF NOT has_table_privilege(format('%I.owner_lines', TG_TABLE_SCHEMA), 'INSERT') THEN
        RAISE EXCEPTION 'permission denied for table owner_lines' USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER lines_owners_only BEFORE INSERT ON lines FOR EACH ROW
    WHEN (NEW.kind IN ({", ".join(f"'{kind}'" for kind in store.OWNER_KINDS)})) EXECUTE FUNCTION owners_only();
ALTER TABLE lines ENABLE ALWAYS TRIGGER lines_owners_only;
""" + "".join(
    f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}\n"
    "    EXECUTE FUNCTION append_only();\n"
    f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_append_only;\n"
    for table in store.APPEND_ONLY
)
_LOG_OID = "SELECT to_regclass('lines')::oid::bigint"
_HERE = "relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ?)"
# The rights that a ledger needs to each table.
_NEEDED = {
    "format": ("SELECT",),
    "lines": ("SELECT", "INSERT"),
    "analysts": ("SELECT", "INSERT"),
    "sources": ("SELECT", "INSERT"),
    "open_holds": ("SELECT", "INSERT", "DELETE"),
    "owner_lines": ("INSERT",),
}
# SQLSTATEs of a server that goes down, comes up or ends a session; and of a table or column that is not there.
_SHUT_DOWN = ("57P01", "57P02", "57P03", "57P05", "25P03", "08000", "08003", "08006")
_NO_LEDGER = ("42P01", "42703", "3F000", "XX001", "XX002")
_REASONS = {
    "23505": "somebody writes to it without its lock",
    "53100": "the disk is full",
    **dict.fromkeys(("0A000", "25006"), "the server is a read-only copy of another"),
    **dict.fromkeys(("55P03", "57014"), "another process holds it for too long"),
    **dict.fromkeys(_SHUT_DOWN, "the connection was lost"),
}


class PostgresStore(store.Store):
    """One schema of a server. A charge is a transaction under a lock that all who share the ledger take."""

    errors = (psycopg.Error, OSError)
    names = store.names_in(_TABLES) | {f"{table}_pkey" for table in ("lines", "analysts", "sources", "open_holds")}
    # Under the lock the next number is free; without it, the primary key lets one of two writers through.
    last_number = "coalesce((SELECT max(number) FROM lines), 0)"

    def __init__(self, address: str) -> None:
        self._parameters, self._schema = _parse(address)
        super().__init__(shown_ledger(self._parameters, self._schema))
        self._connection: psycopg.Connection[Any] | None = None
        self._log: int | None = None  # the log's number on the server, once it is there
        wait = int(1000 * WAIT_SECONDS)  # milliseconds
        name = '"' + self._schema.replace('"', '""') + '"'
        # The second: a client that is frozen or cut off must not keep the lock for as long as others wait for it.
        local = f"SET LOCAL search_path = {name}, pg_temp; SET LOCAL idle_in_transaction_session_timeout = {wait // 2}"
        self._create_schema = f"CREATE SCHEMA {name}"
        self._begin_read = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {local};"
        # READ COMMITTED: what is read once the lock is granted is what its last holder has left.
        self._begin_write = (
            f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {local}; SET LOCAL synchronous_commit = on; "
            f"SET LOCAL lock_timeout = {wait}; SELECT pg_advisory_xact_lock({_lock_number(self._schema)}); {_LOG_OID}"
        )

    @classmethod
    def open(cls, address: str, create: bool, new_id: str) -> PostgresStore:
        """Open the ledger in a schema. If there is none and `create` allows it, make one with the id `new_id`."""
        server = cls(address)
        with server.transaction(store.OPEN, write=False) as run:
            there = server._relations(run)
        if not there and not create:
            raise LedgerError(store.MISSING.format(server.path))
        if not there:
            with server.transaction(store.MAKE) as run:
                if not server._relations(run):  # nobody else was faster
                    if run("SELECT 1 FROM pg_namespace WHERE nspname = ?", server._schema).fetchone() is None:
                        run(server._create_schema)
                    if run("SELECT current_schema()").fetchone() != (server._schema,):
                        raise psycopg.errors.InsufficientPrivilege  # the tables would be made elsewhere
                    run(f"{_TABLES}INSERT INTO format VALUES ({FORMAT}, '{new_id}')")
        with server.transaction(READ, write=False) as run:
            server._log = run(_LOG_OID).fetchone()[0]
        return server

    @property
    def identity(self) -> str:
        return shown_ledger({**self._parameters, "user": None}, self._schema)

    def _relations(self, run: Run) -> set[str]:
        """Return the tables and indices in the schema, which are listed whatever the rights to them."""
        return {name for (name,) in run(f"SELECT relname FROM pg_class WHERE {_HERE}", self._schema)}

    def _names_there(self, run: Run) -> set[str]:
        triggers = run(
            f"SELECT tgname FROM pg_trigger JOIN pg_class c ON tgrelid = c.oid WHERE {_HERE} AND tgenabled = 'A' "
            "AND left(tgname, length(relname) + 1) = relname || '_'",  # on the table that it is named after
            self._schema,
        )
        return self._relations(run) | {name for (name,) in triggers}

    def _is_whole(self, run: Run) -> bool:
        # a table that is not permanent would be empty after a crash
        lost = f"SELECT 1 FROM pg_class WHERE {_HERE} AND relkind IN ('r', 'i') AND relpersistence <> 'p' LIMIT 1"
        return run(lost, self._schema).fetchone() is None

    # -- the connection ---------------------------------------------------------------------

    def _leave_to_parent(self) -> None:
        self._connection = None

    def _connected(self) -> psycopg.Connection[Any]:
        """Return the connection. Make a new one if it broke or was left in the middle of something."""
        connection = self._connection
        if connection is not None and connection.info.transaction_status == TransactionStatus.IDLE:
            return connection
        self.close()
        try:
            self._connection = connection = psycopg.connect(**self._parameters)
        except UnicodeError:  # a host that is no name of one
            raise psycopg.OperationalError from None
        self._close_with(connection.close)
        settings = "SELECT current_setting('fsync'), current_setting('server_encoding')"
        fsync, encoding = connection.execute(settings).fetchone() or ("", "")
        if fsync != "on" or encoding != "UTF8":
            self.close()
            what = "with fsync = on" if fsync != "on" else "of encoding UTF8"
            raise LedgerError(f"the ledger '{self.path}' cannot be kept there: it needs a database {what}.")
        return connection

    def _begin(self, write: bool) -> Run:
        statement = (self._begin_write if write else self._begin_read).encode()
        connection = self._connected()
        try:
            cursor = connection.execute(statement)
        except psycopg.OperationalError:
            if not connection.closed:
                raise
            connection = self._connected()  # the server was restarted since, and was told nothing yet
            cursor = connection.execute(statement)
        while cursor.nextset():
            pass
        if write and self._log is not None and cursor.fetchone() != (self._log,):
            raise LedgerError(store.REMOVED.format(self.path))
        return _Run(connection, write)

    def _commit(self, run: Run) -> None:
        assert isinstance(run, _Run)
        try:
            status = run.connection.execute("COMMIT").statusmessage
        except psycopg.Error:
            if run.write and run.connection.closed:
                raise CommitUnknown("the connection broke at the last step") from None
            raise
        if status != "COMMIT":  # the server has rolled back
            raise psycopg.errors.InFailedSqlTransaction

    def _settle(self) -> None:
        connection = self._connection
        if connection is not None and connection.info.transaction_status != TransactionStatus.IDLE:
            try:
                connection.execute("ROLLBACK")
            except psycopg.Error:
                connection.close()  # the server rolls back what was left

    # -- errors -----------------------------------------------------------------------------

    def _explain(self, purpose: Purpose, error: Exception) -> str:
        if not isinstance(error, self.errors):
            return DAMAGED.format(self.path)
        code = getattr(error, "sqlstate", None)
        if code is None:
            return self._cannot(purpose, _reason(error))
        if code in ("42501", "42P01") and (lacking := self._missing_right(str(error))):
            return self._cannot(purpose, f"{lacking}, which its owner can grant")
        if code in _NO_LEDGER:
            return DAMAGED.format(self.path)
        return self._cannot(purpose, _REASONS.get(code, f"the server refuses (SQLSTATE {code})"))

    def _missing_right(self, message: str) -> str | None:
        """Return who lacks which of the rights that a ledger needs; first of the table that the server names."""
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
            granted = f"SELECT has_table_privilege(oid, ?) FROM pg_class WHERE {_HERE} AND relname = ?"
            # Its message names the table, in whatever language.
            for table in sorted(_NEEDED, key=lambda table: not re.search(rf"\b{table}\b", message)):
                for right in _NEEDED[table]:
                    if run(granted, right, self._schema, table).fetchone() == (False,):
                        return f"{lacks} {right} on the table '{self._schema}.{table}'"
        return None


@dataclass(frozen=True)
class _Run:
    """Runs statements on the connection that its transaction began on, even if the store has another by now."""

    connection: psycopg.Connection[Any]
    write: bool

    def __call__(self, statement: str, *values: object) -> psycopg.Cursor[Any]:
        return self.connection.execute(statement.replace("?", "%s").encode(), values or None)


def _lock_number(schema: str) -> int:
    """Return the number of a schema's lock. Two schemas with the same number would only wait for each other."""
    return int.from_bytes(hashlib.sha256(f"privet ledger {schema}".encode()).digest()[:8], "big", signed=True)


# -- the address --------------------------------------------------------------------------------


def _parse(address: str) -> tuple[dict[str, Any], str]:
    """What to connect with, and the schema. Nothing that stands in an address which cannot be read is shown."""
    database, schema = ledger_schema(address)
    given: dict[str, Any] | None = None
    with suppress(psycopg.Error, ValueError):
        given = conninfo_to_dict(database)
    if given is None or not names_a_server(given):
        raise LedgerError(UNREADABLE_LEDGER)
    if not 0 < len(schema.encode()) < 64 or not schema.isprintable():
        raise LedgerError("the schema of a ledger on PostgreSQL must be a printable name of at most 63 bytes.")
    times = {"connect_timeout": 10, "keepalives_idle": 30, "tcp_user_timeout": int(1000 * WAIT_SECONDS)}
    fixed = {"client_encoding": "utf8", "autocommit": True, "prepare_threshold": None}
    return {**times, "fallback_application_name": "privet", **given, **fixed}, schema


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

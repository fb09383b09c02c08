"""A ledger in one SQLite file, or in memory for as long as the process lives."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from privet.errors import LedgerError, PrivacyError
from privet.kernel.ledger_store import FORMAT, NUMBERED, TABLES, WAIT_SECONDS, Run, Store, corrupt, missing, removed

MEMORY = ":memory:"

_SCHEMA = """
BEGIN;
CREATE TABLE format (version INTEGER NOT NULL);
CREATE TABLE datasets (
    name TEXT PRIMARY KEY, source TEXT NOT NULL, rows_per_person INTEGER NOT NULL, at TEXT NOT NULL);
CREATE TABLE caps (
    id INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT NOT NULL REFERENCES datasets, analyst TEXT, cap TEXT NOT NULL,
    at TEXT NOT NULL);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT NOT NULL REFERENCES datasets, analyst TEXT NOT NULL,
    scope TEXT NOT NULL, question TEXT NOT NULL, epsilon TEXT NOT NULL, loss TEXT NOT NULL, key TEXT,
    fingerprint TEXT NOT NULL, at TEXT NOT NULL, dataset_spent TEXT NOT NULL, analyst_spent TEXT NOT NULL,
    UNIQUE (dataset, key));
CREATE TABLE answers (entry INTEGER PRIMARY KEY REFERENCES entries, answer TEXT NOT NULL, at TEXT NOT NULL);
CREATE INDEX by_analyst ON entries (dataset, analyst);
"""


def _append_only(*tables: str) -> list[str]:
    return [
        f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'append-only'); END"
        for table in tables
        for verb in ("UPDATE", "DELETE")
    ]


# From format 1 to 2, which has holds. A new file takes the same steps as an old one, so that both are alike.
_UPGRADE = (
    "CREATE TABLE holds (id INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT NOT NULL REFERENCES datasets, "
    "analyst TEXT NOT NULL, epsilon TEXT NOT NULL, at TEXT NOT NULL)",
    "CREATE TABLE ends (hold INTEGER PRIMARY KEY REFERENCES holds, at TEXT NOT NULL)",
    "ALTER TABLE entries ADD COLUMN hold INTEGER REFERENCES holds",
    "ALTER TABLE entries ADD COLUMN hold_spent TEXT",
    "CREATE INDEX by_hold ON entries (hold) WHERE hold IS NOT NULL",
    "CREATE INDEX by_dataset ON entries (dataset)",  # the last total is found without sorting all of them
    *_append_only("holds", "ends"),
)
_SCHEMA += "".join(f"{each};\n" for each in (*_append_only("datasets", "caps", "entries", "answers"), *_UPGRADE))
_SCHEMA += f"INSERT INTO format VALUES ({FORMAT});\nCOMMIT;\n"
_NAMES = set(re.findall(r"CREATE (?:TABLE|INDEX|TRIGGER) (\w+)", _SCHEMA))


class SQLiteStore(Store):
    """One file: a charge is an immediate transaction, on the disk before it returns."""

    upgrades: ClassVar[Mapping[int, Sequence[str]]] = {1: _UPGRADE}
    errors = (sqlite3.Error,)

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.durable = path != MEMORY
        self._connect()
        if not self.durable:
            self._connection.executescript(_SCHEMA)

    @classmethod
    def open(cls, path: str, create: bool) -> SQLiteStore:
        """Open a ledger file, creating it where it does not exist."""
        if path != MEMORY and not Path(path).exists():
            if not create:
                raise LedgerError(missing(path))
            _create(Path(path))
        return cls(path)

    def is_whole(self, run: Run) -> bool:
        found = {name for (name,) in run("SELECT name FROM sqlite_master")}
        sound: bool = found >= _NAMES and run("SELECT version FROM format").fetchall() == [(FORMAT,)]
        sound = sound and run("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
        if sound:
            for table in TABLES:
                for _ in run(f"SELECT * FROM {table}"):  # raises where a text is no text any more
                    pass
            # Numbers are given out one by one and remembered apart: a line that is lost leaves a gap.
            for table in NUMBERED:
                last = run("SELECT seq FROM sqlite_sequence WHERE name = ?", table).fetchone() or (0,)
                count = run(f"SELECT count(*), coalesce(max(id), 0) FROM {table}").fetchone()
                sound = sound and count == (last[0], last[0])
        return sound

    def close(self) -> None:
        self._finalizer()

    def _connect(self) -> None:
        # mode=rw: a ledger that has gone must not be begun anew
        place = f"file:{quote(str(Path(self.path).absolute()))}?mode=rw" if self.durable else self.path
        try:
            self._connection = sqlite3.connect(
                place, uri=self.durable, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            # With a rollback journal EXTRA means: a commit is on the disk before it returns, power loss included.
            self._connection.execute("PRAGMA synchronous = EXTRA")
            self._file = os.stat(self.path).st_ino if self.durable else 0
            self._finalizer = weakref.finalize(self, _close, self._connection, os.getpid())
            problem: Exception | None = None
        except (sqlite3.Error, OSError, ValueError) as error:
            problem = error
        if problem is not None:
            raise LedgerError(self._explain("open the ledger", problem))

    def _leave_to_parent(self) -> None:
        if not self.durable:
            raise PrivacyError(
                "this ledger lives in the memory of another process; open the table again, or with ledger=FILE."
            )
        _abandoned.append(self._connection)  # a connection must not be used, nor closed, after a fork
        self._connect()

    def _begin(self, write: bool) -> Run:
        if write and self.durable and not self._in_place():
            raise LedgerError(removed(self.path))
        self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        return _Run(self._connection)

    def _commit(self, run: Run) -> None:
        self._connection.execute("COMMIT")

    def _settle(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _in_place(self) -> bool:
        """Whether the path still leads to the open file: SQLite would go on writing to one that was removed."""
        try:
            return os.stat(self.path).st_ino == self._file
        except OSError:
            return False

    def _explain(self, purpose: str, error: Exception) -> str:
        text = str(error)
        if "locked" in text:
            return f"cannot {purpose} '{self.path}': another process holds it for too long; try again."
        if "readonly" in text or "unable to open" in text or "disk I/O" in text:
            return f"cannot {purpose} '{self.path}': it cannot be written there; make it writable, or pass ledger=FILE."
        if "full" in text:
            return f"cannot {purpose} '{self.path}': the disk is full; nothing was charged."
        return corrupt(self.path)


class _Run(Run):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __call__(self, statement: str, *values: Any) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)

    def append(self, table: str, **line: object) -> int:
        marks = ", ".join("?" * len(line))
        cursor = self(f"INSERT INTO {table} ({', '.join(line)}) VALUES ({marks})", *line.values())
        return int(cursor.lastrowid or 0)


_abandoned: list[sqlite3.Connection] = []


def _close(connection: sqlite3.Connection, process: int) -> None:
    if os.getpid() == process:  # a connection must not be closed after a fork
        connection.close()
    else:
        _abandoned.append(connection)


def _create(path: Path) -> None:
    """Make an empty ledger at once: it is there as a whole or not at all, whoever else makes it too."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    with suppress(OSError):
        draft.unlink()  # of a process that was killed
    try:
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            connection.executescript(f"PRAGMA synchronous = EXTRA;\n{_SCHEMA}")
        finally:
            connection.close()
        with suppress(FileExistsError):
            os.link(draft, path)
        problem = False
    except (sqlite3.Error, OSError):
        problem = True
    with suppress(OSError):
        draft.unlink()
    if problem:
        raise LedgerError(
            f"cannot make the ledger '{path}': it cannot be written there; make it writable, or pass ledger=FILE."
        )

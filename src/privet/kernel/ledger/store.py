"""Where a ledger keeps its lines: what every store has in common, and the store in one SQLite file or in memory.

A store knows its place and nothing of budgets. The ledger relies on three things. A write
transaction sees all that was committed, and nobody else writes until it ends. When it has
returned, what it wrote is on disk. Lines are numbered 1, 2, 3 and never change: triggers refuse
it.
"""

from __future__ import annotations

import ctypes
import os
import re
import sqlite3
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from privet.errors import LedgerError, PrivacyError
from privet.file_queue import turn

FORMAT = 5
MEMORY = ":memory:"
WAIT_SECONDS = 120.0
_LOOK_AGAIN = 0.0005  # seconds; a charge takes ten times as long or more
_READER_LOOKS = 0.1  # seconds before a reader queues with the writers
_NOT_WRITABLE = "it cannot be written there; make it writable, or name another ledger."
# Lines that only the owner of the data writes. A server can keep other roles from it.
OWNER_KINDS = ("register", "cap", "key", "config")
# Tables whose rows never change nor go. `analysts` and `sources` hold the texts that `lines`, the log, names by an id.
APPEND_ONLY = ("format", "lines", "analysts", "sources")
# `open_holds` follows from the log, so that a charge need not look at holds that have ended; its rows go. An index
# that ends with `number` finds the last line without sorting all of them.
TABLES = """
CREATE TABLE format (version INTEGER NOT NULL, ledger TEXT NOT NULL);
CREATE TABLE lines (
    number BIGINT PRIMARY KEY, kind TEXT NOT NULL, serial BIGINT NOT NULL, dataset TEXT, analyst TEXT,
    key TEXT, reference BIGINT, line TEXT NOT NULL, note TEXT NOT NULL, leaf TEXT NOT NULL);
CREATE TABLE analysts (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, secret TEXT NOT NULL);
CREATE TABLE sources (id TEXT PRIMARY KEY, dataset TEXT NOT NULL, source TEXT NOT NULL, secret TEXT NOT NULL);
CREATE TABLE open_holds (hold BIGINT PRIMARY KEY, dataset TEXT NOT NULL);
CREATE UNIQUE INDEX by_serial ON lines (kind, serial);
CREATE UNIQUE INDEX by_key ON lines (dataset, analyst, key) WHERE key IS NOT NULL;
CREATE INDEX by_analyst ON lines (dataset, analyst, kind, number) WHERE dataset IS NOT NULL;
CREATE INDEX by_dataset ON lines (dataset, number) WHERE kind = 'charge';
CREATE INDEX by_hold ON lines (reference, number) WHERE kind = 'charge' AND reference IS NOT NULL;
CREATE UNIQUE INDEX one_answer ON lines (reference) WHERE kind = 'answer';
CREATE UNIQUE INDEX one_end ON lines (reference) WHERE kind = 'end';
CREATE INDEX open_by_dataset ON open_holds (dataset, hold);
"""
# AUTOINCREMENT remembers the last number, also if the last lines are lost. Every index of SQLite ends with the primary
# key as it is, so none need name it.
_TABLES = TABLES.replace("number BIGINT PRIMARY KEY", "number INTEGER PRIMARY KEY AUTOINCREMENT")
_TABLES = re.sub(r", (number|hold)\)", ")", _TABLES.replace("BIGINT", "INTEGER")) + "".join(
    f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'append-only'); END;\n"
    for table in APPEND_ONLY
    for verb in ("UPDATE", "DELETE")
)
# What reading a damaged line raises.
_READING: tuple[type[Exception], ...] = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

Run = Callable[..., Any]  # `run("SELECT ... = ?", value)` runs a statement in one transaction and returns a cursor

REMOVED = "the ledger '{}' was moved or removed; put it back, or open the table again."
MISSING = "there is no ledger at '{}'; open the table once with a budget, or check the path."
DAMAGED = (
    "the ledger '{}' is damaged or not a privet ledger, and nothing can be charged to it; restore it from a backup: "
    "without it the spending so far is unknown."
)


@dataclass(frozen=True)
class Purpose:
    """What a transaction is for, in words for an error message."""

    verb: str  # completes "cannot ..."
    undone: str = "nothing was written"  # what is true if it was not committed
    unknown: str = "look at the ledger before you try again"  # what to do if nobody can tell whether it was


READ, OPEN, MAKE = (Purpose(f"{verb} the ledger") for verb in ("read", "open", "make"))


class CommitUnknown(Exception):
    """A COMMIT failed, and it may have been done all the same. The text says what happened."""


class Store(ABC):
    """A place for one ledger. All threads of a process share it; a forked child gets a connection of its own."""

    durable = True
    errors: ClassVar[tuple[type[Exception], ...]]  # what the driver raises
    names: ClassVar[set[str]]  # of all tables, indices and triggers
    last_number: ClassVar[str]  # SQL for the number of the line that was written last

    def __init__(self, path: str) -> None:
        self.path = path  # as it may be shown
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._finalizer: weakref.finalize[Any, Any] | None = None

    @contextmanager
    def transaction(self, purpose: Purpose, write: bool = True) -> Iterator[Run]:
        """Run one transaction: commit it when the block ends, undo it when the block raises.

        Raises
        ------
        LedgerError
            If the driver fails, or a line that is read is damaged.
        """
        if os.getpid() != self._process:
            self._leave_to_parent()
            self._process, self._lock = os.getpid(), threading.RLock()
        expected = (*self.errors, *_READING)
        with self._lock:
            try:
                try:
                    run = self._begin(write)
                    yield run
                    self._commit(run)
                finally:  # an interrupt can come anywhere, and a child can be forked in the block
                    if os.getpid() == self._process:
                        self._settle()
                return
            except CommitUnknown as error:
                sentence = (
                    f"cannot {purpose.verb} '{self.path}' for certain: {error}, and whether it was written is not "
                    f"known; {purpose.unknown}."
                )
            except expected as error:
                sentence = self._explain(purpose, error)
        raise LedgerError(sentence) from None  # outside that block: the driver's words may hold a secret

    def check(self, run: Run) -> str:
        """Check that no table, index, trigger or line is missing. Return the id of the ledger.

        Raises
        ------
        LedgerError
            If something is missing, or the ledger is of another format.
        """
        names = self._names_there(run)
        rows = run("SELECT * FROM format").fetchall() if "format" in names else []
        version = rows[0][0] if len(rows) == 1 else None
        if isinstance(version, int) and version != FORMAT:
            raise LedgerError(
                f"the ledger '{self.path}' is of format {version}, and this version of privet reads format "
                f"{FORMAT} alone; go on with the version that wrote it."
            )
        if not (names >= self.names and version == FORMAT and self._is_whole(run)):
            raise LedgerError(DAMAGED.format(self.path))
        return str(rows[0][1])

    @property
    @abstractmethod
    def identity(self) -> str:
        """The same text for the same ledger, whoever opens it."""

    def close(self) -> None:
        """Close the file or the connection."""
        if self._finalizer is not None:
            self._finalizer()

    def _close_with(self, close: Callable[[], None]) -> None:
        """Close a connection when the store is closed or goes, but only in the process that opened it."""
        self._finalizer = weakref.finalize(self, _close, close, os.getpid(), self.errors)

    @abstractmethod
    def _leave_to_parent(self) -> None:
        """After a fork: neither use nor close the connection of the parent."""

    @abstractmethod
    def _begin(self, write: bool) -> Run: ...

    @abstractmethod
    def _commit(self, run: Run) -> None: ...

    @abstractmethod
    def _settle(self) -> None:
        """Undo what is not committed, if there is any."""

    @abstractmethod
    def _names_there(self, run: Run) -> set[str]:
        """Return the names of the tables, indices and triggers that are there."""

    @abstractmethod
    def _is_whole(self, run: Run) -> bool:
        """Return whether no line is missing, or can be lost."""

    @abstractmethod
    def _explain(self, purpose: Purpose, error: Exception) -> str: ...

    def _cannot(self, purpose: Purpose, reason: str) -> str:
        return f"cannot {purpose.verb} '{self.path}': {reason}; {purpose.undone}."


def names_in(statements: str) -> set[str]:
    """Return the names of the tables, indices and triggers that some statements create."""
    return set(re.findall(r"CREATE (?:TABLE|INDEX|UNIQUE INDEX|TRIGGER) (\w+)", statements))


def _close(close: Callable[[], None], process: int, errors: tuple[type[Exception], ...]) -> None:
    if os.getpid() == process:
        with suppress(*errors):
            close()
    else:
        # A forked child must never close it, not even when Python ends: SQLite would undo what the parent is writing,
        # and a server would end the parent's session. A reference that nobody gives back prevents it.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(close))


# -- SQLite -------------------------------------------------------------------------------------


class SQLiteStore(Store):
    """One file, or memory for as long as the process lives.

    A charge is an immediate transaction, on the disk before it returns.
    """

    errors = (sqlite3.Error, TimeoutError)
    names = names_in(_TABLES)
    last_number = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'lines'), 0)"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.durable = path != MEMORY
        self._queue = f"{self.identity}-queue"
        self._connect()

    @classmethod
    def open(cls, path: str, create: bool, new_id: str) -> SQLiteStore:
        """Open a ledger file. If there is none and `create` allows it, make one with the id `new_id`."""
        schema = f"BEGIN;\n{_TABLES}INSERT INTO format VALUES ({FORMAT}, '{new_id}');\nCOMMIT;\n"
        if path == MEMORY:
            memory = cls(path)
            memory._connection.executescript(schema)
            return memory
        file = Path(path)
        try:
            file.lstat()
            if not file.exists():  # a link to a ledger that is gone: it must not be begun anew
                raise LedgerError(REMOVED.format(os.path.realpath(path)))
        except FileNotFoundError:
            if not create:
                raise LedgerError(MISSING.format(path)) from None
            _create(file, schema)
        except (OSError, ValueError):  # a name that is too long, or none
            raise LedgerError(f"cannot {MAKE.verb} {path!r:.300}: it is no name of a file; name another.") from None
        return cls(path)

    @property
    def identity(self) -> str:
        return os.path.realpath(self.path) if self.durable else MEMORY

    def _connect(self) -> None:
        # mode=rw: a ledger that is gone must not be begun anew
        address = f"file:{quote(str(Path(self.path).absolute()))}?mode=rw" if self.durable else self.path
        try:
            self._connection = sqlite3.connect(
                address, uri=self.durable, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            # With a rollback journal EXTRA means: a commit is on the disk before it returns, power loss included.
            self._connection.execute("PRAGMA synchronous = EXTRA")
            self._file = os.stat(self.path).st_ino if self.durable else 0
            self._close_with(self._connection.close)
        except (sqlite3.Error, OSError, ValueError) as error:
            raise LedgerError(self._explain(OPEN, error)) from None

    def _leave_to_parent(self) -> None:
        if not self.durable:
            raise PrivacyError(
                "this ledger lives in the memory of another process; open the table again, or with ledger=FILE."
            )
        self._connect()

    def _begin(self, write: bool) -> Run:
        if not self.durable:
            self._connection.execute("BEGIN")
        elif write and not self._in_place():
            raise LedgerError(REMOVED.format(self.path))
        elif write or not self._begins_within(_READER_LOOKS, write):  # between two writers there is time to read
            with turn(self._queue, WAIT_SECONDS):
                if not self._begins_within(WAIT_SECONDS, write):
                    raise TimeoutError("locked")
        return lambda statement, *values: self._connection.execute(statement, values)

    def _in_place(self) -> bool:
        """Return whether the path still leads to the open file. SQLite would go on writing to one that was removed."""
        try:
            return os.stat(self.path).st_ino == self._file
        except OSError:
            return False

    def _begins_within(self, seconds: float, write: bool) -> bool:
        """Begin a transaction and take its lock. Return False if another process is in the way for so long."""
        deadline = time.monotonic() + seconds
        self._connection.execute("PRAGMA busy_timeout = 0")  # SQLite itself would look ever more rarely
        try:
            while True:
                try:
                    self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                    if not write:
                        self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
                    return True
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                        raise
                self._settle()
                if time.monotonic() > deadline:
                    return False
                time.sleep(_LOOK_AGAIN)
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {int(1000 * WAIT_SECONDS)}")

    def _commit(self, run: Run) -> None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            # If it waits for readers too long, or the disk is full, SQLite takes everything back. After other failures
            # of the disk it cannot tell what is on it.
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL):
                raise
            raise CommitUnknown("the disk failed at the last step") from None

    def _settle(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _names_there(self, run: Run) -> set[str]:
        return {name for (name,) in run("SELECT name FROM sqlite_master")}

    def _is_whole(self, run: Run) -> bool:
        last = f"SELECT coalesce(max(number), 0) = {self.last_number} FROM lines"
        return bool(run("PRAGMA integrity_check(1)").fetchone() == ("ok",) and run(last).fetchone() == (1,))

    def _explain(self, purpose: Purpose, error: Exception) -> str:
        text = str(error)
        if "locked" in text:
            return self._cannot(purpose, "another process holds it for too long")
        if isinstance(error, OSError) or "readonly" in text or "unable to open" in text or "disk I/O" in text:
            return f"cannot {purpose.verb} '{self.path}': {_NOT_WRITABLE}"
        if "full" in text:
            return self._cannot(purpose, "the disk is full")
        return DAMAGED.format(self.path)


def _create(path: Path, schema: str) -> None:
    """Make an empty ledger in one step: it is there as a whole or not at all, whoever else makes it too."""
    draft = path.with_name(f".privet-{os.getpid()}-{threading.get_ident()}")
    try:
        draft.unlink(missing_ok=True)  # of a process that was killed
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.executescript(f"PRAGMA synchronous = EXTRA;\n{schema}")
        with suppress(FileExistsError):
            os.link(draft, path)
    except (sqlite3.Error, OSError):
        raise LedgerError(f"cannot {MAKE.verb} '{path}': {_NOT_WRITABLE}") from None
    finally:
        with suppress(OSError):
            draft.unlink()

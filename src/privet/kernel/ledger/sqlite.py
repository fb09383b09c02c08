"""A ledger in one SQLite file, or in memory for as long as the process lives."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from privet.errors import LedgerError, PrivacyError
from privet.kernel.ledger.store import (
    APPEND_ONLY,
    FORMAT,
    LINES,
    MAKE,
    OPEN,
    OPEN_HOLDS,
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

MEMORY = ":memory:"
_LOOK_AGAIN = 0.0005  # seconds; a charge takes ten times as long or more
_READER_LOOKS = 0.1  # seconds before a reader queues with the writers

_TABLES = f"""
CREATE TABLE format (version INTEGER NOT NULL, ledger TEXT NOT NULL);
CREATE TABLE {LINES} (
    number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, serial INTEGER NOT NULL, dataset TEXT, analyst TEXT,
    key TEXT, reference INTEGER, line TEXT NOT NULL, note TEXT NOT NULL, leaf TEXT NOT NULL);
CREATE TABLE analysts (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, secret TEXT NOT NULL);
CREATE TABLE sources (id TEXT PRIMARY KEY, dataset TEXT NOT NULL, source TEXT NOT NULL, secret TEXT NOT NULL);
CREATE TABLE {OPEN_HOLDS} (hold INTEGER PRIMARY KEY, dataset TEXT NOT NULL);
CREATE UNIQUE INDEX by_serial ON {LINES} (kind, serial);
CREATE UNIQUE INDEX by_key ON {LINES} (dataset, analyst, key) WHERE key IS NOT NULL;
-- the last line of a kind is found without sorting all of them
CREATE INDEX by_analyst ON {LINES} (dataset, analyst, kind) WHERE dataset IS NOT NULL;
CREATE INDEX by_dataset ON {LINES} (dataset) WHERE kind = 'charge';
CREATE INDEX by_hold ON {LINES} (reference) WHERE kind = 'charge' AND reference IS NOT NULL;
CREATE UNIQUE INDEX one_answer ON {LINES} (reference) WHERE kind = 'answer';
CREATE UNIQUE INDEX one_end ON {LINES} (reference) WHERE kind = 'end';
CREATE INDEX open_by_dataset ON {OPEN_HOLDS} (dataset);
""" + "".join(
    f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'append-only'); END;\n"
    for table in APPEND_ONLY
    for verb in ("UPDATE", "DELETE")
)
_NAMES = set(re.findall(r"CREATE (?:TABLE|INDEX|UNIQUE INDEX|TRIGGER) (\w+)", _TABLES))


class SQLiteStore(Store):
    """One file: a charge is an immediate transaction, on the disk before it returns."""

    errors = (sqlite3.Error,)

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.durable = path != MEMORY
        self._queue = _Queue(f"{self.identity}-queue") if self.durable else None
        self._connect()

    @classmethod
    def open(cls, path: str, create: bool, new_id: str) -> SQLiteStore:
        """Open a ledger file; where there is none, and `create` allows it, make one with the id `new_id`."""
        if path == MEMORY:
            store = cls(path)
            store._connection.executescript(_schema(new_id))
            return store
        file = Path(path)
        try:
            file.lstat()
            if not file.exists():  # a link to a ledger that has gone: it must not be begun anew
                raise LedgerError(removed(os.path.realpath(path)))
        except FileNotFoundError:
            if not create:
                raise LedgerError(missing(path)) from None
            _create(file, new_id)
        except (OSError, ValueError):  # a name that is too long, or none
            raise LedgerError(_unusable(path)) from None
        return cls(path)

    @property
    def identity(self) -> str:
        return os.path.realpath(self.path) if self.durable else MEMORY

    def is_whole(self, run: Run) -> bool:
        found = {name for (name,) in run("SELECT name FROM sqlite_master")}
        versions = run("SELECT version FROM format").fetchall() if "format" in found else []
        if len(versions) == 1 and isinstance(versions[0][0], int) and versions[0][0] != FORMAT:
            raise LedgerError(other_format(self.path, versions[0][0]))
        sound: bool = found >= _NAMES and versions == [(FORMAT,)]
        sound = sound and run("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
        if not sound:
            return False
        # The last number is remembered apart: so it is noticed, too, where the last lines are lost.
        (last,) = run(f"SELECT coalesce(max(number), 0) FROM {LINES}").fetchone()
        return bool(run.last_numbers("")[0] == last)

    def close(self) -> None:
        self._finalizer()

    def _connect(self) -> None:
        # mode=rw: a ledger that has gone must not be begun anew
        address = f"file:{quote(str(Path(self.path).absolute()))}?mode=rw" if self.durable else self.path
        try:
            self._connection = sqlite3.connect(
                address, uri=self.durable, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            # With a rollback journal EXTRA means: a commit is on the disk before it returns, power loss included.
            self._connection.execute("PRAGMA synchronous = EXTRA")
            self._file = os.stat(self.path).st_ino if self.durable else 0
            self._finalizer = weakref.finalize(self, _close, self._connection, os.getpid())
            problem: Exception | None = None
        except (sqlite3.Error, OSError, ValueError) as error:
            problem = error
        if problem is not None:
            raise LedgerError(self._explain(OPEN, problem))

    def _leave_to_parent(self) -> None:
        if not self.durable:
            raise PrivacyError(
                "this ledger lives in the memory of another process; open the table again, or with ledger=FILE."
            )
        _never_free(self._connection)
        self._connect()

    def _begin(self, write: bool) -> Run:
        if write and self.durable and not self._in_place():
            raise LedgerError(removed(self.path))
        if self._queue is None:
            self._connection.execute("BEGIN")
        elif write or not self._begins_within(write, _READER_LOOKS):  # between two writers there is time to read
            with self._queue.turn():
                if not self._begins_within(write, WAIT_SECONDS):
                    raise sqlite3.OperationalError("database is locked")
        return _Run(self._connection)

    def _begins_within(self, write: bool, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self._try_to_begin(write):
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_AGAIN)
        return True

    def _try_to_begin(self, write: bool) -> bool:
        """Begin a transaction, and take its lock, unless another process is in the way."""
        self._connection.execute("PRAGMA busy_timeout = 0")  # SQLite itself would look ever more rarely
        try:
            self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            if not write:
                self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            return True
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            self._settle()
            return False
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {int(1000 * WAIT_SECONDS)}")

    def _commit(self, run: Run) -> None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            # Where it waits for readers too long, or the disk is full, SQLite takes everything back. After other
            # failures of the disk it cannot tell what is on it.
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL):
                raise
            raise CommitUnknown("the disk failed at the last step") from None

    def _settle(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _in_place(self) -> bool:
        """Whether the path still leads to the open file: SQLite would go on writing to one that was removed."""
        try:
            return os.stat(self.path).st_ino == self._file
        except OSError:
            return False

    def _explain(self, purpose: Purpose, error: Exception) -> str:
        text = str(error)
        if "locked" in text:
            return self._cannot(purpose, "another process holds it for too long")
        if isinstance(error, OSError) or "readonly" in text or "unable to open" in text or "disk I/O" in text:
            return f"cannot {purpose.verb} '{self.path}': {_NOT_WRITABLE}"
        if "full" in text:
            return self._cannot(purpose, "the disk is full")
        return corrupt(self.path)


class _Run(Run):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __call__(self, statement: str, *values: Any) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)

    def last_numbers(self, kind: str) -> tuple[int, int]:
        query = (
            f"SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{LINES}'), 0), "
            f"coalesce((SELECT max(serial) FROM {LINES} WHERE kind = '{kind}'), 0)"
        )
        number, serial = self(query).fetchone()
        return number, serial


class _Queue:
    """Lets those who wait for a ledger begin in the order in which they came.

    Left alone, SQLite's writers look again and again whether the file is free, and
    whoever looks at the right moment has it: of many, some wait for minutes. Here one
    at a time looks, whoever holds the lock of a file beside the ledger; the others sleep
    in the kernel, which wakes them in order. Whoever has begun lets the next one look.

    That is for fairness alone: that nobody writes at the same time rests on SQLite. So where there can be no such
    file, or no lock on it, they do without. The lock of a process that dies is gone with it.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The time of being first in the queue."""
        file = None
        for how in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):  # the second: another user has made it
            with suppress(OSError):
                file = os.open(self._path, how | os.O_CLOEXEC, 0o666)
                break
        if file is None:
            yield
            return
        place = _Place(file)
        try:
            if not place.wait(WAIT_SECONDS):
                raise sqlite3.OperationalError("database is locked")
            yield
        finally:
            place.leave()


class _Place:
    """A place in the queue, which can be left while waiting. `flock` knows no time limit, so a thread waits in it."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._waiting = self._left = False
        _queued.add(file)

    def wait(self, seconds: float) -> bool:
        """Whether it is first in the queue in time; or there can be no queue."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            pass
        except OSError:  # a file system without locks
            return True
        sleeper = threading.Thread(target=self._sleep, daemon=True)
        self._waiting = True
        try:
            sleeper.start()
        except RuntimeError:  # there can be no more threads
            self._waiting = False
            return True
        sleeper.join(seconds)
        return not self._waiting

    def leave(self) -> None:
        with self._lock:
            self._left = True
            if not self._waiting:
                self._close()

    def _sleep(self) -> None:
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._lock:
            self._waiting = False
            if self._left:
                self._close()

    def _close(self) -> None:
        _queued.discard(self._file)
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_UN)  # a forked child may have the file open, too
        os.close(self._file)


_queued: set[int] = set()


def _leave_queues() -> None:
    """In a forked child: the places in queues are its parent's."""
    for file in _queued:
        with suppress(OSError):
            os.close(file)
    _queued.clear()


os.register_at_fork(after_in_child=_leave_queues)


def _close(connection: sqlite3.Connection, process: int) -> None:
    if os.getpid() == process:
        connection.close()
    else:
        _never_free(connection)


def _never_free(connection: sqlite3.Connection) -> None:
    """Keep a connection that a forked child has inherited from ever being closed, even when Python ends.

    If the parent was in the middle of a charge, closing it would undo that: it would take back pages and remove the
    journal under the parent's hands. One reference that nobody gives back prevents it.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


_NOT_WRITABLE = "it cannot be written there; make it writable, or name another ledger."


def _unusable(path: object) -> str:
    return f"cannot {MAKE.verb} {str(path)!r:.300}: it is no name of a file; name another."


def _schema(ledger_id: str) -> str:
    return f"BEGIN;\n{_TABLES}INSERT INTO format VALUES ({FORMAT}, '{ledger_id}');\nCOMMIT;\n"


def _create(path: Path, new_id: str) -> None:
    """Make an empty ledger at once: it is there as a whole or not at all, whoever else makes it too."""
    draft = path.with_name(f".privet-{os.getpid()}-{threading.get_ident()}")
    with suppress(OSError):
        draft.unlink()  # of a process that was killed
    try:
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            connection.executescript(f"PRAGMA synchronous = EXTRA;\n{_schema(new_id)}")
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
        raise LedgerError(f"cannot {MAKE.verb} '{path}': {_NOT_WRITABLE}")

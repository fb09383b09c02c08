"""A ledger in one SQLite file, or in memory for as long as the process lives."""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from privet.errors import LedgerError, PrivacyError
from privet.kernel.ledger import store
from privet.kernel.ledger.store import FORMAT, MAKE, WAIT_SECONDS, CommitUnknown, Purpose, Run

MEMORY = ":memory:"
_LOOK_AGAIN = 0.0005  # seconds; a charge takes ten times as long or more
_READER_LOOKS = 0.1  # seconds before a reader queues with the writers
_NOT_WRITABLE = "it cannot be written there; make it writable, or name another ledger."

# AUTOINCREMENT remembers the last number, also if the last lines are lost. Every index ends with the primary key as it
# is, so none need name it.
_TABLES = store.TABLES.replace("number BIGINT PRIMARY KEY", "number INTEGER PRIMARY KEY AUTOINCREMENT")
_TABLES = re.sub(r", (number|hold)\)", ")", _TABLES.replace("BIGINT", "INTEGER")) + "".join(
    f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'append-only'); END;\n"
    for table in store.APPEND_ONLY
    for verb in ("UPDATE", "DELETE")
)


class SQLiteStore(store.Store):
    """One file. A charge is an immediate transaction, on the disk before it returns."""

    errors = (sqlite3.Error,)
    names = store.names_in(_TABLES)
    last_number = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'lines'), 0)"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.durable = path != MEMORY
        self._queue = f"{self.identity}-queue" if self.durable else None
        self._connect()

    @classmethod
    def open(cls, path: str, create: bool, new_id: str) -> SQLiteStore:
        """Open a ledger file. If there is none and `create` allows it, make one with the id `new_id`."""
        if path == MEMORY:
            memory = cls(path)
            memory._connection.executescript(_schema(new_id))
            return memory
        file = Path(path)
        try:
            file.lstat()
            if not file.exists():  # a link to a ledger that is gone: it must not be begun anew
                raise LedgerError(store.removed(os.path.realpath(path)))
        except FileNotFoundError:
            if not create:
                raise LedgerError(store.missing(path)) from None
            _create(file, new_id)
        except (OSError, ValueError):  # a name that is too long, or none
            raise LedgerError(f"cannot {MAKE.verb} {path!r:.300}: it is no name of a file; name another.") from None
        return cls(path)

    @property
    def identity(self) -> str:
        return os.path.realpath(self.path) if self.durable else MEMORY

    def _connect(self) -> None:
        # mode=rw: a ledger that is gone must not be begun anew
        address = f"file:{quote(str(Path(self.path).absolute()))}?mode=rw" if self.durable else self.path
        problem: Exception | None = None
        try:
            self._connection = sqlite3.connect(
                address, uri=self.durable, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            # With a rollback journal EXTRA means: a commit is on the disk before it returns, power loss included.
            self._connection.execute("PRAGMA synchronous = EXTRA")
            self._file = os.stat(self.path).st_ino if self.durable else 0
            self._close_with(self._connection.close)
        except (sqlite3.Error, OSError, ValueError) as error:
            problem = error
        if problem is not None:
            raise LedgerError(self._explain(store.OPEN, problem))

    def _leave_to_parent(self) -> None:
        if not self.durable:
            raise PrivacyError(
                "this ledger lives in the memory of another process; open the table again, or with ledger=FILE."
            )
        self._connect()

    def _begin(self, write: bool) -> Run:
        if write and self.durable and not self._in_place():
            raise LedgerError(store.removed(self.path))
        if self._queue is None:
            self._connection.execute("BEGIN")
        elif write or not self._begins_within(_READER_LOOKS, write):  # between two writers there is time to read
            with _turn(self._queue):
                if not self._begins_within(WAIT_SECONDS, write):
                    raise sqlite3.OperationalError("database is locked")
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
        if run("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            return False
        return bool(run(f"SELECT coalesce(max(number), 0) = {self.last_number} FROM lines").fetchone()[0])

    def _explain(self, purpose: Purpose, error: Exception) -> str:
        text = str(error)
        if "locked" in text:
            return self._cannot(purpose, "another process holds it for too long")
        if isinstance(error, OSError) or "readonly" in text or "unable to open" in text or "disk I/O" in text:
            return f"cannot {purpose.verb} '{self.path}': {_NOT_WRITABLE}"
        if "full" in text:
            return self._cannot(purpose, "the disk is full")
        return store.corrupt(self.path)


@contextmanager
def _turn(queue: str) -> Iterator[None]:
    """Be first in the queue of a ledger, which is a file, for the length of the block.

    So the processes that wait for a ledger begin in the order in which they came. Left alone, SQLite's writers look
    again and again whether the file is free, and whoever looks at the right moment has it: of many, some wait for
    minutes. Here one at a time looks, the one that holds the lock of a file beside the ledger. The others sleep in the
    kernel, which wakes them in order. Who has begun lets the next one look.

    This is for fairness alone: that no two write at the same time rests on SQLite. So if there can be no such file, or
    no lock on it, they do without. The lock of a process that dies is gone with it.
    """
    file = None
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):  # the second: another user has made it
        with suppress(OSError):
            file = os.open(queue, flags | os.O_CLOEXEC, 0o666)
            break
    if file is None:
        yield
        return
    lock = _QueueLock(file)
    try:
        if not lock.wait(WAIT_SECONDS):
            raise sqlite3.OperationalError("database is locked")
        yield
    finally:
        lock.leave()


class _QueueLock:
    """The lock of a queue's file. `flock` has no time limit, so a thread waits in it, which can be left behind."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._waiting = self._left = False
        _queued.add(file)

    def wait(self, seconds: float) -> bool:
        """Return whether the lock was granted in time. True also if there can be no lock or no thread."""
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
        """Give the lock back, now or when the waiting thread gets it."""
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


_queued: set[int] = set()  # the files of all queue locks


def _leave_queues() -> None:
    """In a forked child: close the files of queues, for the locks are its parent's."""
    for file in _queued:
        with suppress(OSError):
            os.close(file)
    _queued.clear()


os.register_at_fork(after_in_child=_leave_queues)


def _schema(ledger_id: str) -> str:
    return f"BEGIN;\n{_TABLES}INSERT INTO format VALUES ({FORMAT}, '{ledger_id}');\nCOMMIT;\n"


def _create(path: Path, new_id: str) -> None:
    """Make an empty ledger in one step: it is there as a whole or not at all, whoever else makes it too."""
    draft = path.with_name(f".privet-{os.getpid()}-{threading.get_ident()}")
    made = False
    with suppress(OSError):
        draft.unlink()  # of a process that was killed
    with suppress(sqlite3.Error, OSError):
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.executescript(f"PRAGMA synchronous = EXTRA;\n{_schema(new_id)}")
        with suppress(FileExistsError):
            os.link(draft, path)
        made = True
    with suppress(OSError):
        draft.unlink()
    if not made:
        raise LedgerError(f"cannot {MAKE.verb} '{path}': {_NOT_WRITABLE}")

"""Where a ledger keeps its lines: what a file and a server have in common.

A store knows its place and nothing of budgets. The ledger relies on three things. A write
transaction sees all that was committed, and nobody else writes until it ends. When it has
returned, what it wrote is on disk. Lines are numbered 1, 2, 3 and never change.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from privet.errors import LedgerError

FORMAT = 4
WAIT_SECONDS = 120.0
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

Run = Callable[..., Any]  # `run("SELECT ... = ?", value)` runs a statement in one transaction and returns a cursor


@dataclass(frozen=True)
class Purpose:
    """What a transaction is for, in words for an error message."""

    verb: str  # completes "cannot ..."
    undone: str = "nothing was written"  # what is true if it was not committed
    unknown: str = "look at the ledger before you try again"  # what to do if nobody can tell whether it was


READ = Purpose("read the ledger")
OPEN = Purpose("open the ledger")
MAKE = Purpose("make the ledger")


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
        # Besides the driver's errors, those of reading a damaged line.
        damage = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
        expected: tuple[type[Exception], ...] = (*self.errors, *damage)
        sentence = None
        with self._lock:
            try:
                try:
                    run = self._begin(write)
                    yield run
                    self._commit(run)
                finally:  # an interrupt can come anywhere, and a child can be forked in the block
                    if os.getpid() == self._process:
                        self._settle()
            except CommitUnknown as error:
                sentence = (
                    f"cannot {purpose.verb} '{self.path}' for certain: {error}, and whether it was written is not "
                    f"known; {purpose.unknown}."
                )
            except expected as error:
                sentence = self._explain(purpose, error)
        if sentence is not None:
            raise LedgerError(sentence) from None  # outside that block: the driver's words may hold a secret

    def check(self, run: Run) -> str:
        """Check that no table, index, trigger or line is missing. Return the id of the ledger.

        Raises
        ------
        LedgerError
            If something is missing, or the ledger is of another format.
        """
        names = self._names_there(run)
        versions = run("SELECT version FROM format").fetchall() if "format" in names else []
        if len(versions) == 1 and isinstance(versions[0][0], int) and versions[0][0] != FORMAT:
            raise LedgerError(
                f"the ledger '{self.path}' is of format {versions[0][0]}, and this version of privet reads format "
                f"{FORMAT} alone; go on with the version that wrote it."
            )
        if not (names >= self.names and versions == [(FORMAT,)] and self._is_whole(run)):
            raise LedgerError(corrupt(self.path))
        return str(run("SELECT ledger FROM format").fetchone()[0])

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

    # -- what differs -----------------------------------------------------------------------

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


def removed(path: str) -> str:
    return f"the ledger '{path}' was moved or removed; put it back, or open the table again."


def missing(path: str) -> str:
    return f"there is no ledger at '{path}'; open the table once with a budget, or check the path."


def corrupt(path: str) -> str:
    return (
        f"the ledger '{path}' is damaged or not a privet ledger, and nothing can be charged to it; "
        "restore it from a backup: without it the spending so far is unknown."
    )

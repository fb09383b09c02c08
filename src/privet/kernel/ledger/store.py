"""Where a ledger keeps its lines: whole transactions, one writer at a time, trouble told in one sentence.

A store knows a place and nothing of budgets. What the ledger rests on, whatever the
store: a write transaction sees all that was committed and nobody else writes until it
ends; once it has returned, it is on disk; lines are numbered 1, 2, 3 and never change.
Every line carries a checksum of itself, so that damage to it is noticed when it is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from privet.errors import LedgerError

FORMAT = 3
WAIT_SECONDS = 120.0
# What a line of each table says, besides its number and its checksum.
COLUMNS = {
    "datasets": ("name", "at"),
    "sources": ("dataset", "source", "at"),
    "terms": ("dataset", "rows_per_person", "cells", "at"),
    "caps": ("dataset", "analyst", "cap", "at"),
    "entries": (
        *("dataset", "terms", "analyst", "scope", "question", "epsilon", "loss", "key", "fingerprint", "at"),
        *("dataset_spent", "analyst_spent", "hold", "hold_spent"),
    ),
    "answers": ("entry", "answer", "at"),
    "holds": ("dataset", "analyst", "epsilon", "at"),
    "ends": ("hold", "at"),
}
TABLES = tuple(COLUMNS)
NUMBERED = ("sources", "terms", "caps", "entries", "holds")
# The holds that have not ended, so that a charge need not look at all others. It follows from `holds` and `ends`, and
# is the one table whose lines go.
OPEN_HOLDS = "open_holds"


@dataclass(frozen=True)
class Purpose:
    """What a transaction is for, in words for whoever is told that it failed."""

    verb: str  # completes "cannot ..."
    undone: str = "nothing was written"  # what is true where it was not committed
    unknown: str = "look at the ledger before you try again"  # what to do where nobody can tell whether it was


READ = Purpose("read the ledger")
OPEN = Purpose("open the ledger")
MAKE = Purpose("make the ledger")


class CommitUnknown(Exception):
    """A COMMIT failed in a way that leaves open whether it was done; its text says what happened."""


class Run(ABC):
    """Runs statements inside one transaction. `run("SELECT ... = ?", value)` returns a cursor."""

    @abstractmethod
    def __call__(self, statement: str, *values: object) -> Any: ...

    def append(self, table: str, **line: object) -> int:
        """Write a line under the next number; the number."""
        return self._append(table, {**line, "checksum": checksum(table, [line[name] for name in COLUMNS[table]])})

    def insert(self, table: str, **line: object) -> None:
        """Write a line of a table without numbers; one that is there already stays as it is."""
        line["checksum"] = checksum(table, [line[name] for name in COLUMNS[table]])
        marks = ", ".join("?" * len(line))
        self(f"INSERT INTO {table} ({', '.join(line)}) VALUES ({marks}) ON CONFLICT DO NOTHING", *line.values())

    def lines(self, table: str, condition: str = "TRUE", *values: object) -> Iterator[tuple[Any, ...]]:
        """Lines of a table as (number, columns ...); ValueError where one is not what its checksum says."""
        columns = COLUMNS[table]
        number = "id" if table in NUMBERED else "NULL"
        for line in self(f"SELECT {number}, {', '.join(columns)}, checksum FROM {table} WHERE {condition}", *values):
            if checksum(table, line[1:-1]) != line[-1]:
                raise ValueError(f"a line of {table} is damaged")
            yield tuple(line[:-1])

    def line(self, table: str, condition: str, *values: object) -> tuple[Any, ...] | None:
        """The first of some lines, if there is one."""
        return next(self.lines(table, f"{condition} LIMIT 1", *values), None)

    @abstractmethod
    def _append(self, table: str, line: dict[str, object]) -> int: ...


def checksum(table: str, line: Sequence[object]) -> str:
    """What a line is held against when it is read: it finds damage, not somebody who wants to deceive."""
    text = json.dumps([table, *line], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Store(ABC):
    """A place for one ledger, shared by all threads of a process; a forked child gets a connection of its own."""

    durable = True
    errors: ClassVar[tuple[type[Exception], ...]] = ()  # what the driver raises

    def __init__(self, path: str) -> None:
        self.path = path  # as it may be shown
        self._process = os.getpid()
        self._lock = threading.RLock()

    @contextmanager
    def transaction(self, purpose: Purpose, write: bool = True) -> Iterator[Run]:
        """One transaction: committed when the block ends, undone when it raises."""
        if os.getpid() != self._process:
            self._leave_to_parent()
            self._process, self._lock = os.getpid(), threading.RLock()
        # Besides the driver's errors, those of reading a damaged line.
        expected: tuple[type[Exception], ...] = (*self.errors, ArithmeticError, LookupError, TypeError, ValueError)
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
            raise LedgerError(sentence) from None  # not in that block: a driver's words may hold more than they should

    @property
    @abstractmethod
    def identity(self) -> str:
        """The same for the same ledger, whoever opens it."""

    @abstractmethod
    def is_whole(self, run: Run) -> bool:
        """Whether every table, index and trigger is there and no line is missing."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the place; what was charged stays in it."""

    # -- what differs -----------------------------------------------------------------------

    @abstractmethod
    def _leave_to_parent(self) -> None:
        """After a fork: neither use nor close what the parent has opened."""

    @abstractmethod
    def _begin(self, write: bool) -> Run: ...

    @abstractmethod
    def _commit(self, run: Run) -> None: ...

    @abstractmethod
    def _settle(self) -> None:
        """Undo what is not committed, if there is any."""

    @abstractmethod
    def _explain(self, purpose: Purpose, error: Exception) -> str: ...

    def _cannot(self, purpose: Purpose, reason: str) -> str:
        return f"cannot {purpose.verb} '{self.path}': {reason}; {purpose.undone}."


def removed(path: str) -> str:
    return f"the ledger '{path}' was moved or removed; put it back, or open the table again."


def missing(path: str) -> str:
    return f"there is no ledger at '{path}'; open the table once with a budget, or check the path."


def corrupt(path: str) -> str:
    return (
        f"the ledger '{path}' is damaged or not a privet ledger, and nothing can be charged to it; "
        "restore it from a backup: without it the spending so far is unknown."
    )


def other_format(path: str, version: int) -> str:
    return (
        f"the ledger '{path}' is of format {version}, and this version of privet reads format {FORMAT} alone; go on "
        "with the version that wrote it."
    )

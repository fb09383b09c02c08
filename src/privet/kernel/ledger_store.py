"""Where a ledger keeps its lines: whole transactions, one writer at a time, trouble told in one sentence.

A store knows a place and nothing of budgets. What the ledger rests on, whatever the
store: a write transaction sees all that was committed and nobody else writes until it
ends; once it has returned, it is on disk; lines are numbered 1, 2, 3 and never change.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from privet.errors import LedgerError

FORMAT = 2
WAIT_SECONDS = 120.0
TABLES = ("datasets", "caps", "entries", "answers", "holds", "ends")
NUMBERED = ("caps", "entries", "holds")


class Run(ABC):
    """Runs statements inside one transaction. `run("SELECT ... = ?", value)` returns a cursor."""

    @abstractmethod
    def __call__(self, statement: str, *values: object) -> Any: ...

    @abstractmethod
    def append(self, table: str, **line: object) -> int:
        """Write a line under the next number; the number."""


class Store(ABC):
    """A place for one ledger, shared by all threads of a process; a forked child gets a connection of its own."""

    durable = True
    upgrades: ClassVar[Mapping[int, Sequence[str]]] = {}  # the statements that lead from an older format to this one
    errors: ClassVar[tuple[type[Exception], ...]] = ()  # what the driver raises

    def __init__(self, path: str) -> None:
        self.path = path  # as it may be shown
        self._process = os.getpid()
        self._lock = threading.RLock()

    @contextmanager
    def transaction(self, purpose: str, write: bool = True) -> Iterator[Run]:
        """One transaction: committed when the block ends, undone when it raises. `purpose` completes `cannot ...`."""
        if os.getpid() != self._process:
            self._leave_to_parent()
            self._process, self._lock = os.getpid(), threading.RLock()
        # all but the driver's errors: what was read is not what a ledger writes
        expected: tuple[type[Exception], ...] = (*self.errors, ArithmeticError, LookupError, TypeError, ValueError)
        sentence = None
        with self._lock:
            try:
                try:
                    run = self._begin(write)
                    yield run
                    self._commit(run)
                finally:  # an interrupt can come anywhere
                    self._settle()
            except expected as error:
                sentence = self._explain(purpose, error)
        if sentence is not None:
            raise LedgerError(sentence) from None  # not in that block: a driver's words may hold more than they should

    @abstractmethod
    def is_whole(self, run: Run) -> bool:
        """Whether every table, index and trigger is there, every line readable and none missing."""

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
    def _explain(self, purpose: str, error: Exception) -> str: ...


def removed(path: str) -> str:
    return f"the ledger '{path}' was moved or removed; put it back, or open the table again."


def missing(path: str) -> str:
    return f"there is no ledger at '{path}'; open the table once with a budget, or check the path."


def corrupt(path: str) -> str:
    return (
        f"the ledger '{path}' is damaged or not a privet ledger, and nothing can be charged to it; "
        "restore it from a backup: without it the spending so far is unknown."
    )

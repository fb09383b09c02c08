"""Where a ledger keeps its lines: whole transactions, one writer at a time, trouble told in one sentence.

A store knows a place and nothing of budgets. What the ledger rests on, whatever the
store: a write transaction sees all that was committed and nobody else writes until it
ends; once it has returned, it is on disk; lines are numbered 1, 2, 3 and never change.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from privet.errors import LedgerError

FORMAT = 4
WAIT_SECONDS = 120.0
LINES = "lines"  # the log
# Tables whose lines never change nor go. `analysts` and `sources` hold the texts that the log names by an id.
APPEND_ONLY = ("format", LINES, "analysts", "sources")
# The holds that have not ended, so that a charge need not look at all others. It follows from the log, and is the one
# table whose lines go.
OPEN_HOLDS = "open_holds"
# Lines that only the owner of the data writes; a role on a server may be kept from it.
OWNER_KINDS = ("register", "cap", "key", "config")


@dataclass(frozen=True)
class Purpose:
    """What a transaction is for, in words for whoever is told that it failed."""

    verb: str  # completes "cannot ..."
    undone: str = "nothing was written"  # what is true where it was not committed
    unknown: str = "look at the ledger before you try again"  # what to do where nobody can tell whether it was


READ = Purpose("read the ledger")
OPEN = Purpose("open the ledger")
MAKE = Purpose("make the ledger")
_LOOK = "`privet budget show` tells"
REGISTER = Purpose("register the data set in the ledger", "nothing was written", "open the table again")
CHARGE = Purpose(
    "charge the ledger",
    "nothing was charged",
    "`privet budget show --entries` tells; the same question with the same key finds the charge or makes it, without a "
    "key a new try is a new charge",
)
STORE = Purpose(
    "store an answer in the ledger", "the answer was neither stored nor released", "the answer is not released"
)
HOLD = Purpose("reserve in the ledger", "nothing was reserved", f"{_LOOK}, and `privet budget release` ends it")
END = Purpose(
    "end a reservation in the ledger",
    "the reservation stays open until `privet budget release` ends it",
    f"{_LOOK}, and `privet budget release` ends it",
)
SET_CAP = Purpose("change a budget in the ledger", "the budget stays as it was", _LOOK)
DECLARE = Purpose("declare a domain in the ledger", "nothing was changed", f"{_LOOK}, and to declare it again is safe")
RECORD = Purpose("write to the ledger", "nothing was written", _LOOK)


class CommitUnknown(Exception):
    """A COMMIT failed in a way that leaves open whether it was done; its text says what happened."""


class Run(ABC):
    """Runs statements inside one transaction. `run("SELECT ... = ?", value)` returns a cursor."""

    @abstractmethod
    def __call__(self, statement: str, *values: object) -> Any: ...

    @abstractmethod
    def last_numbers(self, kind: str) -> tuple[int, int]:
        """The number of the line that was written last, and the serial number of the last of a kind; 0 for none."""


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

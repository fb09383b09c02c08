"""Every exception privet raises on purpose.

    PrivetError
    ├── PrivacyError            the privacy promise would be broken
    │   ├── BudgetExceeded      the budget does not have that much left
    │   ├── KeyReused           an idempotency key came back with another question
    │   ├── NotPrivate          the algorithm asked for is not differentially private
    │   └── UndeclaredDomain    a column has no public domain
    ├── DomainError             the domain file cannot be used
    ├── QuestionError           a question is not well formed (also a ValueError)
    ├── DataError               the table cannot be opened (also a ValueError)
    ├── ModelError              a model file cannot be read or used (also a ValueError)
    ├── LedgerError             the ledger cannot be read or written
    ├── ReceiptError            a receipt or a checkpoint does not hold, or cannot be made
    ├── EngineFailed            the engine gave up; the charge stands
    └── ServerError             a server cannot be reached, or does not answer as one

A message says what was asked, what stands in the way and what to do next. It depends on public facts
alone, never on a row.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from fractions import Fraction
from itertools import islice
from typing import Any

_LONGEST_COMPARED, _MOST_COMPARED = 60, 2000  # characters of a name, and names, that are compared


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the name that is most like one that does not exist; "" if none is.

    Parameters
    ----------
    name : object
        What was asked for; anything but a short text is like nothing.
    names : iterable of str
        PUBLIC names alone: columns and values of a domain, columns of the caller's own frame, commands, algorithms.
        Never values of rows.

    Returns
    -------
    str

    >>> did_you_mean("bosted", ["auto", "boosted"]), did_you_mean("female", ["Female", "Male"])
    (" (did you mean 'boosted'?)", " (did you mean 'Female'?)")
    >>> did_you_mean("zebra", ["Female", "Male"])
    ''
    """
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_COMPARED:
        return ""
    by_folded = {
        known.casefold().strip(): known for known in islice(names, _MOST_COMPARED) if len(known) <= _LONGEST_COMPARED
    }
    close = difflib.get_close_matches(name.casefold().strip(), by_folded, n=1)
    return f" (did you mean '{by_folded[close[0]]}'?)" if close else ""


class PrivetError(Exception):
    """Base of all errors raised on purpose; its text is safe to show to an analyst."""

    charged: bool | str | None = None  # what a server says: whether the request was charged, or "unknown"
    outcome: Any = None  # what a NoisyIf had come to, and was charged for, when its history could not be written


class PrivacyError(PrivetError):
    """What was asked would break the privacy promise."""


class BudgetExceeded(PrivacyError):
    """A charge does not fit into the budget. Nothing was asked and nothing was charged.

    Attributes
    ----------
    requested : Fraction
        What was to be charged.
    remaining : Fraction
        What the budget has left.
    """

    def __init__(self, message: str, *, requested: Fraction, remaining: Fraction) -> None:
        super().__init__(message)
        self.requested = requested
        self.remaining = remaining


class KeyReused(PrivacyError):
    """An idempotency key came back with another scope, question or epsilon."""


class NotPrivate(PrivacyError):
    """The algorithm or call is not differentially private."""


class UndeclaredDomain(PrivacyError):
    """A column has no declared public domain, so nothing may be asked about it.

    Attributes
    ----------
    column : str or None
        The column, if there is one.
    """

    def __init__(self, message: str, *, column: str | None = None) -> None:
        super().__init__(message)
        self.column = column


class DomainError(PrivetError, ValueError):
    """The domain file is missing, malformed or contradicts itself."""


class QuestionError(PrivetError, ValueError):
    """A question is not well formed; nothing was charged."""


class DataError(PrivetError, ValueError):
    """The table cannot be opened as its domain describes it."""


class ModelError(PrivetError, ValueError):
    """A published model cannot be read, or does not do what it is asked."""


class LedgerError(PrivetError):
    """The ledger cannot be read or written."""


class ReceiptError(PrivetError):
    """A receipt or a checkpoint does not hold, or cannot be made."""


class EngineFailed(PrivetError):
    """The engine could not answer. Its own message may quote a row, so it is not shown."""


class ServerError(PrivetError):
    """A server cannot be reached, takes no such token, or does not answer as a server of privet does."""


class PrivacyLeakWarning(UserWarning):
    """Something about the private rows became public without a charge."""


class DtypeMismatchWarning(UserWarning):
    """A column of the caller's own frame has a dtype that holds none of its declared values; no row was read."""


class TargetNameWarning(UserWarning):
    """The name of `y` is that of an attribute: perhaps another column was meant. No row was read."""

"""Every exception privet raises on purpose.

    PrivetError
    ├── PrivacyError            a promise would be broken
    │   ├── BudgetExceeded      the ledger has not that much left
    │   ├── KeyReused           an idempotency key came back with another question
    │   ├── NotPrivate          the algorithm asked for is not differentially private
    │   └── UndeclaredDomain    a column has no public domain
    ├── DomainError             the domain file cannot be used
    ├── QuestionError           a question is not well formed (also a ValueError)
    ├── DataError               the table cannot be opened (also a ValueError)
    ├── ModelError              a model file cannot be read or used (also a ValueError)
    ├── LedgerError             the ledger cannot be read or written
    └── EngineFailed            the engine gave up; the charge stands

A message says what was asked, what stands in the way and what to do next, in
one sentence that depends on public facts alone: never on a row.
"""

from __future__ import annotations

from fractions import Fraction


class PrivetError(Exception):
    """Base of all errors raised on purpose; its text is safe to show to an analyst."""


class PrivacyError(PrivetError):
    """What was asked would break the privacy promise."""


class BudgetExceeded(PrivacyError):
    """A charge did not fit; nothing was asked and nothing was charged."""

    def __init__(self, message: str, *, requested: Fraction, remaining: Fraction) -> None:
        super().__init__(message)
        self.requested = requested
        self.remaining = remaining


class KeyReused(PrivacyError):
    """An idempotency key of an analyst belongs to one scope, question and epsilon."""


class NotPrivate(PrivacyError):
    """The algorithm or call is not differentially private."""


class UndeclaredDomain(PrivacyError):
    """A column has no declared public domain, so nothing may be asked of it."""

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


class EngineFailed(PrivetError):
    """The engine could not answer. Its own words may quote a row, so they are dropped."""


class PrivacyLeakWarning(UserWarning):
    """Something about the private rows became public without a charge."""


class DtypeMismatchWarning(UserWarning):
    """A column of the caller's own frame has a dtype that holds none of its declared values; no row was read."""

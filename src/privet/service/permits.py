"""Data permits: what a group of analysts may do with some tables, until when, for which purposes, and who raises it.

A permit is a section of the configuration. Analysts name it, and one of its purposes, in every request of a sitting.
The charges say both, and count against the cap that the permit's analysts share on a table, beside the caps of the
table and of each analyst. What it allows is checked before anything is charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from privet.errors import PrivetError
from privet.kernel import Json, is_name

ANSWERS, MODELS = "answers", "models"  # what may leave


class NotPermitted(PrivetError):
    """A permit does not allow what was asked; nothing was charged."""


class NoSuchPermit(PrivetError):
    """There is no such permit, or it is not the caller's: the same words for both."""

    def __init__(self) -> None:
        super().__init__("there is no such permit, or it is not yours.")


@dataclass(frozen=True)
class Permit:
    """What the configuration says of a permit."""

    name: str
    tables: Mapping[str, Fraction | None]  # with a cap that its analysts share, or None
    analysts: tuple[str, ...]
    spenders: tuple[str, ...]  # those of them who may spend; the others look at quotes and budgets
    purposes: tuple[str, ...] = ()  # one of which is to be named; none: whatever is said
    expires: date | None = None
    approvals: int = 1  # owners who must agree to a raise
    release: tuple[str, ...] = (ANSWERS, MODELS)

    def ended(self, today: date) -> bool:
        """Whether its last day is over."""
        return self.expires is not None and today > self.expires

    def check(self, today: date) -> None:
        """Refuse a permit whose last day is over."""
        if self.ended(today):
            raise NotPermitted(f"the permit '{self.name}' ended with {self.expires}; ask its owner for another.")

    def check_purpose(self, purpose: str | None) -> None:
        """Refuse a purpose that is none of the permit's, or no plain text."""
        if purpose is not None and not is_name(purpose):
            raise NotPermitted("a purpose is a printable text of 1 to 200 characters.")
        if self.purposes and purpose not in self.purposes:
            listed = "; ".join(self.purposes)
            raise NotPermitted(f"the permit '{self.name}' is for certain purposes; name one of them: {listed}.")

    def check_spending(self, analyst: str) -> None:
        """Refuse an analyst who may look and not spend."""
        if analyst not in self.spenders:
            raise NotPermitted(f"you may look at what the permit '{self.name}' allows, and not spend under it.")

    def check_release(self, what: str) -> None:
        """Refuse what may not leave."""
        if what not in self.release:
            raise NotPermitted(f"the permit '{self.name}' lets {' and '.join(self.release)} out, and no {what}.")

    def to_json(self) -> dict[str, Json]:
        """Return what the ledger writes down of it; caps are lines of their own."""
        return {
            "permit": self.name,
            "tables": {table: None if cap is None else str(cap) for table, cap in self.tables.items()},
            "analysts": list(self.analysts),
            "spenders": list(self.spenders),
            "purposes": list(self.purposes),
            "expires": None if self.expires is None else self.expires.isoformat(),
            "approvals": self.approvals,
            "release": list(self.release),
        }

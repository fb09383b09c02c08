"""What the charges of a data set mean: the terms that its ledger pins.

Terms say what the budget is counted in, how many rows a person may have, and the cells of
every declared column. A table whose domain says anything else is refused until the owner
declares it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privet.errors import LedgerError, PrivacyError
from privet.kernel.canonical import Json, digest
from privet.kernel.domain import Domain
from privet.kernel.ledger.log import Line
from privet.kernel.limits import decimal_text

EPSILON, RHO = "epsilon", "rho"  # units of a budget; only the first can be charged today


def cells_of(domain: Domain) -> dict[str, str]:
    """Of every declared column a hash of all that decides which cell a value falls into.

    Not in it, because no cell depends on it: the target, `rows`, `max_rows`, whether values are `ordered`, and how
    edges were written.

    >>> from privet.kernel.column import Nominal
    >>> plain, ordered = (Domain((Nominal("size", ("S", "M"), ordered=ordered),)) for ordered in (False, True))
    >>> cells_of(plain) == cells_of(ordered), cells_of(plain) == cells_of(Domain((Nominal("size", ("M", "S")),)))
    (True, False)
    """
    return {column.name: digest(column.cells()) for column in domain}


def terms_of(domain: Domain | None) -> dict[str, Json]:
    """The terms of tables with a domain, as a register line says them."""
    cells = {} if domain is None else cells_of(domain)
    return {
        "unit": EPSILON,
        "delta": None,
        "rows_per_person": 1 if domain is None else domain.rows_per_person,
        "person": None,
        "cells": cells,
        "domain": digest(cells),
    }


@dataclass(frozen=True)
class Terms:
    """What the charges of a data set mean: for whom they are, and what they are about."""

    serial: int  # of the register line
    dataset: str
    unit: str
    delta: str | None  # where the unit is rho
    rows_per_person: int
    person: str | None  # the column that says whose row it is
    cells: dict[str, str]  # by column
    domain: str  # the hash of the cells
    others: tuple[str, ...] = ()  # what else it pins

    @classmethod
    def read(cls, line: Line) -> Terms:
        """The terms that a register line has recorded."""
        body = line.body
        pins = {name: body[name] for name in ("unit", "delta", "rows_per_person", "person", "cells", "domain")}
        return cls(line.serial, str(line.dataset), **pins, others=tuple(sorted({*body} - {*pins, "sources"})))

    @property
    def in_charges(self) -> dict[str, Json]:
        """What a charge repeats of them, so that it can be read alone."""
        repeated: dict[str, Json] = {
            "terms": self.serial,
            "unit": self.unit,
            "rows_per_person": self.rows_per_person,
            "domain": self.domain,
        }
        return repeated if self.delta is None else {**repeated, "delta": self.delta}

    def refuse_unknown(self) -> None:
        """Refuse what only a later version of privet can charge."""
        what = None
        if self.unit != EPSILON:
            what = f"its budget is counted in {self.unit}"
        elif self.person is not None:
            what = "it names a person column"
        elif self.others:
            what = f"it pins '{self.others[0]}'"
        if what is not None:
            raise LedgerError(
                f"the data set '{self.dataset}' cannot be used: {what}, which this version of privet does not know; "
                "open it with the version that registered it."
            )

    def refuse_fewer(self, rows_per_person: int) -> None:
        if rows_per_person < self.rows_per_person:
            raise PrivacyError(
                f"the charges on '{self.dataset}' protect persons with up to {self.rows_per_person} row(s), and the "
                f"domain says {rows_per_person}; write rows_per_person = {self.rows_per_person} or more in the domain "
                "file."
            )

    def refuse_others(self, domain: Domain) -> None:
        """Refuse what only `Ledger.declare` may change."""
        mend = "let its owner record the change with `privet budget declare`, or open it with the domain as it was."
        if domain.rows_per_person > self.rows_per_person:
            raise PrivacyError(
                f"the charges on '{self.dataset}' were made for persons with up to {self.rows_per_person} row(s), and "
                f"the domain says {domain.rows_per_person}: what was spent so far costs such a person "
                f"{decimal_text(Fraction(domain.rows_per_person, self.rows_per_person))} times as much; {mend}"
            )
        cells = cells_of(domain)
        for name in sorted({*self.cells, *cells}) if self.cells else ():  # none: it was registered without a domain
            before, now = self.cells.get(name), cells.get(name)
            if before != now:
                what = "is new" if before is None else "is gone" if now is None else "has other cells"
                raise PrivacyError(
                    f"the domain of '{self.dataset}' is not the one in its ledger: the column '{name}' {what}; {mend}"
                )

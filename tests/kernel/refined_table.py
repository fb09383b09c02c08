"""A small table whose answers are refined."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd

import privet
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.table import ProtectedTable

TENTH, HALF, ONE = Fraction(1, 10), Fraction(1, 2), Fraction(1)
DOMAIN = Domain(
    (
        Nominal("sex", ("f", "m")),
        Numeric("wage", Fraction(-5), Fraction(20), Fraction(1, 2)),
        Nominal("old", ("no", "yes")),
    ),
    target="old",
)
FRAME = pd.DataFrame({"sex": ["f", "m", "m"] * 20, "wage": [3.5, -2.0] * 30, "old": ["no", "yes"] * 30})


def table_of(
    ledger: object = None, budget: object = 100, rows: pd.DataFrame = FRAME, rows_per_person: int = 1
) -> ProtectedTable:
    domain = Domain(DOMAIN.columns, target="old", rows_per_person=rows_per_person)
    return privet.open(rows, domain, budget=budget, ledger=ledger, name="people")  # type: ignore[arg-type]


def one_sentence(error: BaseException) -> str:
    text = str(error)
    assert "\n" not in text and text.endswith(".") and text.count(". ") == 0 and len(text) < 300
    assert error.__cause__ is None
    return text


def spent(table: ProtectedTable) -> list[Fraction]:
    return [entry.loss for entry in table.budget.entries]

"""A small table on which epsilon is reserved."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pandas as pd
from hypothesis import settings

import privet
from privet.kernel import Charge, Ledger
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.table import ProtectedTable

DATASET = "people"
DOMAIN = Domain((Nominal("sex", ("f", "m")), Nominal("old", ("no", "yes"))))
FRAME = pd.DataFrame({"sex": ["f", "m", "m"] * 20, "old": ["no", "yes"] * 30})
TENTH = Fraction(1, 10)
HAIR = Fraction(1, 10**9)
PROPERTY = settings(derandomize=True, deadline=None)


def table_at(path: Path | str = ":memory:", analyst: str = "ada", budget: object = 1) -> ProtectedTable:
    return privet.open(FRAME, DOMAIN, budget=budget, ledger=path, name=DATASET, analyst=analyst)


def new_ledger(path: Path | str = ":memory:", budget: Fraction = Fraction(1)) -> Ledger:
    ledger = Ledger.open(path)
    ledger.register(DATASET, source="here", budget=budget)
    return ledger


def loss_of(loss: Fraction) -> Charge:
    return Charge("count", "{}", "f", "all rows", str(loss), loss)

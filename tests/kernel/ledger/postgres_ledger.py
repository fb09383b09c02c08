"""A ledger on a PostgreSQL server, and what is said when it refuses."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from fractions import Fraction

import pandas as pd
import pytest

import privet
from privet.errors import LedgerError
from privet.kernel import Charge, Ledger
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.kernel.ledger.store import Purpose
from privet.table import ProtectedTable

DATASET = "people"
DOMAIN = Domain((Nominal("sex", ("f", "m")),))
FRAME = pd.DataFrame({"sex": ["f", "m", "m"] * 20})
TENTH = Fraction(1, 10)
SECRET = "correcthorse"
WRITE = Purpose("write to the ledger")


def tenth(key: str | None = None, scope: str = "all rows") -> Charge:
    return Charge("count", "{}", "f", scope, "0.1", TENTH, key)


def new_ledger(address: str, budget: Fraction = Fraction(1)) -> Ledger:
    ledger = Ledger.open(address)
    ledger.register(DATASET, source="here", budget=budget)
    return ledger


def table_at(address: str, budget: object = 1, analyst: str = "ada") -> ProtectedTable:
    return privet.open(FRAME, DOMAIN, budget=budget, ledger=address, name=DATASET, analyst=analyst)


def schema(address: str) -> str:
    return address.split("schema=")[1]


def said(error: BaseException) -> str:
    """What an error says, in one sentence that stands alone."""
    text = str(error)
    assert "\n" not in text and text.endswith(".") and len(text) < 500
    assert SECRET not in "".join(traceback.format_exception(error))
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    return text


def refused(ask: Callable[[], object], *words: str) -> str:
    with pytest.raises(LedgerError) as caught:
        ask()
    text = said(caught.value)
    assert all(word in text for word in words), text
    return text

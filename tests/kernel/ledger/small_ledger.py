"""A small table and a ledger for it, as the tests of the ledger use them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

import privet
from privet.kernel import Charge, Ledger
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.kernel.ledger.store import Purpose
from privet.table import ProtectedTable

DATASET = "people"
DOMAIN = Domain((Nominal("sex", ("f", "m")), Nominal("old", ("no", "yes"))))
FRAME = pd.DataFrame({"sex": ["f", "m", "m"] * 20, "old": ["no", "yes"] * 30})
TENTH = Fraction(1, 10)


def tenth(key: str | None = None, fingerprint: str = "f", loss: Fraction = TENTH) -> Charge:
    return Charge("count", '{"question":"count"}', fingerprint, "all rows", "0.1", loss, key)


def new_ledger(path: Path | str, budget: Fraction = Fraction(1)) -> Ledger:
    ledger = Ledger.open(path)
    ledger.register(DATASET, source="here", budget=budget)
    return ledger


def append_line(
    ledger: Ledger, kind: str, body: Mapping[str, Any], dataset: str | None = None, analyst: str | None = None
) -> int:
    """Write a line of a kind that is reserved: no command writes it. Return its number."""
    with ledger._transaction(Purpose("write to the ledger")) as log:
        return log.append(kind, dataset, log.new_analyst_id(analyst), body).number


def table_at(path: Path | str, analyst: str = "ada", budget: object = 1, domain: Domain = DOMAIN) -> ProtectedTable:
    return privet.open(FRAME, domain, budget=budget, ledger=path, name=DATASET, analyst=analyst)


def close(ledger: Ledger) -> None:
    """As when its process ends: the file is then complete by itself."""
    ledger.close()


def one_sentence(error: BaseException) -> str:
    text = str(error)
    assert "\n" not in text and text.endswith(".") and len(text) < 500
    assert error.__cause__ is None
    return text


def stored(folder: Path, name: str = "people.csv") -> Path:
    FRAME.to_csv(folder / name, index=False)
    return folder / name

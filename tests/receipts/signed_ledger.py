"""A small ledger with a signing key, some answers and a model: what the tests of receipts start from."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from privet import ledger_lines
from privet.kernel import Charge, Ledger
from privet.receipts import Receipts, SigningKey, new_key

MODEL = '{"privet-model": 1, "of": "the tests"}'
TENTH = Fraction(1, 10)


def charged(ledger: Ledger, analyst: str = "ada", question: str = "count", private: bool = True) -> int:
    """Charge and answer a question; return its entry."""
    charge = Charge(question, '{"question":"count"}', "f", "all rows", "0.1", TENTH)
    entry, _ = ledger.charge("people", analyst, charge)
    ledger.store(entry.id, f'{{"answer":[{39 + entry.id}],"private":{str(private).lower()}}}', private=private)
    return entry.id


def signed_ledger(folder: Path | str, name: str = "people.ledger", answers: int = 3) -> tuple[Receipts, SigningKey]:
    """Make a ledger at a folder, or at an address, and a key for it."""
    ledger = Ledger.open(folder / name if isinstance(folder, Path) else folder)
    ledger.register("people", source="here", budget=Fraction(10_000))
    key = new_key(ledger, "hospital.example")
    entries = [charged(ledger) for _ in range(answers)]
    facts = {"entries": entries[1:], "algorithm": "tests", "epsilon": "1/5", "spent": "1/5"}
    ledger_lines.store_model(ledger, "people", "ada", None, MODEL, facts, keep=False)
    charged(ledger, "grace", "mean(age) of <b>someone</b>")
    return Receipts(ledger), key

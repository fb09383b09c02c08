"""Small tables, and trees that are grown on them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

import privet
from privet.kernel.accounting import as_epsilon
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.lab import open_public
from privet.learners.growth import grow
from privet.learners.plan import Plan
from privet.learners.presets import PRESETS
from privet.models.tree import Ensemble
from privet.table import ProtectedTable
from privet.text import decimal_text

PRIVATE = [name for name in PRESETS if name not in ("id3", "c45")]
FORESTS = ["jagannathan", "patil-singh", "snr-forest", "maxforest", "hanisch-forest"]
VARIANTS = ("corrected", "published")
CASES = [(name, variant) for name in PRIVATE for variant in PRESETS[name].variants]
LARGE = 1_000_000
SURE = as_epsilon(100_000)  # no noise is to be seen, so no stop rule fires where there is a row


def _binary(attributes: int = 11, cells: int = 2, **bounds: int) -> Domain:
    columns = (Nominal(f"a{i}", tuple(range(cells))) for i in range(attributes))
    return Domain((*columns, Nominal("y", ("no", "yes"))), target="y", **bounds)


BINARY = _binary(max_rows=1000)
MIXED = Domain(
    (
        Numeric("age", Fraction(0), Fraction(99), Fraction(1), bins=3, missing=True),
        Nominal("sex", ("f", "m"), other=True),
        Nominal("grade", (3, 1, 2)),
        Numeric("wage", Fraction(0), Fraction(5), Fraction("0.5"), bins=2),
        Nominal("town", ("a", "b", "c"), missing=True),
    ),
    target="grade",
    max_rows=1000,
)
DOMAINS = {"binary": BINARY, "mixed": MIXED}


def _frame(domain: Domain, rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    content: dict[str, Any] = {}
    for column in domain:
        if isinstance(column, Nominal):
            values = [*column.values, *["elsewhere"] * column.other, *[None] * column.missing]
            content[column.name] = rng.choice(np.array(values, dtype=object), rows)
        else:
            low, high = float(column.low), float(column.high)
            content[column.name] = rng.uniform(low - 1, high + 1, rows)
            if column.missing:
                content[column.name][rng.random(rows) < 0.1] = np.nan
    return pd.DataFrame(content)


FRAMES = {name: _frame(domain) for name, domain in DOMAINS.items()}
FRAMES["binary"]["y"] = np.where(FRAMES["binary"]["a0"] == FRAMES["binary"]["a3"], "yes", "no")


def _open(frame: pd.DataFrame, domain: Domain, plan: Plan | None = None, budget: Any = LARGE) -> ProtectedTable:
    """A protected table; rows that are public where the plan is not private."""
    if plan is not None and plan.errata:
        return open_public(frame, domain, rounded_noise=plan.rounded_noise, printed_ranges=plan.printed_ranges)
    return privet.open(frame, domain, budget=budget)


def _grow(table: ProtectedTable, plan: Plan, epsilon: Any, seed: int = 0) -> Ensemble:
    return grow(table, plan, as_epsilon(epsilon), np.random.default_rng(seed))


def _check_ledger(table: ProtectedTable, model: Ensemble) -> None:
    """The ledger has written down what the model says it cost, question by question."""
    record = model.privacy
    assert table.budget.spent == record.spent <= record.epsilon
    entries = {entry.id: entry for entry in table.budget.entries}
    assert [step.entry for step in record.steps] == sorted(entries)
    for step in record.steps:
        assert step.entry is not None
        assert entries[step.entry].epsilon == decimal_text(step.epsilon)
    assert sum((entry.loss for entry in entries.values()), Fraction(0)) == record.spent

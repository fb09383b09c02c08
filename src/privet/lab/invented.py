"""Rows that nobody has, drawn from a public domain: to try learners on before a private table is opened."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from privet.kernel import Date, Domain, Numeric

ROWS = 20_000


def invent(domain: Domain, rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """Values of the domain, each as likely as another, and classes by a random rule.

    A class is as likely as its score says, a sum of an effect of each attribute and of one pair: enough for
    learners to differ, and nothing of it is about people.
    """
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    score = np.zeros((rows, len(domain.classes)))
    codes = []
    for name in domain.attributes:
        column = domain[name]
        if isinstance(column, Numeric):
            grid = rng.integers(0, column.grid_size, rows)
            values = [column.value_at(int(k)) for k in grid]
            columns[name] = [column.text(value) if isinstance(column, Date) else float(value) for value in values]
            place = grid / max(column.grid_size - 1, 1)
        else:
            code = rng.integers(0, len(column.values), rows)
            columns[name] = [column.values[k] for k in code]
            place = rng.permutation(len(column.values))[code] / max(len(column.values) - 1, 1)
        codes.append(place > 0.5)
        score += rng.exponential() * np.outer(place - 0.5, rng.normal(size=score.shape[1]))
    if len(codes) > 1:
        one, other = rng.choice(len(codes), 2, replace=False)
        score += 2 * np.outer(codes[one] ^ codes[other], rng.normal(size=score.shape[1]))
    chosen = (3 * score + rng.gumbel(size=score.shape)).argmax(axis=1)
    target = domain.target_column
    columns[target.name] = [target.values[k] for k in chosen]
    return pd.DataFrame(columns)[list(domain.names)]

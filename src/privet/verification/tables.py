"""Tables to test with: a small public domain, and pairs of tables that differ by one person.

The worst pairs are known for each kind of score, so they come first; random ones follow, and
`climb` looks for worse ones in small steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from privet.column import Nominal, Numeric
from privet.domain import Domain

BINARY = ("0", "1")
HIGH = 7  # of the numeric column

# Two binary attributes, a number, a binary class: small enough to enumerate, rich enough for every question.
DOMAIN = Domain(
    (
        Nominal("a", BINARY),
        Nominal("b", BINARY),
        Numeric("x", Fraction(0), Fraction(HIGH), Fraction(1), bins=2),
        Nominal("y", BINARY),
    ),
    target="y",
    max_rows=64,
)
ROW: dict[str, Any] = {"a": "0", "b": "0", "x": 3, "y": "0"}


@dataclass(frozen=True)
class Pair:
    """Rows, and one person more."""

    name: str
    rows: tuple[dict[str, Any], ...]
    person: dict[str, Any]

    @property
    def left(self) -> pd.DataFrame:
        return _frame(self.rows)

    @property
    def right(self) -> pd.DataFrame:
        return _frame((*self.rows, self.person))

    @property
    def probe(self) -> pd.DataFrame:
        """The person alone."""
        return _frame((self.person,))


def _frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame([{**ROW, **row} for row in rows], columns=list(ROW))


def _times(count: int, **row: Any) -> tuple[dict[str, Any], ...]:
    return ({**ROW, **row},) * count


def known_pairs() -> tuple[Pair, ...]:
    """The worst cases of counts, sums and scores."""
    return (
        Pair("a person in an empty table", (), {**ROW, "x": HIGH, "y": "1"}),
        # one attribute wins a point, the others none: the extreme of `max`
        Pair("a person who breaks a tie", _times(1), {**ROW, "a": "1", "y": "1"}),
        # a: the person spoils a pure cell; b: a cell of their own; the extreme of gini and infogain
        Pair("a person of another class in a pure cell", _times(30), {**ROW, "b": "1", "y": "1"}),
        Pair("a person who joins two equal halves", (*_times(4, a="1", y="1"), *_times(4, x=HIGH)), {**ROW, "x": HIGH}),
    )


def random_pair(rng: np.random.Generator, most: int = 12) -> Pair:
    """Random rows and a random person."""
    rows = tuple(_random_row(rng) for _ in range(int(rng.integers(most + 1))))
    return Pair(f"{len(rows)} random rows and a random person", rows, _random_row(rng))


def _random_row(rng: np.random.Generator) -> dict[str, Any]:
    a, b, y = (str(bit) for bit in rng.integers(2, size=3))
    return {"a": a, "b": b, "x": int(rng.integers(HIGH + 1)), "y": y}


def climb(start: Pair, loss: Callable[[Pair], float], steps: int, rng: np.random.Generator) -> Pair:
    """Hill climbing: change a row, add one, drop one or change the person; keep what loses no less."""
    best, worst = start, loss(start)
    for _ in range(steps):
        tried = _changed(best, rng)
        found = loss(tried)
        if found >= worst:
            best, worst = tried, found
    return best


def _changed(pair: Pair, rng: np.random.Generator) -> Pair:
    rows, person = list(pair.rows), pair.person
    change = int(rng.integers(4))
    if change == 0:
        person = _random_row(rng)
    elif change == 1 or not rows:
        rows.append(_random_row(rng))
    elif change == 2:
        del rows[int(rng.integers(len(rows)))]
    else:
        rows[int(rng.integers(len(rows)))] = _random_row(rng)
    return Pair(f"{len(rows)} rows and a person, found by hill climbing", tuple(rows), person)

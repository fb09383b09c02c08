"""Tables to test with: a small public domain, and pairs of tables that differ by one person.

The worst pairs are known for each kind of score, so they come first. Others cross a boundary
that only careless code has: a count that is rounded before its noise, cells that are told in
the order of their exact counts, a cell that has its first row. Random ones follow, and `climb`
looks for worse ones in small steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from privet.kernel import Domain, Nominal, Numeric

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


def boundary_pairs(large: bool = False) -> tuple[Pair, ...]:
    """Pairs that cross roundings, ties, orders and empty cells; with `large`, more rows than `DOMAIN` allows for.

    There are two kinds of rows and the person is of the second. A count is rounded down at a multiple, up after
    one, and to the nearest one halfway between two. The number of all rows, or of those like the person, crosses such a
    place for 2, 3, 5, 10, 20, 25, 50 and 100; for 64 and 1000 only where it is rounded down or up.
    """
    small = (
        # all rows 14 -> 15: the nearest 10 and 2, down to 5 and 3
        ("a person who begins a cell", 14, 0),
        # of their kind 14 -> 15, all 29 -> 30; in rising order of size the cells change places
        ("a person who makes a tie", 15, 14),
        # of their kind 25 -> 26, all 50 -> 51: up to 25 and 50; in falling order the cells change places
        ("a person who breaks a tie of many", 25, 25),
        # of their kind 7 -> 8, all 47 -> 48: the nearest 5, of their kind the nearest 3; down to 8 and 16
        ("a person in the eighth place of a cell", 40, 7),
        # all rows 63 -> 64
        ("a person who fills a table", 63, 0),
    )
    larger = (
        ("a fiftieth person of their kind", 25, 49),  # all rows 74 -> 75: the nearest 50
        ("a hundredth person", 0, 99),
        ("a person who breaks a tie of hundreds", 100, 100),  # 100 -> 101: up to 100
        ("a person who makes a tie of 75", 75, 74),  # the nearest 50; all rows 149 -> 150, the nearest 100 and 20
        ("a 38th person of their kind", 50, 37),  # the nearest 25; all rows 87 -> 88, the same
        ("a thousandth person", 0, 999),
    )
    person = {**ROW, "a": "1", "b": "1", "x": HIGH, "y": "1"}
    return tuple(
        Pair(name, (*_times(others), *_times(like, **person)), person)
        for name, others, like in (*small, *(larger if large else ()))
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

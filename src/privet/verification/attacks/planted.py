"""What attacks bring along: rows made from a public domain, questions for any domain, and prices."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pandas as pd

from privet.errors import PrivetError
from privet.kernel import Column, Domain, Nominal, Numeric, text_of

LARGE = 1_000_000
EXACT = 10_000  # at this epsilon no noise is to be seen, on `SMALL` and other narrow columns
LITTLE = Fraction(1, 1000)  # what the table under attack is asked with
CANARY = "yellow-93b1"  # a word of a row that nobody may read anywhere

SMALL = Domain(
    (
        Nominal("job", ("clerk", "nurse"), other=True),
        Numeric("wage", Fraction(0), Fraction(100), Fraction(1), bins=4, missing=True),
        Nominal("ill", ("no", "yes")),
    ),
    target="ill",
    max_rows=1000,
)

Ask = Callable[[Any], object]


def rows(domain: Domain, size: int = 40) -> pd.DataFrame:
    """Rows drawn from a public domain, the same every time.

    >>> rows(SMALL, 3)["ill"].tolist()
    ['no', 'no', 'yes']
    """
    coins = random.Random(size)
    cells = {column.name: [_value(column, coins) for _ in range(size)] for column in domain}
    return pd.DataFrame(cells, dtype=object)


def _value(column: Column, coins: random.Random) -> object:
    if isinstance(column, Nominal):
        return text_of(coins.choice(column.values))
    return column.number(column.value_at(coins.randrange(column.grid_size)))


def joined(frame: pd.DataFrame, *more: Sequence[object]) -> pd.DataFrame:
    """A frame with more rows at its end."""
    return pd.concat([frame, pd.DataFrame(list(more), columns=frame.columns, dtype=object)], ignore_index=True)


def narrowest(domain: Domain) -> Column:
    """The column with the fewest cells: what is asked of it is quick on any domain."""
    return min(domain, key=lambda column: column.size)


def numbers(domain: Domain) -> list[Numeric]:
    return [column for column in domain if isinstance(column, Numeric)]


def questions(domain: Domain) -> dict[str, Ask]:
    """A question of each kind that a domain has columns for."""
    column, label = narrowest(domain).name, narrowest(domain).labels[0]
    asks: dict[str, Ask] = {
        "count": lambda table: table.count(LITTLE),
        "where": lambda table: table.where({column: label}).count(LITTLE),
        "histogram": lambda table: table.histogram(column, epsilon=LITTLE),
        "majority": lambda table: table.majority(column, LITTLE),
        "parts": lambda table: table.partition(column).count(LITTLE),
        "coins": lambda table: table.scatter(3, 7).count(LITTLE),
    }
    for number in numbers(domain)[:1]:
        asks |= _about_numbers(number)
    rivals = [domain[name] for name in domain.attributes] if domain.target is not None else []
    if rivals:
        rival = min(rivals, key=lambda each: each.size).name
        asks["select"] = lambda table: table.select("gini", LITTLE, attributes=[rival])
        asks["choices"] = lambda table: table.scatter(2, 7).select("max", LITTLE, attributes=[rival])
    return asks


def _about_numbers(number: Numeric) -> dict[str, Ask]:
    name, low = number.name, number.number(number.low)
    return {
        "sum": lambda table: table.sum(name, LITTLE),
        "mean": lambda table: table.mean(name, LITTLE),
        "median": lambda table: table.median(name, LITTLE),
        "quantile": lambda table: table.quantile(name, 0.9, LITTLE),
        "range": lambda table: table.where({name: (low, None)}).count(LITTLE),
        "threshold": lambda table: table.partition((name, low)).count(LITTLE),
    }


def cost(table: Any, ask: Ask) -> Fraction:
    """What a question made the table pay."""
    before = Fraction(table.budget.spent)
    ask(table)
    return Fraction(table.budget.spent) - before


def refused(table: Any, ask: Ask) -> bool:
    """Is a question turned down as not well formed, not allowed or too dear?"""
    try:
        ask(table)
    except (PrivetError, TypeError, ValueError):
        return True
    return False


def lines(table: Any, since: int = 0) -> list[tuple[Any, ...]]:
    """What the ledger says about each charge, without the answers."""
    return [(e.scope, e.question, e.epsilon, e.loss, e.key) for e in table.budget.entries[since:]]

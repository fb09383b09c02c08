"""Attacks on numbers: noise that does not hide, sums that are not exact, numbers that are none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from privet.kernel import Domain, Numeric
from privet.verification.attacks.planted import EXACT, LARGE, LITTLE, SMALL, joined, narrowest, numbers, rows
from privet.verification.layer import Layer

_TRIES = 12


def low_order_bits(layer: Layer) -> list[str]:
    """Look at the last bits of answers: noise drawn as a float lands on another grid for each true value (Mironov)."""
    found = set(_off_grid(layer.live(budget=LARGE)))
    with layer.open(rows(SMALL), SMALL, budget=LARGE) as table:
        found |= set(_off_grid(table))
    return sorted(found)


def _off_grid(table: Any) -> list[str]:
    domain = table.domain
    seen = {"count": all(_whole(table.count(LITTLE), Fraction(1)) for _ in range(_TRIES))}
    cells = np.asarray(table.histogram(narrowest(domain).name, epsilon=LITTLE))
    seen["histogram"] = all(_whole(value, Fraction(1)) for value in cells.ravel().tolist())
    for column in numbers(domain)[:1]:
        sums = [table.sum(column.name, LITTLE) for _ in range(_TRIES)]
        means = [table.mean(column.name, LITTLE) for _ in range(_TRIES)]
        medians = [table.median(column.name, LITTLE) for _ in range(_TRIES)]
        seen["sum"] = all(_whole(value, column.unit) for value in sums)
        seen["mean"] = all(
            _whole(mean.deviation, column.step / 2) and _whole(mean.count, Fraction(1)) for mean in means
        )
        seen["median"] = all(_on_grid(value, column) for value in medians)
    return [f"a {what} has bits that no multiple of its unit has." for what, clean in seen.items() if not clean]


def _whole(value: float, unit: Fraction) -> bool:
    """Is a number the float of a whole multiple of a unit?"""
    return math.isfinite(value) and float(round(Fraction(value) / unit) * unit) == float(value)


def _on_grid(value: float, column: Numeric) -> bool:
    index = column.grid(float(value))
    return index is not None and float(column.value_at(index)) == float(value)


def swallowed_noise(layer: Layer) -> list[str]:
    """Ask for a sum so large that small float noise rounds away (Haney): the same answer again is the exact one."""
    domain = Domain((Numeric("x", Fraction(0), Fraction(2**53), Fraction(2**30)),))
    with layer.open(pd.DataFrame({"x": [2.0**53] * 500}), domain, budget=LARGE) as table:
        answers = [float(table.sum("x", 1)) for _ in range(_TRIES)]
    found = []
    if len(set(answers)) < _TRIES / 2:
        found.append("sums of large values come back without noise.")
    if not all(_whole(answer, Fraction(2**30)) for answer in answers):
        found.append("sums of large values have bits that no multiple of their unit has.")
    return found


def float_sums(layer: Layer) -> list[str]:
    """Bring rows whose sum is lost, drifts or overflows where it is a sum of floats."""
    found = []
    for values, high, step, truth, fault in (
        ([2.0**53, 1e300, *[1.0] * 1000, -1e300, -(2.0**53)], 10_000, "1", 1000, "depends on the order of rows"),
        ([0.1] * 1000, 1000, "0.1", 100, "drifts with the number of rows"),
    ):
        domain = Domain((Numeric("x", Fraction(-high), Fraction(high), Fraction(step)),))
        with layer.open(pd.DataFrame({"x": values}), domain, budget=LARGE) as table:
            if table.sum("x", LARGE) != truth:
                found.append(f"a sum {fault}.")
    return found + _overflow(layer)


def _overflow(layer: Layer) -> list[str]:
    high, size = 2**53, 1100  # together more than 2^63
    domain = Domain((Numeric("x", Fraction(0), Fraction(high), Fraction(2**30)),))
    with layer.open(pd.DataFrame({"x": [float(high)] * size}), domain, budget=LARGE) as table:
        total = float(table.sum("x", EXACT))
    return [] if abs(total / (high * size) - 1) < 0.01 else ["a sum overflows."]


def poison(layer: Layer) -> list[str]:
    """Add one row with NaN, an infinity or nothing where a number is: it must not turn a whole sum into itself."""
    plain = rows(SMALL)
    wages = [float(wage) for wage in plain["wage"]]
    found = []
    for what, values, totals in (
        ("NaN or null", [math.nan, None], [sum(wages)]),
        ("an infinity", [math.inf, -math.inf], [sum(wages), sum(wages) + 100]),  # no number in a file of texts
        ("a huge number", [1e308, -1e308, -0.0], [sum(wages) + 100]),
    ):
        frame = joined(plain, *(["clerk", value, "no"] for value in values)).astype({"wage": float})
        with layer.open(frame, SMALL, budget=LARGE) as table:
            found += [f"{what} in a row {fault}." for fault in _poisoned(table, len(frame), wages, totals)]
    return found + _poisoned_domain(layer)


def _poisoned(table: Any, size: int, wages: Sequence[float], totals: Sequence[float]) -> list[str]:
    total, mean, median = table.sum("wage", EXACT), table.mean("wage", EXACT), table.median("wage", EXACT)
    missing = table.where(wage="<missing>").count(EXACT)
    means = [each / (size - missing) for each in totals] if math.isfinite(missing) and size > missing else []
    faults = []
    if total not in totals:
        faults.append("spoils the sum")
    if not any(math.isclose(mean, each) for each in means):
        faults.append("spoils the mean")
    if not min(wages) <= median <= max(wages):
        faults.append("spoils the median")
    if table.count(EXACT) != size:
        faults.append("changes the count by more than itself")
    return faults


def _poisoned_domain(layer: Layer) -> list[str]:
    """The same in the domain of the table under attack, where the answers have noise and must be numbers."""
    domain = layer.live(budget=LARGE).domain
    if not numbers(domain):
        return []
    name = numbers(domain)[0].name
    plain = rows(domain)
    spoiled = [[math.nan if isinstance(column, Numeric) else plain[column.name][0] for column in domain]]
    with layer.open(joined(plain, *spoiled), domain, budget=LARGE) as table:
        answers = [table.sum(name, LITTLE), table.mean(name, LITTLE), table.median(name, LITTLE)]
    return (
        [] if all(math.isfinite(answer) for answer in answers) else ["NaN in a row makes an answer that is no number."]
    )

"""What falls outside a domain, for the owner's eyes only.

The one place where exact facts about rows are shown. They are written to a terminal,
under the words "not a release"; there is no other route to them: no return value, no
file, no JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from privet.errors import DataError
from privet.kernel.addresses import source_of
from privet.kernel.column import Column, Numeric, number_of
from privet.kernel.domain import Domain
from privet.kernel.engines.duckdb.engine import DuckDBEngine
from privet.kernel.limits import shown

_EXAMPLES = 5
_LONGEST = 100  # characters of an example


@dataclass
class _Tally:
    """Rows with values of one kind: how many rows, how many values, and the most frequent of them."""

    rows: int = 0
    values: int = 0
    most: list[tuple[int, str]] = field(default_factory=list)

    def add(self, value: object, rows: int) -> None:
        self.rows += rows
        self.values += 1
        example = (rows, shown(repr(value), _LONGEST))
        self.most = sorted([*self.most, example], key=lambda pair: -pair[0])[:_EXAMPLES]

    def __str__(self) -> str:
        examples = ", ".join(f"{value} ({rows})" for rows, value in self.most)
        more = f" and {self.values - _EXAMPLES} other values" if self.values > _EXAMPLES else ""
        return f"{self.rows} row{'s' * (self.rows != 1)}, {examples}{more}"


def print_outside(data: str | Path, domain: Domain) -> None:
    """Print what of a file or table the domain leaves out or clamps."""
    if not sys.stdout.isatty():
        raise DataError(
            "`privet domain check` shows exact facts about private rows and writes to a terminal only; run it without "
            "redirecting its output."
        )
    source = source_of(data)
    engine = source.open(domain)
    try:
        exact_all, exact_fitting = engine.exact_fit()
        exact_misshapen = engine.exact_misshapen() if isinstance(engine, DuckDBEngine) else 0
        lines = [line for column in domain for line in _outside(column, engine.exact_values(column.name))]
        problem = False
    except Exception:  # raised outside this block: the engine's words may quote a row
        problem = True
    finally:
        engine.close()
    if problem:
        raise DataError(f"cannot read {source.title}; check it.")
    print("not a release: exact facts about private rows, for the data owner alone")
    exact_out = exact_all - exact_fitting
    print(
        f"{exact_fitting} of {exact_all} rows fit the domain, {exact_out} {'is' if exact_out == 1 else 'are'} left out"
    )
    if exact_misshapen:
        print(f"  {exact_misshapen} of them for having more or fewer fields than the header")
    print("\n".join(lines) if lines else "every value of every declared column fits")
    if sum(": leaves out " in line for line in lines) > 1:
        print("a row that several columns leave out is counted with each of them")


def _outside(column: Column, exact_values: Iterable[tuple[object, int]]) -> list[str]:
    lost, clamped = _Tally(), _Tally()
    other = missing = 0
    for value, rows in exact_values:
        code = column.code(value)
        if code is None:
            lost.add(value, rows)
        elif code == column.missing_code:
            missing += rows
        elif isinstance(column, Numeric):
            number = number_of(value)
            if number is not None and not column.low <= number <= column.high:
                clamped.add(value, rows)
        elif code == column.other_code:
            other += rows
    facts = [("leaves out", lost), ("clamps", clamped)]
    lines = [f"  {column.name}: {verb} {tally}" for verb, tally in facts if tally.values]
    lines += [f"  {column.name}: counts {other} rows as <other>"] * (other > 0)
    lines += [f"  {column.name}: counts {missing} rows as <missing>"] * (missing > 0)
    return lines

"""What falls outside a domain, for the owner's eyes only.

The one place where exact facts about rows are shown. They are written to a terminal,
under the words "not a release"; there is no other route to them: no return value, no
file, no JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from privet.errors import DataError
from privet.kernel.column import MISSING, OTHER, Column, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.addresses import source_of
from privet.text import shown

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
        more = f" and {_many(self.values - _EXAMPLES, 'other value')}" if self.values > _EXAMPLES else ""
        return f"{_many(self.rows, 'row')}, {examples}{more}"


def print_outside(data: str | Path, domain: Domain) -> None:
    """Print what of a file or table the domain leaves out or clamps.

    Parameters
    ----------
    data : str or Path
        A file or an address, as `privet.open` takes it.
    domain : Domain

    Raises
    ------
    DataError
        The standard output is no terminal, or the data cannot be read.
    """
    if not sys.stdout.isatty():
        raise DataError(
            "`privet domain check` shows exact facts about private rows and writes to a terminal only; run it without "
            "redirecting its output."
        )
    from privet.kernel.engines.duckdb.engine import DuckDBEngine

    source = source_of(data)
    engine = source.open(domain)
    try:
        exact_all, exact_fitting = engine.exact_fit()
        exact_persons = engine.exact_persons() if domain.person is not None else {}
        exact_misshapen = engine.exact_misshapen() if isinstance(engine, DuckDBEngine) else 0
        lines = [line for column in domain for line in _outside(column, engine.exact_values(column.name))]
        problem = False
    except DataError:
        raise
    except Exception:  # raised outside this block: the engine's words may quote a row
        problem = True
    finally:
        engine.close()
    if problem:
        raise DataError(f"cannot read {source.title}; check it.")
    print("not a release: exact facts about private rows, for the data owner alone")
    if domain.person is not None:
        exact_fitting = sum(rows * number for rows, number in exact_persons.items())
    exact_out = exact_all - exact_fitting
    fit = "fit the domain" + " and name a person" * (domain.person is not None)
    print(f"{exact_fitting} of {exact_all} rows {fit}, {exact_out} {'is' if exact_out == 1 else 'are'} left out")
    if exact_misshapen:
        print(f"  {exact_misshapen} of them for having more or fewer fields than the header")
    if domain.person is not None:
        print("\n".join(_of_persons(exact_persons, domain.rows_per_person)))
    print("\n".join(lines) if lines else "every value of every declared column fits")
    if any("\ufffd" in line for line in lines):
        print("\ufffd stands for bytes that are not UTF-8; save the file as UTF-8")
    if sum(": leaves out " in line for line in lines) > 1:
        print("a row that several columns leave out is counted with each of them")


def _of_persons(exact_persons: Mapping[int, int], most: int) -> list[str]:
    """Say how many rows persons have, and what bounds on them leave out."""
    persons, largest = sum(exact_persons.values()), max(exact_persons, default=0)
    lines = [f"  these are of {persons} persons, up to {largest} of each"]
    bounds = sorted({most, *(bound for bound in (1, 2, 5, 10, 20, 50, 100) if bound < largest), largest} - {0})
    for bound in bounds:
        out = sum((rows - bound) * number for rows, number in exact_persons.items() if rows > bound)
        whose = sum(number for rows, number in exact_persons.items() if rows > bound)
        declared = ", as declared," if bound == most else ""
        rows_out = f"{_many(out, 'row')} of {_many(whose, 'person')}" if out else "none"
        lines.append(f"  rows_per_person = {bound}{declared} leaves out {rows_out}")
    return lines


def _many(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'s' * (number != 1)}"


def _outside(column: Column, exact_values: Iterable[tuple[object, int]]) -> list[str]:
    lost, clamped = _Tally(), _Tally()
    counted = {OTHER: 0, MISSING: 0}
    for value, rows in exact_values:
        code = column.code(value)
        if code is None:
            lost.add(value, rows)
        elif column.labels[code] in counted:
            counted[column.labels[code]] += rows
        elif isinstance(column, Numeric):
            number = column.read(value)
            if number is not None and not column.low <= number <= column.high:
                clamped.add(value, rows)
    facts = [("leaves out", lost), ("clamps", clamped)]
    lines = [f"  {column.name}: {verb} {tally}" for verb, tally in facts if tally.values]
    return lines + [
        f"  {column.name}: counts {_many(rows, 'row')} as {label}" for label, rows in counted.items() if rows
    ]

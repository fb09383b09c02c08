"""What falls outside a domain, for the owner's eyes only.

The one place where exact facts about rows are shown. They are written to a terminal,
under the words "not a release"; there is no other route to them: no return value, no
file, no JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from privet.column import Column, Numeric, number_of
from privet.domain import Domain
from privet.errors import DataError
from privet.kernel.addresses import source_of

_EXAMPLES = 5


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
        lines = [line for column in domain for line in _outside(column, engine.exact_values(column.name))]
        problem = False
    except Exception:  # raised outside this block: the engine's words may quote a row
        problem = True
    finally:
        engine.close()
    if problem:
        raise DataError(f"cannot read {source.title}; check it.")
    print("not a release: exact facts about private rows, for the data owner alone")
    print(f"{exact_fitting} of {exact_all} rows fit the domain, {exact_all - exact_fitting} are left out")
    print("\n".join(lines) if lines else "every value of every declared column fits")


def _outside(column: Column, exact_values: Iterable[tuple[object, int]]) -> list[str]:
    lost: list[tuple[object, int]] = []
    clamped: list[tuple[object, int]] = []
    other = missing = 0
    for value, rows in exact_values:
        code = column.code(value)
        if code is None:
            lost.append((value, rows))
        elif code == column.missing_code:
            missing += rows
        elif isinstance(column, Numeric):
            number = number_of(value)
            if number is not None and not column.low <= number <= column.high:
                clamped.append((value, rows))
        elif code == column.other_code:
            other += rows
    facts = [("leaves out", lost), ("clamps", clamped)]
    lines = [f"  {column.name}: {verb} {_total(values)} rows, {_examples(values)}" for verb, values in facts if values]
    lines += [f"  {column.name}: counts {other} rows as <other>"] * (other > 0)
    lines += [f"  {column.name}: counts {missing} rows as <missing>"] * (missing > 0)
    return lines


def _total(values: list[tuple[object, int]]) -> int:
    return sum(rows for _, rows in values)


def _examples(values: list[tuple[object, int]]) -> str:
    most = sorted(values, key=lambda pair: -pair[1])
    shown = ", ".join(f"{value!r} ({rows})" for value, rows in most[:_EXAMPLES])
    return shown + (f" and {len(most) - _EXAMPLES} other values" if len(most) > _EXAMPLES else "")

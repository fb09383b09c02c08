"""From source rows to codes in SQL: `column.py` as syntax trees.

Every expression is total: any value of any row gets a code or NULL, and rows with a
NULL are left out, so that no row can make the statement fail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum

from sqlglot import exp

from privet.column import GRID_SLACK, LONGEST_NUMBER, Nominal, Numeric, text_of
from privet.domain import Domain
from privet.kernel.engines.sql import Dialect, Sql, add, big, case, col, conjunction, double, num

_SOURCE = "source_rows"  # source columns are always named with it: a column may have any name
_JOIN_FROM = 32  # a nominal column with more values is coded by a join instead of a CASE


class Kind(Enum):
    """How a source column is stored."""

    TEXT = "text"
    INTEGER = "integer"
    FLOAT = "float"
    BOOLEAN = "boolean"


def coded(
    source: Sql, domain: Domain, fields: Mapping[str, str], kinds: Mapping[str, Kind], dialect: Dialect
) -> exp.Select:
    """SELECT every code and grid index FROM source, leaving out the rows that do not fit the domain.

    `fields` and `kinds` say which source column holds each declared one, and how it is stored.
    """
    numbers: list[Sql] = []
    grids: list[Sql] = []
    codes: list[Sql] = []
    narrow: list[Sql] = []
    joins: list[tuple[Sql, Sql]] = []
    for i, column in enumerate(domain):
        value, kind = _of(_SOURCE, fields[column.name]), kinds[column.name]
        narrow.append(_smallest(f"c{i}", column.size))
        if isinstance(column, Numeric):
            numbers.append(_number(value, kind, dialect).as_(f"x{i}"))
            grids.append(_grid(col(f"x{i}"), column, dialect).as_(f"g{i}"))
            codes += [_bin(col(f"g{i}"), column).as_(f"c{i}"), col(f"g{i}")]
            narrow.append(exp.cast(col(f"g{i}"), exp.DataType.Type.INT).as_(f"g{i}"))
            continue
        if kind is Kind.FLOAT:
            code = _code_of_float(value, column, dialect)
        elif kind is Kind.INTEGER and (whole := _whole_numbers(column)) is not None:
            code = _code(value.is_(exp.Null()), column, _codes_of_whole(value, whole))
        elif len(column.values) > _JOIN_FROM and dialect.join_values:
            pairs = [(name, number) for number, name in enumerate(column.texts)]
            same = _text(value, kind, dialect).eq(_of(f"v{i}", "t"))
            joins.append((exp.values(pairs, alias=f"v{i}", columns=["t", "k"]), same))
            found = _of(f"v{i}", "k")
            declared = [(found.is_(exp.Null()).not_(), found.copy())]
            code = _code(_no_text(value, kind, column, dialect), column, declared)
        else:
            read = _text(value, kind, dialect)
            branches = [(dialect.same_text(read.copy(), t), num(k)) for k, t in enumerate(column.texts)]
            code = _code(_no_text(value, kind, column, dialect), column, branches)
        numbers.append(code.as_(f"c{i}"))
        grids.append(col(f"c{i}"))
        codes.append(col(f"c{i}"))
    innermost = exp.select(*numbers).from_(exp.select(exp.Star()).from_(source).subquery(_SOURCE))
    for values, condition in joins:
        innermost = innermost.join(values, on=condition, join_type="left")
    fitting = innermost
    if any(isinstance(column, Numeric) for column in domain):
        fitting = exp.select(*codes).from_(exp.select(*grids).from_(innermost.subquery("numbers")).subquery("grids"))
    present = [col(f"c{i}").is_(exp.Null()).not_() for i in range(len(domain.columns))]
    return exp.select(*narrow).from_(fitting.subquery("fits")).where(conjunction(*present))


def _of(table: str, name: str) -> Sql:
    return exp.column(name, table=table, quoted=True)


def _smallest(name: str, size: int) -> Sql:
    """Codes as 16-bit numbers where they fit: every engine has those."""
    return exp.cast(col(name), exp.DataType.Type.SMALLINT if size < 2**15 else exp.DataType.Type.INT).as_(name)


def _text(value: Sql, kind: Kind, dialect: Dialect) -> Sql:
    if kind is Kind.BOOLEAN:
        return case([(value, exp.Literal.string("true")), (value.not_(), exp.Literal.string("false"))])
    return dialect.as_text(value)


def _whole_numbers(column: Nominal) -> list[tuple[int, int]] | None:
    """Codes and values that whole numbers can match; None where there are too many, or too large ones."""
    digits = [(k, t) for k, t in enumerate(column.texts) if t.removeprefix("-").isdecimal()]
    if len(digits) > _JOIN_FROM or any(len(t) > 18 for _, t in digits):
        return None
    return [(k, int(t)) for k, t in digits if str(int(t)) == t]


def _codes_of_whole(value: Sql, whole: Sequence[tuple[int, int]]) -> list[tuple[Sql, Sql]]:
    """A branch for each value; numbers that are their own codes, as 0 to 7 are, need one for all."""
    if len(whole) > 1 and list(whole) == [(k, k) for k in range(len(whole))]:
        return [(exp.Between(this=value.copy(), low=num(0), high=num(len(whole) - 1)), value.copy())]
    return [(value.copy().eq(num(number)), num(k)) for k, number in whole]


def _no_text(value: Sql, kind: Kind, column: Nominal, dialect: Dialect) -> Sql:
    """No value, or an empty text unless that is declared."""
    read = _text(value, kind, dialect)
    absent = read.is_(exp.Null())
    return absent if "" in column.texts else exp.or_(absent, dialect.same_text(read.copy(), ""))


def _code(absent: Sql, column: Nominal, branches: Sequence[tuple[Sql, Sql]]) -> Sql:
    """`Nominal.code` in SQL: missing, a declared value, or other; NULL where such a cell is not declared."""
    missing = exp.Null() if column.missing_code is None else num(column.missing_code)
    other = exp.Null() if column.other_code is None else num(column.other_code)
    # no value equals a declared one: where neither cell is declared, NULL is what is left in any case
    first = [] if column.missing_code is None and column.other_code is None else [(absent, missing)]
    return case([*first, *branches], other)


def _code_of_float(value: Sql, column: Nominal, dialect: Dialect) -> Sql:
    """Floats are compared as numbers: only declared values that are the text of a float can match one."""
    number = dialect.as_double(value)
    branches = [
        (number.eq(double(num(float(declared)))), num(k))
        for k, declared in enumerate(column.texts)
        if _is_float(declared) and text_of(float(declared)) == declared
    ]
    return _code(exp.or_(value.is_(exp.Null()), dialect.is_nan(number)), column, branches)


def _is_float(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def _number(value: Sql, kind: Kind, dialect: Dialect) -> Sql:
    """`number_of` in SQL."""
    if kind is Kind.BOOLEAN:
        return double(exp.cast(value, exp.DataType.Type.INT))
    if kind is not Kind.TEXT:
        return dialect.as_double(value)
    written = dialect.as_text(value)
    short = exp.LTE(this=dialect.length(written.copy()), expression=num(LONGEST_NUMBER))
    return case([(short, dialect.read_number(written))])


def _grid(number: Sql, column: Numeric, dialect: Dialect) -> Sql:
    """`Numeric.grid` in SQL, with the same three floating-point operations; -1 for no number."""
    low, high = double(num(float(column.low))), double(num(float(column.high)))
    clamped = exp.Least(
        ignore_nulls=True, this=exp.Greatest(ignore_nulls=True, this=number, expressions=[low]), expressions=[high]
    )
    steps = exp.Div(
        this=exp.Paren(this=exp.Sub(this=clamped, expression=low.copy())), expression=double(num(float(column.step)))
    )
    index = big(exp.Floor(this=add(exp.Paren(this=steps), double(num(GRID_SLACK)))))
    inside = exp.Least(ignore_nulls=True, this=index, expressions=[num(column.grid_size - 1)])
    absent = exp.or_(number.copy().is_(exp.Null()), dialect.is_nan(number.copy()))
    return case([(absent, num(-1))], inside)


def _bin(grid: Sql, column: Numeric) -> Sql:
    missing = exp.Null() if column.missing_code is None else num(column.missing_code)
    branches = [(exp.LT(this=grid, expression=num(0)), missing)]
    branches += [(exp.LT(this=grid.copy(), expression=num(t)), num(i)) for i, t in enumerate(column.thresholds)]
    return case(branches, num(len(column.thresholds)))

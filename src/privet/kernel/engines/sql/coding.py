"""From source rows to codes in SQL: `column.py` as syntax trees.

Every expression is total: any value of any row gets a code or NULL, and rows with a
NULL are left out, so that no row can make the statement fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from sqlglot import exp

from privet.errors import DataError
from privet.kernel.column import GRID_SLACK, LONGEST_NUMBER, LONGEST_NUMERAL, Nominal, Numeric, is_numeral, spellings
from privet.kernel.date import LONGEST_DATE, Date, date_at
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import Cells
from privet.kernel.engines.sql.sql import (
    Dialect,
    Sql,
    add,
    big,
    case,
    col,
    columns,
    conjunction,
    double,
    joined,
    num,
    text,
)
from privet.kernel.person import BROKEN, WHOLE_FLOATS

_SOURCE = "source_rows"  # source columns are always named with it: a column may have any name
_JOIN_FROM = 32  # a nominal column with more values is coded by a join instead of a CASE


class Kind(Enum):
    """How a source column is stored."""

    TEXT = "text"
    INTEGER = "integer"
    SINGLE = "single"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    DAY = "day"  # a date, or a time without a zone: its day is the written one
    INSTANT = "instant"  # a time with a zone: its day is that of UTC, whatever zone a session shows


class Held(NamedTuple):
    """How a source holds a declared column: in which field, as what kind, and the name of its type."""

    field: str
    kind: Kind
    type: str = ""


_TYPE = re.compile(r"(\w+( WITH TIME ZONE)?)(\(.*\))?( collate \w+)?", re.DOTALL)  # a list ends in []
_OF_DATES = {Kind.TEXT, Kind.DAY, Kind.INSTANT}
_OF_OTHERS = set(Kind) - {Kind.DAY, Kind.INSTANT}


def unread(domain: Domain, name: str, kind: Kind | None, booleans: str = "booleans") -> str | None:
    """Return which types are read for a column, in words; None where it is stored in one of them."""
    if name in domain and isinstance(domain[name], Date):
        return None if kind in _OF_DATES else "privet reads texts, dates and timestamps as dates"
    return None if kind in _OF_OTHERS else f"privet reads texts, numbers and {booleans}"


def kind_of(
    domain: Domain, name: str, stored: str | None, kinds: Mapping[str, Kind], booleans: str = "booleans"
) -> Kind:
    """Return how a column is stored.

    Parameters
    ----------
    domain : Domain
    name : str
        A column that the domain declares, or the person column.
    stored : str or None
        Its type at the source, None where the source has no such column.
    kinds : mapping
        The types that are read, without their lengths.
    booleans : str
        What a database calls them.

    Raises
    ------
    DataError
        There is no such column, or its type is not read.
    """
    if stored is None:
        raise DataError(f"the table has no column '{name}', which the domain declares; check the domain file.")
    plain = _TYPE.fullmatch(stored)
    kind = None if plain is None else kinds.get(plain[1])
    if kind is None or unread(domain, name, kind) is not None:
        raise DataError(
            f"column '{name}' has type {re.split('[(<]', stored)[0]}; {unread(domain, name, None, booleans)}: cast it, "
            "or take it out of the domain file."
        )
    return kind


def coded(source: Sql, domain: Domain, held: Mapping[str, Held], dialect: Dialect) -> exp.Select:
    """SELECT every code and grid index FROM source, leaving out the rows that do not fit the domain.

    Where the domain names a person column, the text that names the person comes with them as `p`; `bounded` leaves out
    the surplus rows of each.

    `held` says how the source holds each declared column. The type of a decimal has its digits, as DECIMAL(12, 3):
    without it they may be any number.
    """
    numbers: list[Sql] = []
    grids: list[Sql] = []
    codes: list[Sql] = []
    narrow: list[Sql] = []
    joins: list[tuple[Sql, Sql]] = []
    for i, column in enumerate(domain):
        field, kind, stored = held[column.name]
        value = _of(_SOURCE, field)
        narrow.append(_smallest(f"c{i}", column.size))
        if isinstance(column, Numeric):
            read = _day if isinstance(column, Date) else _number
            numbers.append(read(value, kind, dialect).as_(f"x{i}"))
            grids.append(_grid(col(f"x{i}"), column, dialect).as_(f"g{i}"))
            codes += [_bin(col(f"g{i}"), column).as_(f"c{i}"), col(f"g{i}")]
            narrow.append(exp.cast(col(f"g{i}"), exp.DataType.Type.INT).as_(f"g{i}"))
            continue
        if kind in (Kind.SINGLE, Kind.FLOAT):
            code = _code_of_float(value, column, kind, dialect)
        elif kind is Kind.DECIMAL:
            code = _code_of_decimal(value, column, stored or "DECIMAL")
        elif kind is Kind.INTEGER and (whole := _whole_numbers(column, stored)) is not None:
            code = _code(value.is_(exp.Null()), column, _codes_of_whole(value, whole))
        elif len(column.values) > _JOIN_FROM and dialect.join_values:
            written = _text(value, kind, dialect)
            listed = {f"v{i}": (written, _names(column, kind))}
            if kind is Kind.TEXT and (numerals := _numerals(column)):
                listed[f"w{i}"] = (
                    case([(_has_one_point(written, dialect), dialect.without_zeros(written.copy()))]),
                    numerals,
                )
            for alias, (key, pairs) in listed.items():
                joins.append((exp.values(pairs, alias=alias, columns=["t", "k"]), key.eq(_of(alias, "t"))))
            matched = [(_of(alias, "k").is_(exp.Null()).not_(), _of(alias, "k")) for alias in listed]
            code = _code(_no_text(written, column, dialect), column, matched)
        else:
            code = _code_of_text(_text(value, kind, dialect), kind, column, dialect)
        numbers.append(code.as_(f"c{i}"))
        grids.append(col(f"c{i}"))
        codes.append(col(f"c{i}"))
    if domain.person is not None:
        person = held[domain.person]
        numbers.append(_person(_of(_SOURCE, person.field), person.kind, dialect).as_("p"))
        for layer in (grids, codes, narrow):
            layer.append(col("p"))
    innermost = exp.select(*numbers).from_(exp.select(exp.Star()).from_(source).subquery(_SOURCE))
    for values, condition in joins:
        innermost = innermost.join(values, on=condition, join_type="left")
    fitting = innermost
    if any(isinstance(column, Numeric) for column in domain):
        fitting = exp.select(*codes).from_(exp.select(*grids).from_(innermost.subquery("numbers")).subquery("grids"))
    present = [col(f"c{i}").is_(exp.Null()).not_() for i in range(len(domain.columns))]
    if domain.person is not None:
        present.append(col("p").is_(exp.Null()).not_())
    return exp.select(*narrow).from_(fitting.subquery("fits")).where(conjunction(*present))


def recut(rows: Sql, declared: Domain, cells: Cells) -> exp.Select:
    """SELECT the codes FROM rows of `coded` in other cells: a bin follows from the grid index of its source."""
    names = cells.domain.names
    codes = {name: col(name) for name in columns(cells.domain)}
    for column in cells.recut(declared):
        at, source = names.index(column.name), names.index(cells.source(column.name))
        size = exp.DataType.Type.SMALLINT if column.size < 2**15 else exp.DataType.Type.INT
        codes[f"c{at}"] = exp.cast(_bin(col(f"g{source}"), column), size).as_(f"c{at}")
        codes[f"g{at}"] = col(f"g{source}").as_(f"g{at}")
    return exp.select(*codes.values()).from_(rows)


def bounded(rows: Sql, domain: Domain, dialect: Dialect) -> exp.Select:
    """SELECT the codes FROM rows of `coded`, at most `rows_per_person` of each person: `person.counted` in SQL."""
    names = [col(name) for name in columns(domain)]
    persons = exp.select(*names, dialect.sha256(col("p")).as_("p")).from_(rows)
    hashed = [col("p")]
    for name in names:
        hashed += [exp.Literal.string(","), text(name.copy())]
    ordered = exp.select(*(name.copy() for name in names), col("p"), dialect.sha256(joined(*hashed)).as_("h"))
    window = exp.Window(
        this=exp.RowNumber(),
        partition_by=[col("p")],
        order=exp.Order(expressions=[exp.Ordered(this=col("h"), nulls_first=True)]),
    )
    numbered = exp.select(*(name.copy() for name in names), window.as_("r"))
    numbered = numbered.from_(ordered.from_(persons.subquery("persons")).subquery("ordered"))
    surplus = exp.LTE(this=col("r"), expression=num(domain.rows_per_person))
    return exp.select(*(name.copy() for name in names)).from_(numbered.subquery("ranked")).where(surplus)


def rows_of_persons(rows: Sql) -> exp.Select:
    """SELECT how many rows FROM rows of `coded` a person has (n), and how many persons have so many (m)."""
    each = exp.select(exp.Count(this=exp.Star()).as_("n")).from_(rows).group_by(col("p"))
    return exp.select(col("n"), exp.Count(this=exp.Star()).as_("m")).from_(each.subquery("persons")).group_by(col("n"))


def _person(value: Sql, kind: Kind, dialect: Dialect) -> Sql:
    """`person.person_text` in SQL: the text that names a person, NULL for nobody."""
    if kind in (Kind.INTEGER, Kind.BOOLEAN):
        return _text(value, kind, dialect)
    if kind in (Kind.TEXT, Kind.DECIMAL):
        written = dialect.as_text(value)
        short = dialect.without_zeros(written.copy())
        if kind is Kind.TEXT:
            short = case([(dialect.is_whole(short), short.copy())])
        pointed = case([(_has_one_point(written, dialect), short)])
        nobody = exp.or_(dialect.same_text(written.copy(), ""), dialect.contains(written, BROKEN))
        return case([(exp.not_(nobody), exp.Coalesce(this=pointed, expressions=[written.copy()]))])
    number = dialect.as_double(value)
    within = exp.LT(this=exp.Abs(this=number.copy()), expression=double(num(float(WHOLE_FLOATS))))
    is_whole = number.copy().eq(exp.Floor(this=number.copy()))
    # CASE inside CASE: the terms of an AND are evaluated in any order, and the cast of a larger one would fail
    return case([(within, case([(is_whole, text(big(number.copy())))]))])


def _of(table: str, name: str) -> Sql:
    return exp.column(name, table=table, quoted=True)


def _smallest(name: str, size: int) -> Sql:
    """Codes as 16-bit numbers where they fit: every engine has those."""
    return exp.cast(col(name), exp.DataType.Type.SMALLINT if size < 2**15 else exp.DataType.Type.INT).as_(name)


def _text(value: Sql, kind: Kind, dialect: Dialect) -> Sql:
    """The text of a stored text, boolean or whole number."""
    if kind is Kind.BOOLEAN:
        return case([(value, exp.Literal.string("true")), (value.not_(), exp.Literal.string("false"))])
    return dialect.as_text(value)


def _code_of_text(text: Sql, kind: Kind, column: Nominal, dialect: Dialect) -> Sql:
    """`column.canonical_text` in SQL: a text is a declared spelling, or one but for the zeros at its end."""
    branches = [(dialect.same_text(text.copy(), name), num(k)) for name, k in _names(column, kind)]
    if kind is Kind.TEXT and (numerals := _numerals(column)):
        cells = [exp.If(this=exp.Literal.string(name), true=num(k)) for name, k in numerals]
        shortened = exp.Case(this=dialect.without_zeros(text.copy()), ifs=cells, default=_other(column))
        branches.append((_has_one_point(text, dialect), shortened))
    return _code(_no_text(text, column, dialect), column, branches)


def _names(column: Nominal, kind: Kind) -> list[tuple[str, int]]:
    """The texts that stored values may have, each with its code; the most likely first."""
    names = [(text, k) for k, text in enumerate(column.texts)]
    if kind is not Kind.TEXT:
        return names
    # 1.0 is what many programs write for 1, and found sooner than by leaving out its zero
    names += [(f"{text}.0", k) for text, k in names if is_numeral(text) and "." not in text]
    return names + [(name, k) for k, text in enumerate(column.texts) for name in spellings(text)[1:]]


def _numerals(column: Nominal) -> list[tuple[str, int]]:
    """The declared numerals, each with its code: what a numeral is without the zeros at its end."""
    return [(name, k) for k, text in enumerate(column.texts) for name in spellings(text) if is_numeral(name)]


def _has_one_point(text: Sql, dialect: Dialect) -> Sql:
    """Return whether a text is short and has exactly one point.

    Only then may zeros at its end be dropped to find a numeral.
    """
    short = exp.LTE(this=dialect.length(text.copy()), expression=num(LONGEST_NUMERAL))
    one, two = (exp.Like(this=text.copy(), expression=exp.Literal.string(p)) for p in ("%.%", "%.%.%"))
    return exp.and_(short, one, exp.not_(two))


def _whole_numbers(column: Nominal, stored: str) -> list[tuple[int, int]] | None:
    """Codes and values that whole numbers can match; None where there are too many, or too large ones.

    A type without a sign (DuckDB's begin with U) has no negative ones: to compare it with one, DuckDB would cast the
    rows, and fail at a large one.
    """
    whole = sorted((code, n) for n, code in column.whole_numbers if n >= 0 or not stored.startswith("U"))
    return None if len(whole) > _JOIN_FROM or any(abs(number) >= 10**18 for _, number in whole) else whole


def _codes_of_whole(value: Sql, whole: Sequence[tuple[int, int]]) -> list[tuple[Sql, Sql]]:
    """A branch for each value; numbers that are their own codes, as 0 to 7 are, need one for all."""
    if len(whole) > 1 and list(whole) == [(k, k) for k in range(len(whole))]:
        return [(exp.Between(this=value.copy(), low=num(0), high=num(len(whole) - 1)), value.copy())]
    return [(value.copy().eq(num(number)), num(k)) for k, number in whole]


def _no_text(text: Sql, column: Nominal, dialect: Dialect) -> Sql:
    """No value, or an empty text unless that is declared."""
    absent = text.is_(exp.Null())
    return absent if "" in column.texts else exp.or_(absent, dialect.same_text(text.copy(), ""))


def _code(absent: Sql, column: Nominal, branches: Sequence[tuple[Sql, Sql]]) -> Sql:
    """`Nominal.code` in SQL: missing, a declared value, or other; NULL where such a cell is not declared."""
    missing = exp.Null() if column.missing_code is None else num(column.missing_code)
    # A missing value equals no declared one, so without either cell the CASE gives NULL anyway.
    first = [] if column.missing_code is None and column.other_code is None else [(absent, missing)]
    return case([*first, *branches], _other(column))


def _other(column: Nominal) -> Sql:
    return exp.Null() if column.other_code is None else num(column.other_code)


def _code_of_float(value: Sql, column: Nominal, kind: Kind, dialect: Dialect) -> Sql:
    """Return the code of a float, compared as a number.

    At most one float of this width has the text of a declared value.
    """
    number = dialect.as_double(value)
    floats = column.floats(np.float32 if kind is Kind.SINGLE else np.float64)
    branches = [(number.eq(double(num(float(declared)))), num(k)) for declared, k in floats]
    return _code(exp.or_(value.is_(exp.Null()), dialect.is_nan(number)), column, branches)


def _code_of_decimal(value: Sql, column: Nominal, stored: str) -> Sql:
    """Decimals are compared as numbers of the column's own type: a cast to a common one might not fit a row."""
    to = exp.DataType.build(stored)
    digits = [int(size.name) for size in to.expressions]
    branches = [
        (value.eq(exp.cast(exp.Literal.string(name), to)), num(k))
        for k, name in enumerate(column.texts)
        if is_numeral(name) and _fits(name, *digits)
    ]
    return _code(value.is_(exp.Null()), column, branches)


def _fits(numeral: str, precision: int = 2**31, scale: int = 2**30) -> bool:
    """Can a decimal of this type be this number?"""
    whole, _, fraction = numeral.removeprefix("-").partition(".")
    return len(whole.lstrip("0")) <= precision - scale and len(fraction) <= scale


def _number(value: Sql, kind: Kind, dialect: Dialect) -> Sql:
    """The number that `Numeric.grid` reads, in SQL: `number_of`, and the words for booleans as 1 and 0."""
    if kind is Kind.BOOLEAN:
        return double(exp.cast(value, exp.DataType.Type.INT))
    if kind is not Kind.TEXT:
        return dialect.as_double(value)
    written = dialect.as_text(value)
    short = exp.LTE(this=dialect.length(written.copy()), expression=num(LONGEST_NUMBER))
    booleans = [
        (dialect.same_text(written.copy(), word), double(num(number)))
        for name, number in (("true", 1), ("false", 0))
        for word in spellings(name)
    ]
    return case([(short, exp.Coalesce(this=dialect.read_number(written), expressions=[case(booleans)]))])


def _day(value: Sql, kind: Kind, dialect: Dialect) -> Sql:
    """`date.day_of` in SQL: the days from 1970-01-01, or NULL."""
    if kind is not Kind.TEXT:
        return double(dialect.day(value, kind is Kind.INSTANT))
    written = dialect.as_text(value)
    dash = exp.StrPosition(this=written.copy(), substr=exp.Literal.string("-"))  # the one after the year
    letters = exp.Substring(this=written.copy(), start=exp.Sub(this=dash, expression=num(4)), length=num(10))
    day = dialect.day(exp.TryCast(this=letters, to=exp.DataType.build("DATE"), safe=True), False)
    short = exp.LTE(this=dialect.length(written.copy()), expression=num(LONGEST_DATE))
    # CASE inside CASE: the terms of an AND are evaluated in any order. Where a text is a date, no cast of it can fail.
    return case([(short, case([(dialect.is_date(written), double(day))]))])


def inspected(value: Sql, kind: Kind, dialect: Dialect) -> tuple[Sql, Callable[[Any], Any]]:
    """What an owner's inspection reads of a column, and what makes a value of it: Python lacks some stored dates."""
    if kind in (Kind.DAY, Kind.INSTANT):
        return dialect.day(value, kind is Kind.INSTANT), date_at
    if kind is Kind.SINGLE:  # Python's floats are wider, and have other texts
        return value, lambda number: None if number is None else np.float32(number)
    return value, lambda stored: stored


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

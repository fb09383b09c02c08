"""Tables that are hard to read, and questions of every kind about them, for Hypothesis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from kernel.engines.comparison import everything

from privet.kernel.additive import LOGIT_GRID, RESIDUAL_GRID, AdditiveModel
from privet.kernel.column import MAX_GRID, Column, Nominal, Numeric, text_of
from privet.kernel.date import Date
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CorrectQuery, CountQuery, GridQuery, ResidualQuery, SumQuery
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.rows import Condition, Rows, Split

NAMES = [
    "a b",
    'a"b',
    "a.`b",
    'a""b',
    "select",
    "order",
    "it's",
    "é",
    "c0",
    "node",
    "x,y",
    "new\nline",
    "1",
    "t",
    "k",
    "?",
]
NAMES += ['"; DROP TABLE coded; --', "%s", "$1", "GROUP", "rowid", "source", "\\", " "]

WORDS = [
    "a",
    "b",
    " a",
    "a ",
    "A",
    "é",
    "e\u0301",
    "日本",
    "\U0001f333",
    "x,y",
    'q"q',
    '"',
    '""',
    "'",
    "''",
    "\\",
    "\\n",
]
WORDS += [
    "line\nbreak",
    "\r",
    "\r\n",
    "\t",
    "NULL",
    "null",
    "None",
    "NaN",
    "nan",
    "inf",
    "true",
    "True",
    "0",
    "1",
    "01",
]
WORDS += ["TRUE", "tRUE", "False", "0.0", "-0.00", "5.", "1.50", "01.0", "a.0", "1..0", "1.0.", "-1.", "--1.0", "1.0\n"]
WORDS += [
    "0.00001",
    "1e-05",
    "1.0E-5",
    "1.5e-50",
    "1.5e-5",
    "1.0E+20",
    "1" + "0" * 20,
    "1." + "0" * 398,
    "1." + "0" * 399,
]
WORDS += ["1.0", "-0", "1e5", "0x10", "<other>", "#", "--", "; DROP TABLE coded", "(select 1)", "\ufeff", "\u2028", "%"]
TEXT_NUMBERS = [
    " 12 ",
    "1e5",
    "5.",
    ".5",
    "1e999",
    "-1e999",
    "1e-999",
    "0x10",
    "١٢",
    "1_000",
    "inf",
    "nan",
    "-inf",
    "+5",
]
TEXT_NUMBERS += ["True", "FALSE", "tRUE"]
TEXT_NUMBERS += [
    "\t7\t",
    "3\n",
    "--1",
    "1,5",
    "",
    " ",
    "-",
    ".",
    "e5",
    "1e",
    "-0",
    "-0.0",
    "00012",
    "0.3",
    "0.30000000004",
]
TEXT_NUMBERS += [str(2**63), str(10**30), "9" * 400, "-" + "9" * 400, "1e99999999999999999999", "\u00a05", "5%", "2.5"]

TEXT_DATES = [
    "2020-02-29",
    " 2020-03-01 ",
    "1999-12-31T23:59:59Z",
    "2020-02-30",
    "0000-01-01",
    "9999-12-31",
    "2020-1-1",
]
TEXT_DATES += ["0001-01-01", "1900-02-29", "20200101", "infinity", "", "2020-01-01\n", "2020-01-01 10:00\t", "12", "-"]

VALUES: dict[str, list[Any]] = {
    "VARCHAR": [*WORDS, "", None],
    "BOOLEAN": [True, False, None],
    "TINYINT": [-128, -1, 0, 1, 5, 127, None],
    "BIGINT": [-(2**63), -1, 0, 1, 7, 2**53 + 1, 2**63 - 1, None],
    "UBIGINT": [0, 1, 42, 2**63, 2**64 - 1, None],
    "HUGEINT": [-(10**30), -(2**63) - 1, 0, 1, 2**63, 10**30, None],
    "FLOAT": [float(np.float32(0.1)), 0.5, -0.0, 3.0, 2.0**30, math.inf, -math.inf, math.nan, None],
    "DOUBLE": [1e-05, 0.1, 0.1 + 0.2, 0.3, -0.0, 1.0, 7.0, 1e22, 5e-324, 1.8e308, math.inf, -math.inf, math.nan, None],
    "DECIMAL(12,3)": [Decimal("0.100"), Decimal("-1.5"), Decimal("1"), Decimal("999999999.999"), Decimal("0"), None],
}
DECLARABLE = {
    kind: [each for each in values if text_of(each) not in (None, "", "<other>", "<unwritable>")]
    for kind, values in VALUES.items()
}
SHAPES = [
    (0, 100, 1, {"bins": 10}),
    (-5, 5, Fraction(1, 10), {"edges": (Fraction(-1), Fraction(3, 10), Fraction(5))}),
    (0, 1, Fraction(1, 1000), {"bins": 1}),
    (17, 90, 3, {}),
    (-(2**53), 2**53, 2**55 // MAX_GRID, {"bins": 3}),
    (Fraction(-1, 2), MAX_GRID - 5, 1, {"bins": 2}),
]
DATES: list[tuple[str, str, dict[str, Any]]] = [
    ("2020-01-15", "2020-12-31", {"step": "months"}),
    ("0001-01-01", "9999-12-31", {"edges": ("1999-12-31", "2020-02-29", "9999-12-31")}),
]
FLAGS = st.booleans()
SIZES = (3, 25, 1, 12, 6, 18, 8, 2, 15, 0)  # one table in ten is empty


@st.composite
def columns(draw: Callable[..., Any], name: str, kind: str) -> Column:
    if kind == "VARCHAR" and draw(st.sampled_from([False, False, True])):
        first, last, cells = draw(st.sampled_from(DATES))
        return Date(name, first, last, missing=draw(FLAGS), **cells)
    if draw(FLAGS):
        low, high, step, binning = draw(st.sampled_from(SHAPES))
        return Numeric(name, Fraction(low), Fraction(high), Fraction(step), missing=draw(FLAGS), **binning)
    values = draw(st.lists(st.sampled_from(DECLARABLE[kind]), min_size=1, max_size=5, unique_by=text_of))
    plain = tuple(float(value) if isinstance(value, Decimal) else value for value in values)
    return Nominal(name, plain, other=draw(FLAGS), missing=draw(FLAGS))


def value_of(column: Column, kind: str) -> st.SearchStrategy[Any]:
    if kind == "VARCHAR":
        texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=3)
        kinds = {Date: TEXT_DATES, Numeric: TEXT_NUMBERS, Nominal: VALUES[kind]}
        return st.sampled_from(kinds[type(column)]) | texts
    own = [value for value in getattr(column, "values", ()) if value in VALUES[kind]]
    extra = st.integers(-20, 120) if kind in ("BIGINT", "HUGEINT", "TINYINT") else st.nothing()
    extra |= st.floats(-6, 110, width=32) if kind in ("FLOAT", "DOUBLE") else st.nothing()
    return st.sampled_from([*own, *own, *VALUES[kind]]) | extra


@st.composite
def tables(draw: Callable[..., Any], classes: Sequence[int] = ()) -> tuple[Domain, list[str], list[tuple[Any, ...]]]:
    """A domain with hostile names, the storage types of its columns, and rows; with a target where `classes` say so."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=4, unique=True))
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=len(names), max_size=len(names)))
    declared = [draw(columns(name, kind)) for name, kind in zip(names, types, strict=True)]
    if classes:
        types[0] = "VARCHAR"
        declared[0] = Nominal(names[0], tuple(WORDS[: draw(st.sampled_from(classes))]))
    kinds = [value_of(column, kind) for column, kind in zip(declared, types, strict=True)]
    if classes:  # every row has a class, or most would be left out
        kinds[0] = st.sampled_from(declared[0].values)
    size = draw(st.sampled_from(SIZES))
    rows = draw(st.lists(st.tuples(*kinds), min_size=size, max_size=size)) * draw(st.sampled_from([1, 1, 3]))
    return Domain(tuple(declared), target=names[0] if classes else None), types, rows


Points = dict[str, list[int]]  # for each column the indices of its rows


@st.composite
def programs(draw: Callable[..., Any], domain: Domain, rows: Sequence[Any] = ()) -> Rows:
    """A chain of up to three steps: parts kept in any order, conditions, splits, thresholds, closed parts, coins.

    Most boundaries are points where one of the rows lies: there it shows on which side they are.
    """
    points = {name: [row.indices[name] for row in ReferenceEngine(domain, rows).rows] for name in domain.names}
    return draw(steps(domain, points))


@st.composite
def steps(draw: Callable[..., Any], domain: Domain, points: Points) -> Rows:
    rows = Rows()
    for _ in range(draw(st.integers(0, 3))):
        if rows.parts == 0 or rows.parts > 60:
            break
        kind = draw(st.sampled_from(["keep", "divide", "scatter"]))
        if kind == "scatter":
            rows = rows.scatter(draw(st.integers(1, 5)), draw(st.integers(0, 2**64)))
        elif kind == "keep":
            parts = draw(st.lists(st.integers(0, rows.parts - 1), min_size=1, max_size=8, unique=True))
            rows = rows.keep(parts, tuple(draw(st.lists(conditions(domain, points), max_size=2))))
        else:
            splits = [draw(split_of(domain, points) | st.none()) for _ in range(min(rows.parts, 12))]
            rows = rows.divide([*splits, *[splits[0]] * (rows.parts - len(splits))], domain)
    return rows if rows.parts else Rows()


def indices(column: Numeric, points: Points) -> st.SearchStrategy[int]:
    """Grid indices inside the bounds, above all those where rows are."""
    occupied = sorted(index for index in set(points[column.name]) if 1 <= index < column.grid_size)
    anywhere = st.integers(1, column.grid_size - 1)
    return st.sampled_from(occupied) | anywhere if occupied else anywhere


def conditions(domain: Domain, points: Points) -> st.SearchStrategy[Condition]:
    def of(column: Column) -> st.SearchStrategy[Condition]:
        codes = st.lists(st.integers(0, column.size - 1), max_size=3, unique=True)
        by_code = codes.map(lambda chosen: Condition(column.name, tuple(sorted(chosen))))
        if isinstance(column, Nominal):
            return by_code
        index = indices(column, points) | st.sampled_from([0, column.grid_size])
        return by_code | st.tuples(index, index).map(lambda pair: Condition(column.name, None, *sorted(pair)))

    return st.sampled_from(domain.columns).flatmap(of)


def split_of(domain: Domain, points: Points) -> st.SearchStrategy[Split]:
    def of(column: Column) -> st.SearchStrategy[Split]:
        if isinstance(column, Nominal):
            return st.just(Split(column.name))
        cuts = st.lists(indices(column, points), min_size=1, max_size=3, unique=True)
        return cuts.map(lambda chosen: Split(column.name, tuple(sorted(chosen)))) | st.just(Split(column.name))

    return st.sampled_from(domain.columns).flatmap(of)


@st.composite
def model_queries(draw: Callable[..., Any], domain: Domain, rows: Rows) -> list[Any]:
    """Questions about a random integer model with small, ordinary and extreme logits, and about it with a term more.

    Terms look at any number of columns, and some at a column twice.
    """
    classes = len(domain.classes)
    reach = draw(st.sampled_from([3, 2 * LOGIT_GRID, 2**14, 2**24]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def logits(*names: str) -> np.ndarray:
        return rng.integers(-reach // 5, reach // 5 + 1, (*(domain[name].size for name in names), classes), np.int32)

    columns = st.lists(st.sampled_from(domain.attributes), max_size=3).map(tuple)
    small = columns.filter(lambda names: domain.cell_count(names) <= 60)
    terms = tuple((names, logits(*names)) for names in draw(st.lists(small, min_size=1, max_size=3)))
    intercept = tuple(logits().tolist())
    caps = tuple(draw(st.integers(1, RESIDUAL_GRID)) for _ in range(classes))
    table = st.lists(st.sampled_from(domain.attributes), min_size=1, max_size=2, unique=True).map(tuple)
    wide = st.lists(st.sampled_from(domain.attributes), min_size=1, max_size=4, unique=True).map(tuple)
    table |= wide.filter(lambda names: domain.cell_count(names) <= 60)
    tables = tuple(draw(st.lists(table, min_size=1, max_size=3)))
    target = str(domain.target)
    return [
        ResidualQuery(rows, AdditiveModel(intercept, terms[:-1]), tables, target, caps),
        CorrectQuery(rows, AdditiveModel(intercept, terms), target),
    ]


@st.composite
def questions(draw: Callable[..., Any]) -> tuple[Domain, list[str], list[tuple[Any, ...]], list[Any]]:
    """A table with a target, and questions of every kind about all of its parts, down to the smallest."""
    domain, types, rows = draw(tables(classes=(2, 3, 4)))
    where = draw(programs(domain, rows))
    pairs = [(one, other) for one in domain.names for other in domain.names]
    groups = draw(st.lists(st.sampled_from([(), *((name,) for name in domain.names), *pairs]), max_size=3))
    return domain, types, rows, draw(asked_of(domain, where, groups))


@st.composite
def asked_of(draw: Callable[..., Any], domain: Domain, where: Rows, groups: Sequence[tuple[str, ...]]) -> list[Any]:
    """What a fit asks on its way down, then a question of every kind; or the same in another order."""
    tables = tuple((name, str(domain.target)) for name in domain.attributes)
    way = [CountQuery(level, tables) for level in levels(where)[:-1]]
    queries = [*everything(domain), *way, *every_kind(domain, where, groups), *draw(model_queries(domain, where))]
    return queries if draw(FLAGS) else list(draw(st.permutations(queries)))


def levels(rows: Rows) -> list[Rows]:
    """The rows after each step, from the whole table on."""
    return [rows] if rows.parent is None else [*levels(rows.parent), rows]


def every_kind(domain: Domain, where: Rows, groups: Sequence[tuple[str, ...]]) -> list[Any]:
    """A question of every kind but those about a model."""
    level = tuple((name, str(domain.target)) for name in domain.attributes)
    numeric = [column.name for column in domain if isinstance(column, Numeric)]
    return [
        CountQuery(where, ((), *groups)),
        CountQuery(where, level),
        GridQuery(where, domain.names),
        GridQuery(where, domain.attributes, domain.target),
        *(SumQuery(where, name) for name in numeric[:1]),
    ]


def declarable(kind: str) -> tuple[Any, ...]:
    """Values of a type, and some that it cannot have."""
    values = {text_of(value): value for value in [*DECLARABLE[kind], "1.0", "true", 1, 300, -5, 2**40, "007", "-0"]}
    return tuple(float(value) if isinstance(value, Decimal) else value for value in values.values())


def worst() -> tuple[Domain, list[str], list[tuple[Any, ...]]]:
    """Every value of every type in one table, under the worst of names, and every row three times."""
    classes = ('"; no\\', "it's")
    names, columns, types, values = iter(NAMES), [], [], []
    for kind, (low, high, step, binning) in zip(VALUES, itertools.cycle(SHAPES), strict=False):
        columns.append(Nominal(next(names), declarable(kind)[1:], other=True, missing=True))
        columns.append(Numeric(next(names), Fraction(low), Fraction(high), Fraction(step), missing=True, **binning))
        types += [kind, kind]
        values += [VALUES[kind], [*TEXT_NUMBERS, None] if kind == "VARCHAR" else VALUES[kind]]
    for first, last, cells in DATES:
        columns.append(Date(next(names), first, last, missing=True, **cells))
        types.append("VARCHAR")
        values.append([*TEXT_DATES, *TEXT_NUMBERS, None])
    columns.append(Nominal(next(names), classes))
    rows = [
        (*(each[i % len(each)] for each in values), classes[i % 3 % 2])
        for i in range(max(len(each) for each in values))
    ]
    return Domain(tuple(columns), target=columns[-1].name), [*types, "VARCHAR"], rows * 3


def worst_questions(domain: Domain) -> list[Any]:
    texts, numbers, flags = domain.names[:3]
    floats = domain.names[2 * list(VALUES).index("DOUBLE") + 1]
    where = Rows().divide([Split(numbers, (1, 5))], domain)
    where = where.divide([Split(texts), None, Split(floats, (2,)), Split(flags)], domain).scatter(2, 2**64)
    rng = np.random.default_rng(0)
    model = AdditiveModel(
        (300, -1),
        tuple(
            (names, rng.integers(-(2**14), 2**14, (*(domain[name].size for name in names), 2)).astype(np.int32))
            for names in ((texts,), (floats, flags))
        ),
    )
    residuals = ResidualQuery(where, model, ((numbers,), (flags, floats)), str(domain.target), (RESIDUAL_GRID, 77))
    correct = CorrectQuery(where, model, str(domain.target))
    return [*everything(domain), *every_kind(domain, where, [(texts,), (flags, numbers)]), residuals, correct]


WORST = worst()

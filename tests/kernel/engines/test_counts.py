"""Every engine gives the exact numbers of the reference engine: tables that are hard to read, coins, choices, files."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

import privet
from privet.kernel import About, Gini, InfoGain, Max, PerPart, Quality, SelectQuestion
from privet.kernel.additive import LOGIT_GRID, RESIDUAL_GRID, AdditiveModel
from privet.kernel.column import LONGEST_NUMBER, MAX_GRID, Column, Nominal, Numeric, text_of
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CorrectQuery, CountQuery, GridQuery, ResidualQuery, SumQuery, cell_count
from privet.kernel.engines.duckdb.engine import DuckDBEngine
from privet.kernel.engines.duckdb.source import Source
from privet.kernel.engines.memory import engine as memory
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.questions import ChooseQuestion
from privet.kernel.rows import Condition, Rows, Split

STORAGES = ("memory", "csv", "parquet", "table", "postgres")
each_storage = pytest.mark.parametrize("storage", STORAGES)
# A job of Spark takes a quarter of a second, however few the rows: it takes part where a test needs few of them.
SPARK = pytest.param("spark", marks=pytest.mark.xdist_group("spark"))  # one process starts a Spark, and no other
each_storage_and_spark = pytest.mark.parametrize("storage", (*STORAGES, SPARK))


# --- asking an engine and the reference the same thing ---------------------------------------------------------------


def ask(engine: Any, query: Any) -> list[np.ndarray]:
    """An answer of any kind as a list of arrays."""
    if isinstance(query, CountQuery):
        return list(engine.exact_counts(query))
    if isinstance(query, GridQuery):
        return [array for each in engine.exact_grid(query) for array in (each.part, each.index, each.exact_counts)]
    if isinstance(query, SumQuery):
        return list(engine.exact_sums(query))
    if isinstance(query, CorrectQuery):
        return [engine.exact_correct(query)]
    return [
        array
        for each in engine.exact_residuals(query)
        for array in (each.exact_own, each.exact_others)
        if array is not None
    ]


def assert_same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == np.int64
        np.testing.assert_array_equal(one, other, strict=True)


def check(stores: Any, storage: str, domain: Domain, types: Sequence[str], rows: Any, queries: Sequence[Any]) -> None:
    """The engine and its merged snapshot answer as the reference does."""
    with stores.open(storage, domain, types, rows) as (engine, held):
        reference = ReferenceEngine(domain, held)
        engines = [engine] if storage == "memory" else [engine, engine.snapshot()]
        for query in queries:
            expected = ask(reference, query)
            for each in engines:
                assert_same(ask(each, query), expected)


def memory_of(reference: ReferenceEngine, shortcuts: bool = True) -> MemoryEngine:
    """The coded rows of the reference, with their weights, in memory."""
    domain, rows = reference.domain, reference.rows
    codes = {name: np.array([row.codes[name] for row in rows], np.int64) for name in domain.names}
    grids = {name: np.array([row.indices[name] for row in rows], np.int64) for name in domain.names}
    weights = np.array([row.weight for row in rows], np.int64)
    return MemoryEngine(domain, codes, grids, weights, shortcuts=shortcuts)


def everything(domain: Domain) -> list[Any]:
    """Queries that show the code and the grid index of every row."""
    singles = tuple((name,) for name in domain.names)
    return [CountQuery(Rows(), ((), *singles)), GridQuery(Rows(), domain.names)]


# --- tables that are hard to read ------------------------------------------------------------------------------------

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
FLAGS = st.booleans()
SIZES = (3, 25, 1, 12, 6, 18, 8, 2, 15, 0)  # one table in ten is empty


@st.composite
def columns(draw: Callable[..., Any], name: str, kind: str) -> Column:
    if draw(FLAGS):
        low, high, step, binning = draw(st.sampled_from(SHAPES))
        return Numeric(name, Fraction(low), Fraction(high), Fraction(step), missing=draw(FLAGS), **binning)
    values = draw(st.lists(st.sampled_from(DECLARABLE[kind]), min_size=1, max_size=5, unique_by=text_of))
    plain = tuple(float(value) if isinstance(value, Decimal) else value for value in values)
    return Nominal(name, plain, other=draw(FLAGS), missing=draw(FLAGS))


def value_of(column: Column, kind: str) -> st.SearchStrategy[Any]:
    if kind == "VARCHAR":
        texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=3)
        return st.sampled_from(TEXT_NUMBERS if isinstance(column, Numeric) else VALUES[kind]) | texts
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
    small = columns.filter(lambda names: cell_count(domain, names) <= 60)
    terms = tuple((names, logits(*names)) for names in draw(st.lists(small, min_size=1, max_size=3)))
    intercept = tuple(logits().tolist())
    caps = tuple(draw(st.integers(1, RESIDUAL_GRID)) for _ in range(classes))
    table = st.lists(st.sampled_from(domain.attributes), min_size=1, max_size=2, unique=True).map(tuple)
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


# --- rows on boundaries, values of every type -------------------------------------------------------------------------

PEOPLE = Domain(
    (
        Nominal("sex", ("f", "m"), other=True),
        Numeric("age", Fraction(0), Fraction(100), Fraction(1), bins=4, missing=True),
        Nominal("ill", ("no", "yes")),
    ),
    target="ill",
)
PEOPLE_TYPES = ["VARCHAR", "DOUBLE", "VARCHAR"]


def people(size: int, seed: int = 0) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)
    return [
        (
            rng.choice(["f", "m", "x", None]),
            rng.choice([None, 7, 10, 25, 30.5, 39.9, 40, 50, 1e9]),
            rng.choice(["no", "yes", "?"]),
        )
        for _ in range(size)
    ]


def by_sex_and_age() -> Rows:
    return Rows().divide([Split("sex")], PEOPLE).divide([Split("age", (10, 40)), Split("age"), None], PEOPLE)


def people_queries(where: Rows) -> list[Any]:
    model = AdditiveModel((100, -100), ((("sex",), np.array([[5, 7], [2000, 0], [0, 0]], np.int32)),))
    return [
        CountQuery(where, ((), ("sex", "ill"), ("age", "ill"))),
        GridQuery(where, ("age", "sex"), "ill"),
        SumQuery(where, "age"),
        ResidualQuery(where, model, (("age",), ("sex", "age")), "ill", (1024, 512)),
    ]


def test_points_of_a_grid_too_large_for_an_array_count_alike(monkeypatch: pytest.MonkeyPatch, stores: Any) -> None:
    monkeypatch.setattr(memory, "_DENSE", 0)
    queries = [GridQuery(by_sex_and_age(), ("age", "sex"), target) for target in ("ill", None)]
    check(stores, "memory", PEOPLE, PEOPLE_TYPES, people(60), queries)


@each_storage_and_spark
def test_a_row_on_a_boundary_lies_on_its_upper_side(stores: Any, storage: str) -> None:
    rows = [(sex, age, "no") for sex in ("f", "m") for age in range(102)]
    inside = Rows().keep([0], (Condition("age", None, 10, 90),))
    where = inside.divide([Split("sex")], PEOPLE).divide([Split("age", (10, 25, 39)), Split("age"), None], PEOPLE)
    check(stores, storage, PEOPLE, PEOPLE_TYPES, rows, [*people_queries(Rows()), *people_queries(where)])


@each_storage_and_spark
@pytest.mark.parametrize("kind", ["DOUBLE", "DECIMAL(12,3)", "VARCHAR"])
def test_a_decimal_is_its_grid_point_although_no_float_is(stores: Any, storage: str, kind: str) -> None:
    # 0.3 / 0.1 is below 3 in floating point
    domain = Domain((Numeric("x", Fraction(0), Fraction(3), Fraction(1, 10), bins=30),))
    rows = [(Decimal(tenth) / 10,) for tenth in range(31)]
    rows = [
        (float(value),) if kind == "DOUBLE" else (str(value),) if kind == "VARCHAR" else (value,) for (value,) in rows
    ]
    check(stores, storage, domain, [kind], rows, everything(domain))
    with stores.open(storage, domain, [kind], rows) as (engine, _):
        (found,) = engine.exact_grid(GridQuery(Rows(), ("x",)))
    assert found.index.tolist() == list(range(31))


@each_storage_and_spark
def test_a_text_longer_than_the_longest_number_is_none_anywhere(stores: Any, storage: str) -> None:
    domain = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(1), bins=2, missing=True),))
    longest = ["0" * (LONGEST_NUMBER - 1) + "7", "7" + " " * (LONGEST_NUMBER - 1), "0." + "0" * (LONGEST_NUMBER - 2)]
    almost = ["1" * (LONGEST_NUMBER - 1) + "x", " " * LONGEST_NUMBER]
    rows = [(text,) for text in (*longest, *(f"0{text}" for text in longest), *almost)]
    check(stores, storage, domain, ["VARCHAR"], rows, everything(domain))
    with stores.open(storage, domain, ["VARCHAR"], rows) as (engine, _):
        (found,) = engine.exact_grid(GridQuery(Rows(), ("x",)))
    assert found.index.tolist() == [-1, 0, 7] and found.exact_counts.tolist() == [[5], [1], [2]]


@each_storage_and_spark
@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_a_row_that_fits_no_cell_is_left_out_and_a_declared_cell_takes_it_in(
    stores: Any, storage: str, other: bool, missing: bool
) -> None:
    domain = Domain(
        (
            Nominal("n", ("a", "b"), other=other, missing=missing),
            Numeric("x", Fraction(0), Fraction(9), Fraction(1), bins=2, missing=missing),
        )
    )
    rows = [("a", 1.0), ("b", 9.0), ("c", 2.0), (None, 2.0), ("", 2.0), ("a", None), ("a", math.nan), ("c", None)]
    check(stores, storage, domain, ["VARCHAR", "DOUBLE"], rows, everything(domain))
    with stores.open(storage, domain, ["VARCHAR", "DOUBLE"], rows) as (engine, _):
        (total,) = engine.exact_counts(CountQuery(Rows(), ((),)))
    assert total.tolist() == [2 + other + 4 * missing + (other and missing)]


@each_storage_and_spark
@pytest.mark.parametrize("size", [33, 1000])
def test_a_thousand_categories(stores: Any, storage: str, size: int) -> None:
    values = tuple(f"v{i} ' \" é, {i}" for i in range(size))
    domain = Domain((Nominal("n", values, other=True, missing=True), Nominal("y", ("0", "1"))), target="y")
    rows = [(values[(i * 7) % size], str(i % 2)) for i in range(250)]
    rows += [(values[-1], "1"), ("v0", "0"), (None, "1"), ("", "1"), (values[3], "2")]
    where = Rows().divide([Split("n")], domain)
    queries = [*everything(domain), CountQuery(where, ((), ("y",))), CountQuery(Rows(), (("n", "y"), ("y", "y")))]
    check(stores, storage, domain, ["VARCHAR", "VARCHAR"], rows, queries)


@each_storage_and_spark
def test_columns_may_have_any_name_beside_one_with_many_values(stores: Any, storage: str) -> None:
    names = [*NAMES, "c1", "g1", "v0", "x1", "coded", "numbers", "n", "q"]
    many = tuple(f"v{i}" for i in range(40))
    domain = Domain((Nominal("many", many, other=True), *(Nominal(name, ("v1", "v2"), other=True) for name in names)))
    rng = random.Random(3)
    rows = [[rng.choice(["v1", "v2", "v39", "z"]) for _ in domain.names] for _ in range(30)]
    check(stores, storage, domain, ["VARCHAR"] * len(domain.names), rows, everything(domain))


@each_storage_and_spark
@pytest.mark.parametrize("missing", [False, True])
def test_numbers_written_as_text_are_read_alike(stores: Any, storage: str, missing: bool) -> None:
    for low, high, step, binning in SHAPES:
        column = Numeric("x", Fraction(low), Fraction(high), Fraction(step), missing=missing, **binning)
        rows = [(text,) for text in [*TEXT_NUMBERS, None]]
        check(stores, storage, Domain((column,)), ["VARCHAR"], rows, everything(Domain((column,))))


@each_storage_and_spark
@pytest.mark.parametrize("kind", list(VALUES))
@pytest.mark.parametrize("flags", [{}, {"other": True, "missing": True}], ids=["bare", "other and missing"])
def test_columns_of_every_type_are_compared_by_the_text_of_their_value(
    stores: Any, storage: str, kind: str, flags: dict[str, bool]
) -> None:
    domain = Domain((Nominal("n", declarable(kind), **flags),))
    check(stores, storage, domain, [kind], [(value,) for value in VALUES[kind]], everything(domain))


@each_storage_and_spark
@pytest.mark.parametrize("kind", ["TINYINT", "UTINYINT", "SMALLINT", "UBIGINT", "HUGEINT", "UHUGEINT"])
def test_whole_numbers_are_compared_with_values_beyond_their_type(stores: Any, storage: str, kind: str) -> None:
    domain = Domain((Nominal("n", (0, 300, -5, 2**40, 7, "x", "1.0", "007", "-00"), other=True, missing=True),))
    if storage == "parquet" and kind == "UHUGEINT":
        kind = "HUGEINT"
    check(stores, storage, domain, [kind], [(0,), (7,), (7,), (100,), (None,)], everything(domain))


@pytest.mark.parametrize("values", [4, 40], ids=["cases", "join"])
@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NOCASE.NOACCENT"])
def test_a_collation_holds_no_two_values_for_one(stores: Any, collation: str, values: int) -> None:
    """A row that was equal to several declared values would be counted for each of them."""
    domain = Domain((Nominal("n", ("a", "A", "\u00e9", *(f"v{i}" for i in range(values))), other=True),))
    rows = [("a",), ("A",), ("\u00e9",), ("\u00c9",), ("e",), ("V1",)]
    check(stores, "table", domain, [f"VARCHAR COLLATE {collation}"], rows, everything(domain))


@pytest.mark.parametrize("storage", ["csv", "parquet", "table", "postgres"])
def test_an_enumeration_is_read_as_text(stores: Any, storage: str) -> None:
    domain = Domain((Nominal("n", ("a", "b"), missing=True),))
    check(stores, storage, domain, ["ENUM('a', 'b', 'c')"], [("a",), ("c",), (None,)], everything(domain))


@each_storage_and_spark
def test_an_empty_text_is_a_value_where_it_is_declared(stores: Any, storage: str) -> None:
    domain = Domain((Nominal("n", ("", "a"), other=True, missing=True),))
    with stores.open(storage, domain, ["VARCHAR"], [("",), ("",), ("a",)]) as (engine, _):
        (found,) = engine.exact_counts(CountQuery(Rows(), (("n",),)))
    assert found.tolist() == [[2, 1, 0, 0]]


@pytest.mark.parametrize(
    "dtype", ["int8", "int64", "uint8", "float32", "float64", "bool", "object", "category", "Int64"]
)
def test_typed_frames_give_the_codes_of_their_values(dtype: str) -> None:
    values = [0, 1, 1, 0, 1] if dtype == "bool" else [0, 1, 5, 100, 5]
    series = pd.Series(values).astype(dtype)
    domain = Domain(
        (
            Nominal("n", (1, "true", 5), other=True, missing=True),
            Numeric("x", Fraction(0), Fraction(10), Fraction(1), missing=True),
        )
    )
    engine = MemoryEngine.from_frame(pd.DataFrame({"n": series, "x": series}), domain)
    rows = [(value, value) for value in series]
    for query in everything(domain):
        assert_same(ask(engine, query), ask(ReferenceEngine(domain, rows), query))


def test_a_table_of_several_row_groups_stays_aligned_with_its_parts(stores: Any, tmp_path: Path) -> None:
    # A DuckDB row group has 122,880 rows; nodes are joined to codes by position.
    size = 300_000
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m", "x"], size),
            "age": rng.integers(0, 120, size),
            "ill": rng.choice(["no", "yes", "?"], size),
        }
    )
    frame.to_csv(tmp_path / "large.csv", index=False)
    distinct = frame.value_counts()
    reference = ReferenceEngine(PEOPLE, distinct.index, distinct)
    engine = DuckDBEngine(Source(tmp_path / "large.csv"), PEOPLE)
    where = by_sex_and_age()
    kept = where.keep([5, 0, 2], (Condition("age", None, 5, 77),))
    for query in [*people_queries(where), *people_queries(kept)]:
        assert_same(ask(engine, query), ask(reference, query))
    snapshot, stream = engine.snapshot(), engine.stream()
    for query in people_queries(kept):
        for each in (snapshot, stream):
            assert_same(ask(each, query), ask(reference, query))
    engine.close()


def test_old_numberings_are_computed_again(stores: Any) -> None:
    rows = people(40)
    chain = [Rows().keep([0], (Condition("age", None, low, 101),)) for low in range(12)]
    with stores.open("table", PEOPLE, PEOPLE_TYPES, rows) as (engine, held):
        for where in [*chain, *chain]:
            query = CountQuery(where.divide([Split("sex")], PEOPLE), ((),))
            assert_same(ask(engine, query), ask(ReferenceEngine(PEOPLE, held), query))


# --- coins -----------------------------------------------------------------------------------------------------------


def full_cells(where: Rows, domain: Domain = PEOPLE) -> list[Any]:
    """Queries that show in which part every kind of row lies."""
    return [CountQuery(where, (domain.names,)), GridQuery(where, domain.names)]


@each_storage
@pytest.mark.parametrize("seed", [0, 7, 2**32, 10**30])
def test_coins_are_the_hash_of_a_row_wherever_it_is_stored(stores: Any, storage: str, seed: int) -> None:
    rows = people(80)
    coins = Rows().scatter(3, seed)
    levels = [coins, by_sex_and_age().scatter(4, seed), coins.divide([Split("age", (30,)), None, Split("sex")], PEOPLE)]
    levels += [
        coins.keep([2, 0], (Condition("age", None, 10, 60),)),
        coins.scatter(2, seed + 1),
        Rows().scatter(1, seed),
    ]
    queries = [query for where in levels for query in (*people_queries(where), *full_cells(where))]
    check(stores, storage, PEOPLE, PEOPLE_TYPES, rows, queries)


@each_storage
def test_coins_of_the_largest_grids_stay_in_64_bits(stores: Any, storage: str) -> None:
    # an overflow would wrap in one engine and be an error, which one row can cause, in another
    last = MAX_GRID - 1
    domain = Domain(tuple(Numeric(name, Fraction(0), Fraction(last), Fraction(1), bins=2) for name in "abcd"))
    rng = random.Random(2)
    rows = [tuple(rng.choice([0, 1, last - 1, last, rng.randrange(last)]) for _ in "abcd") for _ in range(60)]
    wheres = [Rows().scatter(10_000, seed) for seed in range(10)]
    queries = [CountQuery(where, ((),)) for where in wheres]
    check(stores, storage, domain, ["BIGINT"] * 4, [*rows, (last,) * 4], queries)


@each_storage_and_spark
def test_rows_that_no_value_can_meet_are_counted_and_divided(stores: Any, storage: str) -> None:
    nobody = Rows().keep([0], (Condition("sex", ()),))
    wheres = [nobody, nobody.divide([Split("sex")], PEOPLE).keep([1]), nobody.scatter(2, 1)]
    wheres += [Rows().keep([]).divide([], PEOPLE), Rows().divide([None], PEOPLE)]
    queries = [query for where in wheres for query in people_queries(where)[:3]]
    check(stores, storage, PEOPLE, PEOPLE_TYPES, people(20), queries)


@each_storage_and_spark
def test_the_last_point_of_the_largest_grid_is_counted(stores: Any, storage: str) -> None:
    # it and one more may be beyond 32 bits: an error that one row can cause
    last = MAX_GRID - 1
    domain = Domain((Numeric("x", Fraction(0), Fraction(last), Fraction(1), bins=2, missing=True),))
    queries = [*everything(domain), SumQuery(Rows(), "x"), GridQuery(Rows().divide([Split("x")], domain), ("x",))]
    check(stores, storage, domain, ["BIGINT"], [(0,), (last - 1,), (last,), (None,)], queries)


def test_coins_of_a_table_with_many_columns(stores: Any) -> None:
    domain = Domain(tuple(Nominal(f"a{i}", ("0", "1"), missing=True) for i in range(300)))
    rng = random.Random(4)
    rows = [[rng.choice(["0", "1", None]) for _ in domain.names] for _ in range(20)]
    check(stores, "csv", domain, ["VARCHAR"] * 300, rows, [CountQuery(Rows().scatter(5, 1), ((), ("a7",)))])


@each_storage_and_spark
def test_rows_with_the_same_cells_share_a_part_and_every_row_lies_in_one(stores: Any, storage: str) -> None:
    rows = people(50)
    where = Rows().scatter(4, 11)
    with stores.open(storage, PEOPLE, PEOPLE_TYPES, rows * 3) as (engine, held):
        (total,) = engine.exact_counts(CountQuery(Rows(), ((),)))
        (found,) = engine.exact_counts(CountQuery(where, ((),)))
        kinds = {(*row.codes.values(), *row.indices.values()) for row in ReferenceEngine(PEOPLE, held).rows}
        grid = engine.exact_grid(GridQuery(where.divide([Split("sex")] * 4, PEOPLE), ("age",), "ill"))[0]
    assert found.sum() == total[0] > 0
    assert (found > 0).all() and (found % 3 == 0).all()
    assert (grid.exact_counts > 0).sum() == len(kinds)  # no kind of row is in two parts


@pytest.fixture(scope="module", params=["memory", "csv"])
def census(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    frame, domain = privet.datasets.census(20_000, seed=1), privet.datasets.census_domain()
    if request.param == "memory":
        yield MemoryEngine.from_frame(frame, domain)
        return
    path = tmp_path_factory.mktemp("census") / "census.csv"
    frame.to_csv(path, index=False)
    engine = DuckDBEngine(Source(path), domain)
    yield engine
    engine.close()


def within(found: np.ndarray, expected: np.ndarray | float) -> bool:
    """Counts as of fair coins: within five standard deviations. Seeds are fixed, so there is no false alarm."""
    return bool((np.abs(found - expected) <= 5 * np.sqrt(expected)).all())


@pytest.mark.parametrize("seed", range(5))
def test_coins_are_fair_and_independent_of_the_columns(census: Any, seed: int) -> None:
    where = Rows().scatter(10, seed)
    size, income, sex = census.exact_counts(CountQuery(where, ((), ("income",), ("sex", "income"))))
    assert size.sum() == 20_000 and within(size, 2_000)
    for found in (income, sex):
        assert within(found, found.sum(axis=0) / 10)


def test_coins_of_different_seeds_are_independent_and_of_the_same_seed_the_same(census: Any) -> None:
    one, other = ((parts, seed) for parts, seed in ((5, 1), (5, 2)))
    (crossed,) = census.exact_counts(CountQuery(Rows().scatter(*one).scatter(*other), ((),)))
    assert within(crossed, 20_000 / 25)
    (again,) = census.exact_counts(CountQuery(Rows().scatter(*one).scatter(*one), ((),)))
    assert np.count_nonzero(again) == 5 and (np.flatnonzero(again) % 6 == 0).all()


# --- choices and histograms of parts ---------------------------------------------------------------------------------

RULES = {"max": Max(), "gini": Gini(), "infogain": InfoGain(1000)}


def plain_score(rule: str, cells: dict[Any, list[int]]) -> int:
    """A criterion of one table, cell by cell, from the class counts of each."""
    if rule == "max":
        return sum(map(max, cells.values()))
    table = np.array(list(cells.values()), dtype=np.int64)
    return int(RULES[rule].exact_scores(table[None])[0])


@each_storage_and_spark
@pytest.mark.parametrize("rule", RULES)
def test_candidates_are_scored_as_by_counting_rows(stores: Any, storage: str, rule: str) -> None:
    candidates: list[Any] = ["sex", ("age", 10), ("age", 1), "age", ("age", 40), ("age", 100)]
    where = Rows().divide([Split("sex")], PEOPLE).scatter(2, 5)
    own = [candidates if part % 2 else candidates[::-2] for part in range(where.parts)]
    with stores.open(storage, PEOPLE, PEOPLE_TYPES, people(90)) as (engine, held):
        question = SelectQuestion(RULES[rule], PerPart.of(tuple(mine) for mine in own))
        question.check(PEOPLE, where)
        scores = [exact.tolist() for exact in question.exact(engine, where, PEOPLE)]
        mechanisms = question.mechanisms(PEOPLE, PerPart.same(Fraction(1), where.parts))
        about = About(question.words, Fraction(1), private=False)
        chosen = [question.release(0, mechanism, about, PEOPLE, part) for part, mechanism in enumerate(mechanisms)]
        reference = ReferenceEngine(PEOPLE, held)
    for part, (mine, seen) in enumerate(zip(own, scores, strict=True)):
        expected = []
        for candidate in mine:
            sides = range(3) if isinstance(candidate, tuple) else range(PEOPLE[candidate].size)
            cells = {side: [0, 0] for side in sides}
            for lies, row in reference.placed(where):
                if lies != part:
                    continue
                if isinstance(candidate, tuple):
                    index = row.indices[candidate[0]]
                    side = 2 if index < 0 else int(index >= candidate[1])
                else:
                    side = row.codes[candidate]
                cells[side][row.codes["ill"]] += 1
            expected.append(plain_score(rule, cells))
        assert seen == expected
        first, choice = mine[0], chosen[part]
        # a choice names the last point of the grid that goes left
        point = None if isinstance(first, str) else PEOPLE.numeric(first[0]).value_at(first[1] - 1)
        assert (choice, choice.point) == (first if isinstance(first, str) else first[0], point)


@each_storage_and_spark
def test_qualities_are_summed_as_by_looking_up_every_row(stores: Any, storage: str) -> None:
    """Tables of no column, of one and of two, with numbers beyond the bound, in parts of parts."""
    rng, bound = np.random.default_rng(7), 5
    tables = {
        str(at): Quality(columns, rng.integers(-9, 10, [PEOPLE[name].size for name in columns]))
        for at, columns in enumerate([(), ("sex",), ("ill", "age"), ("age",), ("sex",)])
    }
    question = ChooseQuestion(tuple(tables.items()), bound)
    where = Rows().divide([Split("sex")], PEOPLE).scatter(2, 5)
    question.check(PEOPLE, where)
    with stores.open(storage, PEOPLE, PEOPLE_TYPES, people(90)) as (engine, held):
        found = question.exact(engine, where, PEOPLE).tolist()
        reference = ReferenceEngine(PEOPLE, held)
    expected = [[0] * len(tables) for _ in range(where.parts)]
    for part, row in reference.placed(where):
        for at, quality in enumerate(tables.values()):
            number = np.reshape(quality.table, quality.shape)[tuple(row.codes[name] for name in quality.columns)]
            expected[part][at] += max(-bound, min(bound, int(number)))
    assert found == expected and any(map(any, expected))


def opened(stores: Any, storage: str, rows: Any) -> privet.ProtectedTable:
    """A table that an analyst would hold, over the rows in a storage."""
    if storage == "memory":
        return privet.testing.open(pd.DataFrame(rows, columns=PEOPLE.names), PEOPLE, budget=10**6, seed=3)
    if storage == "postgres":
        address, _ = stores.write_postgres(PEOPLE.names, PEOPLE_TYPES, rows)
        return privet.testing.open(address, PEOPLE, budget=10**6, seed=3)
    source, _ = stores.write(storage, PEOPLE.names, PEOPLE_TYPES, rows)
    address = f"duckdb:///{source.path}?table=t" if source.table else source.path
    path = "snapshot" if storage == "parquet" else "push-down"
    return privet.testing.open(address, PEOPLE, budget=10**6, seed=3, access=path)


@each_storage
@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential", "noisy-max"])
def test_seeded_choices_of_pairs_majorities_and_histograms_are_the_same_everywhere(
    stores: Any, storage: str, mechanism: str
) -> None:
    candidates: list[Any] = ["sex", ("age", 9), ("age", 39.5), "age"]

    def said(table: privet.ProtectedTable) -> list[Any]:
        parts = table.scatter(3, 8).partition("sex").take([8, 0, 4, 3])
        chosen = parts.select("gini", 1, attributes=candidates, mechanism=mechanism)
        groups = [[("age",), ("sex", "ill")], [("ill",)], [("ill",), ("sex",), ("age",)], [("age", "ill")]]
        return [
            [(str(each), each.threshold) for each in chosen],
            [str(each) for each in parts.majority("age", 1)],
            [each.values.tolist() for own in parts.histograms(groups, 1) for each in own],
            parts.partition(chosen).count(1).array().tolist(),
        ]

    rows = people(70)
    with opened(stores, storage, rows) as table, opened(stores, "memory", rows) as oracle:
        assert said(table) == said(oracle)


@each_storage
def test_majorities_and_histograms_are_those_of_the_rows(stores: Any, storage: str) -> None:
    rows = people(200)
    reference = ReferenceEngine(PEOPLE, rows)
    where = Rows().divide([Split("sex")], PEOPLE).scatter(2, 8)
    ages, both = reference.exact_counts(CountQuery(where, (("age",), ("ill", "sex"))))
    with opened(stores, storage, rows) as table:
        parts = table.partition("sex").scatter(2, 8)
        labels = PEOPLE["age"].labels
        for choice, exact in zip(parts.majority("age", 10_000), ages, strict=True):
            assert exact[labels.index(choice)] == exact.max()
        for own, age, other in zip(parts.histograms([[("age",), ("ill", "sex")]] * 6, 20_000), ages, both, strict=True):
            assert_same([each.values for each in own], [age, other])


# --- residuals -------------------------------------------------------------------------------------------------------


def class_domain(classes: int) -> Domain:
    return Domain(
        (
            Nominal("n", ("a", "b", "c"), other=True),
            Numeric("x", Fraction(0), Fraction(10), Fraction(1), bins=2, missing=True),
            Nominal("y", tuple(str(c) for c in range(classes))),
        ),
        target="y",
    )


@each_storage_and_spark
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_extreme_logits_are_the_same_numbers_everywhere(stores: Any, storage: str, classes: int) -> None:
    domain = class_domain(classes)
    rng = random.Random(classes)
    rows = [(rng.choice("abcd"), rng.choice([None, 1, 9]), str(rng.randrange(classes))) for _ in range(30)]
    edge = [2**24, -(2**24), 0, 2**14, 2**14 - 1, 1, -1]
    intercept = tuple(edge[c] for c in range(classes))
    table = np.array([[rng.choice([0, 1, -1, 2**14, -(2**23), 2**23]) for _ in range(classes)] for _ in range(4)])
    models = [
        AdditiveModel(intercept),
        AdditiveModel((0,) * classes, ((("n",), table.astype(np.int32)),)),
        AdditiveModel(
            (0,) * classes, ((("n",), table.astype(np.int32)), (("n",), (table[::-1] // 2).astype(np.int32)))
        ),
        AdditiveModel((1,) * classes),
    ]
    where = Rows().divide([Split("x", (5,))], domain)
    caps = [(RESIDUAL_GRID,) * classes, tuple(range(1, classes + 1))]
    queries = [
        ResidualQuery(where, model, (("n",), ("n", "x")), "y", caps[number % 2]) for number, model in enumerate(models)
    ]
    check(stores, storage, domain, ["VARCHAR", "DOUBLE", "VARCHAR"], rows, queries)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_residuals_are_those_of_a_softmax_up_to_the_grid(classes: int) -> None:
    domain = class_domain(classes)
    rng = np.random.default_rng(classes)
    for _ in range(200):
        scores = rng.integers(-3 * LOGIT_GRID, 3 * LOGIT_GRID, classes)
        label = int(rng.integers(classes))
        model = AdditiveModel(tuple(int(score) for score in scores))
        query = ResidualQuery(Rows(), model, (("n",),), "y", (RESIDUAL_GRID,) * classes)
        (found,) = ReferenceEngine(domain, [("a", 1, str(label))]).exact_residuals(query)
        shares = np.exp(scores / LOGIT_GRID) / np.exp(scores / LOGIT_GRID).sum()
        own = found.exact_own[0, 0, label] / RESIDUAL_GRID
        assert own == pytest.approx(1 - shares[label], abs=2 / RESIDUAL_GRID)
        if found.exact_others is not None:
            others = np.delete(found.exact_others[0, 0] / RESIDUAL_GRID, label)
            np.testing.assert_allclose(others, np.delete(shares, label), atol=2 / RESIDUAL_GRID)
            assert others.sum() <= own


def test_a_model_that_grew_by_a_term_is_scored_like_a_new_one() -> None:
    domain = class_domain(3)
    frame = pd.DataFrame({"n": ["a", "b"], "x": [1, 9], "y": ["0", "2"]})
    first = (("n",), np.arange(12, dtype=np.int32).reshape(4, 3) * 300)
    second = (("x",), np.arange(9, dtype=np.int32).reshape(3, 3) * -200)
    models = [AdditiveModel((5, 0, 1), terms) for terms in [(), (first,), (first, second), (second,), (first,)]]
    engine = MemoryEngine.from_frame(frame, domain)
    for model in models:
        query = ResidualQuery(Rows(), model, (("n",),), "y", (1024, 1024, 1024))
        assert_same(ask(engine, query), ask(MemoryEngine.from_frame(frame, domain), query))


# --- one statement for a level ---------------------------------------------------------------------------------------


def level_table(tmp_path: Path) -> tuple[privet.ProtectedTable, Domain]:
    eight = tuple(str(i) for i in range(8))
    names = ("a", "b", "c", "d", "e")
    domain = Domain((*(Nominal(name, eight) for name in names), Nominal("y", ("0", "1"))), target="y")
    frame = pd.DataFrame(np.random.default_rng(1).integers(0, 8, (500, 6)).astype(str), columns=[*names, "y"])
    frame.to_csv(tmp_path / "level.csv", index=False)
    return privet.open(tmp_path / "level.csv", domain, budget=100, access="push-down"), domain


def test_a_select_over_64_parts_is_one_statement_besides_the_node_table(
    tmp_path: Path, statements: Callable[[Any], Callable[[], list[str]]]
) -> None:
    table, _ = level_table(tmp_path)
    above = table.partition("a")
    above.count(1)
    parts = above.partition("b")
    log = statements(table._session.engine)
    assert len(parts.select("max", 1)) == 64
    create, select = log()
    assert create.startswith("CREATE TABLE nodes") and select.startswith("SELECT")
    parts.select("gini", 1)
    assert len(log()) == 3
    table.close()


@pytest.mark.parametrize(
    "question",
    [
        "count",
        "histogram",
        "sum",
        "quantile",
        "thresholds",
        "residuals",
        "pairs",
        "histograms",
        "majority",
        "coins",
    ],
)
def test_every_question_about_parts_is_one_statement(
    tmp_path: Path, statements: Callable[[Any], Callable[[], list[str]]], question: str
) -> None:
    with_number = Domain(
        (
            Nominal("a", tuple(str(i) for i in range(8))),
            Numeric("x", Fraction(0), Fraction(9), Fraction(1)),
            Nominal("y", ("0", "1")),
        ),
        target="y",
    )
    frame = pd.DataFrame({"a": list("01234567") * 3, "x": range(24), "y": list("01") * 12})
    frame.to_csv(tmp_path / "small.csv", index=False)
    with privet.open(tmp_path / "small.csv", with_number, budget=100, access="push-down") as table:
        parts = table.partition("a")
        parts.count(1)
        ask_parts = {
            "count": lambda: parts.count(1),
            "histogram": lambda: parts.histogram("a", "y", epsilon=1),
            "sum": lambda: parts.mean("x", 1),
            "quantile": lambda: parts.median("x", 1),
            "thresholds": lambda: parts.select("max", 1, thresholds=True),
            "pairs": lambda: parts.select("max", 1, attributes=[("x", 3), ("x", 5)]),
            "histograms": lambda: parts.histograms([[("x",), ("a", "y")]] * 8, 1),
            "majority": lambda: parts.majority("x", 1),
            "coins": lambda: table.scatter(8, 1).count(1),
            "residuals": lambda: parts.select_residuals(AdditiveModel((0, 0)), [("a",), ("a", "x")], (9, 9), 1),
        }
        log = statements(table._session.engine)
        assert len(ask_parts[question]()) == 8
        asked = [statement for statement in log() if not statement.startswith(("CREATE", "DROP"))]
        assert len(asked) == 1


# --- files as the world writes them ----------------------------------------------------------------------------------

TWO = Domain((Nominal("n", ("a", "b"), other=True, missing=True), Nominal("y", ("0", "1"), missing=True)))


def counts_of(path: Path, domain: Domain = TWO) -> list[list[int]]:
    engine = DuckDBEngine(Source(path), domain)
    try:
        (total,) = engine.exact_counts(CountQuery(Rows(), (("n", "y"),)))
        return [list(cell) for cell in total[0].tolist()]
    finally:
        engine.close()


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_csv_files_of_every_system_are_read(tmp_path: Path, newline: str, mark: str) -> None:
    lines = ["n,y", "a,0", '"b","1"', ",0", "é,1"]
    (tmp_path / "t.csv").write_text(mark + newline.join(lines) + newline, encoding="utf-8", newline="")
    assert counts_of(tmp_path / "t.csv") == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_the_end_of_a_csv_file_adds_no_row(tmp_path: Path, end: str) -> None:
    (tmp_path / "t.csv").write_text("n,y\na,0" + end)
    assert counts_of(tmp_path / "t.csv") == [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    "line",
    [
        b"a",
        b"a,0,1,2",
        b'a"b,0',
        b"\xff\xfe,0",
        b"a\x00b,0",
        b'"x\ny",0',
        b'"x\r\ny",0',
        b",",
        b'"",""',
        b" ",
    ],
    ids=repr,
)
def test_a_strange_line_disturbs_no_other(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(b"n,y\n" + b"a,0\n" * 3 + line + b"\n" + b"b,1\n" * 4)
    found = counts_of(tmp_path / "t.csv")
    assert 3 <= found[0][0] <= 4 and found[1][1] == 4
    assert 7 <= sum(map(sum, found)) <= 8


def test_a_quoted_line_break_far_into_a_large_file_is_part_of_its_field(tmp_path: Path) -> None:
    few = b"a,0\n" * 400_000 + b'"line\nbreak",1\n' + b"b,1\n" * 400_000
    (tmp_path / "t.csv").write_bytes(b"n,y\n" + few)
    assert counts_of(tmp_path / "t.csv") == [[400_000, 0, 0], [0, 400_000, 0], [0, 1, 0], [0, 0, 0]]


def test_a_line_beyond_all_measure_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"n,y\na,0\n" + b"x" * (2**24 + 10) + b",0\nb,1\n")
    found = counts_of(tmp_path / "t.csv")
    assert found[0][0] == 1 and found[1][1] == 1


@pytest.mark.parametrize("name", ["t[1].csv", "t*.csv", "t?.csv", "{t1,t2}.csv"])
def test_a_file_is_read_by_its_name_and_never_as_a_pattern(tmp_path: Path, name: str) -> None:
    (tmp_path / "t1.csv").write_text("n,y\n" + "b,1\n" * 5)
    (tmp_path / name).write_text("n,y\na,0\n")
    assert counts_of(tmp_path / name) == [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_folders_of_a_file_are_no_columns(tmp_path: Path, ending: str) -> None:
    folder = tmp_path / "n=b"
    folder.mkdir()
    frame = pd.DataFrame({"n": ["a", "a"], "y": ["0", "1"]})
    if ending == "csv":
        frame.to_csv(folder / "t.csv", index=False)
    else:
        frame.to_parquet(folder / "t.parquet")
    assert counts_of(folder / f"t.{ending}") == [[1, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("header", [",n,y", "N,n,y", 'n,"a\nb",y', "n, n,y", 'n,"é""x",y', "n,a'b,y"])
def test_undeclared_columns_may_have_any_name(tmp_path: Path, header: str) -> None:
    names = next(iter(header.split("\n"))) if "\n" not in header else header
    position = 0 if names.startswith(("N", ",")) else 1
    fields = ["a", "0"]
    fields.insert(position, "zzz")
    (tmp_path / "t.csv").write_text(header + "\n" + ",".join(fields) + "\n")
    assert counts_of(tmp_path / "t.csv")[0] == [1, 0, 0]

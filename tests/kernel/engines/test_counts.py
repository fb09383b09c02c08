"""Every engine counts as the reference engine does: rows on boundaries, values of every type."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernel.engines.comparison import (
    PEOPLE,
    PEOPLE_TYPES,
    ask,
    assert_same,
    by_sex_and_age,
    check,
    each_storage_and_spark,
    everything,
    people,
    people_queries,
)
from kernel.engines.hard_tables import NAMES, SHAPES, TEXT_NUMBERS, VALUES, declarable

from privet.kernel.column import LONGEST_NUMBER, Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, GridQuery
from privet.kernel.engines.duckdb.engine import DuckDBEngine, DuckDBSource
from privet.kernel.engines.memory import engine as memory
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.rows import Condition, Rows, Split


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
    engine = DuckDBEngine(DuckDBSource(tmp_path / "large.csv"), PEOPLE)
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

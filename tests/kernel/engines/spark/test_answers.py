"""Spark: the same numbers as the other engines, for any number of rows."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from kernel.engines.comparison import (
    PEOPLE,
    PEOPLE_TYPES,
    ask,
    assert_same,
    by_sex_and_age,
    check,
    full_cells,
    people,
    people_queries,
)
from kernel.engines.spark.frames import CENSUS, NUMBERS, cache, cached, census, engine_over
from sizes import long
from spark_session import SETTINGS, require
from sqlglot import exp

import privet
from privet.kernel.column import LONGEST_NUMBER, Nominal
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, GridQuery
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.rows import Condition, Rows, Split

pytestmark = pytest.mark.xdist_group("spark")


# --- any number of rows ---------------------------------------------------------------------------------------------


@long
@pytest.mark.parametrize("level", ["MEMORY_AND_DISK", "NONE"])
def test_a_large_answer_comes_in_slices(spark: Any, monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    """Each of them is small, whatever the number of rows; nothing of it is kept."""
    from privet.kernel.engines.spark import engine as module

    rows = people(200)
    fetched: list[int] = []
    arrays = module._arrays

    def noted(tables: Any) -> Any:
        fetched.extend(table.nbytes for table in tables)
        return arrays(tables)

    with cache(spark, level):
        engine = engine_over(rows)
        monkeypatch.setattr(module, "_AT_ONCE", 2**10)
        monkeypatch.setattr(module, "_arrays", noted)
        queries = people_queries(by_sex_and_age())
        for query in queries:
            assert_same(ask(engine, query), ask(ReferenceEngine(PEOPLE, rows), query))
        merged = engine.snapshot()
        assert_same(ask(merged, CountQuery(Rows(), (("sex",),))), ask(engine, CountQuery(Rows(), (("sex",),))))
        engine.close()
    assert len(fetched) > len(queries) + 2 and max(fetched) <= 2**10


MANY = """
import sys
import numpy as np
from fractions import Fraction
from pyspark.sql import SparkSession
import privet
from privet import Numeric
from privet.kernel.engines.addresses import spark_frame
from privet.kernel.engines.contract import GridQuery
from privet.kernel.rows import Rows

builder = SparkSession.builder.master("local[2]").config("spark.driver.maxResultSize", sys.argv[1])
for setting, value in SETTINGS.items():
    builder = builder.config(setting, value)
spark = builder.getOrCreate()
domain = privet.Domain((Numeric("x", Fraction(0), Fraction(2**24 - 1), Fraction(1), bins=2),))
for rows in map(int, sys.argv[2:]):
    try:
        engine = spark_frame(spark.range(rows).toDF("x")).open(domain)
        (found,) = engine.exact_grid(GridQuery(Rows(), ("x",)))
        print(rows, np.array_equal(found.index, np.arange(rows)), found.exact_counts.sum())
    except privet.errors.PrivetError as error:
        print(type(error).__name__, error)
"""


@long
@pytest.mark.parametrize("limit", ["64m", "1m"])
def test_the_size_of_an_answer_that_spark_allows_tells_no_number_of_rows(limit: str) -> None:
    """Spark ended the job from some number of values on: an exact comparison for next to nothing."""
    require()
    numbers = [1, 4_000_000] if limit == "64m" else [1, 100_000]
    done = subprocess.run(
        [sys.executable, "-c", f"SETTINGS = {SETTINGS!r}\n" + MANY, limit, *map(str, numbers)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if limit == "64m":
        assert done.stdout.splitlines() == [f"{rows} True {rows}" for rows in numbers], done.stderr
        return
    refused = (
        "DataError Spark ends every job whose answer is larger than spark.driver.maxResultSize=1048576b, so that the "
        "number of rows would decide which questions are answered; start it with --conf "
        "spark.driver.maxResultSize=64m or more."
    )
    assert done.stdout.splitlines() == [refused, refused], done.stderr


@long
def test_a_text_of_64_megabytes_is_one_row_like_any_other(spark: Any) -> None:
    domain = Domain((Nominal("n", ("f", *(f"v{i}" for i in range(40))), other=True), NUMBERS.columns[0]))
    times = "IF(id = 0, 64000000, 1)"
    long = spark.sql(f"SELECT repeat('f', {times}) AS n, repeat('1', {times}) AS x FROM range(2)")
    with privet.open(long, domain, budget=10**6) as table:
        engine: Any = table._session.engine
        (found,) = engine.exact_counts(CountQuery(Rows(), (("n",),)))
        assert (found[0, 0], found[0, -1], found.sum()) == (1, 1, 2)
        assert engine.exact_grid(GridQuery(Rows(), ("x",)))[0].index.tolist() == [-1, 1]


# --- the same numbers ------------------------------------------------------------------------------------------------


def test_coins_are_the_hash_of_a_row(spark: Any, stores: Any) -> None:
    coins = Rows().scatter(3, 10**30).divide([Split("age", (30,)), None, Split("sex")], PEOPLE)
    check(stores, "spark", PEOPLE, PEOPLE_TYPES, people(80), full_cells(coins))


def test_texts_beyond_all_measure_are_read_in_no_time(spark: Any) -> None:
    """Many digits and a letter: a regular expression that goes back would take minutes for this one row."""
    digits, half, blanks = "9" * (LONGEST_NUMBER - 8), "9" * (LONGEST_NUMBER // 2 - 8), " " * (LONGEST_NUMBER - 8)
    numbers = [digits, "0." + digits, "1e" + digits, "-1e" + digits, blanks + "7"]
    others = [digits + "x", f"{half}.{half}x", blanks, "1e" + digits + "e", "9" * 10**6, "\0", "5\0", "5\n", "\ud7ff"]
    engine = engine_over([(text,) for text in numbers + others], NUMBERS, ["VARCHAR"])
    (found,) = engine.exact_grid(GridQuery(Rows(), ("x",)))
    assert (found.index.tolist(), found.exact_counts[:, 0].tolist()) == ([-1, 0, 1, 7, 9], [len(others), 1, 1, 1, 2])
    engine.close()


@long
def test_old_levels_are_computed_again(spark: Any) -> None:
    rows = people(40)
    engine = engine_over(rows)
    chain = [Rows().keep([0], (Condition("age", None, low, 101),)).divide([Split("sex")], PEOPLE) for low in range(5)]
    for where in [*chain, *chain[:2]]:
        query = CountQuery(where, ((),))
        assert_same(ask(engine, query), ask(ReferenceEngine(PEOPLE, rows), query))
        assert cached(spark) <= 4  # the codes, and three levels
    engine.close()


def test_a_part_of_a_part_of_a_part_of_many_is_answered(spark: Any) -> None:
    engine = engine_over(people(30))
    where = Rows().divide([Split("sex")], PEOPLE)
    for _ in range(20):
        where = where.keep([0, 2, 1], (Condition("age", None, 0, 101),))
    query = CountQuery(where, (("ill",),))
    assert_same(ask(engine, query), ask(ReferenceEngine(PEOPLE, people(30)), query))
    engine.close()


@long
def test_keys_too_large_to_be_packed_are_counted_one_group_after_the_other(spark: Any, monkeypatch: Any) -> None:
    from privet.kernel.engines.spark import engine as module

    engine = engine_over(people(30))
    packed = [ask(engine, query) for query in people_queries(by_sex_and_age())]
    monkeypatch.setattr(module, "_LARGEST", 0)
    queries = people_queries(by_sex_and_age())
    for expected, query in zip(packed[:2], queries[:2], strict=True):
        assert_same(ask(engine, query), expected)
    engine.close()


def test_a_sum_beyond_64_bits_stops_there(spark: Any) -> None:
    from privet.kernel.engines.spark.engine import DIALECT, _saturating

    summed = exp.select(exp.Sum(this=exp.column("x")).as_("s")).from_("numbers")
    large = [f"SELECT {number} AS x" for number in (2**63 - 1, 0, 2**62)]
    found = [
        spark.sql(f"WITH numbers AS ({' UNION ALL '.join(each)}) {DIALECT.sql(_saturating(summed))}").collect()[0][0]
        for each in (large[:2], large, large[1:])
    ]
    assert found == [2**63 - 1, 2**63 - 1, 2**62]


@long
@pytest.mark.parametrize(
    "classifier",
    [
        privet.DiffPID3Classifier("1", max_depth=3),
        privet.DiffPC45Classifier("20", max_depth=3),  # divides at thresholds
        privet.BoostedTablesClassifier("1", random_state=0),
    ],
    ids=lambda each: each.algorithm,
)
def test_the_same_noise_publishes_the_same_model(spark: Any, classifier: Any) -> None:
    rows, data = census()
    with privet.testing.open(rows, CENSUS, budget=20, seed=7) as table:
        expected = classifier.fit(table).model_.to_json()
    with privet.testing.open(data, CENSUS, budget=20, seed=7) as table:
        assert classifier.fit(table).model_.to_json() == expected

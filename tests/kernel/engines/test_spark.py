"""Spark: one job for a question, statements of its own session, caches that go, and failures without Spark's words."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sqlglot
from kernel.engines.test_counts import (
    PEOPLE,
    PEOPLE_TYPES,
    ask,
    assert_same,
    by_sex_and_age,
    check,
    everything,
    full_cells,
    people,
    people_queries,
)
from kernel.engines.test_sql_golden import ASK, DOMAIN, PARTS, TYPES
from spark_session import SETTINGS, frame, shared
from sqlglot import exp

import privet
from privet.errors import DataError, EngineFailed, LedgerError
from privet.kernel.addresses import source_of, spark_frame
from privet.kernel.column import LONGEST_NUMBER, Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, GridQuery
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.rows import Condition, Rows, Split

pytestmark = pytest.mark.xdist_group("spark")

GOLDEN = Path(__file__).parent / "golden" / "spark"
UPDATE = os.environ.get("PRIVET_UPDATE_GOLDEN") == "1"
CENSUS = privet.datasets.census_domain()


@pytest.fixture
def spark() -> Iterator[Any]:
    """The session; nothing of privet's may be left in it."""
    session = shared()
    settings, views = session.conf.getAll, session.catalog.listTables()
    yield session
    assert cached(session) == 0
    assert session.catalog.listTables() == views and session.conf.getAll == settings
    assert not session.catalog.listTables("global_temp")


def cached(session: Any) -> int:
    return int(session.sparkContext._jsc.getPersistentRDDs().size())


NUMBERS = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(1), missing=True),))


def engine_over(rows: Any, domain: Domain = PEOPLE, types: Any = PEOPLE_TYPES) -> Any:
    data, _ = frame(domain.names, types, rows)
    return spark_frame(data).open(domain)


def census(rows: int = 600) -> Any:
    found = privet.datasets.census(rows, seed=3)
    kinds = [{"i": "BIGINT", "f": "DOUBLE"}.get(getattr(each, "kind", ""), "VARCHAR") for each in found.dtypes]
    data, _ = frame(list(found.columns), kinds, found.astype(object).where(found.notna(), None).to_numpy().tolist())
    return found, data


def jobs(session: Any, group: str) -> set[int]:
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # a listener tells the tracker, and may be late
    return set(session.sparkContext.statusTracker().getJobIdsForGroup(group))


@contextmanager
def cache(session: Any, level: str) -> Iterator[None]:
    session.conf.set("spark.privet.cache", level)
    try:
        yield
    finally:
        session.conf.unset("spark.privet.cache")


# --- any number of rows ---------------------------------------------------------------------------------------------


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
from privet.kernel.addresses import spark_frame
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


@pytest.mark.parametrize("limit", ["64m", "1m"])
def test_the_size_of_an_answer_that_spark_allows_tells_no_number_of_rows(limit: str) -> None:
    """Spark ended the job from some number of values on: an exact comparison for next to nothing."""
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


# --- jobs and caches -------------------------------------------------------------------------------------------------


def test_a_level_of_a_tree_is_one_job(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, data = census(300)
    with privet.open(data, CENSUS, budget=10) as table:
        engine = table._session.engine
        opening = jobs(spark, engine.group)
        asked: list[Rows] = []
        for name in ("_counts", "exact_grid"):  # what is not known from the level above
            answer = getattr(engine, name)
            monkeypatch.setattr(engine, name, lambda query, of=answer: (asked.append(query.rows), of(query))[1])
        privet.DiffPID3Classifier("1", max_depth=3).fit(table)
        assert len(jobs(spark, engine.group) - opening) == len(asked)
        before = len(jobs(spark, engine.group))
        parts = table.partition("education").partition("age")
        assert len(parts.select("gini", 1)) > 20
        assert len(jobs(spark, engine.group)) == before + 1
        parts.select("max", 1)
        assert len(jobs(spark, engine.group)) == before + 2


@pytest.mark.parametrize(("attributes", "values"), [(5, 4), (10, 8)])
def test_a_level_of_a_fit_is_one_job_with_one_shuffle(spark: Any, attributes: int, values: int) -> None:
    """One for the size of the root, and one for each level, whatever the number of nodes and attributes."""
    several = tuple(Nominal(f"a{i}", tuple(range(values))) for i in range(attributes))
    domain = Domain((*several, Nominal("y", (0, 1))), target="y")
    rows = np.random.default_rng(1).integers(0, [column.size for column in domain], (2000, attributes + 1)).tolist()
    with privet.open(frame(domain.names, ["BIGINT"] * (attributes + 1), rows)[0], domain, budget=1000) as table:
        group = table._session.engine.group
        opening = jobs(spark, group)
        tree = privet.DiffPID3Classifier(500, max_depth=3).fit(table).model_.tree
        assert (tree.depth, tree.leaves) == (3, values**3)
        told = [spark.sparkContext.statusTracker().getJobInfo(job) for job in jobs(spark, group) - opening]
        assert [len(job.stageIds) for job in told] == [2] * (1 + 3)


def test_closing_leaves_nothing_and_may_be_done_twice(spark: Any) -> None:
    table = privet.open(census(50)[1], CENSUS, budget=10)
    table.partition("education").count(1)
    assert cached(spark) == 2
    table.close()
    assert cached(spark) == 0
    table.close()
    with pytest.raises(DataError, match="was closed"):
        table.count(1)


def test_a_forgotten_engine_is_swept_by_the_next_one(spark: Any) -> None:
    engine = engine_over(people(20))
    del engine
    gc.collect()
    assert cached(spark) == 1
    engine_over(people(20)).close()


def test_two_engines_over_the_same_rows_have_caches_of_their_own(spark: Any) -> None:
    data, _ = frame(PEOPLE.names, PEOPLE_TYPES, people(20))
    one, other = (spark_frame(data).open(PEOPLE) for _ in range(2))
    assert cached(spark) == 2
    one.close()
    assert cached(spark) == 1
    other.close()


@pytest.mark.parametrize("level", ["NONE", "disk_only"])
def test_the_owner_says_how_rows_are_cached(spark: Any, stores: Any, level: str) -> None:
    with cache(spark, level), stores.open("spark", PEOPLE, PEOPLE_TYPES, people(30)) as (engine, held):
        query = people_queries(by_sex_and_age())[0]
        assert_same(ask(engine, query), ask(ReferenceEngine(PEOPLE, held), query))
        assert cached(spark) == (0 if level == "NONE" else 2)


def test_a_storage_level_that_does_not_exist_is_refused(spark: Any) -> None:
    with cache(spark, "in a drawer"):
        with pytest.raises(DataError, match=r"no storage level 'IN A DRAWER'; set spark\.privet\.cache to NONE or"):
            engine_over(people(3))


@pytest.mark.parametrize("level", ["memory_only", "MEMORY_ONLY_2"])
def test_a_storage_level_that_reads_rows_again_where_they_are_many_is_refused(spark: Any, level: str) -> None:
    with cache(spark, level), pytest.raises(DataError, match=f"storage level {level.upper()} forgets rows where they"):
        engine_over(people(3))


def test_the_callers_thread_and_session_stay_as_they_were(spark: Any) -> None:
    from pyspark import RDD
    from pyspark.sql import SparkSession

    to_frame = RDD.toDF
    spark.sparkContext.setJobGroup("mine", "my job")
    try:
        engine_over(people(10)).close()
        assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == "mine"
        assert not jobs(spark, "mine")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        spark.sparkContext.setLocalProperty("spark.job.description", None)
    assert RDD.toDF is to_frame and SparkSession.getActiveSession() is spark


def test_settings_of_the_session_do_not_change_what_is_counted(spark: Any, stores: Any) -> None:
    """Each of these would change what a statement means, or make one fail."""
    odd = {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
    }
    before = spark.conf.getAll
    values = ("it's", 'a"b', "\\", "\\n", "${x}", "${env:HOME}", "1e22", "%_", "\t", "line\nbreak", "' OR 1=1 --")
    domain = Domain((Nominal("n", values, other=True), Numeric("x", Fraction(0), Fraction(9), Fraction(1, 10))))
    rows = [(value, f" {i}.5e-1\t") for i, value in enumerate([*values, "${y}", "", "n"])]
    for name, value in odd.items():
        spark.conf.set(name, value)
    try:
        check(stores, "spark", domain, ["VARCHAR", "VARCHAR"], rows, everything(domain))
    finally:
        for name in odd:
            spark.conf.set(name, before[name]) if name in before else spark.conf.unset(name)


def test_no_statement_fails_where_spark_is_strict(spark: Any, stores: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In ANSI mode a cast, an index or an overflow is an error: no statement has one, whatever the row."""
    from privet.kernel.engines.spark import engine as module

    monkeypatch.setitem(module._MEANING, "spark.sql.ansi.enabled", "true")
    numbers = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(1), missing=True), Nominal("y", ("a", "b"))))
    texts = [*("1e400", "-1e400", "1e-400", "", " ", "x", "9" * 400, "NaN", "1d", "\ud7ff"), None]
    check(stores, "spark", numbers, ["VARCHAR"] * 2, [(each, "a") for each in texts], everything(numbers))
    check(stores, "spark", PEOPLE, PEOPLE_TYPES, people(30), people_queries(by_sex_and_age()))


# --- the statements --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compiled() -> dict[str, list[str]]:
    """Every statement the engine runs, by the name of its golden file."""
    from privet.kernel.engines.spark.engine import SparkEngine

    statements: dict[str, list[str]] = {}
    seen: list[exp.Expression] = []
    with pytest.MonkeyPatch.context() as patch:
        run = SparkEngine._frame
        patch.setattr(SparkEngine, "_frame", lambda engine, tree: (seen.append(tree), run(engine, tree))[1])
        engine = engine_over([], DOMAIN, TYPES)
        statements["coding"] = [tree.sql(dialect="spark", pretty=True) for tree in seen]
        seen.clear()
        questions: dict[str, Callable[[Any], Any]] = {
            "nodes": lambda engine: engine.exact_counts(CountQuery(PARTS, ((),))),
            **{name: of for name, of in ASK.items() if name != "coins"},
            "coins": lambda engine: engine.exact_counts(CountQuery(PARTS.scatter(3, 7), ((),))),
        }
        for name, question in questions.items():
            question(engine)
            statements[name] = [tree.sql(dialect="spark", pretty=True) for tree in seen]
            seen.clear()
        engine.close()
    return statements


def test_the_compiled_sql_is_the_golden_one(compiled: dict[str, list[str]]) -> None:
    if UPDATE:
        GOLDEN.mkdir(exist_ok=True)
        for name, statements in compiled.items():
            (GOLDEN / f"{name}.sql").write_text("".join(f"{each};\n" for each in statements), encoding="utf-8")
    golden = {path.stem: path.read_text(encoding="utf-8") for path in GOLDEN.glob("*.sql")}
    assert golden == {name: "".join(f"{each};\n" for each in statements) for name, statements in compiled.items()}


def test_what_people_wrote_stands_only_inside_quotes(compiled: dict[str, list[str]]) -> None:
    for statement in (each for statements in compiled.values() for each in statements):
        bare = re.sub(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`", "", statement, flags=re.DOTALL)
        assert not re.search(r"drop|wage|sex|many|maybe|order|people|--|;|['\"`]", bare, re.IGNORECASE)


def test_after_coding_a_statement_has_neither_texts_nor_nested_questions(compiled: dict[str, list[str]]) -> None:
    for name, statements in compiled.items():
        for tree in map(lambda each: sqlglot.parse_one(each, read="spark"), statements if name != "coding" else []):
            assert not [each for each in tree.find_all(exp.Literal) if each.is_string]
            assert all(isinstance(each.parent, exp.From) for each in tree.find_all(exp.Subquery))
            assert not list(tree.find_all(exp.Exists, exp.Command, exp.Union))


# --- attacks ---------------------------------------------------------------------------------------------------------

EXACT = 10_000  # at this epsilon no noise is to be seen
WAGES = Domain(
    (
        Nominal("job", ("clerk", "nurse"), other=True),
        Numeric("wage", Fraction(0), Fraction(1000), Fraction(1, 4), missing=True),
        Nominal("ill", ("no", "yes")),
    ),
    target="ill",
)


def wages(values: Any, kind: str) -> privet.ProtectedTable:
    rows = [("clerk", value, "no") for value in values]
    return privet.open(frame(WAGES.names, ["VARCHAR", kind, "VARCHAR"], rows)[0], WAGES, budget=10**6)


def test_sums_are_of_whole_numbers_and_nothing_swallows_a_row(spark: Any) -> None:
    """2^53 and a thousand ones: a sum of floats would lose them all, in some orders."""
    with wages([2.0**53] + [1.0] * 1000, "DOUBLE") as table:
        assert float(table.sum("wage", EXACT)) == pytest.approx(2000, abs=1)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), None])
def test_a_number_that_is_none_poisons_no_sum(spark: Any, bad: Any) -> None:
    """NaN is the largest number in Spark: clamped, it would count as the upper bound."""
    counted = 0 if bad is None or bad != bad or bad < 0 else 1000
    with wages([bad, 1.0, 2.0], "DOUBLE") as table:
        assert float(table.sum("wage", EXACT)) == pytest.approx(3 + counted, abs=0.5)
        assert int(table.count(EXACT)) == 3


def test_a_row_that_a_cast_would_quote_is_a_missing_value(spark: Any) -> None:
    with wages(["12", "SECRET", "0x1F", "1d", "Infinity", ""], "VARCHAR") as table:
        assert int(table.where(wage=(0, 1000)).count(EXACT)) == 1
        assert int(table.count(EXACT)) == 6


@pytest.mark.parametrize(
    "words", ["clerk' OR '1'='1", "(select max(wage) from source)", "1/0", "`wage`", "raise_error('x')"]
)
def test_words_of_an_analyst_are_compared_and_never_run(spark: Any, words: str) -> None:
    with wages([1.0], "DOUBLE") as table:
        for question in (lambda: table.where(job=words).count(1), lambda: table.histogram(words, epsilon=1)):
            with pytest.raises(privet.errors.PrivetError):
                question()
        assert table.budget.spent == 0


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[logging.LogRecord]:
    """What PySpark's loggers write on the screen of whoever calls it, beside Spark's log."""
    from pyspark.logger import PySparkLogger

    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", records.append)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        monkeypatch.setattr(PySparkLogger.getLogger(name), "handlers", [handler])
    return records


@pytest.mark.parametrize("level", ["MEMORY_AND_DISK", "NONE"])
def test_a_frame_that_fails_on_a_row_says_nothing_of_it(spark: Any, logged: Any, level: str) -> None:
    """Without a cache too it fails when it is opened, although no row is left out for this column."""
    failing = spark.sql("SELECT IF(id < 1, id, CAST(concat('SECRET', id) AS BIGINT)) AS x FROM range(9)")
    with cache(spark, level), pytest.raises(DataError, match="cannot read the Spark frame to its end") as caught:
        privet.open(failing, NUMBERS, budget=1)
    assert "SECRET" not in str(caught.value) and caught.value.__cause__ is None and caught.value.__context__ is None
    assert not logged


@pytest.mark.parametrize("by", ["a statement", "columns"])
def test_a_row_that_makes_a_question_fail_is_shown_nowhere(
    spark: Any, logged: Any, by: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A file that was changed after the opening, and is read anew."""
    from pyspark.sql import functions

    path = tmp_path / "rows.txt"
    path.write_text("1\n2\n3000000\n")
    if by == "columns":
        data = spark.read.text(str(path)).select(functions.col("value").cast("bigint").alias("x"))
    else:
        data = spark.sql(f"SELECT CAST(value AS BIGINT) AS x FROM text.`{path}`")
    with cache(spark, "NONE"), privet.open(data, NUMBERS, budget=10**6) as table:
        path.write_text("1\n2\nSECRET!\n")
        with pytest.raises(EngineFailed, match=r"could not answer sum\(x\) on 'frame'\. Ledger entry 1") as caught:
            table.sum("x", EXACT, key="k")
        assert "SECRET" not in str(caught.value) and caught.value.__cause__ is None and caught.value.__context__ is None
        assert not logged and "SECRET" not in "".join(capfd.readouterr())
        (entry,) = table.budget.entries
        assert (entry.key, entry.answer, table.budget.spent) == ("k", None, EXACT)
        path.write_text("1\n2\n3000000\n")
        assert float(table.sum("x", EXACT, key="k")) == pytest.approx(12, abs=0.5)
        assert table.budget.spent == EXACT
    with pytest.raises(Exception, match="SECRET"):
        spark.sql("SELECT CAST('SECRET' AS INT)").collect()
    assert logged  # the caller's own


def test_a_question_that_fails_is_charged_and_says_nothing_of_a_row(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wages([1.0, 2.0], "DOUBLE") as table:
        engine = table._session.engine
        with monkeypatch.context() as broken:
            broken.setattr(engine, "_frame", lambda tree: spark.sql("SELECT CAST('SECRET' AS INT)"))
            with pytest.raises(EngineFailed, match="the spark engine could not answer count on 'frame'") as caught:
                table.count(1)
            with pytest.raises(EngineFailed, match="Spark could not finish a job") as inner:
                engine.exact_counts(CountQuery(Rows(), ((),)))
        for error in (caught.value, inner.value):
            assert "SECRET" not in str(error) and error.__cause__ is None and error.__context__ is None
        assert table.budget.spent == 1
        assert int(table.count(EXACT)) == 2


def test_several_threads_may_ask_at_once(spark: Any) -> None:
    rows = people(60)
    engine = engine_over(rows)
    queries = [CountQuery(Rows().keep([0], (Condition("age", None, low, 101),)), ((),)) for low in range(0, 60, 10)]
    found: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda i=i, query=query: found.update({i: ask(engine, query)}))
        for i, query in enumerate(queries)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, query in enumerate(queries):
        assert_same(found[i], ask(ReferenceEngine(PEOPLE, rows), query))
    engine.close()


def test_an_interrupted_question_stops_its_job_and_is_finished_under_its_key(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker, over = spark.sparkContext.statusTracker(), threading.Event()

    def interrupt() -> None:
        while not over.wait(0.01):
            if tracker.getActiveJobsIds():
                os.kill(os.getpid(), signal.SIGINT)
                return

    data, _ = frame(["n"], ["VARCHAR"], [("a",), ("b",)])
    with privet.open(data, ONE, budget=10**6, ledger=tmp_path / "t.ledger") as table:
        engine = table._session.engine
        watcher = threading.Thread(target=interrupt)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # PySpark's own would cancel all jobs
        try:
            with monkeypatch.context() as slow, pytest.raises(KeyboardInterrupt):
                slow.setattr(engine, "_frame", lambda tree: spark.range(10**13).selectExpr("sum(id % 7)"))
                watcher.start()
                table.count(EXACT, key="k")
        finally:
            over.set()
            watcher.join()
            signal.signal(signal.SIGINT, before)
            left = jobs(spark, engine.group) & set(tracker.getActiveJobsIds())
            spark.sparkContext.cancelAllJobs()  # what was left would run for hours
        assert not left
        (entry,) = table.budget.entries
        assert (entry.key, entry.question, entry.answer, entry.loss) == ("k", "count", None, EXACT)
        assert int(table.count(EXACT, key="k")) == 2
        assert [entry.key for entry in table.budget.entries] == ["k"] and table.budget.spent == EXACT


# --- opening ---------------------------------------------------------------------------------------------------------

ONE = Domain((Nominal("n", ("a", "b"), other=True, missing=True),))


def test_a_frame_has_a_ledger_in_memory_unless_it_is_given_one(spark: Any, tmp_path: Path) -> None:
    data, _ = frame(["n"], ["VARCHAR"], [("a",), ("b",)])
    with privet.open(data, ONE, budget=1) as table:
        assert "ledger in memory, gone with the process" in repr(table)
    for _ in range(2):
        with privet.open(data, ONE, budget=1, ledger=tmp_path / "n.ledger", name="people") as table:
            table.count(Fraction(1, 4))
            assert "people" in repr(table)
    assert table.budget.spent == Fraction(1, 2)


def test_a_merged_copy_is_read_into_memory(spark: Any) -> None:
    data, _ = frame(["n"], ["VARCHAR"], [("a",), ("b",), ("a",)])
    with privet.open(data, ONE, budget=10**6, access="snapshot") as table:
        assert cached(spark) == 0
        assert table.histogram("n", epsilon=EXACT).values.tolist() == [2, 1, 0, 0]


def test_a_table_of_the_session_is_opened_by_its_name(spark: Any, tmp_path: Path) -> None:
    frame(["n"], ["VARCHAR"], [("a",), ("b",), ("a",)])[0].createOrReplaceTempView("`people and others`")
    ledger = tmp_path / "people.ledger"
    address = "spark:///?table=%60people+and+others%60"
    try:
        with pytest.raises(LedgerError, match="no place for a ledger beside the Spark table 'people and others'"):
            privet.open(address, ONE, budget=1)
        with privet.open(address, ONE, budget=10**6, ledger=ledger) as table:
            assert int(table.count(EXACT)) == 3
        outside: list[Any] = []
        thread = threading.Thread(target=lambda: outside.append(privet.open(address, ONE, ledger=ledger)))
        thread.start()
        thread.join()
        assert outside[0].budget.spent == EXACT
        outside[0].close()
    finally:
        spark.catalog.dropTempView("people and others")


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("spark:///?table=nowhere", r"has no table 'nowhere' that it may read; check the name and the grants\."),
        ("spark:///?table=a%3B%20drop", r"has no table 'a; drop' that it may read"),
        ("spark:///?table=", r"names no table of the active Spark session; write spark:///\?table=NAME\."),
        ("spark://master:7077?table=t", "names no table of the active Spark session"),
    ],
)
def test_an_address_that_names_no_table_is_one_sentence(spark: Any, address: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence) as caught:
        source_of(address)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        lambda path: path.write_text("no Parquet"),
        pytest.param(
            lambda path: path.chmod(0), marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
        ),
    ],
    ids=["deleted", "overwritten", "forbidden"],
)
def test_files_that_cannot_be_read_are_one_sentence_and_no_ledger(
    spark: Any, tmp_path: Path, spoil: Callable[[Path], Any]
) -> None:
    folder, ledger = tmp_path / "rows", tmp_path / "t.ledger"
    frame(["n"], ["VARCHAR"], [("a",)])[0].write.parquet(str(folder))
    spark.read.parquet(str(folder)).createOrReplaceTempView("spoilt")
    for path in folder.glob("*.parquet"):
        spoil(path)
    try:
        with pytest.raises(DataError) as caught:
            privet.open("spark:///?table=spoilt", ONE, budget=1, ledger=ledger)
    finally:
        spark.catalog.dropTempView("spoilt")
    assert str(caught.value) == "cannot read the Spark table 'spoilt' to its end; look into Spark's log for the reason."
    assert not ledger.exists()


@pytest.mark.parametrize(
    ("table", "column", "sentence"),
    [
        ("nowhere", "day", "has no table 'nowhere' that it may read"),
        ("days", "night", "has no column 'night', which the domain declares"),
        ("days", "day", "column 'day' has type date; privet reads texts, numbers and booleans"),
    ],
)
def test_no_ledger_is_made_for_what_cannot_be_opened(
    spark: Any, tmp_path: Path, table: str, column: str, sentence: str
) -> None:
    spark.sql("SELECT DATE'2020-01-01' AS day").createOrReplaceTempView("days")
    try:
        with pytest.raises(DataError, match=sentence):
            declared = Domain((Nominal(column, ("a",)),))
            privet.open(f"spark:///?table={table}", declared, budget=1, ledger=tmp_path / "t.ledger")
    finally:
        spark.catalog.dropTempView("days")
    assert not list(tmp_path.iterdir())


def test_without_pyspark_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "privet.kernel.engines.spark.source", None)
    monkeypatch.delattr("privet.kernel.engines.spark.source", raising=False)
    with pytest.raises(DataError, match=r"pip install 'privet\[spark\]'"):
        source_of("spark:///?table=t")


def test_columns_are_found_by_name_and_refused_where_two_have_it(spark: Any) -> None:
    rows = [("a", "b", "c")]
    three = ["VARCHAR"] * 3
    named = Domain((Nominal("x.`y", ("b",)),))
    check_names(["ghost", "x.`y", "X"], named, rows, three)
    for names, why in (
        (["n", "N", "z"], "several columns with names that Spark does not tell apart, 'n'; rename them"),
        (["n", "n", "z"], "several columns with the same name, 'n'; rename them"),
        (["N", "m", "z"], "has no column 'n', which the domain declares"),
    ):
        with pytest.raises(DataError, match=why):
            spark_frame(frame(names, three, rows)[0]).open(ONE)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        check_names(["N", "n", "z"], Domain((Nominal("n", ("b",)),)), rows, three)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def check_names(names: list[str], domain: Domain, rows: Any, types: list[str]) -> None:
    engine = spark_frame(frame(names, types, rows)[0]).open(domain)
    assert engine.exact_counts(CountQuery(Rows(), ((),)))[0].tolist() == [1]
    engine.close()


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("DATE'2020-01-01'", "date"),
        ("array(1)", "array"),
        ("struct(1)", "struct"),
        ("X'00'", "binary"),
        ("NULL", "void"),
        ("INTERVAL '1' DAY", "interval day"),
    ],
)
def test_other_types_are_refused_by_name(spark: Any, column: str, kind: str) -> None:
    with pytest.raises(DataError, match=f"column 'n' has type {kind}; privet reads texts, numbers and booleans"):
        spark_frame(spark.sql(f"SELECT {column} AS n")).open(ONE)


@pytest.mark.parametrize("column", ["CAST('a' AS CHAR(1))", "CAST('a' AS VARCHAR(5))", "'a' COLLATE UNICODE_CI"])
def test_texts_of_every_kind_are_compared_letter_by_letter(spark: Any, column: str) -> None:
    domain = Domain((Nominal("n", ("A", "a")),))
    engine = spark_frame(spark.sql(f"SELECT {column} AS n")).open(domain)
    assert engine.exact_counts(CountQuery(Rows(), (("n",),)))[0].tolist() == [[0, 1]]
    engine.close()


def test_frames_that_are_no_fixed_table_are_refused(spark: Any) -> None:
    from pyspark.sql import functions

    data, _ = frame(["n"], ["VARCHAR"], [("a",)])
    drawn = data.where(functions.rand() < 0.5)
    with pytest.raises(DataError, match="the Spark frame is drawn at random whenever Spark computes it; write it to"):
        privet.open(drawn, ONE, budget=1)
    drawn.persist()
    spark_frame(drawn).open(ONE).close()
    drawn.unpersist()
    with pytest.raises(DataError, match="the Spark frame is a stream, without an end; open a table"):
        privet.open(spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS n"), ONE, budget=1)


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("pyspark.sql.connect.dataframe", "cannot open a frame of Spark Connect: privet runs on the driver"),
        ("pyspark.pandas.frame", r"cannot open a pandas-on-Spark frame; pass frame\.to_spark\(\)"),
    ],
)
def test_frames_of_other_kinds_are_told_what_to_do(module: str, sentence: str) -> None:
    data = type("DataFrame", (), {"__module__": module, "columns": []})()
    with pytest.raises(DataError, match=sentence):
        privet.open(data, ONE, budget=1)


def test_a_frame_that_only_looks_like_spark_is_none(spark: Any) -> None:
    assert spark_frame(pd.DataFrame({"n": ["a"]})) is None


def test_the_owner_sees_what_falls_outside(spark: Any) -> None:
    engine = spark_frame(frame(["n"], ["VARCHAR"], [("a",), ("x",), (None,)])[0]).open(Domain((Nominal("n", ("a",)),)))
    assert engine.exact_fit() == (3, 1)
    assert sorted(engine.exact_values("n"), key=repr) == [("a", 1), ("x", 1), (None, 1)]
    engine.close()


# --- a Spark that goes away ------------------------------------------------------------------------------------------

GONE = """
import os, signal, sys, threading
import privet
from fractions import Fraction
from privet import Domain, Nominal, Numeric
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]")
for setting, value in SETTINGS.items():
    builder = builder.config(setting, value)
ONE = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(1)),))

try:
    privet.open("spark:///?table=t", ONE, budget=1, ledger=sys.argv[1])
except privet.errors.DataError as error:
    print(error)

spark = builder.getOrCreate()
context = spark.sparkContext
table = privet.open(spark.range(9).toDF("x"), ONE, budget=100)

def tries(name):
    try:
        print(name, int(table.count(50)))
    except privet.errors.PrivetError as error:
        print(name, type(error).__name__, error)
    sys.stdout.flush()

child = os.fork()
if child == 0:
    tries("child:")
    table.close()
    os._exit(0)
os.waitpid(child, 0)
tries("parent:")

def when_busy(context, do):
    def watch():
        while not context.statusTracker().getActiveJobsIds():
            threading.Event().wait(0.05)
        do()
    threading.Thread(target=watch).start()

when_busy(context, lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    privet.open(spark.range(10**13).toDF("x"), ONE, budget=1)
except KeyboardInterrupt as error:
    print("interrupted", len(context.statusTracker().getActiveJobsIds()), context._jsc.getPersistentRDDs().size())

spent = table.budget.spent
frame = spark.range(9).toDF("x")
spark.stop()
tries("stopped:")
try:
    privet.open(frame, ONE, budget=1)
except privet.errors.DataError as error:
    print(error)
print(table.budget.spent == spent)

table.close()
spark = builder.getOrCreate()
table = privet.open(spark.range(9).toDF("x"), ONE, budget=100)
table._session.engine._frame = lambda tree: spark.range(10**13).selectExpr("sum(id % 7)")
process = spark.sparkContext._gateway.proc
when_busy(spark.sparkContext, process.kill)
tries("killed meanwhile:")
process.wait()
tries("killed:")
print(table.budget.spent, [entry.answer for entry in table.budget.entries])
sys.stdout.flush()
os._exit(0)
"""


def test_a_spark_that_goes_away_is_told_in_one_sentence_and_charged_only_for_what_it_was_asked(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"SETTINGS = {SETTINGS!r}\n" + GONE, str(tmp_path / "t.ledger")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.splitlines() == [
        "no Spark session is active, so there is no table 't'; start one, or use spark-submit.",
        "child: DataError a forked process cannot use the Spark session of the one it came from; open the table in "
        "its own.",
        "parent: 9",
        "interrupted 0 1",  # the cache of the table above
        "stopped: DataError the table 'frame' was closed; open it again.",
        "the Spark session of the Spark frame was stopped; start one and read the table again.",
        "True",
        "killed meanwhile: EngineFailed the spark engine could not answer count on 'frame'. Ledger entry 1 "
        "(epsilon=50) stands: a new try is a new charge.",
        "killed: DataError the table 'frame' was closed; open it again.",
        "50 [None]",
    ], done.stderr

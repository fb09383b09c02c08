"""Spark: one job for a question, caches that go, and a session that stays as it was."""

from __future__ import annotations

import gc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from kernel.engines.comparison import (
    PEOPLE,
    PEOPLE_TYPES,
    ask,
    assert_same,
    by_sex_and_age,
    check,
    everything,
    people,
    people_queries,
)
from kernel.engines.spark.frames import CENSUS, cache, cached, census, engine_over, jobs
from sizes import long
from spark_session import frame

import privet
from privet.errors import DataError
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.addresses import spark_frame
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.rows import Rows

pytestmark = pytest.mark.xdist_group("spark")


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


@long
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


@long
def test_a_fit_with_a_delta_is_one_job_a_question(spark: Any) -> None:
    """Class counts, probe, thirty steps, and pairs chosen and probed three times: each asks for all of its tables."""
    domain = Domain((*(Nominal(name, (0, 1, 2)) for name in "abc"), Nominal("y", (0, 1))), target="y", rows=2000)
    rows = np.random.default_rng(1).integers(0, [3, 3, 3, 2], (2000, 4)).tolist()
    with privet.open(frame(domain.names, ["BIGINT"] * 4, rows)[0], domain, budget=4, delta="1e-6") as table:
        group = table._session.engine.group
        opening = jobs(spark, group)
        fitted = privet.BoostedTablesClassifier(4).fit(table)
        assert len(fitted.privacy_.steps) == len(jobs(spark, group) - opening) == 2 + 30 + 3 * 2


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

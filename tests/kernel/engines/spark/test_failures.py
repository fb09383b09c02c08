"""Spark: attacks through rows and words, failures without Spark's words, and a Spark that goes away."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from kernel.engines.comparison import PEOPLE, ask, assert_same, people
from kernel.engines.spark.frames import EXACT, NUMBERS, ONE, cache, engine_over, jobs
from sizes import long
from spark_session import SETTINGS, frame, require

import privet
from privet.errors import DataError, EngineFailed
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.rows import Condition, Rows

pytestmark = pytest.mark.xdist_group("spark")


# --- attacks ---------------------------------------------------------------------------------------------------------

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


@long
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


@long
def test_a_spark_that_goes_away_is_told_in_one_sentence_and_charged_only_for_what_it_was_asked(tmp_path: Path) -> None:
    require()
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

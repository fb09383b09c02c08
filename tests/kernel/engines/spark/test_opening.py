"""Spark: which frames, tables and files can be opened, and what is said of the others."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from kernel.engines.spark.frames import EXACT, ONE, cached
from spark_session import frame

import privet
from privet.errors import DataError, LedgerError
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.kernel.engines.addresses import source_of, spark_frame
from privet.kernel.engines.contract import CountQuery
from privet.kernel.rows import Rows

pytestmark = pytest.mark.xdist_group("spark")


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
    monkeypatch.setitem(sys.modules, "privet.kernel.engines.spark.engine", None)
    monkeypatch.delattr("privet.kernel.engines.spark.engine", raising=False)
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

"""Dates in every storage: a text or a stored date has the cell that `Date.code` says, and none makes an engine stop."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel.engines.comparison import SPARK_AT_LENGTH, STORAGES, check, everything
from kernel.engines.conftest import Stores
from kernel.engines.test_mssql import in_duckdb
from sqlglot import exp

from privet.errors import DataError
from privet.kernel.column import Nominal
from privet.kernel.date import Date, date_at, day_of
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import GridQuery
from privet.kernel.engines.duckdb import engine as duckdb_engine
from privet.kernel.engines.duckdb.engine import DuckDBSource
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.mssql import engine as mssql
from privet.kernel.engines.postgres import engine as postgres
from privet.kernel.engines.sql import coding
from privet.kernel.engines.sql.coding import Held, Kind
from privet.kernel.rows import Rows

GOLDEN = Path(__file__).parent / "golden" / "dates"

DATES = ["0001-01-01", "0001-12-31", "1582-10-10", "1900-02-28", "1969-12-31", "1970-01-01", "1999-12-31", "2000-02-29"]
DATES += [
    "2019-12-31",
    "2020-02-29",
    "2020-03-01",
    "2020-12-31",
    "2021-06-15",
    "2024-01-31",
    "2100-02-28",
    "9999-12-31",
]
TIMED = ["2020-02-29 00:00", "2020-02-29T23:59:59.999999", "2020-02-29 23:30:00-05:00", "2020-02-29T00:00:00Z"]
TIMED += ["2020-02-29 24:99 whatever ~!", " 2020-02-29", "  2020-02-29 ", "2020-02-29 T"[:10], " 2020-02-29 10:00 "]
NO_DATES = ["", " ", "-", "--", "0000-01-01", "0000-02-29", "2020-00-10", "2020-13-01", "2020-01-00", "2020-01-32"]
NO_DATES += ["2021-02-29", "1900-02-29", "2100-02-29", "2020-02-30", "2020-04-31", "2020-06-31", "2020-09-31"]
NO_DATES += ["2020-11-31", "9999-99-99", "99999-01-01", "+2020-01-01", "-2020-01-01", "2020-1-1", "20200101"]
NO_DATES += ["2020/01/01", "01.02.2020", "2020-01", "2020", "2020-01-01T", "2020-01-01 ", "2020-01-01 a", "2020-01-01x"]
NO_DATES += [
    "2020-01-01T1:00",
    "2020-01-01 10",
    "2020-01-01 10:00é",
    "2020-01-01\n",
    "2020-01-01 10:00\n",
    "\n2020-01-01",
]
NO_DATES += [
    "\u0662020-01-01",
    "2020\u201001\u201001",
    "\uff12020-01-01",
    "infinity",
    "-infinity",
    "NaT",
    "now",
    "epoch",
    "today",
]
NO_DATES += [
    "0044-03-15 (BC)",
    "0044-03-15 BC",
    "12000-01-01",
    "2020-01-01'; DROP TABLE coded; --",
    "true",
    "18262",
    "1e5",
]
NO_DATES += [
    "2020-01-01 10:00" + "0" * 48,
    "2020-01-01 10:00" + "0" * 49,
    "9" * 70_000,
    "2020-01-01\t10:00",
    "2020-01-01t10:00",
]
NO_DATES += ["\t2020-01-01", "2020-01-01\t", "2020-01-01 10:00\t", "2020-01-01 10:00\t00"]
NO_DATES.remove("2020-01-01 ")  # blanks around a date are none of it
NO_DATES.remove("2020-01-01 10:00" + "0" * 48)  # exactly as long as a date may be
TEXTS: list[str | None] = [*DATES, *TIMED, "2020-01-01 ", "2020-01-01 10:00" + "0" * 48, *NO_DATES, None]

COLUMNS = (
    Date("days", "2020-02-20", "2020-03-10", "days", missing=True),
    Date("months", "2019-11-15", "2020-12-31", "months", missing=True),
    Date("years", "0001-01-01", "9999-12-31", "100 years"),
    Date("edges", "1960-01-01", "2100-12-31", edges=("1970-01-01", "2000-02-29", "2100-12-31"), missing=True),
)


def test_what_is_a_date() -> None:
    assert all(day_of(text) == (date.fromisoformat(text) - date(1970, 1, 1)).days for text in DATES)
    assert {day_of(text) for text in TIMED} == {day_of("2020-02-29")}
    assert [text for text in NO_DATES if day_of(text) is not None] == []


@pytest.mark.parametrize("storage", (*STORAGES, "mssql", SPARK_AT_LENGTH))
def test_a_text_has_the_same_cell_in_every_storage(stores: Stores, storage: str) -> None:
    domain = Domain((*COLUMNS, Nominal("y", ("a", "b"))), target="y")
    rows = [(text, text, text, text, "ab"[i % 2]) for i, text in enumerate(TEXTS)]
    # a row that one column leaves out is counted by none: each text once more, where the others have a date
    rows += [(*(text if i == k else "2020-01-01" for i in range(4)), "a") for k in range(4) for text in TEXTS]
    queries = [*everything(domain), GridQuery(Rows(), domain.names, "y")]
    if storage == "mssql":  # which has no snapshot to look at
        with stores.open(storage, domain, ["VARCHAR"] * 5, rows) as (engine, held):
            reference = MemoryEngine.from_frame(pd.DataFrame(held, columns=list(domain.names), dtype=object), domain)
            for query in (GridQuery(Rows(), domain.names, "y"),):
                for mine, other in zip(engine.exact_grid(query), reference.exact_grid(query), strict=True):
                    assert mine.index.tolist() == other.index.tolist()
                    assert mine.exact_counts.tolist() == other.exact_counts.tolist()
        return
    check(stores, storage, domain, ["VARCHAR"] * 5, rows, queries)


EAST = timezone(timedelta(hours=14))
STORED: dict[str, list[Any]] = {
    "DATE": [date(1, 1, 1), date(1969, 12, 31), date(2020, 2, 29), date(2020, 3, 1), date(9999, 12, 31), None],
    "TIMESTAMP": [
        datetime(1, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime(2020, 2, 29, 23, 59, 59, 999999),
        datetime(2020, 3, 1),
        datetime(9999, 12, 31, 23, 59, 59, 999999),
        None,
    ],
    "TIMESTAMP WITH TIME ZONE": [
        datetime(1, 1, 2, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2020, 3, 1, 13, 59, tzinfo=EAST),  # 29 February in UTC
        datetime(2020, 2, 29, 23, 30, tzinfo=timezone(-timedelta(hours=5))),  # 1 March in UTC
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        None,
    ],
}
BEYOND = {  # what Python has no date for, as engines write it
    "table": ["infinity", "-infinity", "0044-03-15 (BC)", "12000-01-01"],
    "parquet": ["0044-03-15 (BC)", "12000-01-01"],
    "postgres": ["infinity", "-infinity", "0044-03-15 BC", "12000-01-01"],
}


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("storage", ("memory", "table", "parquet", "postgres", "mssql", SPARK_AT_LENGTH))
def test_a_stored_date_has_its_own_day_and_an_instant_that_of_utc(stores: Stores, storage: str, kind: str) -> None:
    if storage == "mssql" and kind.endswith("ZONE"):
        pytest.skip("SQL Server's datetimeoffset is not read")
    values = [*STORED[kind], *BEYOND.get(storage, [])]
    domain = Domain((*(column for column in COLUMNS if column.missing), Nominal("y", ("a", "b"))), target="y")
    rows = [(value, value, value, "ab"[i % 2]) for i, value in enumerate(values)]
    with stores.open(storage, domain, [kind] * 3 + ["VARCHAR"], rows) as (engine, _):
        expected = MemoryEngine.from_frame(pd.DataFrame(rows, columns=list(domain.names), dtype=object), domain)
        query = GridQuery(Rows(), domain.names, "y")
        for mine, other in zip(engine.exact_grid(query), expected.exact_grid(query), strict=True):
            assert mine.index.tolist() == other.index.tolist()
            assert mine.exact_counts.tolist() == other.exact_counts.tolist()
        if storage not in ("memory", "mssql"):  # what the owner's inspection reads
            listed = [date_at(day_of(value)) for value in values]
            assert dict(engine.exact_values("edges")) == {day: listed.count(day) for day in listed}


@pytest.mark.parametrize("kind", ["TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"])
def test_times_of_every_precision_of_duckdb_have_their_own_day(stores: Stores, kind: str) -> None:
    values = ["1969-12-31 23:59:59", "2020-02-29 23:59:59", "2020-03-01 00:00:00", None, "infinity", "-infinity"]
    with stores.open("table", Domain(COLUMNS[3:]), [kind], [(value,) for value in values]) as (engine, _):
        (grid,) = engine.exact_grid(GridQuery(Rows(), ("edges",)))
        assert grid.index.tolist() == [-1, *(COLUMNS[3].grid(value) for value in values[:3])]
        assert grid.exact_counts.ravel().tolist() == [3, 1, 1, 1]


FAR = [2 - 2**63, 2**62, 10**17, -(10**17), 0]


@pytest.mark.parametrize(("unit", "zone"), [("s", None), ("ms", None), ("us", None), ("us", "UTC"), ("ns", None)])
def test_a_time_beyond_all_dates_does_not_stop_duckdb(tmp_path: Path, unit: str, zone: str | None) -> None:
    times = pa.table({"edges": pa.array(FAR, pa.int64()).cast(pa.timestamp(unit, zone))})
    expected = MemoryEngine.from_frame(times, Domain(COLUMNS[3:])).exact_grid(GridQuery(Rows(), ("edges",)))[0]
    with duckdb.connect(str(tmp_path / "t.db")) as database:
        database.register("times", times)
        database.execute("CREATE TABLE t AS FROM times")
    engine = DuckDBSource(tmp_path / "t.db", "t").open(Domain(COLUMNS[3:]))
    (grid,) = engine.exact_grid(GridQuery(Rows(), ("edges",)))
    engine.close()
    assert grid.index.tolist() == expected.index.tolist()
    assert grid.exact_counts.tolist() == expected.exact_counts.tolist()


def test_milliseconds_of_a_parquet_file_are_refused_by_the_schema(tmp_path: Path) -> None:
    """DuckDB stops at a row whose milliseconds are too many for its microseconds: whether there is one would show."""
    for moments in ([0], [2**62]):
        path = tmp_path / f"{len(str(moments))}.parquet"
        times = pa.array(moments, pa.int64()).cast(pa.timestamp("ms"))
        pyarrow.parquet.write_table(pa.table({"edges": times}), path)
        with pytest.raises(DataError, match="holds times in milliseconds"):
            DuckDBSource(path).open(Domain(COLUMNS[3:]))


def test_the_zone_of_a_session_does_not_move_an_instant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instant = datetime(2020, 2, 29, 23, 30, tzinfo=timezone(-timedelta(hours=5)))
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pa.table({"days": pa.array([instant], pa.timestamp("us", "America/New_York"))}), path)
    for zone in ("America/New_York", "Pacific/Kiritimati"):
        monkeypatch.setenv("TZ", zone)
        engine = DuckDBSource(path).open(Domain(COLUMNS[:1]))
        (grid,) = engine.exact_grid(GridQuery(Rows(), ("days",)))
        engine.close()
        assert grid.index.tolist() == [COLUMNS[0].grid("2020-03-01")]


@pytest.mark.parametrize("storage", ("table", "postgres", "mssql"))
def test_a_type_without_dates_is_refused_by_the_schema(stores: Stores, storage: str) -> None:
    for kind, value in (("BIGINT", 7), ("BOOLEAN", True), ("DOUBLE", 1.0)):
        with (
            pytest.raises(DataError, match="privet reads texts, dates and timestamps as dates"),
            stores.open(storage, Domain(COLUMNS[:1]), [kind], [(value,)]),
        ):
            raise AssertionError("it was opened")
    with (
        pytest.raises(DataError, match="privet reads texts, numbers and b"),
        stores.open(storage, Domain((Nominal("x", ("a",)),)), ["DATE"], [(date(2020, 1, 1),)]),
    ):
        raise AssertionError("it was opened")


# -- texts one at a time -----------------------------------------------------------------------------------------------

LETTERS = st.text("0129-T :é\t\n", max_size=12)
YEARS = st.sampled_from(["0000", "0001", "0004", "0100", "0400", "1900", "2000", "2020", "2023", "9999"])
TWO = st.integers(0, 33).map(lambda n: f"{n:02}")
ALMOST = st.tuples(YEARS, TWO, TWO).map("-".join) | st.tuples(st.dates(), LETTERS).map(
    lambda pair: f"{pair[0]}{pair[1]}"
)


@cache
def one_text(dialect: str) -> str:
    """The statement that codes one text, as DuckDB reads it."""
    sql = {"tsql": mssql.DIALECT, "duckdb": duckdb_engine.DIALECT}[dialect]
    tree = coding.coded(exp.to_table("texts"), Domain(COLUMNS[3:]), {"edges": Held("x", Kind.TEXT)}, sql)
    statement = sql.sql(exp.select("g0").from_(tree.subquery("coded")))
    return in_duckdb(statement) if dialect == "tsql" else statement


@pytest.fixture(scope="module")
def connection() -> Any:
    with duckdb.connect() as connected:
        yield connected


@pytest.mark.parametrize("dialect", ["duckdb", "tsql"])
@settings(derandomize=True, deadline=None, max_examples=150)
@given(text=LETTERS | ALMOST | st.sampled_from([text for text in TEXTS if text is not None]))
def test_any_text_is_the_date_that_python_says(connection: Any, dialect: str, text: str) -> None:
    connection.execute("CREATE OR REPLACE TEMP TABLE texts AS SELECT ?::VARCHAR AS x", [text])
    ((index,),) = connection.execute(one_text(dialect)).fetchall()
    expected = COLUMNS[3].grid(text)
    assert index == (-1 if expected is None else expected)


def test_every_month_of_four_centuries_begins_where_python_says(connection: Any) -> None:
    """29 February and the first of March of every year, and a day too many in every month."""
    wide = Domain((Date("d", "0001-01-01", "9999-12-31", missing=True),))
    tree = coding.coded(exp.to_table("texts"), wide, {"d": Held("x", Kind.TEXT)}, duckdb_engine.DIALECT)
    days = ("01", "28", "29", "30", "31")
    texts = [
        f"{y:04}-{m:02}-{day}" for y in (*range(1, 402), *range(1599, 2402), 9999) for m in range(1, 13) for day in days
    ]
    connection.execute("CREATE OR REPLACE TEMP TABLE texts (x VARCHAR)")
    connection.register("listed", pa.table({"x": texts}))
    connection.execute("INSERT INTO texts SELECT x FROM listed")
    found = connection.execute(duckdb_engine.DIALECT.sql(exp.select("g0").from_(tree.subquery("c")))).fetchnumpy()["g0"]
    assert sorted(found.tolist()) == sorted(wide.columns[0].to_grid(texts).tolist())


# -- frames ------------------------------------------------------------------------------------------------------------


def frames() -> dict[str, pd.Series]:
    moments = [datetime(2020, 2, 29, 23, 59), datetime(1700, 1, 1), datetime(2200, 1, 1), None]
    zoned = [None if moment is None else moment.replace(tzinfo=EAST) for moment in moments]
    mixed = [
        "2020-02-29",
        date(2020, 2, 29),
        moments[0],
        zoned[0],
        pd.NaT,
        None,
        3,
        2.5,
        True,
        b"2020-02-29",
        float("nan"),
    ]
    mixed += [pd.Timestamp("2020-02-29", tz="Asia/Tokyo"), pd.Timestamp("2020-03-01"), ["2020-02-29"], object()]
    arrow = pa.array(moments, pa.timestamp("s"))
    return {
        **{f"datetime64[{unit}]": pd.Series(moments, dtype=f"datetime64[{unit}]") for unit in ("s", "ms", "us", "ns")},
        "zoned": pd.Series(pd.to_datetime(zoned, utc=True)).dt.tz_convert("America/New_York"),
        "objects": pd.Series(mixed, dtype=object),
        "texts": pd.Series(TEXTS, dtype="str"),
        "categories": pd.Series(pd.Categorical(TEXTS[:20])),
        "categories of times": pd.Series(pd.Categorical(moments)),
        "far": pd.Series([2**62, -(2**62), 0], dtype="int64").astype("datetime64[s]"),
        "numbers": pd.Series([0, 18262]),
        "durations": pd.Series(pd.to_timedelta([1, 2], unit="D")),
        "arrow": pd.Series(pd.arrays.ArrowExtensionArray(arrow)),
        "arrow dates": pd.Series(pd.arrays.ArrowExtensionArray(arrow.cast(pa.date32()))),
        "arrow far": pd.Series(pd.arrays.ArrowExtensionArray(pa.array([2**40, 0, None], pa.timestamp("s")))),
        "arrow far dates": pd.Series(
            pd.arrays.ArrowExtensionArray(pa.array([2**30, 0, None], pa.int32()).cast(pa.date32()))
        ),
    }


@pytest.mark.parametrize("name", frames())
def test_a_column_of_a_frame_is_read_as_its_rows_one_at_a_time(name: str) -> None:
    series, column = frames()[name], COLUMNS[3]
    whole = column.to_grid(series)
    assert whole.tolist() == [int(column.to_grid(series.iloc[i : i + 1])[0]) for i in range(len(series))]
    domain = Domain((column,))
    (grid,) = MemoryEngine.from_frame(pd.DataFrame({"edges": series}), domain).exact_grid(GridQuery(Rows(), ("edges",)))
    assert sum(grid.exact_counts.ravel().tolist()) == len(series)
    plain = {"datetime64[ns]": ["2020-02-29", "1700-01-01", "2200-01-01", None], "arrow": ["2020-02-29", "1700-01-01"]}
    for value, index in zip(plain.get(name, []), whole, strict=False):
        assert index == (-1 if value is None else column.grid(value))


def test_polars_and_arrow_tables_with_dates_are_opened() -> None:
    polars = pytest.importorskip("polars")
    rows = [date(2020, 2, 29), None, date(2020, 3, 1)]
    for table in (polars.DataFrame({"edges": rows}), pa.table({"edges": rows})):
        (grid,) = MemoryEngine.from_frame(table, Domain(COLUMNS[3:])).exact_grid(GridQuery(Rows(), ("edges",)))
        assert grid.index.tolist() == [-1, COLUMNS[3].grid("2020-02-29"), COLUMNS[3].grid("2020-03-01")]


# -- golden ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["duckdb", "mssql", "postgres", "spark"])
def test_the_statement_is_the_golden_one(engine: str) -> None:
    dialects = {"duckdb": duckdb_engine.DIALECT, "mssql": mssql.DIALECT, "postgres": postgres.DIALECT}
    if engine == "spark":
        spark = pytest.importorskip("privet.kernel.engines.spark.engine")
        dialects["spark"] = spark.DIALECT
    domain = Domain((Date("when's", "2020-01-01", "2020-12-31", "6 months", missing=True),))
    statements = []
    for kind in (Kind.TEXT, Kind.DAY, Kind.INSTANT)[: 2 if engine == "mssql" else 3]:
        tree = coding.coded(exp.to_table("t"), domain, {"when's": Held("when's", kind)}, dialects[engine])
        statement = dialects[engine].sql(tree)
        language = "tsql" if engine == "mssql" else engine
        statements.append(sqlglot.parse_one(statement, read=language).sql(dialect=language, pretty=True))
    text = ";\n\n".join(statements) + ";\n"
    path = GOLDEN / f"{engine}.sql"
    if os.environ.get("PRIVET_UPDATE_GOLDEN") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text

"""The attacks on tables where other programs keep them: a real PostgreSQL and a real Spark.

The product writes to neither, so the layers that store rows of an attack there are here.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import spark_session
from postgres_server import shared_server
from sizes import long
from sqlglot import exp

from privet.errors import QuestionError
from privet.kernel.column import text_of
from privet.kernel.engines.sql import sql
from privet.verification.attacks import ATTACKS, AttackResult
from privet.verification.attacks.errors import NASTY
from privet.verification.attacks.planted import LARGE, LITTLE, SMALL, cost, joined, questions, rows
from privet.verification.layer import LocalLayer, _type

FRAME = rows(SMALL, 60)
POSTGRES_TYPES = {"VARCHAR": "text", "DOUBLE": "double precision", "HUGEINT": "numeric"}  # others have the same name
ALL = range(1, 16)  # the others are about files, about frames and about what tests may do
NOISE, RACES, TIMING, SEEDS, MEMORY = 1, 8, 11, 14, 16
on_spark = pytest.mark.xdist_group("spark")  # one process starts a Spark, and no other


class PostgresLayer(LocalLayer):
    """Tables of a schema that goes with the layer; with `texts` all their columns are texts."""

    def __init__(self, *, texts: bool = False) -> None:
        super().__init__(FRAME, SMALL)
        self.name, self.texts, self.server = "a PostgreSQL table", texts, shared_server()
        self.server.run("CREATE SCHEMA attacks")
        self.source = self._stored(FRAME)

    def close(self) -> None:
        super().close()
        self.server.run("DROP SCHEMA attacks CASCADE")

    def held(self) -> list[Any]:
        """The rows of the table under attack, and who wrote them."""
        return self.server.run(f"SELECT xmin, * FROM {self.source.partition('table=')[2]}")

    def _stored(self, frame: pd.DataFrame) -> str:
        types, cells = typed(frame, texts=self.texts)
        # the same rows are at the same place, so that a ledger knows them again
        table = f"attacks.t{hashlib.sha256(repr((types, cells)).encode()).hexdigest()[:16]}"
        columns = ", ".join(f'"{name}" {POSTGRES_TYPES.get(each, each)}' for name, each in types.items())
        with self.server.connect() as connection:
            if connection.execute("SELECT to_regclass(%s)", [table]).fetchone() == (None,):
                connection.execute(f"CREATE TABLE {table} ({columns})")
                with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
                    for row in cells:  # the zero byte is the one letter that PostgreSQL does not have
                        copy.write_row([each.replace("\0", "") if isinstance(each, str) else each for each in row])
        return self.server.address(table=table)


class SparkLayer(LocalLayer):
    """Frames of the Spark that the tests share."""

    def __init__(self) -> None:
        spark_session.require()
        super().__init__(FRAME, SMALL)
        self.name, self.source = "a Spark frame", self._stored(FRAME)

    def _stored(self, frame: pd.DataFrame) -> Any:
        types, cells = typed(frame)
        return spark_session.frame(list(types), list(types.values()), cells)[0]


def typed(frame: pd.DataFrame, *, texts: bool = False) -> tuple[dict[str, str], list[Sequence[Any]]]:
    """The type of each column, the narrowest that holds its values, and the rows in these types."""
    columns = {str(name): frame[name].astype(object).tolist() for name in frame.columns}
    types = {name: "VARCHAR" if texts else _type(values) for name, values in columns.items()}
    for name in [name for name in types if types[name] == "VARCHAR"]:
        columns[name] = [text_of(value) for value in columns[name]]
    return types, list(zip(*columns.values(), strict=True))


def attacked(layer: LocalLayer, numbers: Sequence[int]) -> list[AttackResult]:
    layer.live(budget=LARGE)  # an attack takes an error for a finding: this one would be the test's own
    return [ATTACKS[number - 1].against(layer) for number in numbers]


def assert_held(results: list[AttackResult], undecided: Sequence[int] = ()) -> None:
    assert [(result.number, result.found) for result in results if result.held is False] == []
    assert [result.number for result in results if result.held is None] == list(undecided)


def assert_charged(layer: LocalLayer) -> None:
    """Questions about rows that no cast can read are answered, each for its price."""
    nasty = joined(rows(SMALL), *([value] * len(SMALL.columns) for value in NASTY))
    with layer.open(nasty, SMALL, budget=LARGE) as table:
        prices = {name: cost(table, ask) for name, ask in questions(SMALL).items()}
    assert prices == dict.fromkeys(prices, LITTLE)


def careless(monkeypatch: pytest.MonkeyPatch, engine: str, **how: Any) -> None:
    """Let an engine write its statements without one of its precautions."""
    module = importlib.import_module(f"privet.kernel.engines.{engine}.engine")
    dialect = module.DIALECT
    monkeypatch.setattr(module, "DIALECT", replace(dialect, **how))
    for kind in vars(module).values():
        if getattr(kind, "dialect", None) is dialect:  # the engine, which writes with its own
            monkeypatch.setattr(kind, "dialect", module.DIALECT)


# -- PostgreSQL ---------------------------------------------------------------------------------


def test_postgres_holds_and_nothing_of_its_owner_is_touched() -> None:
    """All but timing: it compares a column of numbers with one that a row of letters makes a column of texts, and
    a statement that reads numbers from texts is longer. The type of a column is no secret; the next test has one type.
    """
    with PostgresLayer() as layer:
        before = layer.held()
        assert_held(attacked(layer, [number for number in (*ALL, MEMORY) if number != TIMING]))
        assert_charged(layer)
        assert layer.held() == before


@long
def test_postgres_holds_where_numbers_are_texts() -> None:
    """Those that rows in other types could change; timing is held, as far as that can be decided without a clock."""
    with PostgresLayer(texts=True) as layer:
        assert_held(attacked(layer, [3, 4, 5, 7, 9, TIMING]), undecided=[TIMING])


def test_a_number_that_is_none_would_be_caught_on_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    careless(monkeypatch, "postgres", is_nan=lambda number: exp.false())
    with PostgresLayer() as layer:
        (result,) = attacked(layer, [4])
    assert result.held is False and "NaN or null in a row spoils the sum." in result.found


def test_a_cast_that_fails_would_be_caught_on_postgres_and_quotes_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    careless(monkeypatch, "postgres", read_number=sql.double)
    with PostgresLayer(texts=True) as layer:
        (result,) = attacked(layer, [5])
    assert result.held is False and "a row that cannot be read makes sum fail with EngineFailed." in result.found
    assert not any("quotes" in each for each in result.found)


# -- Spark --------------------------------------------------------------------------------------


@long
@on_spark
def test_spark_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but these: low bits and seeds are about noise, which is drawn here whatever the engine, and take many jobs;
    timing counts the steps of the asking thread, and Spark is asked in another and works in a process of its own. A
    forked process has no Spark (kernel/engines/spark/test_failures.py), so that of races, kills and retries kills are
    left out.
    """
    monkeypatch.delattr(os, "fork")
    with SparkLayer() as layer:
        numbers = [number for number in ALL if number not in (NOISE, TIMING, SEEDS)]
        assert_held(attacked(layer, numbers), undecided=[RACES])
        assert_charged(layer)
    assert spark_session.shared().sparkContext._jsc.getPersistentRDDs().size() == 0


@long
@on_spark
def test_a_number_that_is_none_would_be_caught_on_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    careless(monkeypatch, "spark", is_nan=lambda number: exp.false())
    with SparkLayer() as layer:
        (result,) = attacked(layer, [4])
    assert result.held is False and "NaN or null in a row spoils the sum." in result.found


# -- the product's own layer --------------------------------------------------------------------


def assert_refused(source: Any) -> None:
    with pytest.raises(QuestionError, match="writes to no server and to no Spark: run them on a file, a DuckDB table"):
        LocalLayer(source, SMALL)


def test_a_table_on_a_server_is_refused() -> None:
    with PostgresLayer() as layer:
        assert_refused(layer.source)


@on_spark
def test_a_frame_or_a_table_of_spark_is_refused() -> None:
    with SparkLayer() as layer:
        assert_refused(layer.source)
        layer.source.createOrReplaceTempView("attacked")
        try:
            assert_refused("spark:///?table=attacked")
        finally:
            spark_session.shared().catalog.dropTempView("attacked")

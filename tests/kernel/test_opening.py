"""Opening a table: names of one source, budgets, addresses, and data that cannot be opened."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import numpy as np
import pandas as pd
import pytest
from kernel.people import DOMAIN, EXACT, FRAME, LARGE, SOURCES, module, write_csv, write_table

import privet
from privet.errors import (
    BudgetExceeded,
    DataError,
    DomainError,
    EngineFailed,
    KeyReused,
    LedgerError,
    PrivacyError,
    PrivetError,
    QuestionError,
    UndeclaredDomain,
)
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain


def test_a_domain_may_be_a_file(tmp_path: Path) -> None:
    DOMAIN.save(tmp_path / "people.toml")
    for path in (tmp_path / "people.toml", str(tmp_path / "people.toml")):
        assert privet.open(FRAME, path, budget=LARGE).count(EXACT) == 300


def test_opening_again_goes_on_with_what_is_left(tmp_path: Path) -> None:
    path = write_csv(tmp_path)
    with privet.open(path, DOMAIN, budget=1) as table:
        table.count(0.75)
    with privet.open(path, DOMAIN, budget=1) as table:
        assert (table.budget.spent, table.budget.remaining) == (Fraction(3, 4), Fraction(1, 4))
    with privet.open(path, DOMAIN) as table, pytest.raises(BudgetExceeded):
        table.count(0.5)


def test_opening_with_less_limits_this_sitting_and_with_more_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path)
    privet.open(path, DOMAIN, budget=2).close()
    with privet.open(path, DOMAIN, budget=1) as table:
        assert table.budget.remaining == 1
        with pytest.raises(BudgetExceeded):
            table.count(1.5)
    with pytest.raises(PrivacyError, match="above the 2"):
        privet.open(path, DOMAIN, budget=3)


@pytest.mark.parametrize("way", ["relative", "link", "other case of the table", "absolute address"])
def test_another_name_for_the_same_rows_is_no_new_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.chdir(tmp_path)
    first: Any = write_csv(tmp_path)
    second: Any = Path("people.csv")
    if way == "link":
        second = tmp_path / "link.csv"
        second.symlink_to(first)
    elif way == "other case of the table":
        first = write_table(tmp_path)
        second = first.replace("table=people", "table=PEOPLE")
    elif way == "absolute address":
        first = write_table(tmp_path)
        second = "duckdb:///people.db?table=people"
    with privet.open(first, DOMAIN, budget=1) as table:
        table.count(1)
    try:
        with privet.open(second, DOMAIN, budget=1) as again:
            assert again.budget.remaining == 0
    except PrivetError as refused:
        assert "\n" not in str(refused)


def test_analysts_share_the_budget_of_the_data_set(tmp_path: Path) -> None:
    path = write_csv(tmp_path)
    with privet.open(path, DOMAIN, budget=1, analyst="ada") as ada, privet.open(path, DOMAIN, analyst="bob") as bob:
        ada.count(0.75)
        assert (bob.budget.spent, bob.budget.remaining, bob.budget.entries) == (0, Fraction(1, 4), [])
        with pytest.raises(BudgetExceeded):
            bob.count(0.5)


def test_a_key_brings_back_the_same_answer_and_belongs_to_one_question(table: privet.ProtectedTable) -> None:
    first = table.count(0.01, key="a")
    assert [table.count(0.01, key="a") for _ in range(5)] == [first] * 5
    assert table.budget.spent == Fraction(1, 100)
    for other in (
        lambda: table.count(0.02, key="a"),
        lambda: table.sum("age", 0.01, key="a"),
        lambda: table.where(sex="Male").count(0.01, key="a"),
        lambda: table.partition("sex").count(0.01, key="a"),
    ):
        with pytest.raises(KeyReused):
            other()
    assert table.budget.spent == Fraction(1, 100)


def test_a_duckdb_table_may_have_any_name(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "people.db")) as connection:
        connection.register("frame", FRAME)
        connection.execute('CREATE TABLE "a ""b"" & c" AS SELECT * FROM frame')
    address = f"duckdb:///{tmp_path}/people.db?table=a%20%22b%22%20%26%20c"
    with privet.open(address, DOMAIN, budget=LARGE) as table:
        assert table.count(EXACT) == 300


BAD_DATA: dict[str, tuple[Callable[[Path], Any], type[Exception]]] = {
    "missing file": (lambda folder: folder / "nowhere.csv", DataError),
    "missing parquet": (lambda folder: str(folder / "nowhere.parquet"), DataError),
    "missing database": (lambda folder: f"duckdb:///{folder}/nowhere.db?table=t", DataError),
    "missing table": (lambda folder: write_table(folder).replace("table=people", "table=x"), DataError),
    "no table named": (lambda folder: write_table(folder).split("?")[0], DataError),
    "wrong suffix": (lambda folder: _written(folder / "people.xlsx", b"sex\nf\n"), DataError),
    "no suffix": (lambda folder: _written(folder / "people", b"sex\nf\n"), DataError),
    "other address": (lambda folder: "postgres://host/db?table=t", DataError),
    "empty text": (lambda folder: "", DataError),
    "empty csv": (lambda folder: _written(folder / "people.csv", b""), DataError),
    "empty parquet": (lambda folder: _written(folder / "people.parquet", b""), DataError),
    "csv called parquet": (lambda folder: _written(folder / "people.parquet", b"sex,age\nf,1\n"), DataError),
    "garbage called database": (
        lambda folder: f"duckdb:///{_written(folder / 'people.db', b'garbage' * 999)}?table=t",
        DataError,
    ),
    "a directory": (lambda folder: _directory(folder / "people.csv"), DataError),
    "a directory as database": (lambda folder: f"duckdb:///{_directory(folder / 'people.db')}?table=t", DataError),
    "column absent": (lambda folder: _written(folder / "people.csv", b"sex,age,income\nf,1,low\n"), DataError),
    "column absent in a frame": (lambda folder: FRAME.drop(columns="income"), DataError),
    "duplicate header": (
        lambda folder: _written(folder / "people.csv", b"sex,age,age,body height,income\nf,1,1,1,low\n"),
        DataError,
    ),
    "duplicate column in a frame": (lambda folder: pd.concat([FRAME, FRAME[["age"]]], axis=1), DataError),
    "timestamps": (lambda folder: _timestamps(folder), DataError),
    "timestamps in a frame": (lambda folder: FRAME.assign(sex=pd.Timestamp("2020-01-01")), DataError),
    "a list": (lambda folder: [1, 2, 3], DataError),
    "a dictionary": (lambda folder: {"sex": ["Male"]}, DataError),
    "nothing": (lambda folder: None, DataError),
    "an array": (lambda folder: np.zeros((2, 2)), DataError),
    "bytes": (lambda folder: b"people.csv", DataError),
    "a lazy frame": (lambda folder: _lazy(), DataError),
}


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _directory(path: Path) -> Path:
    path.mkdir()
    return path


def _timestamps(folder: Path) -> str:
    with duckdb.connect(str(folder / "people.db")) as connection:
        connection.register("frame", FRAME)
        connection.execute("CREATE TABLE people AS SELECT * REPLACE (TIMESTAMP '2020-01-01' AS sex) FROM frame")
    return f"duckdb:///{folder}/people.db?table=people"


def _lazy() -> Any:
    return module("polars").from_pandas(FRAME).lazy()


@pytest.mark.parametrize("bad", BAD_DATA)
def test_data_that_cannot_be_opened_are_refused_in_a_sentence(tmp_path: Path, bad: str) -> None:
    make, error = BAD_DATA[bad]
    source = make(tmp_path)
    files = sorted(tmp_path.rglob("*"))
    for snapshot in (False, True):
        with pytest.raises(error) as caught:
            privet.open(source, DOMAIN, budget=1, access="snapshot" if snapshot else "push-down")
        assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
        assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert sorted(tmp_path.rglob("*")) == files  # no ledger was made


BAD_SETTINGS: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "budget 0": ({"budget": 0}, QuestionError),
    "budget below 0": ({"budget": -1}, QuestionError),
    "budget nan": ({"budget": math.nan}, QuestionError),
    "budget of words": ({"budget": "abc"}, QuestionError),
    "budget too small": ({"budget": "1e-400"}, QuestionError),
    "no budget": ({"budget": None}, LedgerError),
    "no domain": ({"domain": None}, UndeclaredDomain),
    "a dictionary as domain": ({"domain": {"columns": {}}}, UndeclaredDomain),
    "a missing domain file": ({"domain": "nowhere.toml"}, DomainError),
    "a nameless analyst": ({"analyst": ""}, QuestionError),
    "an analyst who is a number": ({"analyst": 7}, QuestionError),
}


@pytest.mark.parametrize("kind", ["pandas", "csv", "duckdb"])
@pytest.mark.parametrize("bad", BAD_SETTINGS)
def test_settings_that_make_no_sense_are_refused_in_a_sentence(tmp_path: Path, kind: str, bad: str) -> None:
    settings, error = BAD_SETTINGS[bad]
    source = SOURCES[kind](tmp_path)
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(error) as caught:
        privet.open(**{"data": source, "domain": DOMAIN, "budget": 1, **settings})
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.parametrize("content", [b"garbage" * 1000, b"SQLite format 3\x00" + b"x" * 2000], ids=["garbage", "torn"])
def test_a_corrupt_ledger_refuses_the_table_and_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = write_csv(tmp_path)
    ledger = _written(tmp_path / "people.csv.ledger", content)
    with pytest.raises(LedgerError) as caught:
        privet.open(path, DOMAIN, budget=1)
    assert "\n" not in str(caught.value)
    assert ledger.read_bytes() == content


def test_an_engine_that_fails_leaves_the_charge_and_can_be_finished_with_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = privet.open(write_csv(tmp_path), DOMAIN, budget=1)
    engine = table._session.engine
    with monkeypatch.context() as broken:
        broken.setattr(engine, "exact_counts", lambda query: 1 / 0)
        with pytest.raises(EngineFailed, match=r"entry 1 .*retry with the key 'again'"):
            table.count(0.5, key="again")
        with pytest.raises(EngineFailed, match="a new try is a new charge"):
            table.count(0.25)
    assert table.budget.spent == Fraction(3, 4)
    answer = table.count(0.5, key="again")
    assert table.budget.spent == Fraction(3, 4) and table.count(0.5, key="again") == answer
    table.close()


def test_an_address_may_be_quoted_and_hold_any_sign(tmp_path: Path) -> None:
    folder = tmp_path / "a #1 ü"
    folder.mkdir()
    with duckdb.connect(str(folder / "t.db")) as connection:
        connection.execute("CREATE TABLE people AS SELECT 'low' AS income FROM range(7)")
    domain = Domain((Nominal("income", ("low", "high")),))
    for place in (str(folder), quote(str(folder))):
        with privet.open(f"duckdb:///{place}/t.db?table=people", domain, budget=10**6) as table:
            assert table.count(EXACT) == 7

"""Attacks through files and undeclared columns: neither ledger nor scratch files hold a row."""

from __future__ import annotations

import pickle
import sqlite3
import tempfile
import tokenize
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from kernel.attacks.attacked import CANARY, DOMAIN, EXACT, LARGE, QUESTIONS, each_source, opened, people
from kernel.people import module

import privet
from privet.errors import BudgetExceeded, UndeclaredDomain

# --- what files carry ------------------------------------------------------------------------------------------------


@pytest.fixture
def canaries() -> pd.DataFrame:
    """Rows with words that no answer may contain: in an undeclared column, and out of the domain."""
    frame = people().assign(name=[f"{CANARY}-name-{i}" for i in range(40)], ssn=[f"90210-{i:04}" for i in range(40)])
    frame.loc[::2, "job"] = f"{CANARY}-job"
    frame.loc[3, "ill"] = f"{CANARY}-ill"
    frame.loc[5, "wage"] = 987654321.125
    return frame


SECRETS = (CANARY.encode(), b"90210-", b"987654321")


def assert_no_secret(folder: Path, *besides: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in besides:
            content = path.read_bytes()
            assert not [word for word in SECRETS if word in content], path.name


@each_source
def test_ledger_and_scratch_files_hold_no_row(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, canaries: pd.DataFrame
) -> None:
    """A value in the ledger, in a temporary file or in a pickled answer leaves the kernel without noise."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    data = {
        "frame": "",
        "csv": "people.csv",
        "snapshot": "people.csv",
        "parquet": "people.parquet",
        "duckdb": "people.db",
    }
    with opened(canaries, kind, tmp_path / "data", ledger=tmp_path / "the.ledger") as table:
        answers = [ask(table) for ask in QUESTIONS.values()]
        with pytest.raises(BudgetExceeded):
            table.count(LARGE)
        assert_no_secret(scratch)
        assert_no_secret(tmp_path, data[kind], "people.db")
        spoken = repr(table) + repr(table.partition("job")) + repr(answers) + repr(table.budget.entries)
        payload = pickle.dumps(answers) + spoken.encode()
        assert not [word for word in SECRETS if word in payload]
    assert_no_secret(tmp_path, data[kind], "people.db")
    stored = "SELECT count(*) FROM lines WHERE kind = 'answer'"
    assert sqlite3.connect(tmp_path / "the.ledger").execute(stored).fetchone() == (len(QUESTIONS),)


@each_source
def test_undeclared_columns_do_not_exist(kind: str, tmp_path: Path, canaries: pd.DataFrame) -> None:
    """Another word for a column that is there than for one that is not would list the columns of a private table."""
    with opened(canaries, kind, tmp_path) as table:
        for ask in (
            lambda name: table.where({name: 1}),
            lambda name: table.partition(name),
            lambda name: table.partition((name, 1)),
            lambda name: table.histogram(name, epsilon=1),
            lambda name: table.sum(name, 1),
            lambda name: table.median(name, 1),
            lambda name: table.select("max", 1, attributes=[name]),
        ):
            said = []
            for name in ("name", "nope"):
                with pytest.raises(UndeclaredDomain) as caught:
                    ask(name)
                said.append(str(caught.value).replace(name, "*"))
            assert said[0] == said[1]
        assert "name" not in repr(table) and table.domain.names == ("job", "wage", "ill")
        assert table.budget.entries == []


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb", "arrow", "polars"])
def test_undeclared_columns_may_hold_anything(kind: str, tmp_path: Path) -> None:
    """A column that does not exist cannot make a table fail to open, or its rows be left out."""
    frame = people().astype({"wage": float})
    if kind in ("arrow", "polars"):
        arrow = module("pyarrow")
        clean = arrow.Table.from_pandas(frame, preserve_index=False)
        bad = arrow.Array.from_buffers(
            arrow.string(), 40, [None, arrow.py_buffer(np.arange(41, dtype=np.int32)), arrow.py_buffer(b"\xff" * 40)]
        )
        source = clean.append_column("note", bad)
        if kind == "polars":
            times = arrow.array([np.datetime64("0001-01-01", "us")] * 40)
            source = module("polars").from_arrow(clean.append_column("note", times))
    elif kind == "csv":
        frame.assign(note='"\n,' * 3).to_csv(tmp_path / "people.csv", index=False)
        source = tmp_path / "people.csv"
    else:
        with duckdb.connect(str(tmp_path / "people.db")) as connection:
            connection.register("frame", frame)
            connection.execute(
                "CREATE TABLE people AS SELECT *, TIMESTAMP '2000-01-01' AS note, [1, 2] AS l, {'a': 1} AS s, "
                "'\\xFF'::BLOB AS b FROM frame"
            )
            connection.execute(f"COPY people TO '{tmp_path}/people.parquet' (FORMAT parquet)")
        source = tmp_path / "people.parquet" if kind == "parquet" else f"duckdb:///{tmp_path}/people.db?table=people"
    with privet.open(source, DOMAIN, budget=LARGE) as table:
        assert table.count(EXACT) == 40


# --- the source itself -----------------------------------------------------------------------------------------------


PACKAGE = Path(privet.__file__).parent


def _names(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.NAME:
                yield token.string


def test_exact_values_have_names_in_the_kernel_only() -> None:
    """A name for something un-noised outside the kernel means that something un-noised is there.

    The lab enumerates outcomes on rows that its caller made: nothing in it is private.
    """
    outside = [path for path in PACKAGE.rglob("*.py") if not {PACKAGE / "kernel", PACKAGE / "lab"} & {*path.parents}]
    assert len(outside) > 5
    found = {(path.name, name) for path in outside for name in _names(path) if name.startswith("exact_")}
    assert found == set()
    inside = [name for path in (PACKAGE / "kernel").rglob("*.py") for name in _names(path)]
    assert any(name.startswith("exact_") for name in inside)  # the test would notice one

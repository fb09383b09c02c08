"""Attacks through errors: no text of one speaks of a row."""

from __future__ import annotations

import io
import pickle
import traceback
from pathlib import Path
from typing import Any

import duckdb
import pytest
from kernel.attacks.attacked import CANARY, DOMAIN, EXACT, QUESTIONS, _raiser, each_source, opened, people, store

import privet
from privet.errors import DataError, EngineFailed, PrivetError


def everything_of(error: BaseException) -> str:
    """All that a program or a person could read from an exception, locals of its frames included."""
    seen = io.StringIO()
    print(str(error), repr(error), error.args, vars(error), getattr(error, "__notes__", ""), file=seen)
    print(error.__cause__, error.__context__, file=seen)
    print("".join(traceback.format_exception(error)), file=seen)
    print("".join(traceback.TracebackException.from_exception(error, capture_locals=True).format()), file=seen)
    return seen.getvalue()


def assert_silent(error: BaseException, word: str = CANARY) -> None:
    assert word not in everything_of(error)
    assert error.__cause__ is None and error.__context__ is None
    assert "\n" not in str(error)


@each_source
def test_error_texts_and_chained_exceptions(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An engine's message quotes the row it stumbled over, and a chained exception carries the message along."""
    with opened(people(), kind, tmp_path) as table:
        engine = table._session.engine
        for method in ("exact_counts", "exact_grid", "exact_sums", "exact_residuals"):
            monkeypatch.setattr(engine, method, _raiser(CANARY))
        for ask in (*QUESTIONS.values(), lambda each: each.count(1, key="again")):
            with pytest.raises(EngineFailed) as caught:
                ask(table)
            assert_silent(caught.value)
        assert CANARY not in "".join(str(entry) for entry in table.budget.entries)
    assert "".join(capfd.readouterr()) == ""


def misread(connection: Any) -> Any:
    """Run a statement that DuckDB answers with an error which quotes a value."""
    return connection.execute(f"SELECT CAST('{CANARY}' AS INTEGER)")


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_real_engine_errors_stay_inside(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB prints the value that a cast could not read. What no statement answers is read in batches."""
    with opened(people(), kind, tmp_path) as table:
        engine = table._session.engine
        with pytest.raises(duckdb.Error, match=CANARY):
            misread(engine._connection)
        monkeypatch.setattr(engine, "_run", lambda tree: misread(engine._connection))
        for ask in QUESTIONS.values():
            ask(table)
    with opened(people(), kind, tmp_path / "again") as table:
        broken = table._session.engine
        monkeypatch.setattr(broken, "_run", lambda tree: misread(broken._connection))
        monkeypatch.setattr(broken, "_batches", lambda columns: misread(broken._connection))
        for ask in QUESTIONS.values():
            with pytest.raises(EngineFailed) as caught:
                ask(table)
            assert_silent(caught.value)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_source_that_changes_after_opening_speaks_of_no_row(kind: str, tmp_path: Path) -> None:
    """What was opened is what answers: a file that is replaced or removed later is not looked at again."""
    table = opened(people(), kind, tmp_path)
    path = tmp_path / f"people.{kind}"
    path.write_bytes(f"{CANARY},{CANARY}\n".encode() * 1000)
    assert table.count(EXACT) == 40
    path.unlink()
    assert table.count(EXACT) == 40
    table.close()


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_opening_speaks_of_no_row(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while a snapshot is taken would quote a row before any budget is there to pay for it."""
    from privet.kernel.engines.duckdb.engine import DuckDBEngine

    source = store(people(), kind, tmp_path)
    monkeypatch.setattr(DuckDBEngine, "snapshot", _raiser(CANARY))
    with pytest.raises(DataError) as caught:
        privet.open(source, DOMAIN, budget=1, access="snapshot")
    assert_silent(caught.value)


@each_source
def test_refusals_have_no_second_voice(kind: str, tmp_path: Path) -> None:
    """A refusal chained to an inner exception shows how far the question went."""
    with opened(people(), kind, tmp_path, budget=1) as table:
        for ask in (
            lambda: table.count(2),
            lambda: table.allot(0.5).count(1),
            lambda: table.where(job="poet"),
            lambda: table.sum("nothing", 1),
            lambda: table.count("abc"),
            lambda: pickle.dumps(table),
        ):
            with pytest.raises(PrivetError) as caught:
                ask()
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None

"""Ctrl-C in the middle of a fit: charge and question stay recorded, nothing else does, and the table goes on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from keyboard import press_ctrl_c
from postgres_server import shared_server

import privet
from privet.kernel.engines.contract import Cells

ROWS = privet.datasets.census(400, seed=3)
DOMAIN = privet.datasets.census_domain()
PATHS = ("memory", "snapshot", "stream", "push-down", "postgres")
LEARNERS = [
    privet.MaxTreeClassifier("1", max_depth=4, random_state=0),
    privet.BoostedTablesClassifier("5", random_state=0),
]


@contextmanager
def opened(path: str, folder: Path) -> Iterator[privet.ProtectedTable]:
    """The rows on one of the paths, with a ledger on disk."""
    data: Any = folder / "rows.csv"
    ROWS.to_csv(data, index=False)
    if path == "postgres":
        data = on_postgres(data)
    how = path if path in ("snapshot", "stream", "push-down") else "auto"
    with privet.open(
        ROWS if path == "memory" else data, DOMAIN, budget=20, ledger=folder / "rows.ledger", access=how
    ) as table:
        yield table


def on_postgres(file: Path) -> str:
    """The rows of a file as a table, with its address."""
    server, name = shared_server(), file.parent.name
    with server.connect() as connection, connection.cursor() as cursor:
        columns = ", ".join(f'"{name}" text' for name in ROWS.columns)
        cursor.execute(f'CREATE TABLE IF NOT EXISTS "{name}" ({columns})')
        cursor.execute(f'TRUNCATE "{name}"')
        with cursor.copy(f'COPY "{name}" FROM STDIN (FORMAT csv, HEADER)') as copy:
            copy.write(file.read_bytes())
    return server.address(table=f"%22{name}%22")


def interrupt_at(number: int, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C when the engine has found the exact answer to so many questions, and not told it yet."""
    asked = []

    def interrupted(answer: Any) -> Any:
        def ask(self: Any, query: Any) -> Any:
            found = answer(self, query)
            asked.append(query)
            if len(asked) == number:
                signal.raise_signal(signal.SIGINT)
            return found

        return ask

    # another engine is asked about the same rows in other cells: here it tells its class
    in_cells = engine.in_cells(Cells(engine._domain, {}))
    for kind in {type(engine), type(in_cells)}:
        for name in ("exact_counts", "exact_grid", "exact_sums", "exact_residuals", "exact_correct"):
            monkeypatch.setattr(kind, name, interrupted(getattr(kind, name)))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda each: each.algorithm)
def test_an_interrupted_fit_leaves_its_charges_and_questions_and_nothing_else(
    learner: Any, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path, tmp_path) as table:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            interrupt_at(4, table._session.engine, patch)
            learner.fit(table)
        assert not hasattr(learner, "model_")
        entries = table.budget.entries
        assert [entry.answer is not None for entry in entries] == [True, True, True, False]
        assert entries[-1].question and entries[-1].loss >= 0
        spent = table.budget.spent
        assert spent == sum(entry.loss for entry in entries) > 0
        assert table._session.ledger.holds(table._session.dataset) == []
        again = type(learner)(**learner.get_params()).fit(table)
        assert table.budget.spent == spent + again.privacy_.spent
        assert table.count("9", key="k").interval(0.999999)[0] > 390
    with opened(path, tmp_path) as table:  # what was recorded is what is found by the next process
        assert table.budget.entries[:4] == entries


@pytest.mark.parametrize("path", PATHS)
def test_an_interrupted_question_is_finished_under_its_key(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path, tmp_path) as table:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            interrupt_at(1, table._session.engine, patch)
            table.count("9", key="k")
        (entry,) = table.budget.entries
        assert (entry.key, entry.question, entry.answer, entry.loss) == ("k", "count", None, 9)
        assert table.count("9", key="k").interval(0.999999)[0] > 390
        assert [entry.key for entry in table.budget.entries] == ["k"] and table.budget.spent == 9


class Slow:
    """A connection on which the next statement would never end, did nobody press Ctrl-C."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._slow, self._noticed = True, threading.Event()

    def execute(self, statement: str, *rest: Any) -> Any:
        if self._slow:
            self._slow = False
            threading.Thread(target=press_ctrl_c, args=(self._noticed,)).start()
            statement, rest = "SELECT sum(a.range * b.range % 7) FROM range(1000) a, range(100000000000000) b", ()
        return self._connection.execute(statement, *rest)

    def interrupt(self) -> None:
        self._noticed.set()
        self._connection.interrupt()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def test_duckdb_stops_its_statement_and_the_interrupt_is_one(tmp_path: Path) -> None:
    """It notices Ctrl-C sometimes, and then as an error, which would be told as a question that failed."""
    with opened("push-down", tmp_path) as table:
        engine = table._session.engine
        engine._connection = Slow(engine._connection)
        with pytest.raises(KeyboardInterrupt):
            table.count("9", key="k")
        (entry,) = table.budget.entries
        assert entry.answer is None and table.budget.spent == 9
        assert table.count("9", key="k").interval(0.999999)[0] > 390


def test_what_an_interrupt_leaves_in_the_scratch_stops_no_later_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C as a statement ends, and again as its table is dropped."""
    model, caps = privet.kernel.AdditiveModel((0, 0)), (1024, 1024)
    with opened("push-down", tmp_path) as table, monkeypatch.context() as patch:
        engine = table._session.engine
        work = engine._run

        def pressed(tree: Any) -> Any:
            work(tree)
            raise KeyboardInterrupt

        patch.setattr(engine, "_run", pressed)
        patch.setattr(engine, "_connection", Pressed(engine._connection))
        with pytest.raises(KeyboardInterrupt):
            table.residual_sums(model, ("sex",), caps, 1)
        patch.undo()
        assert "owned" in {name for (name, *_) in engine._connection.execute("SHOW TABLES").fetchall()}
        table.residual_sums(model, ("sex",), caps, 1)
        assert [entry.answer is not None for entry in table.budget.entries] == [False, True]


class Pressed:
    """A connection on which somebody presses Ctrl-C before a table is dropped."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, statement: str, *rest: Any) -> Any:
        if statement.startswith("DROP"):
            raise KeyboardInterrupt
        return self._connection.execute(statement, *rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def test_an_interrupted_opening_leaves_no_scratch_and_no_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    connect = duckdb.connect

    def slow(*words: Any, **more: Any) -> Any:
        connection = Slow(connect(*words, **more))
        connection._slow = False
        execute = connection.execute

        def press(statement: str, *rest: Any) -> Any:
            connection._slow = statement.startswith("CREATE OR REPLACE TABLE coded")
            return execute(statement, *rest)

        connection.execute = press
        return connection

    monkeypatch.setattr(duckdb, "connect", slow)
    with pytest.raises(KeyboardInterrupt):
        privet.open(tmp_path / "rows.csv", DOMAIN, budget=1)
    assert list((tmp_path / "scratch").iterdir()) == []
    assert not (tmp_path / "rows.csv.ledger").exists()

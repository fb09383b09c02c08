"""The ledger in a file: what is said when a charge or its answer cannot be written."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernel.ledger.small_ledger import TENTH, one_sentence, table_at

from privet.errors import LedgerError
from privet.table import ProtectedTable


def after_charge(table: ProtectedTable, trouble: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something happen between the charge of a question and the storing of its answer."""
    engine = table._session.engine
    counts = engine.exact_counts
    monkeypatch.setattr(engine, "exact_counts", lambda query: (trouble(), counts(query))[1])


@pytest.mark.parametrize(("key", "finish"), [("k", "retry with the key 'k'"), (None, "a new try is a new charge")])
@pytest.mark.parametrize("trouble", ["full", "locked"])
def test_an_answer_that_cannot_be_stored_leaves_a_charge_that_stands(
    file: Path, trouble: str, key: str | None, finish: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privet.kernel.ledger.store.WAIT_SECONDS", 0.01)
    table = table_at(file)
    raw = sqlite3.connect(file, isolation_level=None)
    full = (
        "CREATE TRIGGER full BEFORE INSERT ON lines WHEN NEW.kind = 'answer' "
        "BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
    )
    after_charge(table, lambda: raw.execute(full if trouble == "full" else "BEGIN IMMEDIATE"), monkeypatch)
    reason = {"full": "the disk is full", "locked": "another process holds it for too long"}[trouble]
    with pytest.raises(LedgerError, match=f"{reason}; the answer was neither stored nor released") as refused:
        table.count("0.1", key=key)
    text = one_sentence(refused.value)
    assert f"Ledger entry 1 (epsilon=0.1) stands: {finish}" in text and "nothing was charged" not in text
    raw.execute("DROP TRIGGER full" if trouble == "full" else "ROLLBACK")
    raw.close()
    monkeypatch.undo()
    table.count("0.1", key=key)
    assert table.budget.spent == (TENTH if key else 2 * TENTH)


def test_a_charge_that_waits_too_long_is_not_made(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privet.kernel.ledger.store.WAIT_SECONDS", 0.01)
    table = table_at(file)
    raw = sqlite3.connect(file, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="another process holds it for too long; nothing was charged"):
        table.count("0.1")
    raw.close()
    assert table.budget.entries == []


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("key", ["k", None])
def test_a_commit_that_the_disk_leaves_open_is_told_and_not_answered(
    file: Path, done: bool, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an error of the folder's synchronisation: the journal may be gone, and with it the way back."""
    table = table_at(file)
    store = table._session.ledger._store
    connection = store._connection

    class Failing:
        def execute(self, statement: str, *values: Any) -> Any:
            if statement != "COMMIT":
                return connection.execute(statement, *values)
            connection.execute("COMMIT" if done else "ROLLBACK")
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error

        def __getattr__(self, name: str) -> Any:
            return getattr(connection, name)

    with monkeypatch.context() as unlucky:
        unlucky.setattr(table._session.engine, "exact_counts", lambda query: pytest.fail("the engine was asked"))
        unlucky.setattr(table._session.ledger, "standing", lambda *words: None)  # a read, which would fail too
        unlucky.setattr(store, "_connection", Failing())
        with pytest.raises(LedgerError, match="for certain: the disk failed at the last step") as told:
            table.count("0.1", key=key)
    text = one_sentence(told.value)
    assert "`privet budget show --entries` tells" in text and "without a key a new try is a new charge" in text
    table.count("0.1", key=key)
    assert table.budget.spent == (2 * TENTH if done and key is None else TENTH)

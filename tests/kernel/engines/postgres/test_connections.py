"""PostgreSQL: connections that are lost, killed servers, threads and forked processes."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from kernel.engines.postgres.tables import DOMAIN, ended, engine_of, failing, make, opened, people, raising
from postgres_server import Server

import privet
from privet.errors import DataError, EngineFailed, PrivetError
from privet.kernel.engines.contract import CountQuery
from privet.kernel.ledger.ledger import Ledger
from privet.kernel.rows import Rows

psycopg = pytest.importorskip("psycopg")
from privet.kernel.engines.postgres import link as postgres_link  # noqa: E402

# --- connections that are lost ---------------------------------------------------------------------------------------


def unless_calm(what: str) -> str:
    """What a function does for some rows until somebody connects as 'calm'."""
    calm = "EXISTS (SELECT 1 FROM pg_stat_activity WHERE application_name = 'calm')"
    return f"IF t = 'x' AND NOT {calm} THEN {what} END IF;"


def test_a_connection_that_was_lost_is_made_again_for_the_next_question(server: Server) -> None:
    with opened(server, people(server)) as table:
        for _ in range(3):
            ended(server, table)
            assert table.count(300).value == 30
        assert len(table.budget.entries) == 3


def test_a_connection_lost_under_a_statement_is_one_charge_and_one_answer(server: Server) -> None:
    name = raising(server, unless_calm("PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60);"))
    with opened(server, name) as table:
        with pytest.raises(EngineFailed, match=r"Ledger entry 1 \(epsilon=300\) stands: retry with the key 'k'"):
            table.count(300, key="k")  # lost twice
        with server.connect(application_name="calm"):
            assert table.count(300, key="k").value == 30
            assert table.count(300, key="k").value == 30
        assert [entry.id for entry in table.budget.entries] == [1]


TREE_ROWS = privet.datasets.census(400, seed=3)
TREE_DOMAIN = privet.datasets.census_domain()


def census(server: Server) -> str:
    rows = TREE_ROWS.astype(object).where(TREE_ROWS.notna(), None)
    return make(server, ", ".join(f'"{name}" text' for name in rows.columns), rows.itertuples(index=False, name=None))


@pytest.mark.parametrize("back", [True, False], ids=["restarted", "gone"])
def test_a_server_killed_during_a_fit(
    mortal: Server, back: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fit finishes or stops with one sentence, and every release is an entry of the ledger."""
    with privet.testing.open(TREE_ROWS, TREE_DOMAIN, budget=10, seed=7) as table:
        expected = privet.DiffPID3Classifier(2, max_depth=3, random_state=0).fit(table).model_.to_json()
        releases = len(table.budget.entries)
    ask, statements = postgres_link.Link.numbers, itertools.count()
    monkeypatch.setattr(postgres_link, "_ABSENCE_SECONDS", 60 if back else 0)

    def dying(link: Any, *asked: Any) -> Any:
        if next(statements) == 1:
            mortal.kill()
            if back:
                mortal.restart()
        return ask(link, *asked)

    monkeypatch.setattr(postgres_link.Link, "numbers", dying)
    address = mortal.address(table=quote(census(mortal)))
    classifier = privet.DiffPID3Classifier(2, max_depth=3, random_state=0)
    if back:
        with privet.testing.open(address, TREE_DOMAIN, budget=10, seed=7) as table:
            assert classifier.fit(table).model_.to_json() == expected
            assert len(table.budget.entries) == releases > 3
        return
    ledger = tmp_path / "l"
    with privet.open(address, TREE_DOMAIN, budget=10, ledger=ledger) as table:
        with pytest.raises(EngineFailed) as caught:
            classifier.fit(table)
        assert re.fullmatch(
            r"the postgres engine could not answer .* Ledger entry 2 \(.*\) stands: .*\.", str(caught.value)
        )
        entries = table.budget.entries
        assert [entry.answer is not None for entry in entries] == [True, False]
        with pytest.raises(DataError, match=r"^cannot reach the server at .*\.$"):
            table.count(1, key="later")  # nobody pays for a question that cannot be asked
        assert len(table.budget.entries) == 2
        mortal.restart()
        assert table.count(1, key="later").value == table.count(1, key="later").value
        assert len(table.budget.entries) == 3
    with privet.open(address, TREE_DOMAIN, ledger=ledger) as table:
        assert len(table.budget.entries) == 3


def test_a_server_that_is_starting_is_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, tries = postgres_link._connect, itertools.count()

    def starting(parameters: Any) -> Any:
        if next(tries) < 3:
            raise psycopg.OperationalError("FATAL:  the database system is starting up")
        return connect(parameters)

    with opened(server, people(server)) as table:
        ended(server, table)
        monkeypatch.setattr(postgres_link, "_connect", starting)
        monkeypatch.setattr(postgres_link, "_PAUSE_SECONDS", 0)
        assert table.count(300).value == 30
        ended(server, table)
        tries = itertools.count(-10)
        monkeypatch.setattr(postgres_link, "_PATIENCE_SECONDS", -1)
        with pytest.raises(DataError, match="cannot reach the server"):
            table.count(1)
        assert len(table.budget.entries) == 1


def test_a_server_killed_in_the_middle_of_a_statement_is_asked_again_when_it_is_back(mortal: Server) -> None:
    """The question is charged once and answered once, whatever the server had done of it."""
    first = mortal.run("SELECT pg_postmaster_start_time()::text")[0][0]
    asleep = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'privet' AND wait_event = 'PgSleep'"
    name = raising(mortal, f"IF pg_postmaster_start_time() = '{first}' THEN PERFORM pg_sleep(60); END IF;")

    def kill() -> None:
        with mortal.connect() as connection:
            while not connection.execute(asleep).fetchall():
                pass
        mortal.kill()
        mortal.restart()

    with opened(mortal, name) as table:
        killer = threading.Thread(target=kill)
        killer.start()
        assert table.partition("sex").count(300).array().tolist() == [10, 10, 10]
        killer.join()
        assert [entry.answer is not None for entry in table.budget.entries] == [True]


# --- rows that change ------------------------------------------------------------------------------------------------


def _finish_in_child(part: Any, send: Any) -> None:
    try:
        send.send(part.count(300, key="k").value)
    except PrivetError as error:
        send.send(str(error))
    send.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # threads of other libraries
def test_a_forked_copy_finishes_nothing_and_waits_for_no_lock(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not know what its parent has made of a charge since, nor does anybody end what its parent had begun."""
    with opened(server, people(server), budget=3000, ledger=tmp_path / "l") as table:
        part = table.partition("sex")[0]
        with monkeypatch.context() as patch, pytest.raises(OSError, match="disk"):
            patch.setattr(Ledger, "store", failing)
            part.count(300, key="k")
        context = multiprocessing.get_context("fork")
        receive, send = context.Pipe(False)
        with part._sets.scopes.lock:
            child = context.Process(target=_finish_in_child, args=(part, send))
            child.start()
            assert "opened in another process" in receive.recv()
            child.join()


def test_an_interrupt_cancels_the_statement_and_leaves_the_charge(server: Server) -> None:
    name = raising(server, unless_calm("PERFORM pg_sleep(60);"))
    asleep = "SELECT pid FROM pg_stat_activity WHERE application_name = 'privet' AND wait_event = 'PgSleep'"

    def interrupt() -> None:
        with server.connect() as connection:
            while not connection.execute(asleep).fetchall():
                pass
        os.kill(os.getpid(), signal.SIGINT)

    with opened(server, name) as table:
        watcher = threading.Thread(target=interrupt)
        watcher.start()
        with pytest.raises(KeyboardInterrupt):
            table.count(300, key="k")
        watcher.join()
        assert server.run(asleep) == []
        (entry,) = table.budget.entries
        assert entry.answer is None and entry.key == "k" and table.budget.spent == 300
        with server.connect(application_name="calm"):
            assert table.count(300, key="k").value == 30
        assert len(table.budget.entries) == 1


# --- threads and processes -------------------------------------------------------------------------------------------


def test_threads_share_a_table(server: Server) -> None:
    with opened(server, people(server), budget=100_000) as table, ThreadPoolExecutor(6) as pool:
        assert {release.value for release in pool.map(lambda _: table.count(300), range(24))} == {30}
        assert len(table.budget.entries) == 24


def _ask_in_child(engine: Any, send: Any) -> None:
    (found,) = engine.exact_counts(CountQuery(Rows(), ((),)))
    send.send(found.tolist())
    engine.close()
    send.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # threads of other libraries
def test_a_forked_child_makes_a_connection_of_its_own(server: Server) -> None:
    engine = engine_of(server, people(server), DOMAIN)
    query = CountQuery(Rows(), ((),))
    engine.exact_counts(query)
    (connection,) = engine._link._held
    context = multiprocessing.get_context("fork")
    for _ in range(2):
        receive, send = context.Pipe(False)
        child = context.Process(target=_ask_in_child, args=(engine, send))
        child.start()
        assert receive.recv() == [30]
        child.join()
        assert child.exitcode == 0
        assert engine.exact_counts(query)[0].tolist() == [30]
    assert engine._link._held == [connection]
    engine.close()


def test_a_closed_table_holds_no_connection(server: Server) -> None:
    table = opened(server, people(server))
    (connection,) = table._session.engine._link._held
    table.close()
    assert connection.closed
    with pytest.raises(PrivetError, match="was closed"):
        table.count(1)
    with pytest.raises(psycopg.InterfaceError):
        table._session.engine._link.run("SELECT 1", lambda cursor: None)


# --- addresses -------------------------------------------------------------------------------------------------------


def test_a_closed_table_keeps_no_counts(server: Server) -> None:
    with opened(server, people(server)) as table:
        engine: Any = table._session.engine
        table.histogram(table.domain.names[0], epsilon=1)
        assert engine._recall._tables
    assert not engine._recall._tables

"""The ledger on a real PostgreSQL server: processes that race, and killed clients, servers and connections."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from kernel.ledger.postgres_ledger import DATASET, TENTH, WRITE, new_ledger, refused, schema, table_at, tenth
from postgres_server import Server

from privet.errors import BudgetExceeded
from privet.kernel import Charge, Ledger

psycopg = pytest.importorskip("psycopg")
from privet.kernel.ledger.postgres import PostgresStore, _lock_number  # noqa: E402
from privet.kernel.ledger.store import Purpose  # noqa: E402

# -- many at once -------------------------------------------------------------------------------


def fork(work: Callable[[Callable[[object], None]], None]) -> Callable[[], list[Any]]:
    """Start a child that says things; the function waits for its end and returns them."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, where the process has threads
        child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            work(lambda word: os.write(writer, (json.dumps(word) + "\n").encode()) and None)
        except BaseException:
            os.write(writer, (json.dumps({"failed": traceback.format_exc()}) + "\n").encode())
        finally:
            os._exit(0)
    os.close(writer)

    def wait() -> list[Any]:
        with os.fdopen(reader) as pipe:
            words = [json.loads(line) for line in pipe]
        os.waitpid(child, 0)
        assert not any(isinstance(word, dict) for word in words), words
        return words

    return wait


def test_threads_of_several_processes_race_for_the_last_unit(address: str) -> None:
    """Eight processes with one ledger and four threads each: one of the 32 is charged."""
    new_ledger(address, TENTH)
    ready, start = os.pipe()

    def race(say: Callable[[object], None]) -> None:
        os.close(start)
        ledger = Ledger.open(address)
        os.read(ready, 1)  # until the parent closes its end

        def spend() -> None:
            try:
                ledger.charge(DATASET, "ada", tenth())
                say("charged")
            except BudgetExceeded:
                say("refused")

        threads = [threading.Thread(target=spend) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    racers = [fork(race) for _ in range(8)]
    os.close(start)
    words = [word for wait in racers for word in wait()]
    os.close(ready)
    assert sorted(words) == ["charged"] + ["refused"] * 31
    assert len(Ledger.open(address).entries(DATASET)) == 1


def test_ledgers_in_two_processes_share_caps_keys_and_reservations(address: str) -> None:
    ledger = new_ledger(address)
    ledger.set_cap(DATASET, "ada", Fraction(1, 5))
    mine, _ = ledger.charge(DATASET, "ada", tenth("k"))
    hold = ledger.hold(DATASET, "bob", Fraction(1, 2))

    def elsewhere(say: Callable[[object], None]) -> None:
        other = Ledger.open(address)
        entry, new = other.charge(DATASET, "ada", tenth("k"))
        say([entry.id, new, str(other.remaining(DATASET, "ada")), str(other.remaining(DATASET, "eve"))])
        other.charge(DATASET, "ada", tenth())
        other.set_cap(DATASET, None, Fraction(7, 10))

    assert fork(elsewhere)() == [[mine.id, False, "1/10", "2/5"]]
    with pytest.raises(BudgetExceeded):
        ledger.charge(DATASET, "ada", tenth())
    assert (ledger.spent(DATASET), ledger.remaining(DATASET, "eve")) == (Fraction(1, 5), 0)
    ledger.charge(DATASET, "bob", tenth(), None, hold)


def waits(server: Server, what: str) -> bool:
    return bool(server.run(f"SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = '{what}'"))


def test_a_ledger_that_another_process_holds_is_told_after_the_wait(
    own: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privet.kernel.ledger.postgres.WAIT_SECONDS", 0.5)
    address = own.ledger()
    ledger = new_ledger(address)
    with own.connect() as other:
        other.execute(f"SELECT pg_advisory_lock({_lock_number(schema(address))})")
        refused(
            lambda: ledger.charge(DATASET, "ada", tenth()), "another process holds it for too long; nothing was charged"
        )
        assert ledger.spent(DATASET) == 0  # who only reads does not wait
    ledger.charge(DATASET, "ada", tenth())
    frozen = Ledger.open(address)._transaction(Purpose("freeze"))
    frozen.__enter__()  # half of the wait later, the server ends this session
    while own.run("SELECT 1 FROM pg_locks WHERE granted AND locktype = 'advisory'"):
        pass
    refused(lambda: frozen.__exit__(None, None, None), "cannot freeze", "the connection broke")
    assert ledger.spent(DATASET) == TENTH


def test_who_writes_without_the_lock_stops_a_charge_and_never_doubles_a_number(own: Server) -> None:
    address = own.ledger()
    ledger, rogue = new_ledger(address), Ledger.open(address)
    store = rogue._store
    assert isinstance(store, PostgresStore)
    store._begin_write = store._begin_write.replace(f"pg_advisory_xact_lock({_lock_number(schema(address))})", "1")
    commit, written, go_on = store._commit, threading.Event(), threading.Event()

    def late(run: Any) -> None:
        written.set()
        assert go_on.wait(60)
        commit(run)

    store._commit = late  # type: ignore[method-assign]
    texts: list[str] = []
    whole = Charge("count", "{}", "f", "all rows", "1", Fraction(1))
    threads = [
        threading.Thread(target=lambda: rogue.charge(DATASET, "eve", whole)),
        threading.Thread(
            target=lambda: texts.append(refused(lambda: ledger.charge(DATASET, "ada", tenth()), "without its lock"))
        ),
    ]
    threads[0].start()
    assert written.wait(60)
    threads[1].start()
    while not waits(own, "transactionid"):
        pass
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(texts) == 1
    assert [entry.analyst for entry in Ledger.open(address).entries(DATASET)] == ["eve"]
    with pytest.raises(BudgetExceeded):
        ledger.charge(DATASET, "ada", tenth())


# -- clients that die ---------------------------------------------------------------------------


class Steps:
    """Does something at one step of those that the ledger says to its server."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: list[str] = []
        self.at: tuple[str, int] | None = None
        self.act: Callable[[], None] = lambda: None
        execute = psycopg.Connection.execute

        def counted(connection: Any, statement: Any, *rest: Any, **more: Any) -> Any:
            self.statements.append(statement if isinstance(statement, str) else statement.decode())
            step = len(self.statements)
            if self.at == ("before", step):
                self.act()
            found = execute(connection, statement, *rest, **more)
            if self.at == ("after", step):
                self.act()
            return found

        monkeypatch.setattr(psycopg.Connection, "execute", counted)

    def begin(self, at: tuple[str, int] | None = None, act: Callable[[], None] = lambda: None) -> None:
        self.statements, self.at, self.act = [], at, act


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


def test_a_process_killed_at_any_step_leaves_what_it_released_on_record(address: str, steps: Steps) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def victim(key: str, at: tuple[str, int] | None) -> list[Any]:
        def work(say: Callable[[object], None]) -> None:
            table = table_at(address, 10)
            steps.begin(at, die)
            say(int(table.count(TENTH, key=key)))
            say(len(steps.statements))

        return fork(work)()

    new_ledger(address, Fraction(10))
    moments: list[tuple[str, int] | None] = [None]
    told = {"0": victim("0", None)}
    moments += [(when, step) for step in range(1, told["0"][1] + 1) for when in ("before", "after")]
    for number, moment in enumerate(moments[1:], 1):
        told[str(number)] = victim(str(number), moment)
    assert len(moments) > 20
    ledger = Ledger.open(address)  # checks every total
    before = {entry.key: entry for entry in ledger.entries(DATASET)}
    assert ledger.spent(DATASET) == len(before) * TENTH
    table = table_at(address, 10)
    for number, moment in enumerate(moments):
        key, entry = str(number), before.get(str(number))
        if told[key]:  # released, so it was charged and stored before
            assert entry is not None and json.loads(entry.answer or "")["answer"] == told[key][:1]
        answer = int(table.count(TENTH, key=key))
        assert told[key][:1] in ([], [answer]), moment
    assert ledger.spent(DATASET) == len(moments) * TENTH
    assert [entry.id for entry in ledger.entries(DATASET)] == list(range(1, len(moments) + 1))


# -- servers that die ---------------------------------------------------------------------------


def test_a_server_killed_at_any_step_of_a_charge_comes_back_with_what_was_committed(own: Server, steps: Steps) -> None:
    address = own.ledger()
    ledger = new_ledger(address)
    ledger.set_cap(DATASET, "ada", Fraction(1))  # who is known from then on: the first charge is like the others
    steps.begin()
    ledger.charge(DATASET, "ada", tenth("k"))
    names = steps.statements
    insert = next(i for i, each in enumerate(names, 1) if each.startswith("INSERT"))
    committed = 1
    moments = [("before", 1), ("before", 2), ("before", insert), ("after", insert), ("after", len(names))]
    for number, at in enumerate(moments):
        steps.begin(at, own.kill)
        if at == ("after", len(names)):
            assert names[-1] == "COMMIT"
            ledger.charge(DATASET, "ada", tenth(f"k{number}"))  # the commit was answered before
            committed += 1
        else:  # a COMMIT that nobody answers may have been done
            told = "whether it was written is not known" if at == ("after", insert) else "nothing was charged"
            refused(lambda: ledger.charge(DATASET, "ada", tenth(f"k{number}")), told)  # noqa: B023
        steps.begin()
        refused(lambda: ledger.spent(DATASET), "the server cannot be reached")
        refused(lambda: Ledger.open(address), "the server cannot be reached")
        own.restart()
        assert [len(each.entries(DATASET)) for each in (ledger, Ledger.open(address))] == [committed] * 2
        entry, new = ledger.charge(DATASET, "ada", tenth(f"k{number}"))
        committed += new
        assert (entry.id, new) == (committed, at != ("after", len(names)))
    assert Ledger.open(address).spent(DATASET) == committed * TENTH


def test_a_server_killed_between_charge_and_answer_has_the_charge(own: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_at(own.ledger())
    engine = table._session.engine
    counts = engine.exact_counts
    with monkeypatch.context() as unlucky:
        unlucky.setattr(engine, "exact_counts", lambda query: own.kill() or counts(query))
        text = refused(lambda: table.count("0.1", key="k"), "cannot store an answer", "neither stored nor released")
        assert "Ledger entry 1 (epsilon=0.1) stands: retry with the key 'k' to finish under it." in text
    unlucky.setattr(engine, "exact_counts", lambda query: pytest.fail("the engine was asked without a charge"))
    refused(lambda: table.count("0.1", key="k"), "the server cannot be reached")
    refused(lambda: table.count("0.1"), "the server cannot be reached")
    unlucky.undo()
    own.restart()
    assert [entry.answer for entry in table.budget.entries] == [None]
    answer = table.count("0.1", key="k")
    assert table.count("0.1", key="k") == answer
    assert table.budget.spent == TENTH
    assert Ledger.open(table.budget.ledger_path).spent(DATASET) == TENTH


def disconnect(server: Server) -> None:
    """End every session of a ledger."""
    server.run("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'privet'")


def test_a_server_that_was_restarted_since_is_connected_to_again(own: Server) -> None:
    ledger = new_ledger(own.ledger())
    for _ in range(3):
        ledger.charge(DATASET, "ada", tenth())
        disconnect(own)
    assert ledger.spent(DATASET) == 3 * TENTH


def test_a_connection_that_breaks_in_the_middle_undoes_all(own: Server, steps: Steps) -> None:
    ledger = new_ledger(own.ledger())
    steps.begin(("before", 3), lambda: steps.begin() or disconnect(own))  # type: ignore[func-returns-value]
    refused(lambda: ledger.charge(DATASET, "ada", tenth()), "the connection was lost; nothing was charged")
    assert ledger.spent(DATASET) == 0
    ledger.charge(DATASET, "ada", tenth())
    assert [entry.id for entry in ledger.entries(DATASET)] == [1]


def test_an_interrupt_or_a_use_inside_a_use_undoes_what_was_begun(address: str) -> None:
    ledger = new_ledger(address)
    with pytest.raises(KeyboardInterrupt), ledger._transaction(WRITE) as begun:
        begun.append("hold", DATASET, begun.new_analyst_id("ada"), {"held": "1"})
        raise KeyboardInterrupt

    def inside() -> None:
        with ledger._transaction(WRITE) as begun:
            begun.append("hold", DATASET, begun.new_analyst_id("ada"), {"held": "1"})
            ledger.charge(DATASET, "ada", tenth())  # as a finalizer might, in the same thread

    refused(inside, "cannot write to the ledger")
    assert ledger.holds(DATASET) == [] and ledger.spent(DATASET) == TENTH
    ledger.charge(DATASET, "ada", tenth())


class Wire:
    """A socket between client and server that can be cut when the COMMIT of a write passes."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.folder, self.cut = folder, ""
        self._server = str(server.socket / ".s.PGSQL.5432")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            server.connect(self._server)
            writing = False
            while True:
                for end in select.select([client, server], [], [])[0]:
                    words = end.recv(65536)
                    if not words:
                        return
                    if end is client:
                        writing = b"INSERT" in words or (writing and b"BEGIN" not in words)
                    if end is client and b"COMMIT\0" in words and writing and self.cut:
                        if self.cut == "after":
                            server.sendall(words)
                            assert b"COMMIT" in server.recv(65536)
                        self.cut = ""
                        return
                    (server if end is client else client).sendall(words)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def wire(server: Server, tmp_path: Path) -> Iterator[Wire]:
    made = Wire(server, tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("cut", ["before", "after"])
@pytest.mark.parametrize("key", ["k", None])
def test_a_commit_whose_outcome_is_unknown_is_never_answered(
    server: Server, wire: Wire, cut: str, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut before the server hears of it, or before the client hears of it: the client cannot tell the two apart."""
    address = server.ledger().replace(str(server.socket), str(wire.folder))
    table = table_at(address)
    left, right = table.partition("sex")
    wire.cut = cut
    with monkeypatch.context() as watched:
        watched.setattr(table._session.engine, "exact_counts", lambda query: pytest.fail("the engine was asked"))
        text = refused(lambda: left.count("0.1", key=key), "whether it was written is not known")
    assert str(wire.folder) in text and "the same question with the same key finds the charge or makes it" in text
    assert "privet budget show --entries" in text
    stands = cut == "after"
    ledger = table._session.ledger  # which connects again
    assert ledger.spent(DATASET) == stands * TENTH
    left.count("0.1", key=key)  # finds the charge under its key, or pays again
    expected = 1 if key or not stands else 2
    assert [entry.id for entry in Ledger.open(address).entries(DATASET)] == list(range(1, expected + 1))
    assert Ledger.open(address).entries(DATASET)[-1].answer is not None
    right.count("0.1")  # whatever happened, no sibling lives on a charge that may not stand
    assert ledger.spent(DATASET) >= TENTH


def test_what_may_have_been_stored_is_found_or_drawn_again(server: Server, wire: Wire) -> None:
    address = server.ledger().replace(str(server.socket), str(wire.folder))
    table = table_at(address)
    engine = table._session.engine
    counts = engine.exact_counts
    for number, cut in enumerate(("before", "after"), 1):

        def lose(query: Any, cut: str = cut) -> Any:
            wire.cut = cut
            return counts(query)

        engine.exact_counts = lose  # type: ignore[method-assign]
        text = refused(lambda: table.count("0.1", key=cut), "whether it was written is not known")  # noqa: B023
        assert text.endswith(
            f"Ledger entry {number} (epsilon=0.1) stands: retry with the key '{cut}' to finish under it."
        )
        engine.exact_counts = counts  # type: ignore[method-assign]
        stored = table.budget.entries[-1].answer
        assert (stored is not None) == (cut == "after")
        answer = table.count("0.1", key=cut)
        assert stored is None or json.loads(stored)["answer"] == [int(answer)]
        assert table.budget.spent == number * TENTH


# -- addresses, passwords, rights ---------------------------------------------------------------


def test_reservations_that_have_ended_are_not_looked_at(server: Server, address: str, steps: Steps) -> None:
    """A charge says as much to the server after many as after few, and the table that it reads has only open ones."""
    ledger = new_ledger(address, Fraction(100))
    spoken = []
    for ended in (2, 40):
        for _ in range(ended):
            ledger.end(ledger.hold(DATASET, "ada", TENTH))
        steps.begin()
        ledger.charge(DATASET, "ada", tenth())
        spoken.append([" ".join(each.split()[:4]) for each in steps.statements])
    assert spoken[0] == spoken[1]
    assert not [each for each in steps.statements if "'end'" in each or "'hold'" in each]
    ledger.hold(DATASET, "bob", TENTH)
    assert server.run(f"SELECT hold FROM {schema(address)}.open_holds") == [(43,)]

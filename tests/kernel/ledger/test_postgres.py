"""The ledger on a real PostgreSQL server: killed clients, killed servers, broken connections, missing rights.

What it has in common with the ledger in a file is in test_ledger.py and test_reservations.py, which run over both.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command import run
from postgres_server import Server, shared_server

import privet
from privet.errors import BudgetExceeded, LedgerError, PrivetError
from privet.kernel import Charge, Ledger, ProtectedTable
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain

psycopg = pytest.importorskip("psycopg")
from privet.kernel.ledger.postgres import PostgresStore, _lock_number  # noqa: E402
from privet.kernel.ledger.store import Purpose  # noqa: E402

DATASET = "people"
DOMAIN = Domain((Nominal("sex", ("f", "m")),))
FRAME = pd.DataFrame({"sex": ["f", "m", "m"] * 20})
TENTH = Fraction(1, 10)
SECRET = "correcthorse"
TABLES = {"format": "version", "lines": "note", "analysts": "name", "sources": "source"}  # with a column of each
WRITE = Purpose("write to the ledger")


def tenth(key: str | None = None, scope: str = "all rows") -> Charge:
    return Charge("count", "{}", "f", scope, "0.1", TENTH, key)


def new_ledger(address: str, budget: Fraction = Fraction(1)) -> Ledger:
    ledger = Ledger.open(address)
    ledger.register(DATASET, source="here", budget=budget)
    return ledger


def table_at(address: str, budget: object = 1, analyst: str = "ada") -> ProtectedTable:
    return privet.open(FRAME, DOMAIN, budget=budget, ledger=address, name=DATASET, analyst=analyst)


def schema(address: str) -> str:
    return address.split("schema=")[1]


def said(error: BaseException) -> str:
    """What an error says, in one sentence that stands alone."""
    text = str(error)
    assert "\n" not in text and text.endswith(".") and len(text) < 500
    assert SECRET not in "".join(traceback.format_exception(error))
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    return text


def refused(ask: Callable[[], object], *words: str) -> str:
    with pytest.raises(LedgerError) as caught:
        ask()
    text = said(caught.value)
    assert all(word in text for word in words), text
    return text


@pytest.fixture
def server() -> Server:
    return shared_server()


@pytest.fixture
def address(server: Server) -> str:
    return server.ledger()


@pytest.fixture(scope="module")
def mortal() -> Server:
    return Server()


@pytest.fixture
def own(mortal: Server) -> Server:
    """A server to kill and to reconfigure."""
    mortal.restart()
    return mortal


# -- what is written stays ----------------------------------------------------------------------


def written(address: str) -> Ledger:
    """A ledger with a line in every table."""
    ledger = new_ledger(address)
    entry, _ = ledger.charge(DATASET, "ada", tenth())
    ledger.store(entry.id, "[1]")
    ledger.charge(DATASET, "ada", tenth())
    ledger.end(ledger.hold(DATASET, "ada", TENTH))
    ledger.hold(DATASET, "bob", TENTH)
    return ledger


@pytest.mark.parametrize("verb", ["UPDATE {0} SET {1} = {1}", "DELETE FROM {0}", "TRUNCATE {0} CASCADE"])
@pytest.mark.parametrize("replaying", [False, True])
def test_not_even_a_superuser_changes_a_line_by_accident(
    server: Server, address: str, verb: str, replaying: bool
) -> None:
    ledger = written(address)
    with server.connect() as superuser:
        if replaying:
            superuser.execute("SET session_replication_role = replica")
        for table, column in TABLES.items():
            with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
                superuser.execute(verb.format(f"{schema(address)}.{table}", column))
    assert Ledger.open(address).entries(DATASET) == ledger.entries(DATASET)


def damage(server: Server, address: str, *statements: str) -> None:
    """What only the owner of the tables can do."""
    names = [f"{schema(address)}.{table}" for table in TABLES]
    server.run(
        f"SET search_path = {schema(address)}",
        *(f"ALTER TABLE {name} DISABLE TRIGGER USER" for name in names),
        *statements,
        *(f"ALTER TABLE IF EXISTS {n} ENABLE ALWAYS TRIGGER {n.split('.')[1]}_append_only" for n in names),
        "ALTER TABLE IF EXISTS lines ENABLE ALWAYS TRIGGER lines_owners_only",
    )


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE lines SET line = replace(line, '"loss":"1/10"', '"loss":"1/5"') WHERE kind = 'charge'""",
        "UPDATE lines SET line = 'abc' WHERE number = 3",
        "UPDATE lines SET note = replace(note, 'salt', 'Salt') WHERE number = 3",
        "UPDATE lines SET leaf = 'abc' WHERE number = 3",
        "UPDATE lines SET analyst = 'bob' WHERE kind = 'charge' AND serial = 1",
        "UPDATE lines SET serial = 3 WHERE kind = 'charge' AND serial = 2",
        "UPDATE lines SET number = 20 WHERE number = 8",
        "DELETE FROM lines WHERE kind = 'cap' AND serial = 1",
        """UPDATE lines SET line = replace(line, '"cap":"1"', '"cap":"3"')""",
        "UPDATE lines SET note = replace(note, '[1]', '[2]')",
        """UPDATE lines SET line = replace(line, '"rows_per_person":1', '"rows_per_person":2')""",
        "UPDATE analysts SET name = name || '.'",
        "DELETE FROM sources",
        "DELETE FROM open_holds",
        "DELETE FROM format",
        "INSERT INTO format VALUES (2, '')",
        "UPDATE format SET ledger = 'another'",
        "DROP TABLE analysts",
        "DROP TABLE lines CASCADE",
        "DROP TABLE owner_lines",
        "ALTER TABLE lines SET UNLOGGED",
        "DROP TRIGGER lines_append_only ON lines; CREATE TABLE t (); CREATE TRIGGER lines_append_only "
        "BEFORE UPDATE ON t EXECUTE FUNCTION append_only(); ALTER TABLE t ENABLE ALWAYS TRIGGER lines_append_only",
        "DROP TRIGGER lines_owners_only ON lines",
        "ALTER TABLE lines DROP CONSTRAINT lines_pkey CASCADE",
        "DROP INDEX by_key",
        "ALTER TABLE lines DROP COLUMN leaf",
    ],
)
def test_a_ledger_that_does_not_add_up_is_refused(server: Server, address: str, statement: str) -> None:
    ledger = written(address)
    ledger.set_cap(DATASET, "ada", Fraction(1))
    damage(server, address, "SELECT 1")
    ledger.check()  # the triggers alone were off and on again
    ledger.close()
    with contextlib.suppress(psycopg.errors.UndefinedObject):  # of a trigger that went with its table
        damage(server, address, statement)
    refused(lambda: Ledger.open(address), "is damaged or not a privet ledger")
    refused(lambda: table_at(address), "is damaged or not a privet ledger")


def test_a_switched_off_trigger_is_noticed(server: Server, address: str) -> None:
    written(address)
    for state in ("DISABLE", "ENABLE"):  # without ALWAYS it sleeps while a server replays another
        server.run(f"ALTER TABLE {schema(address)}.lines {state} TRIGGER lines_append_only")
        refused(lambda: Ledger.open(address), "is damaged")
    server.run(f"ALTER TABLE {schema(address)}.lines ENABLE ALWAYS TRIGGER lines_append_only")
    Ledger.open(address)


def test_a_schema_of_something_else_is_refused_and_left_alone(server: Server, address: str) -> None:
    name = schema(address)
    server.run(f"CREATE SCHEMA {name}", f"CREATE TABLE {name}.customers (name text)")
    refused(lambda: new_ledger(address), "not a privet ledger")
    assert server.run(f"SELECT relname FROM pg_class WHERE relnamespace = '{name}'::regnamespace") == [("customers",)]


def test_lines_are_numbered_without_gaps_whatever_is_undone(address: str) -> None:
    ledger = new_ledger(address, Fraction(1, 5))
    with pytest.raises(RuntimeError), ledger._transaction(WRITE) as undone:
        assert undone.append("hold", DATASET, undone.new_analyst_id("ada"), {"held": "0"}).serial == 1
        raise RuntimeError
    ledger.charge(DATASET, "ada", tenth())
    with pytest.raises(BudgetExceeded):
        ledger.hold(DATASET, "ada", Fraction(1))
    refused(lambda: ledger.charge(DATASET, "ada", tenth(key="a\0b")), "NUL")
    ledger.charge(DATASET, "ada", tenth(scope="a\0b"))
    assert [entry.id for entry in ledger.entries(DATASET)] == [1, 2]
    ledger.set_cap(DATASET, None, Fraction(1))
    assert ledger.hold(DATASET, "ada", TENTH) == 1
    assert [line.number for line in ledger.lines()] == [1, 2, 3, 4, 5, 6]
    assert Ledger.open(address).spent(DATASET) == Fraction(1, 5)


def test_names_are_kept_and_sorted_as_in_a_file(address: str) -> None:
    names = ["ärztin", "Zoe", "bob", 'q"uote', "per%cent", "what?", "Ada", "数"]
    found = []
    for place in (address, ":memory:"):
        ledger = new_ledger(place)
        for name in names:
            ledger.set_cap(DATASET, name, Fraction(1, 3))
            ledger.charge(DATASET, name, Charge("it's", "{}", "%s", name, "0.1", Fraction(1, 100), f"{name}?"))
        assert [entry.scope for entry in ledger.entries(DATASET)] == names
        found.append(ledger.analysts(DATASET))
    assert found[0] == found[1]


def test_a_commit_waits_for_the_disk_whatever_the_session_says(address: str) -> None:
    options = "-csynchronous_commit%3Doff%20-cdefault_transaction_isolation%3Dserializable"
    ledger = new_ledger(f"{address}&options={options}")
    with ledger._transaction(WRITE) as log:
        assert log.run("SHOW synchronous_commit").fetchone() == ("on",)
        assert log.run("SHOW transaction_isolation").fetchone() == ("read committed",)
    assert ledger.durable


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


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://ada:{SECRET}@",
        f"postgresql://ada:{SECRET}@host:port/base",
        f"postgresql://ada:x@{SECRET}@host/base",
        f"postgresql://ada:{SECRET}/x@host/base",
        f"postgresql://ada:12/{SECRET}@host/base",
        f"postgresql://ada:{SECRET}?x@host/base",
        f"postgresql://ada:{SECRET}%zz@host/base",
        f"postgresql://ada:{SECRET}@host/base?no_such_option=1",
        f"postgresql://ada:{SECRET}@host/base?schema",
        f"postgresql://ada:{SECRET}@host/base?schema=",
        f"postgresql://ada:{SECRET}@host/base?schema={'x' * 64}",
        f"postgresql://ada:{SECRET}@host/base?schema=a%00b",
        f"postgresql://ada:{SECRET}@[host/base",
        f"postgresql://ada:{SECRET}@no.such.host.invalid/base",
        f"postgresql://ada:{SECRET}@127.0.0.1:1/base",
        f"postgresql://ada@127.0.0.1:1/base?password={SECRET}",
        f"postgresql://ada@127.0.0.1:1/base?sslpassword={SECRET}",
        f"postgresql://ada:{SECRET}@/base?host=/no/such/folder",
    ],
)
def test_an_address_that_leads_nowhere_is_told_without_its_password(address: str) -> None:
    for opening in (lambda: Ledger.open(address), lambda: table_at(address), lambda: table_at(address, None)):
        assert SECRET not in refused(opening)
    assert "cannot be read" in refused(lambda: Ledger.open(Path(address)))  # which has one slash only


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ada:pw@host:7/base?schema=s", "postgresql://ada@host:7/base?schema=s"),
        ("postgres://ada:pw@host/base", "postgresql://ada@host/base?schema=privet_ledger"),
        ("postgresql://ada@/base?host=/run/pg&password=pw", "postgresql://ada@/base?host=/run/pg&schema=privet_ledger"),
        ("postgresql://a%40b:p%40w@h/b?schema=x%26y%20z", "postgresql://a%40b@h/b?schema=x%26y+z"),
        ("postgresql://ada:pw@h1:1,h2:2/base", "postgresql://ada@/base?host=h1,h2&port=1,2&schema=privet_ledger"),
        ("postgresql://ada:pw@[::1]/base", "postgresql://ada@/base?host=::1&schema=privet_ledger"),
    ],
)
def test_the_path_is_the_address_without_the_password(address: str, shown: str) -> None:
    store = PostgresStore(address)  # which connects when it is used
    assert (store.path, PostgresStore(store.path).path) == (shown, shown)
    assert "pw" not in repr(store) + store.path


def test_a_password_opens_and_is_nowhere_shown(own: Server, tmp_path: Path) -> None:
    own.run(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'", "GRANT CREATE ON DATABASE postgres TO guarded")
    rules = own.folder / "pg_hba.conf"
    rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
    own.run("SELECT pg_reload_conf()")
    name = schema(own.ledger())
    wrong = own.address("guarded", "wrong" + SECRET, schema=name)
    for opening in (wrong, wrong.replace(f":wrong{SECRET}", "")):
        text = refused(lambda: table_at(opening), "the server does not accept this role and password")  # noqa: B023
        assert SECRET not in text
    unknown = own.address("guarded", SECRET, "nowhere", schema=name)
    assert SECRET not in refused(lambda: table_at(unknown), "knows no such role or database")
    assert not own.run(f"SELECT 1 FROM pg_namespace WHERE nspname = '{name}'")

    address = own.address("guarded", SECRET, schema=name)
    data = tmp_path / "people.csv"
    FRAME.to_csv(data, index=False)
    with privet.open(data, DOMAIN, budget=1, ledger=address) as table:
        table.count("0.1")
        shown = table.budget.ledger_path
        assert shown == own.address("guarded", schema=name)
        assert shown in repr(table) and SECRET not in repr(table)
    done = run("budget", "grant", address, "0.5", "--analyst", "ada", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "'ada' on 'people' may now spend 0.5 in all; 0 is spent\n")
    facts = json.loads(run("budget", "show", address, "--entries", "--json", cwd=tmp_path).stdout)["people"]
    assert (facts["spent"], facts["budget"], len(facts["entries"])) == ("0.1", "1", 1)
    denied = run("budget", "show", wrong, cwd=tmp_path)
    assert denied.returncode != 0 and SECRET not in denied.stdout + denied.stderr
    assert denied.stderr.count("\n") == 1
    own.run("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'guarded'")


@pytest.fixture
def role(server: Server) -> Iterator[str]:
    """A role that may connect, and nothing else."""
    name = f"server_{os.getpid()}"
    server.run(f"CREATE ROLE {name} LOGIN")
    yield name
    server.run(f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_the_right_that_is_missing_is_named(server: Server, role: str) -> None:
    name = schema(server.ledger())
    address = server.address(role, schema=name)
    charges = f"SELECT count(*) FROM {name}.lines WHERE kind = 'charge'"

    def opened() -> Ledger:
        return new_ledger(address)

    who = f"the role '{role}' lacks"
    refused(
        opened, f"{who} CREATE on the database 'postgres', needed once to make the schema, which its owner can grant"
    )
    server.run(f"CREATE SCHEMA {name}")
    refused(opened, f"{who} USAGE on the schema '{name}'")
    server.run(f"GRANT USAGE ON SCHEMA {name} TO {role}")
    refused(opened, f"{who} CREATE on the schema '{name}', needed once to make the tables")
    Ledger.open(server.address(schema=name)).close()  # the owner makes it
    refused(opened, f"{who} SELECT on the table '{name}.format'")
    server.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {role}")
    assert Ledger.open(address).datasets() == []  # who may read, may look
    for table in ("sources", "lines", "owner_lines"):
        refused(opened, f"{who} INSERT on the table '{name}.{table}'")
        server.run(f"GRANT INSERT ON {name}.{table} TO {role}")
    ledger = opened()
    refused(lambda: ledger.charge(DATASET, "ada", tenth()), f"{who} INSERT on the table '{name}.analysts'")
    assert server.run(charges) == [(0,)]
    server.run(f"GRANT INSERT ON {name}.analysts TO {role}")
    refused(lambda: ledger.hold(DATASET, "ada", TENTH), f"{who} INSERT on the table '{name}.open_holds'")
    server.run(f"REVOKE USAGE ON SCHEMA {name} FROM {role}")
    refused(lambda: ledger.spent(DATASET), f"{who} USAGE on the schema '{name}'")
    refused(lambda: Ledger.open(address), f"{who} USAGE on the schema '{name}'")


def test_select_and_insert_are_all_that_a_server_needs(server: Server, role: str) -> None:
    """The grants of docs/ledger.md; with them the role can neither change a line nor switch a trigger off."""
    owned = server.ledger()
    name = schema(owned)
    owner = new_ledger(owned)
    server.run(
        f"GRANT USAGE ON SCHEMA {name} TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {role}",
        f"GRANT INSERT ON {name}.lines, {name}.analysts, {name}.sources TO {role}",
        f"GRANT INSERT, DELETE ON {name}.open_holds TO {role}",
    )
    address = server.address(role, schema=name)
    ledger = Ledger.open(address)
    ledger.register(DATASET, source="here", budget=None)
    ledger.register(DATASET, source="on another machine", budget=None)
    with contextlib.suppress(BudgetExceeded):
        for number in range(11):
            entry, _ = ledger.charge(DATASET, "ada", tenth(f"k{number}"))
            ledger.store(entry.id, "[1]")
    assert owner.spent(DATASET) == 1
    for owners in (
        lambda: ledger.set_cap(DATASET, None, Fraction(2)),
        lambda: ledger.register("others", source="there", budget=Fraction(1)),
        lambda: ledger.declare(DATASET, DOMAIN),
        lambda: ledger.record("key", {"vkey": "mine"}),
        lambda: ledger.record("config", {"deadline": 7}),
    ):
        refused(owners, f"lacks INSERT on the table '{name}.owner_lines'")
    owner.set_cap(DATASET, None, Fraction(2))
    ledger.end(ledger.hold(DATASET, "ada", TENTH))
    with psycopg.connect(server.address(role), autocommit=True) as raw:
        for statement in (
            f"UPDATE {name}.lines SET line = '0'",
            f"DELETE FROM {name}.lines",
            f"TRUNCATE {name}.lines CASCADE",
            f"ALTER TABLE {name}.lines DISABLE TRIGGER ALL",
            f"DROP TABLE {name}.analysts",
            f"INSERT INTO {name}.owner_lines VALUES (1)",
            f"INSERT INTO {name}.lines SELECT * FROM {name}.lines WHERE kind = 'cap'",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                raw.execute(statement)


def test_a_server_that_would_forget_is_refused(own: Server) -> None:
    address = own.ledger()
    own.run("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    try:
        while own.run("SHOW fsync") != [("off",)]:
            pass
        refused(lambda: new_ledger(address), "it needs a database with fsync = on")
    finally:
        own.run("ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")
    while own.run("SHOW fsync") != [("on",)]:
        pass
    own.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    refused(lambda: new_ledger(own.address(database="latin")), "it needs a database of encoding UTF8")
    new_ledger(address)


def test_a_read_only_copy_is_told(address: str) -> None:
    ledger = new_ledger(address)

    def write() -> None:
        with ledger._transaction(WRITE) as begun:
            begun.run("SET LOCAL transaction_read_only = on")  # as a server that copies another says it
            begun.append("hold", DATASET, None, {"held": "1"})

    refused(write, "the server is a read-only copy of another; nothing was written")


def test_a_wrong_setting_of_the_connection_is_named(address: str) -> None:
    refused(lambda: Ledger.open(f"{address}&sslmode=nonsense"), "an sslmode that the driver does not know")


@pytest.mark.parametrize("version", [1, 2, 3, 99])
def test_a_ledger_of_another_format_is_refused_in_one_sentence(server: Server, address: str, version: int) -> None:
    written(address).close()
    damage(server, address, f"UPDATE format SET version = {version}")
    refused(lambda: Ledger.open(address), f"is of format {version}", "go on with the version that wrote it")


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


def test_a_ledger_that_was_removed_is_not_begun_anew(server: Server, address: str) -> None:
    table, ledger = table_at(address), Ledger.open(address)
    table.count("0.1")
    server.run(f"DROP SCHEMA {schema(address)} CASCADE")
    refused(lambda: table.count("0.1"), "was moved or removed; put it back, or open the table again")
    refused(lambda: ledger.spent(DATASET), "is damaged or not a privet ledger")
    table_at(address)
    for late in (lambda: table.count("0.1"), lambda: ledger.charge(DATASET, "ada", tenth())):
        refused(late, "was moved or removed")
    assert Ledger.open(address).spent(DATASET) == 0


@pytest.mark.parametrize("full", ["charge", "answer", "hold", "end"])
def test_what_a_full_disk_refuses_is_told_and_undone(
    server: Server, address: str, full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_at(address)
    name = schema(address)
    server.run(
        f"CREATE FUNCTION {name}.full() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$",
        f"CREATE TRIGGER disk_full BEFORE INSERT ON {name}.lines FOR EACH ROW WHEN (NEW.kind = '{full}') "
        f"EXECUTE FUNCTION {name}.full()",
    )

    def ask() -> None:
        if full in ("charge", "answer"):
            table.count("0.1", key="k")
        else:
            with table.reserve("0.5"):
                assert full == "end"

    with monkeypatch.context() as watched:
        if full == "charge":
            watched.setattr(table._session.engine, "exact_counts", lambda query: pytest.fail("the engine was asked"))
        sentences = {
            "charge": "nothing was charged.",
            "answer": "neither stored nor released. Ledger entry 1 .* stands: retry with the key 'k' .*.",
            "hold": "nothing was reserved.",
            "end": "the reservation stays open until `privet budget release` ends it.",
        }
        with pytest.raises(PrivetError, match=f"the disk is full; .*{sentences[full]}$"):
            ask()
    server.run(f"DROP TRIGGER disk_full ON {name}.lines")
    assert table.budget.spent == (TENTH if full == "answer" else 0)
    assert table.budget.remaining == {"answer": Fraction(9, 10), "end": Fraction(1, 2)}.get(full, 1)
    table.count("0.1", key="k")
    assert Ledger.open(address).spent(DATASET) == TENTH


def test_without_the_driver_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "privet.kernel.ledger.postgres", None)
    with pytest.raises(LedgerError, match=r"pip install 'privet\[postgres\]'"):
        Ledger.open("postgresql://ada@host/base")

"""The ledger on a real PostgreSQL server: what is written stays; addresses, passwords and missing rights are told.

What it has in common with the ledger in a file is in test_ledger.py, the files beside it and test_reservations.py,
which run over both.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from command import run
from kernel.ledger.postgres_ledger import (
    DATASET,
    DOMAIN,
    FRAME,
    SECRET,
    TENTH,
    WRITE,
    new_ledger,
    refused,
    schema,
    table_at,
    tenth,
)
from kernel.ledger.small_ledger import append_line
from postgres_server import Server

import privet
from privet.errors import BudgetExceeded, LedgerError, PrivetError
from privet.kernel import Charge, Ledger

psycopg = pytest.importorskip("psycopg")
from privet.kernel.ledger.postgres import PostgresStore  # noqa: E402

TABLES = {"format": "version", "lines": "note", "analysts": "name", "sources": "source"}  # with a column of each


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
    """The grants of docs/reference/ledger.md; with them the role can neither change a line nor switch a trigger off."""
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
        lambda: append_line(ledger, "key", {"vkey": "mine"}),
        lambda: append_line(ledger, "config", {"deadline": 7}),
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

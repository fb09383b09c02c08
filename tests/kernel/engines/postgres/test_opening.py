"""PostgreSQL: rights, addresses, and what opening a table says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from kernel.engines.postgres.tables import CANARY, DOMAIN, _numbers, make, opened, people, raising, role, said
from postgres_server import Server

import privet
from privet.errors import DataError, LedgerError
from privet.kernel import inspection, source_of
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.rows import Rows

psycopg = pytest.importorskip("psycopg")
from privet.kernel.engines.postgres import link as postgres_link  # noqa: E402
from privet.kernel.engines.postgres.engine import PostgresSource  # noqa: E402

SECRET = "pass/word@1"


# --- rights ----------------------------------------------------------------------------------------------------------


def test_the_right_to_read_the_declared_columns_is_enough(server: Server) -> None:
    table = people(server)
    for grant in (f'SELECT ON "{table}"', f'SELECT (sex, ill) ON "{table}"'):
        with opened(server, table, user=role(server, grant)) as reader:
            assert reader.partition("sex").count(100).array().tolist() == [10, 10, 10]
            with pytest.raises(psycopg.Error, match=r"permission denied|read-only"):
                reader._session.engine._link.run(f'DELETE FROM "{table}"', lambda cursor: None)


def test_a_missing_right_is_named(server: Server) -> None:
    table, nobody = people(server), role(server)
    server.run(f'CREATE SCHEMA "shut {table}"', f'CREATE TABLE "shut {table}".t (sex text, ill text)')
    server.run(f'CREATE DATABASE "shut {table}"', f'REVOKE CONNECT ON DATABASE "shut {table}" FROM PUBLIC')
    address = server.address(user=quote(nobody), database=quote(f"shut {table}"), table="t")
    for ask, grant in (
        (lambda: opened(server, table, user=nobody), f'GRANT SELECT ON "public"."{table}" TO "{nobody}"'),
        (lambda: opened(server, f"shut {table}.t", user=nobody), f'GRANT USAGE ON SCHEMA "shut {table}" TO "{nobody}"'),
        (
            lambda: privet.open(address, DOMAIN, ledger=":memory:", budget=1),
            f'GRANT CONNECT ON DATABASE "shut {table}"',
        ),
    ):
        with pytest.raises(DataError) as caught:
            ask()
        assert grant in str(caught.value) and said(caught.value).count("\n  ") < 60
    only_one = role(server, f'SELECT (sex) ON "{table}"')
    with pytest.raises(DataError, match="may not read the declared columns"):
        opened(server, table, user=only_one)


@pytest.fixture
def guarded() -> Iterator[Server]:
    """A server that asks for passwords."""
    own = Server()
    own.run(
        f"CREATE ROLE ann LOGIN PASSWORD '{SECRET}'", "CREATE TABLE t (sex text, ill text)", "GRANT SELECT ON t TO ann"
    )
    rules = own.folder / "pg_hba.conf"
    rules.write_text("local all ann scram-sha-256\n" + rules.read_text())
    own.run("SELECT pg_reload_conf()")
    yield own
    own._server.cleanup()


def test_passwords_are_asked_for_and_never_written(guarded: Server, tmp_path: Path) -> None:
    right = guarded.address(user="ann", password=quote(SECRET, safe=""), table="t")
    with privet.open(right, DOMAIN, budget=1, ledger=tmp_path / "t.ledger") as table:
        table.count(1)
        assert repr(source_of(right)) == "PostgresSource(table='t', schema='public')"
        shown = [table._session.source, repr(table), repr(table._session), repr(table.budget.entries)]
        assert not [text for text in shown if SECRET in text or quote(SECRET, safe="") in text]
    assert all(SECRET.encode() not in file.read_bytes() for file in tmp_path.iterdir())
    for password in ("", "wr0ng", SECRET[:-1]):
        with pytest.raises(DataError, match="does not let user 'ann' in; check the user's name and password") as caught:
            privet.open(guarded.address(user="ann", password=quote(password, safe=""), table="t"), DOMAIN, ledger="x")
        assert not password or password not in said(caught.value)


# --- opening ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        ("date", "date"),
        ("timestamptz", "timestamp with time zone"),
        ("json", "json"),
        ("bytea", "bytea"),
        ("uuid", "uuid"),
        ("text[]", r"text\[\]"),
        ("money", "money"),
        ("int4range", "int4range"),
        ('"char"', '"char"'),
        ("oid", "oid"),
    ],
)
def test_a_type_that_is_not_read_is_named(server: Server, kind: str, title: str, tmp_path: Path) -> None:
    table = make(server, f"sex {kind}, ill text")
    with pytest.raises(DataError, match=f"^column 'sex' has type {title}; privet reads") as caught:
        opened(server, table, ledger=tmp_path / "l")
    assert not list(tmp_path.iterdir())
    said(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none", "there is no table 'none' of database 'postgres' for user 'postgres'; check both names"),
        ("nowhere.none", "there is no table 'nowhere.none'"),
        ("{table}x", "there is no table"),
        ("", "the address names no table"),
        ('"a', "the address names no table"),
        ("a.b.c", "the address names no table"),
        ("a.", "the address names no table"),
    ],
)
def test_a_table_that_is_not_there_is_one_sentence(server: Server, name: str, words: str) -> None:
    with pytest.raises(DataError) as caught:
        opened(server, name.format(table=people(server)))
    assert str(caught.value).startswith(words) and str(caught.value).endswith(".")
    said(caught.value)


@pytest.mark.parametrize("column", ["age", "Sex", "ctid", "xmin", "s" * 64])
def test_a_column_that_is_not_there_is_one_sentence(server: Server, column: str) -> None:
    table = make(server, f"sex text, ill text, {'s' * 63} text")
    with pytest.raises(DataError, match=f"has no column '{column}', which the domain declares; check"):
        opened(server, table, Domain((Nominal(column, ("f",)),)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("@/postgres", "@/nodatabase"), "has no database 'nodatabase'"),
        (("postgres@", "nobody@"), "does not let user 'nobody' in; check the user's name and password."),
        (("host=", "host=/no/where&x="), "the address is not one that PostgreSQL knows"),
        (("host=", "host=/no/where"), "cannot reach the server at /no/where"),
        (("host=", "sslmode=nonsense&host="), "the address gives sslmode a value that PostgreSQL does not know; it is"),
        (("host=", "port=x&host="), "the address gives port a value that PostgreSQL does not know."),
        (("host=", "connect_timeout=soon&host="), "the address gives connect_timeout a value that PostgreSQL does not"),
        (("host=", "options=-c%20no.such%20thing&host="), ""),
        (("host=", "options=-c%20nosuch%3D1&host="), "does not take the parameters of the address"),
        (("host=", "statement_timeout=1s&host="), "the address is not one that PostgreSQL knows"),
    ],
)
def test_an_address_that_leads_nowhere_is_one_sentence(
    server: Server, change: tuple[str, str], words: str, tmp_path: Path
) -> None:
    address = server.address(table=quote(people(server)), password=SECRET.replace("@", "%40").replace("/", "%2F"))
    address = address.replace("postgres:", "postgres:" if "nobody" not in change[1] else "nobody:")
    with pytest.raises(DataError) as caught:
        privet.open(address.replace(*change), DOMAIN, budget=1, ledger=tmp_path / "l")
    assert words in str(caught.value) and str(caught.value).endswith(".")
    assert SECRET not in said(caught.value) and not list(tmp_path.iterdir())


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(DataError, match=r"^cannot reach the server at 127.0.0.1:1; check host and port") as caught:
        privet.open(f"postgresql://ann:{quote(SECRET, safe='')}@127.0.0.1:1/db?table=t", DOMAIN, ledger="x")
    assert SECRET not in said(caught.value)


@pytest.mark.parametrize("state", ["28P01", "28000"])
def test_a_refusal_in_another_language_is_known_by_its_code(state: str) -> None:
    class Refused(psycopg.OperationalError):
        sqlstate = state

    source = PostgresSource.parse("postgresql://ann:x@db/h?table=t")
    assert "does not let user 'ann' in" in postgres_link._told(Refused("Passwort"), source.parameters)


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_a_declared_value_that_no_text_can_be_is_refused(server: Server, value: str) -> None:
    with pytest.raises(DataError, match="declares a value that no PostgreSQL text can have"):
        opened(server, people(server), Domain((Nominal("sex", (value,)), Nominal("ill", ("no",)))))


def test_a_declared_value_beyond_the_encoding_of_the_database_is_found_when_it_is_opened(server: Server) -> None:
    server.run("DROP DATABASE IF EXISTS latin", "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with psycopg.connect(server.address(database="latin"), autocommit=True) as connection:
        connection.execute("CREATE TABLE t (sex text, ill text)")
        connection.execute("INSERT INTO t VALUES ('é', 'no')")
    address = server.address(database="latin", table="t")
    known, unknown = (Domain((Nominal("sex", (value,)), Nominal("ill", ("no",)))) for value in ("é", "日本"))
    with privet.open(address, known, ledger=":memory:", budget=100) as table:
        assert table.count(100).value == 1
    with pytest.raises(DataError, match=r"does not take the statement that codes .* only values that the database's"):
        privet.open(address, unknown, ledger=":memory:", budget=1)


def test_a_table_on_a_server_needs_a_ledger(server: Server) -> None:
    address = server.address(table=quote(people(server)))
    for ask in (lambda: privet.open(address, DOMAIN, budget=1), lambda: privet.kernel.source_of(address).ledger):
        with pytest.raises(LedgerError, match=r"there is no place for a ledger beside table .* say where it is"):
            ask()


def test_a_ledger_knows_a_table_again_however_its_address_is_written(server: Server, tmp_path: Path) -> None:
    name = make(server, "sex text, ill text", name=f"written_{next(_numbers)}")
    ledger = tmp_path / "people.ledger"
    addresses = [server.address(table=table) for table in (name, f"public.{name}", quote(f'"public"."{name}"'))]
    addresses.append(server.address(table=name, password="x", application_name="y").replace("postgresql:", "postgres:"))
    sources = set()
    for address in addresses:
        with privet.open(address, DOMAIN, budget=10, ledger=ledger) as table:
            table.count(1)
            sources.add(table._session.source)
            spent = table.budget.spent
    assert spent == 4 and len(sources) == 1 and f"?table=public.{name}" in next(iter(sources))
    with pytest.raises(LedgerError, match=f"knows this data as '{name}'"):
        privet.open(addresses[0], DOMAIN, budget=10, ledger=ledger, name="other")


def test_opening_reads_no_row(server: Server) -> None:
    with opened(server, raising(server, f"RAISE EXCEPTION '{CANARY}';")) as table:
        assert table.budget.spent == 0


def test_a_snapshot_is_the_merged_table_in_memory(server: Server) -> None:
    name = people(server)
    with opened(server, name, access="snapshot") as table, opened(server, name) as remote:
        assert isinstance(table._session.engine, MemoryEngine) and table._session.source == remote._session.source
        query = CountQuery(Rows(), (("sex", "ill"),))
        found = [each._session.engine.exact_counts(query)[0].tolist() for each in (table, remote)]
        assert found[0] == found[1]
    with pytest.raises(DataError, match=r"cannot read table .* into memory") as caught:
        opened(server, raising(server, f"RAISE EXCEPTION '{CANARY}';"), access="snapshot")
    assert CANARY not in said(caught.value)


def test_an_owner_sees_what_falls_outside(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    domain = Domain((Nominal("sex", ("f", "m")), Nominal("ill", ("no", "yes"))))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    inspection.print_outside(server.address(table=quote(people(server))), domain)
    shown = capsys.readouterr().out
    assert "20 of 30 rows fit the domain, 10 are left out" in shown and "sex: leaves out 10 rows, 'x' (10)" in shown


# --- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "schema", "table"),
    [
        ("t", "", "t"),
        ("s.t", "s", "t"),
        ("%22a.b%22.%22c%22%22d%22", "a.b", 'c"d'),
        ("%22a.b%22", "", "a.b"),
        ("s.%22a%26b%3Dc%22", "s", "a&b=c"),
        ("gr%C3%B6%C3%9Fe", "", "größe"),
        ("a+b", "", "a+b"),
    ],
)
def test_the_table_of_an_address(text: str, schema: str, table: str) -> None:
    for query in (f"table={text}&sslmode=require", f"sslmode=require&table={text}"):
        source = PostgresSource.parse(f"postgresql://ann:{quote(SECRET, safe='')}@db.example:5433/hospital?{query}")
        assert (source.schema, source.table) == (schema, table)
        wanted = {"host": "db.example", "port": "5433", "user": "ann", "password": SECRET, "sslmode": "require"}
        assert wanted.items() <= source.parameters.items() and "table" not in source.parameters
        assert source.address.startswith("postgresql://db.example:5433/hospital?table=")
        assert SECRET not in f"{source!r}{source.title}{source.label}{source.address}"

"""PostgreSQL, on a real server: what opening says, what a row can and cannot do, and what survives a kill."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import signal
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from postgres_server import Server, shared_server
from sqlglot import exp

import privet
from privet.errors import BudgetExceeded, DataError, EngineFailed, LedgerError, PrivetError, QuestionError
from privet.kernel import inspection, source_of
from privet.kernel import monitor as kernel_monitor
from privet.kernel.column import Nominal, Numeric, number_of
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, GridQuery, SumQuery
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.sql import sql
from privet.kernel.ledger.ledger import Ledger
from privet.kernel.refinement import Chain
from privet.kernel.rows import Condition, Rows, Split

psycopg = pytest.importorskip("psycopg")
from privet.kernel.engines.postgres import link as postgres_link  # noqa: E402
from privet.kernel.engines.postgres.engine import DIALECT  # noqa: E402
from privet.kernel.engines.postgres.link import PostgresSource  # noqa: E402

DOMAIN = Domain((Nominal("sex", ("f", "m"), other=True), Nominal("ill", ("no", "yes"))), target="ill")
CANARY = "Ann Canary, 31"
SECRET = "pass/word@1"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def server() -> Server:
    return shared_server()


@pytest.fixture(scope="module")
def mortal() -> Iterator[Server]:
    """A server to be killed."""
    own = Server()
    yield own
    own._server.cleanup()


def make(server: Server, columns: str, rows: Any = (), name: str | None = None) -> str:
    """A new table; its name."""
    name = name or f"made {next(_numbers)}"
    with server.connect() as connection:
        connection.execute(f"CREATE TABLE {postgres_link.quoted(name)} ({columns})")
        with connection.cursor() as cursor, cursor.copy(f"COPY {postgres_link.quoted(name)} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    return name


def people(server: Server, rows: int = 30) -> str:
    return make(
        server, "sex text, ill text, name text", [("fmx"[i % 3], ["no", "yes"][i % 2], CANARY) for i in range(rows)]
    )


def role(server: Server, *grants: str) -> str:
    """A user who may enter the database and has these rights."""
    name = f"user {next(_numbers)}"
    server.run(f'CREATE ROLE "{name}" LOGIN', *(f'GRANT {grant} TO "{name}"' for grant in grants))
    return name


def opened(server: Server, table: str, domain: Domain = DOMAIN, *, user: str = "postgres", **more: Any) -> Any:
    address = server.address(user=quote(user), table=quote(table), **more.pop("parameters", {}))
    return privet.open(address, domain, **{"budget": 1000, "ledger": ":memory:", **more})


def engine_of(server: Server, table: str, domain: Domain) -> Any:
    return source_of(server.address(table=quote(f'"{table}"'))).open(domain)


def said(error: BaseException) -> str:
    assert error.__cause__ is None and error.__context__ is None
    return "".join(traceback.format_exception(error))


# --- every value of every type has a cell ----------------------------------------------------------------------------

ODD = st.text(alphabet=" \t+-.0123456789eEx", max_size=9)
LONG = ["1e400", "-1e400", "1e-400", "9" * 400, "-" + "9" * 400, "." + "0" * 400 + "1", "0." + "0" * 399 + "1e400"]
LONG += ["1" + "0" * 400 + "e-400", "1e+99999999999999999999", "1e-99999999999999999999", "0e99999999999999999999"]
LONG += ["-0e-99999999999", "1e00000000000000000000000007", "1e-0", "00000000000000000000.5", "1.7976931348623157e308"]
LONG += [
    "1.8e308",
    "5e-324",
    "2e-324",
    "1e300",
    "1e301",
    "1e-300",
    "1e-301",
    "1e-302",
    "-.5e-310",
    "12.e3",
    ".e3",
    "1e5 ",
]
LONG += ["NaN", "Infinity", "-inf", "0x1p3", "1_0", "\u0661", "\u00a01", "1\n", "1\v", "", "1;", "0b1", "0o7", "1e1.5"]


@given(texts=st.lists(ODD, max_size=60))
@example(texts=LONG)
@settings(derandomize=True, deadline=None, max_examples=15)
def test_a_text_is_the_number_that_python_reads_once_it_is_clamped(server: Server, texts: list[str]) -> None:
    tree = exp.select(sql.col("t"), DIALECT.read_number(sql.col("t"))).from_("texts")
    statement = "WITH texts AS (SELECT unnest(%s::text[]) AS t) " + DIALECT.sql(tree)
    with server.connect() as connection:
        found = connection.execute(statement, (texts,)).fetchall()
    for text, number in found:
        expected = number_of(text)
        assert (number is None) == (expected is None), text
        for low, high in ((-1e18, 1e18), (0.0, 1.0), (1e-15, 9e-15)) if expected is not None else ():
            assert min(max(number, low), high) == pytest.approx(min(max(expected, low), high), abs=1e-290, rel=0), text


def test_a_text_of_a_megabyte_is_no_number_and_stops_nothing(server: Server) -> None:
    domain = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(1), missing=True),))
    table = make(server, "x text", [("1" * 2**20,), ("a" * 2**20,), ("7",)])
    engine = engine_of(server, table, domain)
    (found,) = engine.exact_grid(GridQuery(Rows(), ("x",)))
    engine.close()
    assert found.index.tolist() == [-1, 7] and found.exact_counts.tolist() == [[2], [1]]


EXTREME = [
    Decimal(text) for text in ("NaN", "1e400", "-1e400", "1e-400", "-1e-400", "1.8e308", "0.1", "7", "5e-324", "3e-324")
]
EXTREME += [
    Decimal("9" * 500),
    Decimal("Infinity"),
    Decimal("-Infinity"),
    Decimal("1.7976931348623157e308"),
    Decimal(0),
]


@pytest.mark.parametrize("step", [1, 3, Fraction(1, 10), 10**5])
def test_decimals_beyond_every_double_are_clamped_like_infinities(server: Server, step: Any) -> None:
    number = Numeric("x", Fraction(0), Fraction(10**6), Fraction(step), bins=4, missing=True)
    declared = Nominal("n", (7, 0.1, 0, 5e-324, 1.7976931348623157e308), other=True, missing=True)
    rows = [(value, value) for value in [*EXTREME, None]]
    table = make(server, "x numeric, n numeric", rows)
    domain = Domain((number, declared))
    memory = MemoryEngine.from_frame(pd.DataFrame(rows, columns=["x", "n"], dtype=object), domain)
    engine = engine_of(server, table, domain)
    for each in (CountQuery(Rows(), (("x",), ("n",))),):
        for one, other in zip(engine.exact_counts(each), memory.exact_counts(each), strict=True):
            np.testing.assert_array_equal(one, other)
    (one,), (other,) = (each.exact_grid(GridQuery(Rows(), ("x",))) for each in (engine, memory))
    np.testing.assert_array_equal(one.index, other.index)
    np.testing.assert_array_equal(one.exact_counts, other.exact_counts)
    engine.close()


@pytest.mark.parametrize("kind", ["real", "double precision", "numeric", "text"])
def test_a_number_too_close_to_0_to_divide_is_0(server: Server, kind: str) -> None:
    domain = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(3), bins=2),))
    table = make(server, f"x {kind}", [("1e-45" if kind == "real" else "5e-324",), ("0",), ("-1e-45",)])
    engine = engine_of(server, table, domain)
    assert engine.exact_counts(CountQuery(Rows(), (("x",),)))[0].tolist() == [[3, 0]]
    engine.close()


TEXTS = ["a", "A", "a ", "á", "a\u0301", "b", "b  ", "", " ", None]


@pytest.mark.parametrize("many", [False, True], ids=["cases", "join"])
@pytest.mark.parametrize(
    "kind", ["text", "varchar", "varchar(5)", "char(3)", "name", "odd_domain", 'text COLLATE "ucs_basic"']
)
def test_texts_of_every_type_are_compared_byte_by_byte(server: Server, kind: str, many: bool) -> None:
    server.run(
        "DROP DOMAIN IF EXISTS inner_domain CASCADE",
        "CREATE DOMAIN inner_domain AS varchar(9) CHECK (value <> 'never')",
        "CREATE DOMAIN odd_domain AS inner_domain",
    )
    declared = ("a", "á", "b", *(f"v{i}" for i in range(40 * many)))
    domain = Domain((Nominal("n", declared, other=True, missing=True),))
    table = make(server, f"n {kind}", [(text,) for text in TEXTS])
    # blanks that pad a char(n) are no part of its value
    with server.connect() as connection:
        held = [value for (value,) in connection.execute(f'SELECT n FROM "{table}"').fetchall()]
    if kind == "char(3)":
        held = [value if value is None else value.rstrip(" ") for value in held]
    memory = MemoryEngine.from_frame(pd.DataFrame({"n": pd.Series(held, dtype=object)}), domain)
    engine = engine_of(server, table, domain)
    query = CountQuery(Rows(), (("n",),))
    assert engine.exact_counts(query)[0].tolist() == memory.exact_counts(query)[0].tolist()
    engine.close()


def test_equality_is_asked_of_bytes_and_not_of_the_columns_collation(server: Server) -> None:
    table = make(server, "sex text, ill text")
    engine = engine_of(server, table, DOMAIN)
    assert engine._stored.sql(dialect="postgres").count('COLLATE "C"') == 2
    engine.close()


def test_enumerations_domains_and_views_are_read(server: Server) -> None:
    server.run("DROP TYPE IF EXISTS sexes CASCADE", "CREATE TYPE sexes AS ENUM ('f', 'm')")
    table = make(server, "sex sexes, ill text", [("f", "no"), ("m", "yes"), (None, "no")])
    server.run(f'CREATE VIEW "view of {table}" AS SELECT upper(ill) AS x, * FROM "{table}"')
    with opened(server, f"view of {table}") as view:
        engine = view._session.engine
        assert engine.exact_counts(CountQuery(Rows(), (("sex",),)))[0].tolist() == [[1, 1, 0]]


@pytest.mark.parametrize("name", ["it's \"t", "select", "Größe", "UPPER", "a.b", "a b?c=d&e", "x" * 63, "%41"])
def test_tables_and_columns_may_have_any_name(server: Server, name: str) -> None:
    domain = Domain((Nominal(name, ("f", "m")), Nominal("order", ("no", "yes"))))
    schema = f"schema {next(_numbers)}.x"
    server.run(f'CREATE SCHEMA "{schema}"')
    table = f'"{schema}".{postgres_link.quoted(name)}'
    columns = f'{postgres_link.quoted(name)} text, "order" text'
    server.run(f"CREATE TABLE {table} ({columns})", f"INSERT INTO {table} VALUES ('f', 'no'), ('m', 'no')")
    with opened(server, table, domain) as opened_table:
        engine = opened_table._session.engine
        assert engine.exact_counts(CountQuery(Rows(), (domain.names,)))[0].tolist() == [[[1, 0], [1, 0]]]
        assert opened_table._session.dataset == name
        address = opened_table._session.source
    again = PostgresSource.parse(address)  # the ledger's address names the same table
    assert (again.schema, again.table) == (schema, name)


# --- sums, and rows that would stop a statement ----------------------------------------------------------------------


def test_a_large_value_does_not_swallow_the_ones_beside_it(server: Server) -> None:
    domain = Domain((Numeric("x", Fraction(0), Fraction(2**24 - 1), Fraction(1), bins=2),))
    rows = [(2**53,), *[(1,)] * 1000, ("NaN",), ("Infinity",)]
    engine = engine_of(server, make(server, "x double precision", rows), domain)
    count, total = engine.exact_sums(SumQuery(Rows(), "x"))
    assert count.tolist() == [1002] and total.tolist() == [2 * (2**24 - 1) + 1000]
    engine.close()


def test_no_cast_or_division_of_a_row_stops_a_question(server: Server) -> None:
    domain = Domain(
        (
            Numeric("k", Fraction(0), Fraction(9), Fraction(1), missing=True),
            Nominal("name", (1, 2.5, True), other=True, missing=True),
            Nominal("ill", ("no", "yes")),
        ),
        target="ill",
    )
    rows = [
        (text, text, ["no", "yes"][i % 2]) for i, text in enumerate([CANARY, "1/0", "0", "1", "true", "1e999", "\\"])
    ]
    with opened(server, make(server, "k text, name text, ill text", rows), domain) as table:
        parts = table.partition("name")
        answers = [parts.count(1), parts.mean("k", 1), parts.median("k", 1), parts.histogram("ill", epsilon=1)]
        answers += [parts.select("max", 1), parts.majority("k", 1)]
        assert len(answers) == 6 and len(table.budget.entries) == 6


def raising(server: Server, body: str) -> str:
    """A view over people whose function is called for each row."""
    table, name = people(server), f"view {next(_numbers)}"
    returns = "RETURNS text LANGUAGE plpgsql VOLATILE"
    server.run(
        f'CREATE FUNCTION "{name} f"(t text) {returns} AS $$ BEGIN {body} RETURN t; END $$',
        f'CREATE VIEW "{name}" AS SELECT "{name} f"(sex) AS sex, ill FROM "{table}"',
    )
    return name


@pytest.mark.parametrize(
    "body",
    [
        f"IF t = 'x' THEN RAISE EXCEPTION '{CANARY}'; END IF;",
        f"RAISE NOTICE '{CANARY}'; PERFORM '{CANARY}'::int;",
        f"RAISE INFO '{CANARY}'; PERFORM 1 / (ascii(t) - 120);",
    ],
)
def test_what_the_server_says_about_a_row_is_never_shown_and_the_charge_stands(
    server: Server, body: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with opened(server, raising(server, body)) as table:
        with pytest.raises(EngineFailed) as caught:
            table.count(Fraction(1, 2))
        assert CANARY not in said(caught.value) and "could not answer" in str(caught.value)
        assert table.budget.spent == Fraction(1, 2)
    assert CANARY not in "".join(capfd.readouterr()) + caplog.text


def test_nothing_can_be_written_not_even_by_a_function_in_a_view(server: Server) -> None:
    server.run("CREATE TABLE IF NOT EXISTS stolen (t text)", "GRANT ALL ON stolen TO PUBLIC")
    insert = "INSERT INTO stolen VALUES (t);"
    unlock = "PERFORM set_config('transaction_read_only', 'off', true);"
    for body in (insert, unlock + insert, "CREATE TABLE stolen2 (t text);"):
        with opened(server, raising(server, body)) as table, pytest.raises(EngineFailed):
            table.count(1)
    assert server.run("SELECT count(*) FROM stolen") == [(0,)]


def test_an_address_cannot_take_the_promise_back(server: Server) -> None:
    options = quote("-c default_transaction_read_only=off -c standard_conforming_strings=off -c jit=on")
    with opened(server, people(server), parameters={"options": options, "application_name": "mine"}) as table:
        link = table._session.engine._link
        settings = "default_transaction_read_only standard_conforming_strings jit client_min_messages application_name"
        found = {name: link.rows(f"SHOW {name}", ())[0][0] for name in settings.split()}
        assert list(found.values()) == ["on", "on", "on", "error", "mine"]
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            link.run("CREATE TABLE written (t text)", lambda cursor: None)


@pytest.mark.parametrize("many", [False, True], ids=["cases", "join"])
def test_a_long_text_is_not_loaded_by_the_server(server: Server, many: bool) -> None:
    """One of 1 GB could end a server with less memory than that."""
    declared = ("f", "ü" * 900, *(f"v{i}" for i in range(40 * many)))
    domain = Domain((Nominal("n", declared, other=True, missing=True),))
    table = make(server, "n text", [("f",), ("ü" * 900,), ("ü" * 901,), ("ü" * 899,), ("x" * 13_000,), (None,), ("",)])
    server.run(f"INSERT INTO \"{table}\" SELECT repeat('f', 100000000)")
    with opened(server, table, domain) as opened_table:
        (connection,) = opened_table._session.engine._link._held
        counted = opened_table.histogram("n", epsilon=300).values
        assert [counted[0], counted[1], counted[-2], counted[-1]] == [1, 1, 4, 2] and counted.sum() == 8
        (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{connection.info.backend_pid}/status").read_text())
        assert int(peak) < 80_000


# --- limits of a role or a server that a number of rows would meet ---------------------------------------------------

WIDE = Domain((Numeric("w", Fraction(0), Fraction(2**20), Fraction(1)), Nominal("y", ("a", "b"))), target="y")
SMALL_MEMORY = {"options": quote("-c work_mem=64kB")}


def limited(server: Server, table: str, *settings: str, more: str = "") -> str:
    """A user who may read a table, with settings of the owner's choice."""
    user = role(server, f'SELECT ON "{table}"')
    server.run(*(f'ALTER ROLE "{user}" SET {setting}' for setting in settings), f'ALTER ROLE "{user}" LOGIN {more}')
    return user


def wide(server: Server, rows: int) -> str:
    return make(server, "w int, y text", ((i, "ab"[i % 2]) for i in range(rows)))


def searched(server: Server, table: str, user: str) -> list[str]:
    """What an analyst sees who searches for the number of rows at which an answer becomes an error."""
    seen = []
    with opened(server, table, WIDE, user=user, parameters=SMALL_MEMORY) as opened_table:
        low, high = 0, 2**15
        while high - low > 1:
            middle = (low + high) // 2
            try:
                opened_table.where(w=(None, middle)).median("w", "1e-9")
                low = middle
            except EngineFailed:
                high = middle
            seen.append("answered" if low == middle else "failed")
    return seen


def test_a_limit_on_temporary_files_tells_no_number_of_rows(server: Server) -> None:
    """It answered a median of 8,219 rows and failed for 8,220, each time: a bisection found the number for nothing."""
    for rows in (8_000, 12_000):
        table = wide(server, rows)
        user = limited(server, table, "temp_file_limit = '256kB'")
        for _ in range(2):
            with pytest.raises(DataError) as caught:
                searched(server, table, user)
            assert str(caught.value) == (
                f"the server ends every statement of user '{user}' whose temporary files are larger than 256kB, so "
                "that the number of rows would decide which questions are answered; its superuser lifts the limit "
                f'with ALTER ROLE "{user}" SET temp_file_limit = -1.'
            )
            said(caught.value)
        server.run(f'ALTER ROLE "{user}" SET temp_file_limit = -1')
        assert set(searched(server, table, user)) == {"answered"}


def test_a_limit_that_the_user_may_lift_is_lifted(server: Server) -> None:
    table = wide(server, 12_000)
    user = limited(server, table, "temp_file_limit = '256kB'", more="SUPERUSER")
    assert set(searched(server, table, user)) == {"answered"}


def test_a_limit_that_is_set_meanwhile_fails_every_question_alike(mortal: Server) -> None:
    """Also those that stay below it: an answer would tell that the others did not."""
    table = wide(mortal, 12_000)
    try:
        for rows in (1, 2**20):
            user = limited(mortal, table)
            with opened(mortal, table, WIDE, user=user, parameters=SMALL_MEMORY) as opened_table:
                assert opened_table.count(300).value == 12_000
                mortal.run("ALTER SYSTEM SET temp_file_limit = '256kB'", "SELECT pg_reload_conf()")
                link = opened_table._session.engine._link
                while link.rows("SHOW temp_file_limit", ()) != [("256kB",)]:
                    pass
                with pytest.raises(EngineFailed, match=r"could not answer .* entry 2 .*: a new try is a new charge.$"):
                    opened_table.where(w=(None, rows)).median("w", 1)
                assert opened_table.budget.spent == 301
                with pytest.raises(DataError, match="SET temp_file_limit = -1"):
                    opened_table.count(1)
                assert opened_table.budget.spent == 301
            mortal.run("ALTER SYSTEM RESET temp_file_limit", "SELECT pg_reload_conf()")
            while mortal.run("SHOW temp_file_limit") != [("-1",)]:
                pass
    finally:
        mortal.run("ALTER SYSTEM RESET temp_file_limit", "SELECT pg_reload_conf()")


def test_no_time_out_of_a_role_or_an_address_ends_a_question(server: Server) -> None:
    view = raising(server, "PERFORM pg_sleep(0.001);")
    outs = ["statement_timeout", "lock_timeout", "transaction_timeout", "idle_session_timeout"]
    user = limited(server, view, *(f"{each} = '20ms'" for each in outs if each != "idle_session_timeout"))
    server.run(f"ALTER ROLE \"{user}\" SET idle_session_timeout = '1h'")
    options = quote("-c statement_timeout=20ms -c enable_parallel_hash=on")
    with opened(server, view, user=user, parameters={"options": options}) as table:
        link = table._session.engine._link
        assert [link.rows(f"SHOW {each}", ())[0][0] for each in outs] == ["0"] * 4
        assert link.rows("SHOW enable_parallel_hash", ()) == [("off",)]  # its memory is what /dev/shm has
        assert link.rows("SHOW client_connection_check_interval", ()) == [("10s",)]
        assert table.count(300).value == 30


def test_a_sum_stops_at_the_largest_whole_number(server: Server) -> None:
    """A few billion rows of a fine grid reach it; PostgreSQL would end the statement."""
    domain = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(1)),))
    engine = engine_of(server, make(server, "x int"), domain)
    for values in ([2**62, 2**62 - 1], [2**62, 2**62], [2**63 - 1] * 3):
        rows = exp.values([(value, 0) for value in values], alias="huge", columns=["g0", "node"])
        found = sql.read_sums(
            engine._fetch(sql.sums(SumQuery(Rows(), "x"), exp.From(this=rows), domain)), SumQuery(Rows(), "x")
        )
        assert [each.tolist() for each in found] == [[len(values)], [2**63 - 1]]
    engine.close()


def test_no_idle_time_out_ends_a_transaction_while_noise_for_many_values_is_drawn(server: Server) -> None:
    """The question would be asked again, and fail. It is so for any number of values, for a lost one shows."""
    idle = "SHOW idle_in_transaction_session_timeout"
    for rows in (0, 101):
        with opened(server, wide(server, rows), WIDE) as table:
            link = table._session.engine._link
            for ask, expected in (
                (table.count, "5min"),
                (lambda e, t=table: t.median("w", e), "0"),
                (table.count, "5min"),
            ):
                ask(1)
                assert link.rows(idle, ()) == [(expected,)]


@pytest.mark.parametrize("chunk", [1, 100, 2**22])
def test_answers_of_any_length_are_read_in_passing(server: Server, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_link, "_CHUNK", chunk)
    engine = engine_of(server, wide(server, 300), WIDE)
    (found,) = engine.exact_grid(GridQuery(Rows(), ("w",), "y"))
    assert found.index.tolist() == list(range(300)) and found.exact_counts.tolist() == [[1, 0], [0, 1]] * 150
    nothing = Rows().keep([0], (Condition("w", None, 2**19, 2**20),))
    assert engine.exact_grid(GridQuery(nothing, ("w",)))[0].index.tolist() == []
    for broken in ("SELECT 1 AS n UNION ALL SELECT NULL", "SELECT NULL::int AS n"):
        with pytest.raises(ValueError, match=r"^(a field|a record|the copy) "):
            engine._link.numbers(broken, ["n"])
    engine.close()


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
    assert "does not let user 'ann' in" in postgres_link._told(Refused("Passwort"), source)


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
    for ask in (lambda: privet.open(address, DOMAIN, budget=1), lambda: privet.kernel.ledger_path(address)):
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


# --- one statement a question ----------------------------------------------------------------------------------------

# Beside it a question asks the server for its limit on temporary files, which no row is read for.
STATEMENT = r"LOG:  (?:execute [^:]*|statement): (?!SELECT pg_catalog[.]current_setting\('temp_file_limit')"


def test_every_question_is_one_statement_in_the_servers_own_log(server: Server) -> None:
    eight = tuple(str(i) for i in range(8))
    names = ("a", "b", "c", "d", "e")
    columns = (*(Nominal(name, eight) for name in names), Numeric("x", Fraction(0), Fraction(9), Fraction(1)))
    domain = Domain((*columns, Nominal("y", ("0", "1"))), target="y")
    rows = np.random.default_rng(1).integers(0, 8, (500, 7))
    rows[:, -1] %= 2
    table = make(server, ", ".join(f"{name} text" for name in domain.names), rows.tolist())
    user = role(server, f'SELECT ON "{table}"')
    server.run(f"ALTER ROLE \"{user}\" SET log_statement = 'all'")
    log = server.folder / "log"
    with opened(server, table, domain, user=user) as opened_table:
        parts = opened_table.partition("a").partition("b")
        questions = [
            lambda: parts.select("max", 1),
            lambda: parts.count(1),
            lambda: parts.histogram("c", "y", epsilon=1),
            lambda: parts.select("gini", 1, thresholds=True),
            lambda: parts.mean("x", 1),
            lambda: parts.median("x", 1),
            lambda: parts.histograms([[("x",), ("a", "y")]] * 64, 1),
            lambda: parts.partition(parts.select("max", 1)).count(1),
            lambda: parts.select_residuals(privet.kernel.AdditiveModel((0, 0)), [("a",), ("a", "x")], (9, 9), 1),
        ]
        for number, question in enumerate(questions):
            before, entries = log.stat().st_size, len(opened_table.budget.entries)
            question()
            written = log.read_text()[before:]
            asked = len(opened_table.budget.entries) - entries
            assert len(re.findall(STATEMENT, written)) == 1
            assert asked == 1 + (number == 7)  # the sizes of children are known from the tables above them
            assert written.count("WITH numbered AS (") == 1


def test_a_level_of_a_fit_is_one_statement_in_the_servers_own_log(server: Server) -> None:
    """One for the size of the root, and one for each level, whatever the number of nodes and attributes."""
    domain = Domain((*(Nominal(name, (0, 1, 2, 3)) for name in "abcde"), Nominal("y", (0, 1))), target="y")
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.integers(0, domain[name].size, 5000) for name in domain.names])
    table = make(server, ", ".join(f"{name} int" for name in domain.names), rows.tolist())
    user = role(server, f'SELECT ON "{table}"')
    server.run(f"ALTER ROLE \"{user}\" SET log_statement = 'all'")
    log = server.folder / "log"
    with opened(server, table, domain, user=user) as opened_table:
        before = log.stat().st_size
        tree = privet.DiffPID3Classifier(500, max_depth=3).fit(opened_table).model_.tree
        assert tree.depth == 3 and tree.leaves == 64
        assert len(re.findall(STATEMENT, log.read_text()[before:])) == 1 + 3


def test_naive_bayes_reads_the_rows_twice_whatever_the_number_of_attributes(server: Server) -> None:
    """Once for the classes, and once for the tables of all attributes."""
    domain = Domain((*(Nominal(f"a{i}", (0, 1)) for i in range(40)), Nominal("y", (0, 1))), target="y")
    rows = np.random.default_rng(1).integers(0, 2, (50, 41))
    table = make(server, ", ".join(f"{name} int" for name in domain.names), rows.tolist())
    user = limited(server, table, "log_statement = 'all'")
    log = server.folder / "log"
    with opened(server, table, domain, user=user) as opened_table:
        before = log.stat().st_size
        model = privet.NaiveBayesClassifier(5).fit(opened_table).model_
        assert len(model.tables) == 40 and opened_table.budget.spent == 5
        assert len(re.findall(STATEMENT, log.read_text()[before:])) == 2


def test_counts_cross_the_wire_and_no_row_does(server: Server, tmp_path: Path) -> None:
    """By libpq's own record of every message: numbers of cells come back, whatever the number of rows."""
    rows = [(CANARY if i % 5 else "f", ["no", "yes"][i % 2], CANARY) for i in range(5000)]
    with opened(server, make(server, "sex text, ill text, name text", rows)) as table:
        (connection,) = table._session.engine._link._held
        with (tmp_path / "wire").open("wb") as record:
            connection.pgconn.trace(record.fileno())
            assert table.histogram("sex", "ill", epsilon=300).values.tolist() == [[500, 500], [0, 0], [2000, 2000]]
            table.select("max", 1)
            connection.pgconn.untrace()
        wire = (tmp_path / "wire").read_text()
    assert 0 < wire.count("CopyData") <= 2 * (1 + 6 + 1) and wire.count("DataRow") == 2  # the server's limit
    assert CANARY not in wire and len(wire) < 20_000


@pytest.mark.parametrize("cells", [1, 30, 10**9])
def test_attributes_are_counted_together_or_a_few_at_a_time(
    server: Server, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the processor has at hand, the statement is one, and counts the same."""
    monkeypatch.setattr("privet.kernel.engines.postgres.engine._AT_HAND", cells)
    domain = Domain(tuple(Nominal(f"a{i}", ("0", "1"), other=True) for i in range(6)))
    rows = np.random.default_rng(3).integers(0, 3, (200, 6))
    table = make(server, ", ".join(f"{name} text" for name in domain.names), rows.tolist())
    memory = MemoryEngine.from_frame(pd.DataFrame(rows.astype(str), columns=domain.names), domain)
    engine = engine_of(server, table, domain)
    query = CountQuery(Rows().divide([Split("a0")], domain), tuple(itertools.combinations(domain.names, 2)))
    for one, other in zip(engine.exact_counts(query), memory.exact_counts(query), strict=True):
        np.testing.assert_array_equal(one, other)
    engine.close()


def test_more_groups_than_one_aggregation_takes_are_one_statement(server: Server) -> None:
    domain = Domain(tuple(Nominal(f"a{i}", ("0", "1"), other=True) for i in range(300)))
    rows = np.random.default_rng(2).integers(0, 3, (20, 300))
    table = make(server, ", ".join(f"{name} text" for name in domain.names), rows.tolist())
    memory = MemoryEngine.from_frame(pd.DataFrame(rows.astype(str), columns=domain.names), domain)
    engine = engine_of(server, table, domain)
    singles = [(name,) for name in domain.names]
    query = CountQuery(Rows().scatter(3, 1), (*singles, *itertools.pairwise(domain.names), *singles, ()))
    assert len(query.groups) == 900
    for one, other in zip(engine.exact_counts(query), memory.exact_counts(query), strict=True):
        np.testing.assert_array_equal(one, other)
    engine.close()


# --- connections that are lost ---------------------------------------------------------------------------------------


def unless_calm(what: str) -> str:
    """What a function does for some rows until somebody connects as 'calm'."""
    calm = "EXISTS (SELECT 1 FROM pg_stat_activity WHERE application_name = 'calm')"
    return f"IF t = 'x' AND NOT {calm} THEN {what} END IF;"


def ended(server: Server, table: Any) -> None:
    """End the server's side of a table's connection."""
    (connection,) = table._session.engine._link._held
    server.run(f"SELECT pg_terminate_backend({connection.info.backend_pid}, 5000)")


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


def changed(server: Server, name: str) -> None:
    """Everybody moves from one part to another."""
    server.run(f"UPDATE \"{name}\" SET sex = translate(sex, 'fmx', 'mxf')")


def test_rows_are_those_of_the_opening_whatever_others_write(server: Server) -> None:
    name = people(server, 31)
    with opened(server, name) as table:
        parts = table.partition("sex")
        before = [part.count(300).value for part in parts]
        changed(server, name)
        server.run(f"INSERT INTO \"{name}\" VALUES ('f', 'no', '')")
        assert [part.count(300).value for part in parts] == before == [11, 10, 10]
        assert table.budget.spent == 600
    with opened(server, name) as table:
        assert table.count(300).value == 32


def test_parts_share_nothing_that_was_paid_before_rows_may_have_changed(server: Server) -> None:
    """Otherwise a person who moved meanwhile would be asked about twice, and paid for once."""
    name = people(server)
    with opened(server, name) as table:
        first, second, third = table.partition("sex")
        first.count(300)
        ended(server, table)
        changed(server, name)
        second.count(300)
        assert table.budget.spent == 600
        third.count(300)
        assert table.budget.spent == 600


def test_counts_of_rows_as_they_were_are_not_recalled(server: Server) -> None:
    name = people(server)
    with opened(server, name, budget=3000) as table:
        assert table.histogram("sex", "ill", epsilon=900).values.sum() == 30
        ended(server, table)
        server.run(f"INSERT INTO \"{name}\" VALUES ('f', 'no', '')")
        assert table.partition("sex").count(900).array().tolist() == [11, 10, 10]


def test_an_answer_about_other_rows_is_given_only_where_it_was_paid_in_full(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = people(server)
    lost = postgres_link._lost

    def moving(error: BaseException, connection: Any) -> bool:
        changed(server, name)
        return lost(error, connection)

    with opened(server, name, budget=3000) as table:
        first, second, _ = table.partition("sex")
        first.count(300)
        monkeypatch.setattr(postgres_link, "_lost", moving)
        monkeypatch.setattr(postgres_link, "_lives", lambda connection: True)  # its end is heard of in the statement
        ended(server, table)
        with pytest.raises(EngineFailed, match=r"entry 2 \(epsilon=300\) stands: the rows may have changed meanwhile"):
            second.count(300, key="k")  # it shared what the first part had paid
        with pytest.raises(QuestionError, match=r"^cannot finish ledger entry 2: .* Ask under another key.$"):
            second.count(300, key="k")
        assert table.budget.spent == 300
        ended(server, table)
        assert second.count(300, key="l").value == 10  # paid in full, and nobody shares it
        assert table.budget.spent == 600
        ended(server, table)
        assert table.count(300).value == 30


def test_a_charge_that_other_parts_may_have_shared_pays_for_no_other_rows(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = people(server)
    with opened(server, name, budget=3000) as table:
        first, second, _ = table.partition("sex")
        with monkeypatch.context() as patch, pytest.raises(OSError, match="disk"):
            patch.setattr(Ledger, "store", failing)
            first.count(300, key="k")
        assert second.count(300).value == 10  # free: the first part has paid
        with pytest.raises(BudgetExceeded):
            table.count(30_000)
        ended(server, table)
        changed(server, name)
        with pytest.raises(QuestionError, match="cannot finish ledger entry 1"):
            first.count(300, key="k")
        assert table.budget.spent == 300


def failing(*words: Any, **settings: Any) -> Any:
    raise OSError("disk full")


def test_a_refinement_is_drawn_for_the_rows_of_its_first_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they change between the look and the charge."""
    name = people(server)
    with opened(server, name, budget=3000) as table:
        count = table.count(1)
        read = Chain._read

        def lost_afterwards(chain: Any) -> Any:
            found = read(chain)
            ended(server, table)
            changed(server, name)
            return found

        monkeypatch.setattr(Chain, "_read", lost_afterwards)
        with pytest.raises(QuestionError, match="whose rows may have been others"):
            count.refine(2)
        assert len(table.budget.entries) == 1


def test_a_monitor_scores_a_model_on_rows_of_one_version(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    name = people(server)
    model = privet.kernel.AdditiveModel((0, 0))
    with opened(server, name, budget=3000) as table:
        monitor, of_a_part = table.monitor("0.9", 1), table.partition("sex")[0].monitor("0.9", 1)
        engine, scores, score = table._session.engine, [], kernel_monitor.exact_lead
        right = engine.exact_correct

        def lost_between(query: Any) -> Any:  # how many are right, and how many there are
            found = right(query)
            if not scores:
                ended(server, table)
                server.run(f"DELETE FROM \"{name}\" WHERE ill = 'no'")
            return found

        def scored(*words: Any) -> int:
            scores.append(score(*words))
            return scores[-1]

        monkeypatch.setattr(engine, "exact_correct", lost_between)
        monkeypatch.setattr(kernel_monitor, "exact_lead", scored)
        monitor.reached(model)
        assert scores == [10 * 15 - 9 * 15, -9 * 15]  # the first is of no table, and is not used
        with pytest.raises(QuestionError, match="begun for rows that may have changed"):
            of_a_part.reached(model)


def test_a_race_is_run_on_rows_of_one_version(server: Server) -> None:
    with opened(server, people(server), budget=3000) as table:

        def loses(shadow: Any) -> Any:
            ended(server, table)
            return "", shadow.count(1)

        with pytest.raises(EngineFailed, match="the rows may have changed during the race"):
            privet.kernel.race(table, [loses], 1, stop="0.9")
        assert table.budget.spent == 3


@pytest.mark.parametrize("parent", ["plain", "partitioned", "inherited"])
def test_a_part_that_is_attached_later_is_not_seen(server: Server, parent: str) -> None:
    """It would be, in a transaction that began before, and with it people who were moved into it: twice."""
    name, more = f"parent {next(_numbers)}", f"more {next(_numbers)}"
    first = f"first {next(_numbers)}"
    columns = "sex text, ill text"
    if parent == "partitioned":
        server.run(
            f'CREATE TABLE "{name}" ({columns}) PARTITION BY LIST (sex)',
            f'CREATE TABLE "{first}" PARTITION OF "{name}" FOR VALUES IN (\'f\')',
        )
    else:
        server.run(f'CREATE TABLE "{name}" ({columns})')
        if parent == "inherited":
            server.run(f'CREATE TABLE "{first}" () INHERITS ("{name}")')
    holds = name if parent == "plain" else first
    server.run(
        f"INSERT INTO \"{holds}\" SELECT 'f', 'no' FROM generate_series(1, 10)",
        f'CREATE TABLE "{more}" ({columns})',
        f"INSERT INTO \"{more}\" SELECT 'm', 'no' FROM generate_series(1, 10)",
    )
    attach = f'ALTER TABLE "{more}" INHERIT "{name}"'
    if parent == "partitioned":
        attach = f'ALTER TABLE "{name}" ATTACH PARTITION "{more}" FOR VALUES IN (\'m\')'
    with opened(server, name, budget=3000, user=role(server, f'SELECT ON "{name}"')) as table:
        with server.connect() as connection, connection.transaction():
            connection.execute(f'DELETE FROM "{holds}"')
            connection.execute(attach)
        assert table.partition("sex").count(300).array().tolist() == [10, 0, 0]
    if parent == "plain":
        return
    with opened(server, name, budget=3000) as table:
        assert table.partition("sex").count(300).array().tolist() == [0, 10, 0]
    waits = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'privet' AND wait_event_type = 'Lock'"
    with opened(server, name, budget=3000) as table, ThreadPoolExecutor(1) as pool:
        ended(server, table)
        with server.connect() as loader, loader.transaction():  # it was seen as it was, and is another one now
            loader.execute(f'TRUNCATE "{more}"')
            with loader.cursor() as cursor, cursor.copy(f'COPY "{more}" FROM STDIN (FREEZE)') as copy:
                copy.write_row(("m", "yes"))
            answer = pool.submit(lambda: table.partition("sex").count(300).array().tolist())
            while not server.run(waits):
                pass
        assert answer.result() == [0, 0, 0]
    if parent == "partitioned":
        column_alone = role(server, f'SELECT (sex, ill) ON "{name}"')
        with pytest.raises(DataError, match=f'GRANT SELECT ON "public"."{name}" TO "{column_alone}"'):
            opened(server, name, user=column_alone)


def test_a_table_that_was_dropped_meanwhile_is_one_sentence(server: Server) -> None:
    name = people(server)
    with opened(server, name) as table:
        ended(server, table)
        server.run(f'DROP TABLE "{name}"')
        with pytest.raises(DataError) as caught:
            table.count(1)
        assert str(caught.value) == (
            f"there is no table 'public.{name}' of database 'postgres' any more; it was dropped, renamed or moved "
            "since it was opened."
        )
        assert table.budget.spent == 0


def test_a_table_that_was_altered_meanwhile_is_opened_again(server: Server) -> None:
    """What no row can break depends on how a column is stored."""
    table = make(server, "x int", [(i % 9,) for i in range(90)])
    domain = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(1)),))
    with opened(server, table, domain, budget=3000) as opened_table:
        assert opened_table.count(300).value == 90
        ended(server, opened_table)
        server.run(f'ALTER TABLE "{table}" ALTER x TYPE numeric', f'INSERT INTO "{table}" VALUES (1e400)')
        with pytest.raises(DataError, match="was altered since it was opened; open it again"):
            opened_table.count(300)
        assert opened_table.budget.spent == 300
    with opened(server, table, domain, budget=3000) as opened_table:
        assert opened_table.count(300).value == 91


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


def test_a_closed_table_keeps_no_counts(server: Server) -> None:
    with opened(server, people(server)) as table:
        engine: Any = table._session.engine
        table.histogram(table.domain.names[0], epsilon=1)
        assert engine._recall._tables
    assert not engine._recall._tables

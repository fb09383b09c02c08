"""PostgreSQL: every value of every type has a cell, and no row stops a statement."""

from __future__ import annotations

import re
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
from kernel.engines.postgres.tables import CANARY, DOMAIN, _numbers, engine_of, make, opened, people, raising, said
from postgres_server import Server
from sqlglot import exp

from privet.errors import EngineFailed
from privet.kernel.column import Nominal, Numeric, number_of
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, GridQuery, SumQuery
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.sql import sql
from privet.kernel.rows import Rows

psycopg = pytest.importorskip("psycopg")
from privet.kernel.engines.postgres import link as postgres_link  # noqa: E402
from privet.kernel.engines.postgres.engine import DIALECT, PostgresSource  # noqa: E402

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
    assert engine._stored.rows.sql(dialect="postgres").count('COLLATE "C"') == 2
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

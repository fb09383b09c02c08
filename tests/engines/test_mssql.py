"""SQL Server: statements as they would be sent, their logic run elsewhere, a server where PRIVET_MSSQL names one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import sqlglot
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from privet.column import Nominal, Numeric, number_of
from privet.domain import Domain
from privet.errors import DataError
from privet.kernel.engines import sql
from privet.kernel.engines.mssql import DIALECT, MssqlEngine, MssqlSource
from privet.kernel.engines.sql import _squared
from privet.kernel.query import (
    AdditiveModel,
    Condition,
    CorrectQuery,
    CountQuery,
    GridQuery,
    ResidualQuery,
    Rows,
    Split,
    SumQuery,
)

GOLDEN = Path(__file__).parent / "golden" / "mssql"
UPDATE = os.environ.get("PRIVET_UPDATE_GOLDEN") == "1"
HOSTILE = ("f'); DROP TABLE t; --", "m]", "trailing ")
DOMAIN = Domain(
    (
        Nominal('sex"]; DROP TABLE t; --', HOSTILE, other=True),
        Numeric("order", Fraction(0), Fraction(9), Fraction(1, 2), edges=(Fraction(3),), missing=True),
        Nominal("select", (True, False)),
        Numeric("read", Fraction(-5), Fraction(5), Fraction(1), missing=True),
        Nominal("y", ("no", "yes", "maybe")),
    ),
    target="y",
)
TYPES = ["nvarchar", "float", "bit", "varchar", "varchar"]
PARTS = Rows().keep([0], (Condition("order", None, 2, 15),)).divide([Split("select")], DOMAIN)
MODEL = AdditiveModel((10, -20, 0), ((("select", "y"), np.arange(18, dtype=np.int32).reshape(2, 3, 3) % 5),))


class Recorder:
    """A connection that remembers statements: a catalogue of one table, and no rows."""

    def __init__(self, types: list[str] | None = None) -> None:
        self.statements: list[str] = []
        self._types = dict(zip(DOMAIN.names, types or TYPES, strict=False))

    def cursor(self) -> Recorder:
        return self

    def execute(self, statement: str, *values: Any) -> Recorder:
        self.statements.append(statement)
        return self

    def fetchall(self) -> list[Any]:
        return list(self._types.items()) if "INFORMATION_SCHEMA" in self.statements[-1] else []

    def close(self) -> None: ...


ASK: dict[str, Callable[[MssqlEngine], Any]] = {
    # what Hanisch's laplacianCount asks: the rows of each class that meet the conditions along a path
    "noisy_count": lambda engine: engine.exact_counts(CountQuery(PARTS, (("y",),))),
    "counts": lambda engine: engine.exact_counts(CountQuery(PARTS, ((), ("order", "y"), ("read", "y")))),
    "grid": lambda engine: engine.exact_grid(GridQuery(PARTS, ("order", "select"), "y")),
    "sums": lambda engine: engine.exact_sums(SumQuery(Rows(), "order")),
    "correct": lambda engine: engine.exact_correct(CorrectQuery(PARTS, MODEL, "y")),
    "residuals": lambda engine: engine.exact_residuals(
        ResidualQuery(PARTS, MODEL, (("order",), ("order", "select")), "y", (1024, 512, 100))
    ),
    "coins": lambda engine: engine.exact_counts(CountQuery(PARTS.scatter(3, 7), ((),))),
}


@pytest.mark.parametrize("name", list(ASK))
def test_the_compiled_sql_is_the_golden_one(name: str) -> None:
    server = Recorder()
    ASK[name](MssqlEngine(lambda: server, ("dbo", "it's [t]"), DOMAIN))
    assert len(server.statements) == 2  # the catalogue, and one statement for the question
    text = sqlglot.parse_one(server.statements[-1], read="tsql").sql(dialect="tsql", pretty=True) + ";\n"
    path = GOLDEN / f"{name}.sql"
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", list(ASK))
def test_what_people_wrote_stands_only_inside_quotes(name: str) -> None:
    server = Recorder()
    ASK[name](MssqlEngine(lambda: server, ("dbo", "it's [t]"), DOMAIN))
    bare = re.sub(r"N?'(?:[^']|'')*'|\[(?:[^\]]|\]\])*\]", "", server.statements[-1])
    assert not re.search(r"drop|sex|maybe|trailing|read|--|;|['\"\[\]]", bare, re.IGNORECASE)


def test_t_sql_has_no_truth_values_arrays_or_new_functions() -> None:
    for ask in ASK.values():
        server = Recorder()
        ask(MssqlEngine(lambda server=server: server, ("t",), DOMAIN))
        tree = sqlglot.parse_one(server.statements[-1], read="tsql")
        assert not list(tree.find_all(exp.Boolean, exp.Array, exp.Least, exp.Greatest, exp.RegexpLike))
        words = set(re.findall(r"\b[A-Z_]+(?=\()", server.statements[-1]))
        known = set("CAST TRY_CAST COUNT SUM FLOOR COALESCE REPLACE NCHAR LTRIM RTRIM UPPER CHARINDEX LEFT".split())
        known |= set("SUBSTRING LEN DATALENGTH NULLIF IN AND OR NOT AS FROM WHEN JSON_VALUE NVARCHAR".split())
        assert words <= known


@pytest.mark.parametrize(
    ("types", "words"),
    [
        (["nvarchar", "float", "bit", "xml", "varchar"], "column 'read' has type xml"),
        (["nvarchar", "float", "bit", "varchar"], "the table has no column 'y'"),
    ],
)
def test_columns_that_cannot_be_read_are_one_sentence(types: list[str], words: str) -> None:
    with pytest.raises(DataError, match=words):
        MssqlEngine(lambda: Recorder(types), ("t",), DOMAIN)


@pytest.mark.parametrize(
    "text", ["mssql://h/d", "mssql:///d?table=t", "mssql://u:secret@h?table=t", "mssql://h:x/d?table=t"]
)
def test_an_address_that_is_incomplete_is_one_sentence(text: str) -> None:
    with pytest.raises(DataError, match="address of the SQL Server table is incomplete") as raised:
        MssqlSource.parse(text)
    assert "secret" not in str(raised.value)


def test_the_password_stays_out_of_sight() -> None:
    source = MssqlSource.parse("mssql://sa:p%40ss@host/patients?table=dbo.t")
    assert source.password == "p@ss" and source.table == ("dbo", "t")
    assert not any("p@ss" in text for text in (repr(source), source.address, source.title, source.label))
    with pytest.raises(DataError, match="name one, as ledger="):
        assert source.ledger


def test_a_server_that_is_gone_is_one_sentence() -> None:
    def gone() -> Any:
        raise OSError("login failed for 'sa' with password 'secret'")

    with pytest.raises(DataError) as raised:
        MssqlEngine(gone, ("t",), DOMAIN)
    assert "cannot reach SQL Server" in str(raised.value) and "secret" not in str(raised.value)
    assert raised.value.__context__ is None or "secret" not in str(raised.value.__context__)


# -- the logic of the reader of numbers, run by DuckDB ------------------------------------------


def in_duckdb(tree: exp.Expression) -> str:
    """T-SQL as DuckDB reads it: its LIKE knows sets of letters, its texts have other names."""
    names = {"NCHAR": "chr", "CHARINDEX": "charindex", "LEN": "length"}

    def rewritten(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.National):
            return exp.Literal.string(node.this)
        if isinstance(node, exp.Collate):
            return node.this
        if isinstance(node, exp.Like):
            pattern = re.sub(r"%", ".*", str(node.expression.name).replace(".", "[.]")).replace("[^0-9[.]]", "[^0-9.]")
            return exp.func("regexp_full_match", node.this, exp.Literal.string(pattern), exp.Literal.string("s"))
        if isinstance(node, exp.Anonymous) and node.name.upper() == "CHARINDEX":
            return exp.func("instr", node.expressions[1], node.expressions[0])
        if isinstance(node, exp.Anonymous) and node.name.upper() in names:
            return exp.func(names[node.name.upper()], *node.expressions)
        if isinstance(node, exp.Add) and node.expression.is_string:
            return exp.DPipe(this=node.this, expression=node.expression)
        return node

    whole = exp.Paren(this=tree.copy())
    for node in reversed(list(whole.walk(bfs=True))):
        other = rewritten(node)
        if other is not node:
            node.replace(other)
    return whole.sql(dialect="duckdb")


ODD = st.text(alphabet=" \t+-.0123456789eEx", max_size=9)


@settings(deadline=None, max_examples=300)
@given(ODD)
@example("1e400")
@example("-1e400")
@example("1e-400")
@example("9" * 400)
@example("1e")
@example("e5")
@example(".")
@example("+.5e+1 ")
@example("1.2.3")
@example("--1")
def test_numbers_are_read_as_everywhere(words: str) -> None:
    read = in_duckdb(DIALECT.read_number(exp.Literal.string(words)))
    ((found,),) = duckdb.execute(f"SELECT {read}").fetchall()
    expected = number_of(words)
    if expected is None or found is None:
        assert found is expected
    else:
        bounds = (-1.7e308, 1.7e308)
        assert np.clip(found, *bounds) == pytest.approx(np.clip(expected, *bounds), rel=1e-12, abs=1e-300)


# -- a real server ------------------------------------------------------------------------------


@pytest.mark.skipif(not os.environ.get("PRIVET_MSSQL"), reason="PRIVET_MSSQL names no SQL Server (mssql://…?table=t)")
def test_a_real_server_counts() -> None:
    import privet

    domain = Domain((Nominal("y", ("no", "yes")),), target="y")
    with privet.open(os.environ["PRIVET_MSSQL"], domain, budget=1, ledger=":memory:") as table:
        assert table.count(epsilon=0.5) is not None


def test_the_square_of_a_coin_divides_whole_numbers() -> None:
    tree = sql.quotient(_squared(sql.col("h"), 5, 7), sql.num(3))
    assert "FLOAT" not in DIALECT.sql(tree)

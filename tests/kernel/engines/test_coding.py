"""Texts in every storage: what spells one value has one cell, and every other text its own."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel.engines.comparison import SPARK_AT_LENGTH, STORAGES, check, everything
from kernel.engines.test_mssql import in_duckdb
from sqlglot import exp

from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery
from privet.kernel.engines.duckdb.engine import DuckDBSource
from privet.kernel.engines.mssql import engine as mssql
from privet.kernel.engines.sql import coding
from privet.kernel.engines.sql.coding import Held, Kind
from privet.kernel.rows import Rows

SPELLED = {
    "true": ["true", "True", "TRUE"],
    "false": ["False"],
    "0": ["0", "-0", "0.", "0.0", "-0.00"],
    "1": ["1", "1.0", "1.000"],
    "-2.5": ["-2.5", "-2.50"],
    "0.00001": ["0.00001", "0.0000100", "1e-05", "1E-5", "1.0E-5"],
    "100000000000000000000": ["1" + "0" * 20, "1e+20", "1.0E20"],
    "007": ["007"],
    "a": ["a"],
    "1e5": ["1e5"],
}
THEMSELVES = [
    "tRUE",
    "007.0",
    "a.0",
    "00",
    "+1",
    ".5",
    " 1",
    "1 ",
    "1.0 ",
    "1 .0",
    "1. 0",
    "1..0",
    "1.0.",
    "1.0\n",
    "--1.0",
]
THEMSELVES += ["1,0", "1e50", "1.0e50", "1.5e-50", "-", ".", "500.", "1.01", "1." + "0" * 399, "9" * 500, "\u0661.0"]
EVERY = [*(text for texts in SPELLED.values() for text in texts), *THEMSELVES]
MANY = tuple(str(i) for i in range(2, 40))  # a longer list is looked up by a join


@pytest.mark.parametrize("more", [(), MANY], ids=["few values", "many values"])
@pytest.mark.parametrize("storage", (*STORAGES, SPARK_AT_LENGTH))
def test_spellings_of_a_value_share_its_cell_in_every_storage(stores: Any, storage: str, more: tuple[str, ...]) -> None:
    domain = Domain((Nominal("x", (*SPELLED, *more), other=True, missing=True),))
    rows = [(text,) for text in EVERY]
    expected = [len(texts) for texts in SPELLED.values()] + [0] * len(more)
    with stores.open(storage, domain, ["VARCHAR"], rows) as (engine, _):
        for each in [engine] if storage == "memory" else [engine, engine.snapshot()]:
            (counted,) = each.exact_counts(CountQuery(Rows(), (("x",),)))
            assert counted.ravel().tolist() == [*expected, len(EVERY) - sum(expected), 0]


TYPED: dict[str, list[Any]] = {
    "SMALLINT": [-(2**15), -7, 0, 1, 2**15 - 1, None],
    "UTINYINT": [0, 1, 5, 127, 128, 255, None],
    "DECIMAL(12,3)": [Decimal("0.100"), Decimal("0.125"), Decimal("1"), Decimal("-999999999.999"), Decimal("0"), None],
    "DECIMAL(38,20)": [Decimal("0.1"), Decimal("0.10000000000000000001"), Decimal("1"), Decimal(10**17), None],
    "FLOAT": [float(np.float32(0.1)), 0.5, -0.0, 1.0, 2.0**30, None],
    "DOUBLE": [0.1, 0.1 + 0.2, 1e-05, 1.0, 2.0**60, 1e22, None],
}


@pytest.mark.parametrize("storage", (*(storage for storage in STORAGES if storage != "csv"), SPARK_AT_LENGTH))
def test_numbers_of_every_type_are_compared_as_decimals_and_one_row_at_a_time(stores: Any, storage: str) -> None:
    declared = ("0", "1", "0.1", "0.5", "0.125", "0.10000000000000000001", "-7", "255", "1" + "0" * 17, "0.00001")
    declared += ("1073741824", "1" + "0" * 22, "-999999999.999", "0.1000000014901161", "true", "9" * 40)
    domain = Domain(tuple(Nominal(kind, declared, other=True, missing=True) for kind in TYPED))
    rows = [tuple(values[i % len(values)] for values in TYPED.values()) for i in range(13)]
    check(stores, storage, domain, list(TYPED), rows, everything(domain))


# -- T-SQL, whose logic DuckDB runs ---------------------------------------------------------------

DOMAIN = Domain(
    (
        Nominal("x", tuple(SPELLED), other=True, missing=True),
        Numeric("n", Fraction(0), Fraction(9), Fraction(1), missing=True),
    )
)


@cache
def tsql_statement() -> str:
    """A statement for SQL Server that codes texts, as DuckDB reads it."""
    held = {name: Held(name, Kind.TEXT) for name in DOMAIN.names}
    tree = coding.coded(exp.to_table("texts"), DOMAIN, held, mssql.DIALECT)
    return in_duckdb(mssql.DIALECT.sql(exp.select("c0", "c1").from_(tree.subquery("coded"))))


def tsql_codes(texts: list[str | None]) -> list[int]:
    """The cells that a statement for SQL Server gives texts."""
    found = []
    with duckdb.connect() as connection:
        for text in texts:
            connection.execute("CREATE OR REPLACE TABLE texts AS SELECT ?::VARCHAR AS x, ?::VARCHAR AS n", [text, text])
            ((code, number),) = connection.execute(tsql_statement()).fetchall()
            assert number == DOMAIN["n"].code(text)
            found.append(code)
    return found


def test_spellings_of_a_value_share_its_cell_in_t_sql() -> None:
    assert tsql_codes([*EVERY, "", None]) == [DOMAIN["x"].code(text) for text in [*EVERY, "", None]]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.text("012.-eE +tTrRuUeE", max_size=7))
def test_any_text_has_the_cell_that_its_column_says_in_t_sql(text: str) -> None:
    assert tsql_codes([text]) == [DOMAIN["x"].code(text)]


def test_a_decimal_of_sql_server_is_compared_in_its_own_type() -> None:
    assert mssql._type("decimal", 12, 3) == "decimal(12, 3)" and mssql._type("money", 19, 4) == "decimal(19, 4)"
    assert (
        mssql._type("int", 10, 0) == "int"
        and coding.kind_of(DOMAIN, "x", "decimal(12, 3)", mssql._KINDS) is Kind.DECIMAL
    )
    domain = Domain((Nominal("x", ("0.5", "0.0625", "123456789012")),))
    tree = coding.coded(exp.to_table("t"), domain, {"x": Held("x", Kind.DECIMAL, "decimal(5, 2)")}, mssql.DIALECT)
    statement = mssql.DIALECT.sql(tree)
    assert "CAST('0.5' AS NUMERIC(5, 2))" in statement  # others do not fit the type
    assert "0.0625" not in statement and "123456789012" not in statement


@pytest.mark.parametrize("kind", ["UTINYINT", "UBIGINT", "UHUGEINT"])
def test_a_type_without_a_sign_is_compared_with_no_negative_number(tmp_path: Path, kind: str) -> None:
    """DuckDB would cast the rows to the type of the number, and one large row would refuse the whole table."""
    largest = {"UTINYINT": 2**8, "UBIGINT": 2**64, "UHUGEINT": 2**128}[kind] - 1
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT CAST(unnest(['0', '100', '{largest}']) AS {kind}) AS n")
    domain = Domain((Nominal("n", (-5, 0, 100), other=True),))
    engine = DuckDBSource(tmp_path / "t.db", "t").open(domain)
    (counts,) = engine.exact_counts(CountQuery(Rows(), (("n",),)))
    engine.close()
    assert counts.tolist() == [[0, 1, 1, 1]]

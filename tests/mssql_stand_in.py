"""A SQL Server for the tests that needs none: its statements are translated and run by DuckDB."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import duckdb
import numpy as np
import sqlglot
from sqlglot import exp

TABLE = ("dbo", "stays")

# DuckDB's name of a type: what SQL Server calls it, and the type that holds it here
TYPES = {
    "VARCHAR": ("nvarchar", "VARCHAR"),
    "BOOLEAN": ("bit", "TINYINT"),
    "UTINYINT": ("tinyint", "UTINYINT"),
    "TINYINT": ("smallint", "SMALLINT"),
    "SMALLINT": ("smallint", "SMALLINT"),
    "BIGINT": ("bigint", "BIGINT"),
    "UBIGINT": ("decimal", "DECIMAL(20,0)"),
    "HUGEINT": ("decimal", "DECIMAL(38,0)"),
    "UHUGEINT": ("decimal", "DECIMAL(38,0)"),
    "FLOAT": ("real", "FLOAT"),
    "DOUBLE": ("float", "DOUBLE"),
    "DECIMAL(12,3)": ("decimal", "DECIMAL(12,3)"),
    "DATE": ("date", "DATE"),
    "TIMESTAMP": ("datetime2", "TIMESTAMP"),
}


class StandIn:
    """A connection to a SQL Server with one table, `dbo.stays`."""

    def __init__(self, names: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.statements: list[str] = []
        self.closed = False
        self._catalogue = [
            (name, TYPES[each][0], *_digits(TYPES[each][1])) for name, each in zip(names, types, strict=True)
        ]
        self._database = duckdb.connect()
        quoted = [exp.to_identifier(name, quoted=True).sql(dialect="duckdb") for name in names]
        columns = ", ".join(f"{name} {TYPES[each][1]}" for name, each in zip(quoted, types, strict=True))
        self._database.execute(f"CREATE SCHEMA dbo; CREATE TABLE dbo.stays ({columns})")
        if rows:
            marks = ", ".join("?" for _ in names)
            self._database.executemany(f"INSERT INTO dbo.stays VALUES ({marks})", [list(row) for row in rows])

    def cursor(self) -> StandIn:
        return self

    def execute(self, statement: str, *values: Any) -> StandIn:
        self.statements.append(statement)
        return self

    def fetchall(self) -> list[Any]:
        if "sys.databases" in self.statements[-1]:
            return [("clinic", 1)]
        if "INFORMATION_SCHEMA" in self.statements[-1]:
            digits = "NUMERIC_PRECISION" in self.statements[-1]
            return self._catalogue if digits else [row[:2] for row in self._catalogue]
        return self._database.execute(in_duckdb(self.statements[-1])).fetchall()

    def commit(self) -> None:
        self.statements.append("COMMIT")

    def close(self) -> None:
        self.closed = True


def _digits(stored: str) -> tuple[int | None, int | None]:
    """Precision and scale of a decimal, as the catalogue has them."""
    found = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", stored)
    return (int(found[1]), int(found[2])) if found else (None, None)


def held(value: Any, sql_type: str) -> Any:
    """A value as SQL Server would hold it: its floats are finite, and not as close to 0 as others'."""
    if sql_type in ("UBIGINT", "HUGEINT", "UHUGEINT") and isinstance(value, int):
        return Decimal(value)
    if isinstance(value, float):
        limits = np.finfo(np.float32 if sql_type == "FLOAT" else np.float64)
        if math.isnan(value):
            return None
        if abs(value) < limits.smallest_normal:
            return 0.0
        return min(max(value, float(limits.min)), float(limits.max))
    return value


@lru_cache(maxsize=1000)
def in_duckdb(statement: str) -> str:
    """T-SQL as DuckDB reads it: its LIKE knows sets of letters, its types and some functions have other names."""
    types = {exp.DataType.Type.NVARCHAR: "TEXT", exp.DataType.Type.VARCHAR: "TEXT", exp.DataType.Type.FLOAT: "DOUBLE"}

    def rewritten(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.National):
            return exp.Literal.string(node.this)
        if isinstance(node, exp.Collate):
            return node.this
        if isinstance(node, exp.DataType) and node.this in types:
            return exp.DataType.build(types[node.this])
        if isinstance(node, exp.Trim):  # DuckDB's removes blanks of every kind
            node.set("expression", exp.Literal.string(" "))
        if isinstance(node, exp.Like):
            pattern = re.sub(r"%", ".*", str(node.expression.name).replace(".", "[.]")).replace("[^0-9[.]]", "[^0-9.]")
            return exp.func("regexp_full_match", node.this, exp.Literal.string(pattern), exp.Literal.string("s"))
        if isinstance(node, exp.Convert):  # of a hash: DuckDB's is a text already
            return node.expression
        if isinstance(node, exp.Add) and any(
            side.is_string or isinstance(side.unnest(), exp.DPipe) for side in (node.this, node.expression)
        ):
            return exp.DPipe(this=node.this, expression=node.expression)
        if isinstance(node, exp.Div) and isinstance(node.this, exp.Cast) and node.this.is_type("BIGINT"):
            return exp.IntDiv(this=node.this, expression=node.expression)
        if isinstance(node, exp.Anonymous) and node.name == "NCHAR":
            return exp.func("chr", *node.expressions)
        if isinstance(node, exp.Anonymous) and node.name == "DATALENGTH":
            return exp.Paren(this=exp.func("length", *node.expressions) * 2)
        return node

    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(10 * usual)  # sqlglot reads a CASE inside a CASE by recursion, from wherever a test stands
    try:
        whole = exp.Paren(this=sqlglot.parse_one(statement, read="tsql"))
        for node in reversed(list(whole.walk(bfs=True))):
            other = rewritten(node)
            if other is not node:
                node.replace(other)
        return str(whole.this.sql(dialect="duckdb"))
    finally:
        sys.setrecursionlimit(usual)

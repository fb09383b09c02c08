"""DuckDB: one statement for a question about all parts of a level."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privet
from privet.kernel.additive import AdditiveModel
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain


def level_table(tmp_path: Path) -> tuple[privet.ProtectedTable, Domain]:
    eight = tuple(str(i) for i in range(8))
    names = ("a", "b", "c", "d", "e")
    domain = Domain((*(Nominal(name, eight) for name in names), Nominal("y", ("0", "1"))), target="y")
    frame = pd.DataFrame(np.random.default_rng(1).integers(0, 8, (500, 6)).astype(str), columns=[*names, "y"])
    frame.to_csv(tmp_path / "level.csv", index=False)
    return privet.open(tmp_path / "level.csv", domain, budget=100, access="push-down"), domain


def test_a_select_over_64_parts_is_one_statement_besides_the_node_table(
    tmp_path: Path, statements: Callable[[Any], Callable[[], list[str]]]
) -> None:
    table, _ = level_table(tmp_path)
    above = table.partition("a")
    above.count(1)
    parts = above.partition("b")
    log = statements(table._session.engine)
    assert len(parts.select("max", 1)) == 64
    create, select = log()
    assert create.startswith("CREATE TABLE nodes") and select.startswith("SELECT")
    parts.select("gini", 1)
    assert len(log()) == 3
    table.close()


@pytest.mark.parametrize(
    "question",
    [
        "count",
        "histogram",
        "sum",
        "quantile",
        "thresholds",
        "residuals",
        "pairs",
        "histograms",
        "majority",
        "coins",
    ],
)
def test_every_question_about_parts_is_one_statement(
    tmp_path: Path, statements: Callable[[Any], Callable[[], list[str]]], question: str
) -> None:
    with_number = Domain(
        (
            Nominal("a", tuple(str(i) for i in range(8))),
            Numeric("x", Fraction(0), Fraction(9), Fraction(1)),
            Nominal("y", ("0", "1")),
        ),
        target="y",
    )
    frame = pd.DataFrame({"a": list("01234567") * 3, "x": range(24), "y": list("01") * 12})
    frame.to_csv(tmp_path / "small.csv", index=False)
    with privet.open(tmp_path / "small.csv", with_number, budget=100, access="push-down") as table:
        parts = table.partition("a")
        parts.count(1)
        ask_parts = {
            "count": lambda: parts.count(1),
            "histogram": lambda: parts.histogram("a", "y", epsilon=1),
            "sum": lambda: parts.mean("x", 1),
            "quantile": lambda: parts.median("x", 1),
            "thresholds": lambda: parts.select("max", 1, thresholds=True),
            "pairs": lambda: parts.select("max", 1, attributes=[("x", 3), ("x", 5)]),
            "histograms": lambda: parts.histograms([[("x",), ("a", "y")]] * 8, 1),
            "majority": lambda: parts.majority("x", 1),
            "coins": lambda: table.scatter(8, 1).count(1),
            "residuals": lambda: parts.select_residuals(AdditiveModel((0, 0)), [("a",), ("a", "x")], (9, 9), 1),
        }
        log = statements(table._session.engine)
        assert len(ask_parts[question]()) == 8
        asked = [statement for statement in log() if not statement.startswith(("CREATE", "DROP"))]
        assert len(asked) == 1

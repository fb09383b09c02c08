"""Spark: the compiled statements are the golden ones, and words stand only inside quotes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from kernel.engines.spark.frames import engine_over
from kernel.engines.test_sql_golden import ASK, DOMAIN, PARTS, TYPES
from sqlglot import exp

from privet.kernel.engines.contract import CountQuery

pytestmark = pytest.mark.xdist_group("spark")

GOLDEN = Path(__file__).parents[1] / "golden" / "spark"
UPDATE = os.environ.get("PRIVET_UPDATE_GOLDEN") == "1"


@pytest.fixture(scope="module")
def compiled() -> dict[str, list[str]]:
    """Every statement the engine runs, by the name of its golden file."""
    from privet.kernel.engines.spark.engine import SparkEngine

    statements: dict[str, list[str]] = {}
    seen: list[exp.Expression] = []
    with pytest.MonkeyPatch.context() as patch:
        run = SparkEngine._frame
        patch.setattr(SparkEngine, "_frame", lambda engine, tree: (seen.append(tree), run(engine, tree))[1])
        engine = engine_over([], DOMAIN, TYPES)
        statements["coding"] = [tree.sql(dialect="spark", pretty=True) for tree in seen]
        seen.clear()
        questions: dict[str, Callable[[Any], Any]] = {
            "nodes": lambda engine: engine.exact_counts(CountQuery(PARTS, ((),))),
            **{name: of for name, of in ASK.items() if name != "coins"},
            "coins": lambda engine: engine.exact_counts(CountQuery(PARTS.scatter(3, 7), ((),))),
        }
        for name, question in questions.items():
            question(engine)
            statements[name] = [tree.sql(dialect="spark", pretty=True) for tree in seen]
            seen.clear()
        engine.close()
    return statements


def test_the_compiled_sql_is_the_golden_one(compiled: dict[str, list[str]]) -> None:
    if UPDATE:
        GOLDEN.mkdir(exist_ok=True)
        for name, statements in compiled.items():
            (GOLDEN / f"{name}.sql").write_text("".join(f"{each};\n" for each in statements), encoding="utf-8")
    golden = {path.stem: path.read_text(encoding="utf-8") for path in GOLDEN.glob("*.sql")}
    assert golden == {name: "".join(f"{each};\n" for each in statements) for name, statements in compiled.items()}


def test_what_people_wrote_stands_only_inside_quotes(compiled: dict[str, list[str]]) -> None:
    for statement in (each for statements in compiled.values() for each in statements):
        bare = re.sub(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`", "", statement, flags=re.DOTALL)
        assert not re.search(r"drop|wage|sex|many|maybe|order|people|--|;|['\"`]", bare, re.IGNORECASE)


def test_after_coding_a_statement_has_neither_texts_nor_nested_questions(compiled: dict[str, list[str]]) -> None:
    for name, statements in compiled.items():
        for tree in map(lambda each: sqlglot.parse_one(each, read="spark"), statements if name != "coding" else []):
            assert not [each for each in tree.find_all(exp.Literal) if each.is_string]
            assert all(isinstance(each.parent, exp.From) for each in tree.find_all(exp.Subquery))
            assert not list(tree.find_all(exp.Exists, exp.Command, exp.Union))

"""The SQL that leaves privet, written down: a change of it is read by a person before it is accepted.

PRIVET_UPDATE_GOLDEN=1 writes the files in `golden/` anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import numpy as np
import pytest
import sqlglot
from postgres_server import shared_server
from sqlglot import exp

from privet.kernel import source_of
from privet.kernel.additive import AdditiveModel
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CorrectQuery, CountQuery, GridQuery, ResidualQuery, SumQuery
from privet.kernel.engines.duckdb.engine import DuckDBEngine, DuckDBSource
from privet.kernel.rows import Condition, Rows, Split

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("PRIVET_UPDATE_GOLDEN") == "1"

SEX = 'sex"; DROP TABLE coded; --'
HOSTILE = ("f'); DROP TABLE coded; --", 'm"', "(select 1)")
DOMAIN = Domain(
    (
        Nominal(SEX, HOSTILE, other=True),
        Numeric("order", Fraction(0), Fraction(9), Fraction(1, 2), edges=(Fraction(3),), missing=True),
        Nominal("wage's group", (1, 2.5, "x"), missing=True),
        Nominal("select", (True, False)),
        Nominal("many", tuple(f"'{i}" for i in range(33))),
        Nominal("y", ("no", "yes", "maybe")),
    ),
    target="y",
)
TYPES = ["VARCHAR", "DOUBLE", "DOUBLE", "BOOLEAN", "VARCHAR", "VARCHAR"]


# Two kinds of steps: rows that meet conditions, then a split of its own for each part and one that closes.
KEPT = Rows().divide([Split(SEX)], DOMAIN).keep([3, 0, 1], (Condition("order", None, 2, 15), Condition("y", (0, 2))))
PARTS = KEPT.divide([Split("order", (4, 9)), None, Split("select")], DOMAIN)


def _residuals() -> ResidualQuery:
    table = np.arange(12, dtype=np.int32).reshape(4, 3) - 6
    model = AdditiveModel((10, -20, 0), (((SEX,), table),))
    return ResidualQuery(PARTS, model, (("order",), (SEX, "select")), "y", (1024, 512, 100))


def _correct() -> CorrectQuery:
    """A term of three columns."""
    table = np.arange(4 * 2 * 4 * 3, dtype=np.int32).reshape(4, 2, 4, 3) % 7
    return CorrectQuery(PARTS, AdditiveModel((10, -20, 0), (((SEX, "select", "wage's group"), table),)), "y")


ASK: dict[str, Callable[[DuckDBEngine], Any]] = {
    "counts": lambda engine: engine.exact_counts(CountQuery(PARTS, ((), ("order", "y"), ("many", "y")))),
    "grid": lambda engine: engine.exact_grid(GridQuery(PARTS, ("order", SEX), "y")),
    "residuals": lambda engine: engine.exact_residuals(_residuals()),
    "correct": lambda engine: engine.exact_correct(_correct()),
    "snapshot": lambda engine: engine.snapshot(),
    "sums": lambda engine: engine.exact_sums(SumQuery(Rows(), "order")),
    "coins": lambda engine: engine._numbering(PARTS.scatter(3, 7)),
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[exp.Expression]]:
    """Every statement the engine runs, as syntax trees, by the name of its golden file."""
    folder = tmp_path_factory.mktemp("golden")
    quoted = [f'"{name.replace(chr(34), chr(34) * 2)}" {kind}' for name, kind in zip(DOMAIN.names, TYPES, strict=True)]
    with duckdb.connect(str(folder / "people.db")) as connection:
        connection.execute(f'CREATE TABLE "it\'s ""t" ({", ".join(quoted)})')
        connection.execute(
            'COPY (FROM "it\'s ""t") TO \'people.csv\' (HEADER)'.replace("people.csv", f"{folder}/people.csv")
        )
    statements: dict[str, list[exp.Expression]] = {}
    home = os.getcwd()
    os.chdir(folder)  # the path in the statement must be the same everywhere
    try:
        for name, source in {
            "csv": DuckDBSource(Path("people.csv")),
            "table": DuckDBSource(Path("people.db"), "it's \"t"),
        }.items():
            seen: list[exp.Expression] = []
            with pytest.MonkeyPatch.context() as patch:
                run = DuckDBEngine._run
                patch.setattr(
                    DuckDBEngine,
                    "_run",
                    lambda engine, tree, run=run, seen=seen: (seen.append(tree), run(engine, tree))[1],
                )
                engine = DuckDBEngine(source, DOMAIN)
                statements[f"coding_{name}"] = list(seen)
                if name == "table":
                    engine._numbering(PARTS)
                    statements["nodes"] = seen[1:]
                    for question, ask in ASK.items():
                        before = len(seen)
                        ask(engine)
                        statements[question] = seen[before:]
                engine.close()
    finally:
        os.chdir(home)
    return statements


@pytest.mark.parametrize("name", ["coding_csv", "coding_table", "nodes", *ASK])
def test_the_compiled_sql_is_the_golden_one(compiled: dict[str, list[exp.Expression]], name: str) -> None:
    text = "".join(tree.sql(dialect="duckdb", pretty=True) + ";\n" for tree in compiled[name])
    path = GOLDEN / f"{name}.sql"
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_golden_file_is_of_a_statement_that_still_exists(compiled: dict[str, list[exp.Expression]]) -> None:
    assert {path.stem for path in GOLDEN.glob("*.sql")} == set(compiled)


def test_what_people_wrote_stands_only_inside_quotes(compiled: dict[str, list[exp.Expression]]) -> None:
    for trees in compiled.values():
        for tree in trees:
            bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", "", tree.sql(dialect="duckdb"))
            assert not re.search(r"drop|wage|sex|many|maybe|order(?! by)|people|--|;|['\"]", bare, re.IGNORECASE)


def test_after_coding_no_statement_contains_a_word_of_the_domain(compiled: dict[str, list[exp.Expression]]) -> None:
    allowed = re.compile(r"[cg][0-9]+|node|nodes[0-9]+|coded|[qknseotw]|[zdeab][0-9]+|everything|layer|owned")
    for name in ("nodes", *ASK):
        for tree in compiled[name]:
            assert not [each for each in tree.find_all(exp.Literal) if each.is_string]
            assert all(allowed.fullmatch(each.name) for each in tree.find_all(exp.Identifier))


def test_no_statement_has_a_subquery_that_an_analyst_could_reach(compiled: dict[str, list[exp.Expression]]) -> None:
    for name in ("nodes", *ASK):
        for tree in compiled[name]:
            # only FROM items are nested: no scalar subquery in a condition, a key or a value
            assert all(isinstance(each.parent, exp.From) for each in tree.find_all(exp.Subquery))
            assert not list(tree.find_all(exp.Exists, exp.Command))


# -- PostgreSQL: the same questions, each one statement over the source ---------------------------

STORED = {"VARCHAR": "text", "DOUBLE": "double precision", "BOOLEAN": "boolean"}
ASK_POSTGRES: dict[str, Callable[[Any], Any]] = {
    **{name: ask for name, ask in ASK.items() if name != "coins"},
    "coins": lambda engine: engine.exact_counts(CountQuery(PARTS.scatter(3, 7), ((),))),
}


def _noted(run: Callable[..., Any], statements: list[str]) -> Callable[..., Any]:
    return lambda link, text, *then: (statements.append(text), run(link, text, *then))[1]


@pytest.fixture(scope="module")
def sent() -> Iterator[dict[str, list[str]]]:
    """Every statement that reaches a server, by the name of its golden file."""
    server = shared_server()
    from privet.kernel.engines.postgres.link import Link

    types = [*TYPES[:2], "numeric", TYPES[3], "char(9)", TYPES[5]]
    quoted = [
        f'"{name.replace(chr(34), chr(34) * 2)}" {STORED.get(kind, kind)}'
        for name, kind in zip(DOMAIN.names, types, strict=True)
    ]
    table = '"golden.schema"."it\'s ""t"'
    server.run('CREATE SCHEMA "golden.schema"', f"CREATE TABLE {table} ({', '.join(quoted)})")
    statements: list[str] = []
    found: dict[str, list[str]] = {}
    with pytest.MonkeyPatch.context() as patch:
        for method in ("run", "numbers"):
            patch.setattr(Link, method, _noted(getattr(Link, method), statements))
        engine = source_of(server.address(table=quote(table))).open(DOMAIN)
        found["coding"] = statements[-1:]
        for name, ask in ASK_POSTGRES.items():
            before = len(statements)
            ask(engine)
            found[name] = statements[before:]
        engine.close()
    yield found
    server.run('DROP SCHEMA "golden.schema" CASCADE')


@pytest.mark.parametrize("name", ["coding", *ASK_POSTGRES])
def test_the_statements_to_postgresql_are_the_golden_ones(sent: dict[str, list[str]], name: str) -> None:
    (statement,) = sent[name]
    text = sqlglot.parse_one(statement, read="postgres").sql(dialect="postgres", pretty=True) + ";\n"
    path = GOLDEN / "postgres" / f"{name}.sql"
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    assert {path.stem for path in path.parent.glob("*.sql")} == set(sent)


def test_in_a_statement_to_postgresql_what_people_wrote_stands_only_inside_quotes(sent: dict[str, list[str]]) -> None:
    for (statement,) in sent.values():
        bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", "", statement)
        assert not re.search(r"drop|wage|sex|many|maybe|order(?! by)|golden|--|;|['\"]", bare, re.IGNORECASE)


def test_in_a_statement_to_postgresql_only_sources_are_nested(sent: dict[str, list[str]]) -> None:
    for (statement,) in sent.values():
        tree = sqlglot.parse_one(statement, read="postgres")
        assert all(isinstance(each.parent, exp.From) for each in tree.find_all(exp.Subquery))
        assert not list(tree.find_all(exp.Exists, exp.Command))

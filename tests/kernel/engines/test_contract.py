"""The contract of an engine, held against the reference engine: every storage, every path, with and without shortcuts.

Tables are drawn by hypothesis: columns of every type under hostile names, values on and beside boundaries, missing and
undeclared ones, empty tables, rows that are there three times. Questions of every kind are asked about parts of parts.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kernel.engines.comparison import (
    PEOPLE,
    PEOPLE_TYPES,
    SPARK,
    SPARK_AT_LENGTH,
    ask,
    assert_same,
    by_sex_and_age,
    memory_of,
    people,
    people_queries,
)
from kernel.engines.hard_tables import WORST, asked_of, programs, questions, worst_questions
from mssql_stand_in import in_duckdb
from postgres_server import shared_server
from sizes import long, part_of, sized
from sqlglot import exp

from privet.kernel.column import MAX_GRID, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import LARGEST_SUM, CountQuery, GridQuery, SumQuery
from privet.kernel.engines.duckdb import engine as duckdb_engine
from privet.kernel.engines.memory import engine as memory
from privet.kernel.engines.memory import residuals, stream
from privet.kernel.engines.mssql import engine as mssql
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.engines.sql import sql, statement
from privet.kernel.rows import Rows

# No explain phase: where an engine is wrong, it takes minutes to say little.
PROPERTY = settings(derandomize=True, deadline=None, phases=(Phase.generate, Phase.shrink))
IN_PROCESS = ("memory", "batches")  # batches: rows in batches, three at a time
STORED = ("csv", "parquet", "table", "postgres")
TRANSLATED = "mssql"  # statements for SQL Server, run by DuckDB
EVERYWHERE = (*IN_PROCESS, *STORED, TRANSLATED, SPARK)

both_ways = pytest.mark.parametrize("shortcuts", [True, False], ids=["shortcuts", "plain"])


def examples(count: int) -> Any:
    """So many examples; fewer at a small size."""
    fewer = settings(PROPERTY, max_examples=part_of(count, "examples of an engine"))
    return lambda test: sized(fewer(test))


def paths(engine: Any) -> Iterator[Any]:
    """Every way to the rows of an engine: its own, the merged rows in memory, the rows in batches."""
    yield engine
    for other in ("snapshot", "stream"):
        if hasattr(engine, other):
            yield getattr(engine, other)()


def check_paths(
    stores: Any,
    storage: str,
    shortcuts: bool,
    domain: Domain,
    types: Sequence[str],
    rows: Sequence[Any],
    queries: Sequence[Any],
) -> None:
    with stores.open(storage, domain, types, rows, shortcuts=shortcuts) as (engine, held):
        reference = ReferenceEngine(domain, held)
        expected = [ask(reference, query) for query in queries]
        if hasattr(engine, "_passing"):
            engine._passing = _fell_back
        for path in paths(engine):
            for query, answer in zip(queries, expected, strict=True):
                assert_same(ask(path, query), answer)


def _fell_back() -> None:
    raise AssertionError("DuckDB refused a statement; the rows in batches would have answered in its place")


# --- the same answers ------------------------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("storage", IN_PROCESS)
@given(asked=questions())
@examples(60)
def test_every_answer_is_that_of_the_reference(stores: Any, storage: str, shortcuts: bool, asked: Any) -> None:
    check_paths(stores, storage, shortcuts, *asked)


@pytest.mark.parametrize("storage", STORED)
@given(asked=questions(), shortcuts=st.booleans())
@examples(16)
def test_every_answer_about_stored_rows_is_that_of_the_reference(
    stores: Any, storage: str, shortcuts: bool, asked: Any
) -> None:
    check_paths(stores, storage, shortcuts, *asked)


@given(asked=questions(), shortcuts=st.booleans())
@examples(8)
def test_every_answer_in_translation_is_that_of_the_reference(stores: Any, shortcuts: bool, asked: Any) -> None:
    check_paths(stores, TRANSLATED, shortcuts, *asked)


@pytest.mark.parametrize("storage", [SPARK])
@given(asked=questions(), shortcuts=st.booleans())
@examples(4)
def test_every_answer_of_spark_is_that_of_the_reference(stores: Any, storage: str, shortcuts: bool, asked: Any) -> None:
    check_paths(stores, storage, shortcuts, *asked)


@pytest.mark.parametrize("storage", [*IN_PROCESS, *STORED, pytest.param(TRANSLATED, marks=long), SPARK_AT_LENGTH])
def test_no_value_of_any_type_makes_an_engine_raise(stores: Any, storage: str) -> None:
    check_paths(stores, storage, True, *WORST, worst_questions(WORST[0]))


@both_ways
@given(data=st.data(), weights=st.lists(st.integers(1, 5) | st.integers(1, 2**30), min_size=30, max_size=30))
@examples(40)
def test_a_row_counts_as_often_as_its_weight_says(shortcuts: bool, data: st.DataObject, weights: list[int]) -> None:
    """Rows of a snapshot are merged; their weights are as many as a table has rows."""
    rows = people(30)
    queries = data.draw(asked_of(PEOPLE, data.draw(programs(PEOPLE, rows)), [("sex", "ill")]))
    reference = ReferenceEngine(PEOPLE, rows, weights)
    engine = memory_of(reference, shortcuts)
    for query in queries:
        assert_same(ask(engine, query), ask(reference, query))


SHORTCUTS = (
    (memory.Recall, "_below"),
    (memory.Recall, "_keep"),
    (statement, "together"),
    (residuals, "_groups"),
    (memory, "_continues"),
    (memory.MemoryEngine, "_level"),
)


@pytest.mark.parametrize("storage", [*IN_PROCESS, *STORED, TRANSLATED])
def test_without_shortcuts_no_answer_is_made_of_another(
    stores: Any, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(*_: Any, **__: Any) -> None:
        raise AssertionError("a shortcut was taken")

    for owner, name in SHORTCUTS:
        monkeypatch.setattr(owner, name, taken)
    queries = [query for level in (Rows(), by_sex_and_age()) for query in people_queries(level)]
    check_paths(stores, storage, False, PEOPLE, PEOPLE_TYPES, people(30), [*queries, *queries[::-1]])


# --- sums of more rows than 64 bits hold ------------------------------------------------------------------------------

LAST = MAX_GRID - 1
ENOUGH = LARGEST_SUM // LAST  # rows at the last point of the largest grid
LARGE = Domain((Numeric("x", Fraction(0), Fraction(LAST), Fraction(1), bins=1),))
SUM = SumQuery(Rows(), "x")


@pytest.mark.parametrize("weights", [(ENOUGH - 1, 1, 1), (ENOUGH, 2, 1), (2**62, 1, 1), (1, 2**62, 1)])
def test_a_sum_in_memory_stops_at_the_largest_whole_number(weights: tuple[int, ...]) -> None:
    reference = ReferenceEngine(LARGE, [(LAST,), (LAST,), (1,)], weights)
    assert_same(ask(memory_of(reference), SUM), ask(reference, SUM))
    assert min(LAST * (weights[0] + weights[1]) + 1, LARGEST_SUM) == reference.exact_sums(SUM)[1][0]


def test_a_sum_of_batches_stops_there_too(stores: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(1,), (2,), (0,), (4,), (5,), (1,)]
    with stores.open("batches", LARGE, ["BIGINT"], rows) as (engine, _):
        assert engine.exact_sums(SUM)[1].tolist() == [13]
        monkeypatch.setattr(stream, "LARGEST_SUM", 10)
        assert engine.exact_sums(SUM)[1].tolist() == [10]


def on_postgres(tree: Any) -> Any:
    from privet.kernel.engines.postgres import engine as postgres

    return shared_server().run(postgres.DIALECT.sql(tree))


RUN: dict[str, Callable[[Any], Any]] = {
    "duckdb": lambda tree: duckdb.execute(duckdb_engine.DIALECT.sql(tree)).fetchall(),
    "mssql": lambda tree: duckdb.execute(in_duckdb(mssql.DIALECT.sql(tree))).fetchall(),
    "postgres": on_postgres,
}


@pytest.mark.parametrize("run", RUN.values(), ids=RUN)
@pytest.mark.parametrize("indices", [(LARGEST_SUM, 0), (LARGEST_SUM, 1), (2**62, 2**62, 2**62), (5, 2**62)])
def test_a_sum_in_a_statement_stops_there_too(run: Callable[[Any], Any], indices: tuple[int, ...]) -> None:
    """No test has rows enough; numbers as large as their sums stand in for them."""
    rows = [exp.select(sql.num(0).as_("node"), sql.big(sql.num(index)).as_("g0")) for index in indices]
    numbered = functools.reduce(lambda one, other: exp.union(one, other, distinct=False), rows)
    tree = sql.sums(SUM, exp.From(this=exp.to_table("numbered")), LARGE)
    assert isinstance(tree, exp.Select)
    assert run(tree.with_("numbered", as_=numbered)) == [(0, 0, len(indices), min(sum(indices), LARGEST_SUM))]


# --- an answer is a sum over rows ------------------------------------------------------------------------------------


def numbers(engine: Any, query: Any) -> Counter[tuple[Any, ...]]:
    """The numbers of an answer by their place, without zeros: those of several tables can be added."""
    if isinstance(query, GridQuery):
        answer = [
            ((at, part, index, label), count)
            for at, found in enumerate(engine.exact_grid(query))
            for part, index, counts in zip(found.part, found.index, found.exact_counts, strict=True)
            for label, count in enumerate(counts)
        ]
    else:
        arrays = enumerate(ask(engine, query))
        answer = [((at, *place), count) for at, array in arrays for place, count in np.ndenumerate(array)]
    return Counter({tuple(map(int, place)): int(count) for place, count in answer if count})


def one_by_one(domain: Domain, rows: Sequence[Any], query: Any) -> Counter[tuple[Any, ...]]:
    """What the reference says about each row alone, added up."""
    total: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        total.update(numbers(ReferenceEngine(domain, [row]), query))
    return total


@st.composite
def reordered(draw: Callable[..., Any]) -> tuple[Any, ...]:
    domain, types, rows, queries = draw(questions())
    return domain, types, draw(st.permutations(rows)), queries


@both_ways
@pytest.mark.parametrize("storage", IN_PROCESS)
@given(asked=reordered())
@examples(15)
def test_an_answer_is_the_sum_of_the_answers_about_each_row_alone(
    stores: Any, storage: str, shortcuts: bool, asked: Any
) -> None:
    """So a row's cells depend on no other row, nor does its order matter, nor is a row that is there twice one row."""
    domain, types, rows, queries = asked
    with stores.open(storage, domain, types, rows, shortcuts=shortcuts) as (engine, held):
        for query in queries:
            assert numbers(engine, query) == one_by_one(domain, held, query)


@pytest.mark.parametrize("storage", [*STORED, TRANSLATED, SPARK])
def test_an_answer_about_stored_rows_is_the_sum_of_the_answers_about_two_halves(stores: Any, storage: str) -> None:
    """A table with more of each kind of row, in another order; the engine itself answers about all three."""
    rows, more = people(40), [*people(10, seed=1), *people(40)[::-2]]
    queries = people_queries(by_sex_and_age())

    def found(rows: Sequence[Any]) -> list[Counter[tuple[Any, ...]]]:
        with stores.open(storage, PEOPLE, PEOPLE_TYPES, rows) as (engine, _):
            return [numbers(engine, query) for query in queries]

    for one, other, both in zip(found(rows), found(more), found([*more, *rows]), strict=True):
        assert one + other == both


# --- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", EVERYWHERE)
def test_an_engine_may_be_closed_twice_and_keeps_no_counts(stores: Any, storage: str) -> None:
    with stores.open(storage, PEOPLE, PEOPLE_TYPES, people(20)) as (engine, _):
        for path in list(paths(engine)):
            path.exact_counts(CountQuery(Rows(), (("sex", "ill"),)))
            assert not path.closed
        for path in list(paths(engine))[::-1]:
            path.close()
            path.close()
            assert path.closed and not path._recall._tables


def test_the_reference_holds_no_rows_once_it_is_closed() -> None:
    engine = ReferenceEngine(PEOPLE, people(20))
    engine.close()
    engine.close()
    assert engine.closed and not engine.rows
    assert engine.exact_sums(SumQuery(Rows(), "age"))[0].tolist() == [0]

"""No limit of memory or disk speaks: where DuckDB cannot finish a statement, the same answer comes another way."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import privet
from privet.errors import DomainError
from privet.kernel.additive import AdditiveModel
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CorrectQuery, CountQuery, GridQuery, ResidualQuery, SumQuery
from privet.kernel.engines.duckdb.engine import DuckDBEngine, DuckDBSource
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.rows import Condition, Rows, Split

WIDE = Domain(
    (Numeric("w", Fraction(0), Fraction(10**7), Fraction(1)), Nominal("y", ("a", "b"))),
    target="y",
)
SIZE = 400_000
FRAME = pd.DataFrame({"w": np.arange(SIZE) * 25, "y": np.where(np.arange(SIZE) % 3 == 0, "a", "b")})
PARTS = Rows().divide([Split("y")], WIDE).keep([1, 0], (Condition("w", None, 100, 9 * 10**6),))
MODEL = AdditiveModel((0, 5), ((("w",), np.arange(20, dtype=np.int32).reshape(10, 2)),))
QUERIES = {
    "counts": lambda engine: engine.exact_counts(CountQuery(PARTS, (("w", "y"), ()))),
    "grid": lambda engine: engine.exact_grid(GridQuery(PARTS, ("w", "y"), "y")),
    "sums": lambda engine: engine.exact_sums(SumQuery(PARTS, "w")),
    "residuals": lambda engine: engine.exact_residuals(ResidualQuery(PARTS, MODEL, (("w",),), "y", (1024, 512))),
    "correct": lambda engine: engine.exact_correct(CorrectQuery(PARTS, MODEL, "y")),
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("limits") / "rows.parquet"
    FRAME.to_parquet(path)
    return path


@pytest.fixture
def engine(rows: Path) -> Iterator[DuckDBEngine]:
    engine = DuckDBSource(rows).open(WIDE)
    yield engine
    engine.close()


def flat(answer: object) -> object:
    """Arrays as lists, so that answers can be compared."""
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if isinstance(answer, list | tuple):
        return [flat(item) for item in answer]
    return [flat(value) for value in vars(answer).values()] if hasattr(answer, "__dict__") else answer


@pytest.mark.parametrize("name", QUERIES)
def test_a_statement_that_runs_out_of_memory_is_answered_in_batches(
    engine: DuckDBEngine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = flat(QUERIES[name](MemoryEngine.from_frame(FRAME, WIDE)))
    assert flat(QUERIES[name](engine)) == expected
    refused: list[Exception] = []
    run = DuckDBEngine._run

    def noted(self: DuckDBEngine, tree: object) -> object:
        try:
            return run(self, tree)  # type: ignore[arg-type]
        except duckdb.Error as error:
            refused.append(error)
            raise

    monkeypatch.setattr(DuckDBEngine, "_run", noted)
    for limit in ("64MiB", "6MiB", "3MiB", "1MiB"):
        engine._connection.execute("SET max_temp_directory_size = '0KiB'")
        engine._connection.execute(f"SET memory_limit = '{limit}'")
        assert flat(QUERIES[name](engine)) == expected
    if name == "grid":  # it needs memory for every distinct value
        assert refused


def test_questions_of_no_cost_learn_nothing_from_memory(rows: Path) -> None:
    """The attack: bisect the condition at which a median fails, and so the number of rows below it, for nothing."""
    with privet.open(rows, WIDE, budget="1", access="push-down", ledger=":memory:") as table:
        engine = table._session.engine
        assert isinstance(engine, DuckDBEngine)
        engine._connection.execute("SET max_temp_directory_size = '0KiB'")
        engine._connection.execute("SET memory_limit = '6MiB'")
        for high in (10**3, 10**5, 10**6, 5 * 10**6, 10**7):
            table.where(w=(None, high)).median("w", "1e-9")
        assert table.budget.spent == Fraction(5, 10**9)


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
@pytest.mark.parametrize("path", ["push-down", "snapshot", "stream"])
def test_one_row_with_a_long_text_refuses_no_table(tmp_path: Path, kind: str, path: str) -> None:
    domain = Domain((Nominal("x", ("a", "b"), other=True), Nominal("y", ("p", "q"))))
    file = tmp_path / f"t.{kind}"
    with duckdb.connect(str(file) if kind == "duckdb" else ":memory:") as connection:
        connection.execute("CREATE TABLE t AS SELECT 'a' AS x, 'p' AS y FROM range(1000)")
        connection.execute("INSERT INTO t VALUES (repeat('z', 64000000), 'p')")
        if kind == "parquet":
            connection.execute(f"COPY t TO '{file}' (FORMAT parquet)")
    address = file if kind == "parquet" else f"duckdb:///{file}?table=t"
    with privet.open(address, domain, budget=10**6, access=path) as table:
        assert table.count(10**5) == 1001
        assert table.where(x="<other>").count(10**5) == 1


def test_a_grid_is_no_finer_than_memory_can_hold() -> None:
    with pytest.raises(DomainError, match="at most 16777216 are possible; declare a larger step"):
        Numeric("w", Fraction(0), Fraction(2**24), Fraction(1))


def test_points_are_asked_for_some_parts_at_a_time(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of an answer follows from the domain: a table that holds no rows is never asked for more points."""
    from privet.kernel.questions import numbers

    asked: list[int] = []
    grid = DuckDBEngine.exact_grid
    monkeypatch.setattr(
        DuckDBEngine, "exact_grid", lambda self, query: (asked.append(query.rows.parts), grid(self, query))[1]
    )
    with privet.open(rows, WIDE, budget=10**6, access="push-down", ledger=":memory:") as table:
        parts = table.partition("w")
        monkeypatch.setattr(numbers, "_POINTS", 2**30)
        whole = [float(median) for median in parts.median("w", 10**3)]
        monkeypatch.setattr(numbers, "_POINTS", 3 * (10**7 + 2))
        some = [float(median) for median in parts.median("w", 10**3)]
    assert asked == [10, 3, 3, 3, 1]
    assert np.allclose(whole, some, atol=1000)

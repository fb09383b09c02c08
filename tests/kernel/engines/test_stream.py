"""Rows in batches: only what is asked about is read, and models are those of other paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

import privet
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, SumQuery
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.memory.stream import Batch, StreamEngine
from privet.kernel.rows import Condition, Rows

DOMAIN = Domain(
    (
        Nominal("a", (0, 1, 2)),
        Numeric("x", Fraction(0), Fraction(9), Fraction(1, 2), bins=4, missing=True),
        Nominal("b", ("p", "q")),
        Nominal("y", ("no", "yes", "maybe")),
    ),
    target="y",
)


def test_only_columns_that_are_asked_about_are_read() -> None:
    seen: list[Sequence[str]] = []

    def batches(columns: Sequence[str]) -> Iterator[Batch]:
        seen.append(columns)
        yield {name: np.zeros(5, dtype=np.int64) for name in columns}

    engine = StreamEngine("stream", DOMAIN, batches, lambda: None)
    engine.exact_counts(CountQuery(Rows().keep([0], (Condition("x", None, 0, 3),)), (("b",),)))
    assert seen == [["c1", "c2", "g1"]]
    assert engine.exact_counts(CountQuery(Rows(), ((),)))[0].tolist() == [5]


@pytest.mark.parametrize("learner", [privet.DiffPID3Classifier, privet.BoostedTablesClassifier])
def test_a_model_is_the_same_on_every_path(tmp_path: Path, learner: type) -> None:
    people, domain = privet.datasets.census(3000), privet.datasets.census_domain()
    with duckdb.connect(str(tmp_path / "people.db")) as connection:
        connection.register("generated", people)
        connection.execute("CREATE TABLE people AS SELECT * FROM generated")
    address = f"duckdb:///{tmp_path}/people.db?table=people"
    models = set()
    for path in ("push-down", "stream", "snapshot"):
        with privet.testing.open(address, domain, budget=10, seed=5, access=path) as table:
            models.add(learner(epsilon=1, random_state=0).fit(table).model_.to_json())
    assert len(models) == 1


def test_sums_stop_at_the_largest_number_and_never_turn() -> None:
    """2^39 rows at the end of a grid of 2^24 points: one record more must not make a sum fall by 2^64."""
    fine = Numeric("x", Fraction(0), Fraction(2**24 - 1), Fraction(1), bins=2)
    domain, grid = Domain((fine,)), np.array([2**24 - 1, 0, 5])
    exact = []
    most = 2**39 + 2**16
    for weights in ([2**39, 1, 0], [2**39, 1, 3], [most, 1, 3], [most, 1, 2**60], [2**62, 2**60, 2**61]):
        engine = MemoryEngine(domain, {"x": fine.bin_of(grid)}, {"x": grid}, np.array(weights))
        rows, sums = engine.exact_sums(SumQuery(Rows(), "x"))
        assert rows.tolist() == [sum(weights)]
        exact.append(int(sums[0]))
        assert exact[-1] == min(2**63 - 1, (2**24 - 1) * weights[0] + 5 * weights[2])
    assert exact == sorted(exact)

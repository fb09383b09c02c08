"""Rows in passing: whatever the batches are, the answers are those of all rows at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.column import Nominal, Numeric
from privet.domain import Domain
from privet.kernel.engines.memory import MemoryEngine
from privet.kernel.engines.stream import Batch, StreamEngine
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

DOMAIN = Domain(
    (
        Nominal("a", (0, 1, 2)),
        Numeric("x", Fraction(0), Fraction(9), Fraction(1, 2), bins=4, missing=True),
        Nominal("b", ("p", "q")),
        Nominal("y", ("no", "yes", "maybe")),
    ),
    target="y",
)
MODEL = AdditiveModel((10, -20, 0), ((("a", "b"), np.arange(18, dtype=np.int32).reshape(3, 2, 3) * 40 - 300),))


def engines(seed: int, size: int, cuts: Sequence[int]) -> tuple[MemoryEngine, StreamEngine]:
    """The same rows at once, and in batches that end at some of them."""
    rng = np.random.default_rng(seed)
    grid = rng.integers(-1, 19, size)
    codes = {"a": rng.integers(0, 3, size), "b": rng.integers(0, 2, size), "y": rng.integers(0, 3, size)}
    x = DOMAIN["x"]
    assert isinstance(x, Numeric)
    codes["x"] = x.bin_of(grid)
    arrays = {"c0": codes["a"], "c1": codes["x"], "c2": codes["b"], "c3": codes["y"], "g1": grid}

    def batches(columns: Sequence[str]) -> Iterator[Batch]:
        ends = [0, *sorted(min(cut, size) for cut in cuts), size]
        for start, end in pairwise(ends):
            yield {name: arrays[name][start:end] for name in columns}

    return MemoryEngine(DOMAIN, codes, {"x": grid}), StreamEngine("stream", DOMAIN, batches, lambda: None)


KEPT = Rows().divide([Split("a")], DOMAIN).keep([2, 0], (Condition("x", None, 2, 15),))
PARTS = [Rows(), KEPT, KEPT.divide([Split("x", (4, 9)), None], DOMAIN), KEPT.scatter(3, 7)]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(0, 60), st.lists(st.integers(0, 60), max_size=4), st.sampled_from(PARTS))
def test_batches_add_up(seed: int, size: int, cuts: list[int], rows: Rows) -> None:
    whole, passing = engines(seed, size, cuts)
    query = CountQuery(rows, ((), ("a", "y"), ("x", "y"), ("b",)))
    for one, other in zip(whole.exact_counts(query), passing.exact_counts(query), strict=True):
        assert (one == other).all()
    grid = GridQuery(rows, ("x", "b"), "y")
    for left, right in zip(whole.exact_grid(grid), passing.exact_grid(grid), strict=True):
        assert (left.part == right.part).all() and (left.index == right.index).all()
        assert (left.exact_counts == right.exact_counts).all()
    sums = SumQuery(rows, "x")
    assert np.array_equal(whole.exact_sums(sums), passing.exact_sums(sums))
    assert np.array_equal(*(each.exact_correct(CorrectQuery(rows, MODEL, "y")) for each in (whole, passing)))
    residuals = ResidualQuery(rows, MODEL, (("x",), ("a", "b")), "y", (1024, 512, 100))
    for mine, theirs in zip(whole.exact_residuals(residuals), passing.exact_residuals(residuals), strict=True):
        assert np.array_equal(mine.exact_own, theirs.exact_own)
        assert np.array_equal(mine.exact_others, theirs.exact_others)


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
        with privet.testing.open(address, domain, budget=10, seed=5, path=path) as table:
            models.add(learner(epsilon=1, random_state=0).fit(table).model_.to_json())
    assert len(models) == 1


def test_sums_stop_at_the_largest_number_and_never_turn() -> None:
    """2^32 rows at the end of a grid of 2^31 points: one record more must not make a sum fall by 2^64."""
    fine = Numeric("x", Fraction(0), Fraction(2**31 - 1), Fraction(1), bins=2)
    domain, grid = Domain((fine,)), np.array([2**31 - 1, 0, 5])
    exact = []
    for weights in ([2**32, 1, 0], [2**32, 1, 3], [2**32 + 2, 1, 3], [2**32 + 2, 1, 2**60], [2**62, 2**60, 2**61]):
        engine = MemoryEngine(domain, {"x": fine.bin_of(grid)}, {"x": grid}, np.array(weights))
        rows, sums = engine.exact_sums(SumQuery(Rows(), "x"))
        assert rows.tolist() == [sum(weights)]
        exact.append(int(sums[0]))
        assert exact[-1] == min(2**63 - 1, (2**31 - 1) * weights[0] + 5 * weights[2])
    assert exact == sorted(exact)

"""Rows in passing: only what is asked about is read, and models are those of other paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

import privet
from privet.column import Nominal, Numeric
from privet.domain import Domain
from privet.kernel.engines.stream import Batch, StreamEngine
from privet.kernel.query import (
    Condition,
    CountQuery,
    Rows,
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
        with (
            privet.testing.seeded_noise(5),
            privet.open(address, domain, budget=10, ledger=":memory:", path=path) as table,
        ):
            models.add(learner(epsilon=1, random_state=0).fit(table).model_.to_json())
    assert len(models) == 1

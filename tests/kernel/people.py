"""People of whom every answer is known, in every storage that a table can come from."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from privet.kernel.domain import Domain
from privet.table import Parts

# At this epsilon a count is off with probability below exp(-10000): answers can be compared with the truth.
EXACT = 10_000
LARGE = 1_000_000  # the largest budget there is

DOMAIN = Domain.parse(
    """
    target = "income"
    max_rows = 1000

    [columns.sex]
    kind = "nominal"
    values = ["Female", "Male"]
    other = true
    missing = true

    [columns.age]
    kind = "numeric"
    low = 0
    high = 100
    edges = [20, 40, 60]
    missing = true

    [columns."body height"]
    kind = "numeric"
    low = 1.0
    high = 2.0
    step = 0.1
    bins = 2

    [columns.income]
    kind = "nominal"
    values = ["low", "high"]
    """
)


def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    size = 300
    age = rng.integers(0, 110, size).astype(float)
    age[::17] = np.nan
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(size)],  # not declared: it does not exist
            "sex": rng.choice(np.array(["Female", "Male", "x", None], dtype=object), size, p=[0.5, 0.4, 0.06, 0.04]),
            "age": age,
            "body height": rng.choice([1.0, 1.3, 1.5, 1.7, 2.0], size),
            "income": np.where(np.nan_to_num(age) > 50, "high", "low"),
        }
    )


FRAME = _frame()
# What the domain makes of it.
SEX = FRAME["sex"].map(
    lambda value: "<missing>" if pd.isna(value) else value if value in ("Female", "Male") else "<other>"
)
AGE = FRAME["age"].clip(upper=100)


def module(name: str) -> Any:
    """An optional library: a skip that names it here, a failure where everything must be there."""
    if os.environ.get("CI"):
        return importlib.import_module(name)
    return pytest.importorskip(name)


def write_csv(folder: Path) -> Path:
    FRAME.to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


def write_parquet(folder: Path) -> Path:
    with duckdb.connect() as connection:
        connection.register("frame", FRAME)
        connection.execute(f"COPY (SELECT * FROM frame) TO '{folder}/people.parquet' (FORMAT parquet)")
    return folder / "people.parquet"


def write_table(folder: Path, table: str = "people") -> str:
    with duckdb.connect(str(folder / "people.db")) as connection:
        connection.register("frame", FRAME)
        connection.execute(f'CREATE TABLE "{table}" AS SELECT * FROM frame')
    return f"duckdb:///{folder}/people.db?table={table}"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda folder: FRAME,
    "polars": lambda folder: module("polars").from_pandas(FRAME),
    "arrow": lambda folder: module("pyarrow").Table.from_pandas(FRAME, preserve_index=False),
    "csv": write_csv,
    "csv as text": lambda folder: str(write_csv(folder)),
    "parquet": write_parquet,
    "duckdb": write_table,
}


def counts(parts: Parts) -> dict[str, int]:
    return dict(zip(parts.labels, map(int, parts.count(EXACT)), strict=True))

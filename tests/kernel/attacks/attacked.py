"""A table that is attacked: its rows in every source, and every question about it."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from sizes import few

import privet
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain

EXACT = 10_000  # at this epsilon no noise is to be seen
LARGE = 1_000_000
SOURCES = ("frame", "csv", "parquet", "duckdb", "snapshot")
each_source = pytest.mark.parametrize("kind", few(SOURCES, ("frame", "csv", "duckdb")))

DOMAIN = Domain(
    (
        Nominal("job", ("clerk", "nurse"), other=True),
        Numeric("wage", Fraction(0), Fraction(1000), Fraction(1, 4), bins=4, missing=True),
        Nominal("ill", ("no", "yes")),
    ),
    target="ill",
    max_rows=1000,
)
MODEL = privet.AdditiveModel((0, 100), ((("job",), np.array([[5, 0], [0, 7], [1, 1]], np.int32)),))

QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "count": lambda table: table.count(1),
    "where": lambda table: table.where(job="clerk", wage=(10, 20)).count(1),
    "sum": lambda table: table.sum("wage", 1),
    "mean": lambda table: table.mean("wage", 1),
    "median": lambda table: table.median("wage", 1),
    "quantile": lambda table: table.quantile("wage", 0.9, 1),
    "histogram": lambda table: table.histogram("job", "wage", epsilon=1),
    "select": lambda table: table.select("infogain", 1),
    "thresholds": lambda table: table.select("gini", 1, thresholds=True),
    "select residuals": lambda table: table.select_residuals(MODEL, [("job",), ("job", "wage")], (9, 9), 1),
    "residual sums": lambda table: table.residual_sums(MODEL, ("job", "wage"), (9, 9), 1),
    "parts": lambda table: table.partition("job").partition("wage").count(1),
    "level": lambda table: table.partition("wage").select("max", 1),
    "pairs": lambda table: table.select("gini", 1, attributes=["job", ("wage", 99.5)], mechanism="noisy-max"),
    "exponential": lambda table: table.select("max", 1, mechanism="exponential", monotone=False),
    "majority": lambda table: table.partition("job").majority("wage", 1),
    "histograms": lambda table: table.parts().histograms([[("job",), ("wage", "ill")]], 1),
    "coins": lambda table: table.scatter(3, 7).select("max", 1, attributes=["job", ("wage", 500)]),
    "taken": lambda table: table.partition("job").take([2, 0]).count(1),
}


def people(size: int = 40) -> pd.DataFrame:
    rng = random.Random(size)
    rows = [
        (rng.choice(["clerk", "nurse", "poet"]), rng.randrange(4000) / 4, rng.choice(["no", "yes"]))
        for _ in range(size)
    ]
    return pd.DataFrame(rows, columns=["job", "wage", "ill"]).astype({"wage": object})


def store(frame: pd.DataFrame, kind: str, folder: Path, types: dict[str, str] | None = None) -> Any:
    """A frame where an owner would keep it; columns are texts unless a type is given."""
    if kind == "frame":
        return frame
    if kind in ("csv", "snapshot"):
        frame.to_csv(folder / "people.csv", index=False)
        return folder / "people.csv"
    types = {name: (types or {}).get(name, "VARCHAR") for name in frame.columns}
    with duckdb.connect(str(folder / "people.db")) as connection:
        columns = ", ".join(f'"{name}" {each}' for name, each in types.items())
        connection.execute(f"CREATE OR REPLACE TABLE people ({columns})")
        rows = [
            [
                None if each == "VARCHAR" and pd.isna(value) else value
                for value, each in zip(row, types.values(), strict=True)
            ]
            for row in frame.itertuples(index=False)
        ]
        if rows:
            connection.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(types))})", rows)
        if kind == "parquet":
            connection.execute(f"COPY people TO '{folder}/people.parquet' (FORMAT parquet)")
            return folder / "people.parquet"
    return f"duckdb:///{folder}/people.db?table=people"


def opened(
    frame: pd.DataFrame, kind: str, folder: Path, types: dict[str, str] | None = None, **settings: Any
) -> privet.ProtectedTable:
    folder.mkdir(exist_ok=True)
    source = store(frame, kind, folder, types)
    return (privet.testing.open if "seed" in settings else privet.open)(
        source,
        **{"domain": DOMAIN, "budget": LARGE, "access": "snapshot" if kind == "snapshot" else "push-down", **settings},
    )


def neighbours(row: list[Any] | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table, and the same one with one more row."""
    one = people()
    return one, pd.concat([one, pd.DataFrame([row or ["poet", None, "yes"]], columns=one.columns)], ignore_index=True)


FORK = """
import json, os
from fractions import Fraction
import numpy as np, pandas as pd, privet
from privet import Domain, Nominal
from privet.kernel import ExponentialOverRanges, IntegerLaplace, PermuteAndFlip, Ranges

def in_child(work):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read().decode()
"""


def run_script(script: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", FORK + script, *arguments], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.splitlines()


CANARY = "CANARY-93b1"


def _raiser(text: str) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        try:
            raise ValueError(f"could not convert string to float: '{text}'")
        except ValueError as cause:
            error = RuntimeError(f"row 17: {text}")
            error.add_note(f"the row was {text}")
            raise error from cause

    return fail

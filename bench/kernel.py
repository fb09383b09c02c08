"""The kernel's hot paths: one level of a tree in memory and on DuckDB.

Rows have 14 attributes of 8 values and 2 classes; a level has 64 parts. CPU time, not
wall time; the smallest of several runs; ratios to a bare loop measured in the same run.
DuckDB runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numba import njit

import privet
from bench.result import Result
from privet.kernel import Domain, Nominal

ATTRIBUTES, VALUES, CLASSES = 14, 8, 2
SMALL, LARGE = 10**6, 10**7


def domain() -> Domain:
    columns = [Nominal(f"a{i}", tuple(range(VALUES))) for i in range(ATTRIBUTES)]
    return Domain((*columns, Nominal("y", tuple(range(CLASSES)))), target="y", max_rows=2 * LARGE)


def measure(say: Callable[[str], None]) -> Iterator[Result]:
    per_row = {}
    for rows in (SMALL, LARGE):
        say(f"in memory, {rows} rows")
        bare, level = in_memory(rows)
        per_row[rows] = level / rows
        yield Result(f"bare one-phase histogram, {rows:.0e} rows, 64 parts", bare * 1000, "ms")
        yield Result(f"select for 64 parts in memory, {rows:.0e} rows, over the bare histogram", level / bare, "x", 2)
    yield Result("in memory: cost per row, 1e+07 over 1e+06 rows", per_row[LARGE] / per_row[SMALL], "x", 2)
    with tempfile.TemporaryDirectory(prefix="privet-bench-") as folder:
        for rows in (SMALL, LARGE):
            say(f"DuckDB, {rows} rows")
            path = Path(folder) / f"rows{rows}.duckdb"
            generate(path, rows)
            found = in_own_process(path)
            per_row[rows] = found["cpu"] / rows
            yield Result(f"DuckDB: coding and two levels to 64 parts, {rows:.0e} rows", found["cpu"], "CPU s")
            yield Result(f"DuckDB: peak memory of the process, {rows:.0e} rows", found["peak"], "MB", 400)
    yield Result("DuckDB: cost per row, 1e+07 over 1e+06 rows", per_row[LARGE] / per_row[SMALL], "x", 2)


def in_memory(rows: int) -> tuple[float, float]:
    """CPU seconds of the bare histogram, and of a whole `select` on the same rows and parts."""
    import pandas as pd

    rng = np.random.default_rng(0)
    codes = rng.integers(0, VALUES, (ATTRIBUTES, rows), dtype=np.uint8)
    label = rng.integers(0, CLASSES, rows, dtype=np.uint8)
    frame = pd.DataFrame({**{f"a{i}": codes[i] for i in range(ATTRIBUTES)}, "y": label})
    table = privet.open(frame, domain(), budget="1000")
    parts = table.partition("a0").partition("a1")
    nodes = codes[0].astype(np.int32) * VALUES + codes[1]
    bare = best(lambda: bare_histogram(codes, label, nodes, len(parts)))
    return bare, best(lambda: parts.select("max", 1))


def best(work: Callable[[], Any], runs: int = 7) -> float:
    work()  # compiles, and fills caches
    return min(cpu(work) for _ in range(runs))


def cpu(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@njit(cache=True)
def bare_histogram(codes: Any, label: Any, nodes: Any, parts: int) -> Any:
    """One phase, nothing but the counts, as fast as this loop goes: what any learner has to do for a level."""
    stride = len(codes) * VALUES * CLASSES
    counts = np.zeros(parts * stride, dtype=np.int64)
    block = 4096
    base = np.empty(block, dtype=np.int64)
    for start in range(0, len(label), block):
        end = min(start + block, len(label))
        for row in range(start, end):
            base[row - start] = nodes[row] * stride + label[row]
        for a in range(len(codes)):
            column = codes[a]
            for row in range(start, end):
                counts[base[row - start] + a * VALUES * CLASSES + column[row] * CLASSES] += 1
    return counts


def generate(path: Path, rows: int) -> None:
    connection = duckdb.connect(str(path), config={"memory_limit": "1GB"})
    columns = ", ".join(f"CAST(floor(random() * {VALUES}) AS UTINYINT) AS a{i}" for i in range(ATTRIBUTES))
    connection.execute(
        f"CREATE TABLE t AS SELECT {columns}, CAST(floor(random() * 2) AS UTINYINT) AS y FROM range({rows})"
    )
    connection.close()


def in_own_process(path: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from bench.kernel import on_duckdb; on_duckdb(sys.argv[1])", str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def on_duckdb(path: str) -> None:
    """Open the table, code it, and select on 1, 8 and 64 parts; print CPU seconds and peak memory."""
    start = time.process_time()
    with privet.open(f"duckdb:///{path}?table=t", domain(), budget="1000", ledger=f"{path}.bench.ledger") as table:
        parts = table.partition("a0")
        table.select("max", 1)
        parts.select("max", 1)
        parts.partition("a1").select("max", 1)
    # not ru_maxrss, which begins with what the parent process had
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
    print(json.dumps({"cpu": time.process_time() - start, "peak": peak}))

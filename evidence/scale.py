"""`python -m evidence.scale`: a tree of depth 5 on 10^5 to 10^8 rows, engine by engine, into evidence/scale.json.

Each engine runs in a process of its own on the rows of `bench.engines`; `--rows 1e6` stops there, and `--only ENGINE`
measures one of them again. What was measured before and is not asked for again stays in the file. With 10^8 rows it
takes some 25 minutes and 5 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.engines import DEPTH, generate, in_own_process

RESULT = Path(__file__).with_name("scale.json")
SIZES = {
    "memory": (10**5, 10**6, 10**7),
    "snapshot": (10**5, 10**6),
    "stream": (10**5, 10**6, 10**7, 10**8),
    "csv": (10**6, 10**7, 10**8),
    "median": (10**6, 10**7),
    "push-down": (10**5, 10**6, 10**7, 10**8),
    "postgres": (10**5, 10**6),
    "spark": (10**5, 10**6),
}
TITLES = {
    "memory": "memory",
    "snapshot": "snapshot",
    "stream": "DuckDB, stream",
    "csv": "a CSV file, stream",
    "median": "a median of different values, stream",
    "push-down": "DuckDB, push-down",
    "postgres": "PostgreSQL",
    "spark": "Spark, `local[2]`",
}

Run = dict[str, Any]


def table(found: dict[str, Any]) -> str:
    """What docs/explanation/scale.md shows of it."""
    lines = [
        "| engine | rows | open, CPU s | fit, CPU s | predicted | over bare | peak MB | read, MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for run in found["runs"]:
        law = cost(found["runs"], run["engine"])
        said = f"{law[0] + law[1] * run['rows']:.1f}" if law is not None and run["rows"] > 10**7 else ""
        over = f"{run['fit'] / run['bare']:.2f}" if "bare" in run else ""
        size, taken = f"10^{len(str(run['rows'])) - 1}", f"{run['open']:.2f} | {run['fit']:.2f}"
        read = f"{run['read'] / 1e6:.0f}" if "read" in run and run["engine"] not in ("memory", "snapshot") else ""
        lines.append(f"| {TITLES[run['engine']]} | {size} | {taken} | {said} | {over} | {run['peak']:.0f} | {read} |")
    return "\n".join(lines)


def rates(found: dict[str, Any]) -> str:
    """The two numbers of each engine; none for one whose rows are too few to show in its time."""
    lines = ["| engine | whatever the rows, s | a row at a level, ns |", "|---|---|---|"]
    for engine, title in TITLES.items():
        law = cost(found["runs"], engine)
        if law is not None and law[1] > 0 and engine != "median":  # which has no levels
            lines.append(f"| {title} | {law[0]:.1f} | {law[1] / DEPTH * 1e9:.0f} |")
    return "\n".join(lines)


def cost(runs: Sequence[Run], engine: str) -> tuple[float, float] | None:
    """CPU seconds of a fit: a constant, and so much for a row, through its two largest runs of at most 10^7 rows."""
    known = sorted((run["rows"], run["fit"]) for run in runs if run["engine"] == engine and run["rows"] <= 10**7)
    if len(known) < 2:
        return None
    (few, least), (many, most) = known[-2:]
    slope = (most - least) / (many - few)
    return least - slope * few, slope


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m evidence.scale", description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("--rows", type=float, default=1e8, help="the largest table (1e8)")
    parser.add_argument("--only", nargs="+", metavar="ENGINE", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--result", type=Path, default=RESULT)
    asked = parser.parse_args(arguments)
    result: Path = asked.result
    runs = {(each["engine"], each["rows"]): each for each in _recorded(result)}
    with tempfile.TemporaryDirectory(prefix="privet-scale-") as folder:
        for rows in sorted({size for engine in asked.only for size in SIZES[engine] if size <= asked.rows}):
            path = Path(folder) / "rows.duckdb"
            generate(path, rows)
            for engine in (each for each in asked.only if rows in SIZES[each]):
                found = in_own_process(engine, path, fits=1 if rows > 10**7 else 2)
                if "problem" in found:
                    print(found["problem"], file=sys.stderr)
                    continue
                runs[engine, rows] = {"engine": engine, "rows": rows, **found}
                print(f"{engine}, {rows:.0e} rows: {found}", file=sys.stderr, flush=True)
                order = sorted(runs.values(), key=lambda run: (list(SIZES).index(run["engine"]), run["rows"]))
                content = {"command": "python -m evidence.scale", "cores": os.cpu_count(), "runs": order}
                result.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            path.unlink()
    if result.exists():
        print(table(json.loads(result.read_text(encoding="utf-8"))))
    return 0


def _recorded(result: Path) -> list[Run]:
    return list(json.loads(result.read_text(encoding="utf-8"))["runs"]) if result.exists() else []


if __name__ == "__main__":
    sys.exit(main())

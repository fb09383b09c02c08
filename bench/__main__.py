"""`python -m bench`: print every measurement beside its bound and write build/bench.json."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import kernel, trees

COLUMNS = ("measurement", "value", "bound", "aim", "")


def main() -> int:
    console = Console()
    table = Table(title="privet bench", title_justify="left")
    for heading in COLUMNS:
        table.add_column(heading, justify="left" if heading == "measurement" else "right")
    results, missed = [], 0
    for result in itertools.chain(trees.measure(say), kernel.measure(say)):
        verdict = "" if result.bound is None else "ok" if result.holds else "MISSED"
        bounds = ["" if each is None else f"<= {each:.3g}" for each in (result.bound, result.aim)]
        table.add_row(result.name, result.shown(), *bounds, verdict)
        missed += not result.holds
        results.append(
            {"name": result.name, "value": result.value, "unit": result.unit, "bound": result.bound, "aim": result.aim}
        )
    console.print(table)
    path = Path("build/bench.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    console.print(f"written to {path}")
    return 1 if missed else 0


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""How much code a piece of work crosses: files, lines in them, functions, and calls from one file to another.

A profiler hook notes every call of a function of privet. Each piece of work runs once before, so that what is
imported or compiled on first use is not counted. Whoever follows a count from `table.count` to the released number
reads these files: fewer are better.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from rich.table import Table

import privet

PACKAGE = Path(privet.__file__).parent
ROWS = 2000
AUDITED = ("age", "sex", "region", "income")  # the columns of the tree that is audited

# The same work before questions were values: files, lines, functions, calls between files.
BEFORE = {
    "count": (17, 6412, 105, 57),
    "tree level": (37, 11022, 330, 540),
    "boosted fit": (35, 10239, 268, 965),
    "audit": (35, 6884, 370, 13625),
}


@dataclass(frozen=True)
class Walk:
    """What a piece of work crossed."""

    files: tuple[str, ...]  # paths within the package
    lines: int  # of all these files
    functions: int
    calls: int  # from a function of one file to one of another

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        return len(self.files), self.lines, self.functions, self.calls


def walk(work: Callable[[], object]) -> Walk:
    """Run `work` and return what it crossed."""
    functions: set[tuple[str, str]] = set()
    calls = 0
    root = f"{PACKAGE}/"

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        code, caller = frame.f_code, frame.f_back
        if event != "call" or not code.co_filename.startswith(root):
            return
        functions.add((code.co_filename, code.co_qualname))
        if caller is not None and caller.f_code.co_filename.startswith(root):
            calls += caller.f_code.co_filename != code.co_filename

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    files = sorted({file for file, _ in functions})
    lines = sum(len(Path(file).read_text(encoding="utf-8").splitlines()) for file in files)
    return Walk(tuple(file.removeprefix(root) for file in files), lines, len(functions), calls)


def pieces() -> dict[str, Callable[[], object]]:
    """Return the pieces of work that are walked, by name."""
    people, domain = privet.datasets.census(ROWS, seed=1), privet.datasets.census_domain()
    with privet.testing.seeded_noise(1):  # else the noise decides how often some functions are called
        table = privet.open(people, domain, budget=100)
    few = replace(domain, columns=tuple(column for column in domain.columns if column.name in AUDITED))
    known = people[list(AUDITED)].drop(columns="income")
    tree = privet.ID3Classifier(max_depth=2, domain=few).fit(known, people["income"]).model_
    return {
        "count": lambda: table.count(0.1),
        "tree level": lambda: privet.DiffPID3Classifier(epsilon=1, max_depth=1, random_state=1).fit(table),
        "boosted fit": lambda: privet.BoostedTablesClassifier(epsilon=1, random_state=1).fit(table),
        "audit": lambda: privet.audit(tree, known, sensitive="income").to_html(),
    }


def measure(say: Callable[[str], None]) -> dict[str, Walk]:
    """Return the walk of every piece of work, by name."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that ID3 is not private: the rows are generated
        for name, work in pieces().items():
            say(f"walk: {name}")
            work()
            found[name] = walk(work)
    return found


def shown(walks: Mapping[str, Walk]) -> Table:
    """Return the walks as a table for a terminal, beside those of the code before."""
    table = Table(title="code that is crossed (in brackets: before questions were values)", title_justify="left")
    for heading in ("work", "files", "lines", "functions", "calls between files"):
        table.add_column(heading, justify="left" if heading == "work" else "right")
    for name, found in walks.items():
        pairs = zip(found.numbers, BEFORE[name], strict=True)
        table.add_row(name, *(f"{now:,} ({before:,})" for now, before in pairs))
    return table


def write(walks: Mapping[str, Walk], path: Path) -> None:
    """Write the walks as JSON."""
    content = {name: {**asdict(found), "before": BEFORE[name]} for name, found in walks.items()}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

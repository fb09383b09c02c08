"""`python -m evidence.epsilon`: what docs/explanation/epsilon.md shows, by the function that all pages call.

Nothing is measured: the numbers follow from epsilon alone. A test holds the page to them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from privet.models.epsilon import belief, factor, percent
from privet.report.chart import sheet
from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Panel
from privet.studies.pages.plot import drawing, key, looks_of

DOCS = Path(__file__).parents[1] / "docs"
PAGE, PICTURE = DOCS / "explanation" / "epsilon.md", DOCS / "epsilon.svg"
TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- /table -->)", re.DOTALL)
EPSILONS = (0.01, 0.1, 0.5, 1, 2, 5, 10)
DRAWN = (0.1, 0.5, 1, 2, 5)
ALMOST = 0.9999  # a table tells no larger beliefs apart
BEFORE = (0, 2, 5, *range(10, 101, 10))  # percent; small ones change most


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(table(), text), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"wrote the table of {PAGE.name}, and {PICTURE.name}")
    return 0


def table() -> str:
    """Return the rows of the page: what somebody can believe at most, for each epsilon."""
    heads = ("epsilon", "odds change by at most", "in the table, from 50%", "from 1%")
    lines = [f"| {' | '.join((*heads, 'a fact of a member, from 50%', 'from 1%'))} |", "|---|---|---|---|---|---|"]
    for epsilon in EPSILONS:
        cells = [cell for loss in (epsilon, 2 * epsilon) for cell in (_cell(0.5, loss), _cell(0.01, loss))]
        lines.append(f"| {epsilon:g} | {re.split('= |about ', factor(epsilon))[-1]} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(prior: float, loss: float) -> str:
    """Return a belief in percent; never a whole 100%, which no finite loss gives."""
    after = belief(prior, loss)
    if after > ALMOST:
        return f"over {100 * ALMOST:g}%"
    return percent(after) if prior == 0.5 else f"{100 * after:.2f}%"


def picture() -> str:
    """Return belief afterwards against belief before: being in the table, and a fact of somebody in it."""
    panels = [
        Panel(title, "percent before", tuple(_cells(steps)), y)
        for title, steps, y in (
            ("in the table", 1, "in the table: percent afterwards, at most"),
            ("a fact of a member", 2, "a fact of a member: percent, at most"),
        )
    ]
    looks = looks_of(panels)
    return sheet(
        "What can be believed of a person after a release",
        "by somebody who has every other row, and the answer that tells most",
        [drawing(panel, looks) for panel in panels],
        key(panels[0], looks),
        "python -m evidence.epsilon",
    )


def _cells(steps: int) -> list[Cell]:
    """The limits at several beliefs before, for losses of so many times epsilon."""
    return [
        Cell(f"epsilon {epsilon:g}", before, Estimate(100 * belief(before / 100, steps * epsilon), 0.0, 1))
        for epsilon in DRAWN
        for before in BEFORE
    ]


if __name__ == "__main__":
    sys.exit(main())

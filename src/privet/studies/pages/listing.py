"""The numbers of a panel, row by row: what was published, what a closed form says, ours, and how far apart they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from privet.report.svg import MINUS
from privet.studies.findings import Findings, Panel
from privet.studies.pages.words import amount, errors_text, number_text, ours_text, places


def reading(panels: Sequence[Panel]) -> str:
    """How to read the listings of panels: what stands in them is explained, and nothing else."""
    cells = [cell for panel in panels for cell in panel.cells]
    beside = [number for cell in cells for number in (cell.paper, cell.closed) if number is not None]
    told = "± of ours is a standard error, in brackets the number of repeats"
    if any(number.sd is not None for number in beside):
        told += "; ± of a published number is a standard deviation"
    if any(number.reading for number in beside):
        told += "; (±) is how far a number read off a plot may be misread, which is left out of the difference"
    if beside:
        told = f"The last columns are ours less the other's, in standard errors. {told}"
    return f"{told}."


@dataclass(frozen=True)
class Listing:
    """Heads and rows of words; columns that would be empty are left out, the first two are no numbers."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def groups(self) -> list[tuple[str, list[tuple[str, ...]]]]:
        """The rows of each name, without it."""
        return [(name, [row[1:] for row in rows]) for name, rows in groupby(self.rows, key=lambda row: row[0])]


def listing(panel: Panel) -> Listing:
    """Every cell of a panel, and its levels."""
    heads = ("series", panel.x, "paper", "closed form", "ours ± se (n)", f"{MINUS} paper", f"{MINUS} form")
    shown = places([cell.ours for cell in panel.cells])
    rows = [
        (
            cell.series,
            amount(cell.at),
            number_text(cell.paper),
            number_text(cell.closed),
            ours_text(cell.ours, shown),
            "" if cell.paper is None else errors_text(cell.difference(cell.paper)),
            "" if cell.closed is None else errors_text(cell.difference(cell.closed)),
        )
        for cell in panel.cells
    ]
    rows += [(title, "", "", "", ours_text(level), "", "") for title, level in panel.levels]
    kept = [i for i in range(len(heads)) if i < 2 or any(row[i] for row in rows)]
    return Listing(tuple(heads[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows))


def largest_difference(findings: Findings) -> float | None:
    """The one farthest from zero between ours and published numbers, in standard errors."""
    cells = [cell for panel in findings.panels for cell in panel.cells]
    found = [cell.difference(cell.paper) for cell in cells if cell.paper is not None]
    return max((each for each in found if each is not None), key=abs, default=None)

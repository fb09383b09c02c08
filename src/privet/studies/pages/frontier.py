"""Which series is best where: what a reader takes from a trade-off."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from privet.studies.findings import Cell, Panel
from privet.studies.pages.words import amount


def best(panel: Panel) -> list[tuple[Cell, bool]]:
    """The highest cell at each place from left to right, and whether no other reaches into its 95% interval."""
    by_place: dict[float, list[Cell]] = {}
    for cell in panel.cells:
        if not isinstance(cell.at, str):
            by_place.setdefault(float(cell.at), []).append(cell)
    found = []
    for _, cells in sorted(by_place.items()):
        first, *others = sorted(cells, key=lambda cell: -cell.ours.mean)
        clear = all(other.ours.mean < first.ours.low for other in others) and (first.ours.n > 1 or not others)
        found.append((first, clear))
    return found


def frontier(panel: Panel) -> list[Cell]:
    """The cells that no other beats: none is as high for as little or less, so their heights rise."""
    kept: list[Cell] = []
    for cell, _ in best(panel):
        if not kept or cell.ours.mean > kept[-1].ours.mean:
            kept.append(cell)
    return kept


def best_where(panel: Panel) -> Iterator[str]:
    """Which series is best where, in words: one line for each stretch of the scale."""
    for series, stretch in groupby(best(panel), key=lambda found: found[0].series):
        cells = list(stretch)
        first, last = amount(cells[0][0].at), amount(cells[-1][0].at)
        where = first if first == last else f"{first} to {last}"
        sure = "" if all(clear for _, clear in cells) else " (others come close)"
        yield f"{panel.x} {where}: {series}{sure}"

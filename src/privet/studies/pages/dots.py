"""The numbers of a table on one scale: ours with its interval, what was published, and what a closed form says."""

from __future__ import annotations

import math
from collections.abc import Mapping

from markupsafe import Markup

from privet.report.chart import MARKS, Axis, Look
from privet.report.svg import LETTER, Drawing, join, moved, path, tag, text
from privet.studies.findings import Cell, Number, Panel
from privet.studies.pages.words import amount, number_text, ours_text
from privet.text import shortened, width_of

ROW, WIDTH, TOP, NAMES = 22, 480, 30, 26  # pixels, and letters
ROWS = 60  # at most; all of them are in the table beside it
WIDE = 100  # a scale whose ends differ by this factor is logarithmic


def dots(panel: Panel, shown: Mapping[str, Look]) -> Drawing:
    """A row for each cell, in the order of the table."""
    cells = panel.cells[:ROWS]
    names = [_name(panel, cell) for cell in cells]
    left = LETTER * max(width_of(name) for name in names) + 10
    x = _across(cells, left + 8)
    bottom = TOP + ROW * len(cells)
    drawn = [text(0, 16, panel.y, "title")]
    for tick in x.ticks:
        at = x.at(tick)
        drawn += [path(f"M{at:.1f} {TOP}V{bottom}", "grid"), text(at, bottom + 16, amount(tick), "mid")]
    for i, (cell, name) in enumerate(zip(cells, names, strict=True)):
        y = TOP + ROW * (i + 0.5)
        drawn += [text(left - 6, y + 4, name, "label end"), _row(cell, shown[cell.series], x, y)]
    return Drawing(WIDTH, bottom + 28, join(drawn), f"{panel.title}: {panel.y}")


def _name(panel: Panel, cell: Cell) -> str:
    parts = [cell.series] * (len(panel.series) > 1) + [amount(cell.at)] * (len({each.at for each in panel.cells}) > 1)
    return shortened(", ".join(parts) or cell.series, NAMES)


def _across(cells: tuple[Cell, ...], left: float) -> Axis:
    others = [number for cell in cells for number in (cell.paper, cell.closed) if number is not None]
    values = [cell.ours.mean for cell in cells] + [number.value for number in others]
    low, high = min(values), max(values)
    if low > 0 and high > WIDE * low:
        return Axis(low / 1.5, high * 1.5, left, WIDTH - 12, bend=math.log)
    values += [end for cell in cells for end in (cell.ours.low, cell.ours.high)]
    low, high = (
        max(min(values), low - 0.3 * (high - low or 1)),
        min(max(values), high + 0.3 * (high - low or 1)),
    )
    air = 0.05 * (high - low) or 0.5
    return Axis(low - air, high + air, left, WIDTH - 12)


def _row(cell: Cell, look: Look, x: Axis, y: float) -> Markup:
    drawn = []
    for number, mark in ((cell.paper, look.mark), (cell.closed, "cross")):
        if number is not None:
            drawn.append(_beside(number, mark, x, y))
    drawn.append(path(f"M{x.at(cell.ours.low):.1f} {y:.1f}H{x.at(cell.ours.high):.1f}", "interval"))
    told = tag("title", f"{cell.series}, {amount(cell.at)}: {ours_text(cell.ours)}")
    drawn.append(moved(x.at(cell.ours.mean), y, MARKS[look.mark], told, kind="marks"))
    return look.drawn(*drawn)


def _beside(number: Number, mark: str, x: Axis, y: float) -> Markup:
    half = number.reading + 1.96 * number.se
    low, high, at = (x.at(value) for value in (number.value - half, number.value + half, number.value))
    whisker = [path(f"M{low:.1f} {y - 3:.1f}v6m0 -3H{high:.1f}m0 -3v6", "whisker")] * bool(half)
    title = tag("title", number_text(number))
    return join([*whisker, moved(at, y, MARKS[mark], title, kind="paper", more=" scale(1.35)")])

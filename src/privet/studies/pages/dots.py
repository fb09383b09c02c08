"""The numbers of a table on one scale: ours with its interval, what was published, and what a closed form says."""

from __future__ import annotations

import math
from collections.abc import Mapping

from privet.report.chart import Axis
from privet.studies.findings import Cell, Number, Panel
from privet.studies.pages.drawn import Drawn, text
from privet.studies.pages.look import CLOSED, Look
from privet.studies.pages.words import amount, number_text, ours_text
from privet.trees.layout import LETTER, safe, shortened, width_of

ROW, WIDTH, TOP, NAMES = 22, 480, 30, 26  # pixels, and letters
ROWS = 60  # at most; all of them are in the table beside it
WIDE = 100  # a scale whose ends differ by this factor is logarithmic


def dots(panel: Panel, shown: Mapping[str, Look]) -> Drawn:
    """A row for each cell, in the order of the table."""
    cells = panel.cells[:ROWS]
    names = [_name(panel, cell) for cell in cells]
    left = LETTER * max(width_of(name) for name in names) + 10
    x = _across(cells, left + 8)
    bottom = TOP + ROW * len(cells)
    shapes = text(0, 16, panel.y, "title")
    for tick in x.ticks:
        at = x.at(tick)
        shapes += f'<path class="grid" d="M{at:.1f} {TOP}V{bottom}"/>' + text(
            at, bottom + 16, amount(tick), "", "middle"
        )
    for i, (cell, name) in enumerate(zip(cells, names, strict=True)):
        y = TOP + ROW * (i + 0.5)
        shapes += text(left - 6, y + 4, name, "label", "end") + _row(cell, shown[cell.series], x, y)
    return Drawn(WIDTH, bottom + 28, shapes, f"{panel.title}: {panel.y}")


def _name(panel: Panel, cell: Cell) -> str:
    parts = [cell.series] * (len(panel.series) > 1) + [amount(cell.at)] * (len({each.at for each in panel.cells}) > 1)
    return shortened(", ".join(parts) or cell.series, NAMES)


def _across(cells: tuple[Cell, ...], left: float) -> Axis:
    others = [number for cell in cells for number in (cell.paper, cell.closed) if number is not None]
    values = [cell.ours.mean for cell in cells] + [number.value for number in others]
    low, high = min(values), max(values)
    if low > 0 and high > WIDE * low:
        return Axis(low / 1.5, high * 1.5, left, WIDTH - 12, WIDTH, bend=math.log)
    values += [end for cell in cells for end in (cell.ours.low, cell.ours.high)]
    low, high = (
        max(min(values), low - 0.3 * (high - low or 1)),
        min(max(values), high + 0.3 * (high - low or 1)),
    )
    air = 0.05 * (high - low) or 0.5
    return Axis(low - air, high + air, left, WIDTH - 12, WIDTH)


def _row(cell: Cell, look: Look, x: Axis, y: float) -> str:
    told = safe(f"{cell.series}, {amount(cell.at)}: {ours_text(cell.ours)}", 200)
    drawn = ""
    for number, mark in ((cell.paper, look.mark), (cell.closed, CLOSED.mark)):
        if number is not None:
            drawn += _beside(number, mark, x, y)
    drawn += f'<path class="interval" d="M{x.at(cell.ours.low):.1f} {y:.1f}H{x.at(cell.ours.high):.1f}"/>'
    drawn += f'<g class="marks" transform="translate({x.at(cell.ours.mean):.1f} {y:.1f})">{look.mark}'
    return f'<g class="{look.name}">{drawn}<title>{told}</title></g></g>'


def _beside(number: Number, mark: str, x: Axis, y: float) -> str:
    half = number.reading + 1.96 * number.se
    low, high, at = (x.at(value) for value in (number.value - half, number.value + half, number.value))
    whisker = f'<path class="whisker" d="M{low:.1f} {y - 3:.1f}v6m0 -3H{high:.1f}m0 -3v6"/>' if half else ""
    title = f"<title>{safe(number_text(number), 100)}</title>"
    return f'{whisker}<g class="paper" transform="translate({at:.1f} {y:.1f}) scale(1.35)">{mark}{title}</g>'

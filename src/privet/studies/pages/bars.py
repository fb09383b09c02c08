"""Bars from zero, side by side: each has the mark of its series on top, so that no colour is needed."""

from __future__ import annotations

from collections.abc import Mapping

from privet.report.chart import Axis
from privet.studies.findings import Cell, Panel
from privet.studies.pages.drawn import Drawn, text
from privet.studies.pages.frame import CROSS, FEW, Frame, beside
from privet.studies.pages.look import Look
from privet.studies.pages.words import amount, number_text, ours_text
from privet.trees.layout import safe

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 480, 52, 464, 36, 262
LABELLED = 30  # pixels of a bar that has its number in it


def bars(panel: Panel, shown: Mapping[str, Look]) -> Drawn:
    """A group for each place, a bar for each series that is known there."""
    places = list(dict.fromkeys(cell.at for cell in panel.cells))
    values = [value for cell in panel.cells for value in (cell.ours.mean, cell.ours.mean + cell.ours.se)]
    values += [number.value for cell in panel.cells for number in (cell.paper, cell.closed) if number]
    low, high = min(0.0, *values), max(0.0, *values)
    high = high if high > low else low + 1
    y = Axis(low - 0.08 * (high - low) * (low < 0), high + 0.12 * (high - low), BOTTOM, TOP, TOP)
    x = Axis(-0.5, len(places) - 0.5, LEFT, RIGHT, RIGHT)
    frame = Frame(x, y, panel.y, panel.x, amount, lambda at: amount(places[round(at)]), list(range(len(places))))
    group = (RIGHT - LEFT) / len(places)
    wide = min(0.84 * group / len(panel.series), 64)
    shapes = frame.scales()
    for i, series in enumerate(panel.series):
        drawn = ""
        for cell in panel.line(series):
            middle = x.at(places.index(cell.at)) + wide * (i - (len(panel.series) - 1) / 2)
            drawn += _bar(panel, cell, shown[series], middle, 0.86 * wide, y)
        shapes += f'<g class="{shown[series].name}">{drawn}</g>'
    return Drawn(WIDTH, BOTTOM + 48, shapes, f"{panel.title}: {panel.y} by {panel.x}")


def _bar(panel: Panel, cell: Cell, look: Look, middle: float, wide: float, y: Axis) -> str:
    zero, top = y.at(0.0), y.at(cell.ours.mean)
    told = safe(f"{cell.series}, {panel.x} {amount(cell.at)}: {ours_text(cell.ours)}", 200)
    drawn = (
        f'<rect class="column" x="{middle - wide / 2:.1f}" y="{min(top, zero):.1f}" width="{wide:.1f}" '
        f'height="{abs(top - zero):.1f}"><title>{told}</title></rect>'
    )
    if cell.ours.n >= FEW:
        drawn += f'<path class="whisker" d="M{middle:.1f} {y.at(cell.ours.low):.1f}V{y.at(cell.ours.high):.1f}"/>'
    drawn += f'<g class="marks" transform="translate({middle:.1f} {top:.1f})">{look.mark}</g>'
    for number, mark in ((cell.paper, look.mark), (cell.closed, CROSS)):
        if number is not None:
            drawn += beside(middle, y, number, mark, safe(f"{told} beside {number_text(number)}", 200))
    if wide >= LABELLED and abs(top - zero) > 24:
        drawn += text(middle, zero - 8 if top < zero else zero + 16, f"{cell.ours.mean:.3g}", "value", "middle")
    return drawn

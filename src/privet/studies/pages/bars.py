"""Bars from zero, side by side: each has the mark of its series on top, so that no colour is needed."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from privet.report.chart import MARKS, Axis, Frame, Look, beside
from privet.report.svg import Drawing, join, moved, path, rect, tag, text
from privet.studies.findings import Cell, Panel
from privet.studies.pages.words import FEW, amount, number_text, other_of, ours_text

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 480, 52, 464, 36, 262
LABELLED = 30  # pixels of a bar that has its number in it


def bars(panel: Panel, shown: Mapping[str, Look]) -> Drawing:
    """A group for each place, a bar for each series that is known there."""
    places = list(dict.fromkeys(cell.at for cell in panel.cells))
    values = [value for cell in panel.cells for value in (cell.ours.mean, cell.ours.mean + cell.ours.se)]
    values += [number.value for cell in panel.cells for number in (cell.paper, cell.closed) if number]
    low, high = min(0.0, *values), max(0.0, *values)
    high = high if high > low else low + 1
    y = Axis(low - 0.08 * (high - low) * (low < 0), high + 0.12 * (high - low), BOTTOM, TOP)
    x = Axis(-0.5, len(places) - 0.5, LEFT, RIGHT)
    frame = Frame(x, y, panel.y, panel.x, amount, lambda at: amount(places[round(at)]), list(range(len(places))))
    group = (RIGHT - LEFT) / len(places)
    wide = min(0.84 * group / len(panel.series), 64)
    drawn = []
    for i, series in enumerate(panel.series):
        row = []
        for cell in panel.line(series):
            middle = x.at(places.index(cell.at)) + wide * (i - (len(panel.series) - 1) / 2)
            row.append(_bar(panel, cell, shown[series], middle, 0.86 * wide, y))
        drawn.append(shown[series].drawn(*row))
    return Drawing(WIDTH, BOTTOM + 48, frame.scales() + join(drawn), f"{panel.title}: {panel.y} by {panel.x}")


def _bar(panel: Panel, cell: Cell, look: Look, middle: float, wide: float, y: Axis) -> Markup:
    zero, top = y.at(0.0), y.at(cell.ours.mean)
    told = f"{cell.series}, {panel.x} {amount(cell.at)}: {ours_text(cell.ours)}"
    drawn = [rect(middle - wide / 2, min(top, zero), wide, abs(top - zero), "column", tag("title", told))]
    if cell.ours.n >= FEW:
        drawn.append(path(f"M{middle:.1f} {y.at(cell.ours.low):.1f}V{y.at(cell.ours.high):.1f}", "whisker"))
    drawn.append(moved(middle, top, MARKS[look.mark], kind="marks"))
    for number, mark in ((cell.paper, look.mark), (cell.closed, "cross")):
        if number is not None:
            drawn.append(beside(middle, y, other_of(0.0, number, mark, f"{told} beside {number_text(number)}")))
    if wide >= LABELLED and abs(top - zero) > 24:
        height = zero - 8 if top < zero else zero + 16
        drawn.append(text(middle, height, f"{cell.ours.mean:.3g}", "value mid", stroke="none"))
    return join(drawn)

"""Drawings of panels: what was found, beside what was published and what a closed form lets expect.

They are functions of findings and run nothing again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from privet.report.chart import MARKS, Axis, Frame, Look, Series, looks, scale_of, sheet
from privet.report.svg import Drawing, join, moved, path, tag, text
from privet.studies.findings import At, Panel
from privet.studies.pages.bars import bars
from privet.studies.pages.dots import dots
from privet.studies.pages.frontier import best, frontier
from privet.studies.pages.heat import cells, heat
from privet.studies.pages.words import amount, number_text, other_of, point_of

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 480, 52, 464, 36, 262
CROWD = 7  # lines above which only those that are best somewhere have a band; with a frontier so many have a look
APART = 36  # pixels between two places that are both named

# what is no series: the same in every drawing
PAPER, CLOSED = Look("ink", "ring", 0), Look("ink", "cross", 0)
FRONTIER = Look("best-so-far", width=12)
OTHERS = Look("crowd", "dot", 1)  # of many lines those that lead nowhere
LEVELS = tuple(Look("s8", width=1.4, dash=dash) for dash in ("1 4", "12 4", "6 6", "12 4 1 4", "3 9"))

MAPS = {"heat": heat, "cells": cells}

Looks = Mapping[str, Look]
Span = tuple[float, float]


def looks_of(panels: Sequence[Panel]) -> dict[str, Look]:
    """One look for each series and each level, the same in all panels; rows of a map need none."""
    levels = dict.fromkeys(title for panel in panels for title, _ in panel.levels)
    found = {title: LEVELS[place % len(LEVELS)] for place, title in enumerate(levels)}
    return {**looks(series for panel in panels if panel.kind not in MAPS for series in panel.series), **found}


def drawing(panel: Panel, shown: Looks | None = None, span: Span | None = None) -> Drawing:
    """A panel, in the looks that its series have elsewhere and, for a heat map, on a ramp shared with others."""
    found = looks_of([panel]) if shown is None else shown
    if panel.kind in MAPS:
        return MAPS[panel.kind](panel, span)
    if panel.kind == "bars":
        return bars(panel, found)
    return dots(panel, found) if panel.kind == "table" else _lines(panel, found)


def key(panel: Panel, shown: Looks) -> list[tuple[Look, str]]:
    """What is drawn how; nothing for a map, whose cells say all."""
    if panel.kind in MAPS:
        return []
    leaders = leading(panel)
    named = [(shown[series], series) for series in leaders if panel.kind != "table" or len(panel.series) > 1]
    if panel.kind == "lines":
        others = len(panel.series) - len(leaders)
        named += [(OTHERS, f"{others} others: point at them, or read the table")] * (others > 0)
        named += [(shown[title], title) for title, _ in panel.levels]
        named += [(FRONTIER, "best so far; below: best at each, hollow if close")] * panel.frontier
    named += [(PAPER, "hollow: published")] * any(cell.paper for cell in panel.cells)
    return named + [(CLOSED, "cross: closed form")] * any(cell.closed for cell in panel.cells)


def leading(panel: Panel) -> tuple[str, ...]:
    """The series with a look of their own: all, or of a crowd with a frontier those best somewhere, then on average.

    Eighteen lines on top of each other tell nothing. The others are thin and grey, and the table has their numbers.
    """
    if panel.kind != "lines" or not panel.frontier or len(panel.series) <= CROWD:
        return panel.series
    wins = [cell.series for cell, _ in best(panel)]

    def rank(series: str) -> tuple[int, float]:
        means = [cell.ours.mean for cell in panel.line(series)]
        return -wins.count(series), -sum(means) / len(means)

    chosen = sorted(panel.series, key=rank)[: max(CROWD, len(set(wins)))]
    return tuple(series for series in panel.series if series in chosen)


def picture(panel: Panel) -> str:
    """A panel as a file of its own, for light and dark paper."""
    found = looks_of([panel])
    return sheet(panel.title, "", [drawing(panel, found)], key(panel, found))


def tradeoff(panels: Sequence[Panel], title: str, subtitle: str = "", below: str = "") -> str:
    """Several measures of the same learners over epsilon as one file: what privacy costs, and which is best.

    Below each scale stands the mark of whichever is best there, hollow where others reach into its 95% interval.
    """
    found, drawn = looks_of(panels), [replace(panel, frontier=True) for panel in panels if panel.cells]
    if not drawn:
        return ""
    entries = dict.fromkeys(entry for panel in drawn for entry in key(panel, found))
    return sheet(title, subtitle, [drawing(panel, found) for panel in drawn], entries, below)


def shared_span(panel: Panel, panels: Sequence[Panel]) -> Span | None:
    """From the least to the largest number of all maps of one measure: one ramp lets them be compared."""
    same = [each for each in panels if each.kind in MAPS and each.y == panel.y]
    means = [cell.ours.mean for each in same for cell in each.cells]
    return (min(means), max(means)) if means else None


def _lines(panel: Panel, shown: Looks) -> Drawing:
    across = _Across(panel)
    winners, leaders = {cell.series for cell, _ in best(panel)}, leading(panel)
    lines = []
    for series in sorted(panel.series, key=lambda series: series not in leaders):  # the first are drawn on top
        cells = sorted(panel.line(series), key=lambda cell: across.place(cell.at))
        look = shown[series] if series in leaders else OTHERS
        others = []
        for cell in cells:
            for kind, number, mark in (("paper", cell.paper, look.mark), ("closed form", cell.closed, "cross")):
                if number is not None:
                    told = f"{series}, {panel.x} {amount(cell.at)}: {kind} {number_text(number)}"
                    others.append(other_of(across.place(cell.at), number, mark, told))
        has_band = len(panel.series) <= CROWD or (series in winners and series in leaders)
        points = [point_of(across.place(cell.at), cell.ours) for cell in cells]
        lines.append(Series(look, series, points, others=others, has_band=has_band))
    lines += [Series(shown[title], title, level=point_of(0.0, level)) for title, level in panel.levels]
    y = _up(lines, panel.y)
    frame = Frame(across.axis, y, panel.y, panel.x, amount, across.tell, across.ticks)
    under, below = [], []
    if panel.frontier:
        edge = [f"{across.axis.at(across.place(c.at)):.1f} {y.at(c.ours.mean):.1f}" for c in frontier(panel)]
        under.append(FRONTIER.drawn(path("M" + "L".join(edge), "line round")))
        below.append(text(LEFT - 8, BOTTOM + 64, "best", "end"))
        for cell, clear in best(panel):
            look, at = shown[cell.series], across.axis.at(across.place(cell.at))
            mark = tag("g", MARKS[look.mark], class_="marks" if clear else "paper")
            below.append(look.drawn(moved(at, BOTTOM + 60, mark)))
    height = BOTTOM + (76 if panel.frontier else 48)
    shapes = join([*under, frame.drawn(lines), *below])
    return Drawing(WIDTH, height, shapes, f"{panel.title}: {panel.y} against {panel.x}")


def _up(lines: Sequence[Series], label: str) -> Axis:
    """A scale for all numbers, and for as much of their bands as does not squeeze them."""
    axis = scale_of(lines, BOTTOM, TOP)
    room = 0.25 * (axis.high - axis.low)
    bands = [point for line in lines for point in line.points] + [line.level for line in lines if line.level]
    low = max(axis.low - room, min([axis.low, *(each.low for each in bands)]))
    high = min(axis.high + room, max([axis.high, *(each.high for each in bands)]))
    if "percent" in label:  # nothing is beyond
        low, high = max(low, min(0.0, axis.low)), min(high, max(100.0, axis.high))
    return replace(axis, low=low, high=high)


class _Across:
    """The horizontal scale: numbers, evenly or by their logarithm, or headings one after the other."""

    def __init__(self, panel: Panel) -> None:
        ats = list(dict.fromkeys(cell.at for cell in panel.cells))
        self._names = ats if any(isinstance(at, str) for at in ats) else None
        places = sorted(self.place(at) for at in ats)
        first, last = places[0], places[-1]
        log = panel.log and self._names is None and first > 0
        if first == last:
            first, last = (first / 2, last * 2) if log else (first - 1, last + 1)
        elif self._names is not None:
            first, last = first - 0.3, last + 0.3
        self.axis = Axis(first, last, LEFT + 8, RIGHT - 8, RIGHT, math.log if log else float)
        marked = [self.axis.at(place) for place in places]
        roomy = all(b - a >= APART for a, b in pairwise(marked))
        self.ticks: Sequence[float] = places if roomy or self._names is not None else ()

    def place(self, at: At) -> float:
        return float(self._names.index(at)) if self._names is not None else float(at)

    def tell(self, place: float) -> str:
        if self._names is None:
            return amount(place) if place < 1e5 else _short(place)
        return amount(self._names[round(place)])


def _short(value: float) -> str:
    """Large numbers in as few letters as a scale has room for."""
    power = 1e6 if value >= 1e6 else 1e3
    return f"{value / power:g}{'M' if power == 1e6 else 'k'}"

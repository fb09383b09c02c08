"""A sum of tables as pictures: bars, steps and heat maps.

They show released values and public labels alone, and every label is cleaned, shortened and escaped. All charts of a
model have one scale, so that a small effect looks small beside a large one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from privet.kernel import Date, Domain, Numeric
from privet.models.tables import Table, Tables
from privet.models.tree import cell_text
from privet.report.chart import round_numbers
from privet.report.effects import (
    ACROSS,
    BINS,
    CELLS,
    MARKS,
    SHOWN,
    TABLES,
    Cell,
    Effect,
    by_weight,
    caption,
    cells_of,
    effects,
    grid_of,
    labels_of,
    more,
    shares_text,
    shown_classes,
    signed,
    tidy,
    title_of,
    where,
    wide_bins,
    within,
)
from privet.report.svg import LABEL, LETTER, MINUS, ROW, Drawing, join, moved, path, rect, room, tag, text
from privet.report.tree_picture import class_names
from privet.text import clean, shortened, width_of

SHEET, PANEL, SPACE = 1168.0, 376.0, 20.0  # pixels: all charts, one of them, and between two
TOP, PLOT, FACET = 44.0, 140.0, 130.0  # what stands above a chart, its height, and the width of one of several
NUMBER, BESIDE, EDGE, BELOW = 92.0, 58.0, 18.0, 30.0  # a number and its error, a missing cell, a margin, between rows
DOWN, SLANT = 18, 14  # letters of the labels of a heat map


@dataclass(frozen=True)
class TableChart:
    """One chart: what is drawn in it, and how large it is."""

    name: str
    width: float
    height: float
    shapes: Markup
    marks: int

    @property
    def drawing(self) -> Drawing:
        """The chart alone; on a phone one of usual width shrinks."""
        kind = "privet-tables shrinks" if self.width <= 1.2 * PANEL else "privet-tables"
        return Drawing(self.width, self.height, self.shapes, self.name, kind)


@dataclass(frozen=True)
class LogOddsScale:
    """From log odds to pixels: one for all charts of a model."""

    low: float
    high: float

    def at(self, value: float, length: float) -> float:
        """Return where a number stands."""
        return length * (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """Round numbers."""
        return round_numbers(self.low, self.high, most)


def scale_of(found: Sequence[Effect]) -> LogOddsScale:
    """As wide as the values are, and as their errors where these are not much wider."""
    if not any(np.abs(effect.values).max() > 1e-9 for effect in found):
        return LogOddsScale(-1.0, 1.0)
    low = min(0.0, *(float(effect.values.min()) for effect in found))
    high = max(0.0, *(float(effect.values.max()) for effect in found))
    air = 0.15 * (high - low)
    least = min(float((effect.values - effect.error).min()) for effect in found)
    most = max(float((effect.values + effect.error).max()) for effect in found)
    return LogOddsScale(max(low - air, min(low, least)), min(high + air, max(high, most)))


def svg(model: Tables) -> str:
    """The model as one picture: its charts from left to right, the one that moves predictions most first."""
    charts, hidden = panels(model)
    heads = [
        (clean(repr(model)), "name"),
        *[(clean(model.note), "")] * bool(model.note),
        *((clean(f"not private: {reason}"), "class") for reason in model.privacy.reasons[:SHOWN]),
        (f"to begin with: {shares_text(model)}", ""),
        *[(key_text(model), "aside")] * bool(charts),
    ]
    drawn = [text(0, 16 + 18 * row, words, kind or None, 170) for row, (words, kind) in enumerate(heads)]
    x, y, tallest, widest = 0.0, 18.0 * len(heads) + 22, 0.0, SHEET if charts else 600.0
    for chart in charts:
        if x and x + chart.width > SHEET:
            x, y, tallest = 0.0, y + tallest + BELOW, 0.0
        drawn.append(moved(x, y, chart.shapes))
        widest, tallest = max(widest, x + chart.width), max(tallest, chart.height)
        x += chart.width + SPACE
    height = y + tallest
    for words in more(hidden, "table", "…"):
        drawn.append(text(0, height + 22, words, "aside"))
        height += 30
    said = f"A sum of {model.summary} for {model.domain.target}"
    return Drawing(widest, height, join(drawn), said, "privet-tables").file("classes", "tables")


def key_text(model: Tables) -> str:
    """What the charts show, in one sentence."""
    names = [shortened(name, LABEL) for name in class_names(model.domain)]
    what = f"{names[1]} (orange) or {names[0]} (blue)" if len(names) == 2 else "a class (orange more, blue less)"
    return (
        f"Log odds that each cell adds for {what}, ± about 95%, all on one scale; faint or hatched where they cannot "
        "be told from no effect."
    )


def panels(model: Tables) -> tuple[list[TableChart], int]:
    """A chart for each table while there is room, and how many tables have none."""
    tables, classes = by_weight(model), shown_classes(model)
    if not tables:
        return [], 0
    scale = scale_of([effect for table in tables for effect in effects(model, table, classes)])
    charts: list[TableChart] = []
    marks = 0
    for table in tables[:TABLES]:
        chart = _panel(model, table, classes, scale)
        marks += chart.marks
        if charts and marks > MARKS:
            break
        charts.append(chart)
    return charts, len(tables) - len(charts)


def _panel(model: Tables, table: Table, classes: Sequence[int], scale: LogOddsScale) -> TableChart:
    domain, drawn = wide_bins(model.domain, table)
    found = effects(model, drawn, classes)
    column = domain[table.columns[0]]
    if len(table.columns) == 2:
        chart = _heat_map(domain, drawn, found, scale)
    elif len(table.columns) == 1 and isinstance(column, Numeric):
        chart = _steps(column, found, scale)
    else:
        chart = _bar_chart(domain, drawn, found, scale)
    hidden = len(model.intercept) - len(classes) if len(model.intercept) > 2 else 0
    said = " · ".join([*caption(table).split(", "), *more(hidden, "class", "…")])
    head = _label(0, 12, title_of(table), "name", 2 * LABEL, " and ".join(map(tidy, table.columns)))
    shapes = head + text(0, 28, said, "aside") + chart.shapes
    return TableChart(f"Log odds by {title_of(table)}", chart.width, chart.height, shapes, chart.marks)


def _label(x: float, y: float, words: str, kind: str, width: int, title: str) -> Markup:
    """A text that can be read in full where it was shortened."""
    return text(x, y, words, kind or None, width, title if shortened(title, width) != title else "")


def _room(labels: Sequence[str], most: int) -> float:
    """Pixels for labels."""
    return room(labels, most) + 8


def _line(kind: str, x: float, y: float, to_x: float, to_y: float) -> Markup:
    return path(f"M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}", kind)


def _side(effect: Effect, cell: Cell) -> str:
    """How a cell is painted: by its sign, and faintly where it may be none."""
    return ("more" if effect.values[cell] > 0 else "less") + " faint" * (not effect.clear[cell])


def _tick(value: float) -> str:
    return f"{value:+.3g}".replace("-", MINUS) if abs(value) > 1e-9 else "0"


def minus(words: str) -> str:
    """A number with a sign as wide as a plus, so that numbers stand one below the other."""
    return words.replace("-", MINUS)


# -- bars: a nominal attribute ------------------------------------------------------------------


def _bar_chart(domain: Domain, table: Table, found: Sequence[Effect], scale: LogOddsScale) -> TableChart:
    """A line for each cell: its label, a bar around zero with its error, and for one class its number."""
    cells = cells_of(domain, table, found, CELLS)
    names = [labels_of(domain, table, cell) for cell in cells]
    most = LABEL * min(len(table.columns), 2)
    left = _room(names, most)
    one = len(found) == 1
    width = PANEL - NUMBER - left if one else max(FACET, min(200.0, (SHEET - left) / len(found) - 14))
    above = TOP if one else TOP + 16
    bottom = above + ROW * len(cells)
    drawn = []
    for number, effect in enumerate(found):
        x = left + number * (width + 14)
        drawn += [] if one else [_label(x, TOP + 6, effect.name, "class", int(width / LETTER), effect.name)]
        drawn.append(_across_axis(scale, x, above, bottom, width))
        zero = x + scale.at(0, width)
        for row, cell in enumerate(cells):
            y, value, error = above + ROW * row + ROW / 2, float(effect.values[cell]), float(effect.error[cell])
            end = x + scale.at(value, width)
            begin, close = (x + scale.at(each, width) for each in (value - error, value + error))
            drawn.append(
                tag(
                    "g",
                    tag("title", f"{where(domain, table, cell)}: {effect.told(cell)}"),
                    rect(x, y - ROW / 2, width, ROW, "hit"),
                    rect(min(zero, end), y - 5, abs(end - zero), 10, _side(effect, cell)),
                    *[_line("error", begin, y, close, y)] * bool(error),
                )
            )
    for row, (cell, name) in enumerate(zip(cells, names, strict=True)):
        y = above + ROW * row + ROW / 2 + 4
        drawn.append(_label(left - 8, y, name, "end", most, name))
        if one:
            kind = "end" + " aside" * (not found[0].clear[cell])
            said = signed(float(found[0].values[cell])) + within(found[0].error[cell])
            drawn.append(text(PANEL, y, minus(said), kind))
    height = bottom + 18
    for words in more(found[0].values.size - len(cells), "cell", "…"):
        drawn.append(text(0, height + 10, words, "aside"))
        height += 16
    total = PANEL if one else left + len(found) * (width + 14)
    return TableChart("", total, height, join(drawn), len(cells) * len(found))


def _across_axis(scale: LogOddsScale, x: float, above: float, bottom: float, width: float) -> Markup:
    """Lines at round numbers, and the numbers below them."""
    drawn = []
    for tick in scale.ticks(max(2, int(width / 26))):
        place = x + scale.at(tick, width)
        drawn.append(_line("tick" if tick else "zero", place, above, place, bottom))
        drawn.append(text(place, bottom + 13, _tick(tick), "mid aside"))
    return join(drawn)


# -- steps: a numeric attribute -----------------------------------------------------------------


def _steps(column: Numeric, found: Sequence[Effect], scale: LogOddsScale) -> TableChart:
    """A step line over the bins with a band of errors; the cell of missing values stands beside it."""
    one = len(found) == 1
    left, beside = 34.0, BESIDE if column.missing else 0.0
    width = PANEL - left - beside - EDGE if one else max(FACET, min(200.0, (SHEET - left) / len(found) - beside - 20))
    above = TOP if one else TOP + 16
    drawn, marks = [], 0
    every = -(-column.bin_count // BINS)
    bins = list(range(0, column.bin_count, every))
    edges = [column.low, *(column.value_at(column.thresholds[number - 1]) for number in bins[1:]), column.high]
    places = _places([float(edge) for edge in edges], width)
    for number, effect in enumerate(found):
        x = left + number * (width + beside + 20)
        drawn += [] if one else [_label(x, TOP + 6, effect.name, "class", int(width / LETTER), effect.name)]
        drawn.append(_up_axis(scale, x, above, width + beside, labelled=not number))
        drawn.append(_stairs(column, effect, scale, [x + place for place in places], above, bins))
        last = x - 100
        ends = [shortened(column.text(edge), 10) for edge in edges]
        ends = ends if isinstance(column, Date) else [minus(end) for end in ends]
        # the label of the last edge ends where the panel does, however long it is
        last_half = LETTER * len(ends[-1]) / 2
        last_place = min(x + width, x + width + EDGE - last_half)
        final = last_place - last_half
        for place, (offset, words) in enumerate(zip(places, ends, strict=True)):
            half = LETTER * len(words) / 2
            if x + offset - half > last + 6 and (place == len(ends) - 1 or x + offset + half < final - 6):
                middle = last_place if place == len(ends) - 1 else x + offset
                drawn.append(text(middle, above + PLOT + 14, words, "mid aside"))
                last = x + offset + half
        if column.missing:
            drawn.append(_missing(column, effect, scale, x + width + beside - 22, above))
        marks += len(bins)
    height = above + PLOT + 20
    for words in more(column.bin_count - len(bins), "cell", "…"):
        drawn.append(text(left, height + 10, words, "aside"))
        height += 14
    total = PANEL if one else left + len(found) * (width + beside + 20) - 20 + EDGE
    return TableChart("", total, height, join(drawn), marks)


def _places(edges: Sequence[float], width: float) -> list[float]:
    """Where edges stand: by their values, or evenly where a bin would be too narrow to see."""
    span = edges[-1] - edges[0]
    found = [width * (edge - edges[0]) / span for edge in edges]
    if min(b - a for a, b in itertools.pairwise(found)) >= 3:
        return found
    return [width * place / (len(edges) - 1) for place in range(len(edges))]


def _up_axis(scale: LogOddsScale, x: float, above: float, width: float, *, labelled: bool) -> Markup:
    drawn = []
    for tick in scale.ticks(6):
        y = above + PLOT - scale.at(tick, PLOT)
        drawn.append(_line("tick" if tick else "zero", x, y, x + width, y))
        drawn += [text(x - 5, y + 4, _tick(tick), "end aside")] if labelled else []
    return join(drawn)


def _stairs(
    column: Numeric, effect: Effect, scale: LogOddsScale, places: Sequence[float], above: float, bins: Sequence[int]
) -> Markup:
    def up(value: float) -> float:
        return above + PLOT - scale.at(value, PLOT)

    drawn, line, high, low = [], "", "", ""
    zero = up(0)
    for place, number in enumerate(bins):
        begin, end = places[place], places[place + 1]
        value, error = float(effect.values[number]), float(effect.error[number])
        y, width = up(value), end - begin
        title = f"{cell_text(shortened(column.name, 60), column.labels[number])}: {effect.told((number,))}"
        drawn.append(
            tag(
                "g",
                tag("title", title),
                rect(begin, above, width, PLOT, "hit"),
                rect(begin, min(y, zero), width, abs(y - zero), _side(effect, (number,))),
            )
        )
        line += f"{'L' if line else 'M'}{begin:.1f} {y:.1f}H{end:.1f}"
        high += f"{'L' if high else 'M'}{begin:.1f} {up(value + error):.1f}H{end:.1f}"
        low = f"L{end:.1f} {up(value - error):.1f}H{begin:.1f}" + low
    return join(drawn) + path(f"{high}{low}Z", "band") + path(line, "line")


def _missing(column: Numeric, effect: Effect, scale: LogOddsScale, x: float, above: float) -> Markup:
    """The cell beside the bins."""
    cell = (column.size - 1,)
    value, error = float(effect.values[cell]), float(effect.error[cell])
    y, zero, high, low = (above + PLOT - scale.at(each, PLOT) for each in (value, 0.0, value + error, value - error))
    title = f"{cell_text(shortened(column.name, 60), column.labels[-1])}: {effect.told(cell)}"
    bar = tag(
        "g",
        tag("title", title),
        rect(x - 9, above, 18, PLOT, "hit"),
        rect(x - 6, min(y, zero), 12, abs(y - zero), _side(effect, cell)),
        *[_line("error", x, high, x, low)] * bool(error),
    )
    return bar + text(x, above + PLOT + 14, "missing", "mid aside")


# -- heat maps: two attributes ------------------------------------------------------------------


def _heat_map(domain: Domain, table: Table, found: Sequence[Effect], scale: LogOddsScale) -> TableChart:
    """A field for each cell, as strong as its log odds, with its number; hatched where it may be none."""
    grid = grid_of(domain, table, found, ACROSS if len(found) == 1 else SHOWN)
    top = max(-scale.low, scale.high)
    one = len(found) == 1
    left = _room(grid.down_labels, DOWN)
    gaps = 0.0 if one else 18.0 * (len(found) - 1)
    size = ((PANEL if one else SHEET) - left - gaps) / (len(grid.across) * len(found))
    size = max(34.0 if one else 38.0, min(110.0 if one else 60.0, size))
    level = all(LETTER * width_of(shortened(label, SLANT)) < size - 2 for label in grid.across_labels)
    if not level and one:  # the last label leans out
        size = max(34.0, min(size, (PANEL - left - 30) / len(grid.across)))
    head = 16.0 if level else 8 + 0.6 * _room(grid.across_labels, SLANT)
    above = TOP + head + (0 if one else 16) + 6
    width = size * len(grid.across)
    drawn, hatch = [], []
    for number, effect in enumerate(found):
        x = left + number * (width + 18)
        drawn += [] if one else [_label(x, TOP + 6, effect.name, "class", max(6, int(width / LETTER)), effect.name)]
        for place, label in enumerate(grid.across_labels):
            middle = x + size * place + size / 2
            if level:
                drawn.append(_label(middle, above - 6, label, "mid", SLANT, label))
            else:
                turned = _label(0, 0, label, "", SLANT, label)
                drawn.append(moved(middle - 2, above - 5, turned, more=" rotate(-36)"))
        for row, down in enumerate(grid.down):
            for place, across in enumerate(grid.across):
                cell, corner = grid.cell(down, across), (x + size * place, above + ROW * row)
                drawn.append(_field(domain, table, effect, cell, corner, size, top))
                hatch += [] if effect.clear[cell] else [_hatched(*corner, size, ROW)]
        drawn.append(rect(x, above, width, ROW * len(grid.down), "frame"))
    for row, label in enumerate(grid.down_labels):
        drawn.append(_label(left - 8, above + ROW * row + 13, label, "end", DOWN, label))
    drawn.append(path("".join(hatch), "hatch"))
    height = above + ROW * len(grid.down) + 4
    for words in more(grid.hidden, "cell", "…"):
        drawn.append(text(left, height + 12, words, "aside"))
        height += 16
    lean = 0.0 if level else max(0.0, 0.7 * _room(grid.across_labels[-1:], SLANT) - size / 2)
    total = max(PANEL, left + len(found) * width + gaps + lean)
    return TableChart("", total, height, join(drawn), len(grid.down) * len(grid.across) * len(found))


def _field(
    domain: Domain, table: Table, effect: Effect, cell: Cell, corner: tuple[float, float], size: float, top: float
) -> Markup:
    value, clear = float(effect.values[cell]), bool(effect.clear[cell])
    strength = 0.78 * min(1.0, abs(value) / top) ** 0.7 * (1.0 if clear else 0.6)
    x, y = corner
    return tag(
        "g",
        tag("title", f"{where(domain, table, cell)}: {effect.told(cell)}"),
        rect(x, y, size, ROW, "more" if value > 0 else "less", fill_opacity=strength),
        text(x + size / 2, y + 13, minus(signed(value)), "mid small" + " aside" * (not clear)),
    )


def _hatched(x: float, y: float, width: float, height: float) -> str:
    """Slanted lines over a field."""
    found = []
    for offset in range(6, int(width + height), 6):
        begin = (x + max(0.0, offset - height), y + min(offset, height))
        end = (x + min(offset, width), y + max(0.0, offset - width))
        found.append(f"M{begin[0]:.1f} {begin[1]:.1f}L{end[0]:.1f} {end[1]:.1f}")
    return "".join(found)

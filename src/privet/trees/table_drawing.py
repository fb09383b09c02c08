"""Drawings of a sum of tables: as text and as SVG.

As for trees they show released values and public labels alone, and every label is cleaned, shortened and escaped.
What cannot be told from no effect, because zero lies within its 95%, is drawn faintly: noise shall not look like a
finding. All charts of a model have one scale, so that a small effect looks small beside a large one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privet.column import Nominal, Numeric, decimal_text
from privet.domain import Domain
from privet.trees.drawing import COLOURS, LABEL, LETTER, LINES, LONG, ROW, _clean, _short, _width, class_names, safe
from privet.trees.model import told
from privet.trees.published import Floats, softmax
from privet.trees.tables import Table, Tables

TABLES, CELLS, ACROSS, BINS, SHOWN = 40, 24, 12, 200, 6  # at most drawn: tables, cells of each, columns, bins, classes
MARKS = 2000  # at most, of all charts
MINUS = "\u2212"
WIDE = 1.96  # standard deviations to either side: about 95%
LESS, MORE = COLOURS[0], COLOURS[6]  # equally dark, and apart for every kind of colour vision

Cell = tuple[int, ...]


@dataclass(frozen=True)
class Effect:
    """What the cells of a table say about one class: log odds [cells...], and the half width of about 95%."""

    name: str
    values: Floats
    error: Floats
    alone: bool  # one of two classes, so the odds against the other are meant

    @cached_property
    def clear(self) -> NDArray[np.bool_]:
        """Can the cell be told from one without effect?"""
        return np.abs(self.values) > self.error

    def told(self, cell: Cell) -> str:
        value = float(self.values[cell])
        odds = f", odds x {math.exp(value):.3g}" if self.alone and abs(value) < 100 else ""
        return f"{self.name} {signed(value)}{within(self.error[cell])}{odds}"


def by_weight(model: Tables) -> list[Table]:
    """One table for each set of columns, the one that moves predictions most first."""
    return sorted(model.merged().tables, key=lambda table: -table.weight)


def shown_classes(model: Tables) -> list[int]:
    """The numbers of the classes that are drawn: of two the second says it all, of many those that tables move most."""
    classes = len(model.intercept)
    if classes == 2:
        return [1]
    moved = np.zeros(classes)
    for table in model.merged().tables:
        moved = moved + (table.values**2).reshape(-1, classes).mean(axis=0)
    return sorted(np.argsort(-moved, kind="stable")[:SHOWN].tolist())


def effects(model: Tables, table: Table, classes: Sequence[int]) -> list[Effect]:
    """What a table says about these classes."""
    names = [_short(name, 60) for name in class_names(model.domain)]
    values, error = table.values, WIDE * table.deviation
    if len(names) == 2:
        # both classes come from one number, so their deviations add
        return [Effect(names[1], values[..., 1] - values[..., 0], error.sum(axis=-1), True)]
    return [Effect(names[number], values[..., number], error[..., number], False) for number in classes]


def cells_of(domain: Domain, table: Table, found: Sequence[Effect], most: int) -> list[Cell]:
    """The cells of a table to list: of many those that move most; without an order of their own, by what they add."""
    shape = table.values.shape[:-1]
    strength = np.max([np.abs(effect.values) for effect in found], axis=0).ravel()
    kept = np.sort(np.argsort(-strength, kind="stable")[:most])
    column = domain[table.columns[0]]
    if len(shape) == 1 and len(found) == 1 and isinstance(column, Nominal) and not column.ordered:
        kept = kept[np.argsort(-found[0].values[kept], kind="stable")]
    return [tuple(int(place) for place in np.unravel_index(number, shape)) for number in kept]


def tidy(label: str) -> str:
    """A label that is safe to show, and no longer than anybody reads."""
    return _clean(_short(label, 200))


def labels_of(domain: Domain, table: Table, cell: Cell) -> str:
    """A cell by its labels alone."""
    return ", ".join(tidy(domain[name].labels[place]) for name, place in zip(table.columns, cell, strict=True))


def where(domain: Domain, table: Table, cell: Cell) -> str:
    """A cell as a condition."""
    found = zip(table.columns, cell, strict=True)
    return " and ".join(told(_short(name, 60), _short(domain[name].labels[place], 60)) for name, place in found)


# -- numbers ------------------------------------------------------------------------------------


def signed(value: float) -> str:
    """A number that adds to others, with its sign and as many places as its neighbours."""
    return f"{round(value, 2) + 0.0:+.2f}" if abs(value) < 1000 else f"{value:+.3g}"


def within(error: float) -> str:
    """The half width of about 95%; nothing for what somebody wrote."""
    return f" ± {signed(float(error))[1:]}" if error else ""


def figure(value: float) -> str:
    """A weight or a loss in a caption."""
    return f"{value:.3g}"


def caption(table: Table) -> str:
    return f"weight {figure(table.weight)}, epsilon {figure(float(table.epsilon))}"


def percent(share: float) -> str:
    """A share; none is written as if it were certain."""
    return "under 0.1%" if 0 < share < 0.0005 else "over 99.9%" if 0.9995 <= share < 1 else f"{share:.1%}"


def shares_text(model: Tables) -> str:
    """The class shares of the intercept; of many classes the largest."""
    names, shares = class_names(model.domain), softmax(np.array(model.intercept))
    order = range(len(names)) if len(names) <= 2 * SHOWN else np.argsort(-shares, kind="stable")[:SHOWN].tolist()
    found = [f"{_short(names[number], 60)} {percent(float(shares[number]))}" for number in order]
    return ", ".join(found + ["..."] * (len(names) > len(found)))


def more(number: int, unit: str, dots: str = "...") -> list[str]:
    """What is left out, if anything is."""
    plural = "es" if unit.endswith("s") else "s"
    return [f"{dots} {number} more {unit}{plural if number > 1 else ''}"] * (number > 0)


# -- text ---------------------------------------------------------------------------------------

SIDE = 12  # letters of a bar to either side of zero


def text(model: Tables) -> str:
    """The tables as text, the one that moves predictions most first; large ones and many are cut."""
    tables, classes = by_weight(model), shown_classes(model)
    lines = [repr(model), *[model.note] * bool(model.note)]
    lines += [f"not private: {reason}" for reason in model.privacy.reasons]
    lines = [_short(_clean(line), LONG) for line in lines]
    lines.append(f"to begin with: {shares_text(model)}")
    if tables:
        lines += ["", *_text_key(model)]
    everything = range(len(model.intercept))
    top = max((np.abs(each.values).max() for table in tables for each in effects(model, table, everything)), default=0)
    for number, table in enumerate(tables):
        block = ["", *_block(model, table, classes, float(top))]
        if len(lines) + len(block) > LINES:
            return "\n".join([*lines, "", *more(len(tables) - number, "table")])
        lines += block
    return "\n".join(lines)


def _text_key(model: Tables) -> list[str]:
    names = [_short(name, LABEL) for name in class_names(model.domain)]
    what = (
        f"of {names[1]} against {names[0]}; +0.69 doubles its odds, -0.69 halves them."
        if len(names) == 2
        else "of each class; 0.69 more than another class doubles the odds against it."
    )
    return [
        f"Each cell adds to the log odds {what}",
        "± is about 95%. What stands in parentheses or has a bar of ░ cannot be told from no effect.",
    ]


def _block(model: Tables, table: Table, classes: Sequence[int], top: float) -> Iterator[str]:
    """The lines of one table."""
    found = effects(model, table, classes)
    error = np.concatenate([effect.error.ravel() for effect in found])
    low, high = (signed(float(each))[1:] for each in (error.min(), error.max()))
    spread = f", ± {low}" + f" to {high}" * (low != high) if high != "0.00" else ""
    listed = (len(found) == 1 and len(table.columns) != 2) or len(model.intercept) > SHOWN
    yield f"{_title(table)}: {caption(table)}{'' if listed else spread}"
    if len(model.intercept) > SHOWN:
        yield from _winners(model, table, top)
    elif len(found) == 1 and len(table.columns) == 2:
        yield from _matrix(model.domain, table, found[0])
    elif len(found) == 1:
        yield from _bars(model.domain, table, found[0], top)
    else:
        yield from _columns(model.domain, table, found)


def _title(table: Table) -> str:
    return " and ".join(_clean(_short(name, LABEL)) for name in table.columns)


def _bars(domain: Domain, table: Table, effect: Effect, top: float) -> Iterator[str]:
    """A line for each cell: its number, its error and a bar."""
    cells = cells_of(domain, table, [effect], CELLS)
    numbers = [signed(float(effect.values[cell])) + within(effect.error[cell]) for cell in cells]
    for label, number, cell in zip(_padded(domain, table, cells), _aligned(numbers), cells, strict=True):
        yield f"  {label}  {number}  {_bar(float(effect.values[cell]), bool(effect.clear[cell]), top)}".rstrip()
    yield from ("  " + words for words in more(effect.values.size - len(cells), "cell"))


def _bar(value: float, clear: bool, top: float) -> str:
    length = round(SIDE * abs(value) / top) if top else 0
    drawn = ("█" if clear else "░") * length
    return f"{drawn:>{SIDE}}│" if value < 0 else " " * SIDE + f"│{drawn}"


def _columns(domain: Domain, table: Table, found: Sequence[Effect]) -> Iterator[str]:
    """A line for each cell, a column for each class, and the class that gains most."""
    cells = cells_of(domain, table, found, CELLS)
    heads = [_short(effect.name, 12) for effect in found]
    widths = [max(8, _width(head)) for head in heads]
    labels = _padded(domain, table, cells)
    indent = " " * (_width(labels[0]) + 2)
    yield f"{indent}{''.join(' ' + _pad(head, -width) for head, width in zip(heads, widths, strict=True))}  gains most"
    for label, cell in zip(labels, cells, strict=True):
        numbers = [_bracketed(effect, cell).rjust(width) for effect, width in zip(found, widths, strict=True)]
        best = int(np.argmax([effect.values[cell] for effect in found]))
        winner = heads[best] if found[best].clear[cell] else f"({heads[best]})"
        yield f"  {label} {' '.join(numbers)}  {winner}"
    yield from ("  " + words for words in more(found[0].values.size - len(cells), "cell"))


def _winners(model: Tables, table: Table, top: float) -> Iterator[str]:
    """A line for each cell: of many classes the one that gains most."""
    names = [_short(name, LABEL) for name in class_names(model.domain)]
    best = np.argmax(table.values, axis=-1)
    gain = np.take_along_axis(table.values, best[..., None], axis=-1)[..., 0]
    error = WIDE * np.take_along_axis(table.deviation, best[..., None], axis=-1)[..., 0]
    effect = Effect("", gain, error, False)
    cells = cells_of(model.domain, table, [effect, effect], CELLS)  # in their own order
    numbers = _aligned([signed(float(gain[cell])) + within(error[cell]) for cell in cells])
    width = max(_width(names[best[cell]]) for cell in cells)
    for label, number, cell in zip(_padded(model.domain, table, cells), numbers, cells, strict=True):
        bar = _bar(float(gain[cell]), bool(effect.clear[cell]), top).strip()
        yield f"  {label}  {_pad(names[best[cell]], width)}  {number}  {bar}"
    yield from ("  " + words for words in more(gain.size - len(cells), "cell"))


def _matrix(domain: Domain, table: Table, effect: Effect) -> Iterator[str]:
    """A table of two attributes: the larger down, the smaller across."""
    grid = _grid(domain, table, [effect], 8)
    heads = [_short(label, 12) for label in grid.across_labels]
    widths = [max(8, _width(head)) for head in heads]
    first = [_short(label, LABEL) for label in grid.down_labels]
    width = max(_width(label) for label in first)
    yield f"  {' ' * width}{''.join(' ' + _pad(head, -size) for head, size in zip(heads, widths, strict=True))}"
    for label, down in zip(first, grid.down, strict=True):
        numbers = [_bracketed(effect, grid.cell(down, across)) for across in grid.across]
        row = " ".join(number.rjust(size) for number, size in zip(numbers, widths, strict=True))
        yield f"  {_pad(label, width)} {row}".rstrip()
    yield from ("  " + words for words in more(grid.hidden, "cell"))


def _bracketed(effect: Effect, cell: Cell) -> str:
    number = signed(float(effect.values[cell]))
    return f"{number} " if effect.clear[cell] else f"({number})"


def _padded(domain: Domain, table: Table, cells: Sequence[Cell]) -> list[str]:
    labels = [_short(labels_of(domain, table, cell), LABEL * min(len(table.columns), 2)) for cell in cells]
    return [_pad(label, max(map(_width, labels))) for label in labels]


def _pad(words: str, width: int) -> str:
    """Words with room after them, or before them for a negative width."""
    space = " " * (abs(width) - _width(words))
    return words + space if width > 0 else space + words


def _aligned(numbers: Sequence[str]) -> list[str]:
    """Numbers with errors, one below the other."""
    parts = [number.partition(" ± ") for number in numbers]
    left, right = (max(len(part[side]) for part in parts) for side in (0, 2))
    return [f"{a.rjust(left)}{sign}{b.rjust(right)}" for a, sign, b in parts]


@dataclass(frozen=True)
class Grid:
    """Which cells of a pair are drawn: the attribute with more of them down, the other across."""

    down: tuple[int, ...]
    across: tuple[int, ...]
    down_labels: tuple[str, ...]
    across_labels: tuple[str, ...]
    flipped: bool
    hidden: int

    def cell(self, down: int, across: int) -> Cell:
        return (across, down) if self.flipped else (down, across)


def _grid(domain: Domain, table: Table, found: Sequence[Effect], most: int) -> Grid:
    """The rows and columns of a pair; of many those that move most."""
    names, flipped = list(table.columns), table.values.shape[0] < table.values.shape[1]
    strength = np.max([np.abs(effect.values) for effect in found], axis=0)
    if flipped:
        names, strength = names[::-1], strength.T
    down = np.sort(np.argsort(-strength.max(axis=1), kind="stable")[:CELLS]).tolist()
    across = np.sort(np.argsort(-strength.max(axis=0), kind="stable")[:most]).tolist()
    labels = [domain[name].labels for name in names]
    return Grid(
        tuple(down),
        tuple(across),
        tuple(tidy(labels[0][place]) for place in down),
        tuple(tidy(labels[1][place]) for place in across),
        flipped,
        strength.size - len(down) * len(across),
    )


# -- SVG ----------------------------------------------------------------------------------------

SHEET, PANEL, SPACE = 1168.0, 376.0, 20.0  # pixels: all charts, one of them, and between two
TOP, PLOT, FACET = 44.0, 140.0, 130.0  # what stands above a chart, its height, and the width of one of several
NUMBER, BESIDE, EDGE, BELOW = 92.0, 58.0, 18.0, 30.0  # a number and its error, a missing cell, a margin, between rows
DOWN, SLANT = 18, 14  # letters of the labels of a heat map

# The style of an inline SVG reaches the whole page it stands in, hence the prefix.
STYLE = f""".privet-tables{{overflow:visible}}.privet-tables text{{font:11px system-ui,sans-serif;fill:currentColor}}
.privet-tables text{{font-variant-numeric:tabular-nums}}
.privet-tables .name{{font-size:13px;font-weight:600}}.privet-tables .aside{{opacity:.72}}
.privet-tables .small{{font-size:10px}}.privet-tables .class{{font-weight:600}}.privet-tables .end{{text-anchor:end}}
.privet-tables .mid{{text-anchor:middle}}
.privet-tables .more{{fill:{MORE}}}.privet-tables .less{{fill:{LESS}}}.privet-tables .faint{{opacity:.4}}
.privet-tables .tick{{stroke:currentColor;opacity:.13}}.privet-tables .zero{{stroke:currentColor;opacity:.55}}
.privet-tables .error{{stroke:currentColor;opacity:.75}}.privet-tables .band{{fill:currentColor;opacity:.16}}
.privet-tables .line{{fill:none;stroke:currentColor;stroke-width:1.5}}
.privet-tables .hit{{fill:none;pointer-events:all}}.privet-tables .hatch{{fill:none;stroke:currentColor;opacity:.2}}
.privet-tables .frame{{fill:none;stroke:currentColor;opacity:.15}}"""


@dataclass(frozen=True)
class Panel:
    """One chart: what is drawn in it, and how large it is."""

    name: str
    width: float
    height: float
    drawn: str
    marks: int


@dataclass(frozen=True)
class Scale:
    """From log odds to pixels: one for all charts of a model."""

    low: float
    high: float

    def at(self, value: float, length: float) -> float:
        return length * (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """Round numbers."""
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [number * step for number in range(first, last + 1)]


def scale_of(found: Sequence[Effect]) -> Scale:
    """As wide as the values are, and as their errors where these are not much wider."""
    if not any(np.abs(effect.values).max() > 1e-9 for effect in found):
        return Scale(-1.0, 1.0)
    low = min(0.0, *(float(effect.values.min()) for effect in found))
    high = max(0.0, *(float(effect.values.max()) for effect in found))
    room = 0.15 * (high - low)
    least = min(float((effect.values - effect.error).min()) for effect in found)
    most = max(float((effect.values + effect.error).max()) for effect in found)
    return Scale(max(low - room, min(low, least)), min(high + room, max(high, most)))


def svg(model: Tables) -> str:
    """The model as one picture: its charts from left to right, the one that moves predictions most first."""
    charts, hidden = panels(model)
    heads = [
        (_clean(repr(model)), "name"),
        *[(_clean(model.note), "")] * bool(model.note),
        *((_clean(f"not private: {reason}"), "class") for reason in model.privacy.reasons[:SHOWN]),
        (f"to begin with: {shares_text(model)}", ""),
        *[(key_text(model), "aside")] * bool(charts),
    ]
    drawn = [_text(0, 16 + 18 * row, words, kind, 170) for row, (words, kind) in enumerate(heads)]
    x, y, tallest, widest = 0.0, 18.0 * len(heads) + 22, 0.0, SHEET if charts else 600.0
    for chart in charts:
        if x and x + chart.width > SHEET:
            x, y, tallest = 0.0, y + tallest + BELOW, 0.0
        drawn.append(f'<g transform="translate({x:.0f} {y:.0f})">{chart.drawn}</g>')
        widest, tallest = max(widest, x + chart.width), max(tallest, chart.height)
        x += chart.width + SPACE
    height = y + tallest
    for words in more(hidden, "table", "…"):
        drawn.append(_text(0, height + 22, words, "aside"))
        height += 30
    return _picture(widest, height, f"A sum of {model.summary} for {model.domain.target}", "".join(drawn), STYLE)


def key_text(model: Tables) -> str:
    """What the charts show, in one sentence."""
    names = [_short(name, LABEL) for name in class_names(model.domain)]
    what = f"{names[1]} (orange) or {names[0]} (blue)" if len(names) == 2 else "a class (orange more, blue less)"
    return (
        f"Log odds that each cell adds for {what}, ± about 95%, all on one scale; faint or hatched where they cannot "
        "be told from no effect."
    )


def picture(chart: Panel) -> str:
    """A chart as a picture of its own; the page it stands in has the style."""
    return _picture(chart.width, chart.height, chart.name, chart.drawn)


def _picture(width: float, height: float, said: str, drawn: str, style: str = "") -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    styled = f"<style>{style}</style>" if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="privet-tables" {size} role="img" '
        f'aria-label="{safe(said, 200)}">{styled}{drawn}</svg>'
    )


def panels(model: Tables) -> tuple[list[Panel], int]:
    """A chart for each table while there is room, and how many tables have none."""
    tables, classes = by_weight(model), shown_classes(model)
    if not tables:
        return [], 0
    scale = scale_of([effect for table in tables for effect in effects(model, table, classes)])
    charts: list[Panel] = []
    marks = 0
    for table in tables[:TABLES]:
        chart = _panel(model, table, classes, scale)
        marks += chart.marks
        if charts and marks > MARKS:
            break
        charts.append(chart)
    return charts, len(tables) - len(charts)


def _panel(model: Tables, table: Table, classes: Sequence[int], scale: Scale) -> Panel:
    found = effects(model, table, classes)
    column = model.domain[table.columns[0]]
    if len(table.columns) == 2:
        chart = _heat_map(model.domain, table, found, scale)
    elif len(table.columns) == 1 and isinstance(column, Numeric):
        chart = _steps(column, table, found, scale)
    else:
        chart = _bar_chart(model.domain, table, found, scale)
    hidden = len(model.intercept) - len(classes) if len(model.intercept) > 2 else 0
    said = " · ".join([*caption(table).split(", "), *more(hidden, "class", "…")])
    head = _text(0, 12, _title(table), "name", 2 * LABEL, " and ".join(map(tidy, table.columns)))
    drawn = head + _text(0, 28, said, "aside") + chart.drawn
    return Panel(f"Log odds by {_title(table)}", chart.width, chart.height, drawn, chart.marks)


def _text(x: float, y: float, words: str, kind: str, width: int = 200, title: str = "") -> str:
    told = f"<title>{safe(title, 200)}</title>" if title and _short(title, width) != title else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{told}{safe(words, width)}</text>'


def _room(labels: Sequence[str], most: int) -> float:
    """Pixels for labels."""
    return LETTER * max(_width(_short(label, most)) for label in labels) + 8


def _line(kind: str, x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<path class="{kind}" d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"/>'


def _side(effect: Effect, cell: Cell) -> str:
    """How a cell is painted: by its sign, and faintly where it may be none."""
    return ("more" if effect.values[cell] > 0 else "less") + " faint" * (not effect.clear[cell])


def _tick(value: float) -> str:
    return f"{value:+.3g}".replace("-", MINUS) if abs(value) > 1e-9 else "0"


def minus(words: str) -> str:
    """A number with a sign as wide as a plus, so that numbers stand one below the other."""
    return words.replace("-", MINUS)


# -- bars: a nominal attribute ------------------------------------------------------------------


def _bar_chart(domain: Domain, table: Table, found: Sequence[Effect], scale: Scale) -> Panel:
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
        drawn += [] if one else [_text(x, TOP + 6, effect.name, "class", int(width / LETTER), effect.name)]
        drawn.append(_across_axis(scale, x, above, bottom, width))
        zero = x + scale.at(0, width)
        for row, cell in enumerate(cells):
            y, value, error = above + ROW * row + ROW / 2, float(effect.values[cell]), float(effect.error[cell])
            end = x + scale.at(value, width)
            begin, close = (x + scale.at(each, width) for each in (value - error, value + error))
            drawn.append(
                f"<g><title>{safe(f'{where(domain, table, cell)}: {effect.told(cell)}', 400)}</title>"
                f'<rect class="hit" x="{x:.1f}" y="{y - ROW / 2:.1f}" width="{width:.1f}" height="{ROW}"/>'
                f'<rect class="{_side(effect, cell)}" x="{min(zero, end):.1f}" y="{y - 5:.1f}" '
                f'width="{abs(end - zero):.1f}" height="10"/>'
                f"{_line('error', begin, y, close, y) if error else ''}</g>"
            )
    for row, (cell, name) in enumerate(zip(cells, names, strict=True)):
        y = above + ROW * row + ROW / 2 + 4
        drawn.append(_text(left - 8, y, name, "end", most, name))
        if one:
            kind = "end" + " aside" * (not found[0].clear[cell])
            said = signed(float(found[0].values[cell])) + within(found[0].error[cell])
            drawn.append(_text(PANEL, y, minus(said), kind))
    height = bottom + 18
    for words in more(found[0].values.size - len(cells), "cell", "…"):
        drawn.append(_text(0, height + 10, words, "aside"))
        height += 16
    total = PANEL if one else left + len(found) * (width + 14)
    return Panel("", total, height, "".join(drawn), len(cells) * len(found))


def _across_axis(scale: Scale, x: float, above: float, bottom: float, width: float) -> str:
    """Lines at round numbers, and the numbers below them."""
    drawn = []
    for tick in scale.ticks(max(2, int(width / 26))):
        place = x + scale.at(tick, width)
        drawn.append(_line("tick" if tick else "zero", place, above, place, bottom))
        drawn.append(_text(place, bottom + 13, _tick(tick), "mid aside"))
    return "".join(drawn)


# -- steps: a numeric attribute -----------------------------------------------------------------


def _steps(column: Numeric, table: Table, found: Sequence[Effect], scale: Scale) -> Panel:
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
        drawn += [] if one else [_text(x, TOP + 6, effect.name, "class", int(width / LETTER), effect.name)]
        drawn.append(_up_axis(scale, x, above, width + beside, labelled=not number))
        drawn.append(_stairs(column, effect, scale, [x + place for place in places], above, bins))
        last = x - 100
        ends = [_short(decimal_text(edge), 9) for edge in edges]
        final = x + width - LETTER * len(ends[-1]) / 2
        for place, (offset, words) in enumerate(zip(places, ends, strict=True)):
            half = LETTER * len(words) / 2
            if x + offset - half > last + 6 and (place == len(ends) - 1 or x + offset + half < final - 6):
                drawn.append(_text(x + offset, above + PLOT + 14, minus(words), "mid aside"))
                last = x + offset + half
        if column.missing:
            drawn.append(_missing(column, effect, scale, x + width + beside - 22, above))
        marks += len(bins)
    height = above + PLOT + 20
    for words in more(column.bin_count - len(bins), "cell", "…"):
        drawn.append(_text(left, height + 10, words, "aside"))
        height += 14
    total = PANEL if one else left + len(found) * (width + beside + 20) - 20 + EDGE
    return Panel("", total, height, "".join(drawn), marks)


def _places(edges: Sequence[float], width: float) -> list[float]:
    """Where edges stand: by their values, or evenly where a bin would be too narrow to see."""
    span = edges[-1] - edges[0]
    found = [width * (edge - edges[0]) / span for edge in edges]
    if min(b - a for a, b in itertools.pairwise(found)) >= 3:
        return found
    return [width * place / (len(edges) - 1) for place in range(len(edges))]


def _up_axis(scale: Scale, x: float, above: float, width: float, *, labelled: bool) -> str:
    drawn = []
    for tick in scale.ticks(6):
        y = above + PLOT - scale.at(tick, PLOT)
        drawn.append(_line("tick" if tick else "zero", x, y, x + width, y))
        drawn += [_text(x - 5, y + 4, _tick(tick), "end aside")] if labelled else []
    return "".join(drawn)


def _stairs(
    column: Numeric, effect: Effect, scale: Scale, places: Sequence[float], above: float, bins: Sequence[int]
) -> str:
    def up(value: float) -> float:
        return above + PLOT - scale.at(value, PLOT)

    drawn, line, high, low = [], "", "", ""
    zero = up(0)
    for place, number in enumerate(bins):
        begin, end = places[place], places[place + 1]
        value, error = float(effect.values[number]), float(effect.error[number])
        y, size = up(value), f'x="{begin:.1f}" width="{end - begin:.1f}"'
        title = f"{told(_short(column.name, 60), column.labels[number])}: {effect.told((number,))}"
        drawn.append(
            f'<g><title>{safe(title, 400)}</title><rect class="hit" {size} y="{above}" height="{PLOT}"/><rect '
            f'class="{_side(effect, (number,))}" {size} y="{min(y, zero):.1f}" height="{abs(y - zero):.1f}"/></g>'
        )
        line += f"{'L' if line else 'M'}{begin:.1f} {y:.1f}H{end:.1f}"
        high += f"{'L' if high else 'M'}{begin:.1f} {up(value + error):.1f}H{end:.1f}"
        low = f"L{end:.1f} {up(value - error):.1f}H{begin:.1f}" + low
    return f'{"".join(drawn)}<path class="band" d="{high}{low}Z"/><path class="line" d="{line}"/>'


def _missing(column: Numeric, effect: Effect, scale: Scale, x: float, above: float) -> str:
    """The cell beside the bins."""
    cell = (column.size - 1,)
    value, error = float(effect.values[cell]), float(effect.error[cell])
    y, zero, high, low = (above + PLOT - scale.at(each, PLOT) for each in (value, 0.0, value + error, value - error))
    return (
        f"<g><title>{safe(f'{told(_short(column.name, 60), column.labels[-1])}: {effect.told(cell)}', 400)}</title>"
        f'<rect class="hit" x="{x - 9:.1f}" y="{above}" width="18" height="{PLOT}"/>'
        f'<rect class="{_side(effect, cell)}" x="{x - 6:.1f}" y="{min(y, zero):.1f}" width="12" '
        f'height="{abs(y - zero):.1f}"/>'
        f"{_line('error', x, high, x, low) if error else ''}</g>{_text(x, above + PLOT + 14, 'missing', 'mid aside')}"
    )


# -- heat maps: two attributes ------------------------------------------------------------------


def _heat_map(domain: Domain, table: Table, found: Sequence[Effect], scale: Scale) -> Panel:
    """A field for each cell, as strong as its log odds, with its number; hatched where it may be none."""
    grid = _grid(domain, table, found, ACROSS if len(found) == 1 else SHOWN)
    top = max(-scale.low, scale.high)
    one = len(found) == 1
    left = _room(grid.down_labels, DOWN)
    gaps = 0.0 if one else 18.0 * (len(found) - 1)
    size = ((PANEL if one else SHEET) - left - gaps) / (len(grid.across) * len(found))
    size = max(34.0 if one else 38.0, min(110.0 if one else 60.0, size))
    level = all(LETTER * _width(_short(label, SLANT)) < size - 2 for label in grid.across_labels)
    if not level and one:  # the last label leans out
        size = max(34.0, min(size, (PANEL - left - 30) / len(grid.across)))
    head = 16.0 if level else 8 + 0.6 * _room(grid.across_labels, SLANT)
    above = TOP + head + (0 if one else 16) + 6
    width = size * len(grid.across)
    drawn, hatch = [], []
    for number, effect in enumerate(found):
        x = left + number * (width + 18)
        drawn += [] if one else [_text(x, TOP + 6, effect.name, "class", max(6, int(width / LETTER)), effect.name)]
        for place, label in enumerate(grid.across_labels):
            middle = x + size * place + size / 2
            if level:
                drawn.append(_text(middle, above - 6, label, "mid", SLANT, label))
            else:
                turned = f'transform="translate({middle - 2:.1f} {above - 5:.1f}) rotate(-36)"'
                drawn.append(f"<g {turned}>{_text(0, 0, label, '', SLANT, label)}</g>")
        for row, down in enumerate(grid.down):
            for place, across in enumerate(grid.across):
                cell, corner = grid.cell(down, across), (x + size * place, above + ROW * row)
                drawn.append(_field(domain, table, effect, cell, corner, size, top))
                hatch += [] if effect.clear[cell] else [_hatched(*corner, size, ROW)]
        drawn.append(
            f'<rect class="frame" x="{x:.1f}" y="{above}" width="{width:.1f}" height="{ROW * len(grid.down)}"/>'
        )
    for row, label in enumerate(grid.down_labels):
        drawn.append(_text(left - 8, above + ROW * row + 13, label, "end", DOWN, label))
    drawn.append(f'<path class="hatch" d="{"".join(hatch)}"/>')
    height = above + ROW * len(grid.down) + 4
    for words in more(grid.hidden, "cell", "…"):
        drawn.append(_text(left, height + 12, words, "aside"))
        height += 16
    lean = 0.0 if level else max(0.0, 0.7 * _room(grid.across_labels[-1:], SLANT) - size / 2)
    total = max(PANEL, left + len(found) * width + gaps + lean)
    return Panel("", total, height, "".join(drawn), len(grid.down) * len(grid.across) * len(found))


def _field(
    domain: Domain, table: Table, effect: Effect, cell: Cell, corner: tuple[float, float], size: float, top: float
) -> str:
    value, clear = float(effect.values[cell]), bool(effect.clear[cell])
    strength = 0.78 * min(1.0, abs(value) / top) ** 0.7 * (1.0 if clear else 0.6)
    x, y = corner
    return (
        f"<g><title>{safe(f'{where(domain, table, cell)}: {effect.told(cell)}', 400)}</title>"
        f'<rect class="{"more" if value > 0 else "less"}" x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="{ROW}" '
        f'fill-opacity="{strength:.2f}"/>'
        f"{_text(x + size / 2, y + 13, minus(signed(value)), 'mid small' + ' aside' * (not clear))}</g>"
    )


def _hatched(x: float, y: float, width: float, height: float) -> str:
    """Slanted lines over a field."""
    found = []
    for offset in range(6, int(width + height), 6):
        begin = (x + max(0.0, offset - height), y + min(offset, height))
        end = (x + min(offset, width), y + max(0.0, offset - width))
        found.append(f"M{begin[0]:.1f} {begin[1]:.1f}L{end[0]:.1f} {end[1]:.1f}")
    return "".join(found)

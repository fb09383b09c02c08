"""A heat map whose numbers are printed in it: the ramp only says again what they say, in light and dark."""

from __future__ import annotations

from markupsafe import Markup

from privet.report.svg import LETTER, Drawing, join, path, rect, tag, text
from privet.studies.findings import Cell, Panel
from privet.studies.pages.words import amount, number_text, ours_text
from privet.text import shortened, width_of

ROW, ROOM, NAMES = 40, 530, 220  # pixels: a row, names and columns, and the names of rows at most
LETTERS = 32  # of the name of a row
SMALL = 22  # pixels of a cell without a number
TITLE = 8.4  # pixels of a letter of the title


def heat(panel: Panel, span: tuple[float, float] | None = None) -> Drawing:
    """Rows are series, columns are places; the darker the higher, or on dark paper the lighter."""
    columns = list(dict.fromkeys(cell.at for cell in panel.cells))
    if all(not isinstance(at, str) for at in columns):
        columns.sort(key=float)
    means = [cell.ours.mean for cell in panel.cells]
    low, high = span or (min(means), max(means))
    names = min(max(LETTER * width_of(shortened(series, LETTERS)) for series in panel.series) + 12, NAMES)
    wide = min(max((ROOM - names) / len(columns), 40), 84)
    places = max((_places(cell.ours.mean) for cell in panel.cells), default=0)
    drawn = [text(0, 16, panel.y, "title")]
    for i, series in enumerate(panel.series):
        y = 30 + ROW * i
        drawn.append(text(names - 8, y + ROW / 2 + 4, series, "label end", LETTERS))
        for cell in panel.line(series):
            x = names + wide * columns.index(cell.at)
            share = (cell.ours.mean - low) / (high - low) if high > low else 0.5
            drawn.append(_cell(panel, cell, x, y, wide, min(max(share, 0.0), 1.0), places))
    bottom = 30 + ROW * len(panel.series)
    every = max(1, round(sum(width_of(amount(at)) for at in columns) * 7 / (wide * len(columns)) + 0.4))
    for i, at in enumerate(columns):
        if i % every == 0:
            drawn.append(text(names + wide * (i + 0.5), bottom + 16, amount(at), "mid", 12))
    width = names + wide * len(columns)
    drawn.append(text(names + wide * len(columns) / 2, bottom + 36, panel.x, "label mid"))
    return Drawing(max(width, _least(panel)), bottom + 46, join(drawn), f"{panel.title}: {panel.y} by {panel.x}")


def _cell(panel: Panel, cell: Cell, x: float, y: float, wide: float, share: float, places: int) -> Markup:
    paper = f"; published {number_text(cell.paper)}" if cell.paper else ""
    told = f"{cell.series}, {panel.x} {amount(cell.at)}: {ours_text(cell.ours)}{paper}"
    opacity = 0.05 + 0.95 * share
    ink, middle = "on" if opacity > 0.64 else "off", x + wide / 2  # whichever can be read, on either paper
    number = [text(middle, y + (18 if cell.paper else 25), f"{cell.ours.mean:.{places}f}", f"figure mid {ink}")]
    if cell.paper:
        number.append(text(middle, y + 33, f"({cell.paper.value:g})", f"small mid {ink}"))
    return tag("g", tag("title", told), rect(x, y, wide, ROW, "cell", fill_opacity=opacity), *number)


def cells(panel: Panel, span: tuple[float, float] | None = None) -> Drawing:
    """As many small cells as there are numbers, without the numbers: negative ones have another colour and a bar.

    The ramp follows the square root, so that small counts are told apart beside large ones.
    """
    columns = list(dict.fromkeys(cell.at for cell in panel.cells))
    most = max([abs(cell.ours.mean) for cell in panel.cells] if span is None else map(abs, span), default=1.0) or 1.0
    names = min(max(LETTER * width_of(shortened(series, LETTERS)) for series in panel.series) + 12, NAMES)
    wide = min(max((ROOM - names) / len(columns), 4), SMALL)
    drawn = [text(0, 16, panel.y, "title")]
    for i, series in enumerate(panel.series):
        y = 30 + SMALL * i
        drawn.append(text(names - 8, y + SMALL / 2 + 4, series, "label end", LETTERS))
        for cell in panel.line(series):
            x, value = names + wide * columns.index(cell.at), cell.ours.mean
            told = f"{cell.series}, {panel.x} {amount(cell.at)}: {ours_text(cell.ours)}"
            opacity = 0.04 + 0.96 * min(abs(value) / most, 1.0) ** 0.5
            kind = "cell tiny under" if value < 0 else "cell tiny"
            bar = [path(f"M{x:.1f} {y + SMALL - 2}h{wide:.1f}v2h-{wide:.1f}z", kind)] * (value < 0)
            box = rect(x, y, wide, SMALL, kind, fill_opacity=opacity)
            drawn.append(tag("g", tag("title", told), box, *bar))
    bottom = 30 + SMALL * len(panel.series)
    for at, anchor, x in ((columns[0], None, names), (columns[-1], "end", names + wide * len(columns))):
        drawn.append(text(x, bottom + 16, amount(at), anchor, 12))
    drawn.append(text(names + wide * len(columns) / 2, bottom + 34, panel.x, "label mid"))
    return Drawing(
        max(names + wide * len(columns), _least(panel)),
        bottom + 46,
        join(drawn),
        f"{panel.title}: {panel.y} by {panel.x}",
    )


def _least(panel: Panel) -> float:
    """How wide a drawing is at least: its title stays on its paper, beside other drawings."""
    return max(TITLE * width_of(panel.y), 240.0)


def _places(value: float) -> int:
    return 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 or value == 0 else 3

"""A heat map whose numbers are printed in it: the ramp only says again what they say, in light and dark."""

from __future__ import annotations

from privet.studies.findings import Cell, Panel
from privet.studies.pages.drawn import Drawn, text
from privet.studies.pages.words import amount, number_text, ours_text
from privet.trees.layout import LETTER, safe, shortened, width_of

ROW, ROOM, NAMES = 40, 410, 120  # pixels: a row, all columns, and the names of rows at most
SMALL = 22  # pixels of a cell without a number


def heat(panel: Panel, span: tuple[float, float] | None = None) -> Drawn:
    """Rows are series, columns are places; the darker the higher, or on dark paper the lighter."""
    columns = list(dict.fromkeys(cell.at for cell in panel.cells))
    if all(not isinstance(at, str) for at in columns):
        columns.sort(key=float)
    means = [cell.ours.mean for cell in panel.cells]
    low, high = span or (min(means), max(means))
    names = min(max(LETTER * width_of(shortened(series, 17)) for series in panel.series) + 12, NAMES)
    wide = min(max(ROOM / len(columns), 40), 84)
    places = max((_places(cell.ours.mean) for cell in panel.cells), default=0)
    shapes = text(0, 16, panel.y, "title")
    for i, series in enumerate(panel.series):
        y = 30 + ROW * i
        shapes += text(names - 8, y + ROW / 2 + 4, series, "label", "end", most=17)
        for cell in panel.line(series):
            x = names + wide * columns.index(cell.at)
            share = (cell.ours.mean - low) / (high - low) if high > low else 0.5
            shapes += _cell(panel, cell, x, y, wide, min(max(share, 0.0), 1.0), places)
    bottom = 30 + ROW * len(panel.series)
    every = max(1, round(sum(width_of(amount(at)) for at in columns) * 7 / (wide * len(columns)) + 0.4))
    for i, at in enumerate(columns):
        if i % every == 0:
            shapes += text(names + wide * (i + 0.5), bottom + 16, amount(at), "", "middle", most=12)
    width = names + wide * len(columns)
    shapes += text(names + wide * len(columns) / 2, bottom + 36, panel.x, "label", "middle")
    return Drawn(max(width, 240.0), bottom + 46, shapes, f"{panel.title}: {panel.y} by {panel.x}")


def _cell(panel: Panel, cell: Cell, x: float, y: float, wide: float, share: float, places: int) -> str:
    paper = f"; published {number_text(cell.paper)}" if cell.paper else ""
    told = safe(f"{cell.series}, {panel.x} {amount(cell.at)}: {ours_text(cell.ours)}{paper}", 200)
    opacity = 0.05 + 0.95 * share
    ink, middle = "on" if opacity > 0.64 else "off", x + wide / 2  # whichever can be read, on either paper
    number = text(middle, y + (18 if cell.paper else 25), f"{cell.ours.mean:.{places}f}", f"number {ink}", "middle")
    if cell.paper:
        number += text(middle, y + 33, f"({cell.paper.value:g})", f"small {ink}", "middle")
    return (
        f'<g><title>{told}</title><rect class="cell" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{ROW}" '
        f'fill-opacity="{opacity:.2f}"/>{number}</g>'
    )


def cells(panel: Panel, span: tuple[float, float] | None = None) -> Drawn:
    """As many small cells as there are numbers, without the numbers: negative ones have another colour and a bar.

    The ramp follows the square root, so that small counts are told apart beside large ones.
    """
    columns = list(dict.fromkeys(cell.at for cell in panel.cells))
    most = max([abs(cell.ours.mean) for cell in panel.cells] if span is None else map(abs, span), default=1.0) or 1.0
    names = min(max(LETTER * width_of(shortened(series, 17)) for series in panel.series) + 12, NAMES)
    wide = min(max(ROOM / len(columns), 4), SMALL)
    shapes = text(0, 16, panel.y, "title")
    for i, series in enumerate(panel.series):
        y = 30 + SMALL * i
        shapes += text(names - 8, y + SMALL / 2 + 4, series, "label", "end", most=17)
        for cell in panel.line(series):
            x, value = names + wide * columns.index(cell.at), cell.ours.mean
            told = safe(f"{cell.series}, {panel.x} {amount(cell.at)}: {ours_text(cell.ours)}", 200)
            opacity = 0.04 + 0.96 * min(abs(value) / most, 1.0) ** 0.5
            kind = "cell small under" if value < 0 else "cell small"
            bar = f'<path class="{kind}" d="M{x:.1f} {y + SMALL - 2}h{wide:.1f}v2h-{wide:.1f}z"/>' if value < 0 else ""
            shapes += (
                f'<g><title>{told}</title><rect class="{kind}" x="{x:.1f}" y="{y}" width="{wide:.1f}" '
                f'height="{SMALL}" fill-opacity="{opacity:.2f}"/>{bar}</g>'
            )
    bottom = 30 + SMALL * len(panel.series)
    for at, anchor, x in ((columns[0], "start", names), (columns[-1], "end", names + wide * len(columns))):
        shapes += text(x, bottom + 16, amount(at), "", anchor, most=12)
    shapes += text(names + wide * len(columns) / 2, bottom + 34, panel.x, "label", "middle")
    return Drawn(max(names + wide * len(columns), 240.0), bottom + 46, shapes, f"{panel.title}: {panel.y} by {panel.x}")


def _places(value: float) -> int:
    return 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 or value == 0 else 3

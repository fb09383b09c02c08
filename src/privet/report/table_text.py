"""A sum of tables as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from privet.kernel import Domain
from privet.models.tables import Table, Tables
from privet.report.effects import (
    CELLS,
    SHOWN,
    WIDE,
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
    title_of,
    wide_bins,
    within,
)
from privet.report.svg import LABEL
from privet.report.tree_picture import LINES, class_names
from privet.text import LONG, clean, shortened, width_of

SIDE = 12  # letters of a bar to either side of zero


def tables_text(model: Tables) -> str:
    """The tables as text, the one that moves predictions most first; large ones and many are cut."""
    tables, classes = by_weight(model), shown_classes(model)
    lines = [repr(model), *[model.note] * bool(model.note)]
    lines += [f"not private: {reason}" for reason in model.privacy.reasons]
    lines = [shortened(clean(line), LONG) for line in lines]
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
    names = [shortened(name, LABEL) for name in class_names(model.domain)]
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
    domain, shown = wide_bins(model.domain, table)
    found = effects(model, shown, classes)
    error = np.concatenate([effect.error.ravel() for effect in found])
    low, high = (signed(float(each))[1:] for each in (error.min(), error.max()))
    spread = f", ± {low}" + f" to {high}" * (low != high) if high != "0.00" else ""
    listed = (len(found) == 1 and len(table.columns) != 2) or len(model.intercept) > SHOWN
    yield f"{title_of(table)}: {caption(table)}{'' if listed else spread}"
    if len(model.intercept) > SHOWN:
        yield from _winners(domain, shown, top)
    elif len(found) == 1 and len(table.columns) == 2:
        yield from _matrix(domain, shown, found[0])
    elif len(found) == 1:
        yield from _bars(domain, shown, found[0], top)
    else:
        yield from _columns(domain, shown, found)


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
    heads = [shortened(effect.name, 12) for effect in found]
    widths = [max(8, width_of(head)) for head in heads]
    labels = _padded(domain, table, cells)
    indent = " " * (width_of(labels[0]) + 2)
    yield f"{indent}{''.join(' ' + _pad(head, -width) for head, width in zip(heads, widths, strict=True))}  gains most"
    for label, cell in zip(labels, cells, strict=True):
        numbers = [_bracketed(effect, cell).rjust(width) for effect, width in zip(found, widths, strict=True)]
        best = int(np.argmax([effect.values[cell] for effect in found]))
        winner = heads[best] if found[best].clear[cell] else f"({heads[best]})"
        yield f"  {label} {' '.join(numbers)}  {winner}"
    yield from ("  " + words for words in more(found[0].values.size - len(cells), "cell"))


def _winners(domain: Domain, table: Table, top: float) -> Iterator[str]:
    """A line for each cell: of many classes the one that gains most."""
    names = [shortened(name, LABEL) for name in class_names(domain)]
    best = np.argmax(table.values, axis=-1)
    gain = np.take_along_axis(table.values, best[..., None], axis=-1)[..., 0]
    error = WIDE * np.take_along_axis(table.deviation, best[..., None], axis=-1)[..., 0]
    effect = Effect("", gain, error, False)
    cells = cells_of(domain, table, [effect, effect], CELLS)  # in their own order
    numbers = _aligned([signed(float(gain[cell])) + within(error[cell]) for cell in cells])
    width = max(width_of(names[best[cell]]) for cell in cells)
    for label, number, cell in zip(_padded(domain, table, cells), numbers, cells, strict=True):
        bar = _bar(float(gain[cell]), bool(effect.clear[cell]), top).strip()
        yield f"  {label}  {_pad(names[best[cell]], width)}  {number}  {bar}"
    yield from ("  " + words for words in more(gain.size - len(cells), "cell"))


def _matrix(domain: Domain, table: Table, effect: Effect) -> Iterator[str]:
    """A table of two attributes: the larger down, the smaller across."""
    grid = grid_of(domain, table, [effect], 8)
    heads = [shortened(label, 12) for label in grid.across_labels]
    widths = [max(8, width_of(head)) for head in heads]
    first = [shortened(label, LABEL) for label in grid.down_labels]
    width = max(width_of(label) for label in first)
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
    labels = [shortened(labels_of(domain, table, cell), LABEL * min(len(table.columns), 2)) for cell in cells]
    return [_pad(label, max(map(width_of, labels))) for label in labels]


def _pad(words: str, width: int) -> str:
    """Words with room after them, or before them for a negative width."""
    space = " " * (abs(width) - width_of(words))
    return words + space if width > 0 else space + words


def _aligned(numbers: Sequence[str]) -> list[str]:
    """Numbers with errors, one below the other."""
    parts = [number.partition(" ± ") for number in numbers]
    left, right = (max(len(part[side]) for part in parts) for side in (0, 2))
    return [f"{a.rjust(left)}{sign}{b.rjust(right)}" for a, sign, b in parts]

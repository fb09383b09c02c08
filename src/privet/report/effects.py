"""What a sum of tables says, ready to be drawn: effects of cells, which are shown, and numbers as people read them.

What cannot be told from no effect, because zero lies within its 95%, is drawn faintly: noise shall not look like a
finding. Labels are cleaned and shortened wherever they are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privet.kernel import Domain, Nominal, Numeric
from privet.models.model import Floats, softmax
from privet.models.tables import Table, Tables
from privet.models.tree import cell_text
from privet.report.svg import LABEL
from privet.report.tree_picture import class_names
from privet.text import clean, shortened

TABLES, CELLS, ACROSS, BINS, SHOWN = 40, 24, 12, 200, 6  # at most drawn: tables, cells of each, columns, bins, classes
MARKS = 2000  # at most, of all charts
WIDE = 1.96  # standard deviations to either side: about 95%

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


def wide_bins(domain: Domain, table: Table) -> tuple[Domain, Table]:
    """Return a table whose neighbouring bins say different things, and the domain that has these bins.

    A table of two attributes may be declared in finer bins than it was learned in. Those that are alike are one here,
    so that no picture shows the same line twice.
    """
    values, deviation = table.values, table.deviation
    for axis, name in enumerate(table.columns):
        column = domain[name]
        if not isinstance(column, Numeric):
            continue
        told = np.moveaxis(np.stack([values, deviation], axis=-1), axis, 0).reshape(column.size, -1)
        begins = [0, *(number for number in range(1, column.bin_count) if (told[number] != told[number - 1]).any())]
        if len(begins) == column.bin_count:
            continue
        edges = tuple(column.value_at(column.thresholds[number - 1]) for number in begins[1:])
        domain = domain.with_column(replace(column, edges=edges, bins=None))
        kept = [*begins, *[column.bin_count] * column.missing]
        values, deviation = (np.take(array, kept, axis=axis) for array in (values, deviation))
    return domain, replace(table, values=values, deviation=deviation)


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
    names = [shortened(name, 60) for name in class_names(model.domain)]
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
    return clean(shortened(label, 200))


def labels_of(domain: Domain, table: Table, cell: Cell) -> str:
    """A cell by its labels alone."""
    return ", ".join(tidy(domain[name].labels[place]) for name, place in zip(table.columns, cell, strict=True))


def where(domain: Domain, table: Table, cell: Cell) -> str:
    """A cell as a condition."""
    codes = zip(table.columns, cell, strict=True)
    return " and ".join(
        cell_text(shortened(name, 60), shortened(domain[name].labels[code], 60)) for name, code in codes
    )


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
    """What a table counts for, and what it cost; tables that were learned together have no price of their own."""
    price = f", epsilon {figure(float(table.epsilon))}" if table.epsilon else ""
    return f"weight {figure(table.weight)}{price}"


def title_of(table: Table) -> str:
    return " and ".join(clean(shortened(name, LABEL)) for name in table.columns)


def percent(share: float) -> str:
    """A share; none is written as if it were certain."""
    return "under 0.1%" if 0 < share < 0.0005 else "over 99.9%" if 0.9995 <= share < 1 else f"{share:.1%}"


def shares_text(model: Tables) -> str:
    """The class shares of the intercept; of many classes the largest."""
    names, shares = class_names(model.domain), softmax(np.array(model.intercept))
    order = range(len(names)) if len(names) <= 2 * SHOWN else np.argsort(-shares, kind="stable")[:SHOWN].tolist()
    found = [f"{shortened(names[number], 60)} {percent(float(shares[number]))}" for number in order]
    return ", ".join(found + ["..."] * (len(names) > len(found)))


def more(number: int, unit: str, dots: str = "...") -> list[str]:
    """What is left out, if anything is."""
    plural = "es" if unit.endswith("s") else "s"
    return [f"{dots} {number} more {unit}{plural if number > 1 else ''}"] * (number > 0)


# -- the cells of a pair ------------------------------------------------------------------------


@dataclass(frozen=True)
class PairGrid:
    """Which cells of a pair are drawn: the attribute with more of them down, the other across."""

    down: tuple[int, ...]
    across: tuple[int, ...]
    down_labels: tuple[str, ...]
    across_labels: tuple[str, ...]
    flipped: bool
    hidden: int

    def cell(self, down: int, across: int) -> Cell:
        return (across, down) if self.flipped else (down, across)


def grid_of(domain: Domain, table: Table, found: Sequence[Effect], most: int) -> PairGrid:
    """The rows and columns of a pair; of many those that move most."""
    names, flipped = list(table.columns), table.values.shape[0] < table.values.shape[1]
    strength = np.max([np.abs(effect.values) for effect in found], axis=0)
    if flipped:
        names, strength = names[::-1], strength.T
    down = np.sort(np.argsort(-strength.max(axis=1), kind="stable")[:CELLS]).tolist()
    across = np.sort(np.argsort(-strength.max(axis=0), kind="stable")[:most]).tolist()
    labels = [domain[name].labels for name in names]
    return PairGrid(
        tuple(down),
        tuple(across),
        tuple(tidy(labels[0][place]) for place in down),
        tuple(tidy(labels[1][place]) for place in across),
        flipped,
        strength.size - len(down) * len(across),
    )

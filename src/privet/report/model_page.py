"""Pages about models: what they promise, what they cost, their trees or tables, and their domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatch
from itertools import groupby

import numpy as np

from privet.models.model import Floats, Model, softmax
from privet.models.privacy_record import LEAF_QUESTIONS, Privacy, Step
from privet.models.tables import Table, Tables
from privet.models.tree import Ensemble, Tree
from privet.report import rendering
from privet.report.effects import SHOWN, by_weight, effects, figure, percent, shown_classes, signed, where, within
from privet.report.table_picture import minus, panels
from privet.report.table_text import tables_text
from privet.report.tree_picture import (
    CLASSES,
    LEAVES,
    class_colour,
    class_names,
    counts_text,
    marks_of,
    model_tree_on_page,
    path_to,
)
from privet.text import short_text

TREES, RULES, ROWS = 20, 500, 500  # at most, of each
BARS, PARTS, ROUNDS = 40, 40, 100  # at most: attributes, lines of a sum, and rounds of looking for one


@singledispatch
def page(model: Model) -> str:
    """Return a whole page about a model; it loads nothing and runs nothing."""
    raise TypeError(f"there is no page about a {type(model).__name__}.")


# -- trees --------------------------------------------------------------------------------------


@page.register
def _(model: Ensemble) -> str:
    classes, trees = class_names(model.domain), len(model.trees)
    order = (
        f"{'shares, which the trees multiply,' if model.vote == 'product' else 'numbers of rows'} in the order of the "
        "classes"
        if len(classes) <= 3
        else "the number of rows of the largest class"
    )
    return rendering.page(
        "tree_model.html",
        f"{model.domain.target}: {model.privacy.algorithm}",
        model=model,
        privacy=model.privacy,
        vote=f", {model.vote} vote" if trees > 1 else "",
        leaves=sum(tree.leaves for tree in model.trees),
        costs=costs(model.privacy),
        classes=[(class_colour(code), name) for code, name in enumerate(classes[: 3 * CLASSES])],
        classes_hidden=len(classes) - 3 * CLASSES,
        order=order,
        drawings=[
            model_tree_on_page(tree, LEAVES if not number else LEAVES // 4)
            for number, tree in enumerate(model.trees[:TREES])
        ],
        rules=_rules(model.trees[0]),
    )


def _rules(tree: Tree) -> list[str]:
    """A rule for each leaf, or of a large tree for nodes above them: together they hold for every row."""
    classes, marks = class_names(tree.domain), marks_of(tree, RULES, inner=False)
    return [
        f"if {path_to(marks, mark)} then {classes[mark.winner]} ({counts_text(mark.node, classes)})"
        + f" … {mark.hidden} more rules" * (mark.hidden > 0)
        if mark.node
        else f"… {mark.hidden} more rules"
        for mark in marks
        if not mark.split
    ]


# -- what was spent -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """A piece of a bar: its share, how strongly it is painted, and what to say of it."""

    width: str
    tint: str
    told: str


@dataclass(frozen=True)
class BudgetBar:
    """What was paid, piece by piece, and what is left."""

    pieces: Sequence[Piece]
    left: Piece | None
    kinds: Sequence[tuple[str, str]]  # and their tints


def budget_bar(paid: Sequence[tuple[str, Fraction, str]], left: Fraction) -> BudgetBar:
    """Return the bar of a budget.

    Parameters
    ----------
    paid : sequence of (str, Fraction, str)
        Of each piece its kind, its loss and what to say of it.
    left : Fraction
    """
    kinds = list(dict.fromkeys(kind for kind, _, _ in paid))
    tint = {kind: f"{1 - 0.75 * place / max(len(kinds), 3):.2f}" for place, kind in enumerate(kinds)}
    whole = sum((loss for _, loss, _ in paid), max(left, Fraction(0))) or Fraction(1)

    def wide(part: Fraction) -> str:
        """Shares below 1 in all would leave a part of the bar empty."""
        return f"{float(1000 * part / whole):.3f}"

    pieces = [Piece(wide(loss), tint[kind], told) for kind, loss, told in paid[:ROWS]]
    rest = Piece(wide(left), "1", f"not spent: {short_text(left)}") if left > 0 else None
    return BudgetBar(pieces, rest, [(kind, tint[kind]) for kind in kinds[:CLASSES]])


@dataclass(frozen=True)
class Paid:
    """What a question to the nodes of a level cost."""

    epsilon: Fraction
    parts: int
    on_path: bool  # of those who paid most


@dataclass(frozen=True)
class Costs:
    """What questions cost: level by level along a path, or one after the other."""

    said: str
    bar: BudgetBar
    by_level: bool
    unit: str = "epsilon"
    kinds: Sequence[str] = ()
    levels: Sequence[tuple[str, Sequence[Sequence[Paid]]]] = ()
    steps: Sequence[Step] = ()
    hidden: int = 0


def costs(privacy: Privacy) -> Costs | None:
    """Return what a model cost; None where nothing was asked."""
    steps = [step for step in privacy.steps if step.tree <= 0]
    if not steps:
        return None
    return _in_sequence(privacy) if all(step.tree < 0 for step in steps) else _along_a_path(privacy, steps)


def _along_a_path(privacy: Privacy, steps: list[Step]) -> Costs:
    """What the dearest path of the first tree paid, and what each level was asked."""
    path = [step for step in steps if step.tree < 0] + _dearest([step for step in steps if step.tree == 0])
    total = sum((step.epsilon for step in path), Fraction(0))
    trees = len({step.tree for step in privacy.steps if step.tree >= 0})
    how = "disjoint rows, so the dearest counts" if privacy.disjoint else "all rows, so their costs add"
    several = f" The {trees} trees saw {how}; the first is shown." if trees > 1 else ""
    others = Fraction(0) if privacy.disjoint else privacy.spent - total
    if privacy.added:
        amounts = ", ".join(map(short_text, privacy.added[:CLASSES])) + ", …" * (len(privacy.added) > CLASSES)
        several += f" Rows added later lost {amounts}; a person in several of these tables loses the sum."
    pieces = [(step.question, step.epsilon, _level_text(step)) for step in path]
    if trees > 1 and others > 0:
        pieces.append(("the other trees", others, f"the other trees: {short_text(others)}"))
    kinds = list(dict.fromkeys(step.question for step in steps))[:CLASSES]
    levels: dict[str, dict[str, list[Paid]]] = {}
    for step in steps:
        level = levels.setdefault("all" if step.tree < 0 else str(step.level), {kind: [] for kind in kinds})
        if step.question in level:
            level[step.question].append(Paid(step.epsilon, step.parts, step in path))
    said = (
        f"Epsilon {short_text(privacy.spent)} of {short_text(privacy.epsilon)}. The nodes of a level hold different "
        f"people, so a person pays along one path; the dearest, in bold, paid {short_text(total)}.{several}"
    )
    rows = [(name, list(level.values())) for name, level in list(levels.items())[:ROWS]]
    return Costs(said, budget_bar(pieces, privacy.epsilon - total - others), True, kinds=kinds, levels=rows)


def _level_text(step: Step) -> str:
    return f"{'all trees' if step.tree < 0 else f'level {step.level}'}: {step.question}, {short_text(step.epsilon)}"


def _dearest(steps: Sequence[Step]) -> list[Step]:
    """What a person on the dearest path paid: the splits above a level, and at it what ends a path."""
    mixed = [step for step in steps if step.path is not None]  # paths of one level paid for different questions
    if mixed:
        last = max(mixed, key=lambda step: step.path or Fraction(0))
        assert last.path is not None
        return [replace(last, question="before", epsilon=last.path - last.epsilon), last]
    above, dearest, end = Fraction(0), Fraction(-1), None
    for level, group in groupby(sorted(steps, key=lambda step: step.level), key=lambda step: step.level):
        here = list(group)
        ends = [step.epsilon for step in here if step.question in LEAF_QUESTIONS]
        sizes = sum((step.epsilon for step in here if step.question == "size"), Fraction(0))
        if ends and above + sizes + sum(ends) > dearest:
            dearest, end = above + sizes + sum(ends), level
        above += sum((step.epsilon for step in here), Fraction(0)) - sum(ends)
    if end is None:
        return list(steps)
    return [
        step
        for step in steps
        if step.level <= end and (step.question == "size" or (step.question in LEAF_QUESTIONS) == (step.level == end))
    ]


def _in_sequence(privacy: Privacy) -> Costs:
    """Questions to all rows, one after the other, and what each cost."""
    totals: dict[str, Fraction] = {}
    for step in privacy.steps:
        totals[_kind(step)] = totals.get(_kind(step), Fraction(0)) + step.epsilon
    pieces = [
        (
            f"{_kind(step)} {figure(float(totals[_kind(step)]))}",
            step.epsilon,
            f"{f'table {step.level}: ' if step.level else ''}{step.question}, {short_text(step.epsilon)}",
        )
        for step in privacy.steps
    ]
    unit = privacy.unit
    said = (
        f"{unit.capitalize()} {short_text(privacy.spent)} of {short_text(privacy.budget)}. Every question saw all "
        "rows, so what they cost adds up."
    )
    hidden = len(privacy.steps) - ROWS
    bar = budget_bar(pieces, privacy.budget - privacy.spent)
    return Costs(said, bar, False, unit, steps=privacy.steps[:ROWS], hidden=hidden)


def _kind(step: Step) -> str:
    if step.question.startswith("table of "):
        return "tables"
    if step.question.startswith("step "):
        return "steps"
    return "choices of tables" if step.question.startswith("choice of ") else step.question


# -- tables -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """A line of a list with a bar, in percent of the longest."""

    name: str
    told: str
    width: float


@page.register
def _(model: Tables) -> str:
    names = class_names(model.domain)
    charts, charts_hidden = panels(model)
    begin, moving, still = _begin(model)
    merged = len(model.merged().tables)
    return rendering.page(
        "tables_model.html",
        f"{model.domain.target}: {model.privacy.algorithm}",
        model=model,
        privacy=model.privacy,
        merged=merged if merged < len(model.tables) else 0,
        costs=costs(model.privacy),
        begin=begin,
        begin_hidden=len(begin) - BARS,
        moving=moving,
        moving_hidden=len(moving) - BARS,
        bars=BARS,
        still=", ".join(still[:BARS]) + ", …" * (len(still) > BARS),
        classes=names,
        charts=[chart.drawing.inline for chart in charts],
        charts_hidden=charts_hidden,
        sums=_sums(model),
        text=tables_text(model),
    )


def _begin(model: Tables) -> tuple[list[Share], list[Share], list[str]]:
    """Where a prediction begins, which attributes move it how far, and which do not."""
    names, shares = class_names(model.domain), softmax(np.array(model.intercept))
    order = np.argsort(-shares, kind="stable") if len(names) > 2 * SHOWN else np.arange(len(names))
    begin = [Share(names[code], percent(float(shares[code])), 100 * float(shares[code])) for code in order]
    found = sorted(model.importance.items(), key=lambda each: -each[1])
    top = max((weight for _, weight in found), default=1.0) or 1.0
    moving = [Share(name, figure(weight), 100 * weight / top) for name, weight in found if weight > 0]
    return begin, moving, [name for name, weight in found if not weight]


# -- a prediction as a sum ----------------------------------------------------------------------


@dataclass(frozen=True)
class SumLine:
    """A line of a sum: what it is about, and a number for each column; soft ones cannot be told from no effect."""

    words: str
    numbers: Sequence[tuple[str, bool]]
    total: bool = False


@dataclass(frozen=True)
class PredictionSum:
    """How a prediction comes about for one combination of cells."""

    title: str
    heads: Sequence[str]
    lines: Sequence[SumLine]


def likely(model: Tables, number: int) -> dict[str, int]:
    """A cell of each attribute, for which a class is likely: no other cell of one attribute makes it likelier."""
    tables = model.merged().tables
    names = list(dict.fromkeys(name for table in tables for name in table.columns))
    touching = {name: [table for table in tables if name in table.columns] for name in names}
    cells = {name: _best(_log_share(_average(touching[name], name), number)) for name in names}
    total = np.array(model.intercept) + sum((_entry(table, cells) for table in tables), np.zeros(1))
    for _ in range(ROUNDS):
        before = dict(cells)
        for name in names:
            rest = total - sum((_entry(table, cells) for table in touching[name]), np.zeros(1))
            choices = rest + sum((_along(table, name, cells) for table in touching[name]), np.zeros(1))
            scores = _log_share(choices, number)
            if scores.max() > scores[cells[name]] + 1e-9:
                cells[name] = _best(scores)
            total = choices[cells[name]]
        if cells == before:
            break
    return cells


def _log_share(logits: Floats, number: int) -> Floats:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted[..., number] - np.log(np.exp(shifted).sum(axis=-1)))


def _best(scores: Floats) -> int:
    return int(np.argmax(scores))


def _entry(table: Table, cells: dict[str, int]) -> Floats:
    return np.asarray(table.values[tuple(cells[name] for name in table.columns)])


def _along(table: Table, name: str, cells: dict[str, int]) -> Floats:
    """What a table adds for every cell of one attribute."""
    return np.asarray(table.values[tuple(slice(None) if each == name else cells[each] for each in table.columns)])


def _average(tables: Sequence[Table], name: str) -> Floats:
    """What tables add for every cell of one attribute, the others unknown."""
    found = np.zeros(1)
    for table in tables:
        others = tuple(axis for axis, each in enumerate(table.columns) if each != name)
        found = found + table.values.mean(axis=others)
    return found


def _sums(model: Tables) -> list[PredictionSum]:
    """For each class, or of many for some, a combination of cells and what each table adds for it."""
    if not model.tables:
        return []
    classes = [1, 0] if len(model.intercept) == 2 else shown_classes(model)
    return [_sum(model, number, likely(model, number)) for number in classes]


def _sum(model: Tables, number: int, cells: dict[str, int]) -> PredictionSum:
    """The sum for one combination, line by line: of two classes with the share so far, of more a column for each."""
    names, tables, shown = class_names(model.domain), by_weight(model), shown_classes(model)
    two = len(names) == 2
    sums = np.cumsum([model.intercept, *(_entry(table, cells) for table in tables)], axis=0)
    shares = softmax(sums)

    def line(words: str, numbers: Sequence[tuple[str, bool]], place: int, total: bool = False) -> SumLine:
        so_far = [(percent(float(shares[place, 1])), False)] if two else []
        return SumLine(words, [*numbers, *so_far], total)

    def plain(logits: Floats) -> list[tuple[str, bool]]:
        found = [logits[1] - logits[0]] if two else logits[shown]
        return [(minus(signed(float(value))), False) for value in found]

    lines = [line("to begin with", plain(sums[0]), 0)]
    for place, table in enumerate(tables[:PARTS], start=1):
        cell = tuple(cells[name] for name in table.columns)
        numbers = []
        for effect in effects(model, table, shown):
            error = within(effect.error[cell]) if effect.alone else ""
            numbers.append((f"{minus(signed(float(effect.values[cell])))}{error}", not effect.clear[cell]))
        lines.append(line(where(model.domain, table, cell), numbers, place))
    if len(tables) > PARTS:
        words = f"… {len(tables) - PARTS} more table{'s' * (len(tables) > PARTS + 1)}"
        lines.append(line(words, plain(sums[-1] - sums[PARTS]), -1))
    lines.append(line("together", plain(sums[-1]), -1, True))
    if not two:
        lines.append(line("share", [(percent(float(shares[-1, code])), False) for code in shown], -1, True))
    heads = [*(names[code] for code in shown), *["its share so far"] * two]
    return PredictionSum(f"Likely {names[number]}: {percent(float(shares[-1, number]))}", heads, lines)

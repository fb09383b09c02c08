"""A page about a sum of tables: its promise, its cost, every table, and a prediction worked out; it loads nothing."""

from __future__ import annotations

import html
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from privet.models.model import Floats, softmax
from privet.models.privacy_record import Privacy, Step
from privet.models.tables import Table, Tables
from privet.text import short_text
from privet.trees.drawing import class_names
from privet.trees.effects import (
    LESS,
    MINUS,
    MORE,
    SHOWN,
    Effect,
    by_weight,
    effects,
    figure,
    more,
    percent,
    shown_classes,
    signed,
    where,
    within,
)
from privet.trees.layout import safe
from privet.trees.page_parts import ROWS, budget_bar, decided, details, document, domain_table, promise
from privet.trees.table_drawing import STYLE, minus, panels, picture
from privet.trees.table_text import text

BARS, PARTS, ROUNDS = 40, 40, 100  # at most: attributes, lines of a sum, and rounds of looking for one

_STYLE = """
.charts { display: flex; flex-wrap: wrap; gap: 1.6rem 1.25rem; align-items: flex-start; }
.charts > div { max-width: 100%; overflow-x: auto; }
.bars td { border: 0; padding: .12rem .8rem .12rem 0; vertical-align: middle; }
.bars td:last-child { width: 100%; } .bars i { display: block; height: .8rem; background: var(--leaf);
  border-radius: .15rem; min-width: 1px; }
.number { text-align: right; white-space: nowrap; }
.sums { display: flex; flex-wrap: wrap; gap: 1.2rem 3rem; align-items: flex-start; } .sums > div { flex: 1 1 26rem; }
.sums .fit { width: 100%; } .sums .fit td:first-child { white-space: normal; overflow-wrap: break-word;
  min-width: 12rem; } .fit { width: auto; } .sums details { flex: 1 1 100%; margin: 0; }
.sum td { font-weight: 600; } h3 { font-size: 1rem; margin: .4rem 0; }
pre { overflow-x: auto; font-size: .8rem; line-height: 1.35; }
"""


def page(model: Tables) -> str:
    """A whole page about a model: its promise, what it cost, its tables, sums and domain; it loads nothing."""
    parts = [
        _heading(model),
        promise(model.privacy),
        decided(model.privacy),
        f"<section><h2>A note</h2><p>{safe(model.note)}</p></section>" if model.note else "",
        cost_in_sequence(model.privacy),
        _begin(model),
        _charts(model),
        _sums(model),
        details("Every number as text", f"<pre>{html.escape(text(model))}</pre>") if model.tables else "",
        details("The public domain", domain_table(model.domain)),
        '<p class="soft">Written by privet. Log odds are natural logarithms, ± is about 95%. Point at a label, a bar '
        "or a field to read it in full.</p>",
    ]
    return document(
        f"{model.domain.target}: {model.privacy.algorithm}", [part for part in parts if part], STYLE + _STYLE
    )


def _heading(model: Tables) -> str:
    merged = len(model.merged().tables)
    about = f"{model.privacy.algorithm}, {model.privacy.variant} variant · a sum of {model.summary}"
    if merged < len(model.tables):
        about += f", drawn as {merged}: those of the same attributes are added up"
    return f'<h1>What predicts {safe(str(model.domain.target), 200)}</h1><p class="soft">{safe(about)}</p>'


# -- what was spent -----------------------------------------------------------------------------


def _kind(step: Step) -> str:
    if step.question.startswith("table of "):
        return "tables"
    if step.question.startswith("step "):
        return "steps"
    return "choices of tables" if step.question.startswith("choice of ") else step.question


def cost_in_sequence(privacy: Privacy) -> str:
    """The budget of questions to all rows as a bar, one after the other, and what each cost."""
    if not privacy.steps:
        return ""
    totals: dict[str, Fraction] = {}
    for step in privacy.steps:
        totals[_kind(step)] = totals.get(_kind(step), Fraction(0)) + step.epsilon
    pieces = [
        (f"{_kind(step)} {figure(float(totals[_kind(step)]))}", step.epsilon, _told(step)) for step in privacy.steps
    ]
    rows = "".join(
        f'<tr><td class="number">{step.level or ""}</td><td>{safe(step.question, 120)}</td>'
        f'<td class="number">{short_text(step.epsilon)}</td></tr>'
        for step in privacy.steps[:ROWS]
    )
    left_out = _left_out(len(privacy.steps) - ROWS, "question")
    unit = privacy.unit
    heads = f'<tr><th class="number">table</th><th>question</th><th class="number">{unit}</th></tr>'
    return (
        f"<section><h2>What was spent</h2><p>{unit.capitalize()} {short_text(privacy.spent)} of "
        f"{short_text(privacy.budget)}. "
        "Every question saw all rows, so what they cost adds up.</p>"
        f"{budget_bar(pieces, privacy.budget - privacy.spent)}</section>"
        + details(
            "Every question and what it cost",
            f'<div class="scroll"><table class="fit">{heads}{rows}</table></div>{left_out}',
        )
    )


def _told(step: Step) -> str:
    return f"{f'table {step.level}: ' if step.level else ''}{step.question}, {short_text(step.epsilon)}"


# -- what the model says ------------------------------------------------------------------------


def _begin(model: Tables) -> str:
    """Where a prediction begins, and which attributes move it how far."""
    names, shares = class_names(model.domain), softmax(np.array(model.intercept))
    order = np.argsort(-shares, kind="stable") if len(names) > 2 * SHOWN else np.arange(len(names))
    begin = [(names[number], percent(float(shares[number])), float(shares[number])) for number in order]
    found = sorted(model.importance.items(), key=lambda each: -each[1])
    moving = [(name, figure(weight), weight) for name, weight in found if weight > 0]
    still = [name for name, weight in found if not weight]
    named = ", ".join(still[:BARS]) + ", …" * (len(still) > BARS)
    beside = f" In no table: {safe(named, 500)}." if still else ""
    moved = (
        f"<div><h2>Which attributes move it</h2>{_bars(moving, 'attribute', moving[0][2])}"
        '<p class="soft">The standard deviation of the log odds that an attribute adds by itself, over its cells, '
        f"those with few rows counting little, and half of what it adds only together with another.{beside}</p></div>"
        if moving
        else ""
    )
    return (
        '<section><div class="sums"><div><h2>Where a prediction begins</h2>'
        f"{_bars(begin, 'class', 1.0)}</div>{moved}</div></section>"
    )


def _bars(lines: Sequence[tuple[str, str, float]], unit: str, top: float) -> str:
    rows = "".join(
        f'<tr><td>{safe(name, 40)}</td><td class="number">{words}</td>'
        f'<td><i style="width:{100 * value / top:.1f}%"></i></td></tr>'
        for name, words, value in lines[:BARS]
    )
    return f'<table class="bars">{rows}</table>{_left_out(len(lines) - BARS, unit)}'


def _left_out(number: int, unit: str) -> str:
    return "".join(f"<p>{words}</p>" for words in more(number, unit, "…"))


def _charts(model: Tables) -> str:
    charts, hidden = panels(model)
    if not charts:
        return ""
    drawn = "".join(f"<div>{picture(chart)}</div>" for chart in charts)
    names = class_names(model.domain)
    colours = [(MORE, "makes the class likelier"), (LESS, "makes it less likely")]
    unit = (
        "A number is what a cell adds to the log odds of a class; 0.69 more than another doubles the odds against it."
    )
    if len(names) == 2:
        colours = [(MORE, f"for {names[1]}"), (LESS, f"for {names[0]}")]
        unit = (
            f"A number is what a cell adds to the log odds of {safe(names[1], 60)}: +0.69 doubles the odds, "
            f"{MINUS}0.69 halves them."
        )
    key = "".join(f'<span><i style="background:{colour}"></i>{safe(words, 80)}</span>' for colour, words in colours)
    return (
        f"<section><h2>What each table adds</h2><p>{unit} The lines and grey bands are ± about 95%; what is faint or "
        "hatched cannot be told from no effect. All charts have one scale, the table that moves predictions most comes "
        f'first, and epsilon is what it cost.</p><p class="key">{key}</p><div class="charts">{drawn}</div>'
        f"{_left_out(hidden, 'table')}</section>"
    )


# -- a prediction as a sum ----------------------------------------------------------------------


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


def _sums(model: Tables) -> str:
    """For each class, or of many for some, a combination of cells and what each table adds for it."""
    if not model.tables:
        return ""
    classes = [1, 0] if len(model.intercept) == 2 else shown_classes(model)
    drawn = "".join(_sum(model, number, likely(model, number)) for number in classes)
    return (
        "<section><h2>A prediction as a sum</h2><p>A prediction is where it begins plus one number from each table. "
        "These combinations were made up from the tables above, not found in the data: no other cell of one attribute "
        f'alone would make their class likelier, and nobody need be like them.</p><div class="sums">{drawn}</div>'
        "</section>"
    )


def _sum(model: Tables, number: int, cells: dict[str, int]) -> str:
    """The sum for one combination, line by line: of two classes with the share so far, of more a column for each."""
    names, tables, shown = class_names(model.domain), by_weight(model), shown_classes(model)
    two = len(names) == 2
    sums = np.cumsum([model.intercept, *(_entry(table, cells) for table in tables)], axis=0)
    shares = softmax(sums)

    def line(words: str, numbers: Sequence[str], place: int, kind: str = "") -> str:
        told = [*numbers, percent(float(shares[place, 1]))] if two else numbers
        fields = "".join(f'<td class="number">{each}</td>' for each in told)
        return f"<tr{kind}><td>{safe(words, 200)}</td>{fields}</tr>"

    def plain(logits: Floats) -> list[str]:
        found = [logits[1] - logits[0]] if two else logits[shown]
        return [minus(signed(float(value))) for value in found]

    lines = [line("to begin with", plain(sums[0]), 0)]
    for place, table in enumerate(tables[:PARTS], start=1):
        cell = tuple(cells[name] for name in table.columns)
        numbers = [_entered(effect, cell) for effect in effects(model, table, shown)]
        lines.append(line(where(model.domain, table, cell), numbers, place))
    if len(tables) > PARTS:
        lines.append(line(more(len(tables) - PARTS, "table", "…")[0], plain(sums[-1] - sums[PARTS]), -1))
    lines.append(line("together", plain(sums[-1]), -1, ' class="sum"'))
    if not two:
        lines.append(line("share", [percent(float(shares[-1, each])) for each in shown], -1, ' class="sum"'))
    heads = [*(names[each] for each in shown), *["its share so far"] * two]
    title = f"Likely {safe(names[number], 60)}: {percent(float(shares[-1, number]))}"
    head = "".join(f'<th class="number">{safe(each, 24)}</th>' for each in heads)
    drawn = f'<div class="scroll"><table class="fit"><tr><th>log odds of</th>{head}</tr>{"".join(lines)}</table></div>'
    if two:
        return f"<div><h3>{title}</h3>{drawn}</div>"
    return details(title, drawn)


def _entered(effect: Effect, cell: tuple[int, ...]) -> str:
    """A number of a sum: soft where it cannot be told from no effect, with its error where there is room."""
    error = within(effect.error[cell]) if effect.alone else ""
    number = f"{minus(signed(float(effect.values[cell])))}{error}"
    return number if effect.clear[cell] else f'<span class="soft">{number}</span>'

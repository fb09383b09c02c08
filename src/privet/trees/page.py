"""A page about a model: what it promises, what it cost, its trees, rules and domain, in one file that loads nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby

from privet.column import Nominal, decimal_text
from privet.domain import Domain
from privet.trees.drawing import CLASSES, COLOURS, LEAVES, class_names, counts_text, marks_of, path_to, safe, svg
from privet.trees.model import Ensemble, Tree
from privet.trees.record import LEAF_QUESTIONS, Privacy, Step

TREES, RULES, ROWS = 20, 500, 500  # at most, of each

_PAGE_STYLE = """
:root { color-scheme: light dark; --ink: #1d2a22; --soft: #5d6b62; --line: #d8ded9; --leaf: #2f7d4f;
  --paper: #fbfcfa; --card: #ffffff; --alarm: #b3261e; --alarmed: #fdeceb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ece7; --soft: #9aa89f; --line: #33403a; --leaf: #66c08a;
  --paper: #141a17; --card: #1b2320; --alarm: #ff8a80; --alarmed: #3b1d1b; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 76rem;
  margin: 2.5rem auto; padding: 0 1.2rem; overflow-wrap: anywhere; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0; } h2 { font-size: 1.1rem; margin: 0 0 .6rem; }
p { margin: .4rem 0; } sup { line-height: 0; } ol { font-size: .9rem; padding-left: 3rem; } li { margin: .15rem 0; }
section, details { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; margin: 1.1rem 0;
  padding: 1.1rem 1.4rem; } details { padding: .7rem 1.4rem; } summary { cursor: pointer; font-weight: 600; }
.soft { color: var(--soft); } .paid { font-weight: 600; } .big { font-size: 1.5rem; font-weight: 600; margin: 0; }
.alarm { border: 2px solid var(--alarm); background: var(--alarmed); } .alarm .big { color: var(--alarm); }
.scroll { overflow-x: auto; padding: .4rem 0; }
.wide { position: relative; left: 50%; transform: translateX(-50%); box-sizing: border-box; width: max-content;
  min-width: 100%; max-width: calc(100vw - 3rem); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td, th { padding: .3rem 1rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; text-align: left;
  font-variant-numeric: tabular-nums; } th { color: var(--soft); } td:first-child { white-space: nowrap; }
.bar { display: flex; height: 1.5rem; gap: 1px; border-radius: .3rem; overflow: hidden; margin: .7rem 0 .3rem; }
.bar i, .key i { background: var(--leaf); } .bar .left { background: var(--line); }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .9rem; margin: .2rem 0 .8rem; }
.key i { display: inline-block; width: .8rem; height: .8rem; border-radius: .15rem; margin-right: .4rem; }
"""


def page(model: Ensemble) -> str:
    """A whole page about a model: its promise, what it cost, its trees, rules and domain; it loads nothing."""
    tree = model.trees[0]
    title = safe(f"{model.domain.target}: {model.privacy.algorithm}", 200)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>{_PAGE_STYLE}</style></head><body>
{_heading(model)}
{_promise(model.privacy)}
{_cost(model.privacy)}
{_trees(model)}
{_details(f"The rules of the {'first ' * (len(model.trees) > 1)}tree", _rules(tree))}
{_details("The public domain", _domain(model.domain))}
<p class="soft">Written by privet. Numbers of rows are noisy, ± is about 95%. Point at a label to read it in full.</p>
</body></html>
"""


def _heading(model: Ensemble) -> str:
    trees, leaves = len(model.trees), sum(tree.leaves for tree in model.trees)
    vote = f", {model.vote} vote" if trees > 1 else ""
    about = f"{model.privacy.algorithm}, {model.privacy.variant} variant · {trees} tree{'s' * (trees > 1)}{vote}"
    return (
        f"<h1>What predicts {safe(str(model.domain.target), 200)}</h1>"
        f'<p class="soft">{safe(about)} · {leaves} lea{"f" if leaves == 1 else "ves"}</p>'
    )


def _promise(privacy: Privacy) -> str:
    if not privacy.private:
        reasons = "".join(f"<li>{safe(reason)}</li>" for reason in privacy.reasons)
        content = f'<p class="big">NOT PRIVATE</p><ul>{reasons}</ul><p>Do not publish it.</p>'
        return f'<section class="alarm">{content}</section>'
    epsilon = _loss(privacy.epsilon)
    rows = "one row" if privacy.rows_per_person == 1 else f"up to {privacy.rows_per_person} rows"
    factor = f" = {math.exp(privacy.epsilon):.3g}" if privacy.epsilon < 20 else ""
    return (
        f'<section><p class="big">epsilon {epsilon} per person</p><p>Pure differential privacy for every person with '
        f"{rows}: with or without them, no set of possible models becomes more than e<sup>{epsilon}</sup>{factor} "
        "times as likely. Whatever is computed from this page keeps that promise.</p></section>"
    )


def _cost(privacy: Privacy) -> str:
    """What the dearest path of the first tree paid, as a bar, and what each level was asked, as a table."""
    steps = [step for step in privacy.steps if step.tree <= 0]
    if not steps:
        return ""
    path = [step for step in steps if step.tree < 0] + _dearest([step for step in steps if step.tree == 0])
    total = sum((step.epsilon for step in path), Fraction(0))
    trees = len({step.tree for step in privacy.steps if step.tree >= 0})
    how = "disjoint rows, so the dearest counts" if privacy.disjoint else "all rows, so their costs add"
    several = f" The {trees} trees saw {how}; the first is shown." if trees > 1 else ""
    left = privacy.epsilon - total if trees <= 1 or privacy.disjoint else Fraction(0)
    if privacy.added:
        amounts = ", ".join(map(_loss, privacy.added[:CLASSES])) + ", …" * (len(privacy.added) > CLASSES)
        several += f" Rows added later lost {amounts}; a person in several of these tables loses the sum."
    return (
        f"<section><h2>What was spent</h2><p>Epsilon {_loss(privacy.spent)} of {_loss(privacy.epsilon)}. The nodes of "
        f"a level hold different people, so a person pays along one path; the dearest, in bold, paid {_loss(total)}."
        f'{several}</p>{_budget_bar(path, left)}<div class="scroll">{_levels(steps, set(path))}</div></section>'
    )


def _budget_bar(path: list[Step], left: Fraction) -> str:
    kinds = list(dict.fromkeys(step.question for step in path))
    tint = {kind: f"opacity:{1 - 0.75 * i / max(len(kinds), 3):.2f}" for i, kind in enumerate(kinds)}
    bar = "".join(
        f'<i style="flex:{float(step.epsilon):.6f};{tint[step.question]}" title="{safe(_told(step))}"></i>'
        for step in path[:ROWS]
    )
    if left > 0:
        bar += f'<i class="left" style="flex:{float(left):.6f}" title="not spent: {_loss(left)}"></i>'
    key = "".join(f'<span><i style="{tint[kind]}"></i>{safe(kind, 60)}</span>' for kind in kinds[:CLASSES])
    return f'<div class="bar">{bar}</div><p class="key">{key}</p>'


def _levels(steps: list[Step], paid: set[Step]) -> str:
    """A row for each level, a column for each question; what the dearest path paid stands out."""
    kinds = list(dict.fromkeys(step.question for step in steps))[:CLASSES]
    levels: dict[str, dict[str, str]] = {}
    for step in steps:
        level = levels.setdefault("all" if step.tree < 0 else str(step.level), dict.fromkeys(kinds, ""))
        told = f'<span class="{"paid" if step in paid else "soft"}">{_loss(step.epsilon)}</span>'
        nodes = f'<small class="soft">{step.parts} node{"s" * (step.parts != 1)}</small>'
        if step.question in level:
            level[step.question] += f"<div>{told} {nodes}</div>"
    rows = "".join(
        f"<tr><td>{name}</td><td>{'</td><td>'.join(level.values())}</td></tr>"
        for name, level in list(levels.items())[:ROWS]
    )
    heads = "".join(f"<th>{safe(kind, 60)}</th>" for kind in kinds)
    return f"<table><tr><th>level</th>{heads}</tr>{rows}</table>"


def _dearest(steps: Sequence[Step]) -> list[Step]:
    """What a person on the dearest path paid: the splits above a level, and at it what ends a path."""
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


def _told(step: Step) -> str:
    return f"{'all trees' if step.tree < 0 else f'level {step.level}'}: {step.question}, {_loss(step.epsilon)}"


def _loss(loss: Fraction) -> str:
    exact = decimal_text(loss)
    return exact if len(exact) <= 12 else f"{float(loss):.6g}"


def _trees(model: Ensemble) -> str:
    classes = class_names(model.domain)
    key = "".join(
        f'<span><i style="background:{COLOURS[i % len(COLOURS)]}"></i>{safe(label, 60)}</span>'
        for i, label in enumerate(classes[: 3 * CLASSES])
    )
    more = f"… {len(classes) - 3 * CLASSES} more classes" if len(classes) > 3 * CLASSES else ""
    order = (
        "numbers of rows in the order of the classes"
        if len(classes) <= 3
        else "the number of rows of the largest class"
    )
    number = f" 1 of {len(model.trees)}" if len(model.trees) > 1 else ""
    drawn = (
        f'<section class="wide"><h2>Tree{number}</h2><p class="key">{key}{more}</p><p class="soft">A bar shows '
        f"the shares of the classes, the text the largest class and {order}.</p>"
        f'<div class="scroll">{svg(model.trees[0])}</div></section>'
    )
    for i, tree in enumerate(model.trees[1:TREES], start=2):
        drawn += _details(f"Tree {i} of {len(model.trees)}", f'<div class="scroll">{svg(tree, LEAVES // 4)}</div>')
    return drawn + (f"<p>… {len(model.trees) - TREES} more trees</p>" if len(model.trees) > TREES else "")


def _rules(tree: Tree) -> str:
    """A rule for each leaf, or of a large tree for nodes above them: together they hold for every row."""
    classes, marks = class_names(tree.domain), marks_of(tree, RULES, inner=False)
    rules = [
        f"if {path_to(marks, mark)} then {classes[mark.winner]} ({counts_text(mark.node, classes)})"
        + f" … {mark.hidden} more rules" * (mark.hidden > 0)
        if mark.node
        else f"… {mark.hidden} more rules"
        for mark in marks
        if not mark.split
    ]
    return f"<ol>{''.join(f'<li>{safe(rule)}</li>' for rule in rules)}</ol>"


def _domain(domain: Domain) -> str:
    rows = "".join(
        f"<tr><td>{safe(column.name, 60)}{' (target)' * (column.name == domain.target)}</td>"
        f"<td>{'nominal' if isinstance(column, Nominal) else 'numeric'}</td>"
        f"<td>{column.size}</td><td>{safe(', '.join(column.labels[:100]), 300)}</td></tr>"
        for column in domain.columns[:ROWS]
    )
    heads = "<tr><th>column</th><th>kind</th><th>cells</th><th>values</th></tr>"
    more = f"<p>… {len(domain.columns) - ROWS} more columns</p>" if len(domain.columns) > ROWS else ""
    return f'<div class="scroll"><table>{heads}{rows}</table></div>{more}'


def _details(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"

"""A page about a model: what it promises, what it cost, its trees, rules and domain, in one file that loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby

from privet.models.privacy_record import LEAF_QUESTIONS, Privacy, Step
from privet.models.tree import Ensemble, Tree
from privet.text import short_text
from privet.trees.drawing import CLASSES, COLOURS, LEAVES, class_names, counts_text, marks_of, path_to, svg
from privet.trees.layout import safe
from privet.trees.page_parts import ROWS, budget_bar, decided, details, document, domain_table, promise
from privet.trees.table_page import cost_in_sequence

TREES, RULES = 20, 500  # at most, of each


def page(model: Ensemble) -> str:
    """A whole page about a model: its promise, what it cost, its trees, rules and domain; it loads nothing."""
    tree = model.trees[0]
    parts = [
        _heading(model),
        promise(model.privacy),
        decided(model.privacy),
        cost(model.privacy),
        _trees(model),
        details(f"The rules of the {'first ' * (len(model.trees) > 1)}tree", _rules(tree)),
        details("The public domain", domain_table(model.domain)),
        '<p class="soft">Written by privet. Numbers of rows are noisy, ± is about 95%. Point at a label to read it in '
        "full.</p>",
    ]
    return document(f"{model.domain.target}: {model.privacy.algorithm}", parts)


def _heading(model: Ensemble) -> str:
    trees, leaves = len(model.trees), sum(tree.leaves for tree in model.trees)
    vote = f", {model.vote} vote" if trees > 1 else ""
    about = f"{model.privacy.algorithm}, {model.privacy.variant} variant · {trees} tree{'s' * (trees > 1)}{vote}"
    return (
        f"<h1>What predicts {safe(str(model.domain.target), 200)}</h1>"
        f'<p class="soft">{safe(about)} · {leaves} lea{"f" if leaves == 1 else "ves"}</p>'
    )


def cost(privacy: Privacy) -> str:
    """What the dearest path of the first tree paid, as a bar, and what each level was asked, as a table."""
    steps = [step for step in privacy.steps if step.tree <= 0]
    if not steps:
        return ""
    if all(step.tree < 0 for step in steps):  # trees made from tables
        return cost_in_sequence(privacy)
    path = [step for step in steps if step.tree < 0] + _dearest([step for step in steps if step.tree == 0])
    total = sum((step.epsilon for step in path), Fraction(0))
    trees = len({step.tree for step in privacy.steps if step.tree >= 0})
    how = "disjoint rows, so the dearest counts" if privacy.disjoint else "all rows, so their costs add"
    several = f" The {trees} trees saw {how}; the first is shown." if trees > 1 else ""
    others = Fraction(0) if privacy.disjoint else privacy.spent - total
    if privacy.added:
        amounts = ", ".join(map(short_text, privacy.added[:CLASSES])) + ", …" * (len(privacy.added) > CLASSES)
        several += f" Rows added later lost {amounts}; a person in several of these tables loses the sum."
    pieces = [(step.question, step.epsilon, _told(step)) for step in path]
    if trees > 1 and others > 0:
        pieces.append(("the other trees", others, f"the other trees: {short_text(others)}"))
    bar = budget_bar(pieces, privacy.epsilon - total - others)
    return (
        f"<section><h2>What was spent</h2><p>Epsilon {short_text(privacy.spent)} of {short_text(privacy.epsilon)}. "
        "The nodes of a level hold different people, so a person pays along one path; the dearest, in bold, paid "
        f"{short_text(total)}."
        f'{several}</p>{bar}<div class="scroll">{_levels(steps, set(path))}</div></section>'
    )


def _levels(steps: list[Step], paid: set[Step]) -> str:
    """A row for each level, a column for each question; what the dearest path paid stands out."""
    kinds = list(dict.fromkeys(step.question for step in steps))[:CLASSES]
    levels: dict[str, dict[str, str]] = {}
    for step in steps:
        level = levels.setdefault("all" if step.tree < 0 else str(step.level), dict.fromkeys(kinds, ""))
        told = f'<span class="{"paid" if step in paid else "soft"}">{short_text(step.epsilon)}</span>'
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


def _told(step: Step) -> str:
    return f"{'all trees' if step.tree < 0 else f'level {step.level}'}: {step.question}, {short_text(step.epsilon)}"


def _trees(model: Ensemble) -> str:
    classes = class_names(model.domain)
    key = "".join(
        f'<span><i style="background:{COLOURS[i % len(COLOURS)]}"></i>{safe(label, 60)}</span>'
        for i, label in enumerate(classes[: 3 * CLASSES])
    )
    more = f"… {len(classes) - 3 * CLASSES} more classes" if len(classes) > 3 * CLASSES else ""
    what = "shares, which the trees multiply," if model.vote == "product" else "numbers of rows"
    order = f"{what} in the order of the classes" if len(classes) <= 3 else "the number of rows of the largest class"
    number = f" 1 of {len(model.trees)}" if len(model.trees) > 1 else ""
    drawn = (
        f'<section class="wide"><h2>Tree{number}</h2><p class="key">{key}{more}</p><p class="soft">A bar shows '
        f"the shares of the classes, the text the largest class and {order}.</p>"
        f'<div class="scroll">{svg(model.trees[0])}</div></section>'
    )
    for i, tree in enumerate(model.trees[1:TREES], start=2):
        drawn += details(f"Tree {i} of {len(model.trees)}", f'<div class="scroll">{svg(tree, LEAVES // 4)}</div>')
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

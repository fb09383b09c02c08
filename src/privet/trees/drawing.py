"""Drawings of a model: as text, as SVG, and as a page that also says what it promises and what it cost.

They show released values and public labels alone. A label is whatever somebody wrote into a
domain or a model file: every one is cleaned of control characters, shortened and escaped.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

import numpy as np

from privet.column import Nominal, decimal_text
from privet.domain import Domain
from privet.trees.model import Ensemble, Leaf, Split, Tree, condition
from privet.trees.record import LEAF_QUESTIONS, Privacy, Step

LINES, LEAVES, TREES, RULES, ROWS, CLASSES = 400, 200, 20, 500, 500, 10  # at most, of each
# Petroff's ten: apart for every kind of colour vision, on light and dark paper (arXiv:2107.02270).
COLOURS = "#3f90da #ffa90e #bd1f01 #94a4a2 #832db6 #a96b59 #e76300 #b9ac70 #717581 #92dadd".split()
ROW, BAR, LETTER, BOLD, GAP = 18, 64, 6.9, 7.8, 12.0  # pixels
LABEL, NAME, LONG = 24, 20, 1000  # letters


@dataclass(frozen=True)
class Mark:
    """One place of a drawing: a node, or without one what is left out of its parent's children."""

    above: int  # the place of the parent
    depth: int
    number: int
    node: Split | Leaf | None
    label: str  # on the edge that leads here
    condition: str
    last: bool  # among its siblings
    hidden: int  # not drawn below: nodes of a text, leaves of a picture
    winner: int  # the class predicted here

    @property
    def split(self) -> Split | None:
        """The node, if its children are drawn."""
        return self.node if isinstance(self.node, Split) and not self.hidden else None


def _marks(tree: Tree, room: int, max_depth: int | None = None, *, inner: bool) -> list[Mark]:
    """What fits into some places, depth first; inner nodes take a place only if `inner`."""
    drawn, below = _drawn(tree, room, max_depth, inner), _below(tree, inner)
    marks: list[Mark] = []
    waiting = [(-1, 0, 0, "", "all rows", True)]
    while waiting:
        above, depth, number, label, words, last = waiting.pop()
        node = tree.node(number) if number >= 0 else None
        shown = drawn.get(number, 0)
        hidden = -number if node is None else below[number] - inner if isinstance(node, Split) and not shown else 0
        marks.append(Mark(above, depth, number, node, label, words, last, hidden, int(tree.labels[max(number, 0)])))
        if not isinstance(node, Split) or not shown:
            continue
        here, rest = len(marks) - 1, sum(below[child] for child in node.children[shown:])
        if rest:
            waiting.append((here, depth + 1, -rest, "", "", True))
        for i in reversed(range(shown)):
            words = _clean(condition(node, node.labels[i]))
            last = i == len(node.children) - 1
            waiting.append((here, depth + 1, node.children[i], _clean(node.labels[i]), words, last))
    return marks


def _drawn(tree: Tree, room: int, max_depth: int | None, inner: bool) -> dict[int, int]:
    """How many children nodes show: level by level, large nodes first, until the room is used up."""
    drawn: dict[int, int] = {}
    level, depth, room = [0], 0, room - 1
    while level and depth != max_depth:
        splits = sorted((n for n in level if tree.first[n] >= 0), key=lambda n: -float(tree.counts[n].sum()))
        level, depth = [], depth + 1
        for number in splits:
            node = tree.node(number)
            assert isinstance(node, Split)
            cost = max(len(node.children) - (not inner), 1)  # a chain of only children is not for nothing
            if cost <= room:
                room -= cost
                drawn[number] = len(node.children)
                level += node.children
        if not drawn and splits:
            drawn[0] = room  # a root too wide to show whole
        if any(number not in drawn for number in splits):
            break
    return drawn


def _below(tree: Tree, inner: bool) -> list[int]:
    """How many leaves, or nodes if `inner`, each subtree has."""
    below: list[int] = [1] * len(tree) if inner else tree.is_leaf.astype(int).tolist()
    parents = tree.parents.tolist()
    for number in range(len(tree) - 1, 0, -1):
        below[parents[number]] += below[number]
    return below


# -- words --------------------------------------------------------------------------------------

# Control characters, half surrogates, line separators and marks that turn the direction of text.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def _clean(words: str) -> str:
    """Text that a terminal and an XML reader can bear: control characters become pictures of themselves."""
    return _UNSAFE.sub(lambda found: chr(0x2400 + ord(found[0])) if found[0] < " " else "\ufffd", words)


def _width(words: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in words)


def _short(words: str, width: int) -> str:
    """As much of a text as fits."""
    if len(words) <= width and _width(words) <= width:
        return words
    kept = words[: width - 1]
    while _width(kept) > width - 1:
        kept = kept[:-1]
    return kept + "…"


def _safe(words: str, width: int = LONG) -> str:
    return html.escape(_short(_clean(words), width))


def _classes(domain: Domain) -> list[str]:
    return [_clean(label) for label in domain.target_column.texts]


def _number(value: float) -> str:
    return f"{value + 0.0:.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.2g}"


def _error(node: Split | Leaf) -> str:
    """The half width of about 95%."""
    return f" ± {_number(1.96 * node.deviation)}" if node.deviation else ""


def _counts(node: Split | Leaf, classes: Sequence[str]) -> str:
    """The number of each class, or of many classes the largest ones."""
    order = range(len(classes)) if len(classes) <= CLASSES else np.argsort(node.counts)[: -CLASSES - 1 : -1].tolist()
    told = [f"{classes[i]} {_number(node.counts[i])}{_error(node)}" for i in order]
    return ", ".join(told + ["..."] * (len(classes) > CLASSES))


# -- text ---------------------------------------------------------------------------------------


def text(model: Ensemble, max_depth: int | None = None) -> str:
    """The trees as indented text; of a large one the deepest levels are left out."""
    lines = [_clean(repr(model)), *(_clean(f"not private: {reason}") for reason in model.privacy.reasons)]
    for number, tree in enumerate(model.trees, start=1):
        lines += [f"tree {number} of {len(model.trees)}"] * (len(model.trees) > 1)
        lines += _lines(_marks(tree, LINES, max_depth, inner=True), _classes(tree.domain))
    return "\n".join(lines)


def _lines(marks: list[Mark], classes: Sequence[str]) -> Iterator[str]:
    stems = [""]  # what stands before the children of the node at each depth
    for mark in marks:
        del stems[max(mark.depth, 1) :]
        stem = stems[-1] + ("└── " if mark.last else "├── ") if mark.depth else ""
        stems += [stems[-1] + ("    " if mark.last else "│   ")] * (mark.depth > 0)
        more = f"... {mark.hidden} more node{'s' * (mark.hidden > 1)}" if mark.hidden else ""
        if mark.node is None:
            yield stem + more
        elif not mark.split:
            what = f"{mark.condition}: {classes[mark.winner]} ({_counts(mark.node, classes)})"
            yield f"{stem}{what} {more}".rstrip()
        elif mark.depth:
            yield stem + mark.condition


# -- SVG ----------------------------------------------------------------------------------------

# The style of an inline SVG reaches the whole page it stands in, hence the prefix.
_SVG_STYLE = """.privet-tree text{font:11px system-ui,sans-serif;fill:currentColor}
.privet-tree .name{font-size:12px;font-weight:600}.privet-tree .aside{opacity:.72}
.privet-tree .count{font-variant-numeric:tabular-nums}
.privet-tree .edge{fill:none;stroke:currentColor;opacity:.3}.privet-tree circle{fill:currentColor}"""


def svg(tree: Tree, max_leaves: int = LEAVES) -> str:
    """The tree as one picture, root left, a line for each leaf; of a large one the deepest levels are left out."""
    marks = _marks(tree, max_leaves, inner=False)
    classes = _classes(tree.domain)
    edges, nodes = _columns(marks)
    heights = _heights(marks)
    ends = [mark for mark in marks if not mark.split]
    aligned = max(nodes) if max(nodes) < 900 else 0.0  # the leaves in one column, where that is near enough
    label = GAP + LETTER * max(_width(_short(classes[mark.winner], LABEL)) if mark.node else 0 for mark in ends)
    digits = max(len(_number(count)) for mark in ends if mark.node for count in _counted(mark.node))
    width = max(nodes) + BAR + GAP + label + LETTER * max(len(_tail(mark, digits)) for mark in ends) + GAP
    lines, drawn = [], []
    for place, (mark, y) in enumerate(zip(marks, heights, strict=True)):
        x = nodes[mark.depth] if mark.split else max(aligned, nodes[mark.depth])
        if mark.depth:
            outer = mark.last or place == mark.above + 1
            lines.append(_edge(edges[mark.depth], heights[mark.above], y, x, outer))
            drawn.append(_text(edges[mark.depth] + 7, y - 3, mark.label, LABEL, "aside", mark.condition))
        if mark.split:
            name, told = _clean(mark.split.attribute), _counts(mark.split, classes)
            end = x + 8 + BOLD * _width(_short(name, NAME))
            lines.append(f"M{end:.0f} {y}H{edges[mark.depth + 1]:.0f}")
            drawn.append(f'<circle cx="{x:.0f}" cy="{y}" r="3"/>')
            drawn.append(_text(x + 8, y + 4, name, NAME, "name", f"{name}: {told}"))
        else:
            drawn.append(_leaf(mark, tree, x, y, label, classes, digits, _path(marks, mark)))
    height = ROW * len(ends) + 8
    size = f'viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"'
    said = _safe(f"A decision tree for {tree.domain.target} with {tree.leaves} leaves")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="privet-tree" {size} role="img" aria-label="{said}">'
        f'<style>{_SVG_STYLE}</style><path class="edge" transform="translate(.5 .5)" d="{"".join(lines)}"/>'
        f"{''.join(drawn)}</svg>"
    )


def _columns(marks: list[Mark]) -> tuple[list[float], list[float]]:
    """Where the edges that lead to each depth begin, and where its nodes."""
    depths = 1 + max(mark.depth for mark in marks)
    labels, names = [0] * depths, [0] * depths
    for mark in marks:
        labels[mark.depth] = max(labels[mark.depth], _width(_short(mark.label, LABEL)))
        if mark.split:
            names[mark.depth] = max(names[mark.depth], _width(_short(_clean(mark.split.attribute), NAME)))
    edges, nodes, x = [], [], 0.0
    for label, name in zip(labels, names, strict=True):
        edges.append(x)
        nodes.append(x + GAP + LETTER * label)
        x = nodes[-1] + 8 + BOLD * name + GAP
    return edges, nodes


def _heights(marks: list[Mark]) -> list[int]:
    """A row for each end; a node stands in the middle of its children."""
    heights = [0] * len(marks)
    spans: dict[int, tuple[int, int]] = {}
    row = sum(not mark.split for mark in marks)
    for place in range(len(marks) - 1, -1, -1):
        if place in spans:
            heights[place] = round(sum(spans[place]) / 2)
        else:
            row -= 1
            heights[place] = 4 + ROW * row + ROW // 2
        above, y = marks[place].above, heights[place]
        spans[above] = (y, spans.get(above, (y, y))[1])
    return heights


def _edge(x: float, parent: int, child: int, end: float, outer: bool) -> str:
    """A line from the spine of a parent to a child; the outer children draw the spine."""
    bend = max(-5, min(5, child - parent)) if outer else 0
    spine = f"M{x:.0f} {parent}V{child - bend}q0 {bend} 5 {bend}" if outer else f"M{x:.0f} {child}"
    return f"{spine}H{end:.0f}"


def _text(x: float, y: int, words: str, width: int, kind: str, title: str = "") -> str:
    told = f"<title>{_safe(title)}</title>" if title else ""
    return f'<text class="{kind}" x="{x:.0f}" y="{y}">{told}{_safe(words, width)}</text>'


def _path(marks: list[Mark], mark: Mark) -> str:
    conditions = []
    while mark.depth:
        conditions.append(mark.condition)
        mark = marks[mark.above]
    return " and ".join(reversed(conditions)) or mark.condition


def _leaf(
    mark: Mark, tree: Tree, x: float, y: int, label: float, classes: Sequence[str], digits: int, path: str
) -> str:
    """The class shares as a bar, the class and its numbers."""
    if mark.node is None:
        return _text(x + 4, y + 4, _tail(mark, digits), LONG, "aside")
    left, drawn = x, []
    for number, share in enumerate(tree.shares[mark.number].tolist()):
        if share * BAR >= 0.5:
            place = f'x="{left:.1f}" y="{y - 5}" width="{share * BAR:.1f}" height="10"'
            drawn.append(f'<rect {place} fill="{COLOURS[number % len(COLOURS)]}"/>')
        left += share * BAR
    drawn.append(_text(x + BAR + 6, y + 4, classes[mark.winner], LABEL, "class"))
    drawn.append(_text(x + BAR + 6 + label, y + 4, _tail(mark, digits), LONG, "count"))
    return f"<g><title>{_safe(f'{path}: {_counts(mark.node, classes)}')}</title>{''.join(drawn)}</g>"


def _counted(node: Split | Leaf) -> tuple[float, ...]:
    """The numbers that fit beside a bar: of all classes in their order, or of many the largest."""
    return node.counts if len(node.counts) <= 3 else (max(node.counts),)


def _tail(mark: Mark, digits: int) -> str:
    """The numbers of a leaf, one below the other thanks to spaces as wide as a digit, and what is left out below it."""
    more = [f"… {mark.hidden} more lea{'f' if mark.hidden == 1 else 'ves'}"] * (mark.hidden > 0)
    if mark.node is None:
        return "".join(more)
    counts = " · ".join(_number(count).rjust(digits, "\u2007") for count in _counted(mark.node))
    return "  ".join([counts + _error(mark.node), *more])


# -- the page -----------------------------------------------------------------------------------

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
    title = _safe(f"{model.domain.target}: {model.privacy.algorithm}", 200)
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
        f"<h1>What predicts {_safe(str(model.domain.target), 200)}</h1>"
        f'<p class="soft">{_safe(about)} · {leaves} lea{"f" if leaves == 1 else "ves"}</p>'
    )


def _promise(privacy: Privacy) -> str:
    if not privacy.private:
        reasons = "".join(f"<li>{_safe(reason)}</li>" for reason in privacy.reasons)
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
        f'<i style="flex:{float(step.epsilon):.6f};{tint[step.question]}" title="{_safe(_told(step))}"></i>'
        for step in path[:ROWS]
    )
    if left > 0:
        bar += f'<i class="left" style="flex:{float(left):.6f}" title="not spent: {_loss(left)}"></i>'
    key = "".join(f'<span><i style="{tint[kind]}"></i>{_safe(kind, 60)}</span>' for kind in kinds[:CLASSES])
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
    heads = "".join(f"<th>{_safe(kind, 60)}</th>" for kind in kinds)
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
    classes = _classes(model.domain)
    key = "".join(
        f'<span><i style="background:{COLOURS[i % len(COLOURS)]}"></i>{_safe(label, 60)}</span>'
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
    classes, marks = _classes(tree.domain), _marks(tree, RULES, inner=False)
    rules = [
        f"if {_path(marks, mark)} then {classes[mark.winner]} ({_counts(mark.node, classes)})"
        + f" … {mark.hidden} more rules" * (mark.hidden > 0)
        if mark.node
        else f"… {mark.hidden} more rules"
        for mark in marks
        if not mark.split
    ]
    return f"<ol>{''.join(f'<li>{_safe(rule)}</li>' for rule in rules)}</ol>"


def _domain(domain: Domain) -> str:
    rows = "".join(
        f"<tr><td>{_safe(column.name, 60)}{' (target)' * (column.name == domain.target)}</td>"
        f"<td>{'nominal' if isinstance(column, Nominal) else 'numeric'}</td>"
        f"<td>{column.size}</td><td>{_safe(', '.join(column.labels[:100]), 300)}</td></tr>"
        for column in domain.columns[:ROWS]
    )
    heads = "<tr><th>column</th><th>kind</th><th>cells</th><th>values</th></tr>"
    more = f"<p>… {len(domain.columns) - ROWS} more columns</p>" if len(domain.columns) > ROWS else ""
    return f'<div class="scroll"><table>{heads}{rows}</table></div>{more}'


def _details(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"

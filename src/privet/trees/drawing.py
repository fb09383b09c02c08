"""Drawings of a model: as text and as SVG.

They show released values and public labels alone. A label is whatever somebody wrote into a
domain or a model file: every one is cleaned of control characters, shortened and escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privet.kernel import Domain
from privet.models.tree import Ensemble, Leaf, Split, Tree, condition
from privet.trees.layout import (
    BOLD,
    GAP,
    LABEL,
    LETTER,
    LONG,
    NAME,
    ROW,
    clean,
    columns,
    edge_to,
    heights_of,
    safe,
    shortened,
    text_at,
    width_of,
)

LINES, LEAVES, CLASSES = 400, 200, 10  # at most, of each
# Petroff's ten: apart for every kind of colour vision, on light and dark paper (arXiv:2107.02270).
COLOURS = "#3f90da #ffa90e #bd1f01 #94a4a2 #832db6 #a96b59 #e76300 #b9ac70 #717581 #92dadd".split()
BAR = 64  # pixels


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


def marks_of(tree: Tree, room: int, max_depth: int | None = None, *, inner: bool) -> list[Mark]:
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
            words = clean(condition(node, node.labels[i]))
            last = i == len(node.children) - 1
            waiting.append((here, depth + 1, node.children[i], clean(node.labels[i]), words, last))
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


def class_names(domain: Domain) -> list[str]:
    return [clean(label) for label in domain.target_column.texts]


def _number(value: float) -> str:
    return f"{value + 0.0:.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.2g}"


def _error(node: Split | Leaf) -> str:
    """The half width of about 95%."""
    return f" ± {_number(1.96 * node.deviation)}" if node.deviation else ""


def counts_text(node: Split | Leaf, classes: Sequence[str]) -> str:
    """The number of each class, or of many classes the largest ones."""
    order = range(len(classes)) if len(classes) <= CLASSES else np.argsort(node.counts)[: -CLASSES - 1 : -1].tolist()
    told = [f"{classes[i]} {_number(node.counts[i])}{_error(node)}" for i in order]
    return ", ".join(told + ["..."] * (len(classes) > CLASSES))


# -- text ---------------------------------------------------------------------------------------


def text(model: Ensemble, max_depth: int | None = None) -> str:
    """The trees as indented text; of a large one the deepest levels are left out."""
    lines = [clean(repr(model)), *(clean(f"not private: {reason}") for reason in model.privacy.reasons)]
    for number, tree in enumerate(model.trees, start=1):
        lines += [f"tree {number} of {len(model.trees)}"] * (len(model.trees) > 1)
        lines += _lines(marks_of(tree, LINES, max_depth, inner=True), class_names(tree.domain))
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
            what = f"{mark.condition}: {classes[mark.winner]} ({counts_text(mark.node, classes)})"
            yield f"{stem}{what} {more}".rstrip()
        elif mark.depth:
            yield stem + mark.condition


# -- SVG ----------------------------------------------------------------------------------------

# The style of an inline SVG reaches the whole page it stands in, hence the prefix.
STYLE = """.privet-tree text{font:11px system-ui,sans-serif;fill:currentColor}
.privet-tree .name{font-size:12px;font-weight:600}.privet-tree .aside{opacity:.72}
.privet-tree .count{font-variant-numeric:tabular-nums}
.privet-tree .edge{fill:none;stroke:currentColor;opacity:.3}.privet-tree circle{fill:currentColor}"""


def svg(tree: Tree, max_leaves: int = LEAVES) -> str:
    """The tree as one picture, root left, a line for each leaf; of a large one the deepest levels are left out."""
    marks = marks_of(tree, max_leaves, inner=False)
    classes = class_names(tree.domain)
    edges, nodes = columns(
        [(mark.depth, mark.label, clean(mark.split.attribute) if mark.split else "") for mark in marks]
    )
    heights = heights_of([mark.above for mark in marks])
    ends = [mark for mark in marks if not mark.split]
    aligned = max(nodes) if max(nodes) < 900 else 0.0  # the leaves in one column, where that is near enough
    label = GAP + LETTER * max(width_of(shortened(classes[mark.winner], LABEL)) if mark.node else 0 for mark in ends)
    digits = max(len(_number(count)) for mark in ends if mark.node for count in _counted(mark.node))
    width = max(nodes) + BAR + GAP + label + LETTER * max(len(_tail(mark, digits)) for mark in ends) + GAP
    lines, drawn = [], []
    for place, (mark, y) in enumerate(zip(marks, heights, strict=True)):
        x = nodes[mark.depth] if mark.split else max(aligned, nodes[mark.depth])
        if mark.depth:
            outer = mark.last or place == mark.above + 1
            lines.append(edge_to(edges[mark.depth], heights[mark.above], y, x, outer))
            drawn.append(text_at(edges[mark.depth] + 7, y - 3, mark.label, LABEL, "aside", mark.condition))
        if mark.split:
            name, told = clean(mark.split.attribute), counts_text(mark.split, classes)
            end = x + 8 + BOLD * width_of(shortened(name, NAME))
            lines.append(f"M{end:.0f} {y}H{edges[mark.depth + 1]:.0f}")
            drawn.append(f'<circle cx="{x:.0f}" cy="{y}" r="3"/>')
            drawn.append(text_at(x + 8, y + 4, name, NAME, "name", f"{name}: {told}"))
        else:
            drawn.append(_leaf(mark, tree, x, y, label, classes, digits, path_to(marks, mark)))
    height = ROW * len(ends) + 8
    size = f'viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"'
    said = safe(f"A decision tree for {tree.domain.target} with {tree.leaves} leaves")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="privet-tree" {size} role="img" aria-label="{said}">'
        f'<style>{STYLE}</style><path class="edge" transform="translate(.5 .5)" d="{"".join(lines)}"/>'
        f"{''.join(drawn)}</svg>"
    )


def path_to(marks: list[Mark], mark: Mark) -> str:
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
        return text_at(x + 4, y + 4, _tail(mark, digits), LONG, "aside")
    left, drawn = x, []
    for number, share in enumerate(tree.shares[mark.number].tolist()):
        if share * BAR >= 0.5:
            place = f'x="{left:.1f}" y="{y - 5}" width="{share * BAR:.1f}" height="10"'
            drawn.append(f'<rect {place} fill="{COLOURS[number % len(COLOURS)]}"/>')
        left += share * BAR
    drawn.append(text_at(x + BAR + 6, y + 4, classes[mark.winner], LABEL, "class"))
    drawn.append(text_at(x + BAR + 6 + label, y + 4, _tail(mark, digits), LONG, "count"))
    return f"<g><title>{safe(f'{path}: {counts_text(mark.node, classes)}')}</title>{''.join(drawn)}</g>"


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

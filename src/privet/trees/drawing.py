"""Drawings of a model: as text and as SVG.

They show released values and public labels alone. A label is whatever somebody wrote into a
domain or a model file: every one is cleaned of control characters, shortened and escaped.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privet.domain import Domain
from privet.trees.model import Ensemble, Leaf, Split, Tree, condition

LINES, LEAVES, CLASSES = 400, 200, 10  # at most, of each
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

# Control characters, half surrogates, line separators and marks that turn the direction of text.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def clean(words: str) -> str:
    """Text that a terminal and an XML reader can bear: control characters become pictures of themselves."""
    return _UNSAFE.sub(lambda found: chr(0x2400 + ord(found[0])) if found[0] < " " else "\ufffd", words)


def width_of(words: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in words)


def shortened(words: str, width: int) -> str:
    """As much of a text as fits."""
    if len(words) <= width and width_of(words) <= width:
        return words
    kept = words[: width - 1]
    while width_of(kept) > width - 1:
        kept = kept[:-1]
    return kept + "…"


def safe(words: str, width: int = LONG) -> str:
    return html.escape(shortened(clean(words), width))


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
_SVG_STYLE = """.privet-tree text{font:11px system-ui,sans-serif;fill:currentColor}
.privet-tree .name{font-size:12px;font-weight:600}.privet-tree .aside{opacity:.72}
.privet-tree .count{font-variant-numeric:tabular-nums}
.privet-tree .edge{fill:none;stroke:currentColor;opacity:.3}.privet-tree circle{fill:currentColor}"""


def svg(tree: Tree, max_leaves: int = LEAVES) -> str:
    """The tree as one picture, root left, a line for each leaf; of a large one the deepest levels are left out."""
    marks = marks_of(tree, max_leaves, inner=False)
    classes = class_names(tree.domain)
    edges, nodes = _columns(marks)
    heights = _heights(marks)
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
            lines.append(_edge(edges[mark.depth], heights[mark.above], y, x, outer))
            drawn.append(_text(edges[mark.depth] + 7, y - 3, mark.label, LABEL, "aside", mark.condition))
        if mark.split:
            name, told = clean(mark.split.attribute), counts_text(mark.split, classes)
            end = x + 8 + BOLD * width_of(shortened(name, NAME))
            lines.append(f"M{end:.0f} {y}H{edges[mark.depth + 1]:.0f}")
            drawn.append(f'<circle cx="{x:.0f}" cy="{y}" r="3"/>')
            drawn.append(_text(x + 8, y + 4, name, NAME, "name", f"{name}: {told}"))
        else:
            drawn.append(_leaf(mark, tree, x, y, label, classes, digits, path_to(marks, mark)))
    height = ROW * len(ends) + 8
    size = f'viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"'
    said = safe(f"A decision tree for {tree.domain.target} with {tree.leaves} leaves")
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
        labels[mark.depth] = max(labels[mark.depth], width_of(shortened(mark.label, LABEL)))
        if mark.split:
            names[mark.depth] = max(names[mark.depth], width_of(shortened(clean(mark.split.attribute), NAME)))
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
    told = f"<title>{safe(title)}</title>" if title else ""
    return f'<text class="{kind}" x="{x:.0f}" y="{y}">{told}{safe(words, width)}</text>'


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
        return _text(x + 4, y + 4, _tail(mark, digits), LONG, "aside")
    left, drawn = x, []
    for number, share in enumerate(tree.shares[mark.number].tolist()):
        if share * BAR >= 0.5:
            place = f'x="{left:.1f}" y="{y - 5}" width="{share * BAR:.1f}" height="10"'
            drawn.append(f'<rect {place} fill="{COLOURS[number % len(COLOURS)]}"/>')
        left += share * BAR
    drawn.append(_text(x + BAR + 6, y + 4, classes[mark.winner], LABEL, "class"))
    drawn.append(_text(x + BAR + 6 + label, y + 4, _tail(mark, digits), LONG, "count"))
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

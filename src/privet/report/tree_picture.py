"""Pictures of trees: a model's as text and as a drawing, and any tree whose leaves have a bar and a few words.

They show released values and public labels alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from privet.kernel import Domain
from privet.models.tree import Ensemble, Leaf, Split, Tree, condition
from privet.report.svg import BOLD, GAP, LABEL, LETTER, MINUS, NAME, ROW, Drawing, join, path, rect, room, tag, text
from privet.text import LONG, clean, shortened, width_of

LINES, LEAVES, CLASSES, COLOURS = 400, 200, 10, 10  # at most, of each
BAR = 64  # pixels
BESIDE = 50  # pixels of a number beside a bar
FIGURE_SPACE = "\u2007"  # as wide as a digit
WIDE, TALL = 1150, 60 * ROW  # pixels: a larger drawing fits neither a window nor a sheet of paper


# -- any tree -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LeafRow:
    """What stands in the row of a leaf: a bar of one or several pieces, a name, and numbers."""

    pieces: Sequence[tuple[str, float]]  # a class of the stylesheet, and its share of the bar
    name: str
    numbers: str
    title: str
    beside: str = ""  # a number next to the bar
    alarmed: bool = False
    threshold: float | None = None  # where in the bar a line stands; the bar has a frame then


@dataclass(frozen=True)
class DrawnNode:
    """One place of a picture, in depth-first order."""

    above: int  # the place of its parent, -1 for the root
    depth: int
    label: str  # on the edge that leads here
    title: str  # the same in full
    outer: bool  # first or last of its siblings
    name: str = ""  # of what splits here
    told: str = ""  # of its numbers
    leaf: LeafRow | None = None  # where nothing is drawn below


def tree_on_page(places: Sequence[DrawnNode], said: str) -> Markup | list[OutlineRow]:
    """A drawing where it fits, and otherwise the rows of an outline, which any window and any paper can break."""
    drawn = tree_drawing(places, said)
    return drawn.inline if drawn.width <= WIDE and drawn.height <= TALL else outline(places)


def tree_drawing(places: Sequence[DrawnNode], said: str) -> Drawing:
    """The root left, a row for each leaf."""
    edges, nodes = _columns(places)
    heights = _heights([place.above for place in places])
    leaves = [place.leaf for place in places if place.leaf is not None]
    aligned = max(nodes) if max(nodes) < 900 else 0.0  # the leaves in one column, where that is near enough
    beside = BESIDE if any(leaf.beside for leaf in leaves) else 6
    names = GAP + room((leaf.name for leaf in leaves), LABEL)
    width = max(nodes) + BAR + beside + names + LETTER * max(len(leaf.numbers) for leaf in leaves) + 2 * GAP
    lines, drawn = [], []
    for place, y in zip(places, heights, strict=True):
        x = max(aligned, nodes[place.depth]) if place.leaf else nodes[place.depth]
        if place.depth:
            lines.append(_edge(edges[place.depth], heights[place.above], y, x, place.outer))
            drawn.append(text(edges[place.depth] + 7, y - 3, place.label, "aside", LABEL, place.title))
        if place.leaf:
            drawn.append(_row(place.leaf, x, y, beside, names))
        else:
            end = x + 8 + BOLD * width_of(shortened(place.name, NAME))
            lines.append(f"M{end:.0f} {y}H{edges[place.depth + 1]:.0f}")
            drawn.append(tag("circle", cx=round(x), cy=y, r=3))
            drawn.append(text(x + 8, y + 4, place.name, "name", NAME, f"{place.name}: {place.told}"))
    shapes = path("".join(lines), "edge", transform="translate(.5 .5)") + join(drawn)
    return Drawing(width, ROW * len(leaves) + 8, shapes, said, "privet-tree")


def _row(leaf: LeafRow, x: float, y: int, beside: float, names: float) -> Markup:
    if not leaf.pieces and not leaf.name:
        return text(x + 4, y + 4, leaf.numbers, "aside", LONG)
    left, drawn = x, []
    for kind, share in leaf.pieces:
        if share * BAR >= 0.5:
            drawn.append(rect(left, y - 5, share * BAR, 10, kind))
        left += share * BAR
    if leaf.threshold is not None:
        at = x + BAR * leaf.threshold
        drawn += [rect(x, y - 5, float(BAR), 10, "frame"), path(f"M{at:.1f} {y - 7}V{y + 7}", "at")]
        drawn.append(text(x + BAR + 6, y + 4, leaf.beside, "alarmed" if leaf.alarmed else "aside"))
    drawn.append(text(x + BAR + beside, y + 4, leaf.name, "class", LABEL))
    drawn.append(text(x + BAR + beside + names, y + 4, leaf.numbers, "count", LONG))
    return tag("g", tag("title", leaf.title), *drawn)


def _columns(places: Sequence[DrawnNode]) -> tuple[list[float], list[float]]:
    """Where the edges that lead to each depth begin, and where its nodes."""
    depths = 1 + max(place.depth for place in places)
    labels, names = [0] * depths, [0] * depths
    for place in places:
        labels[place.depth] = max(labels[place.depth], width_of(shortened(place.label, LABEL)))
        names[place.depth] = max(names[place.depth], width_of(shortened(place.name, NAME)))
    edges, nodes, x = [], [], 0.0
    for label_width, name_width in zip(labels, names, strict=True):
        edges.append(x)
        nodes.append(x + GAP + LETTER * label_width)
        x = nodes[-1] + 8 + BOLD * name_width + GAP
    return edges, nodes


def _heights(above: Sequence[int]) -> list[int]:
    """A row for each place without places below it, and others in the middle of their children."""
    heights = [0] * len(above)
    spans: dict[int, tuple[int, int]] = {}
    row = len(above) - len(set(above) - {-1})
    for place in range(len(above) - 1, -1, -1):
        if place in spans:
            heights[place] = round(sum(spans[place]) / 2)
        else:
            row -= 1
            heights[place] = 4 + ROW * row + ROW // 2
        y = heights[place]
        spans[above[place]] = (y, spans.get(above[place], (y, y))[1])
    return heights


def _edge(x: float, parent: int, child: int, end: float, outer: bool) -> str:
    """A line from the spine of a parent to a child; the outer children draw the spine."""
    bend = max(-5, min(5, child - parent)) if outer else 0
    spine = f"M{x:.0f} {parent}V{child - bend}q0 {bend} 5 {bend}" if outer else f"M{x:.0f} {child}"
    return f"{spine}H{end:.0f}"


# -- a tree as an outline -----------------------------------------------------------------------


@dataclass(frozen=True)
class OutlineRow:
    """A node of an outline: how deep it stands, the condition that leads to it, and its leaf if it is one."""

    depth: int
    condition: str
    told: str
    leaf: LeafRow | None


def outline(places: Sequence[DrawnNode]) -> list[OutlineRow]:
    """A row for each node but the root, which has no condition."""
    rows = []
    for place in places:
        if place.above < 0:
            continue
        name = shortened(places[place.above].name, NAME)
        label = shortened(place.label, LABEL)
        condition = f"{name} {label}" if label.startswith(("<= ", "> ")) else f"{name}: {label}" if label else ""
        told = place.leaf.title if place.leaf else f"{place.title}: {place.told}"
        rows.append(OutlineRow(place.depth - 1, condition, told, place.leaf))
    return rows


# -- what of a model's tree is shown ------------------------------------------------------------


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
    """The names of the classes, as a page can bear them."""
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


def model_text(model: Ensemble, max_depth: int | None = None) -> str:
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


# -- a model's tree as a drawing ----------------------------------------------------------------


def drawing(tree: Tree, max_leaves: int = LEAVES) -> Drawing:
    """Return one tree as a drawing; of a large one the deepest levels are left out."""
    return tree_drawing(*_places(tree, max_leaves))


def model_tree_on_page(tree: Tree, max_leaves: int = LEAVES) -> Markup | list[OutlineRow]:
    """Return one tree for a page; of a large one the deepest levels are left out."""
    return tree_on_page(*_places(tree, max_leaves))


def _places(tree: Tree, max_leaves: int) -> tuple[list[DrawnNode], str]:
    """The places of a picture, and what it is a picture of."""
    marks = marks_of(tree, max_leaves, inner=False)
    classes, columns = class_names(tree.domain), _columns_of([mark.node for mark in marks if mark.node])
    places = [_place(marks, number, tree, classes, columns) for number in range(len(marks))]
    return places, f"A decision tree for {tree.domain.target} with {tree.leaves} leaves"


def svg(tree: Tree, max_leaves: int = LEAVES) -> str:
    """Return one tree as an SVG that follows the colour of the text around it.

    Parameters
    ----------
    tree : Tree
    max_leaves : int, default 200
        Of a tree with more leaves the deepest levels are left out, and counted.
    """
    return drawing(tree, max_leaves).file("classes", "trees")


def path_to(marks: list[Mark], mark: Mark) -> str:
    """The conditions from the root to a place."""
    conditions = []
    while mark.depth:
        conditions.append(mark.condition)
        mark = marks[mark.above]
    return " and ".join(reversed(conditions)) or mark.condition


def _place(marks: list[Mark], number: int, tree: Tree, classes: Sequence[str], columns: LeafColumns) -> DrawnNode:
    mark = marks[number]
    outer = mark.last or number == mark.above + 1
    if mark.split:
        told = counts_text(mark.split, classes)
        name = clean(mark.split.attribute)
        return DrawnNode(mark.above, mark.depth, mark.label, mark.condition, outer, name, told)
    if mark.node is None:
        leaf = LeafRow((), "", _tail(mark, columns), "")
    else:
        shares = enumerate(tree.shares[mark.number].tolist())
        leaf = LeafRow(
            [(class_colour(code), share) for code, share in shares],
            classes[mark.winner],
            _tail(mark, columns),
            f"{path_to(marks, mark)}: {counts_text(mark.node, classes)}",
        )
    return DrawnNode(mark.above, mark.depth, mark.label, mark.condition, outer, leaf=leaf)


def class_colour(number: int) -> str:
    """The colour of a class, by its number: a class of the stylesheet."""
    return f"class-{number % COLOURS}"


def _counted(node: Split | Leaf) -> tuple[float, ...]:
    """The numbers that fit beside a bar: of all classes in their order, or of many the largest."""
    return node.counts if len(node.counts) <= 3 else (max(node.counts),)


@dataclass(frozen=True)
class LeafColumns:
    """How the numbers of leaves stand below each other, thanks to spaces as wide as a digit."""

    whole: bool  # without decimals: where noise is larger than those, and where there are none
    digits: int = 0
    digits_of_error: int = 0

    def count(self, count: float) -> str:
        """A number of rows."""
        told = f"{count + 0.0:.0f}".replace("-0", "0") if self.whole else _number(count)
        return told.replace("-", MINUS).rjust(self.digits, FIGURE_SPACE)

    def error(self, node: Split | Leaf) -> str:
        """The half width of about 95%."""
        if not node.deviation:
            return ""
        told = f"{1.96 * node.deviation:.0f}" if self.whole else _number(1.96 * node.deviation)
        return f" ± {told.rjust(self.digits_of_error, FIGURE_SPACE)}"


def _columns_of(nodes: Sequence[Split | Leaf]) -> LeafColumns:
    """The columns of a picture's leaves."""
    counts = [count for node in nodes for count in _counted(node)]
    errors = [node for node in nodes if node.deviation]
    noisy = bool(errors) and min(1.96 * node.deviation for node in errors) >= 1
    plain = LeafColumns(noisy or all(count == int(count) for count in counts))
    digits_of_error = max((len(plain.error(node)) - len(" ± ") for node in errors), default=0)
    return LeafColumns(plain.whole, max(len(plain.count(count)) for count in counts), digits_of_error)


def _tail(mark: Mark, columns: LeafColumns) -> str:
    """The numbers of a leaf, and what is left out below it."""
    more = [f"… {mark.hidden} more lea{'f' if mark.hidden == 1 else 'ves'}"] * (mark.hidden > 0)
    if mark.node is None:
        return "".join(more)
    counts = " · ".join(map(columns.count, _counted(mark.node)))
    return "  ".join([counts + columns.error(mark.node), *more])

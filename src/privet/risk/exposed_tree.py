"""Pictures of an audit: how many people give away how much, and where they are in the published tree.

Shades go from calm to alarm; what a colour says, a number and a length say too.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from privet.report.chart import Bin, people_histogram
from privet.report.svg import LABEL, Drawing
from privet.report.tree_picture import DrawnNode, LeafRow, OutlineRow, outline, tree_drawing, tree_on_page
from privet.risk.findings import BASELINES, Audit, probability
from privet.risk.measures import SAME, histogram
from privet.risk.publication import Publication
from privet.risk.tree import Floats, Integers, PublishedTree
from privet.text import clean, shortened

LEAVES = 200  # rows of a picture, at most
OUTLINED = 80  # leaves of an outline, at most
BINS = 20
CERTAIN = 1 - 1e-9

# -- People by how much is known of them.


def level(posterior: float, threshold: float, even: float) -> int:
    """How alarming a number is: below the threshold in three steps from where it starts, above it, certain.

    >>> [level(posterior, 0.8, 0.5) for posterior in (0.5, 0.65, 0.75, 0.8, 1.0)]
    [0, 1, 2, 3, 4]
    """
    if posterior >= threshold - SAME:
        return 4 if posterior >= CERTAIN else 3
    return min(int(3 * max(posterior - even, 0.0) / (threshold - even) + SAME), 2)


def start(audit: Audit) -> float:
    """Where the scale of an audit begins: nothing added, or an even share."""
    return 0.0 if audit.by_own_row else 1 / len(audit.values)


def key(audit: Audit) -> list[tuple[int, str]]:
    """Return what each shade means."""
    even, threshold = start(audit), audit.threshold
    words = {3: f"{threshold:g} or more", 4: "all that can be added" if audit.by_own_row else "certain"}
    if even < threshold:
        first, second = (f"{even + (threshold - even) * part / 3:.2g}" for part in (1, 2))
        words = {0: f"below {first}", 1: f"below {second}", 2: f"below {threshold:g}", **words}
    return sorted(words.items())


def posteriors(audit: Audit) -> Drawing:
    """Return how many people have which largest posterior, and outlines for who has not seen the model."""
    edges = np.linspace(0, 1, BINS + 1)
    counts = histogram(audit.people, audit.scores[:, None], edges)
    certain = int(audit.people.sizes[audit.scores >= CERTAIN].sum())
    bins = []
    for at, count in enumerate(counts.tolist()):
        if not count:
            continue
        shade = level(float(edges[at] + edges[at + 1]) / 2, audit.threshold, start(audit))
        told, pieces = f"{edges[at]:.2f} to {edges[at + 1]:.2f}: {count:,} people", [(f"e{shade}", count)]
        if at == BINS - 1 and certain:
            pieces.append(("e4", certain))
            told += f", {certain:,} of them certain"
        bins.append(Bin(at, count, told, pieces))
    return people_histogram(
        bins,
        max(audit.people.total, 1),
        "added by the own row" if audit.by_own_row else "posterior of the likeliest value",
        _spoken(audit, counts, edges),
        audit.threshold,
        {name: histogram(audit.people, audit.beliefs[name].shares, edges).tolist() for name in baselines(audit)},
        BINS,
    )


def baselines(audit: Audit) -> list[str]:
    """Return the adversaries who have not seen the model and have an outline."""
    return [] if audit.by_own_row else [name for name in BASELINES if name in audit.beliefs]


def _spoken(audit: Audit, counts: Integers, edges: Floats) -> str:
    bins = [
        f"{edges[at]:.2f} to {edges[at + 1]:.2f}: {int(counts[at]):,}" for at in reversed(range(BINS)) if counts[at]
    ]
    if audit.by_own_row:
        said = f"People by what their own row adds: {'; '.join(bins)}."
        return f"{said} The threshold is {audit.threshold:g}."
    before = probability(audit.overall[audit.baseline.adversary].worst)
    return (
        f"People by the posterior of their likeliest value: {'; '.join(bins)}. "
        f"Without the model everybody has at most {before}; the threshold is {audit.threshold:g}."
    )


# -- The tree.


@dataclass(frozen=True)
class Part:
    """The people below some nodes: how many, the largest posterior of one of them, how many are known."""

    people: int
    worst: float
    known: int
    leaves: int

    def __add__(self, other: Part) -> Part:
        worst = max(self.worst, other.worst)
        return Part(self.people + other.people, worst, self.known + other.known, self.leaves + other.leaves)


NOBODY = Part(0, 0.0, 0, 0)


@dataclass(frozen=True)
class Spot:
    """One place of the picture: a node whose children are drawn, or a row for all that is below some nodes."""

    nodes: tuple[int, ...]
    above: int  # the place of the parent
    depth: int
    is_outer: bool  # first or last of its siblings
    is_split: bool
    part: Part


def parts_of(publication: Publication, audit: Audit) -> list[Part]:
    """For each node the people below it."""
    sure, reached = audit.scores, audit.reached
    parts = [NOBODY] * len(publication.tree.nodes)
    for leaf in publication.leaves:
        profiles = publication.profiles[leaf]
        known = round(float(reached[profiles].sum()))
        parts[leaf] = Part(int(publication.sizes[leaf]), float(sure[profiles].max()), known, 1)
    for number in range(len(parts) - 1, 0, -1):  # children come after their parents
        parent = publication.tree.nodes[number].parent
        parts[parent] = parts[parent] + parts[number]
    return parts


def spots_of(tree: PublishedTree, parts: list[Part], room: int = LEAVES) -> list[Spot]:
    """What fits into some rows, depth first; leaves that nobody is in are left out."""
    shown = _unfolded(tree, parts, room)
    spots: list[Spot] = []
    waiting = [Spot((0,), -1, 0, True, 0 in shown, parts[0])]
    while waiting:
        spot = waiting.pop()
        spots.append(spot)
        if not spot.is_split:
            continue
        here, children = len(spots) - 1, shown[spot.nodes[0]]
        rest = tuple(sorted(set(_peopled(tree, parts, spot.nodes[0])) - set(children)))
        ends = [*((child,) for child in children), *([rest] if rest else [])]
        for at in reversed(range(len(ends))):
            is_split = len(ends[at]) == 1 and ends[at][0] in shown
            part = sum((parts[node] for node in ends[at]), NOBODY)
            outer = at in (0, len(ends) - 1)
            waiting.append(Spot(ends[at], here, spot.depth + 1, outer, is_split, part))
    return spots


def _peopled(tree: PublishedTree, parts: list[Part], node: int) -> list[int]:
    return [child for child in tree.children[node] if parts[child].people]


def _unfolded(tree: PublishedTree, parts: list[Part], room: int) -> dict[int, list[int]]:
    """Which children nodes show: where most people are known first, until the room is used up."""
    shown: dict[int, list[int]] = {}
    room, waiting = room - 1, [(0, 0, 0)]
    while waiting:
        *_, node = heapq.heappop(waiting)
        children = _peopled(tree, parts, node)
        if len(children) - 1 > room and node == 0:  # a root too wide to show whole
            children = sorted(sorted(children, key=lambda child: (-parts[child].known, -parts[child].people))[:room])
        if not children or len(children) - 1 > room:
            continue
        room -= max(len(children) - 1, 1)  # a chain of only children is not for nothing
        shown[node] = children
        for child in children:
            heapq.heappush(waiting, (-parts[child].known, -parts[child].people, child))
    return shown


# -- the picture --------------------------------------------------------------------------------


def exposed_tree(audit: Audit) -> Drawing:
    """Return the tree: of each leaf how sure somebody is of its best known person, and its people."""
    return tree_drawing(*_places(audit, LEAVES))


def exposed_tree_on_page(audit: Audit) -> tuple[Markup | list[OutlineRow], bool]:
    """Return the tree for a page, and True if not all of its leaves are unfolded."""
    assert audit.publication is not None
    shown = tree_on_page(*_places(audit, LEAVES))
    if not isinstance(shown, list):
        return shown, False
    return outline(_places(audit, OUTLINED)[0]), len(audit.publication.leaves) > OUTLINED


def _places(audit: Audit, most: int) -> tuple[list[DrawnNode], str]:
    """The places of a picture, and what it is a picture of."""
    publication = audit.publication
    assert publication is not None
    spots = spots_of(publication.tree, parts_of(publication, audit), most)
    digits = max(len(f"{spot.part.people:,}") for spot in spots if not spot.is_split)
    places = [_place(spot, publication.tree, audit, digits) for spot in spots]
    said = f"The tree of {audit.name} with {len(publication.leaves)} leaves that people are in: {_most(audit, spots)}"
    return places, said


def _place(spot: Spot, tree: PublishedTree, audit: Audit, digits: int) -> DrawnNode:
    one = len(spot.nodes) == 1
    label, title = _condition(tree, spot), tree.where(spot.nodes[0]) if one else ""
    told = _told(spot.part, audit)
    if spot.is_split:
        return DrawnNode(
            spot.above, spot.depth, label, title, spot.is_outer, clean(tree.split_column(spot.nodes[0])), told
        )
    shade = level(spot.part.worst, audit.threshold, start(audit))
    leaf = LeafRow(
        [(f"e{shade}", spot.part.worst)],
        _words(tree, spot),
        _tail(spot.part, digits),
        f"{title or f'{len(spot.nodes)} branches'}: {told}",
        probability(spot.part.worst),
        shade >= 3,
        audit.threshold,
    )
    return DrawnNode(spot.above, spot.depth, label, title, spot.is_outer, leaf=leaf)


def _told(part: Part, audit: Audit) -> str:
    people = f"{part.people:,} {'person' if part.people == 1 else 'people'}"
    if audit.by_own_row:
        added = f"the own row of {part.known:,} adds {audit.threshold:g} or more"
        return f"{people}, {added}, {probability(part.worst)} at most"
    return f"{people}, {part.known:,} known with {audit.threshold:g} or more, worst posterior {probability(part.worst)}"


def _most(audit: Audit, spots: list[Spot]) -> str:
    known = [spot for spot in spots if not spot.is_split and spot.part.known]
    people = sum(spot.part.known for spot in known)
    what = "people give away" if audit.by_own_row else "people are known with"
    return f"{people:,} {what} {audit.threshold:g} or more, in {len(known)} of its rows"


def _words(tree: PublishedTree, spot: Spot) -> str:
    """What a leaf predicts, or how many leaves a row sums up."""
    label = tree.nodes[spot.nodes[0]].label if len(spot.nodes) == 1 else None
    if label is None:
        return f"… {spot.part.leaves:,} lea{'f' if spot.part.leaves == 1 else 'ves'}"
    return shortened(clean(tree.values[label]), LABEL)


def _tail(part: Part, digits: int) -> str:
    """Spaces as wide as a digit put the numbers below each other."""
    people = f"{part.people:,}".rjust(digits, "\u2007") + (" person" if part.people == 1 else " people")
    if not part.known:
        return people
    return people + (", all concerned" if part.known == part.people else f", {part.known:,} concerned")


def _condition(tree: PublishedTree, spot: Spot) -> str:
    """What leads from a node to its child; its column stands at the node."""
    condition = tree.nodes[spot.nodes[0]].condition
    if len(spot.nodes) > 1 or condition is None:
        return "others" if spot.depth else ""
    return clean(str(condition).removeprefix(condition.column).strip().removeprefix("= ").removeprefix("in "))

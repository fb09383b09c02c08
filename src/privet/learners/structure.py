"""Random structures: what public coins draw, without a look at any row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privet.errors import QuestionError
from privet.kernel import Domain, Numeric, Split
from privet.learners.plan import Plan
from privet.models.tree import Tree

Attributes = tuple[str, ...]
# Where coins may cut numeric attributes: the grid index where the right side begins lies in [low, high).
CutRanges = Mapping[str, tuple[int, int]]


def cut_ranges(plan: Plan, domain: Domain) -> CutRanges:
    """Return where coins may cut numeric attributes at the root: nowhere if numbers are split into their bins."""
    if plan.numeric == "bins":
        return {}
    return {name: (1, c.grid_size) for name in domain.attributes if isinstance(c := domain[name], Numeric)}


def cut_ranges_below(ranges: CutRanges, split: Split, domain: Domain) -> list[CutRanges]:
    """Return where coins may cut in each child of a node, in order; `ranges` says where they may cut in the node."""
    if split.thresholds is None:
        return [ranges] * split.children(domain)
    (cut,) = split.thresholds
    low, high = ranges[split.column]
    sides = [(low, min(cut, high)), (max(low, cut + 1), high), *[(0, 0)] * domain[split.column].missing]
    return [{**ranges, split.column: side} for side in sides]


def splittable(unused: Attributes, ranges: CutRanges) -> Attributes:
    """Return the attributes by which coins can split a node: a numeric one needs a range for its threshold."""
    if not ranges:
        return unused
    return tuple(name for name in unused if name not in ranges or ranges[name][0] < ranges[name][1])


def random_split(unused: Attributes, ranges: CutRanges, rng: np.random.Generator) -> Split:
    """Draw one of the attributes that a path has not used, and for a numeric one a threshold. No row is looked at."""
    names = splittable(unused, ranges)
    name = names[int(rng.integers(len(names)))]
    return Split(name, (int(rng.integers(*ranges[name])),) if name in ranges else None)


def draw(plan: Plan, domain: Domain, depth: int, rng: np.random.Generator) -> Tree:
    """Draw a random tree without counts.

    A node takes an attribute that its path has not used, or a random threshold of a numeric one.

    Parameters
    ----------
    plan : Plan
        Its `numeric` and `max_leaves` are used.
    domain : Domain
    depth : int
        The largest depth.
    rng : numpy.random.Generator
        Public coins.

    Returns
    -------
    Tree

    Raises
    ------
    QuestionError
        The tree would have too many leaves. Nothing was charged.
    """
    column, at = [], []
    position = {name: i for i, name in enumerate(domain.attributes)}
    level = [(domain.attributes, cut_ranges(plan, domain))]
    for remaining in range(depth, -1, -1):
        below: list[tuple[Attributes, CutRanges]] = []
        for unused, ranges in level:
            if remaining == 0 or not splittable(unused, ranges):
                column.append(-1)
                at.append(-1)
                continue
            split = random_split(unused, ranges, rng)
            column.append(position[split.column])
            at.append(-1 if split.thresholds is None else split.thresholds[0])
            # a threshold does not use an attribute up: its range says where coins may cut it again
            left = unused if split.thresholds else tuple(name for name in unused if name != split.column)
            below += [(left, side) for side in cut_ranges_below(ranges, split, domain)]
        if len(column) + len(below) > 2 * plan.max_leaves:
            raise QuestionError(
                f"a random tree of this plan has more than max_leaves={plan.max_leaves} leaves: lower max_depth, "
                "declare coarser bins, or raise max_leaves. Nothing was charged."
            )
        level = below
    size, classes = len(column), len(domain.classes)
    return Tree(
        domain,
        np.array(column, dtype=np.int64),
        np.array(at, dtype=np.int64),
        np.zeros((size, classes)),
        np.zeros(size),
        np.full(size, np.nan),
    )


def splits_at(tree: Tree, depth: int, domain: Domain) -> list[Split]:
    """Return the splits of a tree at one depth, in the order of its nodes; leaves have none."""
    nodes = np.flatnonzero((tree.depths == depth) & ~tree.is_leaf)
    cuts = [(domain.attributes[int(tree.column[node])], int(tree.at[node])) for node in nodes]
    return [Split(name, None if cut < 0 else (cut,)) for name, cut in cuts]

"""Random structures: trees that public coins draw, without a look at any row."""

from __future__ import annotations

import numpy as np

from privet.errors import QuestionError
from privet.kernel import Domain
from privet.learners.plan import Plan
from privet.learners.splitting import (
    Attributes,
    CutRanges,
    NodeSplit,
    attribute_of,
    cut_of,
    cut_ranges,
    cut_ranges_below,
    random_split,
    split_at,
    splittable,
)
from privet.models.tree import Tree


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
            split = random_split(unused, ranges, domain, rng)
            column.append(position[attribute_of(split)])
            at.append(cut_of(split, domain))
            # a threshold does not use an attribute up: its range says where coins may cut it again
            left = unused if isinstance(split, tuple) else tuple(name for name in unused if name != split)
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


def splits_at(tree: Tree, depth: int, domain: Domain) -> list[NodeSplit]:
    """Return the splits of a tree at one depth, in the order of its nodes.

    Parameters
    ----------
    tree : Tree
    depth : int
    domain : Domain

    Returns
    -------
    list of NodeSplit
        Leaves are left out.
    """
    nodes = np.flatnonzero((tree.depths == depth) & ~tree.is_leaf)
    return [split_at(domain.attributes[int(tree.column[node])], int(tree.at[node]), domain) for node in nodes]

"""Random structures: trees drawn from public coins, without a look at any row."""

from __future__ import annotations

import numpy as np

from privet.errors import QuestionError
from privet.kernel import Domain
from privet.learners.plan import Plan
from privet.learners.splitting import (
    Attributes,
    Room,
    SplitOf,
    attribute_of,
    cut_of,
    left_to_coins,
    room_of,
    rooms_below,
    split_at,
    split_by_coins,
)
from privet.models.tree import Tree


def draw(plan: Plan, domain: Domain, depth: int, rng: np.random.Generator) -> Tree:
    """A random tree: a node takes an attribute that its path has not used, or a random threshold of a numeric one."""
    column, at = [], []
    position = {name: i for i, name in enumerate(domain.attributes)}
    level = [(domain.attributes, room_of(plan, domain))]
    for remaining in range(depth, -1, -1):
        below: list[tuple[Attributes, Room]] = []
        for unused, room in level:
            if remaining == 0 or not left_to_coins(unused, room):
                column.append(-1)
                at.append(-1)
                continue
            split = split_by_coins(unused, room, domain, rng)
            column.append(position[attribute_of(split)])
            at.append(cut_of(split, domain))
            # a threshold does not use a column up: its room tells where coins may cut it again
            left = unused if isinstance(split, tuple) else tuple(name for name in unused if name != split)
            below += [(left, side) for side in rooms_below(room, split, domain)]
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


def splits_at(tree: Tree, depth: int, domain: Domain) -> list[SplitOf]:
    """The splits of the nodes of a tree at one depth, in their order."""
    nodes = np.flatnonzero((tree.depths == depth) & ~tree.is_leaf)
    return [split_at(domain.attributes[int(tree.column[node])], int(tree.at[node]), domain) for node in nodes]

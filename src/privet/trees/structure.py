"""Random structures: trees drawn from public coins, without a look at any row."""

from __future__ import annotations

import numpy as np

from privet.column import Numeric
from privet.domain import Domain
from privet.errors import QuestionError
from privet.trees.model import Tree
from privet.trees.plan import Plan
from privet.trees.splitting import Attributes


def draw(plan: Plan, domain: Domain, depth: int, rng: np.random.Generator) -> Tree:
    """A random tree: a node takes an attribute that its path has not used, or a random threshold of a numeric one."""
    column, at = [], []
    whole = {name: (1, c.grid_size) for name in domain.attributes if isinstance(c := domain[name], Numeric)}
    position = {name: i for i, name in enumerate(domain.attributes)}
    level: list[tuple[Attributes, dict[str, tuple[int, int]]]] = [(domain.attributes, whole)]
    for remaining in range(depth, -1, -1):
        below: list[tuple[Attributes, dict[str, tuple[int, int]]]] = []
        for unused, bounds in level:
            if remaining == 0 or not unused:
                column.append(-1)
                at.append(-1)
                continue
            name = unused[int(rng.integers(len(unused)))]
            column.append(position[name])
            if plan.numeric == "bins" or name not in bounds:
                at.append(-1)
                below += [(tuple(each for each in unused if each != name), bounds)] * domain[name].size
                continue
            low, high = bounds[name]  # the right side may begin at any of these grid indices
            cut = int(rng.integers(low, high))
            at.append(cut)
            sides = ({**bounds, name: (low, cut)}, {**bounds, name: (cut + 1, high)})
            for side in sides:
                open_still = side[name][0] < side[name][1]
                below.append((unused if open_still else tuple(each for each in unused if each != name), side))
            below += [(tuple(each for each in unused if each != name), bounds)] * domain[name].missing
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

"""A published tree as an adversary holds it, wherever it came from: tests that lead to leaves, and what leaves say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import ModelError
from privet.kernel import Column
from privet.risk.conditions import Condition

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

GINI, ENTROPY = "gini", "entropy"
SCIKIT = "scikit-learn"


@dataclass(frozen=True)
class Node:
    """One node: the condition under which rows of its parent come here and, if it is a leaf, what it says of them."""

    parent: int = -1
    condition: Condition | None = None  # None for the root alone
    label: int | None = None  # the number of the sensitive value that a leaf predicts; None for a split
    size: float | None = None  # rows, where published
    wrong: float | None = None  # rows of other values, where published
    counts: tuple[float, ...] | None = None  # rows of each value, where published
    deviation: float = 0.0  # of the noise in each count
    line: int | None = None  # where it stands in the text it was read from


@dataclass(frozen=True, eq=False)
class PublishedTree:
    """Nodes, parents before their children; the sensitive values; and what is known of how it was grown.

    `criterion` is "gini" or "entropy" where each split was the best of its node by it, and None otherwise; then
    `silent` says why the choice of splits tells nothing that can be used. `features` are the columns that could
    have been chosen, where that is known.
    """

    nodes: tuple[Node, ...]
    values: tuple[str, ...]
    source: str  # "privet", "scikit-learn" or "Weka"
    criterion: str | None = None
    silent: str = "the criterion that chose its splits is not known"
    features: tuple[str, ...] | None = None
    declared: tuple[Column, ...] = ()  # of a privet model: a row that fits none of the cells of these was left out
    epsilon: Fraction | None = None  # of a private model: its counts are noisy, and its choices too
    model: Any = field(default=None, repr=False)  # what it was read from, to write a safer one

    def __post_init__(self) -> None:
        if not self.nodes:
            raise ModelError("the published tree has no nodes; it may be cut short.")
        for number, node in enumerate(self.nodes):
            if (node.parent < 0) != (number == 0) or node.parent >= number:
                raise ModelError("the nodes of the published tree do not form a tree.")
            if (node.label is None) != bool(self.children[number]):
                where = f" at line {node.line}" if node.line else ""
                raise ModelError(
                    f"the published tree has a branch{where} that ends without a leaf; it may be cut short."
                )

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            if node.parent >= 0:
                found[node.parent].append(number)
        return tuple(map(tuple, found))

    @property
    def leaves(self) -> tuple[int, ...]:
        return tuple(number for number, node in enumerate(self.nodes) if node.label is not None)

    @property
    def depth(self) -> int:
        return max(len(self.ancestors(leaf)) for leaf in self.leaves)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns its tests look at."""
        return tuple(dict.fromkeys(node.condition.column for node in self.nodes if node.condition is not None))

    def split_column(self, number: int) -> str:
        """The column by which a node divides its rows."""
        condition = self.nodes[self.children[number][0]].condition
        assert condition is not None
        return condition.column

    def ancestors(self, number: int) -> list[int]:
        """The nodes above one, the root last."""
        above = []
        while (number := self.nodes[number].parent) >= 0:
            above.append(number)
        return above

    def path(self, number: int) -> tuple[str, ...]:
        """The conditions that lead to a node."""
        along = [number, *self.ancestors(number)]
        return tuple(str(self.nodes[each].condition) for each in reversed(along) if self.nodes[each].condition)

    def where(self, number: int) -> str:
        """A node as people find it in the tree."""
        return " and ".join(self.path(number)) or "all rows"

    def below(self, number: int) -> Iterator[int]:
        """A node and all that are below it."""
        waiting = [number]
        while waiting:
            yield (here := waiting.pop())
            waiting += reversed(self.children[here])

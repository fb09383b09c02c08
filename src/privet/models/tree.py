"""What a fit publishes: trees of released values, as frozen as what is printed.

A tree is kept as arrays over its nodes in breadth-first order, so that the children
of each node follow one another and prediction is a loop without recursion; `Split`
and `Leaf` are how people see one node of it. An `Ensemble` is the published model: one
tree or several, the domain they speak of, how they vote, and what they promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import ModelError
from privet.kernel import Domain, Numeric, decimal_text
from privet.models.model import Floats, Integers, Model, column_of, softmax
from privet.models.privacy_record import Privacy

if TYPE_CHECKING:
    import pandas as pd

TINY = 1e-300  # a share of 0 has no logarithm
VOTES = ("majority", "average", "weighted", "product")

A = TypeVar("A", bound=NDArray[Any])


@dataclass(frozen=True)
class Leaf:
    """Where rows end: estimated rows of each class, and the standard deviation of the noise in each number."""

    counts: tuple[float, ...]
    deviation: float
    label: int  # the number of the class it predicts


@dataclass(frozen=True)
class Split:
    """Where rows part: by the cells of an attribute or, with a threshold, into those at most as large and the rest."""

    attribute: str
    threshold: int | float | None
    labels: tuple[str, ...]  # of the children, in their order
    children: tuple[int, ...]  # their node numbers
    counts: tuple[float, ...]  # the sums of the leaves below
    deviation: float
    size: float | None  # a released size, where one was bought


@dataclass(frozen=True)
class Visit:
    """One stop of a walk: the node, its number, and the conditions that lead to it."""

    number: int
    node: Split | Leaf
    path: tuple[str, ...]

    @property
    def depth(self) -> int:
        return len(self.path)


@dataclass(frozen=True, eq=False)
class Tree:
    """A decision tree over a public domain, in arrays over its nodes.

    `column[i]` is the position of the attribute that node i splits by, -1 for a leaf;
    `at[i]` the grid index from which rows go right, -1 for a split into cells.
    """

    domain: Domain
    column: Integers
    at: Integers
    counts: Floats  # [node, class]
    deviation: Floats
    size: Floats  # NaN where none was released
    first: Integers = field(init=False)  # the first child, -1 for a leaf

    def __post_init__(self) -> None:
        children = self.arity
        ends = 1 + np.cumsum(children)
        # every node but the root is a child of one before it
        if len(ends) == 0 or ends[-1] != len(ends) or (ends[:-1] <= np.arange(1, len(ends))).any():
            raise ModelError("the nodes of a tree do not form a tree; it was not written by privet.")
        object.__setattr__(self, "first", np.where(children > 0, ends - children, -1))
        for array in (self.column, self.at, self.counts, self.deviation, self.size, self.first):
            array.flags.writeable = False

    @cached_property
    def arity(self) -> Integers:
        """How many children each node has."""
        cells, sides = self.domain.branches
        return np.where(self.at >= 0, sides[self.column], cells[self.column])

    @classmethod
    def grown(
        cls, domain: Domain, column: Integers, at: Integers, counts: Floats, deviation: Floats, size: Floats
    ) -> Tree:
        """A tree whose leaves alone have counts: those of inner nodes are the sums of the leaves below."""
        tree = cls(domain, column, at, counts.copy(), deviation.copy(), size)
        counts, variance = tree.counts.copy(), tree.deviation**2
        counts[~tree.is_leaf] = 0
        variance[~tree.is_leaf] = 0
        for level in range(tree.depth, 0, -1):
            nodes = np.flatnonzero(tree.depths == level)
            np.add.at(counts, tree.parents[nodes], counts[nodes])
            np.add.at(variance, tree.parents[nodes], variance[nodes])
        return cls(domain, column, at, counts, np.sqrt(variance), size)

    # -- looking around ---------------------------------------------------------------------

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        return np.asarray(self.column < 0)

    @property
    def leaves(self) -> int:
        return int(self.is_leaf.sum())

    def __len__(self) -> int:
        return len(self.column)

    @cached_property
    def parents(self) -> Integers:
        """The parent of each node; the root has -1."""
        parents = np.full(len(self), -1, dtype=np.int64)
        parents[1:] = np.repeat(np.arange(len(self)), self.arity)
        return _frozen(parents)

    @cached_property
    def depths(self) -> Integers:
        start, sizes = 0, [1]  # breadth first: a level follows the one above it
        while below := int(self.arity[start : start + sizes[-1]].sum()):
            start += sizes[-1]
            sizes.append(below)
        return _frozen(np.repeat(np.arange(len(sizes)), sizes))

    @property
    def depth(self) -> int:
        return int(self.depths.max())

    def node(self, number: int) -> Split | Leaf:
        """One node, as people see it."""
        counts = tuple(plain(count) for count in self.counts[number].tolist())
        deviation = float(self.deviation[number])
        if self.column[number] < 0:
            return Leaf(counts, deviation, int(self.labels[number]))
        name = self.domain.attributes[int(self.column[number])]
        column = self.domain[name]
        labels, threshold = column.labels, None
        if self.at[number] >= 0:
            assert isinstance(column, Numeric)
            point = column.value_at(int(self.at[number]) - 1)
            threshold = column.number(point)
            labels = (f"<= {decimal_text(point)}", f"> {decimal_text(point)}") + ("<missing>",) * column.missing
        start = int(self.first[number])
        size = None if math.isnan(self.size[number]) else plain(float(self.size[number]))
        return Split(name, threshold, labels, tuple(range(start, start + len(labels))), counts, deviation, size)

    @property
    def root(self) -> Split | Leaf:
        return self.node(0)

    def walk(self) -> Iterator[Visit]:
        """Every node, children after their parent, depth first."""
        waiting: list[tuple[int, tuple[str, ...]]] = [(0, ())]
        while waiting:
            number, path = waiting.pop()
            node = self.node(number)
            yield Visit(number, node, path)
            if isinstance(node, Split):
                below = zip(node.children, node.labels, strict=True)
                waiting += reversed([(child, (*path, condition(node, label))) for child, label in below])

    def to_dataframe(self) -> pd.DataFrame:
        """One row for each node: its parent, test, class counts and their noise."""
        import pandas as pd

        rows, texts = [], self.domain.target_column.texts
        for visit in self.walk():
            node = visit.node
            rows.append(
                {
                    "node": visit.number,
                    "parent": int(self.parents[visit.number]),
                    "depth": visit.depth,
                    "condition": visit.path[-1] if visit.path else "",
                    "split": node.attribute if isinstance(node, Split) else None,
                    "threshold": node.threshold if isinstance(node, Split) else None,
                    "size": node.size if isinstance(node, Split) else None,
                    "label": texts[int(self.labels[visit.number])],
                    **{f"rows of {text}": count for text, count in zip(texts, node.counts, strict=True)},
                    "deviation": node.deviation,
                }
            )
        return pd.DataFrame(rows)

    def rules(self) -> list[str]:
        """Every leaf as a sentence: if conditions then class."""
        texts = self.domain.target_column.texts
        return [
            f"if {' and '.join(visit.path) or 'anything'} then {texts[visit.node.label]} "
            f"({', '.join(f'{text} {count:.0f}' for text, count in zip(texts, visit.node.counts, strict=True))})"
            for visit in self.walk()
            if isinstance(visit.node, Leaf)
        ]

    # -- making other trees of it -----------------------------------------------------------

    def cut(self, at: NDArray[np.bool_]) -> Tree:
        """The tree in which these nodes are leaves, with the counts they have, and nothing is below them."""
        kept = np.ones(len(self), dtype=np.bool_)
        for node in range(1, len(self)):
            above = self.parents[node]
            kept[node] = kept[above] and not at[above]
        column = np.where(at, -1, self.column)[kept]
        split_at = np.where(at, -1, self.at)[kept]
        return Tree(self.domain, column, split_at, self.counts[kept], self.deviation[kept], self.size[kept])

    def with_counts(self, counts: Floats, deviation: Floats) -> Tree:
        """The same structure with other leaf counts."""
        return Tree.grown(self.domain, self.column, self.at, counts, deviation, self.size)

    # -- prediction -------------------------------------------------------------------------

    def find(self, codes: NDArray[np.int32], grids: NDArray[np.int32]) -> Integers:
        """The node where each row ends: a leaf, or the last node that knows its value."""
        ends = np.empty(codes.shape[1], dtype=np.int64)
        missing = np.array([self.domain[name].missing for name in self.domain.attributes], dtype=np.bool_)
        _compiled_walk()(codes, grids, self.column, self.at, self.first, missing, ends)
        return ends

    @cached_property
    def shares(self) -> Floats:
        """The class shares of each node: of its counts above 0; even where none is; its parent's where all are 0."""
        positive = np.maximum(self.counts, 0)
        total = positive.sum(axis=1, keepdims=True)
        classes = self.counts.shape[1]
        # the label stays the largest count even where all are below 0
        label = np.eye(classes)[np.argmax(self.counts, axis=1)]
        even = (1 + 1e-6 * label) / (classes + 1e-6)
        shares = np.where(total > 0, positive / np.where(total > 0, total, 1), even)
        for node in np.flatnonzero(~self.counts.any(axis=1)):  # rising, so the parent's are known
            if node:
                shares[node] = shares[self.parents[node]]
        return _frozen(shares)

    @cached_property
    def labels(self) -> Integers:
        """The number of the most frequent class of each node; where nothing was counted, its parent's."""
        return _frozen(np.argmax(self.shares, axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble(Model):
    """A published model: one tree or several over one domain, how they vote, and what they promise.

    `prior` holds class counts for rows that fit no cell of a tree; without it such a row
    takes the counts of the last node that it fits.
    """

    domain: Domain
    trees: tuple[Tree, ...]
    privacy: Privacy
    vote: str = "majority"
    prior: tuple[float, ...] | None = None

    @property
    def tree(self) -> Tree:
        """The only tree."""
        if len(self.trees) != 1:
            raise ModelError(f"the model has {len(self.trees)} trees; take one of model.trees.")
        return self.trees[0]

    # -- prediction -------------------------------------------------------------------------

    def predict_proba(self, frame: Any) -> Floats:
        """The share of each class for the rows of a frame; columns are found by name."""
        codes, grids = self._coded(frame)
        first, *others = self.trees
        votes = self._table(first)[self._ends(first, codes, grids)]
        for tree in others:
            votes += self._table(tree)[self._ends(tree, codes, grids)]
        if self.vote == "product":
            return softmax(votes)
        if self.vote == "weighted":
            total = votes.sum(axis=1, keepdims=True)
            return np.where(total > 0, votes / np.where(total > 0, total, 1), 1 / votes.shape[1])
        return np.asarray(votes if len(self.trees) == 1 else votes / len(self.trees))

    def predict_codes(self, frame: Any) -> Integers:
        """The number of the class of each row: the largest share, the first of equals."""
        if len(self.trees) > 1:
            return np.asarray(np.argmax(self.predict_proba(frame), axis=1))
        (tree,) = self.trees
        return np.asarray(np.argmax(self._table(tree), axis=1)[self._ends(tree, *self._coded(frame))])

    def apply(self, frame: Any) -> Integers:
        """The number of the node where each row ends in each tree, [row, tree]; scikit-learn's word for it."""
        coded = self._coded(frame)
        return np.stack([tree.find(*coded) for tree in self.trees], axis=1)

    def _ends(self, tree: Tree, codes: NDArray[np.int32], grids: NDArray[np.int32]) -> Integers:
        """The row of `_table` for each row to predict."""
        ends = tree.find(codes, grids)
        return ends if self.prior is None else np.where(tree.first[ends] >= 0, len(tree), ends)

    def _table(self, tree: Tree) -> Floats:
        """What each node of a tree says, and in the last row what the prior says."""
        prior = np.array([self.prior if self.prior is not None else tree.counts[0]], dtype=np.float64)
        if self.vote == "weighted":
            return np.concatenate([np.maximum(tree.counts, 0), np.maximum(prior, 0)])
        if self.vote == "majority" and len(self.trees) > 1:
            return np.asarray(np.eye(len(self.domain.classes))[np.append(tree.labels, np.argmax(prior))])
        positive = np.maximum(prior, 0)
        even = np.full_like(prior, 1 / prior.shape[1])
        shares = np.concatenate([tree.shares, positive / positive.sum() if positive.any() else even])
        return np.log(np.maximum(shares, TINY)) if self.vote == "product" else shares

    def _coded(self, frame: Any) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Codes and grid indices of the attributes that some tree looks at."""
        attributes = self.domain.attributes
        by_cells = np.unique(np.concatenate([tree.column[(tree.column >= 0) & (tree.at < 0)] for tree in self.trees]))
        by_grid = np.unique(np.concatenate([tree.column[tree.at >= 0] for tree in self.trees]))
        rows = len(frame)
        codes = np.empty((len(attributes) if len(by_cells) else 0, rows), dtype=np.int32)
        grids = np.empty((len(attributes) if len(by_grid) else 0, rows), dtype=np.int32)
        for position in by_cells:
            codes[position] = self.domain[attributes[position]].encode(column_of(frame, attributes[position]))
        for position in by_grid:
            grids[position] = self.domain.numeric(attributes[position]).to_grid(column_of(frame, attributes[position]))
        if not codes.size:
            codes = np.empty((0, rows), dtype=np.int32)
        return codes, grids

    # -- looking at it ----------------------------------------------------------------------

    @property
    def summary(self) -> str:
        kind = "a tree" if len(self.trees) == 1 else f"{len(self.trees)} trees"
        leaves = sum(tree.leaves for tree in self.trees)
        return f"{kind} with {'1 leaf' if leaves == 1 else f'{leaves} leaves'}"

    def facts(self) -> dict[str, Any]:
        return {"trees": len(self.trees), "leaves": sum(tree.leaves for tree in self.trees)}

    def details(self) -> dict[str, Any]:
        return {
            "trees": [{"leaves": tree.leaves, "depth": tree.depth, "rules": tree.rules()} for tree in self.trees],
        }

    def rules(self) -> list[str]:
        """Every leaf as a sentence, tree by tree."""
        several = len(self.trees) > 1
        return [
            rule
            for number, tree in enumerate(self.trees, start=1)
            for rule in ([f"tree {number} of {len(self.trees)}"] * several + tree.rules())
        ]

    def text(self, max_depth: int | None = None) -> str:
        """The trees as indented text."""
        from privet.trees.drawing import text

        return text(self, max_depth)

    def page(self) -> str:
        from privet.trees.page import page

        return page(self)

    def _repr_html_(self) -> str:
        from privet.trees.drawing import svg

        return svg(self.trees[0])


def condition(split: Split, label: str) -> str:
    """The condition under which a row goes to a child, as people read it."""
    if split.threshold is not None and label != "<missing>":
        return f"{split.attribute} {label}"
    return told(split.attribute, label)


def told(attribute: str, label: str) -> str:
    """A cell of an attribute as people read it."""
    return f"{attribute} {'in ' if label.startswith('[') else '= '}{label}"


def _frozen(array: A) -> A:
    array.flags.writeable = False
    return array


def plain(number: float) -> int | float:
    """An int where a number is whole: a released count looks like one."""
    return int(number) if float(number).is_integer() and abs(number) < 2**53 else float(number)


@cache
def _compiled_walk() -> Any:
    """Compiled on first use: numba takes longer to import than most models to read."""
    from numba import njit

    return njit(cache=True)(_walk)


def _walk(codes: Any, grids: Any, column: Any, at: Any, first: Any, missing: Any, ends: Any) -> None:
    for row in range(len(ends)):
        node = 0
        while first[node] >= 0:
            position = column[node]
            if at[node] < 0:
                child = codes[position, row]
            else:
                index = grids[position, row]
                child = 1 if index >= at[node] else 0
                if index < 0:
                    child = 2 if missing[position] else -1
            if child < 0:
                break
            node = first[node] + child
        ends[row] = node

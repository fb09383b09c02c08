"""Published trees of released values, which cannot be changed.

A tree is kept as arrays over its nodes in breadth-first order. So the children of a node follow one
another, and prediction is a loop without recursion. `Split` and `Leaf` show one node to people. An
`Ensemble` is the published model: one tree or several, their domain, how they vote, and the privacy
record.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import ModelError
from privet.kernel import DEEPEST_TREE, Domain, Numeric, whole_of
from privet.models.model import Floats, Integers, Model, column_of, softmax
from privet.models.privacy_record import Privacy, numbers_of

if TYPE_CHECKING:
    import pandas as pd

TINY = 1e-300  # stands for a share of 0, which has no logarithm
VOTES = ("majority", "average", "weighted", "product")

A = TypeVar("A", bound=NDArray[Any])


@dataclass(frozen=True)
class Leaf:
    """A leaf of a tree.

    Parameters
    ----------
    counts : tuple of float
        Estimated rows of each class.
    deviation : float
        Standard deviation of the noise in each count.
    label : int
        The number of the class that it predicts.
    """

    counts: tuple[float, ...]
    deviation: float
    label: int


@dataclass(frozen=True)
class Split:
    """An inner node of a tree.

    Parameters
    ----------
    attribute : str
    threshold : int, float, str or None
        Rows with a value up to it go to the first child; None for a split into the cells of the attribute.
    labels : tuple of str
        The values that go to each child.
    children : tuple of int
        The numbers of their nodes.
    counts : tuple of float
        Estimated rows of each class: the sums of the leaves below.
    deviation : float
        Standard deviation of the noise in each count.
    size : float or None
        The released number of rows, if it was bought.
    """

    attribute: str
    threshold: int | float | str | None
    labels: tuple[str, ...]
    children: tuple[int, ...]
    counts: tuple[float, ...]
    deviation: float
    size: float | None


@dataclass(frozen=True)
class Visit:
    """One node of a walk through a tree.

    Parameters
    ----------
    number : int
        The number of the node.
    node : Split or Leaf
    path : tuple of str
        The conditions that lead to it.
    """

    number: int
    node: Split | Leaf
    path: tuple[str, ...]

    @property
    def depth(self) -> int:
        """The depth of the node; 0 for the root."""
        return len(self.path)


@dataclass(frozen=True, eq=False)
class Tree:
    """A decision tree over a public domain, in arrays over its nodes in breadth-first order.

    Parameters
    ----------
    domain : Domain
    column : array of int
        The position of the attribute that each node splits by, -1 for a leaf.
    at : array of int
        The grid index from which on rows go to the second child, -1 for a split into cells.
    counts : array of float
        Estimated rows, [node, class].
    deviation : array of float
        Standard deviation of the noise in each count of a node.
    size : array of float
        Released numbers of rows, NaN where none was bought.

    Attributes
    ----------
    first : array of int
        The first child of each node, -1 for a leaf.

    Raises
    ------
    ModelError
        The nodes do not form a tree.
    """

    domain: Domain
    column: Integers
    at: Integers
    counts: Floats
    deviation: Floats
    size: Floats
    first: Integers = field(init=False)

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
        """Return a tree from the counts of its leaves. Inner nodes get the sums of the leaves below.

        Parameters
        ----------
        domain, column, at, counts, deviation, size
            As in `Tree`; counts and deviations of inner nodes are ignored.

        Returns
        -------
        Tree
        """
        tree = cls(domain, column, at, counts.copy(), deviation.copy(), size)
        counts, variance = tree.counts.copy(), tree.deviation**2
        counts[~tree.is_leaf] = 0
        variance[~tree.is_leaf] = 0
        for level in range(tree.depth, 0, -1):
            nodes = np.flatnonzero(tree.depths == level)
            np.add.at(counts, tree.parents[nodes], counts[nodes])
            np.add.at(variance, tree.parents[nodes], variance[nodes])
        return cls(domain, column, at, counts, np.sqrt(variance), size)

    # -- structure --------------------------------------------------------------------------

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether each node is a leaf."""
        return np.asarray(self.column < 0)

    @property
    def leaves(self) -> int:
        """The number of leaves."""
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
        """The depth of each node; 0 for the root."""
        start, sizes = 0, [1]  # breadth first: each level follows the one above
        while below := int(self.arity[start : start + sizes[-1]].sum()):
            start += sizes[-1]
            sizes.append(below)
        return _frozen(np.repeat(np.arange(len(sizes)), sizes))

    @property
    def depth(self) -> int:
        """The largest depth of a node."""
        return int(self.depths.max())

    def node(self, number: int) -> Split | Leaf:
        """Return one node for people.

        Parameters
        ----------
        number : int
            Its number in breadth-first order.

        Returns
        -------
        Split or Leaf
        """
        counts = tuple(plain_number(count) for count in self.counts[number].tolist())
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
            labels = (f"<= {column.text(point)}", f"> {column.text(point)}") + ("<missing>",) * column.missing
        start = int(self.first[number])
        size = None if math.isnan(self.size[number]) else plain_number(float(self.size[number]))
        return Split(name, threshold, labels, tuple(range(start, start + len(labels))), counts, deviation, size)

    @property
    def root(self) -> Split | Leaf:
        """The root."""
        return self.node(0)

    def walk(self) -> Iterator[Visit]:
        """Yield a `Visit` for every node, depth first, parents before their children."""
        waiting: list[tuple[int, tuple[str, ...]]] = [(0, ())]
        while waiting:
            number, path = waiting.pop()
            node = self.node(number)
            yield Visit(number, node, path)
            if isinstance(node, Split):
                below = zip(node.children, node.labels, strict=True)
                waiting += reversed([(child, (*path, condition(node, label))) for child, label in below])

    def to_dataframe(self) -> pd.DataFrame:
        """Return a pandas frame with a row for each node: its parent, test, class counts and their noise."""
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
        """Return a sentence for each leaf: if conditions then class."""
        texts = self.domain.target_column.texts
        return [
            f"if {' and '.join(visit.path) or 'anything'} then {texts[visit.node.label]} "
            f"({', '.join(f'{text} {count:.0f}' for text, count in zip(texts, visit.node.counts, strict=True))})"
            for visit in self.walk()
            if isinstance(visit.node, Leaf)
        ]

    # -- changed copies ---------------------------------------------------------------------

    def cut(self, at: NDArray[np.bool_]) -> Tree:
        """Return the tree in which some nodes are leaves. They keep their counts; everything below them is gone.

        Parameters
        ----------
        at : array of bool
            Whether each node becomes a leaf.

        Returns
        -------
        Tree
        """
        kept = np.ones(len(self), dtype=np.bool_)
        for node in range(1, len(self)):
            above = self.parents[node]
            kept[node] = kept[above] and not at[above]
        column = np.where(at, -1, self.column)[kept]
        split_at = np.where(at, -1, self.at)[kept]
        return Tree(self.domain, column, split_at, self.counts[kept], self.deviation[kept], self.size[kept])

    def with_counts(self, counts: Floats, deviation: Floats) -> Tree:
        """Return a tree of the same structure with other counts of its leaves.

        Parameters
        ----------
        counts : array of float
            [node, class]; those of inner nodes are ignored.
        deviation : array of float
            Standard deviation of the noise in each count of a node.

        Returns
        -------
        Tree
        """
        return Tree.grown(self.domain, self.column, self.at, counts, deviation, self.size)

    # -- prediction -------------------------------------------------------------------------

    def find(self, codes: NDArray[np.int32], grids: NDArray[np.int32]) -> Integers:
        """Return the node where each row ends: a leaf, or the last node whose cells its value fits.

        Parameters
        ----------
        codes : array of int
            The cell of each attribute, [attribute, row], -1 for none.
        grids : array of int
            The grid index of each numeric attribute, [attribute, row], -1 for none.

        Returns
        -------
        array of int
        """
        ends = np.empty(codes.shape[1], dtype=np.int64)
        missing = np.array([self.domain[name].missing for name in self.domain.attributes], dtype=np.bool_)
        _compiled_walk()(codes, grids, self.column, self.at, self.first, missing, ends)
        return ends

    @cached_property
    def shares(self) -> Floats:
        """The class shares of each node.

        They come from its positive counts. They are even if it has none, and those of its parent if all counts are 0.
        """
        positive = np.maximum(self.counts, 0)
        total = positive.sum(axis=1, keepdims=True)
        classes = self.counts.shape[1]
        # if no count is positive, a tiny bonus keeps the label at the largest of them
        label = np.eye(classes)[np.argmax(self.counts, axis=1)]
        even = (1 + 1e-6 * label) / (classes + 1e-6)
        shares = np.where(total > 0, positive / np.where(total > 0, total, 1), even)
        for node in np.flatnonzero(~self.counts.any(axis=1)):  # rising: parents come first
            if node:
                shares[node] = shares[self.parents[node]]
        return _frozen(shares)

    @cached_property
    def labels(self) -> Integers:
        """The number of the class that each node predicts: the first with the largest share."""
        return _frozen(np.argmax(self.shares, axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble(Model, key="trees"):
    """A published model of one tree or several.

    Parameters
    ----------
    domain : Domain
        The public domain of the rows.
    trees : tuple of Tree
    privacy : Privacy
        What the model promises and what it cost.
    vote : {"majority", "average", "weighted", "product"}, default "majority"
        How trees are combined: by their classes, by the mean of their shares, by the sum of their counts, or by the
        product of their shares.
    prior : tuple of float, optional
        Class counts for rows that fit no cell of a tree. Without it such a row takes the last node that it fits.
    """

    domain: Domain
    trees: tuple[Tree, ...]
    privacy: Privacy
    vote: str = "majority"
    prior: tuple[float, ...] | None = None

    @property
    def tree(self) -> Tree:
        """The only tree. Raises `ModelError` if there are several."""
        if len(self.trees) != 1:
            raise ModelError(f"the model has {len(self.trees)} trees; take one of model.trees.")
        return self.trees[0]

    # -- JSON: nodes in breadth-first order, of which the domain says how many children each has ------

    def _content(self) -> dict[str, Any]:
        prior = None if self.prior is None else [plain_number(count) for count in self.prior]
        return {"vote": self.vote, "prior": prior, "trees": [_nodes(tree) for tree in self.trees]}

    @classmethod
    def _read(cls, content: dict[str, Any], domain: Domain) -> Ensemble:
        if content.get("vote") not in VOTES:
            raise ModelError(f"the model's vote is not one of {', '.join(VOTES)}.")
        prior = content.get("prior")
        trees = content.get("trees")
        if not isinstance(trees, list) or not 0 < len(trees) <= 100_000:
            raise ModelError("the model has no trees.")
        position = {name: i for i, name in enumerate(domain.attributes)}
        return cls(
            domain,
            tuple(_tree(nodes, domain, position) for nodes in trees),
            Privacy.from_dict(content.get("privacy")),
            content["vote"],
            None if prior is None else tuple(numbers_of(prior, len(domain.classes), "the prior")),
        )

    # -- prediction -------------------------------------------------------------------------

    def predict_proba(self, frame: Any) -> Floats:
        """Predict the share of each class; see `Model.predict_proba`."""
        codes, grids = self._coded(frame)
        first, *others = self.trees
        votes = self._votes(first)[self._ends(first, codes, grids)]
        for tree in others:
            votes += self._votes(tree)[self._ends(tree, codes, grids)]
        if self.vote == "product":
            return softmax(votes)
        if self.vote == "weighted":
            total = votes.sum(axis=1, keepdims=True)
            return np.where(total > 0, votes / np.where(total > 0, total, 1), 1 / votes.shape[1])
        return np.asarray(votes if len(self.trees) == 1 else votes / len(self.trees))

    def predict_codes(self, frame: Any) -> Integers:
        """Predict the number of the class of each row; see `Model.predict_codes`."""
        if len(self.trees) > 1:
            return np.asarray(np.argmax(self.predict_proba(frame), axis=1))
        (tree,) = self.trees
        return np.asarray(np.argmax(self._votes(tree), axis=1)[self._ends(tree, *self._coded(frame))])

    def apply(self, frame: Any) -> Integers:
        """Return the number of the node where each row ends, as `apply` of scikit-learn's forests does.

        Parameters
        ----------
        frame : frame
            Rows with named columns.

        Returns
        -------
        array of int
            [row, tree]
        """
        coded = self._coded(frame)
        return np.stack([tree.find(*coded) for tree in self.trees], axis=1)

    def _ends(self, tree: Tree, codes: NDArray[np.int32], grids: NDArray[np.int32]) -> Integers:
        """Return the row of `_votes` for each row to predict."""
        ends = tree.find(codes, grids)
        return ends if self.prior is None else np.where(tree.first[ends] >= 0, len(tree), ends)

    def _votes(self, tree: Tree) -> Floats:
        """Return the vote of each node of a tree, and in the last row that of the prior."""
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
        """Return codes and grid indices of the attributes that some tree looks at."""
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

    # -- description ------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """How many trees and leaves there are, in words."""
        kind = "a tree" if len(self.trees) == 1 else f"{len(self.trees)} trees"
        leaves = sum(tree.leaves for tree in self.trees)
        return f"{kind} with {'1 leaf' if leaves == 1 else f'{leaves} leaves'}"

    def facts(self) -> dict[str, Any]:
        """Return how many trees and leaves there are."""
        return {"trees": len(self.trees), "leaves": sum(tree.leaves for tree in self.trees)}

    def details(self) -> dict[str, Any]:
        """Return the leaves, the depth and the rules of each tree."""
        return {
            "trees": [{"leaves": tree.leaves, "depth": tree.depth, "rules": tree.rules()} for tree in self.trees],
        }

    def rules(self) -> list[str]:
        """Return a sentence for each leaf, tree by tree."""
        several = len(self.trees) > 1
        return [
            rule
            for number, tree in enumerate(self.trees, start=1)
            for rule in ([f"tree {number} of {len(self.trees)}"] * several + tree.rules())
        ]


def condition(split: Split, label: str) -> str:
    """Return the condition under which a row goes to a child, in words.

    Parameters
    ----------
    split : Split
    label : str
        The label of the child.

    Returns
    -------
    str
        Such as "age <= 40" or "sex = Female".
    """
    if split.threshold is not None and label != "<missing>":
        return f"{split.attribute} {label}"
    return cell_text(split.attribute, label)


def cell_text(attribute: str, label: str) -> str:
    """Return a cell of an attribute in words, such as "age in [30, 40)" or "sex = Female"."""
    return f"{attribute} {'in ' if label.startswith('[') else '= '}{label}"


def _frozen(array: A) -> A:
    """Return an array that cannot be written any more."""
    array.flags.writeable = False
    return array


def plain_number(number: float) -> int | float:
    """Return a whole number as an int, and any other as a float."""
    return int(number) if float(number).is_integer() and abs(number) < 2**53 else float(number)


@cache
def _compiled_walk() -> Any:
    """Return `_walk`, compiled on first use: importing numba takes longer than reading most models."""
    from numba import njit

    return njit(cache=True)(_walk)


def _walk(codes: Any, grids: Any, column: Any, at: Any, first: Any, missing: Any, ends: Any) -> None:
    """Write the node where each row ends into `ends`; see `Tree.find`."""
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


def _nodes(tree: Tree) -> list[dict[str, Any]]:
    """Return the nodes of a tree in breadth-first order."""
    nodes = []
    for number in range(len(tree)):
        node: dict[str, Any] = {}
        if tree.column[number] >= 0:
            node["split"] = tree.domain.attributes[int(tree.column[number])]
            if tree.at[number] >= 0:
                node["at"] = int(tree.at[number])
        if not math.isnan(tree.size[number]):
            node["size"] = plain_number(float(tree.size[number]))
        node["counts"] = [plain_number(count) for count in tree.counts[number].tolist()]
        node["deviation"] = float(tree.deviation[number])
        nodes.append(node)
    return nodes


def _tree(nodes: Any, domain: Domain, position: Mapping[str, int]) -> Tree:
    """Read one tree."""
    if not isinstance(nodes, list) or not nodes:
        raise ModelError("a tree of the model has no list of nodes; it was not written by privet.")
    classes = len(domain.classes)
    column = np.full(len(nodes), -1, dtype=np.int64)
    at = np.full(len(nodes), -1, dtype=np.int64)
    counts = np.empty((len(nodes), classes))
    deviation, size = np.empty(len(nodes)), np.full(len(nodes), np.nan)
    for number, node in enumerate(nodes):
        if not isinstance(node, dict) or not set(node) <= {"split", "at", "size", "counts", "deviation"}:
            raise ModelError(f"node {number} of the model is not a node; it was not written by privet.")
        if "split" in node:
            name = node["split"]
            if not isinstance(name, str) or name not in position:
                raise ModelError(f"node {number} of the model splits by a column its domain does not declare.")
            column[number] = position[name]
            if "at" in node:
                at[number] = _grid_index(node["at"], domain, name, number)
        elif "at" in node:
            raise ModelError(f"node {number} of the model has a threshold and no column.")
        counts[number] = numbers_of(node.get("counts"), classes, f"node {number}")
        (deviation[number],) = numbers_of([node.get("deviation")], 1, f"node {number}")
        if deviation[number] < 0:
            raise ModelError(f"node {number} of the model has a negative deviation.")
        if "size" in node:
            (size[number],) = numbers_of([node["size"]], 1, f"node {number}")
    tree = Tree(domain, column, at, counts, deviation, size)
    if tree.depth > DEEPEST_TREE:
        raise ModelError(f"a tree of the model has more than {DEEPEST_TREE} levels; it was not written by privet.")
    return tree


def _grid_index(value: Any, domain: Domain, name: str, number: int) -> int:
    """Return the grid index of a threshold."""
    column = domain[name]
    if not isinstance(column, Numeric):
        raise ModelError(f"node {number} of the model has a threshold that '{name}' does not have.")
    index = whole_of(value, 1, column.grid_size - 1)
    if index is None:
        raise ModelError(f"node {number} of the model has a threshold outside the bounds of '{name}'.")
    return index

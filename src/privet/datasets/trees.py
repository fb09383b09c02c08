"""Rows whose class follows from a random decision tree (Friedman and Schuster 2010, section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privet.datasets.dataset import Dataset
from privet.errors import DataError
from privet.kernel import Column, Domain, Nominal, Numeric

Codes = NDArray[np.int64]

POINTS = 10_001  # of a number from 0 to 100: two digits after the point
SINGLE = 3500  # where the tree of a single split cuts a number: at 35
FIRST_LEAVES = 2  # nodes may be leaves from this level on, the third if the root's is the first
MOST_NODES = 2_000_000  # of a level


def random_tree(
    rows: int,
    *,
    depth: int = 5,
    attributes: int = 10,
    arity: int = 2,
    classes: int = 2,
    numeric: int = 0,
    p_leaf: float = 0.3,
    p_noise: float = 0.0,
    tree_seed: int = 0,
    seed: int | np.random.Generator = 0,
    max_rows: int = 50_000,
) -> Dataset:
    """Uniform rows that a random tree classifies, of any size: nobody in them exists.

    Of the attributes the last `numeric` are numbers from 0 to 100, the others have `arity` values. The tree splits
    `depth` times at most, and from the third level on a node is a leaf with probability `p_leaf`. All draws are
    uniform: of the attribute of a split, a nominal one once on a path; of the point where a number is cut, in what
    the path has left of it; of the class of a leaf. A tree of depth 1 is the paper's single split: by the first
    number, at 35, or without numbers by the first attribute, and with another class in each leaf. At last every
    value and every class is replaced by a random one with probability `p_noise`.

    `tree_seed` draws the tree and `seed` the rows: the same seeds give the same rows, and rows without noise from
    the same tree are what a learner is tested on.

    >>> data = random_tree(1000, depth=1, attributes=3, numeric=1, seed=7)
    >>> data.domain.names, data.domain.max_rows
    (('a0', 'a1', 'n0', 'class'), 50000)
    >>> print((data.frame["class"] == (data.frame["n0"] >= 35)).all())
    True
    """
    import pandas as pd

    for name, whole, least in (
        ("rows", rows, 0),
        ("depth", depth, 1),
        ("attributes", attributes, 1),
        ("arity", arity, 2),
        ("classes", classes, 2),
        ("numeric", numeric, 0),
        ("max_rows", max_rows, 1),
    ):
        if isinstance(whole, bool) or not isinstance(whole, int | np.integer) or whole < least:
            raise DataError(
                f"a random tree with {name}={whole!r} is not possible; ask for a whole number from {least}."
            )
    for name, chance in (("p_leaf", p_leaf), ("p_noise", p_noise)):
        if not 0 <= chance <= 1:
            raise DataError(f"{name}={chance!r} is not a probability; give a number from 0 to 1.")
    if numeric > attributes:
        raise DataError(f"{numeric} of {attributes} attributes cannot be numeric; ask for {attributes} at most.")
    if not numeric and depth > attributes:
        raise DataError(
            f"a tree of depth {depth} needs as many attributes, for none is used twice on a path, and there are "
            f"{attributes}; lower depth, or make one numeric."
        )
    if rows > max_rows:
        raise DataError(f"{rows} rows are more than max_rows={max_rows} allows; raise max_rows.")

    nominal = attributes - numeric
    sizes = np.array([arity] * nominal + [POINTS] * numeric)
    shape = _Shape(sizes, np.arange(attributes) >= nominal, classes)
    tree = _single(shape) if depth == 1 else _grown(shape, depth, p_leaf, np.random.default_rng(tree_seed))

    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.integers(0, arity, (rows, nominal)), rng.integers(0, POINTS, (rows, numeric))])
    table = np.column_stack([values, tree.classify(values)])
    if p_noise:
        replaced = np.nonzero(np.asarray(rng.random(table.shape)) < p_noise)
        table[replaced] = rng.integers(0, np.append(sizes, classes)[replaced[1]])

    columns: list[Column] = [Nominal(f"a{i}", tuple(range(arity))) for i in range(nominal)]
    columns += [
        Numeric(f"n{i}", Fraction(0), Fraction(100), step=Fraction(100, POINTS - 1), bins=10) for i in range(numeric)
    ]
    columns.append(Nominal("class", tuple(range(classes))))
    frame = pd.DataFrame(
        {
            column.name: table[:, i] * 100 / (POINTS - 1) if isinstance(column, Numeric) else table[:, i]
            for i, column in enumerate(columns)
        }
    )
    return Dataset(frame, Domain(tuple(columns), target="class", max_rows=max_rows))


@dataclass(frozen=True)
class _Shape:
    """The attributes that a tree may split by."""

    sizes: Codes  # of values, for each attribute
    numeric: NDArray[np.bool_]
    classes: int

    def children(self, by: Codes) -> Codes:
        return np.where(self.numeric[by], 2, self.sizes[by])


@dataclass(frozen=True)
class _Level:
    """The nodes of a level: what they split by, where a number is cut, and their first child in the next one."""

    by: Codes
    cut: Codes
    splits: NDArray[np.bool_]  # a leaf is its own child
    first: Codes


@dataclass(frozen=True)
class _Tree:
    shape: _Shape
    levels: tuple[_Level, ...]
    labels: Codes  # of the nodes below all levels

    def classify(self, values: Codes) -> Codes:
        """The class of each row."""
        node, every = np.zeros(len(values), dtype=np.int64), np.arange(len(values))
        for level in self.levels:
            by = level.by[node]
            value = values[every, by]
            child = np.where(self.shape.numeric[by], value >= level.cut[node], value)
            node = level.first[node] + np.where(level.splits[node], child, 0)
        return self.labels[node]


def _single(shape: _Shape) -> _Tree:
    by = np.array([int(shape.numeric.argmax())])  # the first number, or the first attribute if there is none
    level = _Level(by, np.array([SINGLE]), np.array([True]), np.array([0]))
    return _Tree(shape, (level,), np.arange(int(shape.children(by)[0])) % shape.classes)


def _grown(shape: _Shape, depth: int, p_leaf: float, rng: np.random.Generator) -> _Tree:
    """All nodes of a level at once, whether rows reach them or not: the tree does not depend on rows."""
    low = np.zeros((1, len(shape.sizes)), dtype=np.int16)  # what a path has left of each attribute
    high = (shape.sizes - 1).astype(np.int16)[None, :]
    splits, levels = np.array([True]), []
    for depth_now in range(depth):
        nodes = np.arange(len(splits))
        left = low < high
        by = np.where(left, rng.random(left.shape), -1).argmax(axis=1)
        room = (high - low)[nodes, by].astype(np.int64)
        cut = low[nodes, by] + 1 + np.floor(rng.random(len(nodes)) * room).astype(np.int64)
        splits = splits & left.any(axis=1) & ((depth_now < FIRST_LEAVES) | (rng.random(len(nodes)) >= p_leaf))
        children = np.where(splits, shape.children(by), 1)
        if children.sum() > MOST_NODES:
            raise DataError(
                f"a random tree of depth {depth} has more than {MOST_NODES} nodes; lower depth or arity, or raise "
                "p_leaf."
            )
        first = np.cumsum(children) - children
        levels.append(_Level(by, cut, splits, first))
        parent = nodes.repeat(children)
        child, by, cut, splits = np.arange(len(parent)) - first[parent], by[parent], cut[parent], splits[parent]
        low, high = low[parent], high[parent]
        number, below = splits & shape.numeric[by], child == 0
        for some, bound, at in (
            (number & below, high, cut - 1),
            (number & ~below, low, cut),
            (splits & ~number, high, np.zeros_like(cut)),  # used up
        ):
            bound[np.flatnonzero(some), by[some]] = at[some]
    return _Tree(shape, tuple(levels), rng.integers(0, shape.classes, len(splits)))

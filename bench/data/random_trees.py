"""Random trees (generated, anew for each repeat): the class is that of a leaf, and a tenth of all values is replaced.

After Friedman and Schuster 2010, section 5.1, with trees of at most five levels.
"""

from collections.abc import Sequence

import numpy as np

from bench.data import Integers, generated
from privet.datasets import Dataset

ROWS = 20_000
SIZES = (2, 2, 2, 3, 3, 3, 4, 4, 5, 6)
DEPTH, LEAF, NOISE = 5, 0.3, 0.1


def load(seed: int, rows: int = ROWS) -> Dataset:
    rng = np.random.default_rng([2, seed])
    codes = np.stack([rng.integers(0, size, rows) for size in SIZES], axis=1)
    label = classified(rng, codes, SIZES)
    for at, size in enumerate(SIZES):
        codes[:, at] = _replaced(rng, codes[:, at], size)
    return generated(codes, SIZES, _replaced(rng, label, 2))


def classified(rng: np.random.Generator, codes: Integers, sizes: Sequence[int]) -> Integers:
    """The class of each row by a tree that is drawn: the draws depend on the sizes of the attributes alone."""
    label = np.zeros(len(codes), dtype=np.int64)

    def grow(rows: Integers, left: tuple[int, ...], depth: int) -> None:
        if depth == DEPTH or (depth >= 2 and rng.random() < LEAF):
            label[rows] = rng.integers(2)
            return
        attribute = int(rng.choice(left))
        for value in range(sizes[attribute]):
            below = rows[codes[rows, attribute] == value]
            grow(below, tuple(at for at in left if at != attribute), depth + 1)

    grow(np.arange(len(codes)), tuple(range(len(sizes))), 0)
    return label


def _replaced(rng: np.random.Generator, values: Integers, size: int) -> Integers:
    """Every value with some probability by one drawn uniformly, which may be the same."""
    return np.where(rng.random(len(values)) < NOISE, rng.integers(0, size, len(values)), values)

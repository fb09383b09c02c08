"""Random trees (generated, anew for each repeat): the class is that of a leaf, and a tenth of all values is replaced.

After Friedman and Schuster 2010, section 5.1, with trees of at most five levels.
"""

import numpy as np

from bench.data import Integers, generated
from privet.datasets import Dataset

ROWS = 20_000
SIZES = (2, 2, 2, 3, 3, 3, 4, 4, 5, 6)
DEPTH, LEAF, NOISE = 5, 0.3, 0.1


def load(seed: int) -> Dataset:
    rng = np.random.default_rng([2, seed])
    codes = np.stack([rng.integers(0, size, ROWS) for size in SIZES], axis=1)
    label = np.zeros(ROWS, dtype=np.int64)
    _grow(rng, codes, label, np.arange(ROWS), tuple(range(len(SIZES))), 0)
    for at, size in enumerate(SIZES):
        codes[:, at] = _replaced(rng, codes[:, at], size)
    return generated(codes, SIZES, _replaced(rng, label, 2))


def _grow(
    rng: np.random.Generator, codes: Integers, label: Integers, rows: Integers, left: tuple[int, ...], depth: int
) -> None:
    """Draw the tree below a node that these rows reach, and write the classes of its leaves into `label`."""
    if depth == DEPTH or (depth >= 2 and rng.random() < LEAF):
        label[rows] = rng.integers(2)
        return
    attribute = int(rng.choice(left))
    for value in range(SIZES[attribute]):
        below = rows[codes[rows, attribute] == value]
        _grow(rng, codes, label, below, tuple(at for at in left if at != attribute), depth + 1)


def _replaced(rng: np.random.Generator, values: Integers, size: int) -> Integers:
    """Every value with some probability by one drawn uniformly, which may be the same."""
    return np.where(rng.random(ROWS) < NOISE, rng.integers(0, size, ROWS), values)

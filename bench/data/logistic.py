"""Additive logistic (generated, anew for each repeat): each of twelve attributes moves the log odds by itself."""

import numpy as np

from bench.data import generated
from privet.datasets import Dataset

ROWS = 20_000
SIZES = (2, 2, 2, 3, 3, 4, 4, 5, 6, 8, 10, 12)


def load(seed: int, rows: int = ROWS) -> Dataset:
    rng = np.random.default_rng([1, seed])
    codes = np.stack([rng.integers(0, size, rows) for size in SIZES], axis=1)
    score = np.sum([rng.normal(size=size)[codes[:, at]] for at, size in enumerate(SIZES)], axis=0)
    score = 2.5 * (score - score.mean()) / score.std()
    return generated(codes, SIZES, (score + rng.logistic(size=rows) > 0).astype(np.int64))

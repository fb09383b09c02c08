"""Pairs (generated, anew for each repeat): attributes move the log odds in pairs, and much less by themselves."""

import numpy as np

from bench.data import generated
from privet.datasets import Dataset

ROWS = 20_000
SIZES = (2, 3, 3, 4, 4, 4, 5, 5, 6, 6)
PAIRS = 5
ALONE = 0.4  # the deviation of main effects over that of the pairs


def load(seed: int, rows: int = ROWS) -> Dataset:
    rng = np.random.default_rng([3, seed])
    codes = np.stack([rng.integers(0, size, rows) for size in SIZES], axis=1)
    alone = np.sum([rng.normal(size=size)[codes[:, at]] for at, size in enumerate(SIZES)], axis=0)
    together = np.zeros(rows)
    for one, other in rng.permutation(len(SIZES)).reshape(PAIRS, 2):
        table = rng.normal(size=(SIZES[one], SIZES[other]))
        table += table.mean() - table.mean(axis=0) - table.mean(axis=1, keepdims=True)  # no effect of one alone
        together += table[codes[:, one], codes[:, other]]
    score = together / together.std() + ALONE * alone / alone.std()
    score = 3 * (score - score.mean()) / score.std()
    return generated(codes, SIZES, (score + rng.logistic(size=rows) > 0).astype(np.int64))

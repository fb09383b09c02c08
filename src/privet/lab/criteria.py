"""Criteria for public rows alone: a record may move their scores by any amount, or they are not rounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import NotPrivate
from privet.kernel import Criterion

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class GainRatio(Criterion):
    """C4.5's gain ratio: the information gain over the entropy of the split. For public rows alone.

    One record can move it from 0 to any height, so it has no sensitivity and no private selection takes it.
    """

    name: ClassVar[str] = "gain-ratio"
    grid: ClassVar[int] = 1

    @property
    def sensitivity(self) -> int:
        raise NotPrivate("the gain ratio of a split has no bounded sensitivity; choose max, gini or infogain.")

    def exact_scores(self, exact_counts: Counts) -> NDArray[np.float64]:
        entropy = _entropy(exact_counts.sum(axis=-1))
        gains = self.exact_gains(exact_counts)
        return np.asarray(np.divide(gains, entropy, out=np.zeros_like(gains), where=entropy > 1e-12))

    def exact_gains(self, exact_counts: Counts) -> NDArray[np.float64]:
        size = exact_counts.sum(axis=-1)
        share = size / np.maximum(size.sum(axis=-1, keepdims=True), 1)
        within = (share * _entropy(exact_counts)).sum(axis=-1)
        return np.asarray(_entropy(exact_counts.sum(axis=-2)) - within)


@dataclass(frozen=True)
class Unrounded(Criterion):
    """Minus the impurity mass that a split leaves, by Gini or entropy, to nine places. For public rows alone.

    A choice by it can be taken at its word: no split that was not chosen leaves less. `Gini` and `InfoGain`, whose
    grids bound their sensitivity, call splits equal that differ by less than that.
    """

    by: str  # "gini" or "infogain"
    name: ClassVar[str] = "unrounded"
    grid: ClassVar[int] = 1

    @property
    def sensitivity(self) -> int:
        raise NotPrivate("scores that are not rounded are for public rows alone; choose max, gini or infogain.")

    def exact_scores(self, exact_counts: Counts) -> NDArray[np.float64]:
        size = exact_counts.sum(axis=-1)
        if self.by == "gini":
            mass = size - (exact_counts.astype(np.float64) ** 2).sum(axis=-1) / np.maximum(size, 1)
        else:
            mass = size * _entropy(exact_counts)
        return np.asarray(-np.round(mass.sum(axis=-1), 9))


def _entropy(counts: Counts) -> NDArray[np.float64]:
    """Bits of the last axis."""
    share = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    return np.asarray(-(share * np.log2(np.where(share > 0, share, 1))).sum(axis=-1))

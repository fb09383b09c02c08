"""Criteria for public rows alone: their scores have no bounded sensitivity, or are not rounded."""

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
    """C4.5's gain ratio: the information gain divided by the entropy of the split. For public rows alone.

    One record can move it by any amount, so it has no sensitivity, and no private selection accepts it.
    """

    name: ClassVar[str] = "gain-ratio"
    grid: ClassVar[int] = 1

    @property
    def sensitivity(self) -> int:
        """Raises `NotPrivate`: there is no bound."""
        raise NotPrivate("the gain ratio of a split has no bounded sensitivity; choose max, gini or infogain.")

    def exact_scores(self, exact_counts: Counts) -> NDArray[np.float64]:
        """Return the gain ratio of each table of counts [..., cell, class]; 0 if the split has no entropy."""
        entropy = _entropy(exact_counts.sum(axis=-1))
        gains = self.exact_gains(exact_counts)
        return np.asarray(np.divide(gains, entropy, out=np.zeros_like(gains), where=entropy > 1e-12))

    def exact_gains(self, exact_counts: Counts) -> NDArray[np.float64]:
        """Return the information gain, in bits, of each table of counts [..., cell, class]."""
        size = exact_counts.sum(axis=-1)
        share = size / np.maximum(size.sum(axis=-1, keepdims=True), 1)
        within = (share * _entropy(exact_counts)).sum(axis=-1)
        return np.asarray(_entropy(exact_counts.sum(axis=-2)) - within)


@dataclass(frozen=True)
class Unrounded(Criterion):
    """Minus the impurity that a split leaves, to nine decimal places. For public rows alone.

    No other split leaves less impurity than the chosen one. `Gini` and `InfoGain` round scores to a grid, which
    bounds their sensitivity, so for them splits may be equal that differ a little.

    Parameters
    ----------
    by : {"gini", "infogain"}
        The impurity: Gini, or entropy.
    """

    by: str
    name: ClassVar[str] = "unrounded"
    grid: ClassVar[int] = 1

    @property
    def sensitivity(self) -> int:
        """Raises `NotPrivate`: there is no bound."""
        raise NotPrivate("scores that are not rounded are for public rows alone; choose max, gini or infogain.")

    def exact_scores(self, exact_counts: Counts) -> NDArray[np.float64]:
        """Return the score of each table of counts [..., cell, class]."""
        size = exact_counts.sum(axis=-1)
        if self.by == "gini":
            mass = size - (exact_counts.astype(np.float64) ** 2).sum(axis=-1) / np.maximum(size, 1)
        else:
            mass = size * _entropy(exact_counts)
        return np.asarray(-np.round(mass.sum(axis=-1), 9))


def _entropy(counts: Counts) -> NDArray[np.float64]:
    """Return the entropy of the last axis, in bits."""
    share = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    return np.asarray(-(share * np.log2(np.where(share > 0, share, 1))).sum(axis=-1))

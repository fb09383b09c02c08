"""What random trees come to on average: exact, for given rows, over all coins and all noise.

Every node of a random tree takes an attribute that its path has not used, each with the same chance. So what a row
is asked in a tree of depth d is one of the sets of d attributes, each as likely as the others, and its leaf is a cell
of their table. There the label is the larger of two counts with noise, whose chance is known. Trees of a forest are
drawn independently, so that a row gets its votes from a binomial distribution. Averages over sets of attributes, and
then over the rows, are what any number of runs can only estimate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from privet.studies.rows import Split, split
from privet.studies.trial import Trial

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Leads = tuple[Integers, Integers]


def expected(trial: Trial) -> Mapping[str, Any]:
    """Percent right of trees and forests for every epsilon, number of trees and depth, and what bounds them.

    `accuracy` is by epsilon, number of trees and depth; `spread` is the standard deviation of a single tree by epsilon
    and depth, and `spread by coins` what of it is due to the attributes that are drawn. `ceiling` is what no function
    of the attributes exceeds on the whole table: the majority of every cell; `single` the same with the best
    attribute alone; `lookup` that of the rows to learn from, tested on the others.
    """
    settings = dict(trial.settings)
    epsilons, trees = str(settings["epsilons"]).split(), [int(each) for each in str(settings["trees"]).split()]
    rows = _Coded(split(trial))
    leads = {depth: [rows.leads(chosen) for chosen in rows.sets(depth)] for depth in range(1, rows.attributes + 1)}
    everything = tuple(range(rows.attributes))
    ((values, where),) = leads[rows.attributes]
    accuracy: dict[str, dict[str, list[float]]] = {}
    spread: dict[str, list[float]] = {}
    coins: dict[str, list[float]] = {}
    for epsilon in epsilons:
        accuracy[epsilon] = {
            str(many): [rows.right(_votes(some, float(epsilon) / many, many)) for some in leads.values()]
            for many in trees
        }
        spread[epsilon] = [rows.deviation(depth, float(epsilon)) for depth in leads]
        coins[epsilon] = [rows.deviation(depth, float(epsilon), noise=False) for depth in leads]
    return {
        "accuracy": accuracy,
        "spread": spread,
        "spread by coins": coins,
        "ceiling": rows.ceiling(everything),
        "single": max(rows.ceiling((each,)) for each in everything),
        "lookup": rows.right((values > 0).astype(np.float64)[where]),
        "majority": rows.majority,
        "unseen": rows.unseen,
        "tested": len(rows.test_class),
        "rows": len(rows.train_class) + len(rows.test_class),
    }


def upper_label(lead: Integers, epsilon: float) -> Floats:
    """The chance that the second of two counts is above the first after noise, by what it is above before.

    The noise of each is a Laplace number of scale 1 / epsilon, rounded. With a = exp(-epsilon) that is, as a signed
    mixture, w = cosh(epsilon / 2) times a two-sided geometric number of ratio a and 1 - w times 0; the difference of
    two is then w^2, 2 w (1 - w) and (1 - w)^2 times known distributions. Of equal counts the first wins.

    >>> upper_label(np.array([-2, 0, 1, 5]), 1.0).round(4).tolist()
    [0.0942, 0.3801, 0.6199, 0.9815]
    """
    a, b = math.exp(-epsilon), -math.expm1(-epsilon)
    w = math.cosh(epsilon / 2)

    def tail(k: Floats) -> Floats:
        """The chance that the difference of two noises is k or more, for k from 1 on."""
        two = (b / (1 + a)) ** 2 * (k / b + a / b**2 + (1 + a * a) / ((1 + a) * b**2))
        return np.asarray(a**k * (w * w * two + 2 * w * (1 - w) / (1 + a)))

    ahead = lead > 0
    return np.where(ahead, 1 - tail(np.where(ahead, lead, 1.0)), tail(np.where(ahead, 1.0, 1.0 - lead)))


def _votes(leads: Sequence[Leads], epsilon: float, trees: int) -> Floats:
    """The chance that most trees give a row the second class, of equals the first, for trees that pay epsilon each."""
    chance = sum(upper_label(values, epsilon)[where] for values, where in leads) / len(leads)
    return np.asarray(chance if trees == 1 else binom.sf(trees // 2, trees, np.clip(chance, 0, 1)))


class _Coded:
    """Rows to learn from and to test on as numbers, for two classes."""

    def __init__(self, rows: Split) -> None:
        target = rows.domain.target_column
        columns = [rows.domain[name] for name in rows.domain.attributes]
        self._sizes = [column.size for column in columns]
        self._train = [column.encode(rows.train[column.name]) for column in columns]
        self._test = [column.encode(rows.test[column.name]) for column in columns]
        self.train_class, self.test_class = (target.encode(each[target.name]) for each in (rows.train, rows.test))

    @property
    def attributes(self) -> int:
        return len(self._sizes)

    def sets(self, depth: int) -> Iterator[tuple[int, ...]]:
        return itertools.combinations(range(self.attributes), depth)

    def leads(self, chosen: tuple[int, ...]) -> Leads:
        """By how many rows the second class is ahead in cells of these attributes, and where each row to test is."""
        values, where = np.unique(self._lead(chosen)[self._cells(self._test, chosen)], return_inverse=True)
        return values, where

    def right(self, second: Floats) -> float:
        """Percent right, from the chance that each row is given the second class."""
        return 100 * float(np.mean(np.where(self.test_class == 1, second, 1 - second)))

    def deviation(self, depth: int, epsilon: float, noise: bool = True) -> float:
        """The standard deviation of percent right of a tree, over its coins and its noise, or over its coins alone.

        From the leaves up: of a node whose attribute is drawn, the variance is the mean over attributes of the sum over
        children, which are independent, and the variance over attributes of the sum of their means.
        """
        means: dict[tuple[int, ...], Floats] = {}
        variances: dict[tuple[int, ...], Floats] = {}
        for chosen in self.sets(depth):
            shape = [self._sizes[each] for each in chosen]
            chance = upper_label(self._lead(chosen), epsilon)
            signs = np.where(self.test_class == 1, 1.0, -1.0) / len(self.test_class)
            gain = np.bincount(self._cells(self._test, chosen), signs, minlength=len(chance))  # of the second label
            means[chosen] = (gain * chance).reshape(shape)
            variances[chosen] = (noise * gain**2 * chance * (1 - chance)).reshape(shape)
        for level in reversed(range(depth)):
            for chosen in self.sets(level):
                left = set(range(self.attributes)) - set(chosen)
                below = [(each, tuple(sorted((*chosen, each)))) for each in left]
                sums = [means[more].sum(axis=more.index(each)) for each, more in below]
                within = [variances[more].sum(axis=more.index(each)) for each, more in below]
                means[chosen] = np.mean(sums, axis=0)
                variances[chosen] = np.mean(within, axis=0) + np.var(sums, axis=0)
        return 100 * math.sqrt(float(variances[()]))

    def ceiling(self, chosen: tuple[int, ...]) -> float:
        """Percent right of the majority of every cell, on the rows of both kinds that it was taken from."""
        cells = np.concatenate([self._cells(self._train, chosen), self._cells(self._test, chosen)])
        counts = np.bincount(2 * cells + np.concatenate([self.train_class, self.test_class])).astype(np.int64)
        return 100 * float(np.append(counts, [0] * (len(counts) % 2)).reshape(-1, 2).max(axis=1).sum() / counts.sum())

    @property
    def majority(self) -> float:
        """Percent right of always saying the class that is more frequent in the rows to learn from."""
        return 100 * float(np.mean(self.test_class == np.bincount(self.train_class, minlength=2).argmax()))

    @property
    def unseen(self) -> float:
        """Percent of the rows to test whose values occur together in no row to learn from."""
        everything = tuple(range(self.attributes))
        return 100 * float(np.mean(~np.isin(self._cells(self._test, everything), self._cells(self._train, everything))))

    def _lead(self, chosen: tuple[int, ...]) -> Integers:
        signs = np.where(self.train_class == 1, 1.0, -1.0)
        size = math.prod(self._sizes[each] for each in chosen)
        return np.rint(np.bincount(self._cells(self._train, chosen), signs, minlength=size)).astype(np.int64)

    def _cells(self, codes: list[Integers], chosen: tuple[int, ...]) -> Integers:
        cells = np.zeros(len(codes[0]), dtype=np.int64)
        for each in chosen:
            cells = cells * self._sizes[each] + codes[each]
        return cells

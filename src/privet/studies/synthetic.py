"""Synthetic tables, diverse on purpose: what they are made of decides which private learner suits them.

A policy that chooses between learners is trained on these, never on private rows. Every kind has
another reason why a class is likely, and every table its own sizes, skewness, noise and attributes
that mean nothing. The data set number n of a study is of the kind `KINDS[n % len(KINDS)]`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from privet.datasets import Dataset
from privet.errors import DataError
from privet.kernel import Domain, Nominal

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Rng = np.random.Generator

LEAST_ROWS = 50
LOOSE_BOUND = 1_000_000  # max_rows where rows are not public: information gain needs one, and this says nothing
LEAF = 0.3  # how often a node of a random tree ends before its depth, from the third level on


def draw(kind: str, seed: int, rows: int | None = None) -> Dataset:
    """A table of a kind and its domain; without a number of rows, one from 300 to 60,000 by the seed.

    The seed decides what the class depends on and whether the domain declares rows; more
    rows are more of about the same. The same arguments give the same table.

    >>> table = draw("rules", seed=3, rows=1234)
    >>> table.frame.shape, table.domain.rows, table.domain.max_rows
    ((1234, 13), 1000, 2000)
    """
    if kind not in KINDS:
        raise DataError(f"there is no kind '{kind}' of synthetic tables; known are {', '.join(KINDS)}.")
    if rows is not None and rows < LEAST_ROWS:
        raise DataError(f"a synthetic table of {rows} rows is not possible; ask for {LEAST_ROWS} or more.")
    # two streams: what a table is like does not depend on how many rows it has
    rng, coins = np.random.default_rng([KINDS.index(kind), seed]).spawn(2)
    usual, number = round(_log_uniform(rng, 300, 60_000)), round(_log_uniform(rng, 4, 25))
    rows = usual if rows is None else rows
    declares, useless = rng.random() < 0.5, int(rng.uniform(0, 0.6) * number)
    attributes, codes, label = _GENERATORS[kind](rng, coins, number - useless, rows)
    beside = _Attributes.drawn(rng, useless)
    codes = np.concatenate([codes, beside.codes(coins.random((rows, useless)))], axis=1)
    sizes, ordered = (*attributes.sizes, *beside.sizes), (*attributes.ordered, *beside.ordered)
    found, label = np.unique(label, return_inverse=True)  # every class occurs
    order, about = rng.permutation(number), one_digit(rows)
    columns = [Nominal(f"a{at}", tuple(range(sizes[i])), bool(ordered[i])) for at, i in enumerate(order)]
    declared, bound = (about, 2 * about) if declares else (None, max(LOOSE_BOUND, 2 * rows))
    domain = Domain((*columns, Nominal("y", tuple(range(len(found))))), "y", declared, bound)
    return Dataset(pd.DataFrame({**{f"a{at}": codes[:, i].copy() for at, i in enumerate(order)}, "y": label}), domain)


def one_digit(rows: int) -> int:
    """A number of rows as an owner would declare it: one significant digit."""
    return round(rows, 1 - len(str(rows)))


@dataclass(frozen=True)
class _Attributes:
    """How many values attributes have, which of them in order, and how often each occurs."""

    sizes: tuple[int, ...]
    ordered: NDArray[np.bool_]
    shares: tuple[Floats, ...]

    @classmethod
    def drawn(cls, rng: Rng, number: int, most: int = 20) -> _Attributes:
        """Most sizes are small, and some attributes ordered."""
        sizes = np.minimum(1 + rng.geometric(0.3, number), most)
        return cls.of(rng, sizes, (sizes > 2) & (rng.random(number) < rng.uniform(0, 0.8)))

    @classmethod
    def of(cls, rng: Rng, sizes: Integers, ordered: NDArray[np.bool_]) -> _Attributes:
        return cls(tuple(sizes.tolist()), ordered, tuple(_shares(rng, size, rng.uniform(1, 6)) for size in sizes))

    def codes(self, places: Floats) -> Integers:
        """The values at places [row, attribute] in the unit interval: uniform places give the shares."""
        found = np.empty(places.shape, dtype=np.int64)
        for at, share in enumerate(self.shares):
            found[:, at] = np.searchsorted(np.cumsum(share)[:-1], places[:, at], side="right")
        return found

    def correlated(self, rng: Rng, coins: Rng, rows: int) -> Integers:
        """Values that have one to three hidden causes in common."""
        loadings = rng.uniform(0, 1.5) * rng.normal(size=(rng.integers(1, 4), len(self.sizes)))
        hidden = coins.normal(size=(rows, len(loadings))) @ loadings + coins.normal(size=(rows, len(self.sizes)))
        return self.codes(ndtr(hidden / np.sqrt(1 + (loadings**2).sum(axis=0))))

    def score(self, rng: Rng, codes: Integers, classes: int = 1) -> Floats:
        """A sum of effects [row, class] of deviation 1: smooth along an order, some zero, the first never."""
        total, zero = np.zeros((len(codes), classes)), rng.uniform(0, 0.5)
        for at, (share, ordered, column) in enumerate(zip(self.shares, self.ordered, codes.T, strict=False)):
            wave = np.outer(np.linspace(0, 1, len(share)), rng.uniform(0.5, 4, classes))
            smooth = np.sin(wave + rng.uniform(0, 2 * np.pi, classes))
            effect = smooth if ordered else rng.normal(size=smooth.shape)
            effect = effect - share @ effect
            weight = rng.exponential() * (rng.random() >= zero or at == 0)
            total += (weight / np.sqrt(share @ effect**2) * effect)[column]
        return np.asarray((total - total.mean(axis=0)) / (total.std(axis=0) + 1e-9))


Table = tuple[_Attributes, Integers, Integers]  # attributes, codes [row, attribute], classes


def _trees(rng: Rng, coins: Rng, number: int, rows: int) -> Table:
    """Random trees: a leaf has a class, then values are replaced (Friedman and Schuster 2010, section 5.1)."""
    fine = rng.random(number) < rng.uniform(0, 0.6)  # like numbers: divided at a threshold
    sizes = np.where(fine, rng.integers(8, 17, number), rng.integers(2, 7, number))
    attributes = _Attributes.of(rng, sizes, fine)
    codes = attributes.codes(coins.random((rows, number)))
    node, free, going_on = np.zeros(rows, dtype=np.int64), np.ones((1, number), np.bool_), np.ones(1, np.bool_)
    for level in range(min(number, int(rng.integers(2, 7)))):  # all nodes of a level at once
        by = np.where(free, rng.random(free.shape), -1).argmax(axis=1)
        going_on &= (level < 2) | (rng.random(len(by)) >= LEAF)
        value, threshold = codes[np.arange(rows), by[node]], (rng.random(len(by)) * (sizes[by] - 1))[node]
        child = np.where(fine[by[node]], value > threshold, value) * going_on[node]
        children = np.where(going_on, np.where(fine, 2, sizes)[by], 1)
        node = (np.cumsum(children) - children)[node] + child
        free[np.arange(len(by)), by] = False
        free, going_on = free.repeat(children, axis=0), going_on.repeat(children)
    label, noise = _cut(rng.random(len(free))[node], _shares(rng, rng.choice([2, 2, 3, 4]))), rng.uniform(0, 0.2)
    codes = np.where(coins.random(codes.shape) < noise, coins.integers(0, sizes, codes.shape), codes)
    return attributes, codes, np.where(coins.random(rows) < noise, coins.integers(0, label.max() + 1, rows), label)


def _additive(rng: Rng, coins: Rng, number: int, rows: int) -> Table:
    """Additive logistic: each of the correlated attributes moves the log odds by itself, or not at all."""
    attributes = _Attributes.drawn(rng, number, most=16)
    codes = attributes.correlated(rng, coins, rows)
    return attributes, codes, _logistic(rng, coins, attributes.score(rng, codes)[:, 0], _shares(rng, 2))


def _bayes(rng: Rng, coins: Rng, number: int, rows: int) -> Table:
    """Naive Bayes: classes first, then attributes that are independent in each class and tell much or little of it."""
    attributes, shares = _Attributes.drawn(rng, number), _shares(rng, rng.integers(2, 6))
    label, codes = _cut(coins.random(rows), shares), np.empty((rows, number), dtype=np.int64)
    usual = _log_uniform(rng, 0.2, 1.5)  # how far the classes are from each other
    for at, share in enumerate(attributes.shares):
        far = usual * rng.exponential()
        tilted = share * np.exp(far * np.outer(rng.normal(size=len(shares)), np.linspace(-2, 2, len(share))))
        any_way = rng.dirichlet(share / far**2 + 0.05, len(shares))
        codes[:, at] = _picked(coins, tilted if attributes.ordered[at] else any_way, label)
    return attributes, codes, label


def _imbalanced(rng: Rng, coins: Rng, number: int, rows: int) -> Table:
    """A rare class: a few attributes have values of high risk, the others hardly matter."""
    attributes, rare = _Attributes.drawn(rng, number), _log_uniform(rng, 0.03, 0.25)
    codes = attributes.codes(coins.random((rows, number)))
    few = attributes.score(rng, codes[:, : rng.integers(2, 5)])
    risk = np.exp(few + rng.uniform(0, 0.3) * attributes.score(rng, codes))[:, 0]
    return attributes, codes, _logistic(rng, coins, risk, np.array([1 - rare, rare]))


def _pairs(rng: Rng, coins: Rng, number: int, rows: int) -> Table:
    """Pairs: attributes move the log odds two at a time, and much less by themselves."""
    attributes = _Attributes.drawn(rng, number, most=6)
    codes = attributes.codes(coins.random((rows, number)))
    together = np.zeros(rows)
    for one in range(0, 2 * rng.integers(1, min(6, number // 2) + 1), 2):
        first, second = attributes.shares[one : one + 2]
        table = rng.normal(size=(len(first), len(second)))
        table -= first @ table  # no effect of one alone
        table -= (table @ second)[:, None]
        together += rng.uniform(0.5, 1) * table[codes[:, one], codes[:, one + 1]]
    score = together / (together.std() + 1e-9) + rng.uniform(0, 0.5) * attributes.score(rng, codes)[:, 0]
    return attributes, codes, _logistic(rng, coins, score, _shares(rng, 2, 6), least=2)


def _rules(rng: Rng, coins: Rng, number: int, rows: int) -> Table:
    """Monotone rules: two to four attributes on a grid decide by the better, the worse or both; others break ties."""
    sizes = 2 + np.minimum(rng.geometric(0.4, number), 4)
    attributes = _Attributes.of(rng, sizes, np.ones(number, dtype=np.bool_))
    codes = attributes.codes(coins.random((rows, number)))
    steps = [np.cumsum(rng.exponential(size=size)) for size in sizes]
    ranks = [((step - step[0]) / (step[-1] - step[0]))[codes[:, at]] for at, step in enumerate(steps)]
    score = ranks[0]
    for rank in ranks[1 : rng.integers(2, 5)]:
        both = score + (rank - score) * rng.uniform(0.2, 0.8)
        score = 0.9 * (np.minimum(score, rank), np.maximum(score, rank), both)[rng.integers(3)] + 0.1 * both
    score = score + rng.uniform(0, 0.2) * np.mean(ranks, axis=0)
    label, noise = _cut(score, _shares(rng, rng.integers(2, 6))), rng.choice([0, 0.02, 0.05, 0.1])
    return attributes, codes, np.where(coins.random(rows) < noise, coins.permutation(label), label)


def _prototypes(rng: Rng, coins: Rng, number: int, rows: int) -> Table:
    """Prototypes: a record copies, with errors, one of the few of its class, which have much in common."""
    attributes, shares, each = _Attributes.drawn(rng, number), _shares(rng, rng.integers(2, 5)), rng.integers(1, 6)
    label, sizes = _cut(coins.random(rows), shares), np.array(attributes.sizes)
    prototypes = attributes.codes(rng.random((each * len(shares), number)))
    prototypes = np.where(rng.random(prototypes.shape) < rng.uniform(0, 0.7), prototypes[0], prototypes)
    copied = prototypes[each * label + _picked(coins, rng.dirichlet(np.full(each, 2.0), len(shares)), label)]
    near = np.rint(copied + sizes / 5 * coins.normal(size=copied.shape)).clip(0, sizes - 1).astype(np.int64)
    wrong = np.where(attributes.ordered, near, attributes.codes(coins.random(copied.shape)))
    errors = coins.random(copied.shape) < rng.uniform(0.02, 0.9) * rng.beta(2, 1, number)
    return attributes, np.where(errors, wrong, copied), label


def _classes(rng: Rng, coins: Rng, number: int, rows: int) -> Table:
    """Multi-class softmax: each attribute moves the log odds of three to six classes."""
    attributes, shares = _Attributes.drawn(rng, number), _shares(rng, rng.integers(3, 7))
    codes = attributes.correlated(rng, coins, rows)
    score = _log_uniform(rng, 0.5, 12) * attributes.score(rng, codes, len(shares)) + np.log(shares)
    return attributes, codes, (score + coins.gumbel(size=score.shape)).argmax(axis=1)


def _log_uniform(rng: Rng, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _shares(rng: Rng, number: int | np.int64, evenness: float = 2) -> Floats:
    """Shares that sum to one, none of them tiny."""
    return np.asarray(0.9 * rng.dirichlet(np.full(number, evenness)) + 0.1 / number)


def _logistic(rng: Rng, coins: Rng, score: Floats, shares: Floats, least: float = 1) -> Integers:
    """Two classes by log odds: from hardly told by the score to nearly determined."""
    return _cut(_log_uniform(rng, least, 12) * score + coins.logistic(size=len(score)), shares)


def _cut(score: Floats, shares: Floats) -> Integers:
    """Classes in the order of a score, of about these shares and none empty; equal scores are of one class."""
    values, counts = np.unique(score, return_counts=True)
    below = np.cumsum(counts)[:-1] / len(score)
    cuts = np.unique([np.abs(below - at).argmin() for at in np.cumsum(shares)[:-1]])
    return np.asarray(np.searchsorted(values[cuts], score), dtype=np.int64)


def _picked(coins: Rng, tables: Floats, given: Integers) -> Integers:
    """A value for each row by the weights in its line of a table."""
    below = np.cumsum(tables / tables.sum(axis=1, keepdims=True), axis=1)[:, :-1]
    return np.asarray((coins.random((len(given), 1)) >= below[given]).sum(axis=1), dtype=np.int64)


_ALL = (_trees, _additive, _bayes, _imbalanced, _pairs, _rules, _prototypes, _classes)
_GENERATORS = {each.__name__[1:]: each for each in _ALL}
KINDS: tuple[str, ...] = tuple(_GENERATORS)

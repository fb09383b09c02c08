"""How good a split is: integer scores with their sensitivity.

A criterion scores a table n[cell, class]. Adding one record moves all scores of a
criterion in one direction and each by at most `sensitivity`, in units of 1 / `grid`, so a selection may use
the monotone exponent. Scores that are not whole are put on an integer grid in a way
that keeps both properties exactly; brute force in the tests confirms it.

Both hold for nodes of any size: where 64 bits could overflow, scores are Python's integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from privet.errors import NotPrivate, PrivacyError, QuestionError
from privet.kernel.domain import Domain

Counts = NDArray[np.int64]

GRID = 2**10


def roomy(exact_sums: NDArray[Any], factor: int, axes: tuple[int, ...] = (-1, -2)) -> NDArray[Any]:
    """The same numbers, none negative, as Python's integers where `factor` times a sum over `axes` might need them.

    What decides is the size of a whole node: every one of its cells may be small. The bound leaves half of what
    63 bits hold, so a sum in floats, which may be off in its last digits, is sure enough.
    """
    bound = 2.0**62 / factor
    cells = math.prod(exact_sums.shape[axis] for axis in axes)
    if float(exact_sums.max(initial=0)) * cells < bound:  # nearly always, and quick
        return exact_sums
    largest = exact_sums.sum(axis=axes, dtype=np.float64).max(initial=0)
    return exact_sums if largest < bound else exact_sums.astype(object)


@dataclass(frozen=True)
class Max:
    """The number of rows that the majority class of their cell gets right; one record adds 0 or 1."""

    name: ClassVar[str] = "max"
    grid: ClassVar[int] = 1
    sensitivity: ClassVar[int] = 1

    def exact_scores(self, exact_counts: Counts) -> Counts:
        return np.asarray(roomy(exact_counts, 1).max(axis=-1).sum(axis=-1))


@dataclass(frozen=True)
class LargestCell:
    """The largest single count of a cell and class (MaxTree to the letter); one record adds 0 or 1."""

    name: ClassVar[str] = "largest-cell"
    grid: ClassVar[int] = 1
    sensitivity: ClassVar[int] = 1

    def exact_scores(self, exact_counts: Counts) -> Counts:
        return np.asarray(exact_counts.max(axis=(-1, -2)))


@dataclass(frozen=True)
class WeightedMax:
    """`Max` with a public or released weight for each class; one record adds 0 to the largest weight.

    Weights are multiples of 1 / GRID, at most 1; with weights inverse to the class
    sizes a cell counts for how far it departs from the overall shares.
    """

    weights: tuple[int, ...]
    name: ClassVar[str] = "weighted max"
    grid: ClassVar[int] = GRID

    def __post_init__(self) -> None:
        whole = all(isinstance(weight, int) for weight in self.weights)
        if not self.weights or not whole or min(self.weights) < 0 or not 1 <= max(self.weights) <= GRID:
            raise QuestionError(f"weights are whole numbers from 0 to {GRID}, not all 0; use WeightedMax.of(shares).")

    @classmethod
    def of(cls, weights: Sequence[float]) -> WeightedMax:
        """Weights in any unit; they are scaled so that the largest is 1."""
        values = np.asarray(weights, dtype=np.float64)
        if values.ndim != 1 or not np.isfinite(values).all() or (values < 0).any() or not values.any():
            raise QuestionError("weights must be one number at or above 0 for each class, not all 0.")
        return cls(tuple(int(weight) for weight in np.ceil(values / values.max() * GRID)))

    @property
    def sensitivity(self) -> int:
        return max(self.weights)

    def exact_scores(self, exact_counts: Counts) -> Counts:
        weighted = roomy(exact_counts, GRID) * np.array(self.weights, dtype=np.int64)
        return np.asarray(weighted.max(axis=-1).sum(axis=-1))


@dataclass(frozen=True)
class Gini:
    """Minus the Gini impurity mass, n_j - sum_c n_jc^2 / n_j summed over cells, in units of 1 / GRID.

    A record raises the mass of its cell by 2t / (t + 1) at most, t rows being there:
    less than 2 and never below 0. Rounding each cell's mass down keeps that: what
    grows by at most 2 * GRID, a whole number, still does after rounding.
    """

    name: ClassVar[str] = "gini"
    grid: ClassVar[int] = GRID
    sensitivity: ClassVar[int] = 2 * GRID

    def exact_scores(self, exact_counts: Counts) -> Counts:
        exact_counts = roomy(exact_counts, 2**31)  # of a size below 2^31 the square fits
        size = exact_counts.sum(axis=-1)
        divisor = np.maximum(size, 1)
        mixed = size * size - (exact_counts * exact_counts).sum(axis=-1)  # mass * size, whole
        whole, rest = mixed // divisor, mixed % divisor
        return np.asarray(-(whole * GRID + rest * GRID // divisor).sum(axis=-1))


@dataclass(frozen=True)
class InfoGain:
    """Minus the conditional entropy of the class times the number of rows, in units of 1 / GRID.

    The score is sum f(n_jc) - sum f(n_j) for f(x) = x log2 x. A record adds
    g(n_jc) - g(n_j), g(x) = f(x + 1) - f(x). Here g is a table of whole numbers that
    never falls and is constant from `max_rows` - 1 on, so the change lies in
    [-g(max_rows - 1), 0] exactly, for tables of any size: more than 2^62 rows are the same to it as 2^62.
    """

    max_rows: int
    name: ClassVar[str] = "infogain"
    grid: ClassVar[int] = GRID

    @property
    def sensitivity(self) -> int:
        return max(1, len(_increments(self.max_rows)[0]))

    def exact_scores(self, exact_counts: Counts) -> Counts:
        exact_counts = roomy(exact_counts, self.sensitivity)
        within = self._f(exact_counts).sum(axis=(-1, -2))
        return np.asarray(within - self._f(exact_counts.sum(axis=-1)).sum(axis=-1))

    def _f(self, x: NDArray[Any]) -> NDArray[Any]:
        """The sum of g over 0, ..., x - 1: each unit step of g at b adds x - b."""
        steps, sums, exact_sums = _increments(self.max_rows)
        if x.dtype == object:
            below = np.searchsorted(steps, np.minimum(x, _LARGEST).astype(np.int64), side="left")
            return np.asarray(below.astype(object) * x - exact_sums[below])
        below = np.searchsorted(steps, x, side="left")
        return np.asarray(below * x - sums[below])


@dataclass(frozen=True)
class GainRatio:
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
class Unrounded:
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


# A closed list: a criterion brings its own sensitivity, so an analyst may not bring a criterion.
Criterion = Max | LargestCell | WeightedMax | Gini | InfoGain | GainRatio | Unrounded


_LARGEST = 2**62


@lru_cache(maxsize=16)
def _increments(max_rows: int) -> tuple[Counts, Counts, NDArray[Any]]:
    """Where the rounded g = GRID * (f(x + 1) - f(x)) rises by one, up to max_rows - 1, and running sums of these.

    The sums come twice: cut to 64 bits, for counts so small that none that was cut is looked up, and uncut.
    """
    max_rows = min(max_rows, _LARGEST)
    exact = min(max_rows, 2**16)
    x = np.arange(1, exact, dtype=np.float64)
    g = np.rint(GRID * ((x + 1) * np.log2(x + 1) - x * np.log2(x))).astype(np.int64)
    g = np.maximum.accumulate(g) if len(g) else g
    steps = np.repeat(x.astype(np.int64), np.diff(g, prepend=0))
    if max_rows > exact:
        # g(x) is log2(x + 1/2) + 1/ln 2 up to 1/x^2: its inverse gives the remaining steps.
        top = int(np.rint(GRID * (np.log2(max_rows - 0.5) + 1 / np.log(2))))
        levels = np.arange(len(steps) + 1, top + 1)
        far = np.ceil(2.0 ** ((levels - 0.5) / GRID - 1 / np.log(2)) - 0.5).astype(np.int64)
        steps = np.maximum.accumulate(np.concatenate([steps, np.clip(far, exact, max_rows - 1)]))
    sums = np.concatenate([[0], np.cumsum(steps.astype(object))])
    return steps, np.minimum(sums, _LARGEST).astype(np.int64), sums


def criterion(choice: str | Criterion, domain: Domain) -> Criterion:
    """A criterion by name, or one that is of the list already.

    >>> from privet.kernel.column import Nominal
    >>> criterion("gini", Domain((Nominal("y", ("a", "b")),), target="y")).sensitivity
    2048
    """
    if isinstance(choice, WeightedMax) and len(choice.weights) != len(domain.classes):
        raise QuestionError(f"weighted max needs one weight for each of the {len(domain.classes)} classes.")
    if type(choice) in get_args(Criterion):
        return choice  # type: ignore[return-value]
    if choice == "infogain":
        if domain.max_rows is None:
            raise PrivacyError(
                "information gain has no bounded sensitivity without a public bound on the size; declare max_rows in "
                "the domain file, or choose max or gini."
            )
        return InfoGain(domain.max_rows)
    for simple in (Max(), Gini(), LargestCell(), GainRatio()):
        if choice == simple.name:
            return simple
    raise QuestionError(
        f"there is no criterion '{choice}'; choose max, gini, infogain or largest-cell, or pass a WeightedMax."
    )


def public_scores(rule: Criterion, counts: Counts) -> NDArray[np.number[Any]]:
    """What a criterion says of counts [split, value, class] that the caller has anyway, of public or generated rows.

    >>> public_scores(Max(), np.array([[[3, 1], [0, 2]]])).tolist()
    [5]
    """
    return rule.exact_scores(counts)

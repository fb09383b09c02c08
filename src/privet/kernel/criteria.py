"""How good a split is: integer scores with their sensitivity.

A criterion brings its own sensitivity, so an analyst may not bring one: tables select by the criteria of a
list, and code that is installed beside privet adds to it with `install`, which tries the sensitivity on every
small table. A request can only name what is on the list.

A criterion scores a table n[cell, class]. Adding one record moves all scores of a
criterion in one direction and each by at most `sensitivity`, in units of 1 / `grid`, so a selection may use
the monotone exponent. Scores that are not whole are put on an integer grid in a way
that keeps both properties exactly; brute force in the tests confirms it.

Both hold for nodes of any size: where 64 bits could overflow, scores are Python's integers.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import PrivacyError, QuestionError
from privet.kernel.domain import Domain
from privet.kernel.public_values import Json

Counts = NDArray[np.int64]

GRID = 2**10


def roomy(exact_sums: NDArray[Any], factor: int, axes: tuple[int, ...] = (-1, -2)) -> NDArray[Any]:
    """Return the same numbers, none negative; as Python's integers where `factor` times a sum over `axes` is large.

    What decides is the size of a whole node: every one of its cells may be small. The bound leaves half of what
    63 bits hold, so a sum in floats, which may be off in its last digits, is sure enough.
    """
    bound = 2.0**62 / factor
    cells = math.prod(exact_sums.shape[axis] for axis in axes)
    if float(exact_sums.max(initial=0)) * cells < bound:  # nearly always, and quick
        return exact_sums
    largest = exact_sums.sum(axis=axes, dtype=np.float64).max(initial=0)
    return exact_sums if largest < bound else exact_sums.astype(object)


def _largest(exact_counts: NDArray[Any]) -> NDArray[Any]:
    """Return the largest count of each cell: class by class, as `max` over an axis of a few is much slower."""
    return reduce(np.maximum, np.moveaxis(exact_counts, -1, 0))


class Criterion(ABC):
    """A score of a table n[cell, class], in whole multiples of 1 / `grid`.

    Adding one record moves all scores of a criterion in one direction and each by at most `sensitivity`.
    """

    name: ClassVar[str]
    grid: ClassVar[int] = 1
    version: ClassVar[int] = 1  # of the JSON form

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """By how much one record moves a score at most, in units of 1 / `grid`."""

    @abstractmethod
    def exact_scores(self, exact_counts: Counts) -> NDArray[Any]:
        """Return the scores of tables [..., cell, class]."""

    def to_json(self) -> Json:
        """Return the canonical JSON form."""
        return {"criterion": self.name, "version": self.version}


@dataclass(frozen=True)
class Max(Criterion):
    """The number of rows that the majority class of their cell gets right; one record adds 0 or 1."""

    name: ClassVar[str] = "max"
    sensitivity: ClassVar[int] = 1

    def exact_scores(self, exact_counts: Counts) -> Counts:
        return np.asarray(_largest(roomy(exact_counts, 1)).sum(axis=-1))


@dataclass(frozen=True)
class LargestCell(Criterion):
    """The largest single count of a cell and class (MaxTree to the letter); one record adds 0 or 1."""

    name: ClassVar[str] = "largest-cell"
    sensitivity: ClassVar[int] = 1

    def exact_scores(self, exact_counts: Counts) -> Counts:
        return np.asarray(exact_counts.max(axis=(-1, -2)))


@dataclass(frozen=True)
class WeightedMax(Criterion):
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
        """Return the criterion for weights in any unit; they are scaled so that the largest is 1."""
        values = np.asarray(weights, dtype=np.float64)
        if values.ndim != 1 or not np.isfinite(values).all() or (values < 0).any() or not values.any():
            raise QuestionError("weights must be one number at or above 0 for each class, not all 0.")
        return cls(tuple(int(weight) for weight in np.ceil(values / values.max() * GRID)))

    @property
    def sensitivity(self) -> int:
        return max(self.weights)

    def to_json(self) -> Json:
        return {"criterion": self.name, "version": self.version, "weights": self.weights}

    def exact_scores(self, exact_counts: Counts) -> Counts:
        weighted = roomy(exact_counts, GRID) * np.array(self.weights, dtype=np.int64)
        return np.asarray(_largest(weighted).sum(axis=-1))


@dataclass(frozen=True)
class Gini(Criterion):
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
class InfoGain(Criterion):
    """Minus the conditional entropy of the class times the number of rows, in units of 1 / GRID.

    The score is sum f(n_jc) - sum f(n_j) for f(x) = x log2 x. A record adds
    g(n_jc) - g(n_j), g(x) = f(x + 1) - f(x). Here g is a table of whole numbers that
    never falls and is constant from `max_rows` - 1 on, so the change lies in
    [-g(max_rows - 1), 0] exactly, for tables of any size: more than 2^62 rows are the same to it as 2^62.
    """

    max_rows: int
    name: ClassVar[str] = "infogain"
    grid: ClassVar[int] = GRID
    largest: ClassVar[int] = 2**62  # of `max_rows`

    @property
    def sensitivity(self) -> int:
        return max(1, len(_increments(self.max_rows)[0]))

    def to_json(self) -> Json:
        return {"criterion": self.name, "version": self.version, "max_rows": self.max_rows}

    def exact_scores(self, exact_counts: Counts) -> Counts:
        exact_counts = roomy(exact_counts, self.sensitivity)
        within = self._f(exact_counts).sum(axis=(-1, -2))
        return np.asarray(within - self._f(exact_counts.sum(axis=-1)).sum(axis=-1))

    def _f(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of g over 0, ..., x - 1: each unit step of g at b adds x - b."""
        steps, sums, exact_sums = _increments(self.max_rows)
        if x.dtype == object:
            below = np.searchsorted(steps, np.minimum(x, InfoGain.largest).astype(np.int64), side="left")
            return np.asarray(below.astype(object) * x - exact_sums[below])
        below = np.searchsorted(steps, x, side="left")
        return np.asarray(below * x - sums[below])


@lru_cache(maxsize=16)
def _increments(max_rows: int) -> tuple[Counts, Counts, NDArray[Any]]:
    """Return where the rounded g = GRID * (f(x + 1) - f(x)) rises by one, up to max_rows - 1, and running sums.

    The sums come twice: cut to 64 bits, for counts so small that none that was cut is looked up, and uncut.
    """
    max_rows = min(max_rows, InfoGain.largest)
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
    return steps, np.minimum(sums, InfoGain.largest).astype(np.int64), sums


_SIMPLE: dict[str, Criterion] = {rule.name: rule for rule in (Max(), Gini(), LargestCell())}
_INSTALLED: dict[str, Criterion] = {}


def check_criterion(rule: object, domain: Domain) -> None:
    """Refuse a criterion that is not on the list, or does not fit the domain.

    Raises
    ------
    QuestionError, NotPrivate
    """
    if isinstance(rule, WeightedMax) and len(rule.weights) != len(domain.classes):
        raise QuestionError(f"weighted max needs one weight for each of the {len(domain.classes)} classes.")
    installed = any(rule is mine for mine in _INSTALLED.values())
    if installed or type(rule) in (Max, Gini, LargestCell, WeightedMax, InfoGain):
        return
    # a criterion for public rows alone names no sensitivity: asked for one it raises NotPrivate
    if isinstance(rule, Criterion) and rule.sensitivity is not None:
        raise QuestionError(
            f"nobody has tried the sensitivity of the criterion '{rule.name}'; choose max, gini or infogain, or "
            "install it with privet.kernel.install."
        )
    raise QuestionError(f"there is no criterion '{rule}'; choose {', '.join(_SIMPLE)} or infogain.")


def named_criteria() -> dict[str, Criterion]:
    """Return the criteria on the list that have no fields of their own, by name."""
    return {**_SIMPLE, **_INSTALLED}


def install(rule: Criterion, rows: int = 4, cells: int = 2, classes: int = 3) -> None:
    """Let tables select by a criterion of installed code, after its sensitivity was tried on every small table.

    Adding a record may move no score by more than `sensitivity`, and must move all of them in one direction. This
    is tried for all tables with at most so many rows, cells and classes. It is a trial, not a proof: whoever
    installs a criterion vouches for the proof. Nobody but the process that serves a table can call this; a request
    only names a criterion.

    Parameters
    ----------
    rule : Criterion
        With a name that is not taken.
    rows, cells, classes : int
        How large the tables are that are tried.

    Raises
    ------
    PrivacyError
        A record moves a score further than the criterion says, or in two directions; or scores or the sensitivity are
        no whole numbers.
    QuestionError
        Its name is taken.
    """
    if not isinstance(rule, Criterion):
        raise QuestionError("a criterion is an object of a class that derives from Criterion.")
    if rule.name in (*_SIMPLE, InfoGain.name, WeightedMax.name, "gain-ratio", *_INSTALLED):
        raise QuestionError(f"there is a criterion '{rule.name}' already; give yours another name.")
    if type(rule.sensitivity) is not int or rule.sensitivity < 1:
        raise PrivacyError(f"the sensitivity of the criterion '{rule.name}' must be a whole number above 0.")
    tables = [
        np.array(counts, dtype=np.int64).reshape(1, cells, classes)
        for counts in itertools.product(range(rows + 1), repeat=cells * classes)
        if sum(counts) <= rows
    ]
    moves: set[int] = set()
    for table in tables:
        before = _whole_score(rule, table)
        for cell, label in itertools.product(range(cells), range(classes)):
            more = table.copy()
            more[0, cell, label] += 1
            moves.add(_whole_score(rule, more) - before)
    if max(map(abs, moves)) > rule.sensitivity:
        raise PrivacyError(
            f"one record moves the criterion '{rule.name}' by {max(map(abs, moves))}, and it says {rule.sensitivity}; "
            "correct its sensitivity."
        )
    if min(moves) < 0 < max(moves):
        raise PrivacyError(
            f"one record moves the criterion '{rule.name}' up and another one down; scores must move in one direction."
        )
    _INSTALLED[rule.name] = rule


def _whole_score(rule: Criterion, table: Counts) -> int:
    """Return the score of one table, which rounding must not make smaller than it is."""
    (score,) = rule.exact_scores(table).tolist()
    if type(score) is not int:
        raise PrivacyError(f"the scores of the criterion '{rule.name}' must be whole numbers; put them on a grid.")
    return score


def public_scores(rule: Criterion, counts: Counts) -> NDArray[np.number[Any]]:
    """Return what a criterion says of counts [split, value, class] that are public, of generated rows say.

    >>> public_scores(Max(), np.array([[[3, 1], [0, 2]]])).tolist()
    [5]
    """
    return rule.exact_scores(counts)

"""What may be made of releases for the context or the reward of a choice: functions that read their arguments alone.

What they return is a release still, and clean by its type. For a function of your own write
`Public(value, origin=...)`: you vouch for it, and a reviewer finds the word.

>>> from privet.choice.derive import percent
>>> from privet import Public
>>> import privet
>>> table = privet.open(privet.datasets.census(5000), privet.datasets.census_domain(), budget=1)
>>> women = percent(table.where(sex="Female").count(epsilon=0.5), table.count(epsilon=0.5))
>>> women.clean, 45 < women.value < 55
(True, True)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privet.release import Derived, Histogram, Public, Release, derivation

Number = Release | Public


def ratio(over: Release, under: Number) -> Derived:
    """Return a release over another number, which counts as 1 at least."""
    return over.map(_ratio, under)


def percent(over: Release, under: Number) -> Derived:
    """Return how many percent a release is of another number, from 0 to 100."""
    return over.map(_percent, under)


def product(one: Release, other: Number) -> Derived:
    """Return the product of a release and another number."""
    return one.map(_product, other)


def difference(one: Release, other: Number) -> Derived:
    """Return a release less another number."""
    return one.map(_difference, other)


def log(number: Release) -> Derived:
    """Return the natural logarithm of a release, which counts as 1 at least."""
    return number.map(_log)


def total(counts: Histogram) -> Derived:
    """Return how many rows a histogram counts, 1 at least."""
    return counts.map(_total)


def largest_share(counts: Histogram) -> Derived:
    """Return the share of the largest cell of a histogram."""
    return counts.map(_largest_share)


@derivation
def _ratio(over: float, under: float) -> float:
    return float(over) / max(float(under), 1.0)


@derivation
def _percent(over: float, under: float) -> float:
    return min(max(100 * _ratio(over, under), 0.0), 100.0)


@derivation
def _product(one: float, other: float) -> float:
    return float(one) * float(other)


@derivation
def _difference(one: float, other: float) -> float:
    return float(one) - float(other)


@derivation
def _log(number: float) -> float:
    return math.log(max(float(number), 1.0))


@derivation
def _total(counts: NDArray[np.int64]) -> float:
    return max(float(counts.sum()), 1.0)


@derivation
def _largest_share(counts: NDArray[np.int64]) -> float:
    clipped = np.maximum(counts, 0)
    return float(clipped.max(initial=0)) / max(float(clipped.sum()), 1.0)

"""What a policy knows about a table before it is mined: its domain, epsilon, and noisy class counts.

All of these numbers are public or made of one release, the probe. A policy is trained with the same probe, so
it knows how far such a number may be off: from the noise of the counts, which `log epsilon` tells.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privet.kernel import Domain, Nominal
from privet.release import Derived, Histogram, Public, derivation

PROBE = Fraction(1, 20)  # of epsilon, for the class counts: every arm of the shipped policy uses them

FEATURES = (
    "log rows",
    "log epsilon",
    "log signal",
    "log attributes",
    "mean log arity",
    "log largest arity",
    "classes",
    "majority",
    "ordered",
    "log signal per class",
    "log signal per cell",
    "log signal per pair",
    "log signal per triple",
    "log signal per table",
    "log minority signal",
)


def context(domain: Domain, epsilon: Fraction, counts: Histogram) -> dict[str, Derived]:
    """The features as releases: functions of the probe and of what is public."""
    return {name: counts.map(_feature, Public(domain), Public(epsilon), Public(name)) for name in FEATURES}


@derivation
def _feature(counts: NDArray[np.int64], domain: Domain, epsilon: Fraction, name: str) -> float:
    return measured(domain, epsilon, counts)[name]


def measured(domain: Domain, epsilon: Fraction, counts: NDArray[np.int64]) -> dict[str, float]:
    """The features by name. `epsilon` is that of the whole run, the probe included; logarithms are natural."""
    budget = float(epsilon) / domain.rows_per_person  # of a record, which is what noise depends on
    clipped = np.maximum(counts.astype(np.float64), 0)
    total = float(clipped.sum())
    rows = max(float(domain.rows or total), 1.0)
    arities = [math.log(domain[name].size) for name in domain.attributes] or [0.0]
    arity, attributes, classes = float(np.mean(arities)), max(len(arities), 1), len(counts)
    noise = 1 / (float(PROBE) * budget)
    majority = (float(clipped.max()) + noise / classes) / (total + noise)
    signal = math.log(rows * budget)
    per_class = signal - math.log(classes)
    values = (
        math.log(rows),
        math.log(budget),
        signal,
        math.log(attributes),
        arity,
        max(arities),
        float(classes),
        majority,
        _ordered(domain),
        per_class,
        per_class - arity,
        per_class - 2 * arity,
        per_class - 3 * arity,
        per_class - arity - math.log(attributes),
        signal + math.log(1 - majority),
    )
    return dict(zip(FEATURES, values, strict=True))


def _ordered(domain: Domain) -> float:
    """The share of attributes whose cells have an order."""
    columns = [domain[name] for name in domain.attributes]
    return float(np.mean([not isinstance(column, Nominal) or column.ordered for column in columns] or [False]))

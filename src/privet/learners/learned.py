"""What learners of tables share: class shares from noisy counts, and what a learner hands back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privet.kernel import Histogram, ProtectedTable
from privet.models.model import Floats
from privet.models.tables import Table

Asked = tuple[str, Any, int]  # the question, its release, and the number of the table it was asked for; 0 for none


@dataclass(frozen=True)
class Learned:
    """An intercept, tables of log odds, all that was asked for them in order, and what there is to say about it."""

    intercept: tuple[float, ...]
    tables: tuple[Table, ...]
    asked: tuple[Asked, ...]
    note: str = ""


def class_shares(found: Histogram) -> Floats:
    """Shares of the classes from noisy counts, drawn to even ones as far as noise may have made them."""
    counts = np.maximum(found.values.astype(np.float64), 0)
    noise = 2 * math.sqrt(2) * found.noise.scale
    shares = (counts + noise) / (counts.sum() + len(counts) * noise)
    clipped = np.clip(shares, 0.05 if len(counts) == 2 else 0.001, 0.95)
    return np.asarray(clipped / clipped.sum())


def prior_alone(table: ProtectedTable, epsilon: Fraction, counts: Histogram | None) -> Learned:
    """Class shares for the whole budget: where counts were bought before, the rest buys them again, and both count."""
    bought = [] if counts is None else [counts]
    left = epsilon - sum((each.epsilon for each in bought), Fraction(0))
    bought.append(table.histogram(table.domain.target_column.name, epsilon=left))
    # least squares: noise of rate e has a variance of about 2 / e^2
    weights = np.array([float(each.epsilon) for each in bought]) ** 2
    values = np.average([each.values for each in bought], axis=0, weights=weights)
    shares = np.maximum(values, 0.5)
    asked = tuple(("class counts", each, 0) for each in bought)
    return Learned(centred_log(shares / shares.sum()), (), asked)


def centred_log(shares: Floats) -> tuple[float, ...]:
    """Shares as log odds that add up to 0."""
    logs = np.log(shares)
    return tuple((logs - logs.mean()).tolist())


def table_of(columns: Sequence[str]) -> str:
    return f"table of {' and '.join(columns)}"

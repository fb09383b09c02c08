"""A mean over repeats with its interval, and the test that knows that repeats share rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t


@dataclass(frozen=True)
class Estimate:
    """A mean over repeats. The interval is Student's; splits share rows, so it is a little too narrow."""

    mean: float
    sd: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        return cls(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values))

    @property
    def se(self) -> float:
        return self.sd / math.sqrt(self.n)

    @property
    def half(self) -> float:
        return float(t.ppf(0.975, self.n - 1)) * self.se if self.n > 1 else 0.0

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half

    def to_dict(self) -> dict[str, float]:
        told = {"mean": self.mean, "sd": self.sd, "low": self.low, "high": self.high}
        return {"n": self.n, **{name: float(f"{value:.5g}") for name, value in told.items()}}


def corrected_t_test(differences: Sequence[float], held_out: float) -> float:
    """The p-value that paired differences over resamples of one table are zero on average (Nadeau and Bengio 2003).

    Training sets overlap, so the differences are not independent: their variance is taken 1/n + q/(1-q) times,
    where q is the share of rows held out, and not 1/n times.

    >>> round(corrected_t_test([1.0, 2.0, 1.5, 0.5, 1.0], held_out=0.1), 4)
    0.0195
    """
    n, spread = len(differences), float(np.var(differences, ddof=1)) if len(differences) > 1 else 0.0
    mean = float(np.mean(differences))
    if n < 2 or spread == 0:
        return 1.0 if n < 2 or mean == 0 else 0.0
    statistic = mean / math.sqrt((1 / n + held_out / (1 - held_out)) * spread)
    return float(2 * t.sf(abs(statistic), n - 1))


def reached(rows: Sequence[float], means: Sequence[float], percent: float) -> float:
    """The rows from which on means stay up; between those that were tried by a straight line over the logarithm.

    >>> round(reached([100, 1000, 10_000], [70, 80, 90], percent=75), 1)
    316.2
    """
    below = [i for i, mean in enumerate(means) if mean < percent]
    first = below[-1] + 1 if below else 0
    if first == len(rows):
        return math.inf
    if first == 0:
        return float(rows[0])
    share = (percent - means[first - 1]) / (means[first] - means[first - 1])
    return math.exp(math.log(rows[first - 1]) + share * math.log(rows[first] / rows[first - 1]))

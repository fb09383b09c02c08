"""In how many ways can the people of a leaf have its values, if none is more frequent than its label?"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from privet.risk.tree import Floats, Integers

EXACT_PEOPLE = 300  # of a leaf of which only the label is known; more are counted by drawing
DRAWS = 20_000


def log_factorials(most: int) -> Floats:
    """log 0!, log 1!, …, log most!"""
    return np.asarray(gammaln(np.arange(most + 1) + 1.0))


def capped_powers(people: int, values: int, cap: int) -> tuple[list[Floats], float]:
    """For j = 0 … values, numbers proportional to the ways in which s people can have j values, none more than `cap`.

    The ways divided by s! are the coefficients of (sum over k <= cap of z^k / k!)^j, divided by z^s: any z will do.
    With the one that makes the mean of a step people / values, all that matters is of moderate size. Each power is
    divided by its largest entry; the second result is the log of the ways for everybody and all values.
    """
    factorials = log_factorials(people)
    tilt = _tilt(people / values, factorials[: cap + 1])
    logs = np.arange(min(cap, people) + 1) * tilt - factorials[: cap + 1]
    one = np.exp(logs - logs.max())
    powers, scale = [np.eye(1, people + 1)[0]], values * float(logs.max())
    for _ in range(values):
        power = np.convolve(powers[-1], one)[: people + 1]
        powers.append(power / power.max())
        scale += math.log(power.max())
    with np.errstate(divide="ignore"):
        ways = float(np.log(powers[-1][people])) + scale + float(factorials[people]) - people * tilt
    return powers, ways


def _tilt(mean: float, factorials: Floats) -> float:
    """log z for which a step k with weight z^k / k! has about this mean."""
    steps = np.arange(len(factorials))
    low = math.log(mean)  # of a Poisson distribution that is not cut
    high = low + 40.0
    for _ in range(12):  # to a hundredth
        middle = (low + high) / 2
        logs = steps * middle - factorials
        weights = np.exp(logs - logs.max())
        low, high = (middle, high) if weights @ steps < mean * weights.sum() else (low, middle)
    return low


@lru_cache(maxsize=4096)
def log_ways(people: int, values: int, cap: int) -> float:
    """The log of the number of ways to give each of some people one of some values, none to more than `cap`.

    >>> round(math.exp(log_ways(4, 2, 2))), round(math.exp(log_ways(4, 3, 9))), log_ways(4, 3, 1)
    (6, 81, -inf)
    """
    if people > values * cap:
        return -math.inf
    if people <= cap:
        return people * math.log(values) if people else 0.0
    return capped_powers(people, values, cap)[1]


def least_frequent_maximum(people: int, values: int) -> int:
    """The fewest people who can have the most frequent value."""
    return -(-people // values)


@lru_cache(maxsize=4096)
def label_worlds(people: int, values: int) -> tuple[Integers, Floats]:
    """How many people of a leaf may have its label, and for each the log of the number of assignments: exact.

    >>> labelled, logs = label_worlds(3, 3)
    >>> labelled.tolist(), np.exp(logs).round().tolist()
    ([1, 2, 3], [6.0, 6.0, 1.0])
    """
    labelled = np.arange(least_frequent_maximum(people, values), people + 1)
    factorials = log_factorials(people)
    chosen = factorials[people] - factorials[labelled] - factorials[people - labelled]
    others = [log_ways(people - each, values - 1, each) for each in labelled.tolist()]
    return labelled, np.asarray(chosen + np.array(others))


def is_counted(people: int, values: int) -> bool:
    """Is a leaf of which only the label is known counted exactly? With two values always."""
    return values <= 2 or people <= EXACT_PEOPLE


def label_share(people: int, values: int, seed: int) -> tuple[float, float]:
    """The mean share of a leaf's label where it is only known to be most frequent, and the standard error of it.

    >>> label_share(2, 2, seed=0)
    (0.6666666666666666, 0.0)
    """
    if is_counted(people, values):
        labelled, logs = label_worlds(people, values)
        weights = np.exp(logs - logs.max())
        return float(weights @ labelled / weights.sum() / people), 0.0
    return drawn_label_share(people, values, seed)


@lru_cache(maxsize=4096)
def drawn_label_share(people: int, values: int, seed: int) -> tuple[float, float]:
    """The same by drawing. In an assignment drawn without any condition, each most frequent value is as likely as any
    other to be the label, so the mean is E[largest * tied] / E[tied]: nothing has to be rejected."""
    rng = np.random.default_rng([seed, people, values])
    counts = rng.multinomial(people, np.full(values, 1 / values), size=DRAWS)
    largest = counts.max(axis=1)
    tied = (counts == largest[:, None]).sum(axis=1)
    mean = float((largest * tied).mean() / tied.mean())
    error = float((tied * (largest - mean)).std() / tied.mean() / math.sqrt(DRAWS))  # of a ratio, by its derivative
    return mean / people, error / people

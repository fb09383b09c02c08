"""Lower bounds for a loss from what was seen, each wrong with a stated probability."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, binom

# With this probability a loss that `detectable_...` names would have been found.
CONFIDENCE = 0.99


def loss_at_least(right: ArrayLike, guesses: ArrayLike, alpha: float) -> NDArray[np.float64]:
    """Return a lower bound of the loss from guesses on which of two tables each run was made.

    A fair coin chose the table of each run. Whatever was published, the odds of a coin move by exp(epsilon) at most,
    also when all other coins are known: the right guesses are at most as many as heads of a coin that shows heads with
    probability exp(epsilon) / (1 + exp(epsilon)) (Steinke, Nasr and Jagielski 2023, theorem 5.2 for pure epsilon).
    Nobody has to guess at every run, and where one does may depend on what was published. Runs add up. The same holds
    for guesses which of many people are in a table, each of them there by a coin of its own.

    >>> float(loss_at_least(7_310, 10_000, alpha=1e-8).round(3))
    0.874
    """
    hits, tries = np.asarray(right, dtype=np.float64), np.asarray(guesses, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        lowest = np.where(hits > 0, beta.ppf(alpha, hits, tries - hits + 1), 0.0)
        return np.asarray(np.log(lowest / (1 - lowest)))


def detectable_guesses(guesses: int, claim: float, alpha: float) -> float:
    """The smallest loss that `loss_at_least` would have put above the claim, if guessing shows all of it."""

    def found(loss: float) -> bool:
        right = int(binom.ppf(1 - CONFIDENCE, guesses, 1 / (1 + math.exp(-loss))))
        return bool(loss_at_least(right, guesses, alpha) > claim)

    return _smallest(found, claim)


def detectable_rarity(runs: int, claim: float, alpha: float) -> float:
    """The smallest probability of an event of one table alone that as many runs on each would have put above the claim.

    It takes n right guesses and no wrong one, n being the smallest number with (e^claim / (1 + e^claim))^n < alpha. For
    a claim of 1 and alpha 1e-8 that is 59, so one in a hundred runs is found with 7,900 runs on each table.

    >>> int(1 / detectable_rarity(7_900, 1.0, 1e-8))
    100
    """
    needed = math.floor(math.log(1 / alpha) / math.log1p(math.exp(-claim))) + 1
    # the number of runs on that table is itself a coin's, with as many on average
    rare = float(beta.ppf(CONFIDENCE, needed, max(1e-9, 2 * runs - needed + 1))) * 2
    return rare if needed <= runs and rare <= 1 else math.inf


def _smallest(found: Callable[[float], bool], claim: float) -> float:
    """The smallest loss above the claim that is found, to a thousandth; infinite where none is."""
    low, high = claim, claim + 50.0
    if not found(high):
        return math.inf
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high

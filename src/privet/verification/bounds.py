"""Lower bounds for a loss from what was seen, each wrong with a stated probability."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, binom

# With this probability a loss that `detectable_...` names would have been found.
CONFIDENCE = 0.99


def loss_at_least(likely: ArrayLike, unlikely: ArrayLike, runs: int, alpha: float) -> NDArray[np.float64]:
    """How much more likely an event is on one table than on the other, in logarithms.

    An event that was fixed before was seen `likely` times in `runs` runs on one table and `unlikely`
    times in as many on the other. Clopper and Pearson bound the first probability from below and the
    second from above, each wrong with probability alpha / 2; a pure promise of epsilon bounds the ratio.

    >>> float(loss_at_least(7_310, 2_690, 10_000, alpha=1e-8).round(3))
    0.871
    """
    seen, rare = np.asarray(likely, dtype=np.float64), np.asarray(unlikely, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        lowest = np.where(seen > 0, beta.ppf(alpha / 2, seen, runs - seen + 1), 0.0)
        highest = np.where(rare < runs, beta.ppf(1 - alpha / 2, rare + 1, runs - rare), 1.0)
        return np.asarray(np.log(lowest / highest))


def guesses_at_least(right: int, guesses: int, alpha: float) -> float:
    """A loss from guesses which of many people are in a table, each of them there by a fair coin of its own.

    Whatever was published, the odds of a coin move by exp(epsilon) at most, also when all other coins are known:
    the right guesses are at most as many as heads of a coin that shows heads with probability
    exp(epsilon) / (1 + exp(epsilon)) (Steinke, Nasr and Jagielski 2023, theorem 5.2 for pure epsilon). Nobody has
    to be guessed, and who is may depend on what was published. Runs add up.

    >>> round(guesses_at_least(7_310, 10_000, alpha=1e-8), 3)
    0.874
    """
    if right == 0:
        return -math.inf
    lowest = float(beta.ppf(alpha, right, guesses - right + 1))
    return math.log(lowest / (1 - lowest))


def detectable_loss(share: float, runs: int, claim: float, alpha: float) -> float:
    """The smallest loss of an event this likely that `loss_at_least` would have put above the claim."""
    missed = (1 - CONFIDENCE) / 2
    seen = binom.ppf(missed, runs, share)

    def found(loss: float) -> bool:
        rare = binom.ppf(1 - missed, runs, share * math.exp(-loss))
        return bool(loss_at_least(seen, rare, runs, alpha) > claim)

    return _smallest(found, claim)


def detectable_guesses(guesses: int, claim: float, alpha: float) -> float:
    """The smallest loss that `guesses_at_least` would have put above the claim, if guessing shows all of it."""

    def found(loss: float) -> bool:
        right = int(binom.ppf(1 - CONFIDENCE, guesses, 1 / (1 + math.exp(-loss))))
        return guesses_at_least(right, guesses, alpha) > claim

    return _smallest(found, claim)


def _smallest(found: object, claim: float) -> float:
    """The smallest loss above the claim that is found, to a thousandth; infinite where none is."""
    assert callable(found)
    low, high = claim, claim + 50.0
    if not found(high):
        return math.inf
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high

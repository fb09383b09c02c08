"""The exact distributions of mechanisms: what each outcome's probability is, for exact scores that are at hand.

Nothing is drawn here, and the kernel needs none of it: enumerations, studies and tests compare with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.kernel import (
    AboveThreshold,
    CheapestIntervals,
    Exponential,
    ExponentialOverRanges,
    NoisyMax,
    PermuteAndFlip,
    Refinement,
)

Chances = NDArray[np.float64]


def probabilities(
    mechanism: PermuteAndFlip | Exponential | NoisyMax | ExponentialOverRanges | AboveThreshold | CheapestIntervals,
    scores: Sequence[int],
    sizes: Sequence[int] | NDArray[Any] | None = None,
) -> Chances:
    """Return the probability of each outcome of a selection.

    Parameters
    ----------
    mechanism : selection, AboveThreshold or CheapestIntervals
    scores : sequence of int
        Of the candidates; of `AboveThreshold` in the order in which they are asked; of `CheapestIntervals`, for two
        cells, what their three intervals cost.
    sizes : sequence of int, optional
        Of `ExponentialOverRanges`, how many points have each score.

    Returns
    -------
    array
        A probability for each score; of `AboveThreshold` that it is the first to reach the threshold, and one more,
        that none does.

    >>> from fractions import Fraction
    >>> kinds = PermuteAndFlip, Exponential, NoisyMax
    >>> [probabilities(kind(Fraction(1), 1, True), [10, 9, 0]).round(4).tolist() for kind in kinds]
    [[0.816, 0.1839, 0.0], [0.731, 0.2689, 0.0], [0.8219, 0.1781, 0.0]]
    >>> probabilities(ExponentialOverRanges(Fraction(1), 1, True), [0, 1], sizes=[10, 1]).round(4).tolist()
    [0.7863, 0.2137]
    >>> probabilities(AboveThreshold(Fraction(3), 1), [-2, 0, 9]).round(4).tolist()
    [0.0989, 0.641, 0.26, 0.0]
    >>> probabilities(CheapestIntervals(Fraction(1), 2, cells=2, price=3), [9, 0, 0]).round(4).tolist()
    [0.1917, 0.8083]
    """
    if isinstance(mechanism, CheapestIntervals):
        return _two_cells(mechanism, scores)
    if isinstance(mechanism, AboveThreshold):
        firsts = [answers_log_probability(mechanism, scores[: at + 1], True) for at in range(len(scores))]
        return np.exp([*firsts, answers_log_probability(mechanism, scores, False)])
    if isinstance(mechanism, NoisyMax):
        return _noisy_max(mechanism, scores)
    best = max(scores)
    gaps = np.array([best - score for score in scores], dtype=np.float64)  # scores may have any size
    weights = np.exp(-gaps * float(mechanism.rate))
    if isinstance(mechanism, PermuteAndFlip):
        return _permute_and_flip(weights)
    if sizes is not None:
        weights = np.array(sizes, dtype=np.float64) * weights
    return np.asarray(weights / weights.sum())


def _two_cells(mechanism: CheapestIntervals, costs: Sequence[int]) -> Chances:
    """Return the chances of one interval of two cells and of two intervals, by a sum over the noise of the first.

    Two intervals win if their noise together exceeds that of the one by more than what they cost more.
    """
    if mechanism.cells != 2:
        raise QuestionError("the chances of all divisions are known for two cells; take samples for more.")
    rate = float(mechanism.rate)
    if rate < 1e-6:
        raise QuestionError("too much noise is possible to sum over; take a larger epsilon.")
    both, first, second = costs
    off = np.arange(math.ceil(50 / rate) + 1)
    least = np.maximum(first + second + mechanism.surcharge - both + off + 1, 0)
    # of two geometric numbers: P(g + h >= s) = r^s (1 + s (1 - r))
    above = np.exp(-rate * least) * (1 - np.expm1(-rate) * least)
    apart = float(-np.expm1(-rate) * (np.exp(-rate * off) * above).sum())
    return np.array([1 - apart, apart])


def _permute_and_flip(accept: Chances) -> Chances:
    """Index j wins with p_j times the integral of prod (1 - p_i u) over u in [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(len(accept) // 2 + 1)  # exact for this degree
    points = (nodes + 1) / 2
    rivals = 1 - accept[:, None] * points
    others = [np.prod(np.delete(rivals, j, axis=0), axis=0) for j in range(len(accept))]
    return np.asarray(accept * (np.array(others) @ (weights / 2)))


def _noisy_max(mechanism: NoisyMax, scores: Sequence[int]) -> Chances:
    """A sum over the values of the winner's noisy score, up to 1e-12."""
    noise = mechanism.noise
    reach = noise.error(1 - 1e-12)
    low, high = min(scores) - reach, max(scores) + reach
    values = np.arange(low, high + 1)
    steps = np.abs(values - np.array(scores)[:, None])
    mass = noise.probability(0) * np.exp(-steps / noise.scale)
    upto = np.minimum(np.cumsum(mass, axis=1), 1)
    below = np.concatenate([np.zeros((len(scores), 1)), upto[:, :-1]], axis=1)
    rivals = [np.prod(np.vstack([below[:j], upto[j + 1 :]]), axis=0) for j in range(len(scores))]
    return np.asarray((mass * np.array(rivals)).sum(axis=1))


def answers_log_probability(mechanism: AboveThreshold, scores: Sequence[int], reached: bool) -> float:
    """Return the logarithm of the probability that all scores but the last stay below, and the last is `reached`.

    A sum over the thresholds above all scores that stay below; beyond 50 / rate of them nothing is left.
    """
    if not scores:
        return 0.0
    rate = float(mechanism.rate)
    if rate < 1e-6:
        raise QuestionError("too many thresholds are possible to sum over; take a larger epsilon.")
    below = scores[:-1] if reached else scores
    least = max([0, *(score + 1 for score in below)])
    further = np.arange(math.ceil(50 / rate) + 1)
    logs = -rate * further
    for score in below:
        logs = logs + np.log(-np.expm1(-rate * (least - score + further)))
    if reached:
        logs = logs - rate * np.maximum(least - scores[-1] + further, 0)
    largest = float(logs.max())
    total = math.log(-math.expm1(-rate)) + largest + math.log(float(np.exp(logs - largest).sum()))
    return total - rate * least


def refinement_log_probabilities(step: Refinement, coarse: Any, fine: Any) -> Chances:
    """Return the logarithms of the probabilities of finer noise where the noise before was `coarse`.

    >>> from fractions import Fraction
    >>> step = Refinement(before=Fraction(1, 10), epsilon=Fraction(1, 2))
    >>> np.exp(refinement_log_probabilities(step, 3, [-1, 0, 1, 2, 3, 4])).round(3).tolist()
    [0.129, 0.235, 0.158, 0.106, 0.129, 0.039]
    """
    low, high = float(step.before / step.sensitivity), float(step.epsilon / step.sensitivity)
    gap, both = float(step.loss / step.sensitivity), low + high
    a = np.abs(np.asarray(coarse, dtype=np.float64))
    v = np.where(np.asarray(coarse) < 0, -1.0, 1.0) * np.asarray(fine, dtype=np.float64)
    within = np.clip(v, 0, a)
    rest = math.expm1(-gap) * math.expm1(-both)  # (1 - s) (1 - t)
    stays = rest - math.exp(-gap) * math.expm1(-2 * low)
    shape = np.where(v == a, math.log(stays), math.log(rest)) - math.log(-math.expm1(-2 * high))
    return np.asarray(shape - gap * within - both * np.abs(v - within))


def refinement_probabilities(step: Refinement, coarse: Any, fine: Any) -> Chances:
    """Return the probabilities of finer noise where the noise before was `coarse`."""
    return np.exp(refinement_log_probabilities(step, coarse, fine))

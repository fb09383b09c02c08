"""Probabilities and errors of mechanisms: for intervals of releases, and for checks. Nothing is drawn here.

They are methods of the mechanisms, kept apart so that the lines that draw noise stay few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.kernel.sampling import float_above


class _Laplace(Protocol):
    @property
    def scale(self) -> float: ...
    def error(self, confidence: float) -> int: ...
    def probability(self, noise: int) -> float: ...


class _Step(Protocol):
    @property
    def before(self) -> Fraction: ...
    @property
    def epsilon(self) -> Fraction: ...
    @property
    def sensitivity(self) -> int: ...
    @property
    def loss(self) -> Fraction: ...
    def log_probabilities(self, coarse: Any, fine: Any) -> NDArray[np.float64]: ...


class _Rated(Protocol):
    @property
    def rate(self) -> Fraction: ...


class _Noisy(Protocol):
    @property
    def noise(self) -> _Laplace: ...


class _Watched(_Rated, Protocol):
    def log_probability(self, scores: Sequence[int], reached: bool) -> float: ...


def _float_gaps(scores: Sequence[int]) -> NDArray[np.float64]:
    """The same as floats, of scores of any size."""
    best = max(scores)
    return np.array([best - score for score in scores], dtype=np.float64)


class LaplaceErrors:
    """Of two-sided geometric noise."""

    @property
    def deviation(self: _Laplace) -> float:
        """The standard deviation of the noise."""
        return math.sqrt(2 * math.exp(-1 / self.scale)) / -math.expm1(-1 / self.scale)

    def probability(self: _Laplace, noise: int) -> float:
        """The probability that this noise is added to one number."""
        return math.tanh(1 / (2 * self.scale)) * math.exp(-abs(noise) / self.scale)

    def error(self: _Laplace, confidence: float) -> int:
        """The smallest t with |noise| <= t in at least this share of draws."""
        ratio = math.exp(-1 / self.scale)
        # P(|noise| > t) = 2 ratio^(t+1) / (1 + ratio)
        beyond = -self.scale * math.log((1 - confidence) * (1 + ratio) / 2)
        return max(0, math.ceil(beyond) - 1)


class RefinementProbabilities:
    """Of a step from noisy integers to finer ones."""

    def log_probabilities(self: _Step, coarse: Any, fine: Any) -> NDArray[np.float64]:
        """The logarithms of the probabilities of finer noise where the noise before was `coarse`."""
        low, high = float(self.before / self.sensitivity), float(self.epsilon / self.sensitivity)
        gap, both = float(self.loss / self.sensitivity), low + high
        a = np.abs(np.asarray(coarse, dtype=np.float64))
        v = np.where(np.asarray(coarse) < 0, -1.0, 1.0) * np.asarray(fine, dtype=np.float64)
        within = np.clip(v, 0, a)
        rest = math.expm1(-gap) * math.expm1(-both)  # (1 - s) (1 - t)
        stays = rest - math.exp(-gap) * math.expm1(-2 * low)
        shape = np.where(v == a, math.log(stays), math.log(rest)) - math.log(-math.expm1(-2 * high))
        return np.asarray(shape - gap * within - both * np.abs(v - within))

    def probabilities(self: _Step, coarse: Any, fine: Any) -> NDArray[np.float64]:
        """The probabilities of finer noise where the noise before was `coarse`."""
        return np.exp(self.log_probabilities(coarse, fine))


class SelectionErrors:
    """Of every selection whose weights fall by exp(rate) with a unit of score."""

    def shortfall(self: _Rated, candidates: int, confidence: float) -> float:
        """With this probability the chosen score is at most this far below the best.

        A candidate t below the best is at most exp(-t * rate) times as likely to win as it is.
        """
        return math.log(candidates / (1 - confidence)) / float(self.rate)


class PermuteAndFlipProbabilities:
    """Of permute-and-flip."""

    def probabilities(self: _Rated, scores: Sequence[int]) -> NDArray[np.float64]:
        """The exact distribution: index j wins with p_j times the integral of prod (1 - p_i u) over u in [0, 1]."""
        accept = np.exp(-_float_gaps(scores) * float(self.rate))
        nodes, weights = np.polynomial.legendre.leggauss(len(accept) // 2 + 1)  # exact for this degree
        points = (nodes + 1) / 2
        rivals = 1 - accept[:, None] * points
        others = [np.prod(np.delete(rivals, j, axis=0), axis=0) for j in range(len(accept))]
        return np.asarray(accept * (np.array(others) @ (weights / 2)))


class ExponentialProbabilities:
    """Of the exponential mechanism."""

    def probabilities(self: _Rated, scores: Sequence[int]) -> NDArray[np.float64]:
        """The exact distribution."""
        weights = np.exp(-_float_gaps(scores) * float(self.rate))
        return np.asarray(weights / weights.sum())


class NoisyMaxProbabilities:
    """Of the largest score after noise."""

    def shortfall(self: _Noisy, candidates: int, confidence: float) -> float:
        """Twice the error that all noises together stay within."""
        return 2.0 * self.noise.error(1 - (1 - confidence) / candidates)

    def probabilities(self: _Noisy, scores: Sequence[int]) -> NDArray[np.float64]:
        """The distribution, summed over the values of the winner's noisy score up to 1e-12."""
        noise = self.noise
        reach = noise.error(1 - 1e-12)
        low, high = min(scores) - reach, max(scores) + reach
        values = np.arange(low, high + 1)
        steps = np.abs(values - np.array(scores)[:, None])
        mass = noise.probability(0) * np.exp(-steps / noise.scale)
        upto = np.minimum(np.cumsum(mass, axis=1), 1)
        below = np.concatenate([np.zeros((len(scores), 1)), upto[:, :-1]], axis=1)
        rivals = [np.prod(np.vstack([below[:j], upto[j + 1 :]]), axis=0) for j in range(len(scores))]
        return np.asarray((mass * np.array(rivals)).sum(axis=1))


class RangesProbabilities:
    """Of the exponential mechanism over ranges of a line."""

    def probabilities(self: _Rated, scores: Sequence[int], sizes: Sequence[int]) -> NDArray[np.float64]:
        """The exact probability of each range."""
        weights = np.array(sizes, dtype=np.float64) * np.exp(-_float_gaps(scores) * float(self.rate))
        return np.asarray(weights / weights.sum())


class AboveThresholdProbabilities:
    """Of the first score to reach a hidden threshold."""

    def probabilities(self: _Watched, scores: Sequence[int]) -> NDArray[np.float64]:
        """The probability that each score is the first, and last that none is."""
        firsts = [self.log_probability(scores[: place + 1], True) for place in range(len(scores))]
        return np.exp([*firsts, self.log_probability(scores, False)])

    def log_probability(self: _Watched, scores: Sequence[int], reached: bool) -> float:
        """The logarithm of the probability that all scores but the last stay below and the last does as said.

        A sum over the thresholds above all scores that stay below; beyond 50 / rate of them nothing is left.
        """
        if not scores:
            return 0.0
        rate = float(self.rate)
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

    def shortfall(self: _Watched, check: int, confidence: float) -> int:
        """With this probability no score that reaches 0 is further below it; `check` is its place, from 1.

        nu - rho is two-sided geometric. Of what may go wrong, the check of number k has the share
        1 / (k (k + 1)): they add up to one, however many checks there are.
        """
        scale = float_above(1 / self.rate)
        wrong = (1 - confidence) / (check * (check + 1))
        # P(nu - rho > t) = ratio^(t+1) / (1 + ratio)
        beyond = -scale * math.log(wrong * (1 + math.exp(-1 / scale)))
        return max(0, math.ceil(beyond) - 1)

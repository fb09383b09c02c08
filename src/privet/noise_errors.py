"""How far noise reaches: probabilities, deviations and errors, which intervals of releases are made of.

Mechanisms inherit them. No noise is drawn from these numbers, and no privacy rests on them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Protocol

import numpy as np

_WIDE = 30.0  # a standard deviation from which the error is bounded, below it is summed up


class _Scaled(Protocol):
    @property
    def scale(self) -> float: ...

    def probability(self, noise: int) -> float: ...


class _Rated(Protocol):
    @property
    def rate(self) -> Fraction: ...


class _Bounded(Protocol):
    def error(self, confidence: float) -> int: ...


class _Noisy(Protocol):
    @property
    def noise(self) -> _Bounded: ...


class LaplaceErrors:
    """Of two-sided geometric noise, whose probabilities are proportional to exp(-|noise| / scale)."""

    @property
    def deviation(self: _Scaled) -> float:
        """The standard deviation of the noise."""
        return math.sqrt(2 * math.exp(-1 / self.scale)) / -math.expm1(-1 / self.scale)

    def probability(self: _Scaled, noise: int) -> float:
        """Return the probability that this noise is added to one number."""
        return math.tanh(1 / (2 * self.scale)) * math.exp(-abs(noise) / self.scale)

    def error(self: _Scaled, confidence: float) -> int:
        """Return the smallest t with |noise| <= t in at least this share of draws."""
        ratio = math.exp(-1 / self.scale)
        # P(|noise| > t) = 2 ratio^(t+1) / (1 + ratio)
        beyond = -self.scale * math.log((1 - confidence) * (1 + ratio) / 2)
        return max(0, math.ceil(beyond) - 1)


class GaussianErrors:
    """Of discrete Gaussian noise, whose probabilities are proportional to exp(-(noise / scale)^2 / 2)."""

    @property
    def deviation(self: _Scaled) -> float:
        """The standard deviation of the noise."""
        scale = self.scale
        if scale > _WIDE:
            return scale
        steps = np.arange(1, math.ceil(40 * scale) + 2, dtype=np.float64)
        weights = np.exp(-((steps / scale) ** 2) / 2)
        return math.sqrt(2 * float((steps**2 * weights).sum()) / (1 + 2 * float(weights.sum())))

    def probability(self: _Scaled, noise: int) -> float:
        """Return the probability that this noise is added to one number."""
        scale = self.scale
        if scale > 1:  # Poisson's summation formula: the further terms are below 10^-34
            total = scale * math.sqrt(2 * math.pi) * (1 + 2 * math.exp(-2 * (math.pi * scale) ** 2))
        else:
            total = 1 + 2 * sum(math.exp(-((k / scale) ** 2) / 2) for k in range(1, 40))
        return math.exp(-((noise / scale) ** 2) / 2) / total

    def error(self: _Scaled, confidence: float) -> int:
        """Return a t with |noise| <= t in at least this share of draws; the smallest one where noise is small."""
        scale, wrong = self.scale, 1 - confidence
        # P(noise >= m) <= P(Z >= m - 1) for continuous noise Z of the same variance: Canonne, Kamath and Steinke 2020,
        # proposition 25
        bound = math.ceil(scale * NormalDist().inv_cdf(1 - wrong / 2)) if wrong > 1e-15 else math.ceil(9 * scale)
        if scale > _WIDE or wrong < 1e-12:
            return bound
        steps = np.arange(bound + math.ceil(10 * scale) + 2)
        chances = np.exp(-((steps / scale) ** 2) / 2) * self.probability(0) * np.where(steps > 0, 2, 1)
        beyond = np.cumsum(chances[::-1])[::-1]  # P(|noise| >= step)
        return int(np.argmax(beyond[1:] <= wrong * (1 - 1e-9)))


class MeanErrors(GaussianErrors):
    """Of a whole number next to a weighted mean of discrete Gaussian numbers, which is subgaussian with this scale."""

    def error(self: _Scaled, confidence: float) -> int:
        """Return a t with |noise| <= t in at least this share of draws; rounding is within it."""
        return math.ceil(self.scale * math.sqrt(2 * math.log(2 / (1 - confidence))) - 0.5)


class SelectionErrors:
    """Of a choice, in which a unit of score adds `rate` to the logarithm of a candidate's chance."""

    def shortfall(self: _Rated, candidates: int, confidence: float) -> float:
        """Return how far below the best the chosen score is at most, with this probability.

        A candidate t below the best is at most exp(-t * rate) times as likely to win as it is.
        """
        return math.log(candidates / (1 - confidence)) / float(self.rate)


class NoisyMaxErrors:
    """Of a choice by the largest score after noise of its own for each."""

    def shortfall(self: _Noisy, candidates: int, confidence: float) -> float:
        """Return twice the error that all noises together stay within."""
        return 2.0 * self.noise.error(1 - (1 - confidence) / candidates)


class ThresholdErrors:
    """Of a score that reaches a threshold, where both have geometric noise of the same `rate`."""

    def shortfall(self: _Rated, check: int, confidence: float) -> int:
        """Return how far below 0 a score that reaches it is at most, with this probability; checks count from 1.

        The difference of the two noises is two-sided geometric. Of what may go wrong, the check of number k has the
        share 1 / (k (k + 1)): they add up to one, however many checks there are.
        """
        scale = float(1 / self.rate)
        wrong = (1 - confidence) / (check * (check + 1))
        # P(difference > t) = ratio^(t+1) / (1 + ratio)
        beyond = -scale * math.log(wrong * (1 + math.exp(-1 / scale)))
        return max(0, math.ceil(beyond) - 1)

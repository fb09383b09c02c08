"""Mechanisms of papers that are not private, for tables of public rows alone.

With exact answers, exact choices and noise that has holes, published algorithms and plain trees run
through the same code as private ones, as baselines and as subjects of tests. Only `PublicTable` uses
them, and every release that they make is marked as not private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privet.kernel import SYSTEM, Entropy, Ranges

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ExactValues:
    """Releases values without noise."""

    scale: ClassVar[float] = 0.0
    deviation: ClassVar[float] = 0.0
    loss: ClassVar[Fraction] = Fraction(0)
    rho: ClassVar[Fraction] = Fraction(0)
    together: ClassVar[bool] = True

    def release(self, exact_values: NDArray[Any], entropy: Entropy = SYSTEM) -> Integers:
        """Return the values as they are."""
        return np.asarray(exact_values, dtype=np.int64)

    def error(self, confidence: float) -> int:
        """Return 0: the values are exact."""
        return 0


@dataclass(frozen=True)
class RoundedLaplace:
    """Hanisch's noise: the Laplace quantile of a uniform number with six digits, rounded to whole numbers.

    It is not private. The noise is bounded and has holes, so at every epsilon some outputs are possible for one of
    two neighbours alone (erratum E-8).

    Parameters
    ----------
    epsilon : Fraction
        What the paper claims.
    """

    epsilon: Fraction
    together: ClassVar[bool] = True

    @property
    def loss(self) -> Fraction:
        """What the paper charges. The true loss is not bounded."""
        return self.epsilon

    @property
    def rho(self) -> Fraction:
        """What the paper would charge as rho."""
        return self.epsilon**2 / 2

    @property
    def scale(self) -> float:
        """The scale of the Laplace distribution."""
        return float(1 / self.epsilon)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return math.sqrt(2) * self.scale

    def release(self, exact_values: NDArray[Any], entropy: Entropy = SYSTEM) -> Integers:
        """Return the values with noise.

        Parameters
        ----------
        exact_values : array of int
        entropy : Entropy, optional
            Where the uniform numbers come from.

        Returns
        -------
        array of int
        """
        uniform = np.array([entropy.below(10**6) for _ in range(exact_values.size)]) / 10**6 - 0.5
        noise = -self.scale * np.sign(uniform) * np.log1p(-2 * np.minimum(np.abs(uniform), 0.5 - 1e-6))
        return np.asarray(exact_values + np.rint(noise).reshape(exact_values.shape), dtype=np.int64)

    def error(self, confidence: float) -> int:
        """Return the bound that the noise stays within with this probability.

        Parameters
        ----------
        confidence : float
            Between 0 and 1.

        Returns
        -------
        int
        """
        return math.ceil(-self.scale * math.log(1 - confidence))


@dataclass(frozen=True)
class ExactChoice:
    """Releases the candidate with the largest score, the first of equals."""

    loss: ClassVar[Fraction] = Fraction(0)
    rho: ClassVar[Fraction] = Fraction(0)
    together: ClassVar[bool] = False

    def release(self, exact_scores: NDArray[Any] | Ranges, entropy: Entropy = SYSTEM) -> int:
        """Return the index of the best candidate, or the first point of the best range of a line.

        Parameters
        ----------
        exact_scores : array or Ranges
        entropy : Entropy, optional
            Not used.

        Returns
        -------
        int
        """
        if not isinstance(exact_scores, Ranges):
            return int(np.argmax(exact_scores))
        best = int(np.argmax(exact_scores.exact_scores))
        return int(np.sum(np.asarray(exact_scores.exact_sizes[:best])))

    def shortfall(self, candidates: int, confidence: float) -> float:
        """Return 0: the choice is exact."""
        return 0.0

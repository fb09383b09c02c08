"""What some papers draw and no private table may: for tables of public rows alone.

Exact answers, exact choices and noise with holes let published algorithms and plain
trees run through the same code as private ones, as baselines and as things to test.
`PublicTable` is the only way in; every release made here says that it is not private.
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
    """No noise at all."""

    scale: ClassVar[float] = 0.0
    deviation: ClassVar[float] = 0.0
    loss: ClassVar[Fraction] = Fraction(0)
    together: ClassVar[bool] = True

    def release(self, exact_values: NDArray[Any], entropy: Entropy = SYSTEM) -> Integers:
        return np.asarray(exact_values, dtype=np.int64)

    def error(self, confidence: float) -> int:
        return 0


@dataclass(frozen=True)
class RoundedLaplace:
    """Hanisch's noise: the inverse of the Laplace distribution at a uniform number of six digits, rounded to whole.

    It is bounded and has holes, so that an output reachable from one table alone exists
    at every epsilon (erratum E-8): not private.
    """

    epsilon: Fraction
    together: ClassVar[bool] = True

    @property
    def loss(self) -> Fraction:
        """What the paper charges, not what is lost."""
        return self.epsilon

    @property
    def scale(self) -> float:
        return float(1 / self.epsilon)

    @property
    def deviation(self) -> float:
        return math.sqrt(2) * self.scale

    def release(self, exact_values: NDArray[Any], entropy: Entropy = SYSTEM) -> Integers:
        uniform = np.array([entropy.below(10**6) for _ in range(exact_values.size)]) / 10**6 - 0.5
        noise = -self.scale * np.sign(uniform) * np.log1p(-2 * np.minimum(np.abs(uniform), 0.5 - 1e-6))
        return np.asarray(exact_values + np.rint(noise).reshape(exact_values.shape), dtype=np.int64)

    def error(self, confidence: float) -> int:
        return math.ceil(-self.scale * math.log(1 - confidence))


@dataclass(frozen=True)
class ExactChoice:
    """The candidate of the largest score; the first of equals."""

    loss: ClassVar[Fraction] = Fraction(0)
    together: ClassVar[bool] = False

    def release(self, exact_scores: NDArray[Any] | Ranges, entropy: Entropy = SYSTEM) -> int:
        """Return its index, or the first point of the best range of a line."""
        if not isinstance(exact_scores, Ranges):
            return int(np.argmax(exact_scores))
        best = int(np.argmax(exact_scores.exact_scores))
        return int(np.sum(np.asarray(exact_scores.exact_sizes[:best])))

    def shortfall(self, candidates: int, confidence: float) -> float:
        return 0.0

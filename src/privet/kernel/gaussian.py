"""Discrete Gaussian noise, for data sets that are counted in rho: frozen values with their sensitivity and their loss.

As in `mechanisms`, noise and loss derive from one field, here `rho`: the variance is squared / (2 rho), an exact
fraction, where `squared` is the square of how far one record moves a vector in the L2 norm. Canonne, Kamath and Steinke
(2020, theorem 4): whoever adds independent discrete Gaussian noise of variance v to the integers of a vector is
squared / (2 v)-zCDP: for each entry the Renyi divergence of order alpha between the noise and the noise moved by d is
at most alpha d^2 / (2 v), and of independent entries these add up.

No epsilon bounds what Gaussian noise loses, so `loss` raises: a data set that is counted in epsilon refuses it before
anything is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from privet.errors import PrivacyError
from privet.kernel.mechanisms import LARGEST
from privet.kernel.sampling import SYSTEM, Entropy, Integers, discrete_gaussian, float_above
from privet.noise_errors import GaussianErrors, MeanErrors


def no_pure_loss() -> PrivacyError:
    """Return the error of Gaussian noise in a data set that is counted in epsilon."""
    return PrivacyError(
        "Gaussian noise keeps no promise of a pure epsilon; ask a data set that was opened with a delta, or a question "
        "with Laplace noise."
    )


@dataclass(frozen=True)
class _LosesRho:
    """Base of the mechanisms that lose all of `rho`, the field that their noise is made from."""

    rho: Fraction
    together: ClassVar[bool] = False

    @property
    def loss(self) -> NoReturn:
        raise no_pure_loss()


@dataclass(frozen=True)
class IntegerGaussian(_LosesRho, GaussianErrors):
    """Discrete Gaussian noise for a vector of integers.

    One record moves the vector by at most the square root of `squared` in the L2 norm, and every entry gets noise of
    variance squared / (2 rho): that loses rho (see above).

    >>> noise = IntegerGaussian(rho=Fraction(1, 200))
    >>> noise.variance, round(noise.scale, 6), noise.error(0.95)
    (Fraction(100, 1), 10.0, 20)
    >>> from privet.kernel.sampling import SeededEntropy
    >>> noise.release(np.array([40, 0]), SeededEntropy(7)).tolist()
    [43, -5]
    """

    squared: int | Fraction = 1
    together: ClassVar[bool] = True

    @property
    def variance(self) -> Fraction:
        """The parameter of the noise; its true variance is at most that."""
        return self.squared / (2 * self.rho)

    @property
    def scale(self) -> float:
        """How far noise reaches, rounded up: for people and intervals, no noise is drawn from it."""
        return math.nextafter(math.sqrt(float_above(self.variance)), math.inf) if self.variance else 0.0

    def share(self, vectors: int) -> IntegerGaussian:
        """Return the same noise as that of one of so many vectors, which share its loss."""
        return IntegerGaussian(self.rho / vectors, Fraction(self.squared) / vectors)

    def release(self, exact_values: NDArray[Any], entropy: Entropy = SYSTEM) -> Integers:
        """Return the values, each plus a discrete Gaussian number."""
        which = np.zeros(np.shape(exact_values), dtype=np.intp)
        return _noisy((self,), exact_values, which, entropy)


@dataclass(frozen=True)
class AveragedGaussian(MeanErrors, IntegerGaussian):
    """The noise of a whole number next to the mean of several Gaussian answers, weighted by their rhos.

    `rho` is the sum of theirs. Discrete Gaussian noise of variance v is v-subgaussian, and so the weighted mean is
    subgaussian with squared / (2 rho): P(|mean| >= x) <= 2 exp(-x^2 / (2 variance)).
    """


def _noisy(
    noises: tuple[IntegerGaussian, ...], exact_values: NDArray[Any], which: NDArray[np.intp], entropy: Entropy
) -> Integers:
    """Add to each value noise of its kind."""
    clamped = np.clip(exact_values, -LARGEST, LARGEST).astype(np.int64)
    if (script := entropy.script) is not None:
        return np.asarray(script.gaussian(noises, clamped, which))
    if not clamped.size:
        return np.asarray(clamped)
    drawn = discrete_gaussian([noise.variance for noise in noises], which.ravel(), entropy).reshape(clamped.shape)
    if drawn.dtype != object:  # below 2^47: no sum leaves 64 bits
        return np.asarray(clamped + drawn)
    return np.asarray(np.clip(clamped + drawn, -(2**63), 2**63 - 1), dtype=np.int64)


@dataclass(frozen=True)
class ResidualGaussian(_LosesRho):
    """Noise for sums of clipped residuals, `caps[c]` bounding a record of class c: as `ResidualLaplace`, in rho.

    Two classes: a record adds at most `caps[c]` to one entry of its own class, whose variance is made for that cap.
    More classes: it also adds at most as much in all to the entries of the others, in the L1 norm and so in the L2
    norm; both halves cost rho / 2.
    """

    caps: tuple[int, ...]

    @property
    def own(self) -> tuple[IntegerGaussian, ...]:
        share = self.rho if len(self.caps) == 2 else self.rho / 2
        return tuple(IntegerGaussian(share, cap**2) for cap in self.caps)

    @property
    def others(self) -> IntegerGaussian:
        return IntegerGaussian(self.rho / 2, max(self.caps) ** 2)

    def release(
        self, exact_sums: tuple[Integers, Integers | None], entropy: Entropy = SYSTEM
    ) -> tuple[Integers, Integers | None]:
        """Return noisy sums of own entries and, with more than two classes, of the others; the last axis: class."""
        exact_own, exact_others = exact_sums
        which = np.broadcast_to(np.arange(len(self.caps), dtype=np.intp), exact_own.shape)
        others = None if exact_others is None else self.others.release(exact_others, entropy)
        return _noisy(self.own, exact_own, which, entropy), others


@dataclass(frozen=True)
class GaussianTables:
    """Noise for several vectors one after the other, each with a rho of its own; what a record loses adds up.

    Parameters
    ----------
    rhos : tuple of Fraction
        What a record loses with each vector.
    sizes : tuple of int
        How many numbers each has.
    squared : int
        The square of how far one record moves each of them, in the L2 norm.
    """

    rhos: tuple[Fraction, ...]
    sizes: tuple[int, ...]
    squared: int
    together: ClassVar[bool] = True

    @property
    def rho(self) -> Fraction:
        return sum(self.rhos, Fraction(0))

    @property
    def loss(self) -> NoReturn:
        raise no_pure_loss()

    @property
    def noises(self) -> tuple[IntegerGaussian, ...]:
        return tuple(IntegerGaussian(rho, self.squared) for rho in self.rhos)

    def release(self, exact_values: NDArray[Any], entropy: Entropy = SYSTEM) -> Integers:
        """Return noisy numbers [part, number], those of all vectors after each other."""
        which = np.repeat(np.arange(len(self.sizes), dtype=np.intp), self.sizes)
        return _noisy(self.noises, exact_values, np.broadcast_to(which, np.shape(exact_values)), entropy)

"""What the budget of a data set is counted in: epsilon, or rho with a delta.

A unit says what an amount that somebody writes is worth, what a mechanism loses, what a person with several records
loses, and which mechanisms questions use. All else is the same for both: losses are fractions, those of one scope
add, and disjoint parts share a maximum (`accounting`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from privet.errors import QuestionError
from privet.kernel.accounting import SMALLEST_EPSILON, as_epsilon
from privet.kernel.gaussian import IntegerGaussian, ResidualGaussian
from privet.kernel.mechanisms import (
    AboveThreshold,
    CheapestIntervals,
    Exponential,
    ExponentialOverRanges,
    IndexSelection,
    IntegerLaplace,
    Mechanism,
    PermuteAndFlip,
    ResidualLaplace,
    SumAndCount,
    TopK,
    selection,
)
from privet.kernel.per_part import PerPart
from privet.kernel.zcdp import SMALLEST_RHO, Rho, epsilon_of, rho_of
from privet.text import decimal_text, quoted, short_text

IntegerNoise = IntegerLaplace | IntegerGaussian
ResidualNoise = ResidualLaplace | ResidualGaussian

_DIGITS = 12  # of an epsilon that is a square root


@dataclass(frozen=True)
class Unit(ABC):
    """What a loss is counted in. The methods that make mechanisms take the loss of one record."""

    name: ClassVar[str]
    delta: Fraction | None = None
    selection: ClassVar[str] = "permute-and-flip"  # the one with the least error for what it loses
    smallest: ClassVar[Fraction] = SMALLEST_EPSILON  # that an answer, or a refinement of one, may cost
    power: ClassVar[int] = 1  # a person with k records loses k to this power times what one record loses

    def of_person(self, loss: Fraction, records: int) -> Fraction:
        """Return what a person with so many records loses, where each record loses `loss`."""
        factor: Fraction = Fraction(records) ** self.power
        return loss * factor

    def of_record(self, loss: Fraction, records: int) -> Fraction:
        """Return what each record may lose so that a person with so many loses `loss`."""
        factor: Fraction = Fraction(records) ** self.power
        return loss / factor

    def amounts(self, value: object, parts: int, exchange: Fraction | None = None) -> PerPart[Fraction]:
        """Return the loss of each part from what people write: one amount for all, or one for each.

        Raises
        ------
        QuestionError
            One of them is no amount, or there are not as many as parts.
        """
        if not isinstance(value, list | tuple | np.ndarray | PerPart):
            return PerPart.same(self.amount(value, exchange=exchange), parts)
        if len(value) != parts:
            raise QuestionError(f"{len(value)} epsilons were given for {parts} parts; give one, or one for each.")
        try:
            written = PerPart.of((type(epsilon), epsilon) for epsilon in value)  # by type: True is no 1
        except TypeError:  # what has no hash is no number, and is refused below
            written = PerPart.of((type(epsilon), quoted(epsilon)) for epsilon in value)
        return written.map(lambda typed: self.amount(typed[1], exchange=exchange))

    @abstractmethod
    def amount(self, value: object, name: str = "epsilon", exchange: Fraction | None = None) -> Fraction:
        """Return what asking for an amount charges a person.

        Parameters
        ----------
        value : number, str or Rho
            An epsilon or, where losses are counted in rho, a rho.
        name : str, default "epsilon"
            What the error calls it.
        exchange : Fraction, optional
            What an epsilon of 1 costs within a fit, where losses are counted in rho: see `Session.exchange`.

        Raises
        ------
        QuestionError
            It is no amount of this unit.
        """

    @abstractmethod
    def loss(self, mechanism: Mechanism) -> Fraction:
        """Return what a record loses with a mechanism; a PrivacyError where that has no bound."""

    @abstractmethod
    def epsilon(self, loss: Fraction) -> Fraction:
        """Return what a loss is alone as epsilon, with the delta of the unit; rounded up."""

    @abstractmethod
    def buys(self, loss: Fraction) -> Fraction:
        """Return the largest epsilon that one answer can be asked for where so much is left; rounded down."""

    @abstractmethod
    def text(self, loss: Fraction) -> str:
        """Return a loss in words."""

    # -- mechanisms -------------------------------------------------------------------------

    @abstractmethod
    def noise(self, loss: Fraction, sensitivity: int = 1, squared: int | None = None) -> Any:
        """Return noise for integers that one record moves by `sensitivity`, and by `squared` in the squared L2 norm.

        By default a record moves one of them alone, and `squared` is the square of the sensitivity.
        """

    @abstractmethod
    def residual_noise(self, loss: Fraction, caps: tuple[int, ...]) -> Any:
        """Return noise for sums of clipped residuals."""

    @abstractmethod
    def choice(self, loss: Fraction, sensitivity: int, monotone: bool, name: str | None = None) -> IndexSelection:
        """Return a selection among candidates; the one with the least error unless it is named."""

    @abstractmethod
    def ranges(self, loss: Fraction, sensitivity: int, monotone: bool) -> ExponentialOverRanges:
        """Return a selection among the points of a line."""

    @abstractmethod
    def top(self, loss: Fraction, sensitivity: int, monotone: bool, k: int) -> TopK:
        """Return a selection of the best k candidates."""

    @abstractmethod
    def intervals(self, loss: Fraction, sensitivity: int, cells: int, price: int) -> CheapestIntervals:
        """Return a selection of the cheapest division of a line of cells into intervals."""

    @abstractmethod
    def watch(self, loss: Fraction, sensitivity: int, spread: int) -> AboveThreshold:
        """Return what tells the first score that reaches a threshold."""

    def sum_and_count(self, loss: Fraction, reach: int) -> SumAndCount:
        """Return noise for a sum, which a record moves by `reach`, and a count: half of the loss for each."""
        return SumAndCount(self.noise(loss / 2, reach), self.noise(loss / 2))


@dataclass(frozen=True)
class Epsilon(Unit):
    """Pure differential privacy: losses are epsilons, and add."""

    name = "epsilon"

    def amount(self, value: object, name: str = "epsilon", exchange: Fraction | None = None) -> Fraction:
        if isinstance(value, Rho):
            raise QuestionError(
                "this data set is counted in epsilon, which is asked for as a number such as 0.1; a rho is for data "
                "sets that are opened with a delta."
            )
        return as_epsilon(value, name)

    def loss(self, mechanism: Mechanism) -> Fraction:
        return mechanism.loss

    def epsilon(self, loss: Fraction) -> Fraction:
        return loss

    def buys(self, loss: Fraction) -> Fraction:
        return loss

    def text(self, loss: Fraction) -> str:
        return decimal_text(loss)

    def noise(self, loss: Fraction, sensitivity: int = 1, squared: int | None = None) -> IntegerLaplace:
        return IntegerLaplace(loss, sensitivity)

    def residual_noise(self, loss: Fraction, caps: tuple[int, ...]) -> ResidualLaplace:
        return ResidualLaplace(loss, caps)

    def choice(self, loss: Fraction, sensitivity: int, monotone: bool, name: str | None = None) -> IndexSelection:
        kind = PermuteAndFlip if name is None else selection(name)
        return kind(loss, sensitivity, monotone)

    def ranges(self, loss: Fraction, sensitivity: int, monotone: bool) -> ExponentialOverRanges:
        return ExponentialOverRanges(loss, sensitivity, monotone)

    def top(self, loss: Fraction, sensitivity: int, monotone: bool, k: int) -> TopK:
        return TopK(loss / k, sensitivity, monotone, k)

    def intervals(self, loss: Fraction, sensitivity: int, cells: int, price: int) -> CheapestIntervals:
        return CheapestIntervals(loss, sensitivity, cells, price)

    def watch(self, loss: Fraction, sensitivity: int, spread: int) -> AboveThreshold:
        return AboveThreshold(loss, sensitivity, spread)


@dataclass(frozen=True)
class Zcdp(Unit):
    """Zero-concentrated differential privacy (Bun and Steinke 2016): losses are rhos, and add.

    An epsilon stands for the rho that alone gives (epsilon, delta). A person with k records loses k^2 times what one
    loses (proposition 1.9 there). A mechanism that loses epsilon loses epsilon^2 / 2, the exponential mechanism
    epsilon^2 / 8; their epsilons are square roots, rounded down, so that they lose no more than what was asked for.
    """

    name = "rho"
    selection = "exponential"
    smallest = SMALLEST_RHO
    power = 2

    def amount(self, value: object, name: str = "epsilon", exchange: Fraction | None = None) -> Fraction:
        if isinstance(value, Rho):
            if value.value < SMALLEST_RHO:
                raise QuestionError("rho must be at least 1e-21 in a question; write it as 0.01 or 1/100.")
            return value.value
        epsilon = as_epsilon(value, name)
        assert self.delta is not None
        return rho_of(epsilon, self.delta) if exchange is None else Rho(epsilon * exchange).value

    def loss(self, mechanism: Mechanism) -> Fraction:
        return mechanism.rho

    def epsilon(self, loss: Fraction) -> Fraction:
        assert self.delta is not None
        return epsilon_of(loss, self.delta)

    def buys(self, loss: Fraction) -> Fraction:
        assert self.delta is not None
        if loss < rho_of(Fraction(1, 10**9), self.delta):
            return Fraction(0)
        epsilon = epsilon_of(loss, self.delta)
        while rho_of(epsilon, self.delta) > loss:  # it was rounded up
            epsilon = root_below((epsilon * (1 - Fraction(1, 10**6))) ** 2, digits=6)
        return epsilon

    def text(self, loss: Fraction) -> str:
        return f"rho {short_text(loss)}"

    def noise(self, loss: Fraction, sensitivity: int = 1, squared: int | None = None) -> IntegerGaussian:
        return IntegerGaussian(loss, sensitivity**2 if squared is None else squared)

    def residual_noise(self, loss: Fraction, caps: tuple[int, ...]) -> ResidualGaussian:
        return ResidualGaussian(loss, caps)

    def choice(self, loss: Fraction, sensitivity: int, monotone: bool, name: str | None = None) -> IndexSelection:
        if name is None or selection(name) is Exponential:
            return Exponential(root_below(8 * loss), sensitivity, monotone)
        return selection(name)(root_below(2 * loss), sensitivity, monotone)

    def ranges(self, loss: Fraction, sensitivity: int, monotone: bool) -> ExponentialOverRanges:
        return ExponentialOverRanges(root_below(8 * loss), sensitivity, monotone)

    def top(self, loss: Fraction, sensitivity: int, monotone: bool, k: int) -> TopK:
        return TopK(root_below(8 * loss / k), sensitivity, monotone, k)

    def intervals(self, loss: Fraction, sensitivity: int, cells: int, price: int) -> CheapestIntervals:
        return CheapestIntervals(root_below(2 * loss), sensitivity, cells, price)

    def watch(self, loss: Fraction, sensitivity: int, spread: int) -> AboveThreshold:
        return AboveThreshold(root_below(2 * loss), sensitivity, spread)


PURE = Epsilon()


def unit_with(delta: Fraction | None) -> Unit:
    """Return what a data set with this delta is counted in."""
    return PURE if delta is None else Zcdp(delta)


def root_below(square: Fraction, digits: int = _DIGITS) -> Fraction:
    """Return the square root, rounded down to a decimal of about so many digits.

    >>> root_below(Fraction(2)), root_below(Fraction(1, 100))
    (Fraction(1414213562373, 1000000000000), Fraction(1, 10))
    """
    places = digits - (len(str(square.numerator)) - len(str(square.denominator))) // 2
    scaled = square * Fraction(10) ** (2 * places)
    return math.isqrt(scaled.numerator // scaled.denominator) / Fraction(10) ** places

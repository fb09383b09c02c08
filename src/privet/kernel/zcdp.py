"""What rho is worth as (epsilon, delta), and the other way round: rounded so that no promise is ever too large.

Canonne, Kamath and Steinke (2020), proposition 12: a mechanism that is rho-zCDP is (epsilon, delta)-DP if for *some*
order alpha > 1

    (alpha - 1) (alpha rho - epsilon) + (alpha - 1) ln(alpha - 1) - alpha ln(alpha) <= ln(delta).

For one alpha this is solved for rho, or for epsilon, by arithmetic and logarithms. So whatever alpha is taken, the
result is sound; a good one makes it tight. The left side is convex in alpha, so a golden-section search finds the best
one, in decimals that are the same on every machine. The last step is taken with 60 digits, of which the libraries'
logarithms are correctly rounded; the result is moved by 10^-40 to the safe side, which is far more than their errors,
and then rounded to the safe side: rho down, epsilon up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from privet.errors import QuestionError
from privet.kernel.public_values import GRAIN, fraction_of
from privet.text import decimal_text, quoted

SMALLEST_DELTA, LARGEST_DELTA = Fraction(1, 10**15), Fraction(1, 10)
# The smallest is below what the smallest epsilon and delta are worth: further noise takes a millisecond a number, and
# whoever may ask for it almost free of charge keeps a server busy for an hour with one question.
SMALLEST_RHO, LARGEST_RHO = Fraction(1, 10**21), Fraction(10**12)

_SAFETY = Decimal(10) ** -40  # relative; logarithms of 60 digits are wrong by less than 10^-55
_GOLDEN = Decimal("0.6180339887498949")
_STEPS = 50  # the search ends when alpha is known to 10 digits: there the result is known to 20


def as_delta(value: object) -> Fraction:
    """Return an exact delta from what people write.

    Raises
    ------
    QuestionError
        It is no number between `SMALLEST_DELTA` and `LARGEST_DELTA`.

    >>> as_delta("1e-6")
    Fraction(1, 1000000)
    """
    delta = fraction_of(value)
    if delta is None or not SMALLEST_DELTA <= delta <= LARGEST_DELTA:
        raise QuestionError(
            f"delta must be a number between 1e-15 and 0.1, not {quoted(value)}; write it as 1e-6, far below one over "
            "the number of rows."
        )
    return delta


def is_rho(number: Fraction) -> bool:
    """Return whether a number is a rho as `Rho` rounds it: a multiple of 1 / GRAIN above 0."""
    return GRAIN % number.denominator == 0 and 0 < number.numerator <= LARGEST_RHO.numerator * number.denominator


@dataclass(frozen=True, order=True)
class Rho:
    """An amount of rho: what stands for an epsilon where a data set is counted in rho.

    Parameters
    ----------
    value : number or str
        Rounded down to a multiple of 1 / GRAIN, as every loss is.

    Raises
    ------
    QuestionError
        It is no number above 0.

    >>> Rho("0.01") + Rho(0.02), Rho(1) / 3 < Rho("0.34")
    (Rho(0.03), True)
    """

    value: Fraction

    def __init__(self, value: object) -> None:
        if type(value) is Fraction and is_rho(value):  # whoever divides a budget makes hundreds of them
            object.__setattr__(self, "value", value)
            return
        number = value.value if isinstance(value, Rho) else fraction_of(value)
        number = Fraction(0) if number is None or number > LARGEST_RHO else number
        grains = number.numerator * GRAIN // number.denominator
        if grains <= 0:
            raise QuestionError(f"rho must be a number above 0, not {quoted(value)}; write it as 0.01 or 1/100.")
        object.__setattr__(self, "value", Fraction(grains, GRAIN))

    def __add__(self, other: Rho) -> Rho:
        return Rho(self.value + other.value)

    def __sub__(self, other: Rho) -> Rho:
        return Rho(self.value - other.value)

    def __mul__(self, factor: int | Fraction) -> Rho:
        return Rho(self.value * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: int | Fraction) -> Rho:
        return Rho(self.value / divisor)

    def __repr__(self) -> str:
        return f"Rho({decimal_text(self.value)})"


def rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho that is known to give (epsilon, delta)-DP, rounded down to ten digits.

    >>> [f"{float(rho_of(Fraction(e), Fraction(1, 10**6))):.2e}" for e in ("0.1", "0.5", "1", "2")]
    ['3.21e-04', '6.64e-03', '2.44e-02', '8.82e-02']
    """
    return _converted(epsilon, delta, True)


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """Return the smallest epsilon that rho is known to give with delta, rounded up to six digits; 0 for a rho of 0.

    >>> epsilon_of(rho_of(Fraction(1, 4), Fraction(1, 10**6)), Fraction(1, 10**6))
    Fraction(1, 4)
    """
    return _converted(rho, delta, False) if rho else Fraction(0)


@lru_cache(maxsize=4096)
def _converted(known: Fraction, delta: Fraction, to_rho: bool) -> Fraction:
    """Solve for rho or for epsilon at the best order."""
    with localcontext(Context(prec=28)):
        value, log_delta = _decimal(known), _decimal(delta).ln()

        def worth(log_order: Decimal) -> Decimal:
            solved = _solved(log_order.exp(), value, log_delta, to_rho)
            return -solved if to_rho else solved

        best = _least(worth, Decimal(-25), Decimal(60))
        order = +best.exp()
    with localcontext(Context(prec=60)):
        result = _solved(order, _decimal(known), _decimal(delta).ln(), to_rho)
        if to_rho:
            result -= abs(result) * _SAFETY + _SAFETY
            rounded = Context(prec=10, rounding=ROUND_FLOOR).plus(result)
        else:
            result += abs(result) * _SAFETY + _SAFETY
            rounded = Context(prec=6, rounding=ROUND_CEILING).plus(max(result, Decimal(0)))
    return Fraction(rounded)


def _solved(above_one: Decimal, known: Decimal, log_delta: Decimal, to_rho: bool) -> Decimal:
    """Return rho for epsilon, or epsilon for rho, at the order alpha = 1 + `above_one`."""
    order = 1 + above_one
    room = (log_delta + order * order.ln()) / above_one - above_one.ln()
    return (known + room) / order if to_rho else order * known - room


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _least(function: Callable[[Decimal], Decimal], low: Decimal, high: Decimal) -> Decimal:
    """Return where a function that first falls and then rises is least: golden-section search."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(_STEPS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return (low + high) / 2

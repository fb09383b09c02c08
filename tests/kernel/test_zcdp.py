"""What rho is worth as (epsilon, delta): rounded to the safe side, tight, and the same on every machine."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from privet.errors import QuestionError
from privet.kernel import Rho, as_delta, epsilon_of, rho_of

PROPERTY = settings(derandomize=True, deadline=None, max_examples=40)
EPSILONS = st.fractions(Fraction(1, 10**6), 100, max_denominator=10**9)
DELTAS = st.sampled_from([Fraction(1, 10**power) for power in (2, 3, 6, 9, 15)])
MILLIONTH = Fraction(1, 10**6)


def log_delta(order: Decimal, rho: Fraction, epsilon: Fraction) -> Decimal:
    """The logarithm of the delta that rho gives with epsilon, by proposition 12 of the paper at one order."""
    less = order - 1
    exact_rho, exact_epsilon = (Decimal(n.numerator) / n.denominator for n in (rho, epsilon))
    return less * (order * exact_rho - exact_epsilon) + less * less.ln() - order * order.ln()


def best_order(rho: Fraction, epsilon: Fraction) -> float:
    found = minimize_scalar(
        lambda log: float(log_delta(Decimal(1 + math.exp(log)), rho, epsilon)),
        bounds=(-12, 30),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return 1 + math.exp(found.x)


@given(EPSILONS, DELTAS)
@PROPERTY
def test_rho_gives_the_epsilon_and_delta_that_it_stands_for(epsilon: Fraction, delta: Fraction) -> None:
    """At some order the bound holds, in 80 digits; of a rho that is larger by a billionth it holds at none."""
    rho = rho_of(epsilon, delta)
    with localcontext(prec=80):
        wanted = (Decimal(delta.numerator) / delta.denominator).ln()
        order = Decimal(best_order(rho, epsilon))
        holds = min(log_delta(order * (1 + Decimal(step) / 10**7), rho, epsilon) for step in range(-3, 4))
        assert holds <= wanted + Decimal(10) ** -15
        larger = rho * (1 + Fraction(1, 10**8))
        beyond = min(log_delta(order * (1 + Decimal(step) / 10**5), larger, epsilon) for step in range(-3, 4))
        assert beyond > wanted


@given(EPSILONS, DELTAS)
@PROPERTY
def test_rounding_never_promises_too_much(epsilon: Fraction, delta: Fraction) -> None:
    """Rho is rounded down and epsilon up, so that the way there and back never gains; and it loses little."""
    rho = rho_of(epsilon, delta)
    back = epsilon_of(rho, delta)
    assert rho_of(back, delta) >= rho
    assert abs(float(back / epsilon) - 1) < 1.1e-5 or epsilon < Fraction(1, 1000)
    assert epsilon_of(rho * (1 + Fraction(1, 1000)), delta) >= back


def test_the_numbers_of_the_specification() -> None:
    listed = {"0.05": 8.74e-5, "0.1": 3.21e-4, "0.25": 1.80e-3, "0.5": 6.64e-3, "1": 2.44e-2, "2": 8.82e-2}
    for epsilon, rho in listed.items():
        assert float(rho_of(Fraction(epsilon), MILLIONTH)) == pytest.approx(rho, rel=3e-3)
    assert rho_of(Fraction(1), MILLIONTH) == Fraction("0.02435597035")  # the same digits on every machine


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_gaussian_noise_for_this_rho_keeps_epsilon_and_delta(epsilon: str) -> None:
    """The exact delta of Gaussian noise (Balle and Wang 2018) is below the delta that was promised."""
    shift = math.sqrt(2 * float(rho_of(Fraction(epsilon), MILLIONTH)))
    level = float(epsilon)
    exact = norm.sf(level / shift - shift / 2) - math.exp(level) * norm.sf(level / shift + shift / 2)
    assert 0 < exact < 1e-6


@given(EPSILONS, DELTAS)
@PROPERTY
def test_more_epsilon_is_more_rho(epsilon: Fraction, delta: Fraction) -> None:
    assert rho_of(epsilon, delta) <= rho_of(epsilon * Fraction(1001, 1000), delta) < rho_of(2 * epsilon, 2 * delta)


@pytest.mark.parametrize("wrong", [0, 1, -1, "0.2", "much", None, True, math.nan, 10**-16, [1]], ids=repr)
def test_a_delta_is_a_small_number(wrong: object) -> None:
    with pytest.raises(QuestionError, match="delta must be a number between"):
        as_delta(wrong)


def test_rho_is_an_amount() -> None:
    assert (Rho("1/3") * 3).value <= 1 and Rho(0.5).value == Fraction(1, 2) and Rho(np.float64(0.25)) == Rho("1/4")
    assert Rho(1) - Rho("0.25") == Rho("0.75") and 2 * Rho("0.25") == Rho("0.5") and Rho(1) / 4 > Rho("0.2")
    for wrong in (0, -1, "x", None, True, math.inf, Fraction(1, 10**80)):
        with pytest.raises(QuestionError, match="rho must be a number above 0"):
            Rho(wrong)
    with pytest.raises(QuestionError):
        Rho(1) - Rho(1)

"""Refinements drawn with production noise: levels follow their joint distribution, and a chain loses its last epsilon.

Unless a test says otherwise: hypothesis "the draws follow the exact probabilities", false alarm below 1e-9, no seed.
Mutants are drawn in the same loop and must be rejected; the sample sizes make a miss as improbable as a false alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privet
from privet.kernel import IntegerLaplace, Paired, Refinement, mechanisms
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.lab.distributions import refinement_probabilities

Follows = Callable[..., None]
Private = Callable[..., None]

HALF, ONE = Fraction(1, 2), Fraction(1)
STEP = Refinement(HALF, ONE)
REACH = 4  # of the noises that are told apart
N = 60_000


def joint(before: Fraction, after: Fraction, sensitivity: int = 1) -> dict[tuple[int, int], float]:
    """The probabilities of both noises, by closed forms."""
    first, step = IntegerLaplace(before, sensitivity), Refinement(before, after, sensitivity)
    span = range(-REACH, REACH + 1)
    return {(a, b): first.probability(a) * float(refinement_probabilities(step, a, b)) for a in span for b in span}


def pairs(first: Any, last: Any) -> list[tuple[int, int]]:
    return list(zip(first.tolist(), last.tolist(), strict=True))


def test_both_levels_follow_their_joint_distribution(assert_follows: Follows) -> None:
    """n = 60,000 per rate. Would catch noise of the second level that is 25% off, whatever the first one is, and a
    second level that does not depend on the first as it should.
    """
    exact = np.full(N, 40)

    def sample(factor: Fraction) -> Iterable[tuple[int, int]]:
        first = IntegerLaplace(HALF).release(exact)
        return pairs(first - 40, Refinement(HALF, ONE / factor).release(Paired(exact, first)) - 40)

    assert_follows(sample, joint(HALF, ONE))


@pytest.mark.parametrize("number", [0, 1, 2], ids=["up", "down", "kept"])
def test_every_number_that_a_refinement_draws_has_its_rate(
    number: int, assert_follows: Follows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """n = 200,000 per rate. The mutants draw one of the three geometric numbers at a rate 20% or 25% off; the last one
    decides what is kept. Would catch each of them by itself.
    """
    exact, geometric = np.zeros(200_000, dtype=np.int64), mechanisms.geometric

    def sample(factor: Fraction) -> Iterable[tuple[int, int]]:
        first = IntegerLaplace(HALF).release(exact)
        places = iter(range(3))

        def off(rate: Fraction, count: int, entropy: Any) -> Any:
            return geometric(rate / factor if next(places) == number else rate, count, entropy)

        with monkeypatch.context() as patch:
            patch.setattr(mechanisms, "geometric", off)
            return pairs(first, STEP.release(Paired(exact, first)))

    assert_follows(sample, joint(HALF, ONE))


def test_what_is_kept_is_kept_as_often_as_it_should_be(assert_follows: Follows) -> None:
    """n = 60,000 per mutant, which draws anew in one of five cases of an unchanged value, or leaves one in ten as it
    was. Would catch a keep probability that is 20% too small, and one that is too large by less than that.
    """
    exact = np.zeros(N, dtype=np.int64)
    rng = np.random.default_rng()

    def sample(factor: Fraction) -> Iterable[tuple[int, int]]:
        first = IntegerLaplace(HALF).release(exact)
        last = STEP.release(Paired(exact, first))
        if factor < 1:
            last = np.where((last == first) & (rng.random(N) > factor), STEP.release(Paired(exact, first)), last)
        elif factor > 1:
            last = np.where(rng.random(N) < factor - 1, first, last)
        return pairs(first, last)

    assert_follows(sample, joint(HALF, ONE), detects=(0.8, 1.1))


def test_refining_twice_is_refining_once(assert_follows: Follows) -> None:
    """n = 60,000 per mutant, whose level between is taken for one 20% below or 25% above what it is. The first and
    the last level follow what one step gives; sensitivity 3.
    """
    between, exact = Fraction(3, 2), np.full(N, -7)

    def sample(factor: Fraction) -> Iterable[tuple[int, int]]:
        first = IntegerLaplace(ONE, 3).release(exact)
        middle = Refinement(ONE, between, 3).release(Paired(exact, first))
        last = Refinement(between * factor, Fraction(3), 3).release(Paired(exact, middle))
        return pairs(first + 7, last + 7)

    assert_follows(sample, joint(ONE, Fraction(3), 3))


def copies(n: int) -> privet.ProtectedTable:
    """A table of n times one row on side 0 and two rows on side 1: a person more."""
    domain = Domain((Nominal("copy", tuple(range(n))), Nominal("side", ("0", "1"))))
    frame = pd.DataFrame({"copy": np.repeat(np.arange(n), 3), "side": ["0", "1", "1"] * n})
    return privet.open(frame, domain, budget=10**6)


def test_a_table_releases_levels_of_this_distribution(assert_follows: Follows) -> None:
    """n = 20,000 parts. Would catch an answer that is refined from another value, part or epsilon than its own."""
    parts = copies(20_000).where(side="0").partition("copy")

    def sample(factor: Fraction) -> Iterable[tuple[int, int]]:
        first = parts.count(HALF)
        return pairs(first.array() - 1, first.refine(ONE / factor).array() - 1)

    assert_follows(sample, joint(HALF, ONE))


def test_a_chain_loses_no_more_than_its_last_epsilon(assert_private: Private) -> None:
    """n = 20,000 (50,000 for the last mutant). Hypothesis "the loss is at most 1", false alarm below 1e-6. The mutants:
    refined to 1.25 and sold as 1; and two independent draws from one old copy at 0.5, each refined to 1, which lose
    2.5 together.
    """
    parts = copies(20_000).partition("copy").partition("side")

    def events(epsilon: Fraction) -> tuple[Any, Any]:
        if epsilon == Fraction(5, 2):
            exact = np.repeat([[1, 2]], 50_000, axis=0)
            first = IntegerLaplace(HALF).release(exact)
            one, other = (STEP.release(Paired(exact, first)) for _ in range(2))
            happened = (first >= 2) & (one <= 1) & (other <= 1)
        else:
            first = parts.count(epsilon / 4)
            happened = (first.refine(epsilon).array() <= 1).reshape(-1, 2)
        return happened[:, 0], happened[:, 1]

    assert_private(events, mutants=("1.25", "2.5"))

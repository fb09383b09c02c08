"""Bounds are wrong as seldom as they say: probabilities are summed over all that can be seen, nothing is sampled."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from privet.verification.bounds import (
    CONFIDENCE,
    detectable_guesses,
    detectable_rarity,
    loss_at_least,
)

ALPHAS = st.floats(1e-12, 0.5)


# -- guesses ----------------------------------------------------------------------------------


@given(st.integers(1, 5_000), st.data(), ALPHAS, ALPHAS)
@settings(derandomize=True, deadline=None)
def test_guesses_show_no_more_than_their_share_and_more_with_each_right_one(
    guesses: int, data: st.DataObject, alpha: float, other: float
) -> None:
    right = data.draw(st.integers(0, guesses))
    bound = loss_at_least(right, guesses, alpha)
    assert bound <= (math.log(right / (guesses - right)) if 0 < right < guesses else math.inf if right else -math.inf)
    if right < guesses:
        assert loss_at_least(right + 1, guesses, alpha) >= bound
        assert loss_at_least(right, guesses + 1, alpha) <= bound
    low, high = sorted((alpha, other))
    assert loss_at_least(right, guesses, low) <= loss_at_least(right, guesses, high)


def test_who_guesses_nobody_shows_nothing() -> None:
    assert loss_at_least(0, 0, 1e-8) == -math.inf


def test_bounds_of_many_guesses_are_those_of_each() -> None:
    """Would catch bounds that share a count."""
    right, guesses = np.array([[0, 5], [30, 12]]), np.array([[0, 9], [30, 40]])
    together = loss_at_least(right, guesses, 0.01)
    for place in np.ndindex(2, 2):
        assert together[place] == loss_at_least(right[place], guesses[place], 0.01)


def test_guesses_about_two_tables_are_wrong_as_seldom_as_they_say() -> None:
    """An event of these probabilities, a coin for each of seven runs: the sum over all that can be seen.

    The bound is about the larger of two losses: that of the event, on which the left table is guessed.
    """
    runs, alpha = 7, 0.2
    for here, there in ((0.9, 0.3), (0.5, 0.5), (0.02, 0.001), (1.0, 0.5)):
        hit, miss, none = here / 2, there / 2, 1 - (here + there) / 2
        missed = 0.0
        for right in range(runs + 1):
            for wrong in range(runs + 1 - right):
                ways = math.comb(runs, right) * math.comb(runs - right, wrong)
                chance = ways * hit**right * miss**wrong * none ** (runs - right - wrong)
                missed += chance * (loss_at_least(right, right + wrong, alpha) > math.log(here / there))
        assert missed <= alpha


@pytest.mark.parametrize("alpha", [1e-6, 0.01, 0.2])
@pytest.mark.parametrize("guesses", [1, 2, 7, 40, 300])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_guesses_exceed_the_loss_with_probability_alpha_at_most(epsilon: float, guesses: int, alpha: float) -> None:
    """Right guesses are at most as many as heads of a coin of exp(epsilon) to 1: the sum over all that are too many."""
    count = np.arange(guesses + 1)
    chances = binom.pmf(count, guesses, 1 / (1 + math.exp(-epsilon)))
    bounds = np.array([loss_at_least(int(right), guesses, alpha) for right in count])
    assert float(chances[bounds > epsilon].sum()) <= alpha


def test_who_is_guessed_may_depend_on_what_was_published() -> None:
    """Two people, noise of epsilon 1 each, guessed only where a count is extreme: summed over all outputs.

    Would catch a bound that holds for a fixed number of guesses alone.
    """
    epsilon, alpha, reach = 1.0, 0.2, 40
    noise = {k: math.tanh(epsilon / 2) * math.exp(-epsilon * abs(k)) for k in range(-reach, reach + 1)}
    # of one person: the chance of a right guess, of a wrong one and of none, where "in" is said from 3 on
    right = sum(chance for k, chance in noise.items() if k + 1 >= 3) / 2
    wrong = sum(chance for k, chance in noise.items() if k >= 3) / 2
    chances = {1: right, 0: wrong, None: 1 - right - wrong}
    missed = 0.0
    for one, first in chances.items():
        for two, second in chances.items():
            said = [each for each in (one, two) if each is not None]
            missed += first * second * (loss_at_least(sum(said), len(said), alpha) > epsilon)
    assert missed <= alpha


# -- power ------------------------------------------------------------------------------------

CLAIM, ALPHA = 1.0, 1e-6


def found_by_guesses(loss: float, guesses: int) -> float:
    """The probability that a bound from guesses exceeds the claim, where guessing shows all of the loss."""
    bounds = np.array([loss_at_least(right, guesses, ALPHA) for right in range(guesses + 1)])
    return float(binom.pmf(np.arange(guesses + 1), guesses, 1 / (1 + math.exp(-loss)))[bounds > CLAIM].sum())


@pytest.mark.parametrize("guesses", [60, 500, 5_000])
def test_detectable_guesses_are_found_and_clearly_fewer_are_not(guesses: int) -> None:
    loss = detectable_guesses(guesses, CLAIM, ALPHA)
    assert CLAIM < loss < 6
    assert found_by_guesses(loss, guesses) >= CONFIDENCE
    assert found_by_guesses(CLAIM + 0.4 * (loss - CLAIM), guesses) < 0.5
    assert found_by_guesses(CLAIM, guesses) <= ALPHA


@pytest.mark.parametrize("runs", [500, 5_000])
def test_a_detectable_event_of_one_table_alone_is_found_and_one_half_as_likely_is_not(runs: int) -> None:
    """On one table alone: every guess is right, and as many are needed as leave alpha."""
    rarity = detectable_rarity(runs, CLAIM, ALPHA)
    needed = next(count for count in range(runs) if loss_at_least(count, count, ALPHA) > CLAIM)

    def found(chance: float) -> float:
        return float(binom.sf(needed - 1, 2 * runs, chance / 2))  # a coin says which table it is

    assert found(rarity) >= CONFIDENCE > found(0.95 * rarity)
    assert found(rarity / 2) < 0.5


def test_what_few_runs_cannot_show_has_no_power() -> None:
    """Would catch a stated power where not even a certain event would do."""
    assert detectable_rarity(5, CLAIM, 1e-8) == math.inf
    assert detectable_guesses(5, CLAIM, 1e-8) == math.inf
    assert detectable_guesses(0, CLAIM, 1e-8) == math.inf

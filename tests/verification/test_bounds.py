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
    detectable_loss,
    guesses_at_least,
    loss_at_least,
)

CHANCES = (0.001, 0.02, 0.1, 0.3, 0.5, 0.8, 0.99, 1.0)
ALPHAS = st.floats(1e-12, 0.5)


@st.composite
def seen(draw: st.DrawFn) -> tuple[int, int, int]:
    """Runs, and how often an event was seen on either table."""
    runs = draw(st.integers(1, 5_000))
    return runs, draw(st.integers(0, runs)), draw(st.integers(0, runs))


# -- two tables -------------------------------------------------------------------------------


@given(seen(), ALPHAS, ALPHAS)
@settings(derandomize=True, deadline=None)
def test_a_bound_stays_below_what_was_seen_and_grows_with_the_evidence(
    counts: tuple[int, int, int], alpha: float, other: float
) -> None:
    """Would catch bounds taken from the wrong side: each stays below the ratio seen, and less doubt means less loss."""
    runs, likely, unlikely = counts
    bound = float(loss_at_least(likely, unlikely, runs, alpha))
    if likely:
        assert bound <= (math.log(likely / unlikely) if unlikely else math.inf)
        assert math.isfinite(bound)
    else:
        assert bound == -math.inf
    if likely < runs:
        assert loss_at_least(likely + 1, unlikely, runs, alpha) >= bound
    if unlikely < runs:
        assert loss_at_least(likely, unlikely + 1, runs, alpha) <= bound
    low, high = sorted((alpha, other))
    assert loss_at_least(likely, unlikely, runs, low) <= loss_at_least(likely, unlikely, runs, high)


def test_more_runs_of_the_same_kind_show_more() -> None:
    bounds = [float(loss_at_least(3 * runs // 4, runs // 4, runs, 1e-8)) for runs in (40, 400, 4_000, 40_000)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == pytest.approx(math.log(3), abs=0.1)


def test_bounds_of_many_events_are_those_of_each() -> None:
    """Would catch events that share a bound."""
    likely, unlikely = np.array([[0, 5, 30], [30, 30, 12]]), np.array([[0, 5, 30], [0, 30, 3]])
    together = loss_at_least(likely, unlikely, 30, 0.01)
    for place in np.ndindex(2, 3):
        assert together[place] == loss_at_least(likely[place], unlikely[place], 30, 0.01)


@pytest.mark.parametrize("alpha", [1e-6, 0.01, 0.2])
@pytest.mark.parametrize("runs", [1, 2, 5, 12, 60])
def test_a_bound_exceeds_the_loss_with_probability_alpha_at_most(runs: int, alpha: float) -> None:
    """For every pair of chances: the sum over all counts at which it is wrong. Would catch an alpha spent twice."""
    count = np.arange(runs + 1)
    bounds = loss_at_least(count[:, None], count[None, :], runs, alpha)
    for here in CHANCES:
        for there in CHANCES:
            chances = np.outer(binom.pmf(count, runs, here), binom.pmf(count, runs, there))
            wrong = float(chances[bounds > math.log(here / there)].sum())
            assert wrong <= alpha, f"chances {here} and {there}: {wrong:.3g}"


def test_a_bound_is_no_looser_than_it_has_to_be() -> None:
    """Would catch a bound that is never wrong because it says nothing: at some chances half of alpha is used."""
    runs, alpha, count = 60, 0.2, np.arange(61)
    bounds = loss_at_least(count[:, None], count[None, :], runs, alpha)
    used = []
    for here in np.linspace(0.02, 0.98, 25):
        chances = np.outer(binom.pmf(count, runs, here), binom.pmf(count, runs, here / 20))
        used.append(float(chances[bounds > math.log(20)].sum()))
    assert max(used) > alpha / 10


# -- guesses ----------------------------------------------------------------------------------


@given(st.integers(1, 5_000), st.data(), ALPHAS, ALPHAS)
@settings(derandomize=True, deadline=None)
def test_guesses_show_no_more_than_their_share_and_more_with_each_right_one(
    guesses: int, data: st.DataObject, alpha: float, other: float
) -> None:
    right = data.draw(st.integers(0, guesses))
    bound = guesses_at_least(right, guesses, alpha)
    assert bound <= (math.log(right / (guesses - right)) if 0 < right < guesses else math.inf if right else -math.inf)
    if right < guesses:
        assert guesses_at_least(right + 1, guesses, alpha) >= bound
        assert guesses_at_least(right, guesses + 1, alpha) <= bound
    low, high = sorted((alpha, other))
    assert guesses_at_least(right, guesses, low) <= guesses_at_least(right, guesses, high)


def test_who_guesses_nobody_shows_nothing() -> None:
    assert guesses_at_least(0, 0, 1e-8) == -math.inf


@pytest.mark.parametrize("alpha", [1e-6, 0.01, 0.2])
@pytest.mark.parametrize("guesses", [1, 2, 7, 40, 300])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_guesses_exceed_the_loss_with_probability_alpha_at_most(epsilon: float, guesses: int, alpha: float) -> None:
    """Right guesses are at most as many as heads of a coin of exp(epsilon) to 1: the sum over all that are too many."""
    count = np.arange(guesses + 1)
    chances = binom.pmf(count, guesses, 1 / (1 + math.exp(-epsilon)))
    bounds = np.array([guesses_at_least(int(right), guesses, alpha) for right in count])
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
            missed += first * second * (guesses_at_least(sum(said), len(said), alpha) > epsilon)
    assert missed <= alpha


# -- power ------------------------------------------------------------------------------------

CLAIM, ALPHA = 1.0, 1e-6


def found_by_runs(share: float, loss: float, runs: int) -> float:
    """The probability that a bound exceeds the claim, for an event of this share and loss."""
    count = np.arange(runs + 1)
    bounds = loss_at_least(count[:, None], count[None, :], runs, ALPHA)
    chances = np.outer(binom.pmf(count, runs, share), binom.pmf(count, runs, share * math.exp(-loss)))
    return float(chances[bounds > CLAIM].sum())


@pytest.mark.parametrize(("share", "runs"), [(0.9, 200), (0.5, 400), (0.2, 1_000)])
def test_a_detectable_loss_is_found_and_a_clearly_smaller_one_is_not(share: float, runs: int) -> None:
    """Would catch a stated power that the runs do not have, and one far below what they have."""
    loss = detectable_loss(share, runs, CLAIM, ALPHA)
    assert CLAIM < loss < 4
    assert found_by_runs(share, loss, runs) >= CONFIDENCE
    assert found_by_runs(share, CLAIM + 0.4 * (loss - CLAIM), runs) < 0.5
    assert found_by_runs(share, CLAIM, runs) <= ALPHA


def found_by_guesses(loss: float, guesses: int) -> float:
    """The probability that a bound from guesses exceeds the claim, where guessing shows all of the loss."""
    bounds = np.array([guesses_at_least(right, guesses, ALPHA) for right in range(guesses + 1)])
    return float(binom.pmf(np.arange(guesses + 1), guesses, 1 / (1 + math.exp(-loss)))[bounds > CLAIM].sum())


@pytest.mark.parametrize("guesses", [60, 500, 5_000])
def test_detectable_guesses_are_found_and_clearly_fewer_are_not(guesses: int) -> None:
    loss = detectable_guesses(guesses, CLAIM, ALPHA)
    assert CLAIM < loss < 6
    assert found_by_guesses(loss, guesses) >= CONFIDENCE
    assert found_by_guesses(CLAIM + 0.4 * (loss - CLAIM), guesses) < 0.5
    assert found_by_guesses(CLAIM, guesses) <= ALPHA


def test_what_few_runs_cannot_show_has_no_power() -> None:
    """Would catch a stated power where not even a certain event would do."""
    assert detectable_loss(1.0, 5, CLAIM, 1e-8) == math.inf
    assert detectable_loss(0.001, 100, CLAIM, 1e-8) == math.inf
    assert detectable_loss(0.0, 10_000, CLAIM, 1e-8) == math.inf
    assert detectable_guesses(5, CLAIM, 1e-8) == math.inf
    assert detectable_guesses(0, CLAIM, 1e-8) == math.inf

"""Answers of a monitor follow the probabilities that its proof is about, and what it accepts is as good as it says.

No seed. Noise whose scale is 20% too small or 25% too large is drawn in the same loop and must be rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

import pytest
from scipy.stats import binom

from privet.kernel import AboveThreshold
from privet.lab.distributions import probabilities

Follows = Callable[..., None]


@pytest.mark.parametrize("spread", [None, 3])
def test_the_first_score_to_reach_the_threshold_follows_its_distribution(
    spread: int | None, assert_follows: Follows
) -> None:
    """n = 5,000 per scale. Would catch another rate, two-sided noise, noise of a score that is kept, and an answer that
    takes > for >=.
    """
    scores = [-6, -3, 1, -2, 4]

    def sample(factor: Fraction) -> Iterable[int]:
        mechanism = AboveThreshold(Fraction(2) / factor, 2, spread)
        return [mechanism.release(scores) for _ in range(5_000)]

    chances = probabilities(AboveThreshold(Fraction(2), 2, spread), scores)
    assert_follows(sample, dict(enumerate(chances.tolist())))


def test_all_answers_share_one_threshold_and_no_noise(assert_follows: Follows) -> None:
    """n = 5,000. The mutant draws the threshold anew for every score, of which there are five equal ones."""
    mechanism, scores = AboveThreshold(Fraction(2), 1), [-1] * 5

    def anew() -> int:
        return next((place for place, score in enumerate(scores) if mechanism.release([score]) == 0), len(scores))

    def sample(factor: Fraction) -> Iterable[int]:
        return [mechanism.release(scores) if factor == 1 else anew() for _ in range(5_000)]

    assert_follows(sample, dict(enumerate(probabilities(mechanism, scores).tolist())), detects=[2])


def test_an_accepted_score_is_as_high_as_is_said() -> None:
    """n = 500 runs that try a bad score up to 100 times, at 80%. Hypothesis: at most 20% of them accept a score that is
    further below than is said; rejected by chance with probability 1e-9. A bound that forgets how many were tried, that
    of the first check, fails in more than half of the runs.
    """
    n, confidence, score = 500, 0.8, -6
    mechanism = AboveThreshold(Fraction(2), 1)
    missed = forgetful = 0
    for _ in range(n):
        place = mechanism.release([score] * 100) + 1
        if place <= 100:
            missed += mechanism.shortfall(place, confidence) < -score
            forgetful += mechanism.shortfall(1, confidence) < -score
    assert missed <= binom.isf(1e-9, n, 1 - confidence)
    assert forgetful > n / 2

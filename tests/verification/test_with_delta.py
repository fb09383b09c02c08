"""Claims with a delta: bounds that are right, events that are found, and what is known to break them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import privet
from privet.errors import QuestionError
from privet.kernel import Nominal, Rho, epsilon_of, rho_of
from privet.lab.concentrated import concentrated_loss, lost_rho
from privet.learners.estimators import CLASSIFIERS
from privet.verification import registry
from privet.verification.checks import CanaryCheck
from privet.verification.estimators import _cases_in_rho
from privet.verification.subject import Effort
from privet.verification.tables import known_pairs
from privet.verification.with_delta import DELTA, DeltaCanaryCheck, event_bounds

ONE = Fraction(1)
DOMAIN = privet.Domain((Nominal("a", ("0", "1")), Nominal("y", ("0", "1"))), target="y")
ROWS = pd.DataFrame({"a": ["0", "1", "1"], "y": ["0", "1", "0"]})


def test_a_bound_from_an_event_is_right() -> None:
    """p = e q + delta exactly, in 10,000 runs: the bound stays below 1; far more often it is above."""
    q = 0.1
    p = math.e * q + 0.01
    honest = event_bounds((round(10_000 * p), 10_000), (round(10_000 * q), 10_000), 0.01, 1e-6, False)
    assert 0.6 < honest < 1
    assert event_bounds((5_000, 10_000), (500, 10_000), 0.01, 1e-6, False) > 1.9
    assert event_bounds((5, 10_000), (5, 10_000), 1e-6, 1e-6, True) == 0
    # without its delta the same event would break the claim
    assert event_bounds((round(1e6 * p), 10**6), (round(1e6 * q), 10**6), 0.0, 1e-6, False) > 1


def test_a_shift_of_the_median_shows_most_of_rho() -> None:
    """A Gaussian shift with rho 1/2 shows 0.64 of it by its sign; the bound is that, less what chance takes."""
    p, q, runs = 0.6915, 0.3085, 10**6
    bound = event_bounds((round(p * runs), runs), (round(q * runs), runs), 1e-6, 1e-6, True)
    assert float(epsilon_of(Fraction(1, 4), DELTA)) < bound < float(epsilon_of(Fraction(1, 2), DELTA))


def test_what_a_run_loses_as_rho_is_computed() -> None:
    for asked, expected in ((lambda t: int(t.count(Rho("0.1"))), 0.1), (lambda t: 0, 0.0)):
        assert concentrated_loss(asked, ROWS[:2], ROWS, DOMAIN, DELTA) == pytest.approx(expected)
    parts = concentrated_loss(lambda t: tuple(t.partition("a").count(Rho("0.1"))), ROWS[:2], ROWS, DOMAIN, DELTA)
    assert parts == pytest.approx(0.1)
    two = concentrated_loss(
        lambda t: (int(t.count(Rho("0.1"))), int(t.count(Rho("0.2")))), ROWS[:2], ROWS, DOMAIN, DELTA
    )
    assert two == pytest.approx(0.3)
    assert math.isinf(concentrated_loss(lambda t: len(t._session.engine._codes[0]), ROWS[:2], ROWS, DOMAIN, DELTA))


def test_divergences_of_coins() -> None:
    assert lost_rho(np.array([0.5, 0.5]), np.array([0.5, 0.5])) == pytest.approx(0, abs=1e-9)
    assert lost_rho(np.array([0.9, 0.1]), np.array([0.1, 0.9])) > 0.5


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_every_mechanism_in_rho_holds_its_claim_by_arithmetic(epsilon: str) -> None:
    for subject in registry().values():
        if subject.delta is not None and subject.kind == "mechanism":
            check = subject.checks(Fraction(epsilon), Effort(0.001))[0]
            finding = check.find(float(epsilon), 0.0)
            assert 0.8 * float(epsilon) < finding.bound <= float(epsilon) * (1 + 1e-6), subject.name


def test_noise_for_a_quarter_more_is_caught_by_arithmetic() -> None:
    """Would catch a check that cannot fail: the same code, with noise for 1.25 sold as 1."""
    subject = registry()["integer-gaussian"]
    finding = subject.checks(Fraction(5, 4), Effort(0.001))[0].find(1.0, 0.0)
    assert finding.bound == pytest.approx(1.25, rel=1e-4)


def test_a_delta_makes_gaussian_noise_an_honest_claim() -> None:
    """Whole numbers with Gaussian noise for (1, 1e-6): more than 1 is never shown, and a ninth of it is caught."""

    def noisy(factor: int) -> privet.verification.Verdict:
        scale = factor / math.sqrt(2 * float(rho_of(ONE, DELTA)))
        rng = np.random.default_rng()
        return privet.verify(
            lambda count: round(count + rng.normal(0, scale / 9)), epsilon=1, delta="1e-6", pairs=[(0, 1)]
        )

    assert noisy(9).outcome != "broken" and noisy(9).delta == DELTA
    assert noisy(1).outcome == "broken"


def test_canaries_with_a_delta_need_room_for_it() -> None:
    rng = np.random.default_rng(0)

    def run() -> tuple[np.ndarray, np.ndarray]:
        there = rng.random(100) < 0.5
        return there, there + rng.normal(0, 0.01, 100)

    canaries = CanaryCheck("people", run, 6)
    assert DeltaCanaryCheck(canaries, 1e-12).find(1.0, 1e-6).bound > 2
    assert DeltaCanaryCheck(canaries, 1e-6).find(1.0, 1e-6).bound == 0  # 400 guesses at 2e-6 each: no room is left


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(QuestionError, match="is verified with delta 1e-06"):
        privet.verify("integer-gaussian", 1, delta="1e-5")
    with pytest.raises(QuestionError, match="delta must be a number"):
        privet.verify("integer-laplace", 1, delta=2)


def test_a_verdict_keeps_its_delta() -> None:
    verdict = privet.verify("cheap-flip", 1)
    again = type(verdict).from_dict(verdict.to_dict())
    assert again.delta == DELTA and again.outcome == "broken" and "with delta 1e-06" in str(again)


def test_whole_fits_are_held_to_their_rho() -> None:
    """Every release of boosted tables, added up: all of the claim is found, and nothing above it."""
    classifier = CLASSIFIERS["boosted"](Fraction(1))
    losses = [
        lost()
        for pair in known_pairs()[:1]
        for title, lost in _cases_in_rho(classifier, pair, DELTA)
        if "three classes" not in title or "300" in title
    ]
    rho = float(rho_of(Fraction(1), DELTA))
    assert len(losses) == 10 and max(losses) <= rho * (1 + 1e-9)
    assert max(losses) > 0.99 * rho  # a fit that lost a hundredth more would be found


def test_a_preset_is_fitted_in_rho_where_its_claim_has_a_delta() -> None:
    verdict = privet.verify("diffpid3", 1, delta=DELTA, effort=0.1)
    assert verdict.passed and verdict.delta == DELTA
    assert [finding.method for finding in verdict.findings] == ["every order", "neighbours", "canaries"]
    assert 0.5 < verdict.lower_bound <= 1 + 1e-6
    assert privet.verify(privet.PriorClassifier(), 1, delta=DELTA, effort=0.1).passed

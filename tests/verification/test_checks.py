"""Checks pass what is honest, catch what is not, and say how sure they are.

Noise is real. A check may be wrong with probability 1e-8, so a false alarm of a test is as improbable; the runs make
a miss of a mutant, noise for 1.25 sold as 1, at least as improbable.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sizes import long

from privet.errors import QuestionError
from privet.kernel import Entropy, IntegerLaplace
from privet.lab import worst_loss_of_draws
from privet.verification import observe
from privet.verification.checks import (
    CanaryCheck,
    ExactCheck,
    FiniteCheck,
    NeighbourCheck,
    Neighbours,
    guessed,
    thresholds,
)
from privet.verification.subject import Effort, Subject

ALPHA = 1e-8
ONE = Fraction(1)


def counts(epsilon: Any) -> Callable[[int], Callable[[int], pd.DataFrame]]:
    """A noisy count of `exactly`, as a sampler."""
    noise = IntegerLaplace(Fraction(epsilon))
    return lambda exactly: lambda runs: pd.DataFrame({"count": noise.release(np.full(runs, exactly))})


def neighbours(sampler: Callable[[int], Any], name: str = "0 and 1") -> Neighbours:
    return Neighbours(name, sampler(0), sampler(1))


def repeated(function: Callable[[int], Any]) -> Callable[[int], Callable[[int], pd.DataFrame]]:
    """A function of a table, run again and again."""
    return lambda exactly: lambda runs: observe.runs(lambda: function(exactly), runs)


# -- neighbours -------------------------------------------------------------------------------


def test_an_honest_mechanism_passes_and_the_bound_is_close() -> None:
    found = NeighbourCheck([neighbours(counts(1))], 150_000).find(1.0, ALPHA)
    assert 0.85 < found.bound <= 1
    assert (found.method, found.tables, found.runs, found.alpha) == ("neighbours", "0 and 1", 300_000, ALPHA)
    assert "count is" in found.event
    assert "guesses right" in found.note
    assert found.rarity < 1 / 1000


def test_a_looser_one_is_caught() -> None:
    found = NeighbourCheck([neighbours(counts("1.25"))], 150_000).find(1.0, ALPHA)
    assert 1 < found.bound <= 1.25


def test_what_the_power_names_is_caught_and_less_is_not() -> None:
    """Would catch a power that is stated and not there: noise for a fifth more than it names, sold as 1, is caught."""
    honest = NeighbourCheck([neighbours(counts(1))], 30_000).find(1.0, ALPHA)
    assert 1 < honest.power < 1.5
    looser = counts(Fraction(honest.power * 1.2).limit_denominator(1000))
    assert NeighbourCheck([neighbours(looser)], 30_000).find(1.0, ALPHA).bound > 1
    few = NeighbourCheck([neighbours(counts(1))], 600).find(1.0, ALPHA)
    assert few.power > honest.power


def test_every_run_is_counted_and_none_is_used_twice() -> None:
    """Would catch an event that is tested on the runs it was chosen on, whose bound means nothing."""
    asked: list[int] = []
    noise = IntegerLaplace(ONE)

    def sampler(exactly: int) -> Callable[[int], pd.DataFrame]:
        def sample(runs: int) -> pd.DataFrame:
            asked.append(runs)
            return pd.DataFrame({"count": noise.release(np.full(runs, exactly))})

        return sample

    found = NeighbourCheck([neighbours(sampler), neighbours(sampler)], 900, pilot=50).find(1.0, ALPHA)
    assert sum(asked) == found.runs == 2 * 2 * 50 + 2 * 900
    assert asked[:4] == [50] * 4 and asked[4:6] == [300] * 2
    assert asked[6] + asked[7] == 120 and asked[8] + asked[9] == 1080  # by coins: a first look, and the others


def test_a_first_look_is_enough_where_much_is_lost() -> None:
    """Would catch all runs of a slow mechanism being spent on what a tenth of them shows."""
    found = NeighbourCheck([neighbours(counts(8))], 9_000).find(1.0, ALPHA)
    assert found.bound > 1 and found.runs == 2 * 3_000 + 2 * 600


def test_which_table_a_run_is_on_is_a_fair_coin() -> None:
    """The bound is one of guesses about coins: as many runs on each table would be no coins."""
    seen = []
    for _ in range(20):
        asked: list[int] = []
        sampler = lambda runs, asked=asked: (asked.append(runs), pd.DataFrame({"count": np.zeros(runs)}))[1]  # noqa: E731
        NeighbourCheck([Neighbours("equal", sampler, sampler)], 900).find(1.0, ALPHA)
        seen.append(asked[2])
    assert len(set(seen)) > 1 and 20 * 60 - 160 < sum(seen) < 20 * 60 + 160  # six standard errors


def test_the_worst_pair_is_chosen() -> None:
    """Would catch runs that are spent on the first pair: here it is the third that is told apart."""
    same, far = (lambda runs: pd.DataFrame({"count": np.zeros(runs)})), counts(1)
    pairs = [Neighbours("equal", same, same), neighbours(counts("0.1"), "close"), neighbours(far, "apart")]
    found = NeighbourCheck(pairs, 6_000, pilot=300).find(1.0, ALPHA)
    assert found.tables == "apart" and found.bound > 0.5


@long
def test_equal_tables_are_not_taken_for_the_worst_pair() -> None:
    """Would catch a pilot that extrapolates from a few lucky runs: it took the equal pair 6 times in 100."""
    pairs = [Neighbours("equal", counts(1)(5), counts(1)(5)), neighbours(counts(1), "apart")]
    chosen = [NeighbourCheck(pairs, 600, pilot=500).find(1.0, ALPHA).tables for _ in range(100)]
    assert chosen.count("apart") == 100


def test_nothing_that_tells_the_tables_apart_is_said_so() -> None:
    found = NeighbourCheck([Neighbours("equal", counts(1)(5), counts(1)(5))], 3_000).find(1.0, ALPHA)
    assert found.bound < 0.1
    assert found.event == "nothing that tells the tables apart"


def test_one_that_raises_on_one_table_only_has_no_bound() -> None:
    """Would catch an error that depends on a row, which is an answer that nobody paid for."""

    def fails(exactly: int) -> int:
        if exactly:
            raise OverflowError
        return 3

    for sampler in (repeated(fails), repeated(lambda exactly: fails(1 - exactly))):
        found = NeighbourCheck([neighbours(sampler)], 300).find(1.0, ALPHA)
        assert found.bound == math.inf
        assert "raises OverflowError on one table" in found.event
        assert found.alpha == ALPHA
    pairs = [neighbours(counts(1)), neighbours(repeated(fails), "raises")]
    assert NeighbourCheck(pairs, 300, pilot=20).find(1.0, ALPHA).tables == "raises"


def test_errors_of_a_few_runs_are_no_proof() -> None:
    """Would catch an infinite loss from six runs: a coin that may fall as the claim allows falls like that, too."""

    def fails(exactly: int) -> int:
        if exactly:
            raise OverflowError
        return 3

    found = NeighbourCheck([neighbours(repeated(fails))], 6).find(1.0, ALPHA)
    assert found.bound <= 1
    assert NeighbourCheck([neighbours(repeated(fails))], 300).find(5.0, ALPHA).bound < 5


def test_one_that_always_raises_cannot_be_verified() -> None:
    def fails(exactly: int) -> int:
        raise OverflowError

    with pytest.raises(QuestionError, match=r"every run ended with an error \(OverflowError\)"):
        NeighbourCheck([neighbours(repeated(fails))], 30).find(1.0, ALPHA)
    with pytest.raises(QuestionError, match="nothing to verify"):
        NeighbourCheck([neighbours(repeated(fails))] * 2, 30, pilot=5).find(1.0, ALPHA)


def test_a_pair_on_which_everything_raises_is_passed_over() -> None:
    """Would catch a verification that gives up because one pair of tables does not suit a mechanism."""

    def fails(exactly: int) -> int:
        raise OverflowError

    pairs = [neighbours(repeated(fails), "unsuitable"), neighbours(counts(1), "suitable")]
    for order in (pairs, pairs[::-1]):
        assert NeighbourCheck(order, 300, pilot=20).find(1.0, ALPHA).tables == "suitable"


def test_errors_at_random_are_outputs_like_others() -> None:
    """On both tables alike they show nothing; three times as often on one they show ln 3."""
    rng = np.random.default_rng()

    def sometimes(*chances: float) -> Callable[[int], Callable[[int], pd.DataFrame]]:
        def run(exactly: int) -> int:
            if rng.random() < chances[exactly]:
                raise OverflowError
            return 3

        return repeated(run)

    assert NeighbourCheck([neighbours(sometimes(0.5, 0.5))], 3_000).find(1.0, ALPHA).bound < 0.1
    found = NeighbourCheck([neighbours(sometimes(0.2, 0.6))], 9_000).find(1.0, ALPHA)
    assert 0.7 < found.bound < math.log(3)
    assert "raised is OverflowError" in found.event or "output" in found.event


def test_shapes_that_differ_from_run_to_run_do_not_stop_it() -> None:
    """Lengths at random, the same on both tables; then lengths that tell."""
    rng = np.random.default_rng()
    same = NeighbourCheck([neighbours(repeated(lambda exactly: rng.normal(size=rng.integers(6))))], 900)
    assert same.find(1.0, ALPHA).bound < 0.5
    told = NeighbourCheck([neighbours(repeated(lambda exactly: [0] * int(rng.integers(3) + 5 * exactly)))], 900)
    assert told.find(1.0, ALPHA).bound > 1


@pytest.mark.parametrize("runs", [1, 2, 3, 6])
def test_a_handful_of_runs_shows_nothing_and_does_not_crash(runs: int) -> None:
    found = NeighbourCheck([neighbours(counts(1)), neighbours(counts(4))], runs, pilot=1).find(1.0, ALPHA)
    assert found.bound < 1 and found.power == math.inf


# -- canaries ---------------------------------------------------------------------------------


def canaries(epsilon: Any, runs: int, people: int = 1_000) -> CanaryCheck:
    rng, noise = np.random.default_rng(), IntegerLaplace(Fraction(epsilon))

    def run() -> tuple[np.ndarray, np.ndarray]:
        there = rng.random(people) < 0.5
        return there, noise.release(there.astype(np.int64)).astype(np.float64)

    return CanaryCheck("people", run, runs)


def test_canaries_pass_an_honest_mechanism_and_catch_a_looser_one() -> None:
    honest = canaries(1, 60).find(1.0, ALPHA)
    assert 0.8 < honest.bound <= 1
    assert (honest.method, honest.tables, honest.runs, honest.alpha) == ("canaries", "people", 60, ALPHA)
    assert "guess in where the count of their cell is at least" in honest.event
    assert "guesses right" in honest.note
    assert 1 < honest.power < 1.25
    assert 1 < canaries("1.25", 60).find(1.0, ALPHA).bound <= 1.25


def test_canaries_that_leave_no_trace_show_nothing() -> None:
    """Would catch guesses that use who was there: nothing was published."""
    rng = np.random.default_rng()
    for published in (lambda n: rng.normal(size=n), np.zeros):
        check = CanaryCheck("people", lambda published=published: (rng.random(500) < 0.5, published(500)), 30)
        found = check.find(1.0, ALPHA)
        assert found.bound < 0.2


def test_canaries_that_are_published_show_much() -> None:
    rng = np.random.default_rng()

    def run() -> tuple[np.ndarray, np.ndarray]:
        there = rng.random(500) < 0.5
        return there, there.astype(np.float64)

    found = CanaryCheck("people", run, 6).find(1.0, ALPHA)
    assert found.bound > 4 and 1 < found.power < 2


def test_thresholds_leave_out_whom_nothing_is_known_about() -> None:
    """Gaussian noise: who is in the middle is not guessed, and the bound is larger than if all were."""
    rng = np.random.default_rng(0)
    there = rng.random(40_000) < 0.5
    scores = there + rng.normal(0, 1, 40_000)
    high, low = thresholds(there, scores, ALPHA)
    assert low < 0.3 and high > 0.7
    right, guesses = guessed(there, scores, high, low)
    assert guesses < 30_000
    assert right / guesses > np.mean((scores > 0.5) == there)
    assert guessed(there, scores, math.inf, -math.inf) == (0, 0)
    assert guessed(there, scores, 0.5, 0.4999999)[1] <= 40_000


# -- every outcome ----------------------------------------------------------------------------


def exact(epsilon: Any, limit: int = 500) -> ExactCheck:
    noise = IntegerLaplace(Fraction(epsilon))

    def run(exactly: int, entropy: Entropy) -> int:
        return int(noise.release(np.array([exactly]), entropy)[0])

    cases = {"0 and 1": (0, 1), "7 and 7": (7, 7)}
    return ExactCheck([(name, partial(worst_loss_of_draws, run, *pair)) for name, pair in cases.items()], limit)


def test_every_outcome_needs_no_sample_and_no_doubt() -> None:
    found = exact(1).find(1.0, 0.0)
    assert found.bound == pytest.approx(1, abs=1e-9)
    assert (found.tables, found.alpha, found.power) == ("0 and 1", 0.0, pytest.approx(1, abs=1e-9))
    assert found.event.startswith("the mechanisms release [")
    assert found.note == "all 16 outcomes of 2 pairs of tables" and found.runs == 16
    assert exact("1.25").find(1.0, 0.0).bound == pytest.approx(1.25, abs=1e-9)
    assert exact("0.5").find(1.0, 0.0).power == pytest.approx(2)


def test_outcomes_beyond_the_limit_are_said() -> None:
    found = exact(1, limit=4).find(1.0, 0.0)
    assert found.runs == 8  # four of each pair
    assert not found.note.startswith("all")


def test_what_no_mechanism_released_is_said() -> None:
    leaks = partial(worst_loss_of_draws, lambda exactly, entropy: exactly, 0, 1)
    found = ExactCheck([("0 and 1", leaks)]).find(1.0, 0.0)
    assert found.bound == math.inf
    assert found.event == "something is published that no mechanism released"


@pytest.mark.parametrize(
    ("left", "right", "loss", "output"),
    [
        ({"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.75}, math.log(2), "a"),
        ({"a": 0.25, "b": 0.75}, {"a": 0.5, "b": 0.5}, math.log(2), "a"),
        ({"a": 1.0}, {"a": 0.9, "b": 0.1}, math.inf, "b"),
        ({"a": 1.0, "b": 0.0}, {"a": 0.9, "b": 0.1}, math.inf, "b"),
        ({"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 0.0}, 0.0, "a"),
    ],
)
def test_two_known_distributions_have_a_known_loss(
    left: dict[str, float], right: dict[str, float], loss: float, output: str
) -> None:
    """Would catch an output of one table only that is skipped, and one of neither that is taken for a proof."""
    found = FiniteCheck("a pair", left, right).find(1.0, 0.0)
    assert found.bound == pytest.approx(loss)
    assert found.event == f"the output is {output}"
    assert (found.alpha, found.tables) == (0.0, "a pair")


# -- together ---------------------------------------------------------------------------------


def test_checks_of_one_subject_share_its_alpha() -> None:
    """Would catch a verdict that is wrong more often than it says, because each of its checks takes all of alpha."""
    asked: list[str] = []
    subject = Subject(
        "a count",
        "mechanism",
        "a line",
        lambda claim, effort: [exact(claim), NeighbourCheck([neighbours(counts(claim))], 90), canaries(claim, 6)],
    )
    verdict = subject.verify(ONE, 1e-6, Effort(), asked.append)
    assert [finding.alpha for finding in verdict.findings] == [0.0, 5e-7, 5e-7]
    assert verdict.alpha == 1e-6
    assert verdict.passed and verdict.as_expected
    assert asked == [f"a count: check {i} of 3" for i in (1, 2, 3)]

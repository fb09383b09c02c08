"""Events that tell two tables apart are found wherever they are, and what is the same on both is no event.

What runs show is drawn with a seed: here it is the choice of an event that is tested, and whether it holds on other
runs. Where a test says how far a bound comes, all runs are seeded.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privet.verification.bounds import loss_at_least
from privet.verification.events import Columns, Guess, choose

ALPHA = 1e-8
RUNS = 4_000


def geometric(rng: np.random.Generator, epsilon: float, size: Any) -> np.ndarray:
    """Two-sided geometric noise."""
    share = 1 - math.exp(-epsilon)
    return rng.geometric(share, size) - rng.geometric(share, size)


def guesses(rule: Guess, frame: pd.DataFrame) -> np.ndarray:
    """What a rule says of each run: 1 for left, -1 for right, 0 for nothing."""
    seen = Columns(frame)
    return np.where(rule.left.happens(seen), 1, np.where(rule.right.happens(seen), -1, 0))


def shown(rule: Guess, left: pd.DataFrame, right: pd.DataFrame) -> float:
    """What runs that the choice has not seen say of a rule."""
    return float(loss_at_least(*rule.counts(left, right), ALPHA))


def found(make: Any, runs: int = RUNS) -> tuple[Guess, float]:
    """The best rule chosen on some runs, and the bound from others; `make` draws that many runs of table 0 or 1."""
    rng = np.random.default_rng(0)
    rules = choose(make(rng, 0, runs), make(rng, 1, runs), runs, ALPHA)
    return rules[0], shown(rules[0], make(rng, 0, runs), make(rng, 1, runs))


def test_a_shift_of_integers_is_found_by_a_threshold() -> None:
    """Would catch thresholds that miss the one place where a shift by one shows all of its loss."""
    rule, bound = found(lambda rng, side, n: pd.DataFrame({"count": 40 + side + geometric(rng, 1, n)}), 30_000)
    frame = pd.DataFrame({"count": [38, 39, 40, 41, 42, 43]})
    assert guesses(rule, frame).tolist() == [1, 1, 1, -1, -1, -1]
    assert 0.9 < bound < 1


@pytest.mark.parametrize("step", [1.0, 0.001, 1e6])
def test_a_shift_of_real_numbers_is_found_by_a_threshold(step: float) -> None:
    """Would catch thresholds for integers alone: numbers of which no two are equal, in any unit."""
    rule, bound = found(lambda rng, side, n: pd.DataFrame({"sum": step * (side + rng.laplace(0, 1, n))}), 30_000)
    assert "sum is at most" in rule.text or "sum is at least" in rule.text
    assert 0.8 < bound < 1


def test_a_rare_category_is_found_by_name() -> None:
    """Would catch an event that is looked for among frequent values only."""

    def make(rng: np.random.Generator, side: int, n: int) -> pd.DataFrame:
        return pd.DataFrame(
            {"choice": rng.choice(["sex", "age", "race"], n, p=[0.5, 0.45 + 0.049 * side, 0.05 - 0.049 * side])}
        )

    event, bound = found(make)
    assert "choice is race" in event.left.text
    assert bound > 1.5


def test_what_is_absent_on_one_table_is_an_event() -> None:
    """Would catch a column that is dropped, or read as a number, where some runs publish nothing."""

    def make(rng: np.random.Generator, side: int, n: int) -> pd.DataFrame:
        absent = rng.random(n) < 0.1 + 0.8 * side
        return pd.DataFrame({"point": np.where(absent, None, rng.choice(list("abcde"), n))})

    event, bound = found(make)
    assert "point is absent" in event.right.text
    assert bound > 1.5


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (True, False),
        ("yes", None),
        (0.5, math.inf),
        (-math.inf, 0.5),
        (3, "3"),
        (2**70, 2**70 + 1),
        (1, 2.5),
    ],
)
def test_values_of_any_kind_are_told_apart(left: Any, right: Any) -> None:
    """Each table publishes one of two values, nine times in ten its own. Would catch a kind that no event is about."""

    def make(rng: np.random.Generator, side: int, n: int) -> pd.DataFrame:
        usual, other = (right, left) if side else (left, right)
        return pd.DataFrame({"output": [usual if often else other for often in rng.random(n) < 0.9]})

    event, bound = found(make)
    assert "output is" in event.text
    assert 1.8 < bound < math.log(9)


def test_the_same_in_all_runs_is_no_event() -> None:
    same = pd.DataFrame({"count": [3] * 50, "choice": ["a"] * 50, "nothing": [None] * 50})
    (rule,) = choose(same, same.copy(), 50, ALPHA)
    assert len(set(guesses(rule, same).tolist())) == 1


def test_runs_that_published_nothing_are_no_event() -> None:
    """Would catch a crash where a mechanism returns an empty dictionary."""
    nothing = pd.DataFrame(index=range(50))
    (rule,) = choose(nothing, nothing.copy(), 50, ALPHA)
    assert len(guesses(rule, nothing)) == 50


def test_noise_alone_shows_nothing() -> None:
    """Forty columns of noise, the best of their events. Would catch a bound from the runs that it was chosen on."""
    _, bound = found(lambda rng, side, n: pd.DataFrame(rng.normal(size=(n, 40))).add_prefix("number "), 2_000)
    assert bound < 0


def test_a_needle_in_many_columns_is_found() -> None:
    """One column of sixty differs, and in a twentieth of the runs. Would catch a choice by the first or loudest one."""

    def make(rng: np.random.Generator, side: int, n: int) -> pd.DataFrame:
        frame = pd.DataFrame(rng.integers(50, size=(n, 60))).add_prefix("cell ")
        return frame.assign(**{"cell 37": np.where(rng.random(n) < 0.05 * side, 99, frame["cell 37"])})

    event, bound = found(make)
    assert "cell 37" in event.right.text
    assert bound > 1.5


def test_a_learned_score_beats_every_single_column_of_many_noisy_counts() -> None:
    """A person adds one to each of twenty counts with noise for 1/20: each alone shows next to nothing, together 1.

    Would catch a distinguisher that looks at one number of a model at a time.
    """

    def make(rng: np.random.Generator, side: int, n: int) -> pd.DataFrame:
        return pd.DataFrame(side + geometric(rng, 1 / 20, (n, 20))).add_prefix("count ")

    event, bound = found(make, 30_000)
    assert "the score is" in event.text and "learned from" in event.text
    rng = np.random.default_rng(1)
    alone = []
    left, right, *fresh = (make(rng, side, 30_000) for side in (0, 1, 0, 1))
    for name in left.columns:
        single, *_ = choose(left[[name]], right[[name]], 30_000, ALPHA)
        assert "learned" not in single.text
        alone.append(shown(single, fresh[0][[name]], fresh[1][[name]]))
    assert max(alone) < 0.1 < 0.13 < bound < 1


def test_an_event_of_a_score_holds_on_frames_without_one() -> None:
    """Would catch an event that can be asked of the runs it was learned on alone."""
    rng = np.random.default_rng(2)
    left, right = (pd.DataFrame(side + geometric(rng, 0.2, (RUNS, 8))).add_prefix("c") for side in (0, 2))
    event, *_ = choose(left, right, RUNS, ALPHA)
    assert "score" in event.text
    assert list(left.columns) == [f"c{i}" for i in range(8)]  # frames are not written to
    assert shown(event, left, right) > 0


def test_columns_that_change_their_kind_from_run_to_run_do_not_stop_a_verification() -> None:
    """Would catch a crash where a later run shows a text, a list's worth of absent cells or nothing at all."""
    rng = np.random.default_rng(3)
    numbers = pd.DataFrame({"a": rng.normal(size=300), "b": rng.integers(9, size=300), "c": ["x", None, "z"] * 100})
    mixed = pd.DataFrame({"a": ["x", 2, None] * 100, "b": [True, 2.5, "7"] * 100, "c": [1, 2, 3] * 100}, dtype=object)
    absent = pd.DataFrame({"a": [math.nan] * 300, "b": [None] * 300, "c": [math.nan] * 300})
    frames = (numbers, mixed, absent)
    for left in frames:
        for right in frames:
            rules = choose(left, right, 300, ALPHA)
            for frame in frames:
                assert all(guesses(rule, frame).shape == (300,) for rule in rules)


def test_few_runs_do_not_stop_a_verification() -> None:
    for runs in (1, 2, 3):
        left = pd.DataFrame({"a": np.arange(runs), "b": ["x"] * runs})
        right = pd.DataFrame({"a": np.arange(runs) + 5, "b": ["y"] * runs})
        rules = choose(left, right, 2, ALPHA)
        assert guesses(rules[0], left).shape == (runs,)


def test_what_one_table_alone_shows_is_a_rule_of_its_own() -> None:
    """Noise of the whole claim, and a word in 1 of 100 runs on one table: would catch a choice by the loudest alone."""
    rng = np.random.default_rng(4)
    left, right = (
        pd.DataFrame(
            {"count": side + geometric(rng, 1, 2_000), "word": np.where(rng.random(2_000) < 0.01 * side, "x", "")}
        )
        for side in (0, 1)
    )
    rules = choose(left, right, 10_000, ALPHA)
    assert any(rule.right.text == "word is x" for rule in rules)


def test_a_set_of_values_is_an_event() -> None:
    """Even numbers on one table more often: no threshold and no single value shows it."""

    def make(rng: np.random.Generator, side: int, n: int) -> pd.DataFrame:
        return pd.DataFrame({"count": 2 * rng.integers(20, size=n) + (rng.random(n) < (0.9 if side else 0.1))})

    rule, bound = found(make)
    assert "values" in rule.text and 1.8 < bound < math.log(9)

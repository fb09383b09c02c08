"""Guesses who is in a table: as many are right as epsilon allows, and no more.

Noise is real. Right guesses are at most as many as heads of a coin of exp(epsilon) to 1; a test fails by chance with
probability below 1e-9 for each point.
"""

from __future__ import annotations

import json
import math

import pytest
from scipy.stats import binom

from privet.verification.membership import EPSILONS, ceiling, curve

ALPHA = 1e-9


@pytest.fixture(scope="module")
def drawn() -> dict[str, object]:
    """One curve at all epsilons, for all tests."""
    return curve("hanisch-tree", fits=4, max_depth=2)


def test_the_ceiling_is_what_a_coin_of_that_epsilon_shows() -> None:
    assert ceiling(0) == 0.5
    assert math.log(ceiling(2) / (1 - ceiling(2))) == pytest.approx(2)
    assert ceiling(1000) == 1


@pytest.mark.parametrize(("algorithm", "depth"), [("hanisch-tree", 2), ("diffpid3", 1), ("maxforest", 1)])
def test_no_more_are_right_than_epsilon_allows(algorithm: str, depth: int) -> None:
    """Would catch canaries whose coins are not fair, guesses that peek, and trees that lose more than they say."""
    for point in curve(algorithm, (0.1, 1.0, 4.0), fits=4, max_depth=depth)["points"]:
        most = binom.isf(ALPHA, point["guesses"], point["ceiling"]) / point["guesses"]
        assert point["accuracy"] <= most


def test_a_count_that_has_the_whole_budget_gives_away_what_epsilon_allows(
    drawn: dict[str, list[dict[str, float]]],
) -> None:
    """Hanisch's tree spends all on its leaves: the best guess reaches the ceiling. Would catch a weak attack."""
    for point in drawn["points"]:
        least = binom.ppf(ALPHA, point["guesses"], 0.5 + 0.85 * (point["ceiling"] - 0.5)) / point["guesses"]
        assert point["accuracy"] >= least
    at_four = next(point for point in drawn["points"] if point["epsilon"] == 4)
    assert at_four["accuracy"] > 0.9


def test_a_curve_has_all_its_points_and_can_be_written(drawn: dict[str, list[dict[str, float]]]) -> None:
    """Would catch an interval without an end where every guess was right, which no reader of JSON takes."""
    assert (drawn["curve"], drawn["subject"]) == ("membership", "hanisch-tree")
    assert [point["epsilon"] for point in drawn["points"]] == list(EPSILONS)
    for point in drawn["points"]:
        assert point["guesses"] == 4 * 600
        assert 0 <= point["low"] <= point["accuracy"] <= point["high"] <= 1
        assert point["ceiling"] == ceiling(point["epsilon"])
    json.dumps(drawn, allow_nan=False)


def test_everybody_is_told_apart_where_there_is_next_to_no_noise() -> None:
    (point,) = curve("hanisch-tree", (40.0,), fits=1, max_depth=1)["points"]
    assert (point["accuracy"], point["high"]) == (1, 1)
    assert 0.99 < point["low"] < 1
    json.dumps(point, allow_nan=False)


def test_progress_is_told() -> None:
    told: list[str] = []
    curve("hanisch-tree", (1.0, 2.0), fits=1, progress=told.append, max_depth=1)
    assert told == ["membership in hanisch-tree at epsilon 1", "membership in hanisch-tree at epsilon 2"]

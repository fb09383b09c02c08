"""The loop of a race, with real coins: winners follow the probabilities of its proof, with a target and without.

n = 20,000 races per coin, false alarm below 1e-9, no seed. A coin that stops too often or too rarely is tossed in the
same loop and must be rejected. One run is a number from 0 to 5: what it costs to make one is no part of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest
from sizes import draws, sized

import privet
from privet.kernel import SYSTEM, race
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.release import Public

Follows = Callable[..., None]

pytestmark = sized

N = draws(20_000)
SIZE = 6
STOP = Fraction(1, 4)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> privet.ProtectedTable:
    """A table whose races cost no time: no shadow is made, and one charge stands for all."""
    monkeypatch.setattr("privet.kernel.shadow.shadow_table", lambda *_: None)
    monkeypatch.setattr("privet.kernel.session.Session.begin", lambda *_: None)
    return privet.open(pd.DataFrame({"a": ["0"]}), Domain((Nominal("a", ("0",)),)), budget=1)


def run(shadow: Any) -> tuple[int, Public]:
    number = SYSTEM.below(SIZE)
    return number, Public(number)


def test_the_best_of_a_random_number_of_runs_follows_its_distribution(
    table: privet.ProtectedTable, assert_follows: Follows
) -> None:
    """Would catch a coin before the first run, a last run that does not count, and a coin of another chance."""

    def sample(factor: Fraction) -> Iterable[int]:
        return [race(table, [run], 1, stop=STOP * factor).output for _ in range(N)]

    stop = float(STOP)
    upto = [stop * share / (1 - (1 - stop) * share) for share in (each / SIZE for each in range(SIZE + 1))]
    assert_follows(sample, {each: upto[each + 1] - upto[each] for each in range(SIZE)})


def test_the_first_run_to_reach_a_target_follows_its_distribution(
    table: privet.ProtectedTable, assert_follows: Follows
) -> None:
    """Would catch a coin before the run, a target that has to be exceeded, and a best run that is returned for none."""

    def sample(factor: Fraction) -> Iterable[Any]:
        found = (race(table, [run], 1, stop=STOP * factor, target=4) for _ in range(N))
        return ["none" if won is None else won.output for won in found]

    stop, reached = float(STOP), 2 / SIZE
    total = stop + (1 - stop) * reached
    assert_follows(sample, {4: 1 / SIZE / total, 5: 1 / SIZE / total, "none": stop * (1 - reached) / total})


def test_every_candidate_runs_as_often_as_the_others(table: privet.ProtectedTable, assert_follows: Follows) -> None:
    """n = 20,000. The mutant runs the first of five candidates as often as any two others."""

    def sample(factor: Fraction) -> Iterable[int]:
        candidates = [run] * 5 if factor == 1 else [run] * 6
        found = (race(table, candidates, 1).index for _ in range(N))
        return [index % 5 for index in found]

    assert_follows(sample, dict.fromkeys(range(5), 0.2), detects=[1.2])

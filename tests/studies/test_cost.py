"""What trials take is what was recorded of each, counted once; the rest is estimated, and said to be."""

from __future__ import annotations

import json
from pathlib import Path

from privet.studies import Outcome, Trial, forget, recorded, run
from privet.studies.cost import Cost, cost

TREES = [Trial("adult", "id3", seed=seed) for seed in range(4)]
FORESTS = [Trial("adult", "forest", seed=seed) for seed in range(2)]


def spent(**seconds: float) -> dict[str, Outcome]:
    trials = {"tree": TREES, "forest": FORESTS}
    found = [(trials[name[:-1]][int(name[-1])], each) for name, each in seconds.items()]
    return {trial.key: Outcome(trial, {}, cpu=each) for trial, each in found}


def test_a_trial_counts_once_however_many_studies_share_it() -> None:
    known = spent(tree0=1, tree1=2, forest0=10, forest1=20)
    assert cost([*TREES[:2], *FORESTS, *TREES[:2]], known) == Cost(4, 4, 33)


def test_what_was_not_measured_costs_what_others_of_its_kind_do_in_the_middle() -> None:
    """The first trial reads the table for all: a mean would count that for each."""
    known = spent(tree0=100, tree1=2, tree2=3, forest1=20)
    assert cost([*TREES, *FORESTS], known) == Cost(6, 4, 125 + 3 + 20)
    assert cost([*TREES[:2], *FORESTS], spent(tree0=1, tree1=3)) == Cost(4, 2, 4 + 2 * 2)  # no other forest: the mean
    assert cost(FORESTS, spent(tree0=1)) is None


def test_a_cost_is_said_with_what_is_estimated_of_it() -> None:
    assert str(Cost(3, 3, 0.04)) == "3 trials take 0.0 seconds of CPU time"
    assert str(Cost(1200, 1200, 95.6)) == "1,200 trials take 96 seconds of CPU time"
    assert str(Cost(50_000, 400, 3600)) == "50,000 trials take 60 minutes of CPU time, estimated from 400 of them"


def test_a_run_records_what_a_trial_takes_by_its_clock(tmp_path: Path) -> None:
    path = tmp_path / "r"
    ticks = iter([1.0, 1.5, 7.0, 9.25])
    outcomes = run(TREES[:2], lambda trial: {"right": 1}, path, clock=lambda: next(ticks))
    assert [outcome.cpu for outcome in outcomes] == [0.5, 2.25]
    assert run(TREES[:2], lambda trial: {}, path) == outcomes  # recorded, and not run again
    forget(TREES[:1], path)
    assert {outcome.cpu for outcome in recorded(path).values()} == {2.25}
    (later,) = run(TREES[2:3], lambda trial: {}, tmp_path / "other")
    assert later.cpu is None and "cpu" not in json.loads((tmp_path / "other").read_text())

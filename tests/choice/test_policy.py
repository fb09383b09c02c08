"""Policies: what they learn, that their files say the same, and what they refuse."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet import Branch, History, NoisyIf, Public
from privet.choice import CautiousForest, Fixed, Floor
from privet.choice.arms import ARMS, DEFAULT
from privet.choice.auto import shipped
from privet.choice.features import FEATURES
from privet.choice.training import Runs, cautious_forest, chosen, floor_of, runs_of
from privet.errors import ModelError, QuestionError

BRANCHES = {"low": "1", "high": "2", "default": "3"}


def worlds(runs: int, noise: float = 1.0, seed: int = 0) -> Runs:
    """`low` wins by five points below 0, `high` above; the other feature means nothing."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(runs, 2))
    ahead = np.where(features[:, 0] < 0, 5.0, -5.0)
    rewards = np.stack([ahead, -ahead, np.zeros(runs)], axis=1) + rng.normal(scale=noise, size=(runs, 3))
    return Runs(features, rewards + rng.normal(scale=20, size=(runs, 1)), np.array([f"d{i // 2}" for i in range(runs)]))


def forest(runs: Runs, **more: Any) -> CautiousForest:
    return cautious_forest(runs, BRANCHES, "default", ("signal", "noise"), site="world", **more)


def test_a_forest_learns_which_branch_wins_where() -> None:
    policy = forest(worlds(600))
    unseen = worlds(200, seed=1)
    best = np.where(unseen.features[:, 0] < 0, 0, 1)
    clear = np.abs(unseen.features[:, 0]) > 0.2
    assert (chosen(policy, unseen)[clear] == best[clear]).all()
    assert policy.deciding({"signal": 1.0, "noise": 0.0})[0] == "signal"


def test_caution_stays_with_the_default_where_histories_disagree() -> None:
    runs = worlds(200, noise=60.0)
    left = [(chosen(forest(runs, caution=caution), runs) != 2).mean() for caution in (0.0, 1.0, 4.0)]
    assert left[0] > left[1] > left[2]


def test_advice_is_a_prior_that_experience_overrules() -> None:
    few, many = forest(worlds(50)), forest(worlds(600))
    at = {"signal": 1.0, "noise": 0.0}
    names = list(BRANCHES)
    plain = many.margins(at, names, "default", {})
    advised = many.margins(at, names, "default", {"low": 1.0})
    assert plain["low"] < advised["low"] < advised["high"]  # advice helps, the rows decide
    for policy in (few, many):
        margins = [policy.margins(at, names, "default", advised)["low"] for advised in ({"low": 1.0}, {})]
        assert margins[0] > margins[1]


def test_a_file_chooses_like_the_policy_in_memory() -> None:
    policy = forest(worlds(600))
    again = CautiousForest.parse(policy.to_json())
    unseen = worlds(300, seed=2)
    assert (chosen(policy, unseen) == chosen(again, unseen)).all()
    assert again.fingerprint == policy.fingerprint and again == policy


def test_a_context_it_was_not_made_for_goes_to_the_default() -> None:
    policy = forest(worlds(600))
    for context in ({}, {"signal": 1.0}, {"signal": float("nan"), "noise": 0.0}, {"signal": "high", "noise": 0.0}):
        assert set(policy.margins(context, list(BRANCHES), "default", {}).values()) == {0.0}
        assert policy.deciding(context) == ()


def test_other_branches_are_refused() -> None:
    policy = forest(worlds(100))
    with pytest.raises(QuestionError, match="train one for these branches"):
        policy.margins({"signal": 1.0, "noise": 0.0}, ["low", "default"], "default", {})


# -- the floor ------------------------------------------------------------------------------------

LOW = Floor("signal", -1.0, "high")  # `high` is the worst there


def picked(policy: CautiousForest, signal: float) -> Any:
    choice = NoisyIf("world", {name: Branch.of(name) for name in BRANCHES}, default="default", policy=policy)
    return choice.pick({"signal": Public(signal), "noise": Public(0.0)})


def test_below_the_floor_its_branch_is_taken_whatever_the_trees_say() -> None:
    runs = worlds(600)
    plain, policy = forest(runs), forest(runs, floor=LOW)
    for signal in (-3.0, -1.001):
        found = picked(policy, signal)
        assert found.branch == "high" and picked(plain, signal).branch == "low"
        assert found.why == "signal below -1: too little to choose by"
        assert found.deciding == ("signal",)
        assert found.margins == picked(plain, signal).margins  # they are told all the same
    for signal in (-1.0, -0.5, 1.5):  # from the floor on the trees decide
        assert picked(policy, signal) == picked(plain, signal)
    unseen = worlds(300, seed=3)
    low = unseen.features[:, 0] < -1
    assert (chosen(policy, unseen)[low] == 1).all()
    assert (chosen(policy, unseen)[~low] == chosen(plain, unseen)[~low]).all()


def test_a_context_without_the_feature_knows_no_floor() -> None:
    policy = forest(worlds(100), floor=LOW)
    for context in ({}, {"signal": -5.0}, {"signal": float("nan"), "noise": 0.0}):
        assert policy.rule(context) is None


def test_the_floor_is_in_the_file() -> None:
    policy = forest(worlds(100), floor=LOW)
    again = CautiousForest.parse(policy.to_json())
    assert again == policy and again.floor == LOW and again.fingerprint == policy.fingerprint
    assert picked(again, -2.0) == picked(policy, -2.0)
    plain = forest(worlds(100))
    assert CautiousForest.parse(plain.to_json()).floor is None and plain.fingerprint != policy.fingerprint


def low_runs(ahead: Any) -> Runs:
    """Runs whose signal is -20 to 20, in which `low` is ahead of the default by a function of it."""
    signal = np.arange(-20.0, 21.0)
    rewards = np.stack([ahead(signal), np.full(41, 99.0), np.zeros(41)], axis=1) + 50
    return Runs(np.stack([np.zeros(41), signal], axis=1), rewards, np.arange(41).astype(str))


@pytest.mark.parametrize("edge", [-15.0, -3.0, 0.0, 12.0])
def test_a_floor_is_where_its_branch_stops_gaining(edge: float) -> None:
    runs = low_runs(lambda signal: np.where(signal < edge, 1.0, -1.0))
    found = floor_of(runs, list(BRANCHES), "default", ("noise", "signal"), Floor("signal", 0.0, "low"), range(-20, 21))
    assert found == Floor("signal", edge, "low")


def test_a_floor_counts_all_below_it_and_is_one_of_the_thresholds() -> None:
    """Lost points below weigh against those gained above: it is the sum that has to be the largest."""
    runs = low_runs(lambda signal: np.select([signal < -10, signal < 0], [-1.0, 3.0], -1.0))
    low = Floor("signal", 0.0, "low")
    names = list(BRANCHES), "default", ("noise", "signal")
    assert floor_of(runs, *names, low, [-15, -5, 8]) == Floor("signal", 8, "low")  # -5, +5, +12
    assert floor_of(runs, *names, low, [-15, -12]) is None


def test_there_is_no_floor_where_its_branch_never_gains() -> None:
    for never in (-1.0, 0.0):
        runs = low_runs(lambda signal, never=never: np.full(len(signal), never))
        names = list(BRANCHES), "default", ("noise", "signal")
        assert floor_of(runs, *names, Floor("signal", 0.0, "low"), range(-20, 21)) is None


# -- files ----------------------------------------------------------------------------------------


def _broken(**changes: Any) -> str:
    content = json.loads(forest(worlds(100)).to_json())
    return json.dumps({**content, **changes})


def _tree(feature: list[int], left: list[int], rows: list[int], ahead: list[list[int]]) -> str:
    lists = {"feature": feature, "threshold": [0.0] * len(left), "left": left, "rows": rows, "ahead": ahead}
    return _broken(trees=[lists])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        _broken(format=99),
        _broken(kind="other"),
        _broken(trees=[]),
        _broken(default="none"),
        _tree([0], [0], [0], [[0, 0, 0]]),
        _tree([0], [0], [5], [[0]]),
        _tree([0, 0, 0], [1, 1, 0], [1, 1, 1], [[], [], [0, 0, 0]]),  # a walk would never end
        _tree([7, 0, 0], [1, 0, 0], [0, 1, 1], [[], [0, 0, 0], [0, 0, 0]]),
        _broken(floor={"feature": "nothing", "below": 1.0, "branch": "low"}),
        _broken(floor={"feature": "signal", "below": 1.0, "branch": "nothing"}),
        _broken(floor={"feature": "signal", "branch": "low"}),
        _broken(floor={"feature": "signal", "below": "much", "branch": "low"}),
        _broken(floor={"feature": "signal", "below": math.nan, "branch": "low"}),  # every value would be below
        _broken(floor=[1]),
        _broken(caution=math.inf),
        _broken(objective=math.nan),
        _broken(caution=1).replace('"rows": [', '"rows": [1e999, '),
        "[" * 100_000,
    ],
    ids=lambda text: text[-12:],
)
def test_a_file_that_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match="no policy that privet wrote"):
        CautiousForest.parse(text)


def test_a_policy_of_other_arms_is_refused_in_one_sentence() -> None:
    policy = forest(worlds(100))
    with pytest.raises(ModelError) as refused:
        policy.check({**BRANCHES, "high": "9"}, ("signal", "noise"))
    assert str(refused.value).count(".") == 1 and "other versions of high" in str(refused.value)
    assert "privet study run choice" in str(refused.value)
    with pytest.raises(ModelError, match="other features"):
        policy.check(BRANCHES, ("signal",))
    with pytest.raises(ModelError, match="other versions of extra"):
        policy.check({**BRANCHES, "extra": "1"}, ("signal", "noise"))


# -- what is shipped ------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["accuracy", "auc"])
def test_the_shipped_policies_are_small_and_of_this_version(objective: str) -> None:
    policy = shipped(objective)
    assert len(policy.to_json()) < 120_000
    assert policy.header["objective"] == objective
    assert all(origin.startswith("synthetic") for origin in policy.header["origins"])
    assert set(policy.branches) == set(ARMS) and policy.default == DEFAULT and policy.features == FEATURES


def test_a_choice_needs_no_heavy_import() -> None:
    """A policy is evaluated by Python alone: a second process has neither numpy nor privet's kernel in it."""
    program = """
import importlib.util, sys, types
sys.modules["privet"] = types.ModuleType("privet")
def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
load("privet.errors", sys.argv[1] + "/errors.py")
policy = load("privet.choice.policy", sys.argv[1] + "/choice/policy.py")
found = policy.CautiousForest.load(sys.argv[1] + "/choice/policies/accuracy.json")
margins = found.margins(dict.fromkeys(found.features, 1.0), list(found.branches), found.default, {})
assert "numpy" not in sys.modules
print(len(margins))
"""
    folder = Path(__file__).parents[2] / "src" / "privet"
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(len(ARMS))


# -- histories ------------------------------------------------------------------------------------


def _history(runs: Runs) -> History:
    history = History()
    for place, (values, rewards) in enumerate(zip(runs.features.tolist(), runs.rewards.tolist(), strict=True)):
        context = {"signal": Public(values[0]), "noise": Public(values[1])}
        kept = {name: Public(reward, "synthetic: world") for name, reward in zip(BRANCHES, rewards, strict=True)}
        history.extend("world", context, kept, run=f"run {place}", data=str(runs.data[place]))
    return history


def test_histories_become_runs_again() -> None:
    runs = worlds(20)
    again = runs_of(_history(runs).rows("world"), list(BRANCHES), ("signal", "noise"))
    assert (again.features == runs.features).all() and (again.rewards == runs.rewards).all()
    with pytest.raises(QuestionError, match="no run in which every branch"):
        runs_of([], list(BRANCHES), ("signal",))


def test_a_fixed_policy_takes_a_branch_that_is_there() -> None:
    assert Fixed("a").margins({}, ["a", "b"], "b", {}) == {"a": 1.0, "b": 0.0}
    with pytest.raises(QuestionError, match="none of a, b"):
        Fixed("c").margins({}, ["a", "b"], "b", {})


@pytest.mark.parametrize("field", ["threshold", "rows", "ahead", "caution", "floor"])
@pytest.mark.parametrize("number", [10**4000, "1", 1e300, True, None])
def test_a_policy_whose_numbers_could_overflow_is_refused(field: str, number: Any) -> None:
    """Ints of 4,000 digits are JSON, and overflowed in the middle of a fit, after its first charge."""
    content = json.loads(shipped("accuracy").to_json())
    tree = content["trees"][0]
    if field == "ahead":
        tree["ahead"][tree["left"].index(0)][0] = number
    elif field in tree:
        tree[field][tree["left"].index(0)] = number
    elif field == "floor":
        content["floor"] = {"feature": content["features"][0], "below": number, "branch": content["default"]}
    else:
        content[field] = number
    with pytest.raises(ModelError, match="no policy that privet wrote"):
        CautiousForest.parse(json.dumps(content))

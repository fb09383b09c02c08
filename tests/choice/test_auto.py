"""AutoClassifier: chooses from releases alone, spends exactly its epsilon with every arm, and says what it did."""

from __future__ import annotations

import itertools
import json
import pickle
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sizes import few, long

import privet
from privet.choice import CautiousForest, Floor
from privet.choice.arms import ARMS
from privet.choice.auto import AutoClassifier, shipped
from privet.choice.features import FEATURES, PROBE, context, measured
from privet.choice.policy import PolicyTree
from privet.errors import BudgetExceeded, ModelError, QuestionError
from privet.lab import worst_loss
from privet.models.model import Model
from privet.release import Derived

F = Fraction


def policy_of(branch: str) -> CautiousForest:
    """The shipped policy with other trees and without its floor: always this branch."""
    ahead = tuple(50 if name == branch else 0 for name in ARMS)
    return replace(shipped("accuracy"), floor=None, trees=(PolicyTree((0,), (0.0,), (0,), (100,), (ahead,)),))


def knowing_policy_of(branch: str) -> CautiousForest:
    """A policy that takes this branch, and learned about two classes from a tenth of its runs."""
    ahead = tuple(50 if name == branch else 0 for name in ARMS)
    tree = PolicyTree((FEATURES.index("classes"), 0, 0), (1.5, 0.0, 0.0), (1, 0, 0), (0, 900, 100), ((), ahead, ahead))
    return replace(policy_of(branch), trees=(tree,))


def opened(rows: int = 2000, budget: Any = 2, **changes: Any) -> Any:
    domain = replace(privet.datasets.census_domain(), **changes)
    return privet.open(privet.datasets.census(rows), domain, budget=budget)


@pytest.mark.parametrize("arm", list(ARMS))
@pytest.mark.parametrize("epsilon", ["0.03", pytest.param("1/3", marks=long), "1"])
def test_every_arm_spends_exactly_epsilon(arm: str, epsilon: str) -> None:
    table = opened()
    auto = AutoClassifier(epsilon=epsilon, policy=policy_of(arm)).fit(table)
    assert auto.choice_.branch == arm
    assert table.budget.spent == auto.privacy_.spent == auto.privacy_.epsilon == F(epsilon)
    assert table.budget.remaining == 2 - F(epsilon)
    assert table.budget.entries[0].loss == F(epsilon) * PROBE  # the probe, bought once
    assert auto.privacy_.steps[0].entry == table.budget.entries[0].id  # and handed over


@pytest.mark.parametrize("arm", list(ARMS))
@pytest.mark.parametrize("rows", few((0, 1, 7), (0, 7)))
def test_every_arm_finishes_on_every_input(arm: str, rows: int) -> None:
    """Zero rows, and sizes that noise makes negative or huge: choices, errors and retries would be published too."""
    people = privet.datasets.census(5)
    for epsilon in ("0.001", "1"):
        for seed in range(3):
            with privet.testing.seeded_noise(seed):
                table = opened(rows)
            auto = AutoClassifier(epsilon=epsilon, policy=policy_of(arm)).fit(table)
            assert auto.choice_.branch == arm
            assert auto.predict(people).shape == (5,)
            assert np.isfinite(auto.predict_proba(people)).all()
            assert table.budget.spent == F(epsilon)


@pytest.mark.parametrize("arm", list(ARMS))
def test_every_arm_finishes_on_one_class_and_odd_domains(arm: str) -> None:
    from privet.kernel.column import Nominal
    from privet.kernel.domain import Domain

    frame = pd.DataFrame({"a": ["x"] * 50, "y": ["p"] * 50})
    domain = Domain((Nominal("a", ("x",)), Nominal("y", ("p", "q", "r"))), target="y")
    table = privet.open(frame, domain, budget=1)
    auto = AutoClassifier(epsilon=1, policy=policy_of(arm)).fit(table)
    assert auto.predict(frame).shape == (50,) and table.budget.spent == 1
    assert auto.choice_.branch == arm


def test_a_fit_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    table = opened(budget=1)
    table.count("0.5")
    with pytest.raises(BudgetExceeded):
        AutoClassifier(epsilon=1).fit(table)
    assert table.budget.spent == F(1, 2) and len(table.budget.entries) == 1


def test_persons_with_several_rows_pay_as_persons() -> None:
    table = opened(rows_per_person=3)
    auto = AutoClassifier(epsilon=1).fit(table)
    assert auto.privacy_.spent == table.budget.spent == 1 and auto.privacy_.rows_per_person == 3
    same = measured(table.domain, F(1), np.array([1500, 500]))
    third = measured(replace(table.domain, rows_per_person=1), F(1, 3), np.array([1500, 500]))
    assert same == pytest.approx(third)


# -- what the choice reads ------------------------------------------------------------------------


def test_the_features_are_made_of_the_probe() -> None:
    table = opened()
    counts = table.histogram("income", epsilon="0.05")
    known = context(table.domain, F(1), counts)
    assert tuple(known) == FEATURES
    assert all(isinstance(value, Derived) and value.about.entry == counts.about.entry for value in known.values())


def test_neighbours_with_equal_releases_choose_alike() -> None:
    """Every outcome of whole fits on tiny tables: the loss stays within epsilon, and nothing else is published."""
    people = pd.DataFrame({"a": list("xxyyxy"), "b": list("uvuvuu"), "y": list("ppqqpq")})
    from privet.kernel.column import Nominal
    from privet.kernel.domain import Domain

    domain = Domain((Nominal("a", ("x", "y")), Nominal("b", ("u", "v")), Nominal("y", ("p", "q"))), target="y")

    def run(table: Any) -> Any:
        auto = AutoClassifier(epsilon=1, random_state=0).fit(table)
        return auto.choice_.branch, tuple(auto.choice_.margins.items()), auto.model_.to_json()

    found = worst_loss(run, people, people.iloc[1:], domain, limit=80)
    assert found.loss <= 1 + 1e-9


@pytest.mark.parametrize("noisy", [[-4000, 12], [0, 0], [-1, -1], [10**9, 5]])
def test_odd_counts_give_finite_features(noisy: list[int]) -> None:
    values = measured(privet.datasets.census_domain(), F(1, 100), np.array(noisy))
    assert np.isfinite(list(values.values())).all()
    assert 0 < values["majority"] < 1


# -- what it says ---------------------------------------------------------------------------------


def test_the_choice_is_told_with_the_model(tmp_path: Path) -> None:
    with privet.testing.seeded_noise(0):
        table = opened(1000)
    auto = AutoClassifier(epsilon="0.1").fit(table)  # few runs were like this one, so that margins are given
    told = auto.choice_.explain()
    assert told.startswith(f"learner: {auto.choice_.branch}")
    assert "at other epsilons: " in told and set(auto.choice_.elsewhere) >= {"0.01", "1", "4"}
    (decision,) = auto.privacy_.decisions
    assert (decision.site, decision.branch) == ("learner", auto.choice_.branch)
    assert dict(decision.margins).keys() == ARMS.keys() and dict(decision.context).keys() == set(FEATURES)
    assert decision.policy == shipped("accuracy").name
    auto.model_.save(tmp_path / "model.json")
    again = Model.load(tmp_path / "model.json")
    assert again.privacy == auto.privacy_
    assert f"chosen learner: {auto.choice_.branch}" in str(again.privacy)


def test_below_the_floor_the_class_shares_are_taken_and_the_choice_says_why() -> None:
    """A policy that always takes naive Bayes does not where rows times epsilon are few; elsewhere it does."""
    low = Floor("log signal per class", 1.609, "prior")  # five rows at epsilon 1 for each class
    policy = replace(policy_of("naive-bayes"), floor=low)
    with privet.testing.seeded_noise(0):
        table = opened(rows=300, budget=4)
    few = AutoClassifier(epsilon="0.002", policy=policy).fit(table)
    many = AutoClassifier(epsilon=1, policy=policy).fit(table)
    assert (few.choice_.branch, many.choice_.branch) == ("prior", "naive-bayes")
    assert few.choice_.context["log signal per class"] < low.below < many.choice_.context["log signal per class"]
    assert table.budget.spent == F("0.002") + 1  # the class shares spend all of epsilon too
    told = few.choice_.explain()
    assert told.startswith("learner: prior, log signal per class below 1.61: too little to choose by")
    assert "decided mostly by log signal per class" in told and "at other epsilons: prior at 0.01" in told
    assert few.privacy_.decisions[0].branch == "prior"


def explained(frame: pd.DataFrame, domain: privet.Domain, epsilon: str) -> list[str]:
    with privet.testing.seeded_noise(3):
        table = privet.open(frame, domain, budget=2)
    return AutoClassifier(epsilon=epsilon, random_state=0).fit(table).choice_.explain().splitlines()


def test_what_is_explained_is_about_this_table() -> None:
    """No number of one table is that of another, but for what was spent and the epsilons that are tried."""
    census, people = privet.datasets.census_domain(), privet.datasets.census(20_000)
    few = replace(census, columns=tuple(c for c in census.columns if c.name not in ("age", "region")))
    tree = privet.datasets.random_tree(4000, classes=3)
    tables = [(people, census), (people.head(3000), few), (people.head(700), in_ten_bins()), (tree.frame, tree.domain)]
    texts = [explained(frame, domain, "0.5") for frame, domain in tables]
    public = ("spent", "at other epsilons")
    lines = [{line for line in text if any(map(str.isdigit, line)) and not line.startswith(public)} for text in texts]
    assert all(len(own) >= 3 for own in lines)
    for one, other in itertools.combinations(lines, 2):
        assert not one & other


def test_points_are_told_only_where_the_policy_tells_the_table_from_others() -> None:
    """A policy of one leaf knows no table: it has nothing to say about this one, in words, in margins or in a file."""
    auto = AutoClassifier(epsilon="0.5", policy=policy_of("boosted")).fit(opened())
    assert auto.choice_.margins == {} and auto.choice_.evidence is None
    assert auto.privacy_.decisions[0].margins == ()
    text = auto.choice_.explain()
    assert text.startswith("learner: boosted, the default: nothing about this table spoke for another learner")
    assert "points" not in text

    known = AutoClassifier(epsilon="0.5", policy=knowing_policy_of("prior")).fit(opened())
    assert known.choice_.branch == "prior" and known.choice_.margins["prior"] == 5
    assert dict(known.privacy_.decisions[0].margins).keys() == ARMS.keys()
    line = "on generated tables like this one (about 100 of 1,000 runs) prior was ahead of boosted, the default, by 5.0"
    assert line in known.choice_.explain()


def test_coarse_bins_are_told_with_what_is_made_of_them() -> None:
    people = privet.datasets.census(5000)
    line = "coarse bins: 'wage' has 10 bins for 20,001 values; boosted tables of it alone have 40"
    assert line in explained(people, in_ten_bins(), "1")
    assert not any(line.startswith("coarse") for line in explained(people, privet.datasets.census_domain(), "1"))


# -- bins that hide what a tree can see -----------------------------------------------------------


def in_ten_bins() -> privet.Domain:
    """The census with ten even bins of wages: incomes change in the middle of one."""
    domain = privet.datasets.census_domain()
    wage = replace(domain.numeric("wage"), bins=10, edges=None)
    return replace(domain, columns=tuple(wage if column.name == "wage" else column for column in domain.columns))


def test_with_coarse_bins_auto_keeps_up_with_trees_that_cut_anywhere() -> None:
    """Boosted tables in the ten bins of wages would be 3.5 points or more below the trees; the noise is seeded.

    Means over four tables: the standard error of a difference is about 0.2 points.
    """
    domain, later = in_ten_bins(), privet.datasets.census(20_000, seed=99)
    learners = {
        "auto": lambda seed: AutoClassifier(epsilon="0.5", random_state=seed),
        "diffpc45": lambda seed: privet.DiffPC45Classifier(epsilon="0.5", random_state=seed),
        **{
            arm: lambda seed, arm=arm: AutoClassifier(epsilon="0.5", policy=policy_of(arm), random_state=seed)
            for arm in ("id3plus gini 2", "id3plus gini 3", "id3plus max 2", "id3plus max 3", "naive-bayes")
        },
    }
    points: dict[str, list[float]] = {name: [] for name in learners}
    for seed in range(4):
        people = privet.datasets.census(20_000, seed=seed)
        for name, learner in learners.items():
            with privet.testing.seeded_noise(seed):
                table = privet.open(people, domain, budget=1)
            points[name].append(100 * learner(seed).fit(table).score(later, later.income))
            assert table.budget.spent == F(1, 2)
    means = {name: np.mean(own) for name, own in points.items()}
    assert means["auto"] >= max(means.values()) - 1


def test_the_page_has_the_measured_numbers_of_coarse_bins() -> None:
    """`python -m evidence.coarse_bins` measures them: finer cells gain where bins are coarse, and lose 0.3 nowhere."""
    root = Path(__file__).parents[2]
    rows = json.loads((root / "evidence" / "coarse_bins.json").read_text(encoding="utf-8"))["accuracy"]
    declared = [row for row in rows if row["learner"] == "auto, declared bins"]
    page = (root / "docs" / "explanation" / "choice.md").read_text(encoding="utf-8")
    for row in declared:
        assert row["difference"] <= 0.3
        line = f"| {row['difference']:+.2f} ± {row['se']:.2f} |"
        assert line in page or row["difference"] == row["se"] == 0
    assert {row["difference"] < -3 for row in declared if row["table"] == "census, 10 bins of wages"} == {True}


def test_it_is_pickled_with_its_choice() -> None:
    auto = AutoClassifier(epsilon=1).fit(opened())
    again = pickle.loads(pickle.dumps(auto))
    assert again.choice_.explain() == auto.choice_.explain()


def test_it_chooses_in_rows_and_columns_too() -> None:
    people = privet.datasets.census(1500)
    X, y = people.drop(columns="income"), people.income.astype(str)
    auto = AutoClassifier(epsilon=2, domain=privet.datasets.census_domain()).fit(X, y)
    assert auto.score(X, y) > 0.6


@pytest.mark.parametrize("objective", ["accuracy", "auc"])
def test_each_objective_has_its_policy(objective: str) -> None:
    auto = AutoClassifier(epsilon=1, objective=objective).fit(opened())
    assert auto.privacy_.decisions[0].policy == shipped(objective).name


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        ({"objective": "f1"}, QuestionError, "accuracy, auc"),
        ({"policy": "nowhere.json"}, ModelError, "cannot read the policy"),
        ({"variant": "published"}, QuestionError, "no published variant"),
        ({"epsilon": None}, QuestionError, "needs an epsilon"),
    ],
)
def test_bad_parameters_are_refused_before_a_charge(more: dict[str, Any], error: type[Exception], says: str) -> None:
    table = opened()
    with pytest.raises(error, match=says):
        AutoClassifier(**{"epsilon": 1, **more}).fit(table)
    assert table.budget.spent == 0


def test_a_policy_of_other_arms_is_refused_before_a_charge(tmp_path: Path) -> None:
    other = replace(shipped("accuracy"), branches={**shipped("accuracy").branches, "boosted": "0" * 16})
    (tmp_path / "other.json").write_text(other.to_json())
    table = opened()
    with pytest.raises(ModelError, match="was trained for other versions of boosted; train it again with"):
        AutoClassifier(epsilon=1, policy=tmp_path / "other.json").fit(table)
    assert table.budget.spent == 0


def test_the_page_of_a_model_shows_the_choice(tmp_path: Path) -> None:
    for arm in ("boosted", "id3plus max 2"):
        pages = []
        for policy in (knowing_policy_of(arm), policy_of(arm)):
            model = AutoClassifier(epsilon=1, policy=policy).fit(opened()).model_
            model.to_html(tmp_path / "model.html")
            pages.append((tmp_path / "model.html").read_text())
            assert "What was chosen" in pages[-1] and f"learner: {arm}" in pages[-1]
        assert "naive-bayes +0.00" in pages[0]
        assert "naive-bayes +0.00" not in pages[1]  # points of every table are none of this one

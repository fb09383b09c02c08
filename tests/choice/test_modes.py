"""Modes of NoisyIf: each charges what its proof says, and hands on what it bought."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import privet
from privet import Branch, NoisyIf
from privet.choice import AccuracyFirst, Fixed, Probe, Race, Score
from privet.choice.cheapest import Counts, cheapest_model
from privet.choice.derive import total
from privet.errors import BudgetExceeded, PrivacyError, QuestionError
from privet.models.tables import Tables

F = Fraction


@pytest.fixture
def table() -> Any:
    return privet.open(privet.datasets.census(2000), privet.datasets.census_domain(), budget=4)


def counting(epsilon: str) -> Branch:
    return Branch(lambda part, *bought: (part.count(epsilon), bought), cost=epsilon)


BRANCHES = {"cheap": counting("0.1"), "dear": counting("0.4")}

# -- probe ----------------------------------------------------------------------------------------


def probing(**more: Any) -> NoisyIf:
    probe = Probe(lambda part: part.histogram("sex", epsilon="0.2"), "0.2", lambda found: {"rows": total(found)})
    return NoisyIf("size", BRANCHES, default="cheap", mode=probe, **more)


@pytest.mark.parametrize("branch", ["cheap", "dear"])
def test_a_probe_costs_itself_and_the_chosen_branch(table: Any, branch: str) -> None:
    outcome = probing(policy=Fixed(branch)).run(table)
    assert outcome.spent == table.budget.spent == F(1, 5) + BRANCHES[branch].cost
    assert probing().reservation == F(3, 5)


def test_a_branch_gets_what_the_probe_bought(table: Any) -> None:
    outcome = probing().run(table)
    _, (bought,) = outcome.value
    assert outcome.context == {"rows": bought.values.sum()}
    assert [entry.question for entry in table.budget.entries] == ["histogram(sex)", "count"]


def test_a_probe_that_does_not_fit_with_the_dearest_branch_asks_nothing(table: Any) -> None:
    table.count("3.5")
    with pytest.raises(BudgetExceeded):
        probing(policy=Fixed("cheap")).run(table)
    assert table.budget.spent == F(7, 2)


def test_a_probe_may_not_hand_on_raw_numbers(table: Any) -> None:
    raw = Probe(lambda part: part.count("0.2"), "0.2", lambda found: {"rows": int(found)})
    with pytest.raises(PrivacyError):
        NoisyIf("size", BRANCHES, default="cheap", mode=raw).run(table)


# -- score ----------------------------------------------------------------------------------------


def test_a_score_costs_the_selection_and_the_chosen_branch(table: Any) -> None:
    mode = Score({"cheap": {"sex": "Male"}, "dear": {"age": (0, 20)}}, "0.5")
    choice = NoisyIf("size", BRANCHES, default="cheap", mode=mode)
    outcome = choice.run(table)
    assert outcome.branch == "cheap"  # hundreds of rows more
    assert outcome.spent == table.budget.spent == F(3, 5)
    assert choice.reservation == F(9, 10)


def test_a_score_by_released_models_takes_the_better_one(table: Any) -> None:
    good = privet.NaiveBayesClassifier(epsilon=1).fit(table).model_
    poor = good.without("wage").without("hours").without("education").without("occupation")
    mode = Score({"good": good.additive, "poor": poor.additive}, "0.5")
    branches = {"good": Branch.of("good"), "poor": Branch.of("poor")}
    outcome = NoisyIf("model", branches, default="poor", mode=mode).run(table)
    assert outcome.value == outcome.branch == "good"
    assert outcome.spent == F(1, 2)


def test_every_branch_needs_a_utility(table: Any) -> None:
    with pytest.raises(QuestionError, match="a utility for each of cheap, dear"):
        NoisyIf("s", BRANCHES, default="cheap", mode=Score({"cheap": {"sex": "Male"}}, 1)).run(table)
    assert table.budget.spent == 0


# -- race -----------------------------------------------------------------------------------------


def racing(target: float | None = None) -> NoisyIf:
    branches = {
        "men": Branch(lambda part: part.where(sex="Male").count("0.2"), cost="0.2"),
        "old": Branch(lambda part: part.where(age=(80, None)).count("0.1"), cost="0.1"),
    }
    judge = Race(lambda part, value: value.map(float), "0.1", stop=F(1, 20), target=target)
    return NoisyIf("who", branches, default="men", mode=judge)


def test_a_race_costs_three_times_its_dearest_run(table: Any) -> None:
    outcome = racing().run(table)
    assert outcome.spent == table.budget.spent == racing().reservation == F(9, 10)
    assert len(table.budget.entries) == 1 and "race" in table.budget.entries[0].question


def test_a_race_to_a_target_costs_twice(table: Any) -> None:
    outcome = racing(target=500).run(table)
    assert outcome.spent == table.budget.spent == F(3, 5)
    assert outcome.branch == "men" or outcome.value is None


def test_a_race_nobody_wins_says_so(table: Any) -> None:
    outcome = racing(target=10**9).run(table)
    assert outcome.value is None and "before the coin stopped" in outcome.why


# -- accuracy first -------------------------------------------------------------------------------


def test_levels_of_one_vector_cost_the_last_of_them(table: Any) -> None:
    outcome = cheapest_model(table, accuracy="7/10", epsilon=2)
    model = outcome.value
    assert isinstance(model, Tables)
    reached = next(level for level in _levels(2) if float(level) == float(outcome.branch))
    assert outcome.spent == table.budget.spent == model.privacy.spent == F(1, 5) + reached
    assert model.privacy.epsilon == 2 and model.privacy.private
    assert [decision.site for decision in model.privacy.decisions] == ["level"]


def _levels(epsilon: int) -> list[Fraction]:
    most = F(epsilon) * F(9, 10)
    return [most / 2**step for step in range(7, -1, -1)]


def test_boosted_tables_cost_the_sum_of_their_levels(table: Any) -> None:
    outcome = cheapest_model(table, accuracy=0.8, epsilon=3, learner="boosted", levels=3)
    model = outcome.value
    least = F(27, 10) / 7
    costs = list(itertools.accumulate([least, 2 * least, 4 * least]))
    assert outcome.spent == table.budget.spent == model.privacy.spent
    assert outcome.spent - F(3, 10) in costs and outcome.spent <= 3
    assert model.privacy.epsilon == 3 and model.privacy.private
    assert model.additive is not None and [decision.site for decision in model.privacy.decisions] == ["level"]
    assert privet.Model.from_json(model.to_json()).privacy == model.privacy


def test_boosted_tables_out_of_reach_cost_the_whole_reservation(table: Any) -> None:
    outcome = cheapest_model(table, accuracy=0.999, epsilon=2, learner="boosted", levels=2)
    assert outcome.spent == table.budget.spent == outcome.value.privacy.spent == 2
    assert outcome.why == "the dearest, unchecked"
    asked = [step.question for step in outcome.value.privacy.steps]
    assert asked.count("boosted tables that were not accurate enough") == 1


def test_learners_and_bins_that_do_not_suit_are_refused_before_a_charge(table: Any) -> None:
    with pytest.raises(QuestionError, match="learner is one of naive-bayes, id3plus, boosted"):
        cheapest_model(table, accuracy=0.8, epsilon=1, learner="c45")
    domain = privet.datasets.census_domain()
    wage = replace(domain.numeric("wage"), bins=10)
    coarse = replace(domain, columns=tuple(wage if column.name == "wage" else column for column in domain))
    people = privet.open(privet.datasets.census(200), coarse, budget=1)
    with pytest.raises(QuestionError, match="declare more than 10 bins"):
        cheapest_model(people, accuracy=0.8, epsilon=1, learner="boosted")
    assert table.budget.spent == people.budget.spent == 0


def test_an_accuracy_out_of_reach_costs_the_reservation_and_is_told(table: Any) -> None:
    outcome = cheapest_model(table, accuracy=0.999, epsilon=2, levels=3)
    assert outcome.spent == table.budget.spent == 2
    assert outcome.why == "the dearest, unchecked"


def test_refitted_models_cost_the_sum(table: Any) -> None:
    def fit(epsilon: str) -> Branch:
        return Branch(lambda part: privet.PriorClassifier(epsilon=epsilon).fit(part).model_, cost=epsilon)

    mode = AccuracyFirst(0.99, "0.1")
    choice = NoisyIf("level", {"0.1": fit("0.1"), "0.2": fit("0.2"), "0.4": fit("0.4")}, default="0.4", mode=mode)
    assert choice.reservation == F(8, 10)
    outcome = choice.run(table)
    assert outcome.branch == "0.4"  # class shares are never 99% right
    assert outcome.spent == table.budget.spent == F(8, 10)


def test_the_reservation_is_refused_before_a_level_is_bought(table: Any) -> None:
    with pytest.raises(BudgetExceeded):
        cheapest_model(table, accuracy=0.8, epsilon=5)
    assert table.budget.spent == 0 and not table.budget.entries


def test_counts_are_refined_for_the_difference_exactly(table: Any) -> None:
    counts = Counts.ask(table, F(1, 3))
    assert table.budget.spent == F(1, 3)
    finer = counts.refine(F(1, 2))
    assert table.budget.spent == F(1, 2)
    assert sum(release.epsilon for release in finer.releases) == F(1, 2)


@pytest.mark.parametrize(
    ("more", "says"),
    [({"levels": 0}, "levels is a whole number"), ({"checks": 2}, "leave some of it"), ({"accuracy": 2}, "accuracy")],
)
def test_bad_levels_are_refused(table: Any, more: dict[str, Any], says: str) -> None:
    with pytest.raises(QuestionError, match=says):
        cheapest_model(table, **{"accuracy": 0.8, "epsilon": 2, **more})
    assert table.budget.spent == 0


def test_empty_tables_finish() -> None:
    empty = privet.open(privet.datasets.census(0), privet.datasets.census_domain(), budget=1)
    outcome = cheapest_model(empty, accuracy=0.8, epsilon=1)
    assert outcome.value.predict(privet.datasets.census(5)).shape == (5,)
    assert np.isfinite(outcome.value.predict_proba(privet.datasets.census(5))).all()


@pytest.mark.skipif(
    not os.environ.get("PRIVET_DATA"), reason="PRIVET_DATA does not name a folder with the UCI files (adult)"
)
def test_adult_reaches_eighty_percent_for_a_fraction_of_the_reservation() -> None:
    """Twenty runs with production noise: the ledger shows the ex-post cost, half of what was reserved at most."""
    adult = privet.datasets.load("adult")
    charges = []
    for _ in range(20):
        with privet.open(adult.frame, adult.domain, budget=1) as table:
            outcome = cheapest_model(table, accuracy=0.8, epsilon=1)
            assert outcome.spent == table.budget.spent == sum(entry.loss for entry in table.budget.entries)
            charges.append(outcome.spent)
    assert np.median(np.array(charges, dtype=float)) <= 0.5


# -- a tree, whose leaves are refined ---------------------------------------------------------------


def test_a_tree_pays_its_splits_once_and_the_difference_for_its_leaves(table: Any) -> None:
    """Splits, all checks, and the last level alone: where the sum of levels was charged this would be dearer."""
    outcome = cheapest_model(table, accuracy=0.999, epsilon=2, learner="id3plus", levels=4)
    model = outcome.value
    assert outcome.why == "the dearest, unchecked"
    assert outcome.spent == table.budget.spent == model.privacy.spent <= 2
    by_question = {step.question: step.epsilon for step in model.privacy.steps}
    assert by_question["class counts of all leaves"] == F(18, 10) * F(3, 4)
    assert by_question["all checks of accuracy"] == F(2, 10)
    refined = [entry.loss for entry in table.budget.entries if entry.question.startswith("refine")]
    assert refined[-3:] == [F(27, 160), F(27, 80), F(27, 40)]  # the differences of 27/160, 27/80, 27/40 and 27/20
    assert privet.Model.from_json(model.to_json()).privacy == model.privacy


def test_a_tree_that_is_accurate_enough_early_is_cheap(table: Any) -> None:
    outcome = cheapest_model(table, accuracy="1/2", epsilon=2, learner="id3plus")
    model = outcome.value
    assert outcome.why == "the first to reach 50%"
    assert outcome.spent == table.budget.spent == model.privacy.spent < 1
    assert model.privacy.private and [decision.site for decision in model.privacy.decisions] == ["level"]
    people = privet.datasets.census(2000)
    assert np.mean(model.predict(people) == people.income.astype(str)) > 0.5


@pytest.mark.parametrize("delta", [None, "1e-6"])
@pytest.mark.parametrize("learner", ["naive-bayes", "id3plus", "boosted"])
def test_the_cheapest_model_never_costs_more_than_it_reserved(learner: str, delta: str | None) -> None:
    more = {} if delta is None else {"delta": delta}
    table = privet.open(privet.datasets.census(1000), privet.datasets.census_domain(), budget=1, **more)
    outcome = cheapest_model(table, accuracy=0.99, epsilon=1, learner=learner, levels=3)
    assert outcome.spent == table.budget.spent == outcome.value.privacy.spent
    assert outcome.value.privacy.private and outcome.value.privacy.spent <= outcome.value.privacy.budget


def test_a_tree_that_cannot_be_paid_is_refused_before_its_splits(table: Any) -> None:
    with pytest.raises(BudgetExceeded):
        cheapest_model(table, accuracy=0.8, epsilon=5, learner="id3plus")
    for wrong in (0, 1.5):
        with pytest.raises(QuestionError, match="accuracy"):
            cheapest_model(table, accuracy=wrong, epsilon=1, learner="id3plus")
    assert table.budget.spent == 0 and not table.budget.entries

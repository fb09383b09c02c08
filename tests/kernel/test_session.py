"""What questions cost: sums, siblings, coins, taken parts, allotments and keys."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel.people import DOMAIN, EXACT, FRAME, LARGE, SOURCES, write_csv

import privet
from privet.errors import BudgetExceeded, KeyReused, QuestionError, UndeclaredDomain
from privet.kernel import Allot, Condition, Divide, Keep, PerPart, Scatter, Split, Step
from privet.kernel.domain import Domain
from privet.release import Choice


def test_spending_adds_up_exactly(table: privet.ProtectedTable) -> None:
    for _ in range(10):
        table.count(0.1)
    assert table.budget.spent == 1 and isinstance(table.budget.spent, Fraction)
    assert table.budget.remaining == LARGE - 1
    assert len(table.budget.entries) == 10
    assert repr(table.budget) == "<budget: 1 spent, 999999 left>"


def test_ten_tenths_fit_a_budget_of_one_and_no_more() -> None:
    table = privet.open(FRAME, DOMAIN, budget="1.0")
    for _ in range(10):
        table.count(0.1)
    with pytest.raises(BudgetExceeded) as caught:
        table.count("1e-9")
    assert (caught.value.requested, caught.value.remaining) == (Fraction(1, 10**9), 0)
    assert len(table.budget.entries) == 10


@pytest.mark.parametrize(
    "step",
    [
        Keep((0, 0)),
        Keep((0, 2)),
        Keep((-1,)),
        Keep((0, 1), (Condition("sex", (0, 7)),)),
        Keep((0, 1), (Condition("sex", None, 0, 1),)),
        Keep((0, 1), (Condition("age", None, -5, 1),)),
        Divide(PerPart.same(Split("sex"), 3)),
        Divide(PerPart.same(Split("age", (9, 3)), 2)),
        Divide(PerPart.same(Split("age", (10**9,)), 2)),
        Divide(PerPart.same(Split("shoe"), 2)),
        Scatter(0, 1),
        Scatter(2, -1),
        Scatter(10_000_000, 1),
        Allot(Fraction(1)),
    ],
    ids=str,
)
def test_the_kernel_checks_steps_that_no_table_would_take(table: privet.ProtectedTable, step: Step) -> None:
    """Parts that share rows would share a maximum that is no bound: whoever calls the kernel, it looks itself."""
    sets = table.scatter(2, 1)._sets
    with pytest.raises((QuestionError, UndeclaredDomain)):
        sets.divide(step, sets.paths)
    assert table.budget.spent == 0


def test_siblings_cost_what_the_dearest_costs(table: privet.ProtectedTable) -> None:
    for value, part in table.partition("sex").items():
        part.count(Fraction(1, 10) if value == "Female" else Fraction(1, 20))
    assert table.budget.spent == Fraction(1, 10)


def test_coins_cost_what_the_dearest_costs_and_a_second_toss_adds(table: privet.ProtectedTable) -> None:
    parts = table.scatter(3, 1)
    parts.count([1, 4, 2])
    parts[0].count(3)  # within what the second part has made the table pay
    assert table.budget.spent == 4
    assert [LARGE - left for left in parts.remaining] == [4, 4, 2]
    parts.scatter(2, 9).count(1)  # coins of coins lie within their part
    assert table.budget.spent == 5
    table.scatter(3, 1).count(1)  # the same coins are another look at every row
    assert table.budget.spent == 6
    table.parts().count(1)  # the table itself, not a part of it
    assert table.budget.spent == 7


def test_a_part_taken_twice_pays_twice(table: privet.ProtectedTable) -> None:
    parts = table.partition("sex")
    parts.take([0, 2]).count(1)
    parts.take([2, 1]).count(1)
    assert [part.budget.spent for part in parts] == [1, 1, 2, 0]
    assert table.budget.spent == 2
    parts.take([3]).count(2)  # within what part 2 has made the table pay
    assert table.budget.spent == 2
    parts.take([0, 2]).take([1]).partition("income").count([1, 2])  # deeper parts are still of part 2
    assert (parts[2].budget.spent, table.budget.spent) == (4, 4)
    parts.take([0, 1, 2, 3]).count(1)
    parts.count(1)
    assert table.budget.spent == 6


def test_taken_parts_stay_within_an_allotment(table: privet.ProtectedTable) -> None:
    parts = table.allot(1).partition("income")
    parts.take([1]).count(1)
    with pytest.raises(BudgetExceeded):
        parts.take([1, 0]).count("0.5")
    assert parts.remaining == [1, 0]
    parts.take([0]).scatter(2, 3).count(1)
    assert (parts.remaining, table.budget.spent) == ([0, 0], 1)


@given(st.lists(st.tuples(st.permutations(range(4)), st.integers(0, 4), st.integers(1, 9)), max_size=6))
@settings(derandomize=True, deadline=None, max_examples=30)
def test_the_table_pays_the_dearest_part_however_parts_are_taken(asked: list[tuple[list[int], int, int]]) -> None:
    table = privet.open(FRAME.iloc[:5], DOMAIN, budget=LARGE)
    parts = table.partition("sex")
    paid = [0] * 4
    for order, size, tenths in asked:
        some = parts.take(order[:size])
        if size % 2:
            some.majority("age", Fraction(tenths, 10))
        else:
            some.take(range(size)).scatter(2, tenths).count(Fraction(tenths, 10))
        for part in order[:size]:
            paid[part] += tenths
    assert [part.budget.spent * 10 for part in parts] == paid
    assert table.budget.spent * 10 == max(paid)


def test_several_histograms_cost_exactly_what_was_asked_for(table: privet.ProtectedTable) -> None:
    parts = table.partition("income")
    groups = [[("sex",), ("age",), ("sex", "age"), ("sex",), ("body height",), ("age", "income"), ("income",)]]
    groups.append([("age",)])
    third = Fraction(1, 3)
    found = parts.histograms(groups, [third, 2 * third])
    assert [len(own) for own in found] == [7, 1]
    assert sum(each.noise.loss for each in found[0]) == third
    assert {each.noise.loss for each in found[0]} == {third / 7}
    assert found[1][0].noise.loss == 2 * third
    assert found[0][5].columns == ("age", "income") and found[0][5].values.shape == (5, 2)
    assert [part.budget.spent for part in parts] == [third, 2 * third]
    assert table.budget.spent == 2 * third
    (entry,) = table.budget.entries
    assert {each.about.entry for own in found for each in own} == {entry.id}
    again = parts.histograms(groups, 1, key="k")
    stored = parts.histograms(groups, 1, key="k")
    assert [each.values.tolist() for own in again for each in own] == [
        each.values.tolist() for own in stored for each in own
    ]
    with pytest.raises(KeyReused):
        parts.histograms([groups[1], groups[1]], 1, key="k")


def test_each_of_several_histograms_says_what_it_cost(table: privet.ProtectedTable) -> None:
    ((sex, age),) = table.parts().histograms([[("sex",), ("age",)]], 1)
    assert sex.epsilon == age.epsilon == Fraction(1, 2)


def test_a_majority_and_a_choice_cost_what_was_asked_for(table: privet.ProtectedTable) -> None:
    parts = table.partition("income")
    parts.majority("sex", [1, "0.5"])
    assert (table.budget.spent, table.budget.entries[-1].question) == (1, "majority(sex)")
    answer = table.majority("sex", 1)
    assert isinstance(answer, Choice) and answer.threshold is None
    assert answer.shortfall(0.95) == pytest.approx(math.log(4 / 0.05))  # four cells, a unit of score is worth 1
    for number, mechanism in enumerate(("permute-and-flip", "exponential", "noisy-max")):
        for monotone in (True, False):
            choice = parts.select("gini", 1, attributes=["sex", ("age", 30)], mechanism=mechanism, monotone=monotone)[0]
            assert (choice.epsilon, choice.mechanism.loss, choice.candidates) == (1, 1, 2)
            assert choice.mechanism.rate == Fraction(1, 2048 if monotone else 4096)  # of 1 / 1024
        assert table.budget.spent == 2 + 2 * (number + 1)


def test_a_key_tells_choices_apart_by_their_candidates_and_mechanism(table: privet.ProtectedTable) -> None:
    def ask(**more: Any) -> Choice:
        return table.select("max", 1, key="k", **{"attributes": ["sex", ("age", 30)], **more})

    first = ask()
    assert all(repr(ask()) == repr(first) for _ in range(3))
    assert repr(ask(attributes=["sex", ("age", 30.5)])) == repr(first)  # the same point of the grid
    for other in (
        {"attributes": ["sex", ("age", 31)]},
        {"attributes": [("age", 30), "sex"]},
        {"attributes": ["sex", "age"]},
        {"mechanism": "exponential"},
        {"monotone": False},
        {"attributes": ["sex", "age"], "thresholds": True},
    ):
        with pytest.raises(KeyReused):
            ask(**other)
    for coins in (table.scatter(2, 1), table.scatter(2, 2), table.scatter(3, 1)):
        with pytest.raises(KeyReused):
            coins.count(1, key="k")
    table.scatter(2, 1).count(1, key="coins")
    with pytest.raises(KeyReused):
        table.scatter(2, 2).count(1, key="coins")
    assert table.budget.spent == 2


def test_parts_may_be_taken_by_the_numbers_of_numpy(tmp_path: Path) -> None:
    with privet.open(write_csv(tmp_path), DOMAIN, budget=LARGE) as table:
        parts = table.partition("sex")
        answer = parts.take([1]).count(EXACT, key="k")
        assert parts.take(np.flatnonzero([0, 1])).count(EXACT, key="k") == answer


def test_a_part_may_use_what_its_siblings_have_made_the_table_pay() -> None:
    table = privet.open(FRAME, DOMAIN, budget=1)
    parts = table.partition("income")
    parts[0].count(1)
    assert table.budget.remaining == 0
    assert parts.remaining == [0, 1]
    assert parts[1].budget.remaining == 1
    parts[1].count(1)
    assert (table.budget.spent, parts[1].budget.spent, parts.remaining) == (1, 1, [0, 0])


def test_an_allotment_limits_all_parts_below_it(table: privet.ProtectedTable) -> None:
    some = table.allot("0.5")
    some.partition("sex").count(0.3)
    assert some.budget.remaining == Fraction(1, 5)
    with pytest.raises(BudgetExceeded):
        some.count(0.3)
    some.where(sex="Male").count(0.2)
    assert table.budget.spent == Fraction(1, 2)


def test_people_with_several_rows_get_more_noise_for_the_same_charge() -> None:
    one = privet.open(FRAME, DOMAIN, budget=LARGE)
    five = privet.open(FRAME, Domain(DOMAIN.columns, "income", max_rows=1000, rows_per_person=5), budget=LARGE)
    asks: list[Callable[[privet.ProtectedTable], Any]] = [
        lambda table: table.count(1).noise.scale,
        lambda table: table.histogram("sex", epsilon=1).noise.scale,
        lambda table: table.sum("age", 1).noise.scale,
        lambda table: table.mean("age", 1).deviation.noise.scale,
        lambda table: table.mean("age", 1).count.noise.scale,
        lambda table: 1 / float(table.median("age", 1).mechanism.rate),
        lambda table: 1 / float(table.select("max", 1).mechanism.rate),
        lambda table: 1 / float(table.select("max", 1, thresholds=True).mechanism.rate),
        lambda table: table.residual_sums(privet.AdditiveModel((0, 0)), ("sex",), (9, 9), 1).noise.own[0].scale,
        lambda table: 1 / float(table.select("max", 1, mechanism="exponential").mechanism.rate),
        lambda table: 1 / float(table.select("max", 1, attributes=[("age", 9)], mechanism="noisy-max").mechanism.rate),
        lambda table: 1 / float(table.majority("sex", 1).mechanism.rate),
        lambda table: table.parts().histograms([[("sex",), ("age",)]], 1)[0][1].noise.scale,
        lambda table: table.scatter(2, 1).count(1)[1].noise.scale,
    ]
    for ask in asks:
        assert ask(five) == pytest.approx(5 * ask(one))
    assert five.budget.spent == one.budget.spent == len(asks)
    assert five.count(1).epsilon == 1


@pytest.mark.parametrize("kind", [*SOURCES, "snapshot"])
def test_seeded_noise_gives_the_same_answers_everywhere_and_says_so(kind: str, tmp_path: Path) -> None:
    def answers(table: privet.ProtectedTable) -> list[Any]:
        parts = table.partition("sex")
        found = [
            *parts.count(1),
            *parts.mean("age", 1),
            table.sum("age", 1),
            table.median("age", 1),
            *parts.select("max", 1),
            table.select("gini", 1, thresholds=True),
            *parts.select("max", 1, attributes=["sex", ("age", 30), ("body height", 1.5)], mechanism="exponential"),
            table.select("gini", 1, mechanism="noisy-max", monotone=False),
            *table.scatter(3, 4).majority("age", 1),
            *(each for own in parts.histograms([[("sex",), ("age",)]] * 4, 1) for each in own),
            table.histogram("sex", "age", epsilon=1),
            table.residual_sums(privet.AdditiveModel((0, 0)), ("sex",), (9, 9), 1),
        ]
        assert not any(answer.private for answer in found)
        assert all("NOT PRIVATE" in repr(answer) for answer in found)
        return [answer.own.tolist() if hasattr(answer, "own") else np.asarray(answer).tolist() for answer in found]

    source = SOURCES["csv" if kind == "snapshot" else kind](tmp_path)
    path = "snapshot" if kind == "snapshot" else "push-down"
    with privet.testing.seeded_noise(7):
        expected = privet.open(FRAME, DOMAIN, budget=LARGE)
    with privet.testing.open(source, DOMAIN, LARGE, seed=7, access=path) as table:
        assert answers(table) == answers(expected)

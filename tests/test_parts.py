"""Partitions: which rows a part holds, its label, and questions about all parts at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from kernel.people import AGE, DOMAIN, EXACT, FRAME, SEX, counts

import privet
from privet.errors import QuestionError, UndeclaredDomain
from privet.kernel import PerPart, Split
from privet.release import Choice, Releases

# --- partition ----------------------------------------------------------------------------------------------------


def test_a_partition_by_bins_is_labelled_with_them(table: privet.ProtectedTable) -> None:
    assert counts(table.partition("age")) == {
        "[0, 20)": (AGE < 20).sum(),
        "[20, 40)": ((AGE >= 20) & (AGE < 40)).sum(),
        "[40, 60)": ((AGE >= 40) & (AGE < 60)).sum(),
        "[60, 100]": (AGE >= 60).sum(),
        "<missing>": AGE.isna().sum(),
    }


def test_a_partition_by_own_edges(table: privet.ProtectedTable) -> None:
    assert counts(table.partition("age", edges=[10, 30])) == {
        "[0, 10)": (AGE < 10).sum(),
        "[10, 30)": ((AGE >= 10) & (AGE < 30)).sum(),
        "[30, 100]": (AGE >= 30).sum(),
        "<missing>": AGE.isna().sum(),
    }


def test_a_partition_at_a_threshold_sends_equal_values_left(table: privet.ProtectedTable) -> None:
    assert counts(table.partition(("age", 50))) == {
        "<= 50": (AGE <= 50).sum(),
        "> 50": (AGE > 50).sum(),
        "<missing>": AGE.isna().sum(),
    }
    assert table.partition(("body height", 1.25)).labels == ["<= 1.2", "> 1.2"]


def test_a_partition_by_what_select_released(table: privet.ProtectedTable) -> None:
    best = table.select("max", EXACT, thresholds=True)
    assert table.partition(best).labels == ["<= 50", "> 50", "<missing>"]
    assert table.partition(table.select("max", EXACT)).labels == list(DOMAIN["age"].labels)
    assert table.partition(Choice("sex", None, best.mechanism, 1, 1, best.about)).labels == list(DOMAIN["sex"].labels)


def test_each_part_may_be_divided_in_its_own_way_or_closed(table: privet.ProtectedTable) -> None:
    parts = table.partition("sex").partition(["income", ("age", 50), None, "body height"])
    assert parts.labels == ["low", "high", "<= 50", "> 50", "<missing>", "[1, 1.5)", "[1.5, 2]"]
    assert parts.paths[0] == "all rows / sex = Female / income = low"
    assert parts.paths[-1] == "all rows / sex = <missing> / body height in [1.5, 2]"
    female, male, missing = SEX == "Female", SEX == "Male", SEX == "<missing>"
    assert parts.count(EXACT).array().tolist() == [
        (female & (FRAME["income"] == "low")).sum(),
        (female & (FRAME["income"] == "high")).sum(),
        (male & (AGE <= 50)).sum(),
        (male & (AGE > 50)).sum(),
        (male & AGE.isna()).sum(),
        (missing & (FRAME["body height"] < 1.5)).sum(),
        (missing & (FRAME["body height"] >= 1.5)).sum(),
    ]


def test_the_kernels_own_splits_divide_as_the_words_for_them(table: privet.ProtectedTable) -> None:
    by_sex = table.partition("sex")
    parts = by_sex.partition(PerPart.of([Split("age", (51,)), Split("age"), None, None]))  # from 0 on: 50 goes left
    same = by_sex.partition([("age", 50), "age", None, None])
    assert parts.paths == same.paths and parts.labels == same.labels
    assert parts.count(EXACT).array().tolist() == same.count(EXACT).array().tolist()
    with pytest.raises(QuestionError, match="outside its bounds"):
        by_sex.partition(PerPart.same(Split("age", (0,)), 4))
    with pytest.raises(QuestionError, match="1 splits were given for 4 parts"):
        by_sex.partition(PerPart.same(Split("age"), 1))


def test_parts_are_tables_by_number_by_label_and_in_order(table: privet.ProtectedTable) -> None:
    parts = table.partition("income")
    low, high = parts
    assert len(parts) == 2
    assert low.count(EXACT) == parts[0].count(EXACT) == parts["low"].count(EXACT) == parts[-2].count(EXACT)
    assert [label for label, _ in parts.items()] == parts.labels == ["low", "high"]
    assert low.count(EXACT) + high.count(EXACT) == len(FRAME)


def test_parts_may_be_narrowed_together(table: privet.ProtectedTable) -> None:
    parts = table.partition("income").where(sex="Male")
    assert parts.count(EXACT).array().tolist() == [
        ((FRAME["income"] == label) & (SEX == "Male")).sum() for label in parts.labels
    ]


def test_a_closed_partition_asks_and_charges_nothing(table: privet.ProtectedTable) -> None:
    nothing = table.partition(None)
    assert len(nothing) == 0
    assert nothing.count(1) == () and nothing.histogram("sex", epsilon=1) == ()
    assert nothing.partition("sex").count(1) == ()
    assert nothing.scatter(3, 1).count(1) == () and nothing.histograms([], 1) == ()
    assert table.partition("sex").take([]).majority("age", 1) == ()
    assert table.budget.entries == []


WRONG_PARTITIONS: dict[str, tuple[Callable[[privet.ProtectedTable], Any], type[Exception]]] = {
    "unknown column": (lambda table: table.partition("zip"), UndeclaredDomain),
    "threshold on texts": (lambda table: table.partition(("sex", 5)), QuestionError),
    "edges on texts": (lambda table: table.partition("sex", edges=[1]), QuestionError),
    "threshold outside": (lambda table: table.partition(("age", 100)), QuestionError),
    "threshold below": (lambda table: table.partition(("age", -1)), QuestionError),
    "threshold nan": (lambda table: table.partition(("age", math.nan)), QuestionError),
    "falling edges": (lambda table: table.partition("age", edges=[30, 10]), QuestionError),
    "no edges": (lambda table: table.partition("age", edges=[]), QuestionError),
    "edge outside": (lambda table: table.partition("age", edges=[500]), QuestionError),
    "too few splits": (lambda table: table.partition("sex").partition(["age"]), QuestionError),
    "pair without threshold": (lambda table: table.partition([("age",)]), QuestionError),
    "no such part": (lambda table: table.partition("sex")["Martian"], QuestionError),
    "take a part twice": (lambda table: table.partition("sex").take([1, 1]), QuestionError),
    "take a part beyond the last": (lambda table: table.partition("sex").take([0, 4]), QuestionError),
    "take a part before the first": (lambda table: table.partition("sex").take([-1]), QuestionError),
}
WRONG_PARTITIONS |= {
    f"scatter into {parts!r}": (lambda table, parts=parts: table.scatter(parts, 1), QuestionError)
    for parts in (0, -1, 2.0, 2.5, "3", True, None, 10_001, math.nan, math.inf, [2])
}
WRONG_PARTITIONS |= {
    f"scatter by {seed!r}": (lambda table, seed=seed: table.scatter(2, seed), QuestionError)
    for seed in (-1, None, 1.0, 1.5, True, "7", math.nan)
}


@pytest.mark.parametrize("wrong", WRONG_PARTITIONS)
def test_a_wrong_partition_is_refused_in_a_sentence(table: privet.ProtectedTable, wrong: str) -> None:
    ask, error = WRONG_PARTITIONS[wrong]
    with pytest.raises(error) as caught:
        ask(table)
    assert "\n" not in str(caught.value)
    assert table.budget.entries == []


def test_a_part_beyond_the_last_ends_a_loop(table: privet.ProtectedTable) -> None:
    with pytest.raises(IndexError):
        table.partition("sex")[4]


# --- questions about all parts at once ----------------------------------------------------------------------------


def test_each_part_may_have_its_own_epsilon(table: privet.ProtectedTable) -> None:
    parts = table.partition("income")
    first, second = parts.count([1, "0.25"])
    assert (first.epsilon, second.epsilon) == (1, Fraction(1, 4))
    assert (first.noise.scale, second.noise.scale) == (1, 4)
    assert table.budget.spent == 1
    assert table.budget.entries[-1].epsilon == "0.25 to 1"


def test_each_part_may_choose_among_its_own_attributes(table: privet.ProtectedTable) -> None:
    parts = table.partition("income")
    assert parts.select("max", EXACT, attributes=[["sex"], ["body height"]]) == ("sex", "body height")
    assert parts.select("max", EXACT, attributes=["sex"]) == ("sex", "sex")
    assert parts.select("max", EXACT, attributes="sex") == ("sex", "sex")


def test_every_question_answers_all_parts_with_one_charge(table: privet.ProtectedTable) -> None:
    parts = table.partition("sex")
    model = privet.AdditiveModel((0, 0))
    answers: list[Releases[Any]] = [
        parts.count(EXACT),
        parts.sum("age", EXACT),
        parts.mean("age", EXACT),
        parts.median("age", EXACT),
        parts.quantile("age", Fraction(1, 3), EXACT),
        parts.histogram("age", epsilon=EXACT),
        parts.select("max", EXACT),
        parts.select("max", EXACT, thresholds=True),
        parts.select_residuals(model, [("age",), ("sex",)], (100, 100), EXACT),
        parts.residual_sums(model, ("age",), (100, 100), EXACT),
        parts.select("max", EXACT, attributes=["age", ("age", 30)], mechanism="exponential"),
        parts.majority("age", EXACT),
    ]
    assert all(isinstance(answer, Releases) and len(answer) == 4 for answer in answers)
    assert len(table.budget.entries) == len(answers)
    assert table.budget.spent == EXACT * len(answers)
    sums = answers[1].array()
    for value, label in zip(sums, parts.labels, strict=True):
        assert value == AGE[SEX == label].sum()

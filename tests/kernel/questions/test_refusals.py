"""Wrong questions are refused in a sentence before anything is charged."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernel.people import DOMAIN, EXACT, FRAME, LARGE

import privet
from privet.errors import NotPrivate, PrivacyError, QuestionError, UndeclaredDomain
from privet.kernel import Max, WeightedMax
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.lab import GainRatio, paper_noise

WRONG_QUESTIONS: dict[str, tuple[Callable[[privet.ProtectedTable], Any], type[Exception]]] = {
    "sum of texts": (lambda table: table.sum("sex", 1), QuestionError),
    "unknown column": (lambda table: table.mean("name", 1), UndeclaredDomain),
    "rank above 1": (lambda table: table.quantile("age", 1.5, 1), QuestionError),
    "rank nan": (lambda table: table.quantile("age", math.nan, 1), QuestionError),
    "rank of words": (lambda table: table.quantile("age", "most", 1), QuestionError),
    "no columns": (lambda table: table.histogram(epsilon=1), QuestionError),
    "a column twice": (lambda table: table.histogram("sex", "sex", epsilon=1), QuestionError),
    "unknown criterion": (lambda table: table.select("best", 1), QuestionError),
    "unknown mechanism": (lambda table: table.select("max", 1, mechanism="best"), QuestionError),
    "a mechanism of one's own": (
        lambda table: table.select("max", 1, mechanism=paper_noise.ExactChoice),
        QuestionError,
    ),
    "gain ratio": (lambda table: table.select("gain-ratio", 1), NotPrivate),
    "gain ratio with thresholds": (lambda table: table.select(GainRatio(), 1, thresholds=True), NotPrivate),
    "gain ratio without an end": (lambda table: table.select(GainRatio(), math.inf), NotPrivate),
    "own gain ratio": (lambda table: table.select(type("Mine", (GainRatio,), {"sensitivity": 1})(), 1), QuestionError),
    "a pair of texts": (lambda table: table.select("max", 1, attributes=[("sex", 5)]), QuestionError),
    "a pair with the target": (lambda table: table.select("max", 1, attributes=[("income", 5)]), QuestionError),
    "a pair of nobody knows what": (lambda table: table.select("max", 1, attributes=[("zip", 5)]), UndeclaredDomain),
    "a pair outside": (lambda table: table.select("max", 1, attributes=["sex", ("age", 100)]), QuestionError),
    "a pair below": (lambda table: table.select("max", 1, attributes=["sex", ("age", -1)]), QuestionError),
    "a pair with nan": (lambda table: table.select("max", 1, attributes=[("age", math.nan)]), QuestionError),
    "a pair with nothing": (lambda table: table.select("max", 1, attributes=[("age", None)]), QuestionError),
    "three of a pair": (lambda table: table.select("max", 1, attributes=["sex", ("age", 1, 2)]), QuestionError),
    "pairs where thresholds are chosen": (
        lambda table: table.select("max", 1, attributes=[("age", 30)], thresholds=True),
        QuestionError,
    ),
    "majority of an unknown column": (lambda table: table.majority("name", 1), UndeclaredDomain),
    "histograms of nothing": (lambda table: table.parts().histograms([[]], 1), QuestionError),
    "a histogram of no column": (lambda table: table.parts().histograms([[("sex",), ()]], 1), QuestionError),
    "histograms for other parts": (lambda table: table.parts().histograms([[("sex",)]] * 2, 1), QuestionError),
    "a histogram of an unknown column": (lambda table: table.parts().histograms([[("name",)]], 1), UndeclaredDomain),
    "own criterion": (lambda table: table.select(type("Mine", (Max,), {"sensitivity": 0})(), 1), QuestionError),
    "the target as attribute": (lambda table: table.select("max", 1, attributes=["income"]), QuestionError),
    "no attributes": (lambda table: table.select("max", 1, attributes=[]), QuestionError),
    "attributes for other parts": (lambda table: table.select("max", 1, attributes=[["sex"], ["age"]]), QuestionError),
    "two epsilons for one part": (lambda table: table.count([1, 1]), QuestionError),
    "three weights for two classes": (lambda table: table.select(WeightedMax((1, 2, 3)), 1), QuestionError),
    "empty key": (lambda table: table.count(1, key=""), QuestionError),
    "numeric key": (lambda table: table.count(1, key=7), QuestionError),
    "model over the target": (
        lambda table: table.residual_sums(
            privet.AdditiveModel((0, 0), ((("income",), np.zeros((2, 2), np.int32)),)), ("sex",), (1, 1), 1
        ),
        QuestionError,
    ),
    "caps above one": (
        lambda table: table.residual_sums(privet.AdditiveModel((0, 0)), ("sex",), (2000, 1), 1),
        QuestionError,
    ),
    "fractional table": (
        lambda table: table.residual_sums(
            privet.AdditiveModel((0, 0), ((("sex",), np.zeros((4, 2))),)), ("sex",), (1, 1), 1
        ),
        QuestionError,
    ),
    "logits too large": (
        lambda table: table.residual_sums(privet.AdditiveModel((2**24, -(2**24) - 1)), ("sex",), (1, 1), 1),
        QuestionError,
    ),
}
# What a person sees today instead: a TypeError, or an engine that fails after the charge.
WRONG_WITHOUT_A_SENTENCE: dict[str, Callable[[privet.ProtectedTable], Any]] = {
    "take by label": lambda table: table.partition("sex").take(["Male"]),
    "take half a part": lambda table: table.partition("sex").take([0.5]),
    "the mechanism of thresholds": lambda table: table.select("max", 1, mechanism="over ranges"),
    "an unknown mechanism of thresholds": lambda table: table.select("max", 1, thresholds=True, mechanism="best"),
    "a list of mechanisms": lambda table: table.select("max", 1, mechanism=["exponential"]),
    "a number as attribute": lambda table: table.select("max", 1, attributes=[3]),
    "one list for two parts": lambda table: table.partition("income").select("max", 1, attributes=["age", ["sex"]]),
    "a histogram of a list": lambda table: table.parts().histograms([[["sex"]]], 1),
    "a histogram of a column twice": lambda table: table.parts().histograms([[("sex", "sex")]], 1),
}
EPSILONS = [0, -1, -0.0, math.nan, math.inf, "abc", "", "1e-400", 1e-320, "0", "-1", "1/0", "0/1", 10**7, None, True]
EPSILONS += [
    1j,
    b"1",
    [],
    {},
    "0x1",
    "\u0661",
    "1_0",
    "nan",
    "inf",
    "1e400",
    "9" * 100,
    float("-inf"),
    np.float64("nan"),
]


@pytest.mark.parametrize("wrong", WRONG_QUESTIONS)
def test_a_wrong_question_is_refused_in_a_sentence(table: privet.ProtectedTable, wrong: str) -> None:
    ask, error = WRONG_QUESTIONS[wrong]
    with pytest.raises(error) as caught:
        ask(table)
    assert "\n" not in str(caught.value)
    assert table.budget.entries == []


@pytest.mark.parametrize("wrong", WRONG_WITHOUT_A_SENTENCE)
def test_a_wrong_question_is_refused_before_anything_else_goes_wrong(table: privet.ProtectedTable, wrong: str) -> None:
    with pytest.raises(QuestionError, match=r"\.$"):
        WRONG_WITHOUT_A_SENTENCE[wrong](table)
    assert table.budget.entries == []


@pytest.mark.parametrize("epsilon", EPSILONS, ids=repr)
def test_a_wrong_epsilon_is_refused_by_every_question(table: privet.ProtectedTable, epsilon: Any) -> None:
    model = privet.AdditiveModel((0, 0))
    parts = table.partition("income")
    asks: list[Callable[[], Any]] = [
        lambda: table.count(epsilon),
        lambda: table.sum("age", epsilon),
        lambda: table.mean("age", epsilon),
        lambda: table.median("age", epsilon),
        lambda: table.quantile("age", 0.1, epsilon),
        lambda: table.histogram("sex", epsilon=epsilon),
        lambda: table.select("max", epsilon),
        lambda: table.select("max", epsilon, thresholds=True),
        lambda: table.select("max", epsilon, attributes=[("age", 30)], mechanism="noisy-max", monotone=False),
        lambda: table.majority("sex", epsilon),
        lambda: parts.histograms([[("sex",)], [("age",), ("sex",)]], epsilon),
        lambda: parts.histograms([[("sex",)], [("age",)]], [1, epsilon]),
        lambda: table.scatter(2, 1).majority("sex", [epsilon, 1]),
        lambda: table.select_residuals(model, [("sex",)], (1, 1), epsilon),
        lambda: table.residual_sums(model, ("sex",), (1, 1), epsilon),
        lambda: parts.count([1, epsilon]),
        lambda: table.allot(epsilon),
    ]
    for ask in asks:
        with pytest.raises(QuestionError) as caught:
            ask()
        assert "\n" not in str(caught.value)
    assert table.budget.entries == []
    assert table.budget.spent == 0


def test_information_gain_needs_a_public_bound_on_the_size() -> None:
    small = Domain(DOMAIN.columns, target="income")
    table = privet.open(FRAME, small, budget=1)
    with pytest.raises(PrivacyError, match="max_rows"):
        table.select("infogain", 1)
    assert table.budget.entries == []


def test_a_table_without_a_target_can_be_counted_but_not_split() -> None:
    table = privet.open(FRAME, Domain(DOMAIN.columns), budget=LARGE)
    assert table.count(EXACT) == len(FRAME)
    with pytest.raises(UndeclaredDomain, match="target"):
        table.select("max", 1)


def test_a_question_with_too_many_cells_is_refused_before_it_is_charged() -> None:
    wide = Domain(tuple(Nominal(name, tuple(range(1000))) for name in "abc"))
    table = privet.open(pd.DataFrame({"a": [1], "b": [2], "c": [3]}), wide, budget=1)
    with pytest.raises(QuestionError, match="1000000000 cells"):
        table.histogram("a", "b", "c", epsilon=1)
    with pytest.raises(QuestionError, match="1000000000 cells"):
        table.parts().histograms([[("a", "b", "c")]], 1)
    with pytest.raises(QuestionError, match="4400000 cells"):  # not one of them has too many
        table.parts().histograms([[("a", "b")] * 4 + [("b",)] * 400], 1)
    assert table.budget.entries == []


def test_a_majority_or_coins_of_too_many_parts_are_refused_before_they_are_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for question in ("counts", "splits"):
        monkeypatch.setattr(f"privet.kernel.questions.{question}.MAX_CELLS", 1_000)
    monkeypatch.setattr("privet.kernel.rows.MAX_PARTS", 1_000)
    wide = Domain(tuple(Nominal(name, tuple(range(100))) for name in "ab"))
    table = privet.open(pd.DataFrame({"a": [1], "b": [2]}), wide, budget=1)
    with pytest.raises(QuestionError, match="10000 cells"):
        table.partition("a").majority("b", 1)
    with pytest.raises(QuestionError, match="2000 parts"):
        table.partition("a").scatter(20, 1)
    classed = privet.open(pd.DataFrame({"a": [1], "b": [2]}), Domain(wide.columns, target="b"), budget=1)
    with pytest.raises(QuestionError, match="10000 cells"):
        classed.partition("a").select("max", 1, attributes=["a"], thresholds=True)
    assert classed.budget.entries == []
    assert table.budget.entries == []

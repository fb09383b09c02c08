"""Conditions keep the rows that they say, and wrong ones are refused in a sentence."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from kernel.people import AGE, EXACT, FRAME, SEX

import privet
from privet.errors import QuestionError, UndeclaredDomain

CONDITIONS: dict[str, tuple[dict[str, Any], Any]] = {
    "value": ({"sex": "Female"}, SEX == "Female"),
    "set": ({"sex": {"Female", "Male"}}, SEX.isin(["Female", "Male"])),
    "frozen set": ({"sex": frozenset({"Male"})}, SEX == "Male"),
    "list with other": ({"sex": ["Female", "<other>"]}, SEX.isin(["Female", "<other>"])),
    "tuple of values": ({"sex": ("Female", "Male")}, SEX.isin(["Female", "Male"])),
    "missing": ({"sex": "<missing>"}, SEX == "<missing>"),
    "no value": ({"sex": []}, SEX == "nobody"),
    "range": ({"age": (30, 40)}, (AGE >= 30) & (AGE < 40)),
    "open below": ({"age": (None, 40)}, AGE < 40),
    "open above": ({"age": (40, None)}, AGE >= 40),
    "open range": ({"age": (None, None)}, AGE.notna()),
    "empty range": ({"age": (40, 40)}, AGE < 0),
    "wide range": ({"age": (-1e300, 1e300)}, AGE.notna()),
    "range between points": ({"age": (29.5, 40.5)}, (AGE >= 30) & (AGE <= 40)),
    "number at the bound": ({"age": 100}, AGE == 100),
    "float": ({"age": 33.0}, AGE == 33),
    "fraction": ({"age": Fraction(33)}, AGE == 33),
    "numpy integer": ({"age": np.int64(33)}, AGE == 33),
    "missing number": ({"age": "<missing>"}, AGE.isna()),
    "bins": ({"age": {"[20, 40)", "<missing>"}}, AGE.isna() | ((AGE >= 20) & (AGE < 40))),
    "tenths": ({"body height": 1.3}, FRAME["body height"] == 1.3),
    "range of tenths": ({"body height": (1.3, 1.7)}, FRAME["body height"].isin([1.3, 1.5])),
    "two columns": ({"sex": "Male", "income": "high"}, (SEX == "Male") & (FRAME["income"] == "high")),
    "nothing": ({}, AGE.isna() | AGE.notna()),
}


@pytest.mark.parametrize("kind", CONDITIONS)
def test_a_condition_keeps_the_rows_it_says(table: privet.ProtectedTable, kind: str) -> None:
    condition, truth = CONDITIONS[kind]
    assert table.where(condition).count(EXACT) == truth.sum()


def test_conditions_may_be_a_mapping_keywords_or_both(table: privet.ProtectedTable) -> None:
    both = table.where({"body height": 1.3}, sex="Male")
    assert both.count(EXACT) == ((FRAME["body height"] == 1.3) & (SEX == "Male")).sum()
    assert table.where().count(EXACT) == len(FRAME)


def test_conditions_add_up(table: privet.ProtectedTable) -> None:
    narrow = table.where(sex="Male").where(age=(None, 50)).where(age=(20, None))
    assert narrow.count(EXACT) == ((SEX == "Male") & (AGE >= 20) & (AGE < 50)).sum()


def test_the_path_says_which_rows_are_meant(table: privet.ProtectedTable) -> None:
    narrow = table.where({"body height": (1.3, None)}, sex={"Male", "Female"}).partition("age", [30])[1]
    narrow.count(1)
    assert table.budget.entries[-1].scope == (
        "all rows where body height in [1.3, ) and sex in {Female, Male} / age > 29"
    )


WRONG_CONDITIONS = {
    "unknown column": ({"shoe size": 4}, UndeclaredDomain),
    "undeclared value": ({"sex": "Martian"}, QuestionError),
    "undeclared value in a set": ({"sex": {"Male", "Martian"}}, QuestionError),
    "no such cell": ({"income": "<missing>"}, QuestionError),
    "none": ({"sex": None}, QuestionError),
    "not a number": ({"age": "30"}, QuestionError),
    "nan": ({"age": math.nan}, QuestionError),
    "infinite": ({"age": (0, math.inf)}, QuestionError),
    "truth value": ({"age": True}, QuestionError),
    "three sides": ({"age": (1, 2, 3)}, QuestionError),
    "range of texts": ({"age": ("1", "2")}, QuestionError),
    "reversed range": ({"age": (40, 30)}, QuestionError),
    "beyond floats": ({"age": 10**400}, QuestionError),
    "a million digits": ({"age": (None, 10**1_000_000)}, QuestionError),
    "a huge exponent": ({"age": (None, Decimal("1e100000000"))}, QuestionError),
    "a huge denominator": ({"age": (0, Fraction(1, 3**1_000_000))}, QuestionError),
    "a list without end": ({"sex": ["Male"] * 100_000}, QuestionError),
    "complex": ({"age": 1j}, QuestionError),
    "code": ({"age": lambda row: True}, QuestionError),
    "nested": ({"sex": [["Male"]]}, QuestionError),
}


@pytest.mark.parametrize("wrong", WRONG_CONDITIONS)
def test_a_wrong_condition_is_refused_in_a_sentence(table: privet.ProtectedTable, wrong: str) -> None:
    condition, error = WRONG_CONDITIONS[wrong]
    with pytest.raises(error) as caught:
        table.where(condition)
    assert "\n" not in str(caught.value)
    assert table.budget.entries == []

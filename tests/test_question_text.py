"""Questions in words mean what the methods mean, and nothing else."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest

import privet
from privet.errors import QuestionError, UndeclaredDomain
from privet.kernel.column import Nominal, Numeric
from privet.kernel.date import Date
from privet.kernel.domain import Domain
from privet.question_text import TextQuestion

DOMAIN = Domain.parse("""
target = "income"
[columns.age]
kind = "numeric"
low = 0
high = 100
bins = 4
[columns."marital status"]
kind = "nominal"
values = ["single", "married, civil", "and"]
missing = true
[columns.income]
kind = "nominal"
values = ["<=50K", ">50K"]
""")


@pytest.fixture
def table() -> privet.ProtectedTable:
    frame = pd.DataFrame(
        {
            "age": [10, 20, 30, 40, 50, 60, 70, 80],
            "marital status": ["single", "married, civil", "and", None] * 2,
            "income": ["<=50K", "<=50K", "<=50K", ">50K"] * 2,
        }
    )
    return privet.open(frame, DOMAIN, budget="1000000")


def exactly(table: privet.ProtectedTable, question: str) -> list[int]:
    """With so much budget the noise is 0 in all but one of 10^40 runs."""
    return [int(release) for _, release in TextQuestion.parse(question).ask(table, "100")]  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("count", [8]),
        ("count where age = 30", [1]),
        ("count where age in 30..50", [2]),
        ("count where age in ..50", [4]),
        ("count where age in 50..", [4]),
        ("count where age < 30", [2]),
        ("count where age <= 30", [3]),
        ("count where age <= 30.5", [3]),
        ("count where age > 30", [5]),
        ("count where age >= 30", [6]),
        ("count where age > 30 and age-like = 1", None),
        ('count where "marital status" = "married, civil"', [2]),
        ('count where "marital status" in {single, "and"}', [4]),
        ('count where "marital status" = "<missing>" and age < 50', [1]),
        ('count by "marital status"', [2, 2, 2, 2]),
        ('count by age where income = ">50K"', [0, 1, 0, 1]),
    ],
)
def test_a_question_counts_the_rows_it_describes(
    table: privet.ProtectedTable, question: str, rows: list[int] | None
) -> None:
    if rows is None:
        with pytest.raises(UndeclaredDomain, match="age-like"):
            exactly(table, question)
    else:
        assert exactly(table, question) == rows


def test_sums_means_histograms_and_choices_can_be_asked(table: privet.ProtectedTable) -> None:
    assert abs(exactly(table, "sum age")[0] - 360) < 60  # the bound 100 over epsilon 100: noise of scale 1
    assert abs(exactly(table, "mean age")[0] - 45) < 20
    assert exactly(table, "quantile age 0")[0] <= 10
    assert 40 <= exactly(table, 'median age where income = ">50K"')[0] <= 80
    ((_, histogram),) = TextQuestion.parse('histogram income, "marital status"').ask(table, "100")
    assert histogram["<=50K", "single"] == 2  # type: ignore[index]
    ((_, choice),) = TextQuestion.parse("select max").ask(table, "100")
    assert choice == "marital status"
    ((_, choice),) = TextQuestion.parse("select gini thresholds").ask(table, "100")
    assert choice in ("age", "marital status")


def test_dates_are_words_of_a_question() -> None:
    domain = Domain((Date("day", "2020-01-01", "2020-12-31", "months", missing=True),))
    days = ["2020-01-31", "2020-02-01", "2020-02-29", "2020-03-01", "2020-12-31", None]
    table = privet.open(pd.DataFrame({"day": days}), domain, budget="1000000")
    for question, rows in {
        "count where day in 2020-02-01..2020-03-01": [2],
        "count where day in 2020-02-29..": [3],
        "count where day <= 2020-02-29": [3],
        "count where day < 2020-02-29": [2],
        "count where day > 2020-02-29": [2],
        "count where day = 2020-02-29": [1],
        "count where day = 2020-02": [2],
        "count where day <= 9999-12-31": [5],
        'count where day in {2020-01, "<missing>"}': [2],
        "count by day": [1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
    }.items():
        assert exactly(table, question) == rows, question
    ((_, median),) = TextQuestion.parse("median day").ask(table, "100")
    assert str(median) == "2020-02-29"
    spent = table.budget.spent
    for question, problem in {
        "count where day < 5": "is compared with dates such as 2020-12-31, not with '5'",
        "count where day < 2020-02-30": "is compared with dates",
        "count where day in 2021-01-01..2022-01-01": "it has 2020-01-01 to 2020-12-31, and LOW..HIGH leaves HIGH out",
        "count where day = 1.2.2020": "has no declared value '1.2.2020'",
        "count where day = 2.2.2020": "give a day as '2020-12-31', a range (low, high) or a set of its cells.",
        "count where day = 2021-01-01": "it has 2020-01-01 to 2020-12-31; use a range (low, high) of dates.",
        "sum day": "holds dates, which have no sum and no mean; ask for its median",
    }.items():
        with pytest.raises(QuestionError) as refused:
            TextQuestion.parse(question).ask(table, "100")
        assert problem in str(refused.value), question
    assert table.budget.spent == spent


@pytest.mark.parametrize(
    "text",
    [
        "",
        "frobnicate",
        "count sex",
        "sum",
        "quantile age",
        "quantile age abc",
        "select",
        "select max now",
        "select nothing",
        "histogram",
        "count by",
        "count by age income",
        "count where",
        "count where age",
        "count where age = ",
        "count where age ~ 3",
        "count where age in {}",
        'count where age = "30',
        "count where age < abc",
        "count where income < 3",
        "count where income in 1..2",
        "count where income = nothing",
        "count where age = 1 and age = 2",
        "count where age in a..b",
        "count where age in 50..20",
        "count where age < 1e100000000",
        "count where age = 1e-100000000",
        "count where age in 0..1e99999999999999999999",
        "quantile age 1e-100000000",
        "count where age < " + "9" * 5000,
        "count where age < 1" + "0" * 100_000,
        "count where age = " + "x" * 9_000,
        "count where (select 1) = 1",
        "count; drop table people",
    ],
)
def test_what_is_no_question_gets_one_sentence_and_no_charge(table: privet.ProtectedTable, text: str) -> None:
    with pytest.raises((QuestionError, UndeclaredDomain)) as caught:
        TextQuestion.parse(text).ask(table, "1")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")
    assert table.budget.spent == 0


def test_quotes_protect_every_sign() -> None:
    odd = 'a "b" \\ and, where = {x} <'
    domain = Domain((Nominal(odd, (odd, "y")), Numeric("n", Fraction(0), Fraction(9), Fraction(1))))
    frame = pd.DataFrame({odd: [odd, odd, "y"], "n": [1, 2, 3]})
    quoted = '"' + odd.replace("\\", "\\\\").replace('"', '\\"') + '"'
    table = privet.open(frame, domain, budget="1000")
    assert exactly(table, f"count where {quoted} = {quoted} and n < 2") == [1]

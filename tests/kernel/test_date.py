"""Columns of dates: cells of the calendar, thresholds that are days, and refusals in one sentence."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.calendar_cells import iso_text
from privet.errors import DomainError, QuestionError
from privet.kernel.column import Nominal
from privet.kernel.date import Date, date_at, day_of
from privet.kernel.domain import Domain

PROPERTY = settings(derandomize=True, deadline=None)
EPSILON = 500  # noise of less than 10^-200


@pytest.mark.parametrize(
    ("low", "high", "step", "labels"),
    [
        ("2020-02-27", "2020-03-01", "days", ["2020-02-27", "2020-02-28", "2020-02-29", "2020-03-01"]),
        ("2020-02-27", "2020-03-06", "7 days", ["2020-02-27 to 2020-03-04", "2020-03-05 to 2020-03-06"]),
        ("2019-12-01", "2020-02-29", "months", ["2019-12", "2020-01", "2020-02"]),
        ("2019-12-02", "2020-02-28", "month", ["2019-12-02 to 2019-12-31", "2020-01", "2020-02-01 to 2020-02-28"]),
        ("2019-11-01", "2020-04-30", "3 months", ["2019-11 to 2020-01", "2020-02 to 2020-04"]),
        ("2015-01-01", "2017-12-31", "years", ["2015", "2016", "2017"]),
        ("2015-01-01", "2018-12-31", "2 years", ["2015 to 2016", "2017 to 2018"]),
        ("2015-06-01", "2016-12-31", "1 year", ["2015-06 to 2015-12", "2016"]),
        ("2020-01-01", "2020-01-31", "years", ["2020-01"]),
    ],
)
def test_cells_are_calendar_intervals(low: str, high: str, step: str, labels: list[str]) -> None:
    column = Date("day", low, high, step, missing=True)
    assert column.labels == (*labels, "<missing>")
    last = [column.code(label[-10:]) for label in labels if len(label[-10:]) == 10 and label[-6] != "o"]
    assert column.code(low) == 0 and column.code(high) == len(labels) - 1 and None not in last
    assert column.code("0001-01-01") == 0 and column.code("9999-12-31") == len(labels) - 1  # clamped


@PROPERTY
@given(st.dates(), st.dates())
def test_without_a_step_there_are_at_most_twenty_cells(one: date, other: date) -> None:
    if one != other:
        column = Date("day", min(one, other), max(one, other))
        assert 1 <= column.size <= 20
        assert column.declared_step() is not None or column.size == 1


@PROPERTY
@given(st.dates())
def test_a_day_is_written_as_it_is_read(day: date) -> None:
    number = day_of(day.isoformat())
    assert number == day_of(day) == day_of(datetime(day.year, day.month, day.day, 23, tzinfo=UTC))
    assert number is not None and iso_text(number) == day.isoformat() and date_at(number) == day


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"low": "2020-02-30", "high": "2021-01-01"},
            "column 'day' needs a date for low, as 2020-12-31, not '2020-02-30'",
        ),
        ({"low": 2020, "high": "2021-01-01"}, "needs a date for low"),
        ({"low": "2020-01-01", "high": "31.12.2020"}, "needs a date for high"),
        ({"low": "2021-01-01", "high": "2020-01-01"}, "needs low < high, not 2021-01-01 and 2020-01-01"),
        ({"low": "2020-01-01", "high": "2020-01-01"}, "needs low < high"),
        ({"step": "weeks"}, 'needs a step of days, months or years, such as "months" or "3 months", not \'weeks\''),
        ({"step": "0 days"}, "needs a step of days"),
        ({"step": Fraction(1, 2)}, "needs a step of days"),
        ({"step": "months", "edges": ["2020-06-01"]}, "declares a step and edges or bins; keep one"),
        ({"edges": ["2020-06-01", "2020-05-01"]}, "edges that do not rise"),
        ({"edges": ["2022-06-01"]}, "has the edge 2022-06-01 outside its bounds"),
        ({"edges": ["June"]}, "needs a date for edges"),
        ({"bins": 0}, "at least one bin"),
        (
            {"low": "0001-01-01", "high": "9999-12-31", "step": "days"},
            "has more than 65536 cells; declare a longer step",
        ),
    ],
)
def test_a_bad_declaration_is_refused_in_one_sentence(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(DomainError) as refused:
        Date("day", **{"low": "2020-01-01", "high": "2020-12-31", **settings})
    assert problem in str(refused.value) and str(refused.value).count(". ") == 0


def test_a_domain_file_writes_dates_as_toml_has_them() -> None:
    text = """
        [columns.day]
        kind = "date"
        low = 2015-01-01
        high = "2024-12-31"
        step = "3 months"
        missing = true
        [columns.edged]
        kind = "date"
        low = 2015-01-01
        high = 2024-12-31
        edges = ["2018-07-01", 2020-03-15]
    """
    domain = Domain.parse(text)
    assert 'low = 2015-01-01\nhigh = 2024-12-31\nstep = "3 months"\nmissing = true\n' in domain.to_toml()
    assert "edges = [2018-07-01, 2020-03-15]\n" in domain.to_toml()
    assert "day     date  41     2015-01-01 to 2024-12-31, step 3 months: 2015-01 to 2015-03, " in str(domain)
    assert "edged   date  3      2015-01-01 to 2024-12-31: 2015-01 to 2018-06, 2018-07-01 to 2020-03-14, " in str(
        domain
    )
    for wrong, problem in (
        ('kind = "dates"', 'needs kind = "nominal", kind = "numeric" or kind = "date"'),
        ('kind = "date"\nlow = 2020-01-01', "needs high = ..., a public bound"),
        ('kind = "date"\nlow = 2020-01-01\nhigh = 2020-12-31\nsteps = 1', "did you mean"),
        ('kind = "date"\nlow = 2020-01-01\nhigh = 2020-12-31\nedges = 1', "a rising list of dates"),
    ):
        with pytest.raises(DomainError, match=problem):
            Domain.parse(f"[columns.day]\n{wrong}\n")
    with pytest.raises(DomainError, match="is a date; a target is nominal"):
        Domain.parse('target = "day"\n' + text)


def test_edges_that_only_begin_like_a_step_are_written_as_edges() -> None:
    for edges in (["0001-01-02"], ["0001-02-01", "0001-03-01"], ["0002-01-01", "0003-01-01", "0004-01-02"]):
        domain = Domain((Date("day", "0001-01-01", "9999-12-31", edges=edges),))
        assert f"edges = [{', '.join(edges)}]" in domain.to_toml() and Domain.parse(domain.to_toml()) == domain


def test_a_column_is_a_value() -> None:
    column = Date("day", date(2020, 1, 1), np.datetime64("2020-12-31"), "months")
    assert column == Date("day", "2020-01-01", "2020-12-31", edges=[f"2020-{month:02}-01" for month in range(2, 13)])
    assert replace(column, missing=True) == Date("day", "2020-01-01", "2020-12-31", "months", missing=True)
    assert pickle.loads(pickle.dumps(column)) == copy.deepcopy(column) == column
    assert hash(column) == hash(copy.copy(column))
    assert repr(column) == "Date('day', '2020-01-01', '2020-12-31', 12 cells)"


# -- questions ---------------------------------------------------------------------------------------------------------

DAYS = [f"2020-{month:02}-{day:02}" for month in range(1, 13) for day in (1, 11, 21)]
DOMAIN = Domain((Date("day", "2020-01-01", "2020-12-31", "months", missing=True), Nominal("y", ("a", "b"))), target="y")
FRAME = pd.DataFrame({"day": [*DAYS, "never"], "y": ["a"] * 14 + ["b"] * 23})


@pytest.fixture
def table() -> privet.ProtectedTable:
    return privet.open(FRAME, DOMAIN, budget=10**6)


@pytest.mark.parametrize(
    ("wanted", "rows", "words"),
    [
        (("2020-02-01", "2020-03-11"), 4, "day in [2020-02-01, 2020-03-11)"),
        ((date(2020, 2, 1), None), 33, "day in [2020-02-01, )"),
        ((None, datetime(2020, 2, 1, 12)), 3, "day in [, 2020-02-01)"),
        ((np.datetime64("2020-02-01"), pd.Timestamp("2020-02-02")), 1, "day = 2020-02-01"),
        ("2020-02-11", 1, "day = 2020-02-11"),
        (date(2020, 2, 12), 0, "day = 2020-02-12"),
        ("2020-02", 3, "day = 2020-02"),
        ({"2020-02", "<missing>"}, 4, "day in {2020-02, <missing>}"),
    ],
)
def test_rows_are_chosen_by_days_and_by_cells(table: privet.ProtectedTable, wanted: Any, rows: int, words: str) -> None:
    chosen = table.where(day=wanted)
    assert chosen.count(EPSILON) == rows
    assert words in table.budget.entries[-1].scope


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (18262, "column 'day' holds dates; give a day as '2020-12-31'"),
        (("2020-02-30", None), "holds dates"),
        ((Fraction(10**400), None), "holds dates"),
        (("2020-03-01", "2020-02-01"), "from 2020-03-01 to 2020-02-01 is reversed"),
        ("2021-01-01", "column 'day' has no value 2021-01-01: it has 2020-01-01 to 2020-12-31"),
        ("soon", "has no declared value 'soon'"),
    ],
)
def test_a_condition_that_names_no_day_is_refused(table: privet.ProtectedTable, wanted: Any, problem: str) -> None:
    with pytest.raises(QuestionError) as refused:
        table.where(day=wanted)
    assert problem in str(refused.value) and table.budget.spent == 0


def test_a_median_is_a_date_and_there_is_no_sum_or_mean(table: privet.ProtectedTable) -> None:
    median = table.median("day", EPSILON)
    assert date(2020, 6, 21) <= median.value <= date(2020, 7, 1)  # half of the days lie on each side
    assert str(median) == median.to_dict()["value"] == median.value.isoformat()
    assert repr(median).startswith(f"{median} (within ")
    assert copy.deepcopy(median).value == median.value
    first, second = table.partition("y").median("day", EPSILON).array().tolist()
    assert date(2020, 3, 1) <= first <= date(2020, 3, 11) and date(2020, 9, 1) <= second <= date(2020, 9, 11)
    spent = table.budget.spent
    for ask in (table.sum, table.mean):
        with pytest.raises(QuestionError, match="holds dates, which have no sum and no mean; ask for its median"):
            ask("day", 1)
    assert table.budget.spent == spent


def test_parts_and_thresholds_are_days(table: privet.ProtectedTable) -> None:
    choice = table.select("gini", EPSILON, thresholds=True)
    assert "2020-05-11" <= str(choice.threshold) < "2020-05-21" and f"<= {choice.threshold} " in repr(choice)
    assert choice.to_dict()["threshold"] == choice.threshold
    labels = [f"<= {choice.threshold}", f"> {choice.threshold}", "<missing>"]
    for split in (choice, ("day", choice.threshold), ("day", date.fromisoformat(str(choice.threshold)))):
        parts = table.partition(split)
        assert parts.labels == labels and [int(count) for count in parts.count(EPSILON)] == [14, 22, 1]
    edged = table.partition("day", edges=["2020-02-01", date(2020, 7, 1)])
    assert edged.labels == ["2020-01", "2020-02 to 2020-06", "2020-07 to 2020-12", "<missing>"]
    assert table.histogram("day", epsilon=EPSILON)["2020-03"] == 3


def test_a_pair_of_a_column_and_a_date_competes(table: privet.ProtectedTable) -> None:
    pairs = [("day", date(2020, 5, 15)), ("day", date(2020, 9, 1))]
    assert table.select("gini", EPSILON, attributes=pairs).threshold == "2020-05-15"

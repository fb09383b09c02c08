"""Tables, parts and releases as an analyst meets them: right answers, fair charges, clear refusals."""

from __future__ import annotations

import copy
import importlib
import itertools
import math
import os
import pickle
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import privet
from privet.errors import (
    BudgetExceeded,
    DataError,
    DomainError,
    EngineFailed,
    KeyReused,
    LedgerError,
    NotPrivate,
    PrivacyError,
    PrivetError,
    QuestionError,
    UndeclaredDomain,
)
from privet.kernel import (
    Choice,
    Count,
    Histogram,
    Max,
    Mean,
    Parts,
    Quantile,
    Releases,
    Sum,
    SystemEntropy,
    WeightedMax,
)
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.lab import GainRatio, PublicTable, open_public, paper_noise

# At this epsilon a count is off with probability below exp(-10000): answers can be compared with the truth.
EXACT = 10_000
LARGE = 1_000_000  # the largest budget there is

DOMAIN = Domain.parse(
    """
    target = "income"
    max_rows = 1000

    [columns.sex]
    kind = "nominal"
    values = ["Female", "Male"]
    other = true
    missing = true

    [columns.age]
    kind = "numeric"
    low = 0
    high = 100
    edges = [20, 40, 60]
    missing = true

    [columns."body height"]
    kind = "numeric"
    low = 1.0
    high = 2.0
    step = 0.1
    bins = 2

    [columns.income]
    kind = "nominal"
    values = ["low", "high"]
    """
)


def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    size = 300
    age = rng.integers(0, 110, size).astype(float)
    age[::17] = np.nan
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(size)],  # not declared: it does not exist
            "sex": rng.choice(np.array(["Female", "Male", "x", None], dtype=object), size, p=[0.5, 0.4, 0.06, 0.04]),
            "age": age,
            "body height": rng.choice([1.0, 1.3, 1.5, 1.7, 2.0], size),
            "income": np.where(np.nan_to_num(age) > 50, "high", "low"),
        }
    )


FRAME = _frame()
# What the domain makes of it.
SEX = FRAME["sex"].map(
    lambda value: "<missing>" if pd.isna(value) else value if value in ("Female", "Male") else "<other>"
)
AGE = FRAME["age"].clip(upper=100)


def module(name: str) -> Any:
    """An optional library: a skip that names it here, a failure where everything must be there."""
    if os.environ.get("CI"):
        return importlib.import_module(name)
    return pytest.importorskip(name)


def write_csv(folder: Path) -> Path:
    FRAME.to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


def write_parquet(folder: Path) -> Path:
    with duckdb.connect() as connection:
        connection.register("frame", FRAME)
        connection.execute(f"COPY (SELECT * FROM frame) TO '{folder}/people.parquet' (FORMAT parquet)")
    return folder / "people.parquet"


def write_table(folder: Path, table: str = "people") -> str:
    with duckdb.connect(str(folder / "people.db")) as connection:
        connection.register("frame", FRAME)
        connection.execute(f'CREATE TABLE "{table}" AS SELECT * FROM frame')
    return f"duckdb:///{folder}/people.db?table={table}"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda folder: FRAME,
    "polars": lambda folder: module("polars").from_pandas(FRAME),
    "arrow": lambda folder: module("pyarrow").Table.from_pandas(FRAME, preserve_index=False),
    "csv": write_csv,
    "csv as text": lambda folder: str(write_csv(folder)),
    "parquet": write_parquet,
    "duckdb": write_table,
}


@pytest.fixture(params=[*SOURCES, "snapshot"])
def people(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[privet.ProtectedTable]:
    """The same people, from every place they can come from."""
    kind = "csv" if request.param == "snapshot" else request.param
    source = SOURCES[kind](tmp_path)
    with privet.open(
        source, DOMAIN, budget=LARGE, access="snapshot" if request.param == "snapshot" else "push-down"
    ) as table:
        yield table


@pytest.fixture
def table() -> privet.ProtectedTable:
    return privet.open(FRAME, DOMAIN, budget=LARGE)


def counts(parts: Parts) -> dict[str, int]:
    return dict(zip(parts.labels, map(int, parts.count(EXACT)), strict=True))


# --- every question, from every source ----------------------------------------------------------------------------


def test_count_is_the_number_of_rows(people: privet.ProtectedTable) -> None:
    assert people.count(EXACT) == len(FRAME)


def test_where_counts_the_rows_that_meet_it(people: privet.ProtectedTable) -> None:
    inside = people.where(sex="Female", age=(30, 40))
    assert inside.count(EXACT) == ((SEX == "Female") & (AGE >= 30) & (AGE < 40)).sum()


def test_sum_clamps_and_leaves_missing_values_out(people: privet.ProtectedTable) -> None:
    assert people.sum("age", EXACT) == AGE.sum()
    assert people.sum("body height", EXACT) == pytest.approx(FRAME["body height"].sum(), abs=1e-9)


def test_mean_is_over_the_rows_that_have_a_value(people: privet.ProtectedTable) -> None:
    assert people.mean("age", EXACT) == pytest.approx(AGE.mean())


def test_quantiles_are_grid_points_near_the_true_ones(people: privet.ProtectedTable) -> None:
    values = AGE.dropna()
    for answer, rank in ((people.median("age", EXACT), 0.5), (people.quantile("age", 0.9, EXACT), 0.9)):
        assert answer == int(answer)
        assert (values < answer).mean() - 0.02 <= rank <= (values <= answer).mean() + 0.02


def test_histogram_counts_every_cell_of_the_domain(people: privet.ProtectedTable) -> None:
    found = people.histogram("sex", "income", epsilon=EXACT)
    expected = pd.crosstab(SEX, FRAME["income"])
    for sex in DOMAIN["sex"].labels:
        for income in ("low", "high"):
            assert found[sex, income] == expected.loc[sex, income]


def test_a_partition_covers_the_table(people: privet.ProtectedTable) -> None:
    assert counts(people.partition("sex")) == {
        "Female": (SEX == "Female").sum(),
        "Male": (SEX == "Male").sum(),
        "<other>": (SEX == "<other>").sum(),
        "<missing>": (SEX == "<missing>").sum(),
    }


def test_select_finds_the_attribute_and_the_threshold_that_tell_the_class(people: privet.ProtectedTable) -> None:
    assert people.select("max", EXACT) == "age"
    assert people.select("gini", EXACT, attributes=["sex", "age"]) == "age"
    assert people.select("infogain", EXACT) == "age"
    best = people.select("max", EXACT, thresholds=True)
    assert (best, best.threshold) == ("age", 50)
    assert str(people.select(WeightedMax.of([1, 2]), EXACT)) in DOMAIN.attributes
    for mechanism in ("permute-and-flip", "exponential", "noisy-max"):
        best = people.select("gini", EXACT, attributes=["sex", ("age", 30), ("age", 50)], mechanism=mechanism)
        assert (best, best.threshold) == ("age", 50)


def test_coins_divide_the_table_and_every_part_of_it(people: privet.ProtectedTable) -> None:
    coins = people.scatter(3, random_state=5)
    assert coins.labels == ["coin 1 of 3", "coin 2 of 3", "coin 3 of 3"]
    assert coins.paths[0] == "all rows / coin 1 of 3"
    assert sum(coins.count(EXACT)) == len(FRAME) and min(coins.count(EXACT)) > 60
    parts = people.partition("income").scatter(2, random_state=5)
    assert parts.paths[3] == "all rows / income = high / coin 2 of 2"
    low, high = parts.count(EXACT)[:2], parts.count(EXACT)[2:]
    assert [sum(low), sum(high)] == [(FRAME["income"] == label).sum() for label in ("low", "high")]


def test_some_parts_can_be_taken_in_any_order(people: privet.ProtectedTable) -> None:
    some = people.partition("sex").take([3, 0])
    assert some.labels == ["<missing>", "Female"]
    assert some.paths == ["all rows / sex = <missing>", "all rows / sex = Female"]
    assert some.count(EXACT).array().tolist() == [(SEX == "<missing>").sum(), (SEX == "Female").sum()]
    assert (
        some.partition("income")["all rows / sex = Female / income = low"].count(EXACT)
        == ((SEX == "Female") & (FRAME["income"] == "low")).sum()
    )


def test_the_majority_is_the_most_frequent_cell(people: privet.ProtectedTable) -> None:
    assert people.majority("sex", EXACT) == "Female"
    assert people.partition(("age", 50)).majority("income", EXACT)[:2] == ("low", "high")


def test_residuals_of_a_released_model(people: privet.ProtectedTable) -> None:
    model = privet.AdditiveModel((0, 0))  # both classes at one half: every residual is one half
    assert people.select_residuals(model, [("sex",), ("age",)], (1024, 1024), EXACT) == "age"
    sums = people.residual_sums(model, ("age", "sex"), (1024, 1024), EXACT)
    assert sums.own.shape == (5, 4, 2) and sums.others is None
    assert abs(int(sums.own.sum()) - 512 * len(FRAME)) < 20  # noise of scale 0.1 on each of 40 sums


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "duckdb", "parquet"])
def test_whole_numbers_beyond_floats_keep_their_value_beside_a_missing_one(tmp_path: Path, library: str) -> None:
    domain = Domain((Nominal("id", (2**53 + 1, 2**53, 7), other=True, missing=True),))
    values = [2**53 + 1, 2**53 + 1, 7, None]
    source: Any
    if library == "pandas":
        source = pd.DataFrame({"id": pd.array(values, dtype="Int64")})
    elif library == "polars":
        source = module("polars").DataFrame({"id": values})
    elif library == "pyarrow":
        source = module("pyarrow").table({"id": values})
    else:
        source = f"duckdb:///{tmp_path}/t.db?table=t" if library == "duckdb" else tmp_path / "t.parquet"
        with duckdb.connect(str(tmp_path / "t.db")) as connection:
            connection.execute("CREATE TABLE t (id BIGINT)")
            connection.executemany("INSERT INTO t VALUES (?)", [[value] for value in values])
            connection.execute(f"COPY t TO '{tmp_path}/t.parquet' (FORMAT parquet)")
    with privet.open(source, domain, budget=LARGE) as table:
        assert np.asarray(table.histogram("id", epsilon=EXACT)).tolist() == [2, 0, 1, 0, 1]


# --- where --------------------------------------------------------------------------------------------------------

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
    assert table.partition(Choice("sex")).labels == list(DOMAIN["sex"].labels)


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
    monkeypatch.setattr("privet.kernel.table.MAX_PARTS", 1_000)
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


# --- releases -----------------------------------------------------------------------------------------------------


def test_a_count_is_an_int(table: privet.ProtectedTable) -> None:
    answer = table.count(EXACT)
    assert isinstance(answer, Count) and isinstance(answer, int) and isinstance(answer, privet.Release)
    assert answer + 1 == 301 and f"{answer}" == str(answer) == "300" and int(answer) == 300
    assert repr(answer) == "300 (± 0 at 95%, epsilon 10000)"
    assert list(range(3))[: answer - 298] == [0, 1]


def test_a_sum_a_mean_and_a_quantile_are_floats(table: privet.ProtectedTable) -> None:
    for answer, kind in (
        (table.sum("age", EXACT), Sum),
        (table.mean("age", EXACT), Mean),
        (table.median("age", EXACT), Quantile),
    ):
        assert isinstance(answer, kind) and isinstance(answer, float) and isinstance(answer, privet.Release)
        assert str(answer) == str(float(answer)) and answer / 2 == float(answer) / 2
        assert "epsilon 10000" in repr(answer)


def test_a_choice_is_a_text(table: privet.ProtectedTable) -> None:
    plain = table.select("max", EXACT)
    assert isinstance(plain, Choice) and isinstance(plain, str)
    assert str(plain) == plain == "age" and plain.threshold is None and plain.upper() == "AGE"
    joint = table.select("max", EXACT, thresholds=True)
    assert repr(joint).startswith("'age' <= 50 (score within ")
    assert table.select("max", EXACT, attributes=["body height"], thresholds=True).threshold in np.arange(
        1, 2, 0.1
    ).round(1)


def test_every_release_knows_what_it_answers_and_costs(table: privet.ProtectedTable) -> None:
    model = privet.AdditiveModel((0, 0))
    answers: dict[str, privet.Release] = {
        "count": table.count(2),
        "sum(age)": table.sum("age", 2),
        "mean(age)": table.mean("age", 2),
        "quantile(age, 0.5)": table.median("age", 2),
        "histogram(sex, age)": table.histogram("sex", "age", epsilon=2),
        "select(max)": table.select("max", 2),
        "majority(sex)": table.majority("sex", 2),
        "residual_sums(sex)": table.residual_sums(model, ("sex",), (1, 1), 2),
    }
    for number, (question, answer) in enumerate(answers.items(), start=1):
        assert (answer.about.question, answer.epsilon, answer.private, answer.about.entry) == (
            question,
            2,
            True,
            number,
        )
    assert [entry.question for entry in table.budget.entries] == list(answers)


def test_releases_can_be_pickled_and_copied(table: privet.ProtectedTable) -> None:
    model = privet.AdditiveModel((0, 0))
    answers = [
        table.count(1),
        table.sum("body height", 1),
        table.mean("age", 1),
        table.median("age", 1),
        table.histogram("sex", "age", epsilon=1),
        table.select("max", 1),
        table.select("max", 1, thresholds=True),
        table.select("max", 1, attributes=[("age", 30)], mechanism="noisy-max"),
        table.majority("sex", 1),
        table.residual_sums(model, ("sex",), (1, 1), 1),
        table.partition("sex").count(1),
    ]
    for answer in answers:
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(answer, protocol))
            assert type(again) is type(answer) and repr(again) == repr(answer)
        assert repr(copy.copy(answer)) == repr(copy.deepcopy(answer)) == repr(answer)
        assert vars(copy.copy(answer)).keys() == vars(answer).keys()
        payload = pickle.dumps(answer)
        assert b"person " not in payload and b"ledger" not in payload


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, math.nan])
def test_a_confidence_lies_between_0_and_1(table: privet.ProtectedTable, confidence: float) -> None:
    for ask in (table.count(1).interval, table.median("age", 1).rank_error, table.select("max", 1).shortfall):
        with pytest.raises(QuestionError):
            ask(confidence)


def test_intervals_of_counts_do_not_go_below_0() -> None:
    nobody = privet.open(FRAME.iloc[:0], DOMAIN, budget=LARGE)
    for _ in range(20):
        low, high = nobody.count(Fraction(1, 10)).interval(0.9)
        assert 0 <= low <= high
    low, high = nobody.histogram("sex", epsilon=Fraction(1, 10)).interval(0.9)
    assert (low >= 0).all() and (low <= high).all()


def test_a_mean_and_its_interval_stay_in_the_bounds() -> None:
    for frame in (FRAME.iloc[:0], FRAME.iloc[:5], FRAME):
        table = privet.open(frame, DOMAIN, budget=LARGE)
        for _ in range(20):
            answer = table.mean("age", 1)
            low, high = answer.interval(0.99)
            assert 0 <= low <= high <= 100
            assert 0 <= answer <= 100
    empty = privet.open(FRAME.iloc[:0], DOMAIN, budget=LARGE)
    assert empty.mean("age", EXACT).interval() == (0, 100)


def test_a_quantile_says_how_many_rows_it_may_be_off(table: privet.ProtectedTable) -> None:
    answer = table.median("age", 1)
    assert 0 < answer.rank_error(0.5) < answer.rank_error(0.95) < answer.rank_error(0.999)
    assert table.median("age", 10).rank_error() == pytest.approx(answer.rank_error() / 10)
    with pytest.raises(QuestionError, match="rank_error"):
        answer.interval()


def test_a_histogram_is_named_by_labels_and_reads_as_array_and_frame(table: privet.ProtectedTable) -> None:
    found = table.histogram("sex", "income", epsilon=EXACT)
    assert isinstance(found, Histogram)
    assert np.asarray(found).shape == (4, 2) and np.asarray(found).sum() == 300
    assert np.array(found, dtype=float).dtype == np.float64
    cell = found["Male", "high"]
    assert isinstance(cell, Count) and cell == np.asarray(found)[1, 1] and cell.interval() == (cell, cell)
    frame = found.to_frame()
    assert list(frame.columns) == ["sex", "income", "count", "low", "high"]
    assert len(frame) == 8 and frame["count"].sum() == 300
    assert list(frame.iloc[3, :2]) == ["Male", "high"]
    assert repr(found).splitlines()[0].split() == ["sex", "income", "count", "low", "high"]
    single = table.histogram("age", epsilon=EXACT)
    assert single["[0, 20)"] == (AGE < 20).sum()


@pytest.mark.parametrize("cell", ["Male", ("Male", "high", "x"), ("Martian", "high"), ("Male", "<missing>")], ids=str)
def test_a_cell_that_is_not_there_is_refused(table: privet.ProtectedTable, cell: Any) -> None:
    with pytest.raises(QuestionError):
        table.histogram("sex", "income", epsilon=1)[cell]


def test_a_long_histogram_prints_its_first_cells() -> None:
    wide = Domain((Nominal("n", tuple(range(100))),))
    shown = repr(privet.open(pd.DataFrame({"n": [1]}), wide, budget=1).histogram("n", epsilon=1))
    assert "... 70 more cells" in shown


def test_releases_of_parts_become_arrays(table: privet.ProtectedTable) -> None:
    parts = table.partition("income")
    assert parts.count(EXACT).array().tolist() == [(FRAME["income"] == label).sum() for label in ("low", "high")]
    assert parts.mean("age", EXACT).array().dtype == np.float64
    assert parts.histogram("sex", "age", epsilon=EXACT).array().shape == (2, 4, 5)
    assert parts.select("max", EXACT).array().dtype.kind == "U"
    assert parts.count(EXACT).interval(0.9) == [(n, n) for n in parts.count(EXACT)]


# Hypothesis: the stated interval holds the truth at least as often as it says, and a count's exactly as often as the
# noise does. n = 20,000 cells of production noise, false alarm below 1e-9 a side; catches a scale 10% off.
def test_intervals_of_counts_cover_the_truth_as_often_as_they_say() -> None:
    wide = Domain((Nominal("a", tuple(range(200))), Nominal("b", tuple(range(100)))))
    frame = pd.DataFrame({"a": [3] * 50, "b": [7] * 50})
    found = privet.open(frame, wide, budget=1).histogram("a", "b", epsilon=Fraction(1, 10))
    truth = np.zeros((200, 100))
    truth[3, 7] = 50
    for confidence in (0.5, 0.9, 0.99):
        error = found.noise.error(confidence)
        # before the cut at 0, which only helps
        covered = int((np.abs(np.asarray(found) - truth) <= error).sum())
        share = sum(found.noise.probability(t) for t in range(-error, error + 1))
        assert share >= confidence
        assert binom.ppf(1e-9, truth.size, share) <= covered <= binom.isf(1e-9, truth.size, share)
        low, high = found.interval(confidence)
        assert ((low <= truth) & (truth <= high)).sum() >= covered


# Hypothesis: sums, means and quantiles of 600 parts hold the truth at least as often as they say; false alarm 1e-9.
@pytest.mark.parametrize("question", ["sum", "mean", "quantile"])
def test_intervals_of_numbers_cover_the_truth(question: str) -> None:
    domain = Domain((Nominal("part", tuple(range(600))), Numeric("x", Fraction(-5), Fraction(20), Fraction(1, 4))))
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"part": np.repeat(np.arange(600), 40), "x": rng.integers(-20, 80, 600 * 40) / 4})
    parts = privet.open(frame, domain, budget=LARGE).partition("part")
    groups = [group.to_numpy() for _, group in frame.groupby("part")["x"]]
    covered = 0
    if question == "quantile":
        for answer, values in zip(parts.quantile("x", 0.25, 1), groups, strict=True):
            below, above = (values < answer).sum(), (values > answer).sum()
            covered += abs(0.75 * below - 0.25 * above) <= answer.rank_error(0.9) + 20  # ties at the best point
    else:
        answers = parts.sum("x", 1) if question == "sum" else parts.mean("x", 2)
        truths = [values.sum() if question == "sum" else values.mean() for values in groups]
        for answer, truth in zip(answers, truths, strict=True):
            low, high = answer.interval(0.9)
            covered += low - 1e-9 <= truth <= high + 1e-9
    assert covered >= binom.ppf(1e-9, 600, 0.9)


# --- the budget ---------------------------------------------------------------------------------------------------


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


# --- a table is not its rows --------------------------------------------------------------------------------------


def test_the_size_of_a_table_is_private(table: privet.ProtectedTable) -> None:
    with pytest.raises(TypeError, match=r"ask table\.count"):
        len(table)
    assert table


def test_rows_cannot_be_read(table: privet.ProtectedTable) -> None:
    for read in (iter, list, lambda each: "x" in each, lambda each: [*each], pd.DataFrame):
        with pytest.raises(TypeError):
            read(table)
    with pytest.raises(TypeError):
        table[0]  # type: ignore[index]


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_a_table_and_its_parts_cannot_be_copied(table: privet.ProtectedTable, take: Callable[[Any], Any]) -> None:
    for each in (table, table.partition("sex"), table.where(sex="Male"), {"inside": [table]}):
        if take is copy.copy and isinstance(each, dict):
            continue  # a shallow copy does not touch it
        with pytest.raises(PrivacyError, match="cannot be copied or pickled") as caught:
            take(each)
        assert "\n" not in str(caught.value)


def test_the_repr_shows_public_facts_only(table: privet.ProtectedTable, tmp_path: Path) -> None:
    assert repr(table) == (
        "<ProtectedTable 'frame' (all rows), 4 columns, analyst 'local', 1000000 left, ledger in memory, gone with the "
        "process>"
    )
    with privet.open(write_csv(tmp_path), DOMAIN, budget=1, analyst="ada") as opened:
        assert repr(opened).endswith(f"analyst 'ada', 1 left, ledger '{tmp_path}/people.csv.ledger'>")
    assert repr(table.partition("sex")) == "<4 parts of 'frame': Female, Male, <other>, <missing>>"


@pytest.mark.parametrize("kind", SOURCES)
def test_a_closed_table_gives_no_answers(tmp_path: Path, kind: str) -> None:
    with privet.open(SOURCES[kind](tmp_path), DOMAIN, budget=LARGE) as table:
        table.count(1)
    for ask in (table.count, lambda epsilon: table.sum("age", epsilon), table.partition("sex").count):
        with pytest.raises(PrivetError):
            ask(1)


def test_the_budget_of_a_closed_table_can_still_be_read(tmp_path: Path) -> None:
    with privet.open(write_csv(tmp_path), DOMAIN, budget=1) as table:
        table.count(Fraction(1, 4))
    assert table.budget.spent == Fraction(1, 4)


# --- public rows --------------------------------------------------------------------------------------------------


@pytest.fixture
def public() -> PublicTable:
    return open_public(FRAME, DOMAIN)


@pytest.mark.parametrize("exactly", [math.inf, np.float64("inf")], ids=repr)
def test_public_rows_answer_exactly_where_no_epsilon_is_given(public: PublicTable, exactly: float) -> None:
    count = public.count(exactly)
    assert count == len(FRAME) and count.interval() == (300, 300) and count.noise.deviation == 0
    found = public.partition("sex").histogram("income", epsilon=exactly)
    assert (
        found.array().tolist()
        == pd.crosstab(SEX, FRAME["income"]).loc[list(DOMAIN["sex"].labels), ["low", "high"]].to_numpy().tolist()
    )
    best = public.select("max", exactly, thresholds=True)
    assert (best, best.threshold, best.shortfall()) == ("age", 50, 0)
    assert public.select("infogain", exactly, attributes=["sex", ("age", 50), ("age", 30)]).threshold == 50
    for answer in (count, *found, best):
        assert (answer.epsilon, answer.private) == (0, False)
        assert "epsilon 0, NOT PRIVATE" in repr(answer)
    assert public.budget.entries == []


def test_public_rows_have_no_exact_answer_to_other_questions_and_charge_for_noisy_ones(public: PublicTable) -> None:
    for ask in (
        lambda: public.sum("age", math.inf),
        lambda: public.median("age", math.inf),
        lambda: public.partition("income").count([1, math.inf]),
        lambda: public.count("inf"),
        lambda: public.allot(math.inf),
    ):
        with pytest.raises(QuestionError, match=r"not '?inf"):
            ask()
    with pytest.raises(NotPrivate):
        public.select("gain-ratio", 1)
    assert public.budget.spent == 0
    some = public.allot(1)
    some.count(1)
    assert isinstance(some, PublicTable) and public.budget.spent == 1
    with pytest.raises(BudgetExceeded):
        some.count(1)


def entropy(counts: Any) -> float:
    shares = np.array([n / sum(counts) for n in counts if n])
    return float(-(shares * np.log2(shares)).sum())


def test_the_gain_ratio_is_that_of_c45(public: PublicTable) -> None:
    """The highest ratio among the candidates whose gain is at least the average."""
    income = FRAME["income"]
    sides = {
        f"age {at}": AGE.map(lambda age, at=at: 2 if math.isnan(age) else int(age > at)) for at in (0, 2, 20, 45, 60)
    }
    sides |= {"sex": SEX, "body height": FRAME["body height"] >= 1.5}
    gains, ratios = {}, {}
    for name, side in sides.items():
        table = pd.crosstab(side, income).to_numpy()
        within = sum(cell.sum() / len(FRAME) * entropy(cell) for cell in table)
        gains[name] = entropy(table.sum(axis=0)) - within
        ratios[name] = gains[name] / entropy(table.sum(axis=1))
    guarded = 0
    for some in (each for size in (1, 2, 3) for each in itertools.combinations(sides, size)):
        average = sum(gains[name] for name in some) / len(some)
        expected = max((name for name in some if gains[name] >= average - 1e-12), key=ratios.__getitem__)
        guarded += expected != max(some, key=ratios.__getitem__)
        candidates = [("age", int(name[4:])) if name.startswith("age") else name for name in some]
        found = public.select("gain-ratio", math.inf, attributes=candidates)
        assert (str(found) if found.threshold is None else f"{found} {found.threshold}") == expected
    assert guarded  # a high ratio of a low gain is among them


def test_a_bootstrap_draws_as_many_rows_with_replacement() -> None:
    domain = Domain((Nominal("id", tuple(range(300))), Numeric("x", Fraction(0), Fraction(600), Fraction(1), bins=600)))
    table = open_public(pd.DataFrame({"id": range(300), "x": range(0, 600, 2)}), domain)
    drawn = {seed: np.asarray(table.bootstrap(seed).histogram("id", epsilon=math.inf)) for seed in (1, 2)}
    for seed, times in drawn.items():
        assert times.sum() == 300 and 0.55 < (times > 0).mean() < 0.71  # 1 - 1/e are drawn at least once
        assert np.array_equal(times, np.asarray(table.bootstrap(seed).histogram("id", epsilon=math.inf)))
        values = table.bootstrap(seed).partition("x", edges=list(range(1, 599, 2))).count(math.inf).array()
        assert np.array_equal(values, times)  # rows stay whole
    assert not np.array_equal(drawn[1], drawn[2])
    assert (np.asarray(table.histogram("id", epsilon=math.inf)) == 1).all()


def test_a_key_of_the_table_is_not_one_of_its_bootstrap(public: PublicTable) -> None:
    public.histogram("sex", epsilon=1, key="k")
    with pytest.raises(KeyReused):
        public.bootstrap(1).histogram("sex", epsilon=1, key="k")


def test_a_closed_public_table_gives_no_answers(public: PublicTable) -> None:
    public.close()
    with pytest.raises(DataError, match="was closed"):
        public.count(math.inf)


def test_rounded_noise_is_bounded_and_has_holes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six digits of a uniform number have a last one: below it there is no noise, and a gap before it."""
    table = open_public(FRAME, DOMAIN, rounded_noise=True)
    digits = iter([0, 1, 2, 3, 500_000, 999_998, 999_999])
    monkeypatch.setattr(SystemEntropy, "below", lambda self, bound: next(digits))
    found = [table.count(Fraction(1, 100)) - len(FRAME) for _ in range(7)]
    assert found == [-1312, -1312, -1243, -1202, 0, 1243, 1312]
    assert not table._session.errors.printed_ranges


def test_printed_ranges_leave_the_sensitivity_out(public: PublicTable) -> None:
    printed = open_public(FRAME, DOMAIN, printed_ranges=True)
    for rule, grid, sensitivity in (("max", 1, 1), ("gini", 1024, 2048)):
        rates = [each.select(rule, 1, thresholds=True).mechanism.rate for each in (printed, public)]
        assert rates == [Fraction(1, grid), Fraction(1, sensitivity)]
        assert printed.select(rule, 1).mechanism.rate == Fraction(1, sensitivity)  # of ranges alone


# --- opening ------------------------------------------------------------------------------------------------------


def test_a_domain_may_be_a_file(tmp_path: Path) -> None:
    DOMAIN.save(tmp_path / "people.toml")
    for path in (tmp_path / "people.toml", str(tmp_path / "people.toml")):
        assert privet.open(FRAME, path, budget=LARGE).count(EXACT) == 300


def test_opening_again_goes_on_with_what_is_left(tmp_path: Path) -> None:
    path = write_csv(tmp_path)
    with privet.open(path, DOMAIN, budget=1) as table:
        table.count(0.75)
    with privet.open(path, DOMAIN, budget=1) as table:
        assert (table.budget.spent, table.budget.remaining) == (Fraction(3, 4), Fraction(1, 4))
    with privet.open(path, DOMAIN) as table, pytest.raises(BudgetExceeded):
        table.count(0.5)


def test_opening_with_less_limits_this_sitting_and_with_more_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path)
    privet.open(path, DOMAIN, budget=2).close()
    with privet.open(path, DOMAIN, budget=1) as table:
        assert table.budget.remaining == 1
        with pytest.raises(BudgetExceeded):
            table.count(1.5)
    with pytest.raises(PrivacyError, match="above the 2"):
        privet.open(path, DOMAIN, budget=3)


@pytest.mark.parametrize("way", ["relative", "link", "other case of the table", "absolute address"])
def test_another_name_for_the_same_rows_is_no_new_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.chdir(tmp_path)
    first: Any = write_csv(tmp_path)
    second: Any = Path("people.csv")
    if way == "link":
        second = tmp_path / "link.csv"
        second.symlink_to(first)
    elif way == "other case of the table":
        first = write_table(tmp_path)
        second = first.replace("table=people", "table=PEOPLE")
    elif way == "absolute address":
        first = write_table(tmp_path)
        second = "duckdb:///people.db?table=people"
    with privet.open(first, DOMAIN, budget=1) as table:
        table.count(1)
    try:
        with privet.open(second, DOMAIN, budget=1) as again:
            assert again.budget.remaining == 0
    except PrivetError as refused:
        assert "\n" not in str(refused)


def test_analysts_share_the_budget_of_the_data_set(tmp_path: Path) -> None:
    path = write_csv(tmp_path)
    with privet.open(path, DOMAIN, budget=1, analyst="ada") as ada, privet.open(path, DOMAIN, analyst="bob") as bob:
        ada.count(0.75)
        assert (bob.budget.spent, bob.budget.remaining, bob.budget.entries) == (0, Fraction(1, 4), [])
        with pytest.raises(BudgetExceeded):
            bob.count(0.5)


def test_a_key_brings_back_the_same_answer_and_belongs_to_one_question(table: privet.ProtectedTable) -> None:
    first = table.count(0.01, key="a")
    assert [table.count(0.01, key="a") for _ in range(5)] == [first] * 5
    assert table.budget.spent == Fraction(1, 100)
    for other in (
        lambda: table.count(0.02, key="a"),
        lambda: table.sum("age", 0.01, key="a"),
        lambda: table.where(sex="Male").count(0.01, key="a"),
        lambda: table.partition("sex").count(0.01, key="a"),
    ):
        with pytest.raises(KeyReused):
            other()
    assert table.budget.spent == Fraction(1, 100)


def test_a_duckdb_table_may_have_any_name(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "people.db")) as connection:
        connection.register("frame", FRAME)
        connection.execute('CREATE TABLE "a ""b"" & c" AS SELECT * FROM frame')
    address = f"duckdb:///{tmp_path}/people.db?table=a%20%22b%22%20%26%20c"
    with privet.open(address, DOMAIN, budget=LARGE) as table:
        assert table.count(EXACT) == 300


BAD_DATA: dict[str, tuple[Callable[[Path], Any], type[Exception]]] = {
    "missing file": (lambda folder: folder / "nowhere.csv", DataError),
    "missing parquet": (lambda folder: str(folder / "nowhere.parquet"), DataError),
    "missing database": (lambda folder: f"duckdb:///{folder}/nowhere.db?table=t", DataError),
    "missing table": (lambda folder: write_table(folder).replace("table=people", "table=x"), DataError),
    "no table named": (lambda folder: write_table(folder).split("?")[0], DataError),
    "wrong suffix": (lambda folder: _written(folder / "people.xlsx", b"sex\nf\n"), DataError),
    "no suffix": (lambda folder: _written(folder / "people", b"sex\nf\n"), DataError),
    "other address": (lambda folder: "postgres://host/db?table=t", DataError),
    "empty text": (lambda folder: "", DataError),
    "empty csv": (lambda folder: _written(folder / "people.csv", b""), DataError),
    "empty parquet": (lambda folder: _written(folder / "people.parquet", b""), DataError),
    "csv called parquet": (lambda folder: _written(folder / "people.parquet", b"sex,age\nf,1\n"), DataError),
    "garbage called database": (
        lambda folder: f"duckdb:///{_written(folder / 'people.db', b'garbage' * 999)}?table=t",
        DataError,
    ),
    "a directory": (lambda folder: _directory(folder / "people.csv"), DataError),
    "a directory as database": (lambda folder: f"duckdb:///{_directory(folder / 'people.db')}?table=t", DataError),
    "column absent": (lambda folder: _written(folder / "people.csv", b"sex,age,income\nf,1,low\n"), DataError),
    "column absent in a frame": (lambda folder: FRAME.drop(columns="income"), DataError),
    "duplicate header": (
        lambda folder: _written(folder / "people.csv", b"sex,age,age,body height,income\nf,1,1,1,low\n"),
        DataError,
    ),
    "duplicate column in a frame": (lambda folder: pd.concat([FRAME, FRAME[["age"]]], axis=1), DataError),
    "timestamps": (lambda folder: _timestamps(folder), DataError),
    "timestamps in a frame": (lambda folder: FRAME.assign(sex=pd.Timestamp("2020-01-01")), DataError),
    "a list": (lambda folder: [1, 2, 3], DataError),
    "a dictionary": (lambda folder: {"sex": ["Male"]}, DataError),
    "nothing": (lambda folder: None, DataError),
    "an array": (lambda folder: np.zeros((2, 2)), DataError),
    "bytes": (lambda folder: b"people.csv", DataError),
    "a lazy frame": (lambda folder: _lazy(), DataError),
}


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _directory(path: Path) -> Path:
    path.mkdir()
    return path


def _timestamps(folder: Path) -> str:
    with duckdb.connect(str(folder / "people.db")) as connection:
        connection.register("frame", FRAME)
        connection.execute("CREATE TABLE people AS SELECT * REPLACE (TIMESTAMP '2020-01-01' AS sex) FROM frame")
    return f"duckdb:///{folder}/people.db?table=people"


def _lazy() -> Any:
    return module("polars").from_pandas(FRAME).lazy()


@pytest.mark.parametrize("bad", BAD_DATA)
def test_data_that_cannot_be_opened_are_refused_in_a_sentence(tmp_path: Path, bad: str) -> None:
    make, error = BAD_DATA[bad]
    source = make(tmp_path)
    files = sorted(tmp_path.rglob("*"))
    for snapshot in (False, True):
        with pytest.raises(error) as caught:
            privet.open(source, DOMAIN, budget=1, access="snapshot" if snapshot else "push-down")
        assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
        assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert sorted(tmp_path.rglob("*")) == files  # no ledger was made


BAD_SETTINGS: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "budget 0": ({"budget": 0}, QuestionError),
    "budget below 0": ({"budget": -1}, QuestionError),
    "budget nan": ({"budget": math.nan}, QuestionError),
    "budget of words": ({"budget": "abc"}, QuestionError),
    "budget too small": ({"budget": "1e-400"}, QuestionError),
    "no budget": ({"budget": None}, LedgerError),
    "no domain": ({"domain": None}, UndeclaredDomain),
    "a dictionary as domain": ({"domain": {"columns": {}}}, UndeclaredDomain),
    "a missing domain file": ({"domain": "nowhere.toml"}, DomainError),
    "a nameless analyst": ({"analyst": ""}, QuestionError),
    "an analyst who is a number": ({"analyst": 7}, QuestionError),
}


@pytest.mark.parametrize("kind", ["pandas", "csv", "duckdb"])
@pytest.mark.parametrize("bad", BAD_SETTINGS)
def test_settings_that_make_no_sense_are_refused_in_a_sentence(tmp_path: Path, kind: str, bad: str) -> None:
    settings, error = BAD_SETTINGS[bad]
    source = SOURCES[kind](tmp_path)
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(error) as caught:
        privet.open(**{"data": source, "domain": DOMAIN, "budget": 1, **settings})
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.parametrize("content", [b"garbage" * 1000, b"SQLite format 3\x00" + b"x" * 2000], ids=["garbage", "torn"])
def test_a_corrupt_ledger_refuses_the_table_and_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = write_csv(tmp_path)
    ledger = _written(tmp_path / "people.csv.ledger", content)
    with pytest.raises(LedgerError) as caught:
        privet.open(path, DOMAIN, budget=1)
    assert "\n" not in str(caught.value)
    assert ledger.read_bytes() == content


def test_an_engine_that_fails_leaves_the_charge_and_can_be_finished_with_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = privet.open(write_csv(tmp_path), DOMAIN, budget=1)
    engine = table._session.engine
    with monkeypatch.context() as broken:
        broken.setattr(engine, "exact_counts", lambda query: 1 / 0)
        with pytest.raises(EngineFailed, match=r"entry 1 .*retry with the key 'again'"):
            table.count(0.5, key="again")
        with pytest.raises(EngineFailed, match="a new try is a new charge"):
            table.count(0.25)
    assert table.budget.spent == Fraction(3, 4)
    answer = table.count(0.5, key="again")
    assert table.budget.spent == Fraction(3, 4) and table.count(0.5, key="again") == answer
    table.close()


def test_an_address_may_be_quoted_and_hold_any_sign(tmp_path: Path) -> None:
    folder = tmp_path / "a #1 ü"
    folder.mkdir()
    with duckdb.connect(str(folder / "t.db")) as connection:
        connection.execute("CREATE TABLE people AS SELECT 'low' AS income FROM range(7)")
    domain = Domain((Nominal("income", ("low", "high")),))
    for place in (str(folder), quote(str(folder))):
        with privet.open(f"duckdb:///{place}/t.db?table=people", domain, budget=10**6) as table:
            assert table.count(EXACT) == 7

"""A protected table answers every question right from every source, and is not its rows."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from kernel.people import AGE, DOMAIN, EXACT, FRAME, LARGE, SEX, SOURCES, counts, module, write_csv

import privet
from privet.errors import PrivacyError, PrivetError
from privet.kernel import WeightedMax
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.shadow import race


@pytest.fixture(params=[*SOURCES, "snapshot"])
def people(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[privet.ProtectedTable]:
    """The same people, from every place they can come from."""
    kind = "csv" if request.param == "snapshot" else request.param
    source = SOURCES[kind](tmp_path)
    with privet.open(
        source, DOMAIN, budget=LARGE, access="snapshot" if request.param == "snapshot" else "push-down"
    ) as table:
        yield table


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


# --- the same rows in other bins ----------------------------------------------------------------------------------


def in_bins(bins: int) -> Domain:
    """The people's domain with so many bins of ages."""
    age = DOMAIN.numeric("age")
    columns = (replace(age, bins=bins, edges=None) if column is age else column for column in DOMAIN.columns)
    return replace(DOMAIN, columns=tuple(columns))


def test_other_bins_count_the_same_people(people: privet.ProtectedTable) -> None:
    finer = in_bins(25)
    table = people.with_cells(finer)
    counts = table.histogram("age", epsilon=EXACT).value
    assert counts.tolist() == np.bincount(finer["age"].encode(FRAME["age"]), minlength=finer["age"].size).tolist()
    assert table.domain == finer
    assert people.histogram("age", epsilon=EXACT).value.size == DOMAIN["age"].size
    assert table.count(EXACT) == people.count(EXACT)


def test_questions_in_other_bins_are_charged_to_the_same_budget() -> None:
    table = privet.open(FRAME, DOMAIN, budget=1)
    table.allot("0.5").with_cells(in_bins(25)).histogram("age", epsilon="0.5")
    assert table.budget.remaining == Fraction(1, 2)
    part = table.allot("0.25").with_cells(in_bins(25))
    with pytest.raises(privet.errors.BudgetExceeded):
        part.count("0.3")
    assert table.budget.remaining == Fraction(1, 2)


def test_a_part_by_bins_keeps_them_so_that_its_rows_stay_the_same() -> None:
    """With new bins the steps that chose the rows would choose others, which pay for nothing."""
    table = privet.open(FRAME, DOMAIN, budget=LARGE)
    labels = DOMAIN["age"].labels
    chosen = [table.partition("age")[labels[1]], table.where(age={labels[1]})]
    for part in chosen:
        same = part.with_cells(in_bins(25))
        assert same.domain["age"] == DOMAIN["age"]
        assert same.count(EXACT) == part.count(EXACT)
    by_points = table.where(age=(20, 40)).with_cells(in_bins(25))  # chosen on the grid: the bins may change
    assert by_points.domain == in_bins(25)
    assert by_points.count(EXACT) == ((AGE >= 20) & (AGE < 40)).sum()


def test_with_cells_changes_bins_and_nothing_else() -> None:
    table = privet.open(FRAME, DOMAIN, budget=1)
    age = DOMAIN.numeric("age")
    others: list[Any] = [
        replace(DOMAIN, columns=DOMAIN.columns[::-1]),
        replace(DOMAIN, columns=(replace(age, high=age.high * 2), *(c for c in DOMAIN.columns if c is not age))),
        replace(DOMAIN, rows_per_person=DOMAIN.rows_per_person + 1),
        "age",
    ]
    for other in others:
        with pytest.raises(privet.errors.QuestionError, match="no other change"):
            table.with_cells(other)
    assert table.budget.spent == 0


def test_a_copy_reads_a_column_again_in_bins_of_its_own(people: privet.ProtectedTable) -> None:
    again = replace(in_bins(25).numeric("age"), name="again")
    domain = replace(DOMAIN, columns=(*DOMAIN.columns, again))
    table = people.with_cells(domain, {"again": "age"})
    counts = table.histogram("again", epsilon=EXACT).value
    assert counts.tolist() == np.bincount(again.encode(FRAME["age"]), minlength=again.size).tolist()
    both = table.histogram("age", "again", epsilon=EXACT).value
    assert both.sum(axis=0).tolist() == counts.tolist()
    assert both.sum(axis=1).tolist() == people.histogram("age", epsilon=EXACT).value.tolist()


def test_rows_chosen_by_coins_have_no_copies_so_that_they_stay_the_same() -> None:
    """Coins are a hash of all columns: with one more, the same seed would toss others."""
    again = replace(DOMAIN.numeric("age"), name="again")
    part = privet.open(FRAME, DOMAIN, budget=LARGE).scatter(3, random_state=1)[0]
    same = part.with_cells(replace(DOMAIN, columns=(*DOMAIN.columns, again)), {"again": "age"})
    assert same.domain == DOMAIN and same.count(EXACT) == part.count(EXACT)
    finer = part.with_cells(in_bins(25))
    assert finer.domain == in_bins(25) and finer.count(EXACT) == part.count(EXACT)


def test_a_copy_needs_the_grid_of_what_it_reads() -> None:
    table = privet.open(FRAME, DOMAIN, budget=1)
    age = replace(DOMAIN.numeric("age"), name="again")
    for other in (replace(age, step=age.step * 2), replace(age, missing=False)):
        with pytest.raises(privet.errors.QuestionError, match="bounds, step and missing cell"):
            table.with_cells(replace(DOMAIN, columns=(*DOMAIN.columns, other)), {"again": "age"})
    with pytest.raises(privet.errors.QuestionError, match="is nominal"):
        table.with_cells(replace(DOMAIN, columns=(*DOMAIN.columns, age)), {"again": "sex"})
    with pytest.raises(privet.errors.QuestionError, match="no other change"):
        table.with_cells(replace(DOMAIN, columns=(*DOMAIN.columns, age)))
    assert table.budget.spent == 0


def test_other_bins_answer_no_longer_when_the_table_is_closed() -> None:
    table = privet.open(FRAME, DOMAIN, budget=1)
    finer = table.with_cells(in_bins(25))
    table.close()
    with pytest.raises(PrivetError, match="was closed"):
        finer.count("0.1")
    kept = []
    with privet.open(FRAME, DOMAIN, budget=10) as opened:

        def run(shadow: privet.ProtectedTable) -> tuple[Any, Any]:
            kept.append(shadow.with_cells(in_bins(25)))
            return 1, kept[-1].count("0.1")

        race(opened, [run], "0.1")
        with pytest.raises(PrivetError, match="was closed"):
            kept[0].count("0.05")


def test_a_key_of_one_set_of_bins_is_not_that_of_another() -> None:
    table = privet.open(FRAME, DOMAIN, budget=1)
    table.histogram("age", epsilon="0.1", key="ages")
    with pytest.raises(privet.errors.KeyReused):
        table.with_cells(in_bins(25)).histogram("age", epsilon="0.1", key="ages")


def test_a_key_of_a_copy_is_not_that_of_a_copy_of_another_column() -> None:
    """Its answer would be refined by the rows of the other column, whose difference to it is no noise."""
    age, shoe = (Numeric(name, Fraction(0), Fraction(99), Fraction(1), bins=4) for name in ("age", "shoe"))
    table = privet.open(pd.DataFrame({"age": [10] * 9, "shoe": [40] * 9}), Domain((age, shoe)), budget=9)
    copied = Domain((age, shoe, replace(age, name="again", bins=2)))
    table.with_cells(copied, {"again": "age"}).histogram("again", epsilon=1, key="k")
    with pytest.raises(privet.errors.KeyReused):
        table.with_cells(copied, {"again": "shoe"}).histogram("again", epsilon=1, key="k")
    once_more = Domain((*copied.columns, replace(age, name="last", bins=2)))
    by_copies = [
        table.with_cells(copied, {"again": name}).with_cells(once_more, {"last": "again"}) for name in ("age", "shoe")
    ]
    by_copies[0].histogram("last", epsilon=1, key="l")
    with pytest.raises(privet.errors.KeyReused):
        by_copies[1].histogram("last", epsilon=1, key="l")


def test_parts_are_asked_about_in_the_cells_that_they_were_chosen_in() -> None:
    """In others the same steps choose other rows, which overlap with those that have paid."""
    table = privet.open(FRAME, DOMAIN, budget=LARGE)
    part, finer = table.partition("age")[0], table.with_cells(in_bins(25))
    for session, sets in ((finer._session, part._sets), (table._session, finer.partition("age")[0]._sets)):
        mixed = table._with(session, sets)
        with pytest.raises(privet.errors.QuestionError, match="chosen in other cells"):
            mixed.count(1)
        with pytest.raises(privet.errors.QuestionError, match="chosen in other cells"):
            mixed.with_cells(in_bins(5))
    assert table.budget.spent == 0

"""Progress: what it tells, to whom, and that it tells nothing of a row."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spark_session
from postgres_server import shared_server

import privet
from privet.learners.progress import Meter, Progress

ROWS = privet.datasets.census(600, seed=3)
HELD = ROWS.astype(object).where(ROWS.notna(), None).to_numpy().tolist()
CENSUS = privet.datasets.census_domain()
SILENT = replace(CENSUS, rows=None, max_rows=None)

LEARNERS = {
    "tree": privet.MaxTreeClassifier("1", max_depth=2, random_state=0),
    "random forest": privet.HanischForestClassifier("1", n_estimators=3, max_depth=2, random_state=0),
    "forest on disjoint rows": privet.JagannathanForestClassifier("1", n_estimators=4, max_depth=2, random_state=0),
    "boosted": privet.BoostedTablesClassifier("5", random_state=0),
    "naive bayes": privet.NaiveBayesClassifier("1"),
    "prior": privet.PriorClassifier("1"),
}
every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)


def told_by(learner: Any, rows: Any = ROWS, domain: privet.Domain = CENSUS, **more: Any) -> list[Progress]:
    told: list[Progress] = []
    with privet.testing.open(rows, domain, budget=10, seed=7, **more) as table:
        learner.set_params(verbose=told.append).fit(table)
    return told


def public(told: list[Progress]) -> list[Progress]:
    """All but the time."""
    return [replace(each, elapsed=0.0) for each in told]


def test_a_meter_counts_declared_rows_and_estimates_the_rest_from_the_steps_before() -> None:
    told: list[Progress] = []
    clock = itertools.count(100.0, 30.0)
    for domain in (replace(CENSUS, rows=1000), replace(SILENT, max_rows=70), SILENT):
        meter = Meter(told.append, domain, lambda: next(clock))
        meter.at("level 0 of 2", 0, 3, asked=0)
        meter.at("level 1 of 2", 1, 3, asked=4)
    assert [str(each) for each in told] == [
        "level 0 of 2",
        "level 1 of 2; about 2 min left; up to 4,000 rows read",
        "level 0 of 2",
        "level 1 of 2; about 2 min left; up to 4 passes over the rows",  # a bound of 70 says nothing of their number
        "level 0 of 2",
        "level 1 of 2; about 2 min left; up to 4 passes over the rows",
    ]
    assert [(each.elapsed, each.left, each.rows) for each in told[:2]] == [(30.0, None, 0), (60.0, 120.0, 4000)]
    assert str(Progress("chose boosted")) == "chose boosted" and Progress("chose boosted").left is None


@every_learner
def test_steps_go_up_to_the_last_and_rows_are_those_of_the_questions(learner: Any) -> None:
    with privet.open(ROWS, replace(CENSUS, rows=500), budget=10) as table:
        told: list[Progress] = []
        asked: list[int] = []

        def tell(progress: Progress) -> None:
            told.append(progress)
            asked.append(len(table.budget.entries))

        learner.set_params(verbose=tell).fit(table)
    assert told[0].done == 0 and all(a.done < b.done for a, b in itertools.pairwise(told))
    assert {each.total for each in told} == {told[-1].total} and told[-1].done < told[-1].total
    assert all(a.elapsed <= b.elapsed for a, b in itertools.pairwise(told))
    assert [each.rows for each in told] == [500 * number for number in asked]


def test_levels_of_all_trees_are_counted() -> None:
    assert [each.what for each in told_by(LEARNERS["random forest"]) if "level 0" in each.what] == [
        f"tree {number} of 3, level 0 of 2: 1 node" for number in (1, 2, 3)
    ]
    assert {each.total for each in told_by(LEARNERS["random forest"])} == {9}
    first = told_by(LEARNERS["tree"])[0]
    assert (first.what, first.done, first.total, first.left) == ("level 0 of 2: 1 node", 0, 3, None)


def test_a_choice_and_what_was_chosen_are_told() -> None:
    told = told_by(privet.AutoClassifier("1", random_state=0))
    assert told[0].what.startswith("chose ") and told[0].total == 0 and len(told) > 1


@pytest.mark.parametrize("path", ["snapshot", "stream", "push-down"])
@every_learner
def test_every_engine_tells_the_same(tmp_path: Path, learner: Any, path: str) -> None:
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    assert public(told_by(learner, tmp_path / "rows.csv", access=path)) == public(told_by(learner))


def on_postgres() -> str:
    names = ", ".join(f'"{name}"' for name in ROWS.columns)
    with shared_server().connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS progress; CREATE TABLE progress ({names.replace(',', ' text,')} text)")
        with cursor.copy(f"COPY progress ({names}) FROM STDIN") as copy:
            for row in HELD:
                copy.write_row(row)
    return shared_server().address(table="progress")


def on_spark() -> Any:
    kinds = [{"i": "BIGINT", "f": "DOUBLE"}.get(getattr(each, "kind", ""), "VARCHAR") for each in ROWS.dtypes]
    return spark_session.frame(list(ROWS.columns), kinds, HELD)[0]


@pytest.mark.parametrize("rows", [on_postgres, pytest.param(on_spark, marks=pytest.mark.xdist_group("spark"))])
def test_tables_that_stay_where_they_are_tell_the_same(rows: Callable[[], Any]) -> None:
    assert public(told_by(LEARNERS["tree"], rows())) == public(told_by(LEARNERS["tree"]))


@pytest.mark.parametrize("domain", [CENSUS, SILENT], ids=["a bound", "no bound"])
@pytest.mark.parametrize("learner", ["random forest", "naive bayes", "prior"])
def test_the_size_of_a_table_does_not_show(learner: str, domain: privet.Domain) -> None:
    """Learners whose questions follow from no release tell the same of any table, be it empty."""
    expected = public(told_by(LEARNERS[learner], ROWS, domain))
    for rows in (ROWS[:0], ROWS[:1], ROWS[:599]):
        assert public(told_by(LEARNERS[learner], rows, domain)) == expected


@every_learner
def test_a_callback_that_raises_ends_the_fit_and_changes_nothing_else(learner: Any, tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def tell(progress: Progress) -> None:
        if progress.done + 1 >= progress.total:
            raise Enough

    with privet.open(ROWS, CENSUS, budget=10, ledger=tmp_path / "ledger") as table:
        unfitted = type(learner)(**{**learner.get_params(), "verbose": tell})
        with pytest.raises(Enough):
            unfitted.fit(table)
        assert not hasattr(unfitted, "model_")
        entries, spent = table.budget.entries, table.budget.spent
        assert all(entry.answer is not None for entry in entries)
        assert spent < 5 if learner.algorithm == "boosted" else spent < 1
        unfitted.set_params(verbose=0).fit(table)  # as if nothing had been
        assert table.budget.spent == spent + unfitted.privacy_.spent
    with privet.open(ROWS, CENSUS, ledger=tmp_path / "ledger") as table:
        assert table.budget.entries[: len(entries)] == entries

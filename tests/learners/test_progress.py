"""Progress: what it tells, to whom, and that it tells nothing of a row."""

from __future__ import annotations

import io
import itertools
import pickle
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
import spark_session
from postgres_server import shared_server
from sizes import few

import privet
from privet.learners.algorithm import Meter, Progress, ProgressBar

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


@pytest.mark.parametrize(
    ("name", "path"),
    few(
        itertools.product(LEARNERS, ("snapshot", "stream", "push-down")),
        {("tree", "snapshot"), ("random forest", "stream"), *((name, "push-down") for name in LEARNERS)},
    ),
)
def test_every_engine_tells_the_same(tmp_path: Path, name: str, path: str) -> None:
    learner = LEARNERS[name]
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


# -- the bar ----------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Notebook:
    """Stands for IPython in the kernel of a notebook: it keeps what each display showed, the last one alone."""

    def __init__(self, kernel: object) -> None:
        self.displays: list[list[dict[str, str]]] = []
        self.kernel = kernel

    def get_ipython(self) -> Notebook:
        return self

    def display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw and display_id
        shown = [bundle]
        self.displays.append(shown)
        return SimpleNamespace(update=lambda later, *, raw: shown.append(later))

    def run_in(self, monkeypatch: pytest.MonkeyPatch) -> Notebook:
        monkeypatch.setitem(sys.modules, "IPython", cast(ModuleType, self))
        monkeypatch.setitem(sys.modules, "IPython.display", cast(ModuleType, self))
        return self


def fitted(**more: Any) -> Any:
    with privet.open(ROWS, CENSUS, budget=10) as table:
        return privet.MaxTreeClassifier("1", max_depth=2, verbose=True, **more).fit(table)


def test_a_notebook_shows_one_bar_that_moves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = Notebook(kernel=object()).run_in(monkeypatch)
    learner = fitted()
    assert capsys.readouterr() == ("", "")
    (bar,) = notebook.displays
    assert len(bar) == 4 and "level 0 of 2" in bar[0]["text/plain"] and bar[-1]["text/plain"] == "fitted"
    assert [re.findall(r'value="(\d)" max="3"', shown["text/html"]) for shown in bar] == [["0"], ["1"], ["2"], ["3"]]
    assert "_bar" not in vars(learner) and pickle.loads(pickle.dumps(learner)).predict(ROWS[:2]).size == 2


def test_ipython_on_a_terminal_is_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook(kernel=None).run_in(monkeypatch)
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    fitted()
    assert not notebook.displays and stream.getvalue()


def test_a_terminal_shows_one_line_that_is_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    bar = ProgressBar(stream := Terminal())
    bar(Progress("chose boosted"))
    bar(Progress("level 1 of 3: 34 nodes" + " and so on" * 9, 1, 4))
    bar.close(True)
    chose, level, end = stream.getvalue().split("\r")[1:]
    assert chose == "chose boosted\x1b[K" and end == "fitted\x1b[K\n"
    assert level.startswith("████░░░░░░░░░░░░ level 1 of 3: 34 nodes") and len(level.removesuffix("\x1b[K")) == 59


def test_what_is_no_terminal_gets_a_line_for_each_step() -> None:
    bar = ProgressBar(stream := io.StringIO())
    bar(Progress("level 0 of 2", 0, 3))
    bar(Progress("level 1 of 2", 1, 3))
    bar.close(True)
    assert stream.getvalue() == "level 0 of 2\nlevel 1 of 2; about 1 s left\n"


@pytest.mark.parametrize("kernel", [object(), None], ids=["notebook", "terminal"])
def test_a_fit_that_fails_leaves_the_bar_where_it_is(kernel: object, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook(kernel).run_in(monkeypatch)
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    bar = ProgressBar()
    bar(Progress("level 0 of 2", 0, 3))
    bar.close(False)
    shown = [display[-1]["text/plain"] for display in notebook.displays]
    assert shown == ["level 0 of 2"] * (kernel is not None)
    assert stream.getvalue().endswith("level 0 of 2\x1b[K\n" if kernel is None else "")
    ProgressBar(unused := Terminal()).close(True)  # a fit that was refused showed nothing
    assert unused.getvalue() == ""


def test_a_fit_under_a_key_shows_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that ends before its model is stored may tell nobody anything."""
    with privet.open(ROWS, CENSUS, budget=10, ledger=tmp_path / "ledger") as table:
        privet.MaxTreeClassifier("1", max_depth=1, verbose=True).fit(table, key="k")
    assert capsys.readouterr() == ("", "")

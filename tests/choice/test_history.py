"""A history keeps clean rewards, and refuses the others by their type."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privet
from privet import Branch, History, NoisyIf, Public
from privet.choice import BayesianLinear, Learning, Reward, derive
from privet.choice.history import HistoryRow
from privet.choice.training import runs_of
from privet.errors import PrivacyError, QuestionError
from privet.release import Count, Derived, Release, derivation

SYNTHETIC = "synthetic: trees 7"


@pytest.fixture
def table() -> Any:
    return privet.open(privet.datasets.census(500), privet.datasets.census_domain(), budget=4)


def test_a_private_accuracy_is_refused(table: Any) -> None:
    model = privet.PriorClassifier(epsilon=1).fit(table)
    people = privet.datasets.census(500)
    accuracy = model.score(people, people.income.astype(str))
    history = History()
    for reward in (accuracy, float(accuracy), "0.8", None, True, (accuracy,)):
        with pytest.raises(PrivacyError, match="may come from private rows"):
            history.append("learner", {}, "prior", reward, run="r")  # type: ignore[arg-type]
    with pytest.raises(PrivacyError) as refused:
        history.append("learner", {}, "prior", accuracy, run="r")  # type: ignore[arg-type]
    assert str(accuracy)[:6] not in str(refused.value)
    assert len(history) == 0


def test_public_rewards_must_say_which_rows_they_were_measured_on() -> None:
    history = History()
    for origin in ("", "private: adult", "synthetic", "synthetic: ", "charged: 7"):
        with pytest.raises(PrivacyError, match="must say which rows"):
            history.append("learner", {}, "prior", Public(80, origin), run="r")
    history.append("learner", {}, "prior", Public(80, "public: adult, UCI"), run="r")
    assert [(row.origin, row.source) for row in history] == [("public", "adult, UCI")]


def test_a_charged_release_is_kept_with_its_entry(table: Any) -> None:
    model = privet.NaiveBayesClassifier(epsilon=1).fit(table).model_
    right = table.count_correct(model.additive, 1)
    history = History()
    history.append("learner", {"rows": table.count(0.5)}, "naive-bayes", right, run="r")
    (row,) = history
    assert (row.origin, row.reward) == ("charged", float(right))
    assert f"ledger entry {right.about.entry}" in row.source
    assert history.origins("learner") == [f"charged: {row.source} (1 rewards)"]


def test_a_release_with_seeded_noise_is_no_charged_one() -> None:
    people, domain = privet.datasets.census(20), privet.datasets.census_domain()
    with privet.testing.seeded_noise(1), privet.open(people, domain, budget=1) as table:
        count = table.count(1)
    with pytest.raises(PrivacyError, match="seeded noise or from public rows"):
        History().append("learner", {}, "prior", count, run="r")


def test_a_raw_context_is_refused() -> None:
    with pytest.raises(PrivacyError):
        History().append("learner", {"rows": 500}, "prior", Public(80, SYNTHETIC), run="r")  # type: ignore[dict-item]


def test_what_was_written_stays(tmp_path: Path) -> None:
    history = History(tmp_path / "history.db")
    history.append("learner", {"rows": Public(5)}, "prior", Public(80, SYNTHETIC), run="r", data="d")
    history.append("learner", {"rows": Public(5)}, "prior", Public(99, SYNTHETIC), run="r", data="d")
    with pytest.raises(QuestionError, match="another context"):
        history.append("learner", {"rows": Public(6)}, "prior", Public(99, SYNTHETIC), run="r", data="d")
    history.close()
    again = History(tmp_path / "history.db")
    assert [(row.run, row.data, row.context, row.reward) for row in again] == [("r", "d", {"rows": 5.0}, 80.0)]
    raw = sqlite3.connect(tmp_path / "history.db")
    for statement in (
        "UPDATE rewards SET reward = 0",
        "DELETE FROM rewards",
        "UPDATE runs SET data = ''",
        "DELETE FROM runs",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            raw.execute(statement)
    raw.close()


def test_several_branches_are_written_together_or_not_at_all() -> None:
    history = History()
    with pytest.raises(PrivacyError):
        history.extend("s", {}, {"a": Public(1, SYNTHETIC), "b": 2.0}, run="r")  # type: ignore[dict-item]
    assert len(history) == 0 and history.runs("s") == set()


def test_rewards_are_finite_numbers() -> None:
    for value in (float("nan"), float("inf"), "high", None):
        with pytest.raises(QuestionError, match="number"):
            History().append("s", {}, "a", Public(value, SYNTHETIC), run="r")


def test_a_file_that_is_no_history_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database, and long enough to be looked at as one")
    with pytest.raises(QuestionError, match="is no history"):
        History(tmp_path / "text.db")
    with pytest.raises(QuestionError, match="is no history"):
        History(tmp_path / "nowhere" / "history.db")


# -- ways past the types --------------------------------------------------------------------------

SECRET = 0.8312345


def kept(**made: Any) -> None:
    """What nobody vouched for stays out of contexts and rewards, and out of the words of the refusal."""
    for name, value in made.items():
        history = History()
        for write in (
            lambda history=history, value=value: history.append("s", {"x": value}, "a", Public(1, SYNTHETIC), run="r"),
            lambda history=history, value=value: history.append("s", {}, "a", value, run="r"),
        ):
            with pytest.raises(PrivacyError) as refused:
                write()
            assert "8312" not in str(refused.value), name
        assert len(history) == 0


def test_a_class_of_ones_own_is_no_release(table: Any) -> None:
    rows = table.count(0.1)

    class Made(Release):
        about = rows.about
        value = SECRET
        clean = True

    class Counted(Count):
        value = SECRET

    counted = Counted(3, rows.noise, rows.about)
    named_alike = type("Derived", (Derived,), {"__module__": Release.__module__, "clean": True})
    kept(named_alike=named_alike(SECRET, (rows,)))
    kept(made=Made(), counted=counted, mapped=Made().map(float), with_one=rows.map(derive._ratio, counted))


def test_policies_learn_from_what_a_history_kept(tmp_path: Path) -> None:
    history = History(tmp_path / "history.db")
    for run in range(4):
        for branch in "ab":
            history.append("s", {"x": Public(run)}, branch, Public(run, SYNTHETIC), run=f"{run}")
    rows = history.rows("s")
    BayesianLinear.fit(pickle.loads(pickle.dumps(rows)), ("x",))
    runs_of(copy.deepcopy(rows), "ab", ("x",))
    made = HistoryRow("s", "r", "d", {"x": 1.0}, "a", SECRET, "public", "p")
    for wrong in (made, replace(rows[0], reward=SECRET), replace(rows[0])):
        for learn in (lambda some: BayesianLinear.fit(some, ("x",)), lambda some: runs_of(some, "ab", ("x",))):
            with pytest.raises(PrivacyError, match="outside of a history"):
                learn([*rows, wrong])


def test_public_is_the_one_word(table: Any) -> None:
    with pytest.raises(PrivacyError, match="nothing is derived from Public"):
        type("Trusted", (Public,), {})
    rows = table.count(0.1)
    for release in (rows, rows.map(lambda _: SECRET), table.histogram("sex", epsilon=0.1)):
        with pytest.raises(PrivacyError, match="as it is, without Public"):
            Public(release, SYNTHETIC)  # a charged reward would pass for a synthetic one


def test_what_was_released_cannot_be_changed(table: Any) -> None:
    ages = table.histogram("age", epsilon=0.1)
    with pytest.raises(ValueError, match="read-only"):
        ages.values[0] = 831
    with pytest.raises(AttributeError, match="no setter"):
        ages.values = np.maximum(ages.values, 831)  # its total would pass for released
    ages.value[0] = 831  # a copy
    assert ages.values[0] != 831
    for same in (ages, copy.copy(ages), copy.deepcopy(ages), pickle.loads(pickle.dumps(ages))):
        with pytest.raises(ValueError, match="WRITEABLE"):
            same.values.setflags(write=True)
        assert (same.values == ages.values).all()


def test_a_mark_is_not_taken_off(table: Any) -> None:
    marked = table.count(0.1).map(lambda _: SECRET)
    for value in (marked, type("Made", (Derived,), {})(SECRET, (table.count(0.1),))):
        with pytest.raises(AttributeError):
            value.clean = True
        kept(value=value)


def test_bound_and_foreign_functions_are_no_derivations() -> None:
    def foreign(number: float, found: float = SECRET) -> float:
        return found

    foreign.__module__ = "privet.choice.derive"
    for function in (
        Branch.of(SECRET).run,
        Branch.of(SECRET).run.__call__,
        foreign,
        history_of_one().append,
        SECRET.__add__,
    ):
        with pytest.raises(PrivacyError, match="only functions of privet's modules"):
            derivation(function)


def history_of_one() -> History:
    history = History()
    history.append("s", {}, "a", Public(1, SYNTHETIC), run="r")
    return history


def test_marks_survive_copies_and_pickles(table: Any) -> None:
    marked = table.count(0.1).map(max, table.count(0.1))
    kept(copied=copy.copy(marked), deep=copy.deepcopy(marked), pickled=pickle.loads(pickle.dumps(marked)))


def test_costs_and_contexts_of_nodes_are_clean_too(table: Any) -> None:
    """They took bare numbers once."""
    reward, history = Public(1, SYNTHETIC), History()
    wrong: list[dict[str, Any]] = [
        {"cost": Fraction("0.83123")},
        {"nodes": [("a", SECRET, {})]},
        {"nodes": [("a", Public(1), {"x": SECRET})]},
        {"nodes": [("a", Public(1), {"x": table.count(0.1).map(lambda _: SECRET)})]},
    ]
    for more in wrong:
        with pytest.raises(PrivacyError) as refused:
            history.extend("s", {}, {"": reward}, run="r", **more)
        assert "8312" not in str(refused.value)
    assert len(history) == 0 and history.runs("s") == set()


def test_a_context_is_made_of_finite_numbers_and_texts() -> None:
    history = History()
    for value in (float("nan"), float("inf"), 10**400, b"x", [1], np.array([1.0]), None, "x" * 2000):
        with pytest.raises(QuestionError, match=r"finite number or a text|named by a text"):
            history.append("s", {"x": Public(value)}, "a", Public(1, SYNTHETIC), run="r")
    assert len(history) == 0
    for number, value in enumerate((np.int64(3), np.float32(0.5), Fraction(1, 4), True, "Male")):
        history.append("s", {"x": Public(value)}, "a", Public(1, SYNTHETIC), run=f"{number}")
    assert [row.context["x"] for row in history] == [3.0, 0.5, 0.25, 1.0, "Male"]


def test_a_number_of_numpy_or_a_fraction_is_a_number_to_a_choice() -> None:
    """They were none once, and the default was taken without a word."""
    history = History()
    for run in range(30):
        for branch in "ab":
            reward = Public(10.0 * ((run % 2 == 0) == (branch == "a")) + run % 3, SYNTHETIC)
            history.append("s", {"x": Public(run % 2)}, branch, reward, run=f"{run}")
    learning = Learning(history, explore=False)
    for zero, one in ((0, 1), (np.int64(0), np.int64(1)), (Fraction(0), Fraction(1)), (np.float32(0), np.float32(1))):
        branches = {"a": Branch.of("a"), "b": Branch.of("b")}
        taken = [
            NoisyIf("s", branches, "a", context={"x": Public(x)}, history=learning).pick().branch for x in (zero, one)
        ]
        assert taken == ["a", "b"]


# -- a file that others write, fill or break ------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO rewards (run, branch, reward, origin, source) VALUES (1, 'b', 'much', 'public', 'p')",
        "INSERT INTO rewards (run, branch, reward, origin, source) VALUES (1, 'b', 9e999, 'public', 'p')",
        "INSERT INTO rewards (run, branch, reward, origin, source) VALUES (1, 'b', 1, 'trusted', 'p')",
        "INSERT INTO rewards (run, branch, reward, origin, source) VALUES (1, 'b', 1, 'public', zeroblob(9))",
        "INSERT INTO rewards (run, branch, reward, origin, source) VALUES (1, 'b', 1, 'public', hex(zeroblob(2000)))",
        "INSERT INTO costs (reward, cost) VALUES (1, '1/0')",
        "INSERT INTO costs (reward, cost) VALUES (1, '1e999999999')",
        "INSERT INTO costs (reward, cost) VALUES (1, '-1')",
        "INSERT INTO nodes (run, branch, share, context) VALUES (1, 'b', 'all', '{}')",
        "INSERT INTO nodes (run, branch, share, context) VALUES (1, 'b', 1, '[1]')",
        "INSERT INTO nodes (run, branch, share, context) VALUES (1, 'b', 1, '{\"x\": NaN}')",
        "INSERT INTO nodes (run, branch, share, context) VALUES (1, 'b', 1, '{\"x\": [1]}')",
        "INSERT INTO nodes (run, branch, share, context) VALUES (1, 'b', 1, replace(hex(zeroblob(99999)), '0', '['))",
        "DROP TABLE nodes",
        "DROP TABLE rewards",
    ],
)
def test_rows_that_privet_did_not_write_are_refused_in_a_sentence(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "history.db"
    history = History(path)
    history.append("s", {"x": Public(1)}, "a", Public(1, SYNTHETIC), run="r")
    raw = sqlite3.connect(path)
    raw.execute(statement)
    raw.commit()
    raw.close()
    ask = NoisyIf("s", {"a": Branch.of(1), "b": Branch.of(2)}, "a", context={"x": Public(1)}, history=history)
    with pytest.raises(QuestionError, match=r"privet did not write|cannot be read"):
        ask.pick()


def test_a_full_disk_adds_nothing_and_keeps_what_was_paid_for(tmp_path: Path, table: Any) -> None:
    history = History(tmp_path / "history.db")
    history._connection.execute(
        f"PRAGMA max_page_count = {1 + history._connection.execute('PRAGMA page_count').fetchone()[0]}"
    )
    ask = NoisyIf(
        "s",
        {"a": Branch(lambda part: part.count("0.01"), "0.01")},
        "a",
        context={"text": Public("x" * 900)},
        history=history,
        reward=Reward(lambda part, value: part.count("0.01"), "0.01"),
    )
    with pytest.raises(QuestionError, match=r"cannot be written: nothing was added\. Look for a full disk") as failed:
        for _ in range(20):
            ask.run(table, data="d")
    outcome = failed.value.outcome
    assert outcome.branch == "a" and outcome.spent == Fraction(2, 100) and isinstance(outcome.value, int)
    assert 0 < len(history) == len(history.runs("s"))
    assert table.budget.spent == (len(history) + 1) * Fraction(2, 100)


def _append_for_ever(path: str, writer: int) -> None:
    history = History(path)
    for run in range(10**9):
        rewards = {branch: Public(run, SYNTHETIC) for branch in "abc"}
        history.extend("s", {"x": Public(run)}, rewards, run=f"{writer} {run}", cost=Public(1))


def test_a_writer_that_is_killed_leaves_whole_runs(tmp_path: Path) -> None:
    """Ten writers, each killed after others have written more; the file goes on, without a part of a run."""
    path = str(tmp_path / "history.db")
    mine = History(path)
    context = multiprocessing.get_context("fork")
    for writer in range(10):
        worker = context.Process(target=_append_for_ever, args=(path, writer), daemon=True)
        worker.start()
        while not any(run.startswith(f"{writer} ") for run in mine.runs("s")):
            mine.append("t", {}, "a", Public(1, SYNTHETIC), run=f"{len(mine)}")
        worker.kill()
        worker.join()
    rows = mine.rows("s")
    assert len(rows) == 3 * len(mine.runs("s")) and all(row.cost == 1 for row in rows)
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)

"""A history keeps clean rewards, and refuses the others by their type."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import privet
from privet import History, Public
from privet.errors import PrivacyError, QuestionError

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

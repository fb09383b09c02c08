"""Keys: the same question is paid once, and a key means nothing to another analyst."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from kernel.ledger.small_ledger import DATASET, TENTH, new_ledger, one_sentence, table_at, tenth

from privet.errors import BudgetExceeded, EngineFailed, KeyReused, QuestionError
from privet.kernel import Ledger

# -- keys ---------------------------------------------------------------------------------------


def test_the_same_key_returns_the_stored_answer_and_charges_nothing(path: Path | str) -> None:
    table = table_at(path)
    first = table.histogram("sex", "old", epsilon="0.1", key="k")
    for again in (table, table_at(path), table_at(path, budget="0.1")):
        found = again.histogram("sex", "old", epsilon="0.1", key="k")
        assert found.values.tobytes() == first.values.tobytes()
        assert found.about == first.about
        assert again.budget.spent == TENTH
    assert len(table.budget.entries) == 1
    table.histogram("sex", "old", epsilon="0.1")  # without a key a new call charges again
    assert table.budget.spent == 2 * TENTH


def test_the_same_key_works_after_the_budget_is_gone(path: Path | str) -> None:
    table = table_at(path)
    first = table.count(1, key="k")
    assert table.count(1, key="k") == first
    with pytest.raises(BudgetExceeded):
        table.count(1, key="another")


def test_a_retry_pays_nothing_in_a_part_or_an_allotment(path: Path | str) -> None:
    table = table_at(path)
    part, little = table.partition("sex")["f"], table.allot("0.1")
    for _ in range(3):
        part.count("0.2", key="part")
        assert (part.budget.spent, part.budget.remaining) == (Fraction(1, 5), Fraction(4, 5))
    answers = {little.count("0.1", key="allotment") for _ in range(3)}  # which has nothing left after the first
    assert len(answers) == 1
    assert little.budget.spent == TENTH and table.budget.spent == 3 * TENTH


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.count("0.2", key="k"),
        lambda table: table.count("0.05", key="k"),
        lambda table: table.histogram("sex", epsilon="0.1", key="k"),
        lambda table: table.where(sex="f").count("0.1", key="k"),
        lambda table: table.partition("sex")["f"].count("0.1", key="k"),
        lambda table: table.partition("sex").count("0.1", key="k"),
    ],
    ids=["more", "less", "question", "filter", "part", "parts"],
)
def test_a_key_that_comes_back_with_anything_different_is_refused(
    path: Path | str, ask: Callable[[Any], object]
) -> None:
    table = table_at(path)
    table.count("0.1", key="k")
    with pytest.raises(KeyReused) as refused:
        ask(table)
    one_sentence(refused.value)
    assert Ledger.open(path).spent(DATASET) == TENTH
    assert len(Ledger.open(path).entries(DATASET)) == 1


@pytest.mark.parametrize("key", ["", "x" * 201, 7, b"k"], ids=repr)
def test_a_key_is_a_short_text(path: Path | str, key: Any) -> None:
    table = table_at(path)
    with pytest.raises(QuestionError):
        table.count("0.1", key=key)
    assert table.budget.spent == 0


def test_a_failed_attempt_stays_charged_and_is_finished_under_its_key(
    path: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_at(path)

    def fails(query: object) -> None:
        raise RuntimeError("row 17 is 'Smith'")

    with monkeypatch.context() as broken:
        broken.setattr(table._session.engine, "exact_counts", fails)
        for key, finish in (("k", "retry with the key 'k'"), (None, "a new try is a new charge")):
            with pytest.raises(EngineFailed, match=finish) as failed:
                table.count("0.1", key=key)
            assert "Smith" not in str(failed.value)
            assert failed.value.__cause__ is None and failed.value.__context__ is None
    assert table.budget.spent == 2 * TENTH
    assert [entry.answer for entry in table.budget.entries] == [None, None]
    answer = table_at(path).count("0.1", key="k")  # as after a crash: another process finishes
    assert table.count("0.1", key="k") == answer
    assert table.budget.spent == 2 * TENTH
    assert json.loads(table.budget.entries[0].answer or "")["answer"] == [answer]


def test_the_answer_stored_first_is_the_only_one_released(path: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, other = table_at(path), table_at(path)
    engine = table._session.engine
    exact_counts = engine.exact_counts
    finished: list[int] = []

    def slow(query: Any) -> Any:
        # while this attempt is at work, another process finishes under the same key
        finished.append(other.count("0.000001", key="k"))
        return exact_counts(query)

    monkeypatch.setattr(engine, "exact_counts", slow)
    assert [table.count("0.000001", key="k")] == finished
    assert len(table.budget.entries) == 1


def test_the_ledger_keeps_the_first_answer(path: Path | str) -> None:
    ledger = new_ledger(path)
    entry, _ = ledger.charge(DATASET, "ada", tenth("k"))
    assert ledger.store(entry.id, "[1]") == "[1]"
    assert ledger.store(entry.id, "[2]") == "[1]"
    standing, new = ledger.charge(DATASET, "ada", tenth("k"))
    assert (standing.id, standing.answer, new) == (entry.id, "[1]", False)


# -- keys of several analysts -------------------------------------------------------------------


def test_a_key_tells_nothing_about_another_analyst(path: Path | str) -> None:
    ada, bob = table_at(path, "ada"), table_at(path, "bob")
    ada.count("0.1", key="k")
    bob.histogram("sex", epsilon="0.2", key="k")  # charged, and not refused
    assert (ada.budget.spent, bob.budget.spent) == (TENTH, 2 * TENTH)
    with pytest.raises(KeyReused) as refused:
        bob.count("0.1", key="k")
    assert "analyst" not in str(refused.value)
    assert [entry.analyst for entry in Ledger.open(path).entries(DATASET)] == ["ada", "bob"]


def test_two_analysts_refine_their_own_answers_under_the_same_key(path: Path | str) -> None:
    tables = [table_at(path, name) for name in ("ada", "bob")]
    coarse = [table.count("0.1", key="k") for table in tables]
    fine = [answer.refine("0.2") for answer in coarse]
    assert [table.budget.spent for table in tables] == [2 * TENTH] * 2
    assert len({answer.about.entry for answer in (*coarse, *fine)}) == 4

"""A NoisyIf that learns from its own executions: what is kept, what is charged, what is published."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privet
from privet import Branch, History, NoisyIf, Public
from privet.choice import Fixed, Learning, Probe, Reward, derive, percent_right
from privet.choice.history import HistoryRow
from privet.errors import BudgetExceeded, PrivacyError, QuestionError
from privet.kernel import as_epsilon
from privet.lab import worst_loss
from privet.learners.growth import grow
from privet.learners.presets import preset
from privet.models.privacy_record import Privacy

DOMAIN = privet.datasets.census_domain()
PEOPLE = privet.datasets.census(400)


def opened(budget: Any = 100, **more: Any) -> Any:
    return privet.open(PEOPLE, DOMAIN, budget=budget, **more)


def choice(history: Any, reward: Any = None, **more: Any) -> NoisyIf:
    """`good` has 300 rows more to show for itself than `bad`; the advice says `bad`."""
    branches = {
        "bad": Branch(lambda part: int(part.count("0.5")) - 300, cost="0.5"),
        "good": Branch(lambda part: int(part.count("0.5")), cost="0.5"),
    }
    judge = reward or Reward(lambda part, value: derive.difference(part.count("1"), Public(400 - value)), "1")
    options = {"context": {"x": Public(1.0)}, "advice": lambda known: "bad", **more}
    return NoisyIf("size", branches, default="bad", history=history, reward=judge, **options)


# -- executions -----------------------------------------------------------------------------------


def test_an_execution_keeps_its_context_branch_reward_and_cost() -> None:
    history, table = History(), opened()
    outcome = choice(history).run(table, data="hospital A")
    (row,) = history
    assert (row.site, row.data, row.branch, row.context) == ("size", "hospital A", "bad", {"x": 1.0})
    assert outcome.reward is not None and row.reward == outcome.reward.value and row.origin == "charged"
    assert row.cost == outcome.spent == table.budget.spent == Fraction(3, 2)
    assert f"ledger entry {outcome.reward.about.entry}" in row.source


def test_the_next_execution_knows_it_and_overrules_the_advice() -> None:
    history, taken = History(), []
    for _ in range(20):
        outcome = choice(history).run(opened())
        taken.append(outcome.branch)
    assert taken[0] == "bad" and taken[-10:].count("good") >= 9
    greedy = choice(Learning(history, explore=False)).pick()
    assert greedy.branch == "good" and greedy.margins["good"] > 100


def test_a_choice_is_the_same_until_a_reward_comes_in() -> None:
    history = History()
    ask = choice(history)
    for _ in range(3):
        ask.run(opened())
    assert ask.pick().margins == ask.pick().margins == choice(history).pick().margins
    before = ask.pick().policy
    ask.run(opened())
    assert ask.pick().policy != before  # fitted anew, without being told


def test_what_was_learned_from_is_published_with_the_choice() -> None:
    history = History()
    for run in range(2):
        reward = Public(50.0, origin="public: adult, UCI")
        history.append("size", {"x": Public(1.0)}, "good", reward, run=f"public {run}")
    assert choice(History()).run(opened()).decision.learned == ()
    choice(history).run(opened())
    outcome = choice(history).run(opened())
    assert outcome.learned == ("public: adult, UCI (2 rewards)", "charged: count for epsilon 1 (1 rewards)")
    assert outcome.policy.startswith("bayesian-linear ") and len(outcome.policy.split()[-1]) == 12
    assert outcome.decision.learned == outcome.learned and outcome.decision.policy == outcome.policy
    assert "learned from public: adult, UCI (2 rewards); charged" in outcome.explain()


def test_the_reward_is_reserved_with_the_branch() -> None:
    ask, table = choice(History()), opened(budget="1.4")
    assert ask.reservation == Fraction(3, 2)
    with pytest.raises(BudgetExceeded):
        ask.run(table)
    assert table.budget.spent == 0


def test_a_reward_that_is_not_clean_is_not_kept() -> None:
    judges: list[Callable[[Any, Any], Any]] = [
        lambda part, value: 0.83,
        lambda part, value: part.count("1").map(lambda n: n + value),
    ]
    for judge in judges:
        history = History()
        with pytest.raises(PrivacyError):
            choice(history, Reward(judge, "1")).run(opened())
        assert len(history) == 0


def test_a_probe_is_part_of_the_context_that_is_kept() -> None:
    history = History()
    probe = Probe(lambda part: part.histogram("sex", epsilon="0.5"), "0.5", lambda found: {"rows": derive.total(found)})
    branches = {"a": Branch(lambda part, counts: counts, cost="0.1")}
    ask = NoisyIf(
        "p", branches, "a", mode=probe, history=history, reward=Reward(lambda part, value: part.count("0.1"), "0.1")
    )
    outcome = ask.run(opened())
    (row,) = history
    assert row.context == {"rows": outcome.context["rows"]} and row.cost == Fraction(6, 10)  # the branch asked nothing


def test_learning_costs_what_the_ledger_says() -> None:
    """Of 250 outcomes that were computed, none loses more than two executions that learn are charged."""
    people = PEOPLE.iloc[:3]

    def run(table: Any) -> Any:
        history = History()
        branches = {
            "low": Branch(lambda part: int(part.count("2")), cost="2"),
            "high": Branch(lambda part: int(part.count("4")), cost="4"),
        }
        # the script decides what is released: the history cannot know that it stands for real noise
        reward = Reward(lambda part, value: Public(int(part.count("2")), "synthetic: an outcome"), "2")
        taken = []
        for _ in range(2):
            ask = NoisyIf("s", branches, "low", history=history, reward=reward, advice=lambda known: "high")
            outcome = ask.run(table)
            taken.append((outcome.branch, outcome.value > 3, outcome.reward.value))  # type: ignore[union-attr]
        return tuple(taken)

    found = worst_loss(run, people, people.iloc[1:], DOMAIN, limit=250)
    assert 8 < found.loss <= 12 + 1e-9


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(QuestionError, match="not both"):
        choice(History(), policy=Fixed("bad"))
    with pytest.raises(QuestionError, match="goes with a history"):
        choice(None)
    with pytest.raises(QuestionError, match="learns from a History"):
        choice("history.db")
    for wrong in ({"half_life": 0}, {"cap": -1}, {"cap": True}, {"half_life": float("inf")}):
        with pytest.raises(QuestionError, match="number of executions"):
            Learning(History(), **wrong)
    with pytest.raises(QuestionError, match="best is"):
        Learning(History(), best="most")
    with pytest.raises(QuestionError, match="no history"):
        NoisyIf("criterion", {"a": Branch.of(1)}, "a").learn(_tree(None)[0], Public(1, "public: p"))


# -- forgetting, and what one data set may teach ------------------------------------------------------


def row(run: int, data: str = "d", branch: str = "a", reward: float = 0.0) -> HistoryRow:
    return HistoryRow("s", f"r{run}", data, {}, branch, reward, "synthetic", "world")


def test_old_executions_count_less() -> None:
    weights = Learning(History(), half_life=2).weights([row(i) for i in range(5)])
    assert weights == pytest.approx([0.25, 0.5**1.5, 0.5, 0.5**0.5, 1])
    assert Learning(History()).weights([row(i) for i in range(5)]) == [1.0] * 5


def test_a_data_set_teaches_at_most_its_cap() -> None:
    rows = [*(row(i, "large") for i in range(20)), *(row(20 + i, f"small {i}") for i in range(3))]
    weights = Learning(History(), cap=4).weights(rows)
    assert sum(weights[:20]) == pytest.approx(4) and weights[20:] == [1.0] * 3
    both = Learning(History(), cap=4, half_life=5).weights(rows)
    assert sum(both[:20]) <= 4 and both[-1] == 1.0


@pytest.mark.parametrize(("more", "taken"), [({}, "a"), ({"cap": 3}, "b"), ({"half_life": 4}, "b")])
def test_cap_and_forgetting_change_the_choice(more: dict[str, Any], taken: str) -> None:
    """One old data set says a, several new ones say b."""
    history, rng = History(), np.random.default_rng(0)

    def append(run: int, data: str, ahead: str) -> None:
        for branch in "ab":
            reward = Public(5.0 * (branch == ahead) + rng.normal(), "synthetic: w")
            history.append("s", {}, branch, reward, run=f"{run}", data=data)

    for run in range(40):
        append(run, "old", "a")
    for run in range(10):
        append(100 + run, f"new {run}", "b")
    learning = Learning(history, explore=False, **more)
    assert NoisyIf("s", {"a": Branch.of(1), "b": Branch.of(2)}, "a", history=learning).pick().branch == taken


def test_tables_of_one_ledger_file_are_one_data_set(tmp_path: Path) -> None:
    history = History()
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    for _ in range(2):
        with privet.open(tmp_path / "people.csv", DOMAIN, budget=100, ledger=tmp_path / "ledger.db") as table:
            choice(history).run(table)
    choice(history).run(opened())
    data = [one.data for one in history]
    assert data[0] == data[1] != data[2] and str(tmp_path) not in data[0]


# -- a file that several programs share -----------------------------------------------------------


def _append(path: str, writer: int) -> None:
    history = History(path)
    for run in range(25):
        history.append("s", {"x": Public(run)}, "a", Public(run, "synthetic: w"), run=f"{writer} {run}")


def test_processes_share_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "history.db")
    mine = History(path)
    context = multiprocessing.get_context("fork")  # what is open before a fork stays usable on both sides
    workers = [context.Process(target=_append, args=(path, writer)) for writer in range(4)]
    for worker in workers:
        worker.start()
    _append(path, 99)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert len(mine) == 125 and len(mine.runs("s")) == 125
    assert mine.last("s") == 125


def test_threads_share_a_history(tmp_path: Path) -> None:
    for history in (History(), History(tmp_path / "history.db")):

        def work(writer: int, history: History = history) -> None:
            for run in range(10):
                history.append("s", {}, "a", Public(run, "synthetic: w"), run=f"{writer} {run}")

        threads = [threading.Thread(target=work, args=(writer,)) for writer in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(history) == 40


def test_a_history_goes_to_another_process_as_its_file(tmp_path: Path) -> None:
    history = History(tmp_path / "history.db")
    _append(history.path, 0)
    assert len(pickle.loads(pickle.dumps(history))) == 25
    with pytest.raises(QuestionError, match="stays in its process"):
        pickle.dumps(History())


def test_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    import sqlite3

    raw = sqlite3.connect(tmp_path / "old.db")
    raw.executescript("""
        CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, site TEXT NOT NULL, run TEXT NOT NULL,
            data TEXT NOT NULL, context TEXT NOT NULL, UNIQUE (site, run));
        CREATE TABLE rewards (id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL REFERENCES runs,
            branch TEXT NOT NULL, reward REAL NOT NULL, origin TEXT NOT NULL, source TEXT NOT NULL,
            UNIQUE (run, branch));
        INSERT INTO runs (site, run, data, context) VALUES ('s', 'r', 'd', '{"x": 1.0}');
        INSERT INTO rewards (run, branch, reward, origin, source) VALUES (1, 'a', 7, 'synthetic', 'w');
    """)
    raw.commit()
    raw.close()
    (row,) = History(tmp_path / "old.db").rows("s")
    assert (row.branch, row.reward, row.cost, row.nodes) == ("a", 7.0, None, ())


# -- trees ----------------------------------------------------------------------------------------


def _tree(history: Any, depth: int = 2, rows: int | None = 400) -> tuple[Any, NoisyIf, Any]:
    kinds = {"best": Branch.of("select"), "any": Branch.of("random")}
    kind = NoisyIf("split", kinds, "any", advice=lambda known: "best" if known["depth"] == 0 else None, history=history)
    table = privet.open(PEOPLE, replace(DOMAIN, rows=rows), budget=100)
    plan = replace(preset("id3plus").plan(table.domain, max_depth=depth), split=kind)
    return grow(table, plan, as_epsilon(2), np.random.default_rng(0)), kind, table


@pytest.mark.parametrize("rows", [400, None])
def test_a_tree_keeps_the_contexts_of_its_nodes(rows: int | None) -> None:
    tree, _, _ = _tree(History(), rows=rows)
    decisions = {decision.branch: decision for decision in tree.privacy.decisions}
    assert decisions["best"].nodes == 1 and decisions["any"].nodes >= 2
    contexts = [context for decision in decisions.values() for context in decision.at_nodes()]
    assert len(contexts) == sum(decision.nodes for decision in decisions.values())
    assert {context["depth"] for context in contexts} == {0.0, 1.0}
    assert all({"rows", "signal", "budget", "epsilon", "left"} <= set(context) for context in contexts)
    assert Privacy.from_dict(json.loads(json.dumps(tree.privacy.to_dict()))) == tree.privacy


def test_a_tree_teaches_by_its_nodes() -> None:
    history = History()
    tree, kind, table = _tree(history)
    right = percent_right(table, tree, 1)
    kind.learn(tree, right, data="hospital A")
    (row,) = history.rows("split")
    assert (row.branch, row.data, row.reward, row.cost) == ("", "hospital A", right.value, tree.privacy.spent)
    assert len(row.nodes) == sum(decision.nodes for decision in tree.privacy.decisions)
    assert sum(node.share for node in row.nodes) == pytest.approx(1)
    root = [node for node in row.nodes if node.context["depth"] == 0]
    assert len(root) == 1 and root[0].share == pytest.approx(0.5, abs=0.1)  # two levels count alike
    again, _, _ = _tree(history)
    assert all("count" in origin or "histogram" in origin for d in again.privacy.decisions for origin in d.learned)
    assert {decision.policy for decision in again.privacy.decisions} == {kind.pick(_view()).policy}
    with pytest.raises(QuestionError, match="did not ask"):
        NoisyIf("stop", {"a": Branch.of(1)}, "a", history=history).learn(tree, right)


def _view() -> dict[str, Public]:
    names = ("epsilon", "attributes", "classes", "arity", "ordered", "rows", "signal", "depth", "left", "budget")
    return dict.fromkeys(names, Public(1.0))


def test_nodes_are_told_apart_by_what_runs_share() -> None:
    """Runs with one reward each for all of their nodes: which branch is better at which depth comes out."""
    history, rng = History(), np.random.default_rng(0)
    for run in range(80):
        taken = {depth: "ab"[int(rng.integers(2))] for depth in (0.0, 1.0)}
        reward = sum(2.0 * (branch == ("a" if depth == 0 else "b")) for depth, branch in taken.items())
        nodes = [(branch, Public(0.5), {"depth": Public(depth)}) for depth, branch in taken.items()]
        kept = Public(70 + reward + rng.normal(scale=0.5), "synthetic: w")
        history.extend("s", {}, {"": kept}, run=f"{run}", nodes=nodes)
    ask = NoisyIf("s", {"a": Branch.of("a"), "b": Branch.of("b")}, "a", history=Learning(history, explore=False))
    assert [ask.pick({"depth": Public(depth)}).branch for depth in (0.0, 1.0)] == ["a", "b"]


# -- rewards --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [2000, None])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_how_many_rows_a_tree_has_right_is_counted_anew(rows: int | None, depth: int) -> None:
    people = privet.datasets.census(2000)
    table = privet.open(people, replace(DOMAIN, rows=rows), budget=1000)
    tree = privet.ID3PlusClassifier(epsilon=2, max_depth=depth, random_state=0).fit(table)
    before = table.budget.spent
    found = percent_right(table, tree.model_, 50)
    assert table.budget.spent - before == 50 and found.clean and found.private
    assert found.value == pytest.approx(100 * tree.score(people.drop(columns="income"), people.income), abs=0.5)


@pytest.mark.parametrize("rows", [2000, None])
def test_how_many_rows_tables_have_right_is_counted(rows: int | None) -> None:
    people = privet.datasets.census(2000)
    table = privet.open(people, replace(DOMAIN, rows=rows), budget=1000)
    model = privet.NaiveBayesClassifier(epsilon=2).fit(table)
    before = table.budget.spent
    found = Reward.percent_right(50).ask(table, model.model_)
    assert table.budget.spent - before == 50 and found.clean
    assert found.value == pytest.approx(100 * model.score(people.drop(columns="income"), people.income), abs=0.5)


def test_percent_right_refuses_before_it_charges() -> None:
    table = opened()
    forest = privet.JagannathanForestClassifier(epsilon=1, n_estimators=2).fit(opened()).model_
    other = privet.ID3PlusClassifier(epsilon=1).fit(privet.open(PEOPLE, replace(DOMAIN, rows=400), budget=1)).model_
    for model in (forest, other):
        with pytest.raises(QuestionError, match="nothing was charged"):
            percent_right(table, model, 1)
    assert table.budget.spent == 0

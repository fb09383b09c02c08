"""Attacks on the budget: what is charged tells nothing, and no game with parts, keys or forks buys more."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernel.attacks.attacked import (
    DOMAIN,
    EXACT,
    QUESTIONS,
    _raiser,
    each_source,
    neighbours,
    opened,
    people,
    run_script,
    store,
)

import privet
from privet.errors import BudgetExceeded, DataError, EngineFailed, KeyReused, PrivacyError, PrivetError
from privet.kernel import Ledger
from privet.kernel.engines.contract import CountQuery, GridQuery

# --- 7: the budget as a channel --------------------------------------------------------------------------------------


def _written(table: privet.ProtectedTable) -> list[tuple[Any, ...]]:
    return [(e.id, e.analyst, e.scope, e.question, e.epsilon, e.loss, e.key) for e in table.budget.entries]


@each_source
def test_budget_as_a_channel(kind: str, tmp_path: Path) -> None:
    """A cost that depends on the rows is a release of its own, and a free one (Haeberlen)."""
    ledgers = []
    for number, frame in enumerate([*neighbours(), people().iloc[:0]]):
        with opened(frame, kind, tmp_path / f"{number}", name="same") as table:
            for ask in QUESTIONS.values():
                ask(table)
            ledgers.append((_written(table), table.budget.spent, table.budget.remaining))
    assert ledgers[0] == ledgers[1] == ledgers[2]


@each_source
def test_refusals_reveal_nothing(kind: str, tmp_path: Path) -> None:
    """A refusal whose words depend on the rows is an answer without noise."""
    words = []
    for number, frame in enumerate(neighbours()):
        said = []
        with opened(frame, kind, tmp_path / f"{number}", name="same", budget=1) as table:
            table.count(0.5)
            for ask in (
                lambda table=table: table.count(0.75),
                lambda table=table: table.where(job="clerk").count(0.75),
                lambda table=table: table.partition("job").histogram("wage", epsilon=0.75),
                lambda table=table: table.allot(0.25).select("max", 0.5),
                lambda table=table: table.where(job="poet"),
                lambda table=table: table.sum("name", 1),
            ):
                with pytest.raises(PrivetError) as caught:
                    ask()
                said.append((type(caught.value), str(caught.value), vars(caught.value)))
            said.append(_written(table))
        words.append(said)
    assert words[0] == words[1]


@each_source
def test_exceptions_still_charge(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that fails for free can be asked until it fails no more: failing would be a free bit."""
    with opened(people(), kind, tmp_path) as table:
        engine = table._session.engine
        for method in ("exact_counts", "exact_grid", "exact_sums", "exact_residuals"):
            monkeypatch.setattr(engine, method, _raiser("row"))
        for number, ask in enumerate(QUESTIONS.values(), start=1):
            with pytest.raises(EngineFailed):
                ask(table)
            assert table.budget.spent == number


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_the_work_an_engine_does_is_the_same_for_neighbours(kind: str, tmp_path: Path) -> None:
    """A statement, a retry or an error path that only one row causes could be timed."""
    seen = []
    for number, frame in enumerate(neighbours(["CANARY", "CANARY", "yes"])):
        with opened(frame, kind, tmp_path / f"{number}", seed=1) as table:
            engine = table._session.engine
            statements: list[str] = []
            run = engine._run
            engine._run = lambda tree, run=run, statements=statements: (statements.append(tree.sql()), run(tree))[1]
            for ask in list(QUESTIONS.values()):
                ask(table)
            seen.append([each.replace(str(tmp_path / f"{number}"), "") for each in statements])
    assert seen[0] == seen[1]


# --- 9: partition games ----------------------------------------------------------------------------------------------


def test_overlapping_conditions_add(table: privet.ProtectedTable) -> None:
    """Conditions that overlap count a record twice: charged as a maximum they would halve its price."""
    table.where(wage=(0, 500)).count(1)
    table.where(wage=(400, None)).count(1)
    assert table.budget.spent == 2
    part = table.partition("job")["clerk"]
    part.where(wage=(0, 500)).count(1)
    part.where(wage=(400, None)).count(1)
    assert table.budget.spent == 4


def test_a_parent_used_after_its_parts_adds(table: privet.ProtectedTable) -> None:
    """Parts and their parent hold the same record: together they lose the sum."""
    parts = table.partition("job")
    parts.count(1)
    table.count(1)
    parts.count(1)
    parts[0].partition("wage").count(1)
    parts[0].count(1)
    assert table.budget.spent == 5


def test_the_same_partition_twice_adds(table: privet.ProtectedTable) -> None:
    """Two partitions by one column are two looks at every record."""
    for _ in range(3):
        table.partition("job").count(1)
    assert table.budget.spent == 3
    again = table.partition("job")
    again["clerk"].count(1)
    again["nurse"].count(1)
    again[0].count(1)
    assert table.budget.spent == 5


def test_siblings_taken_from_different_partitions_add(table: privet.ProtectedTable) -> None:
    """The clerks of one partition and the nurses of another may share records if charged as siblings."""
    by_job, by_wage = table.partition("job"), table.partition("wage")
    by_job[0].count(1)
    by_wage[0].count(1)
    assert table.budget.spent == 2


def test_a_tree_costs_its_dearest_path(table: privet.ProtectedTable) -> None:
    """Charging less than the dearest path would give the records on it away; charging more wastes the budget."""
    level = table.partition("job")
    level.select("max", [1, 2, 3])
    below = level.partition(["wage", None, ("wage", 500)])
    below.count([5] * 5 + [1] * 3)
    assert table.budget.spent == 6  # 1 + 5 and 3 + 1
    assert level.remaining == [94, 98, 96]


@each_source
def test_null_keys_lie_in_no_second_part(kind: str, tmp_path: Path) -> None:
    """A row without a key that lay in several parts, or in one of its own, would be charged once and seen often."""
    frame = people()
    frame.loc[:9, "wage"] = None
    frame.loc[5:14, "job"] = None
    with opened(frame, kind, tmp_path, {"wage": "DOUBLE"}) as table:
        total = table.count(EXACT)
        for parts in (
            table.partition("wage"),
            table.partition(("wage", 300)),
            table.partition("job"),
            table.partition("job").partition("wage"),
            table.partition("wage", edges=[100, 900]).partition("job"),
        ):
            assert sum(parts.count(EXACT)) == total
        assert total == 30  # job has no cell for missing values


@each_source
def test_keys_are_never_read_from_data(kind: str, tmp_path: Path) -> None:
    """Parts named after values that occur would show which values occur."""
    labels = []
    for number, frame in enumerate([people(), people().iloc[:0], people().assign(job="CANARY")]):
        with opened(frame, kind, tmp_path / f"{number}") as table:
            parts = table.partition("job").partition("wage")
            labels.append((table.partition("job").labels, parts.labels, parts.paths, len(parts.count(1))))
    assert labels[0] == labels[1] == labels[2]
    assert labels[0][0] == ["clerk", "nurse", "<other>"]


@each_source
def test_whoever_knows_the_seed_of_the_coins_sees_one_part_change(kind: str, tmp_path: Path) -> None:
    """Coins that depend on other rows, or on their order, would move rows between parts: all parts would tell."""
    row = ["nurse", 250.25, "yes"]
    before, after = neighbours(row)
    first = pd.concat([after.iloc[-1:], before], ignore_index=True)  # the row may come at any place
    for seed in range(4):
        exact, noisy = [], []
        for number, frame in enumerate((before, after, first)):
            with opened(frame, kind, tmp_path / f"{seed} {number}", {"wage": "DOUBLE"}, seed=1) as table:
                parts = table.scatter(5, random_state=seed)
                engine, rows = table._session.engine, parts._sets.rows
                (grid,) = engine.exact_grid(GridQuery(rows, ("wage",), "ill"))
                cells = {
                    (p, i): n for p, i, n in zip(grid.part, grid.index, map(tuple, grid.exact_counts), strict=True)
                }
                exact.append((engine.exact_counts(CountQuery(rows, (DOMAIN.names,)))[0], cells))
                noisy.append(parts.count(1).array())
        assert np.array_equal(exact[1][0], exact[2][0]) and exact[1][1] == exact[2][1]
        change = exact[1][0] - exact[0][0]
        assert change.sum() == np.abs(change).sum() == 1
        assert len(set(exact[1][1].items()) - set(exact[0][1].items())) == 1
        # what is asked of the other parts is the same, noise included
        assert np.count_nonzero(noisy[1] - noisy[0]) == 1


# --- 12, 13, 15: asking again, asking about nobody ------------------------------------------------------------------


def test_retry_until_good(table: privet.ProtectedTable) -> None:
    """Who may throw away answers for free gets the one they like: each try has its price."""
    small = table.allot(1)
    for _ in range(10):
        small.count(0.1)
    with pytest.raises(BudgetExceeded):
        small.count(0.1)
    assert table.budget.spent == 1


@each_source
def test_group_existence(kind: str, tmp_path: Path) -> None:
    """A cell that appears only where someone is in it tells that someone is."""
    frames = [people(), people()[people()["job"] != "clerk"], people().iloc[:0]]
    shapes = []
    for number, frame in enumerate(frames):
        with opened(frame, kind, tmp_path / f"{number}") as table:
            found = table.histogram("job", "wage", epsilon=0.01)
            shapes.append(
                (found.labels, np.asarray(found).shape, list(found.to_frame().iloc[:, :2].itertuples(index=False)))
            )
            assert (np.asarray(found) != 0).mean() > 0.5  # empty cells have noise like the others
    assert shapes[0] == shapes[1] == shapes[2]


@each_source
def test_cached_answers(kind: str, tmp_path: Path) -> None:
    """Fresh noise for free averages away; a stored answer for free does not, and is the same one."""
    with opened(people(), kind, tmp_path) as table:
        fresh = [int(table.count(0.001)) for _ in range(20)]
        assert len(set(fresh)) > 10
        assert table.budget.spent == Fraction(20, 1000)
        kept = [int(table.count(0.001, key="once")) for _ in range(20)]
        assert len(set(kept)) == 1
        assert table.budget.spent == Fraction(21, 1000)


def test_a_key_of_someone_else(tmp_path: Path) -> None:
    """A stored answer found by guessing another analyst's key would be a release nobody granted."""
    source = store(people(), "csv", tmp_path)
    with privet.open(source, DOMAIN, budget=1, analyst="ada") as ada, privet.open(source, DOMAIN, analyst="eve") as eve:
        ada.histogram("ill", epsilon=0.1, key="secret")
        eve.count(0.1, key="secret")  # her own key of that name: charged, and nothing says that there is another
        assert eve.budget.spent == Fraction(1, 10)
        assert ada.histogram("ill", epsilon=0.1, key="secret").about.entry == 1


# --- 14: randomness and forks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ledger", ["memory", "file"])
def test_forked_processes_do_not_share_a_budget(tmp_path: Path, ledger: str) -> None:
    """Each copy of a table that thinks the dearest part is already paid would spend it again."""
    lines = run_script(
        f"""
domain = Domain((Nominal("sex", ("f", "m")),))
ledger = None if {ledger!r} == "memory" else {str(tmp_path / "ledger")!r}
table = privet.open(pd.DataFrame({{"sex": ["f", "m"]}}), domain, budget=1, ledger=ledger)
parts = table.partition("sex")
parts[0].count(0.5)

def spend():
    said = []
    for ask in (lambda: parts[1].count(0.5), lambda: table.count(0.1)):
        try:
            said.append(int(ask()))
        except privet.PrivacyError as error:
            said.append(str(error))
    return said

for _ in range(2):
    print(in_child(spend))
print(table.budget.spent, len(table.budget.entries))
"""
    )
    for line in lines[:2]:
        first, second = json.loads(line)
        assert "another process" in first and "another process" in second
    assert lines[2] == "1/2 1"


# --- what a review found ----------------------------------------------------------------------------------------------


def test_an_interrupt_during_the_commit_buys_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If an interrupted charge were forgotten, every retry under its key would be a free answer on that part."""
    table = privet.open(people(), DOMAIN, budget=1, ledger=tmp_path / "ledger")
    parts = table.partition("job")
    parts[0].count(1)  # the table has paid 1: its other parts are free up to 1
    write = Ledger.charge

    def interrupted(*words: Any, **more: Any) -> Any:
        write(*words, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", interrupted)
        with pytest.raises(KeyboardInterrupt):
            parts[1].count(1, key="k")
    parts[1].count(1, key="k")  # finishes under the charge that stands
    with pytest.raises(BudgetExceeded):
        parts[1].count(1, key="another")


def test_a_link_or_another_spelling_is_no_new_budget(tmp_path: Path) -> None:
    """The same rows under another name would come with a fresh ledger."""
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "link.csv").symlink_to(tmp_path / "people.csv")
    with privet.open(tmp_path / "people.csv", DOMAIN, budget=1) as table:
        table.count(1)
    with privet.open(tmp_path / "link.csv", DOMAIN, budget=1) as table:
        assert table.budget.remaining == 0
    source = store(people(), "duckdb", tmp_path)
    with privet.open(source, DOMAIN, budget=1) as table:
        table.count(1)
    address, _, name = str(source).rpartition("=")
    with privet.open(f"{address}={name.upper()}", DOMAIN) as table:
        assert table.budget.remaining == 0


def test_a_key_of_other_data_is_refused(tmp_path: Path) -> None:
    """One ledger, one name, two files: an answer about one must not be given for the other."""
    for folder, rows in (("a", 40), ("b", 5)):
        (tmp_path / folder).mkdir()
        people().head(rows).to_csv(tmp_path / folder / "p.csv", index=False)
    with privet.open(tmp_path / "a" / "p.csv", DOMAIN, budget=10, ledger=tmp_path / "ledger") as table:
        table.count(1, key="k")
    with privet.open(tmp_path / "b" / "p.csv", DOMAIN, ledger=tmp_path / "ledger") as table:
        with pytest.raises(KeyReused):
            table.count(1, key="k")
        assert table.budget.spent == 1


def test_fewer_rows_per_person_than_promised_are_refused(tmp_path: Path) -> None:
    """The budget spent so far protects persons with two rows; a domain that says one would break that promise."""
    frame, ledger = people(), tmp_path / "ledger"
    privet.open(frame, replace(DOMAIN, rows_per_person=2), budget=1, ledger=ledger).count(0.5)
    with pytest.raises(PrivacyError, match=r"up to 2 row\(s\)"):
        privet.open(frame, DOMAIN, ledger=ledger)


def test_a_closed_table_answers_nothing_and_charges_nothing() -> None:
    """A table without rows would go on answering 0, for money."""
    table = privet.open(people(), DOMAIN, budget=1)
    table.close()
    with pytest.raises(DataError, match="was closed"):
        table.count(1)
    assert table.budget.spent == 0

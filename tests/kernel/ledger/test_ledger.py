"""The ledger: nobody overspends, nothing written is lost, and what a charge means for a person."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from command import run as run_command
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel.ledger.small_ledger import DATASET, DOMAIN, FRAME, TENTH, new_ledger, one_sentence, stored, table_at, tenth

import privet
from privet import ledger_lines
from privet.errors import BudgetExceeded, KeyReused, LedgerError, PrivacyError
from privet.kernel import CapChange, Charge, Entry, Ledger
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain


def test_a_charge_takes_no_longer_when_there_are_many_entries() -> None:
    """Counted in steps of the database's machine: the last totals are found, and the others not looked at."""

    def steps_of_a_charge(entries: int) -> int:
        ledger = new_ledger(":memory:", Fraction(10**6))
        for number in range(entries):
            ledger.charge(DATASET, f"analyst {number % 3}", tenth(str(number)))
        taken = 0

        def step() -> None:
            nonlocal taken
            taken += 1

        ledger._store._connection.set_progress_handler(step, 1)
        entry, new = ledger.charge(DATASET, "analyst 1", tenth("new"))
        ledger.store(entry.id, "[42]")
        ledger._store._connection.set_progress_handler(None, 1)
        assert new
        return taken

    few, many = steps_of_a_charge(10), steps_of_a_charge(1000)
    assert 100 < many < 1.1 * few


# -- a durable file -----------------------------------------------------------------------------


def test_a_ledger_opened_again_goes_on(path: Path | str) -> None:
    table_at(path).count("0.3")
    again = table_at(path, budget=None)
    assert (again.budget.spent, again.budget.remaining) == (Fraction(3, 10), Fraction(7, 10))
    again.count("0.7")
    with pytest.raises(BudgetExceeded):
        table_at(path).count("0.1")
    assert [entry.loss for entry in table_at(path).budget.entries] == [Fraction(3, 10), Fraction(7, 10)]


def test_a_file_beside_the_data_is_the_default(tmp_path: Path) -> None:
    data = tmp_path / "people.csv"
    FRAME.to_csv(data, index=False)
    for spent in (Fraction(2, 5), Fraction(4, 5)):
        with privet.open(data, DOMAIN, budget=1) as table:
            table.count("0.4")
            assert table.budget.spent == spent
    assert privet.kernel.source_of(data).ledger.exists()


def test_a_larger_budget_than_recorded_is_refused(path: Path | str) -> None:
    table_at(path)
    with pytest.raises(PrivacyError, match="above the 1 in its ledger") as refused:
        table_at(path, budget="1.001")
    one_sentence(refused.value)
    assert Ledger.open(path).cap(DATASET) == 1


def test_a_smaller_budget_than_recorded_limits_this_table_only(path: Path | str) -> None:
    table_at(path).count("0.3")
    limited = table_at(path, budget="0.5")
    assert limited.budget.remaining == Fraction(1, 5)
    with pytest.raises(BudgetExceeded):
        limited.count("0.3")
    limited.count("0.2")
    assert limited.budget.remaining == 0
    assert table_at(path).budget.remaining == Fraction(1, 2)


def test_the_same_data_under_another_name_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "people.csv"
    FRAME.to_csv(data, index=False)
    privet.open(data, DOMAIN, budget=1).count(1)
    with pytest.raises(LedgerError, match="knows this data as 'people', not as 'fresh'") as refused:
        privet.open(data, DOMAIN, budget=1, name="fresh")
    one_sentence(refused.value)


def test_the_first_opening_needs_a_budget(path: Path | str) -> None:
    for _ in range(2):  # the first try has not made a ledger
        with pytest.raises(LedgerError, match=r"with a budget|no budget yet"):
            table_at(path, budget=None)
        with pytest.raises(LedgerError, match="there is no ledger"):
            Ledger.open(path, create=False)
    new_ledger(path)
    with pytest.raises(LedgerError, match="no budget yet"):
        privet.open(FRAME, DOMAIN, ledger=path, name="others")


def test_an_unknown_data_set_is_not_charged(path: Path | str) -> None:
    ledger = new_ledger(path)
    for ask in (
        lambda: ledger.charge("nobody", "ada", tenth()),
        lambda: ledger.set_cap("nobody", None, Fraction(1)),
        lambda: ledger.analysts("nobody"),
    ):
        with pytest.raises(LedgerError, match="nobody"):
            ask()
    assert ledger.entries("nobody") == []


@pytest.mark.parametrize(
    ("table", "column"), [("lines", "note"), ("analysts", "name"), ("sources", "source"), ("format", "ledger")]
)
@pytest.mark.parametrize("statement", ["UPDATE {} SET {} = 'never'", "DELETE FROM {}"])
def test_what_was_written_cannot_be_changed(file: Path, table: str, column: str, statement: str) -> None:
    ledger = new_ledger(file)
    entry, _ = ledger.charge(DATASET, "ada", tenth())
    ledger.store(entry.id, "[1]")
    raw = sqlite3.connect(file)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(statement.format(table, column))
    raw.close()


def test_an_entry_says_who_asked_what_where_for_how_much_and_when(path: Path | str) -> None:
    clock = iter(["Monday"] * 2 + ["Wednesday"])
    ledger = Ledger.open(path, clock=lambda: next(clock))
    ledger.register(DATASET, source="here", budget=Fraction(1))
    entry, new = ledger.charge(DATASET, "ada", Charge("sum(x)", "{}", "f", "all / sex f", "0.1", TENTH, "k"))
    assert new
    assert entry == Entry(1, "ada", "all / sex f", "sum(x)", "0.1", TENTH, "k", "Wednesday", None)
    ledger.store(entry.id, "[7]")
    assert ledger.entries(DATASET) == [Entry(1, "ada", "all / sex f", "sum(x)", "0.1", TENTH, "k", "Wednesday", "[7]")]


# -- caps ---------------------------------------------------------------------------------------


def test_an_analyst_stays_below_their_own_cap(path: Path | str) -> None:
    ada, bob = table_at(path, "ada"), table_at(path, "bob")
    Ledger.open(path).set_cap(DATASET, "ada", Fraction(1, 5))
    assert (ada.budget.remaining, bob.budget.remaining) == (Fraction(1, 5), 1)
    ada.count("0.2")
    with pytest.raises(BudgetExceeded, match="budget of 'ada'") as refused:
        ada.count("0.1")
    one_sentence_or_two(refused.value)
    assert (refused.value.requested, refused.value.remaining) == (TENTH, 0)
    bob.count("0.7")
    assert (ada.budget.spent, bob.budget.spent) == (Fraction(1, 5), Fraction(7, 10))


def one_sentence_or_two(error: BaseException) -> None:
    """A refusal for the budget ends with what to do next."""
    assert "\n" not in str(error) and str(error).count(". ") <= 1


def test_colluding_analysts_cannot_pass_the_cap_of_the_data(path: Path | str) -> None:
    tables = [table_at(path, f"analyst {i}") for i in range(5)]
    ledger = Ledger.open(path)
    for i in range(5):
        ledger.set_cap(DATASET, f"analyst {i}", Fraction(2, 5))
    bought = 0
    for _ in range(4):
        for table in tables:
            try:
                table.count("0.1")
                bought += 1
            except BudgetExceeded:
                continue
    assert bought == 10
    assert ledger.spent(DATASET) == 1
    assert [table.budget.remaining for table in tables] == [0] * 5
    assert sum(ledger.spent(DATASET, f"analyst {i}") for i in range(5)) == 1


def test_the_last_cap_counts_and_may_be_below_what_was_spent(path: Path | str) -> None:
    table, ledger = table_at(path), Ledger.open(path)
    table.count("0.5")
    ledger.set_cap(DATASET, None, Fraction(1, 4))
    assert table.budget.remaining == 0
    with pytest.raises(BudgetExceeded):
        table.count("0.1")
    ledger.set_cap(DATASET, None, Fraction(3, 5))
    table.count("0.1")
    assert ledger.remaining(DATASET, "ada") == 0
    assert ledger.analysts(DATASET) == ["ada"] and ledger.datasets() == [DATASET]


# -- what charges mean --------------------------------------------------------------------------


def people_of(rows_per_person: int) -> Domain:
    return replace(DOMAIN, rows_per_person=rows_per_person)


def test_a_person_with_ten_rows_does_not_lose_more_than_the_budget(path: Path | str) -> None:
    """One row a person, then ten, then one again: 10 * 0.4 + 0.5 + 10 * 0.1 was lost of 1."""
    table_at(path).count("0.4")
    with pytest.raises(PrivacyError, match=r"up to 1 row\(s\).*10 times as much.*privet budget declare") as refused:
        table_at(path, domain=people_of(10))
    one_sentence(refused.value)
    ledger = Ledger.open(path)
    assert ledger.declare(DATASET, people_of(10)) == Fraction(36, 10)
    assert ledger.spent(DATASET) == 4
    with pytest.raises(BudgetExceeded):
        table_at(path, domain=people_of(10)).count("0.1")
    for fewer in (lambda: table_at(path), lambda: ledger.declare(DATASET, people_of(9))):
        with pytest.raises(PrivacyError, match=r"up to 10 row\(s\)") as refused:
            fewer()
        one_sentence(refused.value)


def test_every_analyst_pays_for_more_rows_what_their_own_charges_cost(path: Path | str) -> None:
    ada, bob = table_at(path, "ada", budget=10), table_at(path, "bob")
    ada.count("0.4"), bob.count("0.3"), ada.count("0.2")
    ledger = Ledger.open(path)
    assert ledger.declare(DATASET, people_of(3)) == 2 * Fraction(9, 10)
    spent = {name: ledger.spent(DATASET, name) for name in ("ada", "bob", None)}
    assert spent == {"ada": 3 * Fraction(6, 10), "bob": 3 * Fraction(3, 10), None: 3 * Fraction(9, 10)}
    assert ledger.declare(DATASET, people_of(3)) == 0  # once
    again = Ledger.open(path).entries(DATASET)[-2:]  # checks every total
    assert {entry.question for entry in again} == {"re-price for 3 rows per person, not 1"}


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 12), st.fractions(Fraction(1, 50), 2, max_denominator=50)), max_size=12))
def test_the_ledger_says_what_a_person_with_the_most_rows_has_lost(steps: list[tuple[int, Fraction]]) -> None:
    """Charges under ever more rows a person: the sum is what their records have lost, times the most rows."""
    ledger = new_ledger(":memory:", Fraction(10**6))
    most, of_a_record = 1, Fraction(0)
    for rows, loss in steps:
        most = max(most, rows)
        ledger.declare(DATASET, people_of(most))
        ledger.charge(DATASET, f"analyst {rows % 2}", tenth(loss=loss))
        of_a_record += loss / most
    assert ledger.spent(DATASET) == most * of_a_record


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ((Nominal("sex", ("f", "m")),), "the column 'old' is gone"),
        ((*DOMAIN.columns, Nominal("new", ("no", "yes"))), "the column 'new' is new"),
        ((DOMAIN.columns[0], Nominal("old", ("yes", "no"))), "the column 'old' has other cells"),
        ((DOMAIN.columns[0], Nominal("old", ("no", "yes"), other=True)), "the column 'old' has other cells"),
        ((DOMAIN.columns[0], Nominal("old", ("no", "yes"), missing=True)), "the column 'old' has other cells"),
    ],
)
def test_a_table_with_other_cells_is_refused_until_its_owner_declares_them(
    path: Path | str, columns: tuple[Nominal, ...], what: str
) -> None:
    other = Domain(columns)
    frame = FRAME.assign(new="no")
    table_at(path).count("0.4")
    opened = lambda: privet.open(frame, other, ledger=path, name=DATASET, analyst="ada")  # noqa: E731
    with pytest.raises(PrivacyError, match=f"is not the one in its ledger: {what}; let its owner") as refused:
        opened()
    one_sentence(refused.value)
    assert Ledger.open(path).declare(DATASET, other) == 0
    table = opened()
    table.count("0.1")
    assert table.budget.spent == Fraction(1, 2)


def test_what_no_cell_depends_on_may_change(path: Path | str) -> None:
    grades = Numeric("grade", Fraction(0), Fraction(4), Fraction(1), bins=2)
    before = Domain((*DOMAIN.columns, grades), rows=60)
    edges = tuple(Fraction(threshold) for threshold in grades.thresholds)
    same = Domain(
        (replace(DOMAIN.columns[1], ordered=True), replace(grades, bins=None, edges=edges), DOMAIN.columns[0]),
        target="sex",
        rows=70,
        max_rows=80,
    )
    frame = FRAME.assign(grade=1)
    for domain in (before, same):
        privet.open(frame, domain, budget=1, ledger=path, name=DATASET).count("0.1")
    for other in (replace(grades, high=Fraction(5)), replace(grades, bins=3), replace(grades, missing=True)):
        with pytest.raises(PrivacyError, match="'grade' has other cells"):
            privet.open(frame, Domain((*DOMAIN.columns, other)), ledger=path, name=DATASET)


def test_a_table_that_was_open_before_the_declaration_charges_no_more(path: Path | str) -> None:
    table = table_at(path, budget=10)
    paid = table.count("0.4", key="k")
    Ledger.open(path).declare(DATASET, people_of(2))
    with pytest.raises(PrivacyError, match="declared another domain for 'people' since this table was opened"):
        table.count("0.1")
    assert table.count("0.4", key="k") == paid  # what was released is known anyway
    assert table.budget.spent == Fraction(8, 10)
    with pytest.raises(KeyReused):  # the same words, another price
        table_at(path, domain=people_of(2), budget=10).count("0.4", key="k")


def test_the_owner_declares_a_domain_by_command(tmp_path: Path) -> None:
    data = stored(tmp_path)
    privet.open(data, DOMAIN, budget=1).count("0.2")
    people_of(3).save(tmp_path / "three.toml")
    done = run_command("budget", "declare", "people.csv", "-d", "three.toml", cwd=tmp_path)
    said = "'people' may be opened with three.toml from now on; 0.6 is spent, 0.4 more than before\n"
    assert (done.returncode, done.stderr) == (0, said)
    DOMAIN.save(tmp_path / "one.toml")
    done = run_command("budget", "declare", "people.csv", "-d", "one.toml", cwd=tmp_path)
    assert done.returncode != 0 and "up to 3 row(s)" in done.stderr and done.stderr.count("\n") == 1


# -- many reservations --------------------------------------------------------------------------


def test_reservations_that_have_ended_are_not_looked_at() -> None:
    """Counted in steps of the database's machine."""

    def steps_of_a_charge(ended: int) -> int:
        ledger = new_ledger(":memory:")
        for _ in range(ended):
            ledger.end(ledger.hold(DATASET, "ada", TENTH))
        taken = 0

        def step() -> None:
            nonlocal taken
            taken += 1

        ledger._store._connection.set_progress_handler(step, 1)
        ledger.charge(DATASET, "ada", tenth())
        ledger._store._connection.set_progress_handler(None, 1)
        return taken

    few, many = steps_of_a_charge(2), steps_of_a_charge(1000)
    assert 100 < many < 1.1 * few


# -- what a server writes -----------------------------------------------------------------------


def test_charges_of_an_analyst_are_listed_in_pages_without_their_answers(path: Path | str) -> None:
    ledger = new_ledger(path)
    assert ledger.page(DATASET, "ada", 0, 5) == []
    entries = [ledger.charge(DATASET, name, tenth(f"k{n}"))[0] for n in range(3) for name in ("ada", "eve")]
    ledger.store(entries[2].id, "[42]", private=True, opening_token="o")
    mine = entries[::2]
    assert [(entry.id, answered) for entry, answered in ledger.page(DATASET, "ada", 0, 2)] == [
        (mine[0].id, False),
        (mine[1].id, True),
    ]
    assert [entry for entry, _ in ledger.page(DATASET, "ada", mine[1].id, 2)] == [mine[2]]


def test_events_and_models_of_a_server_are_lines_that_are_checked_and_change_no_budget(path: Path | str) -> None:
    ledger = new_ledger(path)
    ledger_lines.record(ledger, "start", facts={"tables": [DATASET]})
    number = ledger_lines.record(ledger, "token", analyst="ada", facts={"token": "t1"}, held_back={"sha256": "00"})
    entry, _ = ledger.charge(DATASET, "ada", tenth("k"))
    text = '{"model": 1}'
    assert ledger_lines.store_model(ledger, DATASET, "ada", "fit", text, {"entries": [entry.id], "spent": "1/10"}) == 1
    with pytest.raises(LedgerError, match="no data set 'nobodys'"):
        ledger_lines.record(ledger, "refused", dataset="nobodys")
    ledger.close()
    again = Ledger.open(path)  # which checks every line
    events = ledger_lines.events(again)
    assert [(event.what, event.analyst) for event in events] == [("start", None), ("token", "ada")]
    assert (events[1].facts, events[1].held_back) == ({"token": "t1"}, {"sha256": "00"})
    assert ledger_lines.events(again, number) == [] and len(ledger_lines.events(again, 0, 1)) == 1
    (model,) = ledger_lines.models(again, DATASET, "ada")
    assert (model.text, model.key, model.facts["entries"]) == (text, "fit", [entry.id])
    assert ledger_lines.models(again, DATASET, "eve") == [] and ledger_lines.models(again, DATASET, "nobody") == []
    assert again.spent(DATASET) == TENTH and again.entry_of(DATASET, "ada", "k") == entry.id
    assert again.entry_of(DATASET, "eve", "k") is None
    token_line = next(line for line in again.lines() if line.number == number)
    assert "sha256" not in token_line.text and "00" in token_line.note_text
    again.close()


def test_a_change_is_written_with_its_caps_by_whoever_has_seen_everything(path: Path | str) -> None:
    """Two owners, or two servers, that decide at once: the second looks again, so nothing is raised twice."""
    ledger, other = Ledger.open(path), Ledger.open(path)
    ledger.register("people", source="here", budget=Fraction(1))
    ledger.set_cap("people", "ada", Fraction(1, 2))
    more = [CapChange("people", "ada", None, Fraction(1, 4)), CapChange("people", None, Fraction(2), Fraction(1))]
    first = ledger_lines.change(ledger, 0, "raise", dataset="people", analyst="ada", facts={"by": "grace"}, caps=more)
    assert first is not None and ledger_lines.change(other, 0, "raise", dataset="people", caps=more) is None
    assert (other.cap("people", "ada"), other.cap("people")) == (Fraction(3, 4), Fraction(3))
    nobody = [CapChange("people", "eve", None, Fraction(1)), CapChange("people", "ada", None, Fraction(-1))]
    assert ledger_lines.change(other, first, "raise", caps=nobody) is not None
    assert other.cap("people", "eve") is None and ledger.cap("people", "ada") == 0
    with pytest.raises(LedgerError):
        ledger_lines.change(ledger, 10**6, "raise", caps=[CapChange("nobody's", None, Fraction(1), Fraction(0))])
    assert [event.what for event in ledger_lines.events(ledger)] == ["raise", "raise"]
    ledger.check()

"""Reservations: what is held is there when it is needed, nobody else takes it, and no cap is ever passed.

Run as a script this file is a process that reserves, spends some of it, says so and waits to be killed.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command import run
from damaged_ledger import damage, forge
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres_server import shared_server

import privet
from privet.errors import BudgetExceeded, LedgerError, PrivetError, QuestionError
from privet.kernel import Charge, Ledger, ProtectedTable
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.lab import PublicTable, open_public

DATASET = "people"
DOMAIN = Domain((Nominal("sex", ("f", "m")), Nominal("old", ("no", "yes"))))
FRAME = pd.DataFrame({"sex": ["f", "m", "m"] * 20, "old": ["no", "yes"] * 30})
TENTH = Fraction(1, 10)
HAIR = Fraction(1, 10**9)
PROPERTY = settings(derandomize=True, deadline=None)


def table_at(path: Path | str = ":memory:", analyst: str = "ada", budget: object = 1) -> ProtectedTable:
    return privet.open(FRAME, DOMAIN, budget=budget, ledger=path, name=DATASET, analyst=analyst)


def new_ledger(path: Path | str = ":memory:", budget: Fraction = Fraction(1)) -> Ledger:
    ledger = Ledger.open(path)
    ledger.register(DATASET, source="here", budget=budget)
    return ledger


def loss_of(loss: Fraction) -> Charge:
    return Charge("count", "{}", "f", "all rows", str(loss), loss)


def state(*tables: ProtectedTable) -> object:
    return [(table.budget.spent, table.budget.remaining, table.budget.entries) for table in tables]


@pytest.fixture(params=["sqlite", "postgres"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a ledger is to be, in every store."""
    return tmp_path / "people.ledger" if request.param == "sqlite" else shared_server().ledger()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


# -- the block ----------------------------------------------------------------------------------


def test_what_was_reserved_can_be_spent_and_what_was_not_returns(path: Path | str) -> None:
    ada, bob = table_at(path), table_at(path, "bob")
    with ada.reserve("0.6") as reserved:
        assert (reserved.budget.spent, reserved.budget.remaining) == (0, Fraction(3, 5))
        assert ada.budget.spent == bob.budget.spent == 0
        assert ada.budget.remaining == bob.budget.remaining == Fraction(2, 5)
        reserved.count("0.1")
        reserved.partition("sex").count("0.2")
        assert (reserved.budget.spent, reserved.budget.remaining) == (Fraction(3, 10), Fraction(3, 10))
        assert ada.budget.spent == Fraction(3, 10)
        assert ada.budget.remaining == bob.budget.remaining == Fraction(2, 5)
    assert ada.budget.remaining == bob.budget.remaining == Fraction(7, 10)
    ledger = Ledger.open(path)  # checks every total
    assert ledger.spent(DATASET) == ledger.spent(DATASET, "ada") == Fraction(3, 10)
    assert [entry.loss for entry in ledger.entries(DATASET)] == [TENTH, 2 * TENTH]
    assert ledger.holds(DATASET) == []


def test_charges_inside_end_exactly_where_the_reservation_does() -> None:
    table = table_at()
    with table.reserve("1/3") as reserved:
        reserved.count("1/7")
        with pytest.raises(BudgetExceeded, match="allotment") as refused:
            reserved.count(Fraction(1, 3) - Fraction(1, 7) + HAIR)
        assert refused.value.remaining == Fraction(1, 3) - Fraction(1, 7)
        reserved.count(reserved.budget.remaining)
        assert reserved.budget.remaining == 0
    assert (table.budget.spent, table.budget.remaining) == (Fraction(1, 3), Fraction(2, 3))


def lines(path: Path | str) -> object:
    """All that is written."""
    if isinstance(path, Path):
        return path.read_bytes()
    place = path.split("schema=")[1]
    return [shared_server().run(f"SELECT * FROM {place}.{table}") for table in ("lines", "analysts", "open_holds")]


def test_a_refused_reservation_changes_nothing(path: Path | str) -> None:
    ada, bob = table_at(path), table_at(path, "bob")
    ada.partition("sex")[0].count("0.5")
    little = ada.allot("0.2")
    before = state(ada, bob, little), lines(path)
    for table, epsilon, why in ((bob, "0.6", "has 0.5 left of 1. Lower"), (little, "0.3", "allotment")):
        with pytest.raises(BudgetExceeded, match=why) as refused, table.reserve(epsilon):
            pytest.fail("the block was entered")
        assert refused.value.remaining < refused.value.requested
        assert "\n" not in str(refused.value)
    for bad in (0, -1, float("nan"), "abc", None, float("inf")):
        with pytest.raises(QuestionError), ada.reserve(bad):  # type: ignore[arg-type]
            pytest.fail("the block was entered")
    assert (state(ada, bob, little), lines(path)) == before
    with ada.reserve("0.5"):
        pass


def test_a_refusal_says_what_is_reserved_and_who_could_be_asked() -> None:
    table = table_at()
    with table.reserve("0.75"):
        for ask in (lambda: table.count("0.5"), lambda: table.reserve("0.5").__enter__()):
            with pytest.raises(BudgetExceeded) as refused:
                ask()
            assert str(refused.value).endswith(
                "0.5 of it reaches ledger 'people', which has 0.25 left of 1 beside 0.75 in reservations. Lower "
                "epsilon, or ask the data owner for more."
            )
            assert (refused.value.requested, refused.value.remaining) == (Fraction(1, 2), Fraction(1, 4))


@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt, GeneratorExit, BudgetExceeded])
def test_the_rest_returns_when_the_block_raises(stop: type[BaseException]) -> None:
    table = table_at()
    with pytest.raises(stop), table.reserve("0.6") as reserved:
        reserved.count("0.2")
        if stop is BudgetExceeded:
            reserved.count("0.5")
        raise stop
    assert table.budget.remaining == Fraction(4, 5)
    table.count("0.8")


def test_nothing_is_held_before_the_block_or_after_it_is_forgotten() -> None:
    table = table_at()
    waiting = table.reserve("0.6")
    assert table.budget.remaining == 1
    waiting.__enter__()
    assert table.budget.remaining == Fraction(2, 5)
    del waiting
    gc.collect()
    assert table.budget.remaining == 1


def test_after_the_block_its_table_and_all_made_of_it_are_spent() -> None:
    table = table_at()
    with table.reserve("0.6") as reserved:
        kept = reserved.count("0.1", key="k")
        parts, some, little = reserved.partition("sex"), reserved.where(old="no"), reserved.allot("0.1")
    before = state(table)
    asks: list[Callable[[], object]] = [
        lambda: reserved.count("0.1"),
        lambda: parts.count("0.1"),
        lambda: parts[0].count("0.1"),
        lambda: some.count("0.1"),
        lambda: little.count("0.1"),
        lambda: reserved.reserve("0.1").__enter__(),
    ]
    for ask in asks:
        with pytest.raises(BudgetExceeded, match=r"reservation 1 of 'ada' on 'people' has ended\. Reserve again"):
            ask()
    assert state(table) == before
    assert reserved.budget.remaining == little.budget.remaining == 0 and parts.remaining == [0, 0]
    assert reserved.count("0.1", key="k") == kept  # the stored answer costs nothing
    table.count("0.9")


def test_a_key_is_paid_once_inside_or_outside() -> None:
    table = table_at()
    with table.reserve("0.5") as reserved:
        first = reserved.count("0.2", key="k")
        assert table.count("0.2", key="k") == reserved.count("0.2", key="k") == first
        assert reserved.budget.remaining == Fraction(3, 10) and table.budget.spent == Fraction(1, 5)
    assert table.budget.remaining == Fraction(4, 5)


def test_an_engine_that_fails_costs_the_reservation_its_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_at()
    with table.reserve("0.5") as reserved:
        with monkeypatch.context() as broken:
            broken.setattr(table._session.engine, "exact_counts", lambda query: 1 / 0)
            with pytest.raises(PrivetError):
                reserved.count("0.2")
        assert reserved.budget.remaining == Fraction(3, 10)
    assert table.budget.spent == Fraction(1, 5)


def test_a_reservation_inside_another_is_a_part_of_it(path: Path | str) -> None:
    table = table_at(path)
    with table.reserve("0.6") as outer:
        outer.count("0.1")
        with outer.reserve("0.3") as inner:
            assert [hold.epsilon for hold in Ledger.open(path).holds(DATASET)] == [Fraction(3, 5)]
            inner.count("0.2")
            with pytest.raises(BudgetExceeded):
                inner.count("0.2")
        with pytest.raises(BudgetExceeded), outer.reserve("0.4"):
            pytest.fail("the block was entered")
        assert outer.budget.remaining == Fraction(3, 10)  # the outer block goes on
        with outer.partition("sex")[1].reserve("0.3") as deep:
            deep.count("0.3")
        assert outer.budget.remaining == 0 and table.budget.remaining == Fraction(2, 5)
    assert (table.budget.spent, table.budget.remaining) == (Fraction(3, 5), Fraction(2, 5))


def test_several_reservations_are_held_side_by_side() -> None:
    table = table_at()
    with table.reserve("0.5") as one, table.reserve("0.4") as two:
        assert table.budget.remaining == TENTH
        with pytest.raises(BudgetExceeded), table.reserve("0.2"):
            pytest.fail("the block was entered")
        two.count("0.4")
        one.count("0.5")
        table.count("0.1")
    assert table.budget.remaining == 0


def test_a_public_table_stays_one() -> None:
    table = open_public(FRAME, DOMAIN)
    with table.reserve(1) as reserved:
        assert isinstance(reserved, PublicTable)
        assert reserved.count(float("inf")) == len(FRAME)
        reserved.bootstrap(1).count(1)
        with pytest.raises(BudgetExceeded):
            reserved.count(1)


@pytest.mark.parametrize("rows_per_person", [1, 3])
def test_epsilon_is_reserved_per_person(rows_per_person: int) -> None:
    domain = Domain(DOMAIN.columns, rows_per_person=rows_per_person)
    table = privet.open(FRAME, domain, budget=1)
    with table.reserve(1) as reserved:
        reserved.count("1/3")
        reserved.histogram("sex", epsilon="2/3")
        assert reserved.budget.remaining == 0


# -- caps ---------------------------------------------------------------------------------------


def test_a_reservation_counts_against_the_caps_of_its_analyst_and_of_the_data(path: Path | str) -> None:
    ada, bob, ledger = table_at(path), table_at(path, "bob"), Ledger.open(path)
    ledger.set_cap(DATASET, "ada", Fraction(1, 2))
    with pytest.raises(BudgetExceeded, match="budget of 'ada'"), ada.reserve("0.6"):
        pytest.fail("the block was entered")
    with bob.reserve("0.4"), ada.reserve("0.4") as reserved:
        assert (ada.budget.remaining, bob.budget.remaining) == (TENTH, Fraction(1, 5))
        with pytest.raises(BudgetExceeded, match=r"budget of 'ada'.* beside 0\.4 in reservations"):
            ada.count("0.2")
        bob.count("0.2")
        reserved.count("0.4")
        assert ada.budget.remaining == 0
    assert ledger.analysts(DATASET) == ["ada", "bob"]


@pytest.mark.parametrize("analyst", [None, "ada"])
def test_a_cap_that_was_lowered_meanwhile_wins(path: Path | str, analyst: str | None) -> None:
    table, ledger = table_at(path), Ledger.open(path)
    with table.reserve("0.8") as reserved:
        reserved.count("0.3")
        ledger.set_cap(DATASET, analyst, Fraction(1, 2))
        assert (reserved.budget.remaining, table.budget.remaining) == (Fraction(1, 5), 0)
        with pytest.raises(BudgetExceeded, match=r"has 0\.2 left of 0\.5"):
            reserved.count("0.3")
        reserved.count("0.2")
        ledger.set_cap(DATASET, analyst, Fraction(0))
        with pytest.raises(BudgetExceeded):
            reserved.count("0.1")
    assert ledger.spent(DATASET) == Fraction(1, 2)


def test_a_smaller_budget_of_one_opening_is_asked_when_reserving_and_not_again(path: Path | str) -> None:
    table_at(path)
    limited, bob = table_at(path, budget="0.5"), table_at(path, "bob")
    with pytest.raises(BudgetExceeded), limited.reserve("0.6"):
        pytest.fail("the block was entered")
    with limited.reserve("0.5") as reserved:
        assert (limited.budget.remaining, bob.budget.remaining) == (0, Fraction(1, 2))
        bob.count("0.5")  # after that was held, as if it had been spent before
        reserved.count("0.5")
    assert Ledger.open(path).spent(DATASET) == 1


# -- parts of a table ---------------------------------------------------------------------------


def held(table: ProtectedTable) -> list[Fraction]:
    return [hold.epsilon for hold in table._session.ledger.holds(DATASET)]


def test_a_part_reserves_what_would_reach_the_table() -> None:
    table = table_at()
    left, right = table.partition("sex")
    left.count("0.7")
    right.count("0.1")
    with right.reserve("0.8") as reserved:  # 0.6 of it was paid with the sibling's charge
        assert held(table) == [Fraction(1, 5)]
        assert table.budget.remaining == TENTH and table.budget.spent == Fraction(7, 10)
        assert reserved.budget.remaining == Fraction(4, 5)
        reserved.count("0.6")
        assert table.budget.spent == Fraction(7, 10)
        reserved.partition("old").count("0.2")
        assert table.budget.spent == Fraction(9, 10) and table.budget.remaining == TENTH
    assert right.budget.spent == Fraction(9, 10)
    assert left.budget.remaining == Fraction(3, 10)


def test_a_part_whose_sibling_has_paid_all_can_be_reserved_when_the_table_has_nothing_left() -> None:
    table = table_at()
    left, right = table.partition("sex")
    left.count(1)
    with right.reserve(1) as reserved:
        assert held(table) == [0]
        reserved.count(1)
    with pytest.raises(BudgetExceeded), right.reserve("0.1"):
        pytest.fail("the block was entered")
    assert table.budget.spent == 1


def test_a_reservation_of_a_part_that_ends_unspent_leaves_every_scope_as_it_was() -> None:
    table = table_at()
    left, right = table.partition("sex")
    deep = left.partition("old")
    deep[0].count("0.2")
    right.count("0.3")
    before = state(table, left, right, *deep)
    with deep[1].reserve("0.9"):
        assert held(table) == [Fraction(3, 5)]
    assert state(table, left, right, *deep) == before


def test_siblings_do_not_live_on_what_is_only_reserved() -> None:
    table = table_at()
    left, right = table.partition("sex")
    with left.reserve("0.6") as reserved:
        assert right.budget.remaining == Fraction(2, 5)
        with pytest.raises(BudgetExceeded):
            right.count("0.5")
        right.count("0.4")  # which the table pays, so that the reservation needs less of its own
        reserved.count("0.6")
        assert table.budget.spent == Fraction(3, 5)
    assert table.budget.spent == Fraction(3, 5)


def test_what_the_analyst_takes_from_a_part_outside_is_charged_beside_the_reservation() -> None:
    table = table_at()
    left, right = table.partition("sex")
    left.count("0.4")
    with right.reserve("0.6") as reserved:
        assert held(table) == [Fraction(1, 5)]
        right.count("0.4")  # free, and the reservation had counted on it
        reserved.count("0.1")  # from the hold
        reserved.count("0.3")  # one third of it from the hold, the rest beside it
        assert table.budget.spent == Fraction(4, 5) and table.budget.remaining == Fraction(1, 5)
        with table.reserve("0.1"):
            with pytest.raises(BudgetExceeded, match=r"0\.2 of it reaches ledger 'people', which has 0\.1 left of 1"):
                reserved.count("0.2")
            assert reserved.budget.remaining == TENTH
        reserved.count("0.2")
    assert table.budget.spent == 1
    assert sum(entry.loss for entry in table.budget.entries) == 1


def test_a_reservation_inside_another_never_needs_more_than_that_one_holds() -> None:
    table = table_at()
    left, right = table.partition("sex")
    left.count("0.4")
    with right.reserve("0.6") as outer:
        right.count("0.4")  # the outer one had counted on it
        assert outer.budget.remaining == Fraction(3, 5)  # beside others, who may be faster
        with pytest.raises(BudgetExceeded, match=r"0\.6 of it reaches reservation 1, which has 0\.2 left of 0\.2"):
            outer.reserve("0.6").__enter__()
        with outer.reserve("0.2") as inner, table.reserve("0.4"):
            inner.count("0.2")
    assert table.budget.spent == Fraction(3, 5)


PARTS = st.lists(st.tuples(st.sampled_from(["left", "inside", "deep"]), st.integers(1, 10)), max_size=10)


@given(st.integers(0, 10), st.integers(0, 10), st.integers(1, 20), PARTS)
@settings(PROPERTY, max_examples=150)
def test_what_was_reserved_for_a_part_fits_whatever_its_siblings_do(
    paid: int, before: int, reserve: int, steps: list[tuple[str, int]]
) -> None:
    """The rule that the hold of a part rests on: without other charges to its rows, no more reaches the root."""
    table, unit = table_at(budget=1), Fraction(1, 20)
    left, right = table.partition("sex")
    for part, units in ((left, paid), (right, before)):
        if units:
            part.count(units * unit)
    fits = right.budget.remaining >= reserve * unit
    try:
        with right.reserve(reserve * unit) as reserved:
            assert fits
            rest, deep = reserve, reserved.partition("old")[1]
            for where, units in steps:
                if where == "left":
                    with contextlib.suppress(BudgetExceeded):
                        left.count(units * unit)
                elif units <= rest:
                    (reserved if where == "inside" else deep).count(units * unit)  # never refused
                    rest -= units
                assert reserved.budget.remaining == rest * unit
                assert table.budget.spent <= 1
            if rest:
                reserved.count(rest * unit)
    except BudgetExceeded:
        assert not fits
    assert table.budget.spent == max(left.budget.spent, right.budget.spent) <= 1
    assert table.budget.remaining == 1 - table.budget.spent


# -- arbitrary programs of several analysts against a simple reference --------------------------

ANALYSTS = ("ada", "bob", "eve")


@dataclass
class Book:
    """The reference: who has spent what, and what is held for whom."""

    caps: dict[str | None, Fraction]
    spent: dict[str, Fraction] = field(default_factory=lambda: dict.fromkeys(ANALYSTS, Fraction(0)))
    holds: dict[int, list[Any]] = field(default_factory=dict)  # analyst, left

    def total(self, who: str | None) -> Fraction:
        return sum((loss for name, loss in self.spent.items() if who in (None, name)), Fraction(0))

    def held(self, who: str | None) -> Fraction:
        return sum((left for name, left in self.holds.values() if who in (None, name)), Fraction(0))

    def fits(self, analyst: str, loss: Fraction, hold: int | None = None) -> bool:
        caps = [(who, cap) for who, cap in self.caps.items() if who in (None, analyst)]
        if hold is not None and loss <= self.holds[hold][1]:
            return all(self.total(who) + loss <= cap for who, cap in caps)
        own = Fraction(0) if hold is None else self.holds[hold][1]
        return all(self.total(who) + self.held(who) - own + loss <= cap for who, cap in caps)

    def is_largest(self, analyst: str, loss: Fraction, hold: int | None = None) -> bool:
        """Does so much fit, and not a hair more?"""
        return (not loss or self.fits(analyst, loss, hold)) and not self.fits(analyst, loss + HAIR, hold)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "reserve", "charge", "charge inside", "charge inside", "end", "raise", "lower"]),
        st.sampled_from(ANALYSTS),
        st.integers(1, 12).map(lambda n: Fraction(n, 20)),
        st.integers(0, 100),
    ),
    max_size=25,
)


@pytest.mark.parametrize("caps_fall", [False, True])
@given(steps=STEPS)
@settings(PROPERTY, max_examples=250)
def test_programs_of_several_analysts_do_what_the_reference_says(caps_fall: bool, steps: list[Any]) -> None:
    follow(new_ledger(), caps_fall, steps)


@pytest.mark.parametrize("caps_fall", [False, True])
@given(steps=STEPS)
@settings(PROPERTY, max_examples=10)
def test_programs_do_the_same_on_a_server(caps_fall: bool, steps: list[Any]) -> None:
    follow(new_ledger(shared_server().ledger()), caps_fall, steps)


def follow(ledger: Ledger, caps_fall: bool, steps: list[Any]) -> None:
    ledger.set_cap(DATASET, "ada", Fraction(1, 2))
    book = Book({None: Fraction(1), "ada": Fraction(1, 2)})
    ended: list[tuple[int, str]] = []

    def attempt(expected: bool, ask: Callable[[], Any]) -> Any:
        before = ledger.entries(DATASET), ledger.holds(DATASET)
        try:
            found = ask()
        except BudgetExceeded as refused:
            assert not expected
            assert refused.remaining < refused.requested
            assert (ledger.entries(DATASET), ledger.holds(DATASET)) == before
            return None
        assert expected
        return found

    for verb, analyst, loss, pick in steps:
        hold = sorted(book.holds)[pick % len(book.holds)] if book.holds else None
        if verb == "reserve":
            made = attempt(book.fits(analyst, loss), lambda: ledger.hold(DATASET, analyst, loss))  # noqa: B023
            if made is not None:
                book.holds[made] = [analyst, loss]
        elif verb == "charge":
            if attempt(book.fits(analyst, loss), lambda: ledger.charge(DATASET, analyst, loss_of(loss))):  # noqa: B023
                book.spent[analyst] += loss
        elif verb == "charge inside" and hold is not None:
            owner, left = book.holds[hold]
            fits = book.fits(owner, loss, hold)
            assert fits or caps_fall or loss > left  # while no cap falls, what a hold can pay is never refused
            if attempt(fits, lambda: ledger.charge(DATASET, owner, loss_of(loss), None, hold)):  # noqa: B023
                book.spent[owner] += loss
                book.holds[hold][1] = max(left - loss, Fraction(0))
        elif verb == "end" and hold is not None:
            owner, left = book.holds.pop(hold)
            assert (ledger.end(hold), ledger.end(hold)) == (left, 0)
            ended.append((hold, owner))
        elif verb == "raise" or (verb == "lower" and caps_fall):
            who = None if pick % 2 else analyst
            if who in book.caps or caps_fall:  # the first cap of an analyst lowers it, too
                book.caps[who] = book.caps[who] + loss if verb == "raise" and who in book.caps else loss
                ledger.set_cap(DATASET, who, book.caps[who])
        for who, cap in book.caps.items():
            assert ledger.spent(DATASET, who) == book.total(who)
            assert caps_fall or book.total(who) + book.held(who) <= cap
        assert [(each.id, each.left) for each in ledger.holds(DATASET)] == sorted(
            (number, left) for number, (_, left) in book.holds.items()
        )
        for name in ANALYSTS:
            assert book.is_largest(name, ledger.remaining(DATASET, name))
        for number, (owner, _) in book.holds.items():
            assert book.is_largest(owner, ledger.remaining(DATASET, owner, None, number), number)
        for number, owner in ended:
            assert ledger.remaining(DATASET, owner, None, number) == 0
            with pytest.raises(BudgetExceeded, match="has ended"):
                ledger.charge(DATASET, owner, loss_of(HAIR), None, number)
    assert sum((entry.loss for entry in ledger.entries(DATASET)), Fraction(0)) == ledger.spent(DATASET)
    ledger.check()


def test_a_hold_pays_for_nobody_else() -> None:
    ledger = new_ledger()
    ledger.register("others", source="there", budget=Fraction(1))
    hold = ledger.hold(DATASET, "ada", Fraction(1, 2))
    for dataset, analyst in ((DATASET, "bob"), ("others", "ada")):
        with pytest.raises(BudgetExceeded):
            ledger.charge(dataset, analyst, loss_of(TENTH), None, hold)
    with pytest.raises(LedgerError, match="no data set 'nobody'"):
        ledger.hold("nobody", "ada", TENTH)
    with pytest.raises(LedgerError, match="no reservation 7"):
        ledger.end(7)
    assert ledger.remaining("others", "ada") == 1 and ledger.spent(DATASET) == 0


# -- many at once -------------------------------------------------------------------------------


def test_threads_reserve_and_spend_without_taking_from_each_other(path: Path | str) -> None:
    """Each thread has a connection of its own, as a process would; what one holds is there when it asks for it."""
    new_ledger(path)
    surprises: list[BaseException] = []
    spent: list[Fraction] = []

    def work(number: int) -> None:
        ledger, analyst = Ledger.open(path), f"analyst {number}"
        for _ in range(6):
            try:
                try:
                    hold = ledger.hold(DATASET, analyst, 3 * Fraction(1, 50))
                except BudgetExceeded:
                    continue
                for _ in range(number % 4):
                    ledger.charge(DATASET, analyst, loss_of(Fraction(1, 50)), None, hold)
                    spent.append(Fraction(1, 50))
                ledger.end(hold)
            except BaseException as error:
                surprises.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert surprises == []
    ledger = Ledger.open(path)
    assert ledger.holds(DATASET) == [] and ledger.spent(DATASET) == sum(spent) <= 1


def test_another_thread_at_the_same_table_cannot_take_what_is_held() -> None:
    table = table_at()
    refused: list[BudgetExceeded] = []

    def takes() -> None:
        for part in (table, table.where(sex="f"), table.allot(1), *table.partition("sex")):
            try:
                part.count("0.5")
            except BudgetExceeded as error:
                refused.append(error)

    with table.reserve("0.6") as reserved:
        thread = threading.Thread(target=takes)
        thread.start()
        thread.join()
        reserved.count("0.6")
    assert len(refused) == 5


def test_a_forked_copy_neither_spends_nor_ends_what_its_parent_holds(path: Path | str) -> None:
    table = table_at(path)
    block = table.reserve("0.6")
    reserved = block.__enter__()
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, where the process has threads
        child = os.fork()
    if child == 0:
        said = "answered"
        try:
            reserved.count("0.1")
        except PrivetError as error:
            said = type(error).__name__
        with contextlib.suppress(BaseException):
            block.__exit__(None, None, None)
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        assert answer.read() == "PrivacyError"
    os.waitpid(child, 0)
    assert table.budget.remaining == Fraction(2, 5)
    reserved.count("0.6")
    block.__exit__(None, None, None)
    assert (table.budget.spent, table.budget.remaining) == (Fraction(3, 5), Fraction(2, 5))


# -- processes that die -------------------------------------------------------------------------


@contextlib.contextmanager
def victim(data: Path, ledger: Path | str) -> Iterator[subprocess.Popen[str]]:
    """A process that has reserved 0.6, spent 0.2 of it and waits."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(data), str(ledger)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        yield process


@pytest.fixture(params=["sqlite", "postgres"])
def beside(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path | str, str]:
    """A file of rows, its ledger, and what an owner calls that: the data where the ledger lies beside them."""
    data = tmp_path / "people.csv"
    FRAME.to_csv(data, index=False)
    if request.param == "sqlite":
        return data, tmp_path / "people.csv.ledger", "people.csv"
    address = shared_server().ledger()
    return data, address, address


def test_a_killed_process_leaves_its_hold_until_the_owner_ends_it(
    beside: tuple[Path, Path | str, str], tmp_path: Path
) -> None:
    data, ledger, called = beside
    with privet.open(data, DOMAIN, budget=1, ledger=ledger, analyst="bob") as bob:
        with victim(data, ledger) as process:
            assert bob.budget.remaining == Fraction(2, 5)
            with pytest.raises(BudgetExceeded, match=r"0\.4 left of 1 beside 0\.4 in reservations"):
                bob.count("0.5")
            with pytest.raises(BudgetExceeded), bob.reserve("0.5"):
                pytest.fail("the block was entered")
            os.kill(process.pid, signal.SIGKILL)
        assert bob.budget.remaining == Fraction(2, 5)  # wasted, not leaked

        shown = json.loads(run("budget", "show", called, "--json", cwd=tmp_path).stdout)["people"]
        (reservation,) = shown["reservations"]
        assert reservation.pop("since").startswith("20")
        assert reservation == {"id": 1, "analyst": "ada", "epsilon": "0.6", "spent": "0.2"}
        assert [(row["analyst"], row["spent"], row["left"]) for row in shown["analysts"]] == [("ada", "0.2", "0.4")]
        text = run("budget", "show", called, cwd=tmp_path).stdout
        assert "people: 0.2 of 1 spent" in text and "open reservations" in text

        for freed in ("0.4", "0"):  # a second time is harmless
            done = run("budget", "release", called, "1", cwd=tmp_path)
            assert (done.returncode, done.stderr) == (0, f"reservation 1 has ended; {freed} is free again\n")
        wrong = run("budget", "release", str(ledger), "2", cwd=tmp_path)
        assert wrong.returncode != 0 and "has no reservation 2" in wrong.stderr and wrong.stderr.count("\n") == 1
        assert "open reservations" not in run("budget", "show", called, cwd=tmp_path).stdout
        bob.count("0.8")
    assert Ledger.open(ledger).spent(DATASET) == 1


def test_a_process_that_is_released_meanwhile_is_refused_in_one_sentence(
    beside: tuple[Path, Path | str, str], tmp_path: Path
) -> None:
    data, place, called = beside
    with privet.open(data, DOMAIN, budget=1, ledger=place):
        pass
    with victim(data, place) as process:
        run("budget", "release", called, "1", cwd=tmp_path)
        said, _ = process.communicate("go on\n", timeout=120)
    assert process.returncode == 0
    assert said.startswith(
        "BudgetExceeded: cannot charge epsilon=0.2 for count on all rows: reservation 1 of 'ada' on "
    )
    ledger = Ledger.open(place)
    assert (ledger.spent(DATASET), ledger.remaining(DATASET, "ada")) == (Fraction(1, 5), Fraction(4, 5))


def wait_to_be_killed(data: str, ledger: str) -> None:
    with privet.open(data, DOMAIN, ledger=ledger, analyst="ada") as table, table.reserve("0.6") as reserved:
        reserved.count("0.2")
        print("holding", flush=True)
        sys.stdin.readline()
        try:
            reserved.count("0.2")
        except BudgetExceeded as error:
            print(f"{type(error).__name__}: {error}", flush=True)


# -- the file -----------------------------------------------------------------------------------


def refused(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is damaged") as caught:
        Ledger.open(path)
    assert "\n" not in str(caught.value)
    gc.collect()
    assert path.read_bytes() == before


@pytest.fixture
def written(file: Path) -> Path:
    """A closed ledger with an open reservation that is used up, one that has ended, and an open one of eve's."""
    ledger = new_ledger(file)
    first = ledger.hold(DATASET, "ada", Fraction(1, 5))
    for _ in range(3):  # the third goes beyond what is held
        ledger.charge(DATASET, "ada", loss_of(TENTH), None, first)
    ledger.end(ledger.hold(DATASET, "ada", TENTH))
    ledger.hold(DATASET, "eve", TENTH)
    ledger.close()
    assert Ledger.open(file).remaining(DATASET, "bob") == Fraction(3, 5)
    gc.collect()
    return file


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM lines WHERE kind = 'hold' AND serial = 1",
        "DELETE FROM lines WHERE kind = 'hold' AND serial = 3",
        "DELETE FROM lines WHERE kind = 'end'",
        "UPDATE lines SET line = cast(x'ff' AS TEXT) WHERE kind = 'hold' AND serial = 3",
        "UPDATE lines SET note = cast(x'ff' AS TEXT) WHERE kind = 'hold' AND serial = 3",
        "UPDATE lines SET reference = NULL WHERE kind = 'charge' AND serial = 2",
        "UPDATE lines SET reference = 3 WHERE kind = 'charge' AND serial = 2",
        "UPDATE lines SET reference = 3 WHERE kind = 'end'",
        "INSERT INTO open_holds VALUES (2, 'people')",
        "DELETE FROM open_holds WHERE hold = 3",
        "UPDATE open_holds SET dataset = 'others' WHERE hold = 3",
        "DROP TABLE open_holds",
        "DROP INDEX by_hold",
        "DROP INDEX one_end",
        "ALTER TABLE lines DROP COLUMN note",
    ],
)
def test_reservations_that_do_not_add_up_are_refused(written: Path, statement: str) -> None:
    damage(written, statement)
    refused(written)


@pytest.mark.parametrize(
    ("kind", "serial", "changes"),
    [
        ("hold", 1, {"held": "1/100"}),
        ("hold", 3, {"held": "-1"}),
        ("hold", 3, {"held": "abc"}),
        ("hold", 3, {"held": "1/0"}),
        ("hold", 1, {"analyst": "nobody"}),
        ("hold", 1, {"dataset": "others"}),
        ("charge", 2, {"reservation_spent": "0"}),
        ("charge", 2, {"reservation_spent": None}),
        ("charge", 2, {"reservation": None}),
        ("charge", 2, {"reservation": 9}),
        ("charge", 1, {"reservation": 2}),
        ("end", 1, {"reservation": 1}),
        ("end", 1, {"reservation": 3}),
        ("end", 1, {"reservation": 9}),
        ("end", 1, {"analyst": "nobody"}),
    ],
)
def test_a_reservation_whose_hashes_are_right_must_still_follow_from_the_others(
    written: Path, kind: str, serial: int, changes: dict[str, Any]
) -> None:
    forge(written, kind, serial)
    Ledger.open(written).close()  # the forger changes nothing else
    forge(written, kind, serial, **changes)
    refused(written)


@pytest.mark.parametrize("kind", ["hold", "end"])
def test_a_reservation_that_cannot_be_written_or_ended_is_told(file: Path, kind: str) -> None:
    ada = table_at(file)
    part = ada.partition("sex")[0]
    before = state(ada, part)
    raw = sqlite3.connect(file, isolation_level=None)
    raw.execute(
        f"CREATE TRIGGER disk_full BEFORE INSERT ON lines WHEN NEW.kind = '{kind}' "
        "BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
    )
    with pytest.raises(LedgerError, match="full"), part.reserve("0.5"):
        assert kind == "end"
    raw.execute("DROP TRIGGER disk_full")
    raw.close()
    if kind == "hold":
        assert state(ada, part) == before
        with part.reserve(1) as reserved:  # no scope counts what was never held
            reserved.count(1)
    else:
        assert ada.budget.remaining == Fraction(1, 2)  # open until the owner ends it


if __name__ == "__main__":
    wait_to_be_killed(*sys.argv[1:])

"""Reservations: the block, caps, parts of a table, and the ledger that holds them."""

from __future__ import annotations

import contextlib
import gc
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from damaged_ledger import damage, forge
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel.reserved_table import DATASET, DOMAIN, FRAME, HAIR, PROPERTY, TENTH, loss_of, new_ledger, table_at
from postgres_server import shared_server

import privet
from privet.errors import BudgetExceeded, LedgerError, PrivetError, QuestionError
from privet.kernel import Ledger
from privet.kernel.domain import Domain
from privet.lab import PublicTable, open_public
from privet.table import ProtectedTable


def state(*tables: ProtectedTable) -> object:
    return [(table.budget.spent, table.budget.remaining, table.budget.entries) for table in tables]


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

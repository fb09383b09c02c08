"""Charges under a data permit: its analysts share a cap, which holds beside those of the data set and of each."""

from __future__ import annotations

import threading
from fractions import Fraction
from pathlib import Path

import pytest
from kernel.ledger.small_ledger import DOMAIN

from privet import ledger_lines
from privet.errors import BudgetExceeded, LedgerError
from privet.kernel import CapChange, Charge, Domain, Ledger, Under

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
HEART, LUNG = Under("heart", "survival"), Under("lung")


def charge(loss: Fraction, under: Under | None, key: str | None = None) -> Charge:
    return Charge("count", '{"question":"count"}', "f", "all rows", str(loss), loss, key, under=under)


def shared(path: Path | str, cap: Fraction = Fraction(1)) -> Ledger:
    """A data set with a cap, on which the permit 'heart' has a half."""
    ledger = Ledger.open(path)
    ledger.register("people", source="here", budget=cap, domain=DOMAIN)
    ledger_lines.change(ledger, 0, "permit", caps=[CapChange("people", None, HALF, Fraction(0), "heart")])
    return ledger


def test_analysts_share_the_cap_of_their_permit(path: Path | str) -> None:
    ledger = shared(path)
    other = Ledger.open(path)  # another server
    ledger.charge("people", "ada", charge(QUARTER, HEART))
    assert (
        other.remaining("people", "bob", permit="heart") == QUARTER and other.remaining("people", "bob") == 3 * QUARTER
    )
    other.charge("people", "bob", charge(QUARTER, HEART))
    for analyst, own in (("ada", ledger), ("bob", other), ("eve", ledger)):
        with pytest.raises(BudgetExceeded, match="reaches the permit 'heart' on 'people', which has 0 left of"):
            own.charge("people", analyst, charge(Fraction(1, 100), HEART))
    ledger.charge("people", "ada", charge(QUARTER, None))  # her own word is another matter
    assert (ledger.permit_spent("people", "heart"), ledger.spent("people")) == (HALF, 3 * QUARTER)
    assert ledger.cap("people") == 1 and ledger.cap("people", permit="heart") == HALF
    Ledger.open(path).check()


def test_two_permits_of_one_analyst_do_not_pass_the_cap_of_the_data(path: Path | str) -> None:
    ledger = shared(path, HALF)
    ledger_lines.change(ledger, 9, "permit", caps=[CapChange("people", None, HALF, Fraction(0), "lung")])
    ledger.set_cap("people", "ada", Fraction(3, 8))
    ledger.charge("people", "ada", charge(QUARTER, HEART))
    with pytest.raises(BudgetExceeded, match="the budget of 'ada'"):
        ledger.charge("people", "ada", charge(QUARTER, LUNG))
    ledger.set_cap("people", "ada", Fraction(2))
    ledger.charge("people", "ada", charge(QUARTER, LUNG))
    with pytest.raises(BudgetExceeded, match="ledger 'people', which has 0 left"):
        ledger.charge("people", "ada", charge(Fraction(1, 100), LUNG))


def test_the_charge_says_its_permit_its_purpose_and_the_totals(path: Path | str) -> None:
    ledger = shared(path)
    ledger.charge("people", "ada", charge(QUARTER, HEART))
    ledger.charge("people", "ada", charge(QUARTER, LUNG))
    bodies = [line.body for line in ledger.lines() if line.kind == "charge"]
    names = ("permit", "purpose", "permit_spent", "permit_cap")
    assert [tuple(body.get(name) for name in names) for body in bodies] == [
        ("heart", "survival", "1/4", "1/2"),
        ("lung", None, "1/4", None),
    ]


def test_a_reservation_under_a_permit_is_of_its_cap_and_pays_for_nothing_else(path: Path | str) -> None:
    ledger = shared(path)
    hold = ledger.hold("people", "ada", QUARTER, permit="heart")
    assert ledger.remaining("people", "bob", permit="heart") == QUARTER
    with pytest.raises(BudgetExceeded, match="permit 'heart'"):
        ledger.hold("people", "bob", HALF, permit="heart")
    for under in (LUNG, None):
        with pytest.raises(BudgetExceeded, match="has ended"):
            ledger.charge("people", "ada", charge(QUARTER, under), hold=hold)
    ledger.charge("people", "ada", charge(QUARTER, HEART), hold=hold)
    assert ledger.permit_spent("people", "heart") == QUARTER
    Ledger.open(path).check()


def test_a_race_for_the_last_of_a_permit_is_won_by_as_many_as_it_has_room_for(path: Path | str) -> None:
    shared(path)
    ledgers, won, start = [Ledger.open(path) for _ in range(4)], [], threading.Barrier(4)

    def spend(number: int) -> None:
        start.wait(60)
        for turn in range(5):
            try:
                ledgers[number].charge("people", f"analyst {number}", charge(Fraction(1, 16), HEART, f"{turn}"))
                won.append(number)
            except BudgetExceeded:
                pass

    threads = [threading.Thread(target=spend, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 8 and ledgers[0].permit_spent("people", "heart") == HALF
    Ledger.open(path).check()


def test_a_charge_that_is_undone_is_not_remembered(path: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Totals are read of committed lines alone: the number of an undone line is given to another one."""
    ledger = shared(path)
    ledger.charge("people", "ada", charge(QUARTER, HEART))
    with monkeypatch.context() as patched:
        patched.setattr("privet.kernel.ledger.ledger.Entry.read", lambda *_: 1 / 0)
        patched.setattr("privet.kernel.ledger.log.Log.append", lambda *_: 1 / 0)
        with pytest.raises((ZeroDivisionError, LedgerError)):
            ledger.charge("people", "ada", charge(QUARTER, HEART))
    Ledger.open(path).charge("people", "bob", charge(QUARTER, HEART))
    assert ledger.permit_spent("people", "heart") == HALF


def test_more_rows_a_person_cost_a_permit_what_its_charges_cost(path: Path | str) -> None:
    ledger = shared(path, Fraction(8))
    for analyst, under in (("ada", HEART), ("ada", None), ("bob", HEART), ("bob", LUNG)):
        ledger.charge("people", analyst, charge(Fraction(1, 8), under))
    more = Domain.parse("rows_per_person = 3\n" + DOMAIN.to_toml().replace("rows_per_person = 1\n", ""))
    assert ledger.declare("people", more) == 1
    spent = [ledger.permit_spent("people", name) for name in ("heart", "lung")]
    assert spent == [Fraction(6, 8), Fraction(3, 8)] and ledger.spent("people") == Fraction(12, 8)
    assert [ledger.spent("people", name) for name in ("ada", "bob")] == [Fraction(6, 8)] * 2
    assert ledger.remaining("people", "eve", permit="heart") == 0
    Ledger.open(path).check()

"""Reservations of several analysts, threads and processes, held to a simple reference.

Run as a script this file is a process that reserves, and waits to be killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from command import run
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel.reserved_table import DATASET, DOMAIN, FRAME, HAIR, PROPERTY, TENTH, loss_of, new_ledger, table_at
from postgres_server import shared_server

import privet
from privet.errors import BudgetExceeded, LedgerError, PrivetError
from privet.kernel import Ledger

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


if __name__ == "__main__":
    wait_to_be_killed(*sys.argv[1:])

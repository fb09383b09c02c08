"""The ledger: nobody overspends, nothing written is lost, and a released answer is always on record.

Run as a script this file is a helper process: it imports privet once and forks the
processes that race for a budget or are killed, so that none of them starts an interpreter.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from command import run as run_command
from damaged_ledger import damage, forge
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres_server import shared_server

import privet
from privet.errors import BudgetExceeded, EngineFailed, KeyReused, LedgerError, PrivacyError, PrivetError, QuestionError
from privet.kernel import Charge, Entry, Ledger, ProtectedTable
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.ledger.store import Purpose

DATASET = "people"
DOMAIN = Domain((Nominal("sex", ("f", "m")), Nominal("old", ("no", "yes"))))
FRAME = pd.DataFrame({"sex": ["f", "m", "m"] * 20, "old": ["no", "yes"] * 30})
TENTH = Fraction(1, 10)


def tenth(key: str | None = None, fingerprint: str = "f", loss: Fraction = TENTH) -> Charge:
    return Charge("count", '{"question":"count"}', fingerprint, "all rows", "0.1", loss, key)


def new_ledger(path: Path | str, budget: Fraction = Fraction(1)) -> Ledger:
    ledger = Ledger.open(path)
    ledger.register(DATASET, source="here", budget=budget)
    return ledger


def table_at(path: Path | str, analyst: str = "ada", budget: object = 1, domain: Domain = DOMAIN) -> ProtectedTable:
    return privet.open(FRAME, domain, budget=budget, ledger=path, name=DATASET, analyst=analyst)


def close(ledger: Ledger) -> None:
    """As when its process ends: the file is then complete by itself."""
    ledger.close()


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


def one_sentence(error: BaseException) -> str:
    text = str(error)
    assert "\n" not in text and text.endswith(".") and len(text) < 500
    assert error.__cause__ is None
    return text


@pytest.fixture(params=["sqlite", "postgres"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a ledger is to be, in every store."""
    return tmp_path / "people.ledger" if request.param == "sqlite" else shared_server().ledger()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


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
    assert privet.kernel.ledger_path(data).exists()


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


# -- many at once -------------------------------------------------------------------------------


def test_threads_share_a_table_without_overspending(path: Path | str) -> None:
    table = table_at(path)
    parts = [*table.partition("sex"), table, table.where(old="no"), table.allot(1)]
    bought: list[Fraction] = []
    surprises: list[BaseException] = []

    def spend(thread: int) -> None:
        for i in range(12):
            try:
                bought.append(parts[(thread + i) % len(parts)].count("0.02").epsilon)
            except BudgetExceeded:
                continue
            except BaseException as error:
                surprises.append(error)

    threads = [threading.Thread(target=spend, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert surprises == []
    ledger = Ledger.open(path)
    assert ledger.spent(DATASET) == table.budget.spent == sum(entry.loss for entry in ledger.entries(DATASET))
    assert 1 - Fraction(1, 50) < ledger.spent(DATASET) <= 1
    assert len(ledger.entries(DATASET)) == len(bought)
    assert all(entry.answer is not None for entry in ledger.entries(DATASET))


def helper(*arguments: object, folder: Path) -> subprocess.Popen[str]:
    """This file as a process, warmed up and ready to fork; its temporary files go to `folder`."""
    return subprocess.Popen(
        [sys.executable, __file__, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)},
    )


RACERS, UNIT = 16, Fraction(1, 1000)


def run_race(folder: Path, tries: int, *paths: Path | str) -> list[dict[str, Any]]:
    """Let processes start together and try so often to charge a unit; once for each ledger."""
    text, _ = helper("race", tries, *paths, folder=folder).communicate(timeout=300)
    results = [json.loads(line) for line in text.splitlines()]
    assert len(results) == RACERS * len(paths)
    assert [result["failed"] for result in results if result["failed"]] == []
    return results


def test_sixteen_processes_race_for_a_thousand_charges(path: Path | str, tmp_path: Path) -> None:
    close(new_ledger(path))
    results = run_race(tmp_path, 100, path)
    assert sum(result["bought"] for result in results) == 1000
    assert sum(result["refused"] for result in results) == RACERS * 100 - 1000
    ledger = Ledger.open(path)  # checks every total
    entries = ledger.entries(DATASET)
    assert ledger.spent(DATASET) == 1 and ledger.remaining(DATASET, "ada") == 0
    assert len(entries) == 1000 and sum(entry.loss for entry in entries) == 1
    for result in results:
        assert ledger.spent(DATASET, result["analyst"]) == result["bought"] * UNIT


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_sixteen_processes_may_open_a_new_ledger_at_once(store: str, tmp_path: Path) -> None:
    files: list[Path | str] = [tmp_path / f"{i}.ledger" for i in range(12)]
    paths = files if store == "sqlite" else [shared_server().ledger() for _ in range(4)]
    run_race(tmp_path, 1, *paths)
    assert [Ledger.open(path).spent(DATASET) for path in paths] == [RACERS * UNIT] * len(paths)


def in_children(work: Callable[[int], Any], number: int) -> None:
    """Let forked processes start together; each writes its result as a line."""
    reader, writer = os.pipe()
    children = []
    for i in range(number):
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)  # until the writer is closed
            os.write(1, (json.dumps(work(i)) + "\n").encode())
            os._exit(0)
        children.append(child)
    os.close(writer)
    for child in children:
        os.waitpid(child, 0)


def race(tries: int, path: str) -> None:
    def spend(i: int) -> dict[str, Any]:
        result: dict[str, Any] = {"analyst": f"racer {i}", "bought": 0, "refused": 0, "failed": None}
        try:
            ledger = new_ledger(path)
            for _ in range(tries):
                try:
                    _, new = ledger.charge(DATASET, result["analyst"], tenth(loss=UNIT))
                    result["bought"] += new
                except BudgetExceeded:
                    result["refused"] += 1
        except PrivetError as error:
            result["failed"] = str(error)
        return result

    in_children(spend, RACERS)


# -- killed -------------------------------------------------------------------------------------

RUNS, CAP = 50, Fraction(3, 20)


class Victims:
    """Processes that ask without end and write each answer after its release; to be killed at any moment."""

    def __init__(self, data: Path, ledger: Path | str) -> None:
        self.process = helper("victims", data, ledger, folder=data.parent)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout.fileno()
        self.unread = b""

    def start(self, run: int, retry: list[str]) -> int:
        self.stdin.write(json.dumps([run, retry]) + "\n")
        self.stdin.flush()
        started = self.line()
        return int(started["process"])

    def line(self, wait: float | None = None) -> Any:
        """What the running one says next; None if it says nothing for so many seconds."""
        while b"\n" not in self.unread:
            ready, _, _ = select.select([self.stdout], [], [], wait)
            if not ready:
                return None
            more = os.read(self.stdout, 65536)
            assert more, "the helper has ended"
            self.unread += more
        line, self.unread = self.unread.split(b"\n", 1)
        said = json.loads(line)
        assert "failed" not in said, said
        return said

    def close(self) -> None:
        with self.process:  # closes the pipes and waits
            pass


@pytest.fixture
def victims(tmp_path: Path, path: Path | str) -> Iterator[Victims]:
    data = tmp_path / "people.csv"
    FRAME.to_csv(data, index=False)
    running = Victims(data, path)
    yield running
    running.close()


def test_what_fifty_killed_processes_released_is_on_record_and_paid(
    victims: Victims, path: Path | str, tmp_path: Path
) -> None:
    coins = random.Random(50)
    released: list[dict[str, Any]] = []
    refusals = 0
    known: list[Entry] = []
    for run in range(RUNS):
        process = victims.start(run, [entry.key for entry in known[-3:] if entry.key])
        said = []
        for _ in range(max(0, coins.randrange(-2, 9))):
            said.append(victims.line())
        late = victims.line(coins.random() * (0.02 if said else 0.1))  # a moment more, or until it speaks
        os.kill(process, signal.SIGKILL)
        said += [late] if late else []
        while (line := victims.line()) != {"dead": process}:
            said.append(line)
        assert all("entry" in line or "refused" in line for line in said)
        released += [line for line in said if "entry" in line]
        refusals += len(said) - len([line for line in said if "entry" in line])
        try:
            ledger = Ledger.open(path, create=False)
        except LedgerError as error:
            assert "there is no ledger" in str(error) and not known
            continue

        entries = ledger.entries(DATASET) if DATASET in ledger.datasets() else []
        assert ledger.spent(DATASET) == sum(entry.loss for entry in entries) <= CAP
        close(ledger)
        now = {entry.id: entry for entry in entries}
        for entry in known:  # what was there once still is, and an answer never changes
            assert now[entry.id] == entry or (entry.answer is None and now[entry.id].key == entry.key)
        for answer in released:
            stored = json.loads(now[answer["entry"]].answer or "")
            assert stored == {"answer": [answer["count"]], "private": True}
            assert now[answer["entry"]].key == answer["key"]
        keys = [entry.key for entry in entries if entry.key]
        assert len(keys) == len(set(keys))
        known = entries
    retried = [answer for answer in released if answer["retry"]]
    assert len(released) > RUNS and len(retried) > RUNS / 2
    while True:  # spend what is left
        with privet.open(tmp_path / "people.csv", DOMAIN, budget=CAP, ledger=path) as table:
            try:
                table.count(Fraction(1, 100))
            except BudgetExceeded:
                assert table.budget.spent <= CAP
                break


def victim(data: str, ledger: str, run: int, retry: list[str]) -> None:
    def say(**line: object) -> None:
        os.write(1, (json.dumps(line) + "\n").encode())

    with privet.open(data, DOMAIN, budget=CAP, ledger=ledger) as table:
        for key in retry:
            count = table.count("0.001", key=key)
            say(count=int(count), entry=count.about.entry, key=key, retry=True)
        for i in range(10**9):
            key = f"run {run} question {i}" if i % 2 else None
            try:
                count = table.count("0.001", key=key)
            except BudgetExceeded:
                say(refused=key)
                continue
            say(count=int(count), entry=count.about.entry, key=key, retry=False)


def serve_victims(data: str, ledger: str) -> None:
    for command in sys.stdin:
        child = os.fork()
        if child == 0:
            os.write(1, (json.dumps({"process": os.getpid()}) + "\n").encode())
            try:
                victim(data, ledger, *json.loads(command))
            except BaseException as error:
                os.write(1, (json.dumps({"failed": repr(error)}) + "\n").encode())
            os._exit(1)
        os.waitpid(child, 0)
        os.write(1, (json.dumps({"dead": child}) + "\n").encode())


# -- forked -------------------------------------------------------------------------------------


def fork(work: Callable[[], Any]) -> tuple[int, Any]:
    """A child's process id and the end of a pipe on which its result arrives."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, where the process has threads
        child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    return child, os.fdopen(reader)


def refusal(ask: Callable[[], object]) -> str:
    try:
        ask()
    except PrivetError as error:
        return type(error).__name__
    return "answered"


@pytest.mark.parametrize("durable", [True, False])
def test_a_forked_copy_of_a_table_may_not_spend(durable: bool, path: Path | str) -> None:
    table = table_at(path if durable else ":memory:")
    parts = table.partition("sex")
    table.count("0.1")
    asks = [
        lambda: table.count("0.1"),
        lambda: parts.count("0.1"),
        lambda: table.where(sex="f").count("0.1"),
        lambda: table.allot("0.1").count("0.1"),
    ]
    child, result = fork(lambda: [refusal(ask) for ask in asks])
    assert json.load(result) == ["PrivacyError"] * 4
    os.waitpid(child, 0)
    result.close()
    assert table.budget.spent == TENTH and len(table.budget.entries) == 1
    parts.count("0.9")
    assert table.budget.remaining == 0


@pytest.mark.parametrize("inherited", [True, False])
def test_what_a_forked_process_has_charged_is_there_when_the_parent_has_closed(
    inherited: bool, path: Path | str
) -> None:
    """Refusing to charge in the child would do as well: what counts is that no charge is confirmed and then lost."""
    opened = [new_ledger(path)]
    from_parent, to_child = os.pipe()
    from_child, to_parent = os.pipe()

    def work() -> list[str]:
        confirmed = []
        mine = opened[0] if inherited else Ledger.open(path)
        for key in ("before", "after"):
            try:
                mine.charge(DATASET, "child", tenth(key))
                confirmed.append(key)
            except PrivetError:
                pass
            if key == "before":
                os.write(to_parent, b".")
                os.read(from_parent, 1)
        return confirmed

    child, result = fork(work)
    os.read(from_child, 1)
    opened.clear()
    gc.collect()
    os.write(to_child, b".")
    confirmed = json.load(result)
    os.waitpid(child, 0)
    result.close()
    for end in (from_parent, to_child, from_child, to_parent):
        os.close(end)
    assert [entry.key for entry in Ledger.open(path).entries(DATASET)] == confirmed


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


# -- one record of the spending on a file -------------------------------------------------------


def stored(folder: Path, name: str = "people.csv") -> Path:
    FRAME.to_csv(folder / name, index=False)
    return folder / name


def uncounted(opening: Callable[[], object], *words: str) -> None:
    with pytest.raises(PrivacyError, match="--ignore-spending, in Python ignore_spending=True") as refused:
        opening()
    text = one_sentence(refused.value)
    assert all(word in text for word in words), text


def test_a_spent_file_cannot_be_opened_with_another_ledger(path: Path | str, tmp_path: Path) -> None:
    data = stored(tmp_path)
    privet.open(data, DOMAIN, budget=1).count(1)
    for other in (":memory:", path, Ledger.open(":memory:")):
        uncounted(lambda: privet.open(data, DOMAIN, budget=1000, ledger=other), "people.csv.ledger'")  # noqa: B023
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger.open(path, create=False)  # nor was one made
    with pytest.raises(BudgetExceeded):
        privet.open(data, DOMAIN, ledger=f"{data}.ledger").count("0.1")
    privet.open(data, DOMAIN, budget=1, ledger=path, ignore_spending=True).count(1)
    assert Ledger.open(path).spent(DATASET) == 1


def test_a_file_whose_ledger_is_elsewhere_has_a_link_to_it(path: Path | str, tmp_path: Path) -> None:
    """Whoever opens it without naming a ledger, or with another, goes on there or is refused."""
    folder = tmp_path / "data"
    folder.mkdir()
    data = stored(folder)
    privet.open(data, DOMAIN, budget=1, ledger=path).count("0.4")
    for other in (":memory:", tmp_path / "other.ledger"):
        uncounted(lambda: privet.open(data, DOMAIN, budget=1, ledger=other))  # noqa: B023
    assert not (tmp_path / "other.ledger").exists()
    if isinstance(path, Path):
        assert privet.open(data, DOMAIN).budget.spent == Fraction(2, 5)
        done = run_command("budget", "show", "people.csv", "--json", cwd=folder)
        assert json.loads(done.stdout)["people"]["spent"] == "0.4"
        path.rename(tmp_path / "moved")
        with pytest.raises(LedgerError, match="was moved or removed"):
            privet.open(data, DOMAIN, budget=1)
    else:
        with_role = path.replace("postgres@", "somebody@")
        assert Ledger.identity_of(with_role) == Ledger.identity_of(path) == os.readlink(f"{data}.ledger")


def test_a_hard_link_does_not_start_afresh(tmp_path: Path) -> None:
    data, elsewhere = stored(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    privet.open(data, DOMAIN, budget=1).count(1)
    os.link(data, tmp_path / "copy.csv")
    uncounted(lambda: privet.open(tmp_path / "copy.csv", DOMAIN, budget=1), "is the same file as", "people.csv'")
    os.link(data, elsewhere / "people.csv")
    uncounted(lambda: privet.open(elsewhere / "people.csv", DOMAIN, budget=1), "a hard link")
    with pytest.raises(BudgetExceeded):
        privet.open(data, DOMAIN).count("0.1")
    with privet.open(elsewhere / "people.csv", DOMAIN, budget=1, ignore_spending=True) as table:
        table.count("0.1")
    assert privet.open(elsewhere / "people.csv", DOMAIN).budget.spent == TENTH  # has a ledger of its own from then on


def spent_file(folder: Path, name: str = "people.csv", **options: Any) -> Path:
    """A file with a budget of 1, which is spent."""
    data = stored(folder, name)
    with privet.open(data, DOMAIN, budget=1, **options) as table:
        table.count(1)
    return data


def has_no_fresh_budget(data: Path | str, known_as: str, **options: Any) -> None:
    """Its spending goes on where no name is given; another name is refused, whatever the budget."""
    with pytest.raises(PrivacyError, match=f"the budget 1000 asked for '{known_as}' is above the 1 in its ledger"):
        privet.open(data, DOMAIN, budget=1000, **options)
    with pytest.raises(LedgerError, match=f"knows this data as '{known_as}', not as 'fresh'") as refused:
        privet.open(data, DOMAIN, budget=1000, name="fresh", **options)
    one_sentence(refused.value)
    with privet.open(data, DOMAIN, **options) as table:
        assert (table.budget.spent, table.budget.remaining) == (1, 0)


def tables_in(folder: Path, *names: str) -> str:
    """The address of a DuckDB file with such tables, without a name at its end."""
    with duckdb.connect(str(folder / "people.db")) as connection:
        connection.register("frame", FRAME)
        for name in names:
            connection.execute(f"CREATE TABLE {name} AS FROM frame")
    return f"duckdb:///{folder}/people.db?table="


def test_a_file_that_was_renamed_with_its_ledger_goes_on(tmp_path: Path) -> None:
    data = spent_file(tmp_path)
    renamed = data.rename(tmp_path / "others.csv")
    Path(f"{data}.ledger").rename(f"{renamed}.ledger")
    has_no_fresh_budget(renamed, "people")


def test_a_file_that_was_moved_with_its_folder_goes_on(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    spent_file(tmp_path / "before")
    (tmp_path / "before").rename(tmp_path / "after")
    has_no_fresh_budget(tmp_path / "after" / "people.csv", "people")


def test_a_database_that_was_moved_with_its_ledger_goes_on(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    address = tables_in(tmp_path / "before", "one", "two")
    for name in ("one", "two"):
        with privet.open(address + name, DOMAIN, budget=1) as table:
            table.count(1)
    (tmp_path / "before").rename(tmp_path / "after")
    for name in ("two", "one"):
        has_no_fresh_budget(address.replace("before", "after") + name, name)


def test_a_file_that_was_renamed_with_the_link_to_its_ledger_is_refused(path: Path | str, tmp_path: Path) -> None:
    """The ledger may have many data sets: which of them the file is, only its owner can say."""
    data = spent_file(tmp_path, ledger=path)
    stored(tmp_path, "large.csv")
    privet.open(tmp_path / "large.csv", DOMAIN, budget=1000, ledger=path).close()
    renamed = data.rename(tmp_path / "others.csv")
    Path(f"{data}.ledger").rename(f"{renamed}.ledger")
    for name in (None, "others", "large", "people"):
        with pytest.raises(PrivacyError, match="does not know this file") as refused:
            privet.open(renamed, DOMAIN, budget=1000, ledger=path, name=name)
        one_sentence(refused.value)
    with privet.open(renamed, DOMAIN, ledger=path, name="people", ignore_spending=True) as table:
        assert table.budget.remaining == 0
    has_no_fresh_budget(renamed, "people", ledger=path)


def test_a_ledger_begun_for_another_file_does_not_pay(tmp_path: Path) -> None:
    data = spent_file(tmp_path, ledger=tmp_path / "all.ledger")
    renamed = data.rename(tmp_path / "others.csv")
    Path(f"{data}.ledger").unlink()
    (tmp_path / "all.ledger").rename(f"{renamed}.ledger")
    for name in (None, "fresh"):
        with pytest.raises(PrivacyError, match="does not know this file"):
            privet.open(renamed, DOMAIN, budget=1000, name=name)


def test_the_spending_under_a_shared_name_is_not_left_behind(path: Path | str, tmp_path: Path) -> None:
    one, two = stored(tmp_path, "one.csv"), stored(tmp_path, "two.csv")
    privet.open(one, DOMAIN, budget=1, ledger=path, name="both").close()
    with privet.open(two, DOMAIN, budget=1, ledger=path, name="both") as table:
        table.count(1)
    for data in (one, two):
        has_no_fresh_budget(data, "both", ledger=path)


def test_the_spending_of_two_tables_under_one_name_is_not_left_behind(tmp_path: Path) -> None:
    address = tables_in(tmp_path, "one", "two", "three")
    privet.open(address + "one", DOMAIN, budget=1, name="both").close()
    with privet.open(address + "two", DOMAIN, budget=1, name="both") as table:
        table.count(1)
    has_no_fresh_budget(address + "two", "both")
    with privet.open(address + "three", DOMAIN, budget=1000) as table:  # a table of its own
        assert table.budget.remaining == 1000


def test_a_source_belongs_to_one_data_set(path: Path | str) -> None:
    ledger = new_ledger(path)
    ledger.register(DATASET, source="there", budget=None, aliases=("by another name",))
    ledger.register("others", source="elsewhere", budget=Fraction(1))
    for source in ("here", "there", "by another name"):
        for dataset in ("others", "fresh"):
            with pytest.raises(LedgerError, match=f"knows this data as 'people', not as '{dataset}'"):
                ledger.register(dataset, source="new", budget=Fraction(1), aliases=(source,))
    assert ledger.name_of(["new", "there"]) == DATASET and ledger.name_of(["new"]) is None
    assert ledger.datasets() == ["others", DATASET]
    close(ledger)
    assert Ledger.open(path).name_of(["elsewhere"]) == "others"


def test_a_hard_link_goes_on_in_the_same_ledger(path: Path | str, tmp_path: Path) -> None:
    data = spent_file(tmp_path, ledger=path)
    os.link(data, tmp_path / "copy.csv")
    has_no_fresh_budget(tmp_path / "copy.csv", "people", ledger=path)


def test_a_hard_link_goes_on_in_the_ledger_beside_the_first_name(tmp_path: Path) -> None:
    data = spent_file(tmp_path)
    os.link(data, tmp_path / "copy.csv")
    has_no_fresh_budget(tmp_path / "copy.csv", "people", ledger=f"{data}.ledger")


def test_a_hard_link_in_place_of_another_file_has_not_its_budget(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    data = spent_file(tmp_path)
    for other, words in ((tmp_path / "copy.csv", "is the same file as"), (elsewhere / "copy.csv", "a hard link")):
        stored(other.parent, other.name)
        privet.open(other, DOMAIN, budget=1000).close()
        other.unlink()
        os.link(data, other)
        uncounted(lambda: privet.open(other, DOMAIN), words)  # noqa: B023
        other.unlink()
        assert privet.open(data, DOMAIN).budget.remaining == 0


def test_a_file_that_was_replaced_goes_on(tmp_path: Path) -> None:
    data = spent_file(tmp_path)
    stored(tmp_path, "new.csv").replace(data)
    has_no_fresh_budget(data, "people")


def test_the_commands_count_what_was_spent(tmp_path: Path) -> None:
    data = stored(tmp_path)
    DOMAIN.with_target("old").save(tmp_path / "people.toml")
    ask = ("query", "people.csv", "count", "-d", "people.toml", "-b", "1000", "-e", "1000", "--ledger", ":memory:")
    fit = ("fit", "people.csv", "-d", "people.toml", "-a", "c45", "--unsafe", "-o", "tree.json")
    assert run_command(*fit, cwd=tmp_path).returncode == 0  # nothing is spent yet
    privet.open(data, DOMAIN, budget=1).count(1)
    (tmp_path / "tree.json").unlink()
    for words in (ask, fit):
        done = run_command(*words, cwd=tmp_path)
        assert done.returncode != 0 and "--ignore-spending" in done.stderr and done.stdout == ""
        assert not (tmp_path / "tree.json").exists()
        assert run_command(*words, "--ignore-spending", cwd=tmp_path).returncode == 0


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


# -- sentences after a charge -------------------------------------------------------------------


def after_charge(table: ProtectedTable, trouble: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something happen between the charge of a question and the storing of its answer."""
    engine = table._session.engine
    counts = engine.exact_counts
    monkeypatch.setattr(engine, "exact_counts", lambda query: (trouble(), counts(query))[1])


@pytest.mark.parametrize(("key", "finish"), [("k", "retry with the key 'k'"), (None, "a new try is a new charge")])
@pytest.mark.parametrize("trouble", ["full", "locked"])
def test_an_answer_that_cannot_be_stored_leaves_a_charge_that_stands(
    file: Path, trouble: str, key: str | None, finish: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privet.kernel.ledger.sqlite.WAIT_SECONDS", 0.01)
    table = table_at(file)
    raw = sqlite3.connect(file, isolation_level=None)
    full = (
        "CREATE TRIGGER full BEFORE INSERT ON lines WHEN NEW.kind = 'answer' "
        "BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
    )
    after_charge(table, lambda: raw.execute(full if trouble == "full" else "BEGIN IMMEDIATE"), monkeypatch)
    reason = {"full": "the disk is full", "locked": "another process holds it for too long"}[trouble]
    with pytest.raises(LedgerError, match=f"{reason}; the answer was neither stored nor released") as refused:
        table.count("0.1", key=key)
    text = one_sentence(refused.value)
    assert f"Ledger entry 1 (epsilon=0.1) stands: {finish}" in text and "nothing was charged" not in text
    raw.execute("DROP TRIGGER full" if trouble == "full" else "ROLLBACK")
    raw.close()
    monkeypatch.undo()
    table.count("0.1", key=key)
    assert table.budget.spent == (TENTH if key else 2 * TENTH)


def test_a_charge_that_waits_too_long_is_not_made(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privet.kernel.ledger.sqlite.WAIT_SECONDS", 0.01)
    table = table_at(file)
    raw = sqlite3.connect(file, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="another process holds it for too long; nothing was charged"):
        table.count("0.1")
    raw.close()
    assert table.budget.entries == []


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("key", ["k", None])
def test_a_commit_that_the_disk_leaves_open_is_told_and_not_answered(
    file: Path, done: bool, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an error of the folder's synchronisation: the journal may be gone, and with it the way back."""
    table = table_at(file)
    store = table._session.ledger._store
    connection = store._connection

    class Failing:
        def execute(self, statement: str, *values: Any) -> Any:
            if statement != "COMMIT":
                return connection.execute(statement, *values)
            connection.execute("COMMIT" if done else "ROLLBACK")
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error

        def __getattr__(self, name: str) -> Any:
            return getattr(connection, name)

    with monkeypatch.context() as unlucky:
        unlucky.setattr(table._session.engine, "exact_counts", lambda query: pytest.fail("the engine was asked"))
        unlucky.setattr(table._session.ledger, "standing", lambda *words: None)  # a read, which would fail too
        unlucky.setattr(store, "_connection", Failing())
        with pytest.raises(LedgerError, match="for certain: the disk failed at the last step") as told:
            table.count("0.1", key=key)
    text = one_sentence(told.value)
    assert "`privet budget show --entries` tells" in text and "without a key a new try is a new charge" in text
    table.count("0.1", key=key)
    assert table.budget.spent == (2 * TENTH if done and key is None else TENTH)


# -- writers wait in order ----------------------------------------------------------------------


def locks(path: Path) -> list[str]:
    """What the kernel says of the lock of a file: a line for whoever has it and for all who wait."""
    number = f":{path.stat().st_ino} "
    return [line for line in Path("/proc/locks").read_text().splitlines() if number in line]


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs Linux, which tells who waits for a lock")
def test_writers_are_served_in_the_order_in_which_they_came(file: Path) -> None:
    first = new_ledger(file)
    threads = []
    with first._transaction(Purpose("wait")):
        for number in range(12):
            book, charge = Ledger.open(file), tenth(loss=UNIT)  # a ledger of its own, as in another process
            threads.append(threading.Thread(target=book.charge, args=(DATASET, f"{number:02}", charge)))
            threads[-1].start()
            while len(locks(Path(f"{file}-queue"))) <= number:
                pass
    for thread in threads:
        thread.join()
    assert [entry.analyst for entry in first.entries(DATASET)] == [f"{number:02}" for number in range(12)]


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs Linux, which tells who waits for a lock")
def test_a_writer_that_is_killed_in_the_queue_holds_up_nobody(file: Path) -> None:
    """Neither the one who is first nor those who wait."""
    ledger = new_ledger(file)
    children = []
    with ledger._transaction(Purpose("wait")):
        for number in range(3):
            child, result = fork(lambda: Ledger.open(file).charge(DATASET, "killed", tenth())[1])
            children.append(child)
            result.close()
            while len(locks(Path(f"{file}-queue"))) <= number:
                pass
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    ledger.charge(DATASET, "ada", tenth())
    assert [entry.analyst for entry in ledger.entries(DATASET)] == ["ada"]


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs Linux, which tells who has a lock")
def test_a_forked_child_does_not_keep_a_place_in_the_queue(file: Path) -> None:
    """Of a parent that was killed, say: the lock goes with the parent and not with its last child."""
    ledger = new_ledger(file)
    queue = Path(f"{file}-queue")
    with ledger._store._queue.turn():
        assert len(locks(queue)) == 1
        child, result = fork(lambda: [os.path.samefile(f"/proc/self/fd/{fd}", queue) for fd in _open_files()])
        assert not any(json.load(result))
        os.waitpid(child, 0)
        result.close()
        assert len(locks(queue)) == 1
    assert locks(queue) == []


def _open_files() -> list[str]:
    return [fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]


def test_whoever_cannot_stand_in_the_queue_writes_without(file: Path) -> None:
    """A folder where no file can be made for it, a file system that knows no locks."""
    ledger = new_ledger(file)
    Path(f"{file}-queue").unlink()
    Path(f"{file}-queue").mkdir()
    ledger.charge(DATASET, "ada", tenth())
    assert ledger.spent(DATASET) == TENTH


def test_a_queue_that_does_not_move_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = new_ledger(file)
    with open(f"{file}-queue") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        monkeypatch.setattr("privet.kernel.ledger.sqlite.WAIT_SECONDS", 0.01)
        with pytest.raises(LedgerError, match="another process holds it for too long; nothing was charged"):
            ledger.charge(DATASET, "ada", tenth())
    monkeypatch.undo()
    ledger.charge(DATASET, "ada", tenth())


# -- a fork in the middle -----------------------------------------------------------------------

FORKS = """
import os, sys
from fractions import Fraction
from privet.kernel import Charge, Ledger
from privet.kernel.ledger.store import Purpose

ledger = Ledger.open(sys.argv[1])
journal = sys.argv[1] + "-journal"
with ledger._transaction(Purpose("write")) as log:
    for number in range(2000):  # more than fits into memory: pages are on the disk before the end
        log.append("cap", "people", log.new_analyst_id("x" * 1000 + str(number)), {"cap": "1"})
    before = os.stat(journal) if os.path.exists(journal) else None
    child = os.fork()
    if child == 0:
        sys.exit(0)  # as a program ends: everything is given back
    assert os.waitpid(child, 0)[1] == 0
    after = os.stat(journal) if os.path.exists(journal) else None
    assert before is None or (before.st_ino, before.st_size) == (after.st_ino, after.st_size) and after.st_size > 0
    print("journal" if after else "server")
ledger.charge("people", "ada", Charge("count", "{}", "f", "all rows", "0.1", Fraction(1, 10)))
"""


def test_a_child_forked_in_the_middle_of_a_write_undoes_nothing_when_it_ends(path: Path | str) -> None:
    close(new_ledger(path))
    done = subprocess.run([sys.executable, "-c", FORKS, str(path)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("journal\n" if isinstance(path, Path) else "server\n")
    ledger = Ledger.open(path)  # checks every line
    assert len(ledger.analysts(DATASET)) == 2001 and ledger.spent(DATASET) == TENTH


# -- damaged and out of reach -------------------------------------------------------------------


@pytest.fixture
def written(file: Path) -> Path:
    """A closed ledger of forty entries."""
    ledger = new_ledger(file, Fraction(10))
    for i in range(40):
        entry, _ = ledger.charge(DATASET, "ada", tenth(f"k{i}", "f" * 64))
        ledger.store(entry.id, json.dumps({"answer": [i], "private": True}))
    close(ledger)
    return file


def refused(path: Path) -> None:
    """The ledger is refused, both alone and under a table, and stays as it is."""
    before = path.read_bytes()
    for opening in (lambda: Ledger.open(path), lambda: table_at(path, budget=10)):
        with pytest.raises(LedgerError) as caught:
            opening()
        assert str(path) in one_sentence(caught.value)
    gc.collect()
    assert path.read_bytes() == before


def test_random_bytes_are_no_ledger(file: Path) -> None:
    file.write_bytes(random.Random(1).randbytes(20_000))
    refused(file)
    file.write_text("a text\n" * 100)
    refused(file)


@pytest.mark.parametrize("kept", [1, 6, 100, 512, 4096, 0.3, 0.5, 0.9, 0.97, 0.9999])
def test_a_ledger_cut_short_is_refused(written: Path, kept: float) -> None:
    content = written.read_bytes()
    written.write_bytes(content[: int(kept if kept >= 1 else len(content) * kept)])
    refused(written)


def test_a_database_of_something_else_is_refused_and_left_alone(file: Path) -> None:
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE customers (name TEXT)")
    other.commit()
    other.close()
    refused(file)


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE lines SET line = replace(line, '"loss":"1/10"', '"loss":"1/90"') WHERE number = 5""",
        "UPDATE lines SET line = 'abc' WHERE number = 5",
        "UPDATE lines SET line = '[]' WHERE number = 5",
        "UPDATE lines SET line = x'00ff' WHERE number = 5",
        "UPDATE lines SET line = line || ' ' WHERE number = 5",
        "UPDATE lines SET note = x'00ff' WHERE number = 5",
        "UPDATE lines SET note = replace(note, 'salt', 'Salt') WHERE number = 5",
        "UPDATE lines SET note = (SELECT note FROM lines WHERE number = 7) WHERE number = 5",
        "UPDATE lines SET leaf = (SELECT leaf FROM lines WHERE number = 7) WHERE number = 5",
        "UPDATE lines SET analyst = 'bob' WHERE kind = 'charge' AND serial = 3",
        "UPDATE lines SET analyst = 'bob' WHERE kind = 'cap'",
        "UPDATE lines SET dataset = 'others' WHERE kind = 'charge' AND serial = 40",
        "UPDATE lines SET dataset = NULL WHERE kind = 'charge' AND serial = 40",
        "UPDATE lines SET key = 'k' WHERE kind = 'charge' AND serial = 4",
        "UPDATE lines SET key = NULL WHERE kind = 'charge' AND serial = 4",
        "UPDATE lines SET reference = 41 WHERE kind = 'answer' AND serial = 40",
        "UPDATE lines SET reference = 1 WHERE kind = 'charge' AND serial = 4",
        "UPDATE lines SET kind = 'config' WHERE kind = 'charge' AND serial = 40",
        "UPDATE lines SET serial = 41 WHERE kind = 'charge' AND serial = 40",
        "UPDATE lines SET number = 100 WHERE number = 82",
        "UPDATE lines SET (line, note, leaf) = (SELECT line, note, leaf FROM lines WHERE number = 5) WHERE number = 7",
        "DELETE FROM lines WHERE number = 1",
        "DELETE FROM lines WHERE number = 5",
        "DELETE FROM lines WHERE number = 82",
        "DELETE FROM lines WHERE number > 40",
        "DELETE FROM lines",
        "UPDATE analysts SET name = 'bob'",
        "UPDATE analysts SET secret = ''",
        "UPDATE analysts SET name = x'00ff'",
        "DELETE FROM analysts",
        "INSERT INTO analysts VALUES ('a', 'bob', 's')",
        "UPDATE sources SET source = 'there'",
        "UPDATE sources SET dataset = 'others'",
        "DELETE FROM sources",
        "UPDATE format SET version = 99",
        "UPDATE format SET ledger = 'another'",
        "DELETE FROM format",
        "DROP TABLE analysts",
        "DROP TABLE lines",
        "DROP INDEX by_key",
        "DROP INDEX one_answer",
    ],
)
def test_a_ledger_that_does_not_add_up_is_refused(written: Path, statement: str) -> None:
    damage(written, statement)
    refused(written)


@pytest.mark.parametrize(
    ("kind", "serial", "changes"),
    [
        ("charge", 40, {"dataset_spent": "1/10"}),
        ("charge", 7, {"analyst_spent": "0"}),
        ("charge", 7, {"dataset_spent": "14/20"}),
        ("charge", 1, {"loss": "1/1000"}),
        ("charge", 1, {"loss": "1/0"}),
        ("charge", 1, {"loss": "abc"}),
        ("charge", 1, {"loss": 1}),
        ("charge", 1, {"loss": "-1/10", "dataset_spent": "-1/10", "analyst_spent": "-1/10"}),
        ("charge", 4, {"dataset_cap": "20"}),
        ("charge", 4, {"analyst_cap": "20"}),
        ("charge", 4, {"rows_per_person": 2}),
        ("charge", 4, {"terms": 2}),
        ("charge", 4, {"domain": "0" * 64}),
        ("charge", 4, {"unit": "rho"}),
        ("charge", 4, {"reservation": 1, "reservation_spent": "1/10"}),
        ("charge", 4, {"reservation_spent": "1/10"}),
        ("charge", 4, {"analyst": "nobody"}),
        ("charge", 4, {"analyst": None}),
        ("charge", 4, {"dataset": "others"}),
        ("charge", 4, {"number": 11}),
        ("charge", 4, {"serial": 5}),
        ("charge", 4, {"ledger": "another"}),
        ("charge", 4, {"kind": "config"}),
        ("cap", 1, {"cap": "30"}),
        ("cap", 1, {"cap": "-1"}),
        ("cap", 1, {"dataset": "others"}),
        ("register", 1, {"rows_per_person": 2}),
        ("register", 1, {"rows_per_person": 0}),
        ("register", 1, {"unit": "rho"}),
        ("register", 1, {"unit": "gold"}),
        ("register", 1, {"delta": "1/1000000"}),
        ("register", 1, {"sources": []}),
        ("register", 1, {"sources": ["another"]}),
        ("answer", 7, {"entry": 41}),
        ("answer", 7, {"entry": 0}),
        ("answer", 7, {"analyst": "nobody"}),
    ],
)
def test_a_line_whose_hashes_are_right_must_still_follow_from_the_others(
    written: Path, kind: str, serial: int, changes: dict[str, Any]
) -> None:
    forge(written, kind, serial)
    Ledger.open(written).close()  # the forger changes nothing else
    forge(written, kind, serial, **changes)
    refused(written)


def test_a_flipped_bit_never_forgets_a_charge_nor_changes_a_cap_or_an_answer(written: Path) -> None:
    """The ledger is refused, or nothing is missing. A third of the bits are in pages of indices, a third in the cap."""
    content, page = written.read_bytes(), 4096
    indices = [start for start in range(page, len(content), page) if content[start] in (2, 10)]
    cap = content.index(b'"cap":"10"')
    entries = Ledger.open(written).entries(DATASET)
    coins = random.Random(1)
    for i in range(450):
        places = (
            coins.randrange(len(content)),
            coins.choice(indices) + coins.randrange(page),
            cap + coins.randrange(10),
        )
        place = places[i % 3]
        damaged = bytearray(content)
        damaged[place] ^= 1 << coins.randrange(8)
        copy = written.with_name(f"copy {i}")
        copy.write_bytes(damaged)
        try:
            ledger = Ledger.open(copy)
        except LedgerError:
            continue
        assert (ledger.spent(DATASET), ledger.cap(DATASET)) == (4, 10), f"byte {place}"
        assert ledger.entries(DATASET) == entries, f"byte {place}"
        close(ledger)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lines SET note = replace(note, ':[', ':[9') WHERE kind = 'answer'",
        """UPDATE lines SET line = replace(line, '"cap":"1"', '"cap":"3/2"') WHERE kind = 'cap'""",
    ],
)
def test_damage_to_an_open_ledger_is_noticed_where_it_is_read(file: Path, statement: str) -> None:
    table = table_at(file)
    table.count("0.1", key="k")
    damage(file, statement)
    for ask in (lambda: table.count("0.1", key="k"), lambda: table.count("0.1")):
        try:
            ask()
        except LedgerError as error:
            assert "is damaged" in one_sentence(error)
            break
    else:
        pytest.fail("nobody has noticed it")


@pytest.mark.parametrize("version", [1, 2, 3, 99])
def test_a_ledger_of_another_format_is_refused_in_one_sentence(written: Path, version: int) -> None:
    damage(written, f"UPDATE format SET version = {version}")
    with pytest.raises(LedgerError, match=f"is of format {version}, .* go on with the version that wrote it") as other:
        Ledger.open(written)
    one_sentence(other.value)
    refused(written)


@pytest.mark.parametrize(
    "name",
    [
        "\0",
        "a\0b",
        "x" * 256,
        "x" * 5000,
        "",
        "postgresql://ada@127.0.0..1/base",
        "postgresql://[/base",
        "spark://[/?t=x",
    ],
    ids=["nul", "nul inside", "long", "very long", "empty", "two dots", "bracket", "spark"],
)
def test_what_can_be_no_ledger_is_told_in_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for opening in (
        lambda: Ledger.open(name),
        lambda: Ledger.open(name, create=False),
        lambda: table_at(name),
        lambda: table_at(name, budget=None),
        lambda: privet.open(stored(tmp_path), DOMAIN, budget=1, ledger=name),
    ):
        with pytest.raises(LedgerError) as refused:
            opening()
        text = one_sentence(refused.value)
        assert "damaged" not in text and "\0" not in text


def test_a_file_name_that_is_too_long_for_a_ledger_beside_it_is_told(tmp_path: Path) -> None:
    data = stored(tmp_path, "x" * 248 + ".csv")
    with pytest.raises(LedgerError) as refused:
        privet.open(data, DOMAIN, budget=1)
    assert "File name" not in str(refused.value)
    privet.open(data, DOMAIN, budget=1, ledger=tmp_path / "people.ledger").count("0.1")
    with privet.open(stored(tmp_path, "x" * 236 + ".csv"), DOMAIN, budget=1) as table:  # 255 with its journal
        table.count("0.1")


def test_an_analyst_who_is_not_there_cannot_be_stopped(tmp_path: Path) -> None:
    data = stored(tmp_path)
    privet.open(data, DOMAIN, budget=1, analyst="ada").count("0.1")
    done = run_command("budget", "revoke", "people.csv", "--analyst", "nobody", cwd=tmp_path)
    assert done.returncode != 0 and "there is no analyst 'nobody' on 'people'; known are ada." in done.stderr
    assert run_command("budget", "revoke", "people.csv", "--analyst", "ada", cwd=tmp_path).returncode == 0


def test_a_ledger_whose_own_words_are_damaged_is_refused(written: Path) -> None:
    content = written.read_bytes()
    assert b"triggerlines_UPDATE" in content  # perhaps more than once: a page may keep what was moved to another
    written.write_bytes(content.replace(b"triggerlines_UPDATE", b"triggerline\xf3_UPDATE"))
    refused(written)


@pytest.mark.parametrize("place", ["/proc/privet.ledger", "{file}/ledger", "{folder}", "{folder}/none/ledger"])
def test_a_ledger_that_cannot_be_written_is_told_in_one_sentence(place: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    path = place.format(file=file, folder=tmp_path)
    for opening in (lambda: Ledger.open(path), lambda: table_at(path)):
        with pytest.raises(LedgerError, match="cannot") as refused:
            opening()
        assert path in one_sentence(refused.value)


def test_a_charge_that_cannot_be_written_is_not_answered(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_at(file)
    table.count("0.1")
    raw = sqlite3.connect(file, isolation_level=None)
    raw.execute("CREATE TRIGGER disk_full BEFORE INSERT ON lines BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    monkeypatch.setattr(table._session.engine, "exact_counts", lambda query: pytest.fail("the engine was asked"))
    with pytest.raises(LedgerError, match="full") as refused:
        table.count("0.1")
    one_sentence(refused.value)
    raw.execute("DROP TRIGGER disk_full")
    raw.close()
    monkeypatch.undo()
    assert table.budget.spent == TENTH and table.budget.remaining == 9 * TENTH
    table.count("0.9")


if __name__ == "__main__":
    if sys.argv[1] == "race":
        for ledger_file in sys.argv[3:]:
            race(int(sys.argv[2]), ledger_file)
    else:
        serve_victims(*sys.argv[2:])

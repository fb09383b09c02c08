"""Threads and processes that share a ledger: they race, wait in order, are killed and fork.

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
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from kernel.ledger.small_ledger import DATASET, DOMAIN, FRAME, TENTH, close, new_ledger, table_at, tenth
from postgres_server import shared_server
from sizes import size, sized

import privet
from privet.errors import BudgetExceeded, LedgerError, PrivetError
from privet.file_queue import turn
from privet.kernel import Entry, Ledger
from privet.kernel.ledger.store import WAIT_SECONDS, Purpose

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


RACERS, CHARGES = 16, size("charges of a race")
UNIT = Fraction(1, CHARGES)


LEDGERS = size("ledgers opened at once")


def run_race(folder: Path, tries: int, *paths: Path | str) -> list[dict[str, Any]]:
    """Let processes start together and try so often to charge a unit; once for each ledger."""
    text, _ = helper("race", tries, *paths, folder=folder).communicate(timeout=300)
    results = [json.loads(line) for line in text.splitlines()]
    assert len(results) == RACERS * len(paths)
    assert [result["failed"] for result in results if result["failed"]] == []
    return results


@sized
def test_sixteen_processes_race_for_all_charges(path: Path | str, tmp_path: Path) -> None:
    close(new_ledger(path))
    tries = CHARGES // 10
    results = run_race(tmp_path, tries, path)
    assert sum(result["bought"] for result in results) == CHARGES
    assert sum(result["refused"] for result in results) == RACERS * tries - CHARGES
    ledger = Ledger.open(path)  # checks every total
    entries = ledger.entries(DATASET)
    assert ledger.spent(DATASET) == 1 and ledger.remaining(DATASET, "ada") == 0
    assert len(entries) == CHARGES and sum(entry.loss for entry in entries) == 1
    for result in results:
        assert ledger.spent(DATASET, result["analyst"]) == result["bought"] * UNIT


@sized
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_sixteen_processes_may_open_a_new_ledger_at_once(store: str, tmp_path: Path) -> None:
    files: list[Path | str] = [tmp_path / f"{i}.ledger" for i in range(3 * LEDGERS)]
    paths = files if store == "sqlite" else [shared_server().ledger() for _ in range(LEDGERS)]
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


RUNS, CAP = size("killed processes"), Fraction(3, 20)


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


@sized
def test_what_killed_processes_released_is_on_record_and_paid(
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
    with turn(ledger._store._queue, WAIT_SECONDS):
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
        monkeypatch.setattr("privet.kernel.ledger.store.WAIT_SECONDS", 0.01)
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


if __name__ == "__main__":
    if sys.argv[1] == "race":
        for ledger_file in sys.argv[3:]:
            race(int(sys.argv[2]), ledger_file)
    else:
        serve_victims(*sys.argv[2:])

"""Several servers on one ledger hold its caps together, whatever happens to them."""

from __future__ import annotations

import json
import signal
import socket
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sizes
from kernel.people import DOMAIN, FRAME
from postgres_server import shared_server
from service.server_process import ServerProcess

import privet
from privet.kernel import Ledger
from privet.receipts import Receipts, check, vkeys
from privet.service.client import connect
from privet.service.tokens import Tokens


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class Analyst(threading.Thread):
    """Asks one question after the other, each under a key, until the budget is gone."""

    def __init__(self, race: Race, name: str, url: str, token: str) -> None:
        super().__init__(name=name, daemon=True)
        self.race, self.url, self.token = race, url, token
        self.answers: dict[str, tuple[int, int]] = {}  # value and entry, by key
        self.lost: dict[str, Any] = {}  # what a refused key was told about its charge
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.failure = error
        self.race.progress()

    def _work(self) -> None:
        with connect(self.url, self.token, tries=10_000) as connection:
            table = connection.table("people")
            for number in range(10**6):
                key = f"{self.name} {number}"
                rows = table.partition("income")["high"] if number % 3 == 2 else table
                try:
                    value = rows.count(self.race.each, key=key)
                except privet.BudgetExceeded as refused:
                    assert refused.charged is False
                    return
                except privet.errors.QuestionError as refused:  # a part whose sitting has ended with its server
                    assert "share what they pay" in str(refused)
                    self.lost[key] = refused.charged
                else:
                    assert value.about.entry is not None and key not in self.answers
                    self.answers[key] = int(value), value.about.entry
                self.race.progress()


class Race:
    """So many analysts at two servers, which are killed and started again."""

    def __init__(self, folder: Path, analysts: int, kills: int, charges: int) -> None:
        FRAME.to_csv(folder / "people.csv", index=False)
        DOMAIN.save(folder / "people.toml")
        self.folder, self.kills, self.charges = folder, kills, charges
        self.each = Fraction(1, charges)
        self.address = shared_server().ledger()
        self.ports = [free_port(), free_port()]
        self.servers = [self._start(port) for port in self.ports]
        self.ledger = Ledger.open(self.address)
        tokens = Tokens(self.ledger)
        names = [f"analyst {number}" for number in range(analysts)]
        urls = [server.url for server in self.servers]
        self.analysts = [
            Analyst(self, name, urls[number % 2], tokens.create(name)[0]) for number, name in enumerate(names)
        ]
        self.kept = Receipts(self.ledger).checkpoint()
        self._done, self._steps = threading.Condition(), 0

    def _start(self, port: int) -> ServerProcess:
        words = ("people.csv", "--domain", "people.toml", "--budget", "1", "--ledger", self.address, "--tick", "0")
        return ServerProcess(*words, "--name", "people", "--address", f"127.0.0.1:{port}", cwd=self.folder)

    def progress(self) -> None:
        with self._done:
            self._steps += 1
            self._done.notify_all()

    def _wait_for(self, more: int) -> None:
        with self._done:
            until = self._steps + more
            idle = lambda: self._steps >= until or not any(one.is_alive() for one in self.analysts)  # noqa: E731
            assert self._done.wait_for(idle, timeout=300)

    def run(self) -> None:
        for analyst in self.analysts:
            analyst.start()
        for number in range(self.kills):
            self._wait_for(max(1, self.charges // (2 * self.kills)))
            one = number % 2
            assert self.servers[one].stop(signal.SIGKILL) == -signal.SIGKILL
            self.servers[one] = self._start(self.ports[one])
        for analyst in self.analysts:
            analyst.join(timeout=600)
            assert not analyst.is_alive()

    def close(self) -> None:
        for server in self.servers:
            server.stop(signal.SIGKILL)
        self.ledger.close()


@sizes.sized
@pytest.mark.xdist_group("several servers")
def test_analysts_race_for_the_last_budget_while_servers_are_killed(tmp_path: Path) -> None:
    """Caps hold exactly, no answer is without its entry, a key is answered once or refused with its charge told."""
    analysts, kills = sizes.size("racing analysts"), sizes.size("killed servers")
    race = Race(tmp_path, analysts, kills, charges=20 * kills + 2 * analysts)
    try:
        race.run()
        for analyst in race.analysts:
            if analyst.failure is not None:
                raise analyst.failure
        entries = {entry.id: entry for entry in race.ledger.entries("people")}
        spent = race.ledger.spent("people")
        assert spent == sum(entry.loss for entry in entries.values()) <= 1
        assert race.ledger.remaining("people", "analyst 0") < race.each  # all of it was spent, and not more
        by_key = {entry.key: entry for entry in entries.values()}
        assert len(by_key) == len(entries)
        for analyst in race.analysts:
            for key, (value, number) in analyst.answers.items():
                entry = entries[number]
                assert (entry.key, entry.analyst) == (key, analyst.name) and entry.answer is not None
                assert json.loads(entry.answer)["answer"] == [value]
            for key, charged in analyst.lost.items():
                assert charged is True and by_key[key].answer is None
            told = {*analyst.answers, *analyst.lost}
            assert {entry.key for entry in entries.values() if entry.analyst == analyst.name} == told
        race.ledger.check()
        receipts, (vkey,) = Receipts(race.ledger), vkeys(race.ledger)  # whoever was killed when it was made
        receipts.checkpoint(race.kept.size).require_continues(race.kept)
        for entry in entries.values():
            if entry.answer is not None:
                assert check(receipts.of_entry(entry.id), pins=[vkey]).released == entry.answer
        assert not any("Traceback" in line for server in race.servers for line in server.said)
    finally:
        race.close()


def test_a_sitting_belongs_to_one_server_and_parts_share_nothing_elsewhere(tmp_path: Path) -> None:
    """What a part has paid on one server is no use on another: dearer, and never cheaper."""
    race = Race(tmp_path, 1, 0, charges=4)
    try:
        token = race.analysts[0].token
        tables = [connect(server.url, token).table("people") for server in race.servers]
        for table in tables:
            parts = table.partition("income")
            parts["low"].count(race.each), parts["high"].count(race.each)
        assert race.ledger.spent("people") == 2 * race.each
    finally:
        race.close()

"""The attacks of `privet verify --attacks`, against servers: none gets through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sizes
from command import run

import privet
from privet.service.seeded_server import serve_sessions
from privet.verification.attacks import ATTACKS
from privet.verification.attacks.planted import SMALL, rows
from privet.verification.served_layer import CLOCKED, ServedLayer, clocked

FEW = (6, 7, 9, 10, 12, 15)  # those about what passes the boundary; the others are long
TIMING = 11


@pytest.mark.parametrize(
    "attack",
    [pytest.param(attack, id=attack.name, marks=() if attack.number in FEW else sizes.long) for attack in ATTACKS],
)
def test_an_attack_does_not_get_through_a_server(attack) -> None:  # type: ignore[no-untyped-def]
    with ServedLayer(rows(SMALL, 60), SMALL) as layer:
        result = attack.against(layer)
    assert result.held is True, result.found
    assert bool(result.found) is (attack.number == TIMING)  # which says how much it would have found


@sizes.long
def test_the_command_attacks_a_server_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = privet.open(rows(SMALL, 60), SMALL, budget=100, name="people", ledger=tmp_path / "l.ledger")._session
    with serve_sessions({"people": session}) as served:
        monkeypatch.setenv("PRIVET_TOKEN", served.token("ada"))
        done = run("verify", "--attacks", "people", "--server", served.url, cwd=tmp_path)
        assert done.returncode == 0 and "GOT THROUGH" not in done.stdout, done.stdout + done.stderr
        assert "11 timing: not decided" in done.stdout and "its tick is 0" in done.stdout
        assert done.stdout.count(": held\n") == len(ATTACKS) - 1
        assert f"attacks on the table 'people' of {served.url}" in done.stdout
        assert 0 < served.service.ledger.spent("people") < 1


class SlowLayer(ServedLayer):
    """As if answers about rows that are much work left later, by the share of a tick."""

    late = 0.0

    def clock(self, plain: Any, neighbour: Any, domain: Any) -> Any:
        first = [0.030 + number * 1e-6 for number in range(CLOCKED)]
        return clocked(first, [time + self.late for time in first])


@pytest.mark.parametrize("late, held", [(0.0, True), (0.002, False)])
def test_answers_that_leave_late_are_told_apart(late: float, held: bool) -> None:
    (attack,) = [attack for attack in ATTACKS if attack.number == TIMING]
    with SlowLayer(rows(SMALL, 60), SMALL) as layer:
        layer.late = late
        assert attack.against(layer).held is held


def test_a_server_is_attacked_by_those_who_have_a_token_and_a_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = run("verify", "--attacks", "people", "--server", "http://127.0.0.1:9", "-d", "x.toml", cwd=tmp_path)
    assert "leave out" in refused.stderr
    monkeypatch.delenv("PRIVET_TOKEN", raising=False)
    assert "PRIVET_TOKEN" in run("verify", "--attacks", "x", "--server", "http://127.0.0.1:9", cwd=tmp_path).stderr
    session = privet.open(rows(SMALL, 60), SMALL, budget="0.5", name="people", ledger=tmp_path / "l.ledger")._session
    with serve_sessions({"people": session}) as served:
        monkeypatch.setenv("PRIVET_TOKEN", served.token("ada"))
        done = run("verify", "--attacks", "people", "--server", served.url, cwd=tmp_path)
        assert done.returncode == 1 and "need epsilon 1" in done.stderr
        assert served.service.ledger.spent("people") == 0

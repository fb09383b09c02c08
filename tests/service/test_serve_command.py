"""`privet serve`: from a file to an analyst's answer, and what is left after a stop."""

from __future__ import annotations

import signal
from fractions import Fraction
from pathlib import Path

import pytest
from command import run
from kernel.people import DOMAIN, FRAME
from service.server_process import serving

import privet
from privet.service.client import connect


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    DOMAIN.save(tmp_path / "people.toml")
    return tmp_path


QUICK = ("people.csv", "--domain", "people.toml", "--budget", "1", "--address", "127.0.0.1:0")


def test_a_file_is_served_by_one_command_and_its_spending_outlives_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(*QUICK, cwd=folder) as server:
        token = server.first_token()
        with connect(server.url, token) as connection:
            table = connection.table("people")
            first = table.where(sex="Female").count("0.25", key="women")
            assert table.budget.remaining == Fraction(3, 4)
        monkeypatch.setenv("PRIVET_TOKEN", token)
        asked = run("query", "people", "count by sex", "-e", "0.25", "--server", server.url, cwd=folder)
        assert asked.returncode == 0 and "0.5 left" in asked.stderr, asked.stderr
        fitted = run("fit", "people", "-e", "0.25", "-a", "prior", "-o", "m.json", "--server", server.url, cwd=folder)
        assert fitted.returncode == 0 and "0.25 left" in fitted.stderr, fitted.stderr
        assert privet.Model.load(folder / "m.json").privacy.private
        assert server.stop(signal.SIGTERM) == 0
        assert token not in " ".join(line for line in server.said if line != token)
        assert "Traceback" not in " ".join(server.said)
    with serving(*QUICK, cwd=folder) as server:
        assert "tokens were made before" in server._until("tokens")
        with connect(server.url, token) as connection:
            table = connection.table("people")
            assert table.budget.spent == Fraction(3, 4)
            assert table.where(sex="Female").count("0.25", key="women") == first
            assert table.budget.spent == Fraction(3, 4)
        shown = run("budget", "show", "people.csv", cwd=folder)
        assert "0.75 of 1 spent" in shown.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("people.csv",), "give --domain"),
        ((*QUICK, "--name", "a/b"), "'a/b' can stand in none; give it a --name"),
        ((*QUICK, "--name", "50%"), "'50%' can stand in none; give it a --name"),
        (("missing.toml",), "cannot read the configuration"),
        ((*QUICK[:5], "--address", "0.0.0.0:0"), "in the clear"),
        ((*QUICK[:5], "--address", "localhost"), "a host and a port"),
        ((*QUICK[:3],), "has no budget yet"),
        (("people.toml", "--budget", "1"), "leave out --budget"),
        ((*QUICK, "--ledger", ":memory:"), "a ledger in memory"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_sentence(folder: Path, words: tuple[str, ...], message: str) -> None:
    refused = run("serve", *words, cwd=folder)
    assert refused.returncode == 1 and message in refused.stderr and refused.stderr.count("\n") <= 2, refused.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-d", "people.toml"), "leave out --domain"),
        (("-b", "1"), "leave out --budget"),
        (("--analyst", "ada"), "leave out --analyst"),
        ((), "PRIVET_TOKEN"),
    ],
)
def test_a_server_has_its_own_domain_ledger_and_analysts(
    folder: Path, words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PRIVET_TOKEN", raising=False)
    for command in (("query", "people", "count"), ("fit", "people", "-o", "m.json")):
        refused = run(*command, "-e", "1", "--server", "http://127.0.0.1:9", *words, cwd=folder)
        assert refused.returncode == 1 and message in refused.stderr, refused.stderr


def test_tokens_are_made_listed_and_revoked_where_the_ledger_is(folder: Path) -> None:
    (folder / "privet.toml").write_text(
        '[tables.people]\ndata = "people.csv"\ndomain = "people.toml"\nbudget = 1\n\n'
        '[analysts.ada]\ntables = ["people"]\n'
    )
    made = run("token", "create", "privet.toml", "--analyst", "ada", "--table", "people", cwd=folder)
    assert made.stdout.startswith("pvt_a_") and made.stdout.strip() not in made.stderr
    listed = run("token", "list", "privet.toml", cwd=folder)
    assert "analyst ada  people  until" in listed.stdout and made.stdout.strip() not in listed.stdout
    secret, number = made.stdout.strip(), listed.stdout.split()[0]
    assert secret.encode() not in (folder / "privet.ledger").read_bytes()
    assert run("token", "create", "privet.toml", "--analyst", "ada", cwd=folder).returncode == 0
    third = run("token", "create", "privet.toml", "--analyst", "ada", cwd=folder)
    assert third.returncode == 1 and "has 2 live tokens" in third.stderr
    assert run("token", "revoke", "privet.toml", number, cwd=folder).returncode == 0
    assert number not in run("token", "list", "privet.toml", "--json", cwd=folder).stdout
    assert "no token" in run("token", "revoke", "privet.toml", number, cwd=folder).stderr
    assert "--analyst NAME or --owner" in run("token", "create", "privet.toml", cwd=folder).stderr
    unknown = run("token", "create", "privet.toml", "--analyst", "ada", "--table", "pepole", cwd=folder)
    assert unknown.returncode == 1 and "no table 'pepole' (did you mean 'people'?)" in unknown.stderr
    for who in ("analyst", "owner"):
        made = run("token", "create", "privet.toml", f"--{who}", "eve", cwd=folder)
        assert made.returncode == 0 and f"names no {who} 'eve'" in made.stderr
    assert run("receipt", "key", "show", "privet.toml", cwd=folder).returncode == 0  # the ledger that it names

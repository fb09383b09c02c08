"""`privet verify` as a person meets it: its output, its exit code.

What is printed of a claim is wrong with probability 1e-8 at most; small efforts are enough for what is tested here.
"""

from __future__ import annotations

import json
import subprocess
from fractions import Fraction
from pathlib import Path

import command
import pytest
from sizes import long

import privet
from privet.verification import Finding, Verdict, registry


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return command.run("verify", *words, cwd=cwd)


def fails(*words: str, cwd: Path) -> str:
    """The one sentence a failing command says."""
    done = run(*words, cwd=cwd)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("privet: ")
    return done.stderr


def test_an_honest_name_holds(tmp_path: Path) -> None:
    """A claim that holds is 0 for a shell, also with so few runs that they show nothing."""
    done = run("count", "--epsilon", "1/3", "--effort", "0.01", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("count: holds as far as tested\n  claims epsilon 1/3, loses at least 0.333\n")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "every outcome" in done.stdout and "neighbours" in done.stdout
    assert "right but for a probability of at most 1e-08 in all" in done.stdout
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_a_known_bad_name_is_caught_and_that_is_as_it_should_be(tmp_path: Path) -> None:
    """Would catch a bench in a pipeline that stops it for working: catching what is bad is 0, missing it is not."""
    caught = run("cheap-noise", cwd=tmp_path)
    assert caught.returncode == 0, caught.stderr
    assert caught.stdout.startswith("cheap-noise: BROKEN, it loses more than it says")
    missed = run("cheap-noise", "--effort", "0.0001", cwd=tmp_path)
    assert missed.returncode == 1 and "no power is no pass" in missed.stdout


def test_what_is_undecided_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    """The record of a search with a verdict without power: would catch a pipeline that takes it for a pass."""
    found = Finding("neighbours", "a pair", "nothing that tells the tables apart", 0.0, 100, 1e-8)
    for count in (1, 2):  # one is printed as a verdict, several as a table
        verdicts = [Verdict(f"s{i}", "function", "a line", Fraction(1), (found,)) for i in range(count)]
        lines = [{"trial": f"round 0: {each.subject} at 1", **each.to_dict()} for each in verdicts]
        (tmp_path / "found.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        done = run("--hours", "0", "--record", "found.jsonl", cwd=tmp_path)
        assert done.returncode == 3 and "UNDECIDED" in done.stdout and "no power is no pass" in done.stdout


def test_a_program_reads_json(tmp_path: Path) -> None:
    done = run("rounded-noise", "--json", cwd=tmp_path)
    found = json.loads(done.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert done.returncode == 0 and found["passed"] is True
    (verdict,) = found["verdicts"]
    assert verdict["subject"] == "rounded-noise" and verdict["passed"] is False and verdict["must_fail"] is True
    assert verdict["lower_bound"] == "inf" and verdict["claim"] == "1"


def test_names_are_listed(tmp_path: Path) -> None:
    lines = run("--list", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(registry())
    listed = json.loads(run("--list", "--json", cwd=tmp_path).stdout)
    assert [each["name"] for each in listed] == list(registry())
    assert {each["kind"] for each in listed} == {"mechanism", "question", "preset", "known-bad"}


def test_a_report_is_written(tmp_path: Path) -> None:
    done = run("rounded-noise", "--html", "report.html", cwd=tmp_path)
    assert done.returncode == 0 and "wrote report.html" in done.stderr
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "rounded-noise" in page
    loads = page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http://" not in loads and "https://" not in loads  # it opens without a network


@long
def test_a_table_is_attacked_and_pays_nothing(tmp_path: Path) -> None:
    """Would catch an attack that charges the owner's ledger, or that leaves a file beside the data."""
    privet.datasets.census(60, seed=1).to_csv(tmp_path / "people.csv", index=False)
    privet.datasets.census_domain().save(tmp_path / "people.toml")
    done = run("--attacks", "people.csv", "--html", "report.html", cwd=tmp_path)  # people.toml is beside it
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("attacks on csv file people.csv, by the default path and by push-down\n")
    words = [line.rsplit(": ", 1)[1] for line in done.stdout.splitlines()[1:] if not line.startswith("   ")]
    assert words.count("held") == 18 and words.count("not decided") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "people.toml", "report.html"]


def test_a_search_works_without_time_and_goes_on_from_its_record(tmp_path: Path) -> None:
    """The record of another search is read and shown, and stays as it is."""
    done = run("--hours", "0", "--record", "found.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "found.jsonl").exists()
    verdict = privet.verify("rounded-noise", 1)
    lines = [{"trial": f"round 0: {name} at 1", **verdict.to_dict(), "subject": name} for name in ("one", "two")]
    (tmp_path / "found.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    before = (tmp_path / "found.jsonl").read_bytes()
    again = run("--hours", "0", "--record", "found.jsonl", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "one" in again.stdout and "two" in again.stdout and "2 of 2 known-bad ones were caught" in again.stdout
    assert (tmp_path / "found.jsonl").read_bytes() == before
    (tmp_path / "found.jsonl").write_bytes(before + b"\xff\xfe{")
    assert "line 3 of 'found.jsonl' is no verdict" in fails("--hours", "0", "--record", "found.jsonl", cwd=tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "verify takes one of NAME, --all, --attacks DATA, --hours H and --list, as `privet verify"),
        (["count", "--list"], "not 'count' and --list together"),
        (["--all", "--hours", "1"], "not --all and --hours together"),
        (["--hours", "inf"], "--hours is a number of hours, not inf"),
        (["coutn"], "did you mean count?"),
        (["count", "-e", "0"], "epsilon must be a number"),
        (["count", "--effort", "0"], "effort multiplies the runs"),
        (["--attacks", "people.csv"], "--attacks needs the table's public domain"),
        (["--attacks", "people.csv", "-d", "no.toml"], "no.toml"),
        (["count", "--html", "no/report.html"], "there is no folder 'no'"),
        (["--hours", "0", "--record", "no/found.jsonl"], "there is no folder 'no'"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path: Path, words: list[str], said: str) -> None:
    assert said in fails(*words, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_help_shows_examples() -> None:
    helped = run("--help", cwd=Path.cwd()).stdout
    assert "privet verify diffpid3 --epsilon 1" in helped
    assert "privet verify --attacks adult.csv -d adult.toml" in helped
    for option in ("--all", "--attacks", "--hours", "--record", "--effort", "--html", "--json", "--list"):
        assert option in helped

"""`privet study` as a person meets it: what is listed, printed and written, and one sentence for what cannot be."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command import run

from privet.studies.catalog import STUDIES

PAPERS = {
    "friedman-schuster": ["table-1", *(f"figure-{n}" for n in range(2, 9))],
    "liu": ["table-2", "table-3", *(f"figure-{n}" for n in range(7, 11))],
    "hanisch": [f"figure-{n}" for n in (2, 3, 6, 7, *range(9, 18))],
    "jagannathan": ["table"],
    "zhu-du": [f"figure-{n}" for n in range(3, 10)],
    "jostle": ["which-wins"],
}


def fails(*words: str, cwd: Path) -> str:
    """The one sentence a failing command says."""
    done = run(*words, cwd=cwd)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("privet: ")
    return done.stderr


def test_every_figure_and_table_is_listed(tmp_path: Path) -> None:
    lines = run("study", "list", cwd=tmp_path).stdout.splitlines()
    listed = {line.split()[0] for line in lines}
    assert {f"{paper}-{each}" for paper, some in PAPERS.items() for each in some} | {"choice"} <= listed
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)
    told = json.loads(run("study", "list", "--json", cwd=tmp_path).stdout)
    assert {study["name"] for study in told} == listed
    assert all(study["source"] for study in told)


def test_a_study_prints_the_papers_numbers_beside_ours_and_writes_its_page(tmp_path: Path) -> None:
    words = ("study", "run", "zhu-du-figure-5", "-o", "out", "--jobs", "1")
    first = run(*words, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "paper" in first.stdout and "0.231" in first.stdout
    assert "holds" in first.stdout.lower()
    assert all(len(line) <= 100 for line in first.stdout.splitlines())
    assert re.search(
        r"^3 trials take [\d.]+ seconds of CPU time\nwrote out/zhu-du-figure-5.html\n$", first.stderr, re.M
    )
    page = (tmp_path / "out" / "zhu-du-figure-5.html").read_text()
    assert "0.231" in page and 'src="http' not in page
    assert 'href="zhu-du-figure-5.html"' in (tmp_path / "out" / "index.html").read_text()

    results = (tmp_path / "out" / "results.jsonl").read_bytes()
    again = run(*words, "--json", cwd=tmp_path)
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == results  # nothing was run twice
    fresh = run(*words, "--fresh", cwd=tmp_path)
    anew = (tmp_path / "out" / "results.jsonl").read_bytes()
    assert fresh.returncode == 0 and anew.count(b"\n") >= results.count(b"\n")  # times differ, by a digit too
    assert list(json.loads(again.stdout)) == ["zhu-du-figure-5"]
    assert again.stdout == re.sub(r"\n$", "", again.stdout) + "\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "nothing"), "there is no study 'nothing'; `privet study list` names them all."),
        (("run", "choice", "zhu-du-figure-5"), "the study 'choice' runs by itself, as `privet study run choice"),
        (("run", "zhu-du-figure-5", "-o", "file"), "'file' is a file; name a folder for results"),
        (("compare", "-d", "people.toml", "-e", "10:0.1"), "the range 10:0.1 of epsilon is upside down; write 0.1:10."),
        (("compare", "-d", "people.toml", "-e", "0:1"), "epsilon"),
        (("compare", "nowhere.csv", "-d", "people.toml"), "there is no file 'nowhere.csv'"),
        (("compare", "-d", "nowhere.toml"), "nowhere.toml"),
        (("run", "zhu-du-figure-5", "-o", "old"), "has results of privet 0.0.1"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "results.jsonl").write_text('{"privet": "0.0.1"}\n')
    column = '[columns.{}]\nkind = "nominal"\nvalues = ["a", "b"]\n'
    (tmp_path / "people.toml").write_text(f'target = "y"\n{column.format("x")}{column.format("y")}')
    assert sentence in fails("study", *words, cwd=tmp_path)


def test_a_table_that_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVET_DATA", str(tmp_path))
    assert "set PRIVET_DATA to a folder with the file" in fails("study", "run", "liu-table-2", cwd=tmp_path)
    assert "adult" in STUDIES["friedman-schuster-figure-8"].data


@pytest.mark.parametrize("name", list(STUDIES))
def test_the_middle_size_is_between_the_others(name: str) -> None:
    """It repeats what the quick one runs, on the same tables; audits are of the paper's own trees instead."""
    quick, medium = (STUDIES[name].trials(size) for size in ("quick", "medium"))
    assert len(quick) <= len(medium) or name.startswith("zhu-du")
    assert medium and {trial.data for trial in quick} <= {trial.data for trial in medium}


def test_a_study_has_one_size(tmp_path: Path) -> None:
    assert "one size" in fails("study", "run", "hanisch-figure-2", "--full", "--medium", cwd=tmp_path)

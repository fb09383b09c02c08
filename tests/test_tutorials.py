"""The commands of the tutorials run as they stand there, in an empty folder."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from command import run
from postgres_server import Server, shared_server
from service.server_process import ServerProcess

import privet

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
BLOCKS = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
URL, TABLE = "http://127.0.0.1:8000", "postgresql://privet@localhost/clinic?table=patients"


def commands(page: str) -> list[tuple[str, str]]:
    """Each command of a tutorial with what the page shows of its output."""
    found = []
    for block in BLOCKS.findall((FOLDER / page).read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append((command, shown.strip()))
    return found


def follow(page: str, folder: Path, replaced: dict[str, str]) -> None:
    """Run the commands of a tutorial that end by themselves."""
    for command, shown in commands(page):
        words = shlex.split(command)
        if words[0] == "python":
            with chdir(folder):
                exec(words[2], {})
        elif words[0] == "privet" and words[1] != "serve":
            for old, new in replaced.items():
                words = [word.replace(old, new) for word in words]
            done = run(*words[1:], cwd=folder)
            assert (done.returncode == 0) == (not shown.startswith("privet: ")), f"{command}: {done.stderr}"
            assert " ".join(shown.split()) in " ".join((done.stdout + done.stderr).split()), command


def block(page: str, kind: str) -> str:
    """The only block of a kind in a tutorial: a file that its reader saves."""
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```", (FOLDER / page).read_text(encoding="utf-8"), re.M | re.DOTALL)
    return str(found)


def test_the_tutorial_of_a_file_can_be_followed(tmp_path: Path) -> None:
    follow("mine-a-csv.md", tmp_path, {})
    assert privet.Model.load(tmp_path / "model.json").privacy.private


def test_the_tutorial_of_the_audit_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "tree.txt").write_text(block("audit-a-tree.md", "text"), encoding="utf-8")
    follow("audit-a-tree.md", tmp_path, {})
    assert "Publish" in (tmp_path / "audit.html").read_text(encoding="utf-8")


@contextlib.contextmanager
def clinic(server: Server) -> Iterator[str]:
    """The table of the tutorial, for the role that its page makes."""
    grants = block("postgresql.md", "sql")
    people = privet.datasets.census(2000, seed=1)[["sex", "age", "income"]]
    rows = ", ".join(f"('{sex}', {age}, '{income}')" for sex, age, income in people.dropna().itertuples(index=False))
    server.run("CREATE TABLE patients (sex text, age int, income text)", f"INSERT INTO patients VALUES {rows}", grants)
    try:
        yield server.address(user="privet", table="patients")
    finally:
        server.run("DROP OWNED BY privet", "DROP ROLE privet", "DROP TABLE patients")


def test_the_tutorial_of_postgresql_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "patients.toml").write_text(block("postgresql.md", "toml"), encoding="utf-8")
    with clinic(shared_server()) as address:
        follow("postgresql.md", tmp_path, {TABLE: address})
    assert privet.Model.load(tmp_path / "model.json").privacy.private


def test_the_tutorial_of_the_server_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [shlex.split(command) for command, _ in commands("serve.md")]
    (serve,) = [words[2:] for words in shown if words[:2] == ["privet", "serve"]]
    privet.datasets.census(2000, seed=2).to_csv(tmp_path / "public_sample.csv", index=False)
    privet.datasets.census(3000, seed=1).to_csv(tmp_path / "people.csv", index=False)
    assert run("domain", "draft", "public_sample.csv", "--target", "income", "-o", "people.toml", cwd=tmp_path)
    server = ServerProcess(*serve, "--address", "127.0.0.1:0", cwd=tmp_path)
    try:
        monkeypatch.setitem(os.environ, "PRIVET_TOKEN", server.first_token())
        asks = [words for words in shown if words[0] == "privet" and "--server" in words]
        for words in asks:
            done = run(*[word.replace(URL, server.url) for word in words[1:]], cwd=tmp_path)
            assert done.returncode == 0, done.stderr
        assert len(asks) == 2 and privet.Model.load(tmp_path / "model.json").privacy.private
    finally:
        assert server.stop() == 0

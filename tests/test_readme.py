"""README's commands run as they stand there, on the files that `make demo` leaves."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from command import run
from sizes import long

from privet.kernel import Domain
from privet.models.model import Model

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.search(r"## On the command line\n\n[^\n]*\n\n((?:    [^\n]*\n)+)", README)
assert BLOCK is not None
LINES = [line.strip() for line in BLOCK[1].splitlines()]
COMMANDS = [line for line in LINES if line.startswith("privet ")]

# what the output of each command must hold, in the order of README
SHOWN = {
    "privet domain draft": r"wrote draft\.toml: review it",
    "privet query": r"Female: \d.*\nMale: \d.*\(\d.* to \d.* at 95%, epsilon 0\.1\)\n.*0\.9 left",
    "privet fit": r"(?s)pure epsilon 0\.5 per person.*wrote model\.json; 0\.4 left",
    "privet predict": r"1000 rows predicted",
    "privet show": r"wrote model\.html",
    "privet budget": r"people: 0\.6 of 1 spent",
    "privet audit": r"(?s)tree\.json: Publish: .*wrote disclosure\.html",
    "privet verify": r"diffpid3: holds as far as tested",
    "privet study": r"(?s)Which learner for public_sample\.csv\?.*boosted tables",
}


def name_of(command: str) -> str:
    """The first words of a command, as the table above has them."""
    return " ".join(command.split()[: 3 if command.startswith("privet domain") else 2])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("readme")
    assert run("demo", "--folder", "build/demo", "--rows", "5000", cwd=path).returncode == 0
    return path / "build" / "demo"


def test_the_block_begins_where_the_demo_writes_and_has_a_check_for_every_command() -> None:
    first, *others = LINES
    assert first.startswith("cd build/demo && ") and others == COMMANDS
    assert [name_of(command) for command in COMMANDS] == list(SHOWN)
    assert all(len(line) <= 110 for line in LINES)


SLOW = ("privet verify", "privet study")  # half a minute each


def holds(command: str, folder: Path) -> None:
    """Run a command as it is written, and look at what it prints."""
    done = run(*shlex.split(command, comments=True)[1:], cwd=folder)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    assert re.search(SHOWN[name_of(command)], done.stdout + done.stderr), f"{command}: {done.stdout}{done.stderr}"


def test_the_commands_of_readme_run_as_they_are_written(folder: Path) -> None:
    for command in COMMANDS:
        if name_of(command) not in SLOW:
            holds(command, folder)
    assert len(pd.read_csv(folder / "predictions.csv")) == 1000
    assert "epsilon 0.5 per person" in (folder / "model.html").read_text(encoding="utf-8")
    assert Model.load(folder / "model.json").privacy.private
    drafted = Domain.load(folder / "draft.toml")
    assert drafted.target == "income" and drafted.names == Domain.load(folder / "people.toml").names


@long
@pytest.mark.parametrize("name", SLOW)
def test_what_readme_verifies_and_compares_runs_as_it_is_written(folder: Path, name: str) -> None:
    holds(next(command for command in COMMANDS if name_of(command) == name), folder)


def test_the_audit_that_readme_speaks_of_is_the_one_that_runs() -> None:
    spoken = re.findall(r"`(privet (?:audit|study compare) [^`]+)`", README)
    assert len(spoken) == 2 and all(any(command.startswith(words) for command in COMMANDS) for words in spoken)


def test_the_demo_installs_the_package_alone_and_uses_the_environment_of_the_tests_if_there_is_one(
    tmp_path: Path,
) -> None:
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)

    def steps() -> list[str]:
        done = subprocess.run(
            ["make", "-n", "--no-print-directory", "demo"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return [line for line in done.stdout.splitlines() if "version_info" not in line]

    fresh = steps()
    assert any(line.endswith("pip install --quiet --disable-pip-version-check -e .") for line in fresh)
    assert fresh[-1] == ".venv-demo/bin/privet demo --folder build/demo" and "[" not in "".join(fresh)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".installed").touch()
    assert steps() == [".venv/bin/privet demo --folder build/demo"]

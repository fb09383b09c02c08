"""README's commands run as they stand there, on the files that `make demo` leaves."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command import run
from service.server_process import ServerProcess
from sizes import long

from privet.kernel import Domain
from privet.models.model import Model

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # evidence/ lies beside tests/ and is not installed
comparison: Any = importlib.import_module("evidence.comparison")
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTION = README[README.index("## Five tasks") : README.index("## Beside other tools")]
LINES = [line.strip() for line in re.findall(r"^    (\S.*)$", SECTION, re.MULTILINE)]
CHECKS = [line.strip() for line in re.findall(r"^    (privet verify.*)$", README, re.MULTILINE)]
COMMANDS = [line for line in [*LINES, *CHECKS] if line.startswith("privet ")]
URL = "http://127.0.0.1:8000"
TOKEN = "export PRIVET_TOKEN=pvt_a_...                              # on the analyst's machine"

# what the output of each command must hold, in the order of README
SHOWN = {
    "privet domain draft": r"wrote draft\.toml: review it",
    "privet fit": r"(?s)pure epsilon 0\.5 per person.*wrote model\.json; 0\.5 left",
    "privet predict": r"1000 rows predicted",
    "privet show": r"wrote model\.html",
    "privet query": r"Female: \d.*\nMale: \d.*",  # of the DuckDB table, and then of the server
    "privet serve": r"",
    "privet audit": r"(?s)tree\.json: Publish: .*wrote disclosure\.html",
    "privet study": r"(?s)Which learner for public_sample\.csv\?.*boosted tables",
    "privet verify": r"diffpid3: holds as far as tested",
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
    assert first.startswith("cd build/demo && ")
    assert [line for line in others if not line.startswith("privet ")] == [TOKEN]
    assert list(dict.fromkeys(name_of(command) for command in COMMANDS)) == list(SHOWN)
    assert all(len(line) <= 110 for line in LINES)


SLOW = ("privet verify", "privet study")  # half a minute each


def holds(command: str, folder: Path, url: str = URL) -> None:
    """Run a command as it is written, but for the address of the server, and look at what it prints."""
    command = command.replace(URL, url)
    done = run(*shlex.split(command, comments=True)[1:], cwd=folder)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    assert re.search(SHOWN[name_of(command)], done.stdout + done.stderr), f"{command}: {done.stdout}{done.stderr}"


def test_the_commands_of_readme_run_as_they_are_written(folder: Path) -> None:
    for command in COMMANDS:
        if name_of(command) not in (*SLOW, "privet serve") and URL not in command:
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


def test_what_readme_serves_is_asked_over_the_wire(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (serve,) = [command for command in COMMANDS if name_of(command) == "privet serve"]
    words = shlex.split(serve, comments=True)[2:]
    server = ServerProcess(*words, "--address", "127.0.0.1:0", cwd=folder)
    try:
        monkeypatch.setitem(os.environ, "PRIVET_TOKEN", server.first_token())
        (ask,) = [command for command in COMMANDS if URL in command]
        holds(ask, folder, server.url)
    finally:
        assert server.stop() == 0


def test_the_table_of_other_tools_is_that_of_the_file_with_its_sources() -> None:
    assert comparison.page() == README, "run python -m evidence.comparison"
    for tool in tomllib.loads(comparison.FACTS.read_text(encoding="utf-8"))["tools"]:
        assert tool["sources"] and tool["version"], tool["name"]


def test_the_first_screen_is_short() -> None:
    first = README[: README.index("## Install")]
    assert len(first.splitlines()) <= 50 and len(README.splitlines()) <= 150
    session = first[first.index("```pycon") : first.index("```\n\n**The promise")]
    assert session.count(">>> ") <= 10


def test_the_demo_installs_the_package_and_its_server_and_uses_the_environment_of_the_tests_if_there_is_one(
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
    assert any(line.endswith("pip install --quiet --disable-pip-version-check -e '.[server]'") for line in fresh)
    assert fresh[-1] == ".venv-demo/bin/privet demo --folder build/demo" and "dev" not in "".join(fresh)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".installed").touch()
    assert steps() == [".venv/bin/privet demo --folder build/demo"]

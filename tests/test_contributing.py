"""CONTRIBUTING.md is true: the map has every module, the numbers are those of today, and the recipes run.

A recipe is a change as a diff, and commands. The change is made to a copy of the repository and the commands run in
it: they write what is generated, and run the tests that ask for a part of the change. What a recipe left out would
fail here.

A diff has no line numbers. Lines without a sign must stand in the file, in this order and once; `...` at the end of a
line stands for its rest. A file without such lines is new.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sizes import long

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "privet"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
sys.path.insert(0, str(ROOT))  # evidence/ lies beside tests/ and is not installed
kernel_lines: Any = importlib.import_module("evidence.kernel_lines")

TOLERANCE, SHARE = 15, 0.1  # lines, or a share of a file: a small edit breaks nothing


# -- the map ----------------------------------------------------------------------------------


def test_everything_in_the_package_is_listed_in_the_map() -> None:
    table = TEXT.split("## The map")[1].split("\n## ")[0]
    listed = re.findall(r"`([\w/.]+)`", "".join(line.split("|")[1] for line in re.findall(r"^\|.*", table, re.M)))
    there = [f"{path.name}/" if path.is_dir() else path.name for path in PACKAGE.iterdir()]
    ours = {name for name in there if name.endswith((".py", "/")) and not name.startswith("__")}
    assert sorted(set(listed) - {"src/privet/"}) == sorted(ours)


def test_every_module_of_the_kernel_is_listed_once_with_what_it_guarantees() -> None:
    listed = list(kernel_lines.listed(TEXT))
    assert sorted(path for path, _, _ in listed) == sorted(kernel_lines.modules())
    for path, _, guarantee in listed:
        assert guarantee.endswith(".") and len(guarantee) > 15, path


def test_numbers_of_lines_are_listed_as_they_are() -> None:
    """`python -m evidence.kernel_lines --write` brings them up to date."""
    now = kernel_lines.modules()
    for path, lines, _ in kernel_lines.listed(TEXT):
        for written, counted in zip(lines, now[path], strict=True):
            assert abs(written - counted) <= max(TOLERANCE, SHARE * counted), path
    sums = [[int(number.replace(",", "")) for number in found] for found in kernel_lines.TOTAL.findall(TEXT)]
    counted = [sum(each) for each in zip(*now.values(), strict=True)]
    for written, total in zip(map(sum, zip(*sums, strict=True)), counted, strict=True):
        assert abs(written - total) <= SHARE * total / 2


def test_every_file_that_is_named_exists() -> None:
    """Of the repository, the package or the kernel; what a recipe makes is not there yet."""
    prose = re.sub(r"^```diff\n.*?^```\n", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    for name in re.findall(r"`([\w./]+(?:\.py|/))`", prose):
        tests = [*ROOT.glob(f"tests/**/{name}")] if name.startswith("test_") else []
        assert tests or any((base / name).exists() for base in (ROOT, PACKAGE.parent, PACKAGE, PACKAGE / "kernel")), (
            name
        )


def test_lines_are_short_enough_for_a_diff() -> None:
    """A recipe's lines start with a mark: the line of code behind it has the same limit as everywhere."""
    long = [line for line in TEXT.splitlines() if len(line.removeprefix("+")) > 120]
    assert not long


def test_lines_of_code_leave_out_docstrings_comments_and_blanks() -> None:
    source = '"""Says."""\n\n# why\nX = 1\n\n\ndef f():\n    """Does."""\n    return """a\nb"""  # one\n'
    assert kernel_lines.lines_of(source) == (10, 4)


# -- recipes ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """A section of CONTRIBUTING.md that shows a change, and commands."""

    title: str
    changes: dict[str, str]  # by path
    commands: tuple[str, ...]
    opened: int
    read: tuple[str, ...]


def recipes() -> dict[str, Recipe]:
    found = {}
    for section in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        diff = re.search(r"^```diff\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        if diff is None:
            continue
        title = section.splitlines()[0]
        _, *parts = re.split(r"^\+\+\+ (.*)\n", diff[1], flags=re.MULTILINE)
        told = re.search(r"\*\*Files opened: (\d+)\*\*; to read only:(.*?)\.\n\n", section, re.DOTALL)
        commands = re.search(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        assert told and commands, title
        changes = dict(zip(parts[::2], parts[1::2], strict=True))
        found[title] = Recipe(
            title, changes, tuple(commands[1].splitlines()), int(told[1]), tuple(re.findall(r"`(.*?)`", told[2]))
        )
    return found


RECIPES = recipes()


def changed(text: str, change: str, path: str) -> str:
    """Return a file after a change."""
    lines = text.splitlines()
    for hunk in re.split(r"^@@\n", change, flags=re.MULTILINE):
        signed = hunk.splitlines()
        before = [line[1:] for line in signed if line[:1] in (" ", "-")]
        places = [at for at in range(len(lines)) if before and _stand_at(lines, at, before)]
        assert len(places) == 1 or not (before or text), f"{path}: {len(places)} places for {before}"
        at = places[0] if places else 0
        there = iter(lines[at : at + len(before)])
        new: list[str] = []
        for line in signed:
            if line.startswith("+"):
                new.append(line[1:])
            else:
                kept = next(there)
                new += [kept] if line.startswith(" ") else []
        lines[at : at + len(before)] = new
    return "\n".join(lines) + "\n"


def _stand_at(lines: list[str], at: int, wanted: list[str]) -> bool:
    there = lines[at : at + len(wanted)]
    return len(there) == len(wanted) and all(
        line.startswith(want.removesuffix("...")) if want.endswith("...") else line == want
        for line, want in zip(there, wanted, strict=True)
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the repository, without what git leaves out."""
    left_out = shutil.ignore_patterns("__pycache__", ".*", "build", "dist")
    shutil.copytree(ROOT, tmp_path / "copy", ignore=left_out)
    return tmp_path / "copy"


def run(copy: Path, command: str) -> None:
    """Run a line of a recipe in a copy."""
    words = shlex.split(command)
    settings = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    words = words[len(settings) :]
    if words[0] == "pytest":
        words = ["python", "-m", "pytest", "-p", "no:cacheprovider", *words[1:]]
    assert words[0] == "python", command
    paths = os.pathsep.join(str(copy / folder) for folder in ("src", "tests", "."))
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**own, "PYTHONPATH": paths, **settings}
    done = subprocess.run(
        [sys.executable, *words[1:]], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
    assert "pytest" not in command or " passed" in done.stdout or re.search(r"^\.+ *\[100%\]", done.stdout, re.M)


def test_there_are_three_recipes() -> None:
    assert list(RECIPES) == ["Add a question", "Add an engine", "Add a preset"]


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_a_recipe_says_how_many_files_it_takes(recipe: Recipe) -> None:
    assert recipe.opened == len(recipe.changes) + len(recipe.read)
    assert all((ROOT / path).is_file() for path in recipe.read)
    assert f"The whole change: {len(recipe.changes)} files" in TEXT


@long
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_a_recipe_runs_and_nothing_is_missing(recipe: Recipe, copy: Path) -> None:
    for path, change in recipe.changes.items():
        file = copy / path
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(changed(text, change, path), encoding="utf-8")
    for command in recipe.commands:
        run(copy, command)
    modules = [path for path in recipe.changes if path.endswith(".py")]
    for check in (["check"], ["format", "--check"]):
        run(copy, shlex.join(["python", "-m", "ruff", *check, "--no-cache", *modules]))


def test_a_change_that_fits_nowhere_is_noticed() -> None:
    """Would catch a recipe that is applied to nothing."""
    assert changed("a\nb\nc\n", " b\n+x\n@@\n-c\n+d\n", "f") == "a\nb\nx\nd\n"
    assert changed("", "+a\n", "f") == "a\n"
    assert changed("one two\n", " one ...\n+three\n", "f") == "one two\nthree\n"
    for change in (" z\n+x\n", " a\n+x\n", "+x\n"):
        with pytest.raises(AssertionError):
            changed("a\na\nb\n", change, "f")

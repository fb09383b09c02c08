"""Every public name, command and option has a page, a test and an error test; options refuse what they cannot use."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from command import run

sys.path.insert(0, str(Path(__file__).parents[1]))  # evidence/ lies beside tests/ and is not installed
walk: Any = importlib.import_module("evidence.walk")
ITEMS = list(walk.items())
OPTIONS = [item for item in ITEMS if item.kind == "option"]


@pytest.mark.parametrize(("column", "what"), [(0, "page"), (1, "test"), (2, "error test")])
def test_everything_has_a_page_a_test_and_an_error_test(column: int, what: str) -> None:
    assert [item.name for item in ITEMS if not walk.where(item)[column]] == [], what


@pytest.mark.parametrize("command", sorted({item.name.rpartition(" ")[0] for item in OPTIONS}))
def test_options_of_a_command_refuse_what_they_cannot_use(command: str, tmp_path: Path) -> None:
    """A value that is missing, or one that a flag does not take: a sentence that names the option, and no traceback."""
    for item in OPTIONS:
        own, _, option = item.name.rpartition(" ")
        if own != command:
            continue
        done = run(*own.split(), option if item.takes_value else f"{option}=x", cwd=tmp_path)
        assert done.returncode != 0 and option in done.stderr, f"{item.name}: {done.stderr}"
        assert "Traceback" not in done.stderr and not done.stdout, item.name
    assert not list(tmp_path.iterdir())

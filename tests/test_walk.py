"""Every public name, command and option has a page and a test; every option refuses what it cannot use."""

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

# What no test names yet. The list can only become shorter.
UNTESTED = {
    "SuLQID3Classifier",
    "audit --also",
    "audit --baseline",
    "audit --share",
    "audit --stopping",
    "budget export --checked-by",
    "budget export --domain-by",
    "domain convert --delimiter",
    "domain convert --encoding",
    "domain draft --delimiter",
    "domain draft --encoding",
    "domain draft --quantiles",
    "domain draft --rows-per-person",
    "receipt check --receipt",
    "study compare --peers",
    "study run --caution",
    "study run --fresh",
    "study run --seconds",
    "study run --seed",
    "token create --days",
}


def test_everything_has_a_page() -> None:
    assert [item.name for item in ITEMS if not walk.where(item)[0]] == []


def test_everything_has_a_test_or_is_listed() -> None:
    assert {item.name for item in ITEMS if not walk.where(item)[1]} == UNTESTED


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

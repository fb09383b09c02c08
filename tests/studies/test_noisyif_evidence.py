"""What docs/explanation/choice.md says about learning was recorded, and what was recorded is what was asked for."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # evidence/ lies beside tests/ and is not installed
noisyif: Any = importlib.import_module("evidence.noisyif")


def content() -> Any:
    return json.loads(noisyif.RESULT.read_text())


def test_the_page_and_its_picture_are_those_of_the_evidence() -> None:
    assert noisyif.page(content()) == noisyif.PAGE.read_text()
    assert noisyif.picture(content()) == noisyif.PICTURE.read_text()


def test_wrong_advice_is_overruled_within_forty_executions() -> None:
    late = content()["bandit"]["ways"]["learning"]
    assert late["on average"]["41-70"] < 0.5 and late["in hindsight"]["41-70"] < 0.5
    assert content()["lock"]["wrong"] == 0 and content()["lock"] == noisyif.lock()


def test_trees_that_learn_end_near_the_best_constant_choice() -> None:
    found = {name: own["tables 31-50"] for name, own in content()["figure 7"].items()}
    best = max(value for name, value in found.items() if name != "learning")
    assert found["learning"] > best - 0.5 and found["learning"] > found["by coins"] + 5

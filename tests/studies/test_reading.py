"""Trials in another reading of a paper: a preset's plan with some fields changed."""

from __future__ import annotations

from typing import Any

import pytest

from privet.studies.catalog import work
from privet.studies.trial import Trial


def tried(learner: str, options: tuple[tuple[str, Any], ...], **plan: Any) -> Any:
    settings = tuple((f"plan.{name}", value) for name, value in plan.items())
    return work(Trial("census", learner, "0.5", 1, 600, options, (("task", "reading"), *settings)))


def test_a_reading_without_changes_is_the_published_algorithm() -> None:
    options = (("max_depth", 2), ("variant", "published"))
    usual = work(Trial("census", "sulq-id3", "0.5", 1, 600, options))
    again = tried("sulq-id3", options)
    assert again["majority"] == usual["majority"] and abs(again["accuracy"] - usual["accuracy"]) < 25


def test_a_tree_without_a_stop_rule_is_worse_where_rows_are_few() -> None:
    options = (("max_depth", 4), ("variant", "published"))
    assert tried("sulq-id3", options, stop="never")["accuracy"] < tried("sulq-id3", options)["accuracy"]


@pytest.mark.parametrize("printed", [True, False])
def test_ranges_with_and_without_their_sensitivity_run(printed: bool) -> None:
    options = (("criterion", "infogain"), ("max_depth", 2), ("variant", "published"))
    assert 0 <= tried("diffpc45", options, printed_ranges=printed)["accuracy"] <= 100

"""What papers asked for next: every such study on a tiny size, and when its claims hold."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.studies import catalog, folder
from privet.studies.pages.plot import drawing
from privet.studies.papers import dpcomp
from privet.studies.papers.friedman_schuster import asked_next
from privet.studies.papers.hanisch.anonymous_table import mondrian
from privet.studies.trial import Outcome, Trial

NAMES = (
    "friedman-schuster-grid",
    "friedman-schuster-tactics",
    "zhu-du-unknown-subset",
    "hanisch-anonymous-table",
    "dpcomp-histograms",
)


def _gathered(name: str, folder_: Path) -> list[Outcome]:
    study = catalog.study(name)
    if study.data and not os.environ.get("PRIVET_DATA"):
        pytest.skip("PRIVET_DATA names no folder with the UCI files")
    return folder.gather(folder_, study.trials("tiny"), catalog.work)


@pytest.mark.parametrize("name", NAMES)
def test_a_study_runs_and_reads(name: str, tmp_path: Path) -> None:
    outcomes = _gathered(name, tmp_path)
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    study = catalog.study(name)
    found = study.read(outcomes)
    assert found.panels[0].cells and found.claims and found.notes
    assert all(np.isfinite(cell.ours.mean) for panel in found.panels for cell in panel.cells)
    assert study.read(outcomes[: len(outcomes) // 2]).panels[0].cells  # half of them failed
    assert [claim.holds for claim in study.read([]).claims] == [None] * len(found.claims)
    sizes = [len({trial.key for trial in study.trials(size)}) for size in ("tiny", "quick", "medium", "full")]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]


def _made(trials: list[Trial], accuracy: Any) -> list[Outcome]:
    rng = np.random.default_rng(7)
    return [Outcome(trial, {"accuracy": accuracy(trial) + rng.normal()}) for trial in trials]


def test_one_cell_of_the_grid_that_says_otherwise_is_enough() -> None:
    """InfoGain is ahead everywhere with many rows, but for one shape of trees."""

    def accuracy(trial: Trial) -> float:
        deep = dict(trial.settings)["depth"] == 10 and dict(trial.settings)["arity"] == 5
        ahead = dict(trial.options)["criterion"] == ("infogain" if (trial.rows or 0) > 1000 and not deep else "max")
        return 80.0 + 10 * ahead

    found = asked_next.read_grid(_made(asked_next.grid_trials("medium"), accuracy))
    assert [claim.holds for claim in found.claims] == [True, False]
    assert "behind in 1" in found.claims[1].evidence


def test_a_tactic_is_judged_against_the_printed_one_on_the_same_trees() -> None:
    trials = asked_next.tactics_trials("quick")

    def accuracy(trial: Trial) -> float:
        own = dict(trial.settings).get("plan.budget") == "harmonic"
        return 70.0 + trial.seed // asked_next.RUNS + 5 * own  # trees differ more than tactics do

    tactics, stops, _ = asked_next.read_tactics(_made(trials, accuracy)).claims
    assert (tactics.holds, stops.holds) == (True, None)


def test_classes_of_an_anonymous_table_have_k_rows_and_are_not_larger_than_they_need_be() -> None:
    codes = np.random.default_rng(1).integers(0, 5, (500, 4))
    for k in (2, 5, 25):
        sizes = np.bincount(mondrian(codes, k))
        assert sizes.min() >= k
        assert len(sizes) > 500 / (8 * k)


def test_cells_are_drawn_true_noisy_and_wrong(tmp_path: Path) -> None:
    panels = catalog.study("dpcomp-histograms").read(_gathered("dpcomp-histograms", tmp_path)).panels
    maps = [panel for panel in panels if panel.kind == "cells"]
    titles = " ".join(panel.title for panel in maps)
    assert all(word in titles for word in ("true", "identity", "hierarchical", "data-aware", "error of"))
    errors = next(panel for panel in maps if "error of identity" in panel.title)
    drawn = drawing(errors).inline
    assert drawn.count("<rect") == len(errors.cells)
    assert ("under" in drawn) == any(cell.ours.mean < 0 for cell in errors.cells)


def test_a_sum_over_a_quarter_of_the_cells_is_that_of_every_interval_and_rectangle() -> None:
    assert dpcomp._ranges(np.arange(8.0)).tolist() == [1, 3, 5, 7, 9, 11, 13]
    table = np.arange(16.0).reshape(4, 4)
    assert dpcomp._ranges(table)[1, 2] == table[1:3, 2:4].sum()

"""The papers' numbers come out again: a fast part of `make evidence`, which measures all of them.

Noise is seeded, so these tests give one answer for one state of the code. The false-alarm
probabilities below are those of another seed.
"""

from __future__ import annotations

import importlib
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sizes import long

sys.path.insert(0, str(Path(__file__).parents[2]))  # evidence/ lies beside tests/ and is not installed
evidence: Any = importlib.import_module("evidence.trees")

RUNS = 200


def _distance(row: str, samples: int) -> tuple[float, float, float]:
    """The mean accuracy, the closed form, and their distance in units of what may be expected.

    The unit is the closed form's standard error, or half a run that went wrong where hardly any does:
    a distance above 4 has probability 6e-5 (four standard errors, or three wrong runs where 0.07 are expected).
    """
    found = evidence.one_split(evidence.Cell("table 1", row, str(samples)), RUNS)
    mean, expected = float(np.mean(found["accuracies"])), float(np.mean(found["expected"]))
    error = math.sqrt(sum(found["variances"])) / RUNS
    return mean, expected, abs(mean - expected) / max(error, 0.5 * 50 / RUNS)


@pytest.mark.parametrize(
    ("row", "samples", "stated"),
    [
        pytest.param("infogain", 1000, 57.7, marks=long),
        ("infogain", 3000, 66.6),
        pytest.param("infogain", 5000, 78.6, marks=long),
        pytest.param("gini", 2000, 93.5, marks=long),
        pytest.param("max", 2000, 100.0, marks=long),
        pytest.param("sulq", 5000, None, marks=long),
        pytest.param("max, corrected", 1000, 100.0, marks=long),
    ],
)
def test_a_single_split_is_as_good_as_its_mechanism_lets_expect(row: str, samples: int, stated: float | None) -> None:
    """Friedman and Schuster, table 1. Two wrong runs of 200 with max fail: one of 300 seeds, the others one of 3000."""
    mean, expected, distance = _distance(row, samples)
    assert distance < 4
    if stated is not None:
        assert expected == pytest.approx(stated, abs=0.3)  # of training sets: 0.15 at most is one deviation
    if row.startswith("max"):
        assert mean > 99.5


def test_a_selection_of_twice_the_exponent_is_not_taken_for_the_published_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The corrected selection finds the split in some 75% of runs where the published one does in 33%."""
    classifier, choices = evidence.ONE_SPLIT["infogain"]
    corrected = {**choices, "variant": "corrected"}
    monkeypatch.setitem(evidence.ONE_SPLIT, "infogain", (classifier, corrected))
    assert _distance("infogain", 3000)[2] > 8


@pytest.mark.skipif(not os.environ.get("PRIVET_DATA"), reason="PRIVET_DATA names no folder with the UCI files")
@pytest.mark.parametrize(
    ("data", "row", "epsilon"),
    [
        pytest.param("mushroom", "DiffPID3-Max d3", "0.1", marks=long),
        pytest.param("mushroom", "JDPForest T10", "0.5", marks=long),
        ("mushroom", "MaxForest k3 sum", "0.1"),
        ("adult", "DiffPID3-Gini d3", "1"),
        pytest.param("adult", "MaxTree k3 sum", "1", marks=long),
    ],
)
def test_rows_of_theory_are_met(data: str, row: str, epsilon: str) -> None:
    """The design's prototypes on their own ten 90/10 splits: four standard errors of both means.

    By Student's t with 18 degrees of freedom one of 1000 seeds fails a cell. Noise twice as large, as half of
    epsilon has it, would move MaxForest's cell by 5.7 and DiffPID3's on Adult by 5.4 standard errors.
    """
    cell = evidence.Cell(data, row, epsilon)
    entry = evidence.beside_theory(cell, evidence.measure(cell))
    assert abs(entry["difference in se"]) < 4

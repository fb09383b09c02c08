"""Trees and forests: Friedman and Schuster's table 1, and the rows of the design's prototypes.

All rows are public or generated, and the noise is seeded so that the same command writes
the same numbers: nothing fitted here is private.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import privet
from evidence.numbers import EPSILONS, FRONTIER
from privet.kernel import Domain, Nominal
from privet.studies.papers.friedman_schuster.claims import table_1
from privet.studies.papers.friedman_schuster.closed_form import (
    BITS,
    BUDGET,
    CORRECTED,
    SINGLE_SPLIT,
    SULQ,
    SULQ_DRAWS,
    expectation,
    standard_error,
)
from privet.studies.rows import complete, in_bins

FAMILY = 7  # of all seeds below


@dataclass(frozen=True)
class Cell:
    """One number of a table: which table and row it stands in, and at how many samples or at which epsilon."""

    table: str
    row: str
    at: str

    @property
    def key(self) -> str:
        return f"{self.table} / {self.row} / {self.at}"

    def seed(self, run: int) -> int:
        """The seed of one run, independent of those of all others."""
        words = np.random.SeedSequence([FAMILY, zlib.crc32(self.key.encode()), run]).generate_state(1)
        return int(words[0])


def cells() -> list[Cell]:
    """Everything that is measured, the slow ones first."""
    table_1 = [Cell("table 1", row, str(samples)) for row in ONE_SPLIT for samples in TABLE_1_SAMPLES]
    frontier = [Cell(data, row, epsilon) for row in METHODS for data in FRONTIER for epsilon in EPSILONS]
    return [*reversed(frontier), *table_1]


def measure(cell: Cell) -> dict[str, list[float]]:
    """All runs of a cell: accuracies in percent and, for table 1, what the mechanism lets expect."""
    if cell.table == "table 1":
        return one_split(cell, RUNS)
    return {"accuracies": [split_accuracy(cell, split) for split in range(SPLITS)]}


def report(found: Mapping[Cell, Mapping[str, Sequence[float]]]) -> dict[str, Any]:
    """The content of evidence/trees.json."""
    table_1 = [beside_closed_form(cell, values) for cell, values in found.items() if cell.table == "table 1"]
    frontier = [beside_theory(cell, values) for cell, values in found.items() if cell.table in FRONTIER]
    command = "make evidence"
    return {
        "privet": privet.__version__,
        "numpy": np.__version__,
        "command": command,
        "noise": f"seeded, family {FAMILY}: the command writes the same numbers again",
        "table 1": {
            "what": "Friedman and Schuster 2010, table 1: test accuracy in percent of a single split, B = 0.1, ten "
            "binary attributes, every value replaced by a coin's with probability 0.1 in training, and all 1024 points "
            "for testing",
            "command": command,
            "closed form": "the mean over the training sets of sum_j P(j is chosen) * accuracy of splitting by j; P is "
            f"the selection's own formula, for SuLQ the share among {SULQ_DRAWS} draws of its noise; its standard "
            "error is that of the choices alone",
            "difference in se": "(mean - closed form) / se of the closed form",
            "cells": sorted(table_1, key=lambda entry: (list(ONE_SPLIT).index(entry["row"]), entry["samples"])),
        },
        "frontier": {
            "what": "the design's prototypes: test accuracy in percent over ten random 90/10 splits, all variants as "
            "published; the splits are those of the prototypes' own runs",
            "command": command,
            "difference in se": "(mean - prototype's mean) / sqrt(sd^2 / runs + prototype's sd^2 / 10)",
            "cells": sorted(frontier, key=lambda e: (e["data"], list(METHODS).index(e["row"]), float(e["epsilon"]))),
        },
    }


def lines(content: Mapping[str, Any]) -> Iterable[str]:
    """The report as text, a line for each cell."""
    for entry in content["table 1"]["cells"]:
        yield (
            f"table 1   {entry['row']:22} {entry['samples']:5}  {_shown(entry)}  closed form "
            f"{entry['closed form']:6.2f}  {entry['difference in se']:+5.1f} se  {_paper(entry)}"
        )
    for entry in content["frontier"]["cells"]:
        yield (
            f"{entry['data']:9} {entry['row']:22} {entry['epsilon']:>5}  {_shown(entry)}  prototype "
            f"{entry['prototype']['mean']:6.2f} ± {entry['prototype']['sd']:5.2f}  {entry['difference in se']:+5.1f} se"
        )


def _shown(entry: Mapping[str, Any]) -> str:
    return f"{entry['mean']:6.2f} ± {entry['sd']:5.2f}"


def _paper(entry: Mapping[str, Any]) -> str:
    paper = entry["paper"]
    return "" if paper is None else f"paper {paper['mean']:6.2f} ± {paper['sd']:5.2f}"


def _summary(values: Sequence[float]) -> dict[str, float]:
    sd = float(np.std(values, ddof=1))
    return {
        "runs": len(values),
        "mean": round(float(np.mean(values)), 4),
        "sd": round(sd, 4),
        "se": round(sd / math.sqrt(len(values)), 4),
    }


# -- Friedman and Schuster, table 1 -----------------------------------------------------------

RUNS = 200

# the classifier, and the selection whose formula tells what to expect of it
ONE_SPLIT: dict[str, tuple[Any, dict[str, Any]]] = {
    "infogain": (privet.DiffPID3Classifier, {"criterion": "infogain", "variant": "published"}),
    "gini": (privet.DiffPID3Classifier, {"criterion": "gini", "variant": "published"}),
    "max": (privet.DiffPID3Classifier, {"criterion": "max", "variant": "published"}),
    SULQ: (privet.SuLQID3Classifier, {"variant": "published"}),
    CORRECTED: (privet.DiffPID3Classifier, {"criterion": "max"}),
}
TABLE_1_SAMPLES = (1000, 2000, 3000, 4000, 5000)
TABLE_1_ROWS = {
    "infogain": "DiffPID3-InfoGain",
    "gini": "DiffPID3-Gini",
    "max": "DiffPID3-Max",
    SULQ: "SuLQ-based ID3",
}


def one_split(cell: Cell, runs: int) -> dict[str, list[float]]:
    """Train and test a single split so many times, each on rows of its own; and what the mechanism lets expect."""
    kind, choices = ONE_SPLIT[cell.row]
    names = [f"a{i}" for i in range(BITS)]
    points = pd.DataFrame((np.arange(2**BITS)[:, None] >> np.arange(BITS)) & 1, columns=names)
    found: dict[str, list[float]] = {"accuracies": [], "expected": [], "variances": []}
    for run in range(runs):
        rng = np.random.default_rng(cell.seed(run))
        data = privet.datasets.random_tree(int(cell.at), seed=rng, **SINGLE_SPLIT)
        classifier = kind(BUDGET, domain=data.domain, max_depth=1, **choices)
        with privet.testing.seeded_noise(int(rng.integers(2**63))):
            classifier.fit(data.frame[names], data.frame["class"])
        found["accuracies"].append(100 * float(np.mean(classifier.predict(points) == points["a0"])))
        mean, variance = expectation(cell.row, data.frame.to_numpy(), rng)
        found["expected"].append(mean)
        found["variances"].append(variance)
    return found


def beside_closed_form(cell: Cell, values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    own = _summary(values["accuracies"])
    expected = float(np.mean(values["expected"]))
    se = standard_error(cell.row, values["variances"])
    paper = table_1().get((TABLE_1_ROWS.get(cell.row, ""), int(cell.at)))
    return {
        "row": cell.row,
        "samples": int(cell.at),
        **own,
        "closed form": round(expected, 4),
        "se of the closed form": round(se, 4),
        "difference in se": round((own["mean"] - expected) / max(se, 1e-9), 2),
        "paper": None if paper is None else {"mean": paper.value, "sd": paper.sd, "runs": paper.runs},
    }


# -- the prototypes' rows ----------------------------------------------------------------------

SPLITS = 10

# the classifier, and whether its rows have the fine grids or five bins of equal width
METHODS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "SuLQ-ID3 d3": (privet.SuLQID3Classifier, {}, "grids"),
    "DiffPID3-Max d3": (privet.DiffPID3Classifier, {"criterion": "max"}, "grids"),
    "DiffPID3-Gini d3": (privet.DiffPID3Classifier, {"criterion": "gini"}, "grids"),
    "DiffPID3-IG d3": (privet.DiffPID3Classifier, {"criterion": "infogain"}, "grids"),
    "JDPForest T10": (privet.JagannathanForestClassifier, {}, "bins"),
    "MaxTree k3 literal": (privet.MaxTreeClassifier, {"score": "literal"}, "bins"),
    "MaxTree k3 sum": (privet.MaxTreeClassifier, {"score": "sum"}, "bins"),
    "MaxForest k3 literal": (privet.MaxForestClassifier, {"score": "literal", "unsafe": True}, "bins"),
    "MaxForest k3 sum": (privet.MaxForestClassifier, {"score": "sum", "unsafe": True}, "bins"),
}


def split_accuracy(cell: Cell, split: int) -> float:
    """Fit on nine tenths of the rows, and the accuracy in percent on the others."""
    kind, choices, coding = METHODS[cell.row]
    frame, domain = table(cell.table, coding)
    target = domain.target_column.name
    # the prototypes' own splits: they alone give its 74.97 ± 0.43 for the majority class of Adult
    order = np.random.default_rng(1000 * FAMILY + split).permutation(len(frame))
    held_out = len(frame) // 10
    test, train = frame.iloc[order[:held_out]], frame.iloc[order[held_out:]]
    seed = cell.seed(split)
    classifier = kind(cell.at, domain=domain, variant="published", random_state=seed, max_leaves=10**6, **choices)
    with privet.testing.seeded_noise(seed):
        classifier.fit(train.drop(columns=target), train[target])
    right = classifier.predict(test.drop(columns=target)) == test[target].to_numpy()
    return 100 * float(np.mean(right))


def load_all() -> None:
    """Read every UCI table once: what is missing is said before anything is measured."""
    for name in FRONTIER:
        table(name, "bins")


@cache
def table(name: str, coding: str) -> tuple[pd.DataFrame, Domain]:
    """The complete rows of a UCI table, and their domain as the prototypes had it."""
    found = complete(privet.datasets.load(name))
    if coding == "bins" or name == "mushroom":
        found = in_bins(found)
    frame, domain = found.frame[list(found.domain.names)], found.domain
    texts = [each.name for each in domain if isinstance(each, Nominal) and each.name != domain.target]
    return frame.astype(dict.fromkeys(texts, "category")), domain


def beside_theory(cell: Cell, values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    own = _summary(values["accuracies"])
    mean, sd = dict(zip(EPSILONS, FRONTIER[cell.table][cell.row], strict=True))[cell.at]
    se = math.sqrt(own["sd"] ** 2 / own["runs"] + sd**2 / 10)
    return {
        "data": cell.table,
        "row": cell.row,
        "epsilon": cell.at,
        **own,
        "prototype": {"mean": mean, "sd": sd, "runs": 10},
        "difference": round(own["mean"] - mean, 2),
        "difference in se": round((own["mean"] - mean) / se, 2),
    }

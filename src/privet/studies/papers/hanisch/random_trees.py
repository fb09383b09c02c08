"""Private random trees and forests on the rebalanced census: what is run for figures 13 to 17, and what came of it.

All runs are on one split of the rows, as in the paper, so that they differ by coins and noise alone. Beside each mean
stands the exact expectation on that split. Claims are decided by expectations on several splits: they have no noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Number
from privet.studies.papers.hanisch.expected import expected
from privet.studies.papers.hanisch.shared import DATA, TABLE, TINY_ROWS
from privet.studies.trial import Outcome, Plain, Trial

TASK = "hanisch-expected"
EPSILONS = ("0.001", "0.01", "0.1", "1", "10")
TINY = ("0.001", "0.01", "10")  # in tests
DEPTHS = tuple(range(1, 8))
FEW = tuple(range(1, 11))  # trees, in the heat maps
MANY = (20, 30, 50, 100)
SPLITS = {"tiny": 2, "quick": 3, "medium": 5, "full": 10}

Key = tuple[str, int, int]  # epsilon, trees, depth

ALGORITHM = (
    "Run is the published variant of hanisch-tree and hanisch-forest: leaves alone are asked, each tree pays its "
    "share. It is not private, because its noise has holes; the corrected variant pays a twentieth for the classes of "
    "the whole table."
)
CLOSED = (
    "The closed form is exact for the printed algorithm on the split that is run: the mean over all sets of "
    "attributes of the chance that the larger noisy count is that of the right class, for forests of the vote. In "
    "ours a cell where both noisy counts are 0 takes the class of its parent, and not the first class. That gives a "
    "little more at epsilon 10 and depth seven, where {unseen:.1f}% of the tested rows are in cells of which no row "
    "was learned."
)


# -- trials ---------------------------------------------------------------------------------------


def run(epsilon: str, trees: int, depth: int, repeat: int, size: str) -> Trial:
    options: tuple[tuple[str, Plain], ...] = (("max_depth", depth), ("unsafe", True), ("variant", "published"))
    if trees > 1:
        options += (("n_estimators", trees),)
    learner = "hanisch-tree" if trees == 1 else "hanisch-forest"
    rows = TINY_ROWS if size == "tiny" else None
    return Trial(DATA, learner, epsilon, rows=rows, options=options, settings=(("repeat", repeat),) if repeat else ())


def expectations(size: str) -> list[Trial]:
    epsilons, trees = (TINY, (1, 3)) if size == "tiny" else (EPSILONS, (*FEW, *MANY))
    settings: tuple[tuple[str, Plain], ...] = (
        ("task", TASK),
        ("epsilons", " ".join(epsilons)),
        ("trees", " ".join(map(str, trees))),
    )
    rows = TINY_ROWS if size == "tiny" else None
    return [Trial(DATA, "hanisch-forest", seed=seed, rows=rows, settings=settings) for seed in range(SPLITS[size])]


def single(size: str) -> list[Trial]:
    """Runs of one tree; the deepest have 15,120 leaves and take longest."""
    if size == "tiny":
        repeats = {1: 2, 2: 2}
    elif size == "quick":
        repeats = {depth: 6 if depth < 6 else 3 for depth in DEPTHS}
    elif size == "medium":
        repeats = {depth: 20 if depth < 6 else 6 for depth in DEPTHS}
    else:
        repeats = dict.fromkeys(DEPTHS, 50)
    epsilons = TINY if size == "tiny" else EPSILONS
    return [
        run(e, 1, depth, repeat, size) for e in epsilons for depth, many in repeats.items() for repeat in range(many)
    ]


def grid(size: str) -> list[Trial]:
    """Runs of forests by epsilon, number of trees and depth."""
    epsilons, trees, depths, repeats = {
        "tiny": (TINY, (1, 3), (1, 2), 2),
        "quick": (EPSILONS, (1, 3, 7), (1, 2, 3, 5), 3),
        "medium": (EPSILONS, (1, 3, 7), (1, 2, 3, 5), 6),
        "full": (EPSILONS, FEW, DEPTHS, 10),
    }[size]
    return [run(e, t, d, r, size) for e in epsilons for t in trees for d in depths for r in range(repeats)]


def long(size: str) -> list[Trial]:
    """Runs of up to a hundred trees at epsilon 0.01."""
    trees, depths, repeats = {
        "tiny": ((1, 3), (1, 2), 2),
        "quick": ((1, 10, 30, 100), (1, 2, 3), 5),
        "medium": ((1, 10, 30, 100), (1, 2, 3), 10),
        "full": ((1, 10, 20, 30, 50, 100), DEPTHS, 10),
    }[size]
    return [run("0.01", t, d, r, size) for t in trees for d in depths for r in range(repeats)]


# -- what came of them ----------------------------------------------------------------------------


@dataclass(frozen=True)
class RandomTreeRuns:
    """Runs on the first split, and the expectations on every split."""

    runs: dict[Key, list[float]]
    exact: list[dict[str, Any]]

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> RandomTreeRuns:
        runs: dict[Key, list[float]] = {}
        exact: dict[int, dict[str, Any]] = {}
        for outcome in outcomes:
            trial, result = outcome.trial, outcome.result
            options, settings = dict(trial.options), dict(trial.settings)
            if result is None or not trial.learner.startswith("hanisch"):
                continue
            if settings.get("task") == TASK:
                exact[trial.seed] = dict(result)
            else:
                key = trial.epsilon, int(str(options.get("n_estimators", 1))), int(str(options["max_depth"]))
                runs.setdefault(key, []).append(float(result["accuracy"]))
        return cls(runs, [exact[seed] for seed in sorted(exact)])

    @property
    def epsilons(self) -> list[str]:
        return sorted(self.exact[0]["accuracy"], key=float) if self.exact else []

    def trees(self, most: int = FEW[-1]) -> list[int]:
        return [each for each in map(int, self.exact[0]["accuracy"][self.epsilons[0]]) if each <= most]

    def mean(self, split: int, epsilon: str, trees: int, depth: int | None = None) -> Any:
        """The expected accuracy on a split, at a depth or at all."""
        by_depth = self.exact[split]["accuracy"][epsilon][str(trees)]
        return np.array(by_depth) if depth is None else float(by_depth[depth - 1])

    def grid(self, split: int, epsilon: str) -> NDArray[np.float64]:
        """The expected accuracies of a split, [trees, depth]."""
        return np.array([self.mean(split, epsilon, trees) for trees in self.trees()])

    def closed(self, epsilon: str, trees: int, depth: int) -> Number | None:
        known = self.exact and str(trees) in self.exact[0]["accuracy"].get(epsilon, {})
        return Number(self.mean(0, epsilon, trees, depth)) if known else None

    def cell(self, key: Key, series: str, at: float) -> Cell:
        return Cell(series, at, Estimate.of(self.runs[key]), closed=self.closed(*key))

    def naive(self, split: int) -> float:
        return float(self.exact[split]["majority"])

    @property
    def levels(self) -> tuple[tuple[str, Estimate], ...]:
        if not self.exact:
            return ()
        names = {"most frequent class": "majority", "no rule can be better": "ceiling"}
        return tuple((told, Estimate(float(self.exact[0][name]), 0.0, 1)) for told, name in names.items())

    def notes(self, *more: str) -> tuple[str, ...]:
        unseen = self.exact[0]["unseen"] if self.exact else 0.0
        return (TABLE, ALGORITHM, CLOSED.format(unseen=unseen), *more)


def listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


TASKS = {TASK: expected}

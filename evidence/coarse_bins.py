"""`python -m evidence.coarse_bins`: what boosted tables gain from finer cells where declared bins are coarse.

Every table at three epsilons, on the same splits and with the same seeds: AutoClassifier as it is, AutoClassifier in
the declared bins alone, and on tables with coarse bins, or a drafted domain, every learner that it chooses from and
DiffPC4.5, which cuts numbers anywhere. The noise is seeded so that the same command writes the same numbers: nothing
fitted here is private. PRIVET_DATA names the folder of the UCI files.

The rule (at most 10 bins are coarse; 20 cells from 500 rows x epsilon on, 40 from 4,000 on; pairs in declared bins) was
chosen while the tables with coarse bins below were looked at: their numbers are those of a choice.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import privet
from privet.choice.arms import ARMS
from privet.choice.auto import shipped
from privet.choice.policy import CautiousForest, PolicyTree
from privet.errors import DataError
from privet.kernel import Domain, Numeric

RESULT = Path(__file__).with_name("coarse_bins.json")
EPSILONS, SEEDS, ROWS, LIMIT = ("0.1", "0.5", "1"), 12, 20_000, 0.3


@dataclass(frozen=True)
class Case:
    """A table: its domain, and for each seed rows to learn from and rows to test on.

    Parameters
    ----------
    name : str
    domain : Domain
    split : callable
    rivals : bool
        Whether every learner is measured on it.
    """

    name: str
    domain: Domain
    split: Callable[[int], tuple[pd.DataFrame, pd.DataFrame]]
    rivals: bool = True


def in_ten_bins(domain: Domain, *names: str) -> Domain:
    """Return the domain with ten even bins of these numeric columns, or of all."""

    def coarse(column: Any) -> Any:
        if not isinstance(column, Numeric) or (names and column.name not in names):
            return column
        return replace(column, edges=None, bins=min(10, column.grid_size))

    return replace(domain, columns=tuple(coarse(column) for column in domain.columns))


def cases() -> Iterator[Case]:
    """Yield the tables."""
    census = privet.datasets.census_domain()
    drafted = privet.draft_domain(privet.datasets.census(2000, seed=2000), target="income")
    yield Case("census, 10 bins of wages", in_ten_bins(census, "wage"), _people)
    yield Case("census, drafted", drafted, _people)
    yield Case("Adult, 10 bins each", in_ten_bins(privet.datasets.domain("adult")), _part_of("adult"))
    yield Case("random trees, 10 bins each", in_ten_bins(_tree(0)[1]), lambda seed: _tree(seed)[0])
    yield Case("census", census, _people, rivals=False)
    for name in ("adult", "nursery", "mushroom"):
        yield Case(name.capitalize(), privet.datasets.domain(name), _part_of(name), rivals=False)


def _people(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    return privet.datasets.census(ROWS, seed=seed), privet.datasets.census(ROWS, seed=1000 + seed)


def _tree(seed: int) -> tuple[tuple[pd.DataFrame, pd.DataFrame], Domain]:
    """Return rows of another random tree for each seed; of its ten attributes five are numbers from 0 to 100."""
    parts = [
        privet.datasets.random_tree(ROWS, numeric=5, p_noise=0.1, tree_seed=seed, seed=rows) for rows in (seed, 999)
    ]
    return (parts[0].frame, parts[1].frame), parts[0].domain


def _part_of(name: str) -> Callable[[int], tuple[pd.DataFrame, pd.DataFrame]]:
    def split(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        frame = _frame(name)
        order = np.random.default_rng([seed, zlib.crc32(name.encode())]).permutation(len(frame))
        return frame.iloc[order[len(frame) // 5 :]], frame.iloc[order[: len(frame) // 5]]

    return split


@cache
def _frame(name: str) -> pd.DataFrame:
    return privet.datasets.load(name).frame


def always(arm: str) -> CautiousForest:
    """Return a policy that takes this learner on every table."""
    ahead = tuple(10 if name == arm else 0 for name in ARMS)
    return replace(shipped("accuracy"), floor=None, trees=(PolicyTree((0,), (0.0,), (0,), (1,), (ahead,)),))


def learners(case: Case) -> dict[str, Callable[[str, int], Any]]:
    """Return what is measured on a table, by name: functions of epsilon and a seed."""
    names: dict[str, Callable[[str, int], Any]] = {
        "auto": lambda epsilon, seed: privet.AutoClassifier(epsilon, random_state=seed),
        "auto, declared bins": lambda epsilon, seed: privet.AutoClassifier(epsilon, random_state=seed),
    }
    if not case.rivals:
        return names
    arms = {
        arm: lambda epsilon, seed, arm=arm: privet.AutoClassifier(epsilon, policy=always(arm), random_state=seed)
        for arm in ARMS
        if arm != "boosted"
    }
    tree = {"diffpc45": lambda epsilon, seed: privet.DiffPC45Classifier(epsilon, random_state=seed)}
    return {**names, **arms, **tree}


def _as_declared(domain: Domain, signal: float) -> Domain:
    return domain


def measure(case: Case, epsilon: str) -> list[dict[str, Any]]:
    """Return the mean accuracy of each learner in percent, and its mean difference to `auto` with standard error."""
    target, measured = case.domain.target_column.name, learners(case)
    points: dict[str, list[float]] = {name: [] for name in measured}
    for seed in range(SEEDS):
        train, test = case.split(seed)
        for name, learner in measured.items():
            with privet.testing.seeded_noise(seed):
                table = privet.open(train, case.domain, budget=epsilon)
            declared = name == "auto, declared bins"
            with patch("privet.learners.cells.cells_for_learning", _as_declared) if declared else nullcontext():
                classifier = learner(epsilon, seed).fit(table)
            points[name].append(100 * classifier.score(test, test[target]))
    rows = []
    for name, own in points.items():
        differences = np.subtract(own, points["auto"])
        rows.append(
            {
                "table": case.name,
                "epsilon": epsilon,
                "learner": name,
                "mean": round(float(np.mean(own)), 2),
                "difference": round(float(differences.mean()), 2),
                "se": round(float(differences.std(ddof=1)) / SEEDS**0.5, 2),
            }
        )
    return rows


def main() -> int:
    """Measure, print, and write evidence/coarse_bins.json."""
    rows: list[dict[str, Any]] = []
    try:
        for case in cases():
            for epsilon in EPSILONS:
                rows += measure(case, epsilon)
                for row in rows[-len(learners(case)) :]:
                    print("{table:28} {epsilon:4} {learner:20} {mean:6.2f} {difference:+6.2f} ± {se:.2f}".format(**row))
                sys.stdout.flush()
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    content = {
        "privet": privet.__version__,
        "command": "python -m evidence.coarse_bins",
        "noise": "seeded: the command writes the same numbers again",
        "seeds": SEEDS,
        "difference": "to auto, in points, on the same rows; se is its standard error",
        "accuracy": rows,
    }
    RESULT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    worst = max(row["difference"] for row in rows if row["learner"] == "auto, declared bins")
    print(f"where finer cells lose most: {worst:+.2f} points", file=sys.stderr)
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())

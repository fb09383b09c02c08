"""`python -m evidence.noisy_gd`: boosted tables with a delta beside noisy gradient descent, the plain anchor.

`privet.studies.noisy_gd` is a logistic regression on the same cells, counted in rho as ours is. It gets what favours
it: its number of steps and its rate are those of `GRID` that are best on the test rows, for each table and epsilon.
Tables and splits are those of `evidence.joint`; nothing here is private.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import privet
from evidence.joint import DELTA, DELTAS, measure, split
from privet.errors import DataError
from privet.kernel import rho_of
from privet.studies.noisy_gd import cells_of, descend, shares_of

RESULT = Path(__file__).with_name("noisy_gd.json")
TABLES = ("adult", "nursery2", "mushroom", "house-votes", "logistic")
EPSILONS = ("0.05", "0.1", "0.5", "1", "2")
GRID = tuple((steps, rate) for steps in (50, 150) for rate in (0.5, 2.0, 8.0, 32.0))
SPLITS = 4


def cell(name: str, epsilon: str, splits: Sequence[int]) -> dict[str, Any]:
    """Return what both reach on one table at one epsilon."""
    rho = float(rho_of(Fraction(epsilon), Fraction(DELTA)))
    reached: dict[tuple[int, float], list[float]] = {settings: [] for settings in GRID}
    for seed in splits:
        train, test, domain = split(name, seed)
        target = domain.target_column
        (known, size), (asked, _) = cells_of(train, domain), cells_of(test, domain)
        for settings in GRID:
            weights = descend(known, target.encode(train[target.name]), size, 2, rho, *settings, seed)
            right = shares_of(weights, asked).argmax(axis=1) == target.encode(test[target.name])
            reached[settings].append(100 * float(np.mean(right)))
    best = max(GRID, key=lambda settings: float(np.mean(reached[settings])))
    ours = np.array([measure(name, DELTAS, epsilon, seed)["accuracy"] for seed in splits])
    ahead = ours - np.array(reached[best])
    return {
        "table": name,
        "epsilon": epsilon,
        "boosted": round(float(ours.mean()), 2),
        "noisy gradient descent": round(float(np.mean(reached[best])), 2),
        "its steps and rate": best,
        "boosted ahead": round(float(ahead.mean()), 2),
        "standard error": round(float(ahead.std(ddof=1)) / len(ahead) ** 0.5, 2),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write evidence/noisy_gd.json."""
    parser = argparse.ArgumentParser(prog="python -m evidence.noisy_gd")
    parser.add_argument("--splits", type=int, default=SPLITS)
    splits = parser.parse_args(arguments).splits
    warnings.simplefilter("ignore")
    cells = []
    try:
        for name in TABLES:
            for epsilon in EPSILONS:
                cells.append(cell(name, epsilon, range(splits)))
                print(json.dumps(cells[-1]), flush=True)
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    content = {"privet": privet.__version__, "command": "python -m evidence.noisy_gd", "delta": DELTA, "splits": splits}
    RESULT.write_text(json.dumps({**content, "cells": cells}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

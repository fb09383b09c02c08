"""`python -m evidence.families`: boosted tables on generated families of more and more rows, pure and with a delta.

Effects of single attributes (logistic), of pairs, and random trees, from 10^4 to 10^6 rows; another family for each
seed. Accuracy on 10,000 more rows, CPU time and how many questions a fit asked: each reads the rows once. The noise is
seeded, so that accuracies come out the same again: nothing fitted here is private.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import privet
from evidence.joint import DELTA, DELTAS, PURE

RESULT = Path(__file__).with_name("families.json")
FAMILIES, ROWS, EPSILONS, TEST = ("logistic", "pairs", "random_trees"), (10**4, 10**5, 10**6), ("0.1", "1"), 10_000


def measure(family: str, rows: int, epsilon: str, seed: int) -> dict[str, dict[str, float]]:
    """Fit both ways on one family; return accuracy in percent, seconds of CPU time and questions."""
    whole = importlib.import_module(f"bench.data.{family}").load(seed, rows + TEST)
    train, test = whole.frame.iloc[:rows], whole.frame.iloc[rows:]
    found = {}
    for way, delta in ((PURE, None), (DELTAS, DELTA)):
        table = privet.testing.open(train, whole.domain, budget=epsilon, delta=delta, seed=seed)
        started = time.process_time()
        fitted = privet.BoostedTablesClassifier(epsilon, random_state=seed).fit(table)
        found[way] = {
            "cpu": time.process_time() - started,
            "accuracy": 100 * fitted.score(test, test.y),
            "questions": len(fitted.privacy_.steps),
        }
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write evidence/families.json."""
    parser = argparse.ArgumentParser(prog="python -m evidence.families")
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args(arguments).seeds
    warnings.simplefilter("ignore")
    cells: list[dict[str, Any]] = []
    for rows in ROWS:
        for family in FAMILIES:
            for epsilon in EPSILONS:
                runs = [measure(family, rows, epsilon, seed) for seed in range(seeds)]
                ahead = np.array([run[DELTAS]["accuracy"] - run[PURE]["accuracy"] for run in runs])
                cell: dict[str, Any] = {"family": family, "rows": rows, "epsilon": epsilon}
                for way in (PURE, DELTAS):
                    cell[way] = {
                        name: round(float(np.mean([run[way][name] for run in runs])), 2) for name in runs[0][way]
                    }
                cell["ahead"] = round(float(ahead.mean()), 2)
                cell["standard error"] = round(float(ahead.std(ddof=1)) / seeds**0.5, 2)
                cells.append(cell)
                print(json.dumps(cell), flush=True)
    content = {"privet": privet.__version__, "command": "python -m evidence.families", "delta": DELTA, "seeds": seeds}
    RESULT.write_text(json.dumps({**content, "cells": cells}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

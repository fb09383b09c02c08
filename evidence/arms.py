"""`python -m evidence.arms`: the learners that `auto` chooses from, on data sets that are counted in rho.

There `auto` takes boosted tables. This measures what that costs against the best of all learners, chosen afterwards
for each table and epsilon, which favours the others. With `--again` the cells where boosted tables came out behind are
measured on more splits, against the learner that was ahead there: chosen before, it is not flattered. Rows are public
or generated and the noise is seeded, so that the command writes the same numbers again: nothing fitted here is private.
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
from evidence.joint import DELTA, TABLES, split
from privet.choice.arms import ARMS, DEFAULT
from privet.errors import DataError
from privet.learners.additive import LEARNERS, learn
from privet.learners.growth import grow
from privet.learners.presets import preset
from privet.models.model import Model

RESULT = Path(__file__).with_name("arms.json")
EPSILONS = ("0.05", "0.1", "0.5", "1", "2")
SPLITS = 6
AGAIN, SMALL_AGAIN = 16, 40  # other splits; of house votes, whose test rows are few
BEHIND = 0.5  # points


def fitted(arm: str, name: str, epsilon: str, seed: int) -> tuple[Model, Any, Any]:
    """Fit one learner to the rows of one split; return its model, the rows to test on and their domain."""
    train, test, domain = split(name, seed)
    table = privet.testing.open(train, domain, budget=epsilon, delta=DELTA, seed=seed)
    known, coins = ARMS[arm], np.random.default_rng(seed)
    if known.algorithm in LEARNERS:
        return learn(table, LEARNERS[known.algorithm], Fraction(epsilon), coins), test, domain
    plan = preset(known.algorithm).plan(domain, **known.choices)
    return grow(table, plan, Fraction(epsilon), coins), test, domain


def accuracy(arm: str, name: str, epsilon: str, seed: int) -> float:
    """Return the share of test rows, in percent, that a model classifies right."""
    model, test, domain = fitted(arm, name, epsilon, seed)
    target = domain.target_column
    return 100 * float(np.mean(model.predict_proba(test).argmax(axis=1) == target.encode(test[target.name])))


def cell(name: str, epsilon: str, splits: Sequence[int]) -> dict[str, Any]:
    """Return what each learner reaches, and how far boosted tables are behind the best of the others."""
    reached = {arm: np.array([accuracy(arm, name, epsilon, seed) for seed in splits]) for arm in ARMS}
    rival = max((arm for arm in ARMS if arm != DEFAULT), key=lambda arm: reached[arm].mean())
    ahead = reached[DEFAULT] - reached[rival]
    return {
        "table": name,
        "epsilon": epsilon,
        "accuracy": {arm: round(float(values.mean()), 2) for arm, values in reached.items()},
        "best other": rival,
        "boosted ahead": round(float(ahead.mean()), 2),
        "standard error": round(float(ahead.std(ddof=1)) / len(ahead) ** 0.5, 2),
    }


def again(entry: dict[str, Any]) -> dict[str, Any]:
    """Return how far boosted tables are ahead of the best other learner of a cell, on splits that did not choose it."""
    name, epsilon, rival = entry["table"], entry["epsilon"], entry["best other"]
    splits = range(300, 300 + (SMALL_AGAIN if name == "house-votes" else AGAIN))
    ahead = np.array([accuracy(DEFAULT, name, epsilon, seed) - accuracy(rival, name, epsilon, seed) for seed in splits])
    return {
        "splits": len(splits),
        "boosted ahead": round(float(ahead.mean()), 2),
        "standard error": round(float(ahead.std(ddof=1)) / len(ahead) ** 0.5, 2),
    }


def measure_again(tables: Sequence[str]) -> int:
    """Measure the cells of these tables again where boosted tables are behind, and write evidence/arms.json."""
    content = json.loads(RESULT.read_text(encoding="utf-8"))
    for entry in content["cells"]:
        if entry["table"] in tables and entry["boosted ahead"] < -BEHIND:
            entry["again"] = again(entry)
            print(json.dumps({name: entry[name] for name in ("table", "epsilon", "best other", "again")}), flush=True)
            RESULT.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write evidence/arms.json."""
    parser = argparse.ArgumentParser(prog="python -m evidence.arms")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--again", action="store_true", help="measure cells where boosted tables are behind, once more")
    parser.add_argument("--tables", default=",".join(TABLES), help="of --again")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if chosen.again:
        return measure_again(chosen.tables.split(","))
    cells: list[dict[str, Any]] = []
    try:
        for name in TABLES:
            for epsilon in EPSILONS:
                cells.append(cell(name, epsilon, range(100, 100 + chosen.splits)))
                last = cells[-1]
                points = f"{last['boosted ahead']:+.2f} ± {last['standard error']:.2f}"
                print(f"{name:15}{epsilon:>5} boosted {points} ahead of {last['best other']}", flush=True)
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    what = f"test accuracy in percent, {chosen.splits} random 90/10 splits, one fit on each; differences are paired"
    content = {"privet": privet.__version__, "command": "python -m evidence.arms", "delta": DELTA, "what": what}
    RESULT.write_text(json.dumps({**content, "cells": cells}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

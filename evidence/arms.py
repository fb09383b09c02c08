"""`python -m evidence.arms`: the learners that `auto` chooses from, on data sets that are counted in rho.

There `auto` takes boosted tables. This measures what that costs against the best of all learners, chosen afterwards
for each table and epsilon, which favours the others. With `--tables` or `--epsilons` other cells of the file stay as
they are. With `--again` the cells where boosted tables came out behind are
measured on more splits, against the learner that was ahead there: chosen before, it is not flattered. Rows are public
or generated and the noise is seeded, so that the command writes the same numbers again: nothing fitted here is private.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
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


def write(cells: Mapping[tuple[str, str], dict[str, Any]]) -> None:
    """Write what was measured so far."""
    what = f"test accuracy in percent, {SPLITS} random 90/10 splits, one fit on each; differences are paired"
    content = {"privet": privet.__version__, "command": "python -m evidence.arms", "delta": DELTA, "what": what}
    ordered = [cells[name, epsilon] for name in TABLES for epsilon in EPSILONS if (name, epsilon) in cells]
    RESULT.write_text(json.dumps({**content, "cells": ordered}, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write evidence/arms.json."""
    parser = argparse.ArgumentParser(prog="python -m evidence.arms")
    parser.add_argument("--again", action="store_true", help="measure cells where boosted tables are behind, once more")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--epsilons", default=",".join(EPSILONS))
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    known = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    cells = {(entry["table"], entry["epsilon"]): entry for entry in known.get("cells", ())}
    try:
        for place in itertools.product(chosen.tables.split(","), chosen.epsilons.split(",")):
            if not chosen.again:
                cells[place] = cell(*place, range(100, 100 + SPLITS))
            elif place in cells and cells[place]["boosted ahead"] < -BEHIND:
                cells[place]["again"] = again(cells[place])
            else:
                continue
            last = cells[place].get("again", cells[place])
            points = f"{last['boosted ahead']:+.2f} ± {last['standard error']:.2f}"
            print(f"{place[0]:15}{place[1]:>5} boosted {points} ahead of {cells[place]['best other']}", flush=True)
            write(cells)
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

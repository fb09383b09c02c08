"""`python -m evidence.joint`: boosted tables with pure epsilon, and with a delta, beside each other.

Test accuracy, log loss and area under the ROC curve on 90/10 splits of the UCI tables and of generated ones. Both are
fitted on a data set with a ledger, which counts epsilon or rho. With too little signal for a delta to pay off, rows
of one's own are fitted with pure epsilon instead: cells where that is so are marked (`together` is false), and have
what such a fit with a delta reaches, with noise of its own. Elsewhere both are the same learner. All rows are public
or generated and the noise is seeded, so that the command writes the same numbers again: nothing fitted here is
private. With `--tables` or `--epsilons` other cells of the file stay as they are. `--same-price` measures something
else: on tables too small for a delta, joint tables beside pure ones that cost the same rho.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
import zlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score

import privet
from bench import data
from privet.datasets import Dataset
from privet.errors import DataError
from privet.kernel import Domain, Nominal, Numeric, rho_of
from privet.learners.joint_tables import enough_signal, joint_signal

RESULT = Path(__file__).with_name("joint.json")
DELTA = "1e-6"
EPSILONS = ("0.01", "0.05", "0.1", "0.25", "0.5", "1", "2")
TABLES = (
    "adult",
    "nursery2",
    "nursery",
    "mushroom",
    "house-votes",
    "skewed numbers",
    "logistic",
    "pairs",
    "random-trees",
)
SPLITS = 8
PURE, DELTAS, OWN = "pure", "with a delta", "with a delta, rows of one's own"


def skewed_numbers(seed: int, rows: int = 19_000) -> Dataset:
    """Return ten skewed numbers in 15 to 20 bins, of which two matter together and two more alone."""
    rng = np.random.default_rng([82, seed])
    normal = rng.normal(size=(rows, 10))
    normal[:, 5] = 0.8 * normal[:, 0] + 0.6 * normal[:, 5]
    normal[:, 6] = 0.7 * normal[:, 6] - 0.7 * normal[:, 1]
    score = 1.6 * normal[:, 0] + 1.2 * normal[:, 0] * normal[:, 1] + 0.5 * np.abs(normal[:, 2]) + 0.3 * normal[:, 3]
    frame, columns = pd.DataFrame(), []
    for place in range(10):
        skew, name = (1.2, 0.8, 0.5)[place % 3], f"x{place}"
        high = 3000 if skew == 1.2 else 1500
        frame[name] = np.clip(np.floor(100 * np.exp(skew * normal[:, place])), 0, high).astype(int)
        edges = sorted({int(100 * np.exp(skew * z)) for z in np.linspace(-2.2, 2.2, 14 + place % 6)})
        columns.append(Numeric(name, Fraction(0), Fraction(high), Fraction(1), edges=tuple(map(Fraction, edges))))
    frame["y"] = (score - 0.9 + rng.logistic(size=rows) > 0).astype(int)
    domain = Domain((*columns, Nominal("y", (0, 1))), target="y", rows=rows, max_rows=2 * rows)
    return Dataset(frame, domain)


@cache
def _table(name: str, seed: int) -> Dataset:
    return skewed_numbers(seed) if name == "skewed numbers" else data.load(name, seed)


def split(name: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame, Domain]:
    """Return rows to learn from, rows to test on, and their domain; a generated table is another for each seed."""
    generated = name == "skewed numbers" or data.drawn(name)
    whole = _table(name, seed if generated else 0)
    order = np.random.default_rng([seed, zlib.crc32(name.encode())]).permutation(len(whole.frame))
    tenth = len(order) // 10
    return whole.frame.iloc[order[tenth:]], whole.frame.iloc[order[:tenth]], whole.domain


def together(domain: Domain, epsilon: str) -> bool:
    """Return whether all tables are learned together at this epsilon, by the public number of rows."""
    assert domain.rows is not None
    return enough_signal(domain, joint_signal(domain, domain.rows, rho_of(Fraction(epsilon), Fraction(DELTA))))


def measure(name: str, way: str, epsilon: str, seed: int) -> dict[str, float]:
    """Fit once, and return what the model reaches on the test rows, and the CPU time of the fit."""
    train, test, domain = split(name, seed)
    target = domain.target_column
    started = time.process_time()
    if way == OWN:
        classifier = privet.BoostedTablesClassifier(epsilon, delta=DELTA, domain=domain, random_state=seed)
        with privet.testing.seeded_noise(1_000 + seed):
            fitted = classifier.fit(train.drop(columns=target.name), train[target.name])
    else:
        delta = None if way == PURE else DELTA
        table = privet.testing.open(train, domain, budget=epsilon, delta=delta, seed=seed)
        started = time.process_time()
        fitted = privet.BoostedTablesClassifier(epsilon, random_state=seed).fit(table)
    seconds = time.process_time() - started
    shares, codes = fitted.model_.predict_proba(test), target.encode(test[target.name])
    classes = shares.shape[1]
    return {
        "accuracy": 100 * float(np.mean(shares.argmax(axis=1) == codes)),
        "log loss": float(log_loss(codes, np.maximum(shares, 1e-9), labels=range(classes))),
        "auc": float(roc_auc_score(codes, shares[:, 1])) if classes == 2 else float("nan"),
        "cpu": seconds,
    }


def cell(name: str, epsilon: str, splits: Sequence[int]) -> dict[str, Any]:
    """Return means and standard errors of the ways on one table at one epsilon, and the difference to pure epsilon."""
    at_once = together(split(name, splits[0])[2], epsilon)
    ways = (PURE, DELTAS) if at_once else (PURE, DELTAS, OWN)
    measured = {way: [measure(name, way, epsilon, seed) for seed in splits] for way in ways}
    entry: dict[str, Any] = {"table": name, "epsilon": epsilon, "splits": len(splits), "together": at_once}
    for way, fits in measured.items():
        accuracy = np.array([fit["accuracy"] for fit in fits])
        ahead = accuracy - np.array([fit["accuracy"] for fit in measured[PURE]])
        entry[way] = {
            "accuracy": _mean(accuracy),
            "ahead of pure": _mean(ahead),
            **{
                measure: round(float(np.mean([fit[measure] for fit in fits])), 4)
                for measure in ("log loss", "auc", "cpu")
            },
        }
    return entry


def same_price(name: str, epsilon: str, splits: Sequence[int]) -> dict[str, Any]:
    """Return what joint tables reach, and pure ones with the epsilon whose square is twice the rho of the others."""
    rho = rho_of(Fraction(epsilon), Fraction(DELTA))
    same = f"{math.sqrt(2 * rho):.6f}"
    joint, pure = (
        np.array([measure(name, way, amount, seed)["accuracy"] for seed in splits])
        for way, amount in ((DELTAS, epsilon), (PURE, same))
    )
    return {
        "table": name,
        "epsilon": epsilon,
        "pure epsilon of the same rho": same,
        "splits": len(splits),
        DELTAS: _mean(joint),
        PURE: _mean(pure),
        "ahead of pure": _mean(joint - pure),
    }


def _mean(values: np.ndarray[Any, Any]) -> dict[str, float]:
    return {
        "mean": round(float(values.mean()), 2),
        "standard error": round(float(values.std(ddof=1)) / len(values) ** 0.5, 2),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write evidence/joint.json."""
    parser = argparse.ArgumentParser(prog="python -m evidence.joint")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--epsilons", default=",".join(EPSILONS))
    parser.add_argument("--same-price", action="store_true", help="beside pure tables that cost the same rho")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    known = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    cells = {(entry["table"], entry["epsilon"]): entry for entry in known.get("cells", ())}
    prices = {(entry["table"], entry["epsilon"]): entry for entry in known.get("same price", ())}
    try:
        for name in chosen.tables.split(","):
            for epsilon in chosen.epsilons.split(","):
                if chosen.same_price:
                    prices[name, epsilon] = same_price(name, epsilon, range(chosen.splits))
                    print(json.dumps(prices[name, epsilon]), flush=True)
                else:
                    cells[name, epsilon] = cell(name, epsilon, range(chosen.splits))
                    print(*line(cells[name, epsilon]), flush=True)
                write(_ordered(cells), _ordered(prices))
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _ordered(cells: Mapping[tuple[str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    return [cells[table, amount] for table in TABLES for amount in EPSILONS if (table, amount) in cells]


def line(entry: dict[str, Any]) -> list[str]:
    """Return a cell in words."""
    words = [f"{entry['table']:15}{entry['epsilon']:>5} {'together' if entry['together'] else '':8}"]
    for way in (PURE, DELTAS, OWN):
        if way in entry:
            own, ahead = entry[way]["accuracy"], entry[way]["ahead of pure"]
            words.append(f"{way} {own['mean']:.2f} {ahead['mean']:+.2f} ± {ahead['standard error']:.2f}")
            words.append(f"(loss {entry[way]['log loss']:.3f}, auc {entry[way]['auc']:.4f}, {entry[way]['cpu']:.2f} s)")
    return words


def write(cells: Sequence[dict[str, Any]], prices: Sequence[dict[str, Any]]) -> None:
    """Write what was measured so far."""
    content = {
        "privet": privet.__version__,
        "command": "python -m evidence.joint",
        "delta": DELTA,
        "noise": "seeded: the command writes the same numbers again",
        "what": "test accuracy in percent, random 90/10 splits, one fit on each; differences are paired",
        "cells": list(cells),
        "same price": list(prices),
    }
    text = json.dumps(content, indent=1, ensure_ascii=False).replace("NaN", "null")
    RESULT.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

"""`python -m evidence.frontier`: privet's own learners beside the prototypes of their design, and the papers'.

Three parts: test accuracy over ten 90/10 splits of five UCI tables, a row for each learner and an epsilon for each
column; ID3+ at every depth by two criteria, beside what its rule takes; and how many rows Friedman and Schuster's
synthetic trees take. All rows are public or generated, and the noise
is seeded so that the same command writes the same numbers: nothing fitted here is private. With `--learners` the first
part is measured for these alone, and everything else in the file stays as it is.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import privet
from bench import data
from bench.data.random_trees import classified
from evidence.numbers import BOOSTED, EPSILONS
from privet.errors import DataError
from privet.kernel import Domain, Nominal
from privet.learners.plan import DEEPER, SHARPER
from privet.studies import Outcome, Trial, run

RESULT = Path(__file__).with_name("frontier.json")
JOURNAL = Path("build/evidence-frontier.jsonl")
SPLITS, FITS = 10, 3  # splits, and fits on each


def _at(criterion: str, depth: int) -> str:
    return f"ID3+ {criterion} at depth {depth}"


# what is fitted, and with which choices; prototypes had bins for numbers
LEARNERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "boosted": (privet.BoostedTablesClassifier, {}),
    "ID3+ max d2": (privet.ID3PlusClassifier, {"max_depth": 2, "criterion": "max", "numeric": "bins"}),
    "ID3+ max d3": (privet.ID3PlusClassifier, {"max_depth": 3, "criterion": "max", "numeric": "bins"}),
    "ID3+ gini d2": (privet.ID3PlusClassifier, {"max_depth": 2, "criterion": "gini", "numeric": "bins"}),
    "ID3+ gini d3": (privet.ID3PlusClassifier, {"max_depth": 3, "criterion": "gini", "numeric": "bins"}),
    "ID3+": (privet.ID3PlusClassifier, {}),
    "naive Bayes": (privet.NaiveBayesClassifier, {}),
    "class shares": (privet.PriorClassifier, {}),
    "DiffPID3-max as published": (privet.DiffPID3Classifier, {"max_depth": 5, "variant": "published"}),
    "SuLQ-ID3 as published": (privet.SuLQID3Classifier, {"max_depth": 5, "variant": "published"}),
    "DiffPID3-max corrected": (privet.DiffPID3Classifier, {"max_depth": 5}),
}
DEPTHS = tuple((criterion, depth) for criterion in ("max", "gini") for depth in range(1, 6))
LEARNERS |= {
    _at(criterion, depth): (privet.ID3PlusClassifier, {"criterion": criterion, "max_depth": depth})
    for criterion, depth in DEPTHS
}
OWN = ("boosted", "ID3+ max d2", "ID3+ max d3", "ID3+ gini d2", "ID3+ gini d3", "ID3+", "naive Bayes", "class shares")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write evidence/frontier.json."""
    parser = argparse.ArgumentParser(prog="python -m evidence.frontier")
    parser.add_argument("--learners", help=f"some of {', '.join(OWN)}, with commas between")
    only = parser.parse_args(arguments).learners
    trials = [trial for trial in _uci() if trial.learner in only.split(",")] if only else [*_all()]
    try:
        for name in BOOSTED:
            table(name)
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        outcomes = run(trials, measure, JOURNAL, lambda text: print(text, file=sys.stderr, flush=True), pool)
    content = renewed(outcomes) if only else report(outcomes)
    RESULT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for line in lines(content):
        print(line)
    return 0


def measure(trial: Trial) -> dict[str, float]:
    """One fit, and its test accuracy in percent."""
    kind, choices = LEARNERS[trial.learner]
    seed = int(trial.key[:12], 16)
    if trial.data == SYNTHETIC:
        train, test, domain = synthetic(trial)
    else:
        frame, domain = table(trial.data)
        # the splits of the benchmark
        order = np.random.default_rng([trial.seed % SPLITS, zlib.crc32(trial.data.encode())]).permutation(len(frame))
        test, train = frame.iloc[order[: len(order) // 10]], frame.iloc[order[len(order) // 10 :]]
    target = domain.target_column.name
    more = {"max_leaves": 10**6} if "max_leaves" in kind().get_params() else {}
    classifier = kind(trial.epsilon, domain=domain, random_state=seed % 2**31, **choices, **more)
    with privet.testing.seeded_noise(seed):
        classifier.fit(train.drop(columns=target), train[target])
    right = classifier.predict(test.drop(columns=target)) == test[target].to_numpy()
    return {"accuracy": 100 * float(np.mean(right))}


# -- five UCI tables --------------------------------------------------------------------------


@cache
def table(name: str) -> tuple[pd.DataFrame, Domain]:
    found = data.load(name)
    texts = [each.name for each in found.domain if isinstance(each, Nominal) and each.name != found.domain.target]
    return found.frame.astype(dict.fromkeys(texts, "category")), found.domain


def _uci() -> Iterator[Trial]:
    for name in BOOSTED:
        for learner in OWN:
            for epsilon in EPSILONS:
                yield from (Trial(name, learner, epsilon, seed) for seed in range(SPLITS * FITS))


def _all() -> Iterator[Trial]:
    yield from _uci()
    yield from _depths()
    yield from _synthetic()


def _depths() -> Iterator[Trial]:
    for name in BOOSTED:
        for epsilon in EPSILONS:
            for at in DEPTHS:
                yield from (Trial(name, _at(*at), epsilon, seed) for seed in range(SPLITS // 2))


# -- Friedman and Schuster, 5.1 ---------------------------------------------------------------

SYNTHETIC = "random trees"
ATTRIBUTES, NOISE = 10, 0.1
TREES, RUNS = 10, 8
SIZES = (1000, 2000, 5000, 10_000, 20_000, 50_000)
FEWER = {"DiffPID3-max as published": 2, "SuLQ-ID3 as published": 10}  # so many times the rows of ours


def _synthetic() -> Iterator[Trial]:
    """Trees of depth 5 over ten binary attributes, epsilon 1: figure 6. Ours get a half and a tenth of the rows."""
    for size in SIZES:
        for learner in FEWER:
            yield from _of_size(learner, size)
        for learner in ("boosted", "ID3+", "DiffPID3-max corrected"):
            for fewer in FEWER.values():
                yield from _of_size(learner, size // fewer)


def _of_size(learner: str, rows: int) -> Iterator[Trial]:
    return (Trial(SYNTHETIC, learner, "1", seed, rows) for seed in range(TREES * RUNS))


def synthetic(trial: Trial) -> tuple[pd.DataFrame, pd.DataFrame, Domain]:
    """Rows of a random tree, a tenth of their values replaced, and 10,000 noiseless ones; a new set for each run."""
    tree = np.random.default_rng([51, trial.seed % TREES])
    rows = np.random.default_rng([52, trial.seed, zlib.crc32(str(trial.rows).encode())])
    bits = rows.integers(0, 2, ((trial.rows or 0) + 10_000, ATTRIBUTES))
    both = np.column_stack([bits, classified(tree, bits, (2,) * ATTRIBUTES)])
    train, test = both[: trial.rows].copy(), both[trial.rows :]
    replaced = rows.random(train.shape) < NOISE
    train[replaced] = rows.integers(0, 2, int(replaced.sum()))
    names = [*(f"a{i}" for i in range(ATTRIBUTES)), "class"]
    domain = Domain(tuple(Nominal(name, (0, 1)) for name in names), target="class", rows=trial.rows, max_rows=50_000)
    return pd.DataFrame(train, columns=names), pd.DataFrame(test, columns=names), domain


# -- the report -------------------------------------------------------------------------------


Cells = dict[tuple[str, str, str, int | None], list[float]]  # by seed: fit after fit of all splits


def renewed(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The content of evidence/frontier.json, with what was measured in place of its entries of the first part."""
    content: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    anew = {_place(entry): entry for entry in _tables(_accuracies(outcomes))}
    tables = content["tables"]
    tables["cells"] = [anew.get(_place(entry), entry) for entry in tables["cells"]]
    return content


def _place(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return entry["data"], entry["learner"], entry["epsilon"]


def _accuracies(outcomes: Sequence[Outcome]) -> Cells:
    cells: Cells = {}
    for outcome in outcomes:
        if outcome.result is None:
            raise RuntimeError(f"{outcome.trial.json}: {outcome.error}")
        trial = outcome.trial
        cells.setdefault((trial.data, trial.learner, trial.epsilon, trial.rows), []).append(outcome.result["accuracy"])
    return cells


def _tables(cells: Cells) -> list[dict[str, Any]]:
    return [
        _beside(data, learner, epsilon, values)
        for (data, learner, epsilon, rows), values in cells.items()
        if rows is None and learner in OWN
    ]


def report(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The content of evidence/frontier.json."""
    cells = _accuracies(outcomes)
    curves = [
        {"learner": learner, "rows": rows, **_summary(values)}
        for (data, learner, _, rows), values in cells.items()
        if data == SYNTHETIC
    ]
    return {
        "privet": privet.__version__,
        "command": "make evidence",
        "noise": "seeded: the command writes the same numbers again",
        "tables": {
            "what": "test accuracy in percent over ten random 90/10 splits, three fits each; packaged domains",
            "sd": "of the means of the splits",
            "difference in se": "(mean - prototype's mean) / sqrt(sd^2 / 10 + prototype's sd^2 / 10)",
            "cells": _tables(cells),
        },
        "depths": {
            "what": "ID3+ with thresholds at every depth, over five of the same splits, and what its rule takes",
            "cells": [_of_rule(name, epsilon, cells) for name in BOOSTED for epsilon in EPSILONS],
        },
        "rows": {
            "what": "Friedman and Schuster 2010, 5.1.2: trees of depth 5 over ten binary attributes, epsilon 1, a "
            f"tenth of all values replaced in training, {TREES} trees with {RUNS} training sets each; accuracy in % "
            "on 10,000 noiseless rows",
            "cells": sorted(curves, key=lambda entry: (entry["learner"], entry["rows"])),
            "fewer": [_fewer(curves, learner, size) for learner in FEWER for size in SIZES],
        },
    }


def _beside(data: str, learner: str, epsilon: str, values: Sequence[float]) -> dict[str, Any]:
    # fits on one split are not independent: the mean of each split counts
    by_split = np.array(values).reshape(FITS, SPLITS).mean(axis=0).tolist()
    entry: dict[str, Any] = {"data": data, "learner": learner, "epsilon": epsilon, **_summary(by_split)}
    if learner in BOOSTED[data]:
        mean, sd = dict(zip(EPSILONS, BOOSTED[data][learner], strict=True))[epsilon]
        se = math.sqrt(entry["sd"] ** 2 / SPLITS + sd**2 / 10)
        entry["prototype"] = {"mean": mean, "sd": sd, "runs": 10}
        entry["difference in se"] = round((entry["mean"] - mean) / max(se, 1e-9), 2)
    return entry


def _of_rule(name: str, epsilon: str, cells: Mapping[Any, Sequence[float]]) -> dict[str, Any]:
    """The accuracy of every criterion and depth, and which of them the rule takes with the public number of rows."""
    found = {at: float(np.mean(cells[name, _at(*at), epsilon, None])) for at in DEPTHS}
    rows = table(name)[1].rows
    assert rows is not None
    signal = rows * float(epsilon)
    taken = ("max" if signal < SHARPER else "gini", 1 + sum(signal >= least for least in DEEPER))
    return {
        "data": name,
        "epsilon": epsilon,
        "rows times epsilon": round(signal, 3),
        **{criterion: [round(found[criterion, depth], 2) for depth in range(1, 6)] for criterion in ("max", "gini")},
        "rule": f"{taken[0]} {taken[1]}",
        "below the best": round(max(found.values()) - found[taken], 2),
    }


def _fewer(curves: Sequence[Mapping[str, Any]], published: str, size: int) -> dict[str, Any]:
    """A published algorithm, and what ours reach with a part of its rows."""
    times = FEWER[published]
    found = {(entry["learner"], entry["rows"]): entry["mean"] for entry in curves}
    ours = {learner: found[learner, size // times] for learner in ("boosted", "ID3+", "DiffPID3-max corrected")}
    return {
        "published": published,
        "rows": size,
        "accuracy": found[published, size],
        "our rows": size // times,
        "ours": ours,
        "reached": max(ours.values()) >= found[published, size],
    }


def _summary(values: Sequence[float]) -> dict[str, Any]:
    return {
        "runs": len(values),
        "mean": round(float(np.mean(values)), 3),
        "sd": round(float(np.std(values, ddof=1)), 3),
    }


def lines(content: Mapping[str, Any]) -> Iterator[str]:
    """The report as text, a line for each cell."""
    for entry in content["tables"]["cells"]:
        beside = entry.get("prototype")
        told = (
            f"  prototype {beside['mean']:5.1f} ± {beside['sd']:4.1f} {entry['difference in se']:+5.1f} se"
            if beside
            else ""
        )
        where = f"{entry['data']:12}{entry['learner']:15}{entry['epsilon']:>5}"
        yield f"{where} {entry['mean']:6.2f} ± {entry['sd']:5.2f}{told}"
    for entry in content["depths"]["cells"]:
        yield (
            f"{entry['data']:12}{entry['epsilon']:>5} {entry['rows times epsilon']:8.0f}  max {entry['max']} "
            f"gini {entry['gini']}  rule {entry['rule']}, {entry['below the best']} below the best"
        )
    for entry in content["rows"]["fewer"]:
        ours = ", ".join(f"{learner} {mean:.1f}" for learner, mean in entry["ours"].items())
        reached = "reached" if entry["reached"] else "NOT REACHED"
        theirs = f"{entry['published']} {entry['rows']:6} rows {entry['accuracy']:5.1f}"
        yield f"{theirs}; {entry['our rows']:6} rows {ours}: {reached}"


if __name__ == "__main__":
    sys.exit(main())

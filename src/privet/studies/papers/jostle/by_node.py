"""A tree whose nodes choose for themselves, by what is public or released about them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from privet.choice import Branch, NoisyIf
from privet.kernel import as_epsilon, seeded_noise
from privet.learners.growth import grow
from privet.learners.presets import preset
from privet.open_table import open_table
from privet.studies.fit import seed
from privet.studies.rows import split
from privet.studies.trial import Trial

DROWNED, FAINT = 3.0, 30.0  # rows of a class times epsilon of a choice, below which coins and max do as well as any


def by_node(trial: Trial) -> Mapping[str, Any]:
    """A tree whose nodes choose how to find their splits: by coins, by max or by gini, as signal and noise say."""
    rows, depth = split(trial), int(dict(trial.options)["max_depth"] or 3)

    def signal(known: Mapping[str, Any]) -> float:
        return float(known["rows"] * known["epsilon"] / (2 * depth) / known["classes"])

    finds = NoisyIf(
        "split",
        {"random": Branch.of("random"), "select": Branch.of("select")},
        default="select",
        advice=lambda known: "random" if signal(known) < DROWNED else "select",
    )
    judges = NoisyIf(
        "criterion",
        {"max": Branch.of("max"), "gini": Branch.of("gini")},
        default="max",
        advice=lambda known: "max" if signal(known) < FAINT else "gini",
    )
    plan = replace(preset("id3plus").plan(rows.domain, max_depth=depth), split=finds, criterion=judges)
    target, start = rows.domain.target_column, time.process_time()
    with (
        seeded_noise(seed(trial)),
        warnings.catch_warnings(),
        open_table(rows.train, rows.domain, trial.epsilon) as table,
    ):
        warnings.simplefilter("ignore")
        model = grow(table, plan, as_epsilon(trial.epsilon), np.random.default_rng(seed(trial)))
    taken = time.process_time() - start
    right = model.predict_codes(rows.test) == target.encode(rows.test[target.name])
    return {"accuracy": 100 * float(np.mean(right)), "cpu": round(taken, 4)}

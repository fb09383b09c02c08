"""The trial of an audit: grow a tree on a public table, publish it, and measure what it tells about everybody.

Options are those of the tree. Settings say what is known: "rates" and "internal", both true unless said otherwise, are
whether the error of each leaf was published and whether the adversary uses the choice of splits; with "worlds" all
data sets that agree with the tree are looked at too. The seed is that of the solver, and of a sample of rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from privet.datasets import census
from privet.models.tree import Ensemble
from privet.risk import Audit
from privet.risk import audit as audited
from privet.risk.findings import ALONE, MAXIMUM
from privet.risk.measures import FLOOR, individual
from privet.studies import adult_trees
from privet.studies.memory import forget_peak, held, peak
from privet.studies.trial import Pairs, Trial

TOP = 10  # profiles whose divergences are told
AVERAGED = (*range(1, TOP + 1), 20, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500)  # K of a mean of the K largest
CHANGED = 1e-3  # a divergence that moves less has not moved
SMALL = 8  # profiles of a table of which everything is told

# Zhu and Du, figure 2: q1, q1, q2, q3, q4, q4
EXAMPLE = pd.DataFrame(
    [
        ("Youth", "Doctorate", "<=50K"),
        ("Youth", "Doctorate", "<=50K"),
        ("Senior", "Masters", "<=50K"),
        ("Senior", "Doctorate", ">50K"),
        ("MiddleAge", "Masters", ">50K"),
        ("MiddleAge", "Masters", ">50K"),
    ],
    columns=["age", "education", "salary"],
)


def audit(trial: Trial) -> Mapping[str, Any]:
    """How far what an adversary believes is from the truth, and what it took to compute it."""
    settings = dict(trial.settings)
    frame, model = _grown(trial.data, trial.rows, trial.seed, trial.options)
    before = held() if forget_peak() else None
    start = time.process_time()
    found = audited(
        model,
        frame,
        sensitive=frame.columns[-1],
        measure="posterior",
        truth=frame,
        published="rates" if settings.get("rates", True) else "labels",
        criterion=None if settings.get("internal", True) else "none",
        worlds=bool(settings.get("worlds", False)),
        remedies=False,
        seed=trial.seed,
    )
    taken = time.process_time() - start
    most = None if before is None else peak()
    assert found.counted is not None
    facts, disclosed = found.beliefs[MAXIMUM].facts, found.overall[MAXIMUM]
    return {
        "people": found.people.total,
        "profiles": found.counted.profiles,
        "leaves": len(found.publication.leaves) if found.publication else 0,
        "rates": found.counted.rate,
        "labels": found.counted.label,
        "internal": found.counted.internal,
        "uniform": found.overall["uniform"].overall,
        "marginal": found.overall["marginal"].overall,
        "D": disclosed.overall,
        "D of leaves": found.overall.get(ALONE, disclosed).overall,
        "D floored": disclosed.overall_floored,
        "entropy": disclosed.entropy,
        "binding": int(facts.get("active", 0)),
        "violation": float(facts.get("violation", 0.0)),
        "unsolved": int(facts.get("unsolved", 0)) + int(facts.get("left out", 0)),
        "arbitrary": int(facts.get("arbitrary", 0)),
        "steps": int(facts.get("steps", 0)),
        "known": {name: found.overall[name].known for name in found.adversaries},
        "cpu": round(taken, 4),
        "gb": most,
        "gb before": before,
        **_falls(found),
        **(_everybody(found) if len(found.people) <= SMALL else {}),
    }


def _falls(found: Audit) -> dict[str, Any]:
    """How much nearer to the truth of each profile the choice of splits brings an adversary who knows the leaves."""
    assert found.truth is not None
    both = found.beliefs.get(ALONE, found.beliefs[MAXIMUM]).shares, found.beliefs[MAXIMUM].shares
    before, after = (individual(found.people, shares, found.truth) for shares in both)
    fall = before - after
    order = np.argsort(-fall, kind="stable")
    means = np.cumsum(fall[order]) / np.arange(1, len(order) + 1)
    # a belief in something true can come down to 0, so that what rises has no limit without a floor
    floored = [individual(found.people, shares, found.truth, FLOOR) for shares in both]
    rise = np.sort(floored[1] - floored[0])[::-1]
    return {
        "falls": [[round(float(each[at]), 6) for each in (fall, after, before)] for at in order[:TOP]],
        "mean falls": [[k, round(float(means[k - 1]), 6)] for k in AVERAGED if k <= len(order)],
        "mean of the largest rises": round(float(rise[:TOP].mean()), 6),
        "fell": int((rise < -CHANGED).sum()),
        "rose": int((rise > CHANGED).sum()),
    }


def _everybody(found: Audit) -> dict[str, Any]:
    """Each profile of a small table: P(value | profile) of every adversary, and its divergence from the truth."""
    assert found.truth is not None
    told = [found.people.told(profile) for profile in range(len(found.people))]
    shares = {name: belief.shares for name, belief in found.beliefs.items()}
    shares["truth"] = found.truth / found.truth.sum(axis=1, keepdims=True)
    return {
        "overall": {name: found.overall[name].overall for name in found.beliefs},
        "shares": {name: dict(zip(told, each.tolist(), strict=True)) for name, each in shares.items()},
        "divergences": {
            name: dict(zip(told, individual(found.people, each, found.truth).tolist(), strict=True))
            for name, each in shares.items()
        },
    }


# -- what is published -------------------------------------------------------------------------


@lru_cache(maxsize=8)
def _grown(data: str, rows: int | None, seed: int, options: Pairs) -> tuple[pd.DataFrame, Ensemble]:
    """A table and its tree: audits that differ in what is known share it."""
    frame = TABLES[data](rows, seed)
    return frame, adult_trees.grown(frame, dict(options), frame.columns[-1])


def _adult(rows: int | None, seed: int) -> pd.DataFrame:
    frame = adult_trees.rows()
    return frame if rows is None else frame.sample(min(rows, len(frame)), random_state=seed).reset_index(drop=True)


def _census(rows: int | None, seed: int) -> pd.DataFrame:
    people = census(1000 if rows is None else rows, seed).dropna(subset=["occupation"])
    people["decade"] = people["age"] // 10
    columns = ["sex", "decade", "region", "occupation", "income", "education"]
    return people[columns].astype(str).reset_index(drop=True)


# the sensitive attribute is the last column, all others identify
TABLES: dict[str, Callable[[int | None, int], pd.DataFrame]] = {
    "adult": _adult,
    "census": _census,
    "example 1": lambda rows, seed: EXAMPLE,
}

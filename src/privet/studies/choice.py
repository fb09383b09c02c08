"""`privet study run choice`: the policies that are learned from histories on generated tables, and their regret."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.choice.arms import ARMS, DEFAULT
from privet.choice.features import FEATURES, PROBE
from privet.choice.history import PUBLIC, SYNTHETIC, History
from privet.choice.policy import CautiousForest, Floor
from privet.choice.training import Runs, cautious_forest, chosen, floor_of, runs_of
from privet.errors import DataError, QuestionError
from privet.studies.choice_drawing import regret_by_epsilon, where_arms_win
from privet.studies.histories import OBJECTIVES, gather, gather_public, site

Floats = NDArray[np.float64]

CAUTION = 1.0
FOLDS = 5
SIGNAL = "log signal per class"
FLOORS = range(1, 21)  # rows times epsilon for each class, below which class shares may be enough
HALVES = {"nursery": 0.5, "nursery2": 0.5}  # two targets of one table weigh as one


def runs_in(history: History, objective: str, origin: str) -> Runs:
    """The runs of one origin: a shipped policy is learned from generated tables alone."""
    rows = [row for row in history.rows(site(objective)) if row.origin == origin]
    return runs_of(rows, list(ARMS), FEATURES)


def train(history: History, objective: str, *, caution: float = CAUTION, seed: int = 0) -> CautiousForest:
    """The policy of an objective, from the generated tables of a history."""
    runs = runs_in(history, objective, SYNTHETIC)
    gains = validated(runs, lambda some: fitted(some, objective, caution, seed), seed)
    header = {
        "objective": objective,
        "epsilon": "of the whole run, the probe included",
        "probe": str(PROBE),
        "origins": [f"{SYNTHETIC} ({len(runs)} runs on {len(np.unique(runs.data))} tables)"],
        "seed": seed,
        "gain over the default": dict(zip(("points", "standard error"), _mean(gains), strict=True)),
    }
    return replace(fitted(runs, objective, caution, seed), header=header)


def fitted(runs: Runs, objective: str, caution: float = CAUTION, seed: int = 0) -> CautiousForest:
    """A policy from some runs. With very little signal accuracy has a floor, the class shares; no ranking has one."""
    fingerprints = {name: arm.fingerprint for name, arm in ARMS.items()}
    floor = None
    if objective == "accuracy":
        thresholds = [round(math.log(rows), 3) for rows in FLOORS]
        floor = floor_of(runs, list(ARMS), DEFAULT, FEATURES, Floor(SIGNAL, 0.0, "prior"), thresholds)
    return cautious_forest(runs, fingerprints, DEFAULT, FEATURES, caution=caution, seed=seed, floor=floor)


def validated(runs: Runs, make: Callable[[Runs], CautiousForest], seed: int = 0) -> Floats:
    """By how many points a policy is ahead of the default on each data set, by folds: it has not seen the data set."""
    names = np.random.default_rng(seed).permutation(np.unique(runs.data))
    folds = min(FOLDS, len(names))
    if folds < 2:
        raise QuestionError("a policy is validated on tables that it has not seen; run at least two of them.")
    gains: dict[str, float] = {}
    for fold in range(folds):
        held = np.isin(runs.data, names[fold::folds])
        unseen = runs.taken(held)
        ahead = unseen.rewards - unseen.rewards[:, [list(ARMS).index(DEFAULT)]]
        gained = ahead[np.arange(len(unseen)), chosen(make(runs.taken(~held)), unseen)]
        gains |= {name: float(gained[unseen.data == name].mean()) for name in np.unique(unseen.data)}
    return np.array([gains[name] for name in sorted(gains)])


def _mean(values: Floats) -> tuple[float, float]:
    """The mean, and its standard error."""
    return round(float(values.mean()), 3), round(float(values.std() / math.sqrt(len(values))), 3)


# -- regret ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Regrets:
    """How far ways to choose stay below the best arm in hindsight: points for each [way, table, epsilon]."""

    ways: tuple[str, ...]
    tables: tuple[str, ...]
    epsilons: tuple[str, ...]
    cells: Floats

    def mean(self, way: str, least: float = 0.0) -> float:
        """Over all tables, two targets of one table as one, at epsilons not below `least`."""
        weights = [HALVES.get(table, 1.0) for table in self.tables]
        large = [place for place, epsilon in enumerate(self.epsilons) if float(epsilon) >= least]
        own = self.cells[self.ways.index(way)][:, large]
        return float(np.average(own.mean(axis=1), weights=weights))

    def worst(self, way: str) -> float:
        return float(self.cells[self.ways.index(way)].max())

    def by_epsilon(self, way: str) -> list[float]:
        weights = [HALVES.get(table, 1.0) for table in self.tables]
        return [float(each) for each in np.average(self.cells[self.ways.index(way)], axis=0, weights=weights)]


def regrets(runs: Runs, policy: CautiousForest) -> Regrets:
    """The regret of the policy, of every fixed arm and of a random one.

    The best arm of a cell is found on one half of its runs and valued on the other: the best of many noisy
    means flatters itself.
    """
    taken = chosen(policy, runs)
    rewards = {"policy": runs.rewards[np.arange(len(runs)), taken]}
    rewards |= {f"always {arm}": runs.rewards[:, place] for place, arm in enumerate(ARMS)}
    rewards["random arm"] = runs.rewards.mean(axis=1)
    cells = [name.rpartition(" ") for name in dict.fromkeys(runs.data.tolist())]
    tables = tuple(dict.fromkeys(table for table, _, _ in cells))
    epsilons = tuple(sorted({epsilon for _, _, epsilon in cells}, key=float))
    found = np.zeros((len(rewards), len(tables), len(epsilons)))
    for table, _, epsilon in cells:
        mine = np.flatnonzero(runs.data == f"{table} {epsilon}")
        halves = mine[::2], mine[1::2]
        best = np.mean(
            [
                runs.rewards[other, np.argmax(runs.rewards[one].mean(axis=0))].mean()
                for one, other in (halves, halves[::-1])
            ]
        )
        for place, reward in enumerate(rewards.values()):
            found[place, tables.index(table), epsilons.index(epsilon)] = best - reward[mine].mean()
    return Regrets(tuple(rewards), tables, epsilons, found)


# -- the whole study ------------------------------------------------------------------------------

SIGNALS = (3, 10, 30, 100, 300, 1000, 3000, 10_000)  # rows times epsilon for each class, where bins end


def by_signal(runs: Runs) -> list[dict[str, Any]]:
    """By how many points each arm is ahead of the default, for more and more rows times epsilon for each class."""
    signal = np.exp(runs.features[:, FEATURES.index("log signal")]) / runs.features[:, FEATURES.index("classes")]
    ahead = runs.rewards - runs.rewards[:, [list(ARMS).index(DEFAULT)]]
    bins = np.searchsorted(SIGNALS, signal, side="right")
    found = []
    for place in range(len(SIGNALS) + 1):
        mine, own = ahead[bins == place], runs.data[bins == place]
        if len(mine) < 2:
            continue
        means = np.array([mine[own == name].mean(axis=0) for name in np.unique(own)])  # runs on one table go together
        error = means.std(axis=0) / math.sqrt(len(means))
        found.append(
            {
                "from": 0 if place == 0 else SIGNALS[place - 1],
                "to": SIGNALS[place] if place < len(SIGNALS) else None,
                "runs": len(mine),
                "ahead": {arm: round(float(mine[:, at].mean()), 2) for at, arm in enumerate(ARMS)},
                "standard error": {arm: round(float(error[at]), 2) for at, arm in enumerate(ARMS)},
            }
        )
    return found


def report(history: History, policy: CautiousForest, objective: str) -> dict[str, Any]:
    """What a policy gains on generated tables that it has not seen, and its regret on public ones where they are."""
    content: dict[str, Any] = {
        "objective": objective,
        "policy": policy.fingerprint,
        "floor": None if policy.floor is None else asdict(policy.floor),
        **{name: each for name, each in policy.header.items() if name != "objective"},
        "generated tables, points ahead of the default by rows times epsilon for each class": by_signal(
            runs_in(history, objective, SYNTHETIC)
        ),
    }
    if any(row.origin == PUBLIC for row in history.rows(site(objective))):
        runs = runs_in(history, objective, PUBLIC)
        public = regrets(runs, policy)
        means = {cell: runs.rewards[runs.data == cell].mean(axis=0) for cell in dict.fromkeys(runs.data.tolist())}
        content["public tables, regret in points"] = {
            "epsilons": list(public.epsilons),
            "ways": {
                way: {
                    "mean": round(public.mean(way), 2),
                    "mean from 0.05": round(public.mean(way, 0.05), 2),
                    "worst cell": round(public.worst(way), 1),
                    "by epsilon": [round(each, 2) for each in public.by_epsilon(way)],
                }
                for way in public.ways
            },
            # what a race can hope for: the best learner of all, for half of epsilon or less
            "best in hindsight with half of epsilon": round(_with_half(means), 2),
            "points": {
                cell: dict(zip(ARMS, (round(float(each), 1) for each in mean), strict=True))
                for cell, mean in means.items()
            },
            "cells of the policy": {
                table: [round(float(each), 1) for each in public.cells[0, place]]
                for place, table in enumerate(public.tables)
            },
        }
    return content


def _with_half(means: Mapping[str, Floats]) -> float:
    """By how many points the best learner with half of epsilon is ahead of the default with all of it, on average."""
    ahead, weights = [], []
    for cell, mean in means.items():
        table, _, epsilon = cell.rpartition(" ")
        half = means.get(f"{table} {float(epsilon) / 2:g}")
        if half is not None:
            ahead.append(float(half.max() - mean[list(ARMS).index(DEFAULT)]))
            weights.append(HALVES.get(table, 1.0))
    return float(np.average(ahead, weights=weights)) if ahead else math.nan


def run(
    folder: Path,
    *,
    seconds: float | None = None,
    sets: int | None = None,
    jobs: int = 1,
    caution: float = CAUTION,
    seed: int = 0,
    public: bool = True,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Gather histories, train a policy for each objective and report on them; all files go to a folder.

    A run that was stopped goes on where it was: `history.db` is the whole state.
    """
    folder.mkdir(parents=True, exist_ok=True)
    history = History(folder / "history.db")
    try:
        gather(history, sets=sets, seconds=seconds, jobs=jobs, progress=progress)
        if public:
            try:
                gather_public(history, jobs=jobs, progress=progress)
            except DataError as error:
                progress(f"public tables are left out: {error}")
        found = {}
        for objective in OBJECTIVES:
            progress(f"training the policy for {objective}")
            policy = train(history, objective, caution=caution, seed=seed)
            (folder / f"{objective}.json").write_text(policy.to_json(), encoding="utf-8")
            found[objective] = report(history, policy, objective)
    finally:
        history.close()
    (folder / "report.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    pictures = {
        "where": where_arms_win(found["accuracy"]),
        "where-auc": where_arms_win(found["auc"]),
        "regret": regret_by_epsilon(found["accuracy"]),
    }
    for name, drawn in pictures.items():
        if drawn:  # without public tables there is no regret to draw
            (folder / f"{name}.svg").write_text(drawn, encoding="utf-8")
    return found

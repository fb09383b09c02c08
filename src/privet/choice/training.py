"""Policies from histories in which every branch of a run has its reward: nothing has to be explored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.choice.history import HistoryRow, check_kept
from privet.choice.policy import CautiousForest, Floor, PolicyTree
from privet.errors import QuestionError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TREES, DEPTH, LEAF_ROWS, TRIED = 25, 7, 20, 5


@dataclass(frozen=True)
class Runs:
    """Runs as arrays: features [run, feature], rewards in points [run, branch], and the data set of each run."""

    features: Floats
    rewards: Floats
    data: NDArray[Any]

    def taken(self, rows: Any) -> Runs:
        return Runs(self.features[rows], self.rewards[rows], self.data[rows])

    def __len__(self) -> int:
        return len(self.data)


def runs_of(rows: Sequence[HistoryRow], branches: Sequence[str], features: Sequence[str]) -> Runs:
    """The runs in which every branch has a reward."""
    check_kept(rows)
    found: dict[str, dict[str, float]] = {}
    first: dict[str, HistoryRow] = {}
    for row in rows:
        found.setdefault(row.run, {})[row.branch] = row.reward
        first.setdefault(row.run, row)
    whole = [run for run, rewards in found.items() if all(branch in rewards for branch in branches)]
    if not whole:
        raise QuestionError("the history has no run in which every branch has a reward; run more of them.")
    return Runs(
        np.array([[float(first[run].context[name]) for name in features] for run in whole]),
        np.array([[found[run][branch] for branch in branches] for run in whole]),
        np.array([first[run].data for run in whole]),
    )


def cautious_forest(
    runs: Runs,
    branches: Mapping[str, str],
    default: str,
    features: Sequence[str],
    *,
    site: str = "learner",
    caution: float = 1.0,
    seed: int = 0,
    trees: int = TREES,
    depth: int = DEPTH,
    floor: Floor | None = None,
    header: Mapping[str, Any] | None = None,
) -> CautiousForest:
    """Bootstrap trees that each divide the runs so that one branch does well on either side.

    A bootstrap draws data sets, not runs: runs on one data set are nearly copies of each other.
    """
    rng = np.random.default_rng(seed)
    names = np.unique(runs.data)
    by_name = {name: np.flatnonzero(runs.data == name) for name in names}
    grown = []
    for _ in range(trees):
        drawn = rng.choice(names, size=len(names))
        rows = np.concatenate([by_name[name] for name in drawn])
        grown.append(_grown(runs.taken(rows), list(branches).index(default), depth, rng))
    return CautiousForest(
        site, dict(branches), default, tuple(features), tuple(grown), caution, floor, dict(header or {})
    )


def floor_of(
    runs: Runs, branches: Sequence[str], default: str, features: Sequence[str], low: Floor, thresholds: Sequence[float]
) -> Floor | None:
    """The threshold below which the branch of the floor gains most against the default in all; None if it never does.

    Where there is too little to learn from, branches are equally good on average, and a simple one varies least.
    """
    ahead = runs.rewards[:, list(branches).index(low.branch)] - runs.rewards[:, list(branches).index(default)]
    values = runs.features[:, list(features).index(low.feature)]
    gains = {threshold: float(ahead[values < threshold].sum()) for threshold in thresholds}
    best = max(thresholds, key=lambda threshold: gains[threshold])
    return replace(low, below=best) if gains[best] > 0 else None


def chosen(policy: CautiousForest, runs: Runs) -> Integers:
    """The branch that a policy takes in each run."""
    branches = list(policy.branches)
    found = []
    for values in runs.features.tolist():
        context = dict(zip(policy.features, values, strict=True))
        margins = policy.margins(context, branches, policy.default, {})
        ruled = policy.rule(context)
        best = max(branches, key=lambda branch: (margins[branch], branch == policy.default))
        found.append(branches.index(best if ruled is None else ruled[0]))
    return np.array(found)


def _grown(runs: Runs, default: int, depth: int, rng: np.random.Generator) -> PolicyTree:
    # rows differ by many points in what can be reached at all: what counts is which branch is better
    centred = runs.rewards - runs.rewards.mean(axis=1, keepdims=True)
    ahead = runs.rewards - runs.rewards[:, default : default + 1]
    feature, threshold, left, rows, leaves = [0], [0.0], [0], [0], [()]
    open_nodes: list[tuple[int, Integers, int]] = [(0, np.arange(len(runs)), 0)]
    while open_nodes:
        node, mine, level = open_nodes.pop(0)
        split = _best_split(runs.features[mine], centred[mine], rng) if level < depth else None
        if split is None:
            rows[node] = len(mine)
            leaves[node] = tuple(round(10 * value) for value in ahead[mine].mean(axis=0).tolist())
            continue
        feature[node], threshold[node], left[node] = split[0], split[1], len(left)
        below = runs.features[mine, split[0]] <= split[1]
        for side in (mine[below], mine[~below]):
            open_nodes.append((len(left), side, level + 1))
            feature.append(0)
            threshold.append(0.0)
            left.append(0)
            rows.append(0)
            leaves.append(())
    return PolicyTree(tuple(feature), tuple(threshold), tuple(left), tuple(rows), tuple(leaves))


def _best_split(features: Floats, centred: Floats, rng: np.random.Generator) -> tuple[int, float] | None:
    """Of some features the one, and its threshold, after which the best branches of both sides gain most."""
    best, found = float(centred.sum(axis=0).max()) + 1e-9, None
    if len(features) < 2 * LEAF_ROWS:
        return None
    for place in rng.permutation(features.shape[1])[:TRIED].tolist():
        order = np.argsort(features[:, place], kind="stable")
        values = features[order, place]
        totals = np.cumsum(centred[order], axis=0)
        gain = totals[:-1].max(axis=1) + (totals[-1] - totals[:-1]).max(axis=1)
        gain[values[1:] <= values[:-1]] = -np.inf  # equal values stay together
        gain[: LEAF_ROWS - 1] = gain[len(gain) - LEAF_ROWS + 1 :] = -np.inf
        cut = int(np.argmax(gain))
        if gain[cut] > best:
            best = float(gain[cut])
            middle = float(values[cut] + values[cut + 1]) / 2
            short = float(f"{middle:.5g}")  # a small file, where it divides the same
            found = (place, short if values[cut] <= short < values[cut + 1] else middle)
    return found

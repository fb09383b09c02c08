"""Trees that are too large to grow, as far as the rows walk that they are tested on.

MaxTree as printed divides every node until k attributes are used, empty or not: with k = 20 a tree has more leaves
than could be written down. The rows that it is tested on meet a few thousand of its nodes. The noise of a node is
independent of that of all others, so drawing it when the first row comes by gives these rows the classes that the whole
tree would give them, by the same distribution. Rows are public and noise is seeded: nothing here is private.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.studies.fit import seed
from privet.studies.rows import places, table
from privet.studies.trial import Trial

Integers = NDArray[np.int64]
SCORES = ("literal", "sum")


@dataclass(frozen=True)
class Coded:
    """Public rows: the value of each attribute [attribute, row], the class, and how many of each there are."""

    values: Integers
    classes: Integers
    sizes: tuple[int, ...]
    labels: int

    def taken(self, rows: Integers | NDArray[np.bool_]) -> Coded:
        return Coded(self.values[:, rows], self.classes[rows], self.sizes, self.labels)


@lru_cache(maxsize=2)
def coded(name: str) -> Coded:
    """All rows of a public table; its domain has a cell for each of them."""
    found = table(name)
    frame, domain = found.frame, found.domain
    values = np.stack([domain[each].encode(frame[each]) for each in domain.attributes]).astype(np.int64)
    classes = domain.target_column.encode(frame[domain.target_column.name]).astype(np.int64)
    return Coded(values, classes, tuple(domain[each].size for each in domain.attributes), len(domain.classes))


def walked(trial: Trial) -> Mapping[str, Any]:
    """Percent right of a published MaxTree or MaxForest on the rows held out: the same trial as that of `fit`."""
    rows, options = coded(trial.data), dict(trial.options)
    if trial.learner not in ("maxtree", "maxforest"):
        raise QuestionError(f"rows walk through maxtree or maxforest, not '{trial.learner}'.")
    trees = int(options.get("n_estimators") or 10) if trial.learner == "maxforest" else 1
    depth, score = int(options.get("max_depth") or 3), str(options.get("score") or "sum")
    cut = int(options.get("cut") or depth)
    train, test = places(trial, len(rows.classes))
    seen, held, rng = rows.taken(train), rows.taken(test), np.random.default_rng(seed(trial))
    start, votes = time.process_time(), np.zeros((len(test), rows.labels), dtype=np.int64)
    for _ in range(trees):
        drawn = seen.taken(rng.integers(len(train), size=len(train))) if trees > 1 else seen
        labels = maxtree(drawn, held.values, depth, float(trial.epsilon) / trees, score, rng, cut)
        votes[np.arange(len(test)), labels] += 1
    return {
        "accuracy": 100 * float(np.mean(votes.argmax(axis=1) == held.classes)),
        "majority": 100 * float(np.mean(held.classes == np.bincount(seen.classes).argmax())),
        "cpu": round(time.process_time() - start, 4),
    }


def maxtree(
    rows: Coded,
    passing: Integers,
    depth: int,
    epsilon: float,
    score: str,
    rng: np.random.Generator,
    cut: int | None = None,
) -> Integers:
    """The class that a MaxTree of these rows gives to each row that passes through (Liu et al. 2018, algorithm 2).

    With k levels to go an attribute is scored with noise of scale s k^2 / epsilon, and the classes of a leaf are
    counted with noise of scale s / epsilon, where s = 1 + (1 + 1/2 + ... + 1/depth). The score is the largest class
    of any cell (literal), or the sum over the cells of their largest classes (sum). `cut` levels are grown, with the
    noise of `depth`: the authors must have stopped before trees of depth 20.
    """
    if score not in SCORES:
        raise QuestionError(f"score is one of {', '.join(SCORES)}, not {score!r}.")
    noise = (1 + sum(1 / k for k in range(1, depth + 1))) / epsilon
    node, at = np.zeros(len(rows.classes), dtype=np.int64), np.zeros(passing.shape[1], dtype=np.int64)
    used, most = np.zeros((1, len(rows.sizes)), dtype=np.bool_), max(rows.sizes)
    for k in range(depth, max(depth - (cut or depth), 0), -1):
        if used.all():  # every path uses one attribute a level: none is left for all nodes at once
            break
        scores = _scores(rows, node, len(used), score) + rng.laplace(0, k * k * noise, used.shape)
        by = np.where(used, -np.inf, scores).argmax(axis=1)
        # the children through which somebody passes; what becomes of other rows does not matter
        children, at = np.unique(most * at + passing[by[at], np.arange(len(at))], return_inverse=True)
        place = np.full(most * len(used), -1)
        place[children] = np.arange(len(children))
        node = place[most * node + rows.values[by[node], np.arange(len(node))]]
        rows, node, parent = rows.taken(node >= 0), node[node >= 0], children // most
        used = used[parent]
        used[np.arange(len(parent)), by[parent]] = True
    counts = np.bincount(rows.labels * node + rows.classes, minlength=len(used) * rows.labels)
    leaves = counts.reshape(len(used), rows.labels) + rng.laplace(0, noise, (len(used), rows.labels))
    return np.asarray(leaves.argmax(axis=1)[at])


def _scores(rows: Coded, node: Integers, nodes: int, score: str) -> NDArray[np.float64]:
    """The score of each attribute [node, attribute], before noise."""
    found = np.empty((nodes, len(rows.sizes)))
    place = nodes * rows.classes + node
    for at, size in enumerate(rows.sizes):
        counts = np.bincount(size * place + rows.values[at], minlength=rows.labels * nodes * size)
        cells = counts.reshape(rows.labels, nodes, size).max(axis=0)
        found[:, at] = cells.sum(axis=1) if score == "sum" else cells.max(axis=1)
    return found

"""What the published mechanisms let expect of a single split among ten binary attributes (table 1, figure 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.conditions import criterion
from privet.datasets import random_tree
from privet.kernel import Exponential, PermuteAndFlip, public_scores
from privet.lab import probabilities
from privet.studies.fit import fit, seed
from privet.studies.rows import split
from privet.studies.trial import Trial

Floats = NDArray[np.float64]

BUDGET = Fraction(1, 10)
SHARE = BUDGET / 4  # B / (2 (d + 1)) at depth 1: for the size, the split, and a leaf's size and counts
BITS = 10
SINGLE_SPLIT: dict[str, Any] = {"depth": 1, "p_noise": 0.1, "max_rows": 5000}  # as `random_tree` is asked for it
LEAST = 1000  # rows from which on the stop rule and the noise of leaves do not matter
SULQ_DRAWS = 100
WRONG_RUN = 50.0  # points that a run loses if it splits by another attribute

SULQ, CORRECTED = "sulq", "max, corrected"  # what is selected by besides the criteria


def single_split(trial: Trial) -> Mapping[str, Any]:
    """A fit on rows of a single split, and what its mechanism lets expect on those rows."""
    found = dict(fit(trial))
    if (trial.rows or 0) >= LEAST:
        rng = np.random.default_rng(seed(trial))
        found["expected"], found["variance"] = expectation(selection(trial), split(trial).train.to_numpy(), rng)
    return found


def selection(trial: Trial) -> str:
    """By what the learner of a trial chooses a split."""
    options = dict(trial.options)
    if trial.learner == "sulq-id3":
        return SULQ
    return str(options["criterion"]) if options.get("variant") == "published" else CORRECTED


def expectation(by: str, rows: NDArray[np.int64], rng: np.random.Generator) -> tuple[float, float]:
    """The mean accuracy in percent that may be expected on these rows, and the variance of a run."""
    chance, accuracy = closed_form(by, rows, rng)
    mean = float(chance @ accuracy)
    return 100 * mean, 1e4 * float(chance @ (accuracy - mean) ** 2)


def closed_form(by: str, rows: NDArray[np.int64], rng: np.random.Generator) -> tuple[Floats, Floats]:
    """For each attribute the probability that it is chosen, and the accuracy of the split that it gives.

    Rows are [sample, ten attributes and class]. Leaves take the majority of their rows: noise of scale 40 cannot turn
    the some 400 rows between the classes of a leaf of the right split, and the labels of a wrong one do not matter.
    """
    counts = np.array(
        [np.bincount(2 * rows[:, j] + rows[:, -1], minlength=4).reshape(2, 2) for j in range(BITS)],
        dtype=np.int64,
    )
    accuracy = np.full(BITS, 0.5)
    accuracy[0] = float(np.mean(counts[0].argmax(axis=1) == [0, 1]))
    if by == SULQ:
        return sulq_chances(counts, rng), accuracy
    rule = criterion("max" if by == CORRECTED else by, random_tree(0, **SINGLE_SPLIT).domain)
    scores = public_scores(rule, counts).tolist()
    if by == CORRECTED:
        return probabilities(PermuteAndFlip(SHARE, rule.sensitivity, monotone=True), scores), accuracy
    return probabilities(Exponential(SHARE, rule.sensitivity, monotone=False), scores), accuracy


def sulq_chances(counts: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """How often each attribute has the largest sum of N_jc lg(N_jc / N_j) over noisy counts, in numpy."""
    stop = 1 - math.exp(-float(SHARE) / (2 * BITS))

    def noisy(exact: NDArray[np.int64]) -> Floats:
        shape = (SULQ_DRAWS, *exact.shape)
        return np.asarray(exact + rng.geometric(stop, shape) - rng.geometric(stop, shape), dtype=np.float64)

    n_jc, n_j = noisy(counts), noisy(counts.sum(axis=2))[..., None]
    fine = (n_jc > 0) & (n_j > 0)
    ratio = np.divide(n_jc, n_j, out=np.ones_like(n_jc), where=fine)
    scores = np.where(fine, n_jc * np.log2(ratio), 0).sum(axis=(2, 3))
    return np.bincount(scores.argmax(axis=1), minlength=BITS) / SULQ_DRAWS


def standard_error(by: str, variances: Sequence[float]) -> float:
    """Of the mean accuracy of runs on given training sets; SuLQ's expectation is itself a mean over draws."""
    error = math.sqrt(float(np.sum(variances))) / len(variances)
    return error * math.sqrt(1 + 1 / SULQ_DRAWS) if by == SULQ else error

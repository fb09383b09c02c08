"""Bayesian linear regression of the rewards, a line for each branch: the learner that the Jostle paper has in mind.

It learns from any history, also one where each run tried one branch. With `thompson` a branch is drawn as often as it
may be the best: for simulations on public rows, where a reward comes back. A private run gives no clean
reward, so exploring there would add noise and teach nothing (docs/choice.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.choice.history import HistoryRow
from privet.choice.policy import ADVICE_BONUS, ADVICE_ROWS, Context, Policy, Weights
from privet.errors import QuestionError

Floats = NDArray[np.float64]

PRIOR = 1.0  # standard deviation of a coefficient, over that of the rewards


@dataclass(frozen=True)
class Posterior:
    """The posterior of one branch: mean and covariance of its coefficients, and how many rewards it is made of."""

    mean: Floats
    covariance: Floats
    rows: int


@dataclass(frozen=True)
class BayesianLinear(Policy):
    """Takes the branch with the highest expected reward or, with `thompson` coins, of a draw from what is believed."""

    features: tuple[str, ...]
    centre: Floats
    scale: Floats
    lines: Mapping[str, Posterior]
    thompson: np.random.Generator | None = None

    kind = "bayesian-linear"

    @classmethod
    def fit(
        cls, rows: Sequence[HistoryRow], features: Sequence[str], thompson: np.random.Generator | None = None
    ) -> BayesianLinear:
        """Learn from the rows of a history."""
        if not rows:
            raise QuestionError("the history is empty; without one use advice, or Fixed(branch).")
        values = np.array([[float(row.context[name]) for name in features] for row in rows])
        centre, scale = values.mean(axis=0), np.maximum(values.std(axis=0), 1e-9)
        rewards = np.array([row.reward for row in rows])
        # runs differ in what can be reached at all: a reward counts from the mean of its run
        for run in {row.run for row in rows}:
            own = [place for place, row in enumerate(rows) if row.run == run]
            if len(own) > 1:
                rewards[own] -= rewards[own].mean()
        noise = max(float(rewards.std()), 1e-9)
        lines = {}
        for branch in dict.fromkeys(row.branch for row in rows):
            mine = np.array([row.branch == branch for row in rows])
            lines[branch] = _line(_design((values[mine] - centre) / scale), rewards[mine], noise)
        return cls(tuple(features), centre, scale, lines, thompson)

    def margins(self, context: Context, branches: Sequence[str], default: str, advised: Weights) -> dict[str, float]:
        values = [context.get(name, math.nan) for name in self.features]
        if not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
            return dict.fromkeys(branches, 0.0)
        # trees clip what they have not seen; a line would go on for ever
        at = _design(np.clip((np.array(values) - self.centre) / self.scale, -3, 3)[None])[0]
        found = {branch: self._value(branch, at, advised) for branch in branches}
        return {branch: found[branch] - found[default] for branch in branches}

    def _value(self, branch: str, at: Floats, advised: Weights) -> float:
        line = self.lines.get(branch)
        weight = ADVICE_ROWS if advised else 0.0
        bonus = weight * ADVICE_BONUS * advised.get(branch, 0.0)
        if line is None:
            return bonus / max(weight, 1.0)
        mean = line.mean if self.thompson is None else self.thompson.multivariate_normal(line.mean, line.covariance)
        return (line.rows * float(at @ mean) + bonus) / (line.rows + weight)


def _design(values: Floats) -> Floats:
    """A constant, the values and their squares."""
    return np.concatenate([np.ones((len(values), 1)), values, values**2], axis=1)


def _line(design: Floats, rewards: Floats, noise: float) -> Posterior:
    """The posterior under a normal prior of deviation PRIOR * noise, and noise of this deviation."""
    precision = design.T @ design / noise**2 + np.eye(design.shape[1]) / (PRIOR * noise) ** 2
    covariance = np.linalg.inv(precision)
    mean: Any = covariance @ (design.T @ rewards) / noise**2
    return Posterior(np.asarray(mean), np.asarray(covariance, dtype=np.float64), len(rewards))

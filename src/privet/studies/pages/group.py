"""Repeats: the outcomes of trials that differ in their seed alone, and the words by which they are picked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privet.studies.estimate import Estimate
from privet.studies.trial import Outcome, Pairs, Trial
from privet.text import clean, shortened

PICKED = {"data": "data set", "rows": "rows", "epsilon": "epsilon", "algorithm": "algorithm"}
NOT_PRIVATE = "not private"
UNTOLD = ("folds", "task")  # settings that say how, not what


@dataclass(frozen=True)
class Group:
    """Repeats, and the words by which they are picked."""

    data: str
    rows: str
    epsilon: str
    algorithm: str
    outcomes: tuple[Outcome, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """As a page can bear them, in an index and in the lists to pick from alike."""
        picked = (self.data, self.rows, self.epsilon, self.algorithm)
        return tuple(shortened(clean(each), 120) for each in picked)

    @property
    def private(self) -> bool:
        return self.epsilon != NOT_PRIVATE

    @property
    def size(self) -> float:
        return _rows(self.outcomes[0].trial.rows)

    @property
    def budget(self) -> float:
        return _epsilon(self.outcomes[0].trial.epsilon)

    @property
    def told(self) -> str:
        epsilon = f"epsilon {self.epsilon}" if self.private else NOT_PRIVATE
        return f"{self.data}, {self.rows}, {epsilon}, {self.algorithm}"

    def values(self, measure: str) -> list[float]:
        found = (outcome.result.get(measure) for outcome in self.outcomes if outcome.result is not None)
        return [float(value) for value in found if value is not None and _is_number(value)]

    def estimate(self, measure: str) -> Estimate | None:
        values = self.values(measure)
        return Estimate.of(values) if values else None

    @property
    def specimen(self) -> Mapping[str, Any] | None:
        found = (outcome.result.get("specimen") for outcome in self.outcomes if outcome.result is not None)
        return next((each for each in found if isinstance(each, Mapping)), None)


def groups(outcomes: Sequence[Outcome]) -> list[Group]:
    """Outcomes with results, by everything but their seed: fewer rows first, smaller epsilons first."""
    found: dict[tuple[Any, ...], list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.result is not None:
            trial = outcome.trial
            key = (trial.data, trial.settings, trial.rows, trial.epsilon, trial.learner, trial.options)
            found.setdefault(key, []).append(outcome)
    made = [_group(found[key]) for key in sorted(found, key=lambda key: (_rows(key[2]), _epsilon(key[3])))]
    return sorted(made, key=lambda each: list(dict.fromkeys(g.data for g in made)).index(each.data))


def measures(found: Sequence[Group]) -> list[str]:
    """What was measured, in the order of the results; the share of the majority class is a level and none of them."""
    names: dict[str, None] = {}
    for group in found:
        for outcome in group.outcomes:
            names |= {name: None for name, value in (outcome.result or {}).items() if _is_number(value)}
    return [name for name in names if name != "majority"]


def _group(outcomes: Sequence[Outcome]) -> Group:
    trial: Trial = outcomes[0].trial
    settings = tuple(pair for pair in trial.settings if pair[0] not in UNTOLD)
    rows = "all rows" if trial.rows is None else f"{trial.rows:,} rows"
    data, algorithm = (_told(name, pairs) for name, pairs in ((trial.data, settings), (trial.learner, trial.options)))
    return Group(data, rows, trial.epsilon or NOT_PRIVATE, algorithm, tuple(outcomes))


def _told(name: str, pairs: Pairs) -> str:
    return ", ".join([name, *(f"{key} {value}" for key, value in pairs)])


def _rows(rows: int | None) -> float:
    return math.inf if rows is None else rows


def _epsilon(epsilon: str) -> float:
    try:
        return float(epsilon) if epsilon else math.inf
    except ValueError:
        return math.inf


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

"""Results in numbers: means over repeats with their 95% intervals, and leads of one learner over another in pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.split import GROWTH
from privet.studies import Outcome
from privet.studies.estimate import Estimate

MEASURES = ("accuracy", "auroc", "log loss", "miscalibration", "majority", "fit", "predict", "memory", "steps")


@dataclass(frozen=True)
class Place:
    """Where a number stands: growth is one data set with many numbers of rows, all others have one."""

    data: str
    learner: str
    epsilon: str
    rows: int | None = None


class Summary:
    """What is known of all trials, by place and measure."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self._results: dict[Place, dict[int, Mapping[str, Any]]] = defaultdict(dict)
        for outcome in outcomes:
            if outcome.result is not None:
                trial = outcome.trial
                place = Place(trial.data, trial.learner, trial.epsilon, trial.rows if trial.data == GROWTH else None)
                self._results[place][trial.seed] = outcome.result

    @property
    def places(self) -> list[Place]:
        return list(self._results)

    def estimate(self, place: Place, measure: str) -> Estimate | None:
        values = [result.get(measure) for result in self._results.get(place, {}).values()]
        known = [float(value) for value in values if value is not None]
        return Estimate.of(known) if known else None

    def facts(self, data: str) -> Mapping[str, Any]:
        return next(
            result["facts"] for place, by in self._results.items() if place.data == data for result in by.values()
        )

    def versions(self) -> list[str]:
        return sorted({result["facts"]["version"] for by in self._results.values() for result in by.values()})

    def lead(self, one: Place, other: Place, measure: str = "accuracy") -> Estimate | None:
        """How far one is above the other, over the splits that both had."""
        mine, theirs = self._results.get(one, {}), self._results.get(other, {})
        both = [float(mine[seed][measure]) - float(theirs[seed][measure]) for seed in mine if seed in theirs]
        return Estimate.of(both) if both else None

    def strays(self) -> int:
        """How many results were measured on other rows than the first of their split: there should be none."""
        marks: dict[tuple[str, int | None, int], int] = {}
        count = 0
        for place, by in self._results.items():
            for seed, result in by.items():
                mark = result["facts"]["mark"]
                count += marks.setdefault((place.data, place.rows, seed), mark) != mark
        return count

    def cells(self, wanted: Callable[[Place], bool]) -> list[dict[str, Any]]:
        """Everything as plain values, for JSON."""
        found = []
        for place in self._results:
            if wanted(place):
                known = {measure: self.estimate(place, measure) for measure in MEASURES}
                told = {measure: each.to_dict() for measure, each in known.items() if each is not None}
                rows = {} if place.rows is None else {"rows": place.rows}
                found.append({"data": place.data, "learner": place.learner, "epsilon": place.epsilon, **rows, **told})
        return found

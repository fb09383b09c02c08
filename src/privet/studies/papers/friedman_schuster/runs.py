"""Runs of several methods laid side by side: means, differences on the same rows, and rows needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from privet.studies.estimate import Estimate, reached
from privet.studies.findings import At, Cell, Number
from privet.studies.pages.words import amount
from privet.studies.reading import TASK
from privet.studies.trial import Outcome, Pairs, Plain, Trial
from privet.studies.verdict import all_of, positive

RESAMPLES = 400


@dataclass(frozen=True)
class Method:
    """A line of a figure: the name it has there, and the learner that is run for it."""

    name: str
    learner: str
    options: Pairs = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    def trial(self, data: str, *, epsilon: str, seed: int, rows: int | None = None, **settings: Plain) -> Trial:
        private = self.learner not in ("id3", "c45")
        return Trial(data, self.learner, epsilon if private else "", seed, rows, self.options, tuple(settings.items()))


SCORERS = {"infogain": "InfoGain", "gini": "Gini", "max": "Max"}


def diffpid3(depth: int, variant: str = "published") -> tuple[Method, ...]:
    """Algorithm 2 with each of its three scorers."""
    return tuple(
        Method(
            f"DiffPID3-{name}{_suffix(variant)}",
            "diffpid3",
            (("criterion", scorer), ("max_depth", depth), ("variant", variant)),
        )
        for scorer, name in SCORERS.items()
    )


def diffpc45(depth: int, variant: str = "published") -> tuple[Method, ...]:
    """Algorithm 2 with thresholds and pruning. As printed, Gini and InfoGain are not private and run on public rows."""
    return tuple(
        Method(
            f"DiffPC4.5-{name}{_suffix(variant)}",
            "diffpc45",
            (
                *(("criterion", scorer), ("max_depth", depth), ("variant", variant)),
                *((("unsafe", True),) if variant == "published" and scorer != "max" else ()),
            ),
        )
        for scorer, name in SCORERS.items()
    )


# Settings of DiffPC4.5 with 2 S(q) in the chances of ranges, as the left side of the printed equation has it.
REREAD: dict[str, Plain] = {"task": TASK, "plan.printed_ranges": False}


def with_sensitivity(methods: Sequence[Method]) -> tuple[Method, ...]:
    """The same methods read with 2 S(q), to be run with the settings `REREAD`."""
    return tuple(
        Method(f"{method.name}, 2 S(q)", method.learner, tuple(pair for pair in method.options if pair[0] != "unsafe"))
        for method in methods
    )


def is_reread(outcome: Outcome) -> bool:
    return dict(outcome.trial.settings).get("task") == TASK


def sulq(depth: int) -> Method:
    return Method("SuLQ-based ID3", "sulq-id3", (("max_depth", depth), ("variant", "published")))


def _suffix(variant: str) -> str:
    return "" if variant == "published" else f", {variant}"


class Runs:
    """What came of each method at each place, by seed: runs of one seed share their rows."""

    def __init__(self, outcomes: Sequence[Outcome], methods: Sequence[Method], at: Callable[[Trial], At]) -> None:
        names = {(method.learner, method.options): method.name for method in methods}
        self._order = [method.name for method in methods]
        self._found: dict[str, dict[At, dict[int, Mapping[str, Any]]]] = {}
        for outcome in outcomes:
            name = names.get((outcome.trial.learner, outcome.trial.options))
            if name is not None and outcome.result is not None:
                places = self._found.setdefault(name, {})
                places.setdefault(at(outcome.trial), {})[outcome.trial.seed] = outcome.result

    @property
    def names(self) -> list[str]:
        return [name for name in self._order if name in self._found]

    def places(self, name: str) -> list[Any]:
        """Where a method was run, in order."""
        return sorted(self._found.get(name, {}), key=float)

    def shared(self, *names: str) -> list[Any]:
        """Where all of these were run."""
        return [at for at in self.places(names[0]) if all(at in self._found.get(name, {}) for name in names)]

    def values(self, name: str, at: At, key: str = "accuracy") -> list[float]:
        found = self._found.get(name, {}).get(at, {})
        return [float(found[seed][key]) for seed in sorted(found) if key in found[seed]]

    def estimate(self, name: str, at: At) -> Estimate | None:
        values = self.values(name, at)
        return Estimate.of(values) if values else None

    def cells(
        self,
        paper: Mapping[tuple[str, At], Number] | None = None,
        closed: Mapping[tuple[str, At], Number] | None = None,
    ) -> tuple[Cell, ...]:
        """A cell for each method and place, in the order of the methods."""
        return tuple(
            Cell(
                name,
                at,
                Estimate.of(self.values(name, at)),
                (paper or {}).get((name, at)),
                (closed or {}).get((name, at)),
            )
            for name in self.names
            for at in self.places(name)
        )

    def differences(self, one: str, other: str, where: Iterable[At], group: int = 1) -> list[float]:
        """By how many points one method is ahead of another on the same rows, on average over the places.

        Seeds that belong together, such as those of one generated tree, make one difference.
        """
        gaps: dict[int, list[float]] = {}
        for at in where:
            ours, theirs = (self._found.get(name, {}).get(at, {}) for name in (one, other))
            for seed in sorted(ours.keys() & theirs.keys()):
                gap = float(ours[seed]["accuracy"]) - float(theirs[seed]["accuracy"])
                gaps.setdefault(seed // group, []).append(gap)
        return [float(np.mean(each)) for each in gaps.values()]

    def growth(self, name: str, before: At, after: At) -> list[float]:
        """By how many points a method is better at one place than at another, on the same rows."""
        first, then = (self._found.get(name, {}).get(at, {}) for at in (before, after))
        both = sorted(first.keys() & then.keys())
        return [float(then[seed]["accuracy"]) - float(first[seed]["accuracy"]) for seed in both]

    def deviation_within(self, name: str, at: At, group: int) -> float | None:
        """The deviation of runs from the mean of their group; None where no group has two."""
        groups: dict[int, list[float]] = {}
        for seed, result in self._found.get(name, {}).get(at, {}).items():
            groups.setdefault(seed // group, []).append(float(result["accuracy"]))
        several = [np.var(values, ddof=1) for values in groups.values() if len(values) > 1]
        return math.sqrt(float(np.mean(several))) if several else None

    def rows_needed(self, name: str, percent: float) -> float:
        """The rows from which on the mean is not below so many percent; infinite if it never is."""
        means = {at: float(np.mean(self.values(name, at))) for at in self.places(name)}
        return reached(list(means), list(means.values()), percent)

    def saving(self, one: str, other: str, percent: float, group: int = 1) -> tuple[float, float, float]:
        """How many times as many rows the other needs, with the ends of a 95% interval by resampling.

        Groups of seeds are drawn with replacement, the same for both and at all places: seeds of one group share a
        tree, and runs of one seed share rows. What the other never reaches counts as the most rows that were
        tried, so the factor is at least that; where the one never does the factor is 0.
        """
        ours, theirs = (self._needed_again(name, percent, group) for name in (one, other))
        most = max(self.places(other), default=0.0)
        factors = [min(many, most) / few for few, many in zip(ours, theirs, strict=True)]
        low, high = np.quantile(factors[1:], (0.025, 0.975))
        return factors[0], float(low), float(high)

    def _needed_again(self, name: str, percent: float, group: int) -> list[float]:
        """The rows needed, first as they are and then for groups of seeds drawn again."""
        places = self.places(name)
        groups = sorted({seed // group for found in self._found.values() for at in found for seed in found[at]})
        drawn = np.ones((RESAMPLES + 1, len(groups)))
        if groups:
            drawn[1:] = np.random.default_rng(0).multinomial(len(groups), [1 / len(groups)] * len(groups), RESAMPLES)
        means = np.zeros((RESAMPLES + 1, len(places)))
        for column, at in enumerate(places):
            found = self._found[name][at]
            place = [groups.index(seed // group) for seed in found]
            values = np.array([float(result["accuracy"]) for result in found.values()])
            times = drawn[:, place]  # how often each run was drawn
            often = times.sum(axis=1)
            means[:, column] = np.where(often > 0, times @ values / np.maximum(often, 1), values.mean())
        return [reached(places, row, percent) for row in means.tolist()]


# -- for people -----------------------------------------------------------------------------------


def points(differences: Sequence[float]) -> str:
    """Differences for people."""
    if not differences:
        return "not run"
    found = Estimate.of(differences)
    return f"{found.mean:+.1f} ± {found.se:.1f} points"


def rows_text(needed: float) -> str:
    """Rows that are needed for something, for people."""
    return "more than were tried" if math.isinf(needed) else f"{needed:,.0f}"


def ahead_of(
    runs: Runs, pairs: Sequence[tuple[str, str]], where: Sequence[At], group: int = 1
) -> tuple[bool | None, str]:
    """Is the first of each pair ahead of the second on average over some places? And what was found."""
    gaps = {pair: runs.differences(*pair, where, group) for pair in pairs}
    told = "; ".join(f"{one} over {other} {points(gap)}" for (one, other), gap in gaps.items())
    place = ", ".join(amount(at) for at in where) or "no place"
    return all_of(positive(gap) for gap in gaps.values()), f"at {place}: {told}"


def in_order(runs: Runs, names: Sequence[str], where: Sequence[At], group: int = 1) -> tuple[bool | None, str]:
    """Is each of these ahead of the next?"""
    return ahead_of(runs, list(pairwise(names)), where, group)

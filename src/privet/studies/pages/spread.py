"""How repeats scatter: every one a dot on a scale that all algorithms share, with their mean and its interval.

Places are shares of the width, so that the picture is as sharp on a phone as on paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from privet.report.chart import Axis
from privet.studies.estimate import Estimate
from privet.studies.pages.group import Group
from privet.studies.pages.words import FEW, amount, ours_text, places

LANES, DOTS = 30, 60  # at most drawn


class Lane(NamedTuple):
    """The repeats of an algorithm: where they stand, in percent."""

    number: int  # of its group
    name: str
    private: bool
    chosen: bool
    heard: str
    level: str
    interval: tuple[str, str] | None  # where it begins, and how wide it is
    dots: Sequence[tuple[str, int]]
    mean: str
    said: str


class Spread(NamedTuple):
    """What `study_parts.html` shows of a place: a lane for each algorithm, the highest first."""

    title: str
    lanes: Sequence[Lane]
    ticks: Sequence[tuple[str, str]]
    hidden: int


def spread(title: str, among: Sequence[tuple[int, Group]], measure: str, axis: Axis, chosen: int) -> Spread:
    """Return a lane for each algorithm with its number among all groups."""
    ranked = [(number, group, each) for number, group in among if (each := group.estimate(measure)) is not None]
    ranked.sort(key=lambda lane: (-lane[2].mean, lane[0]))
    shown = ranked[:LANES] + [lane for lane in ranked[LANES:] if lane[0] == chosen]
    decimals = places([each for _, _, each in shown])
    lanes = [_lane(number, group, measure, axis, number == chosen, decimals) for number, group, _ in shown]
    ticks = [(f"{axis.at(tick):.2f}", amount(tick)) for tick in axis.ticks]
    return Spread(title, lanes, ticks, len(ranked) - len(shown))


def axis_of(among: Sequence[Group], measure: str) -> Axis:
    """Return one scale for all repeats of a data set: what moves when something else is picked has moved indeed."""
    numbers = [value for group in among for value in group.values(measure)]
    if measure == "accuracy":
        numbers += [value for group in among for value in group.values("majority")]
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
    air = 0.03 * (high - low) or 0.5
    return Axis(low - air, high + air, 0.0, 100.0)


def _lane(number: int, group: Group, measure: str, axis: Axis, chosen: bool, decimals: int | None) -> Lane:
    numbers = group.values(measure)
    estimate = Estimate.of(numbers)
    level = group.estimate("majority") if measure == "accuracy" else None
    interval = None
    if estimate.n >= FEW:
        low, high = axis.at(estimate.low), axis.at(estimate.high)
        interval = (f"{low:.2f}", f"{high - low:.2f}")
    heights = (50, 28, 72)  # apart, where they would lie on each other
    return Lane(
        number,
        group.algorithm,
        group.private,
        chosen,
        f"{estimate.n} repeats from {min(numbers):.4g} to {max(numbers):.4g}, mean {estimate.mean:.4g}",
        "" if level is None else f"{axis.at(level.mean):.2f}",
        interval,
        [(f"{axis.at(value):.2f}", heights[place % 3]) for place, value in enumerate(numbers[:DOTS])],
        f"{axis.at(estimate.mean):.2f}",
        ours_text(estimate, decimals),
    )

"""The plot of the README: accuracy against epsilon, ours, private peers, and the best without privacy.

Who promises pure epsilon stands in one row of panels, who promises epsilon and a delta in another: these are two
promises, and what keeps the weaker one is no rival of what keeps the stronger.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from bench.chart import LOOKS
from bench.summary import Place, Summary
from bench.trials import EPSILONS
from privet.report.chart import Axis, Frame, Look, Series, scale_of, sheet
from privet.report.svg import Drawing, join
from privet.studies.learners import BENCHED as LEARNERS
from privet.studies.pages.words import FEW, point_of

SETS = ("adult", "mushroom", "nursery2")
CEILINGS = ("xgboost", "xgboost-bins")
PROMISES = {  # whose name begins a row of panels
    "pure epsilon": ("boosted", "id3plus", "diffprivlib-forest", "diffprivlib-tree", *CEILINGS),
    "with a delta of 1e-6": ("boosted-delta", "noisy-gd", "dp-ebm-05", *CEILINGS),
}
SHOWN = tuple(dict.fromkeys(name for names in PROMISES.values() for name in names))

_ROW, _PANEL, _LEFT = 310, 340, 52


def epsilons(start: float, end: float) -> Axis:
    return Axis(float(EPSILONS[0]), float(EPSILONS[-1]), start, end, bend=math.log)


def line(summary: Summary, data: str, name: str, measure: str) -> Series | None:
    """A learner on a data set: its measure over epsilon, or one level where it is not private."""
    learner = LEARNERS[name]
    if not learner.private:
        level = summary.estimate(Place(data, name, ""), measure)
        if level is None:
            return None
        return Series(LOOKS[name], f"{learner.title}, not private", level=point_of(0.0, level))
    known = ((float(epsilon), summary.estimate(Place(data, name, epsilon), measure)) for epsilon in EPSILONS)
    points = [point_of(epsilon, each) for epsilon, each in known if each is not None]
    return Series(LOOKS[name], learner.title, points) if points else None


def majority(summary: Summary, data: str) -> Series | None:
    """The level of who always says the most frequent class."""
    known = (summary.estimate(place, "majority") for place in summary.places if place.data == data)
    level = max((each for each in known if each is not None), key=lambda each: each.n, default=None)
    if level is None:
        return None
    return Series(LOOKS["majority"], "always the most frequent class", level=point_of(0.0, level))


def lines(summary: Summary, data: str, names: Iterable[str], measure: str) -> list[Series]:
    found = [line(summary, data, name, measure) for name in names]
    return [each for each in found if each is not None]


def frontier(summary: Summary) -> str:
    """The plot as a file of its own, for light and dark paper; nothing where nothing was measured."""
    drawn, shown = [], []
    sets = [data for data in SETS if lines(summary, data, SHOWN, "accuracy")]
    for row, (promise, names) in enumerate(PROMISES.items()):
        for at, data in enumerate(sets):
            least = majority(summary, data)
            every = [*lines(summary, data, SHOWN, "accuracy"), *([] if least is None else [least])]
            found = [*lines(summary, data, names, "accuracy"), *([] if least is None else [least])]
            known = {each.title for each in found}
            shown += [name for name in (*names, "majority") if entry(name)[1] in known or name == "majority"]
            left, top = _LEFT + at * _PANEL, row * _ROW
            x = epsilons(left, left + _PANEL - 64)
            y = scale_of(every, top + 248, top + 38, ceiling=1.0)  # both rows have the scale of all that is shown
            title = f"{data}, {promise}" if row else f"{data}, {summary.facts(data)['rows']:,} rows, {promise}"
            drawn.append(Frame(x, y, title, "epsilon", lambda share: f"{100 * share:g}%").drawn(found))
    width, height = _LEFT + max(len(sets), 2) * _PANEL - 52, len(PROMISES) * _ROW
    panels = Drawing(width, height, join(drawn), f"Test accuracy against epsilon: {', '.join(sets)}")
    told_once = [name for name in dict.fromkeys(shown) if name != "boosted-delta" or "boosted" not in shown]
    return sheet(
        f"Accuracy on rows never seen, with 95% intervals from {FEW} repeats on", "", [panels], map(entry, told_once)
    )


def entry(name: str) -> tuple[Look, str]:
    """How a learner is drawn, and what it is called."""
    if name == "majority":
        return LOOKS[name], "majority class"
    learner = LEARNERS[name]
    return LOOKS[name], f"{learner.title}{'' if learner.private else ', not private'}"

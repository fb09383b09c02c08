"""The plot of the README: accuracy against epsilon, ours, private peers, and the best without privacy.

Who promises pure epsilon stands in one row of panels, who promises epsilon and a delta in another: these are two
promises, and what keeps the weaker one is no rival of what keeps the stronger.
"""

from __future__ import annotations

from collections.abc import Iterable

from bench.chart import LOOKS, STYLE
from bench.summary import Place, Summary
from bench.trials import EPSILONS
from privet.studies.learners import BENCHED as LEARNERS
from privet.studies.pages.frame import FEW, Frame, Line, scale
from privet.studies.pages.look import sample
from privet.trees.axis import Axis
from privet.trees.layout import safe

SETS = ("adult", "mushroom", "nursery2")
CEILINGS = ("xgboost", "xgboost-bins")
PROMISES = {  # whose name begins a row of panels
    "pure epsilon": ("boosted", "id3plus", "diffprivlib-forest", "diffprivlib-tree", *CEILINGS),
    "with a delta of 1e-6": ("boosted-delta", "noisy-gd", "dp-ebm-05", *CEILINGS),
}
SHOWN = tuple(dict.fromkeys(name for names in PROMISES.values() for name in names))

_PAPER = """
:root { --ink: #1d2a22; --soft: #5d6b62; --line: #dfe5e0; --card: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ece7; --soft: #9aa89f; --line: #2f3b35; --card: #141a17; } }
.paper { fill: var(--card); stroke: var(--line); }
"""
_ROW, _PANEL, _LEFT = 310, 340, 52


def epsilons(start: float, end: float) -> Axis:
    return Axis(float(EPSILONS[0]), float(EPSILONS[-1]), start, end, end, log=True)


def line(summary: Summary, data: str, name: str, measure: str) -> Line | None:
    """A learner on a data set: its measure over epsilon, or one level where it is not private."""
    learner = LEARNERS[name]
    if not learner.private:
        level = summary.estimate(Place(data, name, ""), measure)
        return None if level is None else Line(LOOKS[name], f"{learner.title}, not private", (), level)
    known = ((float(epsilon), summary.estimate(Place(data, name, epsilon), measure)) for epsilon in EPSILONS)
    points = [(epsilon, each) for epsilon, each in known if each is not None]
    return Line(LOOKS[name], learner.title, points) if points else None


def majority(summary: Summary, data: str) -> Line | None:
    """The level of who always says the most frequent class."""
    known = (summary.estimate(place, "majority") for place in summary.places if place.data == data)
    level = max((each for each in known if each is not None), key=lambda each: each.n, default=None)
    return None if level is None else Line(LOOKS["majority"], "always the most frequent class", (), level)


def lines(summary: Summary, data: str, names: Iterable[str], measure: str) -> list[Line]:
    found = [line(summary, data, name, measure) for name in names]
    return [each for each in found if each is not None]


def frontier(summary: Summary) -> str:
    """The plot as a file of its own, for light and dark paper; nothing where nothing was measured."""
    drawn, shown = "", set()
    sets = [data for data in SETS if lines(summary, data, SHOWN, "accuracy")]
    for row, (promise, names) in enumerate(PROMISES.items()):
        for at, data in enumerate(sets):
            least = majority(summary, data)
            every = [*lines(summary, data, SHOWN, "accuracy"), *([] if least is None else [least])]
            found = [*lines(summary, data, names, "accuracy"), *([] if least is None else [least])]
            shown |= {each.look.name for each in found}
            left, top = _LEFT + at * _PANEL, row * _ROW
            x = epsilons(left, left + _PANEL - 64)
            y = scale(every, top + 268, top + 58, ceiling=1.0)  # both rows have the scale of all that is shown
            title = f"{data}, {promise}" if row else f"{data}, {summary.facts(data)['rows']:,} rows, {promise}"
            drawn += Frame(x, y, title, "epsilon", lambda share: f"{100 * share:g}%").drawn(found)
    width, height = _LEFT + max(len(sets), 2) * _PANEL - 52, len(PROMISES) * _ROW + 20
    key, rows_of_key = _key([name for name in (*SHOWN, "majority") if name in shown], width, height)
    height += 24 * rows_of_key + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="Test accuracy against epsilon: {safe(", ".join(sets), 200)}">'
        f"<style>{_PAPER}{STYLE}</style>"
        f'<rect class="paper" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>'
        f'<text class="label" x="{_LEFT - 4}" y="20">Accuracy on rows never seen, with 95% intervals from {FEW} '
        "repeats on</text>"
        f"{drawn}{key}</svg>\n"
    )


def _key(names: list[str], width: int, top: int) -> tuple[str, int]:
    """What is drawn how, in as many rows as it takes."""
    told_once = [name for name in names if name != "boosted-delta"]  # drawn as boosted, in panels of its own
    names = told_once if "boosted" in names else names
    titles = {
        name: f"{learner.title}{'' if learner.private else ', not private'}" for name, learner in LEARNERS.items()
    }
    titles |= {"majority": "majority class"}
    told, left, row = "", float(_LEFT), 0
    for name in names:
        needed = 52 + 6.4 * len(titles[name])
        if left + needed > width and left > _LEFT:
            left, row = float(_LEFT), row + 1
        told += f'<g transform="translate({left + 14:.1f} {top + 4 + 24 * row})">{sample(LOOKS[name])}'
        told += f'<text class="label" x="21" y="4">{safe(titles[name], 60)}</text></g>'
        left += needed
    return told, row + 1

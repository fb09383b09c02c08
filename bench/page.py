"""The page of the benchmark: a function of what was recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import data
from bench.chart import LOOKS
from bench.frontier import entry, epsilons, lines, majority
from bench.result import Result
from bench.split import GROWTH
from bench.summary import Place, Summary
from bench.trials import EPSILONS, PEERS_ROWS, ROWS
from privet.report import chart, rendering
from privet.report.chart import Axis, Frame, Series, power_of_ten, scale_of
from privet.report.svg import Drawing
from privet.studies.estimate import Estimate
from privet.studies.learners import BENCHED as LEARNERS
from privet.studies.pages.words import FEW, point_of

TITLES = {
    "accuracy": "accuracy",
    "auroc": "area under the ROC curve",
    "log loss": "log loss (less is better)",
    "miscalibration": "how far shares are from truth (less is better)",
}
LESS = ("log loss", "miscalibration")  # is better
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 452, 34, 262  # the frame of a figure, of 468 x 312

Figure = tuple[Drawing, str]  # and what stands below it


class Cell(NamedTuple):
    """A number of a table, and what stands small beside it."""

    text: str
    small: str = ""
    best: bool = False
    span: int = 1


class Table(NamedTuple):
    """Heads, and of each row its name and numbers."""

    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]


class DataSet(NamedTuple):
    """What was measured on a data set."""

    name: str
    about: str
    size: str
    figures: Sequence[Figure]
    tables: Sequence[Table]


class Growth(NamedTuple):
    """What more and more rows cost."""

    figures: Sequence[Figure]
    tables: Sequence[Table]


def page(summary: Summary, results: Sequence[Result], command: str) -> str:
    """A whole page about what was measured."""
    sets = [name for name in data.names() if any(place.data == name for place in summary.places)]
    used = {place.learner for place in summary.places}
    names = [name for name in LEARNERS if name in used]
    bound = [result for result in results if result.bound is not None]
    return rendering.page(
        "page.html",
        "privet and its peers",
        folder=Path(__file__).parent,
        bound=bound,
        missed=[result for result in bound if not result.holds],
        key=chart.key(map(entry, [*names, *["majority"] * bool(names)])),
        sets=[_data(summary, name) for name in sets],
        costs={
            "fit": _cost(summary, sets, "fit", "CPU seconds of a fit"),
            "predict": _cost(summary, sets, "predict", "CPU seconds to predict the tenth"),
            "memory": _cost(summary, sets, "memory", "MB at the peak of a fit, above before"),
        },
        growth=_growth(summary),
        peers_rows=PEERS_ROWS,
        results=results,
        versions=", ".join(summary.versions()),
        few=FEW,
        command=command,
    )


# -- one data set -----------------------------------------------------------------------------


def _data(summary: Summary, name: str) -> DataSet:
    facts = summary.facts(name)
    size = f"{facts['rows']:,} rows, {facts['attributes']} attributes, {facts['classes']} classes"
    figures = [_figure(summary, name, measure, delta) for measure in TITLES for delta in (False, True)]
    tables = [_numbers(summary, name, measure) for measure in TITLES]
    return DataSet(name, data.about(name), size, [each for each in figures if each is not None], tables)


def _figure(summary: Summary, name: str, measure: str, delta: bool) -> Figure | None:
    """A measure against epsilon: of who promises pure epsilon, or epsilon and a delta."""
    names = [other for other in LEARNERS if (other, measure) != ("prior", "auroc")]  # one half, always
    every = lines(summary, name, names, measure)
    found = lines(summary, name, [other for other in names if _beside(other, delta)], measure)
    if not any(line.points for line in found):
        return None
    least = majority(summary, name) if measure == "accuracy" else None
    found, every = ([*drawn, *([] if least is None else [least])] for drawn in (found, every))
    ceiling = _ceiling(summary, name) if measure == "log loss" else 1.0
    y = scale_of(every, _BOTTOM, _TOP, ceiling=ceiling)
    shares = measure in ("accuracy", "miscalibration")
    tell: Callable[[float], str] = (lambda share: f"{100 * share:g}%") if shares else "{:g}".format
    title = f"{TITLES[measure].split(' (')[0]}, {'with a delta' if delta else 'pure epsilon'}"
    frame = Frame(epsilons(_LEFT, _RIGHT), y, title, "epsilon", tell)
    highest = {line.title: max((point.y for point in line.points), default=0.0) for line in found}
    off = ", ".join(f"{title} up to {high:.2g}" for title, high in highest.items() if high > y.high)
    caption = f"Above the scale: {off}." if off else ""
    return Drawing(468, 312, frame.drawn(found), f"{title} against epsilon, {name}"), caption


def _beside(name: str, delta: bool) -> bool:
    """Whether a learner is drawn in the figure of this promise; what is not private stands in both."""
    return not LEARNERS[name].private or LEARNERS[name].delta == delta


def _ceiling(summary: Summary, name: str) -> float:
    """A log loss far above that of the class counts alone is worse than no model, and would flatten all others."""
    known = [summary.estimate(Place(name, "prior", epsilon), "log loss") for epsilon in EPSILONS]
    return 1.5 * min((each.mean for each in known if each is not None), default=1.0)


def _numbers(summary: Summary, name: str, measure: str) -> Table:
    """Means and half widths of the intervals, a learner a row; the best private mean of each epsilon is bold."""
    known = {
        (learner, epsilon): each
        for learner in LEARNERS
        for epsilon in (*EPSILONS, "")
        if (each := summary.estimate(Place(name, learner, epsilon), measure)) is not None
    }
    shown = [epsilon for epsilon in EPSILONS if any(at == epsilon for _, at in known)]
    best = {
        epsilon: (min if measure in LESS else max)(each.mean for (_, at), each in known.items() if at == epsilon)
        for epsilon in shown
    }
    rows = []
    for learner in dict.fromkeys(learner for learner, _ in known):
        if not LEARNERS[learner].private:
            each = known[learner, ""]
            cells = [Cell(f"{each.mean:.3f}", f"± {each.half:.3f}, not private", span=len(shown))]
        else:
            cells = [_told(known.get((learner, epsilon)), best[epsilon]) for epsilon in shown]
        rows.append((LEARNERS[learner].title, cells))
    return Table([TITLES[measure], *shown], rows)


def _told(each: Estimate | None, best: float) -> Cell:
    return Cell("") if each is None else Cell(f"{each.mean:.3f}", f"± {each.half:.3f}", each.mean == best)


# -- what it costs ----------------------------------------------------------------------------


def _cost(summary: Summary, sets: Sequence[str], measure: str, words: str) -> Table:
    known = {
        (name, learner): each
        for name in sets
        for learner in LEARNERS
        if (each := _at_one(summary, Place(name, learner, ""), measure)) is not None
    }
    rows = []
    for learner in dict.fromkeys(learner for _, learner in known):
        cells = [_beside_ours(known.get((name, learner)), known.get((name, "boosted"))) for name in sets]
        rows.append((LEARNERS[learner].title, cells))
    return Table([words, *sets], rows)


def _at_one(summary: Summary, place: Place, measure: str) -> Estimate | None:
    epsilon = "1" if LEARNERS[place.learner].private else ""
    return summary.estimate(Place(place.data, place.learner, epsilon, place.rows), measure)


def _amount(each: Estimate) -> str:
    return f"{each.mean:.4f}" if each.mean < 0.01 else f"{each.mean:.3g}" if each.mean < 100 else f"{each.mean:,.0f}"


def _beside_ours(each: Estimate | None, ours: Estimate | None) -> Cell:
    """An amount, and what multiple it is of ours."""
    if each is None:
        return Cell("")
    if ours is None or ours.mean <= 0 or each is ours:
        return Cell(_amount(each))
    return Cell(_amount(each), f"({each.mean / ours.mean:.2g}x)")


def _growth(summary: Summary) -> Growth | None:
    if not any(place.data == GROWTH for place in summary.places):
        return None
    figures, tables = [], []
    for measure, words in (("fit", "CPU seconds of a fit"), ("memory", "MB at the peak, above the rows")):
        found = _grown(summary, measure)
        if found:
            x = Axis(ROWS[0] / 1.3, ROWS[-1] * 1.3, _LEFT, _RIGHT, bend=math.log)
            y = scale_of(found, _BOTTOM, _TOP, log=True)
            frame = Frame(x, y, words, "rows", "{:g}".format, power_of_ten)
            figures.append((Drawing(468, 312, frame.drawn(found), f"{words} against rows"), ""))
        tables.append(_sizes(summary, measure, words))
    return Growth(figures, tables)


def _grown(summary: Summary, measure: str) -> list[Series]:
    found = []
    for name, learner in LEARNERS.items():
        known = ((rows, _at_one(summary, Place(GROWTH, name, "", rows), measure)) for rows in ROWS)
        points = [point_of(float(rows), each) for rows, each in known if each is not None and each.mean > 0]
        if points:
            found.append(Series(LOOKS[name], learner.title, points))
    return found


def _sizes(summary: Summary, measure: str, words: str) -> Table:
    rows = []
    for learner in LEARNERS:
        known = [_at_one(summary, Place(GROWTH, learner, "", count), measure) for count in ROWS]
        ours = [_at_one(summary, Place(GROWTH, "boosted", "", count), measure) for count in ROWS]
        if any(known):
            beside = [None] * len(ROWS) if learner == "boosted" else ours
            cells = [_beside_ours(each, mine) for each, mine in zip(known, beside, strict=True)]
            rows.append((LEARNERS[learner].title, cells))
    return Table([words, *(f"{power_of_ten(count)} rows" for count in ROWS)], rows)


def facts(summary: Summary) -> Mapping[str, Mapping[str, object]]:
    """What is known of every data set, for JSON."""
    told = {}
    for name in data.names():
        if any(place.data == name for place in summary.places):
            known = summary.facts(name)
            told[name] = {
                "about": data.about(name),
                **{each: known[each] for each in ("rows", "attributes", "classes")},
            }
    return told

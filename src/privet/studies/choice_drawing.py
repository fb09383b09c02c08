"""Pictures of the study of choice: where each learner wins, and what choosing costs.

They are functions of the report and run nothing again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from privet.choice.arms import DEFAULT
from privet.report.chart import Axis, ChartPoint, Frame, Look, Series, root
from privet.report.svg import MINUS, Drawing, join, rect, text

BINS = "generated tables, points ahead of the default by rows times epsilon for each class"
REGRET = "public tables, regret in points"

FEW = 10  # runs of a bin below which a band says nothing and is not drawn
WORST, BEST, CEILING = -20, 8, 20  # points ahead, and points of regret, between which differences can be seen
NEXT = 3  # arms whose regret is drawn beside that of the default
WIDTH = 920  # of the paper
LEFT, RIGHT, TOP, BOTTOM = 58, 682, 106, 486  # the frame; the labels stand right of it

LOOKS = {  # the deeper a tree, the stronger its colour
    "prior": Look("s8", "open plus", dash="2 4"),
    "id3plus max 1": Look("s3", "circle", strength=0.5),
    "id3plus max 2": Look("s3", "square", strength=0.65),
    "id3plus max 3": Look("s3", "triangle", strength=0.85),
    "id3plus max 5": Look("s3", "diamond"),
    "id3plus gini 2": Look("s4", "square", dash="7 3", strength=0.7),
    "id3plus gini 3": Look("s4", "triangle", dash="7 3"),
    "naive-bayes": Look("s2", "cross"),
    "boosted": Look("s1", "circle", 3.2),
    "policy": Look("ink", "diamond", 4),
    "random arm": Look("s8", "cross", dash="2 4"),
    "other": Look("s5", "open plus"),
}


def _series(name: str, title: str, points: list[ChartPoint], end: str = "") -> Series:
    """A report can name anything, but only names that stand above have a look."""
    return Series(LOOKS.get(name, LOOKS["other"]), title, points, end=end)


def _signed(value: float) -> str:
    return f"{value:+.0f}".replace("-", MINUS) if round(value) else "0"


def _sheet(height: int, title: str, subtitle: str, *drawn: Any) -> str:
    shapes = [rect(0.5, 0.5, WIDTH - 1, height - 1, "sheet", rx=8), text(20, 34, title, "head"), text(20, 57, subtitle)]
    return Drawing(WIDTH, height, join([*shapes, *drawn]), f"{title}: {subtitle}").file("colours", "charts") + "\n"


def where_arms_win(content: Mapping[str, Any]) -> str:
    """Return points ahead of the default over rows times epsilon for each class, as an SVG; empty without bins.

    Lines that fall far behind leave the picture below, so that small differences can be seen; none leaves it above.
    """
    bins = content[BINS]
    if not bins:
        return ""
    # The first bin has no lower end and the last no upper one: they are drawn as wide as the others.
    ends = [(each["from"] or each["to"] / 3, each["to"] or each["from"] * 3) for each in bins]
    middles = [math.sqrt(low * high) for low, high in ends]
    best = max(value for each in bins for value in each["ahead"].values())
    top = max(BEST, math.ceil(best) + 1)
    x = Axis(ends[0][0], ends[-1][1], LEFT, RIGHT, bend=math.log, clamped=False)
    edges = [end for each in bins for end in (each["from"], each["to"]) if end]
    frame = Frame(
        x,
        Axis(WORST, top, BOTTOM, TOP, clamped=False),
        f"points ahead of boosted; lines that fall below {_signed(WORST)} leave the picture",
        "rows times epsilon for each class",
        _signed,
        "{:,}".format,
        edges,
        range(WORST, top + 1, 5),
        clips=True,
    )
    runs = [each["runs"] for each in bins]
    lines = []
    for arm in sorted(bins[0]["ahead"], key=lambda arm: str(arm) == DEFAULT):  # the line at zero lies below the others
        points = []
        for at, each in zip(middles, bins, strict=True):
            ahead, half, few = each["ahead"][arm], 2 * each["standard error"][arm], each["runs"] < FEW
            points.append(ChartPoint(at, ahead, ahead - half, ahead + half, "", not few, few))
        lines.append(_series(arm, arm, points))
    below = [text(x.at(at), BOTTOM + 68, f"{n:,}", "mid") for at, n in zip(middles, runs, strict=True)]
    few = f"; pale marks: fewer than {FEW} runs" if min(runs) < FEW else ""
    measure = content["objective"].replace("auc", "AUC")
    told = f"Points of {measure} ahead of boosted tables on {sum(runs):,} generated runs, ±2 standard errors{few}"
    drawn = [frame.drawn(lines), frame.ends(lines), text(LEFT - 8, BOTTOM + 68, "runs", "end"), *below]
    return _sheet(BOTTOM + 88, "Where each learner wins", told, *drawn)


def regret_by_epsilon(content: Mapping[str, Any]) -> str:
    """Return points below the best arm in hindsight over epsilon, as an SVG; empty without public tables."""
    public = content.get(REGRET)
    if public is None:
        return ""
    ways, default = public["ways"], f"always {DEFAULT}"
    fixed = sorted(
        (float(row["mean"]), way) for way, row in ways.items() if way.startswith("always ") and way != default
    )
    shown = ["policy", default, *(way for _, way in fixed[:NEXT]), "random arm"]
    epsilons = {float(epsilon): epsilon for epsilon in public["epsilons"]}
    values = [value for way in shown for value in ways[way]["by epsilon"]]
    top = min(CEILING, max(1.0, 1.1 * max(values)))
    above = f"; lines above {CEILING} leave the picture" if max(values) > CEILING else ""
    frame = Frame(
        Axis(min(epsilons) / 1.2, max(epsilons) * 1.2, LEFT, RIGHT, bend=math.log),
        Axis(min(0.0, *values), top, BOTTOM, TOP, bend=root, clamped=False),
        f"points of regret, on a square-root scale{above}",
        "epsilon",
        tell_x=epsilons.__getitem__,
        ticks=list(epsilons),
        ticks_up=[tick for tick in (0, 0.2, 0.5, 1, 2, 3, 5, 7, 10, 15, 20) if tick <= top],
        clips=True,
    )
    lines = []
    for way in shown:
        points = [ChartPoint(at, y, y, y) for at, y in zip(epsilons, ways[way]["by epsilon"], strict=True)]
        lines.append(_series(way.removeprefix("always "), way, points, f"{way}, {ways[way]['mean']:.1f}"))
    measure = content["objective"].replace("auc", "AUC")
    told = f"Points of {measure} below the best learner in hindsight on public tables; beside each name its mean"
    return _sheet(BOTTOM + 64, "What choosing costs", told, frame.drawn(lines), frame.ends(lines))

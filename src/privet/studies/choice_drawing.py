"""Pictures of the study of choice: where each learner wins, and what choosing costs.

They are functions of the report and run nothing again. Colours are classes, so that one drawing serves light and dark
paper, and what a colour says, a mark says too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from privet.choice.arms import DEFAULT
from privet.trees.layout import safe

MINUS = "\u2212"
Bend = Callable[[float], float]

BINS = "generated tables, points ahead of the default by rows times epsilon for each class"
REGRET = "public tables, regret in points"

FEW = 10  # runs of a bin below which a band says nothing and is not drawn
WORST, BEST, CEILING = -20, 8, 20  # points ahead, and points of regret, between which differences can be seen
NEXT = 3  # arms whose regret is drawn beside that of the default
WIDTH, GAP = 920, 20  # of the paper, and between two labels
LEFT, RIGHT, TOP, BOTTOM = 58, 682, 106, 486  # the frame; the labels stand right of it


class Look(NamedTuple):
    light: str
    dark: str
    mark: str
    width: float = 1.8
    dash: str = "none"


_CIRCLE, _SQUARE = '<circle r="3.8"/>', '<path d="M-3.4 -3.4H3.4V3.4H-3.4Z"/>'
_TRIANGLE, _DIAMOND = '<path d="M0 -4.6L4.3 3.4H-4.3Z"/>', '<path d="M0 -4.8L4.8 0L0 4.8L-4.8 0Z"/>'
_PLUS, _CROSS = '<path class="open" d="M-4 0H4M0 -4V4"/>', '<path class="open" d="M-3 -3L3 3M-3 3L3 -3"/>'

LOOKS = {  # the deeper a tree, the stronger its colour
    "prior": Look("#7b877f", "#8d9a92", _PLUS, 1.8, "2 4"),
    "id3plus max 1": Look("#7fb2e5", "#46719c", _CIRCLE),
    "id3plus max 2": Look("#4a8fd3", "#6a9fd6", _SQUARE),
    "id3plus max 3": Look("#2567a8", "#94c2f2", _TRIANGLE),
    "id3plus max 5": Look("#143d68", "#cfe4fb", _DIAMOND),
    "id3plus gini 2": Look("#b573c9", "#a86bc0", _SQUARE, 1.8, "7 3"),
    "id3plus gini 3": Look("#7d2f96", "#dba6ee", _TRIANGLE, 1.8, "7 3"),
    "naive-bayes": Look("#c2540a", "#ff9d52", _CROSS),
    "boosted": Look("#1d7a46", "#5fd08f", _CIRCLE, 3.2),
    "policy": Look("#1d2a22", "#e6ece7", _DIAMOND, 4),
    "random arm": Look("#7b877f", "#8d9a92", _CROSS, 1.8, "2 4"),
    "other": Look("#8a6d3b", "#cbb184", _PLUS),
}


def _colours(paper: int) -> str:
    return "\n".join(f".{name.replace(' ', '-')} {{ color: {look[paper]}; }}" for name, look in LOOKS.items())


_STYLE = f"""
:root {{ --ink: #1d2a22; --soft: #5d6b62; --line: #dfe5e0; --card: #ffffff; }}
{_colours(0)}
@media (prefers-color-scheme: dark) {{
:root {{ --ink: #e6ece7; --soft: #9aa89f; --line: #2f3b35; --card: #141a17; }}
{_colours(1)}
}}
text {{ font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--soft); }}
.title {{ font-size: 18px; font-weight: 600; fill: var(--ink); }} .label {{ fill: var(--ink); }}
.bold {{ font-weight: 600; fill: var(--ink); }} .paper {{ fill: var(--card); stroke: var(--line); }}
.grid {{ stroke: var(--line); }} .axis {{ stroke: var(--soft); }} .few {{ opacity: .4; }}
.line {{ fill: none; stroke: currentColor; stroke-linejoin: round; }} .band {{ fill: currentColor; opacity: .12; }}
.mark {{ fill: currentColor; stroke: var(--card); }} .open {{ stroke: currentColor; stroke-width: 2; }}
.lead {{ fill: none; stroke: currentColor; opacity: .45; }}
"""


def _scale(low: float, high: float, start: float, end: float, bend: Bend = float) -> Bend:
    """Numbers from low to high on paper from start to end; what is beyond them is beyond the frame."""
    first, last = bend(low), bend(high)
    return lambda value: round(start + (end - start) * (bend(value) - first) / (last - first), 1)


class Point(NamedTuple):
    x: float
    y: float
    half: float = 0.0  # the half width of the band
    few: bool = False


@dataclass(frozen=True)
class Line:
    name: str
    title: str
    points: Sequence[Point]

    @property
    def known(self) -> str:
        """A report can name anything, but only names that stand above become part of a style."""
        return self.name if self.name in LOOKS else "other"

    def coloured(self, drawn: str) -> str:
        return f'<g class="{self.known.replace(" ", "-")}">{drawn}</g>'

    def stroke(self, path: str) -> str:
        look = LOOKS[self.known]
        return f'<path class="line" stroke-width="{look.width}" stroke-dasharray="{look.dash}" d="{path}"/>'

    def mark(self, x: float, y: float, kind: str = "mark") -> str:
        return f'<g class="{kind}" transform="translate({x} {y})">{LOOKS[self.known].mark}</g>'


@dataclass(frozen=True)
class Frame:
    """Scales with lines in them, each with a label at its end."""

    x: Bend
    y: Bend

    def scales(self, across: Mapping[float, str], up: Mapping[float, str], x_label: str, y_label: str) -> str:
        middle = (LEFT + RIGHT) / 2
        drawn = _text(20, TOP - 18, y_label, "label") + _text(middle, BOTTOM + 44, x_label, "label", "middle")
        for at, told in ((self.y(value), told) for value, told in up.items()):
            drawn += f'<path class="grid" d="M{LEFT} {at}H{RIGHT}"/>' + _text(LEFT - 8, at + 4.5, told, "", "end")
        for at, told in ((self.x(value), told) for value, told in across.items()):
            drawn += f'<path class="axis" d="M{at} {BOTTOM}v5"/>' + _text(at, BOTTOM + 20, told, "", "middle")
        return f'{drawn}<path class="axis" d="M{LEFT} {BOTTOM}H{RIGHT}"/>'

    def lines(self, lines: Sequence[Line]) -> str:
        """The last one on top; an inner SVG cuts off what leaves the frame."""
        across, down = RIGHT - LEFT, BOTTOM - TOP
        place = f'x="{LEFT}" y="{TOP}" width="{across}" height="{down}" viewBox="{LEFT} {TOP} {across} {down}"'
        inside = "".join(map(self._band, lines)) + "".join(map(self._line, lines))
        return f"<svg {place}>{inside}</svg>{self._labels(lines)}"

    def _path(self, *points: tuple[float, float]) -> str:
        return "M" + "L".join(f"{self.x(x)} {self.y(y)}" for x, y in points)

    def _band(self, line: Line) -> str:
        drawn = ""
        for one, two in pairwise(line.points):
            if not (one.few or two.few):
                edge = [(p.x, p.y + p.half) for p in (one, two)] + [(p.x, p.y - p.half) for p in (two, one)]
                drawn += f"{self._path(*edge)}Z"
        return line.coloured(f'<path class="band" d="{drawn}"/>') if drawn else ""

    def _line(self, line: Line) -> str:
        marks = (line.mark(self.x(p.x), self.y(p.y), "mark few" if p.few else "mark") for p in line.points)
        return line.coloured(line.stroke(self._path(*((p.x, p.y) for p in line.points))) + "".join(marks))

    def _labels(self, lines: Sequence[Line]) -> str:
        """One below the other in the order of the ends, each as near to its end as the others allow."""
        order = sorted(lines, key=lambda line: -line.points[-1].y)
        drawn, free = "", float(TOP)
        for place, line in enumerate(order, start=1):
            end, title, lead = line.points[-1], line.title, ""
            x, y = self.x(end.x), self.y(end.y)
            height = max(free, min(y, BOTTOM - GAP * (len(order) - place)))
            free = height + GAP
            if TOP <= y <= BOTTOM:
                lead = f'<path class="lead" d="M{x + 6:g} {y}H{RIGHT}L{RIGHT + 14} {height:g}"/>'
            else:
                title += f" {'↓' if y > BOTTOM else '↑'} {end.y:.0f}".replace("-", MINUS)
            sample = line.stroke(f"M{RIGHT + 16} {height:g}h28") + line.mark(RIGHT + 30, height)
            kind = "bold" if LOOKS[line.known].width > 3 else "label"
            drawn += line.coloured(lead + sample + _text(RIGHT + 50, height + 4.5, title, kind, most=28))
        return drawn


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start", most: int = 140) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{safe(words, most)}</text>'


def _signed(value: float) -> str:
    return f"{value:+.0f}".replace("-", MINUS) if round(value) else "0"


def _root(value: float) -> float:
    """It spreads what is small, as a logarithm does, and has a place for zero and what chance puts below it."""
    return math.copysign(math.sqrt(abs(value)), value)


def _paper(height: int, title: str, subtitle: str, drawn: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        f' role="img" aria-label="{safe(f"{title}: {subtitle}")}"><style>{_STYLE}</style>'
        f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>'
        f"{_text(20, 34, title, 'title')}{_text(20, 57, subtitle)}{drawn}</svg>\n"
    )


def where_arms_win(content: Mapping[str, Any]) -> str:
    """Points ahead of the default over rows times epsilon for each class, as an SVG; empty without bins.

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
    frame = Frame(_scale(ends[0][0], ends[-1][1], LEFT, RIGHT, math.log), _scale(WORST, top, BOTTOM, TOP))
    runs = [each["runs"] for each in bins]
    lines = []
    for arm in sorted(bins[0]["ahead"], key=lambda arm: str(arm) != DEFAULT):  # the line at zero lies below the others
        ahead, half = [each["ahead"][arm] for each in bins], [2 * each["standard error"][arm] for each in bins]
        lines.append(Line(arm, arm, list(map(Point, middles, ahead, half, (n < FEW for n in runs)))))
    scales = frame.scales(
        {end: f"{end:,}" for each in bins for end in (each["from"], each["to"]) if end},
        {tick: _signed(tick) for tick in range(WORST, top + 1, 5)},
        "rows times epsilon for each class",
        f"points ahead of boosted; lines that fall below {_signed(WORST)} leave the picture",
    )
    below = [_text(frame.x(x), BOTTOM + 68, f"{n:,}", "", "middle") for x, n in zip(middles, runs, strict=True)]
    few = f"; pale marks: fewer than {FEW} runs" if min(runs) < FEW else ""
    measure = content["objective"].replace("auc", "AUC")
    told = f"Points of {measure} ahead of boosted tables on {sum(runs):,} generated runs, ±2 standard errors{few}"
    drawn = scales + _text(LEFT - 8, BOTTOM + 68, "runs", "", "end") + "".join(below) + frame.lines(lines)
    return _paper(BOTTOM + 88, "Where each learner wins", told, drawn)


def regret_by_epsilon(content: Mapping[str, Any]) -> str:
    """Points below the best arm in hindsight over epsilon, as an SVG; empty without public tables."""
    public = content.get(REGRET)
    if public is None:
        return ""
    ways, default = public["ways"], f"always {DEFAULT}"
    fixed = sorted(
        (float(row["mean"]), way) for way, row in ways.items() if way.startswith("always ") and way != default
    )
    shown = ["random arm", *(way for _, way in reversed(fixed[:NEXT])), default, "policy"]
    epsilons = {float(epsilon): epsilon for epsilon in public["epsilons"]}
    values = [value for way in shown for value in ways[way]["by epsilon"]]
    top = min(CEILING, max(1.0, 1.1 * max(values)))
    x = _scale(min(epsilons) / 1.2, max(epsilons) * 1.2, LEFT, RIGHT, math.log)
    frame = Frame(x, _scale(min(0.0, *values), top, BOTTOM, TOP, _root))
    ticks = {tick: f"{tick:g}" for tick in (0, 0.2, 0.5, 1, 2, 3, 5, 7, 10, 15, 20) if tick <= top}
    above = f"; lines above {CEILING} leave the picture" if max(values) > CEILING else ""
    scales = frame.scales(epsilons, ticks, "epsilon", f"points of regret, on a square-root scale{above}")
    lines = []
    for way in shown:
        points = list(map(Point, epsilons, ways[way]["by epsilon"]))
        lines.append(Line(way.removeprefix("always "), f"{way}, {ways[way]['mean']:.1f}", points))
    measure = content["objective"].replace("auc", "AUC")
    told = f"Points of {measure} below the best learner in hindsight on public tables; beside each name its mean"
    return _paper(BOTTOM + 64, "What choosing costs", told, scales + frame.lines(lines))

"""Lines with their 95% bands in a frame: what the page and the plot of the README are drawn with.

The scales are those of `privet.verification`; colours are classes, so that one drawing serves light and dark paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.summary import Estimate
from privet.trees.layout import safe
from privet.verification.marks import Axis

FEW = 3  # repeats below which an interval says nothing and is not drawn


@dataclass(frozen=True)
class Look:
    """How a learner is drawn everywhere: what its colour says, its mark and its dashes say too."""

    light: str
    dark: str
    mark: str
    width: float = 1.8
    dash: str = ""


LOOKS = {
    "boosted": Look("#1d7a46", "#5fd08f", '<circle r="4"/>', 3.2),
    "id3plus": Look("#2567a8", "#7db5ee", '<path d="M-3.6 -3.6H3.6V3.6H-3.6Z"/>'),
    "naive-bayes": Look("#5b7f95", "#9cc3d8", '<path d="M0 -4.4L4.2 3.4H-4.2Z"/>', 1.5),
    "diffpid3": Look("#4a5bb5", "#a3b0f5", '<path d="M0 4.4L4.2 -3.4H-4.2Z"/>', 1.5, "7 3"),
    "prior": Look("#7b877f", "#8d9a92", '<path d="M-4 0H4M0 -4V4" class="open"/>', 1.4, "1 4"),
    "dp-ebm-05": Look("#c2540a", "#ff9d52", '<path d="M0 -5L5 0L0 5L-5 0Z"/>', 2.2),
    "dp-ebm": Look("#b98a00", "#e8c55a", '<path d="M0 -4.4L4.4 0L0 4.4L-4.4 0Z" class="hollow"/>', 1.6, "7 3"),
    "diffprivlib-forest": Look("#b3261e", "#ff8a80", '<path d="M-3.8 -3.8L3.8 3.8M-3.8 3.8L3.8 -3.8" class="open"/>'),
    "diffprivlib-tree": Look("#93348f", "#e79be2", '<circle r="3.6" class="hollow"/>', 1.6, "7 3"),
    "sklearn-tree": Look("#3d4a42", "#c9d3cc", "", 1.4, "2 3"),
    "sklearn-forest": Look("#3d4a42", "#c9d3cc", "", 1.4, "9 4"),
    "xgboost": Look("#3d4a42", "#c9d3cc", "", 1.4, "9 3 2 3"),
    "majority": Look("#7b877f", "#8d9a92", "", 1.2, "1 4"),
}

STYLE = (
    "".join(
        f".{name} {{ color: {look.light}; --width: {look.width}; --dash: {look.dash or 'none'}; }}\n"
        for name, look in LOOKS.items()
    )
    + "@media (prefers-color-scheme: dark) {\n"
    + "".join(f".{name} {{ color: {look.dark}; }}\n" for name, look in LOOKS.items())
    + "}\n"
    + """svg text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--soft); }
svg text.title { font-weight: 600; font-size: 14px; fill: var(--ink); } svg text.label { fill: var(--ink); }
svg text.value { fill: currentColor; font-weight: 600; font-size: 11.5px; }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); }
.line { fill: none; stroke: currentColor; stroke-width: var(--width); stroke-dasharray: var(--dash);
  stroke-linejoin: round; }
.band { fill: currentColor; opacity: .13; } .marks { fill: currentColor; stroke: var(--card); stroke-width: 1; }
.open { fill: none; stroke: currentColor; stroke-width: 2; }
.hollow { fill: var(--card); stroke: currentColor; stroke-width: 1.8; }
"""
)


@dataclass(frozen=True)
class Line:
    """The estimates of one learner over the horizontal scale; one that knows no epsilon is a level."""

    name: str  # of its look
    title: str
    points: Sequence[tuple[float, Estimate]]
    level: Estimate | None = None


@dataclass(frozen=True)
class Frame:
    """Where a drawing stands on its paper, and what its scales are."""

    x: Axis
    y: Axis
    title: str
    label: str  # of the horizontal scale
    tell: Callable[[float], str] = "{:g}".format
    tell_x: Callable[[float], str] = "{:g}".format

    def drawn(self, lines: Sequence[Line]) -> str:
        """The frame, then bands, lines and marks, the first line on top."""
        order = list(reversed(lines))
        return self._scales() + "".join(map(self._band, order)) + "".join(map(self._line, order))

    def _scales(self) -> str:
        left, right, top, bottom = self.x.start, self.x.end, self.y.end, self.y.start
        parts = [f'<text class="title" x="{left - 4:.1f}" y="{top - 14:.1f}">{safe(self.title, 100)}</text>']
        for tick in self.y.ticks:
            at = self.y.at(tick)
            parts.append(f'<path class="grid" d="M{left:.1f} {at:.1f}H{right:.1f}"/>')
            parts.append(f'<text x="{left - 8:.1f}" y="{at + 4:.1f}" text-anchor="end">{self.tell(tick)}</text>')
        for tick in self.x.ticks:
            at = self.x.at(tick)
            parts.append(f'<path class="axis" d="M{at:.1f} {bottom:.1f}v5"/>')
            parts.append(f'<text x="{at:.1f}" y="{bottom + 19:.1f}" text-anchor="middle">{self.tell_x(tick)}</text>')
        parts.append(f'<path class="axis" d="M{left:.1f} {bottom:.1f}H{right:.1f}"/>')
        middle = (left + right) / 2
        parts.append(f'<text class="label" x="{middle:.1f}" y="{bottom + 38:.1f}" text-anchor="middle">')
        return "".join(parts) + f"{safe(self.label, 100)}</text>"

    def _runs(self, line: Line) -> list[list[tuple[float, Estimate]]]:
        """The points within the scale; where one is beyond it, the line breaks."""
        runs: list[list[tuple[float, Estimate]]] = [[]]
        for at, each in line.points:
            if self.y.low <= each.mean <= self.y.high:
                runs[-1].append((at, each))
            elif runs[-1]:
                runs.append([])
        return [run for run in runs if run]

    def _band(self, line: Line) -> str:
        drawn = ""
        for run in self._runs(line):
            if min(each.n for _, each in run) >= FEW:
                upper = [f"{self.x.at(at):.1f} {self.y.at(each.high):.1f}" for at, each in run]
                lower = [f"{self.x.at(at):.1f} {self.y.at(each.low):.1f}" for at, each in run]
                drawn += f'<path class="band {line.name}" d="M{"L".join([*upper, *reversed(lower)])}Z"/>'
        return drawn

    def _line(self, line: Line) -> str:
        drawn, marks = "", ""
        if line.level is not None and self.y.low <= line.level.mean <= self.y.high:
            told = safe(f"{line.title}: {self._told(line.level)}", 200)
            path = f"M{self.x.start:.1f} {self.y.at(line.level.mean):.1f}H{self.x.end:.1f}"
            drawn += f'<path class="line" d="{path}"><title>{told}</title></path>'
        for run in self._runs(line):
            places = [f"{self.x.at(at):.1f} {self.y.at(each.mean):.1f}" for at, each in run]
            drawn += f'<path class="line" d="M{"L".join(places)}"/>'
            for place, (at, each) in zip(places, run, strict=True):
                told = safe(f"{line.title}, {self.label} {self.tell_x(at)}: {self._told(each)}", 200)
                marks += f'<g transform="translate({place})">{LOOKS[line.name].mark}<title>{told}</title></g>'
        return f'<g class="{line.name}">{drawn}<g class="marks">{marks}</g></g>' if drawn else ""

    def _told(self, each: Estimate) -> str:
        return f"{each.mean:.4g} ± {each.half:.2g} ({each.n} repeats)"


def scale(lines: Sequence[Line], start: float, end: float, *, log: bool = False, ceiling: float = math.inf) -> Axis:
    """A scale for everything that is drawn up to a ceiling, with a little air."""
    values = [estimate.mean for line in lines for _, estimate in line.points]
    values += [line.level.mean for line in lines if line.level is not None]
    low, high = min(values), max((value for value in values if value <= ceiling), default=ceiling)
    if log:
        return Axis(low / 1.6, high * 1.6, start, end, end, log=True)
    air = 0.06 * (high - low) or 0.05
    return Axis(low - air, min(high + air, ceiling), start, end, end)


def sample(name: str) -> str:
    """A short piece of a line with its mark, for a key."""
    look = LOOKS[name]
    return f'<g class="{name}"><path class="line" d="M-14 0H14"/><g class="marks">{look.mark}</g></g>'


def power_of_ten(value: float) -> str:
    """Decades as people write them; other numbers stay without words."""
    exponent = round(math.log10(value))
    if not math.isclose(value, 10.0**exponent):
        return ""
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))

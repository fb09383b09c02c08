"""Lines with their 95% bands in a frame, and what they are compared with: published numbers and closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from privet.report.chart import Axis
from privet.studies.estimate import Estimate
from privet.studies.findings import Number
from privet.studies.pages.look import Look
from privet.trees.layout import safe

FEW = 3  # repeats below which an interval says nothing and is not drawn
CROSS = '<path class="open" d="M-3.6 -3.6L3.6 3.6M-3.6 3.6L3.6 -3.6"/>'


@dataclass(frozen=True)
class Line:
    """The estimates of one series over the horizontal scale; one that knows no scale is a level."""

    look: Look
    title: str
    points: Sequence[tuple[float, Estimate]]
    level: Estimate | None = None
    paper: Sequence[tuple[float, Number]] = ()
    closed: Sequence[tuple[float, Number]] = ()
    band: bool = True


@dataclass(frozen=True)
class Frame:
    """Where a drawing stands on its paper, and what its scales are."""

    x: Axis
    y: Axis
    title: str
    label: str  # of the horizontal scale
    tell: Callable[[float], str] = "{:g}".format
    tell_x: Callable[[float], str] = "{:g}".format
    ticks: Sequence[float] = ()  # of the horizontal scale; round numbers without them

    def drawn(self, lines: Sequence[Line]) -> str:
        """The frame, then bands, lines and marks, the first line on top; published marks lie above all lines."""
        order = list(reversed(lines))
        parts = (self._band, self._line, self._beside)
        return self.scales() + "".join(part(line) for part in parts for line in order)

    def scales(self) -> str:
        left, right, top, bottom = self.x.start, self.x.end, self.y.end, self.y.start
        parts = [f'<text class="title" x="{left - 4:.1f}" y="{top - 14:.1f}">{safe(self.title, 100)}</text>']
        for tick in self.y.ticks:
            at = self.y.at(tick)
            parts.append(f'<path class="grid" d="M{left:.1f} {at:.1f}H{right:.1f}"/>')
            parts.append(f'<text x="{left - 8:.1f}" y="{at + 4:.1f}" text-anchor="end">{self.tell(tick)}</text>')
        for tick in self.ticks or self.x.ticks:
            at, told = self.x.at(tick), safe(self.tell_x(tick), 40)
            parts.append(f'<path class="axis" d="M{at:.1f} {bottom:.1f}v5"/>')
            parts.append(f'<text x="{at:.1f}" y="{bottom + 19:.1f}" text-anchor="middle">{told}</text>')
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
        for run in self._runs(line) if line.band else ():
            if min(each.n for _, each in run) >= FEW:
                upper = [f"{self.x.at(at):.1f} {self.y.at(each.high):.1f}" for at, each in run]
                lower = [f"{self.x.at(at):.1f} {self.y.at(each.low):.1f}" for at, each in run]
                drawn += f'<path class="band {line.look.name}" d="M{"L".join([*upper, *reversed(lower)])}Z"/>'
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
                marks += f'<g transform="translate({place})">{line.look.mark}<title>{told}</title></g>'
        return f'<g class="{line.look.name}">{drawn}<g class="marks">{marks}</g></g>' if drawn else ""

    def _beside(self, line: Line) -> str:
        """What our numbers stand beside; where they agree, a published one is a ring around ours."""
        drawn = ""
        for kind, mark, numbers in (("paper", line.look.mark, line.paper), ("closed form", CROSS, line.closed)):
            for at, number in numbers:
                told = safe(f"{line.title}, {self.label} {self.tell_x(at)}: {kind} {number}", 200)
                drawn += beside(self.x.at(at), self.y, number, mark, told)
        return f'<g class="{line.look.name}">{drawn}</g>' if drawn else ""

    def _told(self, each: Estimate) -> str:
        return f"{each.mean:.4g} ± {each.half:.2g} ({each.n} repeats)"


def beside(x: float, y: Axis, number: Number, mark: str, told: str) -> str:
    """A number of somebody else: a hollow mark, and whiskers as far as it may be misread and its repeats scatter."""
    half, drawn = number.reading + 1.96 * number.se, ""
    if half:
        low, high = y.at(number.value - half), y.at(number.value + half)
        drawn = f'<path class="whisker" d="M{x - 3:.1f} {low:.1f}h6m-3 0V{high:.1f}m-3 0h6"/>'
    place = f"translate({x:.1f} {y.at(number.value):.1f}) scale(1.35)"
    return f'{drawn}<g class="paper" transform="{place}">{mark}<title>{told}</title></g>'


def scale(lines: Sequence[Line], start: float, end: float, *, log: bool = False, ceiling: float = math.inf) -> Axis:
    """A scale for everything that is drawn up to a ceiling, with a little air."""
    values = [estimate.mean for line in lines for _, estimate in line.points]
    values += [line.level.mean for line in lines if line.level is not None]
    values += [number.value for line in lines for _, number in (*line.paper, *line.closed)]
    low, high = min(values), max((value for value in values if value <= ceiling), default=ceiling)
    if log:
        return Axis(low / 1.6, high * 1.6, start, end, end, bend=math.log)
    air = 0.06 * (high - low) or 0.05
    return Axis(low - air, min(high + air, ceiling), start, end, end)


def power_of_ten(value: float) -> str:
    """Decades as people write them; other numbers stay without words."""
    exponent = round(math.log10(value))
    if not math.isclose(value, 10.0**exponent):
        return ""
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))

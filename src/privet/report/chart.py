"""Charts: scales, and lines with their intervals in a frame.

A chart says nothing by its colours that it does not say by marks, dashes or words too, and whoever points at a mark
reads its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from privet.report.svg import GAP, LETTER, MINUS, Drawing, join, moved, number, path, rect, tag, text
from privet.text import clean, shortened, width_of

Bend = Callable[[float], float]


def root(value: float) -> float:
    """It spreads what is small, as a logarithm does, and has a place for zero and what chance puts below it."""
    return math.copysign(math.sqrt(abs(value)), value)


# -- scales -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """Numbers from low to high on paper from start to end; infinity has a place of its own, the edge."""

    low: float
    high: float
    start: float
    end: float
    edge: float = math.nan
    bend: Bend = float  # float: evenly; math.log; root
    clamped: bool = True  # what is beyond the scale stands at its end

    def at(self, value: float) -> float:
        """Return where a number stands."""
        if value == math.inf:
            return self.edge
        value = min(max(value, self.low), self.high) if self.clamped else value
        low, high, here = (self.bend(each) for each in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (here - low) / (high - low)

    @property
    def log(self) -> bool:
        """True where numbers stand by their logarithm."""
        return self.bend is math.log

    @property
    def ticks(self) -> list[float]:
        """At most eight round numbers."""
        if not self.log:
            return round_numbers(self.low, self.high, 7)
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for within, most in ((range(1, 10), 5), ((1, 2, 5), 8), ((1, 3), 8), ((1,), 8)):
            found = [float(f"{digit}e{decade}") for decade in decades for digit in within]
            found = [tick for tick in found if self.low * 0.999 <= tick <= self.high * 1.001]
            if len(found) <= most:
                return found
        return found[:: math.ceil(len(found) / 8)]


def round_numbers(low: float, high: float, steps: int) -> list[float]:
    """Return round numbers from low to high with at most so many steps between them.

    >>> round_numbers(0, 1, 7), round_numbers(-3, 8, 4)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 5.0])
    """
    power = 10.0 ** math.floor(math.log10(high - low))
    step = next(
        part * power for part in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0) if high - low <= part * power * steps
    )
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{place * step:.12g}") + 0.0 for place in range(first, last + 1)]


def power_of_ten(value: float) -> str:
    """Return a decade as people write it, and nothing for other numbers.

    >>> power_of_ten(1000.0), power_of_ten(500.0)
    ('10³', '')
    """
    exponent = round(math.log10(value))
    if not math.isclose(value, 10.0**exponent):
        return ""
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


# -- marks and looks ----------------------------------------------------------------------------

# Each around its own middle. The first eight are closed, so that each can be filled (ours) and hollow (published).
MARKS = {
    "circle": tag("circle", r=4),
    "square": path("M-3.6 -3.6H3.6V3.6H-3.6Z"),
    "triangle": path("M0 -4.8L4.5 3.4H-4.5Z"),
    "diamond": path("M0 -5.2L5.2 0L0 5.2L-5.2 0Z"),
    "down": path("M0 4.8L4.5 -3.4H-4.5Z"),
    "plus": path("M-1.7 -4.8H1.7V-1.7H4.8V1.7H1.7V4.8H-1.7V1.7H-4.8V-1.7H-1.7Z"),
    "hourglass": path("M-4.4 -4.4H4.4L-4.4 4.4H4.4Z"),
    "star": path("M0 -5.6L1.5 -1.7L5.4 -1.6L2.3 .9L3.4 4.7L0 2.5L-3.4 4.7L-2.3 .9L-5.4 -1.6L-1.5 -1.7Z"),
    "cross": path("M-3.6 -3.6L3.6 3.6M-3.6 3.6L3.6 -3.6", "open"),
    "open plus": path("M-4 0H4M0 -4V4", "open"),
    "ring": tag("circle", class_="hollow", r=3.6),
    "hollow diamond": path("M0 -4.4L4.4 0L0 4.4L-4.4 0Z", "hollow"),
    "dot": tag("circle", r=1.8),
    "claim": path("M0 -8V8", "claim"),
    "hidden band": rect(-9, -5, 18, 10, "hidden-band"),
    "line": path("M-9 0H9", "line"),
    "dashed": path("M-9 0H9", "line dashes"),
    "": Markup(""),
}
CLOSED_MARKS = tuple(MARKS)[:8]
DASHES = ("", "8 3", "2 3", "10 3 2 3", "14 4", "5 2", "8 2 2 2 2 2")
SERIES = 8  # colours: s1 to s8 in the stylesheet


@dataclass(frozen=True)
class Look:
    """How a series is drawn: what its colour says, its mark and its dashes say too."""

    colour: str  # a class of the stylesheet
    mark: str = ""  # one of MARKS
    width: float = 1.8
    dash: str = ""
    strength: float = 1.0  # of the colour

    def drawn(self, *inside: Markup) -> Markup:
        """Return elements in this look."""
        faint = None if self.strength == 1 else self.strength
        return tag(
            "g", *inside, class_=self.colour, stroke_width=self.width, stroke_dasharray=self.dash or None, opacity=faint
        )


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Return a look for each name, by its place: two of the first 56 differ in more than their colour.

    >>> [look.colour for look in looks(["max", "gini"]).values()]
    ['s1', 's2']
    """
    return {
        name: Look(f"s{place % SERIES + 1}", CLOSED_MARKS[place % SERIES], dash=DASHES[place % len(DASHES)])
        for place, name in enumerate(dict.fromkeys(names))
    }


def sample(look: Look) -> Markup:
    """Return a short piece of a line with its mark, for a key."""
    return look.drawn(path("M-14 0H14", "line"), tag("g", MARKS[look.mark], class_="marks"))


def icon(mark: str, colour: str | None = None, kind: str = "marks") -> Markup:
    """Return a mark as a picture as high as a line of text."""
    inside = tag("g", MARKS[mark], class_=kind)
    return tag("svg", inside, class_=colour, width=18, height=16, viewBox="-9 -8 18 16", aria_hidden="true")


def key(entries: Iterable[tuple[Look, str]]) -> Markup:
    """Return the key of a chart, for a page."""
    shown = [
        tag("span", tag("svg", sample(look), width=30, height=16, viewBox="-15 -8 30 16", aria_hidden="true"), words)
        for look, words in entries
    ]
    return tag("p", *shown, class_="key") if shown else Markup("")


# -- lines in a frame ---------------------------------------------------------------------------


@dataclass(frozen=True)
class ChartPoint:
    """A number with its interval; without one, `low` and `high` are the number."""

    x: float
    y: float
    low: float
    high: float
    told: str = ""
    has_interval: bool = True  # enough repeats for one
    pale: bool = False


@dataclass(frozen=True)
class Other:
    """A number of somebody else, as far as it may be misread or scatters."""

    x: float
    y: float
    half: float
    mark: str
    told: str


@dataclass(frozen=True)
class Series:
    """The points of one series over the horizontal scale; one that knows no scale is a level."""

    look: Look
    title: str
    points: Sequence[ChartPoint] = ()
    level: ChartPoint | None = None
    others: Sequence[Other] = ()
    has_band: bool = True
    has_whiskers: bool = False
    end: str = ""  # what stands at its end, instead of its title


@dataclass(frozen=True)
class Frame:
    """Where a chart stands on its paper, and what its scales are."""

    x: Axis
    y: Axis
    title: str  # of the vertical scale, above it
    label: str  # of the horizontal scale
    tell: Callable[[float], str] = "{:g}".format
    tell_x: Callable[[float], str] = "{:g}".format
    ticks: Sequence[float] = ()  # of the horizontal scale; round numbers without them
    ticks_up: Sequence[float] = ()
    at_edge: str = ""  # what stands at the edge of the horizontal scale
    clips: bool = False  # lines leave the frame where they leave the scale, and break otherwise

    def drawn(self, lines: Sequence[Series]) -> Markup:
        """The frame, then bands, lines and marks, the first line on top; numbers of others lie above all lines."""
        order = list(reversed(lines))
        inside = join([*map(self._band, order), *map(self._line, order)])
        if self.clips:
            left, top = self.x.start, self.y.end
            across, down = self.x.end - left, self.y.start - top
            place = {"x": left, "y": top, "width": across, "height": down}
            inside = tag("svg", inside, **place, viewBox=" ".join(map(number, place.values())))
        return self.scales() + inside + join(map(self._others, order))

    def scales(self) -> Markup:
        """The frame alone."""
        left, right, top, bottom = self.x.start, self.x.end, self.y.end, self.y.start
        right = max(right, self.x.edge) if self.at_edge else right
        parts = [text(left - 4, top - 14, self.title, "title", 100)]
        for tick in self.ticks_up or self.y.ticks:
            at = self.y.at(tick)
            parts.append(path(f"M{left:.1f} {at:.1f}H{right:.1f}", "grid"))
            parts.append(text(left - 10, at + 4, self.tell(tick), "end"))
        for tick in self.ticks or self.x.ticks:
            at = self.x.at(tick)
            parts.append(path(f"M{at:.1f} {bottom:.1f}v5", "axis"))
            parts.append(text(at, bottom + 19, self.tell_x(tick), "mid", 40))
        if self.at_edge:
            gap = (self.x.end + self.x.edge) / 2
            parts.append(path(f"M{gap:.1f} {top:.1f}V{bottom:.1f}", "grid dashes"))
            parts.append(text(right + 8, bottom + 19, self.at_edge, "end"))
        parts.append(path(f"M{left:.1f} {bottom:.1f}H{right:.1f}", "axis"))
        parts.append(text((left + right) / 2, bottom + 38, self.label, "label mid", 100))
        return join(parts)

    def _runs(self, line: Series) -> list[list[ChartPoint]]:
        """The points within the scale; where one is beyond it, the line breaks."""
        runs: list[list[ChartPoint]] = [[]]
        for point in line.points:
            if self.clips or self.y.low <= point.y <= self.y.high:
                runs[-1].append(point)
            elif runs[-1]:
                runs.append([])
        return [run for run in runs if run]

    def _place(self, x: float, y: float) -> str:
        return f"{self.x.at(x):.1f} {self.y.at(y):.1f}"

    def _band(self, line: Series) -> Markup:
        drawn = ""
        for run in self._runs(line) if line.has_band else ():
            for one, two in pairwise(run):
                if one.has_interval and two.has_interval:
                    edge = [(one.x, one.high), (two.x, two.high), (two.x, two.low), (one.x, one.low)]
                    drawn += f"M{'L'.join(self._place(*corner) for corner in edge)}Z"
        return tag("g", path(drawn, "band"), class_=line.look.colour) if drawn else Markup("")

    def _line(self, line: Series) -> Markup:
        drawn, marks = [], []
        if line.level is not None and self.y.low <= line.level.y <= self.y.high:
            right = max(self.x.end, self.x.edge) if self.at_edge else self.x.end
            d = f"M{self.x.start:.1f} {self.y.at(line.level.y):.1f}H{right:.1f}"
            drawn.append(path(d, "line", tag("title", f"{line.title}: {line.level.told}")))
        for run in self._runs(line):
            known = [point for point in run if math.isfinite(point.x)]
            drawn.append(path("M" + "L".join(self._place(point.x, point.y) for point in known), "line"))
            for point in run:
                x, y = self.x.at(point.x), self.y.at(point.y)
                if line.has_whiskers:
                    low, high = self.y.at(point.low), self.y.at(point.high)
                    marks.append(
                        path(
                            f"M{x:.1f} {low:.1f}V{high:.1f}M{x - 4:.1f} {low:.1f}h8M{x - 4:.1f} {high:.1f}h8", "whisker"
                        )
                    )
                at = self.tell_x(point.x) if math.isfinite(point.x) else self.at_edge
                told = [tag("title", f"{line.title}, {self.label} {at}: {point.told}")] if point.told else []
                marks.append(moved(x, y, MARKS[line.look.mark], *told, kind="marks pale" if point.pale else "marks"))
        return line.look.drawn(*drawn, *marks) if drawn else Markup("")

    def _others(self, line: Series) -> Markup:
        """What our numbers stand beside; where they agree, a published one is a ring around ours."""
        drawn = [beside(self.x.at(other.x), self.y, other) for other in line.others]
        return line.look.drawn(*drawn) if drawn else Markup("")

    def ends(self, lines: Sequence[Series], gap: float = 20, letters: int = 28) -> Markup:
        """Names right of the frame, in the order of the ends of the lines, each as near to its end as others allow."""
        order = sorted(lines, key=lambda line: -line.points[-1].y)
        right, top, bottom = self.x.end, self.y.end, self.y.start
        drawn, free = [], float(top)
        for place, line in enumerate(order, start=1):
            end, title, lead = line.points[-1], line.end or line.title, []
            x, y = self.x.at(end.x), self.y.at(end.y)
            height = max(free, min(y, bottom - gap * (len(order) - place)))
            free = height + gap
            if top <= y <= bottom:
                lead.append(path(f"M{x + 6:.1f} {y:.1f}H{right}L{right + 14} {height:.1f}", "lead"))
            else:
                title += f" {'↓' if y > bottom else '↑'} {end.y:.0f}".replace("-", MINUS)
            drawn.append(
                line.look.drawn(
                    *lead,
                    path(f"M{right + 16} {height:.1f}h28", "line"),
                    moved(right + 30, height, MARKS[line.look.mark], kind="marks"),
                    text(right + 50, height + 4.5, title, "bold" if line.look.width > 3 else "label", letters),
                )
            )
        return join(drawn)


def beside(x: float, y: Axis, other: Other) -> Markup:
    """A number of somebody else: a hollow mark, and whiskers as far as it may be misread and its repeats scatter."""
    drawn = []
    if other.half:
        low, high = y.at(other.y - other.half), y.at(other.y + other.half)
        drawn.append(path(f"M{x - 3:.1f} {low:.1f}h6m-3 0V{high:.1f}m-3 0h6", "whisker"))
    title = tag("title", other.told)
    drawn.append(moved(x, y.at(other.y), MARKS[other.mark], title, kind="paper", more=" scale(1.35)"))
    return join(drawn)


def scale_of(
    lines: Sequence[Series], start: float, end: float, *, log: bool = False, ceiling: float = math.inf
) -> Axis:
    """Return a scale for everything that is drawn up to a ceiling, with a little air."""
    values = [point.y for line in lines for point in line.points]
    values += [line.level.y for line in lines if line.level is not None]
    values += [other.y for line in lines for other in line.others]
    low, high = min(values), max((value for value in values if value <= ceiling), default=ceiling)
    if log:
        return Axis(low / 1.6, high * 1.6, start, end, end, math.log)
    air = 0.06 * (high - low) or 0.05
    return Axis(low - air, min(high + air, ceiling), start, end, end)


# -- several charts as one file -----------------------------------------------------------------

EDGE = 16.0  # pixels around a sheet, and between its charts


def sheet(
    title: str, subtitle: str, drawings: Sequence[Drawing], entries: Iterable[tuple[Look, str]] = (), below: str = ""
) -> str:
    """Return charts side by side as one file for light and dark paper, with a key and a line below them.

    Parameters
    ----------
    title, subtitle : str
    drawings : sequence of Drawing
    entries : iterable of (Look, str), optional
        What is drawn how.
    below : str, optional
    """
    wide = sum(each.width for each in drawings) + EDGE * (len(drawings) - 1)
    width, tall = max(wide + 2 * EDGE, 420.0), max(each.height for each in drawings)
    letters = int((width - 2 * EDGE) / LETTER)
    shapes, left, top = [text(EDGE, 30, title, "head", letters)], EDGE, 42.0
    if subtitle:
        shapes.append(text(EDGE, 50, subtitle, most=letters))
        top = 62.0
    for each in drawings:
        shapes.append(moved(left, top, each.shapes))
        left += each.width + EDGE
    drawn_key, rows = _key(entries, width)
    bottom = top + tall + 24 * rows + 12
    shapes.append(moved(0, top + tall + 12, drawn_key))
    if below:
        shapes.append(text(EDGE, bottom + 6, below, most=letters))
        bottom += 20
    paper = rect(0.5, 0.5, width - 1, bottom - 1, "sheet", rx=8)
    said = f"{title}. {subtitle} {'; '.join(each.said for each in drawings)}"
    return Drawing(width, bottom, paper + join(shapes), said).file("colours", "charts") + "\n"


def _key(entries: Iterable[tuple[Look, str]], width: float) -> tuple[Markup, int]:
    """What is drawn how, in as many rows as it takes."""
    shown, left, row = [], EDGE, 0
    for look, title in entries:
        words = shortened(clean(title), 60)
        needed = 50 + LETTER * width_of(words)
        if left + needed > width and left > EDGE:
            left, row = EDGE, row + 1
        shown.append(moved(left + 14, 24 * row + 4, sample(look), text(21, 4, words, "label")))
        left += needed
    return join(shown), row + 1 if shown else 0


# -- people by a probability ----------------------------------------------------------------------

PEOPLE_LEFT, PEOPLE_TOP, PEOPLE_ROW, PEOPLE_ACROSS, PEOPLE_WIDE = 34, 22, 14, 250, 360  # pixels


@dataclass(frozen=True)
class Bin:
    """How many people have a probability in a range, and how their bar is drawn: its pieces, one over the other."""

    place: int  # from 0, the lowest
    people: int
    told: str
    pieces: Sequence[tuple[str, int]]  # a class of the stylesheet, and people


def people_histogram(
    bins: Sequence[Bin],
    most: int,
    what: str,
    said: str,
    threshold: float,
    outlines: Mapping[str, Sequence[int]],
    rows: int = 20,
) -> Drawing:
    """A bar for each range of a probability from certainty down, so that numbers stand beside their bars.

    `outlines` are the same counts for somebody else: a class of the stylesheet, and the people of every range.
    """
    bottom, left = PEOPLE_TOP + PEOPLE_ROW * rows, PEOPLE_LEFT
    drawn = [text(0, 12, what)]
    for tenth in range(0, 11, 2):
        y = bottom - PEOPLE_ROW * rows * tenth / 10
        drawn.append(path(f"M{left - 4} {y:.1f}H{left + PEOPLE_ACROSS}", "grid"))
        drawn.append(text(left - 8, y + 4, f"{tenth / 10:.1f}", "end"))
    for part in (0, 0.5, 1):
        drawn.append(text(left + PEOPLE_ACROSS * part, bottom + 16, f"{most * part:,.0f}", "mid"))
    drawn.append(text(left + PEOPLE_ACROSS / 2, bottom + 31, "people", "mid"))
    drawn.append(path(f"M{left} {PEOPLE_TOP}V{bottom}", "axis"))
    for each in bins:
        y = PEOPLE_TOP + PEOPLE_ROW * (rows - 1 - each.place)
        wide = max(PEOPLE_ACROSS * each.people / most, 1.5)
        pieces = [rect(left, y + 1, wide * part / each.people, PEOPLE_ROW - 2, kind) for kind, part in each.pieces]
        amount = text(left + wide + 5, y + PEOPLE_ROW - 3, f"{each.people:,}", "label")
        drawn.append(tag("g", tag("title", each.told), *pieces, amount))
    for kind, counts in outlines.items():
        d = ""
        for place in reversed(range(rows)):
            if counts[place]:
                y = PEOPLE_TOP + PEOPLE_ROW * (rows - 1 - place)
                d += f"M{left} {y}H{left + PEOPLE_ACROSS * counts[place] / most:.1f}V{y + PEOPLE_ROW}H{left}"
        drawn.append(path(d, kind))
    line = PEOPLE_TOP + PEOPLE_ROW * rows * (1 - threshold)
    drawn.append(path(f"M{left - 4} {line:.1f}H{PEOPLE_WIDE - 34}", "at dashes"))
    drawn.append(text(PEOPLE_WIDE - 30, line + 4, f"{threshold:g}", "alarmed"))
    return Drawing(PEOPLE_WIDE, bottom + 36, join(drawn), said, "chart histogram")


# -- counts with their errors -----------------------------------------------------------------------

BARS_WIDE, BARS_NUMBER = 320.0, 90.0  # pixels: the longest bar, and a number beside it


@dataclass(frozen=True)
class CountBar:
    """A bar from zero, with the bounds of its true number."""

    name: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.name}: {self.value:,.0f}, {self.low:,.0f} to {self.high:,.0f} at 95%"


def bars_from_zero(counts: Sequence[CountBar], said: str, letters: int = 48, row: int = 18) -> Drawing:
    """Bars with error whiskers, a line for each."""
    start = 8 + LETTER * max(width_of(shortened(each.name, letters)) for each in counts)
    top = max(1.0, *(max(each.high, each.value) for each in counts))
    axis, height = Axis(0.0, top, start, start + BARS_WIDE), row * len(counts) + 6
    ticks = [tick for tick in axis.ticks if tick == int(tick)][:8]
    drawn = [path("".join(f"M{axis.at(tick):.1f} 0V{height}" for tick in ticks), "grid")]
    drawn += [text(axis.at(tick), height + 12, f"{tick:,.0f}", "mid") for tick in ticks]
    for place, each in enumerate(counts):
        y, left, right = row * place + 12, axis.at(each.low), axis.at(each.high)
        whisker = f"M{left:.1f} {y}H{right:.1f}M{left:.1f} {y - 4}v8M{right:.1f} {y - 4}v8"
        drawn.append(
            tag(
                "g",
                tag("title", each),
                text(start - 6, y + 4, each.name, "end", letters),
                rect(start, y - 6, max(axis.at(each.value) - start, 0.0), 12, "drawn"),
                path(whisker, "error"),
                text(axis.end + GAP, y + 4, f"{each.value:,.0f}", "count"),
            )
        )
    return Drawing(start + BARS_WIDE + BARS_NUMBER, height + 18, join(drawn), said, "bars-from-zero")


# -- rows that keep their words on a phone --------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """One number of an answer: its label, value, error bar and, where it is known, the truth."""

    label: str
    value: float
    low: float
    high: float
    truth: float | None = None


@dataclass(frozen=True)
class LaneRow:
    """A bar, or a point: where it stands in percent of its lane, and its number."""

    name: str
    at: float
    low: float
    width: float
    truth: float | None
    number: str


@dataclass(frozen=True)
class RowChart:
    """Rows of bars from zero, or of points on a close-up scale."""

    rows: Sequence[LaneRow]
    is_close_up: bool
    start: str
    end: str
    said: str


def row_chart(bars: Sequence[Bar]) -> RowChart:
    """Return numbers with their error bars: many as bars from 0, one or two as points on a close-up scale.

    Parameters
    ----------
    bars : sequence of Bar
        One at least.
    """
    known = [(bar.low, bar.high, *([] if bar.truth is None else [bar.truth])) for bar in bars]
    low, high = min(map(min, known)), max(map(max, known))
    close_up = len(bars) <= 2
    start, end = (low - 0.4 * (high - low), high + 0.4 * (high - low)) if close_up else (0.0, high)
    axis = Axis(start, end if end > start else start + 1, 0.0, 100.0)
    rows = []
    for bar in bars:
        left, right = axis.at(bar.low), axis.at(bar.high)
        truth = None if bar.truth is None else round(axis.at(bar.truth), 2)
        at = round(axis.at(bar.value), 2)
        rows.append(LaneRow(bar.label, at, round(left, 2), round(right - left, 2), truth, _amount(bar.value)))
    said = "; ".join(f"{bar.label}: {bar.value:g}, {bar.low:g} to {bar.high:g}" for bar in bars)
    return RowChart(rows, close_up, _amount(start), _amount(end), said)


def _amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.2f}"

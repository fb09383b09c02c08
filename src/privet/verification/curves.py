"""How far attacks on published models get, drawn against what epsilon allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from scipy.stats import binom

from privet.report import chart
from privet.report.chart import Axis, Frame, Look, Series
from privet.report.svg import Drawing
from privet.verification.reconstruction import FALSE_ALARM

Point = dict[str, Any]

_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 544, 34, 262  # the frame of a figure
_ATTACK, _INFORMED, _BEATEN = (
    Look("caught", "circle", 1.2),
    Look("other", "hollow diamond", 1.2),
    Look("failed", "cross", 0),
)
_CEILING, _COIN = Look("ink", width=2), Look("unknown", width=1.2, dash="6 4")

Key = tuple[str, str, str]  # a mark, its colour, and words


class Figure(NamedTuple):
    """A drawing, what is drawn how, and what it says."""

    drawing: Drawing
    key: Sequence[Key]
    caption: str


class Numbers(NamedTuple):
    """The numbers behind figures; heads of numbers begin with #."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


class Curve(NamedTuple):
    """All about one curve."""

    title: str
    subject: str
    figures: Sequence[Figure]
    table: Numbers


def drawn(curves: Sequence[Point]) -> list[Curve]:
    """Return what a page shows of curves; of a kind to come it shows nothing."""
    known = {"membership": _membership, "reconstruction": _reconstruction}
    return [known[curve["curve"]](curve) for curve in curves if curve["curve"] in known and curve["points"]]


def _epsilon(point: Point) -> float:
    """The epsilon of a point; without noise it is infinite."""
    return math.inf if point["epsilon"] is None else float(point["epsilon"])


def above(curve: Point) -> list[str]:
    """Where an attack did better than its ceiling, beyond what chance explains."""
    if curve["curve"] not in ("membership", "reconstruction"):
        return []
    return [
        f"{str(curve['subject'])[:100]} at {_at(point)}: an attack is right more often than the promise allows."
        for point in curve["points"]
        if _beats(point)
    ]


def _beats(point: Point) -> bool:
    """True where an attack at its ceiling is as often right as this less than once in a million."""
    if "margin" in point:
        return bool(point["inference"] > point["ceiling"] + point["margin"])
    right = round(point["accuracy"] * point["guesses"])
    return bool(binom.sf(right - 1, point["guesses"], point["ceiling"]) < FALSE_ALARM)


def _at(point: Point) -> str:
    return "no noise" if math.isinf(_epsilon(point)) else f"epsilon {_epsilon(point):g}"


def _typical(points: Sequence[Point]) -> Point:
    """The point whose epsilon is nearest to 1."""
    return min(points, key=lambda point: abs(math.log(_epsilon(point))))


def _membership(curve: Point) -> Curve:
    points = sorted(curve["points"], key=_epsilon)
    x, y = _epsilons(points), _shares([point["low"] for point in points])
    attack = [_point(point, "accuracy", point["low"], point["high"]) for point in points]
    one = _typical(points)
    caption = (
        "Somebody who knows everything else guesses from what is published whether one person is in the table: at "
        f"{_at(one)}, {one['accuracy']:.1%} of {one['guesses']:,} guesses are right, where a coin gets half of them "
        f"right and the promise allows {one['ceiling']:.1%}."
    )
    lines = _guessing(points, attack, has_whiskers=True)
    key = [("circle", "caught", "the attack, with its error"), *_CEILING_KEY, *_beaten_key(points)]
    figure = Figure(_figure(x, y, "guesses that are right", lines), key, caption)
    return Curve("Is a person in the table?", str(curve["subject"]), [figure], _numbers(points, _GUESSES))


def _reconstruction(curve: Point) -> Curve:
    points = sorted(curve["points"], key=_epsilon)
    figures = [_rebuilt(points), _inferred(points)]
    return Curve("Can the rows be rebuilt?", str(curve["subject"]), figures, _numbers(points, _REBUILT))


def _rebuilt(points: list[Point]) -> Figure:
    """How wrong the rows are that an attacker puts together."""
    x = _epsilons(points)
    top = max(max(point["mismatch"], point["informed"], point["blind"]) for point in points)
    y = Axis(0.0, 1.12 * top or 1.0, _BOTTOM, _TOP)
    blind = points[0]["blind"]
    lines = [
        Series(_ATTACK, "the likeliest rows", [_point(point, "mismatch") for point in points], has_band=False),
        Series(_INFORMED, "who knows the spread", [_point(point, "informed") for point in points], has_band=False),
        _level(_COIN, blind, "never saw the model"),
    ]
    one, last = _typical(points), points[-1]
    clear = f"without noise {last['informed']:.1%} and " if last["epsilon"] is None else ""
    caption = (
        f"Somebody who knows how rows are spread rebuilds those of the table from the published model: {clear}at "
        f"{_at(one)}, {one['informed']:.1%} of the values are wrong, and {blind:.1%} for somebody who never saw the "
        "model."
    )
    key = (
        ("circle", "caught", "the likeliest rows"),
        ("hollow diamond", "other", "an attacker who knows how rows are spread"),
        ("dashed", "unknown", "never saw the model"),
    )
    return Figure(_figure(x, y, "values that are wrong", lines), key, caption)


def _inferred(points: list[Point]) -> Figure:
    """How often the class of one person is guessed right."""
    x, y = _epsilons(points), _shares([point["inference"] for point in points])
    lines = _guessing(points, [_point(point, "inference") for point in points])
    one = _typical(points)
    caption = (
        "Somebody who knows everything but the class of one person guesses it from the published model: at "
        f"{_at(one)}, {one['inference']:.1%} of the guesses are right, where a coin gets half of them right and the "
        f"promise allows {one['ceiling']:.1%}."
    )
    key = [("circle", "caught", "the attack"), *_CEILING_KEY, *_beaten_key(points)]
    return Figure(_figure(x, y, "classes guessed right", lines), key, caption)


_CEILING_KEY = (("line", "ink", "the most that the promise allows"), ("dashed", "unknown", "a coin"))


def _beaten_key(points: list[Point]) -> list[Key]:
    return [("cross", "failed", "ABOVE what the promise allows")] if any(map(_beats, points)) else []


def _point(point: Point, name: str, low: float | None = None, high: float | None = None) -> chart.ChartPoint:
    value = point[name]
    told = f"{value:.1%}"
    return chart.ChartPoint(
        _epsilon(point), value, value if low is None else low, value if high is None else high, told
    )


def _level(look: Look, share: float, title: str) -> Series:
    return Series(look, title, level=chart.ChartPoint(0, share, share, share, f"{share:.1%}"))


def _guessing(points: list[Point], attack: list[chart.ChartPoint], has_whiskers: bool = False) -> list[Series]:
    """An attack's guesses, marked where they beat the ceiling; the ceiling; and a coin."""
    beaten = list(map(_beats, points))
    held = [each for each, over in zip(attack, beaten, strict=True) if not over]
    above = [each for each, over in zip(attack, beaten, strict=True) if over]
    alone = Look("caught", "circle", 0)
    lines = [Series(alone, "the attack", held, has_band=False, has_whiskers=has_whiskers)] if held else []
    lines += [Series(_BEATEN, "ABOVE", above, has_band=False, has_whiskers=has_whiskers)] if above else []
    return [
        *lines,
        Series(_CEILING, "the promise allows", _ceiling(points), has_band=False),
        _level(_COIN, 0.5, "a coin"),
    ]


def _epsilons(points: list[Point]) -> Axis:
    """A logarithmic scale; what has no noise stands at the right edge."""
    known = [_epsilon(point) for point in points]
    finite = [epsilon for epsilon in known if math.isfinite(epsilon)] or [1.0]
    low, high = min(finite), max(finite)
    if low == high:
        low, high = low / 2, high * 2
    apart = 64 if math.inf in known else 0
    return Axis(low, high, _LEFT + 14, _RIGHT - 14 - apart, _RIGHT - 14, math.log)


def _shares(values: list[float]) -> Axis:
    return Axis(min(0.45, math.floor(20 * min(values)) / 20), 1.0, _BOTTOM, _TOP)


def _ceiling(points: list[Point]) -> list[chart.ChartPoint]:
    """The curve through the ceilings: the logarithm of their odds grows with epsilon, in a straight line."""
    known = [(_epsilon(point), _log_odds(point["ceiling"])) for point in points if math.isfinite(_epsilon(point))]
    places = [(known[0][0], _share(known[0][1]))] if known else []
    for (low, first), (high, last) in pairwise(known):
        for part in range(1, 13):
            epsilon = low * (high / low) ** (part / 12) if high > low else high
            weight = (epsilon - low) / (high - low) if high > low else 1.0
            places.append((epsilon, _share(first + weight * (last - first))))
    found = [chart.ChartPoint(epsilon, share, share, share) for epsilon, share in places]
    clear = [point["ceiling"] for point in points if math.isinf(_epsilon(point))]
    return found + [chart.ChartPoint(math.inf, share, share, share) for share in clear]


def _log_odds(share: float) -> float:
    return math.log(share / (1 - share)) if 0 < share < 1 else math.copysign(40.0, share - 0.5)


def _share(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))


def _figure(x: Axis, y: Axis, label: str, lines: Sequence[Series]) -> Drawing:
    """A frame with both scales, and what is drawn in it."""
    edge = "no noise" if x.edge > x.end else ""
    frame = Frame(x, y, label, "epsilon", lambda share: f"{100 * share:g}%", at_edge=edge)
    return Drawing(560, _BOTTOM + 48, frame.drawn(lines), f"{label} over epsilon")


_GUESSES = {"accuracy": "right", "low": "from", "high": "to", "ceiling": "allowed", "guesses": "guesses"}
_REBUILT = {
    "mismatch": "wrong: likeliest rows",
    "informed": "knows the spread",
    "blind": "never saw the model",
    "gap": "solver's gap",
    "inference": "classes right",
    "ceiling": "allowed",
    "margin": "give or take",
}


def _numbers(points: list[Point], names: dict[str, str]) -> Numbers:
    """The numbers behind a figure."""
    rows = [[_at(point).removeprefix("epsilon "), *(_digits(point[name], name) for name in names)] for point in points]
    return Numbers(["#epsilon", *(f"#{head}" for head in names.values())], rows)


def _digits(value: float, name: str) -> str:
    return f"{value:,}" if name == "guesses" else f"{value:.3f}"

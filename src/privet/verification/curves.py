"""How far attacks on published models get, drawn against what epsilon allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from scipy.stats import binom

from privet.report.chart import Axis
from privet.trees.layout import safe
from privet.verification.marks import MARKS, cell, heads, key_of
from privet.verification.reconstruction import FALSE_ALARM

Point = dict[str, Any]

_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 544, 12, 248  # the frame of a figure, of 560 x 296


def section(curves: Sequence[Point]) -> str:
    known = {"membership": _membership, "reconstruction": _reconstruction}
    drawn = "".join(known[curve["curve"]](curve) for curve in curves if curve["curve"] in known and curve["points"])
    if not drawn:
        return ""
    return (
        "<section><h2>How far attacks get</h2><p>The smaller epsilon, the more noise, and the less an attacker learns "
        f"about one person, whatever they know already.</p>{drawn}</section>"
    )


def _epsilon(point: Point) -> float:
    """The epsilon of a point; without noise it is infinite."""
    return math.inf if point["epsilon"] is None else float(point["epsilon"])


def above(curve: Point) -> list[str]:
    """Where an attack did better than its ceiling, beyond what chance explains."""
    if curve["curve"] not in ("membership", "reconstruction"):
        return []
    return [
        f"{safe(str(curve['subject']), 100)} at {_at(point)}: an attack is right more often than the promise allows."
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


def _subject(curve: Point) -> str:
    return f'<span class="soft">{safe(str(curve["subject"]), 100)}</span>'


def _typical(points: Sequence[Point]) -> Point:
    """The point whose epsilon is nearest to 1."""
    return min(points, key=lambda point: abs(math.log(_epsilon(point))))


def _membership(curve: Point) -> str:
    points = sorted(curve["points"], key=_epsilon)
    x, y = _epsilons(points), _shares([point["low"] for point in points])
    shapes = _ceiling(points, x, y) + _level(0.5, y)
    for point in points:
        at, low, high = x.at(_epsilon(point)), y.at(point["low"]), y.at(point["high"])
        shapes += f'<path class="line thin caught" d="M{at:.1f} {low:.1f}V{high:.1f}M{at - 4:.1f} {low:.1f}h8'
        shapes += f'M{at - 4:.1f} {high:.1f}h8"/>{_guessed(point, x, y, "accuracy")}'
    one = _typical(points)
    caption = (
        "Somebody who knows everything else guesses from what is published whether one person is in the table: at "
        f"{_at(one)}, {one['accuracy']:.1%} of {one['guesses']:,} guesses are right, where a coin gets half of them "
        f"right and the promise allows {one['ceiling']:.1%}."
    )
    key = [("attack", "caught", "the attack, with its error"), *_CEILING_KEY, *_beaten_key(points)]
    return (
        f'<h3>Is a person in the table? {_subject(curve)}</h3><div class="pair">'
        f"{_figure(x, y, 'guesses that are right', shapes, key, caption)}"
        f"{_numbers(points, _GUESSES)}</div>"
    )


def _reconstruction(curve: Point) -> str:
    points = sorted(curve["points"], key=_epsilon)
    return (
        f'<h3>Can the rows be rebuilt? {_subject(curve)}</h3><div class="pair">'
        f"{_rebuilt(points)}{_inferred(points)}</div>"
        f"<details><summary>the numbers</summary>{_numbers(points, _REBUILT)}</details>"
    )


def _rebuilt(points: list[Point]) -> str:
    """How wrong the rows are that an attacker puts together."""
    x = _epsilons(points)
    top = max(max(point["mismatch"], point["informed"], point["blind"]) for point in points)
    y = Axis(0.0, 1.12 * top or 1.0, _BOTTOM, _TOP, _TOP)
    blind = points[0]["blind"]
    shapes = _level(blind, y)
    for name, style, mark in (("mismatch", "caught", "attack"), ("informed", "other", "other")):
        places = [(x.at(_epsilon(point)), y.at(point[name])) for point in points]
        shapes += _path([place for place in places if place[0] <= x.end], f"line thin {style}")
        shapes += "".join(_placed(mark, style, *place) for place in places)
    one, last = _typical(points), points[-1]
    clear = f"without noise {last['informed']:.1%} and " if last["epsilon"] is None else ""
    caption = (
        f"Somebody who knows how rows are spread rebuilds those of the table from the published model: {clear}at "
        f"{_at(one)}, {one['informed']:.1%} of the values are wrong, and {blind:.1%} for somebody who never saw the "
        "model."
    )
    key = (
        ("attack", "caught", "the likeliest rows"),
        ("other", "other", "an attacker who knows how rows are spread"),
        ("dashed", "unknown", "never saw the model"),
    )
    return _figure(x, y, "values that are wrong", shapes, key, caption)


def _inferred(points: list[Point]) -> str:
    """How often the class of one person is guessed right."""
    x, y = _epsilons(points), _shares([point["inference"] for point in points])
    shapes = _ceiling(points, x, y) + _level(0.5, y) + "".join(_guessed(point, x, y, "inference") for point in points)
    one = _typical(points)
    caption = (
        "Somebody who knows everything but the class of one person guesses it from the published model: at "
        f"{_at(one)}, {one['inference']:.1%} of the guesses are right, where a coin gets half of them right and the "
        f"promise allows {one['ceiling']:.1%}."
    )
    key = [("attack", "caught", "the attack"), *_CEILING_KEY, *_beaten_key(points)]
    return _figure(x, y, "classes guessed right", shapes, key, caption)


_CEILING_KEY = (("line", "", "the most that the promise allows"), ("dashed", "unknown", "a coin"))


def _beaten_key(points: list[Point]) -> list[tuple[str, str, str]]:
    return [("failed", "failed", "ABOVE what the promise allows")] if any(map(_beats, points)) else []


def _epsilons(points: list[Point]) -> Axis:
    """A logarithmic scale; what has no noise stands at the right edge."""
    known = [_epsilon(point) for point in points]
    finite = [epsilon for epsilon in known if math.isfinite(epsilon)] or [1.0]
    low, high = min(finite), max(finite)
    if low == high:
        low, high = low / 2, high * 2
    apart = 64 if math.inf in known else 0
    return Axis(low, high, _LEFT + 14, _RIGHT - 14 - apart, _RIGHT - 14, bend=math.log)


def _shares(values: list[float]) -> Axis:
    return Axis(min(0.45, math.floor(20 * min(values)) / 20), 1.0, _BOTTOM, _TOP, _TOP)


def _ceiling(points: list[Point], x: Axis, y: Axis) -> str:
    """The curve through the ceilings: the logarithm of their odds grows with epsilon, in a straight line."""
    known = [(_epsilon(point), _log_odds(point["ceiling"])) for point in points if math.isfinite(_epsilon(point))]
    places = [(x.at(known[0][0]), y.at(_share(known[0][1])))] if known else []
    for (low, first), (high, last) in pairwise(known):
        for part in range(1, 13):
            epsilon = low * (high / low) ** (part / 12) if high > low else high
            weight = (epsilon - low) / (high - low) if high > low else 1.0
            places.append((x.at(epsilon), y.at(_share(first + weight * (last - first)))))
    drawn = _path(places, "line")
    for point in points:
        if math.isinf(_epsilon(point)):
            drawn += _placed("line", "ink", x.edge, y.at(point["ceiling"]))
    return drawn


def _log_odds(share: float) -> float:
    return math.log(share / (1 - share)) if 0 < share < 1 else math.copysign(40.0, share - 0.5)


def _share(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))


def _level(share: float, y: Axis) -> str:
    return f'<path class="line dashed thin unknown" d="M{_LEFT} {y.at(share):.1f}H{_RIGHT}"/>'


def _path(places: list[tuple[float, float]], style: str) -> str:
    points = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return f'<path class="{style}" d="M{points}"/>' if places else ""


def _guessed(point: Point, x: Axis, y: Axis, name: str) -> str:
    mark, style = ("failed", "failed") if _beats(point) else ("attack", "caught")
    return _placed(mark, style, x.at(_epsilon(point)), y.at(point[name]))


def _placed(mark: str, style: str, x: float, y: float) -> str:
    return f'<g class="{style}" transform="translate({x:.1f} {y:.1f})">{MARKS[mark]}</g>'


def _figure(x: Axis, y: Axis, label: str, shapes: str, key: Sequence[tuple[str, str, str]], caption: str) -> str:
    """A frame with both scales, what is drawn in it, and what that is."""
    frame = ""
    for tick in y.ticks:
        at = y.at(tick)
        frame += f'<path class="grid" d="M{_LEFT} {at:.1f}H{_RIGHT}"/>'
        frame += f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{100 * tick:g}%</text>'
    for tick in x.ticks:
        frame += f'<path class="axis" d="M{x.at(tick):.1f} {_BOTTOM}v5"/>'
        frame += f'<text x="{x.at(tick):.1f}" y="{_BOTTOM + 19}" text-anchor="middle">{tick:g}</text>'
    if x.edge > x.end:
        gap = (x.end + x.edge) / 2
        frame += f'<path class="grid dashed" d="M{gap:.1f} {_TOP}V{_BOTTOM}"/>'
        frame += f'<text x="{_RIGHT + 8}" y="{_BOTTOM + 19}" text-anchor="end">no noise</text>'
    frame += f'<path class="axis" d="M{_LEFT} {_BOTTOM}H{_RIGHT}"/>'
    frame += f'<text class="label" x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 42}" text-anchor="middle">epsilon</text>'
    middle = (_TOP + _BOTTOM) / 2
    turned = f'transform="translate(11 {middle}) rotate(-90)" text-anchor="middle"'
    frame += f'<text class="label" {turned}>{label}</text>'
    return (
        f'<figure><svg class="figure" viewBox="0 0 560 296" role="img" aria-label="{label} over epsilon">'
        f"{frame}{shapes}</svg>{key_of(key)}<figcaption>{caption}</figcaption></figure>"
    )


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


def _numbers(points: list[Point], names: dict[str, str]) -> str:
    """The numbers behind a figure."""
    rows = ""
    for point in points:
        values = [_at(point).removeprefix("epsilon "), *(_digits(point[name], name) for name in names)]
        rows += f'<tr class="rule">{"".join(map(cell, values))}</tr>'
    named = heads("#epsilon", *(f"#{head}" for head in names.values()))
    return f'<div class="scroll"><table>{named}<tbody>{rows}</tbody></table></div>'


def _digits(value: float, name: str) -> str:
    return f"{value:,}" if name == "guesses" else f"{value:.3f}"

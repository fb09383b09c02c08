"""How repeats scatter: every one a dot on a scale that all algorithms share, with their mean and its interval.

Places are shares of the width, so that the picture is as sharp on a phone as on paper.
"""

from __future__ import annotations

from collections.abc import Sequence

from privet.report.chart import Axis
from privet.studies.estimate import Estimate
from privet.studies.pages.frame import FEW
from privet.studies.pages.group import Group
from privet.studies.pages.words import amount, ours_text, places
from privet.trees.layout import safe

LANES, DOTS = 30, 60  # at most drawn

STYLE = """
.lane { display: grid; grid-template-columns: 17rem 1fr 10.5rem; gap: 0 1rem; align-items: center;
  padding: .12rem .5rem; border-radius: .4rem; border-left: 4px solid transparent; }
.lane .who { overflow-wrap: anywhere; line-height: 1.25; } .lane .said { text-align: right; white-space: nowrap; }
.lane .said, .ticks { font-variant-numeric: tabular-nums; font-size: .85rem; } .lane .who { font-size: .9rem; }
.live .lane[data-group] { cursor: pointer; } .live .lane[data-group]:hover { background: var(--paper); }
.lane.chosen { border-left-color: var(--leaf); background: var(--paper); } .lane.chosen .who { font-weight: 700; }
.track { position: relative; height: 1.9rem; border-bottom: 1px solid var(--line); }
.track i { position: absolute; box-sizing: border-box; } .track .dot { width: 9px; height: 9px; margin: -4px 0 0 -4.5px;
  border: 1.5px solid var(--ink); border-radius: 50%; opacity: .55; }
.track .mean { width: 3px; margin-left: -1.5px; top: 2px; bottom: 2px; background: var(--ink); }
.track .within { top: 32%; bottom: 32%; background: var(--leaf); opacity: .5; border-radius: 2px; }
.track .level { top: -2px; bottom: -2px; width: 0; border-left: 2px dotted var(--soft); }
.lane.chosen .dot { opacity: 1; } .lane .aside { color: var(--soft); }
.ticks .track { border: 0; height: 1.6rem; } .ticks .track span { position: absolute; transform: translateX(-50%);
  color: var(--soft); top: .3rem; white-space: nowrap; }
.ticks .track i { top: 0; height: 5px; border-left: 1px solid var(--soft); }
@media (max-width: 48rem) { .lane { grid-template-columns: 1fr auto; padding: .25rem .4rem; }
  .lane .track { grid-column: 1 / -1; grid-row: 2; } .ticks .who, .ticks .said { display: none; } }
"""


def spread(found: Sequence[tuple[int, Group]], measure: str, axis: Axis, chosen: int) -> str:
    """A lane for each algorithm with its number among all groups, the highest first."""
    known = [(number, group, each) for number, group in found if (each := group.estimate(measure)) is not None]
    known.sort(key=lambda lane: (-lane[2].mean, lane[0]))
    shown = known[:LANES] + [lane for lane in known[LANES:] if lane[0] == chosen]
    decimals = places([each for _, _, each in shown])
    lanes = "".join(_lane(number, group, measure, axis, number == chosen, decimals) for number, group, _ in shown)
    more = len(known) - len(shown)
    left = f'<p class="soft">{more} more are further down.</p>' if more > 0 else ""
    return f"{lanes}{_ticks(axis)}{left}"


def axis_of(found: Sequence[Group], measure: str) -> Axis:
    """One scale for all repeats of a data set: what moves when something else is picked has moved indeed."""
    values = [value for group in found for value in group.values(measure)]
    if measure == "accuracy":
        values += [value for group in found for value in group.values("majority")]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    air = 0.03 * (high - low) or 0.5
    return Axis(low - air, high + air, 0.0, 100.0, 100.0)


def _lane(number: int, group: Group, measure: str, axis: Axis, chosen: bool, decimals: int | None) -> str:
    values = group.values(measure)
    estimate = Estimate.of(values)
    level = group.estimate("majority") if measure == "accuracy" else None
    drawn = "" if level is None else f'<i class="level" style="left:{axis.at(level.mean):.2f}%"></i>'
    if estimate.n >= FEW:
        low, high = axis.at(estimate.low), axis.at(estimate.high)
        drawn += f'<i class="within" style="left:{low:.2f}%;width:{high - low:.2f}%"></i>'
    for place, value in enumerate(values[:DOTS]):
        top = (50, 28, 72)[place % 3]  # apart, where they would lie on each other
        drawn += f'<i class="dot" style="left:{axis.at(value):.2f}%;top:{top}%"></i>'
    drawn += f'<i class="mean" style="left:{axis.at(estimate.mean):.2f}%"></i>'
    aside = "" if group.private else ' <span class="aside">not private</span>'
    told = f"{estimate.n} repeats from {min(values):.4g} to {max(values):.4g}, mean {estimate.mean:.4g}"
    return (
        f'<div class="lane{" chosen" if chosen else ""}" data-group="{number}"><div class="who">'
        f"{safe(group.algorithm, 120)}{aside}</div>"
        f'<div class="track" role="img" aria-label="{safe(told)}">{drawn}</div>'
        f'<div class="said">{safe(ours_text(estimate, decimals))}</div></div>'
    )


def _ticks(axis: Axis) -> str:
    marks = "".join(
        f'<i style="left:{axis.at(tick):.2f}%"></i><span style="left:{axis.at(tick):.2f}%">{safe(amount(tick))}</span>'
        for tick in axis.ticks
    )
    return (
        f'<div class="lane ticks"><div class="who"></div><div class="track">{marks}</div><div class="said"></div></div>'
    )

"""Drawings of an audit: colours from calm to alarm, and how sure adversaries are of how many people.

What a colour says, a number and a length say too.
"""

from __future__ import annotations

import numpy as np

from privet.risk.findings import BASELINES, Audit, probability
from privet.risk.measures import SAME, histogram
from privet.risk.tree import Floats, Integers
from privet.trees.layout import safe

BINS = 20
CERTAIN = 1 - 1e-9

# From calm to alarm: the further, the more a colour differs from the paper, for every kind of colour vision.
STYLE = """
:root { --e0: #d3e5da; --e1: #ecd98f; --e2: #eba94b; --e3: #d1552c; --e4: #8f1d16; }
@media (prefers-color-scheme: dark) { :root { --e0: #2f4a3c; --e1: #6f662f; --e2: #b57d2e; --e3: #ea6a41;
  --e4: #ffab9d; } }
.e0 { fill: var(--e0); } .e1 { fill: var(--e1); } .e2 { fill: var(--e2); } .e3 { fill: var(--e3); }
.e4 { fill: var(--e4); }
.risk text { font: 11px system-ui, sans-serif; fill: var(--ink); font-variant-numeric: tabular-nums; }
.risk .name { font-size: 12px; font-weight: 600; } .risk .aside, .risk .tick { fill: var(--soft); }
.risk .alarmed { fill: var(--alarm); font-weight: 600; } .risk .edge { fill: none; stroke: var(--soft); opacity: .55; }
.risk .frame { fill: none; stroke: var(--line); } .risk .at { stroke: var(--alarm); stroke-width: 1.5; }
.risk circle { fill: var(--ink); } .risk .grid { stroke: var(--line); } .risk .axis { stroke: var(--soft); }
.risk .marginal, .risk .uniform { fill: none; stroke: var(--ink); stroke-width: 1.5; }
.risk .uniform { stroke: var(--soft); stroke-dasharray: 4 3; } .risk .dashes { stroke-dasharray: 5 3; }
.histogram { display: block; width: 100%; max-width: 32rem; height: auto; }
"""


def level(posterior: float, threshold: float, even: float) -> int:
    """How alarming a number is: below the threshold in three steps from where it starts, above it, certain.

    >>> [level(posterior, 0.8, 0.5) for posterior in (0.5, 0.65, 0.75, 0.8, 1.0)]
    [0, 1, 2, 3, 4]
    """
    if posterior >= threshold - SAME:
        return 4 if posterior >= CERTAIN else 3
    return min(int(3 * max(posterior - even, 0.0) / (threshold - even) + SAME), 2)


def start(audit: Audit) -> float:
    """Where the scale of an audit begins: nothing added, or an even share."""
    return 0.0 if audit.by_own_row else 1 / len(audit.values)


def key(audit: Audit) -> str:
    """What the colours mean."""
    even, threshold = start(audit), audit.threshold
    words = {3: f"{threshold:g} or more", 4: "all that can be added" if audit.by_own_row else "certain"}
    if even < threshold:
        first, second = (f"{even + (threshold - even) * part / 3:.2g}" for part in (1, 2))
        words = {0: f"below {first}", 1: f"below {second}", 2: f"below {threshold:g}", **words}
    square = '<svg width="14" height="12" aria-hidden="true"><rect class="e{}" width="14" height="12" rx="2"/></svg>'
    shown = "".join(f"<span>{square.format(at)}{told}</span>" for at, told in sorted(words.items()))
    return f'<p class="key">{shown}</p>'


# -- the histogram ------------------------------------------------------------------------------

LEFT, TOP, HIGH, ACROSS, WIDE = 34, 22, 14, 250, 360  # pixels: margins, a row, the longest bar, all


def posteriors(audit: Audit) -> str:
    """How many people have which largest posterior: a bar for each twentieth, outlines for who has not seen the model.

    The rows run from certainty down, so that numbers stand beside their bars at every width of a page.
    """
    edges = np.linspace(0, 1, BINS + 1)
    counts = histogram(audit.people, audit.scores[:, None], edges)
    most = max(audit.people.total, 1)
    what = "added by the own row" if audit.by_own_row else "posterior of the likeliest value"
    drawn = [*_axes(most, what), *_bars(audit, counts, edges, most)]
    for name in () if audit.by_own_row else BASELINES:
        if name in audit.beliefs:
            steps = histogram(audit.people, audit.beliefs[name].shares, edges)
            drawn.append(f'<path class="{name}" d="{_outline(steps, most)}"/>')
    line = TOP + HIGH * BINS * (1 - audit.threshold)
    drawn.append(f'<path class="at dashes" d="M{LEFT - 4} {line:.1f}H{WIDE - 34}"/>')
    drawn.append(f'<text class="alarmed" x="{WIDE - 30}" y="{line + 4:.1f}">{audit.threshold:g}</text>')
    size = f'viewBox="0 0 {WIDE} {TOP + HIGH * BINS + 36}"'
    said = safe(_spoken(audit, counts, edges))
    return f'<svg class="risk histogram" {size} role="img" aria-label="{said}">{"".join(drawn)}</svg>'


def _axes(most: int, what: str) -> list[str]:
    bottom = TOP + HIGH * BINS
    drawn = ['<text class="tick" x="0" y="12">' + f"{what}</text>"]
    for tenth in range(0, 11, 2):
        y = bottom - HIGH * BINS * tenth / 10
        drawn.append(f'<path class="grid" d="M{LEFT - 4} {y:.1f}H{LEFT + ACROSS}"/>')
        drawn.append(f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tenth / 10:.1f}</text>')
    for part in (0, 0.5, 1):
        x = LEFT + ACROSS * part
        drawn.append(f'<text class="tick" x="{x:.0f}" y="{bottom + 16}" text-anchor="middle">{most * part:,.0f}</text>')
    middle = LEFT + ACROSS / 2
    drawn.append(f'<text class="tick" x="{middle:.0f}" y="{bottom + 31}" text-anchor="middle">people</text>')
    return [*drawn, f'<path class="axis" d="M{LEFT} {TOP}V{bottom}"/>']


def _bars(audit: Audit, counts: Integers, edges: Floats, most: int) -> list[str]:
    drawn = []
    certain = int(audit.people.sizes[audit.scores >= CERTAIN].sum())
    for at, count in enumerate(counts.tolist()):
        if not count:
            continue
        y = TOP + HIGH * (BINS - 1 - at)
        wide = max(ACROSS * count / most, 1.5)
        shade = level(float(edges[at] + edges[at + 1]) / 2, audit.threshold, start(audit))
        bar = _bar(shade, y, wide)
        told = f"{edges[at]:.2f} to {edges[at + 1]:.2f}: {count:,} people"
        if at == BINS - 1 and certain:
            bar += _bar(4, y, wide * certain / count)
            told += f", {certain:,} of them certain"
        number = f'<text x="{LEFT + wide + 5:.1f}" y="{y + HIGH - 3}">{count:,}</text>'
        drawn.append(f"<g><title>{told}</title>{bar}{number}</g>")
    return drawn


def _bar(shade: int, y: int, wide: float) -> str:
    return f'<rect class="e{shade}" x="{LEFT}" y="{y + 1}" width="{wide:.1f}" height="{HIGH - 2}"/>'


def _outline(counts: Integers, most: int) -> str:
    """The steps of a baseline, from the top down; empty rows leave the axis to itself."""
    parts = []
    for at in reversed(range(BINS)):
        if counts[at]:
            y = TOP + HIGH * (BINS - 1 - at)
            parts.append(f"M{LEFT} {y}H{LEFT + ACROSS * int(counts[at]) / most:.1f}V{y + HIGH}H{LEFT}")
    return "".join(parts)


def _spoken(audit: Audit, counts: Integers, edges: Floats) -> str:
    bins = [
        f"{edges[at]:.2f} to {edges[at + 1]:.2f}: {int(counts[at]):,}" for at in reversed(range(BINS)) if counts[at]
    ]
    if audit.by_own_row:
        said = f"People by what their own row adds: {'; '.join(bins)}."
        return f"{said} The threshold is {audit.threshold:g}."
    before = probability(audit.overall[audit.baseline.adversary].worst)
    return (
        f"People by the posterior of their likeliest value: {'; '.join(bins)}. "
        f"Without the model everybody has at most {before}; the threshold is {audit.threshold:g}."
    )

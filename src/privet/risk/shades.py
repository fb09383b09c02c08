"""Shades from calm to alarm, and how surely adversaries know how many people.

What a colour says, a number and a length say too.
"""

from __future__ import annotations

import numpy as np

from privet.report.chart import Bin, people_histogram
from privet.report.svg import Drawing
from privet.risk.findings import BASELINES, Audit, probability
from privet.risk.measures import SAME, histogram
from privet.risk.tree import Floats, Integers

BINS = 20
CERTAIN = 1 - 1e-9


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


def key(audit: Audit) -> list[tuple[int, str]]:
    """Return what each shade means."""
    even, threshold = start(audit), audit.threshold
    words = {3: f"{threshold:g} or more", 4: "all that can be added" if audit.by_own_row else "certain"}
    if even < threshold:
        first, second = (f"{even + (threshold - even) * part / 3:.2g}" for part in (1, 2))
        words = {0: f"below {first}", 1: f"below {second}", 2: f"below {threshold:g}", **words}
    return sorted(words.items())


def posteriors(audit: Audit) -> Drawing:
    """Return how many people have which largest posterior, and outlines for who has not seen the model."""
    edges = np.linspace(0, 1, BINS + 1)
    counts = histogram(audit.people, audit.scores[:, None], edges)
    certain = int(audit.people.sizes[audit.scores >= CERTAIN].sum())
    bins = []
    for at, count in enumerate(counts.tolist()):
        if not count:
            continue
        shade = level(float(edges[at] + edges[at + 1]) / 2, audit.threshold, start(audit))
        told, pieces = f"{edges[at]:.2f} to {edges[at + 1]:.2f}: {count:,} people", [(f"e{shade}", count)]
        if at == BINS - 1 and certain:
            pieces.append(("e4", certain))
            told += f", {certain:,} of them certain"
        bins.append(Bin(at, count, told, pieces))
    return people_histogram(
        bins,
        max(audit.people.total, 1),
        "added by the own row" if audit.by_own_row else "posterior of the likeliest value",
        _spoken(audit, counts, edges),
        audit.threshold,
        {name: histogram(audit.people, audit.beliefs[name].shares, edges).tolist() for name in baselines(audit)},
        BINS,
    )


def baselines(audit: Audit) -> list[str]:
    """Return the adversaries who have not seen the model and have an outline."""
    return [] if audit.by_own_row else [name for name in BASELINES if name in audit.beliefs]


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

"""Tables of log odds from released sums and counts: what `cell_values` says of each cell, for every class.

Values are centred: those of a cell add up to 0 over the classes. With two classes one log ratio says
everything; with more, each class is held against all others. Post-processing, which costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privet.kernel import RESIDUAL_GRID, Domain, Histogram, Numeric, ResidualSums
from privet.learners.cell_values import Floats, NoisySums, log_ratios


def from_residuals(
    domain: Domain, columns: tuple[str, ...], found: ResidualSums, caps: Sequence[int]
) -> tuple[Floats, Floats]:
    """How far a model is off in each cell, from the sums of its residuals: mean and standard deviation."""
    limits = [cap / RESIDUAL_GRID for cap in caps]
    own = [
        NoisySums(found.own[..., c].ravel() / RESIDUAL_GRID, found.noise.own[c].scale / RESIDUAL_GRID, limit)
        for c, limit in enumerate(limits)
    ]
    if found.others is None:
        return _of_classes(domain, columns, own, own[::-1])
    scale = found.noise.others.scale / RESIDUAL_GRID
    others = [
        NoisySums(found.others[..., c].ravel() / RESIDUAL_GRID, scale, max(limits) / 2) for c in range(len(limits))
    ]
    return _of_classes(domain, columns, own, others)


def from_counts(domain: Domain, columns: tuple[str, ...], found: Histogram, shares: Floats) -> tuple[Floats, Floats]:
    """How far class shares are off in each cell, from plain counts: under a constant model these say everything."""
    counts, scale = found.values.astype(np.float64), found.noise.scale
    rest = counts.sum(axis=-1, keepdims=True) - counts
    spread = math.sqrt(len(shares) - 1) * scale
    own = [
        NoisySums(((1 - share) * counts[..., c]).ravel(), (1 - share) * scale, 1 - share)
        for c, share in enumerate(shares)
    ]
    others = [NoisySums((share * rest[..., c]).ravel(), share * spread, share) for c, share in enumerate(shares)]
    return _of_classes(domain, columns, own, others)


def from_likelihoods(
    domain: Domain, columns: tuple[str, ...], found: Histogram, shares: Floats
) -> tuple[Floats, Floats]:
    """How much likelier each cell is in a class than in all rows: Bayes' rule multiplies such factors."""
    if len(shares) == 2:
        return from_counts(domain, columns, found, shares)
    counts, scale = found.values.astype(np.float64), found.noise.scale
    whole = counts.sum(axis=-1).ravel()
    spread = math.sqrt(len(shares)) * scale
    each = [
        _cells(
            domain,
            columns,
            NoisySums(counts[..., c].ravel(), scale, 1.0),
            NoisySums(share * whole, share * spread, share),
        )
        for c, share in enumerate(shares)
    ]
    values = np.stack([mean for mean, _ in each], axis=-1)
    return values - values.mean(axis=-1, keepdims=True), np.stack([deviation for _, deviation in each], axis=-1)


def _of_classes(
    domain: Domain, columns: tuple[str, ...], own: Sequence[NoisySums], others: Sequence[NoisySums]
) -> tuple[Floats, Floats]:
    """Values [cells..., class] and their deviations: each class against all others."""
    if len(own) == 2:
        mean, deviation = _cells(domain, columns, own[1], others[1])
        return np.stack([-mean, mean], axis=-1) / 2, np.stack([deviation, deviation], axis=-1) / 2
    found = [_cells(domain, columns, one, other) for one, other in zip(own, others, strict=True)]
    shrink = (len(own) - 1) / len(own)
    values = shrink * np.stack([mean for mean, _ in found], axis=-1)
    deviations = shrink * np.stack([deviation for _, deviation in found], axis=-1)
    return values - values.mean(axis=-1, keepdims=True), deviations


def _cells(domain: Domain, columns: tuple[str, ...], one: NoisySums, other: NoisySums) -> tuple[Floats, Floats]:
    """Values of all cells; those of an order are chains, and cells beside the order stand for themselves."""
    shape = tuple(domain[name].size for name in columns)
    run = run_of(domain, columns[-1])
    inside = np.zeros(shape, dtype=np.bool_)
    inside[..., :run] = True
    mean, deviation = np.zeros(inside.size), np.zeros(inside.size)
    for part, length in ((inside.ravel(), run), (~inside.ravel(), 0)):
        if part.any():
            here, there = (NoisySums(sums.values[part], sums.scale, sums.cap) for sums in (one, other))
            mean[part], deviation[part] = log_ratios(here, there, length)
    return mean.reshape(shape), deviation.reshape(shape)


def run_of(domain: Domain, name: str) -> int:
    """How many cells of an attribute follow one another in an order; 0 where they have none."""
    column = domain[name]
    if isinstance(column, Numeric):
        return column.bin_count
    return len(column.values) if column.ordered else 0

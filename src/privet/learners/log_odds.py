"""What learners of tables share: class shares, tables of log odds, and what such a learner returns.

Everything here works on released counts and sums. It is post-processing, which costs nothing.

A table of log odds has values for each cell and class. Values are centred: those of a cell add up
to 0 over the classes. With two classes a single log ratio determines both values. With more
classes, each class is compared with all others together.

The value of a cell is estimated from two noisy sums (`log_ratios`). Their expectations are
m e^(v/2) and m e^(-v/2), up to a common factor: the first sums the rows of a class that the model
missed, the second the probability that the model gave to rows of other classes. So v is the error
of the model in this cell. The model of the sums is this:

* Noise is Laplace, widened by the sampling error of the sum.
* The mass m of a cell is unknown and integrated out.
* A priori v is tau times a standard shift. All cells share tau, which may be 0.
* Shifts are either exchangeable with a slightly heavy tail or, along an ordered attribute, a
  Markov chain with a memory and rare jumps.
* The posterior averages over the values of tau and of the memory by their evidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privet.kernel import RESIDUAL_GRID, Domain, Numeric
from privet.models.model import Floats
from privet.models.tables import Table
from privet.release import Histogram, ResidualSums
from privet.table import ProtectedTable

Single = NDArray[np.float32]

TAUS = np.array([0.15, 0.4, 0.8, 1.6, 3.0])
SHIFTS = np.linspace(-3.2, 3.2, 23)
NORMAL = np.exp(-(SHIFTS**2) / 2) / np.exp(-(SHIFTS**2) / 2).sum()
HEAVY = 0.85 * NORMAL + 0.15 / len(SHIFTS)
BLUR = 0.01  # relative width added to every sum: the grids resolve nothing finer
CLEAR = 8.0  # a sum this many standard deviations above 0 has a nearly normal logarithm
LEVELS = 22  # points of the grid for the mass of a cell, evenly spaced in its logarithm
BLOCK = 32  # cells that are computed together: their arrays stay in the processor's cache
TINY = 1e-300  # added before a logarithm or a division
SHORTEST = 3  # ordered attributes with fewer cells are treated as exchangeable


class AskedQuestion(NamedTuple):
    """A question that a learner asked, and its answer."""

    question: str
    release: Any  # a Histogram, a Choice or ResidualSums
    table: int  # the number of the table it was asked for, from 1; 0 for none


@dataclass(frozen=True)
class Learned:
    """What a learner of tables returns.

    Parameters
    ----------
    intercept : tuple of float
        Log odds of each class before any table, centred.
    tables : tuple of Table
    asked : tuple of AskedQuestion
        Every question that was charged, in order.
    note : str, default ""
        A remark about the fit for people, such as that there was too little signal.
    domain : Domain, optional
        The domain whose cells the tables have; that of the table if left out.
    """

    intercept: tuple[float, ...]
    tables: tuple[Table, ...]
    asked: tuple[AskedQuestion, ...]
    note: str = ""
    domain: Domain | None = None


# -- class shares -----------------------------------------------------------------------------


def class_shares(*histograms: Histogram) -> Floats:
    """Return the share of each class, estimated from noisy counts.

    The shares are shrunk towards even ones, the more the larger the noise.

    Parameters
    ----------
    *histograms : Histogram
        Released class counts, and counts of other columns with the class last, which have these as totals. They are
        averaged by their accuracy.

    Returns
    -------
    array of float
        Positive shares that add up to 1.
    """
    counts, variance = _class_totals(histograms)
    positive = np.maximum(counts, 0)
    noise = 2 * math.sqrt(variance)
    shares = (positive + noise) / (positive.sum() + len(positive) * noise)
    clipped = np.clip(shares, 0.05 if len(positive) == 2 else 0.001, 0.95)
    return np.asarray(clipped / clipped.sum())


def told_shares(*histograms: Histogram) -> Floats:
    """Return class shares as far as noise lets classes be told apart: even ones where it does not.

    What `class_shares` returns is moved towards even shares by the part of the differences that noise alone would
    make (James and Stein). Where signal is little, noisy shares would decide what every row is taken for.

    Parameters
    ----------
    *histograms : Histogram
        As for `class_shares`.

    Returns
    -------
    array of float
        Positive shares that add up to 1.
    """
    counts, variance = _class_totals(histograms)
    seen = float(((counts - counts.mean()) ** 2).sum())
    expected = (len(counts) - 1) * variance  # of noise alone
    even = 1 / len(counts)
    return np.asarray(even + (max(0.0, 1 - expected / seen) if seen else 0.0) * (class_shares(*histograms) - even))


def _class_totals(histograms: Sequence[Histogram]) -> tuple[Floats, float]:
    """Return the noisy count of each class, averaged over histograms by their accuracy, and the variance of its noise.

    That of Laplace noise; of Gaussian noise it is twice the variance, which errs towards even shares.
    """
    totals = [histogram.values.reshape(-1, histogram.values.shape[-1]).astype(np.float64) for histogram in histograms]
    scales = [
        histogram.noise.scale * math.sqrt(len(cells)) for histogram, cells in zip(histograms, totals, strict=True)
    ]
    weights = 1 / np.array(scales) ** 2
    counts = np.average([cells.sum(axis=0) for cells in totals], axis=0, weights=weights)
    return counts, 2 / float(weights.sum())


def prior_alone(
    table: ProtectedTable, epsilon: Fraction, counts: Histogram | None, paid: Fraction | None = None
) -> Learned:
    """Spend the whole budget on class counts, and return a model of the class shares alone.

    Parameters
    ----------
    table : ProtectedTable
    epsilon : Fraction
        What all class counts may cost together, `counts` included.
    counts : Histogram or None
        Class counts that were bought before. The rest of epsilon buys a second histogram, and the
        model uses the average of both, weighted by their accuracy.
    paid : Fraction, optional
        What was asked for them, if it is not what they say.

    Returns
    -------
    Learned
    """
    histograms = [] if counts is None else [counts]
    if paid is None:
        paid = sum((histogram.epsilon for histogram in histograms), Fraction(0))
    histograms.append(table.histogram(table.domain.target_column.name, epsilon=epsilon - paid))
    weights = np.array([histogram.noise.scale for histogram in histograms]) ** -2.0  # least squares
    values = np.average([histogram.values for histogram in histograms], axis=0, weights=weights)
    shares = np.maximum(values, 0.5)
    asked = tuple(AskedQuestion("class counts", histogram, 0) for histogram in histograms)
    return Learned(centred_log(shares / shares.sum()), (), asked)


def centred_log(shares: Floats) -> tuple[float, ...]:
    """Return the logarithms of shares, shifted so that they add up to 0."""
    logs = np.log(shares)
    return tuple((logs - logs.mean()).tolist())


def table_title(columns: Sequence[str]) -> str:
    """Return how a privacy record names the question for the table of these columns."""
    return f"table of {' and '.join(columns)}"


# -- tables of log odds -----------------------------------------------------------------------


def from_residuals(
    domain: Domain, columns: tuple[str, ...], sums: ResidualSums, caps: Sequence[int]
) -> tuple[Floats, Floats]:
    """Return the error of a model in each cell, estimated from the sums of its residuals.

    Parameters
    ----------
    domain : Domain
    columns : tuple of str
        The attributes of the table.
    sums : ResidualSums
        Released sums of the residuals in the cells of these attributes.
    caps : sequence of int
        The largest residual of a row of each class, in units of 1 / RESIDUAL_GRID.

    Returns
    -------
    values, deviation : arrays of float
        Posterior mean and standard deviation of the log odds, [cells..., class].
    """
    limits = [cap / RESIDUAL_GRID for cap in caps]
    own = [
        NoisySums(sums.own[..., c].ravel() / RESIDUAL_GRID, sums.noise.own[c].scale / RESIDUAL_GRID, limit)
        for c, limit in enumerate(limits)
    ]
    if sums.others is None:
        return _of_classes(domain, columns, own, own[::-1])
    scale = sums.noise.others.scale / RESIDUAL_GRID
    others = [
        NoisySums(sums.others[..., c].ravel() / RESIDUAL_GRID, scale, max(limits) / 2) for c in range(len(limits))
    ]
    return _of_classes(domain, columns, own, others)


def from_counts(
    domain: Domain, columns: tuple[str, ...], histogram: Histogram, shares: Floats
) -> tuple[Floats, Floats]:
    """Return the error of a model of constant class shares in each cell, estimated from counts.

    The residuals of such a model are functions of the counts, so no other question is needed.

    Parameters
    ----------
    domain : Domain
    columns : tuple of str
        The attributes of the table.
    histogram : Histogram
        Released counts of these attributes with the class.
    shares : array of float
        The class shares that the model predicts for every row.

    Returns
    -------
    values, deviation : arrays of float
        Posterior mean and standard deviation of the log odds, [cells..., class].
    """
    counts, scale = histogram.values.astype(np.float64), histogram.noise.scale
    rest = counts.sum(axis=-1, keepdims=True) - counts
    spread = math.sqrt(len(shares) - 1) * scale
    own = [
        NoisySums(((1 - share) * counts[..., c]).ravel(), (1 - share) * scale, 1 - share)
        for c, share in enumerate(shares)
    ]
    others = [NoisySums((share * rest[..., c]).ravel(), share * spread, share) for c, share in enumerate(shares)]
    return _of_classes(domain, columns, own, others)


def from_likelihoods(
    domain: Domain, columns: tuple[str, ...], histogram: Histogram, shares: Floats
) -> tuple[Floats, Floats]:
    """Return the log of how much likelier each cell is in a class than among all rows.

    These are the terms that naive Bayes adds up.

    Parameters
    ----------
    domain : Domain
    columns : tuple of str
        The attributes of the table.
    histogram : Histogram
        Released counts of these attributes with the class.
    shares : array of float
        The share of each class.

    Returns
    -------
    values, deviation : arrays of float
        Posterior mean and standard deviation, [cells..., class].
    """
    if len(shares) == 2:
        return from_counts(domain, columns, histogram, shares)
    counts, scale = histogram.values.astype(np.float64), histogram.noise.scale
    whole = counts.sum(axis=-1).ravel()
    spread = math.sqrt(len(shares)) * scale
    by_class = [
        _cells(
            domain,
            columns,
            NoisySums(counts[..., c].ravel(), scale, 1.0),
            NoisySums(share * whole, share * spread, share),
        )
        for c, share in enumerate(shares)
    ]
    values = np.stack([mean for mean, _ in by_class], axis=-1)
    return values - values.mean(axis=-1, keepdims=True), np.stack([deviation for _, deviation in by_class], axis=-1)


def ordered_cells(domain: Domain, name: str) -> int:
    """Return how many cells of an attribute are in order, 0 for one without an order.

    Cells for missing and for other values are not counted.
    """
    column = domain[name]
    if isinstance(column, Numeric):
        return column.bin_count
    return len(column.values) if column.ordered else 0


def _of_classes(
    domain: Domain, columns: tuple[str, ...], own: Sequence[NoisySums], others: Sequence[NoisySums]
) -> tuple[Floats, Floats]:
    """Return centred values [cells..., class] and their deviations, comparing each class with all others."""
    if len(own) == 2:
        mean, deviation = _cells(domain, columns, own[1], others[1])
        return np.stack([-mean, mean], axis=-1) / 2, np.stack([deviation, deviation], axis=-1) / 2
    by_class = [_cells(domain, columns, one, other) for one, other in zip(own, others, strict=True)]
    shrink = (len(own) - 1) / len(own)
    values = shrink * np.stack([mean for mean, _ in by_class], axis=-1)
    deviations = shrink * np.stack([deviation for _, deviation in by_class], axis=-1)
    return values - values.mean(axis=-1, keepdims=True), deviations


def _cells(domain: Domain, columns: tuple[str, ...], one: NoisySums, other: NoisySums) -> tuple[Floats, Floats]:
    """Return the log ratios of all cells. Ordered cells form chains; missing and other values are exchangeable."""
    shape = tuple(domain[name].size for name in columns)
    run = ordered_cells(domain, columns[-1])
    ordered = np.zeros(shape, dtype=np.bool_)
    ordered[..., :run] = True
    mean, deviation = np.zeros(ordered.size), np.zeros(ordered.size)
    for cells, length in ((ordered.ravel(), run), (~ordered.ravel(), 0)):
        if cells.any():
            first, second = (NoisySums(sums.values[cells], sums.scale, sums.cap) for sums in (one, other))
            mean[cells], deviation[cells] = log_ratios(first, second, length)
    return mean.reshape(shape), deviation.reshape(shape)


# -- the posterior of a log ratio -------------------------------------------------------------


def _chain(memory: float) -> Floats:
    """Return the transition matrix of shifts along an ordered attribute: a longer memory, smaller steps."""
    kept = math.exp(-1 / memory)
    moves = np.exp(-((SHIFTS[None] - kept * SHIFTS[:, None]) ** 2) / (2 * (1 - kept**2)))
    return np.asarray(0.95 * moves / moves.sum(axis=1, keepdims=True) + 0.05 * NORMAL)


CHAINS = np.stack([_chain(1.5), _chain(6.0), _chain(12.0)])


@dataclass(frozen=True)
class NoisySums:
    """A noisy sum for each cell.

    Parameters
    ----------
    values : array of float
    scale : float
        Scale of the Laplace noise.
    cap : float
        The most that one record adds to a sum.
    """

    values: Floats
    scale: float
    cap: float


def log_ratios(one: NoisySums, other: NoisySums, run: int) -> tuple[Floats, Floats]:
    """Return the posterior mean and standard deviation of log(E one / E other) in every cell.

    Parameters
    ----------
    one, other : NoisySums
        Two noisy sums for each cell.
    run : int
        Length of the chains of neighbouring cells; the cells are such chains one after the other.
        Below 3 all cells are exchangeable.

    Returns
    -------
    mean, deviation : arrays of float
    """
    likelihood, without = _likelihoods(one, other)
    evidence, means, squares = [float(without.sum())], [np.zeros(len(one.values))], [np.zeros(len(one.values))]
    posteriors = [_exchangeable(likelihood)] if run < SHORTEST else _chained(likelihood, run)
    for log_evidence, shares in posteriors:
        log_weight = -math.log(len(posteriors))
        for index, tau in enumerate(TAUS):
            evidence.append(float(log_evidence[index]) + log_weight)
            means.append(tau * (shares[:, index] @ SHIFTS))
            squares.append(tau**2 * (shares[:, index] @ SHIFTS**2))
    weights = np.exp(np.array(evidence) - max(evidence))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    deviation = np.sqrt(np.maximum(weights @ np.array(squares) - mean**2, 0))
    taus = np.array([0.0, *np.tile(TAUS, len(posteriors))])
    return _with_clear_cells(one, other, mean, deviation, float(weights @ taus**2))


def _with_clear_cells(
    one: NoisySums, other: NoisySums, mean: Floats, deviation: Floats, variance: float
) -> tuple[Floats, Floats]:
    """Replace the posterior of cells whose sums are more precise than the grid of shifts.

    There the logarithm of the ratio is normal around its value, and the prior is taken as normal with `variance`.
    """
    step = math.sqrt(variance) * (SHIFTS[1] - SHIFTS[0])
    ratios, errors = np.zeros_like(mean), np.full_like(mean, np.inf)
    spreads = [np.sqrt(2 * sums.scale**2 + sums.cap * np.maximum(sums.values, 0)) for sums in (one, other)]
    clear = (one.values > CLEAR * spreads[0]) & (other.values > CLEAR * spreads[1])
    first, second = one.values[clear], other.values[clear]
    ratios[clear] = np.log(first / second)
    errors[clear] = (spreads[0][clear] / first) ** 2 + (spreads[1][clear] / second) ** 2
    precise = errors < (step / 2) ** 2
    kept = variance / (variance + errors)
    return (
        np.where(precise, kept * ratios, mean),
        np.where(precise, np.sqrt(kept * np.where(precise, errors, 0)), deviation),
    )


def _likelihoods(one: NoisySums, other: NoisySums) -> tuple[Floats, Floats]:
    """Return the likelihood [cell, tau, shift], and the log likelihood without a shift, up to a common factor."""
    cells = len(one.values)
    # single precision: a likelihood needs no more, and it is most of the work of a fit
    tilt = np.tanh(TAUS[:, None] * SHIFTS / 2)[..., None].astype(np.float32)
    mass = _masses(one, other).astype(np.float32)
    likelihood, without = np.empty((cells, len(TAUS), len(SHIFTS))), np.empty(cells)
    for start in range(0, cells, BLOCK):
        block = slice(start, start + BLOCK)
        masses = mass[block, None, None, :]
        distance, width = _distance(one, block, masses * (1 + tilt))
        further, spread = _distance(other, block, masses * (1 - tilt))
        distance += further
        distance -= distance.min(axis=(1, 2, 3), keepdims=True)
        likelihood[block] = (np.exp(-distance) / (width * spread)).sum(axis=3)
        without[block] = np.log(likelihood[block, 0, len(SHIFTS) // 2] + TINY)  # the shift in the middle is 0
    return likelihood, without


def _masses(one: NoisySums, other: NoisySums) -> Floats:
    """Return a grid for the mass of each cell, as wide around its estimate as noise and sampling may take it."""
    least = 0.3 * min(one.scale, other.scale) + 0.3
    middle = np.maximum((one.values + other.values) / 2, least)
    spread = np.sqrt((one.scale**2 + other.scale**2) / 2 + max(one.cap, other.cap) * middle + (BLUR * middle) ** 2)
    low = np.maximum(middle - 8 * spread, least)
    high = np.maximum(middle + 8 * spread, 4 * least)
    return np.asarray(np.exp(np.log(low)[:, None] + np.log(high / low)[:, None] * np.linspace(0, 1, LEVELS)))


def _distance(sums: NoisySums, block: slice, mean: Single) -> tuple[Single, Single]:
    """Return the distance of sums from their mean in widths of the noise, and these widths."""
    width = np.sqrt(sums.scale**2 + mean * (0.5 * sums.cap + BLUR**2 * mean))
    return np.abs(sums.values[block, None, None, None].astype(np.float32) - mean) / width, width


def _exchangeable(likelihood: Floats) -> tuple[Floats, Floats]:
    """Return the log evidence of each tau, and the posterior of the shifts [cell, tau, shift]."""
    joint = likelihood * HEAVY
    total = joint.sum(axis=2, keepdims=True) + TINY
    return np.log(total).sum(axis=(0, 2)), joint / total


def _chained(likelihood: Floats, run: int) -> list[tuple[Floats, Floats]]:
    """Return what `_exchangeable` returns, for chains with each memory (forward-backward algorithm)."""
    cells = likelihood.reshape(-1, run, 1, *likelihood.shape[1:])  # [chain, position, memory, tau, shift]
    forward = np.empty((len(cells), run, len(CHAINS), len(TAUS), len(SHIFTS)))
    evidence = np.zeros((len(CHAINS), len(TAUS)))
    ahead = np.broadcast_to(NORMAL, forward[:, 0].shape)
    for position in range(run):
        joint = ahead * cells[:, position]
        total = joint.sum(axis=3, keepdims=True) + TINY
        evidence += np.log(total).sum(axis=(0, 3))
        forward[:, position] = joint / total
        ahead = forward[:, position] @ CHAINS
    shares = np.empty_like(forward)
    behind = np.ones_like(forward[:, 0])
    for position in reversed(range(run)):
        joint = forward[:, position] * behind
        shares[:, position] = joint / (joint.sum(axis=3, keepdims=True) + TINY)
        behind = (behind * cells[:, position]) @ CHAINS.transpose(0, 2, 1)
        behind /= behind.max(axis=3, keepdims=True) + TINY
    return [(evidence[index], shares[:, :, index].reshape(likelihood.shape)) for index in range(len(CHAINS))]

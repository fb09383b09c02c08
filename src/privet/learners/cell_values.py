"""What noisy sums say about the cells of a table: the posterior of a log ratio, cell by cell.

Each cell has two noisy sums with expectations m e^(v/2) and m e^(-v/2), up to a factor: one of
the rows of a class that a model missed, one of the mass it gave them where they were
not. v is how far the model is off there. Noise is Laplace, widened by the sampling error of
the sum; the mass m of a cell is unknown and integrated out. A priori v is tau times a standard
shift, for a tau that all cells share (0 included), and shifts are either exchangeable with a
slightly heavy tail or, along an ordered attribute, a Markov chain with a memory and rare
jumps. Which tau and which memory is averaged by what they say about the data.

All of it works on releases: post-processing, which costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Single = NDArray[np.float32]

TAUS = np.array([0.15, 0.4, 0.8, 1.6, 3.0])
SHIFTS = np.linspace(-3.2, 3.2, 23)
NORMAL = np.exp(-(SHIFTS**2) / 2) / np.exp(-(SHIFTS**2) / 2).sum()
HEAVY = 0.85 * NORMAL + 0.15 / len(SHIFTS)
BLUR = 0.01  # of a sum, as little as the grids can tell apart
CLEAR = 8.0  # spreads above 0: a sum whose logarithm is normal
LEVELS = 22  # of the mass of a cell, spaced evenly in its logarithm
BLOCK = 32  # cells at once: what is computed for them stays in the cache
TINY = 1e-300
SHORTEST = 3  # cells of a chain: fewer are exchangeable


def _chain(memory: float) -> Floats:
    """How a shift moves to the next cell of an ordered attribute: closer with a longer memory, with rare jumps."""
    kept = math.exp(-1 / memory)
    moves = np.exp(-((SHIFTS[None] - kept * SHIFTS[:, None]) ** 2) / (2 * (1 - kept**2)))
    return np.asarray(0.95 * moves / moves.sum(axis=1, keepdims=True) + 0.05 * NORMAL)


CHAINS = np.stack([_chain(1.5), _chain(6.0)])


@dataclass(frozen=True)
class NoisySums:
    """A noisy sum for each cell; no record adds more than `cap`, and the noise is Laplace of `scale`."""

    values: Floats
    scale: float
    cap: float


def log_ratios(one: NoisySums, other: NoisySums, run: int) -> tuple[Floats, Floats]:
    """Mean and standard deviation of log(E one / E other) in every cell.

    Cells are exchangeable, or chains of `run` neighbouring cells each.
    """
    likelihood, without = _likelihoods(one, other)
    evidence, means, squares = [float(without.sum())], [np.zeros(len(one.values))], [np.zeros(len(one.values))]
    posteriors = [_exchangeable(likelihood)] if run < SHORTEST else _chained(likelihood, run)
    for log_evidence, shares in posteriors:
        log_weight = -math.log(len(posteriors))
        for at, tau in enumerate(TAUS):
            evidence.append(float(log_evidence[at]) + log_weight)
            means.append(tau * (shares[:, at] @ SHIFTS))
            squares.append(tau**2 * (shares[:, at] @ SHIFTS**2))
    weights = np.exp(np.array(evidence) - max(evidence))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    deviation = np.sqrt(np.maximum(weights @ np.array(squares) - mean**2, 0))
    taus = np.array([0.0, *np.tile(TAUS, len(posteriors))])
    return _known(one, other, mean, deviation, float(weights @ taus**2))


def _known(one: NoisySums, other: NoisySums, mean: Floats, deviation: Floats, variance: float) -> tuple[Floats, Floats]:
    """Cells that their own sums determine better than the grid of shifts is fine: there the logarithm of the ratio
    is normal around its value, and so is the prior of that variance.
    """
    step = math.sqrt(variance) * (SHIFTS[1] - SHIFTS[0])
    ratios, errors = np.zeros_like(mean), np.full_like(mean, np.inf)
    spreads = [np.sqrt(2 * sums.scale**2 + sums.cap * np.maximum(sums.values, 0)) for sums in (one, other)]
    clear = (one.values > CLEAR * spreads[0]) & (other.values > CLEAR * spreads[1])
    first, second = one.values[clear], other.values[clear]
    ratios[clear] = np.log(first / second)
    errors[clear] = (spreads[0][clear] / first) ** 2 + (spreads[1][clear] / second) ** 2
    known = errors < (step / 2) ** 2
    kept = variance / (variance + errors)
    return np.where(known, kept * ratios, mean), np.where(known, np.sqrt(kept * np.where(known, errors, 0)), deviation)


def _likelihoods(one: NoisySums, other: NoisySums) -> tuple[Floats, Floats]:
    """The likelihood of each cell [cell, tau, shift] and the logarithm of that without a shift, up to one factor."""
    cells = len(one.values)
    # single precision: a likelihood needs no more, and it is most of the work of a fit
    tilt = np.tanh(TAUS[:, None] * SHIFTS / 2)[..., None].astype(np.float32)
    mass = _masses(one, other).astype(np.float32)
    likelihood, without = np.empty((cells, len(TAUS), len(SHIFTS))), np.empty(cells)
    for start in range(0, cells, BLOCK):
        block = slice(start, start + BLOCK)
        here = mass[block, None, None, :]
        distance, width = _distance(one, block, here * (1 + tilt))
        further, spread = _distance(other, block, here * (1 - tilt))
        distance += further
        distance -= distance.min(axis=(1, 2, 3), keepdims=True)
        likelihood[block] = (np.exp(-distance) / (width * spread)).sum(axis=3)
        without[block] = np.log(likelihood[block, 0, len(SHIFTS) // 2] + TINY)  # the middle shift is none
    return likelihood, without


def _masses(one: NoisySums, other: NoisySums) -> Floats:
    """Levels of the mass of each cell: as far around its estimate as noise and sampling may take it."""
    least = 0.3 * min(one.scale, other.scale) + 0.3
    middle = np.maximum((one.values + other.values) / 2, least)
    spread = np.sqrt((one.scale**2 + other.scale**2) / 2 + max(one.cap, other.cap) * middle + (BLUR * middle) ** 2)
    low = np.maximum(middle - 8 * spread, least)
    high = np.maximum(middle + 8 * spread, 4 * least)
    return np.asarray(np.exp(np.log(low)[:, None] + np.log(high / low)[:, None] * np.linspace(0, 1, LEVELS)))


def _distance(sums: NoisySums, block: slice, mean: Single) -> tuple[Single, Single]:
    """How far the sums are from a mean, in widths of their noise, and these widths."""
    width = np.sqrt(sums.scale**2 + mean * (0.5 * sums.cap + BLUR**2 * mean))
    return np.abs(sums.values[block, None, None, None].astype(np.float32) - mean) / width, width


def _exchangeable(likelihood: Floats) -> tuple[Floats, Floats]:
    """Log evidence of each tau, and the shares of the shifts [cell, tau, shift]."""
    joint = likelihood * HEAVY
    total = joint.sum(axis=2, keepdims=True) + TINY
    return np.log(total).sum(axis=(0, 2)), joint / total


def _chained(likelihood: Floats, run: int) -> list[tuple[Floats, Floats]]:
    """The same for chains of cells with each memory, by the forward-backward algorithm."""
    cells = likelihood.reshape(-1, run, 1, *likelihood.shape[1:])  # [chain, place, memory, tau, shift]
    forward = np.empty((len(cells), run, len(CHAINS), len(TAUS), len(SHIFTS)))
    evidence = np.zeros((len(CHAINS), len(TAUS)))
    ahead = np.broadcast_to(NORMAL, forward[:, 0].shape)
    for place in range(run):
        joint = ahead * cells[:, place]
        total = joint.sum(axis=3, keepdims=True) + TINY
        evidence += np.log(total).sum(axis=(0, 3))
        forward[:, place] = joint / total
        ahead = forward[:, place] @ CHAINS
    shares = np.empty_like(forward)
    behind = np.ones_like(forward[:, 0])
    for place in reversed(range(run)):
        joint = forward[:, place] * behind
        shares[:, place] = joint / (joint.sum(axis=3, keepdims=True) + TINY)
        behind = (behind * cells[:, place]) @ CHAINS.transpose(0, 2, 1)
        behind /= behind.max(axis=3, keepdims=True) + TINY
    return [(evidence[at], shares[:, :, at].reshape(likelihood.shape)) for at in range(len(CHAINS))]

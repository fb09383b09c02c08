"""What noisy counts of a leaf tell of the people in it: the mean of all counts that could be behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import gammaln

from privet.errors import QuestionError
from privet.risk.tree import Floats, Integers

Complexes = NDArray[np.complex128]

MIXES, ASSIGNMENTS = "mixes", "assignments"
PRIORS = (MIXES, ASSIGNMENTS)

# Counts less likely than exp(-NEGLIGIBLE) times the likeliest are dropped: a part of 1e-19 or less at each end. For
# leaves of up to 100,000 people tilted counts add up to the size with a probability above 1e-7, as the law of their
# sum is log-concave with its mean near the size; so 100 classes together lose less than 1e-9 of that.
NEGLIGIBLE = 45.0
ROUGHLY = 15.0  # the same while searching for a tilt, which need not be exact


def noisy_shares(observed: Floats, deviation: float, size: int, *, prior: str) -> Floats:
    """The mean shares of the values in a leaf, to someone who sees noisy counts and knows how many people are in it.

    The leaf has unknown counts c >= 0 that add up to `size`, and `observed` is c plus two-sided geometric noise,
    P(k) proportional to exp(-|k| / b), of the given standard deviation in each count. Beforehand the adversary holds
    all vectors c equally likely ("mixes": people share an unknown mix of values, which the counts tell) or all
    assignments of values to people ("assignments": people are independent, and all values even); then no person's
    odds between two values exceed exp(2 / b), since another value moves two counts by one.

    Counts that were made consistent afterwards are no longer whole numbers, nor is their noise geometric any more;
    exp(-|observed - c| / b) is taken for their likelihood all the same. Without noise the counts are the answer,
    negative ones as none, scaled if they do not add up to `size`. The result is right to 1e-9.

    >>> noisy_shares(np.array([7, 3]), 0, 10, prior="mixes")
    array([0.7, 0.3])
    >>> noisy_shares(np.array([7, 3]), 6, 10, prior="mixes").round(3)
    array([0.656, 0.344])
    >>> noisy_shares(np.array([9, -4, 1]), 6, 10, prior="assignments").round(3)
    array([0.442, 0.276, 0.282])
    """
    counts = np.asarray(observed, dtype=np.float64)
    _check(counts, deviation, size, prior)
    classes = len(counts)
    if size == 0 or classes == 1:
        return np.full(classes, 1 / classes)
    rate = decay(deviation)
    if rate == math.inf:
        means = np.maximum(counts, 0)
        return np.asarray(means / means.sum()) if means.any() else np.full(classes, 1 / classes)
    # beyond 0 and size a count's distance grows by the same for all c: it says no more than the nearest end
    leaf = _Leaf(np.clip(counts, 0, size), rate, size, prior == ASSIGNMENTS)
    means = _means_of_two(leaf) if classes == 2 else _means(leaf)
    return np.asarray(means / means.sum())


def decay(deviation: float) -> float:
    """1 / b of the two-sided geometric noise that has this standard deviation.

    With q = exp(-1/b) the variance is v = 2q / (1-q)^2, so that 1/q = 1 + 1/v + sqrt(1/v^2 + 2/v).

    >>> q = 0.25
    >>> round(math.exp(-decay(math.sqrt(2 * q) / (1 - q))), 12)
    0.25
    """
    if deviation == 0:
        return math.inf
    u = 1 / deviation
    return math.log1p(u * (u + math.sqrt(u * u + 2)))


@dataclass(frozen=True, eq=False)
class _Leaf:
    """The weights of each class's count: its likelihood, over its factorial if assignments are what is counted.

    Given their sum, the counts have the posterior; they have it just as well when each weight is multiplied by
    exp(tilt * count), since that multiplies all vectors of the same sum alike.
    """

    observed: Floats
    decay: float
    size: int
    assignments: bool

    def log_weights(self, counts: Floats) -> Floats:
        """The logarithm of the weights [class, ...] of counts of the same shape."""
        logs = -self.decay * np.abs(self.observed[:, None] - counts)
        return logs - gammaln(counts + 1) if self.assignments else logs

    def tilted(self, tilt: float, negligible: float) -> _Counts:
        """Independent counts with tilted weights, without their negligible tails."""
        lowest, highest = self._window(tilt, negligible)
        counts = lowest[:, None] + np.arange(int((highest - lowest).max()) + 1.0)
        logs = np.where(counts <= highest[:, None], self.log_weights(counts) + tilt * counts, -np.inf)
        logs -= logs.max(axis=1, keepdims=True)
        weights = np.exp(logs)
        total = weights.sum(axis=1, keepdims=True)
        return _Counts(lowest, highest, counts, logs - np.log(total), weights / total)

    def _window(self, tilt: float, negligible: float) -> tuple[Integers, Integers]:
        """The least and the largest count of each class that is not negligible (or a few more).

        The logarithms are concave. So they fall from the mode at least as fast as right beside it, and by the
        factorials x steps lower them by x^2 / 2(mode + x) at least.
        """
        observed, size = self.observed, self.size
        below, above = tilt + self.decay, tilt - self.decay  # how logs rise below and above what was observed
        if self.assignments:
            least, most = (math.exp(min(rise, math.log(size))) for rise in (above, below))
            mode = np.clip(observed, least, most)
            pull = np.log(np.maximum(mode, 1))
            furthest = negligible + np.sqrt(negligible**2 + 2 * negligible * mode)
        else:
            mode = np.clip(observed, size if above > 0 else 0, 0 if below < 0 else size)
            pull = np.zeros_like(mode)
            furthest = np.full_like(mode, size)
        falls_left = np.where(mode <= observed, below, above) - pull
        falls_right = pull - np.where(mode >= observed, above, below)
        left, right = (
            np.minimum(furthest, negligible / np.maximum(fall, negligible / size)) for fall in (falls_left, falls_right)
        )
        # two more on each side, so that no share is cut to nothing
        lowest = np.maximum(np.floor(mode - left) - 2, 0).astype(np.int64)
        highest = np.minimum(np.ceil(mode + right) + 2, size).astype(np.int64)
        return lowest, highest


@dataclass(frozen=True, eq=False)
class _Counts:
    """One independent count for each class: what it can be [class, position], and how likely that is."""

    lowest: Integers
    highest: Integers
    counts: Floats
    logs: Floats
    likely: Floats

    @property
    def means(self) -> Floats:
        return np.asarray((self.counts * self.likely).sum(axis=1))

    @property
    def variance(self) -> float:
        """Of the sum of all counts."""
        return float(((self.counts - self.means[:, None]) ** 2 * self.likely).sum())

    def circle(self, total: int) -> int:
        """A number L such that the sum is hardly ever as far from `total` as L, or further.

        By Chernoff's bound P(sum >= total + L) <= E[exp(s (sum - total))] exp(-s L) for every s > 0, and the same
        below; two values of s are tried, and the ends of what the sum can be.
        """
        ends = max(total - int(self.lowest.sum()), int(self.highest.sum()) - total) + 1
        means = self.means
        off, spread = total - float(means.sum()), math.sqrt(1 + self.variance)
        found = [float(ends)]
        for s in (1 / spread, 4 / spread):
            reaches = []
            for signed in (s, -s):
                moments = np.exp(self.logs + signed * (self.counts - means[:, None])).sum(axis=1)
                reaches.append((float(np.log(moments).sum()) - signed * off + NEGLIGIBLE) / s)
            found.append(max(reaches))
        return math.ceil(min(found))


def _means_of_two(leaf: _Leaf) -> Floats:
    """The mean counts of two classes: the second count is what the first leaves."""
    first = np.arange(leaf.size + 1, dtype=np.float64)
    counts = np.stack([first, leaf.size - first])
    logs = leaf.log_weights(counts).sum(axis=0)
    return np.asarray(counts @ np.exp(logs - logs.max()))


def _means(leaf: _Leaf) -> Floats:
    """The mean counts of any number of classes, each times the probability that all add up to the size.

    The count of one class is k with its own probability of k times that of the others adding up to size - k: the
    product of the others' transforms, transformed back. Sums wrap around a circle, where none comes to lie upon
    another one that matters. Tilting brings the sum's mean to the size, where rounding errors are smallest.
    """
    free = _balanced(leaf)
    length = next_fast_len(max(free.circle(leaf.size), free.counts.shape[1]), real=True)
    spectra = _heard(rfft(free.likely, length))
    nothing = np.ones_like(spectra[:1])
    before = np.cumprod(np.concatenate([nothing, spectra[:-1]]), axis=0)
    after = np.cumprod(np.concatenate([nothing, spectra[:0:-1]]), axis=0)[::-1]
    left_for_others = (leaf.size - int(free.lowest.sum()) - np.arange(free.counts.shape[1])) % length
    others = irfft(before * after, length)[:, left_for_others]
    return np.asarray((free.counts * free.likely * np.maximum(others, 0)).sum(axis=1))  # rounding may go below 0


def _heard(spectra: Complexes) -> Complexes:
    """The transforms up to the last frequency at which any product of all but one is more than negligible."""
    logs = np.log(np.maximum(np.abs(spectra), 1e-300))
    heard = np.flatnonzero(logs.sum(axis=0) - logs.min(axis=0) > -NEGLIGIBLE)
    return spectra[:, : heard[-1] + 1]


def _balanced(leaf: _Leaf) -> _Counts:
    """The counts tilted so that the mean of their sum is near the size: Newton's method inside a shrinking bracket."""
    classes, size = len(leaf.observed), leaf.size
    # below: every weight is at most size / (size + classes) of the one before, as in a geometric law of mean
    # size / classes; above: weights do not fall, so that every mean is half the size or more
    low = -leaf.decay + math.log(size / (size + classes))
    high = leaf.decay + (math.log(size) if leaf.assignments else 0.0)
    tilt = min(max(math.log(size / classes), low), high) if leaf.assignments else 0.0
    for _ in range(200):  # a handful is enough; any tilt would do, but for rounding errors
        counts = leaf.tilted(tilt, ROUGHLY)
        lacking, variance = size - float(counts.means.sum()), counts.variance
        if abs(lacking) <= math.sqrt(1 + variance) / 4:
            break
        low, high = (tilt, high) if lacking > 0 else (low, tilt)
        step = tilt + lacking / max(variance, 1e-300)
        tilt = step if low < step < high else (low + high) / 2
    return leaf.tilted(tilt, NEGLIGIBLE)


def _check(counts: Floats, deviation: float, size: int, prior: str) -> None:
    """Refuse what is no question about a leaf."""
    if prior not in PRIORS:
        raise QuestionError(f"the prior is {' or '.join(PRIORS)}, not '{prior}'.")
    if counts.ndim != 1 or len(counts) == 0 or not np.isfinite(counts).all():
        raise QuestionError("a leaf needs one finite count for each value, and one value at least.")
    if not 0 <= deviation < math.inf:
        raise QuestionError(f"the deviation of the noise is a number of at least 0, not {deviation}.")
    if size < 0:
        raise QuestionError(f"a leaf has 0 people or more, not {size}.")

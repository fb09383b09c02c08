"""How noise is drawn: frozen values that carry their sensitivity and their loss together.

Every mechanism works on integers, draws from the operating system's entropy and
never loses more than `loss`. `loss` and the noise scale derive from the one field
`epsilon`: nobody can be charged for one epsilon and given the noise of another.

Counts and sums use OpenDP's sampler, with the smallest float scale whose privacy map,
rounded up, stays at or below that loss. Selections use exact samplers of our own
with rational rates: OpenDP's call costs several times as much per selection, which is
what a tree on a small table spends its time on; the tests hold ours to OpenDP's.

`epsilon` here is per record. A table whose persons own several records divides the
charged epsilon before it comes here.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_laplace
from opendp.metrics import l1_distance
from opendp.mod import enable_features

enable_features("contrib")

Integers = NDArray[np.int64]

# Exact values are clamped here before noise: clamping never increases a
# sensitivity, and an overflow would be an error that depends on the data.
LARGEST = 2**62

_seeded: ContextVar[np.random.Generator | None] = ContextVar("seeded", default=None)


@contextmanager
def seeded_noise(seed: int) -> Iterator[None]:
    """Replace the entropy of all mechanisms by a seeded generator. For tests: nothing made inside is private."""
    token = _seeded.set(np.random.default_rng(seed))
    try:
        yield
    finally:
        _seeded.reset(token)


def noise_is_private() -> bool:
    """False inside `seeded_noise`."""
    return _seeded.get() is None


def random_bits(bits: int) -> int:
    rng = _seeded.get()
    if rng is None:
        return secrets.randbits(bits)
    return int.from_bytes(rng.bytes((bits + 7) // 8), "little") >> (-bits % 8)


def random_below(bound: int) -> int:
    """A uniform integer in [0, bound), by rejection: no remainder, no bias."""
    bits = (bound - 1).bit_length()
    while (value := random_bits(bits)) >= bound:
        pass
    return value


@dataclass(frozen=True)
class IntegerLaplace:
    """Two-sided geometric noise for a vector of integers.

    One record changes the vector by at most `sensitivity` in the L1 norm and the
    noise has probabilities proportional to exp(-|x| epsilon / sensitivity), so no
    output becomes more than exp(epsilon) times as likely.

    >>> noise = IntegerLaplace(epsilon=Fraction(1, 2))
    >>> noise.loss, noise.scale, noise.error(0.95)
    (Fraction(1, 2), 2.0, 6)
    >>> with seeded_noise(7):
    ...     noise.release(np.array([40, 0]))
    array([39,  4])
    """

    epsilon: Fraction
    sensitivity: int = 1

    @property
    def loss(self) -> Fraction:
        return self.epsilon

    @property
    def scale(self) -> float:
        return _laplace(self.epsilon, self.sensitivity)[1]

    def release(self, exact_values: NDArray[Any]) -> Integers:
        measurement, scale = _laplace(self.epsilon, self.sensitivity)
        clamped = np.clip(exact_values, -LARGEST, LARGEST).astype(np.int64)
        rng = _seeded.get()
        if rng is not None:
            tail = -math.expm1(-1 / scale)
            sides = rng.geometric(tail, size=(2, *clamped.shape))
            return np.asarray(clamped + sides[0] - sides[1], dtype=np.int64)
        noisy = measurement(clamped.ravel()) if clamped.size else []
        return np.array(noisy, dtype=np.int64).reshape(clamped.shape)

    def probability(self, noise: int) -> float:
        """The probability that this noise is added to one number."""
        return math.tanh(1 / (2 * self.scale)) * math.exp(-abs(noise) / self.scale)

    def error(self, confidence: float) -> int:
        """The smallest t with |noise| <= t in at least this share of draws."""
        ratio = math.exp(-1 / self.scale)
        # P(|noise| > t) = 2 ratio^(t+1) / (1 + ratio)
        beyond = -self.scale * math.log((1 - confidence) * (1 + ratio) / 2)
        return max(0, math.ceil(beyond) - 1)


@dataclass(frozen=True)
class ResidualLaplace:
    """Noise for sums of clipped residuals, `caps[c]` bounding a record of class c.

    Two classes: a record adds at most `caps[c]` to one entry of its own class, and
    that entry's noise has scale caps[c] / epsilon. More classes: it also adds at
    most as much in all to the entries of the others; both halves cost epsilon / 2.
    """

    epsilon: Fraction
    caps: tuple[int, ...]

    @property
    def loss(self) -> Fraction:
        return self.epsilon

    @property
    def own(self) -> tuple[IntegerLaplace, ...]:
        share = self.epsilon if len(self.caps) == 2 else self.epsilon / 2
        return tuple(IntegerLaplace(share, cap) for cap in self.caps)

    @property
    def others(self) -> IntegerLaplace:
        return IntegerLaplace(self.epsilon / 2, max(self.caps))

    def release(self, exact_own: Integers, exact_others: Integers | None) -> tuple[Integers, Integers | None]:
        """Noisy sums; the last axis is the class. `exact_others` is given for more than two classes."""
        noisy = [noise.release(exact_own[..., c]) for c, noise in enumerate(self.own)]
        others = None if exact_others is None else self.others.release(exact_others)
        return np.stack(noisy, axis=-1), others


@dataclass(frozen=True)
class Selection:
    """What both selections share: their loss, what a unit of score is worth, and how far they may miss."""

    epsilon: Fraction
    sensitivity: int
    monotone: bool

    @property
    def loss(self) -> Fraction:
        return self.epsilon

    @property
    def rate(self) -> Fraction:
        """What one unit of score adds to the logarithm of a candidate's chance."""
        return self.epsilon / (self.sensitivity * (1 if self.monotone else 2))

    def shortfall(self, candidates: int, confidence: float) -> float:
        """With this probability the chosen score is at most this far below the best.

        A candidate t below the best is at most exp(-t * rate) times as likely to win as it is.
        """
        return math.log(candidates / (1 - confidence)) / float(self.rate)


@dataclass(frozen=True)
class PermuteAndFlip(Selection):
    """Choose the index of a high integer score (McKenna and Sheldon 2020).

    Candidates come in random order; one that is `gap` below the best is taken with
    probability exp(-gap * rate). That is the largest score plus exponential noise
    (Ding et al. 2021), so: a record moves every score by at most `sensitivity`; if all
    move in one direction (`monotone`), the winner's lead over the best rival moves by
    at most that, else by twice that, and the choice loses at most epsilon, whatever
    the number of candidates.

    >>> choose = PermuteAndFlip(epsilon=Fraction(1), sensitivity=1, monotone=True)
    >>> choose.probabilities([10, 9, 0]).round(4).tolist()
    [0.816, 0.1839, 0.0]
    """

    def release(self, exact_scores: Integers) -> int:
        rate = self.rate
        scores = exact_scores.tolist()
        best = max(scores)
        waiting = list(range(len(scores)))
        while True:
            chosen = waiting.pop(random_below(len(waiting)))
            if _accepts(best - scores[chosen], rate):
                return chosen

    def probabilities(self, scores: Sequence[int]) -> NDArray[np.float64]:
        """The exact distribution: index j wins with p_j times the integral of prod (1 - p_i u) over u in [0, 1]."""
        accept = np.exp((np.array(scores, dtype=np.float64) - max(scores)) * float(self.rate))
        nodes, weights = np.polynomial.legendre.leggauss(len(accept) // 2 + 1)  # exact for this degree
        points = (nodes + 1) / 2
        rivals = 1 - accept[:, None] * points
        others = [np.prod(np.delete(rivals, j, axis=0), axis=0) for j in range(len(accept))]
        return np.asarray(accept * (np.array(others) @ (weights / 2)))


@dataclass(frozen=True)
class ExponentialOverRanges(Selection):
    """The exponential mechanism over grid points, grouped into ranges of equal score.

    A range of `size` points and score q has weight size * exp(q / scale); a record
    moves each score by at most `sensitivity`, so one point's weight and the total
    move by at most exp(epsilon) against each other: by half of it each if scores
    move in both directions, together by all of it if in one (`monotone`).

    >>> choose = ExponentialOverRanges(epsilon=Fraction(1), sensitivity=1, monotone=True)
    >>> choose.probabilities([0, 1], sizes=[10, 1]).round(4).tolist()
    [0.7863, 0.2137]
    """

    def release(self, exact_scores: Integers, exact_sizes: Sequence[int]) -> tuple[int, int]:
        """The chosen range and the chosen point's offset in it."""
        chosen = _weighted_choice(exact_sizes, exact_scores.max() - exact_scores, self.rate)
        return chosen, random_below(int(exact_sizes[chosen]))

    def probabilities(self, scores: Sequence[int], sizes: Sequence[int]) -> NDArray[np.float64]:
        """The exact probability of each range."""
        gaps = max(scores) - np.array(scores, dtype=np.float64)
        weights = np.array(sizes, dtype=np.float64) * np.exp(-gaps * float(self.rate))
        return np.asarray(weights / weights.sum())


@lru_cache(maxsize=1024)
def _laplace(epsilon: Fraction, sensitivity: int) -> tuple[Any, float]:
    """The OpenDP measurement with the smallest float scale that OpenDP itself certifies for this loss."""
    scale = float(sensitivity / epsilon)
    while True:
        measurement = make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)
        if Fraction(measurement.map(sensitivity)) <= epsilon:
            return measurement, scale
        scale = math.nextafter(scale, math.inf)


# Relative error of the float chances and weights below: exp is accurate to a few
# units in the last place and gap * rate to one, so even a million summed weights
# stay a thousand times below this margin.
_MARGIN = 1e-9


def _exact(bits: int) -> Context:
    """Decimals with more digits than the bits need, and none of the caller's traps."""
    return Context(prec=bits // 2, traps=[])


def _accepts(gap: int, rate: Fraction) -> bool:
    """True with probability exactly exp(-gap * rate): a uniform number, drawn bit by bit, lies below it.

    A float decides where it is certain to agree with the real number; otherwise
    (about two in 10^9 draws) more bits and exact decimals do.
    """
    if gap == 0:
        return True
    chance = math.exp(-gap * float(rate))
    bits, drawn = 64, random_bits(64)
    point = drawn / 2**64
    if abs(point - chance) > _MARGIN:
        return point < chance
    while True:
        bits, drawn = bits + 64, (drawn << 64) | random_bits(64)
        certain = _lies_below(drawn, bits, gap, rate)
        if certain is not None:
            return certain


def _lies_below(drawn: int, bits: int, gap: int, rate: Fraction) -> bool | None:
    """Whether [drawn, drawn + 1] / 2^bits lies below exp(-gap * rate); None where more bits are needed."""
    with localcontext(_exact(bits)):
        margin = Decimal(2) ** -(bits - 32)
        chance = (Decimal(-gap * rate.numerator) / rate.denominator).exp()
        if Decimal(drawn + 1) / 2**bits < chance - margin:
            return True
        if Decimal(drawn) / 2**bits > chance + margin:
            return False
    return None


def _weighted_choice(sizes: Sequence[int], gaps: Integers, rate: Fraction) -> int:
    """Index i with probability exactly proportional to sizes[i] * exp(-gaps[i] * rate), as `_accepts` decides."""
    bits, drawn = 64, random_bits(64)
    if max(sizes).bit_length() <= 900:  # a float cannot hold a size larger than that
        weights = np.array([float(size) for size in sizes]) * np.exp(-gaps.astype(np.float64) * float(rate))
        cumulative = np.cumsum(weights) / weights.sum()
        margin = max(_MARGIN, len(weights) * 2.0**-50)
        point = drawn / 2**64
        index = min(int(np.searchsorted(cumulative, point, side="right")), len(weights) - 1)
        below = cumulative[index - 1] if index else -1.0
        above = cumulative[index] if index < len(weights) - 1 else 2.0
        if below + margin < point < above - margin:
            return index
    while True:
        bits, drawn = bits + 64, (drawn << 64) | random_bits(64)
        found = _decide(sizes, gaps, rate, drawn, bits)
        if found is not None:
            return found


def _decide(sizes: Sequence[int], gaps: Integers, rate: Fraction, drawn: int, bits: int) -> int | None:
    """The index whose share surely contains [drawn, drawn + 1] / 2^bits; None where more bits are needed."""
    with localcontext(_exact(bits)):
        margin = Decimal(2) ** -(bits - 32)
        exponents = [Decimal(-int(gap) * rate.numerator) / rate.denominator for gap in gaps]
        weights = [int(size) * exponent.exp() for size, exponent in zip(sizes, exponents, strict=True)]
        total = sum(weights, Decimal(0))
        low, high = Decimal(drawn) / 2**bits, Decimal(drawn + 1) / 2**bits
        cumulative = Decimal(0)
        for index, weight in enumerate(weights):
            start, cumulative = cumulative, cumulative + weight / total
            starts = index == 0 or start + margin < low
            ends = index == len(weights) - 1 or high < cumulative - margin
            if starts and ends:
                return index
    return None

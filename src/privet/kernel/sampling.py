"""Exact samplers with rational rates, over a source of entropy that is handed to them.

A uniform number is drawn bit by bit until it is certain on which side of every real bound it lies. A float
decides where it surely agrees with the real number, decimals with as many digits as it takes decide otherwise.
OpenDP's samplers cost a tree most of its time (`make bench`); the tests hold ours to them.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Entropy(ABC):
    """A source of random bits. A table is opened with one and keeps it; a mechanism is handed one with each draw."""

    __slots__ = ()  # no attribute of a source can be replaced

    private: ClassVar[bool] = False  # True where nobody can know or repeat what it gives

    @abstractmethod
    def take(self, count: int) -> bytes:
        """So many uniform bytes."""

    @property
    def script(self) -> Any:
        """What decides in place of every draw, where outcomes are enumerated (see `enumeration`); else None."""
        return None

    def stream(self) -> Entropy:
        """A source whose draws do not depend on who else draws meanwhile; where nothing repeats, the same source."""
        return self

    def bits(self, count: int) -> int:
        """A uniform integer in [0, 2^count)."""
        return int.from_bytes(self.take((count + 7) // 8), "little") >> (-count % 8)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Uniform 64-bit numbers."""
        return np.frombuffer(self.take(8 * count), dtype="<u8")

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound), by rejection: no remainder, no bias."""
        count = (bound - 1).bit_length()
        while (value := self.bits(count)) >= bound:
            pass
        return value


class SystemEntropy(Entropy):
    """The operating system's entropy: the only source of noise that is private."""

    __slots__ = ()

    private = True

    def take(self, count: int) -> bytes:
        return os.urandom(count)


class SeededEntropy(Entropy):
    """Bits that a seed repeats. For tests: nothing made with them is private.

    Parameters
    ----------
    seed : int
        At or above 0.
    """

    __slots__ = ("_generator",)

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def take(self, count: int) -> bytes:
        return self._generator.bytes(count)

    def stream(self) -> Entropy:
        return SeededEntropy(self.bits(64))


SYSTEM = SystemEntropy()


def float_above(number: Fraction) -> float:
    """Return the smallest float that is not below `number`."""
    value = float(number)
    return value if Fraction(value) >= number else math.nextafter(value, math.inf)


# Relative error of the float chances and weights below: exp is accurate to a few
# units in the last place and gap * rate to one, so even a million summed weights
# stay a thousand times below this margin.
_MARGIN = 1e-9


def _float(rate: Fraction) -> float:
    """Return a rate as a float; 0.0 if it is too small or too large for products with gaps."""
    try:
        value = rate.numerator / rate.denominator
    except OverflowError:
        return 0.0
    return value if 1e-270 < value < 1e270 else 0.0


def _decimals(bits: int) -> Context:
    """Decimals with more digits than the bits need; whatever the caller did to the contexts of its own."""
    return Context(
        prec=bits // 2, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, capitals=1, clamp=0, flags=[], traps=[]
    )


def geometric(rate: Fraction, count: int, entropy: Entropy) -> NDArray[Any]:
    """Numbers k >= 0 with probability exactly proportional to exp(-k * rate): floor(-ln(u) / rate) for uniform u.

    P(floor(-ln(u) / rate) >= k) = P(u <= exp(-k * rate)). 64 bits of u leave it in an interval of
    width 2^-64. Where the float of -ln(u) / rate is further from a whole number than its
    error and that interval allow, its floor is that of every u there; elsewhere more
    bits of the same u are drawn. More bits are also drawn if all 64 are 0: u may then be arbitrarily small, and
    -ln(u) arbitrarily large.
    """
    words = entropy.words(count)
    if rate * 2**40 < 1:  # beyond what a float tells apart
        return np.array([_exact_geometric(rate, int(word), entropy) for word in words], dtype=object)
    return _floors(words, float_above(1 / rate), lambda _: rate, entropy)


def _floors(
    words: NDArray[np.uint64], scale: float | NDArray[np.float64], rate_of: Callable[[int], Fraction], entropy: Entropy
) -> Integers:
    """floor(-ln(u) / rate) for uniforms that begin with these words; `scale` is 1 / rate, or one for each of them."""
    drawn = np.maximum(words.astype(np.float64), 1)
    values = (64 * math.log(2) - np.log(drawn)) * scale
    # rounding of the conversion, the logarithm and the product: some units in the last place of 1 + |ln u|, or
    # of 64 ln 2 where a difference is taken; and the width of the interval, relative to u
    margin = scale * (2.0**-42 + 2 / drawn)
    floors = np.floor(values)
    unsure = np.flatnonzero((values - floors < margin) | (floors + 1 - values < margin) | (words == 0))
    numbers = floors.astype(np.int64)
    for index in unsure.tolist():
        numbers[index] = _exact_geometric(rate_of(index), int(words[index]), entropy)
    return numbers


def _exact_geometric(rate: Fraction, drawn: int, entropy: Entropy) -> int:
    """floor(-ln(u) / rate) for a u that begins with these 64 bits."""
    bits = 64
    while True:
        bits, drawn = bits + 64, (drawn << 64) | entropy.bits(64)
        if drawn == 0:
            continue
        with localcontext(_decimals(bits)):
            margin = Decimal(2) ** -(bits // 2)  # relative, far above the error of this many digits
            power, factor = Decimal(2) ** bits, Decimal(rate.denominator) / rate.numerator
            most = (power / drawn).ln() * factor * (1 + margin)
            least = (power / (drawn + 1)).ln() * factor * (1 - margin)
            if int(most) == int(least):
                return int(least)


def accepts(gap: int, rate: Fraction, entropy: Entropy) -> bool:
    """True with probability exactly exp(-gap * rate): a uniform number, drawn bit by bit, lies below it.

    A float decides where it is certain to agree with the real number; otherwise
    (about two in 10^9 draws) more bits and exact decimals do.
    """
    if gap == 0:
        return True
    drawn = entropy.bits(64)
    approximate = _float(rate)
    if approximate and gap.bit_length() <= 100:
        chance = math.exp(-gap * approximate)
        point = drawn / 2**64
        if abs(point - chance) > _MARGIN:
            return point < chance
    return _below(drawn, gap, rate, entropy)


def _below(drawn: int, gap: int, rate: Fraction, entropy: Entropy) -> bool:
    """Whether a uniform number that begins with these 64 bits lies below exp(-gap * rate)."""
    bits = 64
    while True:
        bits, drawn = bits + 64, (drawn << 64) | entropy.bits(64)
        certain = _lies_below(drawn, bits, gap, rate)
        if certain is not None:
            return certain


def _lies_below(drawn: int, bits: int, gap: int, rate: Fraction) -> bool | None:
    """Whether [drawn, drawn + 1] / 2^bits lies below exp(-gap * rate); None where more bits are needed."""
    with localcontext(_decimals(bits)):
        margin = Decimal(2) ** -(bits - 32)
        chance = (Decimal(-gap * rate.numerator) / rate.denominator).exp()
        if Decimal(drawn + 1) / 2**bits < chance - margin:
            return True
        if Decimal(drawn) / 2**bits > chance + margin:
            return False
    return None


def discrete_gaussian(variances: Sequence[Fraction], which: NDArray[np.intp], entropy: Entropy) -> NDArray[Any]:
    """Numbers k with probability exactly proportional to exp(-k^2 / (2 v)); of the i-th v is `variances[which[i]]`.

    Canonne, Kamath and Steinke (2020), algorithm 3. With t = floor(sqrt(v)) + 1 a number y of probability proportional
    to exp(-|y| / t), the difference of two geometric numbers, is kept with probability
    exp(-(|y| - v / t)^2 / (2 v)); else another is drawn. The product of the two is exp(-y^2 / (2 v)) times a constant.
    About 76% of what is drawn is kept where v is large, and at least 44% for any v.
    """
    ratios = [variance.as_integer_ratio() for variance in variances]
    scales = [math.isqrt(above // below) + 1 for above, below in ratios]
    if max(scales) > 2**40 or any(above << 200 < below for above, below in ratios):  # beyond what a float tells apart
        return np.array([_one_gaussian(variances[v], scales[v], entropy) for v in which.tolist()], dtype=object)
    scale, double = np.array(scales, dtype=np.float64), np.array([2 * above / below for above, below in ratios])
    middle = np.array([above / (below * t) for (above, below), t in zip(ratios, scales, strict=True)])
    numbers, waiting = np.zeros(len(which), dtype=np.int64), np.arange(len(which))
    while len(waiting):
        mine = which[waiting]
        words = entropy.words(3 * len(mine)).reshape(3, -1)
        own = scale[mine]
        rates = partial(_rate_at, scales, mine)
        up, down = _floors(words[:2].ravel(), np.concatenate((own, own)), rates, entropy).reshape(2, -1)
        drawn = up - down
        # |y| is exact in a float and v / t < sqrt(v), so that the error of the chance is a few units of 2^-50
        chance = np.exp(-((np.abs(drawn) - middle[mine]) ** 2) / double[mine])
        point = words[2] / 2.0**64
        kept = point < chance
        for at in np.flatnonzero(np.abs(point - chance) <= _MARGIN).tolist():
            rate = _distance(int(drawn[at]), variances[mine[at]], scales[mine[at]])
            kept[at] = _below(int(words[2, at]), 1, rate, entropy)
        numbers[waiting[kept]] = drawn[kept]
        waiting = waiting[~kept]
    return numbers


def _rate_at(scales: Sequence[int], which: NDArray[np.intp], at: int) -> Fraction:
    """The rate of a number; of each there are two, those for up and then those for down."""
    return Fraction(1, scales[which[at % len(which)]])


def _distance(drawn: int, variance: Fraction, scale: int) -> Fraction:
    """(|y| - v / t)^2 / (2 v)."""
    return (abs(drawn) - variance / scale) ** 2 / (2 * variance)


def _one_gaussian(variance: Fraction, scale: int, entropy: Entropy) -> int:
    """Draw one number of `discrete_gaussian`, in Python's integers."""
    while True:
        up, down = geometric(Fraction(1, scale), 2, entropy).tolist()
        if accepts(1, _distance(up - down, variance, scale), entropy):
            return int(up - down)


def weighted_choice(sizes: Sequence[int] | NDArray[Any], gaps: NDArray[Any], rate: Fraction, entropy: Entropy) -> int:
    """Index i with probability exactly proportional to sizes[i] * exp(-gaps[i] * rate), as `accepts` decides."""
    bits, drawn = 64, entropy.bits(64)
    approximate = _float(rate)
    whole = sizes if isinstance(sizes, np.ndarray) else np.array(sizes, dtype=object)
    if approximate and int(whole.max()).bit_length() <= 900:  # a float cannot hold a size larger than that
        weights = whole.astype(np.float64) * np.exp(-gaps.astype(np.float64) * approximate)
        cumulative = np.cumsum(weights) / weights.sum()
        margin = max(_MARGIN, len(weights) * 2.0**-50)
        point = drawn / 2**64
        index = min(int(np.searchsorted(cumulative, point, side="right")), len(weights) - 1)
        below = cumulative[index - 1] if index else -1.0
        above = cumulative[index] if index < len(weights) - 1 else 2.0
        if below + margin < point < above - margin:
            return index
    while True:
        bits, drawn = bits + 64, (drawn << 64) | entropy.bits(64)
        certain = _decide(sizes, gaps, rate, drawn, bits)
        if certain is not None:
            return certain


def _decide(
    sizes: Sequence[int] | NDArray[Any], gaps: NDArray[Any], rate: Fraction, drawn: int, bits: int
) -> int | None:
    """The index whose share surely contains [drawn, drawn + 1] / 2^bits; None where more bits are needed."""
    with localcontext(_decimals(bits)):
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

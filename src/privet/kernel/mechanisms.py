"""How noise is drawn: from random bits, by exact samplers, to noisy integers.

A mechanism is a frozen value that carries its sensitivity and its loss together. It works on integers and never loses
more than `loss`. `loss` and the noise scale derive from the one field `epsilon`: nobody can be charged for one epsilon
and given the noise of another. `selections` has the mechanisms that choose.

The samplers are exact, for rational rates. A uniform number is drawn bit by bit until it is certain on which side of
every real bound it lies. A float decides where it surely agrees with the real number, decimals with as many digits as
it takes decide otherwise. OpenDP's samplers cost a tree most of its time (`make bench`); the tests hold ours to them.

What they draw from is handed to `release`: a table hands over the source that it was opened with, and whoever names
none draws from the operating system. A source with a script has every release decided by it, for `enumeration`.

`epsilon` here is per record. A table whose persons own several records divides the charged epsilon before it comes
here.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from privet.errors import PrivacyError
from privet.kernel.public_values import PerPart, Positions, sum_of
from privet.noise_errors import GaussianErrors, LaplaceErrors, MeanErrors

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


# -- mechanisms ---------------------------------------------------------------------------------

# Exact values are clamped here before noise: clamping never increases a
# sensitivity, and an overflow would be an error that depends on the data.
LARGEST = 2**62


class Mechanism(Protocol):
    """How an exact value becomes a public one. Hashable: equal mechanisms are one."""

    together: ClassVar[bool]  # whether `release` takes the values of several parts at once, as an array with that axis

    @property
    def loss(self) -> Fraction:
        """What each record loses at most, as epsilon; a PrivacyError where there is no such bound."""
        ...

    @property
    def rho(self) -> Fraction:
        """What each record loses at most, as rho (zero-concentrated differential privacy, Bun and Steinke 2016)."""
        ...

    def release(self, exact_value: Any, entropy: Entropy) -> Any:
        """Return the noisy value: public, as is everything made of it."""
        ...


def release_all(mechanisms: PerPart[Mechanism], exact_values: Iterable[Any] | Paired, entropy: Entropy) -> list[Any]:
    """Apply the mechanism of each part to its exact value; return the noisy values as JSON holds them.

    Parts of equal mechanisms are drawn in one batch where the mechanism can: that is much faster than one by one.
    """
    if not isinstance(exact_values, Paired) and not (
        isinstance(exact_values, np.ndarray) and all(mechanism.together for mechanism in mechanisms.values)
    ):
        noisy = (
            mechanism.release(exact_value, entropy)
            for mechanism, exact_value in zip(mechanisms, exact_values, strict=True)
        )
        return [_plain(value) for value in noisy]
    batches = list(mechanisms.groups())
    if len(batches) == 1:
        return list(_plain(batches[0][0].release(exact_values, entropy)))
    values: dict[int, Any] = {}
    for mechanism, parts in batches:
        values |= zip(parts.tolist(), _plain(mechanism.release(exact_values[parts], entropy)), strict=True)
    return [values[part] for part in range(len(mechanisms))]


def _plain(noisy: Any) -> Any:
    """Return a noisy value as JSON holds it: arrays are lists, and tuples lists of these."""
    if isinstance(noisy, tuple):
        return [_plain(value) for value in noisy]
    return noisy.tolist() if isinstance(noisy, np.ndarray) else noisy


@dataclass(frozen=True)
class LosesEpsilon:
    """Base of the mechanisms that lose all of `epsilon`, the field that their noise is made from.

    Whatever loses epsilon loses rho = epsilon^2 / 2 (Bun and Steinke 2016, proposition 1.4).
    """

    epsilon: Fraction
    together: ClassVar[bool] = False

    @property
    def loss(self) -> Fraction:
        return self.epsilon

    @property
    def rho(self) -> Fraction:
        return self.epsilon**2 / 2


@dataclass(frozen=True)
class IntegerLaplace(LosesEpsilon, LaplaceErrors):
    """Two-sided geometric noise for a vector of integers.

    One record changes the vector by at most `sensitivity` in the L1 norm and the
    noise has probabilities proportional to exp(-|x| epsilon / sensitivity), so no
    output becomes more than exp(epsilon) times as likely.

    >>> noise = IntegerLaplace(epsilon=Fraction(1, 2))
    >>> noise.loss, noise.scale, noise.error(0.95)
    (Fraction(1, 2), 2.0, 6)
    >>> noise.release(np.array([40, 0]), SeededEntropy(7))
    array([40, -2])
    """

    sensitivity: int = 1
    together: ClassVar[bool] = True

    @property
    def scale(self) -> float:
        """How far noise reaches, rounded up: for people and intervals, no noise is drawn from it."""
        return float_above(self.sensitivity / self.epsilon)

    def share(self, vectors: int) -> IntegerLaplace:
        """Return the same noise as that of one of so many vectors, which share its loss."""
        return IntegerLaplace(self.epsilon / vectors, self.sensitivity // vectors)

    def release(self, exact_values: NDArray[Any], entropy: Entropy = SYSTEM) -> Integers:
        """Return the values, each plus the difference of two geometric numbers."""
        clamped = np.clip(exact_values, -LARGEST, LARGEST).astype(np.int64)
        if (script := entropy.script) is not None:
            return np.asarray(script.noise(self, clamped))
        up, down = geometric(self.epsilon / self.sensitivity, 2 * clamped.size, entropy).reshape(2, *clamped.shape)
        return np.asarray(np.clip(clamped + up - down, -(2**63), 2**63 - 1), dtype=np.int64)


@dataclass(frozen=True)
class SumAndCount:
    """Noise for a sum and a count of the same rows; what one record loses with the two adds up."""

    sums: IntegerLaplace | IntegerGaussian  # for what a record adds to the sum
    counts: IntegerLaplace | IntegerGaussian
    together: ClassVar[bool] = True

    @property
    def loss(self) -> Fraction:
        return self.sums.loss + self.counts.loss

    @property
    def rho(self) -> Fraction:
        return self.sums.rho + self.counts.rho

    def release(self, exact_pairs: NDArray[Any], entropy: Entropy = SYSTEM) -> Integers:
        """Return noisy pairs [part, (sum, count)]."""
        noisy = [self.sums.release(exact_pairs[:, 0], entropy), self.counts.release(exact_pairs[:, 1], entropy)]
        return np.stack(noisy, axis=1)


@dataclass(frozen=True)
class Paired:
    """Exact values of several parts beside what was released from them: what a refinement starts from."""

    exact_values: NDArray[Any]
    released: NDArray[np.int64]

    def __getitem__(self, parts: Positions) -> Paired:
        return Paired(self.exact_values[parts], self.released[parts])


@dataclass(frozen=True)
class Refinement:
    """Noisy integers of `IntegerLaplace(before)`, turned into those of `IntegerLaplace(epsilon)` for the difference.

    Write p = exp(-before / sensitivity) and q = exp(-epsilon / sensitivity); P and Q are the two-sided
    geometric distributions with these ratios.

    Why seeing both costs what the second alone costs. Take a number v of Q; with probability
    (q / p) ((1 - p) / (1 - q))^2 leave it as it is, else add a number of P to it. The result follows P:
    the characteristic function of P is (1 - p)^2 / (1 - 2 p cos t + p^2), and so on for Q. Call this
    step K. It does not look at the exact value f, so of a pair with y = f + v and x = K(y) the coarse x
    is post-processing of y, and the pair loses at most epsilon (Koufogiannis, Han and Pappas 2015). The
    same holds for a chain: each step back is such a K, whatever the levels were chosen by.

    `release` walks the other way, and draws y given x: the pair then has the same distribution as above.
    With s = q / p and t = p q and coarse noise a >= 0 (for a < 0 mirror it), Bayes' rule gives for finer
    noise v, with c = (1 - s) (1 - t) / (1 - s t), the probability c s^v for 0 <= v < a, c t^-v for v < 0
    and c s^a t^(v - a) for v > a; what is missing to one is that of v = a. Sampled without rejection: the
    difference of two geometric numbers of ratios s and t has probability c s^v for v >= 0 and c t^-v
    below; one above a is kept with probability p^(2 (v - a)), as s p^2 = t, and else replaced by a.

    A released value that was cut to 64 bits is taken for the noisy value itself. Exact values end at
    2^62, between the cuts; there the tail of the noise beyond a cut is its probability at the cut times
    a constant, the same for all of them, so that all probabilities change by that constant and no loss.

    Loses `loss` only as a step from what was released before it. A second draw from the same `released`
    would lose before + epsilon more, so nobody may draw twice: see `refinement`.

    >>> step = Refinement(before=Fraction(1, 10), epsilon=Fraction(1, 2))
    >>> step.loss
    Fraction(2, 5)
    """

    before: Fraction
    epsilon: Fraction
    sensitivity: int = 1
    together: ClassVar[bool] = True

    def __post_init__(self) -> None:
        assert 0 < self.before < self.epsilon

    @property
    def loss(self) -> Fraction:
        return self.epsilon - self.before

    @property
    def rho(self) -> Fraction:
        # (epsilon^2 - before^2) / 2 would be too little: with two levels the pair loses up to .511, not .5, from .5
        # to 1, where the second level is chosen by the first
        raise PrivacyError("a refinement of Laplace noise has no loss in rho; draw anew, and average.")

    def release(self, exact: Paired, entropy: Entropy = SYSTEM) -> Integers:
        """Return finer values of what was released from these exact values with noise for `before`."""
        clamped = np.clip(exact.exact_values, -LARGEST, LARGEST).astype(np.int64)
        coarse = np.asarray(exact.released, dtype=np.int64)
        if (script := entropy.script) is not None:
            return np.asarray(script.refine(self, clamped, coarse))
        if coarse.size and max(int(coarse.max()), -int(coarse.min())) > LARGEST // 2:
            coarse = coarse.astype(object)  # differences may not fit 64 bits
        noise = coarse - clamped
        low, high = self.before / self.sensitivity, self.epsilon / self.sensitivity
        rates = (high - low, high + low, 2 * low)
        up, down, kept = (geometric(rate, clamped.size, entropy).reshape(clamped.shape) for rate in rates)
        finer = up - down
        beyond = finer - np.abs(noise)  # `kept` reaches it with probability p^(2 beyond)
        finer = np.where((beyond > 0) & (kept < beyond), np.abs(noise), finer)
        refined = clamped + np.where(noise < 0, -finer, finer)
        return np.asarray(np.clip(refined, -(2**63), 2**63 - 1), dtype=np.int64)


@dataclass(frozen=True)
class ResidualLaplace(LosesEpsilon):
    """Noise for sums of clipped residuals, `caps[c]` bounding a record of class c.

    Two classes: a record adds at most `caps[c]` to one entry of its own class, and
    that entry's noise has scale caps[c] / epsilon. More classes: it also adds at
    most as much in all to the entries of the others; both halves cost epsilon / 2.
    """

    caps: tuple[int, ...]

    @property
    def own(self) -> tuple[IntegerLaplace, ...]:
        share = self.epsilon if len(self.caps) == 2 else self.epsilon / 2
        return tuple(IntegerLaplace(share, cap) for cap in self.caps)

    @property
    def others(self) -> IntegerLaplace:
        return IntegerLaplace(self.epsilon / 2, max(self.caps))

    def release(
        self, exact_sums: tuple[Integers, Integers | None], entropy: Entropy = SYSTEM
    ) -> tuple[Integers, Integers | None]:
        """Return noisy sums of own entries and, with more than two classes, of the others; the last axis: class."""
        exact_own, exact_others = exact_sums
        noisy = [noise.release(exact_own[..., c], entropy) for c, noise in enumerate(self.own)]
        others = None if exact_others is None else self.others.release(exact_others, entropy)
        return np.stack(noisy, axis=-1), others


# -- Gaussian noise, for data sets that are counted in rho ---------------------------------------
#
# Noise and loss derive from one field here too, `rho`: the variance is squared / (2 rho), an exact fraction, where
# `squared` is the square of how far one record moves a vector in the L2 norm. Canonne, Kamath and Steinke (2020,
# theorem 4): whoever adds independent discrete Gaussian noise of variance v to the integers of a vector is squared /
# (2 v)-zCDP: for each entry the Renyi divergence of order alpha between the noise and the noise moved by d is at most
# alpha d^2 / (2 v), and of independent entries these add up. No epsilon bounds what Gaussian noise loses, so `loss`
# raises: a data set that is counted in epsilon refuses it before anything is charged.


class _NoEpsilon:
    """Base of the mechanisms whose loss no epsilon bounds."""

    @property
    def loss(self) -> NoReturn:
        raise PrivacyError(
            "Gaussian noise keeps no promise of a pure epsilon; ask a data set that was opened with a delta, or a "
            "question with Laplace noise."
        )


@dataclass(frozen=True)
class _LosesRho(_NoEpsilon):
    """Base of the mechanisms that lose all of `rho`, the field that their noise is made from."""

    rho: Fraction
    together: ClassVar[bool] = False


@dataclass(frozen=True)
class IntegerGaussian(_LosesRho, GaussianErrors):
    """Discrete Gaussian noise for a vector of integers.

    One record moves the vector by at most the square root of `squared` in the L2 norm, and every entry gets noise of
    variance squared / (2 rho): that loses rho (see above).

    >>> noise = IntegerGaussian(rho=Fraction(1, 200))
    >>> noise.variance, round(noise.scale, 6), noise.error(0.95)
    (Fraction(100, 1), 10.0, 20)
    >>> noise.release(np.array([40, 0]), SeededEntropy(7)).tolist()
    [43, -5]
    """

    squared: int | Fraction = 1
    together: ClassVar[bool] = True

    @property
    def variance(self) -> Fraction:
        """The parameter of the noise; its true variance is at most that."""
        above, below = self.squared.as_integer_ratio()
        return Fraction(above * self.rho.denominator, below * 2 * self.rho.numerator)

    @property
    def scale(self) -> float:
        """How far noise reaches, rounded up: for people and intervals, no noise is drawn from it."""
        return math.nextafter(math.sqrt(float_above(self.variance)), math.inf) if self.variance else 0.0

    def share(self, vectors: int) -> IntegerGaussian:
        """Return the same noise as that of one of so many vectors, which share its loss."""
        return IntegerGaussian(self.rho / vectors, Fraction(self.squared) / vectors)

    def release(self, exact_values: NDArray[Any], entropy: Entropy = SYSTEM) -> Integers:
        """Return the values, each plus a discrete Gaussian number."""
        which = np.zeros(np.shape(exact_values), dtype=np.intp)
        return _noisy((self,), exact_values, which, entropy)


@dataclass(frozen=True)
class AveragedGaussian(MeanErrors, IntegerGaussian):
    """The noise of a whole number next to the mean of several Gaussian answers, weighted by their rhos.

    `rho` is the sum of theirs. Discrete Gaussian noise of variance v is v-subgaussian, and so the weighted mean is
    subgaussian with squared / (2 rho): P(|mean| >= x) <= 2 exp(-x^2 / (2 variance)).
    """


def _noisy(
    noises: tuple[IntegerGaussian, ...], exact_values: NDArray[Any], which: NDArray[np.intp], entropy: Entropy
) -> Integers:
    """Add to each value noise of its kind."""
    clamped = np.clip(exact_values, -LARGEST, LARGEST).astype(np.int64)
    if (script := entropy.script) is not None:
        return np.asarray(script.gaussian(noises, clamped, which))
    if not clamped.size:
        return np.asarray(clamped)
    drawn = discrete_gaussian([noise.variance for noise in noises], which.ravel(), entropy).reshape(clamped.shape)
    if drawn.dtype != object:  # below 2^47: no sum leaves 64 bits
        return np.asarray(clamped + drawn)
    return np.asarray(np.clip(clamped + drawn, -(2**63), 2**63 - 1), dtype=np.int64)


@dataclass(frozen=True)
class ResidualGaussian(_LosesRho):
    """Noise for sums of clipped residuals, `caps[c]` bounding a record of class c: as `ResidualLaplace`, in rho.

    Two classes: a record adds at most `caps[c]` to one entry of its own class, whose variance is made for that cap.
    More classes: it also adds at most as much in all to the entries of the others, in the L1 norm and so in the L2
    norm; both halves cost rho / 2.
    """

    caps: tuple[int, ...]

    @property
    def own(self) -> tuple[IntegerGaussian, ...]:
        share = self.rho if len(self.caps) == 2 else self.rho / 2
        return tuple(IntegerGaussian(share, cap**2) for cap in self.caps)

    @property
    def others(self) -> IntegerGaussian:
        return IntegerGaussian(self.rho / 2, max(self.caps) ** 2)

    def release(
        self, exact_sums: tuple[Integers, Integers | None], entropy: Entropy = SYSTEM
    ) -> tuple[Integers, Integers | None]:
        """Return noisy sums of own entries and, with more than two classes, of the others; the last axis: class."""
        exact_own, exact_others = exact_sums
        which = np.broadcast_to(np.arange(len(self.caps), dtype=np.intp), exact_own.shape)
        others = None if exact_others is None else self.others.release(exact_others, entropy)
        return _noisy(self.own, exact_own, which, entropy), others


@dataclass(frozen=True)
class GaussianTables(_NoEpsilon):
    """Noise for several vectors one after the other, each with a rho of its own; what a record loses adds up.

    Parameters
    ----------
    rhos : tuple of Fraction
        What a record loses with each vector.
    sizes : tuple of int
        How many numbers each has.
    squared : int
        The square of how far one record moves each of them, in the L2 norm.
    """

    rhos: tuple[Fraction, ...]
    sizes: tuple[int, ...]
    squared: int
    together: ClassVar[bool] = True

    @property
    def rho(self) -> Fraction:
        return sum_of(self.rhos)

    @cached_property
    def noises(self) -> tuple[IntegerGaussian, ...]:
        return tuple(IntegerGaussian(rho, self.squared) for rho in self.rhos)

    def release(self, exact_values: NDArray[Any], entropy: Entropy = SYSTEM) -> Integers:
        """Return noisy numbers [part, number], those of all vectors after each other."""
        which = np.repeat(np.arange(len(self.sizes), dtype=np.intp), self.sizes)
        return _noisy(self.noises, exact_values, np.broadcast_to(which, np.shape(exact_values)), entropy)

"""Exact samplers with rational rates, over the entropy of the operating system.

A uniform number is drawn bit by bit until it is certain on which side of every real bound it lies. A float
decides where it surely agrees with the real number, decimals with as many digits as it takes decide otherwise.
OpenDP's samplers cost a tree most of its time (`make bench`); the tests hold ours to them.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

_seeded: ContextVar[np.random.Generator | None] = ContextVar("seeded", default=None)


@contextmanager
def seeded_noise(seed: int) -> Iterator[None]:
    """Replace the entropy of all mechanisms by a seeded generator. For tests: nothing made inside is private."""
    token = _seeded.set(np.random.default_rng(seed))
    try:
        yield
    finally:
        _seeded.reset(token)


def is_seeded() -> bool:
    """True inside `seeded_noise`."""
    return _seeded.get() is not None


def random_bits(bits: int) -> int:
    rng = _seeded.get()
    if rng is None:
        return secrets.randbits(bits)
    return int.from_bytes(rng.bytes((bits + 7) // 8), "little") >> (-bits % 8)


def random_words(count: int) -> NDArray[np.uint64]:
    """Uniform 64-bit numbers."""
    rng = _seeded.get()
    return np.frombuffer(secrets.token_bytes(8 * count) if rng is None else rng.bytes(8 * count), dtype="<u8")


def random_below(bound: int) -> int:
    """A uniform integer in [0, bound), by rejection: no remainder, no bias."""
    bits = (bound - 1).bit_length()
    while (value := random_bits(bits)) >= bound:
        pass
    return value


def float_above(number: Fraction) -> float:
    """The smallest float that is not below."""
    value = float(number)
    return value if Fraction(value) >= number else math.nextafter(value, math.inf)


# Relative error of the float chances and weights below: exp is accurate to a few
# units in the last place and gap * rate to one, so even a million summed weights
# stay a thousand times below this margin.
_MARGIN = 1e-9


def _exact(bits: int) -> Context:
    """Decimals with more digits than the bits need, and none of the caller's traps."""
    return Context(prec=bits // 2, traps=[])


def geometric(rate: Fraction, count: int) -> NDArray[Any]:
    """Numbers k >= 0 with probability exactly proportional to exp(-k * rate): floor(-ln(u) / rate) for uniform u.

    P(floor(-ln(u) / rate) >= k) = P(u <= exp(-k * rate)). 64 bits of u leave it in an interval of
    width 2^-64. Where the float of -ln(u) / rate is further from a whole number than its
    error and that interval allow, its floor is that of every u there; elsewhere more
    bits of the same u are drawn.
    """
    words = random_words(count)
    scale = float_above(1 / rate)
    if scale > 2.0**40:  # beyond what a float tells apart
        return np.array([_exact_geometric(rate, int(word)) for word in words], dtype=object)
    drawn = words.astype(np.float64)
    logs = 64 * math.log(2) - np.log(np.maximum(drawn, 1))
    values = logs * scale
    # rounding of the conversion, the logarithm and the product: some units in the last place of 1 + |ln u|, or
    # of 64 ln 2 where a difference is taken; and the width of the interval, relative to u
    margin = scale * (2.0**-42 + 2 / np.maximum(drawn, 1))
    floors = np.floor(values)
    unsure = np.flatnonzero((values - floors < margin) | (floors + 1 - values < margin))
    found = floors.astype(np.int64)
    for index in unsure.tolist():
        found[index] = _exact_geometric(rate, int(words[index]))
    return found


def _exact_geometric(rate: Fraction, drawn: int) -> int:
    """floor(-ln(u) / rate) for a u that begins with these 64 bits."""
    bits = 64
    while True:
        bits, drawn = bits + 64, (drawn << 64) | random_bits(64)
        if drawn == 0:
            continue
        with localcontext(_exact(bits)):
            margin = Decimal(2) ** -(bits // 2)  # relative, far above the error of this many digits
            power, factor = Decimal(2) ** bits, Decimal(rate.denominator) / rate.numerator
            most = (power / drawn).ln() * factor * (1 + margin)
            least = (power / (drawn + 1)).ln() * factor * (1 - margin)
            if int(most) == int(least):
                return int(least)


def accepts(gap: int, rate: Fraction) -> bool:
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


def weighted_choice(sizes: Sequence[int], gaps: Integers, rate: Fraction) -> int:
    """Index i with probability exactly proportional to sizes[i] * exp(-gaps[i] * rate), as `accepts` decides."""
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

"""How noise is drawn: frozen values that carry their sensitivity and their loss together.

Every mechanism works on integers and never loses more than `loss`. `loss` and the
noise scale derive from the one field `epsilon`: nobody can be charged for one epsilon
and given the noise of another.

The samplers are exact: see `sampling`. What they draw from is handed to `release`: a
table hands over the source that it was opened with, and whoever names none draws from
the operating system. A source with a script has every release decided by it, for
`enumeration`.

`epsilon` here is per record. A table whose persons own several records divides the
charged epsilon before it comes here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from privet.errors import PrivacyError, QuestionError
from privet.kernel.limits import sum_of
from privet.kernel.rows import PerPart, Positions
from privet.kernel.sampling import (
    SYSTEM,
    Entropy,
    Integers,
    accepts,
    discrete_gaussian,
    float_above,
    geometric,
    weighted_choice,
)
from privet.noise_errors import (
    GaussianErrors,
    LaplaceErrors,
    MeanErrors,
    NoisyMaxErrors,
    SelectionErrors,
    ThresholdErrors,
)

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
class _LosesEpsilon:
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
class IntegerLaplace(_LosesEpsilon, LaplaceErrors):
    """Two-sided geometric noise for a vector of integers.

    One record changes the vector by at most `sensitivity` in the L1 norm and the
    noise has probabilities proportional to exp(-|x| epsilon / sensitivity), so no
    output becomes more than exp(epsilon) times as likely.

    >>> noise = IntegerLaplace(epsilon=Fraction(1, 2))
    >>> noise.loss, noise.scale, noise.error(0.95)
    (Fraction(1, 2), 2.0, 6)
    >>> from privet.kernel.sampling import SeededEntropy
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
class ResidualLaplace(_LosesEpsilon):
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


@dataclass(frozen=True)
class Selection(_LosesEpsilon, SelectionErrors):
    """What all selections share: their loss, what a unit of score is worth, and how far they may miss."""

    sensitivity: int
    monotone: bool

    @cached_property
    def rate(self) -> Fraction:
        """What one unit of score adds to the logarithm of a candidate's chance."""
        return self.epsilon / (self.sensitivity * (1 if self.monotone else 2))


def bounded_range_rho(epsilon: Fraction) -> Fraction:
    """Return what the exponential mechanism loses as rho: epsilon^2 / 8.

    Between neighbours the logarithms of the ratios of all outcomes lie in an interval of length epsilon: the weight of
    an outcome moves by exp(+-epsilon / 2), or with a monotone exponent by 1 to exp(epsilon), and the total shifts all
    of them alike (Durfee and Rogers 2019). A mechanism of such a bounded range is epsilon^2 / 8-zCDP (Cesar and Rogers
    2021, from Hoeffding's lemma). Permute-and-flip and noisy max have no such range: with two candidates and epsilon
    .1, permute-and-flip loses 3.6 times as much.
    """
    return epsilon**2 / 8


def _gaps(exact_scores: NDArray[Any]) -> NDArray[Any]:
    """Return how far each score is below the best: differences of 64-bit integers need an unsigned one."""
    if exact_scores.dtype == object:
        return np.asarray(exact_scores.max() - exact_scores)
    return np.asarray(exact_scores.max().astype(np.uint64) - exact_scores.astype(np.uint64))


@dataclass(frozen=True)
class IndexSelection(Selection, ABC):
    """A selection among candidates that are counted off; its kinds say how an index is drawn."""

    def release(self, exact_scores: NDArray[Any], entropy: Entropy = SYSTEM) -> int:
        """Return the index of the candidate that was chosen."""
        if (script := entropy.script) is not None:
            return int(script.choice(self, exact_scores))
        return self._draw(exact_scores, entropy)

    @abstractmethod
    def _draw(self, exact_scores: NDArray[Any], entropy: Entropy) -> int:
        """Draw an index from this source."""


@dataclass(frozen=True)
class PermuteAndFlip(IndexSelection):
    """Choose the index of a high integer score (McKenna and Sheldon 2020).

    Candidates come in random order; one that is `gap` below the best is taken with
    probability exp(-gap * rate). That is the largest score plus exponential noise
    (Ding et al. 2021), so: a record moves every score by at most `sensitivity`; if all
    move in one direction (`monotone`), the winner's lead over the best rival moves by
    at most that, else by twice that, and the choice loses at most epsilon, whatever
    the number of candidates.
    """

    def _draw(self, exact_scores: NDArray[Any], entropy: Entropy) -> int:
        rate = self.rate
        scores = exact_scores.tolist()
        best = max(scores)
        waiting = list(range(len(scores)))
        while True:
            chosen = waiting.pop(entropy.below(len(waiting)))
            if accepts(best - scores[chosen], rate, entropy):
                return chosen


@dataclass(frozen=True)
class Exponential(IndexSelection):
    """Choose the index of a high integer score (McSherry and Talwar 2007), as the papers before permute-and-flip do.

    Index j has weight exp(q_j * rate): the proof of `ExponentialOverRanges` with one point for each range.
    """

    @property
    def rho(self) -> Fraction:
        return bounded_range_rho(self.epsilon)

    def _draw(self, exact_scores: NDArray[Any], entropy: Entropy) -> int:
        return weighted_choice([1] * len(exact_scores), _gaps(exact_scores), self.rate, entropy)


@dataclass(frozen=True)
class NoisyMax(NoisyMaxErrors, IndexSelection):
    """The index of the largest score after integer Laplace noise of rate `rate`; the first of equals.

    Fix the noise of the others: an index wins if its own noise reaches a whole threshold. A
    record moves that by at most `sensitivity`, by twice that where scores move in both
    directions, and the tail of the noise changes by at most exp(rate) for each unit.
    """

    @property
    def noise(self) -> IntegerLaplace:
        return IntegerLaplace(self.rate)

    def _draw(self, exact_scores: NDArray[Any], entropy: Entropy) -> int:
        return int(np.argmax(self.noise.release(exact_scores, entropy)))


@dataclass(frozen=True)
class TopK(Selection):
    """The indices of `k` high scores: the exponential mechanism, then again among those that are left.

    Each draw loses `epsilon`, and epsilon^2 / 8 as rho; which candidates are left is public by then, so that the k
    losses add. That is the same as the k largest after one draw of Gumbel noise for each score (Durfee and Rogers
    2019).
    """

    k: int

    @property
    def loss(self) -> Fraction:
        return self.k * self.epsilon

    @property
    def rho(self) -> Fraction:
        return self.k * bounded_range_rho(self.epsilon)

    @property
    def single(self) -> Exponential:
        """The mechanism of one draw."""
        return Exponential(self.epsilon, self.sensitivity, self.monotone)

    def release(self, exact_scores: NDArray[Any], entropy: Entropy = SYSTEM) -> NDArray[np.intp]:
        """Return the indices in the order in which they were drawn."""
        left = np.arange(len(exact_scores))
        chosen = []
        for _ in range(self.k):
            at = self.single.release(exact_scores[left], entropy)
            chosen.append(int(left[at]))
            left = np.delete(left, at)
        return np.array(chosen, dtype=np.intp)


def interval_lengths(cells: int) -> tuple[int, ...]:
    """Return the lengths of the intervals that a line of cells is divided into: powers of two, the longest first.

    >>> interval_lengths(5)
    (4, 2, 1)
    """
    return tuple(2**power for power in range(cells.bit_length() - 1, -1, -1))


@dataclass(frozen=True)
class CheapestIntervals(_LosesEpsilon):
    """The cheapest division of a line of `cells` into intervals, by integer costs that one-sided noise lowers.

    Each interval pays its cost and a public `price`. The noise of each is geometric with ratio exp(-rate), and what
    it takes off on average is a public number that is added to the price. Of equally cheap divisions the one wins whose
    last interval is longer, then the one before, and so on: an order of all divisions.

    Proof, after that of DAWA (Li, Hay and Miklau 2014, theorem 1). A record changes one cell. Each division has
    exactly one interval with this cell, and only the costs of such intervals move, each by at most `sensitivity`. Let
    a division win on one table, b be its interval with the cell, and fix the noise of all others. It wins if the
    noise of b reaches a whole threshold: divisions that contain b too are compared without its noise and without
    any cost that moves, all others by costs that hold one moved interval each. From one table to the other the cost
    of b and the best of the others move by at most `sensitivity` each, so the threshold moves by at most twice that,
    and the tail of geometric noise changes by at most exp(rate) for each unit. So the division, which is all that
    leaves, becomes at most exp(2 sensitivity rate) = exp(epsilon) times as likely, however many intervals there are.

    Noise in one direction suffices because the threshold is all that it is held against: half the variance of the
    two-sided noise of the paper, for the same loss.
    """

    sensitivity: int
    cells: int
    price: int

    @property
    def rate(self) -> Fraction:
        """What a unit of cost is worth."""
        return self.epsilon / (2 * self.sensitivity)

    @property
    def surcharge(self) -> int:
        """What an interval pays besides its cost: the price, and what its noise takes off on average, rounded."""
        return self.price + int(1 / self.rate)

    def release(self, exact_costs: Sequence[int], entropy: Entropy = SYSTEM) -> list[int]:
        """Return the lengths of the intervals, in their order; costs are those of the longest intervals first."""
        if (script := entropy.script) is not None:
            divisions: list[list[int]] = self.divisions()
            return divisions[script.choice(self, np.array(exact_costs, dtype=object))]
        noise = geometric(self.rate, len(exact_costs), entropy).tolist()
        noisy = [cost + self.surcharge - off for cost, off in zip(exact_costs, noise, strict=True)]
        lengths = interval_lengths(self.cells)
        offsets = dict(
            zip(lengths, accumulate([0, *(self.cells - length + 1 for length in lengths[:-1])]), strict=True)
        )
        best, last = [0], [0]  # of the first cells of the line: what they cost, and how long their last interval is
        for end in range(1, self.cells + 1):
            fitting = (length for length in lengths if length <= end)
            price, length = min(  # of equals the first, which is longer
                ((best[end - length] + noisy[offsets[length] + end - length], length) for length in fitting),
                key=itemgetter(0),
            )
            best.append(price)
            last.append(length)
        chosen, end = [], self.cells
        while end:
            chosen.append(last[end])
            end -= last[end]
        return chosen[::-1]

    def divisions(self) -> list[list[int]]:
        """Return all divisions of a line of a few cells, in the order in which the first of equals wins."""
        lists: list[list[list[int]]] = [[[]]]
        for end in range(1, self.cells + 1):
            fitting = (length for length in interval_lengths(self.cells) if length <= end)
            lists.append([[*division, length] for length in fitting for division in lists[end - length]])
        return lists[-1]


class Ranges(NamedTuple):
    """The scores of all points of a public line, as ranges of equal score one after the other, and their sizes."""

    exact_scores: NDArray[Any]
    exact_sizes: Sequence[int] | NDArray[Any]


@dataclass(frozen=True)
class ExponentialOverRanges(Selection):
    """The exponential mechanism over the points of a public line, grouped into ranges of equal score.

    A range of `size` points and score q has weight size * exp(q / scale); a record
    moves each score by at most `sensitivity`, so one point's weight and the total
    move by at most exp(epsilon) against each other: by half of it each if scores
    move in both directions, together by all of it if in one (`monotone`).
    """

    @property
    def rho(self) -> Fraction:
        return bounded_range_rho(self.epsilon)

    def release(self, exact_ranges: Ranges, entropy: Entropy = SYSTEM) -> int:
        """Return the position of the chosen point on the line; which range it lies in stays here."""
        exact_scores, exact_sizes = exact_ranges
        if (script := entropy.script) is not None:
            return int(script.point(self, exact_scores, exact_sizes))
        chosen = weighted_choice(exact_sizes, _gaps(exact_scores), self.rate, entropy)
        before = int(np.sum(np.asarray(exact_sizes[:chosen])))
        return before + entropy.below(int(exact_sizes[chosen]))


@dataclass(frozen=True)
class AboveThreshold(_LosesEpsilon, ThresholdErrors):
    """The first of several integer scores, asked one after the other, to reach 0: one loss for all of them.

    The sparse vector technique (Dwork et al. 2009) with one-sided noise. There is one hidden threshold
    rho, and a fresh nu for every score, all geometric with the same `rate`; a score s reaches 0 if
    s + nu >= rho. Equal rates make their means cancel. One record moves every score by at most
    `sensitivity`, up or down, and one score against another by at most `spread`: twice that, unless
    scores move further in one direction than in the other.

    Proof, for neighbours in either direction. From one table to the other let no score rise by more than
    u nor fall by more than d, both at least 0. Fix the noise of all scores that stay below. With a
    threshold higher by u they stay below on the other table too, and that threshold is exp(-u rate)
    times as likely: noise from 0 upwards suffices, because the shift goes up only. The score that
    reaches it then needs a nu higher by at most u + d, which is at most exp((u + d) rate) times less
    likely. As u <= sensitivity and u + d <= spread, an answer sequence becomes at most
    exp((sensitivity + spread) rate) = exp(epsilon) times as likely, whatever its length and whatever
    the scores were chosen by.

    >>> watch = AboveThreshold(epsilon=Fraction(3), sensitivity=1)
    >>> watch.rate
    Fraction(1, 1)
    """

    sensitivity: int
    spread: int | None = None

    def __post_init__(self) -> None:
        if self.spread is None:
            object.__setattr__(self, "spread", 2 * self.sensitivity)
        assert self.spread is not None
        if not 0 < self.sensitivity <= self.spread <= 2 * self.sensitivity:
            raise QuestionError("the spread of scores lies between their sensitivity and twice that.")

    @property
    def rate(self) -> Fraction:
        """What a unit of score is worth, for the threshold as for a score."""
        assert self.spread is not None
        return self.epsilon / (self.sensitivity + self.spread)

    def release(self, exact_scores: Sequence[int], entropy: Entropy = SYSTEM) -> int:
        """Return the index of the first score that reaches 0, or the number of scores if none does."""
        watch = Watch(self, entropy)
        for index, exact_score in enumerate(exact_scores):
            if watch.reached(int(exact_score)):
                return index
        return len(exact_scores)


class Watch:
    """The hidden threshold of one run of `AboveThreshold`: private, and shown nowhere."""

    __slots__ = ("_entropy", "_exact_earlier", "_mechanism", "_script", "_threshold", "closed")

    def __init__(self, mechanism: AboveThreshold, entropy: Entropy) -> None:
        self._mechanism = mechanism
        self._entropy = entropy
        self._script = entropy.script
        self._exact_earlier: tuple[int, ...] = ()  # a script computes chances given the answers before
        self._threshold = 0 if self._script is not None else int(geometric(mechanism.rate, 1, entropy)[0])
        self.closed = False

    def reached(self, exact_score: int) -> bool:
        """Return whether a score reaches 0; after the first that does, refuse to answer."""
        if self.closed:
            raise QuestionError("this monitor is closed: it answers up to its first yes; begin another for more.")
        if self._entropy.script is not self._script:
            raise PrivacyError("a monitor answers a script only if it was begun in the same run of it.")
        self.closed = True  # until the answer is known to be a no: an interrupt must not earn a second try
        if self._script is not None:
            self._exact_earlier = (*self._exact_earlier, exact_score)
            answer = bool(self._script.reached(self._mechanism, self._exact_earlier))
        else:
            answer = exact_score + int(geometric(self._mechanism.rate, 1, self._entropy)[0]) >= self._threshold
        self.closed = answer
        return answer

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivacyError("a monitor cannot be copied or pickled: its threshold stays where it is.")


SELECTIONS: dict[str, Callable[[Fraction, int, bool], IndexSelection]] = {
    "permute-and-flip": PermuteAndFlip,
    "exponential": Exponential,
    "noisy-max": NoisyMax,
}


def selection(name: object) -> Callable[[Fraction, int, bool], IndexSelection]:
    """Return the selection of this name.

    Raises
    ------
    QuestionError
        There is none.
    """
    if not isinstance(name, str) or name not in SELECTIONS:
        raise QuestionError(f"there is no selection '{name}'; choose one of {', '.join(SELECTIONS)}.")
    return SELECTIONS[name]


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
    >>> from privet.kernel.sampling import SeededEntropy
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

"""How one of several candidates is chosen: mechanisms whose outcome is an index, a point of a line or a yes.

They are frozen values as those of `mechanisms`, and draw by the same exact samplers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from privet.errors import PrivacyError, QuestionError
from privet.kernel.mechanisms import SYSTEM, Entropy, IntegerLaplace, LosesEpsilon, accepts, geometric, weighted_choice
from privet.noise_errors import NoisyMaxErrors, SelectionErrors, ThresholdErrors


@dataclass(frozen=True)
class Selection(LosesEpsilon, SelectionErrors):
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
class CheapestIntervals(LosesEpsilon):
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
class AboveThreshold(LosesEpsilon, ThresholdErrors):
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

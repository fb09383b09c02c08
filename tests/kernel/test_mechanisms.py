"""Mechanisms: exact losses by enumeration, scales that never promise too much, and extremes that never raise."""

from __future__ import annotations

import itertools
import json
import math
import os
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal, DefaultContext, Inexact, localcontext
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import privet
from privet.kernel import (
    PURE,
    SYSTEM,
    AboveThreshold,
    Entropy,
    Exponential,
    ExponentialOverRanges,
    IntegerLaplace,
    NoisyMax,
    Paired,
    PermuteAndFlip,
    Ranges,
    Refinement,
    ResidualLaplace,
    SeededEntropy,
    SystemEntropy,
    mechanisms,
)
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.lab.distributions import probabilities

PROPERTY = settings(derandomize=True, deadline=None)

EPSILON = Fraction(7, 10)
EPSILONS = st.fractions(Fraction(1, 10**9), 10**6, max_denominator=10**12)
SENSITIVITIES = st.integers(1, 2**53)


# -- exact losses of selections -----------------------------------------------------------------


Scores = tuple[int, ...]
Probabilities = Callable[[Scores], NDArray[np.float64]]


def neighbours(sensitivity: int, monotone: bool) -> Iterator[tuple[Scores, Scores]]:
    """All pairs of three small scores of which each moves by at most the sensitivity: all up, or any way.

    And of one score far behind the others: where choosing it is rare, some selections lose most.
    """
    moves = range(0 if monotone else -sensitivity, sensitivity + 1)
    for scores in [*itertools.product(range(5), repeat=3), (0, 900, 900)]:
        for move in itertools.product(moves, repeat=3):
            yield scores, tuple(a + b for a, b in zip(scores, move, strict=True))


def loss(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    return float(np.abs(np.log(first / second)).max())


SIZES = [1, 30, 10**9]


def permute_and_flip(sensitivity: int, monotone: bool) -> Probabilities:
    return lru_cache(None)(partial(probabilities, PermuteAndFlip(EPSILON, sensitivity, monotone)))


def exponential(sensitivity: int, monotone: bool) -> Probabilities:
    return lru_cache(None)(partial(probabilities, Exponential(EPSILON, sensitivity, monotone)))


def noisy_max(sensitivity: int, monotone: bool) -> Probabilities:
    known = lru_cache(None)(partial(probabilities, NoisyMax(EPSILON, sensitivity, monotone)))
    return lambda scores: known(
        tuple(score - min(scores) for score in scores)
    )  # only differences matter, and sums cost


def exponential_over_ranges(sensitivity: int, monotone: bool) -> Probabilities:
    """The probability of one point of each range."""
    mechanism = ExponentialOverRanges(EPSILON, sensitivity, monotone)
    return lru_cache(None)(lambda scores: probabilities(mechanism, scores, SIZES) / np.array(SIZES))


SELECTIONS = pytest.mark.parametrize("selection", [permute_and_flip, exponential, noisy_max, exponential_over_ranges])
PLAIN = [PermuteAndFlip, Exponential, NoisyMax]


@SELECTIONS
@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize("monotone", [True, False])
def test_a_selection_loses_epsilon_at_worst_and_not_much_less(selection: Any, sensitivity: int, monotone: bool) -> None:
    probabilities = selection(sensitivity, monotone)
    worst = max(loss(probabilities(a), probabilities(b)) for a, b in neighbours(sensitivity, monotone))
    # the noisy maximum comes near its loss as one over how far behind a candidate is
    nearly = 0.99 if selection is noisy_max else 0.999
    assert nearly * EPSILON < worst <= EPSILON + Fraction(1, 10**12)


@SELECTIONS
def test_the_monotone_exponent_would_lose_twice_as_much_on_scores_that_are_not(selection: Any) -> None:
    probabilities = selection(1, True)
    worst = max(loss(probabilities(a), probabilities(b)) for a, b in neighbours(1, False))
    assert worst == pytest.approx(2 * float(EPSILON), rel=1e-2 if selection is noisy_max else 1e-3)


@given(
    kind=st.sampled_from(PLAIN),
    epsilon=st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(5, 2)]),
    sensitivity=st.integers(1, 3),
    monotone=st.booleans(),
    up=st.booleans(),
    moved=st.lists(st.tuples(st.integers(0, 25), st.integers(-3, 3)), min_size=1, max_size=5),
)
@PROPERTY
def test_no_move_of_scores_within_the_sensitivity_costs_more_than_epsilon(
    kind: Any,
    epsilon: Fraction,
    sensitivity: int,
    monotone: bool,
    up: bool,
    moved: list[tuple[int, int]],
) -> None:
    moves = [max(-sensitivity, min(sensitivity, move)) for _, move in moved]
    if monotone:
        moves = [abs(move) if up else -abs(move) for move in moves]
    before = [score for score, _ in moved]
    after = [score + move for score, move in zip(before, moves, strict=True)]
    mechanism = kind(epsilon, sensitivity, monotone)
    assert mechanism.loss == epsilon
    # the sums of a noisy maximum leave out what is less probable than 1e-12
    assert loss(probabilities(mechanism, before), probabilities(mechanism, after)) <= float(epsilon) + 1e-9


@pytest.mark.parametrize("candidates", [1, 2, 3, 10, 300])
def test_probabilities_of_a_selection_add_up_to_one(candidates: int) -> None:
    scores = [(7 * i) % 11 for i in range(candidates)]
    for found in (
        *(probabilities(kind(EPSILON, 2, True), scores) for kind in PLAIN),
        probabilities(ExponentialOverRanges(EPSILON, 2, True), scores, [1 + i for i in range(candidates)]),
    ):
        assert len(found) == candidates and (found > 0).all()
        assert found.sum() == pytest.approx(1, abs=1e-9)


def test_permute_and_flip_is_a_walk_through_a_random_order() -> None:
    scores = [4, 3, 3, 1]
    accept = np.exp((np.array(scores) - 4) * float(EPSILON))
    expected = np.zeros(4)
    for order in itertools.permutations(range(4)):
        left = 1 / math.factorial(4)
        for index in order:
            expected[index] += left * accept[index]
            left *= 1 - accept[index]
    assert probabilities(PermuteAndFlip(EPSILON, 1, True), scores) == pytest.approx(expected, abs=1e-14)


def test_the_exponential_mechanism_is_the_one_over_ranges_of_one_point() -> None:
    scores = [4, 3, 3, 1, -20]
    for monotone in (True, False):
        expected = probabilities(ExponentialOverRanges(EPSILON, 2, monotone), scores, [1] * 5)
        assert probabilities(Exponential(EPSILON, 2, monotone), scores) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("scores", [[2, 2, 2], [0, 2, 1], [3, 0, 3], [0, 5]])
def test_a_noisy_maximum_is_the_first_of_the_largest_noisy_scores(scores: list[int]) -> None:
    mechanism = NoisyMax(EPSILON, 1, False)
    span = np.arange(-90, 91)  # noise of scale 2.9: beyond lie less than 1e-13
    single = np.array([IntegerLaplace(mechanism.rate).probability(int(noise)) for noise in span])
    expected = np.zeros(len(scores))
    for first, weight in zip(span, single, strict=True):
        others = np.meshgrid(*(span + score for score in scores[1:]), indexing="ij")
        weights = np.multiply.reduce(np.meshgrid(*([single] * (len(scores) - 1)), indexing="ij"))
        winner = np.argmax(np.stack([np.full(weights.shape, first + scores[0]), *others]), axis=0)
        expected += weight * np.bincount(winner.ravel(), weights.ravel(), minlength=len(scores))
    assert probabilities(mechanism, scores) == pytest.approx(expected, abs=1e-11)


@given(
    scores=st.lists(st.integers(0, 60), min_size=1, max_size=8),
    confidence=st.sampled_from([0.5, 0.9, 0.99]),
    epsilon=st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(4)]),
)
@PROPERTY
def test_a_choice_falls_short_as_rarely_as_it_says(scores: list[int], confidence: float, epsilon: Fraction) -> None:
    missing = max(scores) - np.array(scores)
    plain = [kind(epsilon, 1, monotone) for kind in PLAIN for monotone in (True, False)]
    ranges = ExponentialOverRanges(epsilon, 1, False)
    for mechanism, found in (
        *((choose, probabilities(choose, scores)) for choose in plain),
        (ranges, probabilities(ranges, scores, [1] * len(scores))),
    ):
        within = found[missing <= mechanism.shortfall(len(scores), confidence) + 1e-9].sum()
        assert within >= confidence - 1e-12


# -- scales -------------------------------------------------------------------------------------


@given(EPSILONS, SENSITIVITIES)
@example(Fraction(1, 10), 1)
@example(Fraction(1, 3), 1)
@example(Fraction(1, 10**9), 2**53)
@example(Fraction(10**6), 1)
@PROPERTY
def test_noise_is_never_narrower_than_its_loss_demands(epsilon: Fraction, sensitivity: int) -> None:
    noise = IntegerLaplace(epsilon, sensitivity)
    exact = sensitivity / epsilon
    assert noise.loss == epsilon
    assert exact <= Fraction(noise.scale) <= exact * (1 + Fraction(1, 10**15))


@given(EPSILONS, SENSITIVITIES, st.booleans())
@PROPERTY
def test_the_exponent_of_a_selection_is_its_loss_over_its_reach(
    epsilon: Fraction, sensitivity: int, monotone: bool
) -> None:
    for kind in (*PLAIN, ExponentialOverRanges):
        mechanism = kind(epsilon, sensitivity, monotone)
        assert mechanism.loss == epsilon
        assert mechanism.rate * sensitivity * (1 if monotone else 2) == epsilon


@given(EPSILONS, st.lists(st.integers(1, 1024), min_size=2, max_size=5))
@PROPERTY
def test_residual_noise_costs_its_loss_for_the_dearest_class(epsilon: Fraction, caps: list[int]) -> None:
    noise = ResidualLaplace(epsilon, tuple(caps))
    losses = []
    for cap, own in zip(caps, noise.own, strict=True):
        lost = Fraction(cap) / Fraction(own.scale)  # a record adds at most its cap to one entry of its class
        if len(caps) > 2:
            lost += Fraction(cap) / Fraction(noise.others.scale)  # and as much in all to entries of the others
        losses.append(lost)
    assert noise.loss == epsilon
    assert epsilon * (1 - Fraction(1, 10**14)) <= max(losses) <= epsilon


@given(st.fractions(Fraction(1, 50), 20, max_denominator=100), st.floats(0.01, 0.999))
@PROPERTY
def test_the_error_is_the_smallest_that_holds_often_enough(epsilon: Fraction, confidence: float) -> None:
    noise = IntegerLaplace(epsilon)
    error = noise.error(confidence)
    inside = sum(noise.probability(x) for x in range(-error, error + 1))
    assert inside >= confidence - 1e-9
    if error:
        assert inside - 2 * noise.probability(error) < confidence + 1e-9


@given(st.fractions(Fraction(1, 30), 20, max_denominator=100), st.integers(1, 5))
@PROPERTY
def test_the_deviation_is_that_of_the_probabilities(epsilon: Fraction, sensitivity: int) -> None:
    noise = IntegerLaplace(epsilon, sensitivity)
    reach = 50 + int(40 * noise.scale)
    square = sum(x * x * noise.probability(x) for x in range(-reach, reach + 1))
    assert noise.deviation == pytest.approx(math.sqrt(square), rel=1e-9)


# -- extremes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(1), Fraction(10**6)])
@pytest.mark.parametrize("sensitivity", [1, 2**53])
def test_huge_values_are_clamped_and_never_raise(epsilon: Fraction, sensitivity: int) -> None:
    noise = IntegerLaplace(epsilon, sensitivity)
    for values in (
        np.array([2**63 - 1, -(2**63), 0]),
        np.array([10**30, -(10**30), 0], dtype=object),
    ):
        found = noise.release(values)
        assert found.dtype == np.int64 and found.shape == (3,)
    if epsilon == 1 and sensitivity == 1:
        assert abs(int(found[0]) - 2**62) < 100 and abs(int(found[1]) + 2**62) < 100


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (), (2, 3)])
def test_noise_keeps_the_shape(shape: tuple[int, ...]) -> None:
    values = np.zeros(shape, dtype=np.int64)
    assert IntegerLaplace(EPSILON).release(values).shape == shape
    assert IntegerLaplace(EPSILON).release(values, SeededEntropy(1)).shape == shape


def test_scores_as_far_apart_as_integers_go_choose_the_best() -> None:
    for far in (np.array([-(2**63), 2**63 - 1, 0]), np.array([-(2**80), 2**80, 0], dtype=object)):
        for kind in PLAIN:
            assert kind(Fraction(1), 1, True).release(far) == 1
        assert ExponentialOverRanges(Fraction(1), 1, True).release(Ranges(far, [10**9, 1, 10**9])) == 10**9


def test_scores_beyond_floats_keep_their_differences() -> None:
    """2^62 and 2^62 - 1 are one float: the gap is taken before it becomes one. A false alarm has probability 1e-9."""
    scores = np.array([2**62, 2**62 - 1])
    for kind in (PermuteAndFlip, Exponential):
        mechanism = kind(Fraction(40), 1, True)
        assert {mechanism.release(scores) for _ in range(50)} == {0}
        assert probabilities(mechanism, scores.tolist())[1] < 1e-16


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(1, 3), Fraction(10**6)])
def test_what_is_computed_about_noise_is_finite(epsilon: Fraction) -> None:
    for sensitivity in (1, 2**53):
        noise = IntegerLaplace(epsilon, sensitivity)
        assert 0 <= noise.deviation < math.inf and noise.deviation <= 1.5 * noise.scale


def test_a_single_candidate_is_chosen() -> None:
    for kind in PLAIN:
        assert kind(EPSILON, 1, True).release(np.array([-3])) == 0
    assert ExponentialOverRanges(EPSILON, 1, True).release(Ranges(np.array([-3]), [1])) == 0


def located(place: int, sizes: list[int]) -> tuple[int, int]:
    """The range that a point of the line lies in, and its place there."""
    ends = list(itertools.accumulate(sizes))
    index = bisect_right(ends, place)
    return index, place - sum(sizes[:index])


@pytest.mark.parametrize(
    ("scores", "sizes", "chosen"),
    [
        ([0, 10**15], [10**9, 1], 1),
        ([10**15, 0, -(10**15)], [1, 10**300, 10**300], 0),
        ([0, 0], [10**400, 1], 0),
        ([0, 10**15], [10**400, 1], 1),
        # 10^300 points that weigh exp(-740) each are less than one point: exp(691 - 740)
        ([0, 740], [10**300, 1], 1),
        ([0, 950], [10**400, 1], 1),
    ],
)
@pytest.mark.parametrize("margin", [1e-9, 1.0])  # floats where they are sure; decimals always
def test_extreme_gaps_and_sizes_leave_one_choice(
    scores: list[int], sizes: list[int], chosen: int, margin: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mechanisms, "_MARGIN", margin)
    mechanism = ExponentialOverRanges(Fraction(1), 1, True)
    for _ in range(20):
        index, offset = located(mechanism.release(Ranges(np.array(scores), sizes)), sizes)
        assert index == chosen and 0 <= offset < sizes[index]


def test_sizes_beyond_floats_keep_their_shares() -> None:
    mechanism = ExponentialOverRanges(Fraction(1), 1, True)
    seeded = SeededEntropy(3)
    sizes = [10**400, 3 * 10**400]
    found = [located(mechanism.release(Ranges(np.array([0, 0]), sizes), seeded), sizes) for _ in range(400)]
    assert 60 < sum(index == 0 for index, _ in found) < 140
    assert max(offset for _, offset in found) > 10**400


# -- the exact path where floats are not sure ---------------------------------------------------


class Words(Entropy):
    """Gives these 64-bit words, and then others that no edge is near."""

    def __init__(self, *words: int) -> None:
        self._coming = itertools.chain(words, itertools.repeat(0x9E3779B97F4A7C15))
        self.drawn: list[int] = []

    def take(self, count: int) -> bytes:
        assert count % 8 == 0
        given = [next(self._coming) for _ in range(count // 8)]
        self.drawn += given
        return b"".join(word.to_bytes(8, "little") for word in given)


HALF, ALL = 2**63, 2**64 - 1


@pytest.mark.parametrize(
    ("blocks", "chosen"),
    [
        ((0,), 0),
        ((HALF - 1, 0), 0),
        ((HALF, ALL), 1),
        ((HALF, 0, ALL), 1),  # one half to 128 bits: not decided until the third block
        ((HALF - 1, ALL, 0), 0),
        ((ALL, ALL), 1),
    ],
)
def test_a_point_at_the_edge_of_a_range_is_decided_by_more_bits(blocks: tuple[int, ...], chosen: int) -> None:
    words = Words(*blocks)
    mechanism = ExponentialOverRanges(EPSILON, 1, True)
    assert mechanism.release(Ranges(np.array([5, 5]), [1, 1]), words) == chosen
    assert words.drawn == list(blocks[: len(words.drawn)])


def test_a_coin_at_its_chance_is_decided_by_more_bits() -> None:
    rate, gap = Fraction(1), 1
    digits = sum((-1) ** k * 2**256 // math.factorial(k) for k in range(80)) >> 64  # exp(-1) to 192 bits
    first, second, third = digits >> 128, digits >> 64 & ALL, digits & ALL
    for blocks, below in (
        ((first - 2**40,), True),
        ((first + 2**40,), False),
        ((first, second - 2**40), True),
        ((first, second + 2**40), False),
        ((first, second, third - 2**40), True),
        ((first, second, third + 2**40), False),
    ):
        assert mechanisms.accepts(gap, rate, Words(*blocks)) is below


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 12)), min_size=1, max_size=6),
    st.integers(0, 2**128 - 1),
    st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(5, 2)]),
)
@PROPERTY
def test_the_exact_path_agrees_with_the_shares(ranges: list[tuple[int, int]], drawn: int, rate: Fraction) -> None:
    sizes, gaps = zip(*ranges, strict=True)
    weights = np.array(sizes) * np.exp(-np.array(gaps) * float(rate))
    edges = np.concatenate([[0], np.cumsum(weights) / weights.sum()])
    found = mechanisms._decide(sizes, np.array(gaps), rate, drawn, 128)
    point = drawn / 2**128
    if found is None:
        assert np.abs(edges - point).min() < 1e-9
    else:
        assert edges[found] - 1e-9 < point < edges[found + 1] + 1e-9


# -- extreme words ------------------------------------------------------------------------------

# What 64 bits of entropy can be at worst, alone and one after the other; what follows is far from every edge.
EXTREMES = [
    *itertools.product((0, 1, 2, HALF - 1, HALF, ALL - 1, ALL), repeat=1),
    *itertools.product((0, 1, ALL), repeat=2),
    (0, 0, 0),
    (0, 0, 1),
    (0, 0, 0, 1),
    (ALL, ALL, ALL),
    (ALL, ALL, ALL - 1),
]
RATES = [
    Fraction(1, 10**30),
    Fraction(1, 10**9),
    Fraction(1, 3),
    Fraction(1),
    Fraction(3),
    Fraction(7, 2),
    Fraction(10),
    Fraction(44),
    Fraction(50),
    Fraction(89),
    Fraction(10**6),
    Fraction(10**40),
]
PRECISE = Context(prec=400, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def uniform(words: Words) -> Decimal:
    """The uniform number of which these words are the beginning, with 15 words more than any test draws."""
    more = [*words.drawn, *[0x9E3779B97F4A7C15] * 15]
    number = sum(word << 64 * place for place, word in enumerate(reversed(more)))
    return PRECISE.divide(Decimal(number), Decimal(2 ** (64 * len(more))))


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_a_geometric_number_is_that_of_its_uniform_number_to_the_last_tail(rate: Fraction) -> None:
    """P(k) is exact only if every u gives floor(-ln u / rate), the smallest too: a word of 0 has probability 2^-64."""
    for first in EXTREMES:
        words = Words(*first)
        (found,) = mechanisms.geometric(rate, 1, words)
        with localcontext(PRECISE):
            exactly = -uniform(words).ln() * rate.denominator / rate.numerator
        assert found == int(exactly), first


def test_a_word_of_zeros_is_a_tail_and_no_end() -> None:
    """At epsilon 50 and more a number of 64 bits alone would be no noise at all."""
    for rate in (3, 10, 50, 80):
        small = int(mechanisms.geometric(Fraction(rate), 1, Words(0, 1))[0])
        assert small == int(128 * math.log(2) / rate)
        noisy = IntegerLaplace(Fraction(rate)).release(np.array([0]), Words(0, HALF, 1))
        assert noisy.tolist() == [small]


@given(st.fractions(Fraction(1, 10**13), Fraction(50)), st.lists(st.integers(0, ALL), min_size=1, max_size=40))
@example(Fraction(1), [0, 1, HALF, ALL, int(2**64 * math.exp(-1)), int(2**64 * math.exp(-1)) + 1])
@PROPERTY
def test_floats_decide_a_geometric_number_only_where_decimals_agree(rate: Fraction, words: list[int]) -> None:
    class Halves(Words):
        """After its words, bits that are a one and zeros, for each number that is not sure yet."""

        def bits(self, count: int) -> int:
            return 2 ** (count - 1)

    found = mechanisms.geometric(rate, len(words), Halves(*words)).tolist()
    assert found == [mechanisms._exact_geometric(rate, word, Halves()) for word in words]


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_a_coin_is_that_of_its_uniform_number(rate: Fraction) -> None:
    """Chances that no float holds, gaps that none holds, and points at 0 and at 1."""
    for first, gap in itertools.product(EXTREMES, [1, 44, 45, 700, 745, 746, 10**5, 2**63, 2**64, 10**400]):
        words = Words(*first)
        found = mechanisms.accepts(gap, rate, words)
        with localcontext(PRECISE):  # as logarithms: exp of some of these exponents is 0
            below = uniform(words).ln() < Decimal(-gap * rate.numerator) / rate.denominator
        assert found is below, (first, gap)


RANGES: list[tuple[list[int], list[int]]] = [
    ([1, 1], [0, 0]),
    ([1, 1, 1], [0, 0, 0]),
    ([1, 1], [0, 745]),
    ([1, 1], [746, 0]),
    ([10**30, 1], [0, 2**63]),
    ([1, 10**400], [0, 900]),
    ([10**300, 1, 10**300], [740, 0, 740]),
    ([1] * 50, [0] * 50),
    ([3, 10**9, 7], [2**64, 1, 0]),
]


@pytest.mark.parametrize(("sizes", "gaps"), RANGES, ids=str)
@pytest.mark.parametrize("rate", [Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(10**6)], ids=str)
def test_a_choice_is_that_of_its_uniform_number(rate: Fraction, sizes: list[int], gaps: list[int]) -> None:
    with localcontext(PRECISE):
        weights = [
            size * (Decimal(-gap) * rate.numerator / rate.denominator).exp()
            for size, gap in zip(sizes, gaps, strict=True)
        ]
        ends = list(itertools.accumulate(weights))
    for first in EXTREMES:
        words = Words(*first)
        found = mechanisms.weighted_choice(sizes, np.array(gaps, dtype=object), rate, words)
        point = PRECISE.multiply(uniform(words), ends[-1])
        assert found == min(bisect_right(ends, point), len(ends) - 1), first


@pytest.mark.parametrize("first", [(0,), (0, 0), (ALL,), (ALL, 0), (0, ALL)], ids=str)
def test_extreme_words_release_what_the_samplers_drew(first: tuple[int, ...]) -> None:
    """Every mechanism on words that it meets once in 2^64 draws: noise is the difference of two geometric numbers."""
    rate = Fraction(3)
    up, down = (int(mechanisms.geometric(rate, 1, Words(*each))[0]) for each in (first, ()))
    if len(first) == 1:  # the further bits of the first number come after the second word
        assert IntegerLaplace(rate).release(np.array([10]), Words(*first)).tolist() == [10 + up - down]
    far = np.array([0, -(10**6)])
    for kind in PLAIN:
        assert kind(rate, 1, True).release(far, Bytes(*first)) == 0
    assert 0 <= ExponentialOverRanges(rate, 1, True).release(Ranges(far, [3, 10**9]), Bytes(*first)) < 3
    finer = Refinement(Fraction(1), rate).release(Paired(np.array([10]), np.array([12])), Words(*first)).tolist()
    assert abs(finer[0] - 10) < 200
    assert AboveThreshold(rate, 1).release([-(10**6), 10**6], Words(*first)) == 1
    own, others = ResidualLaplace(rate, (2, 2, 2)).release((np.array([5, 5, 5]), np.array([5, 5, 5])), Words(*first))
    assert own.shape == (3,) and others is not None and np.abs(own - 5).max() < 400


class Bytes(Words):
    """The words as a stream of bytes, for coins of fewer bits."""

    def take(self, count: int) -> bytes:
        words = -(-count // 8)
        return super().take(8 * words)[:count]


@contextmanager
def spoiled() -> Iterator[None]:
    """What a caller may have done to decimals and to numpy before asking."""
    kept = {name: getattr(DefaultContext, name) for name in ("prec", "rounding", "Emin", "Emax", "clamp")}
    changed = {"prec": 3, "rounding": ROUND_UP, "Emin": -5, "Emax": 5, "clamp": 1}
    with localcontext(Context(prec=2, rounding=ROUND_UP, Emin=-2, Emax=2, traps=[Inexact])), np.errstate(all="raise"):
        for name, value in changed.items():
            setattr(DefaultContext, name, value)
        try:
            yield
        finally:
            for name, value in kept.items():
                setattr(DefaultContext, name, value)


def test_what_a_caller_did_to_decimals_changes_no_draw() -> None:
    def draws() -> list[Any]:
        return [
            mechanisms.geometric(Fraction(1, 10**30), 3, Words(5, 6, 7)).tolist(),
            mechanisms.geometric(Fraction(45), 1, Words(0, 1)).tolist(),
            mechanisms.accepts(1, Fraction(1), Words(int(2**64 * math.exp(-1)))),
            mechanisms.accepts(10**400, Fraction(1, 10**399), Words(0, 5)),
            mechanisms.weighted_choice([1, 10**400], np.array([0, 900]), Fraction(1), Words(HALF)),
        ]

    expected = draws()
    with spoiled():
        assert draws() == expected


def test_numpys_error_settings_make_no_answer_an_error() -> None:
    """Would tell that a score is far behind: exp of it underflows, which a caller can have raised."""
    frame = pd.DataFrame({"x": ["a"] * 3000 + ["b"], "y": ["p", "q", "q"] * 1000 + ["p"]})
    columns = (Nominal("x", ("a", "b")), Nominal("z", ("c",)), Nominal("y", ("p", "q")))
    with privet.open(frame.assign(z="c"), Domain(columns, target="y"), budget=10**4) as table, spoiled():
        for mechanism in ("permute-and-flip", "exponential", "noisy-max"):
            assert str(table.select("max", 1000, mechanism=mechanism)) in ("x", "z")


# -- coins --------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 100, 255, 256, 257])
def test_a_number_below_a_bound_takes_every_value_equally_often(bound: int) -> None:
    class Patterns(SystemEntropy):
        """Every pattern of the bits that are asked for, once."""

        asked, patterns = 0, [-1]

        def bits(self, count: int) -> int:
            if self.patterns == [-1]:
                self.patterns = list(range(2**count))
            self.asked += 1
            return self.patterns.pop()

    source, found = Patterns(), []
    while source.patterns:
        try:
            found.append(source.below(bound))
        except IndexError:  # the last patterns were all rejected
            break
    assert sorted(found) == list(range(bound))
    assert source.asked <= 2 * bound + 1


@given(st.integers(1, 10**60), st.integers(0, 2**32))
@PROPERTY
def test_a_number_below_a_bound_stays_below(bound: int, seed: int) -> None:
    for source in (SYSTEM, SeededEntropy(seed)):
        assert 0 <= source.below(bound) < bound


def draw(source: Entropy = SYSTEM) -> list[Any]:
    """Draws from every mechanism that practically never repeat by chance."""
    wide = Fraction(1, 10**9)
    zeros = np.zeros(1000, dtype=np.int64)
    watches = [AboveThreshold(wide, 1).release([10**9 // 2 * place for place in range(-30, 30)], source) for _ in "ab"]
    return [
        IntegerLaplace(wide).release(zeros[:4], source).tolist(),
        Refinement(wide, 2 * wide).release(Paired(zeros[:4], zeros[:4] + 10**9), source).tolist(),
        [
            part.tolist()
            for part in ResidualLaplace(wide, (2, 2, 2)).release((zeros[:3], zeros[:3]), source)
            if len(part)
        ],
        *([kind(wide, 1, True).release(zeros, source) for _ in range(8)] for kind in PLAIN),
        [ExponentialOverRanges(wide, 1, True).release(Ranges(zeros[:50], [10**30] * 50), source)],
        PURE.sum_and_count(wide, 3).release(zeros[:4].reshape(2, 2), source).tolist(),
        [watches, source.below(10**30)],
    ]


def test_a_seed_repeats_every_draw_and_is_not_private() -> None:
    found = [draw(SeededEntropy(seed)) for seed in (7, 7, 8)]
    assert found[0] == found[1]
    assert all(a != b for a, b in zip(found[0], found[2], strict=True))
    assert SYSTEM.private and not SeededEntropy(7).private


def test_a_seed_around_a_mechanism_changes_nothing() -> None:
    """Noise that a block of a test could seed from outside would be known to whoever writes the block."""
    found = []
    for _ in range(2):
        with privet.testing.seeded_noise(7):
            found.append(draw())
    assert all(a != b for a, b in zip(*found, strict=True))


def test_forked_processes_draw_noise_of_their_own() -> None:
    draw()  # whatever a sampler buffers is now in memory, and copied
    found = [_in_a_fork(draw), _in_a_fork(draw), json.loads(json.dumps(draw()))]
    for a, b in itertools.combinations(found, 2):
        assert all(one != other for one, other in zip(a, b, strict=True))


def _in_a_fork(function: Callable[[], Any]) -> Any:
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, where the process has threads
        child = os.fork()
    if child == 0:
        try:
            os.write(writer, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        text = answers.read()
    os.waitpid(child, 0)
    return json.loads(text)

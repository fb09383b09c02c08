"""The kernel's mechanisms as subjects: drawn from directly, on values that one record can turn into others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.kernel import (
    PURE,
    SYSTEM,
    AboveThreshold,
    CheapestIntervals,
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
    SumAndCount,
)
from privet.lab import WorstLoss, probabilities, worst_loss_of_draws
from privet.verification.checks import Check, ExactCheck, NeighbourCheck, Neighbours
from privet.verification.subject import Effort, Subject

RUNS = 80_000  # of noise on each table
CHOICES = 60_000  # of permute-and-flip; the others are slower
SLOW_CHOICES = 20_000
SEARCHED = 300  # score vectors of a hill climb

# Every mechanism, and every way its proof allows it to be used: a name, what it is, how it is made.
MECHANISMS: tuple[tuple[str, str, Callable[[Fraction], Any]], ...] = (
    ("integer-laplace", "two-sided geometric noise on a count", IntegerLaplace),
    ("integer-laplace-vector", "the same on a vector of sensitivity 3", lambda e: IntegerLaplace(e, 3)),
    ("refinement", "noise on a count, refined later", lambda e: Refinement(e / 4, e)),
    ("refinement-vector", "the same on a vector of sensitivity 3", lambda e: Refinement(e / 2, e, 3)),
    ("sum-and-count", "noise on a sum and on the number of its rows", lambda e: PURE.sum_and_count(e, 3)),
    ("residual-laplace", "noise on residual sums of two classes", lambda e: ResidualLaplace(e, (3, 5))),
    ("residual-laplace-classes", "noise on residual sums of three", lambda e: ResidualLaplace(e, (2, 2, 2))),
    ("above-threshold", "the first score to reach a hidden threshold", lambda e: AboveThreshold(e, 1)),
    ("above-threshold-uneven", "the same of scores that rise more than they fall", lambda e: AboveThreshold(e, 2, 3)),
    ("cheapest-intervals", "the cheapest way to group two cells", lambda e: CheapestIntervals(e, 2, 2, 1)),
    *(
        (f"{name}{'' if monotone else '-two-way'}", f"{line}{'' if monotone else ' that move both ways'}", make)
        for name, line, kind in (
            ("permute-and-flip", "permute-and-flip on scores", PermuteAndFlip),
            ("exponential", "the exponential mechanism on scores", Exponential),
            ("noisy-max", "the largest score after noise, of scores", NoisyMax),
            (
                "exponential-over-ranges",
                "the exponential mechanism on ranges of points, by scores",
                ExponentialOverRanges,
            ),
        )
        for monotone in (True, False)
        for make in [lambda e, kind=kind, monotone=monotone: kind(e, 1, monotone)]
    ),
)


def subjects() -> Iterator[Subject]:
    for name, line, make in MECHANISMS:
        yield Subject(name, "mechanism", line, partial(_made, make))


def _made(make: Callable[[Fraction], Any], epsilon: Fraction, effort: Effort) -> list[Check]:
    return checks(make(epsilon), effort)


def checks(mechanism: Any, effort: Effort) -> list[Check]:
    """What is tried on a mechanism: its probabilities, and draws from it, on the worst neighbours known."""
    if isinstance(mechanism, IntegerLaplace | Refinement):
        # the whole sensitivity in one number, or spread over two
        near = [mechanism.sensitivity] if mechanism.sensitivity == 1 else [mechanism.sensitivity - 1, 1]
        release = _noise(mechanism) if isinstance(mechanism, IntegerLaplace) else _refined(mechanism)
        return _checks(release, ([0] * len(near), near), effort.of(RUNS))
    if isinstance(mechanism, SumAndCount):  # a record with as large a value as can be
        assert isinstance(mechanism.sums, IntegerLaplace)
        return _checks(_noise(mechanism), ([0, 0], [mechanism.sums.sensitivity, 1]), effort.of(RUNS))
    if isinstance(mechanism, ResidualLaplace):
        return _checks(_residuals(mechanism), _one_record(mechanism), effort.of(RUNS // 2))
    if isinstance(mechanism, ExponentialOverRanges):
        return _ranges(mechanism, effort)
    if isinstance(mechanism, AboveThreshold):
        return _checks(_choices(mechanism), _rise_and_fall(mechanism), effort.of(SLOW_CHOICES))
    if isinstance(mechanism, CheapestIntervals):  # the dearer one gets cheaper, and the others dearer
        reach = mechanism.sensitivity
        return _checks(_divisions(mechanism), ((2 * reach, 0, 0), (reach, reach, 0)), effort.of(SLOW_CHOICES))
    runs = effort.of(CHOICES if isinstance(mechanism, PermuteAndFlip) else SLOW_CHOICES)
    largest = worst_scores(mechanism, runs=10**12)
    return [
        ExactCheck([_case(_choices(mechanism), *largest)]),
        *_checks(_choices(mechanism), worst_scores(mechanism, runs), runs),
    ]


# what is released from a table, that many times, a row for each; drawn from this source
Release = Callable[[Any, int, Entropy], NDArray[Any]]


def _checks(release: Release, tables: tuple[Any, Any], runs: int) -> list[Check]:
    left, right = tables

    def drawn(table: Any) -> Callable[[int], pd.DataFrame]:
        return lambda count: pd.DataFrame(release(table, count, SYSTEM)).add_prefix("output ")

    name = f"{left} and {right}"
    return [
        ExactCheck([_case(release, left, right)], limit=3_000),
        NeighbourCheck([Neighbours(name, drawn(left), drawn(right))], runs),
    ]


def _case(release: Release, left: Any, right: Any) -> tuple[str, Callable[..., WorstLoss]]:
    def publish(table: Any, entropy: Entropy) -> bytes:
        return release(table, 1, entropy).tobytes()

    return f"{left} and {right}", partial(worst_loss_of_draws, publish, left, right)


# -- noise ------------------------------------------------------------------------------------


def _noise(mechanism: IntegerLaplace | SumAndCount) -> Release:
    return lambda values, count, entropy: mechanism.release(np.tile(np.array(values), (count, 1)), entropy)


def _refined(mechanism: Refinement) -> Release:
    """What was released before, and what it is refined to: both together lose epsilon."""
    before = IntegerLaplace(mechanism.before, mechanism.sensitivity)

    def release(values: Any, count: int, entropy: Entropy) -> NDArray[Any]:
        table = np.tile(np.array(values), (count, 1))
        coarse = before.release(table, entropy)
        return np.concatenate([coarse, mechanism.release(Paired(table, coarse), entropy)], axis=-1)

    return release


def _residuals(mechanism: ResidualLaplace) -> Release:
    def release(sums: Any, count: int, entropy: Entropy) -> NDArray[Any]:
        own, others = (None if each is None else np.tile(np.array(each), (count, 1)) for each in sums)
        assert own is not None
        return np.concatenate([part for part in mechanism.release((own, others), entropy) if part is not None], axis=-1)

    return release


def _one_record(mechanism: ResidualLaplace) -> tuple[Any, Any]:
    """A record adds its cap to a sum of its own class and, with more than two classes, as much to the others'."""
    classes, cap = len(mechanism.caps), mechanism.caps[-1]
    nobody, own, others = [0] * classes, [0] * (classes - 1) + [cap], [cap] + [0] * (classes - 1)
    return (nobody, nobody if classes > 2 else None), (own, others if classes > 2 else None)


# -- selections -------------------------------------------------------------------------------

Scores = tuple[int, ...]


def _choices(mechanism: Any) -> Release:
    def release(scores: Scores, count: int, entropy: Entropy) -> NDArray[Any]:
        values = np.array(scores)
        return np.array([mechanism.release(values, entropy) for _ in range(count)])

    return release


def _divisions(mechanism: CheapestIntervals) -> Release:
    """How many intervals a line of two cells is divided into."""

    def release(costs: Scores, count: int, entropy: Entropy) -> NDArray[Any]:
        return np.array([len(mechanism.release(costs, entropy)) for _ in range(count)])

    return release


@lru_cache
def worst_scores(mechanism: Any, runs: int) -> tuple[Scores, Scores]:
    """Scores, and what one record can make of them, whose loss that many runs would show best: by hill climbing.

    Every choice has a probability that is known, so a step is cheap and no run is spent on it.
    """
    rng = np.random.default_rng(0)
    reach = mechanism.sensitivity
    moves = (0, reach) if mechanism.monotone else (-reach, 0, reach)

    def shown(scores: Any, moved: Any) -> float:
        one, other = (probabilities(mechanism, each.tolist()) for each in (scores, scores + moved))
        with np.errstate(divide="ignore", invalid="ignore"):
            # the width of a bound: some six standard errors of both logarithms
            widths = 6 * sum(np.sqrt((1 - chances) / chances / runs) for chances in (one, other))
            return float(np.nanmax(np.abs(np.log(one / other)) - widths, initial=-math.inf))

    best = np.array([0, 0]), np.array([reach, 0])
    most = shown(*best)
    for step in range(SEARCHED):
        size = len(best[0]) if step % 4 else int(rng.integers(2, 5))
        tried = reach * rng.integers(0, 4, size), rng.choice(moves, size)
        if step % 4:  # three small changes for each new start
            kept = rng.random(size) < 0.6
            tried = np.where(kept, best[0], tried[0]), np.where(kept, best[1], tried[1])
        if (found := shown(*tried)) > most:
            best, most = tried, found
    return tuple(best[0].tolist()), tuple((best[0] + best[1]).tolist())


def _rise_and_fall(mechanism: AboveThreshold) -> tuple[Scores, Scores]:
    """The score that stays below rises as far as it can, the one that reaches the threshold falls."""
    rise, spread = mechanism.sensitivity, mechanism.spread
    assert spread is not None
    return (0, 0), (rise, rise - spread)


def _ranges(mechanism: ExponentialOverRanges, effort: Effort) -> list[Check]:
    """Ten points of one score and one of another: a record moves one up, the other down, or cuts the larger range."""

    def release(table: Any, count: int, entropy: Entropy) -> NDArray[Any]:
        scores, sizes = np.array(table[0]), table[1]
        return np.array([mechanism.release(Ranges(scores, sizes), entropy) for _ in range(count)])

    up, down = mechanism.sensitivity, 0 if mechanism.monotone else -mechanism.sensitivity
    left, moved, cut = ([0, 0], [10, 1]), ([down, up], [10, 1]), ([down, up, down], [4, 3, 4])
    runs = effort.of(SLOW_CHOICES)
    return [*_checks(release, (left, moved), runs), *_checks(release, (left, cut), runs // 2)]

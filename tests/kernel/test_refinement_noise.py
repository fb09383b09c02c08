"""Gradual release: the mathematics of a refinement exactly, and what neighbours lose by it.

Probabilities are computed: nothing here is sampled. Draws are held to them in tests/statistical/test_gradual.py.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernel.refined_table import DOMAIN, FRAME, HALF, ONE, TENTH

import privet
from privet.kernel import Entropy, IntegerLaplace, Paired, Refinement, SeededEntropy, mechanisms
from privet.kernel.domain import Domain
from privet.kernel.refinement import Chain
from privet.lab import worst_loss, worst_loss_of_draws
from privet.lab.distributions import refinement_log_probabilities, refinement_probabilities
from privet.table import ProtectedTable

# -- the mathematics ----------------------------------------------------------------------------


STEPS = [
    Refinement(TENTH, HALF),
    Refinement(HALF, ONE),
    Refinement(ONE, Fraction(101, 100)),
    Refinement(Fraction(1, 3), Fraction(4), 5),
]
WIDE = np.arange(-700, 701)


def chances(epsilon: Fraction, sensitivity: int = 1, at: Any = WIDE) -> Any:
    """Two-sided geometric probabilities, written down again."""
    p = math.exp(-epsilon / sensitivity)
    return (1 - p) / (1 + p) * p ** np.abs(at).astype(np.float64)


def stays(step: Refinement) -> float:
    """The probability that coarse noise is the finer one itself."""
    p, q = math.exp(-step.before / step.sensitivity), math.exp(-step.epsilon / step.sensitivity)
    return q / p * ((1 - p) / (1 - q)) ** 2


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_noise_made_coarser_is_the_coarser_noise(step: Refinement) -> None:
    """By characteristic functions: the finer one times that of the added noise is the coarser one."""

    def characteristic(p: float, t: Any) -> Any:
        return (1 - p) ** 2 / (1 - 2 * p * np.cos(t) + p**2)

    t, keep = np.linspace(0, math.pi, 1001), stays(step)
    coarse, fine = (characteristic(math.exp(-e / step.sensitivity), t) for e in (step.before, step.epsilon))
    assert 0 < keep < 1
    assert np.abs(fine * (keep + (1 - keep) * coarse) - coarse).max() < 1e-12


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_the_refinement_is_the_conditional_of_the_chain(step: Refinement) -> None:
    """The joint probability of both, fine to coarse, over that of the coarse noise: to 1e-12, tails included."""
    keep = stays(step)
    for noise in (-9, -1, 0, 1, 2, 30):
        added = keep * (noise == WIDE) + (1 - keep) * chances(step.before, step.sensitivity, noise - WIDE)
        joint = chances(step.epsilon, step.sensitivity) * added
        expected = joint / chances(step.before, step.sensitivity, np.array(noise))
        found = refinement_probabilities(step, noise, WIDE)
        assert np.abs(found - expected).max() < 1e-12
        assert found.sum() == pytest.approx(1, abs=1e-12)


def test_the_sampler_has_these_probabilities_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every outcome of the geometric numbers that are drawn, weighted: the code of production, without a sample."""
    step, reach = Refinement(ONE, Fraction(3)), 22
    numbers = np.stack(np.meshgrid(*[np.arange(reach)] * 3, indexing="ij")).reshape(3, -1)
    for noise in (-4, -1, 0, 1, 3):
        weights, drawn = np.ones(numbers.shape[1]), iter(numbers)

        def geometric(rate: Fraction, count: int, _: Any, weights: Any = weights, drawn: Any = drawn) -> Any:
            found = next(drawn)
            assert count == found.size
            weights *= -math.expm1(-rate) * np.exp(-float(rate) * found)
            return found

        monkeypatch.setattr(mechanisms, "geometric", geometric)
        exact = np.full(numbers.shape[1], 40)
        refined = step.release(Paired(exact, exact + noise)) - exact
        assert next(drawn, None) is None
        for value in range(-8, 9):
            expected = refinement_probabilities(step, noise, value)
            assert weights[refined == value].sum() == pytest.approx(expected, abs=1e-9), (noise, value)


def test_refining_twice_is_refining_once() -> None:
    """The exact distribution of the last level given the first, by way of one between; and of the one between."""
    levels = Fraction(1, 4), HALF, ONE
    first, second = Refinement(*levels[:2]), Refinement(*levels[1:])
    once = Refinement(levels[0], levels[2])
    for noise in (-7, 0, 1, 4):
        between = refinement_probabilities(first, noise, WIDE)
        for value in range(-12, 13):
            twice = float(between @ refinement_probabilities(second, WIDE, value))
            assert twice == pytest.approx(float(refinement_probabilities(once, noise, value)), abs=1e-12)


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_the_refined_noise_is_that_of_its_epsilon(step: Refinement) -> None:
    coarse = chances(step.before, step.sensitivity)
    for value in (-6, 0, 2):
        found = float(coarse @ refinement_probabilities(step, WIDE, value))
        # what lies beyond the grid has no more than the probability of the coarse noise there
        assert found == pytest.approx(float(chances(step.epsilon, step.sensitivity, np.array(value))), abs=1e-12)


def test_a_step_loses_the_difference_and_leads_upwards() -> None:
    assert STEPS[0].loss == Fraction(2, 5) and STEPS[3].loss == Fraction(11, 3)
    for before, after in ((HALF, HALF), (HALF, TENTH), (Fraction(0), HALF)):
        with pytest.raises(AssertionError):
            Refinement(before, after)


def test_values_at_the_ends_of_64_bits_are_refined_without_an_overflow() -> None:
    """What cannot be told apart from a released value stays; everything else lies near the exact one."""
    least, most = -(2**63), 2**63 - 1
    released = np.array([least, most, least, most, 2**62, 0, -(2**61) - 1])
    exact = np.array([10**30, -(10**30), -(10**30), 10**30, -(10**30), 2**62, 2**62], dtype=object)
    for step in (Refinement(HALF, ONE), Refinement(Fraction(1, 10**15), Fraction(2, 10**15))):  # of ints, of objects
        for _ in range(20):
            refined = step.release(Paired(exact, released))
            assert refined.dtype == np.int64
            clamped = np.array([max(-(2**62), min(2**62, each)) for each in exact], dtype=object)
            near = np.abs(refined.astype(object) - clamped) <= 100 * int(1 / step.loss)
            assert (near | (refined == released)).all()


def test_an_array_of_any_shape_is_refined_cell_by_cell() -> None:
    exact = np.arange(24).reshape(2, 3, 4)
    refined = Refinement(TENTH, Fraction(500)).release(Paired(exact, exact + 40), SeededEntropy(3))
    assert refined.shape == exact.shape and (refined == exact).all()
    assert Refinement(TENTH, HALF).release(Paired(exact[:0], exact[:0])).shape == (0, 3, 4)


# -- neighbours ---------------------------------------------------------------------------------


PERSON = pd.DataFrame({"sex": ["m"], "wage": [20.0], "old": ["no"]})


def neighbours(rows_per_person: int = 1) -> tuple[pd.DataFrame, pd.DataFrame, Domain]:
    """The rows of two neighbours, and their domain."""
    few = FRAME.head(3)
    more = pd.concat([few] + [PERSON] * rows_per_person)
    return few, more, Domain(DOMAIN.columns, target="old", rows_per_person=rows_per_person)


def levels(release: Any, *epsilons: Fraction) -> tuple[bytes, ...]:
    """All that is published of a release and of what it is refined to."""
    found = [release, *(release := release.refine(epsilon) for epsilon in epsilons)]
    return tuple(np.asarray([np.asarray(part) for part in each]).tobytes() for each in found)


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.parts().count("0.2"),
        lambda table: table.partition("sex").count("0.2"),
        lambda table: table.parts().histogram("sex", epsilon="0.2"),
        lambda table: table.parts().sum("wage", "0.2"),
    ],
    ids=["count", "parts", "histogram", "sum"],
)
def test_a_chain_loses_exactly_its_last_epsilon(ask: Callable[[Any], Any]) -> None:
    """Every level is published. Would catch a step that loses more than its charge on any outcome that is extreme."""
    for last in (HALF, Fraction(3)):
        found = worst_loss(lambda table, last=last: levels(ask(table), Fraction(2, 5), last), *neighbours())
        assert found.complete and found.loss == pytest.approx(float(last), abs=1e-9)


def test_a_person_with_two_rows_loses_no_more() -> None:
    found = worst_loss(lambda table: levels(table.parts().count(TENTH), HALF, ONE), *neighbours(2))
    assert found.loss == pytest.approx(1, abs=1e-9)


def test_more_than_the_difference_is_known_to_whoever_sees_the_last_step_alone() -> None:
    """Why a chain is charged as a whole: the step by itself may lose the sum of both, and the pair does not."""
    step, first = Refinement(TENTH, HALF), IntegerLaplace(TENTH)
    # released were f + 2 and f - 1, or with one person more than f what is f' + 1 and f' - 2
    alone = refinement_log_probabilities(step, 2, -1) - refinement_log_probabilities(step, 1, -2)
    assert alone == pytest.approx(0.6, abs=1e-12)
    assert alone + math.log(first.probability(2) / first.probability(1)) == pytest.approx(0.5, abs=1e-12)


def independently(values: int, entropy: Entropy) -> tuple[int, int, int]:
    """The mutant: an old copy is refined again by a draw of its own."""
    exact = np.array([values])
    first = IntegerLaplace(TENTH).release(exact, entropy)
    one, other = (Refinement(TENTH, HALF).release(Paired(exact, first), entropy) for _ in range(2))
    return int(first[0]), int(one[0]), int(other[0])


def test_a_second_draw_from_an_old_copy_is_caught() -> None:
    """It loses 1.1 where 0.5, or at two differences 0.9, was charged."""
    found = worst_loss_of_draws(independently, 3, 4)
    assert found.loss == pytest.approx(1.1, abs=1e-9)


def after_a_change(rows: tuple[int, int], entropy: Entropy) -> tuple[int, int]:
    """The mutant: an answer about the rows of one opening is refined with those of another."""
    first = IntegerLaplace(TENTH).release(np.array([rows[0]]), entropy)
    finer = Refinement(TENTH, HALF).release(Paired(np.array([rows[1]]), first), entropy)
    return int(first[0]), int(finer[0])


def test_why_rows_must_not_change_between_an_answer_and_its_refinement() -> None:
    """Ten other rows are gone, one person is in both versions or in none: 0.7 is lost where 0.5 is charged."""
    assert worst_loss_of_draws(after_a_change, (13, 13), (14, 14)).loss == pytest.approx(0.5, abs=1e-9)
    assert worst_loss_of_draws(after_a_change, (13, 3), (14, 4)).loss == pytest.approx(0.7, abs=1e-9)


def test_two_handles_of_one_answer_lose_what_one_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same through a table: two releases under one key. Without the record in the ledger the mutant is caught."""
    numbers = itertools.count()

    def run(table: ProtectedTable) -> tuple[int, ...]:
        key = f"run {next(numbers)}"
        one, other = table.count(TENTH, key=key), table.count(TENTH, key=key)
        return int(one), int(one.refine(HALF)), int(other.refine(HALF))

    honest = worst_loss(run, *neighbours())
    assert honest.loss == pytest.approx(0.5, abs=1e-9) and honest.complete

    def own_key(self: Any, step: int) -> str:
        return f"\x1f{self.__dict__.setdefault('number', next(numbers))} {step}"

    monkeypatch.setattr(Chain, "_key", own_key)
    assert worst_loss(run, *neighbours()).loss == pytest.approx(1.1, abs=1e-9)


@pytest.mark.parametrize("mutant", [Refinement(Fraction(1, 4), Fraction(5, 4)), Refinement(HALF, Fraction(5, 4), 3)])
def test_a_refinement_to_more_than_it_is_sold_for_is_caught_by_the_bench(mutant: Refinement) -> None:
    """Refined to 1.25, sold as 1."""
    verdict = privet.verify(mutant, 1, effort=0.02)
    assert not verdict.passed and verdict.lower_bound <= 1.25 + 1e-6

"""The reference engine against numbers that were worked out by hand: it is the oracle of all others."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from privet.kernel.additive import EXP_ONE, LOGIT_GRID, AdditiveModel
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CorrectQuery, CountQuery, GridQuery, ResidualQuery, SumQuery
from privet.kernel.engines.reference import ReferenceEngine, exponential
from privet.kernel.rows import COIN_PRIME, Condition, Rows, Split

DOMAIN = Domain(
    (
        Nominal("sex", ("f", "m"), other=True),
        Numeric("age", Fraction(0), Fraction(100), Fraction(10), edges=(Fraction(50),), missing=True),
        Nominal("ill", ("no", "yes")),
    ),
    target="ill",
)
ROWS = [
    ("f", 20, "no"),
    ("f", 50, "yes"),
    ("m", 1000, "yes"),  # clamped to 100
    ("x", None, "no"),
    ("m", 49.99, "no"),
    ("m", 30, "perhaps"),  # fits no cell of `ill`
    (None, 30, "no"),  # `sex` has no cell for a missing value
]
ENGINE = ReferenceEngine(DOMAIN, ROWS)


def counts(rows: Rows, *group: str) -> list[object]:
    return list(ENGINE.exact_counts(CountQuery(rows, (group,)))[0].tolist())


def test_rows_are_counted_in_the_cells_of_their_columns_and_left_out_where_one_fits_none() -> None:
    assert counts(Rows()) == [5]
    assert counts(Rows(), "sex") == [[2, 2, 1]]
    assert counts(Rows(), "age") == [[2, 2, 1]]  # below 50, from 50 on, missing
    assert counts(Rows(), "sex", "ill") == [[[1, 1], [1, 1], [1, 0]]]


def test_steps_number_the_parts_of_rows() -> None:
    by_sex = Rows().divide([Split("sex")], DOMAIN)
    assert counts(by_sex) == [2, 2, 1]
    assert counts(by_sex.keep([2, 0])) == [1, 2]
    assert counts(by_sex.keep([0, 1], (Condition("age", None, 2, 5),))) == [1, 1]  # ages 20 to 49
    assert counts(by_sex.keep([0, 1], (Condition("ill", (1,)),))) == [1, 1]
    # of women below 20, from 20, from 50, and without an age; men not at all; of others two bins and the missing
    assert counts(by_sex.divide([Split("age", (2, 5)), None, Split("age")], DOMAIN)) == [0, 1, 1, 0, 0, 0, 1]


def test_a_coin_is_a_hash_of_all_cells() -> None:
    scatter = Rows().scatter(1000, 7)
    *columns, (f1, k1), (f2, k2) = scatter.step.coefficients(DOMAIN)  # type: ignore[union-attr]
    h = sum((index + 1) * f + k for index, (f, k) in zip((0, 2, 0), columns, strict=True))  # f, 20, no
    h = (h * h * f1 + k1) % COIN_PRIME
    h = (h * h * f2 + k2) % COIN_PRIME
    one = ReferenceEngine(DOMAIN, ROWS[:1])
    assert one.exact_counts(CountQuery(scatter, ((),)))[0].nonzero()[0].tolist() == [h * 1000 // COIN_PRIME]


def test_points_and_sums_are_of_grid_indices() -> None:
    (ages,) = ENGINE.exact_grid(GridQuery(Rows(), ("age",), "ill"))
    assert ages.part.tolist() == [0] * 5 and ages.index.tolist() == [-1, 2, 4, 5, 10]
    assert ages.exact_counts.tolist() == [[1, 0], [1, 0], [1, 0], [0, 1], [0, 1]]
    number, total = ENGINE.exact_sums(SumQuery(Rows().divide([Split("sex")], DOMAIN), "age"))
    assert number.tolist() == [2, 2, 0] and total.tolist() == [7, 14, 0]


def test_a_row_is_classified_right_where_its_class_has_the_largest_logit_and_ties_go_to_the_first() -> None:
    model = AdditiveModel((0, 0), ((("sex",), np.array([[0, 5], [0, 0], [3, 0]], dtype=np.int32)),))
    right = ENGINE.exact_correct(CorrectQuery(Rows().divide([Split("sex")], DOMAIN), model, "ill"))
    assert right.tolist() == [1, 1, 1]  # the woman with "yes"; of two men the one with "no"; the other with "no"


def test_residuals_are_shares_of_the_other_classes_cut_at_a_cap() -> None:
    even = AdditiveModel((0, 0))
    (found,) = ENGINE.exact_residuals(ResidualQuery(Rows(), even, (("sex",),), "ill", (1024, 100)))
    assert found.exact_own[0].tolist() == [[512, 100], [512, 100], [512, 0]] and found.exact_others is None
    colours = Domain((Nominal("a", (0, 1)), Nominal("y", ("red", "green", "blue"))), target="y")
    engine = ReferenceEngine(colours, [(1, "green")], weights=[10])
    (found,) = engine.exact_residuals(ResidualQuery(Rows(), AdditiveModel((0, 0, 0)), (("a",),), "y", (1024,) * 3))
    assert found.exact_own[0].tolist() == [[0, 0, 0], [0, 6820, 0]]  # 1024 * 2/3, rounded down, ten times
    assert found.exact_others is not None and found.exact_others[0].tolist() == [[0, 0, 0], [3410, 0, 3410]]


@pytest.mark.parametrize("distance", [0, 1, 2, 1023, 1024, 5000, 2**14 - 1])
def test_the_exponential_is_that_of_analysis_up_to_its_rounding(distance: int) -> None:
    assert exponential(distance) == pytest.approx(EXP_ONE * math.exp(-distance / LOGIT_GRID), abs=14)


def test_far_behind_is_nothing() -> None:
    assert exponential(2**14) == exponential(2**40) == 0

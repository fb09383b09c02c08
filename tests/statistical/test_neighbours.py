"""Neighbouring tables asked through the public interface: epsilon is bounded from below, and a cheat is caught.

One table holds n copies of a few rows and n copies of the same rows with one person more; what is asked of a copy
is an experiment of its own, so one question makes 2n of them. Unless a test says otherwise: hypothesis "the loss is
at most 1", false alarm below 1e-6 (Clopper and Pearson), no seed. The mutant, noise for 1.25 sold as 1, runs in the
same loop and must be caught; n makes a miss as improbable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sizes import draws, long, sized

import privet
from privet import AdditiveModel
from privet.kernel import RESIDUAL_GRID, ExponentialOverRanges, Ranges
from privet.kernel.column import Column, Nominal, Numeric
from privet.kernel.domain import Domain
from privet.table import Parts

Private = Callable[..., None]
Row = Mapping[str, object]

pytestmark = sized

BINARY = ("0", "1")
COLUMNS: tuple[Column, ...] = (
    Nominal("a", BINARY),
    Nominal("b", BINARY),
    Numeric("x", Fraction(0), Fraction(37), Fraction(1)),
    Numeric("z", Fraction(0), Fraction(1), Fraction(1)),
    Nominal("y", BINARY),
)
CERTAIN = 2**15  # a logit beyond which the other classes have probability 0
ROW = {"a": "0", "b": "0", "x": 5, "z": 0, "y": "0"}


def experiments(
    n: int,
    rows: Sequence[Row],
    person: Sequence[Row],
    rows_per_person: int = 1,
    columns: tuple[Column, ...] = COLUMNS,
    named: bool = False,
) -> privet.ProtectedTable:
    """A table of n copies, of fewer at a small size: on side 0 each holds `rows`, on side 1 `rows` and the person's.

    Where persons are `named`, every row of `rows` is another person's.
    """
    n = draws(n)
    copy = Nominal("copy", tuple(range(n)))
    domain = Domain((copy, Nominal("side", BINARY), *columns), target="y", rows_per_person=rows_per_person)
    domain = replace(domain, person="whose") if named else domain
    both = [ROW | dict(row) | {"side": "0"} for row in rows] + [ROW | dict(row) | {"side": "1"} for row in rows]
    both += [ROW | dict(row) | {"side": "1"} for row in person]
    owners = [*range(2 * len(rows)), *[-1] * len(person)]
    both = [{**row, "whose": owner} for row, owner in zip(both, owners, strict=True)]
    frame = pd.concat([pd.DataFrame(both)] * n, ignore_index=True)
    frame["whose"] = frame["whose"].astype(str) + " of " + pd.Series(np.repeat(np.arange(n), len(both))).astype(str)
    return privet.open(frame.assign(copy=np.repeat(np.arange(n), len(both))), domain, budget=10**6)


def parts_of(table: privet.ProtectedTable) -> Parts:
    """Side 0 and side 1 of each copy."""
    return table.partition("copy").partition("side")


def sides(happened: Any) -> tuple[Any, Any]:
    """The runs on the table and those on its neighbour."""
    both = np.asarray(happened).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def test_a_histogram_loses_no_more_than_it_says(assert_private: Private) -> None:
    """n = 50,000. The cells of one histogram are independent; the person is in one of them."""
    table = experiments(50_000, [{}], [{}])
    assert_private(lambda epsilon: sides(np.asarray(table.histogram("copy", "side", epsilon=epsilon)) <= 1))


def test_counts_of_parts_lose_no_more_than_they_say(assert_private: Private) -> None:
    """n = 20,000."""
    parts = parts_of(experiments(20_000, [{}, {"a": "1"}], [{}]))
    assert_private(lambda epsilon: sides(parts.where(a="0").count(epsilon).array() <= 1))


def test_a_person_with_two_rows_is_protected_where_two_are_declared(assert_private: Private) -> None:
    """n = 20,000. A second mutant: where one row per person is declared, a person with two loses 2."""
    declared = {rows: experiments(20_000, [{}], [{}, {}], rows_per_person=rows) for rows in (1, 2)}

    def events(epsilon: Fraction) -> tuple[Any, Any]:
        table, asked = (declared[1], Fraction(1)) if epsilon == 2 else (declared[2], epsilon)
        return sides(np.asarray(table.histogram("copy", "side", epsilon=asked)) <= 1)

    assert_private(events, mutants=("1.25", "2"))


def test_a_person_with_any_number_of_rows_is_protected_where_a_column_names_them(assert_private: Private) -> None:
    """n = 20,000. The person has five rows. A second mutant: without the column they count, and lose 5."""
    tables = {named: experiments(20_000, [{}], [{}] * 5, named=named) for named in (True, False)}

    def events(epsilon: Fraction) -> tuple[Any, Any]:
        table, asked = (tables[False], Fraction(1)) if epsilon == 5 else (tables[True], epsilon)
        return sides(np.asarray(table.histogram("copy", "side", epsilon=asked)) <= 1)

    assert_private(events, mutants=("1.25", "5"))


def test_a_person_with_rows_in_two_parts_is_protected(assert_private: Private) -> None:
    """n = 10,000, loss at most 2. The person enters two parts and the event joins both; they cost their maximum."""
    table = experiments(10_000, [{"a": "0"}, {"a": "1"}], [{"a": "0"}, {"a": "1"}], rows_per_person=2)
    parts = parts_of(table).partition("a")

    def events(epsilon: Fraction) -> tuple[Any, Any]:
        before = table.budget.spent
        counts = parts.count(epsilon).array().reshape(-1, 2)
        assert table.budget.spent <= before + epsilon
        return sides((counts <= 1).all(axis=1))

    assert_private(events, claimed=2, mutants=("2.5",))


def test_a_sum_loses_no_more_than_it_says(assert_private: Private) -> None:
    """n = 6,000, loss at most 2. The person's value is far above the bound, 1, to which it is clamped."""
    parts = parts_of(experiments(6_000, [{"z": 1}], [{"z": 10**9}]))
    assert_private(lambda epsilon: sides(parts.sum("z", epsilon).array() <= 1), claimed=2, mutants=("2.5",))


def test_a_mean_loses_no_more_than_it_says(assert_private: Private) -> None:
    """n = 16,000. The person's value is the bound: the sum of deviations moves as far as it can, the count by one, and
    the event joins both. Would also catch a whole epsilon for each of them.
    """
    parts = parts_of(experiments(16_000, [{"x": 5}], [{"x": 37}]))

    def events(epsilon: Fraction) -> tuple[Any, Any]:
        means = parts.mean("x", epsilon)
        return sides([float(mean.deviation) <= 5 - 18.5 and mean.count <= 1 for mean in means])

    assert_private(events, claimed=2, mutants=("2.5",))


@pytest.mark.parametrize(
    ("mechanism", "n", "claimed", "rivals"),
    [
        ("permute-and-flip", 18_000, 1, 1),
        pytest.param("exponential", 58_000, 3, 3, marks=long),
        ("noisy-max", 10_000, 2, 3),
    ],
)
def test_a_select_loses_no_more_than_it_says(
    assert_private: Private, mechanism: str, n: int, claimed: int, rivals: int
) -> None:
    """n, and the loss that needs the fewest runs, for each mechanism. The person's row gives attribute a one point and
    b none; b wins less often. Against several a the loss comes closer to epsilon.
    """
    parts = parts_of(experiments(n, [{}], [{"a": "1", "y": "1"}]))

    def events(epsilon: Fraction) -> tuple[Any, Any]:
        found = parts.select("max", epsilon, attributes=["b", *["a"] * rivals], mechanism=mechanism)
        return sides(found.array() == "b")

    assert_private(events, claimed=claimed, mutants=(str(Fraction(5, 4) * claimed),))


def test_a_threshold_that_was_given_loses_no_more_than_it_says(assert_private: Private) -> None:
    """n = 16,000. The person lies above the threshold 5 of x and has another class: that pair wins a point."""
    parts = parts_of(experiments(16_000, [{}], [{"x": 6, "y": "1"}]))

    def events(epsilon: Fraction) -> tuple[Any, Any]:
        return sides([each.point == 20 for each in parts.select("max", epsilon, attributes=[("x", 5), ("x", 20)])])

    assert_private(events)


def test_a_majority_loses_no_more_than_it_says(assert_private: Private) -> None:
    """n = 16,000. The person adds one to one of two equal counts; the other wins less often."""
    parts = parts_of(experiments(16_000, [{}, {"a": "1"}], [{"a": "1"}]))
    assert_private(lambda epsilon: sides(parts.majority("a", epsilon).array() == "0"))


def test_groups_of_cells_lose_no_more_than_they_say(assert_private: Private) -> None:
    """n = 15,000, claimed 3. The person is in the middle of three cells: joining it to one side gets dearer, to the
    other cheaper. A mutant that overlooks one of the two has noise for 6; a quarter too little noise shows in exact
    chances (tests/kernel/questions/test_cell_groups.py)."""
    rows = [{"c": 1}] + [{"c": 2}] * 2
    columns = (*COLUMNS[:-1], Nominal("c", (0, 1, 2)), COLUMNS[-1])
    parts = parts_of(experiments(15_000, rows, [{"c": 1}], columns=columns))

    def joined_to_the_first(epsilon: Fraction) -> tuple[Any, Any]:
        groups = parts.group_cells("c", epsilon=epsilon, price=2)
        return sides([part.value.tolist() == [0, 0, 1] for part in groups])

    assert_private(joined_to_the_first, claimed=3, mutants=("6",))


def test_several_histograms_lose_no_more_than_they_say(assert_private: Private) -> None:
    """n = 20,000. The person enters a cell of each of two histograms of the table and the event joins both."""
    parts = experiments(20_000, [{}], [{}]).parts()

    def events(epsilon: Fraction) -> tuple[Any, Any]:
        ((one, two),) = parts.histograms([[("copy", "side"), ("copy", "side", "y")]], epsilon)
        return sides((one.values <= 1) & (two.values[..., 0] <= 1))

    assert_private(events)


def test_a_median_loses_no_more_than_it_says(assert_private: Private, monkeypatch: pytest.MonkeyPatch) -> None:
    """n = 8,000, loss at most 1. One row is at 12, the person at 37: points below 12 lose a unit of score and points
    above 12 win one. The mutant takes the exponent of monotone scores for these, which are not.
    """
    parts = parts_of(experiments(8_000, [{"x": 12}], [{"x": 37}]))
    honest = ExponentialOverRanges.rate.func
    assert honest is not None

    def events(epsilon: Fraction) -> tuple[Any, Any]:
        with monkeypatch.context() as patch:
            if epsilon == 2:
                patch.setattr(ExponentialOverRanges, "rate", property(lambda self: 2 * honest(self)))
            return sides(parts.median("x", 1).array() < 12)

    assert_private(events, mutants=("2",))


def test_the_exponential_mechanism_loses_no_more_than_it_says(assert_private: Private) -> None:
    """n = 64,000, loss at most 3, the mutant is noise for 3.75. One range loses a unit of score, the other wins one;
    the loss comes close to epsilon only where the first is rare, and these numbers need the fewest runs.
    """

    def events(epsilon: Fraction) -> tuple[Any, Any]:
        mechanism = ExponentialOverRanges(epsilon, 1, monotone=False)
        first, second = (
            [mechanism.release(Ranges(np.array(scores), [1, 22])) == 0 for _ in range(draws(64_000))]
            for scores in ([0, -1], [-1, 0])
        )
        return first, second

    assert_private(events, claimed=3, mutants=("3.75",))


def test_residual_sums_of_two_classes_lose_no_more_than_they_say(assert_private: Private) -> None:
    """n = 20,000. The model is sure of class 0 and the person is of class 1: a residual of 1, clipped to half."""
    table = experiments(20_000, [{}], [{"y": "1"}])
    model = AdditiveModel((CERTAIN, 0))
    caps = (RESIDUAL_GRID, RESIDUAL_GRID // 2)

    def events(epsilon: Fraction) -> tuple[Any, Any]:
        return sides(table.residual_sums(model, ("copy", "side"), caps, epsilon).own[..., 1] <= 0)

    assert_private(events)


def test_residual_sums_of_three_classes_lose_no_more_than_they_say(assert_private: Private) -> None:
    """n = 20,000. The person enters a sum of its own class and one of the class the model believes in, each with a
    residual of 1 clipped to the smallest cap there is: the event joins both.
    """
    columns = (Nominal("y", ("0", "1", "2")),)
    table = experiments(20_000, [{}], [{"y": "1"}], columns=columns)
    model = AdditiveModel((CERTAIN, 0, 0))
    caps = (1, 1, 1)

    def events(epsilon: Fraction) -> tuple[Any, Any]:
        sums = table.residual_sums(model, ("copy", "side"), caps, epsilon)
        assert sums.others is not None
        return sides((sums.own[..., 1] <= 0) & (sums.others[..., 0] <= 0))

    assert_private(events)

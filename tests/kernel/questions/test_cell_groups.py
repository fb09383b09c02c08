"""Groups of cells: the cheapest division and no other, sensitivities that hold, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.errors import QuestionError
from privet.kernel import CheapestIntervals, SeededEntropy, session_in_memory
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.kernel.mechanisms import geometric
from privet.kernel.questions.counts import GroupCellsQuestion
from privet.kernel.rows import Rows
from privet.kernel.selections import interval_lengths
from privet.lab.distributions import probabilities

CERTAIN = Fraction(10**5)  # an epsilon at which noise decides nothing
COUNTS = st.lists(st.integers(0, 9), min_size=2, max_size=9)
PROPERTY = settings(derandomize=True, deadline=None, max_examples=60)


def domain_of(cells: int) -> Domain:
    return Domain((Nominal("a", tuple(range(cells))), Nominal("y", ("0", "1"))), target="y")


def costs(counts: list[int], order: list[int] | None = None) -> list[int]:
    """What the question asks the engine for, of one table with these counts."""
    domain = domain_of(len(counts))
    frame = pd.DataFrame({"a": np.repeat(np.arange(len(counts)), counts), "y": "0"})
    question = GroupCellsQuestion(("a",), tuple(order or range(len(counts))), Fraction(1))
    (exact,) = question.exact(session_in_memory(frame, domain, 1).engine, Rows(), domain)
    return exact


def intervals(cells: int) -> list[tuple[int, int]]:
    """All intervals in the order of their costs, as start and end."""
    return [(start, start + size) for size in interval_lengths(cells) for start in range(cells - size + 1)]


def open_counts(counts: Any, budget: object = 10**6) -> privet.ProtectedTable:
    frame = pd.DataFrame({"a": np.repeat(np.arange(len(counts)), counts), "y": "0"})
    return privet.open(frame, domain_of(len(counts)), budget=budget)


@PROPERTY
@given(COUNTS)
def test_costs_are_deviations_from_the_mean(counts: list[int]) -> None:
    longest = interval_lengths(len(counts))[0]
    expected = []
    for start, end in intervals(len(counts)):
        mean = Fraction(sum(counts[start:end]), end - start)
        expected.append(longest * sum(abs(count - mean) for count in counts[start:end]))
    assert costs(counts) == expected


@PROPERTY
@given(COUNTS, st.data())
def test_a_record_moves_only_intervals_with_its_cell_and_none_by_more_than_stated(
    counts: list[int], data: st.DataObject
) -> None:
    cell = data.draw(st.integers(0, len(counts) - 1))
    more = [count + (number == cell) for number, count in enumerate(counts)]
    most = 2 * (interval_lengths(len(counts))[0] - 1)
    for (start, end), before, after in zip(intervals(len(counts)), costs(counts), costs(more), strict=True):
        assert abs(after - before) <= (most if start <= cell < end else 0)


@PROPERTY
@given(COUNTS, st.integers(0, 20), st.integers(0, 2**32))
def test_the_cheapest_of_all_divisions_is_released(counts: list[int], price: int, seed: int) -> None:
    """With hidden noise as it is drawn: the walk along the line finds what a comparison of all divisions finds."""
    exact = costs(counts)
    mechanism = CheapestIntervals(Fraction(1), 2 * (interval_lengths(len(counts))[0] - 1), len(counts), price)
    chosen = mechanism.release(exact, SeededEntropy(seed))

    noise = geometric(mechanism.rate, len(exact), SeededEntropy(seed)).tolist()
    noisy = dict(zip(intervals(len(counts)), (cost - off for cost, off in zip(exact, noise, strict=True)), strict=True))

    def total(division: list[int]) -> int:
        return sum(noisy[pair] + mechanism.surcharge for pair in pairwise([0, *accumulate(division)]))

    assert chosen == min(mechanism.divisions(), key=total)  # of equals the first


def test_two_cells_lose_no_more_than_epsilon_and_noise_for_a_quarter_more_does() -> None:
    """By exact probabilities, over costs that a record may move: the worst comes within a hundredth of epsilon."""
    worst = {}
    for made, sold in ((Fraction(1), 1.0), (Fraction(5, 4), 1.0)):
        mechanism = CheapestIntervals(made, 2, 2, 1)
        worst[made] = max(
            float(np.abs(np.log(probabilities(mechanism, left) / probabilities(mechanism, right))).max())
            for both in range(0, 60, 3)
            for left in [(both, 2, 0)]
            for right in [(both - 2, 4, 0), (both + 2, 0, 0), (both + 2, 2, 0)]
        )
        assert (worst[made] > sold + 1e-9) == (made > 1), worst
    assert worst[Fraction(1)] > 0.99


def test_equal_counts_are_grouped_and_the_ledger_pays_once() -> None:
    table = open_counts([50, 50, 50, 50, 9, 9, 0, 1], budget=CERTAIN + 1)
    groups = table.group_cells("a", epsilon=CERTAIN, price=3)
    assert groups.value.tolist() == [0, 0, 0, 0, 1, 1, 2, 2]
    assert table.grouped_histogram("a", groups=groups, epsilon="0.5").values.shape == (3,)
    assert table.budget.spent == CERTAIN + Fraction(1, 2)


def test_a_public_order_decides_who_is_a_neighbour() -> None:
    table = open_counts([50, 0, 50, 0])
    groups = table.group_cells("a", epsilon=CERTAIN, price=3, order=[0, 2, 1, 3])
    assert groups.value.tolist() == [0, 1, 0, 1]
    assert table.grouped_histogram("a", groups=groups, epsilon=CERTAIN).values.tolist() == [100, 0]


def test_every_part_has_groups_of_its_own() -> None:
    frame = pd.DataFrame({"a": [0, 0, 1, 1, 0, 0, 0, 0], "y": list("00001111")})
    table = privet.open(frame, domain_of(2), budget=10**6)
    grouped = table.partition("y").group_cells("a", epsilon=CERTAIN, price=1)
    assert [groups.count for groups in grouped] == [1, 2]


def test_counts_of_any_size_are_compared_without_overflow() -> None:
    """A line of huge counts has exact costs: they are Python's integers where 64 bits would not do."""
    domain = domain_of(4)

    class Huge:
        def exact_counts(self, query: object) -> Any:
            return [np.array([[2**61, 0, 2**61, 2**61]], dtype=np.int64)]

    question, engine = GroupCellsQuestion(("a",), (0, 1, 2, 3), Fraction(1)), Huge()
    (exact,) = question.exact(engine, Rows(), domain)  # type: ignore[arg-type]
    assert exact[0] == 3 * 2**61 + 3 * 2**61  # 3 |4 - 3| + |0 - 3|, in units of 2^61
    assert min(exact) >= 0


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda t: t.group_cells(epsilon=1, price=1), "different columns"),
        (lambda t: t.group_cells("a", "a", epsilon=1, price=1), "different columns"),
        (lambda t: t.group_cells("a", epsilon=1, price=1, order=[0, 1]), "each of the numbers 0 to 3 once"),
        (lambda t: t.group_cells("a", epsilon=1, price=1, order=[0, 1, 2, 2]), "each of the numbers 0 to 3 once"),
        (lambda t: t.group_cells("a", epsilon=1, price=1, order="up"), "are whole numbers, one for each cell"),
        (lambda t: t.group_cells("a", epsilon=1, price=-1), "a number of rows from 0 to"),
        (lambda t: t.group_cells("a", epsilon=1, price="much"), "such as 10, not 'much'"),
        (lambda t: t.grouped_histogram("a", groups=[0, 1], epsilon=1), "2 groups were named for 4 cells"),
        (lambda t: t.grouped_histogram("a", groups=[0, 2, 2, 0], epsilon=1), "none is empty"),
        (lambda t: t.grouped_histogram("a", groups=[0, 10**18, 1, 0], epsilon=1), "none is empty"),
        (lambda t: t.grouped_histogram("a", groups=[0, -1, 1, 0], epsilon=1), "none is empty"),
    ],
)
def test_what_cannot_be_grouped_is_refused_for_nothing(ask: Any, sentence: str) -> None:
    table = open_counts([1, 2, 3, 4], budget=1)
    with pytest.raises(QuestionError, match=sentence):
        ask(table)
    assert table.budget.spent == 0


def test_too_many_cells_are_refused() -> None:
    columns = tuple(Nominal(name, tuple(range(100))) for name in "ab")
    table = privet.open(pd.DataFrame({"a": [1], "b": [1]}), Domain(columns), budget=1)
    with pytest.raises(QuestionError, match="10000 cells cannot be put into groups; ask for 2 to 4096 cells"):
        table.group_cells("a", "b", epsilon=1, price=1)

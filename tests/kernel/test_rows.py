"""Values of parts do what lists of values do, one for each part; and rows know by what they were chosen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.errors import QuestionError
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.public_values import PerPart, numbered
from privet.kernel.rows import MAX_STEPS, Condition, Rows, Split

DOMAIN = Domain((Nominal("a", (0, 1, 2)), Numeric("x", 0, 9, bins=2, missing=True)))

checked = settings(derandomize=True, deadline=None, max_examples=100)
NUMBERS = st.integers(-2, 2)  # a few, so that they repeat


@st.composite
def values_of_parts(draw: st.DrawFn, least: int = 0) -> PerPart[int]:
    """Values with copies of some, and with some that belong to no part."""
    values = draw(st.lists(NUMBERS, min_size=1, max_size=6))
    which = draw(st.lists(st.integers(0, len(values) - 1), min_size=least, max_size=8))
    return PerPart(values, np.array(which, dtype=np.intp))


@st.composite
def pairs_of_parts(draw: st.DrawFn) -> tuple[PerPart[int], PerPart[int]]:
    one = draw(values_of_parts())
    values = draw(st.lists(NUMBERS, min_size=1, max_size=6))
    which = draw(st.lists(st.integers(0, len(values) - 1), min_size=len(one), max_size=len(one)))
    return one, PerPart(values, np.array(which, dtype=np.intp))


@checked
@given(values_of_parts())
def test_they_are_a_sequence(values: PerPart[int]) -> None:
    plain = list(values)
    assert len(values) == len(plain) and [values[part] for part in range(len(plain))] == plain
    assert list(values[1:4]) == plain[1:4] and values.array().tolist() == plain
    same = PerPart.of(plain)
    assert same == values and hash(same) == hash(values) and list(same) == plain
    assert (PerPart.of([*plain, 3]) == values) is False and values != plain


@checked
@given(values_of_parts())
def test_equal_values_have_one_form(values: PerPart[int]) -> None:
    """The identity of a question is made of it: the values in order of first appearance."""
    compact, plain = values.compact(), list(values)
    assert list(compact) == plain and list(compact.values) == list(dict.fromkeys(plain))
    assert values.to_json(str) == PerPart.of(plain).to_json(str)


@checked
@given(values_of_parts(), st.data())
def test_parts_are_taken_repeated_and_mapped_in_order(values: PerPart[int], data: st.DataObject) -> None:
    plain = list(values)
    some = data.draw(st.lists(st.integers(0, max(len(plain) - 1, 0)), max_size=6 if plain else 0))
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(plain), max_size=len(plain))), dtype=np.intp)
    assert list(values.take(some)) == [plain[part] for part in some]
    assert list(values.repeat(times)) == [value for value, many in zip(plain, times, strict=True) for _ in range(many)]
    called: list[int] = []

    def minus(value: int) -> int:
        called.append(value)
        return -value

    assert list(values.map(minus)) == [-value for value in plain]
    assert sorted(called) == sorted(set(plain))  # once for each value that occurs


@checked
@given(pairs_of_parts(), st.sampled_from([max, int.__sub__]))
def test_two_of_them_are_combined_part_by_part(
    pair: tuple[PerPart[int], PerPart[int]], function: Callable[[int, int], int]
) -> None:
    one, other = pair
    assert list(one.combine(function, other)) == [function(a, b) for a, b in zip(one, other, strict=True)]


@checked
@given(values_of_parts(), st.data())
def test_new_values_replace_those_of_their_parts_alone(values: PerPart[int], data: st.DataObject) -> None:
    plain = list(values)
    parts = data.draw(st.lists(st.integers(0, max(len(plain) - 1, 0)), unique=True, max_size=len(plain)))
    new = [data.draw(NUMBERS) for _ in parts]
    replaced = values.replaced(np.array(parts, dtype=np.intp), PerPart.of(new))
    for part, value in zip(parts, new, strict=True):
        plain[part] = value
    assert list(replaced) == plain


@checked
@given(values_of_parts(least=1), st.data())
def test_the_largest_of_each_group_is_found(values: PerPart[int], data: st.DataObject) -> None:
    plain, size = list(values), len(values)
    groups = sorted(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
    used, position = numbered(np.array(groups, dtype=np.intp), 4)
    largest = values.largest(position, len(used))
    for group, found in zip(used.tolist(), largest, strict=True):
        assert found == max(value for value, own in zip(plain, groups, strict=True) if own == group)


@checked
@given(values_of_parts())
def test_groups_have_every_part_once(values: PerPart[int]) -> None:
    """Also where there is no part."""
    plain, seen = list(values), []
    for value, parts in values.groups():
        assert [plain[part] for part in parts.tolist()] == [value] * len(parts) and list(parts) == sorted(parts)
        seen += parts.tolist()
    assert sorted(seen) == list(range(len(plain)))


def test_rows_know_by_which_cells_and_coins_they_were_chosen() -> None:
    rows = Rows().divide([Split("a")], DOMAIN)
    assert (rows.parts, rows.by_cells, rows.by_coins) == (3, frozenset("a"), False)
    by_thresholds = rows.divide([Split("x", (2, 5)), None, Split("x", (4,))], DOMAIN)
    assert by_thresholds.parts == 4 + 3 and by_thresholds.by_cells == {"a"}  # and those without a value
    kept = by_thresholds.keep([6, 0], (Condition("x", (1,)), Condition("a", None, 0, 1)))
    assert kept.by_cells == {"a", "x"} and not kept.by_coins
    scattered = kept.scatter(5, seed=1)
    assert scattered.parts == 10 and scattered.by_coins and scattered.keep([1]).by_coins


def test_equal_steps_have_one_fingerprint_and_other_ones_another() -> None:
    def rows(threshold: int) -> Rows:
        return Rows().divide([Split("x", (threshold,))], DOMAIN).keep([1, 0])

    assert rows(3).fingerprint == rows(3).fingerprint != rows(4).fingerprint
    assert rows(3).to_json() == rows(3).to_json()


def test_rows_too_many_steps_away_are_refused() -> None:
    rows = Rows()
    for _ in range(MAX_STEPS):
        rows = rows.keep([0])
    with pytest.raises(QuestionError, match="more than 200 conditions and partitions away"):
        rows.keep([0])

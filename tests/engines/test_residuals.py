"""Sums of residuals in memory against the documented arithmetic, one table and one row after the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from privet.column import Nominal
from privet.domain import Domain
from privet.kernel.engines import residuals
from privet.kernel.engines.memory import MemoryEngine
from privet.kernel.query import (
    EXP_BITS,
    EXP_ONE,
    RESIDUAL_GRID,
    AdditiveModel,
    Condition,
    ResidualQuery,
    Residuals,
    Rows,
    Split,
    exp_factors,
)

Codes = dict[str, NDArray[Any]]

PROPERTY = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


# --- the reference ---------------------------------------------------------------------------------------------------


def small_exp(distance: NDArray[np.int64]) -> NDArray[np.int64]:
    """exp(-distance / LOGIT_GRID) in units of 1 / EXP_ONE, bit by bit as the SQL engines do it."""
    value = np.full(distance.shape, EXP_ONE, dtype=np.int64)
    for bit, factor in enumerate(exp_factors()):
        value = value * np.where(distance >> bit & 1, factor, EXP_ONE) // EXP_ONE
    return np.where(distance < 2**EXP_BITS, value, 0)


def expected(
    domain: Domain, codes: Codes, part: NDArray[np.int64], weights: NDArray[np.int64], query: ResidualQuery
) -> list[Residuals]:
    """The docstring of ResidualQuery, word for word; `part` is -1 for rows in none."""
    label, classes, rows = codes[query.target].astype(np.int64), len(query.caps), np.arange(len(part))
    logits = np.tile(np.array(query.model.intercept, dtype=np.int64), (len(part), 1))
    for columns, table in query.model.terms:
        logits += table[tuple(codes[name] for name in columns)]
    power = small_exp(logits.max(axis=1, keepdims=True) - logits)
    total = power.sum(axis=1)
    wrong = total - power[rows, label]
    own = np.minimum(RESIDUAL_GRID * wrong // total, np.array(query.caps)[label])
    others = own[:, None] * power // np.maximum(wrong, 1)[:, None]
    others[rows, label] = 0
    inside = part >= 0
    answers = []
    for table in query.tables:
        shape = [domain[name].size for name in table]
        cell = np.ravel_multi_index(tuple(codes[name].astype(np.int64) for name in table), shape)
        sums = np.zeros((2, query.rows.parts, math.prod(shape), classes), dtype=np.int64)
        np.add.at(sums[0], (part[inside], cell[inside], label[inside]), (weights * own)[inside])
        np.add.at(sums[1], (part[inside], cell[inside]), (weights[:, None] * others)[inside])
        answers.append(Residuals(sums[0], sums[1] if classes > 2 else None))
    return answers


def assert_equal(found: list[Residuals], wanted: list[Residuals]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.exact_own.dtype == np.int64
        np.testing.assert_array_equal(one.exact_own, other.exact_own, strict=True)
        assert (one.exact_others is None) == (other.exact_others is None)
        if one.exact_others is not None and other.exact_others is not None:
            np.testing.assert_array_equal(one.exact_others, other.exact_others, strict=True)


# --- random tables, parts and models ---------------------------------------------------------------------------------


def domain_of(sizes: list[int], classes: int) -> Domain:
    columns = [Nominal(f"a{place}", tuple(range(size))) for place, size in enumerate(sizes)]
    return Domain((*columns, Nominal("y", tuple(range(classes)))), target="y")


def rows_of(domain: Domain, count: int, rng: np.random.Generator) -> Codes:
    return {column.name: rng.integers(0, column.size, count) for column in domain}


@st.composite
def partitions(draw: Callable[..., Any], domain: Domain, codes: Codes) -> tuple[Rows, NDArray[np.int64]]:
    """The whole table, or no part of it, or some cells of a column, or some of these under a condition."""
    count = len(codes["y"])
    kind = draw(st.sampled_from(["all", "divided", "kept", "none"]))
    if kind == "none":
        return Rows().keep(()), np.full(count, -1)
    if kind == "all":
        return Rows(), np.zeros(count, dtype=np.int64)
    by = draw(st.sampled_from(domain.attributes))
    rows, part = Rows().divide([Split(by)], domain), codes[by].astype(np.int64)
    if kind == "divided":
        return rows, part
    kept = draw(st.lists(st.integers(0, rows.parts - 1), min_size=1, max_size=4, unique=True))
    on = draw(st.sampled_from(domain.attributes))
    allowed = draw(st.sets(st.integers(0, domain[on].size - 1), min_size=1, max_size=5))
    number = np.full(rows.parts, -1)
    number[kept] = np.arange(len(kept))
    narrowed = rows.keep(kept, (Condition(on, codes=tuple(sorted(allowed))),))
    return narrowed, np.where(np.isin(codes[on], list(allowed)), number[part], -1)


def model_of(domain: Domain, terms: list[tuple[str, ...]], reach: int, rng: np.random.Generator) -> AdditiveModel:
    classes, share = len(domain.classes), reach // (len(terms) + 1)

    def drawn(columns: tuple[str, ...]) -> NDArray[np.int32]:
        shape = (*(domain[name].size for name in columns), classes)
        return rng.integers(-share, share + 1, shape).astype(np.int32)

    return AdditiveModel(tuple(drawn(()).tolist()), tuple((columns, drawn(columns)) for columns in terms))


@given(data=st.data())
@PROPERTY
def test_sums_are_those_of_one_row_after_the_other(data: st.DataObject, monkeypatch: pytest.MonkeyPatch) -> None:
    size = st.sampled_from([2, 2, 3, 4, 5, 8, 8, 17, 40, 130, 250])
    domain = domain_of(data.draw(st.lists(size, min_size=1, max_size=9)), data.draw(st.integers(2, 6)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    codes = rows_of(domain, data.draw(st.sampled_from([0, 1, 2, 30, 200])), rng)
    heavy = data.draw(st.sampled_from([None, 3, 2**40]))
    weights = np.ones_like(codes["y"]) if heavy is None else rng.integers(0, heavy, len(codes["y"]))
    rows, part = data.draw(partitions(domain, codes))
    single = [(name,) for name in domain.attributes]
    pairs = [
        (one, other)
        for one, other in itertools.permutations(domain.attributes, 2)
        if rows.parts * domain[one].size * domain[other].size <= 2**15
    ]
    table = st.sampled_from([*single, *pairs])
    some = st.lists(table, min_size=1, max_size=12)
    wanted = tuple(data.draw(st.just(single) | st.just([*single, *pairs]) | some))
    terms = data.draw(st.lists(table, max_size=3))
    model = model_of(domain, terms, data.draw(st.sampled_from([3, 2**11, 2**15, 2**24])), rng)
    caps = tuple(data.draw(st.integers(1, RESIDUAL_GRID)) for _ in domain.classes)
    monkeypatch.setattr(residuals, "_STRETCH", data.draw(st.sampled_from([7, 64, 2**20])))
    engine = MemoryEngine(domain, codes, {}, None if heavy is None else weights)
    for length in data.draw(st.permutations(range(len(terms) + 1))):  # longer and shorter models than the last
        shorter = AdditiveModel(model.intercept, model.terms[:length])
        query = ResidualQuery(rows, shorter, wanted, "y", caps)
        assert_equal(engine.exact_residuals(query), expected(domain, codes, part, weights, query))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_blocks_of_rows(classes: int, weighted: bool) -> None:
    domain = domain_of([8, 3, 2, 8, 5, 8, 16, 8], classes)
    rng = np.random.default_rng(classes)
    codes = rows_of(domain, 3 * residuals._BLOCK + 17, rng)
    weights = rng.integers(0, 5, len(codes["y"])) if weighted else np.ones_like(codes["y"])
    model = model_of(domain, [("a0", "a6"), ("a2",)], 3000, rng)
    tables = (*((name,) for name in domain.attributes), *itertools.combinations(domain.attributes, 2))
    query = ResidualQuery(Rows(), model, tables, "y", (900, 500, 1024, 100)[:classes])
    engine = MemoryEngine(domain, codes, {}, weights if weighted else None)
    part = np.zeros(len(codes["y"]), dtype=np.int64)
    assert_equal(engine.exact_residuals(query), expected(domain, codes, part, weights, query))


@pytest.mark.parametrize("values", [2**8, 2**16])
def test_codes_wider_than_a_byte(values: int) -> None:
    """A cell for other values makes the codes of all columns wider."""
    small = domain_of([3, 2], 2)
    domain = Domain((Nominal("wide", tuple(range(values)), other=True), *small.columns), target="y")
    rng = np.random.default_rng(values)
    codes = rows_of(domain, 500, rng)
    codes["wide"][:50] = values
    model = model_of(domain, [("wide", "a0")], 5000, rng)
    query = ResidualQuery(Rows(), model, (("wide",), ("a0", "wide"), ("a0", "a1")), "y", (700, 800))
    found = MemoryEngine(domain, codes, {}).exact_residuals(query)
    assert_equal(found, expected(domain, codes, np.zeros(500, dtype=np.int64), np.ones(500, dtype=np.int64), query))


def test_rows_drawn_again_are_summed_as_drawn() -> None:
    domain = domain_of([4, 5, 6], 3)
    codes = rows_of(domain, 300, np.random.default_rng(1))
    query = ResidualQuery(Rows(), AdditiveModel((0, 50, 900)), (("a2", "a0"), ("a1",)), "y", (1024, 600, 300))
    engine = MemoryEngine(domain, codes, {})
    engine.exact_residuals(query)  # the margins of all rows are not those of the drawn ones
    drawn = np.random.default_rng(9).integers(0, 300, 300)
    again = {name: column[drawn] for name, column in codes.items()}
    part, weights = np.zeros(300, dtype=np.int64), np.ones(300, dtype=np.int64)
    assert_equal(engine.resampled(9).exact_residuals(query), expected(domain, again, part, weights, query))


def test_two_classes_look_up_what_the_arithmetic_says() -> None:
    """At every distance of the logits within reach, and beyond."""
    reach = 2**EXP_BITS
    margins = np.arange(-reach - 3, reach + 4)
    domain = domain_of([len(margins)], 2)
    table = np.stack([np.zeros_like(margins), margins], axis=1).astype(np.int32)
    model = AdditiveModel((0, 0), ((("a0",), table),))
    cell = np.arange(len(margins))
    for label in (0, 1):
        codes: Codes = {"a0": cell, "y": np.full(len(cell), label)}
        query = ResidualQuery(Rows(), model, (("a0",),), "y", (1000, RESIDUAL_GRID))
        wanted = expected(domain, codes, np.zeros_like(cell), np.ones_like(cell), query)
        assert_equal(MemoryEngine(domain, codes, {}).exact_residuals(query), wanted)


# --- the groups ------------------------------------------------------------------------------------------------------


def groups_of(cover: residuals.Cover) -> list[tuple[int, ...]]:
    return [tuple(cover.members[start:end].tolist()) for start, end in itertools.pairwise(cover.bounds)]


@given(
    sizes=st.lists(st.sampled_from([2, 3, 5, 8, 30, 130, 70_000]), min_size=1, max_size=12),
    inner=st.sampled_from([2, 4, 12, 600, 10**6]),
    data=st.data(),
)
@example(sizes=[8] * 14, inner=2, data=None)
@settings(max_examples=100, deadline=None)
def test_groups_hold_every_table_and_stay_small(sizes: list[int], inner: int, data: st.DataObject | None) -> None:
    every = [*((place,) for place in range(len(sizes))), *itertools.permutations(range(len(sizes)), 2)]
    tables = tuple(every if data is None else data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=60)))
    groups = residuals._groups(tables, np.array(sizes), residuals._LARGEST_GROUP // inner)
    asked = {frozenset(table) for table in tables}
    for group in groups:
        assert list(group) == sorted(set(group))
        assert inner * math.prod(sizes[each] for each in group) <= residuals._LARGEST_GROUP or set(group) in asked
    assert all(any(table <= set(group) for group in groups) for table in asked)
    assert len(groups) <= len(asked)


def test_eighteen_groups_of_four_hold_all_pairs_of_fourteen_columns() -> None:
    tables = (*((place,) for place in range(14)), *itertools.combinations(range(14), 2))
    cover = residuals.cover(tables, (8,) * 14 + (2,), 2)
    assert len(groups_of(cover)) == 18
    assert residuals.cover(tables, (8,) * 14 + (2,), 2) is cover  # made once, not at every step


def test_columns_that_are_in_no_pair_share_a_histogram_too() -> None:
    assert residuals._groups(((0,), (1,), (2,)), np.array([5, 6, 7]), 1000) == [(0, 1, 2)]
    assert residuals._groups(((0,), (1,), (2,)), np.array([500, 600, 7]), 1000) == [(0,), (1,), (2,)]
    assert residuals._groups(((2, 0), (1,), (0,)), np.array([500, 600, 7]), 1000) == [(0, 2), (1,)]


def test_no_sum_of_a_stretch_overflows() -> None:
    assert residuals._STRETCH * RESIDUAL_GRID < 2**31

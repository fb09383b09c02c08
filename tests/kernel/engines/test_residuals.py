"""Sums of residuals, and rows classified right, in memory: tables that share histograms, models that grow by a term."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kernel.engines.comparison import ask, assert_same
from kernel.engines.hard_tables import programs
from numpy.typing import NDArray

from privet.kernel.additive import EXP_BITS, RESIDUAL_GRID, AdditiveModel
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CorrectQuery, ResidualQuery
from privet.kernel.engines.memory import residuals
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.rows import Rows

Codes = dict[str, NDArray[Any]]

PROPERTY = settings(
    derandomize=True,
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def domain_of(sizes: list[int], classes: int) -> Domain:
    """Columns whose values are their own codes."""
    columns = [Nominal(f"a{place}", tuple(range(size))) for place, size in enumerate(sizes)]
    return Domain((*columns, Nominal("y", tuple(range(classes)))), target="y")


def rows_of(domain: Domain, count: int, rng: np.random.Generator) -> Codes:
    return {column.name: rng.integers(0, column.size, count) for column in domain}


def reference_of(domain: Domain, codes: Codes, weights: Any = None) -> ReferenceEngine:
    return ReferenceEngine(domain, np.stack([codes[name] for name in domain.names], axis=1).tolist(), weights)


def model_of(domain: Domain, terms: list[tuple[str, ...]], reach: int, rng: np.random.Generator) -> AdditiveModel:
    classes, share = len(domain.classes), reach // (len(terms) + 1)

    def drawn(columns: tuple[str, ...]) -> NDArray[np.int32]:
        shape = (*(domain[name].size for name in columns), classes)
        return rng.integers(-share, share + 1, shape).astype(np.int32)

    return AdditiveModel(tuple(drawn(()).tolist()), tuple((columns, drawn(columns)) for columns in terms))


@pytest.mark.parametrize("shortcuts", [True, False], ids=["shortcuts", "plain"])
@given(data=st.data())
@PROPERTY
def test_answers_about_models_are_those_of_the_reference(
    shortcuts: bool, data: st.DataObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many tables at once, heavy rows, ties, and models longer and shorter than the last one.

    Would catch ties that go elsewhere, weights and parts left out, and margins of another model.
    """
    size = st.sampled_from([2, 2, 3, 4, 5, 8, 8, 17, 40, 130, 250])
    domain = domain_of(data.draw(st.lists(size, min_size=1, max_size=9)), data.draw(st.integers(2, 6)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    codes = rows_of(domain, data.draw(st.sampled_from([0, 1, 2, 30, 50])), rng)
    heavy = data.draw(st.sampled_from([None, 3, 2**40]))
    weights = None if heavy is None else rng.integers(1, heavy, len(codes["y"]))
    rows = data.draw(programs(domain) | st.just(Rows().keep(())))
    single = [(name,) for name in domain.attributes]
    pairs = [
        (one, other)
        for one, other in itertools.permutations(domain.attributes, 2)
        if rows.parts * domain[one].size * domain[other].size <= 2**15
    ]
    wider = [
        names
        for count in (3, 4)
        for names in itertools.islice(itertools.permutations(domain.attributes, count), 200)
        if rows.parts * domain.cell_count(names) <= 2**12
    ]
    table = st.sampled_from([*single, *pairs, *wider])
    tables = data.draw(st.just(single) | st.just([*single, *pairs]) | st.lists(table, min_size=1, max_size=12))
    terms = data.draw(st.lists(table | st.sampled_from([(), ("a0", "a0", "a0")]), max_size=3))
    model = model_of(domain, terms, data.draw(st.sampled_from([0, 3, 2**11, 2**15, 2**24])), rng)
    caps = tuple(data.draw(st.integers(1, RESIDUAL_GRID)) for _ in domain.classes)
    monkeypatch.setattr(residuals, "_STRETCH", data.draw(st.sampled_from([7, 64, 2**20])))
    engine = MemoryEngine(domain, codes, {}, weights, shortcuts=shortcuts)
    reference = reference_of(domain, codes, weights)
    for length in data.draw(st.permutations(range(len(terms) + 1))):
        shorter = AdditiveModel(model.intercept, model.terms[:length])
        for query in (ResidualQuery(rows, shorter, tuple(tables), "y", caps), CorrectQuery(rows, shorter, "y")):
            assert_same(ask(engine, query), ask(reference, query))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_blocks_of_rows(classes: int, weighted: bool) -> None:
    domain = domain_of([8, 3, 2, 8, 5, 8, 16, 8], classes)
    rng = np.random.default_rng(classes)
    codes = rows_of(domain, 3 * residuals._BLOCK + 17, rng)
    weights = rng.integers(1, 5, len(codes["y"])) if weighted else None
    model = model_of(domain, [("a0", "a6"), ("a2",)], 3000, rng)
    tables = (("a6",), ("a0", "a6"), ("a3", "a1"), ("a5", "a7"), ("a3", "a1", "a5"), ("a1", "a2", "a3"), ("a1", "a2"))
    query = ResidualQuery(Rows(), model, tables, "y", (900, 500, 1024, 100)[:classes])
    engine = MemoryEngine(domain, codes, {}, weights)
    assert_same(ask(engine, query), ask(reference_of(domain, codes, weights), query))


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
    assert_same(ask(MemoryEngine(domain, codes, {}), query), ask(reference_of(domain, codes), query))


def test_rows_drawn_again_are_scored_as_drawn() -> None:
    domain = domain_of([4, 5, 6], 3)
    codes = rows_of(domain, 300, np.random.default_rng(1))
    model = model_of(domain, [("a0", "a1")], 900, np.random.default_rng(2))
    queries = [
        ResidualQuery(Rows(), model, (("a2", "a0"), ("a1",)), "y", (1024, 600, 300)),
        CorrectQuery(Rows(), model, "y"),
    ]
    engine = MemoryEngine(domain, codes, {})
    engine.exact_correct(queries[1])  # the margins of all rows are not those of the drawn ones
    drawn = np.random.default_rng(9).integers(0, 300, 300)
    reference = reference_of(domain, {name: column[drawn] for name, column in codes.items()})
    again = engine.resampled(9)
    for query in queries:
        assert_same(ask(again, query), ask(reference, query))


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
        assert_same(ask(MemoryEngine(domain, codes, {}), query), ask(reference_of(domain, codes), query))


# --- the groups ------------------------------------------------------------------------------------------------------


def groups_of(cover: residuals.Cover) -> list[tuple[int, ...]]:
    return [tuple(cover.groups.members[start:end].tolist()) for start, end in itertools.pairwise(cover.groups.bounds)]


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

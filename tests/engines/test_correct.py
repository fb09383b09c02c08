"""Rows that a released model classifies right: every engine counts those that an argmax over all logits counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from engines.test_counts import each_storage, on_spark
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from privet.column import Nominal
from privet.domain import Domain
from privet.kernel.engines.memory import MemoryEngine
from privet.kernel.query import AdditiveModel, Condition, CorrectQuery, ResidualQuery, Rows, Split

Codes = dict[str, NDArray[Any]]

PROPERTY = settings(
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def expected(codes: Codes, part: NDArray[Any], weights: NDArray[Any], query: CorrectQuery) -> NDArray[np.int64]:
    """The docstring of CorrectQuery, word for word: numpy's argmax is the first of equals. `part` is -1 for none."""
    logits = np.tile(np.array(query.model.intercept, dtype=np.int64), (len(part), 1))
    for columns, table in query.model.terms:
        logits += table[tuple(codes[name] for name in columns)]
    right = (np.argmax(logits, axis=1) == codes[query.target]) & (part >= 0)
    counts = np.zeros(query.rows.parts, dtype=np.int64)
    np.add.at(counts, part[right], weights[right])
    return counts


def domain_of(sizes: list[int], classes: int) -> Domain:
    columns = [Nominal(f"a{place}", tuple(f"v{value}" for value in range(size))) for place, size in enumerate(sizes)]
    return Domain((*columns, Nominal("y", tuple(f"c{value}" for value in range(classes)))), target="y")


def rows_of(domain: Domain, count: int, rng: np.random.Generator) -> Codes:
    return {column.name: rng.integers(0, column.size, count) for column in domain}


def model_of(domain: Domain, terms: list[tuple[str, ...]], reach: int, rng: np.random.Generator) -> AdditiveModel:
    def drawn(columns: tuple[str, ...]) -> NDArray[np.int32]:
        shape = (*(domain[name].size for name in columns), len(domain.classes))
        return rng.integers(-reach, reach + 1, shape).astype(np.int32)

    return AdditiveModel(tuple(drawn(()).tolist()), tuple((columns, drawn(columns)) for columns in terms))


def terms_of(domain: Domain) -> st.SearchStrategy[list[tuple[str, ...]]]:
    """Terms over no column, one, or several, and a column twice."""
    columns = st.lists(st.sampled_from(domain.attributes), max_size=4).map(tuple)
    return st.lists(columns, max_size=3)


@st.composite
def partitions(draw: Callable[..., Any], domain: Domain, codes: Codes) -> tuple[Rows, NDArray[Any]]:
    """The whole table, its parts by a column, or some of these in another order and under a condition."""
    if draw(st.booleans()):
        return Rows(), np.zeros(len(codes["y"]), dtype=np.int64)
    by, on = (draw(st.sampled_from(domain.names)) for _ in range(2))
    rows = Rows().divide([Split(by)], domain)
    if draw(st.booleans()):
        return rows, codes[by]
    kept = draw(st.lists(st.integers(0, rows.parts - 1), max_size=4, unique=True))
    allowed = draw(st.sets(st.integers(0, domain[on].size - 1), max_size=3))
    number = np.full(rows.parts, -1)
    number[kept] = np.arange(len(kept))
    narrowed = rows.keep(kept, (Condition(on, tuple(sorted(allowed))),))
    return narrowed, np.where(np.isin(codes[on], list(allowed)), number[codes[by]], -1)


@given(data=st.data())
@PROPERTY
def test_memory_counts_what_an_argmax_counts(data: st.DataObject) -> None:
    """With small logits most rows have ties. Would catch ties that go elsewhere, weights and parts left out, a term of
    many columns read in another order, and margins of another model.
    """
    sizes = data.draw(st.lists(st.integers(2, 9), min_size=1, max_size=5))
    domain = domain_of(sizes, data.draw(st.integers(2, 6)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    codes = rows_of(domain, data.draw(st.sampled_from([0, 1, 30, 200])), rng)
    weighted = data.draw(st.booleans())
    weights = rng.integers(0, 2**40, len(codes["y"])) if weighted else np.ones_like(codes["y"])
    rows, part = data.draw(partitions(domain, codes))
    model = model_of(domain, data.draw(terms_of(domain)), data.draw(st.sampled_from([0, 1, 2**20])), rng)
    engine = MemoryEngine(domain, codes, {}, weights if weighted else None)
    for length in data.draw(st.permutations(range(len(model.terms) + 1))):  # longer and shorter models than the last
        shorter = AdditiveModel(model.intercept, model.terms[:length])
        query = CorrectQuery(rows, shorter, "y")
        caps = (1024,) * len(domain.classes)
        engine.exact_residuals(ResidualQuery(Rows(), shorter, (("a0",),), "y", caps))  # it keeps margins too
        found = engine.exact_correct(query)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected(codes, part, weights, query), strict=True)


@each_storage
@given(data=st.data())
@settings(parent=PROPERTY, max_examples=12)
def test_every_engine_counts_the_same(data: st.DataObject, storage: str, stores: Any) -> None:
    check_every_engine(data, storage, stores)


@on_spark
@given(data=st.data())
@settings(parent=PROPERTY, max_examples=5)
def test_spark_counts_the_same(data: st.DataObject, storage: str, stores: Any) -> None:
    check_every_engine(data, storage, stores)


def check_every_engine(data: st.DataObject, storage: str, stores: Any) -> None:
    domain = domain_of(data.draw(st.lists(st.integers(2, 5), min_size=1, max_size=4)), data.draw(st.integers(2, 4)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    codes = rows_of(domain, data.draw(st.sampled_from([40, 60, 0])), rng)
    values = [np.array(column.values)[codes[column.name]].tolist() for column in domain]
    held = list(zip(*values, strict=True))
    reach = data.draw(st.sampled_from([1, 0, 2**20]))
    queries = []
    for _ in range(3):
        rows, part = data.draw(partitions(domain, codes))
        query = CorrectQuery(rows, model_of(domain, data.draw(terms_of(domain)), reach, rng), "y")
        queries.append((query, expected(codes, part, np.ones_like(part), query)))
    with stores.open(storage, domain, ["VARCHAR"] * len(domain.columns), held) as (engine, _):
        for each in [engine] if storage == "memory" else [engine, engine.snapshot()]:
            for query, wanted in queries:
                np.testing.assert_array_equal(each.exact_correct(query), wanted, strict=True)


def test_rows_drawn_again_are_classified_as_drawn() -> None:
    domain = domain_of([4, 5], 3)
    codes = rows_of(domain, 300, np.random.default_rng(1))
    query = CorrectQuery(Rows(), model_of(domain, [("a0", "a1")], 3, np.random.default_rng(2)), "y")
    engine = MemoryEngine(domain, codes, {})
    engine.exact_correct(query)  # the margins of all rows are not those of the drawn ones
    drawn = np.random.default_rng(9).integers(0, 300, 300)
    again = {name: column[drawn] for name, column in codes.items()}
    wanted = expected(again, np.zeros(300, dtype=np.int64), np.ones(300, dtype=np.int64), query)
    np.testing.assert_array_equal(engine.resampled(9).exact_correct(query), wanted)

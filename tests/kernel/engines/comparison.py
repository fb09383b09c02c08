"""Ask an engine and the reference engine the same thing, and compare."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sizes import few, long

from privet.kernel.additive import AdditiveModel
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CorrectQuery, CountQuery, GridQuery, ResidualQuery, SumQuery
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.rows import Rows, Split

# DuckDB reads three of them, by the same statements: test_contract.py and test_dates.py always read Parquet too.
STORAGES = few(("memory", "csv", "parquet", "table", "postgres"), ("memory", "csv", "table", "postgres"))
each_storage = pytest.mark.parametrize("storage", STORAGES)
# A job of Spark takes a quarter of a second, however few the rows: it takes part where a test needs few of them.
SPARK = pytest.param("spark", marks=pytest.mark.xdist_group("spark"))  # one process starts a Spark, and no other
SPARK_AT_LENGTH = pytest.param("spark", marks=[pytest.mark.xdist_group("spark"), long])
each_storage_and_spark = pytest.mark.parametrize("storage", (*STORAGES, SPARK_AT_LENGTH))


def ask(engine: Any, query: Any) -> list[np.ndarray]:
    """An answer of any kind as a list of arrays."""
    if isinstance(query, CountQuery):
        return list(engine.exact_counts(query))
    if isinstance(query, GridQuery):
        return [array for each in engine.exact_grid(query) for array in (each.part, each.index, each.exact_counts)]
    if isinstance(query, SumQuery):
        return list(engine.exact_sums(query))
    if isinstance(query, CorrectQuery):
        return [engine.exact_correct(query)]
    return [
        array
        for each in engine.exact_residuals(query)
        for array in (each.exact_own, each.exact_others)
        if array is not None
    ]


def assert_same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == np.int64
        np.testing.assert_array_equal(one, other, strict=True)


def check(stores: Any, storage: str, domain: Domain, types: Sequence[str], rows: Any, queries: Sequence[Any]) -> None:
    """The engine and its merged snapshot answer as the reference does."""
    with stores.open(storage, domain, types, rows) as (engine, held):
        reference = ReferenceEngine(domain, held)
        engines = [engine] if storage == "memory" else [engine, engine.snapshot()]
        for query in queries:
            expected = ask(reference, query)
            for each in engines:
                assert_same(ask(each, query), expected)


def memory_of(reference: ReferenceEngine, shortcuts: bool = True) -> MemoryEngine:
    """The coded rows of the reference, with their weights, in memory."""
    domain, rows = reference.domain, reference.rows
    codes = {name: np.array([row.codes[name] for row in rows], np.int64) for name in domain.names}
    grids = {name: np.array([row.indices[name] for row in rows], np.int64) for name in domain.names}
    weights = np.array([row.weight for row in rows], np.int64)
    return MemoryEngine(domain, codes, grids, weights, shortcuts=shortcuts)


def everything(domain: Domain) -> list[Any]:
    """Queries that show the code and the grid index of every row."""
    singles = tuple((name,) for name in domain.names)
    return [CountQuery(Rows(), ((), *singles)), GridQuery(Rows(), domain.names)]


PEOPLE = Domain(
    (
        Nominal("sex", ("f", "m"), other=True),
        Numeric("age", Fraction(0), Fraction(100), Fraction(1), bins=4, missing=True),
        Nominal("ill", ("no", "yes")),
    ),
    target="ill",
)
PEOPLE_TYPES = ["VARCHAR", "DOUBLE", "VARCHAR"]


def people(size: int, seed: int = 0) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)
    return [
        (
            rng.choice(["f", "m", "x", None]),
            rng.choice([None, 7, 10, 25, 30.5, 39.9, 40, 50, 1e9]),
            rng.choice(["no", "yes", "?"]),
        )
        for _ in range(size)
    ]


def by_sex_and_age() -> Rows:
    return Rows().divide([Split("sex")], PEOPLE).divide([Split("age", (10, 40)), Split("age"), None], PEOPLE)


def people_queries(where: Rows) -> list[Any]:
    model = AdditiveModel((100, -100), ((("sex",), np.array([[5, 7], [2000, 0], [0, 0]], np.int32)),))
    return [
        CountQuery(where, ((), ("sex", "ill"), ("age", "ill"))),
        GridQuery(where, ("age", "sex"), "ill"),
        SumQuery(where, "age"),
        ResidualQuery(where, model, (("age",), ("sex", "age")), "ill", (1024, 512)),
    ]


def full_cells(where: Rows, domain: Domain = PEOPLE) -> list[Any]:
    """Queries that show in which part every kind of row lies."""
    return [CountQuery(where, (domain.names,)), GridQuery(where, domain.names)]

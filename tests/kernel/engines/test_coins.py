"""Coins that divide rows: the hash of a row, wherever it is stored, fair and independent."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from kernel.engines.comparison import (
    PEOPLE,
    PEOPLE_TYPES,
    by_sex_and_age,
    check,
    each_storage,
    each_storage_and_spark,
    everything,
    full_cells,
    people,
    people_queries,
)
from sizes import long

import privet
from privet.kernel.column import MAX_GRID, Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, GridQuery, SumQuery
from privet.kernel.engines.duckdb.engine import DuckDBEngine, DuckDBSource
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.rows import Condition, Rows, Split


@each_storage
@pytest.mark.parametrize("seed", [pytest.param(0, marks=long), 7, pytest.param(2**32, marks=long), 10**30])
def test_coins_are_the_hash_of_a_row_wherever_it_is_stored(stores: Any, storage: str, seed: int) -> None:
    rows = people(80)
    coins = Rows().scatter(3, seed)
    levels = [coins, by_sex_and_age().scatter(4, seed), coins.divide([Split("age", (30,)), None, Split("sex")], PEOPLE)]
    levels += [
        coins.keep([2, 0], (Condition("age", None, 10, 60),)),
        coins.scatter(2, seed + 1),
        Rows().scatter(1, seed),
    ]
    queries = [query for where in levels for query in (*people_queries(where), *full_cells(where))]
    check(stores, storage, PEOPLE, PEOPLE_TYPES, rows, queries)


@each_storage
def test_coins_of_the_largest_grids_stay_in_64_bits(stores: Any, storage: str) -> None:
    # an overflow would wrap in one engine and be an error, which one row can cause, in another
    last = MAX_GRID - 1
    domain = Domain(tuple(Numeric(name, Fraction(0), Fraction(last), Fraction(1), bins=2) for name in "abcd"))
    rng = random.Random(2)
    rows = [tuple(rng.choice([0, 1, last - 1, last, rng.randrange(last)]) for _ in "abcd") for _ in range(60)]
    wheres = [Rows().scatter(10_000, seed) for seed in range(10)]
    queries = [CountQuery(where, ((),)) for where in wheres]
    check(stores, storage, domain, ["BIGINT"] * 4, [*rows, (last,) * 4], queries)


@each_storage_and_spark
def test_rows_that_no_value_can_meet_are_counted_and_divided(stores: Any, storage: str) -> None:
    nobody = Rows().keep([0], (Condition("sex", ()),))
    wheres = [nobody, nobody.divide([Split("sex")], PEOPLE).keep([1]), nobody.scatter(2, 1)]
    wheres += [Rows().keep([]).divide([], PEOPLE), Rows().divide([None], PEOPLE)]
    queries = [query for where in wheres for query in people_queries(where)[:3]]
    check(stores, storage, PEOPLE, PEOPLE_TYPES, people(20), queries)


@each_storage_and_spark
def test_the_last_point_of_the_largest_grid_is_counted(stores: Any, storage: str) -> None:
    # it and one more may be beyond 32 bits: an error that one row can cause
    last = MAX_GRID - 1
    domain = Domain((Numeric("x", Fraction(0), Fraction(last), Fraction(1), bins=2, missing=True),))
    queries = [*everything(domain), SumQuery(Rows(), "x"), GridQuery(Rows().divide([Split("x")], domain), ("x",))]
    check(stores, storage, domain, ["BIGINT"], [(0,), (last - 1,), (last,), (None,)], queries)


def test_coins_of_a_table_with_many_columns(stores: Any) -> None:
    domain = Domain(tuple(Nominal(f"a{i}", ("0", "1"), missing=True) for i in range(300)))
    rng = random.Random(4)
    rows = [[rng.choice(["0", "1", None]) for _ in domain.names] for _ in range(20)]
    check(stores, "csv", domain, ["VARCHAR"] * 300, rows, [CountQuery(Rows().scatter(5, 1), ((), ("a7",)))])


@each_storage_and_spark
def test_rows_with_the_same_cells_share_a_part_and_every_row_lies_in_one(stores: Any, storage: str) -> None:
    rows = people(50)
    where = Rows().scatter(4, 11)
    with stores.open(storage, PEOPLE, PEOPLE_TYPES, rows * 3) as (engine, held):
        (total,) = engine.exact_counts(CountQuery(Rows(), ((),)))
        (found,) = engine.exact_counts(CountQuery(where, ((),)))
        kinds = {(*row.codes.values(), *row.indices.values()) for row in ReferenceEngine(PEOPLE, held).rows}
        grid = engine.exact_grid(GridQuery(where.divide([Split("sex")] * 4, PEOPLE), ("age",), "ill"))[0]
    assert found.sum() == total[0] > 0
    assert (found > 0).all() and (found % 3 == 0).all()
    assert (grid.exact_counts > 0).sum() == len(kinds)  # no kind of row is in two parts


@pytest.fixture(scope="module", params=["memory", "csv"])
def census(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    frame, domain = privet.datasets.census(20_000, seed=1), privet.datasets.census_domain()
    if request.param == "memory":
        yield MemoryEngine.from_frame(frame, domain)
        return
    path = tmp_path_factory.mktemp("census") / "census.csv"
    frame.to_csv(path, index=False)
    engine = DuckDBEngine(DuckDBSource(path), domain)
    yield engine
    engine.close()


def within(found: np.ndarray, expected: np.ndarray | float) -> bool:
    """Counts as of fair coins: within five standard deviations. Seeds are fixed, so there is no false alarm."""
    return bool((np.abs(found - expected) <= 5 * np.sqrt(expected)).all())


@pytest.mark.parametrize("seed", range(5))
def test_coins_are_fair_and_independent_of_the_columns(census: Any, seed: int) -> None:
    where = Rows().scatter(10, seed)
    size, income, sex = census.exact_counts(CountQuery(where, ((), ("income",), ("sex", "income"))))
    assert size.sum() == 20_000 and within(size, 2_000)
    for found in (income, sex):
        assert within(found, found.sum(axis=0) / 10)


def test_coins_of_different_seeds_are_independent_and_of_the_same_seed_the_same(census: Any) -> None:
    one, other = ((parts, seed) for parts, seed in ((5, 1), (5, 2)))
    (crossed,) = census.exact_counts(CountQuery(Rows().scatter(*one).scatter(*other), ((),)))
    assert within(crossed, 20_000 / 25)
    (again,) = census.exact_counts(CountQuery(Rows().scatter(*one).scatter(*one), ((),)))
    assert np.count_nonzero(again) == 5 and (np.flatnonzero(again) % 6 == 0).all()

"""The same rows in other cells: every engine counts them as a table that was opened with those cells would."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from kernel.engines.comparison import (
    PEOPLE,
    PEOPLE_TYPES,
    SPARK_AT_LENGTH,
    STORAGES,
    ask,
    assert_same,
    memory_of,
    people,
)
from pytest import mark

from privet.kernel.additive import AdditiveModel
from privet.kernel.column import Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import (
    Cells,
    CorrectQuery,
    CountQuery,
    GridQuery,
    OtherCells,
    ResidualQuery,
    SumQuery,
)
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.rows import Rows, Split

EDGES = (Fraction(8), Fraction(10), Fraction(40), Fraction(100))


def with_edges(domain: Domain, *edges: Fraction) -> Domain:
    """The domain with other bins of ages."""
    return replace(
        domain,
        columns=tuple(replace(c, bins=None, edges=edges) if isinstance(c, Numeric) else c for c in domain.columns),
    )


def with_copy(domain: Domain, *edges: Fraction) -> Cells:
    """The domain, and ages once more in other bins."""
    copy = replace(domain.numeric("age"), name="age again", bins=None, edges=edges)
    return Cells(replace(domain, columns=(*domain.columns, copy)), {"age again": "age"})


def copy_queries(domain: Domain) -> list[Any]:
    """Of a copy and of what it reads, together: in a count, in a model, on the grid and as parts."""
    table = np.arange(2 * domain["age again"].size, dtype=np.int32).reshape(-1, 2) * 90 - 500
    model = AdditiveModel((100, -100), ((("age again",), table),))
    parts = Rows().divide([Split("age again")], domain)
    return [
        CountQuery(parts, (("age", "age again"), ("ill",))),
        GridQuery(Rows().divide([Split("age again", (9, 41))], domain).scatter(2, 7), ("age again", "age"), "ill"),
        SumQuery(parts, "age again"),
        ResidualQuery(parts, model, (("age again",), ("sex", "age")), "ill", (1024, 512)),
    ]


def queries(domain: Domain) -> list[Any]:
    """One of each kind, about all rows and about parts by cells, by grid indices and by coins."""
    table = np.arange(2 * domain["age"].size, dtype=np.int32).reshape(-1, 2) * 90 - 500
    model = AdditiveModel((100, -100), ((("age",), table),))
    parts = Rows().divide([Split("age")], domain)
    points = Rows().divide([Split("age", (9, 41))], domain).scatter(2, 7)
    return [
        CountQuery(Rows(), ((), ("age", "ill"))),
        CountQuery(parts, ((), ("sex", "ill"))),
        GridQuery(points, ("age", "sex"), "ill"),
        SumQuery(parts, "age"),
        ResidualQuery(points, model, (("age",), ("sex", "age")), "ill", (1024, 512)),
        CorrectQuery(parts, model, "ill"),
    ]


@mark.parametrize("storage", (*STORAGES, SPARK_AT_LENGTH))
@mark.parametrize("person", [None, "who"], ids=["rows", "persons"])
def test_other_cells_are_those_of_a_table_that_was_opened_with_them(
    stores: Any, storage: str, person: str | None
) -> None:
    """Where persons are bounded, the rows that count are those of the declared cells: no new ones come in."""
    domain = replace(PEOPLE, person=person, rows_per_person=1 if person is None else 2)
    rows = [(*row, *([] if person is None else [f"p{at % 30}"])) for at, row in enumerate(people(200))]
    types = PEOPLE_TYPES if person is None else [*PEOPLE_TYPES, "VARCHAR"]
    with stores.open(storage, domain, types, rows) as (engine, held):
        declared = ReferenceEngine(domain, held)
        for other in (with_edges(domain, *EDGES), with_edges(domain, Fraction(30)), domain):
            expected = declared.in_cells(Cells(other, {}))
            if person is None:
                opened = ReferenceEngine(other, held)
                assert sorted(map(repr, opened.rows)) == sorted(map(repr, expected.rows))
            for query in queries(other):
                assert_same(ask(OtherCells(engine, Cells(other, {})), query), ask(expected, query))
        copied = with_copy(domain, *EDGES)
        for query in [*queries(copied.domain), *copy_queries(copied.domain)]:
            assert_same(ask(OtherCells(engine, copied), query), ask(declared.in_cells(copied), query))
        for query in queries(domain):  # and the engine itself answers as before
            assert_same(ask(engine, query), ask(declared, query))


def test_cells_may_become_more_than_a_byte_holds() -> None:
    low, high, step = Fraction(0), Fraction(999), Fraction(1)
    domains = [
        replace(PEOPLE, columns=(PEOPLE["sex"], Numeric("age", low, high, step, bins=bins), PEOPLE["ill"]))
        for bins in (4, 1000)
    ]
    rows = [("f", age, "no") for age in range(1000)]
    engine = memory_of(ReferenceEngine(domains[0], rows)).in_cells(Cells(domains[1], {}))
    (counts,) = engine.exact_counts(CountQuery(Rows(), (("age",),)))
    assert counts.tolist() == [[1] * 1000]

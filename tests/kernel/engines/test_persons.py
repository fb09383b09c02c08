"""Who a person is: on every engine the same rows of each person count, and no more than the domain says."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from kernel.engines.comparison import SPARK, STORAGES, ask, assert_same, everything

import privet
from privet.errors import DataError
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.person import person_text
from privet.kernel.rows import Rows, Split

VISITS = Domain(
    (
        Nominal("ward", ("a", "b", "c"), other=True),
        Numeric("days", Fraction(0), Fraction(30), Fraction(1), bins=3, missing=True),
        Nominal("ill", ("no", "yes")),
    ),
    target="ill",
    rows_per_person=2,
    person="patient",
)
TYPES = ["VARCHAR", "DOUBLE", "VARCHAR"]
EVERY = (*STORAGES, "mssql", SPARK)

# By how a source holds them; what a collation, a cast or a comparison of numbers might hold equal is there, too.
IDS: dict[str, Sequence[object]] = {
    "VARCHAR": [
        *(
            "ann",
            "Ann",
            "ANN",
            "ann ",
            " ann",
            "a",
            "A",
            "\u00e9",
            "e\u0301",
            "stra\u00dfe",
            "strasse",
            "ss",
            "\ufb01",
            "fi",
        ),
        *("7", "7.0", "7.", "7.00", "07", "+7", "7e0", "7.50", "7.5", "-7", "-7.0", "0", "0.0", "-0", "-0.0", "1.2.0"),
        *("true", "True", "NULL", "null", "", "'", '"; DROP', "\u2028", "x" * 1000, "x" * 1000 + ".0"),
        None,
    ],
    "BIGINT": [0, 1, -1, 7, 10, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), None],
    "DOUBLE": [0.0, -0.0, 7.0, 7.5, -7.0, 1e15, 2.0**53, 1e18, 2.0**63, -(2.0**63), 1e300, None],
    "BOOLEAN": [True, False, None],
    "DECIMAL(12,3)": [Decimal(text) for text in ("0", "7", "7.000", "7.5", "-7", "123456789")] + [None],
}


def visits(size: int, ids: Sequence[object], seed: int = 0) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)
    return [
        (
            rng.choice(["a", "b", "c", "x", None]),
            rng.choice([None, 1, 2, 10, 25, 1e9]),
            rng.choice(["no", "yes", "?"]),
            rng.choice(ids),
        )
        for _ in range(size)
    ]


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("storage", EVERY)
def test_the_same_rows_of_each_person_count_on_every_engine(stores: Any, storage: str, kind: str) -> None:
    rows = visits(300 if storage != "spark" else 120, IDS[kind])
    parts = Rows().divide([Split("ward")], VISITS)
    with stores.open(storage, VISITS, [*TYPES, kind], rows) as (engine, held):
        reference = ReferenceEngine(VISITS, held)
        assert len(reference.rows) <= 2 * len({person_text(row[-1]) for row in held})
        engines = [engine] if storage in ("memory", "mssql") else [engine, engine.snapshot()]
        for query in (*everything(VISITS), CountQuery(parts, (("ward", "ill"), ("days",)))):
            for one in engines:
                assert_same(ask(one, query), ask(reference, query))


@pytest.mark.parametrize("storage", EVERY)
def test_the_order_of_rows_and_other_people_do_not_matter(stores: Any, storage: str) -> None:
    mine = [("a", days, "yes", "me") for days in range(12)]
    others = visits(40, ["you", "they"])
    answers = []
    for rows in (mine, mine[::-1], [*others, *mine], [*mine[::-1], *others]):
        with stores.open(storage, VISITS, [*TYPES, "VARCHAR"], rows) as (engine, held):
            alone = [row for row in held if row[-1] != "me"]
            total = ask(engine, CountQuery(Rows(), (("ward", "days", "ill"),)))[0]
            answers.append(
                total - ask(ReferenceEngine(VISITS, alone), CountQuery(Rows(), (("ward", "days", "ill"),)))[0]
            )
    assert answers[0].sum() == 2
    for answer in answers[1:]:
        assert_same([answer], [answers[0]])


@pytest.mark.parametrize("storage", EVERY)
def test_a_person_with_thousands_of_rows_changes_as_many_as_the_domain_says(stores: Any, storage: str) -> None:
    """Rows in every ward and class: none of them counts more because its part is asked about."""
    rng = random.Random(1)
    crowd = [(rng.choice("abc"), rng.choice(range(31)), rng.choice(["no", "yes"]), "me") for _ in range(3_000)]
    parts = Rows().divide([Split("ward")], VISITS).divide([Split("ill")] * 4, VISITS)
    with stores.open(storage, VISITS, [*TYPES, "VARCHAR"], crowd if storage != "mssql" else crowd[:200]) as (engine, _):
        assert sum(answer.sum() for answer in ask(engine, CountQuery(parts, ((),)))) == 2


def test_rows_that_name_nobody_or_fit_no_cell_take_nobodys_place() -> None:
    rows = [("a", 1, "?", "me"), ("a", 1, "yes", None), ("a", 1, "yes", ""), ("b", 2, "no", "me"), ("c", 3, "no", "me")]
    for domain, kept in ((VISITS, 2), (replace(VISITS, rows_per_person=1), 1)):
        assert len(ReferenceEngine(domain, rows).rows) == kept


def test_a_table_without_the_person_column_is_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"ward": ["a"], "days": [1], "ill": ["no"]})
    frame.to_csv(tmp_path / "visits.csv", index=False)
    for data in (frame, tmp_path / "visits.csv"):
        with pytest.raises(DataError, match="no column 'patient', which the domain declares"):
            privet.open(data, VISITS, budget=1)

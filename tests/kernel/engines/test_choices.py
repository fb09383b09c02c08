"""Scores of candidates, choices, majorities and histograms of parts are the same from every engine."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernel.engines.comparison import PEOPLE, PEOPLE_TYPES, assert_same, each_storage, each_storage_and_spark, people

import privet
from privet.kernel import PURE, InfoGain, Max, PerPart, Quality, SelectQuestion
from privet.kernel.criteria import Gini
from privet.kernel.engines.contract import CountQuery
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.questions.counts import ChooseQuestion
from privet.kernel.rows import Rows, Split
from privet.release import About

RULES = {"max": Max(), "gini": Gini(), "infogain": InfoGain(1000)}


def plain_score(rule: str, cells: dict[Any, list[int]]) -> int:
    """A criterion of one table, cell by cell, from the class counts of each."""
    if rule == "max":
        return sum(map(max, cells.values()))
    table = np.array(list(cells.values()), dtype=np.int64)
    return int(RULES[rule].exact_scores(table[None])[0])


@each_storage_and_spark
@pytest.mark.parametrize("rule", RULES)
def test_candidates_are_scored_as_by_counting_rows(stores: Any, storage: str, rule: str) -> None:
    candidates: list[Any] = ["sex", ("age", 10), ("age", 1), "age", ("age", 40), ("age", 100)]
    where = Rows().divide([Split("sex")], PEOPLE).scatter(2, 5)
    own = [candidates if part % 2 else candidates[::-2] for part in range(where.parts)]
    with stores.open(storage, PEOPLE, PEOPLE_TYPES, people(90)) as (engine, held):
        question = SelectQuestion(RULES[rule], PerPart.of(tuple(mine) for mine in own))
        question.check(PEOPLE, where)
        scores = [exact.tolist() for exact in question.exact(engine, where, PEOPLE)]
        mechanisms = question.mechanisms(PEOPLE, PerPart.same(Fraction(1), where.parts), PURE)
        about = About(question.words, Fraction(1), private=False)
        chosen = [question.release(0, mechanism, about, PEOPLE, part) for part, mechanism in enumerate(mechanisms)]
        reference = ReferenceEngine(PEOPLE, held)
    for part, (mine, seen) in enumerate(zip(own, scores, strict=True)):
        expected = []
        for candidate in mine:
            sides = range(3) if isinstance(candidate, tuple) else range(PEOPLE[candidate].size)
            cells = {side: [0, 0] for side in sides}
            for lies, row in reference.placed(where):
                if lies != part:
                    continue
                if isinstance(candidate, tuple):
                    index = row.indices[candidate[0]]
                    side = 2 if index < 0 else int(index >= candidate[1])
                else:
                    side = row.codes[candidate]
                cells[side][row.codes["ill"]] += 1
            expected.append(plain_score(rule, cells))
        assert seen == expected
        first, choice = mine[0], chosen[part]
        # a choice names the last point of the grid that goes left
        point = None if isinstance(first, str) else PEOPLE.numeric(first[0]).value_at(first[1] - 1)
        assert (choice, choice.point) == (first if isinstance(first, str) else first[0], point)


@each_storage_and_spark
def test_qualities_are_summed_as_by_looking_up_every_row(stores: Any, storage: str) -> None:
    """Tables of no column, of one and of two, with numbers beyond the bound, in parts of parts."""
    rng, bound = np.random.default_rng(7), 5
    tables = {
        str(at): Quality(columns, rng.integers(-9, 10, [PEOPLE[name].size for name in columns]))
        for at, columns in enumerate([(), ("sex",), ("ill", "age"), ("age",), ("sex",)])
    }
    question = ChooseQuestion(tuple(tables.items()), bound)
    where = Rows().divide([Split("sex")], PEOPLE).scatter(2, 5)
    question.check(PEOPLE, where)
    with stores.open(storage, PEOPLE, PEOPLE_TYPES, people(90)) as (engine, held):
        found = question.exact(engine, where, PEOPLE).tolist()
        reference = ReferenceEngine(PEOPLE, held)
    expected = [[0] * len(tables) for _ in range(where.parts)]
    for part, row in reference.placed(where):
        for at, quality in enumerate(tables.values()):
            number = np.reshape(quality.table, quality.shape)[tuple(row.codes[name] for name in quality.columns)]
            expected[part][at] += max(-bound, min(bound, int(number)))
    assert found == expected and any(map(any, expected))


def opened(stores: Any, storage: str, rows: Any) -> privet.ProtectedTable:
    """A table that an analyst would hold, over the rows in a storage."""
    if storage == "memory":
        return privet.testing.open(pd.DataFrame(rows, columns=PEOPLE.names), PEOPLE, budget=10**6, seed=3)
    if storage == "postgres":
        address, _ = stores.write_postgres(PEOPLE.names, PEOPLE_TYPES, rows)
        return privet.testing.open(address, PEOPLE, budget=10**6, seed=3)
    source, _ = stores.write(storage, PEOPLE.names, PEOPLE_TYPES, rows)
    address = f"duckdb:///{source.path}?table=t" if source.table else source.path
    path = "snapshot" if storage == "parquet" else "push-down"
    return privet.testing.open(address, PEOPLE, budget=10**6, seed=3, access=path)


@each_storage
@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential", "noisy-max"])
def test_seeded_choices_of_pairs_majorities_and_histograms_are_the_same_everywhere(
    stores: Any, storage: str, mechanism: str
) -> None:
    candidates: list[Any] = ["sex", ("age", 9), ("age", 39.5), "age"]

    def said(table: privet.ProtectedTable) -> list[Any]:
        parts = table.scatter(3, 8).partition("sex").take([8, 0, 4, 3])
        chosen = parts.select("gini", 1, attributes=candidates, mechanism=mechanism)
        groups = [[("age",), ("sex", "ill")], [("ill",)], [("ill",), ("sex",), ("age",)], [("age", "ill")]]
        return [
            [(str(each), each.threshold) for each in chosen],
            [str(each) for each in parts.majority("age", 1)],
            [each.values.tolist() for own in parts.histograms(groups, 1) for each in own],
            parts.partition(chosen).count(1).array().tolist(),
        ]

    rows = people(70)
    with opened(stores, storage, rows) as table, opened(stores, "memory", rows) as oracle:
        assert said(table) == said(oracle)


@each_storage
def test_majorities_and_histograms_are_those_of_the_rows(stores: Any, storage: str) -> None:
    rows = people(200)
    reference = ReferenceEngine(PEOPLE, rows)
    where = Rows().divide([Split("sex")], PEOPLE).scatter(2, 8)
    ages, both = reference.exact_counts(CountQuery(where, (("age",), ("ill", "sex"))))
    with opened(stores, storage, rows) as table:
        parts = table.partition("sex").scatter(2, 8)
        labels = PEOPLE["age"].labels
        for choice, exact in zip(parts.majority("age", 10_000), ages, strict=True):
            assert exact[labels.index(choice)] == exact.max()
        for own, age, other in zip(parts.histograms([[("age",), ("ill", "sex")]] * 6, 20_000), ages, both, strict=True):
            assert_same([each.values for each in own], [age, other])

"""Learned tables: the plan adds up exactly, the fit loses what it says, and it learns."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import long

import privet
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.lab import worst_loss
from privet.learners.boosting import CONSTANTS, BoostPlan, boost, plan
from privet.learners.log_odds import Learned

BINARY = ("0", "1")
COINS = np.random.default_rng(0)


def domain_of(sizes: list[int], classes: int = 2, rows: int | None = None) -> Domain:
    columns = [Nominal(f"a{i}", tuple(range(size))) for i, size in enumerate(sizes)]
    return Domain((*columns, Nominal("y", tuple(range(classes)))), target="y", rows=rows)


def planned(domain: Domain, rows: float, epsilon: Fraction, looks: int = 0) -> BoostPlan:
    sizes = {name: domain[name].size for name in domain.attributes}
    return plan(domain, sizes, looks, rows, epsilon, epsilon, COINS, CONSTANTS)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=9),
    rows=st.floats(1, 1e8),
    epsilon=st.sampled_from(["0.01", "0.05", "1/3", "1", "7/3", "10"]),
)
def test_a_plan_can_be_paid(sizes: list[int], rows: float, epsilon: str) -> None:
    budget = Fraction(epsilon)
    found = planned(domain_of(sizes), rows, budget, looks=3)
    assert found.steps >= 1 and min(found.new, found.looks, found.free) >= 0 and found.new <= len(sizes)
    assert 0 < found.choice < budget / found.steps
    pairs = [each for each in found.candidates if len(each) == 2]
    assert all(np.prod([sizes[int(name[1:])] for name in pair]) <= CONSTANTS.max_cells for pair in pairs)
    assert {each for each in found.candidates if len(each) == 1} == {(f"a{i}",) for i in range(len(sizes))}


def rows_of(size: int, classes: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b, c = rng.integers(0, 4, size), rng.integers(0, 3, size), rng.integers(0, 5, size)
    y = np.where(rng.random(size) < 0.85, (a + (b > 0)) % classes, rng.integers(0, classes, size))
    return pd.DataFrame({"a0": a, "a1": b, "a2": c, "y": y})


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("size", "epsilon"), [(0, "1"), (30, "0.1"), (400, "0.3"), (4_000, "1"), (20_000, "2")])
@pytest.mark.parametrize("public", [True, False])
def test_a_fit_costs_epsilon_to_the_last_digit(classes: int, size: int, epsilon: str, public: bool) -> None:
    """On every branch of the plan: no rows, too little signal, one step, many."""
    domain = domain_of([4, 3, 5], classes, rows=max(size, 1) if public else None)
    table = privet.open(rows_of(size, classes), domain, budget=10)
    found = boost(table, Fraction(epsilon), COINS)
    asked = sum((release.epsilon for _, release, _ in found.asked), Fraction(0))
    assert asked == table.budget.spent == Fraction(epsilon)
    assert len(found.intercept) == classes and abs(sum(found.intercept)) < 1e-9


TINY = Domain(
    (Nominal("a", BINARY), Nominal("b", BINARY), Numeric("x", Fraction(0), Fraction(3), Fraction(1), bins=2)),
)


def tiny(classes: int) -> Domain:
    return Domain((*TINY.columns, Nominal("y", tuple(range(classes)))), target="y", rows=40)


def content(found: Learned) -> Any:
    return found.intercept, tuple((table.columns, table.values.tobytes()) for table in found.tables)


@pytest.mark.parametrize("classes", [2, 3])
def test_every_outcome_of_a_fit_loses_at_most_epsilon(classes: int) -> None:
    """End to end, computed: a step that looked at rows without paying would lose infinitely much."""
    domain = tiny(classes)
    row = {"a": "0", "b": "0", "x": 1, "y": 0}
    rows = [row, {**row, "a": "1", "y": 1}]
    person = {**row, "b": "1", "y": classes - 1}
    left, right = pd.DataFrame(rows), pd.DataFrame([*rows, person])

    def published(table: Any) -> Any:
        return content(boost(table, Fraction(1), COINS))

    worst = worst_loss(published, left, right, domain, limit=120)
    assert 0.5 < worst.loss <= 1 + 1e-6


def accuracy(found: Learned, domain: Domain, rows: pd.DataFrame) -> float:
    logits = np.tile(found.intercept, (len(rows), 1))
    for table in found.tables:
        logits += table.values[tuple(domain[name].encode(rows[name]) for name in table.columns)]
    return float((logits.argmax(axis=1) == rows["y"].to_numpy()).mean())


@pytest.mark.parametrize("classes", [2, 3])
def test_it_learns_what_two_attributes_say_together(classes: int) -> None:
    """85% of the rows follow a rule of two attributes; a table of both is found, chosen and filled."""
    domain = domain_of([4, 3, 5], classes)
    rows = rows_of(30_000, classes)
    table = privet.open(rows[:20_000], domain, budget=10)
    found = boost(table, Fraction(2), COINS)
    assert {"a0", "a1"} in [set(table.columns) for table in found.tables]
    assert accuracy(found, domain, rows[20_000:]) > 0.82


def test_little_signal_returns_the_class_shares() -> None:
    domain = domain_of([4, 3, 5], rows=100)
    found = boost(privet.open(rows_of(100, 2), domain, budget=1), Fraction(1, 10), COINS)
    assert found.tables == () and "too little signal" in found.note


def test_attributes_of_many_cells_are_taken_once_each_and_large_ones_cost_more() -> None:
    """No pair is small enough, so the first steps add a new attribute each; the prices add up to epsilon."""
    domain = domain_of([40, 20, 2, 30], rows=30_000)
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({f"a{i}": rng.integers(0, size, 5_000) for i, size in enumerate((40, 20, 2, 30))})
    rows["y"] = (rows.a0 > 20).astype(int)
    table = privet.open(rows, domain, budget=2)
    found = boost(table, Fraction(1), COINS)
    first = found.tables[:4]
    assert {each.columns for each in first} == {("a0",), ("a1",), ("a2",), ("a3",)}
    prices = {each.columns[0]: each.epsilon for each in first}
    assert prices["a0"] > prices["a2"] > 0 and table.budget.spent == 1


def test_numbers_of_twenty_bins_enter_pairs_in_fewer() -> None:
    """Twenty by twenty cells are too many for a table of two: neighbouring bins are merged, and a pair is found."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({name: rng.integers(0, 1000, 20_000) for name in ("x", "z", "w")})
    rows["y"] = ((rows.x < 500) ^ (rows.z < 500)).astype(int)
    columns = [Numeric(name, Fraction(0), Fraction(999), Fraction(1), bins=20) for name in ("x", "z", "w")]
    domain = Domain((*columns, Nominal("y", (0, 1))), target="y", rows=20_000)
    found = boost(privet.open(rows, domain, budget=2), Fraction(2), COINS)
    assert {"x", "z"} in [set(each.columns) for each in found.tables]
    assert found.domain is not None and found.domain["x"].size >= 20


def test_a_closer_look_finds_what_lies_between_two_edges() -> None:
    """The class follows from 3 of 100,000 values: a look at single numbers has finer cells than any declared bin."""
    rng = np.random.default_rng(0)
    size = 60_000
    rows = pd.DataFrame({f"a{i}": rng.integers(0, 12, size) for i in range(6)})
    rows["gain"] = np.where(rng.random(size) < 0.5, rng.choice([30_100, 52_300, 71_900], size), 30_900)
    rows["gain"] += rng.integers(0, 40, size)
    rows["y"] = (rows.gain % 1000 < 500).astype(int) * (rng.random(size) < 0.9)
    gain = Numeric("gain", Fraction(0), Fraction(99_999), Fraction(1), bins=30)
    others = [Nominal(f"a{i}", tuple(range(12))) for i in range(6)]
    domain = Domain((gain, *others, Nominal("y", (0, 1))), target="y", rows=size)
    found = boost(privet.open(rows, domain, budget=1), Fraction(1), COINS)
    assert found.domain is not None and found.domain["gain"].size > 400


def test_the_first_table_says_how_large_the_classes_are_where_counts_do_not() -> None:
    """70 to 30 of 1,000 rows at epsilon 0.05: a twentieth of it buys no class counts worth the name."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a0": rng.integers(0, 4, 1_000), "y": (rng.random(1_000) < 0.3).astype(int)})
    domain = domain_of([4], rows=1_000)
    right = 0
    for seed in range(40):
        table = privet.testing.open(rows, domain, budget=1, seed=seed)
        found = boost(table, Fraction(1, 20), COINS)
        right += found.intercept[0] > found.intercept[1]
        assert table.budget.spent == Fraction(1, 20)
    assert right >= 36  # by class counts alone 29


def test_missing_values_and_a_thousand_cells_are_cells_like_others() -> None:
    domain = Domain(
        (
            Nominal("wide", tuple(range(1_000)), missing=True),
            Numeric("x", Fraction(0), Fraction(99), Fraction(1), bins=10, missing=True),
            Nominal("constant", ("only",)),
            Nominal("y", (0, 1, 2)),
        ),
        target="y",
    )
    rng = np.random.default_rng(0)
    size = 5_000
    rows = pd.DataFrame(
        {
            "wide": rng.integers(0, 1_000, size),
            "x": rng.integers(0, 100, size).astype(object),
            "constant": "only",
            "y": 0,  # a class that is always there, and two that never are
        }
    )
    rows.loc[::3, "x"] = None
    table = privet.open(rows, replace(domain, rows=size), budget=10)
    found = boost(table, Fraction(3), COINS)
    assert table.budget.spent == 3
    assert all(np.isfinite(each.values).all() and np.isfinite(each.deviation).all() for each in found.tables)
    assert np.argmax(found.intercept) == 0


def test_several_rows_per_person_are_planned_by_what_each_row_pays() -> None:
    """A person with 20 rows pays 20 times: the plan is that of a twentieth of epsilon, and its price that of all."""
    one, many = domain_of([4, 3, 5], rows=5_000), replace(domain_of([4, 3, 5], rows=5_000), rows_per_person=20)
    few, same = (planned(each, 5e3, budget) for each, budget in ((one, Fraction(1, 100)), (many, Fraction(1, 5))))
    assert same.candidates == few.candidates
    assert (same.new, same.looks, same.free, same.choice) == (few.new, few.looks, few.free, 20 * few.choice)


def test_a_column_with_a_comma_is_no_pair() -> None:
    """The kernel names a choice by its columns: a column "a, b" must not be taken for the table of a and b."""
    rng = np.random.default_rng(0)
    names = ("a", "b", "a, b")
    rows = pd.DataFrame({name: rng.integers(0, 2, 4_000) for name in names})
    rows["y"] = rows["a, b"]
    domain = Domain((*(Nominal(name, (0, 1)) for name in names), Nominal("y", (0, 1))), target="y", rows=4_000)
    found = boost(privet.open(rows, domain, budget=5), Fraction(5), COINS)
    assert found.tables[0].columns in (("a, b",), ("a", "a, b"), ("b", "a, b"))


def test_rows_beyond_all_reason_make_a_plan_that_ends() -> None:
    assert planned(domain_of([2, 3]), 1e15, Fraction(1)).steps <= CONSTANTS.max_steps


@long
def test_a_fit_to_rows_beyond_all_reason_ends() -> None:
    domain = domain_of([2], rows=10**15)
    found = boost(privet.open(rows_of(50, 2)[["a0", "y"]].clip(0, 1), domain, budget=1), Fraction(1), COINS)
    assert len(found.tables) <= CONSTANTS.max_steps

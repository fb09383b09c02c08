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

import privet
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.lab import worst_loss
from privet.learners.boosting import CONSTANTS, boost, plan
from privet.learners.log_odds import Learned

BINARY = ("0", "1")


def domain_of(sizes: list[int], classes: int = 2, rows: int | None = None) -> Domain:
    columns = [Nominal(f"a{i}", tuple(range(size))) for i, size in enumerate(sizes)]
    return Domain((*columns, Nominal("y", tuple(range(classes)))), target="y", rows=rows)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=9),
    rows=st.floats(1, 1e8),
    epsilon=st.sampled_from(["0.01", "0.05", "1/3", "1", "7/3", "10"]),
)
def test_the_shares_of_a_plan_add_up_exactly(sizes: list[int], rows: float, epsilon: str) -> None:
    """A step that is not paid for, or paid twice, would be here."""
    budget = Fraction(epsilon)
    found = plan(domain_of(sizes), rows, budget, np.random.default_rng(0), CONSTANTS)
    assert found.loss == budget
    assert all(step.epsilon > 0 and step.choice >= 0 for step in found.steps)
    assert all(step.columns is None or step.choice == 0 for step in found.steps)
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
    found = boost(table, Fraction(epsilon), np.random.default_rng(0))
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
        return content(boost(table, Fraction(1), np.random.default_rng(0)))

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
    found = boost(table, Fraction(2), np.random.default_rng(0))
    assert {"a0", "a1"} in [set(table.columns) for table in found.tables]
    assert accuracy(found, domain, rows[20_000:]) > 0.82


def test_little_signal_returns_the_class_shares() -> None:
    domain = domain_of([4, 3, 5], rows=100)
    found = boost(privet.open(rows_of(100, 2), domain, budget=1), Fraction(1, 10), np.random.default_rng(0))
    assert found.tables == () and "too little signal" in found.note


def test_public_coins_alone_decide_the_plan() -> None:
    """Two plans with one seed are the same, whatever the rows are."""
    domain = domain_of([40, 40, 40], rows=100_000)
    plans = [plan(domain, 1e5, Fraction(1), np.random.default_rng(5), CONSTANTS) for _ in range(2)]
    assert plans[0] == plans[1]
    assert {step.columns for step in plans[0].steps if step.columns} == {("a0",), ("a1",), ("a2",)}


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
    found = boost(table, Fraction(3), rng)
    assert table.budget.spent == 3
    assert all(np.isfinite(each.values).all() and np.isfinite(each.deviation).all() for each in found.tables)
    assert np.argmax(found.intercept) == 0


def test_several_rows_per_person_are_planned_by_what_each_row_pays() -> None:
    """A person with 20 rows pays 20 times: the plan is that of a twentieth of epsilon, and its price that of all."""
    one, many = domain_of([4, 3, 5], rows=5_000), replace(domain_of([4, 3, 5], rows=5_000), rows_per_person=20)
    few, same = (
        plan(each, 5e3, budget, np.random.default_rng(0), CONSTANTS)
        for each, budget in ((one, Fraction(1, 100)), (many, Fraction(1, 5)))
    )
    assert same.candidates == few.candidates
    assert [step.epsilon for step in same.steps] == [20 * step.epsilon for step in few.steps]


def test_a_column_with_a_comma_is_no_pair() -> None:
    """The kernel names a choice by its columns: a column "a, b" must not be taken for the table of a and b."""
    rng = np.random.default_rng(0)
    names = ("a", "b", "a, b")
    rows = pd.DataFrame({name: rng.integers(0, 2, 4_000) for name in names})
    rows["y"] = rows["a, b"]
    domain = Domain((*(Nominal(name, (0, 1)) for name in names), Nominal("y", (0, 1))), target="y", rows=4_000)
    found = boost(privet.open(rows, domain, budget=5), Fraction(5), np.random.default_rng(0))
    assert found.tables[0].columns in (("a, b",), ("a", "a, b"), ("b", "a, b"))


def test_rows_beyond_all_reason_make_a_plan_that_ends() -> None:
    domain = domain_of([2], rows=10**15)
    found = boost(
        privet.open(rows_of(50, 2)[["a0", "y"]].clip(0, 1), domain, budget=1), Fraction(1), np.random.default_rng(0)
    )
    assert len(found.tables) <= CONSTANTS.max_steps

"""Finer cells for learning: by a public rule, on the declared grid, and without another charge."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.kernel import AdditiveModel, Domain, Nominal, Numeric
from privet.lab import worst_loss
from privet.learners.cells import (
    AMPLE,
    COARSE,
    DENSE,
    FINEST,
    PIECES,
    FinerTable,
    cells_for_learning,
    coarse_columns,
)
from privet.models.model import Model
from privet.models.tables import Table

CLASS = Nominal("y", ("no", "yes"))


def number(points: int, **bins: Any) -> Numeric:
    return Numeric("x", Fraction(0), Fraction(points - 1), Fraction(1), **bins)


def finer(column: Numeric, signal: float = 10**6) -> Numeric:
    return cells_for_learning(Domain((column, CLASS), target="y"), signal).numeric("x")


@given(st.integers(2, 500), st.data())
@settings(derandomize=True, max_examples=200, deadline=None)
def test_declared_edges_stay_edges_and_cells_stay_few(points: int, data: st.DataObject) -> None:
    """Would catch a value that leaves its declared bin, an empty cell, and more cells than the rule allows."""
    starts = data.draw(st.lists(st.integers(1, points - 1), max_size=min(30, points - 1), unique=True))
    edges = tuple(Fraction(start) for start in sorted(starts))
    signal = data.draw(st.sampled_from([0, 1, 499, 500, 3999, 4000, 39_999, 10**9]))
    column = number(points, edges=edges)
    cut = finer(column, signal)
    assert set(column.thresholds) <= set(cut.thresholds)
    if column.bin_count > COARSE or column.bin_count == points:
        assert cut == column
    else:
        most = max((cells for least, cells in FINEST if signal >= least), default=0)
        assert column.bin_count <= cut.bin_count <= max(column.bin_count, most)
    parts = np.bincount(cut.bin_of(np.arange(points)))
    assert parts.min() >= 1


def test_every_bin_is_divided_evenly() -> None:
    assert finer(number(200, bins=10)).labels[:3] == ("[0, 5)", "[5, 10)", "[10, 15)")
    skewed = finer(number(1000, edges=(Fraction(10), Fraction(100))))
    inside = [sum(first <= start < end for start in (0, *skewed.thresholds)) for first, end in ((0, 10), (10, 100))]
    assert (*inside, skewed.bin_count) == (10, 13, 36)
    assert finer(number(16, bins=10)).bin_count == 16


def test_numbers_that_are_divided_with_care_and_other_columns_are_left_alone() -> None:
    for name in ("census", "adult", "nursery", "mushroom"):
        domain = privet.datasets.census_domain() if name == "census" else privet.datasets.domain(name)
        assert cells_for_learning(domain, AMPLE - 1) is domain and coarse_columns(domain) == []


def test_bins_of_amounts_are_divided_where_there_is_signal_for_it() -> None:
    """Columns of many bins: of Adult, capital gains and losses."""
    adult = privet.datasets.domain("adult")
    ample = cells_for_learning(adult, AMPLE)
    finer = {name: ample[name].size for name in adult.names if ample[name] != adult[name]}
    assert set(finer) == {"capital-gain", "capital-loss"}
    assert all(adult[name].size < size <= PIECES * adult[name].size for name, size in finer.items())
    assert finest_of(number(10_000, bins=DENSE - 1)) == DENSE - 1
    assert finest_of(number(10_000, bins=DENSE)) == PIECES * DENSE
    assert finest_of(number(10_000, bins=200)) == 400 and finest_of(number(10_000, bins=300)) == 300  # at most 512
    assert finest_of(number(60, bins=50)) == 60  # its grid points


def finest_of(column: Numeric) -> int:
    return finer(column, AMPLE).bin_count


def test_a_domain_of_very_many_columns_stays_as_it_is() -> None:
    columns = [replace(number(1000, bins=10), name=f"x{place}") for place in range(900)]
    domain = Domain((*columns, CLASS), target="y")
    assert cells_for_learning(domain, 10**9) is domain


def test_boosted_tables_learn_between_declared_edges(tmp_path: Any) -> None:
    """The class changes at 25, in the middle of a bin: in declared bins nobody could be right in it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.integers(0, 100, 20_000)})
    frame["y"] = np.where(frame.x < 25, "yes", "no")
    domain = Domain((number(100, bins=2), CLASS), target="y")
    with privet.testing.seeded_noise(0):
        table = privet.open(frame, domain, budget=2)
    boosted = privet.BoostedTablesClassifier(epsilon=1).fit(table)
    assert boosted.score(frame, frame.y) > 0.99
    assert table.budget.spent == boosted.privacy_.spent == 1
    assert boosted.model_.domain["x"].size == 40 and table.domain == domain
    boosted.model_.save(tmp_path / "model.json")
    assert (Model.load(tmp_path / "model.json").predict(frame) == frame.y).mean() > 0.99
    right = table.with_cells(boosted.model_.domain).count_correct(boosted.model_.additive, 1)
    assert abs(right / len(frame) - boosted.score(frame, frame.y)) < 0.01


def test_a_fit_under_a_key_is_the_same_in_finer_cells(tmp_path: Any) -> None:
    """The shadow that such a fit runs on, and the ledger that keeps the model, know nothing of cells."""
    frame = pd.DataFrame({"x": np.arange(5000) % 100})
    frame["y"] = np.where(frame.x < 25, "yes", "no")
    domain = Domain((number(100, bins=2), CLASS), target="y")
    table = privet.open(frame, domain, budget=1, ledger=tmp_path / "ledger.db", name="numbers")
    first, again = (privet.BoostedTablesClassifier(epsilon=1).fit(table, key="model") for _ in range(2))
    assert first.model_.to_json() == again.model_.to_json() and table.budget.spent == 1
    assert first.model_.domain["x"].size == 40 and first.domain_ == domain


def test_a_part_by_bins_is_learned_from_in_finer_cells() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.integers(0, 100, 20_000), "z": rng.integers(0, 100, 20_000)})
    frame["y"] = np.where(frame.z < 25, "yes", "no")
    domain = Domain((number(100, bins=2), replace(number(100, bins=2), name="z"), CLASS), target="y")
    table = privet.open(frame, domain, budget=1)
    boosted = privet.BoostedTablesClassifier(epsilon=1).fit(table.partition("x")["[0, 50)"])
    inside = frame[frame.x < 50]
    assert boosted.model_.domain["z"].size == 40 and boosted.score(inside, inside.y) > 0.99
    assert table.budget.spent == 1


def test_pairs_are_still_learned_from_in_declared_bins() -> None:
    """The class is a matter of two numbers together: in finer bins a table of both would have too many cells."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.integers(0, 100, 20_000), "z": rng.integers(0, 100, 20_000)})
    frame["y"] = np.where((frame.x < 50) ^ (frame.z < 50), "yes", "no")
    domain = Domain((number(100, bins=4), replace(number(100, bins=4), name="z"), CLASS), target="y")
    with privet.testing.seeded_noise(1):
        table = privet.open(frame, domain, budget=1)
    boosted = privet.BoostedTablesClassifier(epsilon=1).fit(table)
    assert boosted.score(frame, frame.y) > 0.9
    assert {column for own in boosted.model_.tables for column in own.columns} == {"x", "z"}
    assert any(len(own.columns) == 2 for own in boosted.model_.tables)


def test_tables_of_both_kinds_of_bins_are_merged_exactly() -> None:
    wage = replace(number(100, bins=2), missing=True)
    town = Nominal("town", ("a", "b", "c"))
    domain = Domain((wage, town, CLASS), target="y")
    table = privet.open(pd.DataFrame({"x": [1], "town": ["a"], "y": ["no"]}), domain, budget=1)
    finer = FinerTable(table, 10**6)
    (copy,) = finer.columns(["x"])
    rng = np.random.default_rng(0)
    alone, pair = rng.normal(size=(41, 2)), rng.normal(size=(3, 3, 2))
    merged, (first, second) = finer.merged([Table((copy,), alone, alone), Table(("town", "x"), pair, pair)])
    assert first.columns == ("x",) and second.columns == ("town", "x") and merged["x"].size == 41
    values = [*range(100), None]
    codes, declared = merged["x"].encode(values), domain["x"].encode(values)
    np.testing.assert_array_equal(first.values[codes], alone[finer.domain[copy].encode(values)])
    for row in range(3):
        np.testing.assert_array_equal(second.values[row][codes], pair[row][declared])
    same, _ = finer.merged([Table(("town", "x"), pair, pair)])
    assert same == domain  # nothing was learned in finer bins: none are published


def test_every_outcome_of_a_fit_in_finer_cells_keeps_the_promise() -> None:
    """The declared rows make the rule divide bins on tables so small that all outcomes can be listed."""
    domain = Domain((number(4, bins=1), CLASS), target="y", rows=600)
    frame = pd.DataFrame({"x": [0, 1, 3, 3], "y": ["no", "yes", "yes", "no"]})

    def run(table: Any) -> Any:
        finer = FinerTable(table, 600)
        (copy,) = finer.columns(["x"])
        sums = finer.table.residual_sums(AdditiveModel((0, 0)), (copy,), (512, 512), "1/2")
        return sums.own.tolist(), int(finer.table.count("1/2"))

    found = worst_loss(run, frame, frame.iloc[1:], domain, limit=200)
    assert 0.4 < found.loss <= 1 + 1e-9

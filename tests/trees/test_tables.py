"""A model that is a sum of tables: every prediction is the sum it shows, and edits do what they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from privet.column import Nominal
from privet.domain import Domain
from privet.errors import DataError, ModelError
from privet.trees.record import Privacy
from privet.trees.tables import Table, Tables

DOMAIN = Domain(
    (Nominal("a", ("x", "y", "z")), Nominal("b", (0, 1), missing=True), Nominal("c", ("no", "yes"))), target="c"
)
PRIVACY = Privacy("boosted", "corrected", Fraction(1))


def table(*columns: str, seed: int = 0, epsilon: str = "0.1") -> Table:
    rng = np.random.default_rng(seed)
    shape = (*(DOMAIN[name].size for name in columns), 2)
    return Table(columns, rng.normal(size=shape), np.abs(rng.normal(size=shape)), Fraction(epsilon))


MODEL = Tables(DOMAIN, (0.5, -0.5), (table("a"), table("b", "a", seed=1), table("a", seed=2)), PRIVACY)
ROWS = pd.DataFrame({"a": ["x", "z", "y", "unheard of"], "b": [0, 1, None, 1], "c": ["no", "yes", "no", "no"]})


def test_a_prediction_is_the_sum_of_what_the_tables_say() -> None:
    expected = (
        np.array([0.5, -0.5]) + MODEL.tables[0].values[2] + MODEL.tables[1].values[1, 2] + MODEL.tables[2].values[2]
    )
    np.testing.assert_allclose(MODEL.logits(ROWS)[1], expected)
    shares = MODEL.predict_proba(ROWS)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares[1], np.exp(expected) / np.exp(expected).sum())
    assert MODEL.predict(ROWS).tolist() == ["no" if no > yes else "yes" for no, yes in shares]


def test_a_value_that_fits_no_cell_says_nothing() -> None:
    """A row of unheard-of values takes the intercept; a missing value has a cell where the domain gives it one."""
    np.testing.assert_allclose(MODEL.logits(ROWS)[3], [0.5, -0.5])
    assert not np.allclose(MODEL.contributions(ROWS)[1][2], 0)


def test_an_explanation_adds_up_to_the_prediction() -> None:
    told = MODEL.explain(ROWS)
    assert told["table"].unique().tolist() == ["intercept", "a", "b and a"]
    np.testing.assert_allclose(told.groupby("row")[["no", "yes"]].sum().to_numpy(), MODEL.logits(ROWS))


def test_merging_changes_no_prediction() -> None:
    merged = MODEL.merged()
    assert [each.columns for each in merged.tables] == [("a",), ("b", "a")]
    np.testing.assert_allclose(merged.logits(ROWS), MODEL.logits(ROWS))
    assert merged.tables[0].epsilon == Fraction(1, 5)
    np.testing.assert_allclose(
        merged.tables[0].deviation, np.hypot(MODEL.tables[0].deviation, MODEL.tables[2].deviation)
    )


def test_a_table_can_be_dropped_or_rewritten() -> None:
    without = MODEL.without("a", "b")
    assert [each.columns for each in without.tables] == [("a",), ("a",)]
    edited = MODEL.without("a").with_values(("b", "a"), np.zeros((3, 3, 2)))
    np.testing.assert_allclose(edited.logits(ROWS), np.tile([0.5, -0.5], (4, 1)))
    assert edited.privacy is PRIVACY  # what was released stays released
    with pytest.raises(ModelError, match=r"no table of b; it has a, b and a\."):
        MODEL.without("b")


def test_importance_is_shared_by_the_attributes_of_a_table() -> None:
    found = MODEL.importance
    assert list(found) == ["a", "b"]
    pair = MODEL.tables[1].weight / 2
    assert found["b"] == pytest.approx(pair)
    assert found["a"] > pair


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ModelError, match="2 numbers, one for each class"):
        Tables(DOMAIN, (1.0,), (), PRIVACY)
    with pytest.raises(ModelError, match="does not have the cells"):
        Tables(DOMAIN, (0.0, 0.0), (Table(("a",), np.zeros((2, 2)), np.zeros((2, 2))),), PRIVACY)
    with pytest.raises(DataError, match="no column 'a'"):
        MODEL.predict(ROWS.drop(columns="a"))


def test_a_model_without_tables_predicts_the_intercept() -> None:
    prior = Tables(DOMAIN, (0.0, 1.0), (), PRIVACY, note="too little signal")
    assert prior.predict(ROWS).tolist() == ["yes"] * 4
    assert repr(prior) == "<boosted: 0 tables for 'c', epsilon 1>"


def test_nobody_can_change_a_published_table() -> None:
    with pytest.raises(ValueError, match="read-only"):
        MODEL.tables[0].values[0, 0] = 9

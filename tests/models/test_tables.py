"""A model that is a sum of tables: every prediction is the sum it shows, and edits do what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privet.errors import DataError, ModelError
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.models.model import Model
from privet.models.privacy_record import Privacy
from privet.models.tables import Table, Tables
from privet.models.tree import Ensemble

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
    assert not np.allclose(list(MODEL.contributions(ROWS))[1][2], 0)


def test_an_explanation_adds_up_to_the_prediction() -> None:
    told = MODEL.explain(ROWS)
    assert told["table"].unique().tolist() == ["intercept", "a", "b and a"]
    odds = told.groupby("row")[["log odds of no", "log odds of yes"]].sum()
    np.testing.assert_allclose(odds.to_numpy(), MODEL.logits(ROWS))


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
    assert edited.note == "edited by hand: without the table of a; edited by hand: other values for b and a"
    with pytest.raises(ModelError, match=r"no table of b; it has a, b and a\."):
        MODEL.without("b")


def test_importance_is_what_attributes_add_alone_and_half_of_what_they_add_together() -> None:
    a, b = np.array([-1.0, 0.0, 1.0]), np.array([-2.0, 0.0, 2.0])
    both = np.outer(b, a)  # no effect of one alone
    values = b[:, None] + a[None, :] + both  # [b, a]
    sum_of = Tables(
        DOMAIN, (0.0, 0.0), (Table(("b", "a"), np.stack([-values, values], -1), np.zeros((3, 3, 2))),), PRIVACY
    )
    half = np.sqrt((both**2).mean()) / 2
    assert sum_of.importance == pytest.approx({"a": np.sqrt((a**2).mean()) + half, "b": np.sqrt((b**2).mean()) + half})
    opposite = replace(sum_of, tables=(*sum_of.tables, Table(("a",), np.stack([a, -a], -1), np.zeros((3, 2)))))
    assert opposite.importance["a"] == pytest.approx(half)  # two tables that say the opposite say nothing


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


def test_a_file_holds_all_there_is() -> None:
    again = Model.from_json(MODEL.to_json())
    assert isinstance(again, Tables)
    assert again.to_json() == MODEL.to_json()
    np.testing.assert_array_equal(again.logits(ROWS), MODEL.logits(ROWS))
    with pytest.raises(ModelError, match=r"the model is one of 3 tables, no Ensemble; read it with privet\.Model"):
        Ensemble.from_json(MODEL.to_json())


BROKEN: list[tuple[list[Any], Any, str]] = [
    (["tables"], {}, "the model has no list of tables"),
    (["tables", 0], [], "table 1 of the model is not a table"),
    (["tables", 1, "columns"], ["a", "a"], "table 2 of the model has columns other than one to four different ones"),
    (["tables", 1, "columns"], ["a", "c"], "table 2 of the model has a column that its domain does not declare"),
    (["tables", 0, "columns"], [], "table 1 of the model has columns other than one"),
    (["tables", 0, "epsilon"], "-1", "table 1 of the model has no cost"),
    (["tables", 0, "values"], [[1, 2]], "table 1 of the model does not have the cells of its columns"),
    (["tables", 0, "values", 0, 0], "1", "table 1 of the model has a number that is none"),
    (["tables", 0, "values", 0], 1, "table 1 of the model does not have the cells of its columns"),
    (["tables", 0, "deviation", 0, 0], -1, "table 1 of the model has a negative deviation"),
    (["tables", 0, "values", 0, 0], 101, "table 1 of the model has log odds beyond 100"),
    (["note"], "\ud800", "the model's note is not a text"),
    (["intercept"], [1], "the intercept of the model needs 2 numbers"),
    (["note"], 7, "the model's note is not a text"),
    (["privacy"], None, "privacy record is incomplete"),
]


@pytest.mark.parametrize(("place", "value", "message"), BROKEN, ids=lambda each: str(each)[:30])
def test_a_broken_file_is_one_sentence(place: list[Any], value: Any, message: str) -> None:
    content = json.loads(MODEL.to_json())
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(ModelError, match=message):
        Model.from_json(json.dumps(content))


def test_plain_trees_predict_the_same() -> None:
    """A table is a tree of one or two levels; rows that fit no cell end above its leaves, which say nothing."""
    trees = MODEL.to_trees()
    assert [tree.leaves for tree in trees.trees] == [1, 3, 9]
    odd = pd.concat([ROWS, pd.DataFrame({"a": ["x", "?"], "b": [7, 0], "c": ["no", "no"]})])
    np.testing.assert_allclose(trees.predict_proba(odd), MODEL.predict_proba(odd), atol=1e-12)
    again = Model.from_json(trees.to_json())
    np.testing.assert_allclose(again.predict_proba(odd), MODEL.predict_proba(odd), atol=1e-12)
    assert trees.privacy == MODEL.privacy


def test_rules_tell_every_cell() -> None:
    rules = MODEL.rules()
    assert rules[0] == "to begin with: no 73%, yes 27%"
    assert len(rules) == 1 + 3 + 9
    factor = np.exp(MODEL.merged().tables[0].values[0, 1])
    assert rules[1].startswith("if a = x then no x ") and rules[1].endswith(f"yes x {factor:.2f}")


def test_an_edit_that_cannot_be_is_one_sentence() -> None:
    for values in (np.zeros((2, 2)), np.full((3, 2), np.nan), [["x", "y"]], np.full((3, 2), 1e9)):
        with pytest.raises(ModelError, match=r"table of a has shape|are numbers, log odds"):
            MODEL.with_values("a", values)
    with pytest.raises(ModelError, match=r"no table of nothing; it has a, b and a\."):
        MODEL.without()


def test_tables_of_the_same_columns_in_another_order_are_one() -> None:
    turned = replace(MODEL, tables=(*MODEL.tables, table("a", "b", seed=4)))
    assert [each.columns for each in turned.merged().tables] == [("a",), ("b", "a")]
    np.testing.assert_allclose(turned.merged().logits(ROWS), turned.logits(ROWS))

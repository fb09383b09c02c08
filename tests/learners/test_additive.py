"""Estimators that are sums of tables: log-odds, importance, calibration and naive Bayes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from learners.classifiers import DOMAIN, SURE, TABLES, X, Y, _new
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import privet
from privet.errors import QuestionError
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain

every_of_tables = pytest.mark.parametrize("make", TABLES, ids=lambda make: make.algorithm)


@every_of_tables
def test_log_odds_agree_with_shares_and_classes(make: Any) -> None:
    fitted = _new(make).fit(X, Y)
    odds, shares = fitted.decision_function(X), fitted.predict_proba(X)
    assert odds.shape == (400,)  # of the second of two classes
    np.testing.assert_allclose(1 / (1 + np.exp(-odds)), shares[:, 1], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(fitted.classes_[(odds > 0).astype(int)], fitted.predict(X))
    domain = replace(DOMAIN, columns=(*DOMAIN.columns[:2], Nominal("ill", ("c", "a", "b")), DOMAIN.columns[3]))
    labels = np.array(["a", "b", "c"])[np.minimum(X["age"] // 34, 2)]
    several = _new(make, domain=domain).fit(X, labels)
    assert several.decision_function(X).shape == (400, 3)
    np.testing.assert_array_equal(several.classes_[several.decision_function(X).argmax(axis=1)], several.predict(X))


@every_of_tables
def test_importance_is_that_of_the_columns_in_their_order(make: Any) -> None:
    fitted = _new(make).fit(X[["town", "age", "sex"]], Y)
    found = fitted.feature_importances_
    assert found.shape == (3,) and (found >= 0).all()
    if make is privet.PriorClassifier:
        assert not found.any()
    else:
        assert found.argmax() == 1  # age decides
        assert found.sum() == pytest.approx(1)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        _ = clone(fitted).feature_importances_
    with pytest.raises(NotFittedError, match="not fitted yet"):
        clone(fitted).decision_function(X)


def _reliability(shares: Any, outcome: Any) -> float:
    """The mean distance between what is said and what happens, over tenths of the rows by what is said."""
    order = np.argsort(shares)
    return float(np.mean([abs(shares[part].mean() - outcome[part].mean()) for part in np.array_split(order, 10)]))


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_boosted_shares_are_calibrated(epsilon: float) -> None:
    """Of the rows said to be of a class with 30%, about 30% are: on people the model never saw, at every epsilon."""
    domain = privet.datasets.census_domain()
    with privet.open(privet.datasets.census(30_000), domain, budget=epsilon) as table:
        fitted = privet.BoostedTablesClassifier(epsilon).fit(table)
    later = privet.datasets.census(20_000, seed=5)
    shares = fitted.predict_proba(later)[:, 1]
    assert _reliability(shares, (later["income"] == fitted.classes_[1]).to_numpy()) < 0.04


def test_only_tables_of_one_attribute_where_pairs_are_not_wanted() -> None:
    fitted = _new(privet.BoostedTablesClassifier, epsilon=100, pairs=False).fit(X, Y)
    assert {len(table.columns) for table in fitted.model_.tables} == {1}


def test_little_signal_returns_the_class_shares_and_says_so() -> None:
    fitted = privet.BoostedTablesClassifier(0.01, domain=replace(DOMAIN, rows=400)).fit(X, Y)
    assert fitted.model_.tables == ()
    assert "too little signal for a table" in fitted.model_.note
    assert fitted.privacy_.spent == Fraction(1, 100)
    assert fitted.model_.note in fitted.model_.text()


@every_of_tables
@pytest.mark.parametrize("empty", ["no rows", "all missing", "one class", "constant attribute"])
def test_tables_with_nothing_to_learn_from_are_fitted_like_others(make: Any, empty: str) -> None:
    """Whatever the rows are, the fit costs epsilon and its model predicts: an error would tell about them."""
    rows = {
        "no rows": X.assign(town="elsewhere"),
        "all missing": X.assign(age=np.nan, sex="x"),
        "one class": X,
        "constant attribute": X.assign(age=3, sex="f", town="a"),
    }[empty]
    labels = np.full(400, "yes") if empty == "one class" else Y
    for epsilon in (Fraction(1, 10), Fraction(10)):
        fitted = _new(make, epsilon=epsilon).fit(rows, labels)
        assert fitted.privacy_.spent == epsilon
        assert np.isfinite(fitted.predict_proba(X)).all()
    if empty == "one class" and make is not privet.NaiveBayesClassifier:
        assert (fitted.predict(X) == "yes").mean() > 0.95


@pytest.mark.parametrize("make", [privet.BoostedTablesClassifier, privet.NaiveBayesClassifier])
def test_tables_that_cannot_be_are_refused_before_anything_is_charged(make: Any) -> None:
    wide = Domain((Nominal("a", tuple(range(60_000))), Nominal("y", tuple(range(400)))), target="y")
    none = Domain((Nominal("y", (0, 1)),), target="y")
    cases: list[tuple[Domain, Any, str]] = [
        (wide, 1, "need 24000000 cells, at most 4194304 are possible; declare coarser bins, of 'a' first"),
        (none, 1, "declares no column besides the target"),
        (DOMAIN, "3e-8", "epsilon=0.00000003 is too small to be divided among 3 attributes; take at least"),
    ]
    for domain, epsilon, said in cases:
        rows = pd.DataFrame({column.name: [column.texts[0]] for column in domain if isinstance(column, Nominal)})
        with privet.open(rows.assign(age=3) if domain is DOMAIN else rows, domain, budget=2) as table:
            with pytest.raises(QuestionError, match=said):
                make(epsilon=float(epsilon)).fit(table)
            assert table.budget.spent == 0


def test_a_bought_number_of_rows_is_never_followed_by_a_refusal() -> None:
    """Where rows are not public they are bought; a tree that turns out too large then is made less deep."""
    domain = Domain((*(Nominal(f"a{i}", tuple(range(12))) for i in range(8)), Nominal("y", (0, 1))), target="y")
    rows = pd.DataFrame({**{f"a{i}": np.arange(5_000) % 12 for i in range(8)}, "y": np.arange(5_000) % 2})
    with privet.open(rows, domain, budget=20) as table:
        fitted = privet.ID3PlusClassifier(epsilon=20, max_depth=8, max_leaves=100).fit(table)
        assert table.budget.spent == 20
    assert fitted.model_.tree.leaves <= 100


def test_columns_that_are_not_declared_or_have_numbers_for_names() -> None:
    fitted = _new(privet.NaiveBayesClassifier).fit(X.assign(extra=1), Y)
    assert fitted.feature_importances_.shape == (4,) and fitted.feature_importances_[3] == 0
    domain = Domain((Nominal("0", (0, 1)), Nominal("1", (0, 1)), Nominal("y", (0, 1))), target="y")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (300, 2)), columns=[1, 0])
    numbered = privet.NaiveBayesClassifier(SURE, domain=domain).fit(frame, frame[1])
    assert numbered.score(frame, frame[1]) == numbered.score(frame.to_numpy(), frame[1]) == 1.0
    assert numbered.feature_importances_.argmax() == 0


def test_naive_bayes_multiplies_likelihoods() -> None:
    """One attribute, three classes: the shares are those of the cell, as Bayes' rule says."""
    domain = Domain((Nominal("a", (0, 1)), Nominal("y", (0, 1, 2))), target="y")
    truth = np.array([[0.5, 0.49, 0.01], [0.05, 0.05, 0.9]])
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": np.repeat([0, 1], 50_000)})
    rows["y"] = [int(rng.choice(3, p=truth[a])) for a in rows["a"]]
    fitted = privet.NaiveBayesClassifier(100, domain=domain).fit(rows[["a"]], rows["y"])
    np.testing.assert_allclose(fitted.predict_proba(pd.DataFrame({"a": [0, 1]})), truth, atol=0.01)

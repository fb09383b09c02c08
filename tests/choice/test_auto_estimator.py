"""AutoClassifier as scikit-learn meets it: its own checks, and the tools that clone, copy and search."""

from __future__ import annotations

import gc
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sizes import FULL, sized
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import privet
from privet.choice.arms import ARMS
from privet.choice.auto import CLASSIFIERS, AutoClassifier, shipped
from privet.choice.catalog import ALGORITHMS
from privet.kernel.engines.memory.engine import MemoryEngine

TWO_FITS = "it fits twice and compares: noise is never seeded, so that two private fits may differ"
MAY_FAIL = {"check_classifier_data_not_an_array": TWO_FITS, "check_fit_idempotent": TWO_FITS}

DOMAIN = privet.datasets.census_domain()


def people(rows: int = 1500) -> tuple[pd.DataFrame, pd.Series[str]]:
    frame = privet.datasets.census(rows, seed=rows)
    return frame.drop(columns="income"), frame["income"].astype(str)


@sized
@pytest.mark.filterwarnings("ignore::privet.errors.PrivacyLeakWarning")  # the checks give no domain
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # its own, of infinite labels
@parametrize_with_checks(
    [
        AutoClassifier(epsilon=1000, objective=objective)
        for objective in (["accuracy", "auc"] if FULL else ["accuracy"])
    ],
    expected_failed_checks=lambda estimator: MAY_FAIL,
    xfail_strict=False,  # two noisy fits often agree
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_it_is_public_and_first_of_all() -> None:
    assert privet.AutoClassifier is AutoClassifier and "AutoClassifier" in privet.__all__
    assert list(CLASSIFIERS) == list(ALGORITHMS) and next(iter(CLASSIFIERS)) == "auto"


def test_clones_and_copies(tmp_path: Path) -> None:
    X, y = people()
    (tmp_path / "own.json").write_text(shipped("auc").to_json())
    fitted = AutoClassifier(epsilon=1, domain=DOMAIN, objective="auc", policy=tmp_path / "own.json").fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.privacy_ == fitted.privacy_ and repr(again.choice_) == repr(fitted.choice_)
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert not hasattr(fresh, "model_") and not hasattr(fresh, "choice_")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        fresh.predict(X)
    held = clone(AutoClassifier(policy=shipped("auc")))
    assert held.policy == shipped("auc")


def test_no_row_is_kept_in_a_copy() -> None:
    mark = "somebody's town"
    X, y = people(300)
    fitted = AutoClassifier(epsilon=1, domain=DOMAIN).fit(X.assign(town=mark), y)
    fitted.predict(X.assign(town=mark))
    assert mark.encode() not in pickle.dumps(fitted)


def test_it_is_the_end_of_a_pipeline() -> None:
    X, y = people()
    younger = FunctionTransformer(lambda rows: rows.assign(age=rows["age"].clip(20, 60)))
    pipeline = make_pipeline(younger, AutoClassifier(epsilon=4, domain=DOMAIN, objective="auc"))
    pipeline.set_params(autoclassifier__objective="accuracy").fit(X, y)
    assert pipeline.score(X, y) > 0.6
    assert pipeline[-1].privacy_.spent == 4 and pipeline[-1].choice_.branch in ARMS


def test_scikit_learn_searches_epsilons_and_folds() -> None:
    """On generated rows, which are public: every fit of a search is one more release."""
    X, y = people(900)
    tried = ["0.001", 50]
    search = GridSearchCV(AutoClassifier(domain=DOMAIN), {"epsilon": tried}, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_ == {"epsilon": 50}
    assert search.best_estimator_.privacy_.spent == Fraction(50)
    scores = cross_val_score(AutoClassifier(epsilon=50, domain=DOMAIN), X, y, cv=3, error_score="raise")
    assert scores.shape == (3,) and scores.mean() > 0.6


def test_a_fitted_classifier_has_no_way_to_the_rows() -> None:
    """Nothing that it holds leads to an engine: not even the counts that it chose by, which a table could refine."""
    people = privet.datasets.census(300)
    before = {id(each) for each in gc.get_objects() if isinstance(each, MemoryEngine)}
    auto = privet.AutoClassifier(epsilon=1, domain=privet.datasets.census_domain())
    auto.fit(people.drop(columns="income"), people.income.astype(str))
    gc.collect()
    assert [each for each in gc.get_objects() if isinstance(each, MemoryEngine) and id(each) not in before] == []
    with pytest.raises(privet.errors.QuestionError, match="cannot be refined"):
        auto.choice_._counts.refine(2)


def test_a_closed_engine_keeps_no_row() -> None:
    table = privet.open(privet.datasets.census(300), privet.datasets.census_domain(), budget=1)
    engine = table._session.engine
    table.close()
    for array in (engine._codes, engine._grids):
        assert array.size == 0 and array.base is None

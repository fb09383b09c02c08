"""The scikit-learn classes: its own checks, pipelines, votes, what was promised, and what stays behind."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from learners.classifiers import (
    DOMAIN,
    EVERY,
    FILLABLE,
    FORESTS,
    LEARNING,
    PLAIN,
    SURE,
    TABLES,
    X,
    Y,
    _new,
    each_kind,
    each_learning_kind,
    every,
    every_fillable,
    every_private,
)
from sizes import FULL, sized
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import privet
from privet.errors import NotPrivate, PrivacyLeakWarning
from privet.kernel.session import Session
from privet.learners.estimators import CLASSIFIERS
from privet.learners.presets import ALGORITHMS
from privet.table import Parts, ProtectedTable

every_forest = pytest.mark.parametrize("make", FORESTS, ids=lambda make: make.algorithm)


# -- scikit-learn's own checks ------------------------------------------------------------------


TWO_FITS = "it fits twice and compares: noise is never seeded, so that two private fits may differ"
MAY_FAIL: dict[str, dict[str, str]] = {
    # thresholds are drawn from ranges with equal scores, and pruning cuts one tree and spares the other
    "DiffPC45Classifier": {"check_classifier_data_not_an_array": TWO_FITS, "check_supervised_y_2d": TWO_FITS},
    # the posterior of a cell is as fine as a float, and equal logits are rare
    "BoostedTablesClassifier": {"check_classifier_data_not_an_array": TWO_FITS, "check_fit_idempotent": TWO_FITS},
    "PatilSinghForestClassifier": {"check_classifier_data_not_an_array": TWO_FITS, "check_supervised_y_2d": TWO_FITS},
}


# At a small size one of each kind: they share their base classes.
CHECKED = [make for make in EVERY if FULL or make.algorithm in ("id3", "diffpid3", "hanisch-forest", "boosted")]


def _checked(make: Any) -> Any:
    few = {} if make not in FORESTS else {"n_estimators": 10 if make.algorithm == "jagannathan" else 3}
    return make(epsilon=1000, **few)


@sized
@pytest.mark.filterwarnings("ignore::privet.errors.PrivacyLeakWarning")  # the checks give no domain
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # its own, of infinite labels
@parametrize_with_checks(
    [_checked(make) for make in CHECKED],
    expected_failed_checks=lambda estimator: MAY_FAIL.get(type(estimator).__name__, {}),
    xfail_strict=False,  # two noisy fits often agree
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


# -- the contract, class by class ---------------------------------------------------------------


def test_every_preset_has_a_public_class() -> None:
    assert list(CLASSIFIERS) == list(ALGORITHMS)
    for make in EVERY:
        assert getattr(privet, make.__name__) is make
        assert make.__name__ in privet.__all__


@every
def test_clones_and_copies_predict_alike(make: Any) -> None:
    fitted = _new(make).fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.model_.to_json() == fitted.model_.to_json()
    assert again.privacy_ == fitted.privacy_
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert not hasattr(fresh, "model_")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        fresh.predict(X)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        _ = fresh.privacy_


@every
def test_what_comes_out_has_the_shapes_and_classes_of_the_domain(make: Any) -> None:
    frame, labels = X.copy(), Y.copy()
    fitted = _new(make).fit(frame, labels)
    pd.testing.assert_frame_equal(frame, X)  # what came in is as it was
    assert fitted.classes_.tolist() == ["no", "yes"]  # sorted, as scikit-learn has them; the domain has another order
    assert fitted.n_features_in_ == 3
    assert fitted.feature_names_in_.tolist() == ["age", "sex", "town"]
    shares = fitted.predict_proba(X)
    assert shares.shape == (400, 2)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares >= 0).all()
    said = fitted.predict(X)
    assert set(said) <= {"yes", "no"}
    most = shares.max(axis=1, keepdims=True)
    assert (shares[np.arange(400), np.searchsorted(fitted.classes_, said)] == most[:, 0]).all()
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), shares)
    np.testing.assert_array_equal(said, fitted.model_.predict(X))
    assert fitted.score(X, Y) == pytest.approx((said == Y).mean())
    learned = fitted.model_.domain
    assert fitted.domain_ == DOMAIN == learned.with_bins_of(DOMAIN)
    assert learned == DOMAIN or fitted.algorithm in ("auto", "boosted")  # these divide coarse bins, see test_cells.py


GREEDY = [make for make in LEARNING if make not in FILLABLE]


@pytest.mark.parametrize("make", GREEDY, ids=lambda make: make.algorithm)
def test_what_looks_learns_what_is_easy(make: Any) -> None:
    assert _new(make).fit(X, Y).score(X, Y) == 1.0


@every_fillable
def test_random_trees_learn_what_is_easy_where_they_use_everything(make: Any) -> None:
    assert _new(make, max_depth=3).fit(X, Y).score(X, Y) == 1.0


# -- inside scikit-learn ------------------------------------------------------------------------


@each_learning_kind
def test_pipelines_and_cross_validation(make: Any) -> None:
    choices = {"max_depth": 3} if make in FILLABLE else {}
    rows = X.astype({"age": float}).copy()
    rows.loc[::40, "age"] = np.nan
    filled = ColumnTransformer(
        [("age", SimpleImputer(strategy="median"), ["age"])], remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    pipeline = make_pipeline(filled, _new(make, **choices))
    assert pipeline.fit(rows, Y).score(rows, Y) > 0.9
    same = make_pipeline(FunctionTransformer(), _new(make, **choices))
    assert cross_val_score(same, X, Y, cv=3).mean() > 0.9
    assert cross_val_score(_new(make, **choices), X, Y, cv=3, scoring="roc_auc").mean() > 0.9
    assert cross_val_score(_new(make, **choices), X, Y, cv=3, scoring="neg_log_loss").mean() > -0.5


@each_kind
def test_grid_search(make: Any) -> None:
    # numpy's numbers, as a grid often has them
    enough = 50 if make in TABLES else SURE  # boosted tables take more steps the more there is to spend
    grid: dict[str, Any] = {"epsilon": [0.001, enough]}
    if make not in TABLES:
        grid["max_depth"] = np.arange(1, 4, 2)
    if make in FORESTS:
        grid["n_estimators"] = np.array([1, 5])
    search = GridSearchCV(_new(make), grid, cv=2).fit(X, Y)
    if make in LEARNING:
        assert search.best_params_["epsilon"] == enough
        assert search.best_score_ > 0.8
    assert search.best_estimator_.privacy_.spent <= enough


# -- votes --------------------------------------------------------------------------------------


@every_forest
def test_votes(make: Any) -> None:
    rng = np.random.default_rng(5)
    noisy = np.where(rng.random(400) < 0.3, "yes", Y)
    for vote in ("majority", "average", "weighted"):
        with privet.testing.seeded_noise(3):
            fitted = _new(make, epsilon=30, vote=vote, n_estimators=4, max_depth=2).fit(X, noisy)
        model = fitted.model_
        assert model.vote == vote
        leaves = [tree.counts[tree.find(*model._coded(X))] for tree in model.trees]
        if any((tree.first[tree.find(*model._coded(X))] >= 0).any() for tree in model.trees):
            continue  # some row stops above a leaf: test_model has that
        positive = [np.maximum(counts, 0) for counts in leaves]
        if vote == "weighted":
            total = np.sum(positive, axis=0)
            expected = total / total.sum(axis=1, keepdims=True)
        elif vote == "average":
            expected = np.mean([counts / counts.sum(axis=1, keepdims=True) for counts in positive], axis=0)
        else:
            expected = np.mean([np.eye(2)[np.argmax(counts, axis=1)] for counts in leaves], axis=0)
        usable = np.all([counts.sum(axis=1) > 0 for counts in positive], axis=0)
        assert usable.any()
        np.testing.assert_allclose(model.predict_proba(X)[usable], expected[usable])


# -- MaxTree's score, which is a parameter and a method -----------------------------------------


@pytest.mark.parametrize("make", [privet.MaxTreeClassifier, privet.MaxForestClassifier])
def test_score_is_a_parameter_and_a_method(make: Any) -> None:
    for score in ("sum", "literal"):
        fitted = _new(make, score=score).fit(X, Y)
        assert fitted.get_params()["score"] == score
        assert 0 <= fitted.score(X, Y) <= 1
        assert fitted.score(X, Y, sample_weight=np.ones(400)) == pytest.approx(fitted.score(X, Y))
        again = clone(fitted)
        assert again.get_params()["score"] == score
        assert again.fit(X, Y).score(X, Y) >= 0
        assert pickle.loads(pickle.dumps(fitted)).get_params()["score"] == score
        assert f"score='{score}'" in repr(make(score=score)) or score == "sum"
        changed = fitted.set_params(score="sum" if score == "literal" else "literal")
        assert changed.get_params()["score"] != score
    assert _new(make, score="sum").fit(X, Y).score(X, Y) == 1.0
    search = GridSearchCV(_new(make), {"score": ["sum", "literal"]}, cv=2).fit(X, Y)
    assert set(search.best_params_) == {"score"}
    assert 0 <= search.score(X, Y) <= 1


# -- what was promised --------------------------------------------------------------------------


def test_privacy_prints_what_was_promised_and_spent_per_level() -> None:
    fitted = _new(privet.DiffPID3Classifier, epsilon=1000, max_depth=1).fit(X, Y)
    assert str(fitted.privacy_).splitlines() == [
        "diffpid3, corrected variant",
        "pure epsilon 1000 per person, if no person has more than 1 row",
        "spent 1000 on the dearest path",
        "level  question      nodes  epsilon",
        "0      size          1      250",
        "0      split         1      250",
        "1      class counts  5      500",
    ]
    forest = _new(privet.HanischForestClassifier, epsilon="1/3", n_estimators=3)
    text = str(forest.fit(X, Y).partial_fit(X, Y).privacy_)  # type: ignore[attr-defined]
    assert "3 trees, whose losses add" in text
    assert "rows added later lost 1/3" in text
    several = _new(privet.MaxTreeClassifier, domain=replace(DOMAIN, rows_per_person=4)).fit(X, Y)
    assert "per person, if no person has more than 4 rows" in str(several.privacy_)


@every_private
def test_without_a_domain_the_model_says_that_it_leaks(make: Any) -> None:
    with pytest.warns(PrivacyLeakWarning, match="values, bounds and classes are read from the rows") as caught:
        fitted = _new(make, domain=None).fit(X, Y)
    assert caught[0].filename == __file__  # where the caller can see it
    assert not fitted.privacy_.private
    assert "its domain was read from the rows" in fitted.privacy_.reasons
    assert '"private": false' in fitted.model_.to_json()
    assert str(fitted.privacy_).splitlines()[1].startswith("NOT PRIVATE: its domain was read")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _new(make).fit(X, Y).privacy_.private


@pytest.mark.parametrize("make", PLAIN, ids=lambda make: make.algorithm)
def test_plain_trees_say_that_they_are_not_private(make: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for domain in (DOMAIN, None):
            fitted = make(domain=domain).fit(X, Y)
            assert fitted.privacy_.reasons == ("it reads public rows without noise",)
            assert fitted.privacy_.spent == 0
    with privet.open(X.assign(ill=Y), DOMAIN, budget=1) as table:
        with pytest.raises(NotPrivate, match="it reads rows without noise"):
            make().fit(table)
        assert table.budget.spent == 0


@every
def test_verbose_tells_progress_on_stderr(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _new(make).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    _new(make, verbose=1).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == "" and ("level 0 of" in err or "table 1 of" in err or "counting classes" in err)


# -- nothing of the rows stays behind -----------------------------------------------------------


MARK = "Q7zMarker"  # a value that stands in every row and in no domain


def _reachable(root: object) -> list[object]:
    """Everything an estimator holds, directly or through what it holds."""
    seen: dict[int, object] = {}
    waiting = [root]
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, type) or callable(found):
            continue
        seen[id(found)] = found
        if isinstance(found, dict):
            waiting += [*found.keys(), *found.values()]
        elif isinstance(found, list | tuple | set | frozenset):
            waiting += list(found)
        elif isinstance(found, np.ndarray) and found.dtype == object:
            waiting += found.ravel().tolist()
        waiting += list(getattr(found, "__dict__", {}).values())
    return list(seen.values())


@every_private
@pytest.mark.parametrize("how", ["frame", "array", "table", "part", "added"])
def test_estimators_and_their_pickles_hold_no_rows(make: Any, how: str) -> None:
    rows = X.assign(sex=MARK, name=MARK)
    declared = rows[["age", "sex", "town"]]
    fitted = _new(make, domain=None if how in ("table", "part") else DOMAIN)
    if how == "frame":
        fitted.fit(rows, Y)
    elif how == "array":
        fitted.fit(declared.to_numpy(), Y)
    elif how == "added":
        fitted.fit(X, Y)
        if make in FILLABLE:
            fitted.partial_fit(declared, Y)  # type: ignore[attr-defined]
    else:
        with privet.open(rows.assign(ill=Y), DOMAIN, budget=SURE) as table:
            fitted.fit(table if how == "table" else table.partition("town")["a"])
    content = pickle.dumps(fitted)
    assert MARK.encode() not in content and MARK not in fitted.model_.to_json()
    assert MARK not in repr(fitted.__dict__)
    held = _reachable(fitted)
    kinds = (pd.DataFrame, pd.Series, ProtectedTable, Parts, Session)
    assert not [each for each in held if isinstance(each, kinds)]
    inside = {type(each).__module__ for each in held if type(each).__module__.startswith("privet.kernel")}
    assert inside <= {"privet.kernel.column", "privet.kernel.domain"}  # no engine, no ledger
    assert not [each for each in held if isinstance(each, np.ndarray) and len(each) == len(X)]
    fitted.predict(declared.to_numpy() if how == "array" else rows if how == "frame" else declared)
    assert MARK.encode() not in pickle.dumps(fitted)  # nor those it predicted

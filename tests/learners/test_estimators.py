"""The scikit-learn classes: its own checks, what goes in and comes out, and what is refused in one sentence."""

from __future__ import annotations

import importlib
import os
import pickle
import warnings
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import privet
from privet.errors import DataError, DomainError, NotPrivate, PrivacyLeakWarning, QuestionError, UndeclaredDomain
from privet.kernel import Parts, ProtectedTable
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.session import Session
from privet.learners.catalog import ALGORITHMS
from privet.learners.estimator import PrivateClassifier
from privet.learners.estimators import CLASSIFIERS, TablesClassifier

EVERY = list(CLASSIFIERS.values())
PRIVATE = [make for make in EVERY if make.algorithm not in ("id3", "c45")]
PLAIN = [make for make in EVERY if make not in PRIVATE]
FORESTS = [make for make in EVERY if "n_estimators" in make.__dataclass_fields__]
FILLABLE = [make for make in EVERY if hasattr(make, "partial_fit")]
LEARNING = [make for make in EVERY if make is not privet.PriorClassifier]  # it looks at no attribute
TABLES = [make for make in EVERY if issubclass(make, TablesClassifier)]
SURE = 100_000  # no noise is to be seen

every = pytest.mark.parametrize("make", EVERY, ids=lambda make: make.algorithm)
every_learner = pytest.mark.parametrize("make", LEARNING, ids=lambda make: make.algorithm)
every_of_tables = pytest.mark.parametrize("make", TABLES, ids=lambda make: make.algorithm)
every_private = pytest.mark.parametrize("make", PRIVATE, ids=lambda make: make.algorithm)
every_forest = pytest.mark.parametrize("make", FORESTS, ids=lambda make: make.algorithm)
every_fillable = pytest.mark.parametrize("make", FILLABLE, ids=lambda make: make.algorithm)

DOMAIN = Domain(
    (
        Numeric("age", Fraction(0), Fraction(99), Fraction(1), bins=4, missing=True),
        Nominal("sex", ("f", "m"), other=True),
        Nominal("ill", ("yes", "no")),
        Nominal("town", ("a", "b", "c")),
    ),
    target="ill",
    max_rows=1000,
)


def _people(rows: int = 400) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(rows)
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 100, rows),
            "sex": rng.choice(["f", "m", "x"], rows),
            "town": rng.choice(["a", "b", "c"], rows),
        }
    )
    return frame, np.where(frame["age"] >= 50, "yes", "no")


X, Y = _people()


def _new(make: Any, **choices: Any) -> PrivateClassifier:
    """A classifier without noise to speak of, on a domain, small where it is a forest."""
    defaults: dict[str, Any] = {"epsilon": SURE, "domain": DOMAIN, "random_state": 0}
    if make in FORESTS:
        defaults["n_estimators"] = 5
    found = make(**{**defaults, **choices})
    assert isinstance(found, PrivateClassifier)
    return found


def _optional(name: str) -> Any:
    if os.environ.get("CI"):
        return importlib.import_module(name)
    return pytest.importorskip(name)


# -- scikit-learn's own checks ------------------------------------------------------------------

TWO_FITS = "it fits twice and compares: noise is never seeded, so that two private fits may differ"
MAY_FAIL: dict[str, dict[str, str]] = {
    # thresholds are drawn from ranges with equal scores, and pruning cuts one tree and spares the other
    "DiffPC45Classifier": {"check_classifier_data_not_an_array": TWO_FITS, "check_supervised_y_2d": TWO_FITS},
    # the posterior of a cell is as fine as a float, and equal logits are rare
    "BoostedTablesClassifier": {"check_classifier_data_not_an_array": TWO_FITS, "check_fit_idempotent": TWO_FITS},
    "PatilSinghForestClassifier": {"check_classifier_data_not_an_array": TWO_FITS, "check_supervised_y_2d": TWO_FITS},
}


def _checked(make: Any) -> Any:
    few = {} if make not in FORESTS else {"n_estimators": 10 if make.algorithm == "jagannathan" else 3}
    return make(epsilon=1000, **few)


@pytest.mark.filterwarnings("ignore::privet.errors.PrivacyLeakWarning")  # the checks give no domain
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # its own, of infinite labels
@parametrize_with_checks(
    [_checked(make) for make in EVERY],
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
    assert fitted.domain_ == fitted.model_.domain == DOMAIN


GREEDY = [make for make in LEARNING if make not in FILLABLE]


@pytest.mark.parametrize("make", GREEDY, ids=lambda make: make.algorithm)
def test_what_looks_learns_what_is_easy(make: Any) -> None:
    assert _new(make).fit(X, Y).score(X, Y) == 1.0


@every_fillable
def test_random_trees_learn_what_is_easy_where_they_use_everything(make: Any) -> None:
    assert _new(make, max_depth=3).fit(X, Y).score(X, Y) == 1.0


# -- rows and labels of every kind --------------------------------------------------------------


@every_learner
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "array", "list", "other order", "more columns"])
def test_rows_of_every_kind_are_read_alike(make: Any, kind: str) -> None:
    rows: Any = X
    if kind == "polars":
        _optional("pyarrow")
        rows = _optional("polars").DataFrame(X.to_dict("list"))
    elif kind == "arrow":
        rows = _optional("pyarrow").Table.from_pandas(X)
    elif kind == "array":
        rows = X.to_numpy()
    elif kind == "list":
        rows = X.to_numpy().tolist()
    elif kind == "other order":
        rows = X[["town", "sex", "age"]]
    elif kind == "more columns":
        rows = X.assign(name="somebody", number=1)[["name", "town", "age", "number", "sex"]]
    fitted = _new(make, **({"max_depth": 3} if make in FILLABLE else {})).fit(rows, Y)
    assert fitted.score(rows, Y) == 1.0
    assert hasattr(fitted, "feature_names_in_") == (kind not in ("array", "list"))
    assert fitted.n_features_in_ == (5 if kind == "more columns" else 3)
    if kind in ("other order", "more columns"):  # an array has the columns of the fit, whatever their order is there
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            assert (fitted.predict(rows.to_numpy()) == Y).all()


# the classes of a domain, and the labels that rows have for them; numbers with a fraction, and labels of several types,
# are no classes to scikit-learn: rows that have them as texts mean the same
LABELS: list[tuple[list[Any], Any]] = [
    (["yes", "no"], np.array(["yes", "no"])),
    ([1, 0], np.array([1, 0])),
    ([1, 0], np.array(["1", "0"])),
    ([True, False], np.array([True, False])),
    ([1.0, -2.0], np.array([1.0, -2.0])),
    ([2.5, -1.5], np.array(["2.5", "-1.5"])),
    ([7, "seven"], np.array(["7", "seven"])),
]


@pytest.mark.parametrize("make", [privet.MaxTreeClassifier, privet.ID3Classifier, privet.HanischForestClassifier])
@pytest.mark.parametrize(("classes", "labels"), LABELS, ids=str)
@pytest.mark.parametrize("container", [np.asarray, list, pd.Series], ids=["array", "list", "series"])
def test_labels_of_every_kind_come_back_as_the_domain_has_them(
    make: Any, classes: list[Any], labels: Any, container: Any
) -> None:
    domain = replace(DOMAIN, columns=(*DOMAIN.columns[:2], Nominal("ill", tuple(classes)), DOMAIN.columns[3]))
    fitted = _new(make, domain=domain, max_depth=3).fit(X, container(labels[(Y == "no").astype(int)]))
    assert fitted.classes_.tolist() == (classes if "seven" in classes else sorted(classes))
    assert fitted.classes_.dtype == (object if "seven" in classes else np.array(classes).dtype)
    assert fitted.predict(X).tolist() == [classes[0] if label == "yes" else classes[1] for label in Y]


@every_learner
def test_several_classes(make: Any) -> None:
    domain = replace(DOMAIN, columns=(*DOMAIN.columns[:2], Nominal("ill", ("c", "a", "d", "b")), DOMAIN.columns[3]))
    labels = np.array(["a", "b", "c", "d"])[np.minimum(X["age"] // 25, 3)]
    choices = {"max_depth": 3} if make in FILLABLE else {}
    fitted = _new(make, domain=domain, **choices).fit(X, labels)
    assert fitted.classes_.tolist() == ["a", "b", "c", "d"]
    assert fitted.predict_proba(X).shape == (400, 4)
    assert fitted.score(X, labels) > 0.95


@every
@pytest.mark.filterwarnings("ignore::privet.errors.PrivacyLeakWarning")
def test_without_a_domain_classes_are_sorted_and_keep_their_type(make: Any) -> None:
    for labels in (Y, Y == "yes", np.where(Y == "yes", 7, 3)):
        fitted = _new(make, domain=None).fit(X, labels)
        assert fitted.classes_.tolist() == sorted(set(labels.tolist()))
        assert fitted.predict(X).dtype == labels.dtype
        assert set(fitted.predict(X).tolist()) <= set(labels.tolist())


@every
def test_missing_values_and_unseen_categories_are_predicted(make: Any) -> None:
    # age has a cell for missing values, sex one for others, town has neither: such a row takes the node it reached
    rows = X.astype({"age": float}).copy()
    rows.loc[::7, "age"] = np.nan
    fitted = _new(make).fit(rows, Y)
    odd = pd.DataFrame(
        {"age": [np.nan, 10.0, 1e9, -5.0], "sex": ["f", None, "unseen", "m"], "town": ["a", "b", "elsewhere", None]}
    )
    assert set(fitted.predict(odd)) <= {"yes", "no"}
    np.testing.assert_allclose(fitted.predict_proba(odd).sum(axis=1), 1)


@every_learner
def test_rows_that_fit_nowhere_are_left_out_silently(make: Any) -> None:
    more = pd.DataFrame({"age": [1] * 50, "sex": ["f"] * 50, "town": ["elsewhere"] * 50})
    rows, labels = pd.concat([X, more]), np.append(Y, ["yes"] * 50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = _new(make, **({"max_depth": 3} if make in FILLABLE else {})).fit(rows, labels)
    assert fitted.score(X, Y) == 1.0
    strange = np.where(Y == "yes", "never", "heard of")
    assert _new(make).fit(X, strange).predict(X).shape == (400,)  # no row has a class: a table like any other


# -- inside scikit-learn ------------------------------------------------------------------------


@every_learner
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


@every_private
def test_grid_search(make: Any) -> None:
    # numpy's numbers, as a grid often has them
    grid: dict[str, Any] = {"epsilon": [0.001, SURE]}
    if make not in TABLES:
        grid["max_depth"] = np.arange(1, 4, 2)
    if make in FORESTS:
        grid["n_estimators"] = np.array([1, 5])
    search = GridSearchCV(_new(make), grid, cv=2).fit(X, Y)
    if make in LEARNING:
        assert search.best_params_["epsilon"] == SURE
        assert search.best_score_ > 0.8
    assert search.best_estimator_.privacy_.spent <= SURE


# -- tables -------------------------------------------------------------------------------------


@every_private
def test_a_protected_table_is_fitted_within_its_budget(make: Any) -> None:
    with privet.open(X.assign(ill=Y), DOMAIN, budget=1) as table:
        fitted = make(epsilon="1/3").fit(table)
        assert fitted.privacy_.spent == table.budget.spent == Fraction(1, 3)
        assert fitted.privacy_.private
        fitted.fit(table)  # fitting again is paid again
        assert table.budget.spent == Fraction(2, 3)
        assert table.count("1/3").epsilon == Fraction(1, 3)  # and the table is still open
    assert fitted.n_features_in_ == 3
    assert fitted.feature_names_in_.tolist() == ["age", "sex", "town"]
    assert fitted.classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize("make", [make for make in PRIVATE if make in LEARNING], ids=lambda make: make.algorithm)
def test_after_a_table_columns_are_found_by_name(make: Any) -> None:
    with privet.open(X.assign(ill=Y), DOMAIN, budget=SURE) as table:
        fitted = _new(make, domain=None, **({"max_depth": 3} if make in FILLABLE else {})).fit(table)
    whole = X.assign(ill=Y, name="somebody")[["name", "ill", "town", "sex", "age"]]
    assert (fitted.predict(whole) == Y).all()
    polars = _optional("polars")
    _optional("pyarrow")
    assert (fitted.predict(polars.DataFrame(whole.to_dict("list"))) == Y).all()
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert (fitted.predict(X.to_numpy()) == Y).all()  # an array has the order of the domain
    with pytest.raises(DataError, match="the rows to predict have no column 'age', which the model looks at"):
        fitted.predict(X[["sex", "town"]])


@every_private
def test_tables_are_fitted_as_they_are(make: Any) -> None:
    with privet.open(X.assign(ill=Y), DOMAIN, budget=1) as table:
        with pytest.raises(QuestionError, match="a ProtectedTable holds its target itself; leave out y"):
            make(epsilon=1).fit(table, Y)
        other = replace(DOMAIN, max_rows=999)
        with pytest.raises(QuestionError, match="opened with another domain than the estimator's; leave out domain"):
            make(epsilon=1, domain=other).fit(table)
        assert table.budget.spent == 0
        assert make(epsilon=1, domain=DOMAIN).fit(table).domain_ == DOMAIN


@every
def test_a_domain_may_be_the_path_of_its_file(make: Any, tmp_path: Path) -> None:
    path = tmp_path / "people.toml"
    DOMAIN.save(path)
    for given_as in (path, str(path)):
        assert _new(make, domain=given_as).fit(X, Y).domain_ == DOMAIN
    with pytest.raises(DomainError, match=r"cannot read the domain file '.*gone\.toml'"):
        _new(make, domain=tmp_path / "gone.toml").fit(X, Y)
    with pytest.raises(QuestionError, match="domain must be a Domain or the path of a domain file, not a dict"):
        _new(make, domain={}).fit(X, Y)


# -- refused in one sentence --------------------------------------------------------------------


@every
def test_rows_that_cannot_be_used_are_refused_in_one_sentence(make: Any) -> None:
    bad: list[tuple[Any, Any, type[Exception], str]] = [
        (X.drop(columns="town"), Y, DataError, "no column 'town', which the domain declares"),
        (X.to_numpy()[:, :2], Y, DataError, "the rows have 2 columns, the domain declares 3 besides the target"),
        (X[[]], Y, DataError, "no column 'age', which the domain declares"),
        (X, Y[:-1], DataError, "different numbers of rows"),
        (X, None, ValueError, "requires y to be passed, but the target y is None"),
        (X.assign(ill=Y), None, ValueError, "requires y to be passed"),
        (X, np.column_stack([Y, Y]), DataError, "not one class for each row"),
        (np.array([[1j] * 3] * 400), Y, DataError, "no table of texts, numbers and booleans"),
    ]
    for rows, labels, error, message in bad:
        with pytest.raises(error, match=message) as caught:
            _new(make).fit(rows, labels)
        assert "\n" not in str(caught.value)


@every
def test_no_rows_at_all_are_fitted_like_others(make: Any) -> None:
    """An error would tell that there are none."""
    assert np.isfinite(_new(make).fit(X.iloc[:0], Y[:0]).predict_proba(X)).all()


@every
def test_sample_weights_are_refused_with_the_reason(make: Any) -> None:
    with pytest.raises(QuestionError, match="sample_weight is refused: a row of weight w counts w times"):
        _new(make).fit(X, Y, sample_weight=np.ones(400))
    assert _new(make).fit(X, Y, sample_weight=None).classes_.tolist() == ["no", "yes"]
    with pytest.raises(TypeError, match="fit takes no argument 'groups'"):
        _new(make).fit(X, Y, groups=Y)


@every_private
def test_choices_that_do_not_exist_are_named(make: Any) -> None:
    names = make.__dataclass_fields__
    wrong: dict[str, tuple[Any, str]] = {
        "variant": ("better", "variant is 'corrected' or 'published', not 'better'"),
        "vote": ("loudest", "vote is one of majority, average, weighted, not 'loudest'"),
        "score": ("product", "score is 'sum' or 'literal', not 'product'"),
        "numeric": ("grid", "numeric is 'thresholds' or 'bins', not 'grid'"),
        "max_depth": (-1, "max_depth must be a whole number from 0 to 100, not -1"),
        "n_estimators": (0, "must be a whole number from 1 to 10000, not 0"),
        "max_leaves": ("many", "max_leaves must be a whole number from 1 to 5000000, not 'many'"),
        "certainty": (2, "the certainty factor of pruning lies between 0 and 1, not 2"),
        "criterion": ("entropy", "there is no criterion 'entropy'"),
    }
    for name, (value, message) in wrong.items():
        if name in names:
            with privet.open(X.assign(ill=Y), DOMAIN, budget=1) as table:
                with pytest.raises(QuestionError, match=message):
                    make(epsilon=1, **{name: value}).fit(table)
                assert table.budget.spent == 0


@every_private
def test_a_target_the_domain_does_not_name_is_refused(make: Any) -> None:
    with pytest.raises(UndeclaredDomain, match="the domain declares no target"):
        _new(make, domain=replace(DOMAIN, target=None)).fit(X, Y)


@every
@pytest.mark.filterwarnings("ignore::privet.errors.PrivacyLeakWarning")
def test_one_class_is_nothing_to_predict(make: Any) -> None:
    with pytest.raises(QuestionError, match="has one class, so there is nothing to predict"):
        _new(make, domain=None).fit(X, ["yes"] * 400)
    assert set(_new(make).fit(X, ["yes"] * 400).predict(X)) == {"yes"}  # the domain has two


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
        "epsilon 1000 per person (1 row), pure",
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
    assert "per person (at most 4 rows)" in str(several.privacy_)


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


# -- later rows ---------------------------------------------------------------------------------


@every_fillable
def test_partial_fit_counts_new_rows_into_the_leaves(make: Any) -> None:
    fitted = _new(make, max_depth=2)
    fitted.partial_fit(X, Y, classes=["yes", "no"])  # the first one is a fit
    before = fitted.model_
    assert fitted.partial_fit(X[:100], Y[:100], classes=np.array(["yes", "no"])) is fitted
    fitted.partial_fit(X[:50].to_numpy() if not hasattr(fitted, "feature_names_in_") else X[:50], Y[:50])
    assert fitted.privacy_.added == (SURE, SURE)
    for tree, old in zip(fitted.model_.trees, before.trees, strict=True):
        assert tree.column.tolist() == old.column.tolist()
        assert tree.counts[0].sum() == old.counts[0].sum() + 150
    with privet.open(X.assign(ill=Y), DOMAIN, budget=2 * SURE) as table:
        fitted.partial_fit(table)
        assert table.budget.spent == SURE
        with pytest.raises(QuestionError, match="leave out y"):
            fitted.partial_fit(table, Y)
    assert fitted.model_.trees[0].counts[0].sum() == before.trees[0].counts[0].sum() + 550
    with pytest.raises(QuestionError, match="classes differ from those of the first fit"):
        fitted.partial_fit(X, Y, classes=["no", "perhaps"])


@every_fillable
def test_a_refused_partial_fit_changes_nothing(make: Any) -> None:
    with privet.open(X.assign(ill=Y), DOMAIN, budget=SURE) as table:
        fitted = _new(make, domain=None).fit(table)
    before = fitted.model_.to_json()
    whole = X.assign(ill=Y, name="somebody")
    for rows, labels in ((X, Y[:-1]), (X.drop(columns="age"), Y), (X, None)):
        with pytest.raises(ValueError):
            fitted.partial_fit(rows, labels)
    assert fitted.model_.to_json() == before
    assert fitted.predict(whole).shape == (400,)  # columns are still found by name
    fitted.partial_fit(whole, Y)  # and here too
    assert fitted.predict(whole).shape == (400,)
    assert fitted.feature_names_in_.tolist() == ["age", "sex", "town"]


@every_fillable
def test_after_a_table_partial_fit_says_nothing_about_rows(make: Any) -> None:
    """The domain of a table is declared. No row makes floats of others, in which 2^53 + 1 is 2^53; none are as good."""
    domain = Domain((Nominal("id", (2**53 + 1,)), Nominal("ill", ("no", "yes"))), target="ill")
    table = privet.open(pd.DataFrame({"id": [2**53 + 1], "ill": ["no"]}), domain, budget=SURE)
    fitted = _new(make, domain=None, max_depth=1).fit(table)
    before = fitted.model_.trees[0].counts[0].sum()
    for rows, more in (([[2**53 + 1]] * 9 + [[0.5]], 9), ([], 0), (pd.DataFrame({"id": []}, dtype=object), 0)):
        fitted.partial_fit(rows, ["no"] * len(rows))
        assert fitted.model_.trees[0].counts[0].sum() == before + more
        before += more


@every_fillable
def test_partial_fit_of_arrays_has_the_columns_of_the_fit(make: Any) -> None:
    rows = X[["town", "age", "sex"]]
    fitted = _new(make, max_depth=3).fit(rows, Y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.partial_fit(rows.to_numpy(), Y)
    assert fitted.score(rows, Y) == 1.0


@every_fillable
def test_partial_fit_of_an_inferred_domain_stays_stamped(make: Any) -> None:
    with pytest.warns(PrivacyLeakWarning):
        fitted = _new(make, domain=None).fit(X, Y)
    fitted.partial_fit(X, Y)
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert "its domain was read from the rows" in fitted.privacy_.reasons


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


# -- plain trees --------------------------------------------------------------------------------


def _public(classes: tuple[Any, ...] = ("no", "yes"), cells: int = 2, attributes: int = 4) -> Domain:
    columns = (Nominal(f"a{i}", tuple(range(cells))) for i in range(attributes))
    return Domain((*columns, Nominal("y", classes)), target="y")


@pytest.mark.parametrize("make", PLAIN, ids=lambda make: make.algorithm)
def test_plain_trees_learn_separable_rows_exactly(make: Any) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"a{i}": rng.integers(0, 2, 400) for i in range(4)})
    labels = np.where((frame["a0"] + frame["a1"] == 1) | (frame["a2"] == 1), "yes", "no")
    fitted = make(domain=_public()).fit(frame, labels)
    assert fitted.score(frame, labels) == 1.0
    used = {column for column in fitted.model_.tree.column if column >= 0}
    assert 3 not in used or make.algorithm == "id3"
    counts = fitted.model_.tree.counts
    assert counts[0].tolist() == [(labels == "no").sum(), (labels == "yes").sum()]
    assert (fitted.model_.tree.deviation == 0).all()


def test_c45_splits_numbers_at_thresholds() -> None:
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 100, 300)
    domain = Domain(
        (Numeric("x", Fraction(0), Fraction(99), Fraction(1), bins=2), Nominal("y", ("no", "yes"))), target="y"
    )
    labels = np.where((numbers > 30) & (numbers <= 71), "yes", "no")
    fitted = privet.C45Classifier(domain=domain).fit(numbers[:, None], labels)
    assert fitted.score(numbers[:, None], labels) == 1.0
    thresholds = {visit.node.threshold for visit in fitted.model_.tree.walk() if hasattr(visit.node, "threshold")}
    below = {int(numbers[numbers <= 30].max()), int(numbers[numbers <= 71].max())}
    above = {int(numbers[numbers > 30].min()), int(numbers[numbers > 71].min())}
    assert len(thresholds) == 2
    assert all(
        low <= threshold < high
        for threshold, low, high in zip(sorted(thresholds), sorted(below), sorted(above), strict=True)
    )


def test_c45_prunes_an_attribute_of_noise() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"a{i}": rng.integers(0, 2, 600) for i in range(4)})
    labels = np.where(rng.random(600) < np.where(frame["a0"] == 1, 0.9, 0.1), "yes", "no")
    pruned = privet.C45Classifier(domain=_public()).fit(frame, labels).model_.tree
    assert [column for column in pruned.column if column >= 0] == [0]
    unpruned = privet.ID3Classifier(domain=_public()).fit(frame, labels).model_.tree
    assert unpruned.leaves == 16
    lenient = privet.C45Classifier(domain=_public(), certainty=0.999).fit(frame, labels).model_.tree
    assert lenient.leaves > pruned.leaves


def test_id3_chooses_by_gini_or_entropy_and_says_which() -> None:
    """Entropy prefers the attribute with a pure cell (0 and 10, 50 and 40), Gini the other (5 and 20, 45 and 30)."""
    frame = pd.DataFrame({"a0": [1] * 50 + [0] * 10 + [1] * 40, "a1": [0] * 5 + [1] * 45 + [0] * 20 + [1] * 30})
    labels = ["no"] * 50 + ["yes"] * 50
    for criterion, column in (("infogain", 0), ("gini", 1)):
        fitted = privet.ID3Classifier(domain=_public(attributes=2), criterion=criterion, max_depth=1)
        fitted.fit(frame, labels)
        assert fitted.model_.privacy.criterion == criterion
        assert fitted.model_.tree.column[0] == column
        assert privet.Model.from_json(fitted.model_.to_json()).privacy.criterion == criterion


def test_id3_leaves_few_rows_undivided() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"a{i}": rng.integers(0, 2, 200) for i in range(4)})
    labels = rng.choice(["no", "yes"], 200)
    tree = privet.ID3Classifier(domain=_public(), min_rows=30).fit(frame, labels).model_.tree
    assert tree.counts[~tree.is_leaf].sum(axis=1).min() >= 30
    assert privet.ID3Classifier(domain=_public()).fit(frame, labels).model_.tree.leaves > tree.leaves


@pytest.mark.parametrize("make", PLAIN, ids=lambda make: make.algorithm)
def test_empty_children_take_the_class_of_their_parent(make: Any) -> None:
    domain = Domain((Nominal("a", ("x", "y", "never")), Nominal("y", ("no", "yes"))), target="y")
    frame = pd.DataFrame({"a": ["x"] * 30 + ["y"] * 20})
    labels = ["yes"] * 30 + ["no"] * 20
    fitted = make(domain=domain).fit(frame, labels)
    assert fitted.model_.tree.leaves == 3  # a cell without rows is a leaf of its own
    assert fitted.predict(pd.DataFrame({"a": ["x", "y", "never"]})).tolist() == ["yes", "no", "yes"]


def _id3(rows: list[tuple[int, ...]], unused: tuple[int, ...], cells: int, depth: int) -> Any:
    """ID3 as Quinlan tells it; a class (the majority's, the first of equals), or an attribute and its branches."""

    def bits(some: list[tuple[int, ...]]) -> float:
        shares = [count / len(some) for count in Counter(row[-1] for row in some).values()]
        return -sum(share * np.log2(share) for share in shares)

    counts = Counter(row[-1] for row in rows)
    majority = min(counts, key=lambda label: (-counts[label], label))
    if len(counts) == 1 or not unused or depth == 0:
        return majority
    parts = {a: [[row for row in rows if row[a] == cell] for cell in range(cells)] for a in unused}
    left = {a: sum(len(part) * bits(part) for part in parts[a] if part) for a in unused}
    best = min(unused, key=lambda a: (round(left[a], 6), a))
    others = tuple(a for a in unused if a != best)
    return best, [_id3(part, others, cells, depth - 1) if part else majority for part in parts[best]]


def _reference_class(tree: Any, row: tuple[int, ...]) -> int:
    while isinstance(tree, tuple):
        tree = tree[1][row[tree[0]]]
    return int(tree)


def _remainders(rows: list[tuple[int, ...]], unused: tuple[int, ...], cells: int) -> list[float]:
    found = []
    for a in unused:
        table = np.zeros((cells, 3))
        for row in rows:
            table[row[a], row[-1]] += 1
        share = table[table > 0] / np.repeat(table.sum(axis=1), 3).reshape(cells, 3)[table > 0]
        found.append(-float((table[table > 0] * np.log2(share)).sum()))
    return sorted(found)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(2, 3), st.integers(1, 4), st.integers(0, 4))
def test_id3_is_the_textbooks(seed: int, size: int, cells: int, attributes: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    table = np.column_stack([rng.integers(0, cells, (size, attributes)), rng.integers(0, 3, size)])
    rows = [tuple(int(value) for value in row) for row in table]
    domain = _public((0, 1, 2), cells, attributes)
    fitted = privet.ID3Classifier(domain=domain, max_depth=depth).fit(table[:, :-1], table[:, -1])
    reference = _id3(rows, tuple(range(attributes)), cells, depth)
    # Scores lie on a grid of 1/1024 bits, so attributes that differ by less are equals; where no two of a node come as
    # close as that, both trees are the same.
    tree = fitted.model_.tree
    waiting = [(0, reference, rows, tuple(range(attributes)))]
    same = True
    while waiting:
        node, expected, here, unused = waiting.pop()
        if not isinstance(expected, tuple):
            if here:
                assert tree.first[node] < 0
                assert int(np.argmax(tree.counts[node])) == expected
                assert tree.counts[node].tolist() == [sum(row[-1] == c for row in here) for c in range(3)]
            continue
        if tree.column[node] != expected[0]:
            remainders = _remainders(here, unused, cells)
            assert remainders[1] - remainders[0] < len(here) * 2 / 1024
            same = False
            continue
        others = tuple(a for a in unused if a != expected[0])
        for cell, below in enumerate(expected[1]):
            part = [row for row in here if row[expected[0]] == cell]
            waiting.append((int(tree.first[node]) + cell, below, part, others))
    every_row = np.array(np.meshgrid(*[range(cells)] * attributes)).reshape(attributes, -1).T
    expected_classes = [_reference_class(reference, tuple(row)) for row in every_row]
    assert not same or fitted.predict(every_row).tolist() == expected_classes


# -- sums of tables -----------------------------------------------------------------------------


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

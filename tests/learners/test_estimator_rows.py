"""What estimators are given: rows, labels and tables of every kind, later rows, and what is refused in one sentence."""

from __future__ import annotations

import importlib
import os
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from learners.classifiers import (
    DOMAIN,
    FILLABLE,
    LEARNING,
    PRIVATE,
    SURE,
    X,
    Y,
    _new,
    each_learning_kind,
    every,
    every_fillable,
    every_learner,
    every_private,
)

import privet
from privet.errors import DataError, DomainError, PrivacyLeakWarning, QuestionError, UndeclaredDomain
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain


def _optional(name: str) -> Any:
    if os.environ.get("CI"):
        return importlib.import_module(name)
    return pytest.importorskip(name)


# -- rows and labels of every kind --------------------------------------------------------------


@each_learning_kind
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

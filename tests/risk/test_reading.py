"""Trees from anywhere: the format is recognised, and what cannot be read is named."""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, export_text

import privet
from privet.errors import ModelError
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.models.model import Model
from privet.models.tree import Ensemble
from privet.risk.readers import criterion_of, read_tree
from privet.risk.tree import PublishedTree

X = pd.DataFrame({"age": [20, 30, 40, 50] * 5, "sex": [0, 1, 1, 0] * 5})
Y = pd.Series(["a", "b", "b", "a"] * 5, name="ill")
DOMAIN = Domain(
    (
        Numeric("age", Fraction(0), Fraction(99), Fraction(1), bins=5),
        Nominal("sex", (0, 1)),
        Nominal("ill", ("a", "b")),
    ),
    target="ill",
)
WEKA = "sex <= 0: a (10.0)\nsex > 0: b (10.0)\n"
SKTREE = DecisionTreeClassifier(max_depth=1).fit(X[["sex"]], Y)


def id3() -> Any:
    return privet.ID3Classifier(domain=DOMAIN, max_depth=2).fit(X, Y)


def read(source: Any, values: list[Any] | None = None) -> PublishedTree:
    found = read_tree(source, values)
    assert isinstance(found, PublishedTree)
    return found


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        (WEKA, "Weka"),
        (export_text(SKTREE, feature_names=["sex"]), "scikit-learn"),
        (id3().model_.to_json(), "privet"),
    ],
)
def test_formats_are_told_apart_in_texts_and_files(text: str, origin: str, tmp_path: Path) -> None:
    path = tmp_path / "tree.txt"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())  # as an editor on Windows saves it
    for source in (text, path, str(path)):
        tree = read(source, ["c", "b", "a"])
        assert tree.source == origin and tree.values == ("c", "b", "a")
        assert [tree.nodes[leaf].label for leaf in tree.leaves] == [2, 1]
        assert read(source).values == ("a", "b")


def test_objects() -> None:
    classifier = id3()
    for source in (classifier, classifier.model_):
        tree = read(source)
        assert tree.source == "privet" and tree.model is classifier.model_
        assert read_tree(tree, ["z"]) is tree
    assert read(SKTREE).model is SKTREE


def test_several_trees_and_tables_are_left_to_the_caller() -> None:
    model = id3().model_
    forest = Ensemble(model.domain, model.trees * 2, model.privacy)
    assert read_tree(forest) is forest
    boosted = privet.BoostedTablesClassifier(epsilon=1, domain=DOMAIN).fit(X, Y)
    assert read_tree(boosted) is boosted.model_
    assert isinstance(read_tree(boosted.model_.to_json()), Model)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (AdaBoostClassifier(n_estimators=2).fit(X, Y), "has many trees that are not read; those of RandomForest"),
        (DecisionTreeRegressor().fit(X, X["age"]), "predicts numbers"),
        (make_pipeline(StandardScaler(), DecisionTreeClassifier()).fit(X, Y), "audit its last step"),
        (LogisticRegression(), "a LogisticRegression is no tree that can be audited"),
        (DecisionTreeClassifier(), "is not fitted"),
        (privet.ID3Classifier(domain=DOMAIN), "the ID3Classifier is not fitted"),
        (3, "a int is no tree that can be audited; a tree is a privet model"),
        (None, "no tree that can be audited"),
        (np.zeros(3), "no tree that can be audited"),
    ],
)
def test_what_is_no_tree_is_refused_with_the_reason(source: Any, why: str) -> None:
    with pytest.raises(ModelError, match=why):
        read_tree(source)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is no model that is read; that is a privet model"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (
            b"age,sex,ill\n3,f,a\n",
            r"tree\.txt: it is no model that is read; that is a privet model .* table of counts",
        ),
        (b'{"format": "other"}', r"tree\.txt: this JSON is not a privet model"),
        (b"{", r"tree\.txt: the model is not valid JSON"),
        (b"sex <= 0: a\nsex > 0: c", r"tree\.txt: line 2 \('sex > 0: c'\): the tree says 'c'"),
    ],
)
def test_files_that_cannot_be_read_are_named(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "tree.txt"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=why) as caught:
        read_tree(path, ["a", "b"])
    assert "tree.txt" in str(caught.value)


@pytest.mark.parametrize("name", ["nowhere.json", ".", "a\0b"])
def test_paths_that_lead_nowhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot read the tree .*; check the path"):
        read_tree(str(tmp_path / name) if name != "." else tmp_path)


@pytest.mark.parametrize(
    ("asked", "criterion", "silent"),
    [
        (None, None, "does not say"),
        ("gini", "gini", ""),
        ("entropy", "entropy", ""),
        ("infogain", "entropy", ""),
        ("gain-ratio", None, "gain ratio"),
        ("none", None, "as was asked"),
    ],
)
def test_whoever_knows_the_criterion_can_say_it(asked: str | None, criterion: str | None, silent: str) -> None:
    tree = criterion_of(read(WEKA), asked)
    assert tree.criterion == criterion and silent in tree.silent
    assert criterion_of(read(id3()), "none").criterion is None
    assert len(tree.nodes) == 3


def test_criteria_that_cannot_be() -> None:
    with pytest.raises(ModelError, match="one of gini, entropy, infogain, gain-ratio, none, not 'luck'"):
        criterion_of(read(WEKA), "luck")
    private = read(privet.DiffPID3Classifier(epsilon=1, max_depth=1, domain=DOMAIN).fit(X, Y))
    with pytest.raises(ModelError, match="chose its splits with noise"):
        criterion_of(private, "gini")
    assert criterion_of(private, "none") is private
    assert isinstance(private.model, Model)


@pytest.mark.parametrize("name", ["tree.pkl", "tree.joblib"])
def test_a_pickle_is_not_opened(name: str, tmp_path: Path) -> None:
    """Reading it would run what is in it; the error says what to do instead."""
    path = tmp_path / name
    path.write_bytes(pickle.dumps(DecisionTreeClassifier().fit([[1], [2]], ["a", "b"])))
    with pytest.raises(ModelError, match="a pickle runs code when it is read"):
        read_tree(path)

"""Trees of scikit-learn: rows in the leaves that `apply` names, with the counts that were fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, export_text

from privet.errors import ModelError
from privet.risk.people import People
from privet.risk.publication import Publication, most_published
from privet.risk.readers.scikit import WEIGHTED, parse, published
from privet.risk.readers.text_lines import UNSAID
from privet.risk.readers.weka import parse as parse_weka
from privet.risk.readers.weka import write
from privet.risk.tree import PublishedTree

COLUMNS = ["age", "hours", "height"]


def people(rows: int = 300, missing: float = 0.0) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(5)
    age, hours = rng.integers(17, 90, rows).astype(float), rng.integers(1, 60, rows).astype(float)
    height = rng.normal(1.7, 0.1, rows)  # no 32-bit numbers
    score = age / 30 + hours / 30 + rng.normal(0, 0.5, rows)
    age[rng.random(rows) < missing] = np.nan
    illness = pd.Series(np.select([score < 2, score < 3], ["none: yet", "flu"], "10 colds"), name="illness")
    return pd.DataFrame({"age": age, "hours": hours, "height": height}), illness


def leaf_of(tree: PublishedTree, frame: pd.DataFrame) -> Any:
    who = People.of(frame, list(frame))
    return Publication.of(tree, who).leaf[who.profile]


def assert_same(tree: PublishedTree, fitted: Any, frame: pd.DataFrame, sensitive: pd.Series) -> None:
    """The same leaves, with the counts of the rows in them."""
    found, expected = leaf_of(tree, frame), fitted.apply(frame)
    assert len(set(zip(found.tolist(), expected.tolist(), strict=True))) == fitted.get_n_leaves() == len(tree.leaves)
    assert len(set(found)) == len(set(expected)) and (found >= 0).all()
    for leaf in tree.leaves:
        counted = sensitive[found == leaf].astype(str).value_counts()
        assert tree.nodes[leaf].counts == tuple(counted.get(value, 0) for value in tree.values)
        assert tree.values[tree.nodes[leaf].label or 0] == str(fitted.predict(frame[found == leaf])[0])


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("chosen", [{}, {"max_depth": 3}, {"max_leaf_nodes": 9}, {"criterion": "log_loss"}])
@pytest.mark.parametrize("values", [None, ["none: yet", "other", "flu", "10 colds"]])
def test_a_fitted_tree(missing: float, chosen: dict[str, Any], values: list[str] | None) -> None:
    frame, sensitive = people(missing=missing)
    fitted = DecisionTreeClassifier(random_state=0, **chosen).fit(frame, sensitive)
    tree = published(fitted, values)
    assert tree.values == tuple(values or ("10 colds", "flu", "none: yet"))
    assert tree.criterion == ("entropy" if "criterion" in chosen else "gini")
    assert tree.features == tuple(COLUMNS) and tree.model is fitted and tree.source == "scikit-learn"
    assert (leaf_of(tree, frame) == fitted.apply(frame)).all()  # even the numbers of nodes are the same
    assert_same(tree, fitted, frame, sensitive)


def test_numbers_are_compared_in_32_bits() -> None:
    frame = pd.DataFrame({"x": [0.1, 0.1 + 1e-9, 0.3, 0.1 + 2e-8]})
    fitted = DecisionTreeClassifier().fit(frame, [0, 0, 1, 1])
    tree = published(fitted)
    assert (leaf_of(tree, frame) == fitted.apply(frame)).all()


def test_arrays_have_numbered_columns_and_classes_of_any_type() -> None:
    frame, sensitive = people(50)
    fitted = DecisionTreeClassifier(max_depth=2).fit(frame.to_numpy(), (sensitive == "flu").to_numpy())
    tree = published(fitted, ["True", "False"])
    assert tree.values == ("true", "false") and set(tree.columns) <= {"feature_0", "feature_1", "feature_2"}
    assert published(fitted).values == ("false", "true")
    assert published(DecisionTreeClassifier(max_depth=1).fit([[1], [2]], [2.0, 10.0])).values == ("2", "10")


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ({"splitter": "random"}, "splitter = random"),
        ({"max_features": 2}, "max_features = 2"),
        ({"min_samples_leaf": 3}, "min_samples_leaf = 3"),
        ({"min_weight_fraction_leaf": 0.1}, "min_weight_fraction_leaf = 0.1"),
        ({"min_impurity_decrease": 0.01}, "min_impurity_decrease = 0.01"),
        ({"ccp_alpha": 0.01}, "ccp_alpha = 0.01"),
        ({"max_features": 3, "min_samples_split": 9}, None),
    ],
)
def test_choices_that_need_not_be_best_are_silent(chosen: dict[str, Any], named: str | None) -> None:
    frame, sensitive = people()
    fitted = DecisionTreeClassifier(random_state=1, **chosen).fit(frame, sensitive)
    tree = published(fitted)
    assert (tree.criterion is None) == (named is not None)
    assert (named or "") in tree.silent
    assert_same(tree, fitted, frame, sensitive)


def test_monotonic_trees_are_silent() -> None:
    frame, sensitive = people()
    fitted = DecisionTreeClassifier(monotonic_cst=[1, 0, 0]).fit(frame, sensitive == "flu")
    assert "monotonic_cst = set" in published(fitted).silent
    assert "splitter" in published(ExtraTreeClassifier().fit(frame, sensitive)).silent


def test_weighted_rows_publish_weights_and_no_counts() -> None:
    frame, sensitive = people()
    weights = np.where(sensitive == "flu", 2, 1)
    forest = RandomForestClassifier(2, random_state=0).fit(frame, sensitive)
    for fitted in (
        DecisionTreeClassifier(class_weight="balanced").fit(frame, sensitive),
        DecisionTreeClassifier().fit(frame, sensitive, sample_weight=weights),
        forest.estimators_[0],  # its rows were drawn with replacement
    ):
        tree = published(fitted)
        assert most_published(tree) == "labels" and tree.criterion is None and tree.silent == WEIGHTED
        assert all(tree.nodes[leaf].weights is not None for leaf in tree.leaves)


def test_trees_that_are_none() -> None:
    frame, sensitive = people(40)
    with pytest.raises(ModelError, match="is not fitted"):
        published(DecisionTreeClassifier())
    with pytest.raises(ModelError, match="several columns at once"):
        published(DecisionTreeClassifier().fit(frame, np.stack([sensitive, sensitive], axis=1)))
    with pytest.raises(ModelError, match=r"says 'flu', which is not among the public values \(none: yet, 10 colds\)"):
        published(DecisionTreeClassifier().fit(frame, sensitive), ["none: yet", "10 colds"])


# -- texts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [{}, {"spacing": 1}, {"spacing": 7, "decimals": 6}])
@pytest.mark.parametrize("values", [None, ["none: yet", "flu", "10 colds"], ["z", "flu", "none: yet", "10 colds"]])
def test_an_exported_text(form: dict[str, Any], values: list[str] | None) -> None:
    frame, sensitive = people()
    frame["height"] = frame["height"].round(1)
    fitted = DecisionTreeClassifier(max_depth=4, random_state=0).fit(frame, sensitive)
    names = ["age <= 3", "| hours", "> a  b"]
    text = export_text(fitted, feature_names=names, show_weights=True, **form)
    tree = parse(text, values)
    frame.columns = names
    assert tree.criterion is None and tree.silent == UNSAID and tree.values == tuple(values or sorted(set(sensitive)))
    plain = frame.set_axis(COLUMNS, axis=1)
    laid = leaf_of(tree, frame)
    assert len(set(zip(laid.tolist(), fitted.apply(plain).tolist(), strict=True))) == len(tree.leaves)
    exact = published(fitted, values)
    assert [tree.nodes[leaf].counts for leaf in tree.leaves] == [exact.nodes[leaf].counts for leaf in exact.leaves]
    assert [node.parent for node in tree.nodes] == [node.parent for node in exact.nodes]
    bare = parse(export_text(fitted, feature_names=names, **form), values)
    assert most_published(bare) == "labels" and [n.label for n in bare.nodes] == [n.label for n in exact.nodes]


def test_class_names_of_any_look() -> None:
    frame, sensitive = people()
    fitted = DecisionTreeClassifier(max_depth=3).fit(frame, sensitive)
    names = ["zz: top", "weights: [1.0] class: b", "age <= 3"]  # not sorted: the weights say which is which
    for show_weights in (False, True):
        tree = parse(export_text(fitted, class_names=names, show_weights=show_weights), names)
        exact = published(fitted)
        assert tree.values == tuple(names) and [n.label for n in tree.nodes] == [n.label for n in exact.nodes]
        assert not show_weights or [n.counts for n in tree.nodes] == [n.counts for n in exact.nodes]


def test_numbers_are_sorted_as_numbers() -> None:
    frame, _ = people()
    number = (frame["age"] // 30 * 5).astype(int)  # 0, 5, 10
    fitted = DecisionTreeClassifier(max_depth=4).fit(frame, number)
    tree = parse(export_text(fitted, show_weights=True))
    assert tree.values == ("0", "5", "10")
    assert [n.counts for n in tree.nodes] == [n.counts for n in published(fitted).nodes]
    assert parse(export_text(fitted, show_weights=True), [10.0, 5.0, 0.0]).values == ("10", "5", "0")


def test_weights_that_are_no_counts_are_left_out() -> None:
    tree = parse("|--- weights: [1.25, 0.30] class: a", ["a", "b"])
    assert tree.nodes[0].counts is None and tree.silent == WEIGHTED


def test_one_leaf() -> None:
    tree = parse("|--- weights: [12.00, 3.00] class: x", ["y", "x"])
    assert tree.nodes[0].counts == (3, 12) and tree.leaves == (0,)


TWO = "|--- a <= 1.00\n|   |--- class: x\n|--- a >  1.00\n|   |--- class: y\n"


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("\n\n", None, "the text contains no tree"),
        (
            TWO.replace("class: y", "truncated branch of depth 7"),
            None,
            "line 4 ('truncated branch of depth 7'): the text leaves out what is below; export it with",
        ),
        (TWO.replace("class: y", "value: [3.20]"), None, "line 4 ('value: [3.20]'): the tree predicts numbers"),
        (TWO.replace("class: y", "klass: y"), None, "line 4 ('klass: y'): expected a leaf"),
        (TWO, ["x", "z"], "line 4 ('class: y'): the tree says 'y', which is not among the public values (x, z)"),
        (TWO + "oops", None, "line 5 ('oops'): expected a line of export_text"),
        (TWO + "|--- a >  1.00\n|   |--- class: y\n", None, "line 5 ('a >  1.00'): expected one leaf"),
        ("\n".join(TWO.splitlines()[:2]), None, "line 1 ('a <= 1.00'): expected one leaf, or '<=' and then '>'"),
        ("\n".join(TWO.splitlines()[:3]), None, "line 3 ('a >  1.00'): expected a leaf"),
        (TWO.replace(">  1.00", ">  2.00"), None, "line 3 ('a >  2.00'): expected one leaf"),
        (TWO.replace("1.00", "1.0.0"), None, "line 1 ('a <= 1.0.0'): expected a test like"),
        (TWO.replace("|   |", "|   |   |"), None, "line 2 ('class: x'): it stands too deep"),
        (
            TWO.replace("class: y", "weights: [1.00, 2.00] class: y"),
            None,
            "class: y'): expected as many weights as on line 2",
        ),
        ("|--- weights: [5.00, 1.00] class: x", None, "it has 2 weights, which are not those of the known values (x)"),
        ("|--- weights: [5.00, 6.00] class: x", ["x", "y"], "class: x'): its label has not the largest weight"),
        ("|--- weights: [5.00, -1.00] class: x", ["x", "y"], "numbers of at least 0"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, values: list[str] | None, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse(text, values)
    assert message in str(caught.value)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.lists(st.sampled_from([*TWO.splitlines(), "|---", "x", "|   |--- weights: [1.00, 2.00] class: y"]), max_size=7)
)
def test_any_text_is_a_tree_or_one_sentence(lines: list[str]) -> None:
    try:
        parse("\n".join(lines))
    except ModelError as error:
        assert "\n" not in str(error)


def test_the_text_of_a_regression_tree() -> None:
    frame, _ = people(40)
    text = export_text(DecisionTreeRegressor(max_depth=2).fit(frame, frame["age"]))
    with pytest.raises(ModelError, match="the tree predicts numbers"):
        parse(text)


def test_a_scikit_tree_written_as_a_weka_tree_has_the_same_leaves() -> None:
    frame, sensitive = people()
    fitted = DecisionTreeClassifier(max_depth=4).fit(frame, sensitive)
    tree = parse_weka(write(published(fitted)))
    assert len(set(zip(leaf_of(tree, frame).tolist(), fitted.apply(frame).tolist(), strict=True))) == len(tree.leaves)

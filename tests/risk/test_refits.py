"""Nothing is called safe that is not: every assignment of values is fitted again, and held against the audit.

A publication is what a learner would print. Of all assignments that lead to the same print, a person's value is known
if it is the same in all of them: whoever refits every assignment is certain, and the audit must be too.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published import posterior_audit
from sklearn.tree import DecisionTreeClassifier, export_text

import privet
from privet.errors import ModelError, PrivetError
from privet.risk import Audit
from privet.risk.publication import Labelled

Print = Callable[[np.ndarray], Any]  # what is published of values, to be compared


def believed(found: Audit, adversary: str = "possible worlds") -> np.ndarray:
    """P(value) of each person."""
    return np.asarray(found.beliefs[adversary].shares[found.people.profile])


def posteriors(printed: Print, people: int, classes: int) -> dict[Any, np.ndarray]:
    """For each print how likely each person has each value: all assignments refitted."""
    groups = defaultdict(list)
    for assignment in itertools.product(range(classes), repeat=people):
        values = np.array(assignment)
        groups[printed(values)].append(values)
    return {
        text: np.stack([(np.stack(some) == value).mean(axis=0) for value in range(classes)], axis=1)
        for text, some in groups.items()
    }


def rows(seed: int, people: int, columns: int = 2, distinct: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.integers(0, distinct, (people, columns)), columns=[f"x{i}" for i in range(columns)])


def exported(frame: pd.DataFrame, values: np.ndarray, classes: int, weights: bool, **chosen: Any) -> str | None:
    """What scikit-learn prints of a tree of these values; None where it has not all of them."""
    if len(np.unique(values)) < classes:
        return None
    fitted = DecisionTreeClassifier(random_state=0, **chosen).fit(frame, values)
    return export_text(fitted, feature_names=list(frame.columns), show_weights=weights, decimals=4)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("chosen", "weights"),
    [
        ({}, False),
        ({}, True),
        ({"max_depth": 2}, False),
        ({"max_depth": 2}, True),
        ({"class_weight": "balanced"}, True),
        ({"class_weight": "balanced", "max_depth": 1}, True),
    ],
)
def test_what_refits_make_certain_is_never_called_safe(classes: int, chosen: dict[str, Any], weights: bool) -> None:
    """Texts of scikit-learn: ties go to the first value, undivided leaves are pure, and weights keep purity.

    What is claimed to be certain is so, and where anybody's value is certain the verdict is not that nobody is known.
    """
    people = 6 if classes == 2 else 5
    for seed in range(2):
        frame = rows(seed, people)
        told = posteriors(lambda v: exported(frame, v, classes, weights, **chosen), people, classes)  # noqa: B023
        certain = 0
        for text, truth in told.items():
            if text is None:
                continue
            criterion = None if "class_weight" in chosen else "gini"
            asked: dict[str, Any] = {"sensitive": "y", "values": range(classes), "criterion": criterion}
            stopping = "full" if not chosen and seed else None
            found = posterior_audit(text, frame, **asked, stopping=stopping, remedies=False)
            mine = believed(found)
            claimed = mine.max(axis=1) > 1 - 1e-9
            sure = truth.max(axis=1) > 1 - 1e-9
            assert sure[claimed].all() and (truth[claimed].argmax(axis=1) == mine[claimed].argmax(axis=1)).all()
            assert not sure.any() or not found.safe
            certain += int(sure.sum())
        assert certain


def test_a_weighted_tree_with_pure_leaves_is_not_safe() -> None:
    """The tree of `class_weight="balanced"` that was called safe: its leaves print weights like 2.50 and 0.00."""
    frame = pd.DataFrame({"x": [1, 1, 2, 2, 2, 3, 3, 3]})
    values = ["a", "a", "b", "b", "b", "a", "b", "b"]
    fitted = DecisionTreeClassifier(class_weight="balanced").fit(frame, values)
    text = export_text(fitted, feature_names=["x"], show_weights=True)
    assert ".33" in text or ".67" in text
    for tree in (fitted, text):
        found = posterior_audit(tree, frame, sensitive="y", remedies=False)
        assert found.worst == 1 and found.known >= 5 and not found.safe
        assert found.publication is not None and found.publication.level == "counts"  # by one weight for each value
    exact = posterior_audit(DecisionTreeClassifier().fit(frame, values), frame, sensitive="y", remedies=False)
    assert found.known == exact.known


def test_of_rows_with_weights_of_their_own_no_verdict_is_given() -> None:
    frame = pd.DataFrame({"x": [1, 1, 1, 1, 2, 2, 2, 2, 2, 2]})
    values = ["a", "b", "a", "b", "a", "b", "a", "b", "a", "b"]
    fitted = DecisionTreeClassifier(max_depth=1).fit(frame, values, sample_weight=np.linspace(1, 2, 10) ** 2)
    asked: dict[str, Any] = {"sensitive": "y", "criterion": "none", "remedies": False}
    found = posterior_audit(fitted, frame, threshold=0.8, **asked)
    assert found.worst == 0.5 and found.undecided == 6 and not found.safe
    assert "No verdict about the 'y' of 6 of 10 people" in str(found)
    assert posterior_audit(fitted, frame, threshold=0.9, **asked).safe  # five of six at most
    # and whoever uses that this column was chosen knows more than is computed
    assert not posterior_audit(fitted, frame, **{**asked, "criterion": None}, threshold=0.9).safe


def test_whole_weights_that_are_no_counts_are_recognised() -> None:
    frame = pd.DataFrame({"x": [1, 1, 1, 2, 2, 3, 3, 3]})
    values = ["a", "b", "a", "a", "b", "b", "b", "b"]
    fitted = DecisionTreeClassifier(class_weight={"a": 2, "b": 3}).fit(frame, values)
    text = export_text(fitted, feature_names=["x"], show_weights=True, decimals=1)
    found = posterior_audit(text, frame, sensitive="y", remedies=False)
    plain = posterior_audit(DecisionTreeClassifier().fit(frame, values), frame, sensitive="y", remedies=False)
    assert (found.known, found.worst) == (plain.known, plain.worst)


# -- C4.5's parts of rows -----------------------------------------------------------------------


def shares_of_rows(codes: Sequence[int | None]) -> np.ndarray:
    """How much of each row is in each of two leaves: by its value, or as the rows that have one."""
    known = [code for code in codes if code is not None]
    first = known.count(0) / len(known)
    return np.array([[first, 1 - first] if code is None else [1.0 - code, float(code)] for code in codes])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([0, 1, None]), min_size=4, max_size=8), st.integers(0, 255))
def test_parts_of_rows_against_every_assignment(codes: list[int | None], number: int) -> None:
    """A split with two leaves, as J48 prints them: (rows/wrong rows), with two digits."""
    if 0 not in codes or 1 not in codes:
        return
    parts = shares_of_rows(codes)
    frame = pd.DataFrame({"sex": ["fm"[code] if code is not None else None for code in codes]})
    values = np.array([number >> at & 1 for at in range(len(codes))])
    masses = np.stack([parts[values == value].sum(axis=0) for value in (0, 1)])  # [value, leaf]
    labels = masses.argmax(axis=0)

    def printed(assignment: np.ndarray) -> tuple[str, ...]:
        wrong = [parts[assignment != labels[leaf], leaf].sum() for leaf in (0, 1)]
        return tuple(f"({parts[:, leaf].sum():.2f}/{wrong[leaf]:.2f})" for leaf in (0, 1))

    text = "\n".join(f"sex = {'fm'[leaf]}: {'ab'[labels[leaf]]} {said}" for leaf, said in enumerate(printed(values)))
    truth = posteriors(printed, len(codes), 2)[printed(values)]
    found = posterior_audit(text, frame, sensitive="y", values=["a", "b"], remedies=False)
    mine = believed(found)
    sure = truth.max(axis=1) > 1 - 1e-9
    whole = np.array([code is not None for code in codes])
    for person in np.flatnonzero(mine.max(axis=1) > 1 - 1e-9):
        assert sure[person] and truth[person].argmax() == mine[person].argmax()
    # leaf by leaf nobody is missed; what two leaves tell together of a row in both is more than is computed
    alone = [posteriors(lambda v, leaf=leaf: printed(v)[leaf], len(codes), 2)[printed(values)[leaf]] for leaf in (0, 1)]
    for person in range(len(codes)):
        leaves = [codes[person]] if whole[person] else [0, 1]
        if any(alone[leaf][person].max() > 1 - 1e-9 for leaf in leaves if leaf is not None):
            assert mine[person].max() > 1 - 1e-9


def test_half_a_row_is_somebody_who_misses_a_value() -> None:
    """Wrong by half a row: whoever misses nothing is right, and one of those who miss something is not."""
    frame = pd.DataFrame({"sex": ["f"] * 4 + ["m"] * 4 + [None]})
    text = "sex = f: a (4.5/0.5)\nsex = m: b (4.5)"
    found = posterior_audit(text, frame, sensitive="y", remedies=False)
    assert (believed(found).max(axis=1) == 1).all()
    assert believed(found)[-1].tolist() == [0.0, 1.0]  # it is in a leaf without anybody wrong
    # the table has nobody who misses a value, so that half a row is somebody's
    other = posterior_audit(text, frame.iloc[:8], sensitive="y", remedies=False)
    assert other.overall["possible worlds"].known == 8 and Labelled.of(50, 50.33, 0.5, (), 2).people == (49,)


# -- every setting of scikit-learn --------------------------------------------------------------

NOT_COMPUTED = "is not computed"


@st.composite
def settings_of_trees(draw: st.DrawFn) -> tuple[dict[str, Any], bool]:
    """Settings of a DecisionTreeClassifier, two or three of them changed; and whether rows have weights."""
    choices: dict[str, st.SearchStrategy[Any]] = {
        "criterion": st.sampled_from(["entropy", "log_loss"]),
        "class_weight": st.sampled_from(["balanced", {0: 2.0, 1: 3.0}, {0: 0.5, 1: 1.0}]),
        "min_samples_leaf": st.integers(2, 3),
        "min_samples_split": st.sampled_from([3, 5, 0.5]),
        "min_weight_fraction_leaf": st.just(0.2),
        "min_impurity_decrease": st.sampled_from([0.01, 0.1]),
        "ccp_alpha": st.sampled_from([0.01, 0.05, 0.1]),
        "max_leaf_nodes": st.integers(2, 4),
        "max_depth": st.integers(1, 3),
        "max_features": st.just(1),
        "monotonic_cst": st.sampled_from([[1, 0], [-1, 1]]),
        "splitter": st.just("random"),
    }
    names = draw(st.lists(st.sampled_from(sorted(choices)), max_size=3, unique=True))
    return {name: draw(choices[name]) for name in names}, draw(st.integers(0, 5)) == 0


def published_numbers(fitted: DecisionTreeClassifier) -> bytes:
    """All that whoever holds the fitted tree reads in it."""
    tree = fitted.tree_
    shown = (tree.children_left, tree.feature, tree.threshold, tree.missing_go_to_left, tree.n_node_samples)
    sums = (tree.value, tree.weighted_n_node_samples)
    return b"".join(each.tobytes() for each in (*shown, *(np.round(each, 9) for each in sums)))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    settings_of_trees(),
    st.lists(st.tuples(*[st.sampled_from([0.0, 0.0, 1.0, 1.0, None])] * 2), min_size=6, max_size=8),
    st.sampled_from(["fitted", "counts", "labels"]),
    st.integers(0, 99),
)
def test_no_setting_of_scikit_learn_makes_a_tree_look_safer_than_it_is(
    chosen: tuple[dict[str, Any], bool], rows: list[tuple[float | None, ...]], form: str, seed: int
) -> None:
    """All assignments are fitted again with the same settings, weights of rows and seed.

    By posteriors nobody's true posterior reaches the threshold where the tree is called safe. By disclosure what the
    tree tells beyond the others of the leaf is below it, or the verdict says that something is not computed. What is
    called certain is so, but for labels alone: there a text is taken to be grown as it is by default.
    """
    asked, has_weights = chosen
    frame = pd.DataFrame(rows, columns=["x0", "x1"], dtype=float)
    if "monotonic_cst" in asked:
        frame = frame.fillna(0.0)
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.5, 1.0, 2.0], len(frame)) if has_weights else None
    groups, fitted = defaultdict(list), {}
    for assignment in itertools.product(range(2), repeat=len(frame)):
        if len(set(assignment)) < 2:
            continue
        tree = DecisionTreeClassifier(random_state=seed, **asked).fit(frame, assignment, sample_weight=weights)
        text = export_text(tree, feature_names=list(frame.columns), show_weights=form == "counts", decimals=4)
        key = published_numbers(tree) if form == "fitted" else text
        groups[key].append(assignment)
        fitted.setdefault(key, tree)
    often = sorted(groups, key=lambda each: -len(groups[each]))[:2]
    for key in [*often, *(sorted(groups, key=repr)[at] for at in rng.integers(0, len(groups), 2))]:
        held = np.array(groups[key])
        truth = np.stack([(held == 0).mean(axis=0), (held == 1).mean(axis=0)], axis=1)
        tree = fitted[key] if form == "fitted" else key
        for measure, threshold in (("posterior", 0.8), ("disclosure", 0.15)):
            try:
                found = posterior_audit(
                    tree, frame, sensitive="y", values=[0, 1], measure=measure, threshold=threshold, remedies=False
                )
            except PrivetError:  # weights that are read as rows, or a split by missing values in a text
                continue
            mine = believed(found)
            claimed = mine.max(axis=1) > 1 - 1e-9
            assert form == "labels" or (truth[claimed] == mine[claimed].round()).all()
            if not found.safe or (measure == "disclosure" and NOT_COMPUTED in found.verdict.reason):
                continue
            others = found.own.inference[found.people.profile] if measure == "disclosure" else np.zeros_like(truth)
            assert np.max(truth - others, where=truth > 0, initial=0.0) < threshold


@pytest.mark.parametrize(
    "settings_of_leaves",
    [{"min_samples_leaf": 5}, {"min_weight_fraction_leaf": 0.1}, {"min_samples_split": np.int64(5)}],
)
def test_leaves_that_need_several_rows_are_pure_if_they_could_be_divided(settings_of_leaves: dict[str, Any]) -> None:
    """A tree of one leaf, or one whose choices nobody uses, tells by its labels alone that such leaves are pure."""
    frame = pd.DataFrame({"x": [*range(40)], "z": [1.0, None] * 20})
    for values in (["ill"] * 40, ["ill"] * 20 + ["well"] * 20):
        fitted = DecisionTreeClassifier(**settings_of_leaves).fit(frame, values)
        found = posterior_audit(
            fitted, frame, sensitive="y", values=["ill", "well"], published="labels", criterion="none", remedies=False
        )
        assert not found.safe and found.known == 40 and found.worst == 1


def test_leaves_of_too_few_rows_on_a_side_need_not_be_pure() -> None:
    """No threshold leaves five rows on either side, so nothing follows; at random one is missed: no verdict."""
    frame = pd.DataFrame({"x": [0.0] * 36 + [1.0] * 4})
    values = ["ill"] * 20 + ["well"] * 20
    asked = {"sensitive": "y", "published": "labels", "remedies": False}
    assert posterior_audit(DecisionTreeClassifier(min_samples_leaf=5).fit(frame, values), frame, **asked).safe
    wide = pd.DataFrame({"x": [0.0] * 20 + [1.0] * 20})
    drawn = DecisionTreeClassifier(min_samples_leaf=5, splitter="random").fit(wide, ["ill"] * 40)
    found = posterior_audit(drawn, wide, values=["ill", "well"], **asked)
    assert not found.safe and "min_samples_leaf = 5" in found.verdict.reason


def test_random_splits_may_leave_rows_without_a_number_among_others() -> None:
    """One of three in a leaf is ill, which its label hides: taken for pure, it would add a hundredth to the others."""
    frame = pd.DataFrame({"x": [0.0] * 100 + [1.0, 1.0, None]})
    values = ["well"] * 102 + ["ill"]
    trees = (DecisionTreeClassifier(splitter="random", random_state=seed).fit(frame, values) for seed in range(50))
    fitted = next(tree for tree in trees if sorted(tree.tree_.n_node_samples.tolist()) == [3, 100, 103])
    found = privet.audit(
        fitted, frame, sensitive="y", published="labels", baseline={"well": 0.99, "ill": 0.01}, remedies=False
    )
    assert not found.safe and found.own.largest == pytest.approx(0.99 / 3)
    alone = DecisionTreeClassifier(splitter="random").fit(frame[100:], ["well"] * 3)
    found = posterior_audit(
        alone, frame[100:], sensitive="y", values=["ill", "well"], published="labels", remedies=False
    )
    assert not found.safe and "splitter = random" in found.verdict.reason


def test_counts_show_that_a_tree_was_not_grown_to_the_end() -> None:
    """With min_samples_leaf leaves stay mixed, and a text does not say so: its counts do, and nobody is certain."""
    frame = pd.DataFrame({"x": [1, 2, 3, 4, 5, 6, 7, 8] * 5})
    values = ["ill"] + ["well"] * 19 + ["ill"] * 20
    fitted = DecisionTreeClassifier(min_samples_leaf=15).fit(frame, values)
    text = export_text(fitted, feature_names=["x"], show_weights=True)
    for tree in (fitted, text):
        found = posterior_audit(tree, frame, sensitive="y", criterion="gini", remedies=False)
        shares = found.beliefs["possible worlds"].shares
        assert shares.max() < 1 and found.own.largest > 0
    with pytest.raises(ModelError, match="has several values, so the tree was not grown until its leaves were pure"):
        privet.audit(text, frame, sensitive="y", stopping="full")


def test_whoever_knows_the_weights_of_rows_may_know_their_values() -> None:
    """Sums of weights that differ name the rows they are of: no verdict, until the weights are left out."""
    frame = pd.DataFrame({"x": [1.0] * 30 + [2.0] * 30})
    values = np.arange(60) % 3 == 0
    weights = 1 + np.sqrt(np.arange(60))
    fitted = DecisionTreeClassifier().fit(frame, values, sample_weight=weights)
    found = privet.audit(fitted, frame, sensitive="y")
    assert not found.safe and found.undecided == 60 and "whoever knows each weight" in found.verdict.reason
    assert found.best is not None and found.best.kind == "withhold weights" and found.verdict.kind != "publish"
    assert privet.audit(fitted, frame, sensitive="y", published="labels").safe


def test_of_people_whom_a_text_does_not_place_no_verdict_is_given() -> None:
    """scikit-learn sends a missing value left or right, and its text does not say which."""
    frame = pd.DataFrame({"x": [0.0] * 30 + [1.0] * 30 + [None]})
    found = privet.audit("|--- x <= 0.5\n|   |--- class: a\n|--- x >  0.5\n|   |--- class: b\n", frame, sensitive="y")
    assert found.undecided == 1 and not found.safe
    assert "of 1 of 61 people: a value that the tree asks for is missing" in found.verdict.reason
    assert privet.audit("x <= 0.5: a (30.0)\nx > 0.5: b (30.0)", frame.dropna(), sensitive="y").safe

"""Whatever a run publishes is seen: a number that hides in a list, a model or an error is a column like any other."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import privet
from privet.kernel import RESIDUAL_GRID, AdditiveModel
from privet.testing import seeded_noise
from privet.verification import observe
from privet.verification.checks import RAISED
from privet.verification.tables import DOMAIN, known_pairs

PAIR = known_pairs()[2]
X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 3)
Y = np.array([0, 1, 1, 0] * 3)


def table(rows: pd.DataFrame = PAIR.right) -> privet.ProtectedTable:
    return privet.open(rows, DOMAIN, budget=1000)


# -- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("published", "seen"),
    [
        (3, {"output": 3}),
        (2.5, {"output": 2.5}),
        (True, {"output": True}),
        ("yes", {"output": "yes"}),
        (None, {"output": None}),
        (np.int64(3), {"output": 3}),
        (np.float32(0.5), {"output": 0.5}),
        (np.bool_(True), {"output": 1}),
        (Fraction(1, 4), {"output": 0.25}),
        (Decimal("0.5"), {"output": 0.5}),
        (1j, {"output": "1j"}),
        (b"x", {"output": "b'x'"}),
        ([], {"length of output": 0}),
        ({}, {}),
        ((1, "a"), {"output[0]": 1, "output[1]": "a", "length of output": 2}),
        (np.array([[1], [2]]), {"output[0]": 1, "output[1]": 2, "length of output": 2}),
        (np.array([1, "a"], dtype=object), {"output[0]": 1, "output[1]": "a", "length of output": 2}),
        (pd.Series([1.5]), {"output[0]": 1.5, "length of output": 1}),
        (pd.Series([1, 2], index=["b", "a"]), {"output[b]": 1, "output[a]": 2, "length of output": 2}),
        (pd.Series([1, 2], index=["a", "a"]), {"output[0]": 1, "output[1]": 2, "length of output": 2}),
        (
            pd.DataFrame({"a": [1], "b": ["x"]}),
            {"output.a[0]": 1, "output.b[0]": "x", "length of output.a": 1, "length of output.b": 1},
        ),
        ({"count": 3, "mean": 2.0}, {"count": 3, "mean": 2.0}),
    ],
)
def test_a_value_is_seen_by_name(published: Any, seen: dict[str, Any]) -> None:
    assert observe.seen(published) == seen


@pytest.mark.parametrize(
    "published",
    [
        lambda secret: ({"count": secret}, 3),
        lambda secret: [[1, 2], [secret]],
        lambda secret: [np.zeros((2, 3)), np.full((2, 2), secret)],
        lambda secret: {"a": {"n": secret}, "b": {"n": 1}},
        lambda secret: {"a": [secret], "b": [1]},
        lambda secret: [[[secret]]],
        lambda secret: {1, 2, secret},
        lambda secret: [0] * secret,
        lambda secret: np.zeros((secret, 2)),
        lambda secret: [0] * 1_000 + [0] * secret,
    ],
)
def test_a_secret_is_seen_wherever_it_hides(published: Any) -> None:
    """Would catch two parts of one name of which only the last is seen, and a shape that nobody looks at."""
    one, other = observe.seen(published(5)), observe.seen(published(6))
    assert one != other
    assert all(isinstance(value, int | float | str | None) for value in one.values())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"x": {"a": 1, "b": 2}}, {"x": {"b": 2, "a": 1}}),
        (pd.Series({"a": 1, "b": 2}), pd.Series({"b": 2, "a": 1})),
        (pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"b": [2], "a": [1]})),
        (pd.DataFrame({"n": [1, 2]}, index=["a", "b"]), pd.DataFrame({"n": [2, 1]}, index=["b", "a"])),
        (3, 3.0),
        (3, np.int64(3)),
        (Fraction(3), 3.0),
        ([1, 2], (1, 2)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros(2, dtype=np.int8), np.zeros(2, dtype=np.int64)),
    ],
)
def test_types_shapes_and_the_order_of_names_are_seen(one: Any, other: Any) -> None:
    """Equal values in another order, or of another type. Would catch cells told in the order of their exact counts."""
    frames = [observe.runs(lambda value=value: value, 1) for value in (one, other)]
    assert frames[0][observe.FORM].tolist() != frames[1][observe.FORM].tolist()


def test_what_an_error_says_is_seen() -> None:
    def run(secret: int) -> int:
        raise ValueError(f"{secret} rows")

    assert [observe.runs(lambda secret=secret: run(secret), 1)[observe.MESSAGE].tolist() for secret in (1, 2)] == [
        ["1 rows"],
        ["2 rows"],
    ]


def test_a_long_array_is_seen_by_its_length_and_its_first_numbers() -> None:
    """Would catch a frame with a column for each of a million numbers."""
    for published in (np.arange(10_000), list(range(10_000)), [[0] * 100] * 100):
        found = observe.seen(published)
        assert len(found) == observe.MOST_NUMBERS + 1
        assert found["length of output"] == len(published)


def test_several_parts_keep_names_of_their_own() -> None:
    """Would catch a second histogram that is written over the first."""
    with seeded_noise(1):
        asked = table()
        one, other = asked.histogram("a", epsilon=1), asked.histogram("b", epsilon=1)
        choice = asked.select("max", 1)
        mean = asked.mean("x", 1)
    found = observe.seen({"one": one, "other": other, "both": (choice, mean)})
    assert [found[f"cell[{i}] of one"] for i in range(2)] == one.values.tolist()
    assert [found[f"cell[{i}] of other"] for i in range(2)] == other.values.tolist()
    assert found["choice of both[0]"] == str(choice)
    assert found["deviation of both[1]"] == float(mean.deviation)


# -- releases ---------------------------------------------------------------------------------


def test_every_release_is_seen_as_what_it_publishes() -> None:
    """Would catch a release that is seen by its text, which rounds, or by one of the numbers it holds."""
    caps = (RESIDUAL_GRID, RESIDUAL_GRID)
    with seeded_noise(3):
        asked = table()
        count, total, mean = asked.count(1), asked.sum("x", 1), asked.mean("x", 1)
        median, histogram = asked.median("x", 1), asked.histogram("a", "y", epsilon=1)
        choice = asked.select("max", 1)
        threshold = asked.select("max", 1, attributes=["x"], thresholds=True)
        sums = asked.residual_sums(AdditiveModel((0, 0)), ("a",), caps, 1)
        parts = asked.partition("a").count(1)
    assert observe.seen(count) == {"output": int(count)}
    assert observe.seen(total) == {"output": float(total)}
    assert observe.seen(mean) == {"deviation": float(mean.deviation), "count": int(mean.count)}
    assert observe.seen(median) == {"output": float(median)}
    cells = {f"cell[{i}]": value for i, value in enumerate(histogram.values.ravel().tolist())}
    assert observe.seen(histogram) == {**cells, "length of cell": 4}
    assert observe.seen(choice) == {"choice": str(choice), "point": None}
    assert observe.seen(threshold) == {"choice": "x", "point": float(threshold.point)}
    assert observe.seen(sums) == {
        **{f"own[{i}]": value for i, value in enumerate(sums.own.ravel().tolist())},
        "length of own": 4,
    }
    assert observe.seen(parts) == {"output[0]": int(parts[0]), "output[1]": int(parts[1]), "length of output": 2}
    kinds = {type(value) for value in observe.seen(parts).values()}
    assert kinds == {int}  # plain numbers: a release would bring its text into frames


# -- models -----------------------------------------------------------------------------------


def test_a_model_is_seen_with_its_structure_labels_counts_and_path() -> None:
    """Would catch a distinguisher to whom trees of other splits, or of the same splits and other counts, look alike."""
    with seeded_noise(5):
        fitted = privet.HanischTreeClassifier(1, max_depth=2, random_state=0).fit(table())
    found = observe.seen(fitted, probe=PAIR.probe)
    tree = fitted.model_.trees[0]
    assert found == observe.trees(fitted.model_, PAIR.probe)
    assert found == observe.seen(fitted.model_, probe=PAIR.probe)
    end = int(fitted.model_.apply(PAIR.probe)[0, 0])
    assert found["their label"] == tree.labels[end]
    assert [found[f"their leaf's class {code}"] for code in (0, 1)] == tree.counts[end].tolist()
    assert found["structure"].count(" ") == len(tree.column) - 1
    with seeded_noise(6):
        again = privet.HanischTreeClassifier(1, max_depth=2, random_state=0).fit(table())
        drawn = [privet.HanischTreeClassifier(1, max_depth=2, random_state=seed).fit(table()) for seed in range(9)]
    other = observe.seen(again, probe=PAIR.probe)
    assert other["structure"] == found["structure"] and other != found
    assert len({observe.seen(each)["structure"] for each in drawn}) > 1


def test_every_tree_of_a_forest_is_seen() -> None:
    with seeded_noise(5):
        fitted = privet.HanischForestClassifier(1, n_estimators=3, max_depth=1, random_state=0).fit(table())
    found = observe.seen(fitted, probe=PAIR.probe)
    for number in (1, 2, 3):
        assert f"structure of tree {number}" in found and f"their leaf's class 0 of tree {number}" in found


def test_sizes_on_the_path_of_a_person_are_seen() -> None:
    """Would catch noisy sizes of inner nodes, which DiffPID3 publishes, that nobody looks at."""
    with seeded_noise(5):
        fitted = privet.DiffPID3Classifier(50, max_depth=1, random_state=0).fit(table())
    sizes = [name for name in observe.seen(fitted, probe=PAIR.probe) if "size at depth" in name]
    assert "their size at depth 0" in sizes


# -- other people's estimators ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "column"),
    [
        (lambda: DecisionTreeClassifier(max_depth=2, random_state=0), "tree_.value[0]"),
        (lambda: RandomForestClassifier(2, random_state=0), "estimators_[1].tree_.threshold[0]"),
        (lambda: LogisticRegression(), "coef_[1]"),
        (lambda: GaussianNB(), "theta_[0]"),
    ],
)
def test_a_fitted_estimator_shows_its_public_numbers_and_predictions(make: Any, column: str) -> None:
    """Would catch an attribute that is skipped because it is an object, and predictions that nobody asks for."""
    fitted = make().fit(X, Y)
    found = observe.estimator(fitted, X[:2])
    assert column in found
    assert [found[f"predict[{i}]"] for i in (0, 1)] == fitted.predict(X[:2]).tolist()
    assert [found[f"predict_proba[{i}]"] for i in (0, 1)] == fitted.predict_proba(X[:1])[0].tolist()
    assert not any(name.startswith("_") for name in found)
    other = make().fit(np.vstack([X, [[0.3, 0.7]]]), np.append(Y, 0))
    assert observe.estimator(other, X[:2]) != found


def test_an_estimator_is_recognised_by_what_it_does() -> None:
    fitted = KMeans(2, n_init=1, random_state=0).fit(X)
    assert "cluster_centers_[0]" in observe.seen(fitted)
    assert "cluster_centers_[0] of model" in observe.seen({"model": fitted})


# -- runs -------------------------------------------------------------------------------------


def test_a_run_that_raises_is_a_row_that_says_so() -> None:
    """Would catch runs that are dropped because they failed: how often they do is published too."""
    outcomes = iter([3, ZeroDivisionError("no"), 4, KeyError("x")])

    def run() -> int:
        found = next(outcomes)
        if isinstance(found, Exception):
            raise found
        return found

    frame = observe.runs(run, 4)
    assert frame[RAISED].isna().tolist() == [True, False, True, False]
    assert frame[RAISED].tolist()[1::2] == ["ZeroDivisionError", "KeyError"]
    assert frame["output"].tolist()[::2] == [3, 4]


def test_the_owner_can_stop_a_run() -> None:
    """Would catch an interrupt that is taken for an output."""

    def run() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        observe.runs(run, 3)


def test_arrays_of_another_length_in_every_run_are_one_frame() -> None:
    lengths = iter([0, 3, 1, 200])
    frame = observe.runs(lambda: np.ones(next(lengths)), 4)
    assert frame["length of output"].tolist() == [0, 3, 1, 200]
    assert frame["output[2]"].isna().tolist() == [True, False, True, False]
    assert len(frame.columns) == observe.MOST_NUMBERS + 2  # and the length, and the form


# -- low bits ---------------------------------------------------------------------------------


def test_low_bits_tell_the_grid_of_a_number() -> None:
    """The finest power of two that a number is a multiple of; 0 and infinity have some."""
    numbers = np.array([0.5, 0.75, 1.5, 3.0, -(2.0**-30), 1 + 2.0**-52, 2.0**60])
    expected = [-1, -2, -1, 0, -30, -52, 60]
    assert observe._finest_bit(numbers).tolist() == expected
    assert np.isfinite(observe._finest_bit(np.array([0.0, math.inf, -math.inf, math.nan]))).all()


def test_low_bits_of_float_noise_tell_what_it_was_added_to() -> None:
    """Noise of floats keeps bits below those of 1 + noise: Mironov 2012. Would catch a bench that never looks there."""
    rng = np.random.default_rng(0)
    noise = rng.laplace(0, 1, 2_000)
    frames = [observe.with_low_bits(pd.DataFrame({"output": exactly + noise})) for exactly in (0, 1)]
    finest = [frame["finest bit of output"] for frame in frames]
    assert finest[0].min() < -53 <= finest[1].min()


def test_whole_numbers_texts_and_few_values_get_no_low_bits() -> None:
    """Would catch columns about nothing, which cost time and doubt."""
    frame = pd.DataFrame(
        {
            "count": np.arange(100),
            "whole": np.arange(100.0),
            "few": [0.1, 0.2] * 50,
            "text": ["x"] * 100,
            "missing": [None] * 100,
        }
    )
    assert list(observe.with_low_bits(frame).columns) == list(frame.columns)

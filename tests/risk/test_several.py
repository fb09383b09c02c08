"""Several publications of the same people: what they tell together, against every assignment of small tables."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)

import privet
from privet.errors import DataError, ModelError, PrivetError
from privet.risk.readers import read_tree
from privet.risk.several import View, left_out, settled, together

FUZZ = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def views(draw: st.DrawFn) -> tuple[list[View], np.ndarray, int]:
    """Up to 8 people in two or three views, each with groups and times that rows count."""
    classes = draw(st.integers(2, 3))
    people = draw(st.integers(2, 8 if classes == 2 else 6))
    values = np.array(draw(st.lists(st.integers(0, classes - 1), min_size=people, max_size=people)))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        group = np.array(draw(st.lists(st.integers(-1, 2), min_size=people, max_size=people)))
        times = np.array(draw(st.lists(st.integers(0, 2), min_size=people, max_size=people)), dtype=float)
        view = View(group, np.zeros((3, classes)), times if draw(st.booleans()) else None)
        found.append(View(group, view.sums(np.eye(classes)[values]), view.times))
    return found, values, classes


@FUZZ
@given(views())
def test_what_is_settled_follows_and_beliefs_agree_with_all_views(made: tuple[list[View], np.ndarray, int]) -> None:
    some, values, classes = made
    worlds = []
    for assignment in itertools.product(range(classes), repeat=len(values)):
        shares = np.eye(classes)[list(assignment)]
        if all(np.allclose(view.sums(shares), view.totals) for view in some):
            worlds.append(assignment)
    every = np.array(worlds)
    known = settled(some, len(values), classes)
    for person, value in itertools.product(range(len(values)), range(classes)):
        if not np.isnan(known[person, value]):
            assert ((every[:, person] == value) == bool(known[person, value])).all()
    belief = together(some, len(values), classes)
    assert np.allclose(belief.shares.sum(axis=1), 1)
    for view in some:  # sums are met where that is possible inside, which a world on the edge may not be
        assert np.abs(view.sums(belief.shares) - view.totals).max() < 0.2


def test_two_trees_that_differ_by_one_person_give_that_person_away() -> None:
    """Differencing: each tree alone has leaves of many; together they say what the newcomer has."""
    before = "x = a: well (20.0/5.0)\nx = b: ill (20.0/8.0)"
    after = "x = a: well (21.0/6.0)\nx = b: ill (20.0/8.0)"
    frame = pd.DataFrame({"x": ["a"] * 21 + ["b"] * 20, "last_year": ["yes"] * 20 + ["no"] + ["yes"] * 20})
    asked: dict[str, Any] = {"sensitive": "y", "values": ["ill", "well"], "remedies": False}
    this_year = frame.drop(columns="last_year")
    assert privet.audit(after, this_year, **asked).verdict.kind == "publish"
    found = privet.audit([before, after], frame, training=["last_year", None], **asked)
    assert found.verdict.kind == "do not publish" and found.known == 1
    newcomer = found.own.disclosure[20]
    assert newcomer.argmax() == 0 and newcomer[0] > 0.5  # ill, where a quarter of the others are
    with pytest.raises(DataError, match="training has 1 entries for 2 trees"):
        privet.audit([before, after], frame, training=["last_year"], **asked)
    with pytest.raises(DataError, match="contradict each other"):
        privet.audit(["x = a: well (20.0)\n", "x = a: ill (20.0)\n"], frame.iloc[:20, :1], **asked)


def people(seed: int = 0, rows: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 5, (rows, 3)).astype(float), columns=list("abc"))
    return frame, ((frame["a"] + 3 * rng.random(rows)) > 4).to_numpy().astype(int)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(8, random_state=1),
        ExtraTreesClassifier(8, random_state=1),
        RandomForestClassifier(8, random_state=1, max_depth=3, bootstrap=False),
        GradientBoostingClassifier(n_estimators=8, random_state=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_forests_and_boosting_count_their_people(model: Any) -> None:
    frame, values = people()
    found = privet.audit(model.fit(frame, values), frame, sensitive="y", truth=values)
    belief = found.beliefs["all together"].shares
    sure = belief.max(axis=1) > 1 - 1e-9
    assert sure.any() and (belief[sure].argmax(axis=1) == values[sure]).all()
    assert found.own.largest <= 1 and found.summary["baseline"]["most"] < 1
    assert "several trees together" in " ".join(found.notes)
    with pytest.raises(ModelError, match=r"does not fit the table|do not count the people|more rows than"):
        privet.audit(model, frame.iloc[:-5], sensitive="y")


BOOSTED = Path(__file__).parent / "boosted"  # written by the packages themselves: make.py says which
MODELS = ["xgboost", "xgboost-exact", "xgboost-half", "xgboost-no-ridge", "lightgbm"]


@pytest.mark.parametrize("model", MODELS)
def test_boosted_files_tell_how_many_of_every_leaf(model: str) -> None:
    """Weights are sums over people, from which whole numbers follow, whatever the rate and the method."""
    rows = pd.read_csv(BOOSTED / "people.csv")
    frame, values = rows[["a", "b", "c"]], rows["y"].to_numpy()
    found = privet.audit(BOOSTED / f"{model}.json", frame, sensitive="y", truth=list(map(str, values)))
    belief = found.beliefs["all together"].shares
    sure = belief.max(axis=1) > 1 - 1e-9
    assert sure.any() and (belief[sure].argmax(axis=1) == values[sure]).all()


def test_boosting_on_sampled_rows_is_refused() -> None:
    frame = pd.read_csv(BOOSTED / "people.csv")[["a", "b", "c"]]
    with pytest.raises(ModelError, match="sampled or weighted"):
        privet.audit(BOOSTED / "xgboost-sampled.json", frame, sensitive="y")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a JSON value."""
    inner = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))]


@pytest.mark.parametrize("model", ["xgboost", "lightgbm"])
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    at=st.integers(0, 10**6),
    put=st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.just([]), st.just({})),
)
def test_a_damaged_boosted_file_is_read_or_a_sentence(model: str, at: int, put: Any) -> None:
    damaged = json.loads((BOOSTED / f"{model}.json").read_text(encoding="utf-8"))
    everywhere = places(damaged)
    *path, last = everywhere[1 + at % (len(everywhere) - 1)]
    inside = damaged
    for key in path:
        inside = inside[key]
    inside[last] = put
    frame = pd.read_csv(BOOSTED / "people.csv")[["a", "b", "c"]]
    try:
        privet.audit("\n" + json.dumps(damaged), frame, sensitive="y", remedies=False)
    except PrivetError as error:
        assert "\n" not in str(error)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.binary(max_size=60), st.sampled_from(["", '{"learner":', '{"tree_info":[', "<PMML", "|--- ", "a <= "]))
def test_any_bytes_are_read_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes, begin: str) -> None:
    path = tmp_path_factory.getbasetemp() / "published"
    path.write_bytes(begin.encode() + content)
    try:
        read_tree(path)
    except PrivetError as error:
        assert "\n" not in str(error)


def test_models_that_are_not_read_are_refused_by_name() -> None:
    frame, values = people()
    with pytest.raises(ModelError, match="AdaBoostClassifier has many trees that are not read"):
        privet.audit(AdaBoostClassifier(n_estimators=2).fit(frame, values), frame, sensitive="y")
    with pytest.raises(ModelError, match="is not fitted"):
        privet.audit(RandomForestClassifier(), frame, sensitive="y")
    with pytest.raises(ModelError, match="cannot be audited: its rows were sampled or weighted"):
        privet.audit(RandomForestClassifier(2, class_weight="balanced").fit(frame, values), frame, sensitive="y")


def test_the_own_row_is_left_out_of_its_groups() -> None:
    view = View(np.array([0, 0, 0, 1]), np.array([[2.0, 1.0], [0.0, 1.0]]))
    rest = left_out([view], np.array([0.5, 0.5]))
    assert rest[0] == pytest.approx([1.5 / 3, 0.5])  # one more of two, and the baseline
    assert rest[3] == pytest.approx([0.5, 0.5])  # nobody else: the baseline

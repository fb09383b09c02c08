"""Published models: they predict what a plain walk finds and are read as written; a bad file is one sentence."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.errors import DataError, ModelError
from privet.kernel.column import Column, Nominal, Numeric
from privet.kernel.domain import Domain
from privet.models.privacy_record import Privacy, Step
from privet.models.tree import Ensemble, Leaf, Split, Tree

PROPERTY = settings(derandomize=True, deadline=None, max_examples=150)
RECORD = Privacy(
    "test",
    "plain",
    Fraction(3, 10),
    2,
    (Step(0, 0, "size", 1, Fraction(1, 10), 7), Step(0, 1, "label", 2, Fraction(1, 5))),
)
PEOPLE = Domain(
    (
        Nominal("income", ("low", "high")),
        Numeric("age", Fraction(0), Fraction(99), Fraction(1), bins=3, missing=True),
        Nominal("sex", ("f", "m"), other=True),
        Numeric("wage", Fraction(0), Fraction(5), Fraction("0.5"), bins=2),
    ),
    target="income",
)


def tree(
    nodes: Sequence[tuple[str | None, int, Sequence[float]]], domain: Domain = PEOPLE, deviation: float = 2.0
) -> Tree:
    """A tree of (column, threshold index or -1, counts) in breadth-first order."""
    position: dict[str | None, int] = {None: -1, **{name: i for i, name in enumerate(domain.attributes)}}
    return Tree.grown(
        domain,
        np.array([position[name] for name, _, _ in nodes]),
        np.array([at for _, at, _ in nodes]),
        np.array([counts for _, _, counts in nodes], dtype=np.float64),
        np.full(len(nodes), deviation),
        np.where([name is None for name, _, _ in nodes], np.nan, 50.0),
    )


def model(*trees: Tree, vote: str = "majority", prior: tuple[float, ...] | None = None) -> Ensemble:
    return Ensemble(trees[0].domain, trees, RECORD, vote, prior)


def leaf(*counts: float) -> Tree:
    return tree([(None, -1, counts)])


# age <= 39 / age > 39 / age = <missing>; the middle one by sex in the cells f, m, <other>
SMALL = tree(
    [
        ("age", 40, (0, 0)),
        (None, -1, (9, 1)),
        ("sex", -1, (0, 0)),
        (None, -1, (2, 8)),
        (None, -1, (5, 6)),
        (None, -1, (-4, -1)),
        (None, -1, (1, 3)),
    ]
)


# -- predictions --------------------------------------------------------------------------------


@st.composite
def attributes(draw: st.DrawFn, name: str) -> Column:
    missing = draw(st.booleans())
    if draw(st.booleans()):
        values = draw(st.lists(st.sampled_from(["x", "y", "", "1"]), min_size=1, max_size=3, unique=True))
        return Nominal(name, tuple(values), other=draw(st.booleans()), missing=missing)
    step, last = draw(st.sampled_from([Fraction(1), Fraction("0.1"), Fraction(5)])), draw(st.integers(1, 6))
    low = draw(st.sampled_from([Fraction(0), Fraction("-0.3")]))
    return Numeric(name, low, low + last * step, step, bins=draw(st.integers(1, min(3, last))), missing=missing)


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    classes = draw(st.sampled_from([("yes", "no"), (1, 2, 3), (False, True), ("only",)]))
    columns = [draw(attributes(name)) for name in "abc"[: draw(st.integers(1, 3))]]
    columns.insert(draw(st.integers(0, len(columns))), Nominal("t", classes))
    return Domain(tuple(columns), target="t")


@st.composite
def trees(draw: st.DrawFn, domain: Domain) -> Tree:
    counts = st.lists(
        st.integers(-3, 5) | st.sampled_from([0, 0.25, 2.0**60]),
        min_size=len(domain.classes),
        max_size=len(domain.classes),
    )
    nodes: list[tuple[str | None, int, Sequence[float]]] = []
    waiting = 1
    while waiting > len(nodes):
        name = draw(st.sampled_from(domain.attributes)) if waiting < 15 and draw(st.booleans()) else None
        at = -1
        if name is not None:
            column = domain[name]
            if isinstance(column, Numeric) and draw(st.booleans()):
                at = draw(st.integers(1, column.grid_size - 1))
            waiting += column.size if at < 0 else 2 + column.missing
        nodes.append((name, at, draw(counts)))
    return tree(nodes, domain, draw(st.sampled_from([0.0, 1.5])))


@st.composite
def models(draw: st.DrawFn) -> Ensemble:
    domain = draw(domains())
    grown = draw(st.lists(trees(domain), min_size=1, max_size=3))
    vote = draw(st.sampled_from(["majority", "average", "weighted"]))
    size = len(domain.classes)
    prior = draw(st.none() | st.lists(st.integers(-2, 5), min_size=size, max_size=size).map(tuple))
    return model(*grown, vote=vote, prior=prior)


VALUES = (
    st.none() | st.sampled_from(["x", "y", "", "1", "unseen", float("nan")]) | st.floats(-2, 32) | st.integers(-2, 32)
)


@st.composite
def models_and_rows(draw: st.DrawFn) -> tuple[Ensemble, list[dict[str, object]]]:
    drawn = draw(models())
    row = st.fixed_dictionaries({name: VALUES for name in drawn.domain.attributes})
    return drawn, draw(st.lists(row, min_size=1, max_size=8))


def frame(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in rows[0]})


def end_of(nodes: list[dict[str, Any]], domain: Domain, row: Mapping[str, object]) -> tuple[int, list[int]]:
    """Where a row ends, and the nodes on its path, by the words of docs/reference/model.md."""
    first, following = [], 1
    for node in nodes:
        first.append(following)
        if "split" in node:
            column = domain[node["split"]]
            following += 2 + column.missing if "at" in node else column.size
    path = [0]
    while "split" in nodes[path[-1]]:
        node = nodes[path[-1]]
        column = domain[node["split"]]
        if "at" in node:
            assert isinstance(column, Numeric)
            index = column.grid(row[node["split"]])
            child = (2 if column.missing else None) if index is None else int(index >= node["at"])
        else:
            child = column.code(row[node["split"]])
        if child is None:
            break
        path.append(first[path[-1]] + child)
    return path[-1], path


def shares_of(nodes: list[dict[str, Any]], path: list[int]) -> list[float]:
    """What a node says: its counts above 0, its parent's where all are 0, barely the largest where none is above."""
    counts = nodes[path[-1]]["counts"]
    positive = [max(count, 0) for count in counts]
    if sum(positive):
        return [count / sum(positive) for count in positive]
    if not any(counts) and len(path) > 1:
        return shares_of(nodes, path[:-1])
    return [(1 + 1e-6 * (i == counts.index(max(counts)))) / (len(counts) + 1e-6) for i in range(len(counts))]


def slow_proba(published: dict[str, Any], domain: Domain, row: Mapping[str, object]) -> list[float]:
    classes = len(domain.classes)
    votes = [0.0] * classes
    vote, prior = published["vote"], published["prior"]
    for nodes in published["trees"]:
        end, path = end_of(nodes, domain, row)
        counts, shares = nodes[end]["counts"], shares_of(nodes, path)
        if "split" in nodes[end] and prior is not None:
            counts = prior
            positive = [max(count, 0) for count in prior]
            shares = [count / sum(positive) if sum(positive) else 1 / classes for count in positive]
            if vote == "majority" and len(published["trees"]) > 1:
                shares = [float(i == prior.index(max(prior))) for i in range(classes)]
        if vote == "weighted":
            shares = [max(count, 0) for count in counts]
        elif vote == "majority" and len(published["trees"]) > 1:
            shares = [float(i == shares.index(max(shares))) for i in range(classes)]
        votes = [a + b for a, b in zip(votes, shares, strict=True)]
    total = sum(votes) if vote == "weighted" else len(published["trees"])
    return [share / total if total else 1 / classes for share in votes]


@PROPERTY
@given(models_and_rows(), st.randoms(use_true_random=False))
def test_predictions_are_those_of_a_plain_walk_over_the_published_nodes(
    drawn: tuple[Ensemble, list[dict[str, object]]], random: Any
) -> None:
    published, rows = drawn
    expected = np.array([slow_proba(json.loads(published.to_json()), published.domain, row) for row in rows])
    found = published.predict_proba(frame(rows))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    classes = list(published.domain.classes)
    for prediction, shares in zip(published.predict(frame(rows)), expected, strict=True):
        assert shares[classes.index(prediction)] >= max(shares) - 1e-9
    # the order of the columns, and columns nobody asked for, change nothing
    names = [*published.domain.attributes, "t", "extra"]
    random.shuffle(names)
    other = frame([{**dict.fromkeys(names, "noise"), **row} for row in rows])[names]
    np.testing.assert_array_equal(published.predict_proba(other), found)


@PROPERTY
@given(models_and_rows())
def test_a_model_read_back_predicts_the_same_and_is_written_the_same(
    drawn: tuple[Ensemble, list[dict[str, object]]],
) -> None:
    published, rows = drawn
    written = published.to_json()
    read = Ensemble.from_json(written)
    assert read.to_json() == written
    assert read.domain == published.domain and read.privacy == published.privacy
    assert read.predict(frame(rows)).tolist() == published.predict(frame(rows)).tolist()
    np.testing.assert_array_equal(read.predict_proba(frame(rows)), published.predict_proba(frame(rows)))


def people(**columns: Sequence[object]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(list(values), dtype=object) for name, values in columns.items()})


def test_a_threshold_sends_equal_values_left() -> None:
    wage = tree([("wage", 3, (0, 0)), (None, -1, (1, 0)), (None, -1, (0, 1))])
    split = wage.root
    assert isinstance(split, Split) and split.threshold == 1.0 and split.labels == ("<= 1", "> 1")
    # values are read on the grid, rounded down: 1.49 is 1
    assert model(wage).predict(people(wage=[0, 1.0, 1.49, 1.5, 99, "1"])).tolist() == [
        "low",
        "low",
        "low",
        "high",
        "high",
        "low",
    ]


def test_an_unseen_category_stops_at_the_last_node_that_fits() -> None:
    by_bin = tree([("age", -1, (0, 0)), *[(None, -1, (1, 0))] * 3, ("wage", -1, (0, 0)), *[(None, -1, (2, 6))] * 2])
    rows = people(age=[None, 5], wage=["unreadable", 1])
    assert model(by_bin).predict_proba(rows)[0].tolist() == [0.25, 0.75]  # the sums of the node that asks for wage
    assert model(by_bin, prior=(3, 1)).predict_proba(rows).tolist() == [[0.75, 0.25], [1, 0]]


def test_the_three_votes() -> None:
    voters = leaf(1, 0), leaf(1, 0), leaf(2, 98)
    anyone = people(age=[1])
    assert model(*voters).predict(anyone) == ["low"]
    np.testing.assert_allclose(model(*voters).predict_proba(anyone), [[2 / 3, 1 / 3]])
    np.testing.assert_allclose(model(*voters, vote="average").predict_proba(anyone), [[2.02 / 3, 0.98 / 3]])
    np.testing.assert_allclose(model(*voters, vote="weighted").predict_proba(anyone), [[4 / 102, 98 / 102]])


@pytest.mark.parametrize("vote", ["majority", "average", "weighted"])
def test_ties_go_to_the_first_class(vote: str) -> None:
    assert model(leaf(5, 5), vote=vote).predict(people(age=[1])) == ["low"]
    assert model(leaf(0, 3), leaf(3, 0), vote=vote).predict(people(age=[1])) == ["low"]
    assert model(leaf(0, 0), vote=vote).predict(people(age=[1])) == ["low"]


def test_a_leaf_below_zero_predicts_its_largest_count_and_has_no_weight() -> None:
    anyone = people(age=[1])
    for vote in ("majority", "average"):
        assert model(leaf(-9, -2), vote=vote).predict(anyone) == ["high"]
        np.testing.assert_allclose(model(leaf(-9, -2), vote=vote).predict_proba(anyone), 0.5, atol=1e-6)
    assert model(leaf(-9, -2), leaf(1, 0), vote="weighted").predict_proba(anyone).tolist() == [[1, 0]]


@pytest.mark.parametrize("vote", ["majority", "average", "weighted"])
def test_no_rows_have_no_predictions(vote: str) -> None:
    for published in (
        model(SMALL, vote=vote),
        model(leaf(1, 2), vote=vote),
        model(SMALL, SMALL, vote=vote, prior=(1, 2)),
    ):
        assert published.predict_proba(people(age=[], sex=[])).shape == (0, 2)
        assert published.predict(people(age=[], sex=[])).shape == (0,)


def test_a_missing_column_is_named_and_only_those_looked_at_are_needed() -> None:
    with pytest.raises(DataError, match="have no column 'sex', which the model looks at"):
        model(SMALL).predict(people(age=[1]))
    with pytest.raises(DataError, match="have several columns 'age'"):
        model(SMALL).predict(pd.DataFrame([[1, 2, "f"], [3, 4, "f"]], columns=["age", "age", "sex"]))
    assert model(SMALL).predict(people(sex=["f"], age=[50])) == ["high"]  # no wage
    assert model(leaf(1, 2)).predict(people(nothing=[0, 0])).tolist() == ["high", "high"]


def test_every_kind_of_frame_predicts_the_same() -> None:
    rows = pd.DataFrame({"age": [10.0, 50, np.nan, 120], "sex": ["f", "f", "m", None]})
    expected = model(SMALL).predict_proba(rows)
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for other in (polars.from_pandas(rows), arrow.Table.from_pandas(rows), rows.set_index("sex", drop=False)):
        np.testing.assert_array_equal(model(SMALL).predict_proba(other), expected)


# -- looking at a tree --------------------------------------------------------------------------


def test_inner_nodes_sum_their_leaves_and_the_walk_goes_depth_first() -> None:
    visits = list(SMALL.walk())
    assert [visit.number for visit in visits] == [0, 1, 2, 4, 5, 6, 3]
    assert visits[4].path == ("age > 39", "sex = m") and visits[4].depth == 2
    assert visits[-1].path == ("age = <missing>",)
    root = SMALL.root
    assert isinstance(root, Split) and root.children == (1, 2, 3) and root.size == 50
    assert root.counts == (13, 17) and root.deviation == pytest.approx(2 * 5**0.5)
    assert SMALL.node(5) == Leaf((-4, -1), 2.0, label=1)
    assert (SMALL.leaves, len(SMALL), SMALL.depth) == (5, 7, 2)


def test_rules_and_the_data_frame_tell_the_same_tree() -> None:
    rules = SMALL.rules()
    assert rules[0] == "if age <= 39 then low (low 9, high 1)"
    assert rules[2] == "if age > 39 and sex = m then high (low -4, high -1)" and len(rules) == 5
    assert leaf(1, 2).rules() == ["if anything then high (low 1, high 2)"]
    table = SMALL.to_dataframe()
    assert table["node"].tolist() == [0, 1, 2, 4, 5, 6, 3]
    assert table["parent"].tolist() == [-1, 0, 0, 2, 2, 2, 0]
    assert table["condition"].tolist()[3:5] == ["sex = f", "sex = m"]
    assert table["split"].isna().tolist() == [False, True, False, True, True, True, True]
    assert table["rows of low"].tolist() == [13, 9, 2, 5, -4, 1, 2]
    assert table["label"].tolist() == ["high", "low", "high", "high", "high", "high", "high"]


@PROPERTY
@given(models())
def test_a_cut_tree_stops_where_it_was_cut(drawn: Ensemble) -> None:
    whole = drawn.trees[0]
    at_root = whole.cut(np.arange(len(whole)) == 0)
    assert len(at_root) == 1 and at_root.node(0).counts == whole.node(0).counts
    uncut = whole.cut(np.zeros(len(whole), dtype=bool))
    assert replace(drawn, trees=(uncut,)).to_json() == replace(drawn, trees=(whole,)).to_json()
    below_root = whole.cut(whole.depths == 1)
    assert below_root.depth == min(whole.depth, 1)
    np.testing.assert_array_equal(below_root.counts, whole.counts[whole.depths <= 1])


def test_what_is_published_cannot_be_changed() -> None:
    for array in (SMALL.column, SMALL.at, SMALL.counts, SMALL.deviation, SMALL.size, SMALL.first):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        SMALL.counts = np.zeros((7, 2))  # type: ignore[misc]
    with pytest.raises(AttributeError):
        model(SMALL).vote = "average"  # type: ignore[misc]


def test_the_only_tree_of_several_is_an_error() -> None:
    assert model(SMALL).tree is SMALL
    with pytest.raises(ModelError, match="the model has 2 trees"):
        _ = model(SMALL, SMALL).tree


# -- hostile files ------------------------------------------------------------------------------

GOOD: dict[str, Any] = json.loads(model(SMALL).to_json())
BRACKETS = 100_000


def changed(path: str, value: object) -> str:
    """The model with another value somewhere; 'trees.0.2.counts' names a place."""
    content = json.loads(json.dumps(GOOD))
    *above, last = [int(word) if word.isdigit() else word for word in path.split(".")]
    place = content
    for word in above:
        place = place[word]
    place[last] = value
    return json.dumps(content)


def without(key: str) -> str:
    return json.dumps({name: value for name, value in GOOD.items() if name != key})


def step(epsilon: str, level: int = 0) -> dict[str, object]:
    return {"tree": 0, "level": level, "question": "q", "parts": 1, "epsilon": epsilon, "entry": None}


SPLIT = {"split": "age", "at": 40, "counts": [1, 2], "deviation": 0.0}
END = {"counts": [1, 2], "deviation": 0.0}
HOSTILE = {
    "nothing": "",
    "no object": "[]",
    "two documents": json.dumps(GOOD) * 2,
    "NaN": json.dumps(GOOD).replace("-4", "NaN"),
    "Infinity": json.dumps(GOOD).replace("-4", "-Infinity"),
    "a number that overflows to infinity": json.dumps(GOOD).replace("-4", "1e999999999"),
    "a number of 4000 digits": json.dumps(GOOD).replace("-4", "9" * 4000),
    "a number of 5000 digits": json.dumps(GOOD).replace("-4", "9" * 5000),
    "a number of a million digits": json.dumps(GOOD).replace("-4", "9" * 10**6),
    "brackets": "[" * BRACKETS,
    "braces": '{"a":' * BRACKETS,
    "brackets inside": json.dumps(GOOD).replace("-4", "[" * BRACKETS + "]" * BRACKETS),
    "another format": changed("format", "pickle"),
    "no format": without("format"),
    "a later version": changed("version", 2),
    "a version as text": changed("version", "1"),
    "no version": without("version"),
    "no domain": without("domain"),
    "a domain as an object": changed("domain", {"columns": {}}),
    "a domain that is no TOML": changed("domain", "= ="),
    "a domain of brackets": changed("domain", "a = " + "[" * BRACKETS),
    "a domain with a huge number": changed("domain", f"rows = 0x{'f' * 9000}\n" + PEOPLE.to_toml().split("\n", 2)[2]),
    "a domain with half a letter": changed("domain", PEOPLE.to_toml().replace('"m"', '"\ud800"')),
    "no target": changed("domain", PEOPLE.to_toml().replace('target = "income"', "")),
    "a numeric target": changed("domain", PEOPLE.to_toml().replace('target = "income"', 'target = "age"')),
    "another vote": changed("vote", "coup"),
    "a list as vote": changed("vote", ["majority"]),
    "a prior too short": changed("prior", [1]),
    "a prior as text": changed("prior", "12"),
    "a prior of booleans": changed("prior", [True, False]),
    "no trees": without("trees"),
    "an empty forest": changed("trees", []),
    "trees as an object": changed("trees", {"0": []}),
    "an empty tree": changed("trees", [[]]),
    "a tree as a number": changed("trees", [7]),
    "a node as a list": changed("trees.0.0", []),
    "a node with another key": changed("trees.0.0.__class__", "os.system"),
    "too few nodes": changed("trees.0", GOOD["trees"][0][:-1]),
    "too many nodes": changed("trees.0", [*GOOD["trees"][0], END]),
    "a split without children": changed("trees.0", [SPLIT]),
    "a node that is its own parent": changed("trees.0", [END, {**SPLIT}, END, END]),
    "a second root": changed("trees.0", [END, {**SPLIT}, END, END, END]),
    "an unknown column": changed("trees.0.0.split", "shoe size"),
    "the target as attribute": changed("trees.0.0.split", "income"),
    "a list as column": changed("trees.0.0.split", ["age"]),
    "a threshold on a nominal column": changed("trees.0.2.at", 1),
    "a threshold without a column": changed("trees.0.1.at", 1),
    "a threshold of 0": changed("trees.0.0.at", 0),
    "a threshold beyond the grid": changed("trees.0.0.at", 100),
    "a negative threshold": changed("trees.0.0.at", -1),
    "a boolean threshold": changed("trees.0.0.at", True),
    "a fractional threshold": changed("trees.0.0.at", 40.0),
    "no threshold": changed("trees.0.0.at", None),
    "too many counts": changed("trees.0.1.counts", [1, 2, 3]),
    "no counts": changed("trees.0.1.counts", None),
    "a count as text": changed("trees.0.1.counts", ["1", "2"]),
    "a count too large": changed("trees.0.1.counts", [2**63, 0]),
    "a negative deviation": changed("trees.0.1.deviation", -1),
    "no deviation": changed("trees.0.1.deviation", None),
    "a size as text": changed("trees.0.1.size", "50"),
    "no privacy": without("privacy"),
    "privacy as text": changed("privacy", "yes"),
    "no steps": changed("privacy.steps", None),
    "a step as text": changed("privacy.steps", ["size"]),
    "a loss below 0": changed("privacy.epsilon", "-1"),
    "a loss as a number": changed("privacy.epsilon", 0.5),
    "a loss over 0": changed("privacy.epsilon", "1/0"),
    "a loss in other digits": changed("privacy.epsilon", "\u0661/\u0663"),
    "a loss of 9999 digits": changed("privacy.epsilon", "9" * 9999),
    "a loss beyond floating point": changed("privacy.epsilon", "9" * 390),
    "losses whose sum is too long": changed("privacy.steps", [step(f"1/{10**190 + 2 * i + 1}", i) for i in range(60)]),
    "a reason as a number": changed("privacy.reasons", [1]),
    "a reason with half a letter": changed("privacy.reasons", ["\ud800"]),
    "rows per person as text": changed("privacy.rows_per_person", "1"),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ModelError) as refused:
        Ensemble.from_json(text)
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_file_cut_short_is_refused_wherever_it_was_cut() -> None:
    text = model(SMALL, SMALL, prior=(1, 2)).to_json()
    for length in range(0, len(text) - 1, 97):
        with pytest.raises(ModelError, match="not valid JSON"):
            Ensemble.from_json(text[:length])


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.data())
def test_any_value_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    """A reader that lets any other exception through fails here; what it does read it can use."""
    junk: st.SearchStrategy[Any] = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=5)
        | st.just([])
        | st.just({})
        | st.just([[]])
    )
    places = ["domain", "vote", "prior", "trees", "privacy", "trees.0", "trees.0.0", "trees.0.1"]
    places += [f"trees.0.{n}.{key}" for n in (0, 1, 2) for key in ("split", "at", "size", "counts", "deviation", "x")]
    places += [f"privacy.{key}" for key in GOOD["privacy"]] + [
        f"privacy.steps.0.{key}" for key in GOOD["privacy"]["steps"][0]
    ]
    text = changed(data.draw(st.sampled_from(places)), data.draw(junk))
    try:
        read = Ensemble.from_json(text)
    except ModelError:
        return
    assert Ensemble.from_json(read.to_json()).to_json() == read.to_json()
    assert len(read.predict(people(age=[1], sex=["f"]))) == 1
    assert repr(read) and repr(read.privacy) and read.text() and read.to_html()


def test_files_that_are_no_models(tmp_path: Path) -> None:
    def refused(content: bytes, message: str) -> None:
        path = tmp_path / "model.json"
        path.write_bytes(content)
        with pytest.raises(ModelError, match=message):
            Ensemble.load(path)

    refused(b"\xff\xfe", "is not UTF-8 text")
    refused(b"", "model.json: the model is not valid JSON")
    refused(pickle.dumps(Trap(tmp_path / "sprung")), "is not UTF-8 text|not valid JSON")
    assert not (tmp_path / "sprung").exists()
    with pytest.raises(ModelError, match=r"cannot read the model .*No such file"):
        Ensemble.load(tmp_path / "nowhere.json")
    with pytest.raises(ModelError, match="cannot read the model"):
        Ensemble.load(tmp_path)


class Trap:
    """An object that writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.path,)


def test_a_saved_model_is_loaded(tmp_path: Path) -> None:
    published = model(SMALL, vote="average", prior=(1, 2))
    published.save(tmp_path / "model.json")
    read = Ensemble.load(str(tmp_path / "model.json"))
    assert read.to_json() == published.to_json() and read.vote == "average" and read.prior == (1, 2)
    assert read.privacy == RECORD and read.private


def test_reasons_survive_the_file() -> None:
    published = Ensemble(PEOPLE, (SMALL,), Privacy("test", "plain", Fraction(1), reasons=("its noise was seeded",)))
    read = Ensemble.from_json(published.to_json())
    assert not read.private and "NOT PRIVATE" in repr(read) and "its noise was seeded" in repr(read.privacy)


def test_the_file_shown_in_the_documentation_is_a_model() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "model.md").read_text(encoding="utf-8")
    shown = page.split("```json\n")[1].split("```")[0]
    read = Ensemble.from_json(shown)
    assert json.loads(read.to_json()) == json.loads(shown)
    assert read.predict(people(age=[40, 41, None])).tolist() == ["low", "high", "low"]

"""What own rows add, against brute force over all worlds; and what must show as disclosure, or must not."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published import EXAMPLE, id3

import privet
from privet.errors import DataError
from privet.risk import AuditOptions
from privet.risk.constraints import choices_of
from privet.risk.disclosure import most_added, own_rows
from privet.risk.maximum_entropy import maximum_entropy
from privet.risk.noisy import decay
from privet.risk.people import People
from privet.risk.publication import COUNTS, RATES, Publication
from privet.risk.tree import GINI, Node, PublishedTree
from privet.risk.worlds import possible_worlds

FUZZ = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def tables(draw: st.DrawFn) -> tuple[pd.DataFrame, int]:
    """Up to 12 people with two attributes, and values of two or three kinds."""
    classes = draw(st.integers(2, 3))
    people = draw(st.integers(3, 12 if classes == 2 else 8))
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, classes - 1)),
            min_size=people,
            max_size=people,
        )
    )
    frame = pd.DataFrame([(f"a{a}", f"b{b}", f"v{v}") for a, b, v in rows], columns=["a", "b", "s"])
    return frame, classes


def worlds_of(people: int, classes: int) -> np.ndarray:
    return np.array(list(itertools.product(range(classes), repeat=people)), dtype=np.int8)


def leaves_of(tree: PublishedTree, frame: pd.DataFrame) -> np.ndarray:
    publication = Publication.of(tree, People.of(frame, ["a", "b"]))
    return publication.leaf[publication.people.profile]


def agrees(worlds: np.ndarray, values: np.ndarray, leaf: np.ndarray, tree: PublishedTree, level: str) -> np.ndarray:
    """The worlds in which every leaf says what it says: counts, or how many people have its label."""
    fine = np.ones(len(worlds), dtype=bool)
    for each in np.unique(leaf):
        here = leaf == each
        for value in range(len(tree.values)):
            if level == COUNTS or value == tree.nodes[each].label:
                fine &= (worlds[:, here] == value).sum(axis=1) == (values[here] == value).sum()
    return worlds[fine]


@FUZZ
@given(tables(), st.sampled_from([COUNTS, RATES]), st.sampled_from(["maximum entropy", "possible worlds"]))
def test_both_adversaries_against_all_worlds(made: tuple[pd.DataFrame, int], level: str, adversary: str) -> None:
    """Leaves alone. With: the mean over worlds that agree. Without: over worlds of the others, whose leaf says the same
    less the own row, and the baseline as one of them."""
    frame, classes = made
    values = tuple(f"v{value}" for value in range(classes))
    tree = id3(frame, "s", GINI, depth=2, values=values)
    codes = np.array([values.index(value) for value in frame["s"]])
    leaf = leaves_of(tree, frame)
    people = People.of(frame, ["a", "b"])
    publication = Publication.of(tree, people, level)
    truth = np.zeros((len(people), classes))
    np.add.at(truth, (people.profile, codes), 1)
    baseline = np.bincount(codes, minlength=classes) / len(codes)
    find = possible_worlds if adversary == "possible worlds" else maximum_entropy
    own = own_rows(publication, {adversary: find(publication, ())}, baseline, truth)
    if level == RATES and adversary == "maximum entropy" and classes > 2:
        return  # its shares are those of worlds only where no value is capped by the label's
    for person in range(len(frame)):
        here, value = np.flatnonzero(leaf == leaf[person]), codes[person]
        assert len(here)
        mine = (slice(None), int(np.flatnonzero(here == person)[0]))
        label = tree.nodes[leaf[person]].label
        every = worlds_of(len(here), classes)
        if level == RATES:  # no value is more frequent than the label
            counts = np.stack([(every == each).sum(axis=1) for each in range(classes)], axis=1)
            every = every[counts[:, label] == counts.max(axis=1)]
        fine = agrees(every, codes[here], np.full(len(here), leaf[person]), tree, level)
        with_row = (fine[mine] == value).mean()
        rest = np.delete(codes[here], mine[1])
        others = agrees(worlds_of(len(rest), classes), rest, np.full(len(rest), leaf[person]), tree, level)
        seen = (others == value).sum(axis=1).mean() if len(rest) else 0.0
        without = (seen + baseline[value]) / len(here)
        at = (people.profile[person], value)
        assert own.disclosure[at] == pytest.approx(max(with_row - without, 0), abs=1e-6)
        assert own.inference[at] + own.disclosure[at] == pytest.approx(max(with_row, own.inference[at]), abs=1e-6)


@FUZZ
@given(tables())
def test_what_choices_tell_is_disclosed_whole(made: tuple[pd.DataFrame, int]) -> None:
    """Every world that agrees with leaves and with every choice: what is believed beyond the leaf is added."""
    frame, classes = made
    values = tuple(f"v{value}" for value in range(classes))
    tree = id3(frame, "s", GINI, depth=1, values=values)
    people = People.of(frame, ["a", "b"])
    publication = Publication.of(tree, people, COUNTS)
    choices = choices_of(publication)
    alone, told = (possible_worlds(publication, some) for some in ((), choices))
    even = np.full(classes, 1 / classes)
    before, after = (own_rows(publication, {"possible worlds": each}, even) for each in (alone, told))
    more = np.maximum(told.shares - alone.shares, 0)
    possible = told.shares > 1e-9
    assert after.disclosure[possible] == pytest.approx((before.disclosure + more)[possible], abs=1e-6)


def test_singletons_and_homogeneous_leaves_are_disclosed() -> None:
    """A leaf of one person is all of it; of n alike, a share of n."""
    for n in (1, 2, 5, 20):
        frame = pd.DataFrame({"x": ["one"] * n + ["other"] * 40})
        text = f"x = one: ill ({n}.0)\nx = other: well (40.0/20.0)"
        found = privet.audit(text, frame, sensitive="y", baseline={"ill": 0.2, "well": 0.8}, remedies=False)
        assert found.own.largest == pytest.approx(max(0.8 / n, 0.8 / 40))
        assert found.known == (n if 0.8 / n >= 0.1 else 0)
        assert (found.verdict.kind == "publish") == (0.8 / n < 0.1)


def test_that_smokers_fall_ill_is_inferred_and_not_disclosed() -> None:
    """Nearly all of a thousand smokers are ill: posteriors are near 1, and no own row adds anything to speak of."""
    frame = pd.DataFrame({"smokes": ["yes"] * 1000 + ["no"] * 1000})
    text = "smokes = yes: ill (1000.0/20.0)\nsmokes = no: well (1000.0/20.0)"
    found = privet.audit(text, frame, sensitive="y", remedies=False)
    assert found.verdict.kind == "publish" and found.worst == pytest.approx(0.0005)
    assert found.summary["inference"]["most"] == pytest.approx(0.98, abs=1e-3)
    by_posterior = privet.audit(text, frame, sensitive="y", measure="posterior", remedies=False)
    assert by_posterior.known == 2000 and by_posterior.verdict.kind == "do not publish"


def test_the_choice_of_splits_shows_as_disclosure() -> None:
    """Zhu and Du's example 1: the leaf says that one of two earns more; the split says who."""
    tree = "age = Youth: <=50K (2.0)\nage = Senior: <=50K (2.0/1.0)\nage = MiddleAge: >50K (2.0)"
    frame = EXAMPLE.drop(columns="salary")
    with_choice = privet.audit(tree, frame, sensitive="salary", criterion="entropy", remedies=False)
    without = privet.audit(tree, frame, sensitive="salary", criterion="none", remedies=False)
    senior = [with_choice.people.told(at).startswith("age = Senior") for at in range(len(with_choice.people))]
    assert with_choice.own.by_profile[senior] == pytest.approx([0.75, 0.75])  # 1 against (0 + 1/2) / 2
    assert without.own.by_profile[senior] == pytest.approx([0.25, 0.25])


# -- private models -----------------------------------------------------------------------------


@FUZZ
@given(st.lists(st.integers(-3, 9), min_size=2, max_size=3), st.floats(0.05, 3), st.integers(1, 8))
def test_noisy_counts_against_all_worlds_and_their_bound(counts: list[int], epsilon: float, size: int) -> None:
    """All counts of the others and of everybody, weighted by the noise that they need; odds stay in e^(2 epsilon)."""
    classes, noisy = len(counts), np.array(counts, dtype=float)
    deviation = math.sqrt(2 * math.exp(-epsilon)) / (1 - math.exp(-epsilon))  # a leaf that spends epsilon
    assert decay(deviation) == pytest.approx(epsilon)
    nodes = (Node(label=0, counts=tuple(noisy), deviation=deviation),)
    tree = PublishedTree(nodes, tuple("abc"[:classes]), "privet", epsilon=epsilon)  # type: ignore[arg-type]
    people = People.of(pd.DataFrame({"q": ["x"] * size}), ["q"])
    baseline = np.arange(1, classes + 1) / np.arange(1, classes + 1).sum()
    own = own_rows(Publication.of(tree, people), {}, baseline)

    def mean_counts(total: int) -> np.ndarray:
        every = [c for c in itertools.product(range(total + 1), repeat=classes) if sum(c) == total]
        weights = [math.exp(-epsilon * np.abs(noisy - np.array(c)).sum()) for c in every]
        return np.array(weights) @ np.array(every) / sum(weights)

    others = mean_counts(size - 1)
    factor = (mean_counts(size) / size) / ((others + 1) / (size - 1 + classes))
    without = (others + baseline) / size
    with_row = without * factor / (without * factor).sum()
    assert own.inference[0] == pytest.approx(without, abs=1e-6)
    assert own.disclosure[0] == pytest.approx(np.maximum(with_row - without, 0), abs=1e-6)
    for value in range(classes):
        odds = with_row[value] / (1 - with_row[value]) / (without[value] / (1 - without[value]))
        assert odds <= math.exp(2 * epsilon) * (1 + 1e-9)
    assert own.bound == pytest.approx(most_added(epsilon)) and own.largest <= own.bound + 1e-9


def test_a_private_model_is_judged_by_what_its_rows_add() -> None:
    frame = privet.datasets.census(2000, seed=3)[["sex", "education", "income"]]
    domain = privet.datasets.census_domain()
    domain = replace(domain, columns=tuple(column for column in domain if column.name in frame.columns))
    fit: dict[str, Any] = {"X": frame.drop(columns="income"), "y": frame["income"]}
    private = privet.DiffPID3Classifier(1, max_depth=2, domain=domain).fit(**fit)
    found = privet.audit(private, frame, sensitive="income", truth=frame, remedies=False)
    assert found.verdict.kind == "publish" and found.own.bound == pytest.approx(math.tanh(0.5))
    tables = privet.BoostedTablesClassifier(1, domain=domain).fit(**fit)
    bounded = privet.audit(tables, frame, sensitive="income", truth=frame)
    assert bounded.verdict.kind == "publish" and not bounded.own.is_computed
    assert bounded.summary["baseline"] == found.summary["baseline"]
    assert "e^2 = 7.39 times" in bounded.verdict.reason and "e^2 = 7.39 times" in found.verdict.reason


def test_a_promise_that_says_little_is_no_reason_to_publish() -> None:
    frame = privet.datasets.census(300, seed=3)[["sex", "education", "income"]]
    domain = privet.datasets.census_domain()
    domain = replace(domain, columns=tuple(column for column in domain if column.name in frame.columns))
    fit: dict[str, Any] = {"X": frame.drop(columns="income"), "y": frame["income"]}
    loose = privet.NaiveBayesClassifier(5, domain=domain).fit(**fit)
    found = privet.audit(loose, frame, sensitive="income")
    assert found.own.bound == pytest.approx(math.tanh(2.5)) and found.verdict.kind == "do not publish"
    tight = privet.NaiveBayesClassifier(1, domain=domain).fit(**fit)
    assert privet.audit(tight, frame, sensitive="income").verdict.kind == "publish"


# -- rows that are an unknown part of the people ------------------------------------------------


@pytest.mark.parametrize(("people", "rows", "ill"), [(4, 2, 1), (5, 3, 3), (6, 2, 2)])
def test_an_unknown_part_of_the_people_against_all_parts_and_worlds(people: int, rows: int, ill: int) -> None:
    """Every choice of the rows, and every assignment of values whose rows have the leaf's counts, is as likely."""
    worlds = worlds_of(people, 2)
    parts = list(itertools.combinations(range(people), rows))
    shares = [world for world in worlds for part in parts if world[list(part)].sum() == ill]
    text = f": {'ill' if 2 * ill >= rows else 'well'} ({rows}.0/{min(ill, rows - ill)}.0)".replace("/0.0", "")
    frame = pd.DataFrame({"q": ["x"] * people})
    even = {"well": 0.5, "ill": 0.5}
    asked: dict[str, Any] = {"sensitive": "y", "values": ["well", "ill"], "baseline": even, "remedies": False}
    found = privet.audit(text + "\n", frame, training="unknown", **asked)
    believed = found.beliefs["possible worlds"].shares[0, 1]
    assert believed == pytest.approx(np.mean(shares), abs=1e-9)
    known = privet.audit(text + "\n", frame.iloc[:rows], **asked)
    assert found.own.largest < known.own.largest  # whoever may not have been in it gives away less


def test_a_share_of_the_people_is_stated_where_leaves_do_not_say_it() -> None:
    text, frame = "x = a: ill\nx = b: well\n", pd.DataFrame({"x": ["a"] * 2 + ["b"] * 40})
    asked: dict[str, Any] = {"sensitive": "y", "training": "unknown", "remedies": False}
    whole, half = (privet.audit(text, frame, **asked, share=share) for share in (1, 0.5))
    assert half.own.by_profile[0] <= whole.own.by_profile[0]
    assert half.beliefs["possible worlds"].shares.max() < whole.beliefs["possible worlds"].shares.max() + 0.5
    assert "an unknown 0.5 of these people" in " ".join(half.assumptions)
    for wrong in ({"share": 0}, {"share": 0.5, "training": None}):
        with pytest.raises(DataError, match="share is the part of people"):
            privet.audit(text, frame, **{**asked, **wrong})


# -- options ------------------------------------------------------------------------------------


def test_options_are_a_value_whose_fields_can_be_named() -> None:
    text, frame = "x = 1: a (1.0)\nx = 2: b (3.0/1.0)", pd.DataFrame({"x": [1, 2, 2, 2]})
    options = AuditOptions(measure="posterior", remedies=False)
    one = privet.audit(text, frame, sensitive="y", options=options)
    same = privet.audit(text, frame, sensitive="y", measure="posterior", remedies=False)
    assert one.to_dict() == same.to_dict() and one.threshold == 0.8
    assert privet.audit(text, frame, sensitive="y", options=options, threshold=0.9).threshold == 0.9
    with pytest.raises(DataError, match="audit has no option 'treshold'; it has baseline, "):
        privet.audit(text, frame, sensitive="y", treshold=0.9)
    with pytest.raises(DataError, match="the measure is disclosure or posterior, not 'luck'"):
        privet.audit(text, frame, sensitive="y", measure="luck")

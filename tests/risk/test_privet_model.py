"""Models of privet as an adversary reads them: the same leaves and counts, and noise where there was some."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import privet
from privet.errors import ModelError
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.models.privacy_record import Privacy, Step
from privet.models.tree import Ensemble, Tree
from privet.risk.people import People
from privet.risk.publication import Publication, most_published
from privet.risk.readers.privet_model import NOISY, published

DOMAIN = Domain(
    (
        Nominal("income", ("low", "mid", "high")),
        Numeric("age", Fraction(0), Fraction(99), Fraction(1), bins=4, missing=True),
        Nominal("sex", ("f", "m"), other=True),
        Nominal("town", ("a", "b", "c", "d")),
    ),
    target="income",
)


def people(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    age, sex, town = rng.integers(0, 100, rows), rng.choice(["f", "m", "x"], rows), rng.choice(list("abcde"), rows)
    score = age / 40 + (sex == "f") + (town == "b") + rng.normal(0, 0.4, rows)
    income = np.select([score < 1, score < 2], ["low", "mid"], "high")
    missing = rng.random(rows) < 0.1
    return pd.DataFrame({"age": np.where(missing, np.nan, age), "sex": sex, "town": town, "income": income})


def fitted(frame: pd.DataFrame, criterion: str = "gini") -> Ensemble:
    classifier = privet.ID3Classifier(criterion=criterion, max_depth=3, domain=DOMAIN)
    return classifier.fit(frame.drop(columns="income"), frame["income"]).model_


def small(privacy: Privacy, counts: list[list[float]], deviation: float) -> Ensemble:
    """A split by sex."""
    tree = Tree.grown(
        DOMAIN,
        np.array([1, -1, -1, -1]),
        np.full(4, -1),
        np.array([[0.0] * 3, *counts]),
        np.full(4, deviation),
        np.full(4, np.nan),
    )
    return Ensemble(DOMAIN, (tree,), privacy)


PRIVATE = Privacy("test", "plain", Fraction(1, 2), steps=(Step(0, 1, "class counts", 3, Fraction(1, 2)),))
COUNTS = [[3.5, 1.0, 0.0], [-1.0, 4.0, 2.0], [0.0, 1.0, 6.0]]


@pytest.mark.parametrize("values", [None, ("high", "low", "mid", "unknown")])
def test_rows_and_counts_are_those_of_the_model(values: tuple[str, ...] | None) -> None:
    frame = people()
    model = fitted(frame)
    tree = published(model, values)
    public = values or ("low", "mid", "high")
    assert tree.values == public and tree.features == ("age", "sex", "town") and tree.model is model
    who = People.of(frame, ["age", "sex", "town"])
    laid = Publication.of(tree, who)
    leaf, fits = laid.leaf[who.profile], (frame["town"] != "e").to_numpy()
    assert (leaf[fits] == model.apply(frame)[fits, 0]).all()
    assert (leaf[~fits] == -1).all()  # a row that fits no declared cell was left out
    assert laid.level == "counts" and len(laid.leaves) > 10
    for number in laid.leaves:
        counted = frame["income"][leaf == number].value_counts()
        assert tree.nodes[number].counts == tuple(counted.get(value, 0) for value in public)
        assert tree.values[laid.label(number)] == model.predict(frame[leaf == number])[0]


def test_thresholds_lead_to_the_same_leaves() -> None:
    frame = people()
    frame = frame[frame["town"] != "e"]
    classifier = privet.C45Classifier(domain=DOMAIN).fit(frame.drop(columns="income"), frame["income"])
    tree = published(classifier.model_)
    who = People.of(frame, ["age", "sex", "town"])
    assert (Publication.of(tree, who).leaf[who.profile] == classifier.model_.apply(frame)[:, 0]).all()
    assert any("<=" in tree.where(leaf) for leaf in tree.leaves)
    assert tree.criterion is None and "gain ratio" in tree.silent


@pytest.mark.parametrize(("asked", "found"), [("gini", "gini"), ("infogain", "entropy"), ("max", None)])
def test_choices_without_noise_are_taken_at_their_word(asked: str, found: str | None) -> None:
    tree = published(fitted(people(), asked))
    assert tree.criterion == found and tree.epsilon is None
    assert bool(tree.silent) == (found is None)
    assert all(node.deviation == 0 for node in tree.nodes)


def test_a_model_that_does_not_say_its_criterion_is_silent() -> None:
    model = fitted(people())
    tree = published(replace(model, privacy=replace(model.privacy, criterion="")))
    assert tree.criterion is None and "does not record" in tree.silent
    other = published(replace(model, privacy=replace(model.privacy, reasons=("it was drawn by hand",))))
    assert other.criterion is None and other.epsilon is None and other.nodes[-1].counts is not None


def test_a_private_model_has_noisy_counts_and_silent_choices() -> None:
    tree = published(small(replace(PRIVATE, criterion="gini"), COUNTS, 2.0), ["high", "mid", "low"])
    assert tree.epsilon == Fraction(1, 2) and tree.criterion is None and tree.silent == NOISY
    assert [tree.nodes[leaf].counts for leaf in tree.leaves] == [(0, 1, 3.5), (2, 4, -1), (6, 1, 0)]
    assert {tree.nodes[leaf].deviation for leaf in tree.leaves} == {2.0}
    assert [tree.nodes[leaf].label for leaf in tree.leaves] == [2, 1, 0]


def test_seeded_noise_is_noise() -> None:
    tree = published(small(replace(PRIVATE, reasons=("its noise was seeded, or its rows are public",)), COUNTS, 2.0))
    assert tree.epsilon == Fraction(1, 2) and tree.silent == NOISY


@pytest.mark.parametrize("reasons", [(), ("its noise was seeded, or its rows are public",)])
def test_leaves_that_released_a_label_say_nothing_else(reasons: tuple[str, ...]) -> None:
    record = replace(PRIVATE, steps=(Step(0, 1, "label", 3, Fraction(1, 2)),), reasons=reasons)
    tree = published(small(record, [[1, 0, 0], [0, 1, 0], [0, 0, 1]], 0.0))
    assert most_published(tree) == "labels" and tree.epsilon == Fraction(1, 2)
    assert [tree.nodes[leaf].label for leaf in tree.leaves] == [0, 1, 2]
    assert all(node.counts is None and node.size is None and node.wrong is None for node in tree.nodes)


def test_a_class_that_is_no_public_value() -> None:
    with pytest.raises(ModelError, match=r"says 'high', which is not among the public values \(low, mid\)"):
        published(small(PRIVATE, COUNTS, 2.0), ["low", "mid"])
    # a class that no leaf speaks of need not be listed
    assert published(small(PRIVATE, [[3, 1, 0]] * 3, 2.0), ["low", "mid"]).values == ("low", "mid")


def test_a_real_private_tree() -> None:
    frame = people()
    classifier = privet.DiffPID3Classifier(epsilon=1, max_depth=2, domain=DOMAIN)
    tree = published(classifier.fit(frame.drop(columns="income"), frame["income"]).model_)
    assert tree.epsilon == 1 and tree.silent == NOISY and most_published(tree) == "counts"
    assert all(tree.nodes[leaf].deviation > 0 for leaf in tree.leaves)

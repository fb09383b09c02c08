"""What was published and no more: an audit of labels sees no sizes, and that of noisy counts no negative people."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privet
from privet.errors import DataError, ModelError
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.risk.publication import Publication, marginal_of
from privet.risk.tree import Equals, Node, PublishedTree

PEOPLE = pd.DataFrame({"sex": ["f"] * 6 + ["m"] * 4})
LABELS = "sex = f: yes\nsex = m: no"
COUNTS = "sex = f: yes (3.0/1.0)\nsex = m: no (2.0/1.0)"


def shares(tree: Any, **asked: Any) -> dict[str, Any]:
    found = privet.audit(tree, PEOPLE, sensitive="s", remedies=False, **asked)
    return {name: found.beliefs[name].shares for name in ("maximum entropy", "possible worlds")}


def noisy(*counts: tuple[float, ...]) -> PublishedTree:
    """A private tree of one leaf for each sex."""
    leaves = [
        Node(0, Equals("sex", sex), int(np.argmax(own)), counts=own, deviation=2.0)
        for sex, own in zip("fm", counts, strict=True)
    ]
    return PublishedTree((Node(), *leaves), ("no", "yes"), "privet", epsilon=Fraction(1))


@pytest.mark.parametrize("training", [None, "unknown"])
def test_labels_say_no_more_than_labels(training: str | None) -> None:
    asked = {"published": "labels", "training": training}
    whole = COUNTS if training else "sex = f: yes (6.0/1.0)\nsex = m: no (4.0/1.0)"
    for name, told in shares(LABELS, **asked).items():
        assert (shares(whole, **asked)[name] == told).all()


def test_labels_of_a_private_model_do_not_bring_its_counts() -> None:
    for told in shares(noisy((9.0, 1.0), (0.0, 12.0)), published="labels").values():
        assert (told == 0.5).all()


def test_rates_of_a_private_model_are_audited_by_its_counts() -> None:
    tree = noisy((9.0, 1.0), (0.0, 12.0))
    for name, told in shares(tree, published="rates").items():
        assert (told == shares(tree)[name]).all()


def test_noise_makes_no_part_of_the_people_negative() -> None:
    for told in shares(noisy((-9.0, -30.0), (-40.0, 12.0)), training="unknown").values():
        assert (told >= 0).all() and np.allclose(told.sum(axis=1), 1)


def test_of_an_unknown_sample_noisy_counts_are_those_of_the_sample() -> None:
    people = pd.DataFrame({"sex": ["f"] * 4000 + ["m"] * 4})
    found = privet.audit(noisy((800.0, 200.0), (2.0, 2.0)), people, sensitive="s", training="unknown")
    for name in ("maximum entropy", "possible worlds"):
        assert found.beliefs[name].shares[0, 0] == pytest.approx(0.25 * 0.8 + 0.75 * 0.5, abs=0.01)


def test_a_marginal_is_read_as_labels_are() -> None:
    assert marginal_of({1: 3, 0.0: 1}, ("0", "1")).tolist() == [0.25, 0.75]
    for wrong in ({"0": "many"}, {"0": -1.0}, {"0": np.nan}):
        with pytest.raises(DataError, match="a share of at least 0"):
            marginal_of(wrong, ("0", "1"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"threshold": "most"}, "the threshold is a probability above 0 and at most 1, not most"),
        ({"top": -1}, "0 or more, not -1"),
        ({"truth": 5}, "not a int"),
        ({"training": ["maybe"] * 10}, "training says 'maybe' of a row"),
        ({"training": ["yes"] * 3}, "3 marks for 10 people"),
    ],
)
def test_odd_questions_get_a_sentence(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        privet.audit(LABELS, PEOPLE, sensitive="s", **asked)


def test_marks_of_rows_are_words_as_well_as_truth_values() -> None:
    marks = ["yes"] * 3 + ["no"] * 3 + ["yes"] * 2 + ["no"] * 2
    found = privet.audit(COUNTS, PEOPLE, sensitive="s", training=marks)
    assert found.people.total == 5 and isinstance(found.publication, Publication)


def test_columns_need_not_be_named_by_texts_and_values_must_be_plain() -> None:
    wide = PEOPLE.assign(**{"x": 1}).rename(columns={"x": 7})
    assert privet.audit(LABELS, wide, sensitive="s").people.names == ("sex", "7")
    with pytest.raises(DataError, match="column 'x' has values that are neither texts nor numbers"):
        privet.audit(LABELS, PEOPLE.assign(x=[[1]] * 10), sensitive="s")


def test_a_model_that_records_its_criterion_keeps_it() -> None:
    domain = Domain((Nominal("sex", ("f", "m")), Nominal("s", ("a", "b"))), target="s")
    model = privet.ID3Classifier(domain=domain).fit(PEOPLE, ["a", "b"] * 5).model_
    with pytest.raises(ModelError, match="chose its splits by infogain, not gini"):
        privet.audit(model, PEOPLE, sensitive="s", criterion="gini")

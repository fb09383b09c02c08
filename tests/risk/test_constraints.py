"""Which splits a choice is held against: those the learner could have made, so that the truth breaks no constraint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import privet
from privet.risk.constraints import choices_of

ROWS = 12


def column(kind: str, rng: np.random.Generator) -> Any:
    if kind == "above 2^24":  # every other number is the same in 32 bits
        return 2**24 + np.arange(ROWS)
    if kind == "closer than 1e-7":
        return np.arange(ROWS) * 1e-9
    return np.where(np.arange(ROWS) < 3, np.nan, rng.integers(0, 5, ROWS))


@pytest.mark.parametrize("kind", ["above 2^24", "closer than 1e-7", "missing"])
@pytest.mark.parametrize("seed", range(4))
def test_scikit_learn_could_not_have_cut_what_it_cannot_tell_apart(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.integers(0, 2, ROWS), "number": column(kind, rng)})
    truth = rng.integers(0, 2, ROWS)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(frame, truth)
    found = privet.audit(tree, frame, sensitive="s", truth=truth, remedies=False)
    assert found.publication is not None and found.truth is not None
    gaps = [gap for choice in choices_of(found.publication) for _, gap in choice.gaps(found.truth)]
    assert min(gaps, default=0.0) > -1e-9


def test_numbers_written_in_two_ways_are_one_value() -> None:
    frame = pd.DataFrame({"age": ["1", "1.0", "2", "2.0"]})
    found = privet.audit("age <= 1: a (2.0)\nage > 1: b (2.0)", frame, sensitive="s", criterion="gini")
    assert found.counted is not None and found.counted.internal == 0  # there was nothing else to cut
    mixed = pd.DataFrame({"sex": [1, "1", None, np.nan]})
    assert privet.audit(": a (4.0/2.0)\n", mixed, sensitive="s", values=["a", "b"]).people.sizes.tolist() == [2, 2]


def test_a_choice_among_too_many_splits_is_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privet.risk.worlds.GROUPED", 100)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.permutation(20), "b": rng.permutation(20)})
    tree = DecisionTreeClassifier(max_depth=1).fit(frame, rng.integers(0, 2, 20))
    facts = privet.audit(tree, frame, sensitive="s", remedies=False).beliefs["possible worlds"].facts
    assert facts["used"] == 0 and facts["not used"] == 37


def test_what_the_table_has_and_the_tree_never_saw_is_said() -> None:
    frame = pd.DataFrame({"a": list("xxyy"), "b": list("pqpq")})
    text = "a = x: yes (2.0)\na = y: no (2.0)"
    assumed = privet.audit(text, frame, sensitive="s", criterion="gini").assumptions
    assert any("could have been by any of these columns" in said for said in assumed)
    assert not any("any of these columns" in said for said in privet.audit(text, frame, sensitive="s").assumptions)


def test_what_labels_and_marginal_leave_open_is_said() -> None:
    """Where no rate is published maximum entropy keeps those of the leaves alone, which need not be the best."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({name: rng.integers(0, size, 13) for name, size in (("a", 2), ("b", 2), ("c", 3))})
    truth = rng.integers(0, 3, 13)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(frame, truth)
    shares = dict(zip(*np.unique(truth, return_counts=True), strict=True))
    found = privet.audit(tree, frame, sensitive="s", published="labels", marginal=shares, remedies=False)
    belief = found.beliefs["maximum entropy"]
    assert belief.facts["active"] and any("entropy could be larger" in note for note in belief.notes)

"""The safer tree: it says no more than was audited, and nothing that nobody knows."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privet
from privet.errors import ModelError
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.risk.publication import most_published
from privet.risk.readers import read_tree
from privet.risk.remedies import best_merge, withheld
from privet.risk.tree import PublishedTree

NAMES = "abc"


def table(seed: int, rows: int = 40, values: int = 3) -> tuple[pd.DataFrame, pd.Series, privet.Ensemble]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.choice(list("xyz"), rows) for name in NAMES})
    truth = pd.Series(rng.choice(list("uvw")[:values], rows), name="s")
    columns = tuple(Nominal(name, tuple("xyz")) for name in NAMES)
    domain = Domain((*columns, Nominal("s", tuple("uvw")[:values])), target="s")
    return frame, truth, privet.ID3Classifier(domain=domain, max_depth=2).fit(frame, truth).model_


def prunings(tree: PublishedTree, node: int = 0) -> list[list[int]]:
    """The leaves of every pruning below a node."""
    found = [[node]]
    if tree.children[node]:
        below = product(*(prunings(tree, child) for child in tree.children[node]))
        found += [[leaf for part in parts for leaf in part] for parts in below]
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_merge_is_the_best_of_all_prunings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = read_tree(table(seed)[2])
    assert isinstance(tree, PublishedTree)
    masses = np.zeros((len(tree.nodes), 3))
    for node in reversed(range(len(tree.nodes))):
        masses[node] += rng.integers(0, 4, 3) if not tree.children[node] else 0
        if node:
            masses[tree.nodes[node].parent] += masses[node]
    threshold = rng.choice([0.5, 0.6, 0.75, 0.9])
    safe = (masses.max(axis=1) < threshold * masses.sum(axis=1)) | (masses.sum(axis=1) == 0)
    right = [masses[leaves].max(axis=1).sum() for leaves in prunings(tree) if safe[leaves].all()]
    at = best_merge(tree, masses, threshold)
    if at is None:
        assert not right
        return
    leaves = [
        node
        for node in range(len(tree.nodes))
        if (node in at or not tree.children[node]) and not at & set(tree.ancestors(node))
    ]
    assert safe[leaves].all() and masses[leaves].max(axis=1).sum() == max(right)


@pytest.mark.parametrize("level", ["labels", "rates"])
def test_what_was_withheld_is_not_written(level: str, tmp_path: Path) -> None:
    frame, _, model = table(1, rows=14)
    found = privet.audit(model, frame, sensitive="s", published=level, threshold=0.7)
    merge = found.remedies[0]
    assert merge.enough and merge.tree is not None and most_published(merge.tree) == level
    merge.save(tmp_path / "safe.txt")
    again = read_tree(tmp_path / "safe.txt", list("uvw"))
    assert isinstance(again, PublishedTree) and most_published(again) == level
    assert found.publication is not None
    assert most_published(withheld(found.publication.tree, level)) == level


def test_a_label_alone_gives_many_people_not_away() -> None:
    """Nine people of a pure leaf whose label is all that is known keep their leaf, with the truth and without."""
    frame = pd.DataFrame({"a": ["x"] * 9 + ["y"] * 9 + ["z"]})
    truth = ["u"] * 9 + ["v"] * 9 + ["v"]
    text = "a = x: u\na = y: v\na = z: v"
    grown = pd.concat([frame, pd.DataFrame({"a": ["z"] * 5})])
    assert privet.audit(text, grown, sensitive="s", truth=[*truth, *"vvvvv"], threshold=0.85).safe
    merge = privet.audit(text, frame, sensitive="s", truth=truth, threshold=0.85).remedies[0]
    assert merge.merged == (0,) and merge.tree is not None and merge.tree.nodes[0].label == 1
    assert not merge.is_guess


def test_numbers_that_nobody_knows_are_not_written(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["x"] * 4 + ["y"] * 5})
    text = "a = x: u (4.0)\na = y: v (5.0/2.0)"
    merge = privet.audit(text, frame, sensitive="s", values=list("uvw"), threshold=0.9).remedies[0]
    assert merge.is_guess and "a guess" in merge.told
    with pytest.raises(ModelError, match="give the truth as well"):
        merge.save(tmp_path / "safe.txt")
    truth = [*"uuuu", *"vvvuw"]
    known = privet.audit(text, frame, sensitive="s", values=list("uvw"), threshold=0.9, truth=truth).remedies[0]
    known.save(tmp_path / "safe.txt")
    assert ": u (9.0/4.0)" in (tmp_path / "safe.txt").read_text()


def test_one_leaf_is_tried_before_giving_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privet.risk.remedies.TRIES", 1)
    frame, _, model = table(2)
    merge = privet.audit(model, frame, sensitive="s", threshold=0.7).remedies[0]
    assert merge.enough and merge.merged == (0,)


def test_certainty_alone_asks_for_no_epsilon() -> None:
    frame, _, model = table(3)
    found = privet.audit(model, frame, sensitive="s", threshold=1)
    assert found.remedies and not any("inf" in remedy.told for remedy in found.remedies)

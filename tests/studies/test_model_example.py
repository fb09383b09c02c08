"""A model to look at: what stands before the noise is counted from rows, what stands after it was released."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from privet.choice.auto import CLASSIFIERS
from privet.datasets import census, census_domain
from privet.kernel import seeded_noise
from privet.models.model import Model
from privet.models.tree import Ensemble
from privet.studies.model_example import BARS, COLUMNS, LIMIT, LINES, model_example

ROWS = census(2000, 1)


def fitted(name: str, epsilon: str = "1", **options: Any) -> Model:
    target = census_domain().target_column.name
    model = CLASSIFIERS[name](domain=census_domain(), random_state=1, epsilon=epsilon, **options)
    with seeded_noise(5), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(ROWS.drop(columns=target), ROWS[target])
    return model.model_


@pytest.mark.parametrize("name", ["diffpid3", "jagannathan", "maxforest", "hanisch-forest", "boosted", "prior"])
def test_an_example_is_small_and_plain(name: str) -> None:
    found = model_example(fitted(name), ROWS)
    assert json.loads(json.dumps(found)) == found and len(json.dumps(found)) <= LIMIT
    lines = found["text"].split("\n")
    assert 1 < len(lines) <= LINES and max(map(len, lines)) <= COLUMNS
    assert 0 < len(found["bars"]) <= BARS and found["classes"] == ["low", "high"]
    assert all(len(before) == len(after) == 2 for _, before, after in found["bars"])
    assert "NOT PRIVATE" not in found["text"]


def test_leaves_are_counted_and_what_was_released_stands_beside_them() -> None:
    model = fitted("diffpid3", max_depth=1)
    assert isinstance(model, Ensemble)
    found = model_example(model, ROWS)
    root = model.trees[0].root
    bars = {label: (before, after) for label, before, after in found["bars"]}
    told = {visit.path[0]: visit.node.counts for visit in model.trees[0].walk() if visit.path}
    column = census_domain()[root.attribute]  # type: ignore[union-attr]
    codes = column.encode(ROWS[column.name])
    high = ROWS["income"] == "high"
    for place, label in enumerate(column.labels):
        path = next(each for each in told if each.endswith(label))
        if path in bars:
            before, after = bars[path]
            assert before == [int(((codes == place) & ~high).sum()), int(((codes == place) & high).sum())]
            assert after == [round(count, 1) for count in told[path]]
    assert sum(sum(before) for before, _ in bars.values()) == len(ROWS)


def test_much_noise_is_seen() -> None:
    """Would catch a histogram whose two sides come from one source."""
    apart = {
        epsilon: np.mean([abs(b - a) for _, before, after in found["bars"] for b, a in zip(before, after, strict=True)])
        for epsilon in ("0.1", "1")
        for found in [model_example(fitted("jagannathan", epsilon, n_estimators=1, max_depth=1), ROWS)]
    }
    assert apart["0.1"] > 3 * apart["1"] > 0


def test_a_tree_without_noise_says_so() -> None:
    found = model_example(fitted("id3", max_depth=2), ROWS)
    assert found["what"].endswith("it is not private")
    assert all(before == after for _, before, after in found["bars"])


def test_trees_that_saw_other_rows_are_not_blamed_for_it() -> None:
    """A tree on a tenth of the rows counts a tenth of them, one on a bootstrap counts some twice: that is no noise."""
    bootstrap = fitted("maxforest", "10", variant="published", unsafe=True)
    plain = fitted("maxforest", "10")
    assert isinstance(plain, Ensemble)
    disjoint = replace(plain, privacy=replace(plain.privacy, disjoint=True))
    assert "in the leaves of the tree" in model_example(plain, ROWS)["what"]
    for model in (bootstrap, disjoint):
        found = model_example(model, ROWS)
        assert "as the released model expects them" in found["what"]
        before, after = (sum(sum(bar[side]) for bar in found["bars"]) for side in (1, 2))
        assert after == pytest.approx(before, rel=0.01)


def test_a_sum_of_tables_shows_what_it_expects() -> None:
    found = model_example(fitted("boosted", "10"), ROWS)
    assert found["what"].startswith("Rows of each class by ")
    for _, before, after in found["bars"]:
        assert sum(after) == pytest.approx(sum(before), abs=1.1)  # every row counts once

"""A tree as a sum of tables says in every row what the tree says, and monitors may ask about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privet
from privet.kernel import Domain, Nominal, Numeric
from privet.models import tree_as_tables as module
from privet.models.tree import Tree
from privet.models.tree_as_tables import cut_to_fit, tree_as_tables

DOMAIN = Domain(
    (
        Nominal("colour", ("red", "green", "blue"), other=True, missing=True),
        Numeric("age", 0, 99, edges=[20, 50], missing=True),
        Numeric("wage", 0, 40, edges=[10]),
        Nominal("class", ("low", "middle", "high")),
    ),
    target="class",
)


def people(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "colour": rng.choice(np.array(["red", "green", "blue", "mauve", None], dtype=object), rows),
            "age": rng.choice(np.array([np.nan, *range(100)]), rows),
            "wage": rng.integers(0, 41, rows),
            "class": rng.choice(["low", "middle", "high"], rows),
        }
    )


def random_tree(rng: np.random.Generator, depth: int) -> Tree:
    """A tree that splits by cells and at thresholds, the same column several times, with random counts."""
    column, at, waiting = [], [], [0]
    while waiting:
        level = waiting.pop(0)
        chosen = -1 if level == depth or rng.random() < 0.2 else int(rng.integers(3))
        threshold = -1
        if chosen > 0 and rng.random() < 0.6:
            threshold = int(rng.integers(1, (100, 41)[chosen - 1]))
        column.append(chosen)
        at.append(threshold)
        cells, sides = DOMAIN.branches
        waiting += [level + 1] * int(0 if chosen < 0 else sides[chosen] if threshold >= 0 else cells[chosen])
    counts = rng.normal(size=(len(column), 3))
    deviation, size = np.ones(len(column)), np.full(len(column), np.nan)
    return Tree.grown(DOMAIN, np.array(column), np.array(at), counts, deviation, size)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_it_has_right_what_the_tree_has_right(depth: int) -> None:
    """150 trees, exactly: the noise of epsilon 1000 is 0 but for one draw in 10^434."""
    rng = np.random.default_rng(depth)
    frame = people(300, rng)
    columns = [DOMAIN[name] for name in DOMAIN.attributes]
    codes = np.stack([column.encode(frame[column.name]) for column in columns])
    grids = np.stack(
        [
            column.to_grid(frame[column.name]) if isinstance(column, Numeric) else np.full(len(frame), -1)
            for column in columns
        ]
    ).astype(np.int32)
    labels = DOMAIN.target_column.encode(frame["class"])
    with privet.open(frame, DOMAIN, budget=10**6) as table:
        for _ in range(1 if depth == 0 else 50):
            tree = random_tree(rng, depth)
            right = int((tree.labels[tree.find(codes.astype(np.int32), grids)] == labels).sum())
            cells, model = tree_as_tables(tree)
            assert table.with_cells(cells).count_correct(model, 1000) == right


def test_leaves_that_ask_the_same_attributes_share_a_table() -> None:
    rng = np.random.default_rng(3)
    tree = max((random_tree(rng, 3) for _ in range(20)), key=lambda tree: tree.leaves)
    _, model = tree_as_tables(tree)
    names = [columns for columns, _ in model.terms]
    assert len(set(names)) == len(names) <= 7 < tree.leaves


def test_a_tree_with_too_many_cells_loses_levels() -> None:
    rng = np.random.default_rng(5)
    tree = next(tree for tree in (random_tree(rng, 3) for _ in range(100)) if tree.depth == 3)
    cells = module._cells(tree)
    assert cut_to_fit(tree, cells) is tree
    assert cut_to_fit(tree, cells - 1).depth < 3
    assert cut_to_fit(tree, 1).depth == 1


def test_a_monitor_asks_about_a_tree() -> None:
    """A private tree of 89% right rows is accurate enough for 80%, and not for 97%."""
    rows = privet.datasets.census(3000)
    domain = replace(privet.datasets.census_domain(), rows=3000)
    with privet.open(rows, domain, budget=1000) as table:
        fitted: Any = privet.ID3PlusClassifier(epsilon=20, max_depth=3, random_state=0).fit(table)
        cells, model = tree_as_tables(fitted.model_.tree)
        finer = table.with_cells(cells)
        assert not finer.monitor("0.97", 50).reached(model)
        assert finer.monitor("0.8", 50).reached(model)

"""Grown trees: what they may not depend on, what greedy ones choose, later rows, and what a model tells."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from learners.grown import (
    BINARY,
    CASES,
    FORESTS,
    FRAMES,
    MIXED,
    PRIVATE,
    SURE,
    VARIANTS,
    _binary,
    _check_ledger,
    _frame,
    _grow,
    _open,
)

import privet
from privet.errors import BudgetExceeded, QuestionError
from privet.kernel.accounting import as_epsilon
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.learners import levels
from privet.learners.algorithm import Progress
from privet.learners.estimators import CLASSIFIERS
from privet.learners.growth import grow, refill
from privet.learners.plan import Plan, leaves_only
from privet.learners.presets import preset
from privet.learners.structure import draw
from privet.models.tree import Ensemble, Tree
from privet.testing import seeded_noise

# -- what a fit may not depend on ---------------------------------------------------------------


@pytest.mark.parametrize("name", PRIVATE)
def test_empty_tables_and_tables_of_one_class_fit_like_any_other(name: str) -> None:
    for domain in (BINARY, MIXED):
        whole = _frame(domain, 200)
        target = domain.target_column
        for frame in (whole.iloc[:0], whole.assign(**{target.name: target.values[1]}), whole.iloc[:1]):
            for epsilon in (as_epsilon(1), SURE):
                plan = preset(name).plan(domain, max_depth=2)
                with _open(frame, domain) as table:
                    model = _grow(table, plan, epsilon)
                    _check_ledger(table, model)
                assert model.privacy.spent == epsilon
                assert np.isfinite(model.predict_proba(whole)).all()
                assert model.predict(whole).shape == (200,)


def _nodes(tree: Tree) -> list[Any]:
    return [tree.column.tolist(), tree.at.tolist()]


@pytest.mark.parametrize("numeric", ["bins", "joint"])
def test_a_random_structure_is_the_same_for_every_table(numeric: str) -> None:
    plan = replace(preset("hanisch-forest").plan(MIXED, max_depth=4), numeric=numeric)
    drawn = []
    for frame in (FRAMES["mixed"], FRAMES["mixed"].iloc[:0]):
        for epsilon in (1, SURE):
            with _open(frame, MIXED) as table:
                model = _grow(table, plan, epsilon, seed=5)
            assert len({tuple(tree.column) for tree in model.trees}) > 1
            drawn.append([_nodes(tree) for tree in model.trees])
            asked = [step.parts for step in model.privacy.steps if step.tree >= 0]
            assert sum(asked) == sum(tree.leaves for tree in model.trees)  # every leaf, empty or not
    assert drawn[1:] == drawn[:1] * 3
    other = _grow(_open(FRAMES["mixed"], MIXED), plan, 1, seed=6)
    assert [_nodes(tree) for tree in other.trees] != drawn[0]


@pytest.mark.parametrize("name", ["sulq-id3", "diffpid3", "diffpc45", "mohammed", "maxtree"])
def test_every_cell_of_a_split_becomes_a_node(name: str) -> None:
    # all rows are alike, so nearly all cells are empty; without a stop rule all of them are asked to the last level
    domain = _binary(4, 5, max_rows=1000)
    frame = pd.DataFrame({**{f"a{i}": [0] * 100 for i in range(4)}, "y": ["no", "yes"] * 50})
    plan = replace(preset(name).plan(domain, max_depth=3), prune="none", consistency="none")
    with _open(frame, domain) as table:
        model = _grow(table, plan, SURE)
    tree = model.tree
    assert (tree.arity[~tree.is_leaf] == 5).all()
    asked: dict[int, int] = {}
    for step in model.privacy.steps:
        if step.question in ("class counts", "label"):
            asked[step.level] = step.parts
    assert asked == {depth: int((tree.is_leaf & (tree.depths == depth)).sum()) for depth in asked}
    assert sum(asked.values()) == tree.leaves
    if plan.stop == "never":
        assert tree.leaves == 5**3


COUNTED = replace(MIXED, rows=300)
ON_PROTECTED_TABLES = [(name, variant) for name, variant in CASES if not preset(name).plan(COUNTED, variant).errata]


@pytest.mark.parametrize(("name", "variant"), ON_PROTECTED_TABLES)
def test_both_engines_grow_the_same_tree(name: str, variant: str, tmp_path: Path) -> None:
    domain = COUNTED
    frame = FRAMES["mixed"]
    path = tmp_path / "people.db"
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    trees = {"n_estimators": 2} if name in FORESTS else {}
    plan = preset(name).plan(domain, variant, max_depth=2, **trees)
    texts = []
    for data in (frame, f"duckdb:///{path}?table=people"):
        with privet.testing.open(data, domain, budget=20, seed=4) as table:
            texts.append(grow(table, plan, as_epsilon(20), np.random.default_rng(3), variant=variant).to_json())
    assert texts[0] == texts[1]
    content = json.loads(texts[0])
    assert content["privacy"]["private"] is False
    assert content["privacy"]["reasons"] == ["its noise was seeded, or its rows are public"]
    assert len(content["trees"][0]) > 3


def test_both_engines_scatter_rows_alike(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    frame = FRAMES["mixed"]
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        connection.execute(f"COPY frame TO '{path}' (FORMAT parquet)")
    plan = replace(preset("diffpid3").plan(MIXED, max_depth=2), rows="disjoint", trees=3)
    texts = []
    for data in (frame, path):
        with privet.testing.open(data, MIXED, budget=50, seed=4) as table:
            texts.append(_grow(table, plan, 50, seed=9).to_json())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["jagannathan", "snr-forest", "hanisch-tree", "hanisch-forest"])
def test_random_state_fixes_the_structure_and_not_the_noise(name: str) -> None:
    make = CLASSIFIERS[name]
    with privet.open(FRAMES["mixed"], MIXED, budget=10) as table:
        first, second, other = (make(1, max_depth=3, random_state=seed).fit(table).model_ for seed in (7, 7, 8))
    trees = list(zip(first.trees, second.trees, strict=True))
    if name != "snr-forest":  # it is pruned by what the noise made of its counts
        assert [_nodes(tree) for tree, _ in trees] == [_nodes(tree) for _, tree in trees]
        assert [_nodes(tree) for tree in other.trees] != [_nodes(tree) for tree in first.trees]
    # two fits that share their noise agree in all of their some hundred counts; those that do not, never
    assert any(tree.counts.shape != twin.counts.shape or (tree.counts != twin.counts).any() for tree, twin in trees)


def test_random_state_does_not_seed_the_noise_of_trees_that_look() -> None:
    with privet.open(FRAMES["binary"], BINARY, budget=10) as table:
        twins = [privet.MohammedTreeClassifier(0.1, random_state=7).fit(table).model_.to_json() for _ in range(2)]
    assert twins[0] != twins[1]


def test_a_random_tree_draws_thresholds_that_divide_what_is_left() -> None:
    plan = Plan("p", leaves_only, depth=6, split="random", numeric="joint")
    for seed in range(30):
        tree = draw(plan, MIXED, 6, np.random.default_rng(seed))
        grid = {name: (0, MIXED.numeric(name).grid_size) for name in ("age", "wage")}
        waiting = [(0, grid)]
        while waiting:
            node, bounds = waiting.pop()
            if tree.at[node] >= 0:
                name, at = MIXED.attributes[tree.column[node]], int(tree.at[node])
                low, high = bounds[name]
                assert low < at < high
                first = int(tree.first[node])
                waiting += [(first, {**bounds, name: (low, at)}), (first + 1, {**bounds, name: (at, high)})]
            elif tree.first[node] >= 0:
                waiting += [(int(tree.first[node]) + cell, bounds) for cell in range(int(tree.arity[node]))]


# -- greedy trees choose what is best where noise does not matter --------------------------------


def _questions(model: Ensemble) -> list[tuple[int, str, int]]:
    return [(step.level, step.question, step.parts) for step in model.privacy.steps]


@pytest.mark.parametrize("criterion", ["max", "gini", "infogain"])
def test_a_tree_without_noise_to_speak_of_is_the_tree_of_the_rows(criterion: str) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 2, (2, 800))
    frame = pd.DataFrame({"a0": a, "a1": rng.integers(0, 2, 800), "a2": b, "a3": rng.integers(0, 2, 800)})
    # to the majority vote no split of "a or b" is better than none, so that it gets an easier task
    frame["y"] = np.where(a + b > 0 if criterion != "max" else a > 0, "yes", "no")
    domain = _binary(4, max_rows=1000)
    for variant in VARIANTS:
        with _open(frame, domain) as table:
            plan = preset("diffpid3").plan(domain, variant, criterion=criterion, max_depth=2)
            model = _grow(table, plan, SURE)
        used = [domain.attributes[column] for column in model.tree.column if column >= 0]
        assert used[0] in (("a0", "a2") if criterion != "max" else ("a0",))
        assert (model.predict(frame) == frame["y"]).all()
        assert model.tree.size[0] == 800
        assert model.tree.counts[0].tolist() == frame["y"].value_counts().loc[["no", "yes"]].tolist()


@pytest.mark.parametrize("name", ["sulq-id3", "diffpid3", "diffpc45", "patil-singh", "mohammed", "maxtree"])
def test_nodes_asked_in_batches_pay_as_one_level(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("split", "all counts")
    # so few cells at a time that every node is a batch of its own
    monkeypatch.setattr(levels, "MAX_CELLS", 1)
    for variant in VARIANTS:
        plan = preset(name).plan(MIXED, variant, max_depth=2)
        if plan.errata:
            continue
        for epsilon in (as_epsilon("1/3"), SURE):
            with _open(FRAMES["mixed"], MIXED) as table:
                model = _grow(table, plan, epsilon)
                assert table.budget.spent == model.privacy.spent <= epsilon
                assert len(table.budget.entries) > len(model.privacy.steps) or epsilon != SURE
            assert variant == "published" or model.privacy.spent == epsilon
            for tree, share in enumerate(plan.tree_shares(epsilon)):
                assert variant == "published" or set(model.privacy.paths(tree)) == {share}
            if epsilon == SURE:
                tree = model.trees[0]
                sizes = {step.level: step.parts for step in model.privacy.steps if step.question in asked}
                assert plan.prune != "none" or sizes[1] == ((tree.depths == 1) & ~tree.is_leaf).sum()


def test_the_record_lists_one_question_of_a_kind_a_level() -> None:
    model = _grow(_open(FRAMES["binary"], BINARY), preset("diffpid3").plan(BINARY, max_depth=2), SURE)
    assert _questions(model) == [
        (0, "size", 1),
        (0, "split", 1),
        (1, "size", 2),
        (1, "split", 2),
        (2, "class counts", 4),
    ]
    plan = preset("diffpc45").plan(MIXED, "published", max_depth=1)
    model = _grow(_open(FRAMES["mixed"], MIXED), plan, SURE)
    names = [question for _, question, _ in _questions(model)]
    assert names == ["size", "threshold of age", "threshold of wage", "split", "size", "class counts"]
    model = _grow(_open(FRAMES["mixed"], MIXED), replace(plan, leaf="label"), SURE)
    assert _questions(model)[-1][1] == "label"
    assert set(model.tree.counts[model.tree.is_leaf].sum(axis=1)) <= {0.0, 1.0} or plan.consistency != "none"


def test_progress_is_told_a_line_at_a_time() -> None:
    told: list[Progress] = []
    with _open(FRAMES["binary"], BINARY) as table:
        grow(
            table,
            preset("maxforest").plan(BINARY, n_estimators=2, max_depth=1),
            as_epsilon(1),
            np.random.default_rng(0),
            progress=told.append,
        )
    assert [each.what for each in told] == [
        "tree 1 of 2, level 0 of 1: 1 node",
        "tree 1 of 2, level 1 of 1: 2 nodes",
        "tree 2 of 2, level 0 of 1: 1 node",
        "tree 2 of 2, level 1 of 1: 2 nodes",
    ]


# -- later rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["jagannathan", "snr-forest", "hanisch-tree", "hanisch-forest"])
def test_rows_added_later_are_counted_into_the_same_leaves(name: str, variant: str) -> None:
    domain = replace(MIXED, rows=300)
    plan = replace(preset(name).plan(domain, variant, max_depth=2), errata=(), rounded_noise=False)
    first, second = _frame(domain, 300, seed=1), _frame(domain, 200, seed=2)
    with _open(first, domain) as old, _open(second, domain) as new:
        model = _grow(old, plan, SURE)
        spent = old.budget.spent
        more = refill(new, model, plan, SURE)
        assert old.budget.spent == spent
        assert new.budget.spent == SURE
    assert [_nodes(tree) for tree in more.trees] == [_nodes(tree) for tree in model.trees]
    assert more.privacy.added == (SURE,)
    assert more.privacy.steps == model.privacy.steps
    with _open(pd.concat([first, second]), domain) as both:
        direct = refill(both, _emptied(model), plan, SURE)
    for tree, whole in zip(more.trees, direct.trees, strict=True):
        assert tree.counts.tolist() == whole.counts.tolist()
        assert tree.counts[0].sum() == 500
    for tree, before in zip(more.trees, model.trees, strict=True):
        assert (tree.deviation >= before.deviation).all()
    if model.prior is not None:
        counts = pd.concat([first, second])[domain.target].value_counts()
        assert more.prior == pytest.approx([counts[value] for value in domain.classes])  # each tree counts all of them


def _emptied(model: Ensemble) -> Ensemble:
    return replace(model, trees=tuple(tree.with_counts(tree.counts * 0, tree.deviation * 0) for tree in model.trees))


def test_rows_added_later_cost_epsilon_once_in_a_forest_of_disjoint_rows() -> None:
    plan = replace(preset("hanisch-forest").plan(MIXED), rows="disjoint", trees=5)
    with _open(FRAMES["mixed"], MIXED) as old, _open(FRAMES["mixed"], MIXED, budget=1) as new:
        more = refill(new, _grow(old, plan, 1), plan, Fraction(1))
        assert new.budget.spent == 1
    assert more.privacy.added == (1,)


def test_rows_of_another_domain_are_not_added() -> None:
    plan = preset("hanisch-tree").plan(MIXED)
    model = _grow(_open(FRAMES["mixed"], MIXED), plan, 1)
    other = replace(MIXED, max_rows=999)
    with privet.open(FRAMES["mixed"], other, budget=1) as table:
        with pytest.raises(QuestionError, match="another domain than the model"):
            refill(table, model, plan, Fraction(1))
        with pytest.raises(QuestionError, match="another domain"):
            clf = privet.HanischTreeClassifier(1).fit(_open(FRAMES["mixed"], MIXED))
            clf.partial_fit(table)
        assert table.budget.spent == 0
    with privet.open(FRAMES["mixed"], MIXED, budget="0.5") as table:
        with pytest.raises(BudgetExceeded, match=r"0\.5 left"):
            refill(table, model, plan, Fraction(1))
        assert table.budget.spent == 0


def test_noise_of_added_rows_that_is_seeded_marks_the_model() -> None:
    plan = preset("hanisch-tree").plan(MIXED)
    model = _grow(_open(FRAMES["mixed"], MIXED), plan, 1)
    assert model.private
    with seeded_noise(1):
        more = refill(_open(FRAMES["mixed"], MIXED), model, plan, Fraction(1))
    assert not more.private
    twice = refill(_open(FRAMES["mixed"], MIXED), more, plan, Fraction(1))
    assert not twice.private and twice.privacy.added == (1, 1)


# -- what a model tells -------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRIVATE)
def test_a_model_says_nothing_of_who_asked_where_and_when(name: str, tmp_path: Path) -> None:
    frame = FRAMES["mixed"]
    texts = []
    for word in ("mallory", "wallace"):
        with seeded_noise(1), privet.open(frame, MIXED, budget=5, analyst=f"{word}-a", name=f"{word}-b") as table:
            text = _grow(table, preset(name).plan(MIXED, max_depth=2), 2).to_json()
            times = [entry.at for entry in table.budget.entries]
        assert word not in text and tmp_path.name not in text
        assert not any(at[:10] in text for at in times)
        texts.append(text)
    assert texts[0] == texts[1]
    keys: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            keys.update(value)
            value = list(value.values())
        for each in value if isinstance(value, list) else ():
            collect(each)

    collect(json.loads(texts[0]))
    assert keys <= {
        *("format", "version", "privacy", "domain", "vote", "prior", "trees"),
        *("algorithm", "variant", "private", "reasons", "epsilon", "spent", "rows_per_person", "disjoint", "added"),
        *("steps", "tree", "level", "question", "parts", "entry"),
        *("split", "at", "size", "counts", "deviation"),
    }


@pytest.mark.parametrize(("rows", "found"), [(1_000, False), (10**7, True)])
def test_id3_plus_looks_closer_where_there_is_signal(rows: int, found: bool) -> None:
    """All cells have one majority: max sees nothing, gini which attribute matters; public rows decide between them."""
    columns = [Nominal(f"a{i}", (0, 1)) for i in range(12)]
    domain = Domain((*columns, Nominal("y", (0, 1))), target="y", rows=rows)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (2_000, 12)), columns=[column.name for column in columns])
    frame["y"] = (rng.random(2_000) < 0.05 + 0.35 * frame["a7"]).astype(int)
    with privet.open(frame, domain, budget=100) as table:
        roots = {
            privet.ID3PlusClassifier(epsilon=10, max_depth=1).fit(table).model_.tree.root.attribute for _ in range(8)
        }
    assert (roots == {"a7"}) is found

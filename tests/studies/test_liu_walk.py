"""Trees as far as rows walk: the noise of the plan, the same classes as the grown tree, depths that nobody can grow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privet.datasets import Dataset
from privet.errors import QuestionError
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.learners.presets import preset
from privet.studies import rows
from privet.studies.fit import fit
from privet.studies.papers.liu.walk import Coded, coded, maxtree, walked
from privet.studies.trial import Trial

SIZES = (2, 3, 4, 5)


def some_rows(count: int = 2000, seed: int = 0) -> Coded:
    """The class is the first attribute, mostly; the second says a little, the third nothing, the last is constant."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 2, count)
    first = np.where(rng.random(count) < 0.9, classes, 1 - classes)
    second = np.where(rng.random(count) < 0.3, classes, rng.integers(0, 3, count))
    values = np.stack([first, second, rng.integers(0, 4, count), np.zeros(count, dtype=np.int64)])
    return Coded(values, classes, SIZES, 2)


def dataset(coded_rows: Coded) -> Dataset:
    names = [f"a{at}" for at in range(len(coded_rows.sizes))]
    columns = [Nominal(name, tuple(range(size))) for name, size in zip(names, coded_rows.sizes, strict=True)]
    frame = pd.DataFrame({name: values for name, values in zip(names, coded_rows.values, strict=True)})
    return Dataset(frame.assign(y=coded_rows.classes), Domain((*columns, Nominal("y", (0, 1))), target="y"))


class Silent(np.random.Generator):
    """Remembers how loud noise would be, and makes none."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))
        self.scales: list[float] = []

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        self.scales.append(float(scale))
        return np.zeros(size)


@pytest.fixture
def table() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(rows.FORMS, "liu", lambda name: dataset(some_rows()))
        rows.table.cache_clear()
        coded.cache_clear()
        yield "made-up/liu"
    rows.table.cache_clear()
    coded.cache_clear()


def trial(data: str, learner: str, epsilon: str, seed: int = 0, **options: Any) -> Trial:
    unsafe = {"unsafe": True} if learner == "maxforest" else {}
    chosen = {"score": "sum", "variant": "published", **unsafe, **options}
    return Trial(data, learner, epsilon, seed, options=tuple(chosen.items()), settings=(("folds", 10),))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_noise_is_that_of_the_published_plan(depth: int) -> None:
    given, silent, epsilon = some_rows(), Silent(), Fraction(1, 10)
    maxtree(given, given.values, depth, float(epsilon), "sum", silent)
    domain = dataset(given).domain
    schedule = preset("maxtree").plan(domain, "published", max_depth=depth).schedule(domain, epsilon, depth)
    shares = [*(level.split for level in schedule.levels), schedule.leaf]
    assert silent.scales == pytest.approx([float(1 / share) for share in shares if share is not None], rel=1e-6)


def test_without_noise_the_sum_finds_the_attribute_that_tells_and_the_largest_cell_the_one_that_does_not() -> None:
    given = some_rows()
    by_sum = maxtree(given, given.values, 1, 1.0, "sum", Silent())
    assert (by_sum == given.values[0]).all()
    by_cell = maxtree(given, given.values, 1, 1.0, "literal", Silent())
    assert (by_cell == np.bincount(given.classes).argmax()).all()


def test_who_else_passes_does_not_matter() -> None:
    given = some_rows()
    alone = maxtree(given, given.values[:, :7], 3, 1.0, "sum", Silent())
    assert (alone == maxtree(given, given.values, 3, 1.0, "sum", Silent())[:7]).all()


def test_a_path_ends_where_attributes_do_and_nobody_need_grow_the_tree() -> None:
    rng, silent = np.random.default_rng(1), Silent()
    wide = Coded(rng.integers(0, 9, (30, 400)), rng.integers(0, 2, 400), (9,) * 30, 2)
    assert math.prod(wide.sizes[:20]) > 10**19
    assert len(maxtree(wide, wide.values, 20, 1.0, "literal", rng)) == 400
    maxtree(some_rows(), some_rows().values, 20, 1.0, "sum", silent)
    assert len(silent.scales) == len(SIZES) + 1


def test_an_unknown_score_or_learner_is_refused(table: str) -> None:
    given = some_rows(50)
    with pytest.raises(QuestionError, match="score is one of literal, sum, not 'gini'"):
        maxtree(given, given.values, 1, 1.0, "gini", np.random.default_rng(0))
    with pytest.raises(QuestionError, match="rows walk through maxtree or maxforest, not 'boosted'"):
        walked(trial(table, "boosted", "1"))


@pytest.mark.parametrize(("learner", "options"), [("maxtree", {}), ("maxforest", {"n_estimators": 3})])
def test_rows_walk_to_where_the_grown_tree_has_them(table: str, learner: str, options: dict[str, int]) -> None:
    """The same trial, walked and fitted. Seeded noise; 80 and 20 runs, false alarm 1e-9 (6 standard errors)."""
    on = [trial(table, learner, "0.06", seed, **options) for seed in range(80)]
    runs = [np.array([task(each)["accuracy"] for each in some]) for task, some in ((walked, on), (fit, on[:20]))]
    one, other = (each.mean() for each in runs)
    assert abs(one - other) < 6 * math.hypot(*(each.std(ddof=1) / math.sqrt(len(each)) for each in runs))
    assert 52 < min(one, other) < 88  # noise matters here, and not too much


def test_growth_that_is_cut_keeps_the_noise_of_k() -> None:
    """With next to no noise a tree that is cut at depth 1 is the tree of depth 1, whatever k is."""
    rng = np.random.default_rng(0)
    values = np.stack([rng.integers(0, 2, 500), rng.integers(0, 3, 500)])
    rows = Coded(values, values[0], (2, 3), 2)
    for k in (1, 2):
        labels = maxtree(rows, values, k, 1e9, "sum", np.random.default_rng(1), cut=1)
        assert (labels == values[0]).all()
    right = []
    for k in (1, 2):
        found = [maxtree(rows, values, k, 0.03, "sum", np.random.default_rng(i), cut=1) for i in range(60)]
        right.append(np.mean([labels == values[0] for labels in found]))
    assert right[0] > right[1] + 0.05

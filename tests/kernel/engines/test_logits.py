"""Residuals of a softmax: the same numbers from every engine, also of extreme logits."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernel.engines.comparison import ask, assert_same, check, each_storage_and_spark

from privet.kernel.additive import LOGIT_GRID, RESIDUAL_GRID, AdditiveModel
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import ResidualQuery
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.rows import Rows, Split


def class_domain(classes: int) -> Domain:
    return Domain(
        (
            Nominal("n", ("a", "b", "c"), other=True),
            Numeric("x", Fraction(0), Fraction(10), Fraction(1), bins=2, missing=True),
            Nominal("y", tuple(str(c) for c in range(classes))),
        ),
        target="y",
    )


@each_storage_and_spark
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_extreme_logits_are_the_same_numbers_everywhere(stores: Any, storage: str, classes: int) -> None:
    domain = class_domain(classes)
    rng = random.Random(classes)
    rows = [(rng.choice("abcd"), rng.choice([None, 1, 9]), str(rng.randrange(classes))) for _ in range(30)]
    edge = [2**24, -(2**24), 0, 2**14, 2**14 - 1, 1, -1]
    intercept = tuple(edge[c] for c in range(classes))
    table = np.array([[rng.choice([0, 1, -1, 2**14, -(2**23), 2**23]) for _ in range(classes)] for _ in range(4)])
    models = [
        AdditiveModel(intercept),
        AdditiveModel((0,) * classes, ((("n",), table.astype(np.int32)),)),
        AdditiveModel(
            (0,) * classes, ((("n",), table.astype(np.int32)), (("n",), (table[::-1] // 2).astype(np.int32)))
        ),
        AdditiveModel((1,) * classes),
    ]
    where = Rows().divide([Split("x", (5,))], domain)
    caps = [(RESIDUAL_GRID,) * classes, tuple(range(1, classes + 1))]
    queries = [
        ResidualQuery(where, model, (("n",), ("n", "x")), "y", caps[number % 2]) for number, model in enumerate(models)
    ]
    check(stores, storage, domain, ["VARCHAR", "DOUBLE", "VARCHAR"], rows, queries)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_residuals_are_those_of_a_softmax_up_to_the_grid(classes: int) -> None:
    domain = class_domain(classes)
    rng = np.random.default_rng(classes)
    for _ in range(200):
        scores = rng.integers(-3 * LOGIT_GRID, 3 * LOGIT_GRID, classes)
        label = int(rng.integers(classes))
        model = AdditiveModel(tuple(int(score) for score in scores))
        query = ResidualQuery(Rows(), model, (("n",),), "y", (RESIDUAL_GRID,) * classes)
        (found,) = ReferenceEngine(domain, [("a", 1, str(label))]).exact_residuals(query)
        shares = np.exp(scores / LOGIT_GRID) / np.exp(scores / LOGIT_GRID).sum()
        own = found.exact_own[0, 0, label] / RESIDUAL_GRID
        assert own == pytest.approx(1 - shares[label], abs=2 / RESIDUAL_GRID)
        if found.exact_others is not None:
            others = np.delete(found.exact_others[0, 0] / RESIDUAL_GRID, label)
            np.testing.assert_allclose(others, np.delete(shares, label), atol=2 / RESIDUAL_GRID)
            assert others.sum() <= own


def test_a_model_that_grew_by_a_term_is_scored_like_a_new_one() -> None:
    domain = class_domain(3)
    frame = pd.DataFrame({"n": ["a", "b"], "x": [1, 9], "y": ["0", "2"]})
    first = (("n",), np.arange(12, dtype=np.int32).reshape(4, 3) * 300)
    second = (("x",), np.arange(9, dtype=np.int32).reshape(3, 3) * -200)
    models = [AdditiveModel((5, 0, 1), terms) for terms in [(), (first,), (first, second), (second,), (first,)]]
    engine = MemoryEngine.from_frame(frame, domain)
    for model in models:
        query = ResidualQuery(Rows(), model, (("n",),), "y", (1024, 1024, 1024))
        assert_same(ask(engine, query), ask(MemoryEngine.from_frame(frame, domain), query))

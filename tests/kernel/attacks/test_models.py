"""Attacks through released models: they are copies, fit the tables of the engine, and threads do not mix them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from kernel.attacks.attacked import DOMAIN, people

import privet
from privet.errors import QuestionError
from privet.kernel.engines.contract import ResidualQuery
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.rows import Rows


@pytest.mark.parametrize(
    "terms",
    [
        ((("job",), np.full((3, 2), -(2**63), dtype=np.int64)),),
        ((("job",), np.full((3, 2), 2**24)),),
        ((("job",), np.zeros((3, 2))),),
    ],
)
def test_a_model_that_would_leave_the_tables_of_the_engine_is_refused(terms: Any) -> None:
    """An index outside a table reads foreign memory, or crashes the process exactly when a row is there."""
    with pytest.raises(QuestionError):
        privet.AdditiveModel((1, 1), terms)
    for intercept in ((float("nan"), 0), (0.7, 0), (2**25, 0)):
        with pytest.raises(QuestionError):
            privet.AdditiveModel(intercept)  # type: ignore[arg-type]


def test_a_model_is_a_copy_that_nobody_can_change() -> None:
    """A model changed after it was fingerprinted would get the answers of another."""
    values = np.zeros((3, 2), dtype=np.int32)
    model = privet.AdditiveModel((0, 0), ((("job",), values),))
    before = model.fingerprint
    values[:] = 7
    assert privet.AdditiveModel((0, 0), model.terms).fingerprint == before
    with pytest.raises(ValueError, match="read-only"):
        model.terms[0][1][:] = 7


def test_threads_do_not_mix_their_models() -> None:
    """A cache shared without a lock gave one thread the logits of another."""
    engine = MemoryEngine.from_frame(people(20_000), DOMAIN)
    table = np.array([[0, 1], [1, 0], [0, 0]])
    queries = [
        ResidualQuery(
            Rows(), privet.AdditiveModel((0, 9), ((("job",), table * shift),)), (("job",),), "ill", (1024, 1024)
        )
        for shift in range(0, 4000, 500)
    ]
    wanted = [engine.exact_residuals(query)[0].exact_own.tolist() for query in queries]
    wrong: list[int] = []

    def ask(number: int) -> None:
        for _ in range(20):
            if engine.exact_residuals(queries[number])[0].exact_own.tolist() != wanted[number]:
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(queries))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []

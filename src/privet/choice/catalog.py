"""Every algorithm by name, the one that chooses among the others first."""

from __future__ import annotations

from privet.errors import QuestionError
from privet.learners.algorithm import Algorithm
from privet.learners.catalog import ALGORITHMS as PLAIN

AUTO = Algorithm(
    "auto", "the learner that suits the table, chosen from noisy class counts", "privet, after Imola and Yang 2018"
)

ALGORITHMS: dict[str, Algorithm] = {AUTO.name: AUTO, **PLAIN}


def algorithm(name: str) -> Algorithm:
    """An algorithm by its name."""
    found = ALGORITHMS.get(name)
    if found is None:
        raise QuestionError(f"there is no algorithm '{name}'; choose one of {', '.join(ALGORITHMS)}.")
    return found

"""Every algorithm by name, the one that chooses among the others first."""

from __future__ import annotations

from privet.errors import QuestionError, did_you_mean
from privet.learners.algorithm import Algorithm
from privet.learners.presets import ALGORITHMS as LEARNING_ALGORITHMS

AUTO = Algorithm(
    "auto", "the learner that suits the table, chosen from noisy class counts", "privet, after Imola and Yang 2018"
)

ALGORITHMS: dict[str, Algorithm] = {AUTO.name: AUTO, **LEARNING_ALGORITHMS}


def algorithm(name: str) -> Algorithm:
    """Return an algorithm by its name.

    Raises
    ------
    QuestionError
        There is no algorithm of this name.
    """
    known = ALGORITHMS.get(name)
    if known is None:
        meant = did_you_mean(name, ALGORITHMS)
        raise QuestionError(f"there is no algorithm '{name}'{meant}; choose one of {', '.join(ALGORITHMS)}.")
    return known

"""Every algorithm by name: trees and forests as plans, and learners of tables."""

from __future__ import annotations

from privet.errors import QuestionError
from privet.trees.additive import LEARNERS
from privet.trees.algorithm import Algorithm
from privet.trees.presets import PRESETS

ALGORITHMS: dict[str, Algorithm] = {**PRESETS, **LEARNERS}


def algorithm(name: str) -> Algorithm:
    """An algorithm by its name."""
    found = ALGORITHMS.get(name)
    if found is None:
        raise QuestionError(f"there is no algorithm '{name}'; choose one of {', '.join(ALGORITHMS)}.")
    return found

"""Every algorithm by name: trees and forests as plans, and learners of tables."""

from __future__ import annotations

from privet.trees.additive import LEARNERS
from privet.trees.algorithm import Algorithm
from privet.trees.presets import PRESETS

ALGORITHMS: dict[str, Algorithm] = {**PRESETS, **LEARNERS}

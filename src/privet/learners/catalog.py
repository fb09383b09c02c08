"""Every algorithm by name: trees and forests as plans, and learners of tables."""

from __future__ import annotations

from privet.learners.additive import LEARNERS
from privet.learners.algorithm import Algorithm
from privet.learners.presets import PRESETS

ALGORITHMS: dict[str, Algorithm] = {**PRESETS, **LEARNERS}

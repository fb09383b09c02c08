"""The learners that a policy chooses from, each within one epsilon and with class counts that were bought before.

A policy is only valid for the arms it was trained on, so each has a fingerprint of the choices and constants that
make it what it is; a policy file with other fingerprints is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privet.kernel import Domain, Json, Nominal, digest
from privet.learners.additive import LEARNERS, SHARE, learn
from privet.learners.algorithm import ProgressCallback
from privet.learners.boosting import CONSTANTS
from privet.learners.growth import grow
from privet.learners.plan import Plan
from privet.learners.presets import preset
from privet.models.model import Model
from privet.release import Histogram
from privet.table import ProtectedTable

ID3PLUS = "id3plus"


@dataclass(frozen=True)
class Arm:
    """An algorithm with its choices, under a name of its own."""

    name: str
    algorithm: str
    choices: Mapping[str, Any] = field(default_factory=dict)

    def fit(
        self,
        table: ProtectedTable,
        epsilon: Fraction,
        counts: Histogram,
        rng: np.random.Generator,
        reasons: list[str],
        progress: ProgressCallback,
    ) -> Model:
        """Spend what `counts` have left of `epsilon`."""
        if self.algorithm in LEARNERS:
            learner = LEARNERS[self.algorithm]
            return learn(table, learner, epsilon, rng, counts=counts, reasons=reasons, progress=progress)
        plan = self._plan(table.domain)
        return grow(table, plan, epsilon, rng, counts=counts, reasons=reasons, progress=progress)

    def _plan(self, domain: Domain) -> Plan:
        """The plan of a tree, whose depth is a rule: one that would have too many leaves is less deep, not refused."""
        plan = preset(self.algorithm).plan(domain, **self.choices)
        return replace(plan, depth=lambda *_: self.choices["max_depth"])

    @property
    def fingerprint(self) -> str:
        """Sixteen digits that change with a choice or constant of the algorithm, and with nothing else."""
        return digest(self.to_json())[:16]

    def to_json(self) -> Json:
        """Return what makes the arm what it is."""
        if self.algorithm in LEARNERS:
            constants: Any = {"boosted": asdict(CONSTANTS), "naive-bayes": {"share": SHARE}}.get(self.algorithm, {})
            written: Json = {name: str(value) for name, value in constants.items()}
        else:
            plan = self._plan(_ANY)
            written = replace(plan, depth=self.choices["max_depth"], min_rows=0).to_json()  # min_rows: of public rows
        choices = {name: str(value) for name, value in self.choices.items()}
        return {"arm": self.algorithm, "version": 1, "choices": choices, "constants": written}


_ANY = Domain((Nominal("attribute", (0, 1)), Nominal("class", (0, 1))), target="class")  # plans are the same on any

DEFAULT = "boosted"

ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm("prior", "prior"),
        *(
            Arm(f"id3plus {criterion} {depth}", ID3PLUS, {"criterion": criterion, "max_depth": depth})
            for criterion, depth in (("max", 1), ("max", 2), ("max", 3), ("max", 5), ("gini", 2), ("gini", 3))
        ),
        Arm("naive-bayes", "naive-bayes"),
        Arm(DEFAULT, "boosted"),
    )
}

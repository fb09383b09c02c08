"""Sites at nodes: what the sites of a plan say of every node anew, and what they are shown of it.

They see what is public and what was released about the path of a node, so that their choices are
post-processing: whatever a node is asked then, its own rows pay for (docs/privacy.md#partition).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from privet.errors import PrivacyError, QuestionError
from privet.kernel import Criterion, Domain, Public, Release
from privet.learners.criteria import usable
from privet.learners.nodes import Nodes
from privet.learners.plan import Level, Plan, checked_at_node
from privet.learners.sites import Decisions, Site, estimate_of
from privet.learners.splitting import room_of


@dataclass(frozen=True)
class NodeSites:
    """What choices at nodes need: who asks the sites, public coins, the rows of the table, and names of criteria."""

    plan: Plan
    domain: Domain
    decisions: Decisions
    rng: np.random.Generator
    rows: Release | Public | None
    follow: Callable[[Any], str | Criterion]

    def decide(
        self, name: str, nodes: Nodes, node: int, budget: Fraction, checked: Callable[[Any], Any] | None = None
    ) -> Any:
        """What the site of a field says of a node whose tree may spend `budget`."""
        view: dict[str, Release | Public] = {
            "depth": Public(nodes.level),
            "left": Public(len(nodes.unused[node])),
            "budget": Public(float(budget - nodes.paid[node])),
        }
        if nodes.sizes:
            view["rows"] = nodes.sizes[node]
        elif self.rows is not None:
            view["rows"] = estimate_of(self.rows, float(nodes.estimate[node]))
        site = getattr(self.plan, name)
        return self.decisions.ask(name, site, checked or partial(checked_at_node, name), view)

    def criterion(self, nodes: Nodes, node: int, budget: Fraction, shares: Level) -> Criterion:
        """The criterion by which a node selects, if the budget has a share for that."""
        if not self.plan.is_exact:
            points = self.plan.numeric == "separate" and bool(room_of(self.plan, self.domain))
            self.plan.check_shares(shares, "split", *["points"] * points)
        if isinstance(self.plan.criterion, Site):
            found: Criterion = self.decide("criterion", nodes, node, budget, self._rule)
            return found
        return self._rule(self.plan.criterion)

    def _rule(self, choice: Any) -> Criterion:
        try:
            return usable(self.plan, self.domain, self.follow(choice))
        except PrivacyError as error:  # a question that cannot be asked here, and was not
            raise QuestionError(str(error)) from None

"""The criteria that plans name: some follow from the number of rows or from class counts, and some are refused."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from privet.errors import NotPrivate, QuestionError
from privet.kernel import Criterion, Domain, WeightedMax, criterion
from privet.lab import GainRatio, Unrounded
from privet.learners.plan import BY_SIGNAL, SHARPER, WEIGHTED, Plan, signal


def rule_of(plan: Plan, domain: Domain, choice: str | Criterion) -> Criterion:
    """A criterion of the plan; on public rows nothing needs to be rounded."""
    if plan.is_exact and isinstance(choice, str) and choice in ("gini", "infogain"):
        return Unrounded(choice)
    if isinstance(choice, GainRatio | Unrounded):
        return choice
    if choice == GainRatio.name:
        return GainRatio()
    return criterion(choice, domain)


def usable(plan: Plan, domain: Domain, choice: str | Criterion) -> Criterion:
    """A criterion that splits of this plan may be chosen by."""
    rule = rule_of(plan, domain, choice)
    if isinstance(rule, GainRatio) and not plan.is_exact:
        raise NotPrivate("the gain ratio of a split has no bounded sensitivity; choose max, gini or infogain.")
    return rule


def followed(
    choice: Any, domain: Domain, epsilon: Fraction, rows: float | None, prior: Sequence[float] | None
) -> str | Criterion:
    """A criterion; one that follows from the number of rows or from class counts becomes the one that it is here."""
    if choice == WEIGHTED and prior is not None:
        return _weighted(prior)
    if choice == BY_SIGNAL and rows is not None:
        return "max" if signal(domain, rows, epsilon) < SHARPER else "gini"
    if choice in (WEIGHTED, BY_SIGNAL):
        raise QuestionError(
            f"the criterion '{choice}' follows from {'class counts' if choice == WEIGHTED else 'the number of rows'}, "
            "which this plan does not know; give it a prior share that buys them, or choose max or gini."
        )
    found: str | Criterion = choice
    return found


def _weighted(prior: Sequence[float]) -> WeightedMax:
    """Majorities in which a row weighs as much as its class is rare: where all cells have one majority, they differ."""
    shares = np.clip(np.array(prior) / max(sum(prior), 1.0), 0.05, 0.95)
    return WeightedMax.of((1 / shares).tolist())

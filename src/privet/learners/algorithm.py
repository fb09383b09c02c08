"""An algorithm by name: what it does in a line, where it comes from, and whether it is private."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from privet.errors import BudgetExceeded, QuestionError
from privet.kernel import Domain, Histogram, ProtectedTable, decimal_text


@dataclass(frozen=True)
class Algorithm:
    """What people see of an algorithm before they choose it."""

    name: str
    line: str
    citation: str
    private: bool = field(default=True, kw_only=True)  # False: it never was meant to be

    @property
    def variants(self) -> tuple[str, ...]:
        """The values of `variant` that it knows."""
        return ("corrected",)

    def check_variant(self, variant: str) -> None:
        if variant not in ("corrected", "published"):
            raise QuestionError(f"variant is 'corrected' or 'published', not {variant!r}.")
        if variant not in self.variants:
            raise QuestionError(f"{self.name} is privet's own and has no published variant; leave out variant.")


def check_target(domain: Domain) -> None:
    """Refuse a target without a choice."""
    if len(domain.target_column.values) < 2:
        raise QuestionError(
            f"the target '{domain.target}' has one class, so there is nothing to predict; declare its other classes."
        )


def check_attributes(domain: Domain) -> None:
    """Refuse a domain with nothing to learn from."""
    if not domain.attributes:
        raise QuestionError("the domain declares no column besides the target; declare what to predict it from.")


def paid_for(counts: Histogram | None, domain: Domain) -> Fraction:
    """What class counts have cost that were bought before a fit."""
    if counts is None:
        return Fraction(0)
    if not isinstance(counts, Histogram) or counts.columns != (domain.target_column.name,):
        raise QuestionError(f"counts are what table.histogram('{domain.target_column.name}', ...) released.")
    return counts.epsilon


def check_budget(table: ProtectedTable, name: str, epsilon: Fraction) -> None:
    """Refuse a fit that the table cannot pay for as a whole: half a model helps nobody."""
    left = table.budget.remaining
    if epsilon > left:
        raise BudgetExceeded(
            f"cannot fit {name} with epsilon={decimal_text(epsilon)}: the table has {decimal_text(left)} left. "
            f"{'Lower epsilon, or ask' if left else 'Ask'} the data owner for more.",
            requested=epsilon,
            remaining=left,
        )

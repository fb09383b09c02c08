"""What all algorithms share: what people see of one, the checks before a fit, and what a fit records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from privet.errors import BudgetExceeded, QuestionError
from privet.kernel import Domain, Histogram
from privet.models.privacy_record import Step
from privet.table import ProtectedTable
from privet.text import decimal_text


@dataclass(frozen=True)
class Algorithm:
    """An algorithm with its name and its source.

    Parameters
    ----------
    name : str
        What `algorithm=` and `--algorithm` call it.
    line : str
        What it does, in one line.
    citation : str
        Where it was published.
    private : bool, default True
        False for algorithms that were never meant to be private.
    """

    name: str
    line: str
    citation: str
    private: bool = field(default=True, kw_only=True)

    @property
    def variants(self) -> tuple[str, ...]:
        """The values that `variant` may have."""
        return ("corrected",)

    def check_variant(self, variant: str) -> None:
        """Refuse a variant that the algorithm does not have.

        Parameters
        ----------
        variant : str

        Raises
        ------
        QuestionError
            `variant` is unknown, or the algorithm has no published variant.
        """
        if variant not in ("corrected", "published"):
            raise QuestionError(f"variant is 'corrected' or 'published', not {variant!r}.")
        if variant not in self.variants:
            raise QuestionError(f"{self.name} is privet's own and has no published variant; leave out variant.")


def check_target(domain: Domain) -> None:
    """Raise `QuestionError` if the target has fewer than two classes."""
    if len(domain.target_column.values) < 2:
        raise QuestionError(
            f"the target '{domain.target}' has one class, so there is nothing to predict; declare its other classes."
        )


def check_attributes(domain: Domain) -> None:
    """Raise `QuestionError` if the domain has no column besides the target."""
    if not domain.attributes:
        raise QuestionError("the domain declares no column besides the target; declare what to predict it from.")


def cost_of_counts(counts: Histogram | None, domain: Domain) -> Fraction:
    """Return what class counts cost that were bought before a fit.

    Parameters
    ----------
    counts : Histogram or None
        A released histogram of the target, or None if none was bought.
    domain : Domain

    Returns
    -------
    Fraction
        The epsilon of the histogram; 0 without one.

    Raises
    ------
    QuestionError
        `counts` is not a histogram of the target alone.
    """
    if counts is None:
        return Fraction(0)
    if not isinstance(counts, Histogram) or counts.columns != (domain.target_column.name,):
        raise QuestionError(f"counts are what table.histogram('{domain.target_column.name}', ...) released.")
    return counts.epsilon


def check_budget(table: ProtectedTable, name: str, epsilon: Fraction) -> None:
    """Refuse a fit whose whole epsilon the table cannot pay: part of a model is of no use.

    Parameters
    ----------
    table : ProtectedTable
    name : str
        The algorithm, for the message.
    epsilon : Fraction
        What the fit will charge in all.

    Raises
    ------
    BudgetExceeded
        The table has less than `epsilon` left. Nothing was charged.
    """
    remaining = table.budget.remaining
    if epsilon > remaining:
        raise BudgetExceeded(
            f"cannot fit {name} with epsilon={decimal_text(epsilon)}: the table has {decimal_text(remaining)} left. "
            f"{'Lower epsilon, or ask' if remaining else 'Ask'} the data owner for more.",
            requested=epsilon,
            remaining=remaining,
        )


class Record:
    """Collects the steps of a fit as they are taken.

    Attributes
    ----------
    steps : list of Step
    reasons : list of str
        Why the model is not private; empty if it is.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.reasons: list[str] = []

    def add(self, tree: int, level: int, question: str, releases: Sequence[Any], path: Fraction | None = None) -> None:
        """Add one question.

        Parameters
        ----------
        tree, level, question, path
            As in `Step`.
        releases : sequence of Release
            What was released for each node. All of them have the same epsilon.
        """
        first = releases[0]
        self.steps.append(Step(tree, level, question, len(releases), first.epsilon, first.about.entry, path))
        if not first.private:
            self.reasons.append("its noise was seeded, or its rows are public")

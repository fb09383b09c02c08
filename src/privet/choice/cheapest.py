"""The cheapest model that is accurate enough (Ligett et al. 2017): naive Bayes on counts that are refined.

The counts of a naive Bayes model are one vector, so they can be bought little by little: the counts at a larger epsilon
make the earlier ones mere noise on top of them, and all together cost what the last ones cost. After every
level the model made of them is checked on the rows; the first that passes is released. Models that look
at the rows again for every level, trees that choose their splits and boosted tables, cost the sum of their levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from privet.choice.branch import Branch
from privet.choice.modes import AccuracyFirst
from privet.choice.noisy_if import NoisyIf
from privet.choice.outcome import Outcome
from privet.errors import QuestionError
from privet.kernel import Domain, Histogram, as_epsilon
from privet.learners.additive import SHARE, naive_bayes, published_model
from privet.learners.algorithm import check_attributes, check_target
from privet.models.privacy_record import Step
from privet.models.tables import Tables
from privet.table import ProtectedTable
from privet.text import decimal_text

CHECKS = Fraction(1, 10)  # of the whole budget, for all checks together
LEVELS = 8


@dataclass(frozen=True)
class Counts:
    """Class counts and a histogram of each attribute with the class, all of one level; together they cost it."""

    releases: tuple[Histogram, ...]
    epsilon: Fraction

    @classmethod
    def ask(cls, table: ProtectedTable, epsilon: Fraction) -> Counts:
        target, names = table.domain.target_column.name, table.domain.attributes
        shares = _shares(epsilon, len(names))
        first = table.histogram(target, epsilon=shares[0])
        rest = (table.histogram(name, target, epsilon=e) for name, e in zip(names, shares[1:], strict=True))
        return cls((first, *rest), epsilon)

    def refine(self, epsilon: Fraction) -> Counts:
        """The same counts at a larger epsilon, for the difference."""
        shares = _shares(epsilon, len(self.releases) - 1)
        return Counts(
            tuple(release.refine(share) for release, share in zip(self.releases, shares, strict=True)), epsilon
        )


def _shares(epsilon: Fraction, attributes: int) -> list[Fraction]:
    """What each histogram pays; the last takes the remainder, so that they add up exactly."""
    shares = [as_epsilon(epsilon * SHARE)]
    shares += [as_epsilon((epsilon - shares[0]) / attributes)] * (attributes - 1)
    return [*shares, epsilon - sum(shares, Fraction(0))]


def cheapest_model(
    table: ProtectedTable,
    accuracy: Any,
    epsilon: Any,
    *,
    levels: int = LEVELS,
    checks: Any = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """A naive Bayes model that is right on at least a share `accuracy` of the rows, for as little as it takes.

    `epsilon` is reserved in all: `checks` of it, a tenth if not given, for all checks together, the rest for the counts
    at the last of `levels` that double. What is charged in the end is the checks and the level that was reached.
    `outcome.value` is the model; the last level is taken unchecked, and `outcome.why` says so.

    >>> import privet
    >>> table = privet.open(privet.datasets.census(5000), privet.datasets.census_domain(), budget=1)
    >>> outcome = cheapest_model(table, accuracy=0.8, epsilon=1)
    >>> outcome.spent == outcome.value.privacy.spent == table.budget.spent <= 1
    True
    """
    domain, whole = table.domain, as_epsilon(epsilon)
    check_target(domain)
    check_attributes(domain)
    if isinstance(levels, bool) or not isinstance(levels, int) or not 1 <= levels <= 30:
        raise QuestionError(f"levels is a whole number from 1 to 30, not {levels!r}.")
    watch = as_epsilon(whole * CHECKS if checks is None else checks, "checks")
    most = whole - watch
    if most <= 0:
        raise QuestionError("checks takes the whole epsilon; leave some of it for the counts.")
    ladder = [as_epsilon(most / 2**step) for step in range(levels - 1, 0, -1)] + [most]

    def model_at(level: Fraction) -> Callable[[Any, Counts], Tables]:
        def run(_: object, counts: Counts) -> Tables:
            progress(f"naive Bayes at epsilon {decimal_text(level)}")
            return _model(domain, whole, counts, watch)

        return run

    choice = NoisyIf(
        "level",
        {decimal_text(level): Branch(model_at(level), cost=level) for level in ladder},
        default=decimal_text(ladder[-1]),
        mode=AccuracyFirst(accuracy, watch, counts=Counts.ask),
    )
    outcome = choice.run(table)
    model = outcome.value
    return replace(outcome, value=replace(model, privacy=replace(model.privacy, decisions=(outcome.decision,))))


def _model(domain: Domain, epsilon: Fraction, counts: Counts, checks: Fraction) -> Tables:
    learned = naive_bayes(domain, counts.releases[0], counts.releases[1:])
    watched = Step(-1, 0, "all checks of accuracy", 1, checks)
    return published_model(domain, "naive-bayes", epsilon, learned, (), watched)

"""The cheapest model that is accurate enough (Ligett et al. 2017): naive Bayes on refined counts, or boosted tables.

The counts of a naive Bayes model are one vector, so they can be bought little by little: the counts at a larger epsilon
make the earlier ones mere noise on top of them, and all together cost what the last ones cost. After every
level the model made of them is checked on the rows; the first that passes is released.

Boosted tables cost the sum of their levels. What they ask at a level are residuals of the model so far, and that
model is made of the noisy answers of this level: at another level it is another question, whose answer is no
refinement of the earlier one. So levels double, and all before the last together cost no more than the last. The splits
of a tree are such questions too; the counts of its leaves are not, but a check asks how many rows a sum of tables has
right, which a tree is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privet.choice.branch import Branch
from privet.choice.modes import AccuracyFirst
from privet.choice.noisy_if import NoisyIf
from privet.choice.outcome import Outcome
from privet.errors import QuestionError
from privet.kernel import Domain, as_epsilon
from privet.learners.additive import LEARNERS, SHARE, learn, naive_bayes, published_model
from privet.learners.algorithm import check_attributes, check_target
from privet.learners.cells import coarse_columns
from privet.models.privacy_record import Step
from privet.models.tables import Tables
from privet.release import Histogram
from privet.table import ProtectedTable
from privet.text import decimal_text

CHECKS = Fraction(1, 10)  # of the whole budget, for all checks together
LEVELS = {"naive-bayes": 8, "boosted": 4}


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
    learner: str = "naive-bayes",
    levels: int | None = None,
    checks: Any = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Return a model that is right on at least a share `accuracy` of the rows, for as little as it takes.

    What is charged in the end is the checks, and the level that was reached: alone for naive Bayes, whose counts are
    refined, and with all levels before it for boosted tables.

    Parameters
    ----------
    table : ProtectedTable
    accuracy : number
        A share of the rows, from 0 to 1.
    epsilon : number
        What is reserved in all.
    learner : {"naive-bayes", "boosted"}, default "naive-bayes"
    levels : int, optional
        How many levels, each of twice the epsilon of the one before; 8 for naive Bayes, 4 for boosted tables.
    checks : number, optional
        What all checks cost together; a tenth of epsilon if not given.
    progress : callable, optional
        Called with a text at each level.

    Returns
    -------
    Outcome
        Its `value` is the model. The last level is taken unchecked, and `why` says so.

    Raises
    ------
    QuestionError
        The learner, the levels or the domain do not suit. Nothing was charged.
    BudgetExceeded
        The table cannot pay `epsilon`. Nothing was charged.

    Examples
    --------
    >>> import privet
    >>> table = privet.open(privet.datasets.census(5000), privet.datasets.census_domain(), budget=1)
    >>> outcome = cheapest_model(table, accuracy=0.8, epsilon=1)
    >>> outcome.spent == outcome.value.privacy.spent == table.budget.spent <= 1
    True
    """
    domain, whole = table.domain, as_epsilon(epsilon)
    if learner not in LEVELS:
        raise QuestionError(f"learner is one of {', '.join(LEVELS)}, not {learner!r}.")
    check_target(domain)
    check_attributes(domain)
    count = LEVELS[learner] if levels is None else levels
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 30:
        raise QuestionError(f"levels is a whole number from 1 to 30, not {levels!r}.")
    watch = as_epsilon(whole * CHECKS if checks is None else checks, "checks")
    most = whole - watch
    if most <= 0:
        raise QuestionError("checks takes the whole epsilon; leave some of it for the model.")
    if learner == "boosted":
        return _cheapest_boosted(table, accuracy, whole, watch, count, progress)
    ladder = [as_epsilon(most / 2**step) for step in range(count - 1, 0, -1)] + [most]

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


def _cheapest_boosted(
    table: ProtectedTable,
    accuracy: Any,
    whole: Fraction,
    watch: Fraction,
    count: int,
    progress: Callable[[str], None],
) -> Outcome:
    """Boosted tables, fitted anew at every level: what was tried adds up."""
    coarse = coarse_columns(table.domain)
    if coarse:
        raise QuestionError(
            f"boosted tables divide the coarse bins of '{coarse[0].name}', and a check reads declared ones; declare "
            "more than 10 bins. Nothing was charged."
        )
    least = (whole - watch) / (2**count - 1)
    ladder = [as_epsilon(least * 2**step) for step in range(count - 1)]
    ladder.append(whole - watch - sum(ladder, Fraction(0)))  # they add up exactly
    tried: list[Tables] = []

    def model_at(level: Fraction) -> Callable[[ProtectedTable], Tables]:
        def run(scope: ProtectedTable) -> Tables:
            progress(f"boosted tables at epsilon {decimal_text(level)}")
            tried.append(learn(scope, LEARNERS["boosted"], level, np.random.default_rng()))
            return tried[-1]

        return run

    choice = NoisyIf(
        "level",
        {decimal_text(level): Branch(model_at(level), cost=level) for level in ladder},
        default=decimal_text(ladder[-1]),
        mode=AccuracyFirst(accuracy, watch),
    )
    outcome = choice.run(table)
    before = [
        Step(-1, 0, "boosted tables that were not accurate enough", 1, model.privacy.spent) for model in tried[:-1]
    ]
    watched = Step(-1, 0, "all checks of accuracy", 1, watch)
    model = tried[-1]
    privacy = replace(
        model.privacy,
        epsilon=whole,
        steps=(*model.privacy.steps, *before, watched),
        decisions=(outcome.decision,),
    )
    return replace(outcome, value=replace(model, privacy=privacy))

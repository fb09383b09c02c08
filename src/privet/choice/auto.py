"""AutoClassifier: the software chooses the learner, from noisy class counts and what it saw on generated tables."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from typing import Any

from privet.choice.arms import ARMS, DEFAULT
from privet.choice.branch import Branch
from privet.choice.catalog import AUTO
from privet.choice.chosen import Chosen, without_empty_margins
from privet.choice.features import FEATURES, PROBE, context
from privet.choice.modes import Probe
from privet.choice.noisy_if import NoisyIf
from privet.choice.outcome import Outcome
from privet.choice.policy import CautiousForest, Policy, Ruled
from privet.errors import QuestionError
from privet.kernel import Domain, Rho, as_epsilon
from privet.learners.algorithm import Progress, check_attributes, check_budget, check_target
from privet.learners.estimator import PrivateClassifier
from privet.learners.estimators import CLASSIFIERS as PLAIN
from privet.learners.joint_tables import COUNT_SHARE
from privet.models.model import Model
from privet.release import Histogram
from privet.table import ProtectedTable

OBJECTIVES = ("accuracy", "auc")
# where losses are counted in rho, `python -m evidence.arms` found it half a point beyond two standard errors below the
# best of the others in two of 45 cells (docs/explanation/choice.md)
WITH_DELTA = Ruled(DEFAULT, "with a delta, tables that are learned together")


@lru_cache
def shipped(objective: str) -> CautiousForest:
    """The packaged policy of an objective, which `privet study run choice` learned from generated tables."""
    if objective not in OBJECTIVES:
        raise QuestionError(f"objective is one of {', '.join(OBJECTIVES)}, not {objective!r}.")
    text = resources.files("privet.choice").joinpath("policies", f"{objective}.json").read_text(encoding="utf-8")
    return checked(CautiousForest.parse(text))


def checked(policy: CautiousForest) -> CautiousForest:
    """The policy, if it was trained for the arms and features of this version."""
    policy.check({name: arm.fingerprint for name, arm in ARMS.items()}, FEATURES)
    return policy


@dataclass(eq=False, repr=False, kw_only=True)
class AutoClassifier(PrivateClassifier):
    """Chooses its learner: what to use without knowing any of the others.

    A twentieth of epsilon buys noisy class counts. From them, the domain and epsilon a policy chooses between boosted
    tables, short trees, naive Bayes and the class shares; the rest of epsilon is the learner's, which takes over the
    counts. The choice is a function of releases and costs nothing. `choice_` says what was chosen and what spoke for
    it.

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose
        As in `PrivateClassifier`.
    objective : {"accuracy", "auc"}, default "accuracy"
        "auc" where classes are unbalanced and rows are to be ranked.
    policy : CautiousForest, str or Path, optional
        What chooses, or its file; without one, the packaged policy of the objective.

    Examples
    --------
    >>> import privet
    >>> table = privet.open(privet.datasets.census(5000), privet.datasets.census_domain(), budget=1)
    >>> auto = AutoClassifier(epsilon=1).fit(table)
    >>> auto.choice_.branch, auto.privacy_.spent, table.budget.remaining
    ('boosted', Fraction(1, 1), Fraction(0, 1))
    """

    algorithm = "auto"
    objective: str = "accuracy"
    policy: Any = None  # a CautiousForest, or the path of one; without, the packaged policy of the objective

    choice_: Chosen = field(init=False)

    def _check(self, domain: Domain, protected: bool) -> None:
        AUTO.check_variant(self.variant)
        check_target(domain)
        check_attributes(domain)
        self._policy()

    def _policy(self) -> CautiousForest:
        if self.policy is None:
            return shipped(self.objective)
        return checked(self.policy if isinstance(self.policy, CautiousForest) else CautiousForest.load(self.policy))

    def _learn(self, table: ProtectedTable, reasons: list[str]) -> Model:
        if table.unit.delta is not None:
            return self._learn_with_delta(table, reasons)
        epsilon, domain = self._checked_epsilon(), table.domain
        probe = as_epsilon(epsilon * PROBE)

        def arm(name: str) -> Branch:
            def run(scope: ProtectedTable, counts: Histogram) -> tuple[Model, Histogram]:
                self._report(Progress(f"chose {name}"))
                return ARMS[name].fit(scope, epsilon, counts, self._public_coins(), reasons, self._report), counts

            return Branch(run, cost=epsilon - probe)

        policy = self._policy()
        ask = Probe(
            lambda scope: scope.histogram(domain.target_column.name, epsilon=probe),
            probe,
            lambda counts: context(domain, epsilon, counts),
        )
        outcome = NoisyIf("learner", {name: arm(name) for name in ARMS}, DEFAULT, policy=policy, mode=ask).run(table)
        model, counts = outcome.value
        return self._chosen(model, counts, without_empty_margins(outcome, policy), policy, domain)

    def _learn_with_delta(self, table: ProtectedTable, reasons: list[str]) -> Model:
        """Learn in a data set that is counted in rho: class counts are bought first, as elsewhere, and a rule chooses.

        The packaged policies know what learners do with pure epsilon, so they are not asked.
        """
        epsilon, domain = self._checked_epsilon(), table.domain
        check_budget(table, self.algorithm, epsilon)
        with table.reserve(epsilon) as held:
            scope = held.spending(epsilon)
            counts = scope.histogram(domain.target_column.name, epsilon=Rho(scope.amount(epsilon) * COUNT_SHARE))
            choice = NoisyIf("learner", {name: Branch.of(name) for name in ARMS}, DEFAULT, policy=WITH_DELTA)
            seen = context(domain, epsilon, counts)
            picked = choice.pick(seen)
            self._report(Progress(f"chose {picked.branch}"))
            arm = ARMS[picked.branch]
            model: Model = arm.fit(scope, epsilon, counts, self._public_coins(), reasons, self._report)
            outcome = replace(choice.outcome(picked, None, scope.budget.spent, seen), margins={})
        return self._chosen(model, counts, outcome, WITH_DELTA, domain)

    def _chosen(self, model: Any, counts: Histogram, outcome: Outcome, policy: Policy, domain: Domain) -> Model:
        """Keep what was chosen, and return the model with the decision in its record."""
        epsilon = self._checked_epsilon()
        # a copy of the counts, which cannot be refined: a fitted classifier has no way to a table
        self.choice_ = Chosen(replace(outcome, value=None), policy, domain, epsilon, copy(counts))
        privacy = replace(model.privacy, algorithm=f"auto: {model.privacy.algorithm}", decisions=(outcome.decision,))
        found: Model = replace(model, privacy=privacy)
        return found


CLASSIFIERS: dict[str, type[PrivateClassifier]] = {AUTO.name: AutoClassifier, **PLAIN}

"""NoisyIf: a statement whose branch the software chooses, from what is public or released.

The choice may read releases, public constants, a policy and advice, and nothing else: a context value without
a type that says where it comes from is refused. Given the releases, the next mechanism is then fixed before it runs,
so choosing costs nothing (adaptive composition), and the table is charged for the branch that was chosen, not for
those that were not. Other modes buy a little more knowledge first: see `privet.choice.modes`.

>>> import privet
>>> from privet import Branch, NoisyIf, Public
>>> table = privet.open(privet.datasets.census(5000), privet.datasets.census_domain(), budget=1)
>>> rows = table.count(epsilon=0.05)
>>> ask = NoisyIf(
...     "hours",
...     {
...         "median": Branch(lambda part: part.median("hours", 0.2), cost=0.2),
...         "mean": Branch(lambda part: part.mean("hours", 0.1), cost=0.1),
...     },
...     default="mean",
...     context={"rows": rows, "epsilon": Public(0.2)},
...     advice=lambda known: "median" if known["rows"] * known["epsilon"] > 100 else "mean",
... )
>>> outcome = ask.run(table)
>>> outcome.branch, outcome.spent, table.budget.spent
('median', Fraction(1, 5), Fraction(1, 4))
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from privet.choice.branch import Advice, Branch
from privet.choice.history import History
from privet.choice.learning import Learning, Reward, data_name
from privet.choice.modes import Price, amount_on, mode, price_on
from privet.choice.outcome import Outcome, Picked
from privet.choice.policy import Advised, Policy, as_number
from privet.errors import PrivetError, QuestionError
from privet.models.model import Model
from privet.release import Public, Release, clean_value
from privet.table import ProtectedTable

Context = Mapping[str, Release | Public]


@dataclass(frozen=True)
class NoisyIf:
    """A choice between branches, as a value: it holds no table, and can be run on many.

    Without `policy` and `history` the advice decides, without all three the default.

    Parameters
    ----------
    site : str
        The name of the choice, by which histories know it.
    branches : mapping of str to Branch
    default : str
        The branch that is taken where nothing speaks for another.
    context : mapping of str to Release or Public, optional
        What the choice is made from: releases, what `privet.choice.derive` makes of them, `Public(value)`.
    advice : callable, optional
        A function of the plain values of the context that returns a branch, weights from 0 to 1,
        `Advice(branch, hard=True)` or None: a prior that experience overrules, unless it is hard.
    policy : Policy, optional
        What was learned before.
    mode : str or Mode, default "free"
        What is bought before the choice: "free" buys nothing.
    history : History or Learning, optional
        What earlier executions came to. The choice learns from it anew whenever it has grown.
    reward : Reward, optional
        What an execution is judged by. It is charged, and added to the history.

    Raises
    ------
    PrivacyError
        A value of the context may come from private rows.
    QuestionError
        The parts do not fit together.
    """

    site: str
    branches: Mapping[str, Branch]
    default: str
    context: Context = field(default_factory=dict)
    advice: Callable[[Mapping[str, Any]], Any] | None = None
    policy: Policy | None = None
    mode: Any = "free"
    history: History | Learning | None = None
    reward: Reward | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.site, str) or not self.site:
            raise QuestionError("a NoisyIf needs a name for its site, by which histories know it.")
        if not self.branches or not all(
            isinstance(name, str) and isinstance(branch, Branch) for name, branch in self.branches.items()
        ):
            raise QuestionError("branches are a mapping of names to Branch(run, cost).")
        if self.default not in self.branches:
            raise QuestionError(f"the default '{self.default}' is none of {', '.join(self.branches)}.")
        for value in self.context.values():
            clean_value(value)  # what is neither a release nor declared public is refused
        if self.policy is not None and not isinstance(self.policy, Policy):
            raise QuestionError("a policy is one of privet.choice: Fixed, BayesianLinear, CautiousForest.")
        if self.history is not None and not isinstance(self.history, Learning):
            object.__setattr__(self, "history", Learning(self.history))
        if self.history is not None and self.policy is not None:
            raise QuestionError("a NoisyIf has a policy that was learned before, or a history to learn from, not both.")
        if self.reward is not None and (self.history is None or not isinstance(self.reward, Reward)):
            raise QuestionError("a reward is a Reward(ask, epsilon), and goes with a history that it is kept in.")
        object.__setattr__(self, "mode", mode(self.mode))

    # -- choosing ---------------------------------------------------------------------------

    def pick(self, more: Context | None = None) -> Picked:
        """The branch for this context, and for what was released since. The same every time; it costs nothing."""
        values = self.known(more)
        advised, hard = self._advised(values)
        if hard is not None:
            return Picked(hard, {}, "as advised, whatever the policy says")
        policy = self._policy_now()
        margins = policy.margins(values, list(self.branches), self.default, advised)
        ruled = policy.rule(values)
        said = "" if self.policy is None and self.history is None else policy.name
        deciding, learned = policy.deciding(values), policy.learned
        if ruled is not None:
            return Picked(ruled[0], margins, ruled[1], deciding, said, learned)
        # the default wins a tie
        branch = max(self.branches, key=lambda name: (margins[name], name == self.default))
        if branch == self.default:
            why = "the default" if not any(margins.values()) else "stayed with the default"
        else:
            why = f"ahead of the default '{self.default}' by {margins[branch]:.2f} points"
        return Picked(branch, margins, why, deciding, said, learned)

    def _policy_now(self) -> Policy:
        """What was given, or learned by now."""
        learned = None if self._learning is None else self._learning.policy(self.site)
        return self.policy or learned or Advised()

    @property
    def _learning(self) -> Learning | None:
        assert not isinstance(self.history, History)
        return self.history

    def known(self, more: Context | None = None) -> dict[str, Any]:
        """The plain values of the context."""
        return {name: clean_value(value) for name, value in {**self.context, **(more or {})}.items()}

    def decide(self, view: Context) -> Any:
        """The value of the branch for what a grower knows at one place: as a site of a tree's plan."""
        return self.outcome_at(view).value

    def outcome_at(self, view: Context) -> Outcome:
        """What is chosen for what a grower knows at one place, and from what."""
        more = {name: value for name, value in view.items() if name not in self.context}
        picked = self.pick(more)
        branch = self.branches[picked.branch]
        if branch.cost:
            raise QuestionError(
                f"the branch '{picked.branch}' of '{self.site}' has a cost; in a plan it must have none."
            )
        return self.outcome(picked, branch.run(view), Fraction(0), more)

    def _advised(self, values: Mapping[str, Any]) -> tuple[dict[str, float], str | None]:
        """Weights of branches, or the one that is taken without asking the policy."""
        found = None if self.advice is None else self.advice(values)
        if isinstance(found, Advice):
            if found.hard:
                return {}, self._named(found.branch)
            found = found.branch
        if found is None:
            return {}, None
        weights = {found: 1.0} if isinstance(found, str) else dict(found)
        return {self._named(name): min(max(float(weight), 0.0), 1.0) for name, weight in weights.items()}, None

    def _named(self, branch: str) -> str:
        if branch not in self.branches:
            raise QuestionError(f"the advice names '{branch}', which is none of {', '.join(self.branches)}.")
        return branch

    # -- running ----------------------------------------------------------------------------

    @property
    def reservation(self) -> Fraction:
        """What has to be free before anything starts, where losses are counted in epsilon: the dearest way through."""
        return self._reservation(Fraction)

    def _reservation(self, price: Price) -> Fraction:
        found: Fraction = self.mode.reservation(self, price)
        return found if self.reward is None else found + price(Fraction(self.reward.epsilon))

    def run(self, table: ProtectedTable, *, data: str = "") -> Outcome:
        """Choose and run. The dearest way is reserved first; what was not spent is free again afterwards.

        Parameters
        ----------
        table : ProtectedTable
        data : str, optional
            The name of the rows in the history, for its cap on what one data set teaches. By default executions on
            one table of one ledger file are about the same rows, others about rows of their own.

        Returns
        -------
        Outcome
            With a reward, what came of it is judged, and the history has one execution more.

        Raises
        ------
        BudgetExceeded
            The dearest way does not fit. Nothing was charged.
        PrivacyError
            The reward is not clean. What ran until then stays charged, and the history is as it was; the outcome of the
            error has what came of the branch.
        QuestionError
            The history cannot be written, likewise.
        """
        with self._reserved(table) as scope:
            outcome: Outcome = self.mode.run(self, scope)
            if self.reward is None or not outcome.branch:
                return outcome
            judged = scope.allot(self.reward.epsilon)
            reward = self.reward.ask(judged, outcome.value)
            outcome = replace(outcome, reward=reward, spent=outcome.spent + judged.budget.spent)
        run = uuid.uuid4().hex
        seen = {name: Public(value) for name, value in outcome.context.items() if _is_plain(value)}
        about = data or data_name(table, run)
        try:
            self._kept.append(self.site, seen, outcome.branch, reward, run=run, data=about, cost=Public(outcome.spent))
        except PrivetError as error:
            error.outcome = outcome  # it is paid for
            raise
        return outcome

    @property
    def _kept(self) -> History:
        if self._learning is None:
            raise QuestionError("this NoisyIf has no history; give it one with history=History(...).")
        return self._learning.history

    def learn(self, model: Model, reward: Release | Public, *, data: str = "", field: str = "") -> None:
        """Keep what came of a model in whose plan this choice was: all of its nodes share the reward.

        A node counts by its rows, where they are known, so that the levels of a tree count alike.

        Parameters
        ----------
        model : Model
        reward : Release or Public
            As for `History.append`; `privet.choice.percent_right` buys one.
        data : str, optional
            The name of the rows that it was grown on; by default they are its own.
        field : str, optional
            The field of the plan that the choice was for, if it is not called like the choice.

        Raises
        ------
        PrivacyError
            The reward is not clean.
        QuestionError
            The choice has no history, or the model did not ask it.
        """
        history = self._kept
        decisions = [decision for decision in model.privacy.decisions if decision.site == (field or self.site)]
        found = [(decision.branch, context) for decision in decisions for context in decision.at_nodes()]
        if not found or not {branch for branch, _ in found} <= set(self.branches):
            raise QuestionError(f"the model did not ask the choice '{self.site}'; name the field of its plan.")
        sizes = [context.get("rows") for _, context in found]
        rows = [max(size, 1.0) if isinstance(size, int | float) else 0.0 for size in sizes]
        amounts = rows if all(rows) else [1.0] * len(rows)
        whole = sum(amounts)
        record = "the record of a model, which is published"
        nodes = [
            (branch, Public(amount / whole, record), {name: Public(value, record) for name, value in context.items()})
            for (branch, context), amount in zip(found, amounts, strict=True)
        ]
        run, cost = uuid.uuid4().hex, Public(model.privacy.spent, record)
        history.extend(self.site, {}, {"": reward}, run=run, data=data, cost=cost, nodes=nodes)

    @contextmanager
    def _reserved(self, table: ProtectedTable) -> Iterator[ProtectedTable]:
        reservation = self._reservation(price_on(table))
        if not reservation:
            yield table
            return
        with table.reserve(amount_on(table, reservation)) as scope:
            yield scope

    def follow(self, picked: Picked, table: ProtectedTable, more: Context | None = None, *bought: Any) -> Outcome:
        """Run a branch that was picked: it is charged its own cost, the others nothing.

        Parameters
        ----------
        picked : Picked
            What `pick` returned.
        table : ProtectedTable
            Pays for the branch.
        more : mapping, optional
            What was released since.
        *bought
            What the branch gets besides its table.

        Returns
        -------
        Outcome
            What the branch made, and what it cost.
        """
        branch = self.branches[picked.branch]
        scope = table.allot(branch.cost) if branch.cost else None
        value = branch.run(scope, *bought)
        spent = scope.budget.spent if scope is not None else Fraction(0)
        return self.outcome(picked, value, spent, more)

    def outcome(self, picked: Picked, value: Any, spent: Fraction, more: Context | None = None) -> Outcome:
        """Return what is told of a branch that was `picked`: its `value`, what it `spent`, and `more` that is known."""
        policy = picked.policy or ("" if self.policy is None else self.policy.name)
        return Outcome(
            self.site,
            picked.branch,
            value,
            spent,
            dict(picked.margins),
            self.known(more),
            policy,
            picked.why,
            picked.deciding,
            picked.learned,
        )


def _is_plain(value: object) -> bool:
    """Whether a history can keep it."""
    return isinstance(value, str) or as_number(value) is not None

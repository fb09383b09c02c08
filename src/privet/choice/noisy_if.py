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

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from privet.choice.branch import Advice, Branch
from privet.choice.modes import mode
from privet.choice.outcome import Outcome, Picked
from privet.choice.policy import Advised, Policy
from privet.errors import QuestionError
from privet.kernel import Public, Release, known
from privet.table import ProtectedTable

Context = Mapping[str, Release | Public]


@dataclass(frozen=True)
class NoisyIf:
    """A choice between branches, as a value: it holds no table, and can be run on many.

    `context` maps names to releases, `release.map(...)` or `Public(value)`. `advice` is a function of their plain
    values that returns a branch, weights from 0 to 1, `Advice(branch, hard=True)` or None; it is a prior that
    experience can overrule, unless it is hard. `policy` learned from earlier runs; without one the advice decides,
    without both the default. `mode` says what is bought before the choice: "free" buys nothing.
    """

    site: str
    branches: Mapping[str, Branch]
    default: str
    context: Context = field(default_factory=dict)
    advice: Callable[[Mapping[str, Any]], Any] | None = None
    policy: Policy | None = None
    mode: Any = "free"

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
            known(value)  # what is neither a release nor declared public is refused
        if self.policy is not None and not isinstance(self.policy, Policy):
            raise QuestionError("a policy is one of privet.choice: Fixed, BayesianLinear, CautiousForest.")
        object.__setattr__(self, "mode", mode(self.mode))

    # -- choosing ---------------------------------------------------------------------------

    def pick(self, more: Context | None = None) -> Picked:
        """The branch for this context, and for what was released since. The same every time; it costs nothing."""
        values = self.known(more)
        advised, hard = self._advised(values)
        if hard is not None:
            return Picked(hard, {}, "as advised, whatever the policy says")
        policy = self.policy or Advised()
        margins = policy.margins(values, list(self.branches), self.default, advised)
        ruled = policy.rule(values)
        if ruled is not None:
            return Picked(ruled[0], margins, ruled[1], policy.deciding(values))
        # the default wins a tie
        branch = max(self.branches, key=lambda name: (margins[name], name == self.default))
        if branch == self.default:
            why = "the default" if not any(margins.values()) else "stayed with the default"
        else:
            why = f"ahead of the default '{self.default}' by {margins[branch]:.2f} points"
        return Picked(branch, margins, why, policy.deciding(values))

    def known(self, more: Context | None = None) -> dict[str, Any]:
        """The plain values of the context."""
        return {name: known(value) for name, value in {**self.context, **(more or {})}.items()}

    def decide(self, view: Context) -> Any:
        """The value of the branch for what a grower knows at one place: as a site of a tree's plan."""
        picked = self.pick({name: value for name, value in view.items() if name not in self.context})
        branch = self.branches[picked.branch]
        if branch.cost:
            raise QuestionError(
                f"the branch '{picked.branch}' of '{self.site}' has a cost; in a plan it must have none."
            )
        return branch.run(view)

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
        """What has to be free before anything starts: the dearest way through."""
        found: Fraction = self.mode.reservation(self)
        return found

    def run(self, table: ProtectedTable) -> Outcome:
        """Choose and run. The dearest way is reserved first; what was not spent is free again afterwards."""
        with self._reserved(table) as scope:
            outcome: Outcome = self.mode.run(self, scope)
        return outcome

    @contextmanager
    def _reserved(self, table: ProtectedTable) -> Iterator[ProtectedTable]:
        if not self.reservation:
            yield table
            return
        with table.reserve(self.reservation) as scope:
            yield scope

    def follow(self, picked: Picked, table: ProtectedTable, more: Context | None = None, *bought: Any) -> Outcome:
        """Run a branch that was picked: it is charged its own cost, the others nothing."""
        branch = self.branches[picked.branch]
        scope = table.allot(branch.cost) if branch.cost else None
        value = branch.run(scope, *bought)
        spent = scope.budget.spent if scope is not None else Fraction(0)
        return self.outcome(picked, value, spent, more)

    def outcome(self, picked: Picked, value: Any, spent: Fraction, more: Context | None = None) -> Outcome:
        policy = "" if self.policy is None else self.policy.name
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
        )

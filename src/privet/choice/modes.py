"""What a NoisyIf buys before it chooses, and what the whole then costs.

A mode says what has to be reserved, and how the choice is made. Its charge is proved in a sentence of its docstring
and written by the kernel: no mode charges anything itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privet.choice.outcome import Outcome, Picked
from privet.errors import QuestionError
from privet.kernel import AdditiveModel, Rho, as_epsilon, race
from privet.release import Public, Release
from privet.table import ProtectedTable

if TYPE_CHECKING:
    from privet.choice.noisy_if import NoisyIf


Price = Callable[[Fraction], Fraction]


class Mode(ABC):
    """How a NoisyIf comes to its choice."""

    @abstractmethod
    def reservation(self, choice: NoisyIf, price: Price = Fraction) -> Fraction:
        """The most that the whole can cost; `price` returns what an epsilon costs, where losses are counted in rho."""

    @abstractmethod
    def run(self, choice: NoisyIf, table: ProtectedTable) -> Outcome:
        """Choose and run, on a table that has the reservation to spend."""


def _dearest(choice: NoisyIf, price: Price = Fraction) -> Fraction:
    dearest = max(Fraction(branch.cost) for branch in choice.branches.values())
    return price(dearest) if dearest else dearest


@dataclass(frozen=True)
class Free(Mode):
    """The choice is a function of what is known already.

    It costs what the chosen branch costs: given the transcript so far, the next mechanism is fixed before it
    looks at a row, and losses of adaptively chosen mechanisms add up.
    """

    def reservation(self, choice: NoisyIf, price: Price = Fraction) -> Fraction:
        return _dearest(choice, price)

    def run(self, choice: NoisyIf, table: ProtectedTable) -> Outcome:
        return choice.follow(choice.pick(), table)


@dataclass(frozen=True)
class Probe(Mode):
    """Buy a release first, then choose from it: `ask(table)` for `epsilon`, `read(release)` for the context it gives.

    It costs the probe and the chosen branch: the probe is a release like any other, and the rest is the
    free choice. The branch gets the release, so that nothing is bought twice.
    """

    ask: Callable[[ProtectedTable], Release]
    epsilon: Any
    read: Callable[[Any], Mapping[str, Release | Public]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon))

    def reservation(self, choice: NoisyIf, price: Price = Fraction) -> Fraction:
        return price(self.epsilon) + _dearest(choice, price)

    def run(self, choice: NoisyIf, table: ProtectedTable) -> Outcome:
        scope = table.allot(self.epsilon)
        release = self.ask(scope)
        more = self.read(release)
        found = choice.follow(choice.pick(more), table, more, release)
        return _dearer(found, scope.budget.spent)


@dataclass(frozen=True)
class Score(Mode):
    """Choose the branch whose utility is high on the table itself: a released model, by the rows it classifies
    right, or conditions, by the rows that meet them.

    It costs `epsilon` and the chosen branch: utilities are counts of rows, which a record moves by at most one and
    all in one direction, so permute-and-flip with the monotone exponent loses epsilon, whatever the number of branches.
    """

    utilities: Mapping[str, AdditiveModel | Mapping[str, Any]]
    epsilon: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon))

    def reservation(self, choice: NoisyIf, price: Price = Fraction) -> Fraction:
        return price(self.epsilon) + _dearest(choice, price)

    def run(self, choice: NoisyIf, table: ProtectedTable) -> Outcome:
        if set(self.utilities) != set(choice.branches):
            raise QuestionError(f"give a utility for each of {', '.join(choice.branches)}.")
        best = table.best(dict(self.utilities), self.epsilon)
        picked = _picked(str(best), "the noisily highest utility")
        return _dearer(choice.follow(picked, table), best.about.loss)


@dataclass(frozen=True)
class Race(Mode):
    """Run branches drawn at random, stop by a coin, and release the best by `judge(table, value)`, a release too.

    It costs three times the dearest branch with its judgement (Liu and Talwar 2019), twice with a `target` that
    the first branch to reach it wins: the proof stands at `privet.kernel.race`. A free choice loses less
    (docs/explanation/choice.md): race only where nothing is known. What the winner says of its own cost is that of
    its run.
    """

    judge: Callable[[ProtectedTable, Any], Release]
    epsilon: Any  # of the judgement
    stop: Fraction = Fraction(1, 4)
    target: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon))

    def reservation(self, choice: NoisyIf, price: Price = Fraction) -> Fraction:
        whole = (_dearest(choice) + Fraction(self.epsilon)) * (3 if self.target is None else 2)
        return whole if price is Fraction else whole**2 / 2  # runs are pure everywhere, and so is the race

    def run(self, choice: NoisyIf, table: ProtectedTable) -> Outcome:
        names = list(choice.branches)
        each = _dearest(choice) + Fraction(self.epsilon)
        runs = [self._candidate(choice, name) for name in names]
        found = race(table, runs, each, stop=self.stop, target=self.target)
        if found is None:
            picked, value = _picked("", f"no branch reached {self.target} before the coin stopped the race"), None
        else:
            picked, value = _picked(names[found.index], "won the race"), found.output
        return choice.outcome(picked, value, self.reservation(choice, price_on(table)))

    def _candidate(self, choice: NoisyIf, name: str) -> Callable[[ProtectedTable], tuple[Any, Release]]:
        branch = choice.branches[name]

        def run(table: ProtectedTable) -> tuple[Any, Release]:
            value = branch.run(table.allot(branch.cost) if branch.cost else None)
            return value, self.judge(table.allot(self.epsilon), value)

        return run


@dataclass(frozen=True)
class AccuracyFirst(Mode):
    """The cheapest branch whose model is right on at least a share `accuracy` of the rows, tried in order of cost.

    With `counts`, a question whose answer can be refined (`lambda table, epsilon: table.histogram(...)`), the branch
    at cost e makes its model of the counts at e: earlier counts are noise on top of later ones, so all of them together
    cost the last e. Without, a branch is fitted anew on the table and the costs of all that were tried add up. Every
    check is covered by one `epsilon` (the sparse vector technique: `table.monitor`). The last branch is taken
    unchecked.
    """

    accuracy: Any
    epsilon: Any  # of all checks together
    counts: Callable[[ProtectedTable, Fraction], Any] | None = None
    model: Callable[[Any], AdditiveModel] = field(default=lambda value: value.additive)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon))

    def reservation(self, choice: NoisyIf, price: Price = Fraction) -> Fraction:
        costs = [price(branch.cost) if branch.cost else Fraction(0) for branch in choice.branches.values()]
        return price(self.epsilon) + (max(costs) if self.counts else sum(costs, Fraction(0)))

    def run(self, choice: NoisyIf, table: ProtectedTable) -> Outcome:
        ladder = sorted(choice.branches.items(), key=lambda item: item[1].cost)
        scope = table.allot(amount_on(table, self.reservation(choice, price_on(table))))
        monitor = scope.monitor(self.accuracy, self.epsilon)
        counts: Any = None
        for name, branch in ladder:
            if self.counts is None:
                value = branch.run(scope.allot(branch.cost) if branch.cost else None)
            else:
                counts = self.counts(scope, branch.cost) if counts is None else counts.refine(branch.cost)
                value = branch.run(None, counts)
            last = name == ladder[-1][0]
            if last or monitor.reached(self.model(value)):
                break
        why = "the dearest, unchecked" if last else f"the first to reach {float(monitor.accuracy):.0%}"
        return choice.outcome(_picked(name, why), value, scope.budget.spent)


def price_on(table: ProtectedTable) -> Price:
    """What an epsilon costs on a table: itself, or where losses are counted in rho, a rho."""
    return Fraction if table.unit.delta is None else table.amount


def amount_on(table: ProtectedTable, loss: Fraction) -> Fraction | Rho:
    """A loss as a table is asked for it."""
    return loss if table.unit.delta is None else Rho(loss)


MODES = {"free": Free}


def mode(given: object) -> Mode:
    """A mode by its name or as it is."""
    if isinstance(given, Mode):
        return given
    if isinstance(given, str) and given in MODES:
        return MODES[given]()
    raise QuestionError(
        "mode is 'free', or one of privet.choice with what it needs: Probe, Score, Race, AccuracyFirst."
    )


def _picked(branch: str, why: str) -> Picked:
    return Picked(branch, {}, why)


def _dearer(outcome: Outcome, more: Fraction) -> Outcome:
    return replace(outcome, spent=outcome.spent + more)

"""What sites are shown, and what they decide.

A site is a field of a plan whose value is chosen while trees grow: once for a run, or anew at every
node. It sees a view of public facts and earlier releases. So its choice is post-processing of
releases, and whatever it chooses, the charges of the kernel are the whole cost (adaptive
composition, docs/explanation/privacy.md#partition). A plan without sites needs nothing of this.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import PrivacyError, QuestionError
from privet.kernel import Criterion, Domain, Nominal
from privet.learners.algorithm import Exchange
from privet.learners.plan import RUN_SITES, Level, Plan, Site, View, checked_at_node, checked_setting, is_site, name_of
from privet.models.privacy_record import MOST_CONTEXTS, Decision
from privet.release import Histogram, Public, Release, derivation, known

T = TypeVar("T")


def rows_in(counts: Histogram) -> Release:
    """Return the number of rows that released class counts add up to, at least 1."""
    return counts.map(_rows)


@derivation
def _rows(counts: NDArray[np.int64]) -> float:
    return max(float(counts.sum()), 1.0)


@derivation
def _times(value: float, factor: float) -> float:
    return value * factor


def view_of(domain: Domain, epsilon: Fraction, rows: Release | Public | None) -> dict[str, Release | Public]:
    """Return what a run knows before its first split.

    Parameters
    ----------
    domain : Domain
    epsilon : Fraction
        The budget of the whole run.
    rows : Release, Public or None
        The number of rows, if it is public or was bought.

    Returns
    -------
    dict of str to Release or Public
    """
    columns = [domain[name] for name in domain.attributes]
    view: dict[str, Release | Public] = {
        "epsilon": Public(float(epsilon)),
        "attributes": Public(len(columns)),
        "classes": Public(len(domain.classes)),
        "arity": Public(float(np.mean([math.log(column.size) for column in columns]))),
        "ordered": Public(float(np.mean([not isinstance(column, Nominal) or column.ordered for column in columns]))),
    }
    return view if rows is None else {**view, "rows": rows, "signal": signal_of(rows, float(epsilon))}


def signal_of(rows: Release | Public, budget: float) -> Release | Public:
    """Return the logarithm of rows times a budget, as a release if `rows` is one: what can be learned depends on it."""
    if isinstance(rows, Public):
        return Public(_signal(rows.value, budget))
    return rows.map(_signal, Public(budget))


@derivation
def _signal(rows: float, budget: float) -> float:
    return math.log(max(float(rows), 1.0) * max(budget, 1e-9))


def estimate_of(rows: Release | Public, estimate: float) -> Release | Public:
    """Return an estimate of part of all rows, as a release if `rows` is one."""
    if isinstance(rows, Public):
        return Public(estimate)
    return rows.map(_times, Public(estimate / rows.value))  # an estimate is made of releases by the grower


class Decisions:
    """Asks the sites of one run, and records what they decided.

    Parameters
    ----------
    view : mapping of str to Release or Public
        What the run knows at the beginning.
    """

    def __init__(self, view: View) -> None:
        self.view = dict(view)
        self._nodes: dict[tuple[str, str], list[Decision]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def ask(self, name: str, site: Site, check: Callable[[Any], T], more: View | None = None) -> T:
        """Ask a site for the value of a field.

        Parameters
        ----------
        name : str
            The field of the plan.
        site : Site
        check : callable
            Returns the value to use, or raises if the decision cannot be used.
        more : mapping, optional
            What a node adds to the view.

        Returns
        -------
        object
            What `check` makes of the decision.
        """
        view = {**self.view, **(more or {}), "site": Public(name)}
        choose = getattr(site, "outcome_at", None)  # of a NoisyIf, which names its branches and learns
        if choose is None:
            decision = site.decide(view)
            value = check(decision)
            recorded = Decision(name, name_of(decision), context=_numbers(view))
        else:
            outcome = choose(view)
            value = check(outcome.value)
            recorded = replace(outcome.decision, site=name, margins=(), why="")
        key = name, recorded.branch
        self._counts[key] += 1
        if self._counts[key] <= MOST_CONTEXTS:
            self._nodes.setdefault(key, []).append(recorded)
        return value

    def decided(self, plan: Plan) -> Plan:
        """Return a plan after the sites of the run have decided, one after the other; sites of nodes stay.

        Each field that is decided becomes part of the view.

        Raises
        ------
        QuestionError
            A site decided something that its field cannot be.
        """
        for name in RUN_SITES:
            setting = getattr(plan, name)
            if is_site(setting):
                setting = self.ask(name, setting, partial(checked_setting, name))
                plan = replace(plan, **{name: setting})
            self.view[f"plan.{name}"] = Public(setting if isinstance(setting, int | str) else name_of(setting))
        return plan

    @property
    def record(self) -> tuple[Decision, ...]:
        """Every decision that was made, with the number of nodes where it was and what it was made from."""
        return tuple(_together(nodes, self._counts[key]) for key, nodes in self._nodes.items())


def _numbers(view: View) -> tuple[tuple[str, float], ...]:
    """The numbers of a view."""
    values = {name: known(value) for name, value in view.items()}
    return tuple((name, float(value)) for name, value in values.items() if isinstance(value, int | float))


def _together(nodes: Sequence[Decision], count: int) -> Decision:
    """One decision for all nodes that took one branch: what they share is said once."""
    first, others = nodes[0], [dict(node.context) for node in nodes]
    numbers = {name: value for name, value in first.context if isinstance(value, int | float)}
    varying = tuple(name for name in numbers if any(other.get(name) != numbers[name] for other in others))
    shared = tuple((name, value) for name, value in first.context if name in numbers and name not in varying)
    contexts = tuple(tuple(float(other.get(name, 0.0)) for name in varying) for other in others) if varying else ()
    return replace(first, nodes=count, context=shared, varying=varying, contexts=contexts)


# -- sites that decide at every node --------------------------------------------------------------


@dataclass(frozen=True)
class NodeFacts:
    """What is known of a node, and what its path may still spend.

    Parameters
    ----------
    depth : int
    unused : int
        How many attributes its path has not used.
    unspent : Fraction
        The share of epsilon that its path has not spent.
    estimate : float
        Its number of rows, as if every split divided them evenly.
    size : Release or Public, optional
        Its number of rows, if that was bought or is public.
    """

    depth: int
    unused: int
    unspent: Fraction
    estimate: float
    size: Release | Public | None = None


@dataclass(frozen=True)
class NodeSites:
    """The sites of a plan that decide anew at every node.

    They see public facts and what was released about the path of a node, so their decisions are post-processing.
    Whatever a node is asked then, its own rows pay for it (docs/explanation/privacy.md#partition).

    Parameters
    ----------
    plan : Plan
        Its sites of the run have decided.
    domain : Domain
    decisions : Decisions
        Asks the sites and records their decisions.
    rng : numpy.random.Generator
        Public coins.
    rows : Release, Public or None
        The number of rows of the table, if it is known.
    resolve : callable
        Returns a criterion that depends on nothing any more, as `resolved_criterion` does.
    exchange : Exchange
        What shares of epsilon are worth.
    """

    plan: Plan
    domain: Domain
    decisions: Decisions
    rng: np.random.Generator
    rows: Release | Public | None
    resolve: Callable[[Any], str | Criterion]
    exchange: Exchange

    def decide(self, name: str, node: NodeFacts, check: Callable[[Any], Any] | None = None) -> Any:
        """Ask the site of a field of the plan about a node.

        `check` returns the value to use, or raises `QuestionError`; by default it is what the field checks.
        """
        worth = float(self.exchange.worth(node.unspent))
        view: dict[str, Release | Public] = {
            "depth": Public(node.depth),
            "left": Public(node.unused),
            "budget": Public(worth),
        }
        if node.size is not None:
            view["rows"] = node.size
        elif self.rows is not None:
            view["rows"] = estimate_of(self.rows, node.estimate)
        if "rows" in view:
            view["signal"] = signal_of(view["rows"], worth)
        return self.decisions.ask(name, getattr(self.plan, name), check or partial(checked_at_node, name), view)

    def criterion(self, node: NodeFacts, shares: Level) -> Criterion:
        """Return the criterion by which a node selects its split, which may pay these shares.

        Raises
        ------
        QuestionError
            The level has no budget for a selection, or the criterion cannot be used.
        """
        if not self.plan.is_exact:
            self.plan.check_selection(shares, self.domain)
        if is_site(self.plan.criterion):
            rule: Criterion = self.decide("criterion", node, self._usable)
            return rule
        return self._usable(self.plan.criterion)

    def _usable(self, choice: Any) -> Criterion:
        """Return a criterion, or refuse it as a wrong question."""
        try:
            return self.plan.usable_criterion(self.domain, self.resolve(choice))
        except PrivacyError as error:  # nothing was asked, so no promise is in danger
            raise QuestionError(str(error)) from None

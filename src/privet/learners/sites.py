"""Sites: fields of a plan whose value is chosen while the tree grows.

Every choice of a plan can be made where it is used (Jostle 2018): once for a run, or anew at every
node. A site sees a view of public facts and earlier releases. So its choice is post-processing of
releases, and whatever it chooses, the charges of the kernel are the whole cost (adaptive
composition, docs/explanation/privacy.md#partition).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol, TypeGuard, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privet.kernel import Domain, Nominal
from privet.models.privacy_record import MOST_CONTEXTS, Decision
from privet.release import Histogram, Public, Release, derivation, known

View = Mapping[str, Release | Public]

T = TypeVar("T")


@runtime_checkable
class Site(Protocol):
    """A choice that is made while the tree grows: any object with a method `decide`.

    Examples
    --------
    >>> class Sharper:
    ...     def decide(self, view: View) -> str:
    ...         return "gini" if view["rows"].value > 1000 else "max"
    >>> isinstance(Sharper(), Site), Sharper().decide({"rows": Public(5000)})
    (True, 'gini')
    """

    def decide(self, view: View) -> Any:
        """Return the value that the field has here.

        Parameters
        ----------
        view : mapping of str to Release or Public
            What is known, each value with a wrapper that tells whether it is public or released. A run has

            * `site`: the name of the field;
            * `epsilon`, `attributes` and `classes` (how many), `arity` (mean logarithm of the number of cells of an
              attribute), `ordered` (share of attributes with an order);
            * `rows`, if they are public or were bought, and `signal`, the logarithm of `rows` times `epsilon`;
            * `plan.depth` and so on: the fields that were decided before.

            A node adds `depth`, `left` (how many attributes its path has not used), `budget` (what its path has not
            spent), `rows` is its own number, and `signal` that of `rows` times `budget`.

        Returns
        -------
        object
            A value that the field of the plan may have.
        """


def is_site(setting: object) -> TypeGuard[Site]:
    """Return whether a field of a plan is decided while trees grow: as `isinstance`, many times faster."""
    return callable(getattr(setting, "decide", None))


def settled(setting: Any) -> Any:
    """Return a field of a plan, which must not be a site any more."""
    assert not is_site(setting)
    return setting


def name_of(setting: object) -> str:
    """Return the name of a rule or site: its `__name__`, `name` or `site`, else how it is written."""
    names = [getattr(setting, key, None) for key in ("__name__", "name", "site")]
    written = type(setting).__name__ if is_site(setting) else str(setting)
    return next((name for name in names if isinstance(name, str) and name), written)


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

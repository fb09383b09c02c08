"""Sites: fields of a plan whose value is chosen while the tree grows.

Every choice of a plan can be made where it is used (Jostle 2018): once for a run, or anew at every
node. A site sees a view of public facts and earlier releases. So its choice is post-processing of
releases, and whatever it chooses, the charges of the kernel are the whole cost (adaptive
composition, docs/privacy.md#partition).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Protocol, TypeGuard, TypeVar, runtime_checkable

import numpy as np

from privet.kernel import Domain, Histogram, Nominal, Public, Release
from privet.models.privacy_record import Decision

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
            * `rows`, if they are public or were bought;
            * `plan.depth` and so on: the fields that were decided before.

            A node adds `depth`, `left` (how many attributes its path has not used), `budget` (what its path has not
            spent), and `rows` is its own number.

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
    return counts.map(lambda values: max(float(values.sum()), 1.0))


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
    return view if rows is None else {**view, "rows": rows}


def estimate_of(rows: Release | Public, estimate: float) -> Release | Public:
    """Return an estimate of part of all rows, as a release if `rows` is one."""
    if isinstance(rows, Public):
        return Public(estimate)
    share = estimate / rows.value
    return rows.map(lambda whole: whole * share)


class Decisions:
    """Asks the sites of one run, and records what they decided.

    Parameters
    ----------
    view : mapping of str to Release or Public
        What the run knows at the beginning.
    """

    def __init__(self, view: View) -> None:
        self.view = dict(view)
        self._nodes: Counter[tuple[str, str]] = Counter()

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
        decision = site.decide({**self.view, **(more or {}), "site": Public(name)})
        value = check(decision)
        self._nodes[name, name_of(decision)] += 1
        return value

    @property
    def record(self) -> tuple[Decision, ...]:
        """Every decision that was made, with the number of nodes where it was."""
        return tuple(Decision(site, branch, nodes) for (site, branch), nodes in self._nodes.items())

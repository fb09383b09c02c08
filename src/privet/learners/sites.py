"""Sites: fields of a plan whose setting is chosen while the tree grows.

Every choice of the grower can be made where it is used (Jostle 2018): once for a run, or
anew at every node. A site sees a view of what is public and of what was released before, so
its choice is post-processing of releases: whichever way it falls, the charges of the kernel
are the whole cost (adaptive composition, docs/privacy.md#partition).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from privet.kernel import Domain, Histogram, Nominal, Public, Release
from privet.models.privacy_record import Decision

View = Mapping[str, Release | Public]

T = TypeVar("T")


@runtime_checkable
class Site(Protocol):
    """A choice that waits: `decide` says the setting to use here.

    All it is shown is public or released, and wrapped to say which: adaptive composition lets the run go on
    from its answer at no cost. A run shows `site` (the field), `epsilon`, `attributes`, `classes`, `arity` (mean
    logarithm of the cells), `ordered` (share of attributes), `rows` where they are known, and as `plan.depth` and so
    on the settings that come before. A node adds `depth`, `left` (attributes), `budget`, and has `rows` of its own.

    >>> class Sharper:
    ...     def decide(self, view: View) -> str:
    ...         return "gini" if view["rows"].value > 1000 else "max"
    >>> isinstance(Sharper(), Site), Sharper().decide({"rows": Public(5000)})
    (True, 'gini')
    """

    def decide(self, view: View) -> Any:
        """The setting to use here."""


def settled(setting: Any) -> Any:
    """A setting that is no site, or no longer."""
    assert not isinstance(setting, Site)
    return setting


def name_of(setting: object) -> str:
    """What a setting or a site is called: by its own name, or else as it is written."""
    names = [getattr(setting, key, None) for key in ("__name__", "name", "site")]
    written = type(setting).__name__ if isinstance(setting, Site) else str(setting)
    return next((name for name in names if isinstance(name, str) and name), written)


def rows_in(counts: Histogram) -> Release:
    """The number of rows that released class counts tell."""
    return counts.map(lambda values: max(float(values.sum()), 1.0))


def view_of(domain: Domain, epsilon: Fraction, rows: Release | Public | None) -> dict[str, Release | Public]:
    """What a run knows before its first split; the number of rows where it is public or was bought."""
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
    """An estimated part of all rows; it is as public as they are."""
    if isinstance(rows, Public):
        return Public(estimate)
    share = estimate / rows.value
    return rows.map(lambda whole: whole * share)


class Decisions:
    """Asks the sites of one run, and remembers what they said."""

    def __init__(self, view: View) -> None:
        self.view = dict(view)
        self._nodes: Counter[tuple[str, str]] = Counter()

    def ask(self, name: str, site: Site, checked: Callable[[Any], T], more: View | None = None) -> T:
        """What a site says of the field `name`, if it can be used; `more` is what a node adds to the view."""
        said = site.decide({**self.view, **(more or {}), "site": Public(name)})
        found = checked(said)
        self._nodes[name, name_of(said)] += 1
        return found

    @property
    def record(self) -> tuple[Decision, ...]:
        """Every branch that was taken, and at how many nodes."""
        return tuple(Decision(site, branch, nodes) for (site, branch), nodes in self._nodes.items())

"""Plan: the choices that make an algorithm.

All tree algorithms of the literature are one algorithm with different choices (Jostle 2018, figure
7): how the budget is shared along a path, when to stop, how to find a split, where numbers are
split, what a leaf publishes, how to prune, how many trees there are and which rows each of them
sees. A `Plan` holds these choices, `grow` carries them out, and `presets` has a plan for every
published algorithm.

Every choice of a plan can also be made where it is used (Jostle 2018): a field that holds a `Site` is
decided once for a run, or anew at every node. `sites` asks them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from privet.conditions import criterion
from privet.errors import NotPrivate, QuestionError
from privet.kernel import Criterion, Domain, Json, Numeric, WeightedMax, as_epsilon
from privet.lab import GainRatio, Unrounded
from privet.release import Public, Release

# "Signal" is the number of rows times the epsilon of a record.
DEEPER = (500.0, 1200.0, 8000.0, 50_000.0)  # signals from which two, three, four and five levels pay off
SHARPER = 20_000.0  # signal from which gini, which needs more noise than max, finds better splits
BY_SIGNAL = "by-signal"  # a criterion that follows from the signal
WEIGHTED = "weighted-max"  # a criterion whose weights come from class counts that the plan buys
EXACT = Fraction(0)  # the share of a question that public rows answer exactly


View = Mapping[str, Release | Public]  # what a site sees


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


@dataclass(frozen=True)
class Level:
    """What each node of one level pays.

    Parameters
    ----------
    size : Fraction, default 0
        For its noisy size.
    points : Fraction, default 0
        For a threshold of every numeric attribute, all together.
    split : Fraction, default 0
        For the choice of its split.
    """

    size: Fraction = Fraction(0)
    points: Fraction = Fraction(0)
    split: Fraction = Fraction(0)


@dataclass(frozen=True)
class Schedule:
    """How the budget of one tree is shared along a path.

    Parameters
    ----------
    levels : tuple of Level
        One for each depth at which nodes may be split.
    leaf : Fraction, optional
        What a leaf pays for its class counts. None: everything that its path has not spent.
    leaf_size : Fraction, default 0
        What a leaf of the last level pays for its size.
    """

    levels: tuple[Level, ...]
    leaf: Fraction | None = None
    leaf_size: Fraction = Fraction(0)


class BudgetRule(Protocol):
    """A rule that shares the budget of a tree along its paths."""

    def __call__(self, plan: Plan, epsilon: Fraction, depth: int, numeric: int, /) -> Schedule:
        """Return the shares of a tree.

        Parameters
        ----------
        plan : Plan
        epsilon : Fraction
            The budget B of the tree.
        depth : int
            The number d of levels that may split.
        numeric : int
            The number m of numeric attributes for which a node buys a threshold before it chooses.

        Returns
        -------
        Schedule
        """


class DepthRule(Protocol):
    """A public rule for the depth of a tree."""

    def __call__(self, plan: Plan, domain: Domain, rows: float, epsilon: Fraction, /) -> int:
        """Return the depth of a tree; the grower limits it to what the domain allows.

        Parameters
        ----------
        plan : Plan
        domain : Domain
        rows : float
            The number of rows, public or released.
        epsilon : Fraction
            The budget of the tree.

        Returns
        -------
        int
        """


# -- rules for the budget, all of them `BudgetRule` -------------------------------------------------


def even(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """Share evenly: e = B / (2 (d + 1)) for a size, e for a choice, 2 e for a leaf (Friedman and Schuster)."""
    e = as_epsilon(epsilon / (2 * (depth + 1)))
    return _schedule(plan, (Level(size=e, split=e),) * depth, leaf=e, leaf_size=e)


def with_points(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """Share as `even`, with e = B / ((2 + m) d + 2) more for a threshold of each of m numeric attributes."""
    e = as_epsilon(epsilon / ((2 + numeric) * depth + 2))
    return _schedule(plan, (Level(size=e, points=numeric * e, split=e),) * depth, leaf=e, leaf_size=e)


def fixed(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """Pay B / (d + 1) for the choice of each level and for the leaf, nothing for sizes (Mohammed et al.)."""
    e = as_epsilon(epsilon / (depth + 1))
    return _schedule(plan, (Level(split=e),) * depth, leaf=e)


def harmonic(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """Pay B / (s k) for a choice with k levels to go, B / s for the leaf, s = 1 + 1/2 + ... + 1/d + 1 (Liu et al.)."""
    return _harmonic(plan, epsilon, depth, power=1)


def harmonic_squared(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """Share as `harmonic` with k squared: the paper divides a level once more among attributes, which is not needed."""
    return _harmonic(plan, epsilon, depth, power=2)


def _harmonic(plan: Plan, epsilon: Fraction, depth: int, power: int) -> Schedule:
    """Return harmonic shares, with the number of levels to go raised to a power."""
    total = 1 + sum((Fraction(1, k) for k in range(1, depth + 1)), Fraction(0))
    levels = tuple(Level(split=as_epsilon(epsilon / (total * k**power))) for k in range(depth, 0, -1))
    return _schedule(plan, levels, leaf=as_epsilon(epsilon / total))


def halves(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """Pay B / (2 d) for the choice of each level and B / 2 for the leaf, nothing for sizes (ID3+)."""
    return _schedule(plan, (Level(split=as_epsilon(epsilon / (2 * max(depth, 1)))),) * depth, leaf=epsilon / 2)


def splits_only(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """Pay B / d for the choice of each level, nothing for leaves: they are counted later (`cheapest_model`)."""
    return Schedule((Level(split=as_epsilon(epsilon / max(depth, 1))),) * depth, leaf=Fraction(0))


def leaves_only(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """Pay everything for the leaves: the structure is drawn without a look at any row (Jagannathan et al.)."""
    return _schedule(plan, (Level(),) * depth, leaf=epsilon)


def exact(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """Charge nothing: the rows are public."""
    return Schedule((Level(),) * depth, leaf=EXACT)


def _schedule(plan: Plan, levels: tuple[Level, ...], leaf: Fraction, leaf_size: Fraction = Fraction(0)) -> Schedule:
    """Return a schedule; with `remainder` a leaf takes what is left and needs no size."""
    # the size of a leaf is the sum of its class counts (erratum E-4)
    return Schedule(levels) if plan.remainder else Schedule(levels, leaf, leaf_size)


# -- rules for the depth, all of them `DepthRule` -----------------------------------------------


def half_or_log(plan: Plan, domain: Domain, rows: float, epsilon: Fraction) -> int:
    """Return min(k / 2, log_b n - 1) for n rows and k attributes with b cells on average (Jagannathan et al.)."""
    return min(max(1, len(domain.attributes) // 2), math.floor(_log(domain, rows)) - 1)


def above_noise(plan: Plan, domain: Domain, rows: float, epsilon: Fraction) -> int:
    """Return the depth down to which an average leaf has more rows of a class than noise (Fletcher and Islam 2015)."""
    noise = math.sqrt(2) * len(domain.classes) * domain.rows_per_person / float(epsilon)
    return math.floor(_log(domain, rows / noise))


def by_signal(plan: Plan, domain: Domain, rows: float, epsilon: Fraction) -> int:
    """Return one to five levels, more with more rows times epsilon (docs/explanation/trees-id3.md)."""
    return 1 + sum(signal(domain, rows, epsilon) >= least for least in DEEPER)


def signal(domain: Domain, rows: float, epsilon: Fraction) -> float:
    """Return the number of rows times the epsilon of a record.

    Parameters
    ----------
    domain : Domain
    rows : float
    epsilon : Fraction
        Loss of a person; it is divided among all rows that a person may have.

    Returns
    -------
    float
    """
    return rows * float(epsilon) / domain.rows_per_person


def _log(domain: Domain, rows: float) -> float:
    """Return how often `rows` can be divided by the average number of cells."""
    average = sum(domain[name].size for name in domain.attributes) / len(domain.attributes)
    return math.log(max(rows, 1)) / math.log(max(average, 1.0001))


VERSION = 1  # of the JSON form of a plan
# The names of rules in that form. They never change.
BUDGETS: dict[str, BudgetRule] = {
    "even": even,
    "with-points": with_points,
    "fixed": fixed,
    "harmonic": harmonic,
    "harmonic-squared": harmonic_squared,
    "halves": halves,
    "splits-only": splits_only,
    "leaves-only": leaves_only,
    "exact": exact,
}
DEPTHS: dict[str, DepthRule] = {"half-or-log": half_or_log, "above-noise": above_noise, "by-signal": by_signal}


def _setting_json(setting: Any) -> Json:
    """Return a field of a plan as JSON."""
    if setting is None or isinstance(setting, str | bool | int):
        return setting
    if isinstance(setting, float | Fraction):
        return str(setting)
    if isinstance(setting, tuple):
        return [_setting_json(item) for item in setting]
    if isinstance(setting, Criterion):
        return setting.to_json()
    rules: dict[str, Any] = {**BUDGETS, **DEPTHS}
    return next((name for name, rule in rules.items() if rule is setting), name_of(setting))


# -- the plan -----------------------------------------------------------------------------------

SPLITS = ("select", "noisy-counts", "random")
NUMERIC = ("bins", "joint", "separate")
STOPS = ("never", "noise", "estimate", "pure")
LEAVES = ("counts", "label")
CONSISTENCY = ("none", "least-squares", "rescale")
PRUNING = ("none", "error", "signal")
ROWS = ("all", "disjoint", "bootstrap")
MECHANISMS = ("permute-and-flip", "exponential", "noisy-max")
NOW = "now"  # a value of `stop` that only a site may choose: this node is a leaf

# Fields that may be sites: decided once before growth, in this order, or anew for every node that may be split.
RUN_SITES = ("budget", "depth", "trees", "rows", "numeric", "leaf", "consistency", "prune", "vote", "mechanism")
NODE_SITES = ("stop", "split", "criterion")

_LISTS: dict[str, tuple[str, ...]] = {
    "split": SPLITS,
    "mechanism": MECHANISMS,
    "numeric": NUMERIC,
    "stop": STOPS,
    "leaf": LEAVES,
    "consistency": CONSISTENCY,
    "prune": PRUNING,
    "rows": ROWS,
    "vote": ("majority", "average", "weighted"),
}


@dataclass(frozen=True)
class Plan:
    """One algorithm: what to ask, of which nodes, at which price.

    A parameter that is listed in `RUN_SITES` or `NODE_SITES` may also be a `Site`.

    Parameters
    ----------
    name : str
        The algorithm, for messages and the privacy record.
    budget : BudgetRule
        How the budget of a tree is shared along its paths.
    depth : int or DepthRule, default 3
        The largest depth, as a number or as a public rule of the domain and the number of rows.
    split : str, default "select"
        How a node finds its split: "select" by one private selection, "noisy-counts" by the best score of noisy
        counts, "random" by public coins.
    criterion : str or Criterion, default "max"
        How splits are scored.
    mechanism : str, default "permute-and-flip"
        How a selection is drawn: this, "exponential" or "noisy-max".
    monotone : bool, default True
        Select with the exponent epsilon instead of epsilon / 2, where a record moves all scores in one direction.
    marginals : bool, default False
        With "noisy-counts": also count the cells without their classes, as SuLQ-ID3 did.
    numeric : str, default "bins"
        Where numbers are split: "bins" at all their public bins; "joint" at a threshold that is chosen together with
        the attribute, or that public coins draw; "separate" at a threshold that is bought for each numeric attribute
        before the attribute is chosen.
    stop : str, default "never"
        When a node becomes a leaf: "never" before the last level; "noise" when the average class count in its
        children would be smaller than the noise, by a size that is bought; "estimate" the same by a size that is
        estimated from the number of all rows; "pure", for public rows, when all its rows have one class.
    min_rows : int, default 0
        For public rows: a node with fewer rows is a leaf.
    leaf : str, default "counts"
        What a leaf publishes: "counts" of its classes, or its "label" alone.
    remainder : bool, default True
        Let a leaf spend everything that its path has not spent.
    consistency : str, default "none"
        How released sizes and counts are reconciled: "none", "least-squares" or "rescale".
    prune : str, default "none"
        "none", "error" (C4.5's error-based pruning) or "signal" (Fletcher and Islam).
    certainty : float, default 0.25
        The certainty factor of error-based pruning.
    trees : int, default 1
        How many trees there are.
    rows : str, default "all"
        Which rows a tree sees: "all", for its share of the budget; "disjoint" ones that public coins draw, for the
        whole budget; or a "bootstrap" drawn with replacement, which is not private.
    vote : str, default "majority"
        How trees are combined: "majority", "average" or "weighted".
    prior : Fraction, default 0
        The share of the budget that buys class counts of the whole table, where a depth, a site or `fallback` needs
        them.
    fallback : bool, default False
        What rows get that fit no cell of a tree: True the prior, or the counts of the root; False the last node that
        they fit.
    rounded_noise, printed_ranges : bool, default False
        Repeat an error of a paper, on public rows (`privet.lab.PublicRows`).
    max_leaves : int, default 100000
        The most leaves that a tree may have.
    errata : tuple of str, default ()
        Why the plan is not private: errata by their numbers in docs/explanation/trees-errata.md. Empty if it is.

    Raises
    ------
    QuestionError
        A field has a value that it cannot have, or is a site that cannot be one.
    """

    name: str
    budget: BudgetRule | Site
    depth: int | DepthRule | Site = 3
    split: str | Site = "select"
    criterion: str | Criterion | Site = "max"
    mechanism: str | Site = "permute-and-flip"
    monotone: bool = True
    marginals: bool = False
    numeric: str | Site = "bins"
    stop: str | Site = "never"
    min_rows: int = 0
    leaf: str | Site = "counts"
    remainder: bool = True
    consistency: str | Site = "none"
    prune: str | Site = "none"
    certainty: float = 0.25
    trees: int | Site = 1
    rows: str | Site = "all"
    vote: str | Site = "majority"
    prior: Fraction = Fraction(0)
    fallback: bool = False
    rounded_noise: bool = False
    printed_ranges: bool = False
    max_leaves: int = 100_000
    errata: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for declared in fields(self):
            name, setting = declared.name, getattr(self, declared.name)
            if not is_site(setting):
                object.__setattr__(self, name, checked_setting(name, setting))
            elif name not in (*RUN_SITES, *NODE_SITES):
                raise QuestionError(f"a plan's {name} cannot be decided while a tree grows; give its value.")

    @property
    def is_exact(self) -> bool:
        """Whether it reads public rows without noise."""
        return self.budget is exact

    @property
    def is_private(self) -> bool:
        """Whether it is differentially private."""
        return not (self.errata or self.is_exact)

    @property
    def wants_rows(self) -> bool:
        """Whether it depends on the number of rows."""
        return self.has_depth_rule or self.stop == "estimate" or self.criterion == BY_SIGNAL

    @property
    def has_depth_rule(self) -> bool:
        """Whether the depth is a rule, which follows from the number of rows."""
        return callable(self.depth) and not is_site(self.depth)

    @property
    def sites(self) -> tuple[str, ...]:
        """The names of the fields that are decided while trees grow."""
        return tuple(name for name in (*RUN_SITES, *NODE_SITES) if is_site(getattr(self, name)))

    @property
    def decides_at_nodes(self) -> bool:
        """Whether some field is decided for every node by itself."""
        return any(name in NODE_SITES for name in self.sites)

    @property
    def is_drawn_before(self) -> bool:
        """Whether the structures of trees are drawn before growth. They are not if a site may stop a branch."""
        return self.split == "random" and not is_site(self.stop)

    def for_counting(self) -> Plan:
        """Return the plan for counting rows into a given tree: nothing is left to decide."""
        if not self.sites:
            return self
        plain: dict[str, Any] = {declared.name: declared.default for declared in fields(self)}
        plain = {name: default for name, default in plain.items() if name in self.sites}
        if "budget" in plain:
            plain["budget"] = leaves_only
        return replace(self, **{**plain, "split": "random"})

    def tree_shares(self, epsilon: Fraction) -> list[Fraction]:
        """Return the budget of each tree: equal shares of `epsilon`, which add up; on disjoint rows the whole of it."""
        trees: int = settled(self.trees)
        if self.rows == "disjoint":
            return [epsilon] * trees
        share = as_epsilon(epsilon / trees)
        return [share] * (trees - 1) + [epsilon - share * (trees - 1)]

    def depth_for(self, domain: Domain, rows: float, epsilon: Fraction) -> int:
        """Return how deep a tree may grow, by the number of rows and the epsilon of the tree if the depth is a rule.

        There is at most one level for each attribute, unless thresholds let paths use attributes again.
        """
        depth = settled(self.depth)
        wanted = depth if isinstance(depth, int) else depth(self, domain, rows, epsilon)
        reusable = self.numeric != "bins" and any(isinstance(domain[name], Numeric) for name in domain.attributes)
        return max(0, min(wanted, 100) if reusable else min(wanted, len(domain.attributes)))

    def schedule(self, domain: Domain, epsilon: Fraction, depth: int) -> Schedule:
        """Return how a tree of this depth shares its epsilon along a path.

        Raises
        ------
        QuestionError
            The budget rule leaves nothing for a question that the plan asks.
        """
        schedule: Schedule = settled(self.budget)(self, epsilon, depth, self._bought_points(domain))
        if self.split != "random" and not self.is_exact:
            for level in schedule.levels:
                if self.stop == "noise":
                    self.check_shares(level, "size")
                if not is_site(self.split):  # a site is checked when it decides to select
                    self.check_selection(level, domain)
        return schedule

    def _bought_points(self, domain: Domain) -> int:
        """Return for how many attributes a node buys a threshold before it chooses."""
        numeric = sum(isinstance(domain[name], Numeric) for name in domain.attributes)
        return numeric if self.numeric == "separate" else 0

    def check_selection(self, level: Level, domain: Domain) -> None:
        """Raise `QuestionError` if a level has no budget for the choice of a split."""
        self.check_shares(level, "split", *["points"] * (self._bought_points(domain) > 0))

    def check_shares(self, level: Level, *names: str) -> None:
        """Raise `QuestionError` if one of these fields of a level is 0."""
        for name in names:
            if not getattr(level, name):
                raise QuestionError(f"the budget '{name_of(self.budget)}' leaves nothing for the {name} of a node.")

    def usable_criterion(self, domain: Domain, choice: Any) -> Criterion:
        """Return the criterion that the plan, or a site of it, chose. On public rows its scores are not rounded.

        Raises
        ------
        QuestionError
            There is no such criterion, or the domain lacks what it needs.
        NotPrivate
            The criterion has no bounded sensitivity and the rows are private.
        """
        if choice == GainRatio.name or isinstance(choice, GainRatio):
            if not self.is_exact:
                raise NotPrivate("the gain ratio of a split has no bounded sensitivity; choose max, gini or infogain.")
            return GainRatio()
        if isinstance(choice, Unrounded):
            return choice
        if self.is_exact and choice in ("gini", "infogain"):
            return Unrounded(choice)
        return criterion(choice, domain)

    def children(self, domain: Domain, name: str) -> int:
        """Return how many children a split by the attribute `name` has."""
        column = domain[name]
        if self.numeric != "bins" and isinstance(column, Numeric):
            return 2 + column.missing
        return column.size

    def rows_to_split(self, classes: int, remaining: Fraction) -> float:
        """Return from how many estimated rows on a node is split whose path has not spent `remaining`.

        For each class these are twice the standard deviation of the noise in its leaf.
        """
        return classes * 2 * math.sqrt(2) / float(remaining)

    def most_leaves(
        self,
        domain: Domain,
        schedule: Schedule,
        rows: float = math.inf,
        epsilon: Fraction = Fraction(1),
        worth: Callable[[Fraction], Fraction] = lambda share: share,
    ) -> int:
        """Return the most leaves that a tree may have, by public facts.

        Level by level the largest attributes are used up. If sizes are bought and the domain bounds the rows,
        at most rows / (threshold / 2) nodes pass the stop rule by their size; those that pass it by their noise are
        so few that they are not counted. If sizes are estimated, all nodes of a level have the same estimate.

        Parameters
        ----------
        domain : Domain
        schedule : Schedule
        rows : float, default inf
            The number of rows, for a plan that estimates sizes.
        epsilon : Fraction, default 1
            The budget of the tree, likewise.
        worth : callable, optional
            Returns the pure epsilon whose noise is as wide as that of a share.

        Returns
        -------
        int
        """
        sizes = sorted((self.children(domain, name) for name in domain.attributes), reverse=True)
        reused = [self.children(domain, n) for n in domain.attributes if isinstance(domain[n], Numeric)]
        # rows is a round number: twice as many are allowed for
        bound = min((n for n in (domain.max_rows, domain.rows and 2 * domain.rows) if n is not None), default=None)
        open_nodes, closed = 1, 0
        for depth, level in enumerate(schedule.levels):
            largest = sizes[depth] if depth < len(sizes) else 1
            if self.numeric != "bins" and reused:
                largest = max(largest, *reused)
            going_on = open_nodes
            if self.stop == "noise" and bound is not None and level.size > 0:
                threshold = largest * len(domain.classes) * math.sqrt(2) / float(worth(level.size))
                going_on = min(open_nodes, 1 + math.floor(2 * bound / threshold))
            if self.stop == "estimate":
                least = self.rows_to_split(len(domain.classes), worth(epsilon))
                going_on = min(open_nodes, max(1, math.floor(rows / least)))
            closed += open_nodes - going_on
            open_nodes = going_on * largest
        return closed + open_nodes

    def to_json(self) -> dict[str, Json]:
        """Return the plan as JSON, by which a policy identifies an algorithm.

        No name of a Python function or class of the library is in it: rules are called what `BUDGETS` and `DEPTHS`
        call them. Sites, and rules of others, are called by their own names.
        """
        written = {declared.name: _setting_json(getattr(self, declared.name)) for declared in fields(self)}
        return {"plan": written, "version": VERSION}


def checked_setting(name: str, setting: Any) -> Any:
    """Return a value for a field of a plan, if the field may have it. Decisions of sites are checked too.

    Parameters
    ----------
    name : str
        The field.
    setting : object

    Returns
    -------
    object
        The value, whole numbers as int.

    Raises
    ------
    QuestionError
        The field cannot have this value.
    """
    if name in _LISTS and setting not in _LISTS[name]:
        raise QuestionError(f"a plan's {name} is one of {', '.join(_LISTS[name])}, not '{setting}'.")
    if name == "budget" and (is_site(setting) or not callable(setting)):
        raise QuestionError(f"a plan's budget is a function that shares epsilon, not '{setting}'.")
    if name == "trees":
        return _whole(name, setting, 1, 10_000)
    if name == "min_rows":
        return _whole(name, setting, 0, 2**53)
    if name == "max_leaves":
        return _whole(name, setting, 1, 5_000_000)
    if name == "depth" and (is_site(setting) or not callable(setting)):
        return _whole("max_depth", setting, 0, 100)
    if name == "certainty" and not 0 < setting < 1:
        raise QuestionError(f"the certainty factor of pruning lies between 0 and 1, not {setting}.")
    return setting


def checked_at_node(name: str, setting: Any) -> Any:
    """Return what a site decided for a node, if it can be done: as `checked_setting`, and `stop` may be "now"."""
    return setting if name == "stop" and setting == NOW else checked_setting(name, setting)


def _whole(name: str, value: object, least: int, most: int) -> int:
    """Return a whole number within bounds; numpy's integers, which parameter searches pass, are accepted."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise QuestionError(f"{name} must be a whole number from {least} to {most}, not {value!r}.")
    return int(value)


def resolved_criterion(
    choice: Any, domain: Domain, epsilon: Fraction, rows: float | None, prior: Sequence[float] | None
) -> str | Criterion:
    """Return a criterion that depends on nothing any more.

    Parameters
    ----------
    choice : str or Criterion
        "by-signal" becomes "max" or "gini" by the number of rows, "weighted-max" gets weights from class counts;
        any other criterion is returned as it is.
    domain : Domain
    epsilon : Fraction
        The budget of the whole fit.
    rows : float or None
        The number of rows, if it is known.
    prior : sequence of float or None
        Released class counts of the whole table, if there are any.

    Returns
    -------
    str or Criterion

    Raises
    ------
    QuestionError
        What the criterion depends on is not known.
    """
    if choice == WEIGHTED and prior is not None:
        # rows of rare classes weigh more: this tells cells apart that all have the same majority
        shares = np.clip(np.array(prior) / max(sum(prior), 1.0), 0.05, 0.95)
        return WeightedMax.of((1 / shares).tolist())
    if choice == BY_SIGNAL and rows is not None:
        return "max" if signal(domain, rows, epsilon) < SHARPER else "gini"
    if choice in (WEIGHTED, BY_SIGNAL):
        raise QuestionError(
            f"the criterion '{choice}' follows from {'class counts' if choice == WEIGHTED else 'the number of rows'}, "
            "which this plan does not know; give it a prior share that buys them, or choose max or gini."
        )
    resolved: str | Criterion = choice
    return resolved

"""Plan: the choices that make an algorithm.

All trees of the literature are one algorithm with different choices (Jostle 2018,
figure 7): how the budget is shared along a path, when to stop, how to find a split, what
numbers split at, what a leaf says, how to prune, how many trees there are and which rows
each of them sees. A `Plan` names them; `grow` follows them; `presets` lists them. Where a
field holds a `Site`, the choice is made while the tree grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from privet.errors import QuestionError
from privet.kernel import Criterion, Domain, Json, Numeric, Public, as_epsilon
from privet.learners.sites import Decisions, Site, name_of, settled

DEEPER = (500.0, 1200.0, 8000.0, 50_000.0)  # rows times epsilon from which two to five levels are worth their price
SHARPER = 20_000.0  # rows times epsilon from which gini, noisier than max, sees more
BY_SIGNAL = "by-signal"  # a criterion that follows from rows times epsilon
WEIGHTED = "weighted-max"  # a criterion whose weights come from class counts that the plan buys
EXACT = Fraction(0)  # the share of a question that public rows answer exactly


@dataclass(frozen=True)
class Level:
    """What each node of one level pays: for its size, for thresholds and for the choice of its split."""

    size: Fraction = Fraction(0)
    points: Fraction = Fraction(0)
    split: Fraction = Fraction(0)


@dataclass(frozen=True)
class Schedule:
    """The shares of one tree: a level for each depth that may split, then the leaf.

    `leaf` is None where a leaf takes everything that its path has left (the path
    ledger is exact); otherwise it pays `leaf`, and `leaf_size` for its
    size at the last level.
    """

    levels: tuple[Level, ...]
    leaf: Fraction | None = None
    leaf_size: Fraction = Fraction(0)


Budget = Callable[["Plan", Fraction, int, int], Schedule]  # plan, epsilon of a tree, depth, numeric attributes


def even(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """e = B / (2 (d + 1)) for the size and the choice of each node, and twice for a leaf (Friedman and Schuster)."""
    e = as_epsilon(epsilon / (2 * (depth + 1)))
    return _closed(plan, (Level(size=e, split=e),) * depth, leaf=e, leaf_size=e)


def with_points(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """e = B / ((2 + m) d + 2): as `even`, and e more for a threshold of each of m numeric attributes."""
    e = as_epsilon(epsilon / ((2 + numeric) * depth + 2))
    return _closed(plan, (Level(size=e, points=numeric * e, split=e),) * depth, leaf=e, leaf_size=e)


def fixed(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """B / (d + 1) for the choice of each level and for the leaf; sizes are not asked (Mohammed et al.)."""
    e = as_epsilon(epsilon / (depth + 1))
    return _closed(plan, (Level(split=e),) * depth, leaf=e)


def harmonic(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """B / (s k) for a choice with k levels to go, B / s for the leaf, s = 1 + 1/2 + ... + 1/d + 1 (Liu et al.)."""
    return _harmonic(plan, epsilon, depth, power=1)


def harmonic_squared(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """As `harmonic` with k squared: the paper divides each level once more, among attributes it need not pay for."""
    return _harmonic(plan, epsilon, depth, power=2)


def _harmonic(plan: Plan, epsilon: Fraction, depth: int, power: int) -> Schedule:
    total = 1 + sum((Fraction(1, k) for k in range(1, depth + 1)), Fraction(0))
    levels = tuple(Level(split=as_epsilon(epsilon / (total * k**power))) for k in range(depth, 0, -1))
    return _closed(plan, levels, leaf=as_epsilon(epsilon / total))


def halves(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """B / (2 d) for the choice of each level, and half of B for the leaf; sizes are not asked (ID3+)."""
    return _closed(plan, (Level(split=as_epsilon(epsilon / (2 * max(depth, 1)))),) * depth, leaf=epsilon / 2)


def leaves_only(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """Everything for the leaves: the structure is drawn without looking (Jagannathan et al.)."""
    return _closed(plan, (Level(),) * depth, leaf=epsilon)


def exact(plan: Plan, epsilon: Fraction, depth: int, numeric: int) -> Schedule:
    """Nothing is charged: the rows are public."""
    return Schedule((Level(),) * depth, leaf=EXACT)


def _closed(plan: Plan, levels: tuple[Level, ...], leaf: Fraction, leaf_size: Fraction = Fraction(0)) -> Schedule:
    # a forced leaf has no use for its size: its class counts tell it (erratum E-4)
    return Schedule(levels) if plan.remainder else Schedule(levels, leaf, leaf_size)


def half_or_log(plan: Plan, domain: Domain, rows: float, epsilon: Fraction) -> int:
    """min(k / 2, log_b n - 1) for k attributes with b cells on average (Jagannathan et al.)."""
    return min(max(1, len(domain.attributes) // 2), math.floor(_log(domain, rows)) - 1)


def above_noise(plan: Plan, domain: Domain, rows: float, epsilon: Fraction) -> int:
    """As deep as an average leaf has more rows of each class than noise (Fletcher and Islam 2015)."""
    noise = math.sqrt(2) * len(domain.classes) * domain.rows_per_person / float(epsilon)
    return math.floor(_log(domain, rows / noise))


def by_signal(plan: Plan, domain: Domain, rows: float, epsilon: Fraction) -> int:
    """One to five levels, by rows times epsilon: deeper trees need more of both (docs/trees-id3.md)."""
    return 1 + sum(signal(domain, rows, epsilon) >= least for least in DEEPER)


def signal(domain: Domain, rows: float, epsilon: Fraction) -> float:
    """Rows times the epsilon of a record: what a person pays is divided among all their rows."""
    return rows * float(epsilon) / domain.rows_per_person


def _log(domain: Domain, rows: float) -> float:
    """How often `rows` can be divided by the average number of cells."""
    average = sum(domain[name].size for name in domain.attributes) / len(domain.attributes)
    return math.log(max(rows, 1)) / math.log(max(average, 1.0001))


VERSION = 1  # of the JSON form of a plan
# The names of rules in that form, which never change.
BUDGETS: dict[str, Budget] = {
    "even": even,
    "with-points": with_points,
    "fixed": fixed,
    "harmonic": harmonic,
    "harmonic-squared": harmonic_squared,
    "halves": halves,
    "leaves-only": leaves_only,
    "exact": exact,
}
DEPTHS: dict[str, DepthRule] = {"half-or-log": half_or_log, "above-noise": above_noise, "by-signal": by_signal}


def _written(setting: Any) -> Json:
    """A setting of a plan as JSON."""
    if setting is None or isinstance(setting, str | bool | int):
        return setting
    if isinstance(setting, float | Fraction):
        return str(setting)
    if isinstance(setting, tuple):
        return [_written(each) for each in setting]
    if isinstance(setting, Criterion):
        return setting.to_json()
    rules: dict[str, Any] = {**BUDGETS, **DEPTHS}
    return next((name for name, rule in rules.items() if rule is setting), name_of(setting))


DepthRule = Callable[["Plan", Domain, float, Fraction], int]  # plan, domain, rows, epsilon of a tree

SPLITS = ("select", "noisy-counts", "random")
NUMERIC = ("bins", "joint", "separate")
STOPS = ("never", "noise", "estimate", "pure")
LEAVES = ("counts", "label")
CONSISTENCY = ("none", "least-squares", "rescale")
PRUNING = ("none", "error", "signal")
ROWS = ("all", "disjoint", "bootstrap")
MECHANISMS = ("permute-and-flip", "exponential", "noisy-max")
NOW = "now"  # what a site may say of `stop` besides: this node is a leaf

# fields that may be sites: decided once before growth, in this order, or for every node that may be divided
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
    """One algorithm. The fields are explained where they stand; `presets` has a Plan for every published one."""

    name: str
    budget: Budget | Site
    # how deep: a number, or a public rule of the domain and the number of rows
    depth: int | DepthRule | Site = 3
    # how a node finds its split: a private selection, the best by noisy counts, or public coins
    split: str | Site = "select"
    criterion: str | Criterion | Site = "max"
    mechanism: str | Site = "permute-and-flip"
    monotone: bool = True
    # noisy-counts: also count the cells without their classes, as SuLQ-ID3 did
    marginals: bool = False
    # what numbers split at: their public bins; a threshold chosen together with the attribute (coins: drawn in the
    # bounds the node has left); a threshold bought for each numeric attribute before the attribute is chosen
    numeric: str | Site = "bins"
    # never; when an average class count in the children would drown in noise, by a size that is bought, or by one
    # estimated from the number of all rows; when public rows are of one class
    stop: str | Site = "never"
    min_rows: int = 0  # of public rows: a node with fewer is a leaf
    leaf: str | Site = "counts"
    remainder: bool = True
    consistency: str | Site = "none"
    prune: str | Site = "none"
    certainty: float = 0.25
    trees: int | Site = 1
    # every tree all rows and its share of the budget; disjoint rows by coins and the whole budget each; or as many
    # rows drawn with replacement, which is not private
    rows: str | Site = "all"
    vote: str | Site = "majority"
    # the share of the budget that buys class counts of the whole table: for the depth or a site, or as a fallback
    prior: Fraction = Fraction(0)
    # rows that fit no cell of a tree: True takes the prior or the root, False the last node they fit
    fallback: bool = False
    rounded_noise: bool = False
    printed_ranges: bool = False
    max_leaves: int = 100_000
    # why it is not private: errata by their numbers in docs/trees-errata.md, none if it is
    errata: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for name in (each.name for each in fields(self)):
            setting = getattr(self, name)
            if not isinstance(setting, Site):
                object.__setattr__(self, name, checked(name, setting))
            elif name not in (*RUN_SITES, *NODE_SITES):
                raise QuestionError(f"a plan's {name} cannot be decided while a tree grows; give its value.")

    @property
    def is_exact(self) -> bool:
        """Does it read public rows without noise?"""
        return self.budget is exact

    @property
    def is_private(self) -> bool:
        return not (self.errata or self.is_exact)

    @property
    def wants_rows(self) -> bool:
        """Does the plan depend on the number of rows?"""
        return self.has_depth_rule or self.stop == "estimate" or self.criterion == BY_SIGNAL

    @property
    def has_depth_rule(self) -> bool:
        """Does the depth follow from the number of rows?"""
        return callable(self.depth) and not isinstance(self.depth, Site)

    @property
    def sites(self) -> tuple[str, ...]:
        """The fields that are decided while trees grow."""
        return tuple(name for name in (*RUN_SITES, *NODE_SITES) if isinstance(getattr(self, name), Site))

    @property
    def decides_at_nodes(self) -> bool:
        """Is something decided for every node by itself?"""
        return any(name in NODE_SITES for name in self.sites)

    @property
    def is_drawn_before(self) -> bool:
        """Are structures drawn before growth? Not where a site may stop a branch of one."""
        return self.split == "random" and not isinstance(self.stop, Site)

    def decided(self, decisions: Decisions) -> Plan:
        """The plan once the sites of the run have spoken, each after those before it; sites of nodes stay."""
        plan = self
        for name in RUN_SITES:
            setting = getattr(plan, name)
            if isinstance(setting, Site):
                setting = decisions.ask(name, setting, partial(checked, name))
                plan = replace(plan, **{name: setting})
            decisions.view[f"plan.{name}"] = Public(setting if isinstance(setting, int | str) else name_of(setting))
        return plan

    def for_counting(self) -> Plan:
        """The plan where the structure of a tree is given and rows are counted into its leaves: nothing to decide."""
        if not self.sites:
            return self
        plain: dict[str, Any] = {each.name: each.default for each in fields(self) if each.name in self.sites}
        if "budget" in plain:
            plain["budget"] = leaves_only
        return replace(self, **{**plain, "split": "random"})

    def tree_shares(self, epsilon: Fraction) -> list[Fraction]:
        """The budget of each tree: equal shares of what all rows can lose, or all of it on disjoint rows."""
        trees: int = settled(self.trees)
        if self.rows == "disjoint":
            return [epsilon] * trees
        each = as_epsilon(epsilon / trees)
        return [each] * (trees - 1) + [epsilon - each * (trees - 1)]

    def depth_for(self, domain: Domain, rows: float, epsilon: Fraction) -> int:
        """How deep a tree with this budget may grow."""
        depth = settled(self.depth)
        wanted = depth if isinstance(depth, int) else depth(self, domain, rows, epsilon)
        reusable = self.numeric != "bins" and any(isinstance(domain[name], Numeric) for name in domain.attributes)
        return max(0, min(wanted, 100) if reusable else min(wanted, len(domain.attributes)))

    def schedule(self, domain: Domain, epsilon: Fraction, depth: int) -> Schedule:
        numeric = sum(isinstance(domain[name], Numeric) for name in domain.attributes)
        points = numeric if self.numeric == "separate" else 0
        found: Schedule = settled(self.budget)(self, epsilon, depth, points)
        if self.split != "random" and not self.is_exact:
            selects = not isinstance(self.split, Site)  # a site that says so is held to it then
            asked = {"size": self.stop == "noise", "split": selects, "points": selects and points > 0}
            for level in found.levels:
                self.check_shares(level, *(name for name in asked if asked[name]))
        return found

    def check_shares(self, level: Level, *names: str) -> None:
        """Refuse a question for which the budget has nothing."""
        for name in names:
            if not getattr(level, name):
                raise QuestionError(f"the budget '{name_of(self.budget)}' leaves nothing for the {name} of a node.")

    def children(self, domain: Domain, name: str) -> int:
        """How many children a split by this attribute has."""
        column = domain[name]
        if self.numeric != "bins" and isinstance(column, Numeric):
            return 2 + column.missing
        return column.size

    def enough(self, classes: int, remaining: Fraction) -> float:
        """The estimated rows from which a node is divided: as many of each class as the noise of its leaf, twice."""
        return classes * 2 * math.sqrt(2) / float(remaining)

    def most_leaves(self, domain: Domain, schedule: Schedule, rows: float = math.inf, epsilon: float = 1.0) -> int:
        """How many leaves one tree may have, by what is public.

        Level by level the largest attributes are used up. Where sizes are asked and the
        domain bounds the rows, at most rows / (threshold / 2) nodes pass the stop rule
        by their size, and by their noise so few others that they are not counted. Where
        they are estimated, a node stands for rows / estimate others of its level.
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
                threshold = largest * len(domain.classes) * math.sqrt(2) / float(level.size)
                going_on = min(open_nodes, 1 + math.floor(2 * bound / threshold))
            if self.stop == "estimate":
                going_on = min(
                    open_nodes, max(1, math.floor(rows / self.enough(len(domain.classes), Fraction(epsilon))))
                )
            closed += open_nodes - going_on
            open_nodes = going_on * largest
        return closed + open_nodes

    def to_json(self) -> dict[str, Json]:
        """Return the choices as JSON: what a policy knows an algorithm by. No name of a function or class is in it.

        Rules of the library are called what `BUDGETS` and `DEPTHS` call them, and sites and rules of others by their
        own names.
        """
        written = {each.name: _written(getattr(self, each.name)) for each in fields(self)}
        return {"plan": written, "version": VERSION}


def checked(name: str, setting: Any) -> Any:
    """A setting of a field, if it can be one; a decision of its site is held to the same rules."""
    if name in _LISTS and setting not in _LISTS[name]:
        raise QuestionError(f"a plan's {name} is one of {', '.join(_LISTS[name])}, not '{setting}'.")
    if name == "budget" and (isinstance(setting, Site) or not callable(setting)):
        raise QuestionError(f"a plan's budget is a function that shares epsilon, not '{setting}'.")
    if name == "trees":
        return _whole(name, setting, 1, 10_000)
    if name == "min_rows":
        return _whole(name, setting, 0, 2**53)
    if name == "max_leaves":
        return _whole(name, setting, 1, 5_000_000)
    if name == "depth" and (isinstance(setting, Site) or not callable(setting)):
        return _whole("max_depth", setting, 0, 100)
    if name == "certainty" and not 0 < setting < 1:
        raise QuestionError(f"the certainty factor of pruning lies between 0 and 1, not {setting}.")
    return setting


def checked_at_node(name: str, setting: Any) -> Any:
    """What a site says of a node, if it can be done: what the field may hold or, of `stop`, that it is a leaf now."""
    return setting if name == "stop" and setting == NOW else checked(name, setting)


def _whole(name: str, value: object, least: int, most: int) -> int:
    """A whole number, also one of numpy's as a search over parameters hands them out."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise QuestionError(f"{name} must be a whole number from {least} to {most}, not {value!r}.")
    return int(value)

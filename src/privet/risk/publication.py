"""A published tree laid over the people of a table: who is in which leaf, and what that leaf says of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln

from privet.errors import DataError, ModelError
from privet.kernel import number_of
from privet.risk.people import Attribute, People
from privet.risk.tree import (
    SCIKIT,
    WEKA,
    AtMost,
    Condition,
    Floats,
    InCell,
    Integers,
    Mask,
    Node,
    PublishedTree,
    Stopping,
    Values,
    cells_of,
)

LABELS, RATES, COUNTS = "labels", "rates", "counts"
LEVELS = (LABELS, RATES, COUNTS)  # each says all that the one before says
ROUNDED = 0.0051  # rows are printed with two digits
MOST_PARTS = 12  # rows with missing values in one leaf whose ways to be wrong are all listed


@dataclass(frozen=True, eq=False)
class Publication:
    """All that an adversary holds: the tree, everyone's quasi-identifiers, and which numbers were published with it.

    `sampled`: the rows that the tree was grown on are an unknown part of the table.
    """

    tree: PublishedTree
    people: People
    level: str
    marginal: Floats | None = None  # the share of each value among all people, where published
    sampled: bool = False
    drawn_share: float | None = (
        None  # of the people whose rows it was grown on, where leaves do not say how many they have
    )

    @classmethod
    def of(
        cls,
        tree: PublishedTree,
        people: People,
        level: str = "auto",
        marginal: Floats | None = None,
        sampled: bool = False,
        share: float | None = None,
    ) -> Publication:
        """The tree over the people, if they fit together."""
        missing = [name for name in tree.columns if name not in people.names]
        if missing:
            raise DataError(
                f"the tree looks at '{missing[0]}', which is not among the columns of the table "
                f"({', '.join(people.names[:10])}{', …' * (len(people.names) > 10)})."
            )
        if level != "auto" and level not in LEVELS:
            raise DataError(f"published is auto, {', '.join(LEVELS)}, not '{level}'.")
        if tree.source == SCIKIT:
            if level == LABELS:
                tree = replace(tree, nodes=tuple(replace(node, weights=None) for node in tree.nodes))
            tree = cls(tree, people, LABELS, sampled=sampled)._without_weights()
            tree = cls(tree, people, LABELS, sampled=sampled)._without_refuted_stopping()
        most = most_published(tree)
        if level != "auto" and LEVELS.index(level) > LEVELS.index(most):
            raise ModelError(f"the tree publishes {most}, not {level}; its leaves do not say more.")
        if level == "auto" or (level == RATES and tree.epsilon is not None):  # noisy rates are not told from counts
            level = most
        found = cls(tree, people, level, marginal, sampled, share)
        found._check()
        return found

    def _without_weights(self) -> PublishedTree:
        """The tree with the counts behind its weights; whole numbers of a text that are not its people may be some."""
        tree = self.tree
        if any(node.weights is not None for node in tree.nodes):
            return unweighted(tree, self.sizes)
        counted = [leaf for leaf in tree.leaves if tree.nodes[leaf].counts is not None]
        if self.sampled or all(sum(tree.nodes[leaf].counts or ()) == self.sizes[leaf] for leaf in counted):
            return tree
        nodes = tuple(replace(node, counts=None, weights=node.counts) for node in tree.nodes)
        found = unweighted(replace(tree, nodes=nodes), self.sizes)
        if any(node.weights is not None for node in found.nodes):  # weights of `balanced` add up to the people
            total = sum(sum(tree.nodes[leaf].counts or ()) for leaf in counted)
            return found if total == self.people.total else tree
        return found

    def _without_refuted_stopping(self) -> PublishedTree:
        """The tree; if a leaf shows several values that a split would have parted, it was not divided to the end."""
        tree, stopping = self.tree, self.tree.stopping
        if stopping is None or tree.model is not None:
            return tree
        reached = replace(stopping, depth=max(stopping.depth, 1)) if stopping.depth is not None else stopping
        stopped = self._stopped(reached)
        mixed = [leaf for leaf in stopped if _is_mixed(tree.nodes[leaf])]
        unsaid = "the text does not say why some leaves were not divided"
        if not mixed:  # one leaf alone has all values, and a depth is 1 at least
            return replace(tree, pruned=unsaid) if stopped and not tree.depth and stopping.is_assumed else tree
        if not stopping.is_assumed:
            raise ModelError(
                f"the leaf '{tree.where(min(mixed))}' has several values, so the tree was not grown until its leaves "
                "were pure; leave stopping out."
            )
        return replace(tree, stopping=None, pruned=unsaid)

    @property
    def noisy(self) -> bool:
        """Are the counts those of a private model?"""
        return self.tree.epsilon is not None

    @property
    def classes(self) -> int:
        return len(self.tree.values)

    # -- who is where -----------------------------------------------------------------------

    @cached_property
    def branches(self) -> tuple[Integers, ...]:
        """For each node that splits, the position of the child for each value of its column, -1 where there is none."""
        known: dict[tuple[Condition, ...], Integers] = {}
        found = []
        for children in self.tree.children:
            conditions = tuple(c for child in children if (c := self.tree.nodes[child].condition) is not None)
            if conditions not in known:
                known[conditions] = self._branch(conditions)
            found.append(known[conditions])
        return tuple(found)

    def _branch(self, conditions: tuple[Condition, ...]) -> Integers:
        if not conditions:
            return np.empty(0, dtype=np.int64)
        if len({condition.column for condition in conditions}) > 1:
            raise ModelError("a node of the tree tests two columns at once; such trees cannot be audited.")
        values = self.people.attributes[self.position(conditions[0].column)].values
        first = conditions[0]
        if isinstance(first, InCell):  # one look-up for all cells
            cells = cells_of(first.declared, values)
            places = {c.code: place for place, c in enumerate(conditions) if isinstance(c, InCell)}
            return np.array([places.get(cell, -1) for cell in cells.tolist()], dtype=np.int64)
        branch = np.full(len(values), -1, dtype=np.int64)
        for place, condition in enumerate(conditions):
            branch[condition.holds(values)] = place
        return branch

    def position(self, column: str) -> int:
        return self.people.names.index(column)

    def attribute(self, column: str) -> Attribute:
        return self.people.attributes[self.position(column)]

    def apart(self, attribute: int, rising: Integers) -> Mask:
        """Which neighbours of rising codes a threshold can divide: numbers that differ and, for scikit-learn, do so by
        more than 1e-7 when rounded to 32 bits, which are all it sees."""
        numbers = self.people.attributes[attribute].numbers
        assert numbers is not None
        return self._rises(numbers[rising])

    def _rises(self, numbers: Floats) -> Mask:
        if self.tree.source != SCIKIT:
            return np.asarray(np.diff(numbers) > 0)
        with np.errstate(over="ignore"):
            single = numbers.astype(np.float32)
        return np.asarray(single[1:] > single[:-1] + np.float32(1e-7))

    @cached_property
    def profiles(self) -> tuple[Integers, ...]:
        """The profiles at each node."""
        found: list[Integers] = [np.empty(0, dtype=np.int64)] * len(self.tree.nodes)
        found[0] = np.flatnonzero(self._fits)
        for number, children in enumerate(self.tree.children):
            if children:
                codes = self.people.codes[found[number], self.position(self.tree.split_column(number))]
                branch = self.branches[number][codes]
                for place, child in enumerate(children):
                    found[child] = found[number][branch == place]
        return tuple(found)

    @cached_property
    def _fits(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which profiles a privet model could have seen: a row that fits no cell of a declared column is left out."""
        fits = np.ones(len(self.people), dtype=np.bool_)
        for at, cells in enumerate(self.cells):
            fits &= cells[self.people.codes[:, at]] >= 0
        return fits

    @cached_property
    def cells(self) -> tuple[Integers, ...]:
        """For each attribute the cell of each of its values: that of the model's domain, or each value its own."""
        declared = {column.name: column for column in self.tree.declared}
        return tuple(
            cells_of(declared[each.name], each.values) if each.name in declared else np.arange(len(each.values))
            for each in self.people.attributes
        )

    @cached_property
    def leaf(self) -> Integers:
        """The leaf of each profile, -1 where the tree has none for it."""
        found = np.full(len(self.people), -1, dtype=np.int64)
        for leaf in self.tree.leaves:
            found[self.profiles[leaf]] = leaf
        return found

    @cached_property
    def unplaced(self) -> int:
        """How many people miss a value that the tree asks for, of whom it does not say where they went.

        A private model leaves such rows out, or has a branch for them; J48 counts them in part in every leaf.
        """
        if self.noisy or self.tree.declared:
            return 0
        partly = {profile for some in self.partial.values() for profile, _ in some}
        lost = [int(each) for each in np.flatnonzero(self.leaf < 0) if int(each) not in partly]
        asked = [self.position(name) for name in self.tree.columns]
        missing = {at: [value is None for value in self.people.attributes[at].values] for at in asked}
        return sum(
            int(self.people.sizes[each])
            for each in lost
            if any(missing[at][self.people.codes[each, at]] for at in asked)
        )

    @cached_property
    def sizes(self) -> Integers:
        """How many people are at each node."""
        return np.array([int(self.people.sizes[some].sum()) for some in self.profiles], dtype=np.int64)

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """The leaves that somebody is in."""
        return tuple(leaf for leaf in self.tree.leaves if self.sizes[leaf])

    # -- what leaves say --------------------------------------------------------------------

    def label(self, leaf: int) -> int:
        label = self.tree.nodes[leaf].label
        assert label is not None
        return label

    def share(self, leaf: int) -> float:
        """The published share of a leaf's label among its rows."""
        node = self.tree.nodes[leaf]
        if node.counts is not None:
            total = sum(node.counts)
            return float(node.counts[self.label(leaf)] / total) if total else 0.0  # of no rows nothing is pure
        assert node.size is not None and node.wrong is not None
        return 1 - node.wrong / node.size

    @cached_property
    def undivided(self) -> frozenset[int]:
        """The leaves that would have been divided, had their people different values: those that can be divided.

        Counts and weights say themselves which values a leaf has.
        """
        if self.level != LABELS:
            return frozenset()
        return frozenset(leaf for leaf in self._stopped(self.tree.stopping) if self.tree.nodes[leaf].weights is None)

    @cached_property
    def perhaps_undivided(self) -> frozenset[int]:
        """Those that are so only if no depth was set, which is not known."""
        stopping = self.tree.stopping
        if stopping is None or not stopping.is_assumed or self.level != LABELS:
            return frozenset()
        return self._stopped(replace(stopping, depth=None)) - self.undivided

    def _stopped(self, stopping: Stopping | None) -> frozenset[int]:
        if stopping is None or self.noisy or self.sampled:
            return frozenset()
        return frozenset(
            leaf
            for leaf in self.leaves
            if stopping.divides(len(self.tree.ancestors(leaf)), int(self.sizes[leaf]))
            and self._divisible(leaf, stopping)
        )

    def _divisible(self, leaf: int, stopping: Stopping) -> bool:
        """Could a threshold divide the people of a leaf, with enough on either side?"""
        names = self.people.names if self.tree.features is None else self.tree.features
        here = self.profiles[leaf]
        for name in names:
            if name not in self.people.names:
                continue
            at = self.position(name)
            codes, which = np.unique(self.people.codes[here, at], return_inverse=True)
            sizes = np.bincount(which, weights=self.people.sizes[here]).astype(np.int64)
            if len(codes) > 1 and (self._fewer(at, codes, sizes, stopping.is_random) >= stopping.least).any():
                return True
        return False

    def _fewer(self, attribute: int, codes: Integers, sizes: Integers, is_random: bool) -> Integers:
        """How many people are on the smaller side of each threshold that scikit-learn can divide these values at."""
        known = self.people.attributes[attribute]
        if known.numbers is not None:
            numbers = known.numbers[codes]
        elif any(value is not None and number_of(value) is None for value in known.values):
            return np.empty(0, dtype=np.int64)  # a column of other texts was never seen by the tree
        else:
            found = (number_of(known.values[code]) for code in codes.tolist())
            numbers = np.array([np.nan if number is None else number for number in found])
        rising = np.argsort(numbers)  # without a number: last
        missing = np.isnan(numbers[rising])
        cuts = np.flatnonzero(self._rises(numbers[rising]))
        below, whole, lacking = np.cumsum(sizes[rising]), sizes.sum(), sizes[rising][missing].sum()
        left = np.concatenate([below[cuts], below[cuts] + lacking])  # whoever has no number may go either way
        if lacking and not is_random:
            left = np.append(left, lacking)
        return np.asarray(np.minimum(left, whole - left))

    def unclear(self, leaf: int) -> bool:
        """Were its rows weighted so that nothing is certain but which values it has?"""
        node = self.tree.nodes[leaf]
        return node.weights is not None and node.counts is None and not self.pure(leaf)

    def support(self, leaf: int) -> tuple[int, ...]:
        """The values that rows of a weighted leaf have: each of them at least one, as weights are positive."""
        weights = self.tree.nodes[leaf].weights
        assert weights is not None
        return tuple(value for value, weight in enumerate(weights) if weight > 0)

    def most_alike(self, leaf: int) -> float:
        """The largest share that a value of a weighted leaf can have: all others have one person each."""
        return (int(self.sizes[leaf]) - len(self.support(leaf)) + 1) / max(int(self.sizes[leaf]), 1)

    # -- rows that count in several leaves --------------------------------------------------

    @cached_property
    def partial(self) -> dict[int, tuple[tuple[int, float], ...]]:
        """By leaf, the profiles that miss a value on their way there, and how much of a row of theirs it counts.

        C4.5 sends such a row down every branch, in proportion to the rows that have a value.
        """
        found: list[list[tuple[int, float]]] = [[] for _ in self.tree.nodes]
        if self.tree.source != WEKA or self.noisy:
            return {}
        for number, children in enumerate(self.tree.children):
            if not children:
                continue
            at = self.position(self.tree.split_column(number))
            values = self.people.attributes[at].values
            known = [float(self.sizes[child]) for child in children]
            undecided = []
            for profile, weight in found[number]:
                code = int(self.people.codes[profile, at])
                branch = int(self.branches[number][code])
                if branch >= 0:
                    found[children[branch]].append((profile, weight))
                    known[branch] += weight * int(self.people.sizes[profile])
                elif values[code] is None:
                    undecided.append((profile, weight))
            missing = [code for code, value in enumerate(values) if value is None]
            some = self.profiles[number]
            lacking = some[np.isin(self.people.codes[some, at], missing)]
            undecided += [(int(profile), 1.0) for profile in lacking]
            for child, share in zip(children, known, strict=True):
                if share > 0:
                    found[child] += [(profile, weight * share / sum(known)) for profile, weight in undecided]
        return {leaf: tuple(found[leaf]) for leaf in self.tree.leaves if found[leaf]}

    def labelled(self, leaf: int) -> Labelled | None:
        """How many people of a leaf may have its label, where rows with missing values count in it; None elsewhere."""
        node, people = self.tree.nodes[leaf], int(self.sizes[leaf])
        if self.level != RATES or node.counts is not None or node.size is None or node.wrong is None:
            return None
        parts = tuple(
            weight for profile, weight in self.partial.get(leaf, ()) for _ in range(int(self.people.sizes[profile]))
        )
        if not parts and float(node.size).is_integer() and float(node.wrong).is_integer():
            return None
        return Labelled.of(people, node.size, node.wrong, parts, self.classes)

    def shares(self, leaf: int) -> Floats:
        """The published shares of all values among the rows of a leaf."""
        counts = np.array(self.tree.nodes[leaf].counts, dtype=np.float64)
        return np.asarray(counts / counts.sum())

    def published_size(self, leaf: int) -> float | None:
        """How many rows a leaf says it has; a label alone does not say."""
        node = self.tree.nodes[leaf]
        if self.level == LABELS and node.weights is None:
            return None
        return node.size if node.counts is None else float(sum(node.counts))

    def pure(self, leaf: int) -> bool:
        """Does the leaf say that all of its rows have its label?"""
        if self.noisy:
            return False
        weights = self.tree.nodes[leaf].weights
        if weights is not None:  # whatever the weights, as long as they are positive
            return sum(weight > 0 for weight in weights) == 1
        return (self.level != LABELS and self.share(leaf) >= 1) or leaf in self.undivided

    def inside(self, leaf: int) -> float:
        """The share of a leaf's people whose rows the tree was grown on; everybody where nothing says how many."""
        size = self.published_size(leaf)
        if self.sampled and size is None and self.drawn_share is not None:
            return self.drawn_share
        if not self.sampled or size is None:
            return 1.0
        return min(max(size / max(int(self.sizes[leaf]), 1), 0.0), 1.0)  # noise can go below 0 and above all

    def grown_on(self, leaf: int) -> int:
        """How many of a leaf's people the tree was grown on, as far as it is known."""
        return round(self.inside(leaf) * int(self.sizes[leaf]))

    def _check(self) -> None:
        """Refuse numbers that contradict the table or one another, by the leaf that has them."""
        if self.noisy:
            return
        for leaf in self.tree.leaves:
            size = self.published_size(leaf)
            if size is None:
                continue
            people = int(self.sizes[leaf])
            if size == 0:
                if people and not self.sampled:
                    raise DataError(
                        f"{self._named(leaf)} says it has no rows, but {people} people of the table are there."
                    )
                continue
            exact = self.tree.source == SCIKIT  # its counts may have been behind weights, whose largest is the label
            whole = float(size).is_integer()  # rows with a missing value count in part, in several leaves
            if whole and size != people and not self.sampled and leaf not in self.partial:
                hint = " If the tree was grown on a part of the table, say so with training." if size < people else ""
                hint = (
                    " If these are weights of rows, give the fitted tree itself." if exact and size > people else hint
                )
                raise DataError(
                    f"{self._named(leaf)} says it has {size:g} rows, but {people} people of the table are there.{hint}"
                )
            parts = sum(weight * int(self.people.sizes[each]) for each, weight in self.partial.get(leaf, ()))
            if whole and size > people + parts + ROUNDED:
                raise DataError(
                    f"{self._named(leaf)} says it has {size:g} rows, but only {people} people of the table are there."
                    + (" If these are weights of rows, give the fitted tree itself." if exact else "")
                )
            loose = 1e-9 if whole else 2 * ROUNDED / size
            if not exact and self.share(leaf) < 1 / self.classes - loose:
                label = self.tree.values[self.label(leaf)]
                raise DataError(
                    f"{self._named(leaf)} says that {label} is most frequent with a share of {self.share(leaf):.3g}, "
                    f"which is less than an even share of {self.classes} values; are all of them listed with values?"
                )

    def _named(self, leaf: int) -> str:
        return f"the leaf '{self.tree.where(leaf)}'"

    @cached_property
    def fractional(self) -> bool:
        """Are there leaves whose sizes are no whole numbers? Then rows were counted in several leaves."""
        leaves = [self.tree.nodes[leaf] for leaf in self.tree.leaves]
        sizes = [leaf.size if leaf.counts is None else float(sum(leaf.counts)) for leaf in leaves]
        return not self.noisy and any(size is not None and not float(size).is_integer() for size in sizes)

    @property
    def unused_choices(self) -> str:
        """Why splits that were not chosen, or not made, exclude data sets and yet are not used; empty where they are,
        where noise chose them, where the owner takes nobody to use them, and where there are none."""
        tree = self.tree
        if self.noisy or self.sampled or tree.is_set_aside:
            return ""
        are_there = bool(tree.children[0]) and (len(tree.features or self.people.names) > 1 or self.cuts_numbers)
        if are_there and tree.criterion is None:
            return tree.silent
        return (
            tree.pruned
            if any(not self.pure(leaf) and self._divisible(leaf, Stopping()) for leaf in self.leaves)
            else ""
        )

    @cached_property
    def cuts_numbers(self) -> bool:
        """Does the tree divide numbers at thresholds?"""
        return any(isinstance(node.condition, AtMost) for node in self.tree.nodes)


def _is_mixed(node: Node) -> bool:
    """Does a leaf show rows of several values?"""
    shown = node.counts if node.counts is not None else node.weights
    return sum(number > 0 for number in shown or ()) > 1


@dataclass(frozen=True)
class Labelled:
    """How many people of a leaf may have its label, and the log of in how many ways.

    Everybody without missing values counts as one row. So of `wrong` rows at most that many people can be, and the rest
    is what rows with missing values add, each all of its part or nothing.

    >>> Labelled.of(49, 50.33, 0.5, (0.5, 0.83), 2).people  # who misses nothing cannot be half wrong
    (49,)
    >>> Labelled.of(8, 10.5, 2.9, (0.9, 0.6, 1.0), 2).people  # two of them and 0.9
    (6, 7)
    """

    people: tuple[int, ...]
    logs: tuple[float, ...]
    own: tuple[float, ...]  # how likely the label is for each row with a missing value

    @classmethod
    def of(cls, people: int, size: float, wrong: float, parts: tuple[float, ...], classes: int) -> Labelled:
        """Of some people and parts of rows; `size` and `wrong` are rounded to two digits."""
        others = math.log(max(classes - 1, 1))
        sums = np.zeros(1)
        if parts and len(parts) <= MOST_PARTS:
            for part in parts:
                sums = np.concatenate([sums, sums + part])
            sizes = np.array([number.bit_count() for number in range(len(sums))])
        else:
            sizes = np.zeros(1, dtype=np.int64)
        found, hits = [], np.zeros(len(parts))
        for many in range(min(people, int(wrong + ROUNDED)) + 1):
            log = float(gammaln(people + 1) - gammaln(many + 1) - gammaln(people - many + 1)) + many * others
            if not parts or len(parts) > MOST_PARTS:
                if many >= wrong - max(size - people, 0.0) - ROUNDED:
                    found.append((people - many, log, np.zeros(len(parts))))
                continue
            fitting = np.flatnonzero(np.abs(sums - (wrong - many)) <= ROUNDED * (1 + len(parts)) + 1e-9)
            if len(fitting):
                weights = np.exp(sizes[fitting] * others)
                bits = (fitting[:, None] >> np.arange(len(parts))) & 1
                found.append((people - many, log + float(np.log(weights.sum())), weights @ (1 - bits) / weights.sum()))
        if not found:  # the table is not quite the one it was grown on; who is wrong in part is somebody
            even = (1 / classes,) * len(parts)
            return cls((people - min(math.ceil(wrong - ROUNDED), people),), (0.0,), even)
        logs = np.array([log for _, log, _ in found])
        likely = np.exp(logs - logs.max())
        hits = np.sum([weight * each for weight, (_, _, each) in zip(likely, found, strict=True)], axis=0)
        order = sorted(range(len(found)), key=lambda at: found[at][0])
        own = tuple((hits / likely.sum()).tolist()) if len(parts) <= MOST_PARTS else (0.0,) * len(parts)
        return cls(tuple(found[at][0] for at in order), tuple(float(logs[at]) for at in order), own)

    @property
    def mean(self) -> float:
        """The mean number of people with the label, all assignments being alike."""
        logs = np.array(self.logs)
        weights = np.exp(logs - logs.max())
        return float(weights @ np.array(self.people) / weights.sum())


def unweighted(tree: PublishedTree, sizes: Integers) -> PublishedTree:
    """The tree with the counts behind its weights, where they follow.

    A leaf with one value has all of its rows of it, whatever the weights. If each value has one weight (`class_weight`
    of scikit-learn), the weights of a leaf are counts times unknown factors, and the counts add up to its rows: several
    leaves determine the factors, and whole numbers confirm them.
    """
    leaves = [leaf for leaf in tree.leaves if tree.nodes[leaf].weights is not None]
    weights = np.array([tree.nodes[leaf].weights for leaf in leaves])
    rows = np.array([sizes[leaf] if tree.nodes[leaf].size is None else tree.nodes[leaf].size for leaf in leaves])
    used = np.flatnonzero(weights.any(axis=0))
    counts = np.zeros_like(weights)
    factors, _, rank, _ = np.linalg.lstsq(weights[:, used], rows, rcond=1e-9)
    counts[:, used] = weights[:, used] * factors
    whole = np.rint(counts)
    follows = (
        len(leaves) == len(tree.leaves)
        and rank == len(used)
        and bool((factors > 0).all())
        and bool((np.abs(counts - whole) < 0.1).all())
        and bool((whole.sum(axis=1) == rows).all())
        and bool(((whole > 0) == (weights > 0)).all())
    )
    nodes = list(tree.nodes)
    for at, leaf in enumerate(leaves):
        if follows:
            nodes[leaf] = replace(nodes[leaf], counts=tuple(whole[at].tolist()), weights=None, size=None)
    return replace(tree, nodes=tuple(nodes))


def most_published(tree: PublishedTree) -> str:
    """The most that every leaf of a tree says."""
    leaves = [tree.nodes[leaf] for leaf in tree.leaves]
    if all(leaf.counts is not None for leaf in leaves):
        return COUNTS
    if all(leaf.counts is not None or (leaf.size is not None and leaf.wrong is not None) for leaf in leaves):
        return RATES
    return LABELS


def marginal_of(shares: Mapping[Any, float], values: tuple[str, ...]) -> Floats:
    """Shares or counts by value as an array in the order of the values, adding up to 1."""
    public, found = Values.of(values), np.zeros(len(values))
    for value, share in shares.items():
        at, number = public.find(value), number_of(share)
        if at is None:
            raise DataError(f"the marginal names '{value}', which is not among the public values.")
        found[at] = np.nan if number is None else number
    if not (found >= 0).all() or not np.isfinite(found).all() or found.sum() <= 0:
        raise DataError("the marginal needs a share of at least 0 for each value, and one above it.")
    return np.asarray(found / found.sum())

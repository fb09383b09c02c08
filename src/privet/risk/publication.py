"""A published tree laid over the people of a table: who is in which leaf, and what that leaf says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privet.errors import DataError, ModelError
from privet.kernel import number_of
from privet.risk.people import Attribute, People
from privet.risk.tree import SCIKIT, AtMost, Condition, Floats, InCell, Integers, Mask, PublishedTree, Values, cells_of

LABELS, RATES, COUNTS = "labels", "rates", "counts"
LEVELS = (LABELS, RATES, COUNTS)  # each says all that the one before says


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

    @classmethod
    def of(
        cls,
        tree: PublishedTree,
        people: People,
        level: str = "auto",
        marginal: Floats | None = None,
        sampled: bool = False,
    ) -> Publication:
        """The tree over the people, if they fit together."""
        missing = [name for name in tree.columns if name not in people.names]
        if missing:
            raise DataError(
                f"the tree looks at '{missing[0]}', which is not among the columns of the table "
                f"({', '.join(people.names[:10])}{', …' * (len(people.names) > 10)})."
            )
        most = most_published(tree)
        if level != "auto" and level not in LEVELS:
            raise DataError(f"published is auto, {', '.join(LEVELS)}, not '{level}'.")
        if level != "auto" and LEVELS.index(level) > LEVELS.index(most):
            raise ModelError(f"the tree publishes {most}, not {level}; its leaves do not say more.")
        if level == "auto" or (level == RATES and tree.epsilon is not None):  # noisy rates are not told from counts
            level = most
        found = cls(tree, people, level, marginal, sampled)
        found._check()
        return found

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
        if self.tree.source != SCIKIT:
            return np.asarray(np.diff(numbers[rising]) > 0)
        with np.errstate(over="ignore"):
            single = numbers[rising].astype(np.float32)
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
            return float(node.counts[self.label(leaf)] / sum(node.counts))
        assert node.size is not None and node.wrong is not None
        return 1 - node.wrong / node.size

    def shares(self, leaf: int) -> Floats:
        """The published shares of all values among the rows of a leaf."""
        counts = np.array(self.tree.nodes[leaf].counts, dtype=np.float64)
        return np.asarray(counts / counts.sum())

    def published_size(self, leaf: int) -> float | None:
        """How many rows a leaf says it has; a label alone does not say."""
        node = self.tree.nodes[leaf]
        if self.level == LABELS:
            return None
        return node.size if node.counts is None else float(sum(node.counts))

    def pure(self, leaf: int) -> bool:
        """Does the leaf say that all of its rows have its label?"""
        return self.level != LABELS and not self.noisy and self.share(leaf) >= 1

    def inside(self, leaf: int) -> float:
        """The share of a leaf's people whose rows the tree was grown on; everybody where nothing says how many."""
        size = self.published_size(leaf)
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
            where, people = f"the leaf '{self.tree.where(leaf)}'", int(self.sizes[leaf])
            if size == 0:
                if people and not self.sampled:
                    raise DataError(f"{where} says it has no rows, but {people} people of the table are there.")
                continue
            whole = float(size).is_integer()  # rows with a missing value count in part, in several leaves
            if whole and size != people and not self.sampled:
                hint = " If the tree was grown on a part of the table, say so with training." if size < people else ""
                raise DataError(f"{where} says it has {size:g} rows, but {people} people of the table are there.{hint}")
            if whole and size > people:
                raise DataError(f"{where} says it has {size:g} rows, but only {people} people of the table are there.")
            if self.share(leaf) < 1 / self.classes - 1e-9:
                label = self.tree.values[self.label(leaf)]
                raise DataError(
                    f"{where} says that {label} is most frequent with a share of {self.share(leaf):.3g}, which is less "
                    f"than an even share of {self.classes} values; are all values listed?"
                )

    @cached_property
    def fractional(self) -> bool:
        """Are there leaves whose sizes are no whole numbers? Then rows were counted in several leaves."""
        leaves = [self.tree.nodes[leaf] for leaf in self.tree.leaves]
        sizes = [leaf.size if leaf.counts is None else float(sum(leaf.counts)) for leaf in leaves]
        return not self.noisy and any(size is not None and not float(size).is_integer() for size in sizes)

    @cached_property
    def cuts_numbers(self) -> bool:
        """Does the tree divide numbers at thresholds?"""
        return any(isinstance(node.condition, AtMost) for node in self.tree.nodes)


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

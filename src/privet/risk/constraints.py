"""What a published tree says, as constraints on P(value | profile): of people, of leaves, of the choice of splits.

A split that was chosen because it leaves the least impurity says so of every split that was not: that is the
internal constraint E(node, chosen) <= E(node, other) of Zhu and Du (2010), inequality 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from privet.kernel import number_of
from privet.risk.people import Attribute
from privet.risk.publication import COUNTS, LABELS, RATES, Publication
from privet.risk.tree import GINI, SCIKIT, Floats, Integers

TINY = 1e-300  # a mass of 0 has no logarithm


@dataclass(frozen=True, order=True)
class Candidate:
    """A way to divide a node that was not taken: by the values of an attribute or, from a cut on, into two."""

    attribute: int
    cut: int = -1  # values up to this code go left; -1 divides into all values


@dataclass(frozen=True, eq=False)
class Choice:
    """One node that splits: the groups of its profiles under the split it has, and the splits it could have had."""

    publication: Publication = field(repr=False)
    node: int
    attributes: tuple[int, ...]  # divided into their values
    numbers: tuple[int, ...]  # cut at a threshold

    @property
    def measure(self) -> str:
        assert self.publication.tree.criterion is not None
        return self.publication.tree.criterion

    @property
    def profiles(self) -> Integers:
        return self.publication.profiles[self.node]

    @cached_property
    def chosen(self) -> Integers:
        """The child of each profile, -1 where it has none."""
        tree, people = self.publication.tree, self.publication.people
        codes = people.codes[self.profiles, self.publication.position(tree.split_column(self.node))]
        return np.asarray(self.publication.branches[self.node][codes])

    def groups(self, candidate: Candidate) -> Integers:
        """The group of each profile under another split; nowhere if the split of the tree leads it nowhere."""
        codes = self.publication.people.codes[self.profiles, candidate.attribute]
        if candidate.cut >= 0:
            found = (codes > candidate.cut).astype(np.int64)
        else:
            found = self.publication.cells[candidate.attribute][codes]
        return np.where(self.chosen >= 0, found, -1)

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every split that was not taken."""
        found = [Candidate(attribute) for attribute in self.attributes]
        for attribute in self.numbers:
            found += [Candidate(attribute, int(code)) for code in self._cuts(attribute)]
        return tuple(found)

    def _cuts(self, attribute: int) -> Integers:
        """Where a number could have been cut at this node: between values that can be told apart, and not where it
        was."""
        codes = self.publication.people.codes[self.profiles, attribute]
        rising = np.unique(codes)
        cuts = rising[:-1][self.publication.apart(attribute, rising)]
        if self.publication.people.names[attribute] != self.publication.tree.split_column(self.node):
            return cuts
        left = codes[self.chosen == self.chosen[np.argmin(codes)]]
        return np.asarray(cuts[cuts != left.max()])

    @property
    def count(self) -> int:
        """How many splits were not taken."""
        return len(self.attributes) + sum(len(self._cuts(attribute)) for attribute in self.numbers)

    @property
    def others(self) -> list[Integers]:
        """The groups under every split that was not taken."""
        return [self.groups(candidate) for candidate in self.candidates]

    @cached_property
    def can_bind(self) -> bool:
        """Can it exclude the most even shares that leaves allow?

        Where all children are leaves, people of one child are alike in the optimum for leaves alone, every other
        split mixes children, and impurity is concave: E(other) >= E(chosen) by Jensen's inequality. Once a choice
        above has made people of a leaf differ, this one can bind as well.
        """
        tree, sizes = self.publication.tree, self.publication.sizes
        return any(tree.children[child] and sizes[child] for child in tree.children[self.node])

    def gaps(self, masses: Floats) -> list[tuple[Candidate, float]]:
        """E(other) - E(chosen) per person of the node, for masses [profile of the table, value]; of all cuts of a
        number the smallest."""
        mine = masses[self.profiles]
        fine = self.chosen >= 0
        total = mine[fine].sum()
        least = impurity(gathered(mine, self.chosen), self.measure).sum()
        found = []
        for attribute in self.attributes:
            candidate = Candidate(attribute)
            other = impurity(gathered(mine, self.groups(candidate)), self.measure).sum()
            found.append((candidate, float((other - least) / total)))
        for attribute in self.numbers:
            codes = self.publication.people.codes[self.profiles, attribute][fine]
            order = np.argsort(codes, kind="stable")
            rising, along = codes[order], np.cumsum(mine[fine][order], axis=0)
            ends = np.flatnonzero(self.publication.apart(attribute, rising))
            if not len(ends):
                continue
            left = along[ends]
            both = impurity(left, self.measure) + impurity(np.maximum(along[-1] - left, 0), self.measure)
            best = int(np.argmin(both))
            found.append((Candidate(attribute, int(rising[ends[best]])), float((both[best] - least) / total)))
        return found


def choices_of(publication: Publication) -> tuple[Choice, ...]:
    """The nodes whose choice of a split can be held against the others; none where `silence` has a reason."""
    if silence(publication):
        return ()
    tree, people = publication.tree, publication.people
    known = [name for name in people.names if tree.features is None or name in tree.features]
    numeric = {name for name in known if publication.cuts_numbers and publication.attribute(name).numbers is not None}
    known = [name for name in known if name in numeric or _is_divided(publication, publication.attribute(name))]
    found = []
    for number, children in enumerate(tree.children):
        if not children or not publication.sizes[number]:
            continue
        used = {tree.split_column(above) for above in (number, *tree.ancestors(number))}
        attributes = [publication.position(name) for name in known if name not in numeric and name not in used]
        numbers = [publication.position(name) for name in known if name in numeric]
        if attributes or numbers:
            found.append(Choice(publication, number, tuple(attributes), tuple(numbers)))
    return tuple(found)


def _is_divided(publication: Publication, attribute: Attribute) -> bool:
    """Would a split by it have had a branch for each value? scikit-learn has no such splits, and where numbers are cut
    those with missing ones are not divided either; how their cuts treat who has none is not compared."""
    if publication.tree.source == SCIKIT:
        return False
    said = [value for value in attribute.values if value is not None]
    return not publication.cuts_numbers or any(number_of(value) is None for value in said)


def silence(publication: Publication) -> str:
    """Why the choice of splits cannot be used; empty if it can."""
    if publication.tree.criterion is None:
        return publication.tree.silent
    if publication.sampled:
        return "which rows the tree was grown on is not known, so impurities cannot be compared"
    if publication.fractional:
        return "rows with missing values were counted in several leaves"
    return ""


@dataclass(frozen=True)
class Counted:
    """How many constraints of each kind a publication gives, as Zhu and Du print them."""

    profiles: int  # the probabilities of a profile add up to 1
    rate: int
    label: int
    count: int
    marginal: int
    internal: int
    idle: int  # of the internal ones, those of nodes above leaves alone: they bind together with others, if at all
    silence: str  # why there are no internal ones

    @classmethod
    def of(cls, publication: Publication, choices: tuple[Choice, ...]) -> Counted:
        leaves, values = len(publication.leaves), publication.classes
        level = "noisy" if publication.noisy else publication.level
        return cls(
            profiles=len(publication.people),
            rate=leaves if level == RATES else 0,
            label=leaves * (values - 1) if level in (LABELS, RATES) else 0,
            count=leaves * values if level in (COUNTS, "noisy") else 0,
            marginal=values if publication.marginal is not None else 0,
            internal=sum(choice.count for choice in choices),
            idle=sum(choice.count for choice in choices if not choice.can_bind),
            silence=silence(publication),
        )

    def __str__(self) -> str:
        kinds = {
            "of profiles": self.profiles,
            "of rates": self.rate,
            "of labels": self.label,
            "of counts": self.count,
            "of the marginal": self.marginal,
            "of internal nodes": self.internal,
        }
        told = [f"{many:,} {kind}" for kind, many in kinds.items() if many]
        return ", ".join(told) + (f"; none of internal nodes: {self.silence}" if self.silence else "")


def gathered(masses: Floats, groups: Integers) -> Floats:
    """The masses [group, value] of groups of rows; -1 is none."""
    found = np.zeros((int(groups.max(initial=-1)) + 1, masses.shape[1]))
    fine = groups >= 0
    np.add.at(found, groups[fine], masses[fine])
    return found


def impurity(masses: Floats, measure: str) -> Floats:
    """The impurity of each group times its mass: n (1 - sum p^2) or -n sum p ln p. Logarithms of any base compare
    the same."""
    total = masses.sum(axis=1)
    at = np.maximum(total, TINY)
    if measure == GINI:
        return np.asarray(total - (masses * masses).sum(axis=1) / at)
    return np.asarray(-(masses * np.log(np.maximum(masses, TINY) / at[:, None])).sum(axis=1))

"""What a published tree says, as constraints on P(value | profile): of people, of leaves, of the choice of splits.

A split that was chosen because it leaves the least impurity says so of every split that was not: that is the
internal constraint E(node, chosen) <= E(node, other) of Zhu and Du (2010), inequality 3.

What leaves say alone has a closed form. People of one leaf are told apart by nothing, and entropy is concave, so they
are alike in the optimum. A published marginal couples leaves through one multiplier for each value, its tilt: a leaf
then maximises H(p) + tilt . p.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from privet.errors import DataError
from privet.kernel import number_of
from privet.risk.noisy import noisy_shares
from privet.risk.people import Attribute, entropy
from privet.risk.publication import COUNTS, LABELS, MOST_PARTS, RATES, Publication
from privet.risk.tree import GINI, SCIKIT, Floats, Integers

TINY = 1e-300  # a mass of 0 has no logarithm
NEVER, FARTHEST = -700.0, 60.0  # the tilt of a value that nobody has, and the largest of others

# -- Inner nodes: the splits that were not chosen.


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


# -- Leaves: the most even shares that what they say allows.


def leaf_shares(publication: Publication, leaf: int, tilt: Floats) -> Floats:
    """The shares of the values in a leaf."""
    if publication.noisy:
        return _noisy(publication, leaf)
    if publication.pure(leaf):
        return np.asarray(np.eye(publication.classes)[publication.label(leaf)])
    if publication.unclear(leaf):
        support = list(publication.support(leaf))
        found = np.zeros(publication.classes)
        found[support] = np.exp(tilt[support] - tilt[support].max())
        return np.asarray(found / found.sum())
    if publication.level == COUNTS and any(publication.tree.nodes[leaf].counts or ()):
        return publication.shares(leaf)
    label = publication.label(leaf)
    if publication.level == LABELS or not publication.published_size(leaf):
        return label_first(tilt, label)
    rate, labelled = publication.share(leaf), publication.labelled(leaf)
    if labelled is not None:  # rows with missing values count in it
        people = int(publication.sizes[leaf])
        rate = min(max(rate, labelled.people[0] / people), labelled.people[-1] / people)
        return with_rate(tilt, label, rate) if rate >= 1 / publication.classes else _held(label, rate, len(tilt))
    return with_rate(tilt, label, rate)


def _held(label: int, rate: float, classes: int) -> Floats:
    """A rate below an even share: the label is most frequent by rows that are not whole people."""
    shares = np.full(classes, (1 - rate) / max(classes - 1, 1))
    shares[label] = rate
    return shares


def _noisy(publication: Publication, leaf: int) -> Floats:
    node = publication.tree.nodes[leaf]
    if publication.level == LABELS or node.counts is None:  # a label that was chosen with noise excludes nothing
        return np.full(publication.classes, 1 / publication.classes)
    return noisy_shares(np.array(node.counts), node.deviation, publication.grown_on(leaf), prior="mixes")


def with_rate(tilt: Floats, label: int, rate: float) -> Floats:
    """max H(p) + tilt . p with p(label) = rate and no other value above it: the others share the rest in proportion
    to e^tilt, those that would come out above the label are held at it.

    >>> with_rate(np.zeros(3), 0, 0.5).tolist()
    [0.5, 0.25, 0.25]
    """
    shares = np.zeros(len(tilt))
    shares[label] = rate
    loose = np.arange(len(tilt)) != label
    left = 1 - rate
    while loose.any() and left > 0:
        weights = np.exp(tilt[loose] - tilt[loose].max())
        shares[loose] = left * weights / weights.sum()
        over = loose & (shares > rate)
        if not over.any():
            break
        shares[over] = rate
        loose &= ~over
        left = max(1 - rate - rate * float((~loose).sum() - 1), 0.0)
        shares[loose] = 0.0
    return shares


def label_first(tilt: Floats, label: int) -> Floats:
    """max H(p) + tilt . p with no value above the label: values that would be above it are pooled with it, and have
    the mean of their tilts.

    >>> label_first(np.zeros(4), 2).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    pooled, mean = [label], float(tilt[label])
    for value in np.argsort(-tilt, kind="stable").tolist():
        if value != label:
            if tilt[value] <= mean:
                break
            pooled.append(value)
            mean = float(tilt[pooled].mean())
    raised = tilt.copy()
    raised[pooled] = mean
    weights = np.exp(raised - raised.max())
    return np.asarray(weights / weights.sum())


def closed_form(publication: Publication, tilt: Floats) -> Floats:
    """The shares of every profile [profile, value]."""
    shares = lost_shares(publication)
    for leaf in publication.leaves:
        shares[publication.profiles[leaf]] = leaf_shares(publication, leaf, tilt)
    return shares


def lost_shares(publication: Publication) -> Floats:
    """What is believed of people without a leaf: the marginal if it is known, otherwise nothing; and of people with
    missing values what the leaf says that is surest of them."""
    lost = np.full(publication.classes, 1 / publication.classes)
    if publication.marginal is not None:
        lost = publication.marginal
    shares = np.tile(lost, (len(publication.people), 1))
    surest = np.zeros(len(publication.people))
    for leaf, parts in publication.partial.items():
        labelled, at = publication.labelled(leaf), 0
        if labelled is None:
            continue
        for profile, _ in parts:
            own = _held(publication.label(leaf), labelled.own[at], publication.classes)
            at += int(publication.people.sizes[profile])
            if len(labelled.own) <= MOST_PARTS and own.max() > max(surest[profile], float(lost.max())):
                surest[profile] = own.max()
                shares[profile] = own
    return shares


def tilt_of(publication: Publication) -> Floats:
    """The multipliers under which the leaves together have the published marginal; all 0 where none is published.

    The dual of a concave problem with linear constraints: convex, and its gradient is what the leaves have too much.
    """
    tilt = np.zeros(publication.classes)
    wanted = publication.marginal
    if wanted is None or publication.noisy or publication.sampled or publication.level == COUNTS:
        return tilt
    leaves = publication.leaves
    weights = publication.sizes[list(leaves)] / publication.sizes[list(leaves)].sum()
    had = wanted > 0
    tilt[~had] = NEVER

    def dual(free: Floats) -> tuple[float, Floats]:
        tilt[had] = free
        shares = np.stack([leaf_shares(publication, leaf, tilt) for leaf in leaves])
        value = weights @ (entropy(shares) + shares[:, had] @ free) - wanted[had] @ free
        return float(value), np.asarray((weights @ shares - wanted)[had])

    start = np.zeros(int(had.sum()))
    ends = [(-FARTHEST, FARTHEST)] * len(start)  # where nothing meets the marginal, the dual has no end
    found = minimize(
        dual, start, jac=True, method="L-BFGS-B", bounds=ends, options={"ftol": 1e-16, "gtol": 1e-11, "maxiter": 1000}
    )
    _, missed = dual(found.x)
    if np.abs(missed).max() > 1e-5:
        value = publication.tree.values[int(np.flatnonzero(had)[int(np.argmax(np.abs(missed)))])]
        raise DataError(
            f"no shares of the leaves give the published marginal of '{value}'; give it as counts, not as rounded "
            "shares, or it is that of other people."
        )
    return tilt

"""What a person's own row gave away: what is believed with it, against what is believed of anybody like them without.

That smokers fall ill is learnt from many people, and believed of a smoker who was never in the table: no publication
that is of use can hide it (Dwork and Naor 2010), and none should be blamed for it. So three numbers are kept apart:

- baseline: how frequent a value is among all people;
- inference: how likely it is for somebody with these attributes, by the rows of the others alone;
- disclosure: what the own row adds to that.

Without a person's own row a leaf has n - 1 others, and of a newcomer the baseline is believed until others are seen.
It counts as one of them: inference(v) = (others with v + baseline(v)) / n, the predictive probability under a Dirichlet
prior of one person's weight. With the row the leaf says count(v) / n, whatever the prior, as its people are
exchangeable. So the own row adds (1 - baseline(v)) / n to its value, and what the choice of splits tells of some people
of a leaf and not of others is added whole. A private model has a noisy leaf, whose likelihood with and without the row
differs by a factor that epsilon bounds; so does what is believed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from privet.models.epsilon import belief as most_believed
from privet.risk.constraints import closed_form, tilt_of
from privet.risk.measures import SAME
from privet.risk.noisy import MIXES, noisy_shares
from privet.risk.people import Belief
from privet.risk.publication import COUNTS, LABELS, RATES, Publication
from privet.risk.tree import Floats

WORLDS, MAXIMUM = "possible worlds", "maximum entropy"


@dataclass(frozen=True, eq=False)
class OwnRow:
    """The three numbers of whoever has a profile and a value [profile, value], and how many people that are."""

    baseline: Floats
    inference: Floats
    disclosure: Floats
    people: Floats  # of the true values where they are known; otherwise as many as are believed to have them
    is_counted: bool  # are these true values?
    bound: float | None = None  # of a private model: the most that any row can add, whatever the rows
    is_computed: bool = True  # False: nothing but the bound is known

    @property
    def largest(self) -> float:
        """The most that the own row adds for anybody."""
        return float(np.max(self.disclosure, where=self.people > SAME, initial=0.0))

    @property
    def by_profile(self) -> Floats:
        """The most that the own row adds for somebody of each profile."""
        return np.asarray(np.max(self.disclosure, axis=1, where=self.people > SAME, initial=0.0))

    def concerned(self, threshold: float) -> Floats:
        """How many people of each profile have a row that adds the threshold or more."""
        return np.asarray(np.where(self.disclosure >= threshold - SAME, self.people, 0.0).sum(axis=1))

    def mean(self, numbers: Floats) -> float:
        """The mean of one of the numbers over all people."""
        return float((numbers * self.people).sum() / max(float(self.people.sum()), SAME))

    def most(self, numbers: Floats) -> float:
        """The largest of one of the numbers that somebody has."""
        return float(np.max(numbers, where=self.people > SAME, initial=0.0))


def most_added(epsilon: float) -> float:
    """The most that one row can add to a belief under pure epsilon, from whichever belief it starts.

    Odds of one value against the others change by e^(2 epsilon) at most (`privet.models.epsilon`). The difference
    belief(p, 2 epsilon) - p is largest at the odds e^(-epsilon), where it is tanh(epsilon / 2).

    >>> round(most_added(1.0), 4) == round(most_believed(1 / (1 + math.e), 2.0) - 1 / (1 + math.e), 4)
    True
    """
    return math.tanh(epsilon / 2)


def epsilon_for(threshold: float) -> float:
    """The epsilon up to which no row adds as much as a threshold, whatever the rows.

    >>> round(most_added(epsilon_for(0.1)), 9)
    0.1
    """
    return math.inf if threshold >= 1 else 2 * math.atanh(threshold)


def own_rows(
    publication: Publication,
    beliefs: Mapping[str, Belief],
    baseline: Floats,
    truth: Floats | None = None,
) -> OwnRow:
    """Baseline, inference and disclosure of everybody in a published tree.

    Parameters
    ----------
    publication : Publication
    beliefs : mapping of str to Belief
        What adversaries believe who have seen it.
    baseline : Floats
        The share of each value among all people.
    truth : Floats, optional
        The true values counted [profile, value]; else they are taken as believed.

    Returns
    -------
    OwnRow
        For each profile and value the numbers of the adversary to whom the own row adds most, then who is surest.
    """
    base = np.tile(baseline, (len(publication.people), 1))
    if publication.noisy:
        return _noisy(publication, base, truth)
    added = _by_leaf(publication, baseline)
    alone = closed_form(publication, tilt_of(publication))
    placed = publication.leaf >= 0
    with_row, disclosure = alone.copy(), np.zeros_like(alone)
    for name, found in beliefs.items():
        leaves = alone if name != WORLDS else _leaf_worlds(publication, found.shares, alone)
        more = np.where(placed[:, None], np.maximum(found.shares - leaves, 0.0) + added, 0.0)
        partly = ~placed & (np.abs(found.shares - found.shares.mean(axis=1, keepdims=True)).max(axis=1) > SAME)
        more[partly] = np.maximum(found.shares - base, 0.0)[partly]  # rows with missing values, in several leaves
        more = np.minimum(more, found.shares)
        surer = (more > disclosure - SAME) & (found.shares > with_row)
        better = (more > disclosure + SAME) | surer
        disclosure = np.where(better, more, disclosure)
        with_row = np.where(better, found.shares, with_row)
    silent = ~placed & (disclosure.max(axis=1) <= SAME)
    with_row[silent] = base[silent]
    inside = np.ones(len(publication.people))
    if publication.sampled:
        for leaf in publication.leaves:
            inside[publication.profiles[leaf]] = publication.inside(leaf)
        disclosure = disclosure * inside[:, None]
    people = truth if truth is not None else with_row * publication.people.sizes[:, None]
    if truth is None:  # what is believed need not add up where two adversaries are surest of different values
        scale = publication.people.sizes / np.maximum(people.sum(axis=1), SAME)
        people = people * scale[:, None]
    rows = OwnRow(base, np.maximum(with_row - disclosure, 0.0), disclosure, people, truth is not None)
    stopping = publication.tree.stopping
    if stopping is None or not stopping.is_assumed or not publication.undivided:
        return rows
    open_end = replace(publication, tree=replace(publication.tree, stopping=None))  # leaves need not be pure
    shares = Belief(MAXIMUM, closed_form(open_end, tilt_of(open_end)))
    other = own_rows(open_end, {MAXIMUM: shares}, baseline, truth)
    return other if other.largest > rows.largest else rows


def _by_leaf(publication: Publication, baseline: Floats) -> Floats:
    """What the own row adds to the share of its value in a leaf [profile, value], by the numbers of the leaf alone.

    A label says less than counts, so what counts would tell bounds it; so do counts behind weights, whatever they are.
    A rate tells of a value that is not the label only that it is one of the others.
    """
    found = np.zeros((len(publication.people), publication.classes))
    for leaf in publication.leaves:
        size = publication.grown_on(leaf) if publication.sampled else int(publication.sizes[leaf])
        if size <= 0:
            continue
        own = np.ones(publication.classes)
        if publication.level == RATES and publication.classes > 2:
            own[:] = 1 / (publication.classes - 1)
            own[publication.label(leaf)] = 1.0
        found[publication.profiles[leaf]] = np.maximum(own - baseline, 0.0) / size
    return found


def _leaf_worlds(publication: Publication, shares: Floats, alone: Floats) -> Floats:
    """What counting worlds gives for leaves alone: the mean over the people of a leaf, as the choice of splits tells
    them apart and leaves their sum as it is; where it does not, that is the leaf's share."""
    if publication.level == LABELS:
        sizes = publication.people.sizes
        found = alone.copy()
        for leaf in publication.leaves:
            here = publication.profiles[leaf]
            found[here] = sizes[here] @ shares[here] / sizes[here].sum()
        return found
    return alone


def _noisy(publication: Publication, base: Floats, truth: Floats | None) -> OwnRow:
    """The same of noisy counts: by how much likelier they are with a row of each value than without any.

    The factors are those of a coherent adversary, to whom all mixes of values are alike before, so that epsilon bounds
    them; they are applied to what the others' noisy counts and the baseline say. To whoever takes people for
    independent others tell nothing, so that inference is the baseline and all the rest would be the own row's.
    """
    epsilon = float(publication.tree.epsilon or 0)
    inference, disclosure = base.copy(), np.zeros_like(base)
    for leaf in publication.leaves:
        here, node = publication.profiles[leaf], publication.tree.nodes[leaf]
        size = publication.grown_on(leaf) if publication.sampled else int(publication.sizes[leaf])
        if size <= 0:
            continue
        share = base[here[0]]
        if publication.level != COUNTS or node.counts is None:  # a label that was chosen with noise
            disclosure[here] = np.minimum((1 - share) / size, _cap(share, epsilon))
            continue
        without, added = _with_and_without(np.array(node.counts), node.deviation, size, share)
        inference[here] = without
        disclosure[here] = np.minimum(added, _cap(without, epsilon)) * publication.inside(leaf)
    sizes = publication.people.sizes[:, None]
    people = truth if truth is not None else (inference / inference.sum(axis=1, keepdims=True)) * sizes
    return OwnRow(base, inference, disclosure, people, truth is not None, most_added(epsilon))


def _with_and_without(observed: Floats, deviation: float, size: int, baseline: Floats) -> tuple[Floats, Floats]:
    """What noisy counts of a leaf say of somebody who is not in it, and what they add for somebody who is."""
    values = len(observed)
    with_row = noisy_shares(observed, deviation, size, prior=MIXES)
    others = noisy_shares(observed, deviation, size - 1, prior=MIXES) * (size - 1)
    without = (others + baseline) / size
    posterior = without * with_row * (size - 1 + values) / (others + 1)
    return without, np.maximum(posterior / posterior.sum() - without, 0.0)


def _cap(without: Floats, epsilon: float) -> Floats:
    """The most that a row can add under epsilon."""
    return np.array([most_believed(float(each), 2 * epsilon) - float(each) for each in without])


def predicted_rows(belief: Belief, people: Floats, baseline: Floats, epsilon: float, truth: Floats | None) -> OwnRow:
    """The three numbers of a private model that is audited by its predictions: of the own row the bound alone."""
    base = np.tile(baseline, (len(people), 1))
    disclosure = np.stack([_cap(each, epsilon) for each in belief.shares])
    counted = truth if truth is not None else belief.shares * people[:, None]
    return OwnRow(base, belief.shares, disclosure, counted, truth is not None, most_added(epsilon), False)

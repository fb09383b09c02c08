"""Several publications of the same people: trees of a forest, steps of boosting, the tree of last year and of this one.

Each is a view: it divides people into groups and says how many of each have which value. Alone a view may give nobody
away, and two may: who was in one of them and not in the other has what they differ by.

What follows with certainty is found by filling in: where a group's people must all have a value, or none can, they are
settled, and what is left of their other groups is smaller. Otherwise the belief is that of maximum entropy, which for
sums has one multiplier for each group and value. Filling in does not find everything that follows, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privet.errors import DataError, ModelError
from privet.risk.people import Belief
from privet.risk.publication import LABELS, RATES, Publication
from privet.risk.tree import Floats, Integers
from privet.risk.world_pieces import Quota

ADVERSARY = "all together"
ROUNDS = 300  # of fitting multipliers
CLOSE = 1e-4  # of a person, by which sums may be missed
FIRM = 30.0  # the largest multiplier: what is nearly certain stays belief


@dataclass(frozen=True, eq=False)
class View:
    """Groups of people, and how many of a group have each value; `times` is how often a person counts in it."""

    group: Integers  # of each person, -1 if they are in none
    totals: Floats  # [group, value]
    times: Floats | None = None

    @property
    def weight(self) -> Floats:
        """How often each person counts, 0 for those in no group."""
        times = np.ones(len(self.group)) if self.times is None else self.times
        return np.asarray(np.where(self.group >= 0, times, 0.0))

    @property
    def at(self) -> Integers:
        return np.maximum(self.group, 0)

    def sums(self, shares: Floats) -> Floats:
        """What shares [person, value] add up to in each group."""
        found = np.zeros_like(self.totals)
        for value in range(self.totals.shape[1]):
            found[:, value] = np.bincount(self.at, self.weight * shares[:, value], minlength=len(found))
        return found


def counts_of(publication: Publication) -> Floats:
    """How many people of each node that is a leaf have each value [node, value], of a tree without noise."""
    if publication.noisy or publication.level == LABELS or publication.fractional:
        raise ModelError("trees are held against each other by counts; one of them is noisy, or says labels alone.")
    if publication.level == RATES and publication.classes > 2:
        raise ModelError("trees of more than two values are held against each other by counts, not by rates.")
    totals = np.zeros((len(publication.tree.nodes), publication.classes))
    for leaf in publication.leaves:
        quota = Quota.of(publication, leaf, int(publication.sizes[leaf]))
        totals[leaf, quota.label] = quota.labelled or 0
        totals[leaf, [v for v in range(quota.classes) if v != quota.label]] = quota.size - (quota.labelled or 0)
        if quota.counts is not None:
            totals[leaf] = quota.counts
    return totals


def settled(views: Sequence[View], people: int, values: int) -> Floats:
    """What follows with certainty: 1 and 0 for values that people have or cannot have, NaN for what is open."""
    found = np.full((people, values), np.nan)
    while True:
        before = int(np.isnan(found).sum())
        for view in views:
            _fill(view, found)
            rest = np.isnan(found).sum(axis=1)
            has = (found == 1).any(axis=1)
            found[has[:, None] & np.isnan(found)] = 0.0
            last = ~has & (rest == 1)
            found[last[:, None] & np.isnan(found)] = 1.0
        if (found.sum(axis=1) == 0).any() or (np.nansum(found, axis=1) > 1).any():
            raise DataError("the publications contradict each other about somebody; they are not of the same people.")
        if int(np.isnan(found).sum()) == before:
            return found


def _fill(view: View, found: Floats) -> None:
    """Settle who must have a value, or cannot, by what is left of the total of their group."""
    weight, at = view.weight, view.at
    for value in range(found.shape[1]):
        is_open = np.isnan(found[:, value]) & (weight > 0)
        held = np.bincount(at, weight * np.nan_to_num(found[:, value]), minlength=len(view.totals))
        left = view.totals[:, value] - held
        room = np.bincount(at, weight * is_open, minlength=len(view.totals))
        if (left < -CLOSE).any() or (left > room + CLOSE).any():
            raise DataError("the publications contradict each other; they are not of the same people.")
        cannot = is_open & (weight > left[at] + CLOSE)
        must = is_open & (room[at] - weight < left[at] - CLOSE)
        found[cannot, value] = 0.0
        found[must & ~cannot, value] = 1.0


def together(views: Sequence[View], people: int, values: int) -> Belief:
    """What somebody believes of each person who holds all views: certainties, and maximum entropy for the rest."""
    known = settled(views, people, values)
    can = np.isnan(known) | (known == 1)
    logits = np.where(can, 0.0, -np.inf)
    shares = _softmax(logits)
    missed = np.inf
    for _ in range(ROUNDS):
        missed = 0.0
        for view in views:
            sums = view.sums(shares)
            missed = max(missed, float(np.abs(sums - view.totals).max()))
            most = 1.0 if view.times is None else max(float(view.weight.max()), 1.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = np.log(np.maximum(view.totals, 1e-9) / np.maximum(sums, 1e-9)) / most
            step = np.clip(np.where(np.isfinite(step), step, 0.0), -2, 2)
            logits = logits + np.where(can, (step[view.at] * view.weight[:, None]), 0.0)
            logits = np.where(can, np.clip(logits - logits.max(axis=1, keepdims=True), -FIRM, 0.0), -np.inf)
            shares = _softmax(logits)
        if missed < CLOSE:
            break
    many = int((known == 1).any(axis=1).sum())
    notes = (
        f"{len(views)} publications of the same people are held against each other. The values of {many:,} people "
        "follow with certainty; of the others maximum entropy is believed, by which sums are missed by at most "
        f"{missed:.1g} of a person. More may follow than was found.",
    )
    return Belief(ADVERSARY, shares, exact=False, notes=notes, facts={"settled": many, "missed": missed})


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def left_out(views: Sequence[View], baseline: Floats) -> Floats:
    """What is inferred of each person without their own row, if it has a value [person, value]: what the group of one
    view says of its others, the baseline being one more of them; of the views the one that says most.

    Whoever holds all views against each other can infer more without the own row too. So what is left for the own row
    is an upper bound.
    """
    found = np.tile(baseline, (len(views[0].group), 1))
    for view in views:
        inside = view.group >= 0
        counts, own = view.totals[view.at], view.weight[:, None]
        others = (np.maximum(counts - own, 0.0) + baseline) / np.maximum(counts.sum(axis=1, keepdims=True) - own + 1, 1)
        found[inside] = np.maximum(found, others)[inside]
    return found

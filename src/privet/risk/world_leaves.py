"""The worlds of one leaf: every way to give values to its people that agrees with what the leaf says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privet.errors import DataError
from privet.risk.publication import COUNTS, LABELS, Publication
from privet.risk.tree import Floats, Integers
from privet.risk.world_counting import (
    capped_powers,
    is_counted,
    label_share,
    label_worlds,
    least_frequent_maximum,
    log_factorials,
    log_ways,
)

Tables = NDArray[np.int32]  # [cell, world, value]: how many people of a cell have a value in a world

COUNTABLE = 10**9  # steps to count, and to draw from, the ways of values that the label's count caps
CHUNK = 2_000_000  # people that are drawn at once


@dataclass(frozen=True)
class Quota:
    """What a leaf says of its people: how many have each value, or its label, or only that no value has more of them.

    >>> quota = Quota(size=3, label=0, classes=2, labelled=2)
    >>> tables = quota.tables(np.array([1, 2]), limit=10)
    >>> tables.transpose(1, 0, 2).tolist()  # one world for each table: cells by values
    [[[0, 1], [2, 0]], [[1, 0], [1, 1]]]
    """

    size: int
    label: int
    classes: int
    counts: tuple[int, ...] | None = None
    labelled: int | None = None  # how many have the label; None if that is not known

    @classmethod
    def of(cls, publication: Publication, leaf: int, size: int) -> Quota:
        """What a leaf says of this many people, in whole numbers."""
        label, classes = publication.label(leaf), publication.classes
        if publication.level == LABELS:
            return cls(size, label, classes)
        if publication.level == COUNTS:
            counts = whole(publication.shares(leaf), size)
            return cls(size, label, classes, tuple(counts.tolist()), int(counts[label]))
        labelled = int(np.floor(publication.share(leaf) * size + 0.5))
        least = least_frequent_maximum(size, classes)
        if labelled < least and not publication.fractional:
            where = publication.tree.where(leaf)
            raise DataError(
                f"no data set is consistent with the published tree (the leaf '{where}' says that {labelled} of {size} "
                f"people have its most frequent value); the table is not the one it was grown on."
            )
        return cls(size, label, classes, labelled=max(labelled, least))

    # -- everybody alike ----------------------------------------------------------------------

    def shares(self, seed: int) -> tuple[Floats, float]:
        """How likely each value is for anybody in the leaf, and the standard error where that was drawn.

        Values other than the label can be exchanged in every world, so they are equally likely.
        """
        if self.counts is not None:
            return np.array(self.counts) / self.size, 0.0
        if self.labelled is not None:
            share, error = self.labelled / self.size, 0.0
        else:
            share, error = label_share(self.size, self.classes, seed)
        shares = np.full(self.classes, (1 - share) / max(self.classes - 1, 1))
        shares[self.label] = share
        return shares, error

    @cached_property
    def log_worlds(self) -> float | None:
        """The log of the number of assignments, None if they are too many to be counted."""
        factorials = log_factorials(self.size)
        if self.counts is not None:
            return float(factorials[self.size] - factorials[list(self.counts)].sum())
        if self.labelled is None:
            if not is_counted(self.size, self.classes):
                return None
            return float(np.logaddexp.reduce(label_worlds(self.size, self.classes)[1]))
        wrong = self.size - self.labelled
        if not self._others_countable(self.labelled):
            return None
        chosen = factorials[self.size] - factorials[self.labelled] - factorials[wrong]
        return float(chosen) + log_ways(wrong, self.classes - 1, self.labelled)

    def _others_countable(self, labelled: int) -> bool:
        wrong = self.size - labelled
        return wrong <= labelled or (self.classes - 1) * wrong * labelled <= COUNTABLE

    # -- all worlds ---------------------------------------------------------------------------

    def tables(self, sizes: Integers, limit: int) -> Tables | None:
        """All worlds of people in cells of these sizes, up to exchanges in a cell; None if above the limit."""
        found: list[Tables] = []
        for caps in self._caps():
            some = _tables(sizes, caps, self.label, limit - sum(each.shape[1] for each in found))
            if some is None:
                return None
            found.append(some)
        return np.concatenate(found, axis=1)

    def _caps(self) -> Iterator[Integers]:
        """The most people who may have each value; the label has exactly as many."""
        if self.counts is not None:
            yield np.array(self.counts, dtype=np.int64)
        elif self.labelled is not None:
            yield np.full(self.classes, self.labelled, dtype=np.int64)
        else:
            for labelled in range(least_frequent_maximum(self.size, self.classes), self.size + 1):
                yield np.full(self.classes, labelled, dtype=np.int64)

    # -- some worlds --------------------------------------------------------------------------

    @property
    def drawable(self) -> bool:
        return self.counts is not None or self.labelled is None or self._others_countable(self.labelled)

    def draw(self, sizes: Integers, number: int, rng: np.random.Generator) -> Tables:
        """Worlds of people in cells of these sizes, each assignment as likely as any other."""
        counts = self._draw_counts(number, rng)
        if len(sizes) == 1:
            return counts.astype(np.int32)[None]
        step = max(CHUNK // self.size, 1)
        parts = [self._deal(sizes, counts[start : start + step], rng) for start in range(0, number, step)]
        return np.concatenate(parts, axis=1)

    def _deal(self, sizes: Integers, counts: Integers, rng: np.random.Generator) -> Tables:
        """Give the values of each world to its people in any order."""
        values = np.tile(np.arange(self.classes, dtype=np.int32), len(counts))
        hands = rng.permuted(np.repeat(values, counts.ravel()).reshape(len(counts), self.size), axis=1)
        cell = np.repeat(np.arange(len(sizes)), sizes)
        place = (cell * len(counts) + np.arange(len(counts))[:, None]) * self.classes + hands
        shape = (len(sizes), len(counts), self.classes)
        return np.bincount(place.ravel(), minlength=int(np.prod(shape))).reshape(shape).astype(np.int32)

    def _draw_counts(self, number: int, rng: np.random.Generator) -> Integers:
        """How many people have each value [world, value]."""
        if self.counts is not None:
            return np.tile(np.array(self.counts, dtype=np.int64), (number, 1))
        if self.labelled is None:
            return self._draw_labelled(number, rng)
        found = np.empty((number, self.classes), dtype=np.int64)
        others = np.arange(self.classes) != self.label
        found[:, self.label] = self.labelled
        found[:, others] = draw_capped(self.size - self.labelled, self.classes - 1, self.labelled, number, rng)
        return found

    def _draw_labelled(self, number: int, rng: np.random.Generator) -> Integers:
        """Any assignment, until the label is most frequent: as all values are alike, at least every K-th time."""
        found: list[Integers] = []
        while sum(map(len, found)) < number:
            counts = rng.multinomial(self.size, np.full(self.classes, 1 / self.classes), size=number)
            found.append(counts[counts[:, self.label] == counts.max(axis=1)])
        return np.concatenate(found)[:number]


def whole(shares: Floats, size: int) -> Integers:
    """Whole numbers of people nearest to their shares that add up: largest remainders first.

    >>> whole(np.array([0.5, 0.3, 0.2]), 7).tolist()
    [4, 2, 1]
    """
    wanted = shares * size
    found = np.floor(wanted + 1e-9).astype(np.int64)
    missing = size - int(found.sum())
    found[np.argsort(found - wanted, kind="stable")[:missing]] += 1
    return found


def draw_capped(people: int, values: int, cap: int, number: int, rng: np.random.Generator) -> Integers:
    """Counts of values of uniformly drawn assignments in which no value has more than `cap` people [world, value]."""
    if people <= cap:
        return rng.multinomial(people, np.full(values, 1 / max(values, 1)), size=number)
    powers, _ = capped_powers(people, values, cap)
    found = np.zeros((number, values), dtype=np.int64)
    left = np.full(number, people, dtype=np.int64)
    for value in range(values - 1):
        rest = powers[values - 1 - value]
        for many in np.unique(left).tolist():
            steps = np.arange(min(cap, many) + 1)
            weights = powers[1][steps] * rest[many - steps]  # k people here, all others on the values after it
            here = np.flatnonzero(left == many)
            found[here, value] = rng.choice(steps, size=len(here), p=weights / weights.sum())
        left = left - found[:, value]
    found[:, -1] = left
    return found


def _tables(sizes: Integers, caps: Integers, label: int, limit: int) -> Tables | None:
    """All tables with these row sums whose label has exactly caps[label] people and no other value more than its cap.

    Entry by entry, the label first. An entry leaves no more people to later values than those can still take, so each
    beginning has an end: there are never more beginnings than tables, and the limit can be told early.
    """
    order = [label, *(value for value in range(len(caps)) if value != label)]
    left = caps[None, :]  # what each value can still take [beginning, value]
    wrong = np.array([int(sizes.sum() - caps[label])])  # what all values but the label must still take
    steps: list[tuple[Integers, Integers]] = []  # of each entry: the beginning it continues, and its number
    for size in sizes.tolist():
        rest = np.full(len(left), size, dtype=np.int64)
        for place, value in enumerate(order):
            later = left[:, order[place + 1 :]].sum(axis=1)
            if value == label:
                later = np.minimum(later, wrong)
            lowest = np.maximum(rest - later, 0)
            many = np.minimum(rest, left[:, value]) - lowest + 1
            if int(many.sum()) > limit:
                return None
            parent = np.repeat(np.arange(len(left)), many)
            entry = lowest[parent] + np.arange(len(parent)) - (np.cumsum(many) - many)[parent]
            steps.append((parent, entry))
            left, rest, wrong = left[parent], rest[parent] - entry, wrong[parent]
            left[:, value] -= entry
            if value == label:
                wrong = wrong - rest
    return _traced(steps, len(left), (len(sizes), len(caps)), order)


def _traced(steps: list[tuple[Integers, Integers]], worlds: int, shape: tuple[int, int], order: list[int]) -> Tables:
    """The tables whose entries were found one after another."""
    cells, classes = shape
    found = np.empty((cells, worlds, classes), dtype=np.int32)
    at = np.arange(worlds)
    for number in reversed(range(len(steps))):
        parent, entry = steps[number]
        found[number // classes, :, order[number % classes]] = entry[at]
        at = parent[at]
    return found

"""The worlds of leaves: every way to give values to their people that agrees with what is published."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from privet.errors import DataError
from privet.risk.publication import COUNTS, LABELS, Labelled, Publication
from privet.risk.tree import GINI, Floats, Integers

# -- In how many ways can the people of a leaf have its values, if none is more frequent than its label?

EXACT_PEOPLE = 300  # of a leaf of which only the label is known; more are counted by drawing
DRAWS = 20_000


def log_factorials(most: int) -> Floats:
    """log 0!, log 1!, …, log most!"""
    return np.asarray(gammaln(np.arange(most + 1) + 1.0))


def capped_powers(people: int, values: int, cap: int) -> tuple[list[Floats], float]:
    """For j = 0 … values, numbers proportional to the ways in which s people can have j values, none more than `cap`.

    The ways divided by s! are the coefficients of (sum over k <= cap of z^k / k!)^j, divided by z^s: any z will do.
    With the one that makes the mean of a step people / values, all that matters is of moderate size. Each power is
    divided by its largest entry; the second result is the log of the ways for everybody and all values.
    """
    factorials = log_factorials(people)
    tilt = _tilt(people / values, factorials[: cap + 1])
    logs = np.arange(min(cap, people) + 1) * tilt - factorials[: cap + 1]
    one = np.exp(logs - logs.max())
    powers, scale = [np.eye(1, people + 1)[0]], values * float(logs.max())
    for _ in range(values):
        power = np.convolve(powers[-1], one)[: people + 1]
        powers.append(power / power.max())
        scale += math.log(power.max())
    with np.errstate(divide="ignore"):
        ways = float(np.log(powers[-1][people])) + scale + float(factorials[people]) - people * tilt
    return powers, ways


def _tilt(mean: float, factorials: Floats) -> float:
    """log z for which a step k with weight z^k / k! has about this mean."""
    steps = np.arange(len(factorials))
    low = math.log(mean)  # of a Poisson distribution that is not cut
    high = low + 40.0
    for _ in range(12):  # to a hundredth
        middle = (low + high) / 2
        logs = steps * middle - factorials
        weights = np.exp(logs - logs.max())
        low, high = (middle, high) if weights @ steps < mean * weights.sum() else (low, middle)
    return low


@lru_cache(maxsize=4096)
def log_ways(people: int, values: int, cap: int) -> float:
    """The log of the number of ways to give each of some people one of some values, none to more than `cap`.

    >>> round(math.exp(log_ways(4, 2, 2))), round(math.exp(log_ways(4, 3, 9))), log_ways(4, 3, 1)
    (6, 81, -inf)
    """
    if people > values * cap:
        return -math.inf
    if people <= cap:
        return people * math.log(values) if people else 0.0
    return capped_powers(people, values, cap)[1]


def least_frequent_maximum(people: int, values: int) -> int:
    """The fewest people who can have the most frequent value."""
    return -(-people // values)


def tied_ways(people: int, earlier: int, later: int, cap: int) -> tuple[float, float]:
    """The log of the ways to give people values, earlier ones to fewer than `cap` each and later ones to no more than
    it; and how many people have an earlier one on average.

    >>> ways, mean = tied_ways(2, 1, 1, 1)  # one value is at most once there, the other not at all
    >>> ways, mean
    (-inf, 0.0)
    >>> ways, mean = tied_ways(3, 1, 1, 2)
    >>> round(math.exp(ways)), mean
    (3, 1.0)
    """
    if people > earlier * (cap - 1) + later * cap:
        return -math.inf, 0.0
    if people == 0:
        return 0.0, 0.0
    if earlier + later == 1:
        return 0.0, float(people if earlier else 0)
    factorials = log_factorials(people)
    tilt = _tilt(people / (earlier + later), factorials[: cap + 1])
    logs = np.arange(min(cap, people) + 1) * tilt - factorials[: cap + 1]
    one, scale = np.exp(logs - logs.max()), (earlier + later) * float(logs.max())
    sides = []
    for values, step in ((earlier, one[:cap]), (later, one)):
        power = np.eye(1, people + 1)[0]
        for _ in range(values):
            power = np.convolve(power, step)[: people + 1]
            scale += math.log(power.max())
            power = power / power.max()
        sides.append(power)
    together = sides[0] * sides[1][::-1]
    total = float(together.sum())
    if total <= 0:
        return -math.inf, 0.0
    ways = math.log(total) + scale + float(factorials[people]) - people * tilt
    return ways, float(together @ np.arange(people + 1) / total)


@dataclass(frozen=True, eq=False)
class LabelWorlds:
    """How many people of a leaf may have its label; for each the log of the number of assignments; and how many people
    have a value that would be the label if it were as frequent."""

    labelled: Integers
    logs: Floats
    earlier: Floats

    @property
    def means(self) -> tuple[float, float]:
        """The mean number of people with the label, and with an earlier value."""
        weights = np.exp(self.logs - self.logs.max())
        return float(weights @ self.labelled / weights.sum()), float(weights @ self.earlier / weights.sum())


@lru_cache(maxsize=4096)
def label_worlds(people: int, values: int, earlier: int = 0) -> LabelWorlds:
    """The worlds of a leaf of which the label alone is known: exact.

    Parameters
    ----------
    people, values : int
    earlier : int, default 0
        How many values would be the label if they were as frequent; 0 where nothing is known of ties.

    Examples
    --------
    >>> worlds = label_worlds(3, 3)
    >>> worlds.labelled.tolist(), np.exp(worlds.logs).round().tolist()
    ([1, 2, 3], [6.0, 6.0, 1.0])
    >>> label_worlds(2, 2, earlier=1).labelled.tolist()  # a tie would have gone to the first value
    [2]
    """
    labelled = np.arange(least_frequent_maximum(people, values), people + 1)
    if earlier == 0:
        ways = np.array([(log_ways(people - each, values - 1, each), 0.0) for each in labelled.tolist()])
    else:
        later = values - 1 - earlier
        ways = np.array([tied_ways(people - each, earlier, later, each) for each in labelled.tolist()])
    possible = np.isfinite(ways[:, 0])
    labelled, ways = labelled[possible], ways[possible]
    factorials = log_factorials(people)
    chosen = factorials[people] - factorials[labelled] - factorials[people - labelled]
    return LabelWorlds(labelled, np.asarray(chosen + ways[:, 0]), ways[:, 1])


def is_counted(people: int, values: int) -> bool:
    """Is a leaf of which only the label is known counted exactly? With two values always."""
    return values <= 2 or people <= EXACT_PEOPLE


def label_share(people: int, values: int, seed: int, earlier: int = 0) -> tuple[float, float]:
    """The mean share of a leaf's label where it is only known to be most frequent, and the standard error of it.

    >>> label_share(2, 2, seed=0)
    (0.6666666666666666, 0.0)
    """
    if is_counted(people, values):
        return label_worlds(people, values, earlier).means[0] / people, 0.0
    return drawn_label_share(people, values, seed, earlier)


@lru_cache(maxsize=4096)
def drawn_label_share(people: int, values: int, seed: int, earlier: int = 0) -> tuple[float, float]:
    """The same by drawing. In an assignment drawn without any condition, each most frequent value is as likely as any
    other to be the label, so the mean is E[largest * tied] / E[tied]: nothing has to be rejected. Where the first of t
    tied values is the label, t of all values in any order have none of the earlier ones among them and this one with
    probability C(later, t - 1) / C(values, t)."""
    rng = np.random.default_rng([seed, people, values])
    counts = rng.multinomial(people, np.full(values, 1 / values), size=DRAWS)
    largest = counts.max(axis=1)
    tied = (counts == largest[:, None]).sum(axis=1).astype(np.float64)
    if earlier:
        first = [math.comb(values - 1 - earlier, t - 1) / math.comb(values, t) for t in range(1, values + 1)]
        tied = np.array(first)[tied.astype(np.int64) - 1]
    mean = float((largest * tied).mean() / tied.mean())
    error = float((tied * (largest - mean)).std() / tied.mean() / math.sqrt(DRAWS))  # of a ratio, by its derivative
    return mean / people, error / people


# -- The worlds of one leaf: every way to give values to its people that agrees with what the leaf says.

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
    earlier: tuple[int, ...] = ()  # values that would be the label if they were as frequent
    support: tuple[int, ...] = ()  # values that somebody has, and no others: all that weights tell
    among: Labelled | None = None  # how many may have the label, where rows with missing values count in the leaf

    @classmethod
    def of(cls, publication: Publication, leaf: int, size: int) -> Quota:
        """What a leaf says of this many people, in whole numbers."""
        label, classes, order = publication.label(leaf), publication.classes, publication.tree.order
        if publication.pure(leaf):
            return cls(size, label, classes, tuple(size * (value == label) for value in range(classes)), size)
        if publication.unclear(leaf):
            return cls(size, label, classes, support=publication.support(leaf))
        earlier = () if order is None else tuple(v for v in range(classes) if order[v] < order[label])
        if publication.level == LABELS:
            return cls(size, label, classes, earlier=earlier)
        if publication.level == COUNTS:
            counts = whole(publication.shares(leaf), size)
            return cls(size, label, classes, tuple(counts.tolist()), int(counts[label]))
        among = publication.labelled(leaf)
        if among is not None and size == int(publication.sizes[leaf]):
            return cls(size, label, classes, among=among)
        labelled = int(np.floor(publication.share(leaf) * size + 0.5))
        least = least_frequent_maximum(size, classes)
        if labelled < least and not publication.fractional:
            where = publication.tree.where(leaf)
            raise DataError(
                f"no data set is consistent with the published tree (the leaf '{where}' says that {labelled} of {size} "
                f"people have its most frequent value); the table is not the one it was grown on."
            )
        return cls(size, label, classes, labelled=max(labelled, least), earlier=earlier)

    # -- everybody alike ----------------------------------------------------------------------

    def shares(self, seed: int) -> tuple[Floats, float]:
        """How likely each value is for anybody in the leaf, and the standard error where that was drawn.

        Values other than the label can be exchanged in every world, so they are equally likely; so can those that win
        a tie against the label, and those that lose it.
        """
        if self.counts is not None:
            return np.array(self.counts) / self.size, 0.0
        if self.support:
            shares = np.zeros(self.classes)
            shares[list(self.support)] = 1 / len(self.support)
            return shares, 0.0
        earlier, error, first = None, 0.0, len(self.earlier)
        if self.among is not None:
            share = self.among.mean / self.size
        elif self.labelled is not None:
            share = self.labelled / self.size
            wrong = self.size - self.labelled
            if first and wrong >= self.labelled and self._others_countable(self.labelled):
                earlier = tied_ways(wrong, first, self.classes - 1 - first, self.labelled)[1]
        elif is_counted(self.size, self.classes):
            labelled, earlier = label_worlds(self.size, self.classes, first).means
            share = labelled / self.size
            earlier = earlier if first else None
        else:
            share, error = label_share(self.size, self.classes, seed, first)
        shares = np.full(self.classes, (1 - share) / max(self.classes - 1, 1))
        if earlier is not None and first < self.classes - 1:
            shares[:] = (1 - share - earlier / self.size) / (self.classes - 1 - first)
            shares[list(self.earlier)] = earlier / self.size / first
        shares[self.label] = share
        return np.maximum(shares, 0.0), error

    @cached_property
    def log_worlds(self) -> float | None:
        """The log of the number of assignments, None if they are too many to be counted."""
        factorials = log_factorials(self.size)
        if self.counts is not None:
            return float(factorials[self.size] - factorials[list(self.counts)].sum())
        if self.support or self.among is not None:
            return None
        first = len(self.earlier)
        if self.labelled is None:
            if not is_counted(self.size, self.classes):
                return None
            return float(np.logaddexp.reduce(label_worlds(self.size, self.classes, first).logs))
        wrong = self.size - self.labelled
        if not self._others_countable(self.labelled):
            return None
        chosen = factorials[self.size] - factorials[self.labelled] - factorials[wrong]
        if first:
            return float(chosen) + tied_ways(wrong, first, self.classes - 1 - first, self.labelled)[0]
        return float(chosen) + log_ways(wrong, self.classes - 1, self.labelled)

    def _others_countable(self, labelled: int) -> bool:
        wrong = self.size - labelled
        return wrong <= labelled or (self.classes - 1) * wrong * labelled <= COUNTABLE

    # -- all worlds ---------------------------------------------------------------------------

    def tables(self, sizes: Integers, limit: int) -> Tables | None:
        """All worlds of people in cells of these sizes, up to exchanges in a cell; None if above the limit."""
        if self.support or self.among is not None:
            return None
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
        else:
            least = least_frequent_maximum(self.size, self.classes)
            possible = range(least, self.size + 1) if self.labelled is None else (self.labelled,)
            for labelled in possible:
                caps = np.full(self.classes, labelled, dtype=np.int64)
                caps[list(self.earlier)] -= 1
                if int(caps.sum()) >= self.size:
                    yield caps

    # -- some worlds --------------------------------------------------------------------------

    @property
    def drawable(self) -> bool:
        if self.support or self.among is not None:
            return False
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
        wrong, values = self.size - self.labelled, self.classes - 1
        if not self.earlier or wrong < self.labelled:
            found[:, others] = draw_capped(wrong, values, self.labelled, number, rng)
            return found
        kept: list[Integers] = []  # without those in which an earlier value would have been the label
        earlier = np.isin(np.flatnonzero(others), self.earlier)
        while sum(map(len, kept)) < number:
            some = draw_capped(wrong, values, self.labelled, number, rng)
            kept.append(some[(some[:, earlier] < self.labelled).all(axis=1)])
        found[:, others] = np.concatenate(kept)[:number]
        return found

    def _draw_labelled(self, number: int, rng: np.random.Generator) -> Integers:
        """Any assignment, until the label is most frequent: as all values are alike, at least every K-th time."""
        found: list[Integers] = []
        while sum(map(len, found)) < number:
            counts = rng.multinomial(self.size, np.full(self.classes, 1 / self.classes), size=number)
            fine = counts[:, self.label] == counts.max(axis=1)
            if self.earlier:
                fine &= (counts[:, list(self.earlier)] < counts[:, self.label, None]).all(axis=1)
            found.append(counts[fine])
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


# -- Worlds of several leaves together: all of them or a sample, and which of them agree with the choice of a split.

TIE = 1e-9  # per person: splits whose impurities differ by less are tied
ENTRIES = 5_000_000  # of the tables of one piece


class Choice(Protocol):
    """One node that splits: the groups of its profiles under the split it has and under those it could have had."""

    @property
    def node(self) -> int: ...

    @property
    def chosen(self) -> Integers: ...

    @property
    def candidates(self) -> Sequence[object]: ...

    @property
    def others(self) -> Sequence[Integers]: ...  # one for each candidate

    @property
    def measure(self) -> str: ...


@dataclass(frozen=True, eq=False)
class Rule:
    """A choice in terms of cells: the group of each cell, -1 for none, under the split and under all others."""

    chosen: Integers
    others: list[Integers]
    measure: str

    @classmethod
    def of(cls, chosen: Integers, others: Sequence[Integers], measure: str) -> Rule:
        """Without the splits that cannot leave less impurity than the chosen one, since it divides their groups:
        impurity is concave."""
        distinct = {groups.tobytes(): groups for groups in others}
        return cls(chosen, [groups for groups in distinct.values() if not _divides(chosen, groups)], measure)

    def keeps(self, tables: Tables, sizes: Integers) -> Integers:
        """The worlds in which no other split leaves less impurity than the chosen one."""
        kept = np.arange(tables.shape[1])
        least = remaining_impurity(tables, self.chosen, self.measure) - TIE * int(sizes.sum())
        for groups in self.others:
            kept = kept[least[kept] <= remaining_impurity(tables[:, kept], groups, self.measure)]
        return kept


@dataclass(frozen=True, eq=False)
class Part:
    """Worlds of some cells: all of them, with the log of the assignments that each stands for, or a sample."""

    cells: Integers
    sizes: Integers
    tables: Tables
    logs: Floats | None  # None for a sample, whose worlds are equally likely

    @property
    def number(self) -> int:
        return int(self.tables.shape[1])

    @property
    def weights(self) -> Floats:
        if self.logs is None:
            return np.full(self.number, 1 / self.number)
        weights = np.exp(self.logs - self.logs.max())
        return np.asarray(weights / weights.sum())

    @property
    def shares(self) -> Floats:
        """How likely each value is for anybody of a cell [cell, value]."""
        return np.asarray(np.einsum("w,cwx->cx", self.weights, self.tables) / self.sizes[:, None])

    @property
    def error(self) -> float:
        """The largest standard error of these."""
        if self.logs is not None:
            return 0.0
        squares = np.einsum("cwx,cwx->cx", self.tables, self.tables, dtype=np.float64) / self.number
        variance = squares / self.sizes[:, None] ** 2 - self.shares**2
        return math.sqrt(max(float(variance.max()), 0.0) / self.number)

    @property
    def log_worlds(self) -> float | None:
        return None if self.logs is None else float(np.logaddexp.reduce(self.logs))

    def picked(self, worlds: Integers) -> Part:
        logs = None if self.logs is None else self.logs[worlds]
        return Part(self.cells, self.sizes, self.tables[:, worlds], logs)


@dataclass(frozen=True, eq=False)
class Leaf:
    """The cells of one leaf, and what it says of them."""

    number: int
    quota: Quota
    cells: Integers
    sizes: Integers

    def listed(self, limit: int) -> Part | None:
        """All of its worlds, if they are not too many."""
        tables = self.quota.tables(self.sizes, _at_most(limit, self.cells, self.quota.classes))
        if tables is None:
            return None
        factorials = log_factorials(self.quota.size)
        logs = factorials[self.sizes].sum() - factorials[tables].sum(axis=(0, 2))
        return Part(self.cells, self.sizes, tables, logs)


def listed(pieces: Sequence[Leaf | Part], limit: int) -> Part | None:
    """All worlds of pieces that have nothing to do with each other; None if they are too many."""
    parts: list[Part] = []
    for piece in pieces:
        part = piece.listed(limit) if isinstance(piece, Leaf) else piece
        if part is None or part.logs is None:
            return None
        parts.append(part)
    cells = np.concatenate([part.cells for part in parts])
    if math.prod(part.number for part in parts) > _at_most(limit, cells, parts[0].tables.shape[2]):
        return None
    found = parts[0]
    for part in parts[1:]:
        found = _product(found, part)
    return found


def _product(one: Part, other: Part) -> Part:
    """Every world of one with every world of the other."""
    assert one.logs is not None and other.logs is not None
    first = np.repeat(np.arange(one.number), other.number)
    second = np.tile(np.arange(other.number), one.number)
    return Part(
        np.concatenate([one.cells, other.cells]),
        np.concatenate([one.sizes, other.sizes]),
        np.concatenate([one.tables[:, first], other.tables[:, second]]),
        one.logs[first] + other.logs[second],
    )


def drawn(pieces: Sequence[Leaf | Part], start: int, number: int, rng: np.random.Generator) -> Part:
    """A sample of worlds of pieces that have nothing to do with each other.

    A piece that is a sample itself gives its worlds from `start` on, each once, so that the worlds of the sample stay
    independent of one another; there may then be fewer than were asked for.
    """
    found: list[Tables] = []
    for piece in pieces:
        if isinstance(piece, Leaf):
            found.append(piece.quota.draw(piece.sizes, number, rng))
        elif piece.logs is None:
            found.append(piece.tables[:, start : start + number])
        else:
            found.append(piece.tables[:, rng.choice(piece.number, size=number, p=piece.weights)])
    least = min(tables.shape[1] for tables in found)
    return Part(
        np.concatenate([piece.cells for piece in pieces]),
        np.concatenate([piece.sizes for piece in pieces]),
        np.concatenate([tables[:, :least] for tables in found]),
        None,
    )


def remaining_impurity(tables: Tables, groups: Integers, measure: str) -> Floats:
    """sum over groups of n_g I(shares of values in g), in each world; cells in no group (-1) do not count."""
    order = np.argsort(groups, kind="stable")[int((groups < 0).sum()) :]
    if not len(order):
        return np.zeros(tables.shape[1])
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    counts = np.add.reduceat(tables[order], starts, axis=0, dtype=np.int32).astype(np.float64)  # [group, world, value]
    totals = counts[:, :1].sum(axis=2)  # the same in all worlds
    if measure == GINI:
        return np.asarray((totals - (counts**2).sum(axis=2) / totals).sum(axis=0))
    return np.asarray((_n_log_n(totals) - _n_log_n(counts).sum(axis=2)).sum(axis=0))


def _divides(finer: Integers, groups: Integers) -> bool:
    """Is each group of one split within a group of the other, where everybody has one?"""
    if (groups < 0).any() or (finer < 0).any():
        return False
    pairs = np.unique(finer * (int(groups.max(initial=0)) + 1) + groups)
    return len(pairs) == len(np.unique(finer))


def _n_log_n(numbers: Floats) -> Floats:
    return np.asarray(numbers * np.log(np.maximum(numbers, 1)))


def _at_most(limit: int, cells: Integers, classes: int) -> int:
    """The limit of worlds, or of what their tables need."""
    return min(limit, ENTRIES // (len(cells) * classes))

"""How nodes find their splits: by a private selection, by thresholds bought before it, by noisy counts, by coins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.kernel import MAX_CELLS, Criterion, Domain, InfoGain, Numeric, Parts, PerPart
from privet.lab import GainRatio
from privet.learners.criteria import rule_of
from privet.learners.plan import Level, Plan
from privet.learners.sites import settled

SplitOf = str | tuple[str, Fraction]  # an attribute by its cells, or at a threshold
Attributes = tuple[str, ...]
Asked = dict[str, list[Any]]  # each question, and what it released for every node
Room = Mapping[str, tuple[int, int]]  # where coins may cut numeric attributes: the right side begins in [low, high)


def find_splits(parts: Parts, unused: PerPart[Attributes], plan: Plan, shares: Level) -> tuple[list[SplitOf], Asked]:
    """The split of each node among the attributes its path has not used, and what was asked for it."""
    splits: list[SplitOf] = []
    asked: Asked = {}
    for nodes in _batches(parts):
        some, names = parts.take(nodes), unused.take(nodes)
        if plan.split == "noisy-counts":
            splits += _by_noisy_counts(some, names, plan, shares, asked)
        else:
            splits += _by_selection(some, names, plan, shares, asked)
    return splits, asked


def attribute_of(split: SplitOf) -> str:
    return split if isinstance(split, str) else split[0]


def cut_of(split: SplitOf, domain: Domain) -> int:
    """The grid index from which rows go right, -1 for a split into cells."""
    if not isinstance(split, tuple):
        return -1
    column = domain.numeric(split[0])
    return int((split[1] - column.low) / column.step) + 1


def split_at(name: str, at: int, domain: Domain) -> SplitOf:
    """The split of an attribute from whose grid index `at` rows go right, -1 for one into cells."""
    return name if at < 0 else (name, domain.numeric(name).value_at(at - 1))


def children_of(split: SplitOf, domain: Domain) -> int:
    """How many children a split has."""
    column = domain[attribute_of(split)]
    return 2 + column.missing if isinstance(split, tuple) else column.size


def room_of(plan: Plan, domain: Domain) -> Room:
    """Where coins may cut at the root: nowhere, if numbers split into their bins."""
    if plan.numeric == "bins":
        return {}
    return {name: (1, c.grid_size) for name in domain.attributes if isinstance(c := domain[name], Numeric)}


def left_to_coins(unused: Attributes, room: Room) -> Attributes:
    """The attributes by which coins can divide a node: a number needs room for a threshold."""
    if not room:
        return unused
    return tuple(name for name in unused if name not in room or room[name][0] < room[name][1])


def split_by_coins(unused: Attributes, room: Room, domain: Domain, rng: np.random.Generator) -> SplitOf:
    """A random attribute that the path has left, or a random threshold of a numeric one: no row is looked at."""
    names = left_to_coins(unused, room)
    name = names[int(rng.integers(len(names)))]
    return split_at(name, int(rng.integers(*room[name])) if name in room else -1, domain)


def rooms_below(room: Room, split: SplitOf, domain: Domain) -> list[Room]:
    """Where coins may cut in each child of a split."""
    column = domain[attribute_of(split)]
    if not isinstance(split, tuple) or not isinstance(column, Numeric):
        return [room] * column.size
    low, high = room[column.name]
    at = cut_of(split, domain)
    sides = [(low, min(at, high)), (max(low, at + 1), high), *[(0, 0)] * column.missing]
    return [{**room, column.name: side} for side in sides]


def _batches(parts: Parts) -> Iterator[NDArray[np.intp]]:
    """As many nodes at a time as one question may have cells: disjoint parts share the charge all the same."""
    domain = parts.domain
    cells = sum(domain[name].size for name in domain.attributes) * len(domain.classes)
    most = max(1, MAX_CELLS // cells)
    for start in range(0, len(parts), most):
        yield np.arange(start, min(start + most, len(parts)))


def _by_selection(parts: Parts, unused: PerPart[Attributes], plan: Plan, shares: Level, asked: Asked) -> list[SplitOf]:
    rule = rule_of(plan, parts.domain, settled(plan.criterion))
    candidates: Sequence[Any] = unused
    if plan.numeric == "separate":
        candidates = _with_points(parts, unused, plan, rule, shares, asked)
    choices = parts.select(
        rule,
        math.inf if plan.is_exact else shares.split,
        attributes=candidates,
        thresholds=plan.numeric == "joint",
        mechanism=settled(plan.mechanism),
        monotone=plan.monotone,
    )
    asked.setdefault("split", []).extend(choices)
    return [str(choice) if choice.point is None else (str(choice), choice.point) for choice in choices]


def _with_points(
    parts: Parts, unused: PerPart[Attributes], plan: Plan, rule: Criterion, shares: Level, asked: Asked
) -> list[list[Any]]:
    """A threshold for each numeric attribute of each node, before the attribute is chosen."""
    domain = parts.domain
    numeric = [name for name in domain.attributes if isinstance(domain[name], Numeric)]
    # by information gain where the criterion is C4.5's gain ratio, as Quinlan does
    by = InfoGain(domain.max_rows or 2**40) if isinstance(rule, GainRatio) else rule
    points = {}
    for name in numeric:
        epsilon = math.inf if plan.is_exact else shares.points / len(numeric)
        points[name] = parts.select(by, epsilon, attributes=[name], thresholds=True)
        asked.setdefault(f"threshold of {name}", []).extend(points[name])
    return [
        [(name, points[name][node].point) if name in points else name for name in names]
        for node, names in enumerate(unused)
    ]


def _by_noisy_counts(
    parts: Parts, unused: PerPart[Attributes], plan: Plan, shares: Level, asked: Asked
) -> list[SplitOf]:
    """The attribute of the best score after noise on every count it is made of (SuLQ)."""
    target = parts.domain.target_column.name

    def groups_of(names: Attributes) -> tuple[tuple[str, ...], ...]:
        joint = tuple((name, target) for name in names)
        return joint + tuple((name,) for name in names) if plan.marginals else joint

    groups = unused.map(groups_of)
    splits: list[SplitOf] = []
    for names, own in zip(unused, parts.histograms(groups, shares.split), strict=True):
        asked.setdefault("all counts", []).append(_Together(own))
        tables = [each.values for each in own]
        totals: Sequence[Any] = tables[len(names) :] or [None] * len(names)
        scores = [_noisy_gain(counts, total) for counts, total in zip(tables, totals, strict=False)]
        splits.append(names[int(np.argmax(scores))])
    return splits


class _Together:
    """Several histograms of one node as one step: they cost their sum."""

    def __init__(self, releases: Sequence[Any]) -> None:
        self.epsilon = sum((each.epsilon for each in releases), Fraction(0))
        self.about, self.private = releases[0].about, releases[0].private


def _noisy_gain(counts: NDArray[Any], totals: NDArray[Any] | None) -> float:
    """sum n_jc lg(n_jc / n_j) over noisy counts, leaving out what is not above 0."""
    cells = counts.astype(np.float64)
    rows = np.maximum(cells, 0).sum(axis=1) if totals is None else totals.astype(np.float64)
    rows = np.broadcast_to(rows[:, None], cells.shape)
    fine = (cells > 0) & (rows > 0)
    return float((cells[fine] * np.log2(cells[fine] / rows[fine])).sum())

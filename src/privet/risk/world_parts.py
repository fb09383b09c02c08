"""Worlds of several leaves together: all of them or a sample, and which of them agree with the choice of a split."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privet.risk.tree import GINI, Floats, Integers
from privet.risk.world_counting import log_factorials
from privet.risk.world_leaves import Quota, Tables

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

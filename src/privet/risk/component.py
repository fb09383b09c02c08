"""The people below one node, as few unknowns as the active constraints can tell apart.

Constraints see sums over cells (leaf x groups of the active candidates) alone and entropy is concave, so people of
one cell are alike in the optimum: averaging inside a cell loses nothing. What a leaf determines is a constant.

The unknowns are masses u[cell, value]. Group masses are linear in them, y = G u + base, and group sizes are known, so
impurity is a sum over values: n_v - sum y^2 / n_v, or -sum y ln(y / n_v). With h_j = E(chosen) - E(other) - tolerance,
per person of the node, every demand is h_j <= 0: a difference of concave functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privet.risk.constraints import TINY, Candidate, Choice
from privet.risk.leaf_shares import leaf_shares
from privet.risk.publication import COUNTS, Publication
from privet.risk.tree import GINI, Floats, Integers

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Demand:
    """An internal constraint that is active: a node's choice, and a split that it was preferred to."""

    choice: Choice
    candidate: Candidate

    @property
    def key(self) -> tuple[int, Candidate]:
        return self.choice.node, self.candidate


class Component:
    """The unknown masses below a node, what leaves say of them, and the demands as functions of them."""

    def __init__(
        self, publication: Publication, top: int, demands: Sequence[Demand], tolerance: float, tilt: Floats
    ) -> None:
        self.publication, self.demands, self.tolerance, self.tilt = publication, demands, tolerance, tilt
        self.measure = demands[0].choice.measure
        self.values = publication.classes
        here = publication.profiles[top]
        self.profiles = here[publication.leaf[here] >= 0]
        self._collapse()
        self._read_leaves()
        self._group()

    def _collapse(self) -> None:
        """Cells: profiles that share a leaf and, in every demand about them, a group."""
        publication, profiles = self.publication, self.profiles
        leaf = publication.leaf[profiles]
        signs, place = [leaf], np.full(len(publication.people), -2, dtype=np.int64)
        for demand in self.demands:
            for groups in (demand.choice.chosen, demand.choice.groups(demand.candidate)):
                place[demand.choice.profiles] = groups
                signs.append(place[profiles])
                place[:] = -2
        _, first, cell = np.unique(np.stack(signs, axis=1), axis=0, return_index=True, return_inverse=True)
        self.cell: Integers = cell.ravel()
        self.people = publication.people.sizes[profiles].astype(np.float64)
        self.all_sizes = np.bincount(self.cell, self.people)
        self.all_leaves, self.first = leaf[first], first

    def _read_leaves(self) -> None:
        """What leaves say of their cells: masses that are known, and cells with nothing left to know."""
        publication = self.publication
        leaves, at = np.unique(self.all_leaves, return_inverse=True)
        cells = np.bincount(at)
        counts = publication.level == COUNTS
        shares = np.stack([leaf_shares(publication, int(leaf), self.tilt) for leaf in leaves])
        settled = np.array([publication.pure(int(leaf)) for leaf in leaves]) | (cells == 1) & counts
        self.all_shares, self.open = shares[at], np.flatnonzero(~settled[at])
        self.settled = settled[at]
        kept, self.leaf = np.unique(at[self.open], return_inverse=True)  # the leaf of each open cell
        self.size = self.all_sizes[self.open]
        self.mass = float(self.size.sum())
        self.leaf_size = np.bincount(self.leaf, self.size, minlength=len(kept))
        self.flat = shares[kept]  # the closed form of each leaf
        labels = np.array([publication.label(int(leaf)) for leaf in leaves[kept]], dtype=np.int64)
        said = np.full((len(kept), self.values), counts, dtype=np.bool_)  # which masses a leaf says
        said[np.arange(len(kept)), labels] = True
        self.said = said[self.leaf]
        self.target = np.where(said, self.flat * self.leaf_size[:, None], np.nan)
        single = cells[kept] == 1
        empty = said & (self.target <= 0)
        # a constant: said of a leaf that is one cell, or a value that nobody of the leaf has
        self.constant: Mask = ((said & single[:, None]) | empty)[self.leaf]
        self.free: Mask = ~empty[self.leaf]
        rows = [
            (leaf, value)
            for leaf in np.flatnonzero(~single).tolist()
            for value in self._independent(np.flatnonzero(said[leaf] & ~empty[leaf]).tolist(), counts)
        ]
        self.row_leaf = np.array([leaf for leaf, _ in rows], dtype=np.int64)
        self.row_value = np.array([value for _, value in rows], dtype=np.int64)
        self.rows = (self.leaf[None] == self.row_leaf[:, None]).astype(np.float64)
        # no value above the label: can bind only where the label has at most half
        rate = self.flat[np.arange(len(kept)), labels]
        capped = np.flatnonzero((1 - rate > rate - 1e-12) & (not counts))
        self.caps = (self.leaf[None] == capped[:, None]).astype(np.float64)
        self.cap = ((rate + 1e-6 * (1 + rate)) * self.leaf_size)[capped]  # interior by a millionth
        self.cap_weight = self.leaf_size[capped] / self.mass / self.values if len(capped) else np.empty(0)
        self.under: Mask = np.arange(self.values)[None] != labels[capped][:, None]

    @staticmethod
    def _independent(values: list[int], all_said: bool) -> list[int]:
        """Where all masses are said, the last follows from the sizes of the cells."""
        return values[:-1] if all_said else values

    def _group(self) -> None:
        """Groups of the splits that demands speak of: which open cells are in each, its settled mass and its size."""
        fixed = np.zeros((len(self.all_sizes), self.values))
        fixed[self.settled] = (self.all_sizes[:, None] * self.all_shares)[self.settled]
        members: list[Floats] = []
        base: list[Floats] = []
        sizes: list[float] = []
        known: dict[tuple[int, Candidate | None], list[int]] = {}
        place = np.full(len(self.publication.people), -1, dtype=np.int64)

        def groups(choice: Choice, candidate: Candidate | None) -> list[int]:
            key = (choice.node, candidate)
            if key not in known:
                place[:] = -1
                place[choice.profiles] = choice.chosen if candidate is None else choice.groups(candidate)
                of_cell = place[self.profiles[self.first]]
                known[key] = []
                for group in np.unique(of_cell[of_cell >= 0]):
                    inside = of_cell == group
                    known[key].append(len(members))
                    members.append(inside[self.open].astype(np.float64))
                    base.append(fixed[inside].sum(axis=0))
                    sizes.append(float(self.all_sizes[inside].sum()))
            return known[key]

        pairs = [(groups(each.choice, None), groups(each.choice, each.candidate)) for each in self.demands]
        self.members, self.base, self.group_size = np.array(members), np.array(base), np.array(sizes)
        self.alive: Mask = np.asarray(self.members.any(axis=1))
        weight = np.array([self.group_size[chosen].sum() for chosen, _ in pairs])  # people of the node
        self.weight = weight / self.mass
        self.chosen, self.other = np.zeros((2, len(pairs), len(members)))
        for row, (chosen, other) in enumerate(pairs):
            self.chosen[row, chosen] += 1 / weight[row]
            self.other[row, other] += 1 / weight[row]
        self.difference = self.chosen - self.other
        self.curved = np.flatnonzero(self.other.any(axis=0) & self.alive)

    # -- points -----------------------------------------------------------------------------

    def start(self, rng: np.random.Generator, noise: float) -> Floats:
        """The closed form of each leaf, and with noise a random point around it inside the caps."""
        flat = self.flat[self.leaf] * self.size[:, None]
        if noise <= 0:
            return flat
        shaken = np.exp(noise * (rng.standard_normal((1, self.values)) + 0.5 * rng.standard_normal(flat.shape)))
        moved = self.restored(np.where(self.said & ~self.said.all(axis=1, keepdims=True), flat, flat * shaken))
        for share in np.linspace(1, 0, 11):
            point = share * moved + (1 - share) * flat
            if (self.caps @ point < 0.999 * self.cap[:, None])[self.under].all():
                return np.asarray(point)
        return flat

    def gather(self, shares: Floats) -> Floats:
        """Masses of the open cells for shares of all profiles of the table."""
        masses = np.zeros((len(self.all_sizes), self.values))
        np.add.at(masses, self.cell, shares[self.profiles] * self.people[:, None])
        return np.where(self.free, np.maximum(masses[self.open], 1e-12 * self.size[:, None]), 0.0)

    def expand(self, masses: Floats) -> Floats:
        """The shares of the component's profiles."""
        shares = self.all_shares.copy()
        shares[self.open] = masses / self.size[:, None]
        return np.asarray(shares[self.cell])

    def restored(self, masses: Floats) -> Floats:
        """Cell sizes and the masses that leaves say, imposed again by scaling: rounding of steps does not add up."""
        found = masses
        for _ in range(2):
            totals = np.zeros_like(self.target)
            np.add.at(totals, self.leaf, found)
            factor = np.where(np.isnan(self.target), 1.0, self.target / np.maximum(totals, TINY))
            found = found * factor[self.leaf]
            said = np.where(self.said, found, 0.0)
            partly = np.asarray(~self.said.all(axis=1))
            held = np.minimum(said.sum(axis=1), self.size * (1 - 1e-15))
            loose = np.where(self.said, 0.0, found).sum(axis=1)
            scale = np.where(partly, (self.size - held) / np.maximum(loose, TINY), self.size / found.sum(axis=1))
            found = np.where(self.said & partly[:, None], found, found * scale[:, None])
        return np.where(self.free, np.maximum(found, 1e-200), 0.0)

    # -- values -----------------------------------------------------------------------------

    def entropy(self, masses: Floats) -> float:
        """The entropy of the open cells, times their mass."""
        return float(-(masses * self.logs(masses)).sum())

    def logs(self, masses: Floats) -> Floats:
        """Logarithms of the shares in cells, 0 where a value cannot be."""
        shares = np.where(self.free, masses / self.size[:, None], 1.0)
        return np.log(np.maximum(shares, TINY))

    def broken(self, masses: Floats) -> tuple[Floats, Floats]:
        """h, which should be at most 0, and the masses of the groups."""
        groups = self.members @ masses + self.base
        size = self.group_size
        if self.measure == GINI:
            impure = size - (groups * groups).sum(axis=1) / size
        else:
            impure = -(groups * np.log(np.maximum(groups, TINY) / size[:, None])).sum(axis=1)
        return self.difference @ impure - self.tolerance, groups

    def violation(self, masses: Floats) -> float:
        """The largest E(chosen) - E(other), per person of the node."""
        return float(self.broken(masses)[0].max() + self.tolerance)

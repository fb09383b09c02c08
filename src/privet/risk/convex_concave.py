"""Maximum entropy under demands that are differences of concave functions: a penalty convex-concave procedure.

Minimise, with cell sizes and the masses that leaves say as equalities,

    F = sum u ln(u / n) / S - tilt . u / S + sum_j psi(h_j) - mu barriers(u > 0, caps),
    psi(h) = min_e tau_j e - mu_j ln(e - h) - mu_j ln e,

the slack penalty of the convex-concave procedure (Lipp and Boyd 2016) with a logarithmic barrier and the slack
eliminated. Newton's method with Armijo's rule descends; where F bends down, the concave curvature of E(chosen) is
dropped, which leaves a convex model that lies above F. tau rises until no demand is broken, then mu falls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgetrf, dgetrs

from privet.risk.constraints import TINY, Candidate, Choice, leaf_shares
from privet.risk.publication import COUNTS, Publication
from privet.risk.tree import GINI, Floats, Integers

# -- The people below one node, as few unknowns as the active constraints can tell apart.
#
# Constraints see sums over cells (leaf x groups of the active candidates) alone and entropy is concave, so people of
# one cell are alike in the optimum: averaging inside a cell loses nothing. What a leaf determines is a constant.
#
# The unknowns are masses u[cell, value]. Group masses are linear in them, y = G u + base, and group sizes are known, so
# impurity is a sum over values: n_v - sum y^2 / n_v, or -sum y ln(y / n_v). With h_j = E(chosen) - E(other) -
# tolerance, per person of the node, every demand is h_j <= 0: a difference of concave functions.

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
        self.aimed = np.nan_to_num(self.target)
        self.inside = (self.leaf[None] == np.arange(len(kept))[:, None]).astype(np.float64)
        self.partly: Mask = np.asarray(~self.said.all(axis=1))
        self.held: Mask = self.said & self.partly[:, None]
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
        self.weight = weight / max(self.mass, TINY)
        self.chosen, self.other = np.zeros((2, len(pairs), len(members)))
        for row, (chosen, other) in enumerate(pairs):
            self.chosen[row, chosen] += 1 / weight[row]
            self.other[row, other] += 1 / weight[row]
        self.difference = self.chosen - self.other
        self.node_share = 1 / weight
        self.chosen_group, self.other_group = (self._of_cells([pair[side] for pair in pairs]) for side in (0, 1))
        # what the Hessian of a value has besides its diagonal: groups and leaves of several cells
        self.alone: Mask = self.caps.sum(axis=1) == 1
        self.alone_cell: Integers = np.nonzero(self.caps[self.alone])[1]
        cells = self.members.sum(axis=1)
        bends = self.other.any(axis=0) & self.alive
        self.convex, self.convex_cells = np.flatnonzero(bends & (cells > 1)), np.flatnonzero(bends & (cells == 1))
        self.concave = np.flatnonzero(self.chosen.any(axis=0) & self.alive)
        self.bent = np.concatenate([self.members[self.convex], self.caps[~self.alone], self.members[self.concave]])

    def _of_cells(self, groups: Sequence[Sequence[int]]) -> Integers:
        """For each demand the group of each cell under one of its two splits, the last number for none."""
        found = np.full((len(groups), len(self.size)), len(self.members), dtype=np.int64)
        for row, some in enumerate(groups):
            for group in some:
                found[row, self.members[group] > 0] = group
        return found

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
            factor = self.aimed / np.maximum(self.inside @ found, TINY)
            found = np.where(self.said, found * factor[self.leaf], found)
            sums = found.sum(axis=1)
            held = np.minimum((found * self.said).sum(axis=1), self.size * (1 - 1e-15))
            loose = np.maximum((found * ~self.said).sum(axis=1), TINY)
            scale = np.where(self.partly, (self.size - held) / loose, self.size / sums)
            found = np.where(self.held, found, found * scale[:, None])
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

    def is_convex(self, force: Floats) -> bool:
        """Is the Lagrangian convex with these multipliers of demands? Then a point where it is least is the optimum.

        E(chosen) alone bends it down. By the log-sum inequality the entropy of the cells of a group outweighs that of
        the group as long as a cell's groups have no more than its own weight, or half of it for Gini's impurity.
        """
        inside = self.chosen_group < len(self.members)
        weights = self.mass * ((force * self.node_share) @ inside)
        return bool(weights.max() <= (0.5 if self.measure == GINI else 1.0))


LAST_MU = 1e-6  # the final weight of the barriers
LARGEST_TAU = 1e5
AGREED = 2e-6  # entropies per person that count as one


@dataclass(frozen=True, eq=False)
class Solved:
    """Masses of the open cells, by how much the worst demand is broken, and what it took."""

    masses: Floats
    violation: float
    tau: float  # the penalty it ended with: a warm start begins there
    steps: int
    starts: int = 1
    spread: float = 0.0  # of the entropies of the starts that met all demands, times mass
    convex: bool = False  # no other start leads to more


def solve(
    part: Component,
    rng: np.random.Generator,
    enough: float,
    *,
    starts: int = 1,
    warm: tuple[Floats, float] | None = None,
    tries: int = 4,
) -> Solved:
    """The best of some starts: the first raises its penalty slowly from the closed form, others are random and strict.

    A penalty that rises slowly forgets where it began, so several such starts would be one. Goes on for up to `tries`
    more while none meets all demands, and no further once two agree or the problem is found to be convex; `warm` is a
    solution for fewer demands to begin with, and its penalty.
    """
    best: Solved | None = None
    entropies: list[float] = []
    steps = number = 0
    convex = False
    for number, descent in enumerate(_descents(part, rng, starts, warm, tries), start=1):
        masses, tau, took, settled = descent
        steps += took
        found = Solved(masses, part.violation(masses), tau, steps)
        if best is None or _rank(part, found, enough) < _rank(part, best, enough):
            best = found
        if found.violation <= enough:
            entropies.append(part.entropy(masses))
            convex = settled and part.is_convex(_force(part, masses, tau))
        agreed = len(entropies) > 1 and np.ptp(entropies) <= AGREED * part.mass
        if best.violation <= enough and (number >= starts or convex or agreed):
            break
    assert best is not None
    spread = max(entropies) - min(entropies) if entropies else 0.0
    return Solved(best.masses, best.violation, best.tau, steps, number, spread, convex)


def _force(part: Component, masses: Floats, tau: float) -> Floats:
    """The multiplier of each demand where a descent ended."""
    return _penalty(part.broken(masses)[0], LAST_MU * part.weight, tau * part.weight)[1]


def _rank(part: Component, found: Solved, enough: float) -> tuple[float, float]:
    return max(found.violation, enough), -part.entropy(found.masses)


def _descents(
    part: Component, rng: np.random.Generator, starts: int, warm: tuple[Floats, float] | None, tries: int
) -> Iterator[tuple[Floats, float, int, bool]]:
    if warm is not None:
        shares, tau = warm
        point = 0.9 * part.gather(shares) + 0.1 * part.start(rng, 0.0)
        yield _descend(part, rng, point, mu=8e-4, tau=tau, budget=200, kicks=0)
    yield _descend(part, rng, part.start(rng, 0.05))
    for _ in range(starts - 1 + tries):
        yield _descend(part, rng, part.start(rng, 1.5), tau=20.0)


def _descend(
    part: Component,
    rng: np.random.Generator,
    masses: Floats,
    mu: float = 0.02,
    tau: float = 0.5,
    budget: int = 1500,
    kicks: int = 8,
) -> tuple[Floats, float, int, bool]:
    """Raise tau while a demand is broken, lower mu once none is by much; shake a point that is stuck.

    The point, its tau, the steps, and whether it got as far as the last mu.
    """
    steps = kicked = stuck = 0
    settled = False
    duals, last = None, np.inf
    while True:
        final = mu == LAST_MU
        enough = max((0.02 if final else 0.1) * mu, 1e-9)
        masses, duals, took, fine = _centred(part, masses, duals, mu, tau, 80 if final else 40, enough)
        steps += took
        broken = float(part.broken(masses)[0].max())
        if not fine or steps > budget:
            break
        stuck = stuck + 1 if broken > 1e-6 and broken > 0.9 * last and tau > 4 else 0
        if stuck and kicked < kicks:
            # a stationary point that breaks a demand, often a saddle between values that are interchangeable
            kicked += 1
            masses, duals, last = _kicked(part, masses, rng, 0.3 * 1.5**kicked), None, np.inf
            tau = max(tau, 30.0) if kicked > 2 else tau
            continue
        if stuck > 1 and not kicks:  # a warm start that leads nowhere
            break
        last = broken
        if broken > 0 and tau < LARGEST_TAU:
            tau *= 2
        elif final:
            settled = True
            break
        if broken < 0.01 or tau > 50:
            mu = 0.2 * mu if 0.2 * mu > 2 * LAST_MU else LAST_MU
    return masses, tau, steps, settled


def _kicked(part: Component, masses: Floats, rng: np.random.Generator, size: float) -> Floats:
    noise = rng.standard_normal((1, part.values)) + rng.standard_normal(masses.shape)
    moved = part.restored(masses * np.exp(size * noise))
    for share in (1.0, 0.5, 0.25, 0.1, 0.03):
        point = share * moved + (1 - share) * masses
        if np.isfinite(_value(part, point, 1e-3, 1.0)):
            return np.asarray(point)
    return masses


def _centred(
    part: Component, masses: Floats, duals: _Duals | None, mu: float, tau: float, most: int, enough: float
) -> tuple[Floats, _Duals | None, int, bool]:
    """Newton steps for one mu and tau. Where a step would send masses far below a tenth, they are kept nearer, each
    for itself, and the step is taken anew, instead of shortening it for all."""
    value = _value(part, masses, mu, tau)
    near = np.zeros_like(masses)
    refused = steps = 0
    while steps < most:
        model = _Model(part, masses, mu, tau, near, duals)
        move, decrease = model.direction()
        steps += 1
        if not np.isfinite(decrease):
            return masses, duals, steps, False
        if decrease * (1 + near.max()) < enough:
            break
        falls = -move / np.where(part.free, masses, 1.0)
        length = min(1.0, 0.9 / max(float(falls.max()), 0.9))
        if length < 0.3 and refused < 4:
            near = (1 + near) * np.maximum(falls / 0.6, 1.0) - 1
            refused += 1
            continue
        refused, moved, whole = 0, None, length
        for _ in range(25):
            point = part.restored(masses + length * move)
            reached = _value(part, point, mu, tau)
            if reached <= value - 1e-4 * length * decrease:
                moved = point
                break
            length *= 0.5
        if moved is None:
            break
        duals = model.duals_after(move, length)
        masses, gained, value = moved, value - reached, reached
        near = near / 4 if length == whole else near if length == 0.5 * whole else np.maximum(2 * near, 1.0)
        if gained < enough * 1e-2:
            break
    return part.restored(masses), duals, steps, True


def _penalty(broken: Floats, mu: Floats, tau: Floats) -> tuple[Floats, Floats]:
    """psi(h) and its slope, which lies between 0 and tau; written so that neither sign of h loses digits."""
    t = tau * broken
    root = np.sqrt(t * t + 4 * mu * mu)
    above = np.where(t > 0, t + root, 4 * mu * mu / (root - t + TINY))
    below = np.where(t < 0, root - t, 4 * mu * mu / (root + t + TINY))
    slack, room = (2 * mu + above) / (2 * tau), (2 * mu + below) / (2 * tau)
    return tau * slack - mu * np.log(room) - mu * np.log(slack), mu / room


def _value(part: Component, masses: Floats, mu: float, tau: float) -> float:
    """F, infinite outside."""
    if (masses[part.free] <= 0).any():
        return np.inf
    logs = part.logs(masses)
    found = (masses * (logs - part.tilt)).sum() / part.mass
    found -= mu * ((part.size / part.mass / part.values)[:, None] * logs).sum()
    found += _penalty(part.broken(masses)[0], mu * part.weight, tau * part.weight)[0].sum()
    if len(part.cap):
        room = part.cap[:, None] - part.caps @ masses
        if (room[part.under] <= 0).any():
            return np.inf
        found -= mu * (part.cap_weight[:, None] * np.log(np.where(part.under, room, 1.0))).sum()
    return float(found)


@dataclass(frozen=True, eq=False)
class _Duals:
    """Multipliers of the barriers: of masses above 0 [cell, value], of demands, of caps [cap, value]."""

    masses: Floats
    demands: Floats
    caps: Floats

    def near(self, now: _Duals, most: Floats) -> _Duals:
        """Kept within a factor of those that belong to a point, and those of demands below their penalty."""
        far = 100.0
        highest = np.minimum(now.demands * far, most - (most - now.demands) / far)
        return _Duals(
            np.clip(self.masses, now.masses / far, now.masses * far),
            np.clip(self.demands, now.demands / far, highest),
            np.clip(self.caps, now.caps / far, now.caps * far),
        )

    def moved(self, ahead: _Duals, length: float) -> _Duals:
        """So much of the way to others."""
        return _Duals(
            self.masses + length * (ahead.masses - self.masses),
            self.demands + length * (ahead.demands - self.demands),
            self.caps + length * (ahead.caps - self.caps),
        )


STRONG = 5.0  # a group that bends F so many times as much as its masses alone is eliminated
MOST_ROUNDS, ROUGH = 25, 1e-2  # of conjugate gradients, and which part of the gradient they may leave


class _Model:
    """F about a point: its gradient, and its Hessian as a part that is factored and a rest.

    Barriers bend as their multipliers say (primal-dual): these hardly change where mu falls, and a point does.

    What is factored has a diagonal D, and a few rows of which each adds b b' / slack: masses that leaves say (slack 0),
    demands, and groups that bend F strongly. Sizes of cells are eliminated first, by centring each row within each
    cell, weighed by 1 / D; that leaves a system of the rows and not of the cells. The rest are the other groups: those
    of other splits bend F upwards, those of chosen splits downwards.
    """

    def __init__(
        self, part: Component, masses: Floats, mu: float, tau: float, near: Floats, duals: _Duals | None = None
    ) -> None:
        values, cells, rows = part.values, len(part.size), len(part.row_leaf)
        broken, groups = part.broken(masses)
        mus, taus = mu * part.weight, tau * part.weight
        slope = _penalty(broken, mus, taus)[1]
        room = np.where(part.under, part.cap[:, None] - part.caps @ masses, 1.0)
        self.part, self.above = part, np.where(part.free, masses, 1.0)
        barrier = mu * (part.size / part.mass / values)[:, None] / self.above
        self.now = _Duals(barrier, slope, np.where(part.under, mu * part.cap_weight[:, None] / room, 0.0))
        self.duals = self.now if duals is None else duals.near(self.now, taus)
        force = self.duals.demands
        slack = mus / slope / force + mus / np.maximum(taus - slope, TINY) / np.maximum(taus - force, TINY)
        live = part.alive[:, None] & (groups > 0)
        if part.measure == GINI:
            first = np.where(live, -2 * groups / part.group_size[:, None], 0.0)
            second = np.where(live, 2 / part.group_size[:, None], 0.0)
        else:
            some = np.where(live, groups, 1.0)
            first = np.where(live, -np.log(some / part.group_size[:, None]), 0.0)
            second = np.where(live, 1 / some, 0.0)
        # curvature: of masses alone, and of groups of several
        self.cap_bend = self.duals.caps / room
        upwards, downwards = ((force @ side)[:, None] * second for side in (part.other, part.chosen))
        diagonal = ((1 / part.mass + self.duals.masses) / self.above * (1 + near)).T
        diagonal += upwards[part.convex_cells].T @ part.members[part.convex_cells]
        diagonal[:, part.alone_cell] += self.cap_bend[part.alone].T
        self.spread = np.where(part.constant.T, 0.0, 1 / diagonal)
        weights = np.concatenate([upwards[part.convex], self.cap_bend[~part.alone], -downwards[part.concave]])
        bends, most = weights * (part.bent @ self.spread.T), 2 * cells
        strong = bends > STRONG
        if strong.sum() > most:  # more would take longer than conjugate gradients do without them
            strong = bends > np.partition(bends, -most - 1, axis=None)[-most - 1]
        self.rest = np.where(strong, 0.0, weights).T
        # the rows: [masses of leaves, demands, strong groups; value; cell]
        group, value = np.nonzero(strong)
        coupling = np.zeros((rows + len(slope) + len(group), values, cells))
        coupling[np.arange(rows), part.row_value] = part.rows
        slopes = np.concatenate([first, np.zeros((1, values))]).T  # the last: of cells outside a demand's node
        jacobian = coupling[rows : rows + len(slope)].transpose(1, 0, 2)
        np.subtract(slopes[:, part.chosen_group], slopes[:, part.other_group], out=jacobian)
        jacobian *= part.node_share[:, None]
        coupling[np.arange(rows + len(slope), len(coupling)), value] = part.bent[group]
        self.demands = slice(rows, rows + len(slope))
        self.gradient = (part.logs(masses) - part.tilt).T / part.mass - barrier.T + np.matmul(slope, jacobian)
        self.gradient += (part.caps.T @ self.now.caps).T
        self.weights = self.spread / self.spread.sum(axis=0)  # of the values in a cell: a mean takes its size out
        self.slack = np.concatenate([np.zeros(rows), slack, 1 / weights[strong]])
        self.root = np.sqrt(self.spread)
        coupling -= np.einsum("rvc,vc->rc", coupling, self.weights)[:, None]  # in place: the one large array
        coupling *= self.root
        self.rows = coupling.reshape(len(coupling), -1)
        schur = self.rows @ self.rows.T
        schur.flat[:: len(schur) + 1] += self.slack
        self.system = _System(schur)

    def _centred(self, vectors: Floats) -> Floats:
        """Vectors [..., value, cell] without what is the same for all values of a cell."""
        return np.asarray(vectors - (vectors * self.weights).sum(axis=-2, keepdims=True))

    def solved(self, right: Floats) -> Floats:
        """What is factored, inverted, times [value, cell], among moves that keep what is known."""
        right = self._centred(right)
        scaled = self.root * right
        force = self.system.solved(self.rows @ scaled.ravel())
        return np.asarray(self.root * (scaled - (force @ self.rows).reshape(right.shape)))

    def direction(self) -> tuple[Floats, float]:
        """A direction [cell, value] in which F decreases, and how fast.

        Conjugate gradients for the whole Hessian, preconditioned by what is factored. They end where F bends down, with
        a step that would be right if nothing did: that is one of the convex-concave procedure.
        """
        left = -self.gradient
        move = along = factored = np.zeros_like(left)
        size, first = 1.0, np.inf
        for count in range(MOST_ROUNDS):
            better = self.solved(left)
            size, before = float(np.vdot(left, better)), size
            first = size if count == 0 else first
            if not size > ROUGH**2 * first:
                break
            share = size / before if count else 0.0
            along, factored = better + share * along, left + share * factored
            groups = along @ self.part.bent.T
            pull = self.rest * groups
            bends = float(np.vdot(along, factored) + np.vdot(pull, groups))
            convex = bends - float(np.minimum(pull * groups, 0.0).sum())
            if bends <= 0.02 * convex:
                move = move + size / convex * along
                break
            move = move + size / bends * along
            left = left - size / bends * (factored + pull @ self.part.bent)
        return move.T, -float(np.vdot(self.gradient, move))

    def duals_after(self, move: Floats, length: float) -> _Duals:
        """The multipliers after a step."""
        part, now = self.part, self.now
        scaled = move.T / np.where(self.root > 0, self.root, 1.0)
        demands = now.demands + (self.rows[self.demands] @ scaled.ravel()) / self.slack[self.demands]
        caps = now.caps + self.cap_bend * (part.caps @ move)
        return self.duals.moved(_Duals(now.masses - self.duals.masses / self.above * move, demands, caps), length)


class _System:
    """A symmetric system, scaled to a diagonal of ones and refined once."""

    def __init__(self, matrix: Floats) -> None:
        self.size = 1 / np.sqrt(np.maximum(matrix.diagonal(), TINY))
        self.scaled = matrix * self.size[:, None] * self.size
        self.scaled.flat[:: len(matrix) + 1] += 1e-13
        self.factors, self.pivots, _ = dgetrf(self.scaled)

    def solved(self, right: Floats) -> Floats:
        wanted = self.size * right
        found = dgetrs(self.factors, self.pivots, wanted)[0]
        found += dgetrs(self.factors, self.pivots, wanted - self.scaled @ found)[0]
        return np.asarray(self.size * found)

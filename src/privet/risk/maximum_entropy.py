"""The adversary of Zhu and Du (2010): of all distributions that agree with the publication, the one that assumes least.

Without internal constraints it has a closed form. With them, constraints are added only once the solution breaks
them; every topmost node with one is a problem of its own, solved on its cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from privet.risk.constraints import Candidate, Choice, closed_form, tilt_of
from privet.risk.convex_concave import Component, Demand, Solved, solve
from privet.risk.people import Belief, mean_entropy
from privet.risk.publication import LABELS, Publication
from privet.risk.tree import Floats
from privet.text import Countdown

TOLERANCE = 1e-6  # per person of a node; twice as much is called broken
ROUNDS = 30
LARGEST = 1_500  # cells of a component: beyond, its steps take minutes
SMALL = 24  # cells of a component that is started several times
STARTS = 3

Progress = Callable[[str], None]


def maximum_entropy(
    publication: Publication,
    choices: Sequence[Choice] = (),
    *,
    seed: int = 0,
    progress: Progress = lambda text: None,
) -> Belief:
    """P(value | profile) of largest entropy that meets every constraint, and by how much the worst is missed."""
    tilt = tilt_of(publication)
    shares = closed_form(publication, tilt)
    if publication.sampled:
        return Belief("maximum entropy", _unknown_sample(publication, shares), facts=_facts(publication, shares))
    met = not any(choice.can_bind for choice in choices)
    if publication.level == LABELS and publication.marginal is None:
        met = True  # even shares meet every label and every choice with equality
    if met or publication.noisy:
        return Belief("maximum entropy", shares, facts=_facts(publication, shares))
    search = _Search(publication, choices, tilt, shares, seed, progress)
    with threadpool_limits(1):  # blocks are small: threads would wait for each other
        search.run()
    return search.belief()


def _unknown_sample(publication: Publication, shares: Floats) -> Floats:
    """Beliefs about people who may not have been in the rows that the tree was grown on.

    Any choice of the rows of a leaf is as likely as any other, so a person was among them with the published share of
    the leaf's people; of the others nothing is known.
    """
    found = shares.copy()
    lost = np.full(publication.classes, 1 / publication.classes)
    if publication.marginal is not None:
        lost = publication.marginal
    for leaf in publication.leaves:
        inside = publication.inside(leaf)
        found[publication.profiles[leaf]] = inside * shares[publication.profiles[leaf]] + (1 - inside) * lost
    return found


def _facts(publication: Publication, shares: Floats) -> dict[str, float | int | str]:
    return {"entropy": mean_entropy(publication.people, shares)}


@dataclass(eq=False)
class _Search:
    """Rounds: find broken constraints, solve the components they make, until none is new."""

    publication: Publication
    choices: Sequence[Choice]
    tilt: Floats
    shares: Floats
    seed: int
    progress: Progress
    active: dict[tuple[int, Candidate], Demand] = field(default_factory=dict)
    done: dict[int, tuple[object, ...]] = field(default_factory=dict)
    solved: dict[int, Solved] = field(default_factory=dict)
    left_out: dict[int, int] = field(default_factory=dict)  # components too large, and their demands
    arbitrary: dict[int, int] = field(default_factory=dict)  # people whose shares symmetry decides
    gaps: dict[int, list[tuple[Candidate, float]]] = field(default_factory=dict)  # of nodes whose people stayed

    def run(self) -> None:
        self._add_broken()
        for _ in range(ROUNDS):
            tops = self._tops()
            steps = Countdown(len(tops))
            for top in tops:
                self._solve(top, f"component {steps.next()}")
            if not self._add_broken() and not self._retilted():
                break

    def _masses(self) -> Floats:
        return self.shares * self.publication.people.sizes[:, None]

    def _gaps_of(self, choice: Choice, masses: Floats) -> list[tuple[Candidate, float]]:
        """What its splits not taken lack, computed anew where people's shares have changed."""
        if choice.node not in self.gaps:
            self.gaps[choice.node] = choice.gaps(masses)
        return self.gaps[choice.node]

    def _add_broken(self) -> bool:
        """Make demands of the constraints that are broken; are there new ones?"""
        masses, new = self._masses(), False
        skipped = {node for top in self.left_out for node in self.publication.tree.below(top)}
        for choice in self.choices:
            for candidate, gap in self._gaps_of(choice, masses):
                demand = Demand(choice, candidate)
                if gap < -2 * TOLERANCE and demand.key not in self.active and choice.node not in skipped:
                    self.active[demand.key] = demand
                    new = True
        return new

    def _tops(self) -> list[int]:
        """The topmost nodes with a demand: what is below different ones is independent."""
        tops: list[int] = []
        for node in sorted({node for node, _ in self.active}):
            if not set(self.publication.tree.ancestors(node)) & set(tops):
                tops.append(node)
        return tops

    def _solve(self, top: int, what: str) -> None:
        below = set(self.publication.tree.below(top))
        demands = [self.active[key] for key in sorted(self.active) if key[0] in below]
        key = (self.tilt.tobytes(), *(demand.key for demand in demands))
        if self.done.get(top) == key or top in self.left_out:
            return
        part = Component(self.publication, top, demands, TOLERANCE, self.tilt)
        if len(part.size) > LARGEST:
            self.left_out[top] = len(demands)
            for demand in demands:
                del self.active[demand.key]
            return
        if not len(part.size):  # leaves say all, and contradict the criterion that was named
            nothing = np.empty((0, part.values))
            self.solved[top], self.done[top] = Solved(nothing, part.violation(nothing), 1.0, 0), key
            return
        self.progress(f"{what}: {len(part.size)} cells, {len(demands)} constraints")
        warm = (self.shares, self.solved[top].tau) if top in self.solved else None
        rng = np.random.default_rng([self.seed, top])
        starts = STARTS if len(part.size) <= SMALL else 1
        found = solve(part, rng, 2 * TOLERANCE, starts=starts, warm=warm)
        self.shares[part.profiles] = part.expand(found.masses)
        for node in (*below, *self.publication.tree.ancestors(top)):
            self.gaps.pop(node, None)
        for inner in [node for node in self.solved if node in below]:
            del self.solved[inner]
            self.arbitrary.pop(inner, None)
        self.solved[top], self.done[top] = found, key
        self.arbitrary[top] = _interchangeable(part, self.shares)

    def _retilted(self) -> bool:
        """Move the multipliers of a published marginal to where components and leaves have it together."""
        wanted = self.publication.marginal
        if wanted is None or not self.solved:
            return False
        placed = self.publication.leaf >= 0
        masses = self._masses()[placed].sum(axis=0)
        missed = np.abs(masses / masses.sum() - wanted).max()
        if missed < TOLERANCE:
            return False
        had = wanted > 0
        self.tilt = self.tilt.copy()
        self.tilt[had] += np.log(wanted[had] * masses.sum() / np.maximum(masses[had], 1e-12))
        loose = self.publication.leaf >= 0
        for top in self.solved:
            loose[self.publication.profiles[top]] = False
        self.shares[loose] = closed_form(self.publication, self.tilt)[loose]
        self.gaps.clear()
        return True

    def belief(self) -> Belief:
        publication = self.publication
        masses = self._masses()
        worst = max(0.0, -min(gap for choice in self.choices for _, gap in self._gaps_of(choice, masses)))
        unsolved = [top for top, found in self.solved.items() if found.violation > 2 * TOLERANCE]
        spread = sum(found.spread for found in self.solved.values()) / publication.people.total
        arbitrary = sum(self.arbitrary.values())
        notes = []
        if self.active:
            notes.append(
                f"{len(self.active)} of the internal constraints bind, in {len(self.solved)} independent parts of the "
                f"tree; the most that one is broken is {worst:.1e} per person of its node."
            )
        convex = sum(found.convex for found in self.solved.values())
        if convex:
            notes.append(f"In {convex} of them the problem is convex where it was solved, and one start is enough.")
        several = sum(found.starts > 1 and not found.convex for found in self.solved.values())
        if several:
            notes.append(
                f"In {several} of them the problem is not convex: several starts were taken, whose entropies differ "
                f"by {spread:.1e} per person in all; no bound says that there is no better solution."
            )
        if arbitrary:
            notes.append(
                f"For {arbitrary} people values are interchangeable in everything that was published and yet must "
                "differ: which of them is which is arbitrary, and so is their individual divergence."
            )
        notes += self._gave_up(unsolved)
        if publication.marginal is not None:
            placed = masses[publication.leaf >= 0].sum(axis=0)
            missed = float(np.abs(placed / placed.sum() - publication.marginal).max())
            notes.append(f"The published marginal is missed by at most {missed:.1e}.")
        if publication.level == LABELS:
            notes.append(
                "The share of each leaf's label was taken from leaves and marginal alone, and kept: with other ones "
                "the entropy could be larger."
            )
        facts = {
            **_facts(publication, self.shares),
            "active": len(self.active),
            "components": len(self.solved),
            "unsolved": len(unsolved),
            "left out": sum(self.left_out.values()),
            "violation": worst,
            "spread": spread,
            "arbitrary": arbitrary,
            "steps": sum(found.steps for found in self.solved.values()),
        }
        names = publication.people.names
        binding = tuple((node, names[each.candidate.attribute]) for (node, _), each in self.active.items())
        return Belief("maximum entropy", self.shares, False, tuple(notes), facts, binding)

    def _gave_up(self, unsolved: Iterable[int]) -> list[str]:
        where = self.publication.tree.where
        notes = [
            f"No solution was found below '{where(top)}'; the shares there break a constraint." for top in unsolved
        ]
        for top, many in self.left_out.items():
            notes.append(
                f"{many} constraints below '{where(top)}' were left out, the problem is too large: a stronger "
                "adversary knows more there."
            )
        return notes


def _interchangeable(part: Component, shares: Floats) -> int:
    """How many people have different shares for values that nothing published tells apart: none of the component's
    leaves has said anything of either."""
    silent = np.flatnonzero(~part.said.any(axis=0))
    if len(silent) < 2:
        return 0
    mine = shares[part.profiles][:, silent]
    return int(part.people[np.ptp(mine, axis=1) > 1e-4].sum())

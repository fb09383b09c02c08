"""From the leaves upwards: the worlds of each node that agree with its choice of a split, listed or drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from privet.errors import DataError
from privet.risk.publication import LABELS, Publication
from privet.risk.tree import Integers
from privet.risk.world_leaves import Quota
from privet.risk.world_parts import ENTRIES, Choice, Leaf, Part, Rule, drawn, listed

WORK = 50_000_000  # people given a value in all drawn worlds together, about 40 nanoseconds each
COMPARED = 16  # entries of a table compared for the price of one person drawn
NEEDED = 1000  # consistent worlds, for a mean to be believed
SMALL = 1000  # people of a node that may have few enough worlds to list them all
GROUPED = 20_000_000  # profiles of a node times the splits it could have had: what is held of one choice
ROUNDS = 10  # in which worlds are drawn; after each it is seen whether there is hope


class Search:
    """Divides the people into pieces that say nothing about each other.

    A leaf is a piece. A node whose choice can be used joins the pieces below it to one, whose worlds agree with the
    choice; if these can be neither listed nor drawn, the pieces stay as they are, and so do those of all nodes above.
    """

    def __init__(
        self, publication: Publication, limit: int, tries: int, seed: int, progress: Callable[[str], None]
    ) -> None:
        self.publication = publication
        self.limit = limit
        self.tries = tries
        self.seed = seed
        self.progress = progress
        self.used = self.unused = 0  # constraints
        self.cell = np.full(len(publication.people), -1, dtype=np.int64)  # of each profile
        self.cells = 0
        self._example: Integers = np.empty(0, dtype=np.int64)  # a profile of each cell
        self._sizes: Integers = np.empty(0, dtype=np.int64)
        self._share = WORK  # for each choice

    def pieces(self, choices: Sequence[Choice]) -> Iterator[Leaf | Part]:
        """The pieces, with all choices used that can be, each as soon as it is settled: together they are large."""
        tree, sizes = self.publication.tree, self.publication.sizes
        self._share = WORK // max(len(choices), 1)
        at = {choice.node: choice for choice in choices if len(choice.candidates)}
        most = max(self._share // NEEDED, SMALL)
        hopeful = {
            node
            for node, choice in at.items()
            if sizes[node] <= most and len(choice.candidates) * len(choice.chosen) <= GROUPED
        }
        self._divide([at[node] for node in hopeful])
        pieces: dict[int, list[Leaf | Part] | None] = {}  # of each node; None if they are settled
        for node in reversed(range(len(tree.nodes))):
            if not tree.children[node]:
                pieces[node] = [self._leaf(node)] if sizes[node] else []
                continue
            parts = [pieces.pop(child) for child in tree.children[node]]
            below = [piece for part in parts if part is not None for piece in part]
            joined: list[Leaf | Part] | None = None if None in parts else below
            choice = at.get(node)
            if choice is not None and joined != []:
                joined = self._join(choice, below) if joined is not None and node in hopeful else None
                if joined is None:
                    self.unused += len(choice.candidates)
                else:
                    self.used += len(choice.candidates)
            if joined is None:
                yield from below
                del parts, below
            pieces[node] = joined
        yield from pieces[0] or []

    def _divide(self, choices: Sequence[Choice]) -> None:
        """Profiles of one leaf that no split tells apart are one cell: in a world only its counts matter.

        They are compared by random sums of 64 bits, which two different profiles share with probability 2^-64.
        """
        rng = np.random.default_rng(self.seed)
        traits = np.zeros(len(self.publication.people), dtype=np.uint64)
        for choice in sorted(choices, key=lambda each: each.node):
            profiles = self.publication.profiles[choice.node]
            for groups in (choice.chosen, *choice.others):
                traits[profiles] += rng.integers(2**64, size=int(groups.max()) + 2, dtype=np.uint64)[groups + 1]
        for leaf in self.publication.leaves:
            profiles = self.publication.profiles[leaf]
            distinct, cell = np.unique(traits[profiles], return_inverse=True)
            self.cell[profiles] = self.cells + cell.ravel()
            self.cells += len(distinct)
        placed = np.flatnonzero(self.cell >= 0)
        self._example = np.zeros(self.cells, dtype=np.int64)
        self._example[self.cell[placed]] = placed
        weights = self.publication.people.sizes[placed]
        self._sizes = np.bincount(self.cell[placed], weights=weights, minlength=self.cells).astype(np.int64)

    def _leaf(self, leaf: int) -> Leaf:
        cells = np.unique(self.cell[self.publication.profiles[leaf]])
        quota = Quota.of(self.publication, leaf, int(self.publication.sizes[leaf]))
        return Leaf(leaf, quota, cells, self._sizes[cells])

    # -- one node -----------------------------------------------------------------------------

    def _join(self, choice: Choice, pieces: list[Leaf | Part]) -> list[Leaf | Part] | None:
        """The worlds of all pieces of a node that agree with its choice, as one piece if it excludes any."""
        where = self.publication.tree.where(choice.node)
        self.progress(f"worlds of {where}")
        rule = self._rule(choice, np.concatenate([piece.cells for piece in pieces]))
        if not rule.others:
            return pieces
        together = listed(pieces, self.limit)
        if together is None:
            sample = self._drawn(choice.node, rule, pieces)
            return None if sample is None else [sample]
        kept = rule.keeps(together.tables, together.sizes)
        if not len(kept):
            raise DataError(
                f"no data set is consistent with the published tree (another split is always better for '{where}'); "
                "the table is not the one it was grown on, or has columns that it could not choose from."
            )
        return [together.picked(kept)]

    def _rule(self, choice: Choice, cells: Integers) -> Rule:
        profiles = self.publication.profiles[choice.node]  # rising
        at = np.searchsorted(profiles, self._example[cells])
        return Rule.of(choice.chosen[at], [groups[at] for groups in choice.others], choice.measure)

    def _drawn(self, node: int, rule: Rule, pieces: Sequence[Leaf | Part]) -> Part | None:
        """Consistent ones among drawn worlds; None if they are too rare."""
        number = self._worth_drawing(rule, pieces)
        if number < NEEDED:
            return None
        rng = np.random.default_rng([self.seed, node])
        step = math.ceil(number / ROUNDS)
        found: list[Part] = []
        accepted = 0
        for start in range(0, number, step):
            some = drawn(pieces, start, min(step, number - start), rng)
            found.append(some.picked(rule.keeps(some.tables, some.sizes)))
            accepted += found[-1].number
            if accepted / (start + some.number) * number < NEEDED / 4:
                return None
        if accepted < NEEDED:
            return None
        tables = np.concatenate([some.tables for some in found], axis=1)
        return Part(found[0].cells, found[0].sizes, tables, None)

    def _worth_drawing(self, rule: Rule, pieces: Sequence[Leaf | Part]) -> int:
        """How many worlds to draw: as many as the work allows, and no more than a piece has that was drawn itself."""
        classes = self.publication.classes
        cells = sum(len(piece.cells) for piece in pieces)
        leaves = [piece for piece in pieces if isinstance(piece, Leaf)]
        if not all(leaf.quota.drawable for leaf in leaves):
            return 0
        people = sum(leaf.quota.size for leaf in leaves)
        rejected = len(leaves) * classes**2 if self.publication.level == LABELS else 0
        work = 1 + people + (rejected + cells * classes * (1 + len(rule.others))) // COMPARED
        number = min(self.tries, self._share // work, ENTRIES // (cells * classes))
        for piece in pieces:
            if isinstance(piece, Part) and piece.logs is None:
                number = min(number, piece.number)
        return number

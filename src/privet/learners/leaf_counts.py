"""Class counts of the leaves of a tree whose splits are known: asked once, and refined for the difference."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privet.models.model import Integers
from privet.models.tree import Split, Tree
from privet.release import Histogram, Releases
from privet.table import Parts, ProtectedTable


@dataclass(frozen=True)
class LeafCounts:
    """Noisy class counts of all leaves of a tree.

    Leaves are disjoint rows, so that all of them together cost what one costs
    (docs/explanation/privacy.md#partition). The tree itself was released before.

    Parameters
    ----------
    tree : Tree
    nodes : tuple of array of int
        The numbers of the leaves, those of one level together.
    releases : tuple of Releases of Histogram
        Their counts, likewise.
    """

    tree: Tree
    nodes: tuple[Integers, ...]
    releases: tuple[Releases[Histogram], ...]

    @classmethod
    def ask(cls, table: ProtectedTable, tree: Tree, epsilon: Any) -> LeafCounts:
        """Count the rows of a table into the leaves of a tree, for `epsilon` in all."""
        target = table.domain.target_column.name
        nodes: list[Integers] = []
        releases: list[Releases[Histogram]] = []
        parts: Parts = table.parts()
        level = np.array([0])
        while len(level):
            ends = np.flatnonzero(tree.is_leaf[level])
            if len(ends):
                releases.append(parts.take(ends.tolist()).histogram(target, epsilon=epsilon))
                nodes.append(level[ends])
            inner = np.flatnonzero(~tree.is_leaf[level])
            if not len(inner):
                break
            splits = [split for split in (tree.node(int(node)) for node in level[inner]) if isinstance(split, Split)]
            by: list[Any] = [
                split.attribute if split.threshold is None else (split.attribute, split.threshold) for split in splits
            ]
            parts = parts.take(inner.tolist()).partition(by)
            level = np.array([child for split in splits for child in split.children])
        return cls(tree, tuple(nodes), tuple(releases))

    def refine(self, epsilon: Fraction) -> LeafCounts:
        """Return the counts at a larger epsilon, for the difference: those before are noise on top of them."""
        return LeafCounts(self.tree, self.nodes, tuple(counts.refine(epsilon) for counts in self.releases))

    @property
    def histograms(self) -> list[Histogram]:
        """The class counts of each leaf, in the order of `labels`."""
        return [counts for level in self.releases for counts in level]

    @property
    def labels(self) -> list[int]:
        """The class that the tree says in each leaf."""
        return [int(label) for level in self.nodes for label in self.tree.labels[level]]

    @property
    def counted(self) -> Tree:
        """The tree with these counts."""
        counts, deviation = np.zeros(self.tree.counts.shape), np.zeros(len(self.tree))
        for level, releases in zip(self.nodes, self.releases, strict=True):
            counts[level] = releases.array()
            deviation[level] = releases[0].noise.deviation
        return self.tree.with_counts(counts, deviation)

"""Merging leaves: the most accurate pruning of a tree in which no leaf gives anybody away."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from privet.risk.publication import COUNTS, LABELS, Publication
from privet.risk.tree import Floats, Node, PublishedTree


def node_masses(publication: Publication, leaf_masses: dict[int, Floats]) -> Floats:
    """Rows of each value at every node [node, value], from those of the leaves."""
    tree = publication.tree
    found = np.zeros((len(tree.nodes), publication.classes))
    for leaf, masses in leaf_masses.items():
        found[leaf] = masses
    for number in range(len(tree.nodes) - 1, 0, -1):  # children stand after their parents
        found[tree.nodes[number].parent] += found[number]
    return found


def best_merge(tree: PublishedTree, masses: Floats, threshold: float, barred: Collection[int] = ()) -> set[int] | None:
    """The nodes to make leaves so that every leaf's largest share is below the threshold, and as many rows as possible
    keep the label of their leaf; None if not even the root as a leaf is. `barred` nodes may not be leaves.

    A leaf is safe or not by itself and rows that are right add up, so the best for a node is the best for its children,
    where they all can be made safe, and otherwise the node itself: dividing never loses a row that is right.
    """
    total = masses.sum(axis=1)
    safe = (masses.max(axis=1) < threshold * total) | (total <= 0)
    safe[list(barred)] = False
    can = [False] * len(tree.nodes)
    keeps = [False] * len(tree.nodes)
    for number in range(len(tree.nodes) - 1, -1, -1):
        children = tree.children[number]
        keeps[number] = bool(children) and all(can[child] for child in children)
        can[number] = keeps[number] or bool(safe[number])
    if not can[0]:
        return None
    merged, waiting = set(), [0]
    while waiting:
        number = waiting.pop()
        if keeps[number]:
            waiting += tree.children[number]
        elif tree.children[number]:
            merged.add(number)
    return merged


def merged_tree(publication: Publication, at: Collection[int], masses: Floats) -> PublishedTree:
    """The tree in which these nodes are leaves that say as much as the leaves did."""
    tree = publication.tree
    number_of: dict[int, int] = {}
    nodes: list[Node] = []
    for number, node in enumerate(tree.nodes):
        if node.parent >= 0 and (node.parent not in number_of or node.parent in at):
            continue
        number_of[number] = len(nodes)
        kept = replace(node, parent=number_of.get(node.parent, -1))
        nodes.append(_leaf(publication, number, kept, masses[number]) if number in at else kept)
    return replace(tree, nodes=tuple(nodes))


def _leaf(publication: Publication, number: int, node: Node, masses: Floats) -> Node:
    tree = publication.tree
    label = int(np.argmax(masses))
    noise = [tree.nodes[below].deviation for below in tree.below(number) if below in set(tree.leaves)]
    deviation = float(np.sqrt(np.square(noise).sum()))
    if publication.level == COUNTS:
        return replace(node, label=label, counts=tuple(masses.tolist()), deviation=deviation)
    if publication.level == LABELS:
        return replace(node, label=label)
    size = float(masses.sum())
    return replace(node, label=label, size=size, wrong=size - float(masses[label]))

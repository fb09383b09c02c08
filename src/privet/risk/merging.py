"""Merging leaves: the most accurate pruning of a tree in which no leaf gives anybody away."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from privet.risk.measures import SAME
from privet.risk.publication import LABELS, LEVELS, Publication, most_published
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
    safe = (masses.max(axis=1) < (threshold - SAME) * total) | (total <= 0)
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
    return withheld(replace(tree, nodes=tuple(nodes)), publication.level)


def withheld(tree: PublishedTree, level: str) -> PublishedTree:
    """The tree with no more than this said of its leaves; whatever it was read from says more, so that is forgotten."""
    if LEVELS.index(level) >= LEVELS.index(most_published(tree)):
        return tree
    return replace(tree, nodes=tuple(_said(node, level) for node in tree.nodes), model=None)


def _said(node: Node, level: str) -> Node:
    if level == LABELS or node.counts is None or node.label is None:
        return node if level != LABELS else replace(node, size=None, wrong=None, counts=None)
    size = float(sum(node.counts))
    return replace(node, size=size, wrong=size - node.counts[node.label], counts=None)


def _leaf(publication: Publication, number: int, node: Node, masses: Floats) -> Node:
    tree = publication.tree
    label = int(np.argmax(masses))
    noise = [tree.nodes[below].deviation for below in tree.below(number) if not tree.children[below]]
    deviation = float(np.sqrt(np.square(noise).sum()))
    if all(tree.nodes[below].counts is not None for below in tree.below(number) if not tree.children[below]):
        return replace(node, label=label, counts=tuple(masses.tolist()), deviation=deviation)
    if publication.level == LABELS:
        return replace(node, label=label)
    size = float(sum(tree.nodes[below].size or 0 for below in tree.below(number) if not tree.children[below]))
    return replace(node, label=label, size=size, wrong=max(size - float(masses[label]), 0.0))

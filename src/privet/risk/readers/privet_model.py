"""A tree that privet published, as an adversary reads it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privet.kernel import Column, Numeric
from privet.models.tree import Ensemble, Tree
from privet.risk.tree import ENTROPY, GINI, Condition, Floats, InCell, Node, OnSide, PublishedTree, Values

PUBLIC = ("it reads public rows without noise",)  # the reasons of a model that is not private and has no noise at all
CRITERIA = {"infogain": ENTROPY, "gini": GINI}
SILENT = {
    "gain-ratio": "C4.5 chooses by gain ratio and prunes, so its choices do not order impurities",
    "max": "it chose by the rows of the largest class, which is neither gini nor entropy",
    "": "the model does not record which criterion chose its splits",
}
NOISY = "its splits were chosen with noise, so a choice excludes nothing"


def published(model: Ensemble, values: Sequence[object] | None = None) -> PublishedTree:
    """The only tree of a model; its nodes keep their numbers, so that `Tree.cut` can be told of them.

    Counts of a model with noise are noisy observations, and its choices tell nothing: `epsilon` says that it has
    some. Leaves that released a label alone say nothing else.
    """
    tree = model.tree
    public = Values.of(model.domain.classes if values is None else values)
    privacy = model.privacy
    is_exact = privacy.reasons == PUBLIC
    asked_labels = any(step.question == "label" for step in privacy.steps)
    label_only = tree.is_leaf & (tree.deviation == 0) & (asked_labels and not is_exact)
    is_noisy = privacy.private or bool((tree.deviation[tree.is_leaf] > 0).any()) or bool(label_only.any())
    criterion = CRITERIA.get(privacy.criterion) if is_exact else None
    return PublishedTree(
        _nodes(tree, public, label_only),
        public.texts,
        "privet",
        criterion,
        NOISY if is_noisy else "" if criterion else _why_silent(privacy.criterion, is_exact),
        features=model.domain.attributes,
        declared=tuple(model.domain[name] for name in model.domain.attributes),
        epsilon=privacy.epsilon if is_noisy else None,
        model=model,
    )


def _why_silent(criterion: str, is_exact: bool) -> str:
    if not is_exact:
        return "the model is not private, and its record does not say that its splits were chosen without noise"
    return SILENT.get(criterion, f"it chose by {criterion}, which is neither gini nor entropy")


def _nodes(tree: Tree, public: Values, label_only: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[Node, ...]:
    places = _places(tree, public)
    counts = _counts(tree, public, places)
    columns = [tree.domain[name] for name in tree.domain.attributes]
    is_leaf = tree.is_leaf
    nodes = []
    for number in range(len(tree)):
        parent = int(tree.parents[number])
        condition = None if parent < 0 else _condition(tree, columns, parent, number)
        if not is_leaf[number]:
            nodes.append(Node(parent, condition))
            continue
        said = None if label_only[number] else tuple(counts[number].tolist())
        label = places[int(tree.labels[number])]
        nodes.append(Node(parent, condition, label, counts=said, deviation=float(tree.deviation[number])))
    return tuple(nodes)


def _places(tree: Tree, public: Values) -> list[int]:
    """The number of the public value of each class, -1 for one that no leaf speaks of."""
    leaves = np.flatnonzero(tree.is_leaf)
    found = []
    for code, value in enumerate(tree.domain.classes):
        is_used = tree.counts[leaves, code].any() or (tree.labels[leaves] == code).any()
        found.append(public.number(value) if is_used else -1)
    return found


def _counts(tree: Tree, public: Values, places: Sequence[int]) -> Floats:
    """The counts of each node in the order of the public values; those the tree does not know have 0."""
    counts = np.zeros((len(tree), len(public)))
    for code, place in enumerate(places):
        if place >= 0:
            counts[:, place] = tree.counts[:, code]
    return counts


def _condition(tree: Tree, columns: Sequence[Column], parent: int, number: int) -> Condition:
    """Under which condition rows of a node come to a child."""
    column = columns[int(tree.column[parent])]
    side, at = number - int(tree.first[parent]), int(tree.at[parent])
    if at < 0:
        return InCell(column, side)
    assert isinstance(column, Numeric)
    return OnSide(column, at, side)

"""What to do about it: merge leaves, say less, or publish a private model; each tried, and audited again."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privet.risk.constraints import choices_of
from privet.risk.disclosure import epsilon_for, own_rows
from privet.risk.findings import WORLDS, Audit, Remedy, undecided
from privet.risk.maximum_entropy import maximum_entropy
from privet.risk.measures import SAME, strongest
from privet.risk.people import Belief
from privet.risk.publication import COUNTS, LABELS, LEVELS, RATES, Publication, most_published
from privet.risk.readers import read_tree
from privet.risk.statements import Followed, Statement, Statements, follow, tallied, withheld_statements
from privet.risk.tree import Floats, Node, PublishedTree
from privet.risk.world_pieces import label_share
from privet.risk.worlds import possible_worlds

# -- Merging leaves: the most accurate pruning of a tree in which no leaf gives anybody away.


def node_masses(publication: Publication, leaf_masses: dict[int, Floats]) -> Floats:
    """Rows of each value at every node [node, value], from those of the leaves."""
    tree = publication.tree
    found = np.zeros((len(tree.nodes), publication.classes))
    for leaf, masses in leaf_masses.items():
        found[leaf] = masses
    for number in range(len(tree.nodes) - 1, 0, -1):  # children stand after their parents
        found[tree.nodes[number].parent] += found[number]
    return found


def best_merge(
    tree: PublishedTree,
    masses: Floats,
    threshold: float,
    barred: Collection[int] = (),
    baseline: Floats | None = None,
) -> set[int] | None:
    """The nodes to make leaves so that every leaf's largest share is below the threshold, and as many rows as possible
    keep the label of their leaf; None if not even the root as a leaf is. `barred` nodes may not be leaves. With a
    `baseline` it is what an own row adds to its value in the leaf that is below the threshold.

    A leaf is safe or not by itself and rows that are right add up, so the best for a node is the best for its children,
    where they all can be made safe, and otherwise the node itself: dividing never loses a row that is right.
    """
    total = masses.sum(axis=1)
    if baseline is None:
        safe = (masses.max(axis=1) < (threshold - SAME) * total) | (total <= 0)
    else:
        added = np.where(masses > 0, 1 - baseline, 0.0).max(axis=1)
        safe = (added < (threshold - SAME) * total) | (total <= 0)
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
    is_weighted = any(node.weights is not None for node in tree.nodes)
    if LEVELS.index(level) >= LEVELS.index(most_published(tree)) and not (level == LABELS and is_weighted):
        return tree
    return replace(tree, nodes=tuple(_said(node, level) for node in tree.nodes), model=None)


def _said(node: Node, level: str) -> Node:
    if level == LABELS or node.counts is None or node.label is None:
        return node if level != LABELS else replace(node, size=None, wrong=None, counts=None, weights=None)
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


Refit = Callable[[float], Any]  # grows a private model of the same people with an epsilon
Progress = Callable[[str], None]

EPSILONS = (10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05)  # tried from the least private on
ANY = 2.0  # a threshold that no share reaches
WITHHELD = 20  # times that numbers are withheld and what is left is audited
TRIES = 8  # how often a merged tree is audited and merged further


def remedies_for(audit: Audit, *, refit: Refit | None, seed: int, progress: Progress) -> Audit:
    """The audit with remedies, if anybody is exposed."""
    if audit.safe or audit.publication is None:
        return audit
    merged = _merge(audit, audit.publication, seed, progress)
    found = [] if merged is None else [merged]
    if not audit.publication.noisy:
        found += _withhold(audit, audit.publication, seed, progress)
        found += _private(audit, audit.publication, refit, seed, progress)
    return replace(audit, remedies=tuple(found))


def _merge(audit: Audit, publication: Publication, seed: int, progress: Progress) -> Remedy | None:
    """Merge where a leaf gives somebody away, audit again, and merge on above those who still are; None where no leaf
    does."""
    masses = _node_masses(audit, publication)
    before = _accuracy(audit, publication)
    labels = publication.level == LABELS and not publication.noisy and not audit.by_own_row
    barred = _told_by_labels(audit, publication, seed) if labels else set()
    base = audit.own.baseline[0] if audit.by_own_row else None
    sizes = publication.sizes[:, None] if publication.noisy or publication.level == LABELS else None
    if base is not None and sizes is not None:  # noisy masses may be none or negative where people are
        masses = np.where(sizes > 0, np.maximum(masses, SAME), 0.0)
        masses = masses * sizes / np.maximum(masses.sum(axis=1, keepdims=True), SAME)
    at: set[int] | None
    for attempt in range(1, TRIES + 1):
        if attempt == TRIES:  # one leaf for all, or nothing helps
            barred |= set(range(1, len(publication.tree.nodes)))
        at = best_merge(publication.tree, masses, ANY if labels else audit.threshold, barred, base)
        if at is None:
            share = float(masses[0].max() / masses[0].sum())
            value = audit.values[int(np.argmax(masses[0]))]
            return Remedy(
                "merge leaves",
                f"Merging leaves does not help: among all people, {value} has a share of {share:.3g} already."
                if share >= audit.threshold and not audit.by_own_row
                else "Merging leaves does not help: even a single leaf leaves somebody exposed.",
                False,
                accuracy_before=before,
            )
        progress(f"auditing the tree with {len(at)} nodes merged, attempt {attempt}")
        tree = merged_tree(publication, at, masses)
        smaller = Publication.of(tree, publication.people, publication.level, publication.marginal, publication.sampled)
        scores = _scores(audit, smaller, seed)
        exposed = np.flatnonzero(scores[0] >= audit.threshold - SAME)
        exposed = exposed[smaller.leaf[exposed] >= 0]
        if not len(exposed) or attempt == TRIES:
            break
        barred |= _origins(publication, smaller, exposed)
    if not at:
        return None
    leaves = len(publication.leaves)
    told = (
        f"Merge {f'{len(at)} parts' if len(at) > 1 else '1 part'} of the tree, {leaves} leaves become "
        f"{len(smaller.leaves)}: "
        f"{'; '.join(publication.tree.where(node) for node in sorted(at)[:3])}{'; …' if len(at) > 3 else '.'}"
    )
    merged = tuple(sorted(at))
    groups = tuple(map(publication.tree.where, merged))
    is_guess = _is_guess(audit, publication)
    if is_guess:
        told += " What the merged leaves say is a guess: the true values decide."
    return _judged(
        audit, smaller, scores, "merge leaves", told, before, merged=merged, tree=tree, is_guess=is_guess, groups=groups
    )


def withhold(audit: Audit, several: Sequence[Statements], found: Followed, seed: int) -> Audit:
    """The audit of tables or rules with a remedy: withhold numbers of the smallest groups that somebody concerned is
    in, audit again, and withhold on where the others still tell (complementary suppression)."""
    if audit.safe:
        return audit
    gone: dict[int, Statement] = {}
    left, after = list(several), audit
    for _ in range(WITHHELD):
        left, more = withheld_statements(left, found, np.flatnonzero(after.scores >= audit.threshold - SAME))
        gone.update(more)
        if not more:
            break
        found = follow(*tallied(left, audit.people), audit.people, audit.own.baseline[0], audit.truth, seed)
        after = replace(audit, own=found.own, beliefs={**audit.beliefs, WORLDS: found.belief})
        if after.worst < audit.threshold - SAME:
            break
    many = sum(len(each.said) for each in several)
    some = [each.where for _, each in sorted(gone.items())]
    told = f"Withhold the numbers of {len(some):,} of {many:,} groups: {'; '.join(some[:5])}"
    told += "; …" if len(some) > 5 else "."
    enough = after.worst < audit.threshold - SAME
    remedies = [Remedy("withhold numbers", told, enough, after.worst, after.known, groups=tuple(some))]
    bound = epsilon_for(audit.threshold)
    if audit.by_own_row and bound < math.inf:
        told = (
            f"Publish noisy counts, or a private model, with epsilon at most {bound:.3g} for all of it: then nobody's "
        )
        told += f"own row adds {audit.threshold:g} to a probability, whatever the rows."
        remedies.append(Remedy("epsilon", told, True))
    return replace(audit, remedies=tuple(remedies))


def _is_guess(audit: Audit, publication: Publication) -> bool:
    """Does what is known not determine what merged leaves say? Rates of two values are counts."""
    if audit.truth is not None or most_published(publication.tree) == COUNTS:
        return False
    return publication.level == LABELS or publication.classes > 2


def _told_by_labels(audit: Audit, publication: Publication, seed: int) -> set[int]:
    """The nodes that as a leaf would give their people away by the label alone: those of few people."""
    sizes = {int(size) for size in publication.sizes if size}
    share = {size: label_share(size, publication.classes, seed)[0] for size in sizes}
    return {
        node for node, size in enumerate(publication.sizes.tolist()) if size and share[size] >= audit.threshold - SAME
    }


def _origins(publication: Publication, smaller: Publication, exposed: Any) -> set[int]:
    """The nodes of the published tree that are the leaves of the smaller one where these profiles are."""
    some = {int(smaller.leaf[profile]): int(profile) for profile in exposed}
    found = set()
    for leaf, profile in some.items():
        depth = len(smaller.tree.ancestors(leaf))
        original = int(publication.leaf[profile])
        along = [original, *publication.tree.ancestors(original)][::-1]
        found.add(along[depth])
    return found


def _withhold(audit: Audit, publication: Publication, seed: int, progress: Progress) -> Iterator[Remedy]:
    """The same tree with less said about its leaves."""
    before = _accuracy(audit, publication)
    if any(map(publication.unclear, publication.leaves)):
        progress("auditing the tree without weights")
        less = replace(publication, tree=withheld(publication.tree, LABELS))
        told = "Publish the label of each leaf, and no weights."
        yield replace(
            _judged(audit, less, _scores(audit, less, seed), "withhold weights", told, before), accuracy=before
        )
    for level, kind, told in (
        (RATES, "withhold counts", "Publish the label and the error rate of each leaf, and no counts."),
        (LABELS, "withhold rates", "Publish the label of each leaf, and no numbers."),
    ):
        if LEVELS.index(level) >= LEVELS.index(publication.level) or (level == RATES and publication.classes == 2):
            continue  # of two values the rate is the counts
        progress(f"auditing the tree with {level} alone")
        less = replace(publication, level=level)
        found = _judged(audit, less, _scores(audit, less, seed), kind, told, before)
        yield replace(found, accuracy=before)  # labels stay what they are


def _private(
    audit: Audit, publication: Publication, refit: Refit | None, seed: int, progress: Progress
) -> Iterator[Remedy]:
    """A private model instead: what its promise bounds, and if one can be grown, what it tells."""
    before = _accuracy(audit, publication)
    prior = float(audit.baseline.shares.max())
    bound = epsilon_for(audit.threshold) if audit.by_own_row else epsilon_bound(prior, audit.threshold)
    if audit.by_own_row and bound < math.inf:
        yield Remedy(
            "epsilon",
            f"Publish a private model with epsilon at most {bound:.3g}: then nobody's own row adds {audit.threshold:g} "
            "to a probability, whatever the rows.",
            True,
            accuracy_before=before,
        )
    elif 0 < bound < math.inf:  # any epsilon keeps from certainty, which tells nothing of one to choose
        yield Remedy(
            "epsilon",
            f"Publish a private model with epsilon at most {bound:.3g}: then nobody's own row can take an adversary "
            f"who starts from {prior:.3g} to {audit.threshold:g}.",
            True,
            accuracy_before=before,
        )
    if refit is None:
        return
    for epsilon in EPSILONS:
        progress(f"growing and auditing a private model with epsilon {epsilon:g}")
        tree = read_tree(refit(epsilon), audit.values)
        if not isinstance(tree, PublishedTree):
            return
        other = Publication.of(tree, publication.people)
        scores = _scores(audit, other, seed)
        told = f"Publish a private tree with epsilon {epsilon:g}; one was grown and audited."
        found = _judged(audit, other, scores, "epsilon", told, before)
        if found.enough or epsilon == EPSILONS[-1]:
            if not found.enough:
                found = replace(found, told=f"A private tree with epsilon {epsilon:g} does not do it; none larger did.")
            yield found
            return


def epsilon_bound(prior: float, threshold: float) -> float:
    """The epsilon up to which one person's own row cannot take a belief from `prior` to the threshold.

    Replacing a person's rows is removing and adding a person, so odds of one value against the others change by at
    most e^(2 epsilon).

    >>> round(epsilon_bound(0.5, 0.8), 4) == round(math.log(4) / 2, 4)
    True
    """
    if prior >= threshold:
        return 0.0
    if threshold >= 1:
        return math.inf
    return math.log(threshold * (1 - prior) / ((1 - threshold) * prior)) / 2


def _judged(
    audit: Audit,
    publication: Publication,
    scores: tuple[Floats, Floats],
    kind: str,
    told: str,
    before: float | None,
    **more: Any,
) -> Remedy:
    worst, known = float(scores[0].max()), round(float(scores[1].sum()))
    after = _accuracy(audit, publication)
    is_known = not undecided(publication, audit.by_own_row, audit.threshold)
    return Remedy(kind, told, worst < audit.threshold - SAME and is_known, worst, known, after, before, **more)


def _scores(audit: Audit, publication: Publication, seed: int) -> tuple[Floats, Floats]:
    """For each profile what is measured of another publication, and how many people reach the threshold."""
    choices = choices_of(publication)
    beliefs: dict[str, Belief] = {
        "maximum entropy": maximum_entropy(publication, choices, seed=seed),
        "possible worlds": possible_worlds(publication, choices, seed=seed),
    }
    if audit.by_own_row:
        own = own_rows(publication, beliefs, audit.own.baseline[0], audit.truth)
        return own.by_profile, own.concerned(audit.threshold)
    sure = strongest(beliefs)[0].max(axis=1)
    return np.asarray(sure), np.where(sure >= audit.threshold - SAME, publication.people.sizes, 0).astype(np.float64)


def _node_masses(audit: Audit, publication: Publication) -> Floats:
    """Rows of each value at every node: the owner's, or those the tree has, or what maximum entropy makes of rates;
    of labels alone each leaf counts for its label."""
    masses = {}
    for leaf in publication.tree.leaves:
        node, profiles = publication.tree.nodes[leaf], publication.profiles[leaf]
        if audit.truth is not None and not publication.sampled and not publication.noisy:
            masses[leaf] = audit.truth[profiles].sum(axis=0)
        elif node.counts is not None:
            masses[leaf] = np.array(node.counts, dtype=np.float64)
        elif publication.level == LABELS:
            masses[leaf] = np.eye(publication.classes)[publication.label(leaf)] * int(publication.sizes[leaf])
        else:
            belief = audit.beliefs["maximum entropy"].shares[profiles]
            masses[leaf] = (belief * publication.people.sizes[profiles, None]).sum(axis=0)
    return node_masses(publication, masses)


def _accuracy(audit: Audit, publication: Publication) -> float | None:
    """The share of people whose value is the label of their leaf: by the truth, or by what is published."""
    right = total = 0.0
    for leaf in publication.leaves:
        if audit.truth is not None:
            masses = audit.truth[publication.profiles[leaf]].sum(axis=0)
            right += float(masses[publication.label(leaf)])
            total += float(masses.sum())
        elif publication.level == LABELS or publication.noisy:
            return None
        else:
            right += publication.share(leaf) * float(publication.sizes[leaf])
            total += float(publication.sizes[leaf])
    return right / total if total else None

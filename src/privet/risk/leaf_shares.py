"""The most even shares that what a leaf says allows: the closed form of maximum entropy without internal constraints.

People of one leaf are told apart by nothing, and entropy is concave, so they are alike in the optimum. A published
marginal couples leaves through one multiplier for each value, its tilt: a leaf then maximises H(p) + tilt . p.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from privet.errors import DataError
from privet.risk.noisy import noisy_shares
from privet.risk.people import entropy
from privet.risk.publication import COUNTS, LABELS, MOST_PARTS, Publication
from privet.risk.tree import Floats

NEVER, FARTHEST = -700.0, 60.0  # the tilt of a value that nobody has, and the largest of others


def leaf_shares(publication: Publication, leaf: int, tilt: Floats) -> Floats:
    """The shares of the values in a leaf."""
    if publication.noisy:
        return _noisy(publication, leaf)
    if publication.pure(leaf):
        return np.asarray(np.eye(publication.classes)[publication.label(leaf)])
    if publication.unclear(leaf):
        support = list(publication.support(leaf))
        found = np.zeros(publication.classes)
        found[support] = np.exp(tilt[support] - tilt[support].max())
        return np.asarray(found / found.sum())
    if publication.level == COUNTS and any(publication.tree.nodes[leaf].counts or ()):
        return publication.shares(leaf)
    label = publication.label(leaf)
    if publication.level == LABELS or not publication.published_size(leaf):
        return label_first(tilt, label)
    rate, labelled = publication.share(leaf), publication.labelled(leaf)
    if labelled is not None:  # rows with missing values count in it
        people = int(publication.sizes[leaf])
        rate = min(max(rate, labelled.people[0] / people), labelled.people[-1] / people)
        return with_rate(tilt, label, rate) if rate >= 1 / publication.classes else _held(label, rate, len(tilt))
    return with_rate(tilt, label, rate)


def _held(label: int, rate: float, classes: int) -> Floats:
    """A rate below an even share: the label is most frequent by rows that are not whole people."""
    shares = np.full(classes, (1 - rate) / max(classes - 1, 1))
    shares[label] = rate
    return shares


def _noisy(publication: Publication, leaf: int) -> Floats:
    node = publication.tree.nodes[leaf]
    if publication.level == LABELS or node.counts is None:  # a label that was chosen with noise excludes nothing
        return np.full(publication.classes, 1 / publication.classes)
    return noisy_shares(np.array(node.counts), node.deviation, publication.grown_on(leaf), prior="mixes")


def with_rate(tilt: Floats, label: int, rate: float) -> Floats:
    """max H(p) + tilt . p with p(label) = rate and no other value above it: the others share the rest in proportion
    to e^tilt, those that would come out above the label are held at it.

    >>> with_rate(np.zeros(3), 0, 0.5).tolist()
    [0.5, 0.25, 0.25]
    """
    shares = np.zeros(len(tilt))
    shares[label] = rate
    loose = np.arange(len(tilt)) != label
    left = 1 - rate
    while loose.any() and left > 0:
        weights = np.exp(tilt[loose] - tilt[loose].max())
        shares[loose] = left * weights / weights.sum()
        over = loose & (shares > rate)
        if not over.any():
            break
        shares[over] = rate
        loose &= ~over
        left = max(1 - rate - rate * float((~loose).sum() - 1), 0.0)
        shares[loose] = 0.0
    return shares


def label_first(tilt: Floats, label: int) -> Floats:
    """max H(p) + tilt . p with no value above the label: values that would be above it are pooled with it, and have
    the mean of their tilts.

    >>> label_first(np.zeros(4), 2).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    pooled, mean = [label], float(tilt[label])
    for value in np.argsort(-tilt, kind="stable").tolist():
        if value != label:
            if tilt[value] <= mean:
                break
            pooled.append(value)
            mean = float(tilt[pooled].mean())
    raised = tilt.copy()
    raised[pooled] = mean
    weights = np.exp(raised - raised.max())
    return np.asarray(weights / weights.sum())


def closed_form(publication: Publication, tilt: Floats) -> Floats:
    """The shares of every profile [profile, value]."""
    shares = lost_shares(publication)
    for leaf in publication.leaves:
        shares[publication.profiles[leaf]] = leaf_shares(publication, leaf, tilt)
    return shares


def lost_shares(publication: Publication) -> Floats:
    """What is believed of people without a leaf: the marginal if it is known, otherwise nothing; and of people with
    missing values what the leaf says that is surest of them."""
    lost = np.full(publication.classes, 1 / publication.classes)
    if publication.marginal is not None:
        lost = publication.marginal
    shares = np.tile(lost, (len(publication.people), 1))
    surest = np.zeros(len(publication.people))
    for leaf, parts in publication.partial.items():
        labelled, at = publication.labelled(leaf), 0
        if labelled is None:
            continue
        for profile, _ in parts:
            own = _held(publication.label(leaf), labelled.own[at], publication.classes)
            at += int(publication.people.sizes[profile])
            if len(labelled.own) <= MOST_PARTS and own.max() > max(surest[profile], float(lost.max())):
                surest[profile] = own.max()
                shares[profile] = own
    return shares


def tilt_of(publication: Publication) -> Floats:
    """The multipliers under which the leaves together have the published marginal; all 0 where none is published.

    The dual of a concave problem with linear constraints: convex, and its gradient is what the leaves have too much.
    """
    tilt = np.zeros(publication.classes)
    wanted = publication.marginal
    if wanted is None or publication.noisy or publication.sampled or publication.level == COUNTS:
        return tilt
    leaves = publication.leaves
    weights = publication.sizes[list(leaves)] / publication.sizes[list(leaves)].sum()
    had = wanted > 0
    tilt[~had] = NEVER

    def dual(free: Floats) -> tuple[float, Floats]:
        tilt[had] = free
        shares = np.stack([leaf_shares(publication, leaf, tilt) for leaf in leaves])
        value = weights @ (entropy(shares) + shares[:, had] @ free) - wanted[had] @ free
        return float(value), np.asarray((weights @ shares - wanted)[had])

    start = np.zeros(int(had.sum()))
    ends = [(-FARTHEST, FARTHEST)] * len(start)  # where nothing meets the marginal, the dual has no end
    found = minimize(
        dual, start, jac=True, method="L-BFGS-B", bounds=ends, options={"ftol": 1e-16, "gtol": 1e-11, "maxiter": 1000}
    )
    _, missed = dual(found.x)
    if np.abs(missed).max() > 1e-5:
        value = publication.tree.values[int(np.flatnonzero(had)[int(np.argmax(np.abs(missed)))])]
        raise DataError(
            f"no shares of the leaves give the published marginal of '{value}'; give it as counts, not as rounded "
            "shares, or it is that of other people."
        )
    return tilt

"""Worlds of independent pieces of which the total of each value is known: what a published marginal adds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from privet.risk.conditions import Mask
from privet.risk.tree import Floats, Integers
from privet.risk.world_counting import label_worlds
from privet.risk.world_parts import Leaf, Part

NEGLIGIBLE = 1e-30  # a total this much less likely than the likeliest is dropped
PAIRS = 8_000_000  # of totals so far and totals of one piece


@dataclass(frozen=True, eq=False)
class Totals:
    """The totals that worlds of one piece can have, the log of how many do, and the mean shares of its cells then."""

    cells: Integers
    totals: Integers  # [total, value]
    logs: Floats
    shares: Floats  # [total, cell, value]


def totals_of(piece: Leaf | Part, limit: int) -> Totals | None:
    """The totals of a piece; None if there are too many, or if they were drawn and differ."""
    if isinstance(piece, Leaf):
        return _totals_of_leaf(piece, max(limit, 1))
    totals, member = np.unique(piece.tables.sum(axis=0, dtype=np.int64), axis=0, return_inverse=True)
    if piece.logs is None and len(totals) > 1:
        return None
    order = np.argsort(member.ravel(), kind="stable")
    starts = np.flatnonzero(np.diff(member.ravel()[order], prepend=-1))
    logs = np.zeros(piece.number) if piece.logs is None else piece.logs
    added = np.logaddexp.reduceat(logs[order], starts)
    weights = np.exp(logs[order] - np.repeat(added, np.diff(starts, append=len(order))))
    means = np.add.reduceat(piece.tables[:, order] * weights[None, :, None], starts, axis=1)
    return Totals(piece.cells, totals, added, means.transpose(1, 0, 2) / piece.sizes[None, :, None])


def _totals_of_leaf(leaf: Leaf, limit: int) -> Totals | None:
    """The totals of a leaf, in which everybody is alike."""
    quota = leaf.quota
    if quota.classes == 2 and quota.labelled is None:  # no more than there are people, however many
        labelled, logs = label_worlds(quota.size, 2)
        totals = np.stack([labelled, quota.size - labelled], axis=1)[:, [quota.label, 1 - quota.label]]
    else:
        part = Leaf(leaf.number, quota, leaf.cells[:1], np.array([quota.size])).listed(limit)
        if part is None or part.logs is None:
            return None
        totals, logs = part.tables[0].astype(np.int64), part.logs
    shares = np.repeat(totals[:, None, :] / quota.size, len(leaf.cells), axis=1)
    return Totals(leaf.cells, totals, logs, shares)


@dataclass(frozen=True, eq=False)
class _Sums:
    """What pieces can add up to [sum, value but the last], in the order of their keys, and how likely each is."""

    digits: Integers
    keys: Integers
    weights: Floats


class TooMany(Exception):
    """The totals are too many to be followed."""


def conditioned(pieces: Sequence[Totals], target: Integers) -> tuple[list[Floats], float] | None:
    """The mean shares [cell, value] of each piece given the totals of all, and the log of the number of assignments;
    None if there is no such world.

    Pieces are independent but for their sum, so this is a chain: forward through what the first pieces add up to,
    back through what the others lack. Weights multiplied by exp(tilt . total) give all worlds of the same total the
    same factor; the tilt that makes the target the mean keeps everything that matters within reach of numbers.
    """
    if all(len(piece.logs) == 1 for piece in pieces):  # the totals follow from the tree
        same = (np.sum([piece.totals[0] for piece in pieces], axis=0) == target).all()
        return ([piece.shares[0] for piece in pieces], float(sum(piece.logs[0] for piece in pieces))) if same else None
    wanted = target[:-1]  # the last value has what the others leave
    if math.prod(int(each) + 1 for each in wanted) >= 2**62:
        raise TooMany
    strides = np.cumprod([1, *(wanted[:-1] + 1)])  # a sum as one number, its key
    tilted, log_scale = _tilted(pieces, wanted)
    sums = [_Sums(np.zeros((1, len(wanted)), dtype=np.int64), np.zeros(1, dtype=np.int64), np.ones(1))]
    for piece, weights in tilted:
        following, scale = _forward(sums[-1], piece, weights, wanted, strides)
        if following is None:
            return None
        sums.append(following)
        log_scale += scale
    back = (sums[-1].keys == int(wanted @ strides)).astype(np.float64)
    if not back.any():
        return None
    log_worlds = log_scale + float(np.log(sums[-1].weights @ back))
    found: list[Floats] = []
    for number, (piece, weights) in reversed(list(enumerate(tilted))):
        ahead = _looked_up(sums[number], sums[number + 1], piece, strides, wanted, back) * weights
        likely = sums[number].weights @ ahead
        found.append(np.asarray(np.einsum("t,tcx->cx", likely / likely.sum(), piece.shares)))
        back = ahead.sum(axis=1)
        back = back / back.max()
    return found[::-1], log_worlds


def _tilted(pieces: Sequence[Totals], wanted: Integers) -> tuple[list[tuple[Totals, Floats]], float]:
    """Pieces and the weights of their totals, tilted towards what is wanted, and the log of the factor they lack."""

    def surplus(tilt: Floats) -> tuple[float, Floats]:
        value, slope = 1e-9 * float(tilt @ tilt) - float(tilt @ wanted), 2e-9 * tilt - wanted
        for piece in pieces:
            logs = piece.logs + piece.totals[:, :-1] @ tilt
            weights = np.exp(logs - logs.max())
            value += float(logs.max() + np.log(weights.sum()))
            slope = slope + weights @ piece.totals[:, :-1] / weights.sum()
        return value, slope

    tilt = minimize(surplus, np.zeros(len(wanted)), jac=True, method="BFGS", options={"maxiter": 200}).x
    found, scale = [], -float(tilt @ wanted)
    for piece in pieces:
        logs = piece.logs + piece.totals[:, :-1] @ tilt
        weights = np.exp(logs - logs.max())
        kept = weights > NEGLIGIBLE
        found.append((Totals(piece.cells, piece.totals[kept], piece.logs[kept], piece.shares[kept]), weights[kept]))
        scale += float(logs.max())
    return found, scale


def _forward(
    sums: _Sums, piece: Totals, weights: Floats, wanted: Integers, strides: Integers
) -> tuple[_Sums | None, float]:
    """What the sums are with one more piece, and the log of the divisor of their weights."""
    added, fits = _added(sums, piece, wanted)
    if not fits.any():
        return None, 0.0
    keys, where, member = np.unique(added[fits] @ strides, return_index=True, return_inverse=True)
    likely = np.bincount(member.ravel(), weights=(sums.weights[:, None] * weights)[fits], minlength=len(keys))
    kept = likely > NEGLIGIBLE * likely.max()
    largest = float(likely.max())
    if largest == 0:
        return None, 0.0
    return _Sums(added[fits][where][kept], keys[kept], likely[kept] / largest), math.log(largest)


def _looked_up(
    sums: _Sums, following: _Sums, piece: Totals, strides: Integers, wanted: Integers, back: Floats
) -> Floats:
    """How likely the rest is to lead to the target from each sum and total of the piece [sum, total]."""
    added, fits = _added(sums, piece, wanted)
    keys = added @ strides
    at = np.minimum(np.searchsorted(following.keys, keys), len(following.keys) - 1)
    return np.where(fits & (following.keys[at] == keys), back[at], 0.0)


def _added(sums: _Sums, piece: Totals, wanted: Integers) -> tuple[Integers, Mask]:
    """Each sum plus each total of a piece, and which of them do not exceed what is wanted."""
    if len(sums.keys) * len(piece.logs) * len(wanted) > PAIRS:
        raise TooMany
    added = np.asarray(sums.digits[:, None, :] + piece.totals[None, :, :-1])
    return added, np.asarray((added <= wanted).all(axis=2))

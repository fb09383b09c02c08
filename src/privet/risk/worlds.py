"""The adversary of possible worlds: every data set that agrees with the publication is equally likely.

A world gives each person a sensitive value. Unlike maximum entropy this adversary counts whole people, and so finds
what averages hide: of two people who have one value each, a choice of splits may tell who has which.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privet.errors import DataError
from privet.risk.beliefs import Belief
from privet.risk.noisy import ASSIGNMENTS, noisy_shares
from privet.risk.publication import LABELS, Publication
from privet.risk.tree import Floats, Integers
from privet.risk.world_leaves import Quota, whole
from privet.risk.world_parts import Choice, Leaf, Part
from privet.risk.world_search import Search
from privet.risk.world_totals import TooMany, Totals, conditioned, totals_of

ADVERSARY = "possible worlds"


def possible_worlds(
    publication: Publication,
    choices: Sequence[Choice] = (),
    *,
    limit: int = 200_000,
    tries: int = 200_000,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> Belief:
    """What whoever holds every consistent data set equally likely believes of each profile.

    `choices` are the nodes whose split was the best; they are used from the leaves upwards, as far as the worlds below
    a node are at most `limit` (then the belief is exact) or enough of at most `tries` drawn ones are consistent (then
    its standard error is stated). A choice that is not used makes this adversary weaker, and is counted.
    """
    if publication.noisy:
        found = _of_noisy_counts(publication)
    elif publication.sampled:
        found = _of_a_sample(publication, seed)
    else:
        return _of_everybody(publication, choices, Search(publication, limit, tries, seed, progress), seed)
    unused = sum(len(choice.candidates) for choice in choices)
    if unused:
        reason = "noise took part in it" if publication.noisy else "which rows it was made for is not known"
        note = f"The choice of splits is not used, since {reason}."
        found = replace(found, notes=(*found.notes, note))
    return replace(found, facts={**found.facts, "used": 0, "not used": unused})


# -- the rows of the table are those of the tree ------------------------------------------------


def _of_everybody(publication: Publication, choices: Sequence[Choice], search: Search, seed: int) -> Belief:
    """The belief if the tree was grown on the people of the table, and its numbers are what they are."""
    settled: list[_Settled] = []
    limit = None if publication.marginal is None else search.limit
    for piece in search.pieces(choices):
        settled.append(_Settled.of(piece, seed, limit))
        limit = None if settled[-1].totals is None else limit  # then the marginal cannot be used anyway
    logs = [piece.log_worlds for piece in settled]
    log_worlds = None if None in logs else float(sum(log for log in logs if log is not None))
    notes = []
    if publication.marginal is not None:
        joint = _given_marginal(publication, settled)
        if joint is None:
            log_worlds = None
            notes.append(
                "The published marginal is not used, since the worlds that agree with it are too many to count: "
                "whoever does use it knows more than this adversary."
            )
        else:
            settled, log_worlds = joint[0], joint[1] if log_worlds is not None else None
    error = max((piece.error for piece in settled), default=0.0)
    drawn = any(piece.drawn for piece in settled)
    by_cell = np.zeros((search.cells, publication.classes))
    for each in settled:
        by_cell[each.cells] = each.shares
    shares = _of_the_lost(publication)
    placed = np.flatnonzero(publication.leaf >= 0)
    shares[placed] = by_cell[search.cell[placed]]
    if search.unused:
        notes.append(
            f"{search.unused:,} of {search.used + search.unused:,} constraints of internal nodes are not used, since "
            "their worlds are too many to count or to draw: whoever does use them knows more than this adversary."
        )
    if drawn:
        notes.append(f"Worlds were drawn where they are too many to count; the standard error is at most {error:.2g}.")
    facts: dict[str, float | int | str] = {"used": search.used, "not used": search.unused, "standard error": error}
    if log_worlds is not None:
        facts["worlds"] = _number(log_worlds)
    return Belief(ADVERSARY, shares, exact=not drawn, notes=tuple(notes), facts=facts)


@dataclass(frozen=True, eq=False)
class _Settled:
    """What is left of a piece when its worlds are no longer needed."""

    cells: Integers
    people: int
    shares: Floats  # [cell, value]
    drawn: bool
    error: float  # of the shares, where they were drawn
    log_worlds: float | None
    totals: Totals | None

    @classmethod
    def of(cls, piece: Leaf | Part, seed: int, limit: int | None) -> _Settled:
        """A piece by itself; with its totals, if there is a limit of them."""
        totals = None if limit is None else totals_of(piece, limit)
        people = int(piece.sizes.sum())
        if isinstance(piece, Part):
            return cls(piece.cells, people, piece.shares, piece.logs is None, piece.error, piece.log_worlds, totals)
        shares, error = piece.quota.shares(seed)
        everybody = np.tile(shares, (len(piece.cells), 1))
        return cls(piece.cells, people, everybody, error > 0, error, piece.quota.log_worlds, totals)


def _given_marginal(publication: Publication, settled: Sequence[_Settled]) -> tuple[list[_Settled], float] | None:
    """All pieces in the worlds that have the published totals too; None if those cannot be counted."""
    assert publication.marginal is not None
    target = whole(publication.marginal, sum(piece.people for piece in settled))
    totals = [piece.totals for piece in settled if piece.totals is not None]
    if len(totals) < len(settled):
        return None
    try:
        joint = conditioned(totals, target)
    except TooMany:
        return None
    if joint is None:
        raise DataError(_contradiction(publication, totals, target))
    shares, log_worlds = joint
    # a piece that was drawn has one total, if it has any: then all it is known by are its own shares
    return [
        piece if piece.drawn and len(piece.totals.logs) == 1 else replace(piece, shares=each, drawn=False, error=0.0)
        for piece, each in zip(settled, shares, strict=True)
        if piece.totals is not None
    ], log_worlds


def _contradiction(publication: Publication, pieces: Sequence[Totals], target: Integers) -> str:
    """Which value the marginal and the leaves disagree about."""
    least = np.sum([piece.totals.min(axis=0) for piece in pieces], axis=0)
    most = np.sum([piece.totals.max(axis=0) for piece in pieces], axis=0)
    for value, wanted in enumerate(target.tolist()):
        if not least[value] <= wanted <= most[value]:
            many = f"{least[value]}" if least[value] == most[value] else f"between {least[value]} and {most[value]}"
            return (
                f"the published marginal contradicts the leaves: it says that {wanted} of {int(target.sum())} people "
                f"have '{publication.tree.values[value]}', but the leaves say {many}; "
                "give it as counts, not as rounded shares."
            )
    return "no data set is consistent with both the published marginal and the tree; one of them is of other people."


def _number(log: float) -> str:
    """How many worlds: in full if floating point can tell."""
    return str(round(math.exp(log))) if log < math.log(1e13) else f"10^{log / math.log(10):.2f}"


# -- noise, or rows that are not known ----------------------------------------------------------


def _of_the_lost(publication: Publication) -> Floats:
    """What is believed of people of whom the tree says nothing: the marginal if it is known, otherwise nothing."""
    lost = np.full(publication.classes, 1 / publication.classes)
    if publication.marginal is not None:
        lost = publication.marginal
    return np.tile(lost, (len(publication.people), 1))


def _of_noisy_counts(publication: Publication) -> Belief:
    """The belief if counts are those of a private model: assignments are as likely as the noise they would need."""
    shares = _of_the_lost(publication)
    even = np.full(publication.classes, 1 / publication.classes)
    silent = False
    for leaf in publication.leaves:
        node, people = publication.tree.nodes[leaf], publication.profiles[leaf]
        if publication.level == LABELS or node.counts is None:
            shares[people], silent = even, True
            continue
        inside, size = publication.inside(leaf), publication.grown_on(leaf)
        among = noisy_shares(np.array(node.counts), node.deviation, size, prior=ASSIGNMENTS) if size else even
        shares[people] = inside * among + (1 - inside) * shares[people]
    notes = ["Counts are noisy: each assignment is as likely as the noise that would lead from it to them."]
    if silent:
        notes = ["A label that was chosen with noise excludes no assignment: all values are alike."]
    if publication.marginal is not None:
        notes.append("The published marginal is used only for people in no leaf or in no row of the tree.")
    return Belief(ADVERSARY, shares, notes=tuple(notes))


def _of_a_sample(publication: Publication, seed: int) -> Belief:
    """The belief if the tree was grown on an unknown part of the table: of each leaf, so many are among its rows."""
    shares = _of_the_lost(publication)
    error = 0.0
    for leaf in publication.leaves:
        inside, size = publication.inside(leaf), publication.grown_on(leaf)
        if size == 0:
            continue
        among, wrong = Quota.of(publication, leaf, size).shares(seed)
        error = max(error, inside * wrong)
        people = publication.profiles[leaf]
        shares[people] = inside * among + (1 - inside) * shares[people]
    notes = ["Anybody in a leaf is equally likely to be one of the rows that the tree was grown on."]
    if publication.marginal is not None:
        notes.append("The published marginal is used for people who are in none of these rows.")
    if error:
        notes.append(f"Labels of large leaves were drawn, with a standard error of at most {error:.2g}.")
    return Belief(ADVERSARY, shares, exact=error == 0, notes=tuple(notes), facts={"standard error": error})

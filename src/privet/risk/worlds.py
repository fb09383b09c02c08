"""The adversary of possible worlds: every data set that agrees with the publication is equally likely.

A world gives each person a sensitive value. Unlike maximum entropy this adversary counts whole people, and so finds
what averages hide: of two people who have one value each, a choice of splits may tell who has which.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from privet.errors import DataError
from privet.risk.constraints import lost_shares
from privet.risk.noisy import ASSIGNMENTS, noisy_shares
from privet.risk.people import Belief
from privet.risk.publication import LABELS, Publication
from privet.risk.tree import Floats, Integers, Mask
from privet.risk.world_pieces import ENTRIES, Choice, Leaf, Part, Quota, Rule, drawn, label_worlds, listed, whole
from privet.text import Countdown

# -- Worlds of independent pieces of which the total of each value is known: what a published marginal adds.

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
    if quota.support or quota.among is not None:
        return None
    if quota.classes == 2 and quota.labelled is None:  # no more than there are people, however many
        worlds = label_worlds(quota.size, 2, len(quota.earlier))
        labelled, logs = worlds.labelled, worlds.logs
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


# -- From the leaves upwards: the worlds of each node that agree with its choice of a split, listed or drawn.

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
        steps = Countdown(len(hopeful))
        pieces: dict[int, list[Leaf | Part] | None] = {}  # of each node; None if they are settled
        for node in reversed(range(len(tree.nodes))):
            if not tree.children[node]:
                pieces[node] = [self._leaf(node)] if sizes[node] else []
                continue
            parts = [pieces.pop(child) for child in tree.children[node]]
            below = [piece for part in parts if part is not None for piece in part]
            joined: list[Leaf | Part] | None = None if None in parts else below
            choice = at.get(node)
            if node in hopeful:
                self.progress(f"worlds of node {steps.next()}: {tree.where(node)}")
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
        rule = self._rule(choice, np.concatenate([piece.cells for piece in pieces]))
        if not rule.others:
            return pieces
        together = listed(pieces, self.limit)
        if together is None:
            sample = self._drawn(choice.node, rule, pieces)
            return None if sample is None else [sample]
        kept = rule.keeps(together.tables, together.sizes)
        if not len(kept):
            where = self.publication.tree.where(choice.node)
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
    shares = lost_shares(publication)
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


def _of_noisy_counts(publication: Publication) -> Belief:
    """The belief if counts are those of a private model: assignments are as likely as the noise they would need."""
    shares = lost_shares(publication)
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
    shares = lost_shares(publication)
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

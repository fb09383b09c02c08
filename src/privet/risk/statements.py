"""What published tables and rules say: of the people who meet some conditions, how many have each value.

A table says it of its cells and margins, a rule of who meets it, a decision list of who meets one of its rules and none
before. Cells that were suppressed, ranges and rounded shares say it between two numbers. People overlap: whoever is in
a row of a table is in a column too. So what follows for a person follows from all statements together, also for cells
that were left out (complementary suppression), and for several tables of the same people.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privet.errors import DataError, ModelError
from privet.risk.disclosure import OwnRow
from privet.risk.measures import SAME, Exposure
from privet.risk.people import Belief, People
from privet.risk.publication import Publication
from privet.risk.several import counts_of
from privet.risk.tallies import Conclusions, Tally, solved
from privet.risk.tree import Condition, Floats, Integers, Mask

ADVERSARY = "possible worlds"


@dataclass(frozen=True)
class Statement:
    """How many people who meet all conditions have each value: at least `low`, at most `high` of them."""

    conditions: tuple[Condition, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]  # infinite where nothing is said
    size: float | None = None  # people, where that is printed
    label: int | None = None  # of a rule that says no numbers: the most frequent value
    share: tuple[int, float, float] | None = None  # a value, and between which shares of these people have it
    line: int | None = None  # where it stands in what it was read from
    after: bool = False  # of those alone whom statements before it left

    @property
    def where(self) -> str:
        """The conditions as people read them."""
        return " and ".join(map(str, self.conditions)) or ("everybody else" if self.after else "all people")


@dataclass(frozen=True, eq=False)
class Statements:
    """All that one publication says, and the public values of the sensitive attribute."""

    said: tuple[Statement, ...]
    values: tuple[str, ...]
    source: str  # "a table", "a decision list", "rules"
    is_list: bool = False  # does each speak of those alone who meet none before it?
    is_loose: bool = False  # may others, too, be described by the same words (overlapping generalised rows)?
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.said:
            raise ModelError(f"{self.source} says nothing of the sensitive attribute, so there is nothing to audit.")

    def tallies(self, people: People) -> list[Tally]:
        """The statements over the people of a table, each with the profiles that it is about."""
        known: dict[Condition, Mask] = {}
        open_, found = np.ones(len(people), dtype=np.bool_), []
        for each in self.said:
            meets = np.ones(len(people), dtype=np.bool_)
            for condition in each.conditions:
                if condition not in known:
                    known[condition] = _meets(condition, people, self.source)
                meets &= known[condition]
            if self.is_list:
                meets &= open_
                open_ &= ~meets
            found.append(_tally(each, meets, people, self.source, self.is_loose))
        return found

    def without(self, left_out: Iterable[int]) -> Statements:
        """The same with some statements withheld."""
        numbers = set(left_out)
        nothing = (0.0,) * len(self.values), (math.inf,) * len(self.values)
        said = tuple(
            replace(each, low=nothing[0], high=nothing[1], size=None, label=None, share=None)
            if number in numbers
            else each
            for number, each in enumerate(self.said)
        )
        return replace(self, said=said)


def of_tree(publication: Publication) -> Statements:
    """What the leaves of a tree without noise say, to be held against other publications."""
    tree, said = publication.tree, []
    for leaf, totals in enumerate(counts_of(publication)):
        if leaf in publication.leaves:
            path = [tree.nodes[node].condition for node in (leaf, *tree.ancestors(leaf))]
            conditions = tuple(condition for condition in reversed(path) if condition is not None)
            said.append(Statement(conditions, tuple(totals.tolist()), tuple(totals.tolist())))
    return Statements(tuple(said), tree.values, "the tree")


def _meets(condition: Condition, people: People, source: str) -> Mask:
    if condition.column not in people.names:
        raise DataError(
            f"{source} speaks of '{condition.column}', which is not among the columns of the people "
            f"({', '.join(people.names[:10])}{', …' * (len(people.names) > 10)})."
        )
    at = people.names.index(condition.column)
    return np.asarray(condition.holds(people.attributes[at].values)[people.codes[:, at]])


def _tally(each: Statement, meets: Mask, people: People, source: str, is_loose: bool) -> Tally:
    """A statement over people, in whole numbers; one sentence where it cannot be about these people."""
    profiles = np.flatnonzero(meets)
    size = int(people.sizes[profiles].sum())
    where = f"{source} says of '{each.where}'" + (f" (line {each.line})" if each.line else "")
    if each.size is not None and round(each.size) != size and not is_loose:
        raise DataError(
            f"{where} that they are {each.size:g} people, but {size} people of the table are there; is it about these "
            "people, and are rounded numbers written as ranges, like 18-22?"
        )
    classes = len(each.low)
    if is_loose and each.size is not None and round(each.size) < size:  # others are described by the same words
        each = replace(each, high=(math.inf,) * classes)
    low = np.ceil(np.array(each.low) - 1e-6).astype(np.int64)
    high = np.floor(np.minimum(np.array(each.high), size) + 1e-6).astype(np.int64)
    if each.share is not None:
        value, least, most = each.share
        low[value] = max(low[value], math.ceil(least * size - 1e-6))
        high[value] = min(high[value], math.floor(most * size + 1e-6))
    if each.label is not None:
        low[each.label] = max(low[each.label], -(-size // classes))
    if (low > high).any() or low.sum() > size or (each.size is not None and not is_loose and high.sum() < size):
        raise DataError(f"{where} what cannot be: {size} people of the table are there; is it about these people?")
    return Tally(profiles, size, low, high)


# -- what follows for people ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Followed:
    """What somebody concludes who holds statements: beliefs, and what own rows add to them."""

    belief: Belief
    own: OwnRow
    known: Conclusions
    where: tuple[str, ...]  # of each statement


def tallied(several: Sequence[Statements], people: People) -> tuple[list[Tally], tuple[str, ...]]:
    """The tallies of several publications, and what each is about in words."""
    tallies = [tally for each in several for tally in each.tallies(people)]
    return tallies, tuple(said.where for each in several for said in each.said)


def follow(
    tallies: Sequence[Tally],
    where: tuple[str, ...],
    people: People,
    baseline: Floats | None,
    truth: Floats | None,
    seed: int = 0,
) -> Followed:
    """Everything that follows from tallies of the same people, and what each row added to it.

    Without a person's own row the smallest group that a number is known of, and that they would be in, has its others,
    and the baseline stands for one more: inference(v) = (others with v + baseline(v)) / n, as in the leaf of a tree.
    Groups are those that were published and those whose numbers follow from the difference of others. What is believed
    with all statements, less that, is what the row added; never less than in a group of that size with its counts.
    Where exact sums of groups that cross tell more than the smallest of them, as margins do, it is learnt from the
    others but for the leverage of the own row in these sums (1 / n in one group, 1 for whoever is a difference).
    """
    known = solved(tallies, people.sizes, len(tallies[0].low), seed)
    shares = known.means / people.sizes[:, None]
    if baseline is None:
        total = truth.sum(axis=0) if truth is not None else known.means.sum(axis=0)
        baseline = np.asarray(total / total.sum())
    covered = known.smallest >= 0
    shares = np.where(covered[:, None], shares, baseline)
    sizes = np.maximum(known.group_sizes[known.smallest], 1)[:, None]
    means, exact = known.group_means[known.smallest], known.group_exact[known.smallest]
    others = np.where(exact[:, None], means - 1, means - shares)
    without = np.where(covered[:, None], (np.maximum(others, 0.0) + baseline) / sizes, baseline)
    least = np.where(covered[:, None], np.maximum(1 - baseline, 0.0) / sizes, 0.0)
    crossed = covered & np.isfinite(known.leverage) & ~known.together[known.smallest]
    own_part = np.nan_to_num(known.leverage)[:, None] * np.maximum(1 - baseline, 0.0)
    without = np.where(crossed[:, None], shares - own_part, without)
    added = np.minimum(np.maximum(shares - without, least), shares)
    inference = np.maximum(shares - added, 0.0)
    counted = truth if truth is not None else shares * people.sizes[:, None]
    own = OwnRow(np.tile(baseline, (len(people), 1)), inference, added, counted, truth is not None)
    facts = {"groups": len(tallies), "certain": int(people.sizes[known.settled].sum()), "counted": known.counted}
    belief = Belief(ADVERSARY, shares, known.is_exact, (known.note(),), facts)
    return Followed(belief, own, known, where)


def exposed(found: Followed, people: People, values: Sequence[str], score: Floats, top: int) -> tuple[Exposure, ...]:
    """The most exposed people, one entry for all of a group of whom the same follows."""
    own, known = found.own, found.known
    value = np.argmax(np.where(own.people > SAME, own.disclosure, -1.0), axis=1)
    alike: dict[tuple[int, int, int], list[int]] = {}
    for profile in np.lexsort((people.sizes, -np.round(score / SAME))).tolist():
        key = (int(known.smallest[profile]), int(value[profile]), round(float(score[profile]) * 1e6))
        alike.setdefault(key, []).append(profile)
    listed = []
    for (group, at, _), profiles in list(alike.items())[:top]:
        first = profiles[0]
        listed.append(
            Exposure(
                first,
                people.told(first),
                int(people.sizes[first]),
                values[at],
                float(found.belief.shares[first, at]),
                float(own.baseline[first, at]),
                ADVERSARY,
                _told(known, group, found.where),
                _because(known, first, group),
                len(profiles) - 1,
                float(own.inference[first, at]),
                float(own.disclosure[first, at]),
                int(people.sizes[profiles].sum()),
            )
        )
    return tuple(listed)


def _told(known: Conclusions, group: int, where: Sequence[str]) -> str:
    """A group as people find it: by the statement about it, or those that it is the difference of."""
    if group < 0:
        return "no statement"
    first, *rest = known.origins[group]
    if not rest:
        return where[first]
    return f"{where[first]}, without {' and without '.join(where[each] for each in rest[:3])}{', …' * (len(rest) > 3)}"


def _because(known: Conclusions, profile: int, group: int) -> str:
    if group < 0:
        return "nothing is said about them"
    size = int(known.group_sizes[group])
    there = "1 person is" if size == 1 else f"{size} people are"
    if known.together[group]:
        return f"all statements together settle it, where {there}"
    if len(known.origins[group]) > 1:
        return f"the difference of what is published, where {there}"
    if known.settled[profile] and known.group_exact[group] and (known.group_means[group] >= size - SAME).any():
        return f"the {size} people there all have it" if size > 1 else "the 1 person there has it"
    return f"what is said of the group, where {there}"


def withheld_statements(
    several: Sequence[Statements], found: Followed, concerned: Integers
) -> tuple[list[Statements], Mapping[int, Statement]]:
    """The publications without the statements about the smallest groups of whoever is concerned, and which those are.

    A group that follows from a difference is taken out by its smallest part that was published, or by the whole.
    """
    numbers: set[int] = set()
    for group in np.unique(found.known.smallest[concerned]).tolist():
        if group >= 0:
            numbers.add(found.known.origins[group][-1 if len(found.known.origins[group]) > 1 else 0])
    left, gone, start = [], {}, 0
    same = {index: found.known.same[index] for index in numbers}
    numbers |= {other for some in same.values() for other in some}
    for each in several:
        mine = [number - start for number in numbers if start <= number < start + len(each.said)]
        gone.update({start + at: each.said[at] for at in mine})
        left.append(each.without(mine))
        start += len(each.said)
    return left, gone

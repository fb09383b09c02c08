"""Possible worlds of tallies: of groups of people that may overlap it is known how many have each value, or about.

A world gives everybody a value; all worlds that agree with every tally are equally likely. People who are in the same
groups are one atom, of which a world says only how many have each value. What is known exactly of a part of a group is
taken from it, so that margins and cells do not hold the same twice and differences of tables become groups of their
own. Then bounds of atoms are tightened until nothing changes, and each independent part is counted: sums are followed
atom by atom, exactly. Where there are too many sums, linear programs find what is certain and maximum entropy stands
for the rest; that is a belief and no bound, and the note says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.sparse import coo_matrix, csr_matrix, vstack
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

from privet.errors import DataError
from privet.risk.tree import Floats, Integers, Mask

WORK = 300_000  # sums times ways to go on that are followed of one part
LARGE = 1000  # atoms times values of a part: of larger ones fewer programs are solved, and none is counted
PROGRAMS = 400  # linear programs of one part
MOST_GROUPS = 1500  # of a part, that the hat matrix is computed of
FIRM = 30.0  # the largest multiplier of maximum entropy
CONTRADICTION = "the statements contradict each other or the table; they are not of the same people."


@dataclass(frozen=True, eq=False)
class Tally:
    """Some profiles, how many people they are, and between which numbers of them have each value."""

    profiles: Integers
    size: int
    low: Integers
    high: Integers


@dataclass(frozen=True, eq=False)
class Conclusions:
    """What follows: the mean number of people with each value [profile, value], and the groups that it follows from."""

    means: Floats
    settled: Mask  # of each profile: does it follow with certainty who of it has what?
    smallest: Integers  # of each profile the smallest group of which a number is known, -1 for none
    group_sizes: Integers
    group_means: Floats
    group_exact: Mask
    origins: tuple[tuple[int, ...], ...]  # of each group its tally, and those that were taken from it
    leverage: Floats  # of each profile, where sums alone tell of it: by how much of their own value one is told
    together: Mask  # of each group: does it follow from several tallies, and no single one or difference says it?
    same: tuple[tuple[int, ...], ...]  # of each tally those about the same people
    counted: int  # parts that were counted
    believed: int  # and those that were not

    @property
    def is_exact(self) -> bool:
        """Were all worlds counted?"""
        return not self.believed

    def note(self) -> str:
        """How it was found, in a sentence."""
        if not self.believed:
            return "Every data set that agrees with all statements was counted."
        return (
            f"{self.believed} of {self.counted + self.believed} independent parts have too many sums to be counted: "
            "there what linear programs find certain is taken as such, and of the rest maximum entropy is believed. "
            "Somebody who counts may know more."
        )


@dataclass(eq=False)
class _Group:
    """Atoms, and between which numbers of their people have each value."""

    atoms: Integers
    low: Integers
    high: Integers
    origins: tuple[int, ...]
    together: bool = False

    @property
    def exact(self) -> bool:
        return bool((self.low == self.high).all())


def solved(tallies: Sequence[Tally], sizes: Integers, classes: int, seed: int = 0) -> Conclusions:
    """What follows from tallies about profiles of these sizes.

    Parameters
    ----------
    tallies : sequence of Tally
    sizes : Integers
        How many people each profile is.
    classes : int
        How many values there are.
    seed : int, default 0
        Of the random sums by which atoms are told apart.

    Returns
    -------
    Conclusions

    Raises
    ------
    DataError
        If no world agrees with all of them.
    """
    atom = _atoms(tallies, len(sizes), seed)
    weights = np.bincount(atom, sizes).astype(np.int64)
    groups, same = _groups(tallies, atom, weights)
    parts = _without_parts(groups, weights)
    low, high = _tightened(parts, weights, classes)
    means = np.zeros((len(weights), classes))
    counted = believed = 0
    is_counted, leverage = np.ones(len(weights), dtype=np.bool_), np.full(len(weights), np.nan)
    for atoms, rules in _parts(parts, weights, low, high):
        found = _counted(weights[atoms], low[atoms], high[atoms], rules)
        if found is None:
            found, low[atoms], high[atoms] = _believed(weights[atoms], low[atoms], high[atoms], rules)
            is_counted[atoms] = False
            believed += 1
        else:
            counted += 1
        means[atoms] = found
        leverage[atoms] = _leverage(weights[atoms], rules)
    settled = (low == high).all(axis=1) | is_counted & (np.abs(means.max(axis=1) - weights) < 1e-9)
    smallest, listed = _smallest(groups, parts, settled, means, weights)
    share = means / weights[:, None]
    return Conclusions(
        share[atom] * sizes[:, None],
        settled[atom] & ((weights[atom] == sizes) | (share.max(axis=1)[atom] > 1 - 1e-9)),
        smallest[atom],
        np.array([int(weights[group.atoms].sum()) for group in listed] or [0], dtype=np.int64),
        np.array([means[group.atoms].sum(axis=0) for group in listed] or [np.zeros(classes)]),
        np.array([group.exact for group in listed] or [False]),
        tuple(group.origins for group in listed),
        leverage[atom],
        np.array([group.together for group in listed] or [False]),
        same,
        counted,
        believed,
    )


def _atoms(tallies: Sequence[Tally], profiles: int, seed: int) -> Integers:
    """The atom of each profile; two different ones are taken for one with probability 2^-64."""
    rng, traits = np.random.default_rng(seed), np.zeros(profiles, dtype=np.uint64)
    for tally in tallies:
        traits[tally.profiles] += rng.integers(2**64, dtype=np.uint64)
    return np.asarray(np.unique(traits, return_inverse=True)[1].ravel())


def _groups(
    tallies: Sequence[Tally], atom: Integers, weights: Integers
) -> tuple[list[_Group], tuple[tuple[int, ...], ...]]:
    """Distinct groups, what several tallies say of one taken together; and the tallies about the same people."""
    found: dict[bytes, _Group] = {}
    about: dict[bytes, list[int]] = {}
    keys = []
    for number, tally in enumerate(tallies):
        atoms = np.unique(atom[tally.profiles])
        key = atoms.tobytes()
        keys.append(key)
        about.setdefault(key, []).append(number)
        if key not in found:
            found[key] = _Group(atoms, tally.low.copy(), tally.high.copy(), (number,))
        group = found[key]
        group.low, group.high = np.maximum(group.low, tally.low), np.minimum(group.high, tally.high)
    groups = []
    for group in found.values():
        size = int(weights[group.atoms].sum())
        for _ in range(2):  # what the other values leave
            group.low = np.maximum(group.low, size - (group.high.sum() - group.high))
            group.high = np.minimum(group.high, size - (group.low.sum() - group.low))
        if (group.low > group.high).any():
            raise DataError(CONTRADICTION)
        if len(group.atoms) and ((group.low > 0) | (group.high < size)).any():
            groups.append(group)
    return groups, tuple(tuple(about[key]) for key in keys)


def _without_parts(groups: Sequence[_Group], weights: Integers) -> list[_Group]:
    """The same constraints, each group without those parts of it that are known exactly: an equation less another.

    Nothing is lost, as the parts keep their own; and what a table suppressed becomes a group of its own.
    """
    exact = sorted((group for group in groups if group.exact), key=lambda group: len(group.atoms))
    of_atom: dict[int, list[_Group]] = {}
    for group in exact:
        for atom in group.atoms.tolist():
            of_atom.setdefault(atom, []).append(group)
    found = []
    for group in groups:
        left, low, high, origins = set(group.atoms.tolist()), group.low, group.high, group.origins
        inside = {id(part): part for atom in left for part in of_atom.get(atom, ()) if part is not group}
        for part in sorted(inside.values(), key=lambda part: -len(part.atoms)):
            atoms = part.atoms.tolist()
            if len(atoms) < len(group.atoms) and left.issuperset(atoms):
                left.difference_update(atoms)
                low, high, origins = low - part.low, high - part.low, (*origins, *part.origins[:1])
        if (high < 0).any() or (not left and (low > 0).any()):
            raise DataError(CONTRADICTION)
        if left:
            found.append(_Group(np.array(sorted(left), dtype=np.int64), np.maximum(low, 0), high, origins))
    return found


def _tightened(groups: Sequence[_Group], weights: Integers, classes: int) -> tuple[Integers, Integers]:
    """The least and the most people of each atom with each value [atom, value], as far as bounds alone tell."""
    low, high = np.zeros((len(weights), classes), dtype=np.int64), np.tile(weights[:, None], (1, classes))
    if not groups:
        return low, high
    row = np.repeat(np.arange(len(groups)), [len(group.atoms) for group in groups])
    at = np.concatenate([group.atoms for group in groups])
    inside = csr_matrix((np.ones(len(at), dtype=np.int64), (row, at)), shape=(len(groups), len(weights)))
    least, most = np.array([group.low for group in groups]), np.array([group.high for group in groups])
    while True:
        before = low.sum() - high.sum()
        sums_low, sums_high = np.asarray(inside @ low), np.asarray(inside @ high)
        if (sums_low > most).any() or (sums_high < least).any():
            raise DataError(CONTRADICTION)
        np.maximum.at(low, at, least[row] - (sums_high[row] - high[at]))
        np.minimum.at(high, at, most[row] - (sums_low[row] - low[at]))
        low = np.maximum(low, weights[:, None] - (high.sum(axis=1, keepdims=True) - high))
        high = np.minimum(high, weights[:, None] - (low.sum(axis=1, keepdims=True) - low))
        if (low > high).any():
            raise DataError(CONTRADICTION)
        if low.sum() - high.sum() == before:
            return low, high


@dataclass(frozen=True, eq=False)
class _Rule:
    """Of these atoms of a part together between `low` and `high` people have a value."""

    atoms: Integers
    value: int
    low: int
    high: int


def _parts(
    groups: Sequence[_Group], weights: Integers, low: Integers, high: Integers
) -> Iterator[tuple[Integers, list[_Rule]]]:
    """Atoms that are bound together by what is still open, and the rules between them; of values the last follows."""
    rules = []
    for group in groups:
        for value in range(low.shape[1]):
            least, most = int(low[group.atoms, value].sum()), int(high[group.atoms, value].sum())
            if group.low[value] > least or group.high[value] < most:
                rules.append((group, value))
    left = np.array([at for at, (group, _) in enumerate(rules) for _ in group.atoms], dtype=np.int64)
    right = np.array([atom for group, _ in rules for atom in group.atoms.tolist()], dtype=np.int64)
    many = len(weights)
    graph = coo_matrix((np.ones(len(left)), (right, many + left)), shape=(many + len(rules),) * 2)
    labels = connected_components(graph, directed=False)[1]
    of_part: dict[int, list[tuple[_Group, int]]] = {}
    for at, rule in enumerate(rules):
        of_part.setdefault(int(labels[many + at]), []).append(rule)
    order = np.argsort(labels[:many], kind="stable")
    for atoms in np.split(order, np.flatnonzero(np.diff(labels[:many][order])) + 1):
        place = {atom: at for at, atom in enumerate(atoms.tolist())}
        some = of_part.get(int(labels[atoms[0]]), [])
        yield (
            atoms,
            [
                _Rule(np.array([place[atom] for atom in group.atoms.tolist()]), value, int(least), int(most))
                for group, value in some
                for least, most in [(group.low[value], group.high[value])]
            ],
        )


# -- counting -------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Step:
    """One atom on the way: which counts it may have and how likely, and what becomes of the sums of rules."""

    counts: Integers  # [way, value]
    weights: Floats
    adds: Integers  # what each way adds to the sums that are open after it [way, rule]
    kept: list[int]  # where each of these stood before, -1 for a new one
    ends: list[tuple[int, int, int, int]]  # rules that end here: where, value, low and high
    low: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # what the rest needs at least,
    high: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # and at most


def _counted(sizes: Integers, low: Integers, high: Integers, rules: Sequence[_Rule]) -> Floats | None:
    """The mean number of people of each atom with each value, over all worlds; None if there are too many sums."""
    if not rules:
        return np.stack([_free(int(size), *bounds) for size, *bounds in zip(sizes, low, high, strict=True)])
    if low.size > LARGE:
        return None
    order = _order(len(sizes), rules)
    steps = _steps(sizes, low, high, rules, order)
    if steps is None:
        return None
    forward: list[dict[tuple[int, ...], float]] = [{(): 1.0}]
    work = 0
    for step in steps:
        work += len(forward[-1]) * len(step.weights)
        if work > WORK:
            return None
        following: dict[tuple[int, ...], float] = {}
        for sums, weight in forward[-1].items():
            for way, after in _ways(step, sums):
                following[after] = following.get(after, 0.0) + weight * step.weights[way]
        if not following:
            raise DataError(CONTRADICTION)
        largest = max(following.values())
        forward.append({sums: weight / largest for sums, weight in following.items()})
    means = np.zeros(low.shape)
    back: dict[tuple[int, ...], float] = {(): 1.0}
    for step, atom, states in zip(reversed(steps), reversed(order), reversed(forward[:-1]), strict=True):
        before: dict[tuple[int, ...], float] = {}
        likely = np.zeros(len(step.weights))
        for sums, weight in states.items():
            ahead = 0.0
            for way, after in _ways(step, sums):
                behind = step.weights[way] * back.get(after, 0.0)
                ahead += behind
                likely[way] += weight * behind
            if ahead > 0:
                before[sums] = ahead
        means[atom] = likely @ step.counts / likely.sum()
        largest = max(before.values())
        back = {sums: weight / largest for sums, weight in before.items()}
    return means


def _free(size: int, low: Integers, high: Integers) -> Floats:
    """The mean counts of an atom that no rule binds to others."""
    if (low == high).all():
        return low.astype(np.float64)
    if (low == 0).all() and ((high == size) | (high == 0)).all():  # all that can be are alike
        can = high > 0
        return np.asarray(can * size / can.sum())
    ways = _compositions(size, low, high, WORK)
    if ways is None:
        middle = (low + high) / 2.0
        return np.asarray(middle * size / max(middle.sum(), 1e-300))
    weights = _multinomial(ways)
    return np.asarray(weights @ ways / weights.sum())


def _order(atoms: int, rules: Sequence[_Rule]) -> list[int]:
    """Atoms one after the other so that few rules are open at a time: those of a rule that is open come first."""
    of_atom: list[list[int]] = [[] for _ in range(atoms)]
    for number, rule in enumerate(rules):
        for atom in rule.atoms.tolist():
            of_atom[atom].append(number)
    left = [len(rule.atoms) for rule in rules]
    begun: set[int] = set()
    waiting, found = set(range(atoms)), []
    near: set[int] = set()
    while waiting:
        pool = near & waiting or waiting

        def cost(atom: int) -> tuple[int, int, int]:
            opens = sum(rule not in begun for rule in of_atom[atom])
            ends = sum(left[rule] == 1 for rule in of_atom[atom])
            return opens - ends, min((left[rule] for rule in of_atom[atom]), default=0), atom

        best = min(pool, key=cost) if len(pool) <= 200 else min(itertools.islice(pool, 200), key=cost)
        waiting.remove(best)
        found.append(best)
        for number in of_atom[best]:
            left[number] -= 1
            if number not in begun:
                begun.add(number)
                near.update(rules[number].atoms.tolist())
    return found


def _steps(
    sizes: Integers, low: Integers, high: Integers, rules: Sequence[_Rule], order: Sequence[int]
) -> list[_Step] | None:
    """What happens at each atom; None if one alone has too many ways."""
    place = {atom: at for at, atom in enumerate(order)}
    last = [max(place[atom] for atom in rule.atoms.tolist()) for rule in rules]
    need = [rule.low - int(high[rule.atoms, rule.value].sum()) for rule in rules]  # less what is still to come
    room = [rule.high - int(low[rule.atoms, rule.value].sum()) for rule in rules]
    of_atom: list[list[int]] = [[] for _ in order]
    for number, rule in enumerate(rules):
        for atom in rule.atoms.tolist():
            of_atom[atom].append(number)
    open_: list[int] = []
    steps = []
    for at, atom in enumerate(order):
        ways = _compositions(int(sizes[atom]), low[atom], high[atom], WORK // 10)
        if ways is None:
            return None
        mine = set(of_atom[atom])
        for number in mine:
            need[number] += int(high[atom, rules[number].value])
            room[number] += int(low[atom, rules[number].value])
        here = [*open_, *(number for number in of_atom[atom] if number not in open_)]
        after = [number for number in here if last[number] > at]
        ends = [
            (open_.index(number) if number in open_ else -1, rules[number].value, rules[number].low, rules[number].high)
            for number in here
            if last[number] == at
        ]
        adds = np.stack(
            [ways[:, rules[number].value] * (number in mine) for number in after]
            or [np.zeros(len(ways), dtype=np.int64)],
            axis=1,
        )[:, : len(after)]
        steps.append(
            _Step(
                ways,
                _multinomial(ways),
                adds,
                [open_.index(number) if number in open_ else -1 for number in after],
                ends,
                np.array([need[number] for number in after], dtype=np.int64),
                np.array([room[number] for number in after], dtype=np.int64),
            )
        )
        open_ = after
    return steps


def _ways(step: _Step, sums: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The ways on from some sums, and the sums after each."""
    fits = np.ones(len(step.weights), dtype=np.bool_)
    for where, value, low, high in step.ends:
        total = step.counts[:, value] + (sums[where] if where >= 0 else 0)
        fits &= (total >= low) & (total <= high)
    start = np.array([sums[where] if where >= 0 else 0 for where in step.kept], dtype=np.int64)
    after = start + step.adds
    fits &= ((after >= step.low) & (after <= step.high)).all(axis=1)
    for way in np.flatnonzero(fits).tolist():
        yield way, tuple(after[way].tolist())


def _compositions(size: int, low: Integers, high: Integers, most: int) -> Integers | None:
    """All counts of the values that add up to a size between bounds; None if they are more than `most`."""
    found = np.zeros((1, 0), dtype=np.int64)
    left = np.array([size])
    for value in range(len(low) - 1):
        rest_low, rest_high = int(low[value + 1 :].sum()), int(high[value + 1 :].sum())
        first = np.maximum(int(low[value]), left - rest_high)
        final = np.minimum(int(high[value]), left - rest_low)
        many = np.maximum(final - first + 1, 0)
        if many.sum() > most:
            return None
        row = np.repeat(np.arange(len(left)), many)
        count = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        found, left = np.column_stack([found[row], count]), left[row] - count
    fits = (left >= int(low[-1])) & (left <= int(high[-1]))
    return np.column_stack([found, left])[fits]


def _multinomial(ways: Integers) -> Floats:
    """In how many ways people can have each of these counts, up to a factor."""
    logs = -gammaln(ways + 1.0).sum(axis=1)
    return np.asarray(np.exp(logs - logs.max())) if len(logs) else np.empty(0)


def _leverage(sizes: Integers, rules: Sequence[_Rule]) -> Floats:
    """By how much of their own value a person of each atom is told by the sums of a part: the diagonal of the hat
    matrix of who is in which group. It is 1 / n in a group of n alone, about the sum of these for margins that cross,
    and 1 for whoever is the difference of sums. NaN where ranges, too, tell, or groups are too many.
    """
    groups = {rule.atoms.tobytes(): rule.atoms for rule in rules}
    if not groups or len(groups) > MOST_GROUPS or any(rule.low != rule.high for rule in rules):
        return np.full(len(sizes), np.nan)
    inside = np.zeros((len(sizes), len(groups)))
    for number, atoms in enumerate(groups.values()):
        inside[atoms, number] = 1.0
    inverse = np.linalg.pinv(inside.T @ (inside * sizes[:, None]), rcond=1e-10, hermitian=True)
    return np.asarray(np.minimum(np.einsum("ag,gh,ah->a", inside, inverse, inside, optimize=True), 1.0))


# -- believing ------------------------------------------------------------------------------------


def _believed(
    sizes: Integers, low: Integers, high: Integers, rules: Sequence[_Rule]
) -> tuple[Floats, Integers, Integers]:
    """Mean counts by maximum entropy between the bounds that linear programs find, and these bounds."""
    low, high = _bounded(sizes, low, high, rules)
    loose = high > low
    fixed = np.where(loose, 0, low)
    mass = (sizes - fixed.sum(axis=1)).astype(np.float64)
    row = np.repeat(np.arange(len(rules)), [len(rule.atoms) for rule in rules])
    at = np.concatenate([rule.atoms for rule in rules])
    value = np.array([rule.value for rule in rules])
    held = np.bincount(row, fixed[at, value[row]], minlength=len(rules))
    least = np.array([rule.low for rule in rules]) - held
    most = np.array([rule.high for rule in rules]) - held

    def shares(multipliers: Floats) -> tuple[Floats, Floats]:
        logits = np.where(loose, 0.0, -np.inf)
        np.add.at(logits, (at, value[row]), multipliers[row])
        top = np.where(loose.any(axis=1), logits.max(axis=1), 0.0)[:, None]
        weights = np.exp(logits - top)
        total = weights.sum(axis=1, keepdims=True)
        return weights / np.maximum(total, 1e-300), (np.log(np.maximum(total, 1e-300)) + top)[:, 0]

    def dual(both: Floats) -> tuple[float, Floats]:
        up, down = both[: len(rules)], both[len(rules) :]
        some, logs = shares(up - down)
        sums = np.bincount(row, (some * mass[:, None])[at, value[row]], minlength=len(rules))
        cost = float(mass @ logs - up @ least + down @ most)
        return cost, np.concatenate([sums - least, most - sums])

    ends = [(0.0, FIRM)] * (2 * len(rules))
    found = minimize(
        dual, np.zeros(2 * len(rules)), jac=True, method="L-BFGS-B", bounds=ends, options={"maxiter": 2000}
    )
    some, _ = shares(found.x[: len(rules)] - found.x[len(rules) :])
    return np.asarray(fixed + some * mass[:, None]), low, high


def _bounded(sizes: Integers, low: Integers, high: Integers, rules: Sequence[_Rule]) -> tuple[Integers, Integers]:
    """Bounds of atoms that linear programs tighten, the smallest atoms first."""
    many, classes = low.shape
    low, high = low.copy(), high.copy()
    row = np.repeat(np.arange(len(rules)), [len(rule.atoms) for rule in rules])
    column = np.concatenate([rule.atoms * classes + rule.value for rule in rules])
    sums = csr_matrix((np.ones(len(row)), (row, column)), shape=(len(rules), many * classes))
    upper, lower = np.array([rule.high for rule in rules]), np.array([rule.low for rule in rules])
    whole = csr_matrix(
        (np.ones(many * classes), (np.repeat(np.arange(many), classes), np.arange(many * classes))),
        shape=(many, many * classes),
    )
    program: Any = linprog
    budget = min(PROGRAMS, PROGRAMS * LARGE // (many * classes))
    for atom in np.argsort(sizes, kind="stable").tolist():
        for value in range(classes):
            for sign, bounds in ((1, low), (-1, high)):
                if low[atom, value] == high[atom, value]:
                    continue
                if not budget:
                    return low, high
                budget -= 1
                goal = np.zeros(many * classes)
                goal[atom * classes + value] = sign
                found = program(
                    goal,
                    A_ub=vstack([sums, -sums]),
                    b_ub=np.concatenate([upper, -lower]),
                    A_eq=whole,
                    b_eq=sizes,
                    bounds=np.stack([low.ravel(), high.ravel()], axis=1),
                    method="highs",
                )
                if found.status == 2:
                    raise DataError(CONTRADICTION)
                if found.status == 0:
                    end = sign * found.fun
                    bounds[atom, value] = np.ceil(end - 1e-6) if sign > 0 else np.floor(end + 1e-6)
    return low, high


def _smallest(
    groups: Sequence[_Group], parts: Sequence[_Group], settled: Mask, means: Floats, weights: Integers
) -> tuple[Integers, list[_Group]]:
    """Of each atom the smallest group that a number is known of: one that was published, an exact difference of some,
    or the atom itself, where statements together settle it and its group alone does not."""
    listed = [*groups, *(part for part in parts if part.exact and len(part.origins) > 1)]
    found, size = np.full(len(weights), -1, dtype=np.int64), np.full(len(weights), np.iinfo(np.int64).max)
    for number, group in enumerate(listed):
        people = int(weights[group.atoms].sum())
        closer = group.atoms[people < size[group.atoms]]
        found[closer], size[closer] = number, people
    for atom in np.flatnonzero(settled & (found >= 0)).tolist():
        group = listed[found[atom]]
        if weights[atom] < size[atom] and not (group.exact and group.low.max() == size[atom]):
            counts = np.rint(means[atom]).astype(np.int64)
            found[atom] = len(listed)
            listed.append(_Group(np.array([atom]), counts, counts, group.origins, True))
    return found, listed

"""ProtectedTable + Plan -> Ensemble: level by level, one batch of questions a level.

`Growth` holds Parts, one for each open node. A level asks their sizes if the plan
wants them, closes the nodes that stop, asks for the splits of the others, and divides
them. Everything it sees is a release, and everything it decides is a function of
releases and of public coins, so the kernel's charges are the whole cost (docs/privacy.md#partition).
The same holds for what the sites of a plan decide, before growth or node by node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.domain import Domain
from privet.errors import NotPrivate, PrivacyError, QuestionError
from privet.kernel import (
    Criterion,
    GainRatio,
    Histogram,
    Parts,
    ProtectedTable,
    Public,
    PublicTable,
    Release,
    WeightedMax,
    as_epsilon,
)
from privet.trees import prune
from privet.trees.algorithm import check_attributes, check_budget, check_target, paid_for
from privet.trees.model import Ensemble, Tree
from privet.trees.plan import BY_SIGNAL, NOW, SHARPER, WEIGHTED, Level, Plan, Schedule, checked_at_node, signal
from privet.trees.record import Privacy, Step
from privet.trees.sites import Decisions, estimate_of, rows_in, settled, view_of
from privet.trees.splitting import (
    Attributes,
    Room,
    SplitOf,
    attribute_of,
    cut_of,
    find_splits,
    left_to_coins,
    room_of,
    rooms_below,
    rule_of,
    split_by_coins,
)
from privet.trees.structure import draw

Progress = Callable[[str], None]
T = TypeVar("T")


def grow(
    table: ProtectedTable,
    plan: Plan,
    epsilon: Fraction,
    rng: np.random.Generator,
    *,
    variant: str = "corrected",
    counts: Histogram | None = None,
    reasons: Sequence[str] = (),
    progress: Progress = lambda text: None,
) -> Ensemble:
    """Fit a plan within `epsilon`. What cannot be done is refused before anything is charged.

    `counts` are class counts of the table that were bought before; what they cost is part of `epsilon`.
    """
    domain = table.domain
    _check(table, plan, epsilon - paid_for(counts, domain))
    record = _Record()
    scope = table if plan.is_exact else table.allot(epsilon - paid_for(counts, domain))
    bought = _prior_share(plan, domain, epsilon) if counts is None else counts.epsilon
    decisions, has_sites = Decisions({}), bool(plan.sites)
    if has_sites:
        if counts is None and bought and domain.rows is None:  # all of them may ask how many rows there are
            counts = _class_counts(scope, bought)
        decisions = Decisions(view_of(domain, epsilon, _rows_seen(domain, counts)))
        plan = plan.decided(decisions)
        _check_choices(table, plan)
        if plan.depth != 0:
            plan.schedule(domain, epsilon, 1)  # a budget that has nothing for what others chose is refused now
    shares = plan.tree_shares(epsilon - bought)
    rows = _known_rows(scope, plan, bought, has_sites)
    planned = None if rows is None else _planned(plan, domain, shares, rows, rng)
    prior = _prior(scope, bought, counts, record)
    if rows is None or planned is None:
        assert prior is not None
        rows = max(sum(prior), 1.0)
        planned = _planned(plan, domain, shares, rows, rng, bought=True)
    seen = decisions.view.get("rows", Public(rows) if plan.wants_rows else None)
    follow = partial(_followed, domain=domain, epsilon=epsilon, rows=None if seen is None else rows, prior=prior)
    if plan.criterion in (WEIGHTED, BY_SIGNAL):
        plan = replace(plan, criterion=follow(plan.criterion))
    at_nodes = _AtNodes(decisions, rng, seen, follow) if plan.decides_at_nodes else None
    schedules, structures = planned
    # coins before growth: the same seed scatters and draws the same, whatever the releases are
    coins = 0 if plan.rows == "all" else int(rng.integers(2**31))
    trees: list[Tree] = []
    if plan.rows == "disjoint":
        many = settled(plan.trees)
        progress(f"growing {many} trees on disjoint rows")
        parts = scope.scatter(many, coins)
        trees = _Growth(
            plan, schedules[0], shares[0], record, 0, many, structures, progress, rows / many, at_nodes
        ).run(parts)
    else:
        for number, (share, schedule) in enumerate(zip(shares, schedules, strict=True)):
            progress(f"growing tree {number + 1} of {plan.trees}")
            own = scope if plan.is_exact else scope.allot(share)
            if plan.rows == "bootstrap":
                assert isinstance(own, PublicTable)
                own = own.bootstrap(coins + number)
            given = structures[number : number + 1]
            trees += _Growth(plan, schedule, share, record, number, 1, given, progress, rows, at_nodes).run(own.parts())
    if plan.fallback and prior is None:
        prior = tuple(float(count) for count in sum(tree.counts[0] for tree in trees) / len(trees))
    elif not plan.fallback:
        prior = None
    found = list(dict.fromkeys([*reasons, *plan.errata, *([] if plan.errata else record.reasons)]))
    if plan.is_exact:
        found = ["it reads public rows without noise"]
    privacy = Privacy(
        plan.name,
        variant,
        epsilon,
        domain.rows_per_person,
        tuple(record.steps),
        tuple(found),
        disjoint=plan.rows == "disjoint",
        decisions=decisions.record,
    )
    return Ensemble(domain, tuple(trees), privacy, settled(plan.vote), prior)


def refill(
    table: ProtectedTable, model: Ensemble, plan: Plan, epsilon: Fraction, progress: Progress = lambda text: None
) -> Ensemble:
    """Add the rows of another table to the leaves of a model: a new charge on the new rows, none on the old."""
    if table.domain.fingerprint != model.domain.fingerprint:
        raise QuestionError("the new rows have another domain than the model; open them with the model's domain.")
    plan = plan.for_counting()
    _check(table, plan, epsilon)
    # every tree sees all new rows, also where each saw rows of its own before
    plan = replace(
        plan, depth=100, prior=Fraction(0), prune="none", consistency="none", trees=len(model.trees), rows="all"
    )
    record = _Record()
    scope = table.allot(epsilon)
    trees = []
    for number, (tree, share) in enumerate(zip(model.trees, plan.tree_shares(epsilon), strict=True)):
        progress(f"filling tree {number + 1} of {len(model.trees)}")
        schedule = plan.schedule(table.domain, share, tree.depth)
        own = scope.allot(share).parts()
        (new,) = _Growth(plan, schedule, share, record, number, 1, [tree], progress).run(own)
        both = np.sqrt(tree.deviation**2 + new.deviation**2)
        trees.append(tree.with_counts(tree.counts + new.counts, both))
    # old and new rows are different records: a person in one of them loses what that one paid
    reasons = tuple(dict.fromkeys([*model.privacy.reasons, *record.reasons]))
    privacy = replace(model.privacy, added=(*model.privacy.added, epsilon), reasons=reasons)
    prior = model.prior
    if prior is not None:  # every tree counts the same new rows
        added = sum(new.counts[0] - old.counts[0] for new, old in zip(trees, model.trees, strict=True)) / len(trees)
        prior = tuple(float(count) for count in np.array(prior) + added)
    return replace(model, trees=tuple(trees), privacy=privacy, prior=prior)


# -- before anything is charged ---------------------------------------------------------------


def _check(table: ProtectedTable, plan: Plan, epsilon: Fraction) -> None:
    domain = table.domain
    check_target(domain)
    check_attributes(domain)
    _check_choices(table, plan)
    if not plan.is_exact:
        check_budget(table, plan.name, epsilon)


def _check_choices(table: ProtectedTable, plan: Plan) -> None:
    if (plan.errata or plan.rows == "bootstrap") and not isinstance(table, PublicTable):
        raise QuestionError(
            "an algorithm that is not private runs on rows that its caller declares public: fit(X, y) with unsafe=True."
        )
    waits = {"budget", "criterion"} & {*plan.sites} or plan.criterion in (WEIGHTED, BY_SIGNAL)
    if plan.split == "select" and not waits and not plan.is_exact:
        _usable(plan, table.domain, settled(plan.criterion))  # unknown, or without a bound: said now


def _usable(plan: Plan, domain: Domain, choice: str | Criterion) -> Criterion:
    """A criterion that splits of this plan may be chosen by."""
    rule = rule_of(plan, domain, choice)
    if isinstance(rule, GainRatio) and not plan.is_exact:
        raise NotPrivate("the gain ratio of a split has no bounded sensitivity; choose max, gini or infogain.")
    return rule


def _check_leaves(
    plan: Plan,
    domain: Domain,
    schedules: Sequence[Schedule],
    structures: Sequence[Tree],
    rows: float,
    epsilon: Fraction,
) -> None:
    most = max(
        [plan.most_leaves(domain, schedule, rows, float(epsilon)) for schedule in schedules]
        if not structures
        else [tree.leaves for tree in structures]
    )
    if most > plan.max_leaves:
        hint = "" if domain.max_rows or domain.rows or plan.stop != "noise" else "declare rows in the domain, "
        raise QuestionError(
            f"a tree of this plan may have {most} leaves, at most max_leaves={plan.max_leaves} are allowed: lower "
            f"max_depth, declare coarser bins, {hint}or raise max_leaves. Nothing was charged."
        )


def _prior_share(plan: Plan, domain: Domain, epsilon: Fraction) -> Fraction:
    """What buys class counts of the whole table: for a depth or site where rows are not public, or as a fallback."""
    by_rows = plan.wants_rows or plan.sites
    needed = plan.fallback or plan.criterion == WEIGHTED or (by_rows and domain.rows is None)
    return as_epsilon(epsilon * plan.prior) if plan.prior and needed else Fraction(0)


def _known_rows(scope: ProtectedTable, plan: Plan, bought: Fraction, has_sites: bool) -> float | None:
    """The number of rows as far as a depth needs it or sites have seen it; None where it has to be bought."""
    if scope.domain.rows is not None and (plan.wants_rows or has_sites):
        return float(scope.domain.rows)
    if bought and (plan.wants_rows or has_sites):
        return None
    # the size as it is: only on rows that are public (erratum E-9)
    return float(scope.count(math.inf)) if plan.wants_rows else 0.0


def _rows_seen(domain: Domain, counts: Histogram | None) -> Release | Public | None:
    """The number of rows for sites to see: the public one, or what class counts tell that were bought."""
    if domain.rows is not None:
        return Public(domain.rows)
    return None if counts is None else rows_in(counts)


def _followed(
    choice: Any, domain: Domain, epsilon: Fraction, rows: float | None, prior: Sequence[float] | None
) -> str | Criterion:
    """A criterion; one that follows from the number of rows or from class counts becomes the one that it is here."""
    if choice == WEIGHTED and prior is not None:
        return _weighted(prior)
    if choice == BY_SIGNAL and rows is not None:
        return "max" if signal(domain, rows, epsilon) < SHARPER else "gini"
    if choice in (WEIGHTED, BY_SIGNAL):
        raise QuestionError(
            f"the criterion '{choice}' follows from {'class counts' if choice == WEIGHTED else 'the number of rows'}, "
            "which this plan does not know; give it a prior share that buys them, or choose max or gini."
        )
    found: str | Criterion = choice
    return found


def _weighted(prior: Sequence[float]) -> WeightedMax:
    """Majorities in which a row weighs as much as its class is rare: where all cells have one majority, they differ."""
    shares = np.clip(np.array(prior) / max(sum(prior), 1.0), 0.05, 0.95)
    return WeightedMax.of((1 / shares).tolist())


def _class_counts(scope: ProtectedTable, share: Fraction) -> Histogram:
    return scope.histogram(scope.domain.target_column.name, epsilon=share)


def _prior(
    scope: ProtectedTable, share: Fraction, counts: Histogram | None, record: _Record
) -> tuple[float, ...] | None:
    """The class counts of the whole table, if they are bought, now or before."""
    if not share:
        return None
    if counts is None:
        counts = _class_counts(scope, share)
    record.add(-1, 0, "prior", [counts])
    return tuple(float(count) for count in counts.values)


def _planned(
    plan: Plan, domain: Domain, shares: Sequence[Fraction], rows: float, rng: np.random.Generator, bought: bool = False
) -> tuple[list[Schedule], list[Tree]]:
    """The schedule of each tree, and the structures of those that are drawn without looking at a row.

    A tree whose depth somebody asked for is refused if it does not fit. One whose depth follows from the
    number of rows is made less deep, and so is one that shows only after that number was bought.
    """
    depths = [plan.depth_for(domain, rows, share) for share in shares]
    while True:
        try:
            schedules = [plan.schedule(domain, share, depth) for share, depth in zip(shares, depths, strict=True)]
            structures = [draw(plan, domain, depth, rng) for depth in depths] if plan.is_drawn_before else []
            if not plan.is_exact:  # public rows bound the size of their tree themselves
                _check_leaves(plan, domain, schedules, structures, rows, max(shares))
            return schedules, structures
        except QuestionError:
            if not (bought or plan.has_depth_rule) or not any(depths):
                raise
        depths = [min(depth, max(depths) - 1) for depth in depths]


# -- one level after the other ----------------------------------------------------------------


class _Record:
    """The steps of a fit, and why it is not private if it is not."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.reasons: list[str] = []

    def add(self, tree: int, level: int, question: str, releases: Sequence[Any], path: Fraction | None = None) -> None:
        first = releases[0]
        self.steps.append(Step(tree, level, question, len(releases), first.epsilon, first.about.entry, path))
        if not first.private:
            self.reasons.append("its noise was seeded, or its rows are public")


@dataclass(frozen=True)
class _AtNodes:
    """What choices at nodes need: who asks the sites, public coins, the rows of the table, and names of criteria."""

    decisions: Decisions
    rng: np.random.Generator
    rows: Release | Public | None
    follow: Callable[[Any], str | Criterion]


@dataclass(frozen=True)
class _Nodes:
    """The nodes of one level, in order: their tree, what their path has left to split by, and what it has paid."""

    tree: NDArray[np.int64]
    unused: list[Attributes]
    estimate: NDArray[np.float64]  # rows, as if every split divided them evenly
    room: list[Room]
    paid: list[Fraction]  # one object for many: most paths of a level have paid the same
    sizes: Sequence[Release | Public] = ()  # where they were asked

    def take(self, some: NDArray[np.int64]) -> _Nodes:
        """Those that go on: their sizes have served."""
        picked = some.tolist()
        return _Nodes(
            self.tree[some],
            [self.unused[node] for node in picked],
            self.estimate[some],
            [self.room[node] for node in picked],
            [self.paid[node] for node in picked],
        )


_Way = tuple[str, Criterion | None]  # how a node finds its split, and by which criterion if not by the plan's


class _Growth:
    """One tree, or several on disjoint rows at once."""

    def __init__(
        self,
        plan: Plan,
        schedule: Schedule,
        budget: Fraction,
        record: _Record,
        number: int,
        trees: int,
        structures: Sequence[Tree],
        progress: Progress,
        rows: float = 0.0,
        at_nodes: _AtNodes | None = None,
    ) -> None:
        self._plan, self._schedule, self._budget, self._record = plan, schedule, budget, record
        self._number, self._trees, self._structures = number, trees, structures
        self._progress = progress
        self._rows = rows
        self._at_nodes = at_nodes
        self._sites = frozenset(plan.sites)  # of nodes alone: those of the run have spoken
        self._mixed = False  # have nodes of one level been asked different questions?
        self._levels: list[dict[str, Any]] = []
        self._shorter: dict[tuple[Attributes, str], Attributes] = {}

    def run(self, parts: Parts) -> list[Tree]:
        domain = parts.domain
        self._domain, self._target = domain, domain.target_column
        self._position = {name: i for i, name in enumerate(domain.attributes)}
        by_coins = not self._structures and ("split" in self._sites or self._plan.split == "random")
        self._room: Room = room_of(self._plan, domain) if by_coins else {}
        count = len(parts)
        nodes = _Nodes(
            np.arange(count),
            [domain.attributes] * count,
            np.full(count, self._rows),
            [self._room] * count,
            [Fraction(0)] * count,
        )
        level = 0
        while len(parts):
            if level:
                self._progress(f"tree {self._number + 1}, level {level}: {len(parts)} nodes")
            parts, nodes = self._level(parts, nodes, level)
            level += 1
        return [self._finished(tree) for tree in range(self._trees)]

    def _level(self, parts: Parts, nodes: _Nodes, level: int) -> tuple[Parts, _Nodes]:
        count = len(parts)
        shares = self._schedule.levels[level] if level < len(self._schedule.levels) else None
        found: dict[str, Any] = {
            "tree": nodes.tree,
            "column": np.full(count, -1),
            "at": np.full(count, -1),
            "size": np.full(count, np.nan),
            "size_deviation": np.zeros(count),
            "counts": np.zeros((count, len(self._target.values))),
            "deviation": np.zeros(count),
        }
        self._levels.append(found)
        size_share = shares.size if shares is not None else self._schedule.leaf_size
        if self._plan.is_exact:
            exact = parts.histogram(self._target.name, epsilon=math.inf)
            found["counts"] = exact.array().astype(np.float64)
            found["size"] = found["counts"].sum(axis=1)
            nodes = replace(nodes, sizes=[Public(size) for size in found["size"].tolist()] if self._sites else ())
        elif size_share:
            sizes = parts.count(size_share)
            nodes = replace(nodes, paid=self._pay(level, "size", sizes, nodes.paid), sizes=sizes)
            found["size"] = sizes.array().astype(np.float64)
            found["size_deviation"][:] = sizes[0].noise.deviation
        closing = self._closing(found, nodes, shares, size_share, level)
        ways = self._ways(nodes, shares, level, closing)
        self._close(parts, found, nodes, np.flatnonzero(closing), level)
        open_nodes = np.flatnonzero(~closing)
        if not len(open_nodes):
            return parts.take([]), nodes
        assert shares is not None
        rest, nodes = parts.take(open_nodes.tolist()), nodes.take(open_nodes)
        paid = nodes.paid
        if self._structures:
            splits = self._drawn(level)
        else:
            splits, paid = self._split(rest, nodes, ways, shares, level)
        found["column"][open_nodes] = [self._position[attribute_of(split)] for split in splits]
        found["at"][open_nodes] = [cut_of(split, self._domain) for split in splits]
        children = [self._plan_children(split) for split in splits]
        unused, room = self._left_below(nodes, splits, ways, children)
        below = _Nodes(
            np.repeat(nodes.tree, children),
            unused,
            np.repeat(nodes.estimate / children, children),
            room,
            _repeated(paid, children),
        )
        return rest.partition([*splits]), below

    # -- what becomes of a node -------------------------------------------------------------

    def _closing(
        self, found: dict[str, Any], nodes: _Nodes, shares: Level | None, size_share: Fraction, level: int
    ) -> NDArray[np.bool_]:
        """Which nodes become leaves, by what was released about them and what is public."""
        count = len(nodes.tree)
        if shares is None:
            return np.ones(count, dtype=np.bool_)
        if self._structures:
            return np.concatenate([tree.is_leaf[tree.depths == level] for tree in self._structures])
        closing = np.array([not names for names in nodes.unused])
        going = np.flatnonzero(~closing)
        stops: dict[str, Any] = {}
        for node in going.tolist() if "stop" in self._sites else ():
            stops.setdefault(self._decided("stop", nodes, node, level), []).append(node)
        if "stop" not in self._sites:
            stops[settled(self._plan.stop)] = going
        for stop, some in stops.items():
            closing[some] = self._stopped(stop, found, nodes, some, shares, size_share)
        # the public bound was checked before; luck against all odds must not fill the memory
        if sum(len(each["tree"]) for each in self._levels) > 4 * self._plan.max_leaves * self._trees:
            closing[:] = True
        return closing

    def _stopped(
        self, stop: str, found: dict[str, Any], nodes: _Nodes, some: Sequence[int], shares: Level, size_share: Fraction
    ) -> NDArray[np.bool_] | bool:
        """Which of some nodes a rule makes leaves."""
        classes = len(self._target.values)
        if stop == "noise":
            self._plan.check_shares(shares, "size")
            unused = [nodes.unused[node] for node in some]
            cells = {names: max(self._cells(name) for name in names) for names in set(unused)}
            largest = np.array([cells[names] for names in unused])
            return np.asarray(found["size"][some] / (largest * classes) < math.sqrt(2) / float(size_share))
        if stop == "estimate":
            if self._at_nodes is not None and self._at_nodes.rows is None:
                raise QuestionError(
                    "to stop by an estimated size takes the number of rows: declare rows in the domain, or give the "
                    "plan a prior share that buys it."
                )
            paid = [nodes.paid[node] for node in some]
            enough = {key: self._plan.enough(classes, self._budget - each) for key, each in _distinct(paid).items()}
            return np.asarray(nodes.estimate[some] < np.array([enough[id(each)] for each in paid]))
        if stop == "pure":
            return np.asarray((found["counts"][some] > 0).sum(axis=1) < 2)
        return stop == NOW

    def _ways(self, nodes: _Nodes, shares: Level | None, level: int, closing: NDArray[np.bool_]) -> list[_Way]:
        """How each node that goes on finds its split; one that coins should divide and cannot becomes a leaf."""
        going = [] if self._structures else np.flatnonzero(~closing).tolist()
        split: str = "" if "split" in self._sites else settled(self._plan.split)
        if split != "random" and not self._sites & {"split", "criterion"}:
            return [(split, None)] * len(going)
        ways: list[_Way] = []
        for node in going:
            way = split or self._decided("split", nodes, node, level)
            if way == "random":
                closing[node] = not left_to_coins(nodes.unused[node], nodes.room[node])
            if not closing[node]:
                ways.append((way, self._criterion(nodes, node, shares, level) if way == "select" else None))
        return ways

    def _split(
        self, parts: Parts, nodes: _Nodes, ways: Sequence[_Way], shares: Level, level: int
    ) -> tuple[list[SplitOf], list[Fraction]]:
        """The split of each node, and what its path has paid then.

        Nodes that look for it in different ways are different rows: they are asked in turn, and
        the level pays as if they were asked together (docs/privacy.md#partition).
        """
        groups: dict[_Way, list[int]] = {}
        for node, way in enumerate(ways):
            groups.setdefault(way, []).append(node)
        splits: dict[int, SplitOf] = {}
        asked: dict[str, tuple[list[Any], list[int]]] = {}
        for (kind, rule), some in groups.items():
            unused = [nodes.unused[node] for node in some]
            if kind == "random":
                assert self._at_nodes is not None
                coins = self._at_nodes.rng
                drawn = [split_by_coins(nodes.unused[i], nodes.room[i], self._domain, coins) for i in some]
                splits |= zip(some, drawn, strict=True)
                continue
            plan = self._plan if rule is None else replace(self._plan, criterion=rule)
            plan = plan if plan.split == kind else replace(plan, split=kind)
            found, questions = find_splits(parts.take(some) if len(groups) > 1 else parts, unused, plan, shares)
            splits |= zip(some, found, strict=True)
            for question, releases in questions.items():
                everything, askers = asked.setdefault(question, ([], []))
                everything += releases
                askers += some
        paid = list(nodes.paid)
        for question, (releases, askers) in asked.items():
            self._mixed |= len(askers) < len(paid)
            after = self._pay(level, question, releases, [paid[node] for node in askers])
            for node, amount in zip(askers, after, strict=True):
                paid[node] = amount
        return [splits[node] for node in range(len(ways))], paid

    def _left_below(
        self, nodes: _Nodes, splits: Sequence[SplitOf], ways: Sequence[_Way], children: Sequence[int]
    ) -> tuple[list[Attributes], list[Room]]:
        """What the children of each node may split by, and where coins may cut."""
        left = [self._left(names, split) for names, split in zip(nodes.unused, splits, strict=True)]
        if not self._room:
            return _repeated(left, children), [self._room] * sum(children)
        unused, rooms = [], []
        for names, room, split, (kind, _) in zip(left, nodes.room, splits, ways, strict=True):
            below = rooms_below(room, split, self._domain)
            rooms += below
            name = attribute_of(split)
            for low, high in (each.get(name, (0, 1)) for each in below):
                # coins do not come back to a number that they cannot cut any more
                unused.append(self._left(names, name) if kind == "random" and low >= high else names)
        return unused, rooms

    def _close(self, parts: Parts, found: dict[str, Any], nodes: _Nodes, closing: Any, level: int) -> None:
        """Ask the leaves of this level what their rows are."""
        if not len(closing) or self._plan.is_exact:
            return
        groups = _places([nodes.paid[node] for node in closing])
        for paid, places in groups.items():
            some = closing[places] if len(groups) > 1 else closing
            leaves = parts.take(some.tolist())
            # the path ledger: what a leaf's path has not spent, nobody else can
            share = self._budget - paid if self._schedule.leaf is None else self._schedule.leaf
            path = paid + share if self._mixed else None
            if self._plan.leaf == "label":
                choices = leaves.majority(self._target.name, share)
                self._record.add(self._number, level, "label", choices, path)
                code = [self._target.texts.index(str(choice)) for choice in choices]
                found["counts"][some, code] = 1
                continue
            counts = leaves.histogram(self._target.name, epsilon=share)
            self._record.add(self._number, level, "class counts", counts, path)
            found["counts"][some] = counts.array()
            found["deviation"][some] = counts[0].noise.deviation

    def _drawn(self, level: int) -> list[SplitOf]:
        splits: list[SplitOf] = []
        for tree in self._structures:
            for node in np.flatnonzero((tree.depths == level) & ~tree.is_leaf):
                name = self._domain.attributes[int(tree.column[node])]
                if tree.at[node] < 0:
                    splits.append(name)
                else:
                    splits.append((name, self._domain.numeric(name).value_at(int(tree.at[node]) - 1)))
        return splits

    # -- sites --------------------------------------------------------------------------------

    def _decided(
        self, name: str, nodes: _Nodes, node: int, level: int, checked: Callable[[Any], Any] | None = None
    ) -> Any:
        """What a site says of a node."""
        assert self._at_nodes is not None
        view: dict[str, Release | Public] = {
            "depth": Public(level),
            "left": Public(len(nodes.unused[node])),
            "budget": Public(float(self._budget - nodes.paid[node])),
        }
        if nodes.sizes:
            view["rows"] = nodes.sizes[node]
        elif self._at_nodes.rows is not None:
            view["rows"] = estimate_of(self._at_nodes.rows, float(nodes.estimate[node]))
        site = getattr(self._plan, name)
        return self._at_nodes.decisions.ask(name, site, checked or partial(checked_at_node, name), view)

    def _criterion(self, nodes: _Nodes, node: int, shares: Level | None, level: int) -> Criterion:
        """The criterion by which a node selects, if the budget has a share for that."""
        assert shares is not None
        if not self._plan.is_exact:
            points = self._plan.numeric == "separate" and bool(room_of(self._plan, self._domain))
            self._plan.check_shares(shares, "split", *["points"] * points)
        if "criterion" in self._sites:
            found: Criterion = self._decided("criterion", nodes, node, level, self._rule)
            return found
        return self._rule(self._plan.criterion)

    def _rule(self, choice: Any) -> Criterion:
        assert self._at_nodes is not None
        try:
            return _usable(self._plan, self._domain, self._at_nodes.follow(choice))
        except PrivacyError as error:  # a question that cannot be asked here, and was not
            raise QuestionError(str(error)) from None

    # -- small things -----------------------------------------------------------------------

    def _pay(self, level: int, question: str, releases: Sequence[Any], paid: list[Fraction]) -> list[Fraction]:
        """Write down a question, and what the nodes that it was asked of have paid then; public rows pay nothing."""
        if not releases[0].epsilon:
            return paid
        self._record.add(self._number, level, question, releases)
        after = {key: each + releases[0].epsilon for key, each in _distinct(paid).items()}
        return [after[id(each)] for each in paid]

    def _cells(self, name: str) -> int:
        return self._plan.children(self._domain, name)

    def _plan_children(self, split: SplitOf) -> int:
        if isinstance(split, tuple):
            return 2 + self._domain[split[0]].missing
        return self._domain[attribute_of(split)].size

    def _left(self, names: Attributes, split: SplitOf) -> Attributes:
        """The attributes a path may still use: a threshold does not use a column up."""
        if isinstance(split, tuple):
            return names
        key = (names, attribute_of(split))
        if key not in self._shorter:
            self._shorter[key] = tuple(name for name in names if name != split)
        return self._shorter[key]

    def _finished(self, tree: int) -> Tree:
        """The arrays of one tree, made consistent and pruned."""
        arrays = {
            name: np.concatenate([level[name][level["tree"] == tree] for level in self._levels])
            for name in ("column", "at", "counts", "deviation", "size", "size_deviation")
        }
        variance = arrays.pop("size_deviation") ** 2
        if self._plan.is_exact:
            arrays["size"] = np.full(len(variance), np.nan)
        grown = Tree.grown(self._domain, **arrays)
        if self._plan.consistency == "least-squares":
            grown = prune.least_squares(grown, variance)
        elif self._plan.consistency == "rescale":
            grown = prune.rescale(grown)
        if self._plan.prune == "error":
            grown = prune.by_error(grown, self._plan.certainty)
        elif self._plan.prune == "signal":
            grown = prune.by_signal(grown)
        return grown


def _distinct(amounts: Sequence[Fraction]) -> dict[int, Fraction]:
    """The amounts by their identities: of thousands of nodes most have paid the same, and share one object."""
    return {id(each): each for each in amounts}


def _places(amounts: Sequence[Fraction]) -> dict[Fraction, list[int]]:
    """Where each amount stands."""
    distinct = _distinct(amounts)
    places: dict[Fraction, list[int]] = {each: [] for each in distinct.values()}
    by_identity = {key: places[each] for key, each in distinct.items()}
    for place, each in enumerate(amounts):
        by_identity[id(each)].append(place)
    return places


def _repeated(values: Sequence[T], times: Sequence[int]) -> list[T]:
    return [value for value, often in zip(values, times, strict=True) for _ in range(often)]

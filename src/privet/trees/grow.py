"""ProtectedTable + Plan -> Ensemble: level by level, one batch of questions a level.

`Growth` holds Parts, one for each open node. A level asks their sizes if the plan
wants them, closes the nodes that stop, asks for the splits of the others, and divides
them. Everything it sees is a release, and everything it decides is a function of
releases and of public coins, so the kernel's charges are the whole cost (docs/privacy.md#partition).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.domain import Domain
from privet.errors import NotPrivate, QuestionError
from privet.kernel import (
    GainRatio,
    Parts,
    ProtectedTable,
    PublicTable,
    WeightedMax,
    as_epsilon,
)
from privet.trees import prune
from privet.trees.algorithm import check_attributes, check_budget, check_target
from privet.trees.model import Ensemble, Tree
from privet.trees.plan import BY_SIGNAL, SHARPER, WEIGHTED, Plan, Schedule, signal
from privet.trees.record import Privacy, Step
from privet.trees.splitting import Attributes, SplitOf, attribute_of, find_splits, rule_of
from privet.trees.structure import draw

Progress = Callable[[str], None]


def grow(
    table: ProtectedTable,
    plan: Plan,
    epsilon: Fraction,
    rng: np.random.Generator,
    *,
    variant: str = "corrected",
    reasons: Sequence[str] = (),
    progress: Progress = lambda text: None,
) -> Ensemble:
    """Fit a plan within `epsilon`. What cannot be done is refused before anything is charged."""
    domain = table.domain
    _check(table, plan, epsilon)
    record = _Record()
    scope = table if plan.is_exact else table.allot(epsilon)
    bought = _prior_share(plan, domain, epsilon)
    shares = plan.tree_shares(epsilon - bought)
    rows = _known_rows(scope, plan, bought)
    planned = None if rows is None else _planned(plan, domain, shares, rows, rng)
    prior = _prior(scope, bought, record)
    if rows is None or planned is None:
        assert prior is not None
        rows = max(sum(prior), 1.0)
        planned = _planned(plan, domain, shares, rows, rng, bought=True)
    if plan.criterion == WEIGHTED:
        assert prior is not None
        plan = replace(plan, criterion=_weighted(prior))
    if plan.criterion == BY_SIGNAL:
        plan = replace(plan, criterion="max" if signal(domain, rows, epsilon) < SHARPER else "gini")
    schedules, structures = planned
    # coins before growth: the same seed scatters and draws the same, whatever the releases are
    coins = int(rng.integers(2**31))
    trees: list[Tree] = []
    if plan.rows == "disjoint":
        progress(f"growing {plan.trees} trees on disjoint rows")
        parts = scope.scatter(plan.trees, coins)
        trees = _Growth(
            plan, schedules[0], shares[0], record, 0, plan.trees, structures, progress, rows / plan.trees
        ).run(parts)
    else:
        for number, (share, schedule) in enumerate(zip(shares, schedules, strict=True)):
            progress(f"growing tree {number + 1} of {plan.trees}")
            own = scope if plan.is_exact else scope.allot(share)
            if plan.rows == "bootstrap":
                assert isinstance(own, PublicTable)
                own = own.bootstrap(coins + number)
            given = structures[number : number + 1]
            trees += _Growth(plan, schedule, share, record, number, 1, given, progress, rows).run(own.parts())
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
    )
    return Ensemble(domain, tuple(trees), privacy, plan.vote, prior)


def refill(
    table: ProtectedTable, model: Ensemble, plan: Plan, epsilon: Fraction, progress: Progress = lambda text: None
) -> Ensemble:
    """Add the rows of another table to the leaves of a model: a new charge on the new rows, none on the old."""
    if table.domain.fingerprint != model.domain.fingerprint:
        raise QuestionError("the new rows have another domain than the model; open them with the model's domain.")
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
    if (plan.errata or plan.rows == "bootstrap") and not isinstance(table, PublicTable):
        raise QuestionError(
            "an algorithm that is not private runs on rows that its caller declares public: fit(X, y) with unsafe=True."
        )
    if plan.is_exact:
        return
    if plan.split == "select" and plan.criterion not in (WEIGHTED, BY_SIGNAL):
        rule = rule_of(plan, domain)  # unknown, or without a bound: said now
        if isinstance(rule, GainRatio):
            raise NotPrivate("the gain ratio of a split has no bounded sensitivity; choose max, gini or infogain.")
    check_budget(table, plan.name, epsilon)


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
    """What buys class counts of the whole table: for the depth where rows are not public, or as a fallback."""
    needed = plan.fallback or plan.criterion == WEIGHTED or (plan.wants_rows and domain.rows is None)
    return as_epsilon(epsilon * plan.prior) if plan.prior and needed else Fraction(0)


def _known_rows(scope: ProtectedTable, plan: Plan, bought: Fraction) -> float | None:
    """The number of rows as far as a depth needs it; None where it has to be bought."""
    if not plan.wants_rows:
        return 0.0
    if scope.domain.rows is not None:
        return float(scope.domain.rows)
    # the size as it is: only on rows that are public (erratum E-9)
    return None if bought else float(scope.count(math.inf))


def _weighted(prior: Sequence[float]) -> WeightedMax:
    """Majorities in which a row weighs as much as its class is rare: where all cells have one majority, they differ."""
    shares = np.clip(np.array(prior) / max(sum(prior), 1.0), 0.05, 0.95)
    return WeightedMax.of((1 / shares).tolist())


def _prior(scope: ProtectedTable, share: Fraction, record: _Record) -> tuple[float, ...] | None:
    """The class counts of the whole table, if they are bought."""
    if not share:
        return None
    counts = scope.histogram(scope.domain.target_column.name, epsilon=share)
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
            structures = [draw(plan, domain, depth, rng) for depth in depths] if plan.split == "random" else []
            if not plan.is_exact:  # public rows bound the size of their tree themselves
                _check_leaves(plan, domain, schedules, structures, rows, max(shares))
            return schedules, structures
        except QuestionError:
            if not (bought or callable(plan.depth)) or not any(depths):
                raise
        depths = [min(depth, max(depths) - 1) for depth in depths]


# -- one level after the other ----------------------------------------------------------------


class _Record:
    """The steps of a fit, and why it is not private if it is not."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.reasons: list[str] = []

    def add(self, tree: int, level: int, question: str, releases: Sequence[Any]) -> None:
        first = releases[0]
        self.steps.append(Step(tree, level, question, len(releases), first.epsilon, first.about.entry))
        if not first.private:
            self.reasons.append("its noise was seeded, or its rows are public")


@dataclass(frozen=True)
class _Nodes:
    """The nodes of one level, in order: their tree and the attributes their path has left."""

    tree: NDArray[np.int64]
    unused: list[Attributes]
    estimate: NDArray[np.float64]  # rows, as if every split divided them evenly


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
    ) -> None:
        self._plan, self._schedule, self._budget, self._record = plan, schedule, budget, record
        self._number, self._trees, self._structures = number, trees, structures
        self._progress = progress
        self._rows = rows
        self._spent = Fraction(0)
        self._levels: list[dict[str, Any]] = []
        self._shorter: dict[tuple[Attributes, str], Attributes] = {}

    def run(self, parts: Parts) -> list[Tree]:
        domain = parts.domain
        self._domain, self._target = domain, domain.target_column
        self._position = {name: i for i, name in enumerate(domain.attributes)}
        nodes = _Nodes(np.arange(len(parts)), [domain.attributes] * len(parts), np.full(len(parts), self._rows))
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
        elif size_share:
            sizes = parts.count(size_share)
            self._pay(level, "size", sizes)
            found["size"] = sizes.array().astype(np.float64)
            found["size_deviation"][:] = sizes[0].noise.deviation
        closing = self._closing(found, nodes, shares, size_share, level)
        self._close(parts, found, np.flatnonzero(closing), level)
        open_nodes = np.flatnonzero(~closing)
        if not len(open_nodes):
            return parts.take([]), nodes
        assert shares is not None
        rest = parts.take(open_nodes.tolist())
        unused = [nodes.unused[i] for i in open_nodes]
        if self._structures:
            splits = self._drawn(level)
        else:
            splits, asked = find_splits(rest, unused, self._plan, shares)
            for question, releases in asked.items():
                self._pay(level, question, releases)
        found["column"][open_nodes] = [self._position[attribute_of(split)] for split in splits]
        found["at"][open_nodes] = [self._index(split) for split in splits]
        children = [self._plan_children(split) for split in splits]
        left = [self._left(names, split) for names, split in zip(unused, splits, strict=True)]
        below = _Nodes(
            np.repeat(nodes.tree[open_nodes], children),
            [names for names, times in zip(left, children, strict=True) for _ in range(times)],
            np.repeat(nodes.estimate[open_nodes] / children, children),
        )
        return rest.partition([*splits]), below

    def _closing(
        self, found: dict[str, Any], nodes: _Nodes, shares: Any, size_share: Fraction, level: int
    ) -> NDArray[np.bool_]:
        """Which nodes become leaves, by what was released about them and what is public."""
        count = len(nodes.tree)
        if shares is None:
            return np.ones(count, dtype=np.bool_)
        if self._structures:
            return np.concatenate([tree.is_leaf[tree.depths == level] for tree in self._structures])
        closing = np.array([not names for names in nodes.unused])
        if self._plan.stop == "noise":
            cells = {names: max((self._cells(n) for n in names), default=1) for names in set(nodes.unused)}
            largest = np.array([cells[names] for names in nodes.unused])
            closing |= found["size"] / (largest * len(self._target.values)) < math.sqrt(2) / float(size_share)
        elif self._plan.stop == "estimate":
            closing |= nodes.estimate < self._plan.enough(len(self._target.values), self._budget - self._spent)
        elif self._plan.stop == "pure":
            closing |= (found["counts"] > 0).sum(axis=1) < 2
        # the public bound was checked before; luck against all odds must not fill the memory
        if sum(len(each["tree"]) for each in self._levels) > 4 * self._plan.max_leaves * self._trees:
            closing[:] = True
        return closing

    def _close(self, parts: Parts, found: dict[str, Any], closing: Any, level: int) -> None:
        """Ask the leaves of this level what their rows are."""
        if not len(closing) or self._plan.is_exact:
            return
        leaves = parts.take(closing.tolist())
        # the path ledger: what a leaf's path has not spent, nobody else can
        share = self._budget - self._spent if self._schedule.leaf is None else self._schedule.leaf
        if self._plan.leaf == "label":
            choices = leaves.majority(self._target.name, share)
            self._record.add(self._number, level, "label", choices)
            code = [self._target.texts.index(str(choice)) for choice in choices]
            found["counts"][closing, code] = 1
            return
        counts = leaves.histogram(self._target.name, epsilon=share)
        self._record.add(self._number, level, "class counts", counts)
        found["counts"][closing] = counts.array()
        found["deviation"][closing] = counts[0].noise.deviation

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

    # -- small things -----------------------------------------------------------------------

    def _pay(self, level: int, question: str, releases: Sequence[Any]) -> None:
        """Write down what every node that goes on has paid; public rows pay nothing."""
        if releases[0].epsilon:
            self._record.add(self._number, level, question, releases)
            self._spent += releases[0].epsilon

    def _cells(self, name: str) -> int:
        return self._plan.children(self._domain, name)

    def _plan_children(self, split: SplitOf) -> int:
        if isinstance(split, tuple):
            return 2 + self._domain[split[0]].missing
        return self._domain[attribute_of(split)].size

    def _index(self, split: SplitOf) -> int:
        """The grid index from which rows go right, -1 for a split into cells."""
        if not isinstance(split, tuple):
            return -1
        column = self._domain.numeric(split[0])
        return int((split[1] - column.low) / column.step) + 1

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
